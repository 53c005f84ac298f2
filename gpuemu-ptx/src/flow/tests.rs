//! Dominators, loops and liveness against the definitions, on graphs drawn at random.

use proptest::prelude::*;

use super::dominators::{NONE, immediate_dominators};
use super::*;

/// Nodes that `root` reaches without entering `without`.
fn reach(graph: &Graph, root: u32, without: Option<u32>) -> Vec<bool> {
    let mut seen = vec![false; graph.nodes()];
    let mut pending = if Some(root) == without { vec![] } else { vec![root] };
    while let Some(node) = pending.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            pending.extend(graph.successors(node).iter().filter(|&&to| Some(to) != without));
        }
    }
    seen
}

/// `above` dominates `below`: without it, `below` is out of reach.
fn dominates(graph: &Graph, root: u32, above: u32, below: u32) -> bool {
    !reach(graph, root, Some(above))[below as usize]
}

fn graph() -> impl Strategy<Value = (usize, Vec<(u32, u32)>)> {
    (1_usize..14).prop_flat_map(|nodes| {
        let node = 0..nodes as u32;
        (Just(nodes), prop::collection::vec((node.clone(), node), 0..nodes * 3))
    })
}

/// One instruction of a random function: where it leads, and what it reads and writes.
#[derive(Clone, Debug)]
struct Step {
    jump: Option<(Vec<u32>, bool, bool)>,
    reads: Vec<u32>,
    writes: Vec<u32>,
    guarded: bool,
}

const REGISTERS: u32 = 5;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    (1_usize..16).prop_flat_map(|count| {
        let targets = prop::collection::vec(0..=count as u32, 0..3);
        let jump = prop::option::weighted(0.4, (targets, any::<bool>(), any::<bool>()));
        let registers = || prop::collection::vec(0..REGISTERS, 0..3);
        let step = (jump, registers(), registers(), any::<bool>()).prop_map(|(jump, reads, writes, guarded)| Step {
            jump,
            reads,
            writes,
            guarded,
        });
        prop::collection::vec(step, count)
    })
}

struct Steps(Vec<Step>);

impl Steps {
    fn flow(&self) -> Flow {
        let jumps: Vec<_> = (0..)
            .zip(&self.0)
            .filter_map(|(at, step)| {
                let (targets, leaves, falls_through) = step.jump.clone()?;
                Some(Jump { at, targets, leaves, falls_through })
            })
            .collect();
        Flow::new(self.0.len() as u32, &jumps)
    }

    fn next(&self, at: usize) -> Vec<usize> {
        let mut next = match &self.0[at].jump {
            Some((targets, _, falls)) => {
                let mut next: Vec<_> = targets.iter().map(|&target| target as usize).collect();
                next.extend(falls.then_some(at + 1));
                next
            }
            None => vec![at + 1],
        };
        next.retain(|&next| next < self.0.len());
        next
    }
}

impl Accesses for Steps {
    fn registers(&self) -> usize {
        REGISTERS as usize
    }
    fn reads(&self, instruction: u32, visit: impl FnMut(u32)) {
        self.0[instruction as usize].reads.iter().copied().for_each(visit);
    }
    fn writes(&self, instruction: u32, visit: impl FnMut(u32)) {
        self.0[instruction as usize].writes.iter().copied().for_each(visit);
    }
    fn may_keep(&self, instruction: u32) -> bool {
        self.0[instruction as usize].guarded
    }
}

proptest! {
    #[test]
    fn dominators_are_those_of_the_definition((nodes, edges) in graph()) {
        let graph = Graph::new(nodes, &edges);
        let found = immediate_dominators(&graph, 0);
        let reached = reach(&graph, 0, None);
        for node in 0..nodes as u32 {
            // The strict dominators form a chain; the immediate one is dominated by all others.
            let strict: Vec<u32> = (0..nodes as u32)
                .filter(|&above| above != node && reached[node as usize] && reached[above as usize])
                .filter(|&above| dominates(&graph, 0, above, node))
                .collect();
            let expected = strict.iter().copied().find(|&near| strict.iter().all(|&far| dominates(&graph, 0, far, near)));
            prop_assert_eq!(found[node as usize], expected.unwrap_or(NONE), "node {}", node);
        }
    }

    #[test]
    fn blocks_loops_and_post_dominators_are_those_of_the_definition(steps in steps()) {
        let steps = Steps(steps);
        let flow = steps.flow();
        let graph = flow.graph();
        let blocks = flow.blocks.len() as u32;
        // Instructions lead where their blocks lead.
        for at in 0..steps.0.len() {
            let block = flow.block_of(at as u32);
            let mut expected: Vec<u32> = steps.next(at).iter().map(|&next| flow.block_of(next as u32).0).collect();
            expected.sort_unstable();
            expected.dedup();
            if at as u32 + 1 == flow.block(block).instructions.end {
                prop_assert_eq!(graph.successors(block.0), &expected[..]);
            } else {
                prop_assert_eq!(&expected[..], &[block.0]);
            }
        }
        let reached = reach(graph, 0, None);
        for above in 0..blocks {
            prop_assert_eq!(flow.block(BlockId(above)).reachable, reached[above as usize]);
            for below in 0..blocks {
                let expected = reached[above as usize] && reached[below as usize] && dominates(graph, 0, above, below);
                prop_assert_eq!(flow.dominates(BlockId(above), BlockId(below)), expected);
            }
        }
        // Loops: for every header the union of the natural loops of its back edges.
        for header in (0..blocks).filter(|&header| reached[header as usize]) {
            let latches: Vec<u32> = graph.predecessors(header).iter().copied()
                .filter(|&from| reached[from as usize] && dominates(graph, 0, header, from)).collect();
            let found = (0..).map(LoopId).zip(&flow.loops).find(|(_, found)| found.header == header);
            prop_assert_eq!(found.is_some(), !latches.is_empty());
            let Some((id, _)) = found else { continue };
            let mut edges: Vec<(u32, u32)> = Vec::new();
            for node in 0..blocks {
                edges.extend(graph.successors(node).iter().map(|&to| (to, node)));
            }
            let backward = Graph::new(blocks as usize, &edges);
            let mut expected = vec![false; blocks as usize];
            expected[header as usize] = true;
            for latch in latches {
                for (node, member) in reach(&backward, latch, Some(header)).into_iter().enumerate() {
                    expected[node] |= member && reached[node];
                }
            }
            for node in 0..blocks {
                prop_assert_eq!(flow.in_loop(BlockId(node), id), expected[node as usize], "loop {} node {}", header, node);
            }
        }
        for node in 0..blocks {
            let around = flow.loops.iter().enumerate()
                .filter(|(id, _)| flow.in_loop(BlockId(node), LoopId(*id as u32))).count();
            prop_assert_eq!(flow.depth(BlockId(node)) as usize, around);
        }
        // Post-dominators, where every block can end.
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for node in 0..blocks {
            edges.extend(graph.successors(node).iter().map(|&to| (to, node)));
            if flow.block(BlockId(node)).leaves {
                edges.push((blocks, node));
            }
        }
        let backward = Graph::new(blocks as usize + 1, &edges);
        if reach(&backward, blocks, None).iter().all(|&ends| ends) {
            for node in 0..blocks {
                let strict: Vec<u32> = (0..blocks)
                    .filter(|&after| after != node && dominates(&backward, blocks, after, node)).collect();
                let expected = strict.iter().copied()
                    .find(|&near| strict.iter().all(|&far| dominates(&backward, blocks, far, near)));
                prop_assert_eq!(flow.block(BlockId(node)).post_dominator, expected.map(BlockId));
            }
        }
    }

    #[test]
    fn liveness_is_the_least_fixpoint(steps in steps()) {
        let steps = Steps(steps);
        let flow = steps.flow();
        let liveness = Liveness::new(&flow, &steps);
        let count = steps.0.len();
        let writers = |register: &u32| steps.0.iter().filter(|step| step.writes.contains(register)).count();
        // live before = reads, or live after and not replaced.
        let mut live = vec![[false; REGISTERS as usize]; count];
        loop {
            let before = live.clone();
            for at in 0..count {
                for register in 0..REGISTERS {
                    let step = &steps.0[at];
                    let replaced = step.writes.contains(&register) && (!step.guarded || writers(&register) == 1);
                    let after = steps.next(at).iter().any(|&next| live[next][register as usize]);
                    live[at][register as usize] = step.reads.contains(&register) || after && !replaced;
                }
            }
            if live == before { break; }
        }
        for (at, live) in live.iter().enumerate() {
            let expected: Vec<u32> = (0..REGISTERS).filter(|&register| live[register as usize]).collect();
            prop_assert_eq!(&liveness.live_before(&flow, &steps, at as u32), &expected, "before {}", at);
            let block = flow.block_of(at as u32);
            if flow.block(block).instructions.start == at as u32 {
                prop_assert_eq!(liveness.live_in(block), &expected[..]);
            }
        }
    }
}

#[test]
fn branches_inside_a_loop_without_end_meet_inside_it() {
    // 0: branch to 3 or on; 1: work; 2: jump to 4; 3: other work; 4: jump to 0.
    let jump = |at, target, falls_through| Jump { at, targets: vec![target], leaves: false, falls_through };
    let flow = Flow::new(5, &[jump(0, 3, true), jump(2, 4, false), jump(4, 0, false)]);
    assert_eq!(flow.block(BlockId(0)).post_dominator, Some(flow.block_of(4)));
    assert_eq!(flow.loops.len(), 1);
}

#[test]
fn a_ladder_of_a_hundred_thousand_exits_is_quick() {
    let count = 200_000;
    let jumps: Vec<_> = (0..count / 2)
        .map(|pair| Jump { at: pair * 2, targets: vec![count - 1], leaves: false, falls_through: true })
        .collect();
    let flow = Flow::new(count, &jumps);
    assert_eq!(flow.block(flow.block_of(0)).post_dominator, Some(flow.block_of(count - 1)));
    assert_eq!(flow.block(flow.block_of(count - 1)).dominator, Some(flow.block_of(0)));
}
