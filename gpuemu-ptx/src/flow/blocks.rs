//! Basic blocks, and what is known of the graph they make.

use std::ops::Range;

use super::dominators::{NONE, immediate_dominators};
use super::graph::Graph;
use super::loops::{Loop, LoopId, natural_loops};

/// Number of a [`Block`] in [`Flow::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// Instructions that are executed one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its instructions, at least one.
    pub instructions: Range<u32>,
    /// The last block that every way from the beginning passes before this one. `None` for the first block and for
    /// blocks that nothing reaches.
    pub dominator: Option<BlockId>,
    /// The first block that every way from here to the end of the function passes: where threads that part here meet
    /// again. `None` where they meet at the end only. In a loop without end it is a block that every turn passes.
    pub post_dominator: Option<BlockId>,
    /// The smallest loop it is in.
    pub innermost: Option<LoopId>,
    /// Whether a way from the beginning leads here.
    pub reachable: bool,
    /// Whether the function may end here.
    pub leaves: bool,
}

/// An instruction after which another than the next may follow.
#[derive(Clone, Debug)]
pub struct Jump {
    /// The instruction.
    pub at: u32,
    /// Where it may lead: indices of instructions, or their number for the end.
    pub targets: Vec<u32>,
    /// Whether it may end the function.
    pub leaves: bool,
    /// Whether the next instruction may follow.
    pub falls_through: bool,
}

/// Control flow of one function.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Its blocks, in the order of the text.
    pub blocks: Vec<Block>,
    /// Its loops, inner before outer.
    pub loops: Vec<Loop>,
    /// The blocks that are reached, each before those it leads to, loops apart.
    pub order: Vec<BlockId>,
    /// Whether a loop can be entered at more than one block: such loops are not among [`Flow::loops`].
    pub irreducible: bool,
    graph: Graph,
    block_of: Vec<u32>,
    /// For every block the interval of its subtree of the dominator tree.
    subtree: Vec<(u32, u32)>,
}

impl Flow {
    /// The flow of `instructions` instructions with these jumps, in order.
    pub fn new(instructions: u32, jumps: &[Jump]) -> Self {
        if instructions == 0 {
            return Self::default();
        }
        let (mut blocks, block_of) = split(instructions, jumps);
        let edges = edges(&mut blocks, &block_of, instructions, jumps);
        let graph = Graph::new(blocks.len(), &edges);
        let order = graph.reverse_postorder(0);
        let dominators = immediate_dominators(&graph, 0);
        let subtree = subtrees(&dominators, &order);
        for &node in &order {
            let block = &mut blocks[node as usize];
            block.reachable = true;
            block.dominator = some(dominators[node as usize]);
        }
        let post_dominators = post_dominators(&blocks, &edges, &graph);
        for (block, post_dominator) in blocks.iter_mut().zip(&post_dominators) {
            block.post_dominator = some(*post_dominator);
        }
        let reached: Vec<_> = blocks.iter().map(|block| block.reachable).collect();
        let dominates = |above: u32, below: u32| contains(subtree[above as usize], subtree[below as usize]);
        let (loops, innermost) = natural_loops(&graph, &order, &reached, dominates);
        for (block, innermost) in blocks.iter_mut().zip(innermost) {
            block.innermost = (innermost != NONE).then_some(LoopId(innermost));
        }
        let mut position = vec![NONE; blocks.len()];
        for (index, &node) in order.iter().enumerate() {
            position[node as usize] = index as u32;
        }
        // An edge back in the order that does not lead to a dominator enters a loop beside its header.
        let irreducible = edges.iter().any(|&(from, to)| {
            reached[from as usize] && position[from as usize] >= position[to as usize] && !dominates(to, from)
        });
        let order = order.into_iter().map(BlockId).collect();
        Self { blocks, loops, order, irreducible, graph, block_of, subtree }
    }

    /// A block by number.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }

    /// The block of an instruction.
    ///
    /// # Panics
    ///
    /// Where there is no such instruction: a target may be the end of the function, which is in no block.
    pub fn block_of(&self, instruction: u32) -> BlockId {
        BlockId(self.block_of[instruction as usize])
    }

    /// The blocks as a graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The blocks that may follow.
    pub fn successors(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        self.graph.successors(block.0).iter().copied().map(BlockId)
    }

    /// The blocks that may come before.
    pub fn predecessors(&self, block: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        self.graph.predecessors(block.0).iter().copied().map(BlockId)
    }

    /// Whether every way from the beginning to `below` passes `above`; a block dominates itself. `false` where either is
    /// never reached.
    pub fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        self.block(above).reachable
            && self.block(below).reachable
            && contains(self.subtree[above.0 as usize], self.subtree[below.0 as usize])
    }

    /// Calls `visit` with every block whose execution the branch at the end of `block` decides, closer ones first. A
    /// block may come twice, for two ways out.
    pub fn controlled_by(&self, block: BlockId, mut visit: impl FnMut(BlockId)) {
        let end = self.block(block).post_dominator;
        for next in self.successors(block) {
            let mut walk = Some(next);
            while walk != end {
                let Some(controlled) = walk else { break };
                visit(controlled);
                walk = self.block(controlled).post_dominator;
            }
        }
    }

    /// Loops around a block.
    pub fn depth(&self, block: BlockId) -> u32 {
        self.block(block).innermost.map_or(0, |id| self.loops[id.0 as usize].depth)
    }

    /// Whether a block is in this loop, however deep.
    pub fn in_loop(&self, block: BlockId, wanted: LoopId) -> bool {
        std::iter::successors(self.block(block).innermost, |id| self.loops[id.0 as usize].parent).any(|id| id == wanted)
    }
}

fn some(node: u32) -> Option<BlockId> {
    (node != NONE).then_some(BlockId(node))
}

fn contains(outer: (u32, u32), inner: (u32, u32)) -> bool {
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// The blocks, and the block of every instruction.
fn split(instructions: u32, jumps: &[Jump]) -> (Vec<Block>, Vec<u32>) {
    let mut leads = vec![false; instructions as usize + 1];
    leads[0] = true;
    for jump in jumps {
        leads[jump.at as usize + 1] = true;
        for &target in &jump.targets {
            leads[target as usize] = true;
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut block_of = Vec::with_capacity(instructions as usize);
    for instruction in 0..instructions {
        if leads[instruction as usize] {
            blocks.push(Block {
                instructions: instruction..instruction,
                dominator: None,
                post_dominator: None,
                innermost: None,
                reachable: false,
                leaves: false,
            });
        }
        let own = blocks.len() - 1;
        blocks[own].instructions.end = instruction + 1;
        block_of.push(own as u32);
    }
    (blocks, block_of)
}

/// The edges between blocks, each once; marks the blocks where the function may end.
fn edges(blocks: &mut [Block], block_of: &[u32], instructions: u32, jumps: &[Jump]) -> Vec<(u32, u32)> {
    let mut edges = Vec::with_capacity(blocks.len() * 2);
    let mut jumps = jumps.iter().peekable();
    for (own, block) in (0..).zip(blocks) {
        let last = block.instructions.end - 1;
        let before = edges.len();
        let mut add = |target: u32, leaves: &mut bool| match block_of.get(target as usize) {
            Some(&to) => edges.push((own, to)),
            None => *leaves = true,
        };
        let mut leaves = false;
        match jumps.next_if(|jump| jump.at == last) {
            Some(jump) => {
                leaves |= jump.leaves;
                if jump.falls_through {
                    add(last + 1, &mut leaves);
                }
                for &target in &jump.targets {
                    add(target, &mut leaves);
                }
            }
            None => add((last + 1).min(instructions), &mut leaves),
        }
        block.leaves = leaves;
        if edges.len() > before + 1 {
            edges[before..].sort_unstable();
            let mut kept = before + 1;
            for index in before + 1..edges.len() {
                if edges[index] != edges[kept - 1] {
                    edges[kept] = edges[index];
                    kept += 1;
                }
            }
            edges.truncate(kept);
        }
    }
    edges
}

/// Intervals of the dominator tree's subtrees: one tree node's holds those of all it dominates.
fn subtrees(dominators: &[u32], order: &[u32]) -> Vec<(u32, u32)> {
    let mut sizes = vec![1_u32; dominators.len()];
    for &node in order.iter().rev() {
        let above = dominators[node as usize];
        if above != NONE {
            sizes[above as usize] += sizes[node as usize];
        }
    }
    // Dominators come before what they dominate in the order: each hands out the numbers after its own.
    let mut next = vec![0_u32; dominators.len()];
    let mut intervals = vec![(1, 0); dominators.len()];
    for &node in order {
        let above = dominators[node as usize];
        let start = if above == NONE { 0 } else { next[above as usize] };
        if above != NONE {
            next[above as usize] += sizes[node as usize];
        }
        intervals[node as usize] = (start, start + sizes[node as usize] - 1);
        next[node as usize] = start + 1;
    }
    intervals
}

/// The immediate post-dominator of every block, [`NONE`] for the end of the function.
fn post_dominators(blocks: &[Block], edges: &[(u32, u32)], graph: &Graph) -> Vec<u32> {
    let end = blocks.len() as u32;
    let mut edges = edges.to_vec();
    edges.extend((0..).zip(blocks).filter(|(_, block)| block.leaves).map(|(own, _)| (own, end)));
    let mut backward = Graph::new(blocks.len() + 1, &edges).reversed();
    let mut ends = vec![false; blocks.len() + 1];
    for node in backward.reverse_postorder(end) {
        ends[node as usize] = true;
    }
    if !ends.iter().all(|&ends| ends) {
        // Loops without end are left, as far as this goes, at the last block of each that nothing leaves.
        for node in last_of_sinks(graph, &ends) {
            edges.push((node, end));
        }
        backward = Graph::new(blocks.len() + 1, &edges).reversed();
    }
    let mut dominators = immediate_dominators(&backward, end);
    dominators.truncate(blocks.len());
    for dominator in &mut dominators {
        if *dominator == end {
            *dominator = NONE;
        }
    }
    dominators
}

/// The last node of every strongly connected component that nothing leaves, among nodes that do not end. Tarjan (1972).
fn last_of_sinks(graph: &Graph, ends: &[bool]) -> Vec<u32> {
    let nodes = graph.nodes();
    let (mut number, mut low) = (vec![NONE; nodes], vec![0; nodes]);
    let mut on_stack = vec![false; nodes];
    // Components are finished innermost first; one that leads to a finished one is no sink.
    let mut leads_out = vec![false; nodes];
    let (mut stack, mut path, mut sinks): (Vec<u32>, Vec<(u32, usize)>, Vec<u32>) = Default::default();
    let mut next_number = 0;
    for root in 0..nodes as u32 {
        if ends[root as usize] || number[root as usize] != NONE {
            continue;
        }
        path.push((root, 0));
        while let Some(&mut (node, ref mut next)) = path.last_mut() {
            if *next == 0 {
                number[node as usize] = next_number;
                low[node as usize] = next_number;
                next_number += 1;
                stack.push(node);
                on_stack[node as usize] = true;
            }
            if let Some(&to) = graph.successors(node).get(*next) {
                *next += 1;
                if number[to as usize] == NONE {
                    path.push((to, 0));
                } else if on_stack[to as usize] {
                    low[node as usize] = low[node as usize].min(number[to as usize]);
                } else {
                    leads_out[node as usize] = true;
                }
                continue;
            }
            path.pop();
            let own_low = low[node as usize];
            let root_of_component = own_low == number[node as usize];
            if root_of_component {
                let begin = stack.iter().rposition(|&member| member == node).unwrap_or(0);
                let members = stack.split_off(begin);
                if !members.iter().any(|&member| leads_out[member as usize]) {
                    sinks.extend(members.iter().max());
                }
                members.iter().for_each(|&member| on_stack[member as usize] = false);
            }
            if let Some(&(above, _)) = path.last() {
                low[above as usize] = low[above as usize].min(own_low);
                leads_out[above as usize] |= root_of_component;
            }
        }
    }
    sinks
}
