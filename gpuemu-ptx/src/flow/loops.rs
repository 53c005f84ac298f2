//! Natural loops and how they nest.

use super::dominators::NONE;
use super::graph::Graph;

/// Number of a [`Loop`] in [`super::Flow::loops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(pub u32);

/// A natural loop: a block that dominates the source of an edge back to it, and every block from which that source is
/// reached without passing it. Loops with one header are one loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The block where it is entered.
    pub header: u32,
    /// The smallest loop around it.
    pub parent: Option<LoopId>,
    /// 1 for an outermost loop.
    pub depth: u32,
}

/// The loops of a graph, inner before outer, and the innermost loop of every node ([`NONE`] for none).
///
/// `order` is a reverse postorder of the nodes reached, and `dominates` answers for reached nodes.
pub(super) fn natural_loops(
    graph: &Graph,
    order: &[u32],
    reached: &[bool],
    dominates: impl Fn(u32, u32) -> bool,
) -> (Vec<Loop>, Vec<u32>) {
    let mut loops: Vec<Loop> = Vec::new();
    let mut innermost = vec![NONE; graph.nodes()];
    // For every loop, one around it that is known: following it leads to the outermost.
    let mut around: Vec<u32> = Vec::new();
    let mut pending = Vec::new();
    for &header in order.iter().rev() {
        let latch = |&from: &u32| reached[from as usize] && dominates(header, from);
        pending.extend(graph.predecessors(header).iter().copied().filter(latch));
        if pending.is_empty() {
            continue;
        }
        let own = loops.len() as u32;
        loops.push(Loop { header, parent: None, depth: 0 });
        around.push(own);
        while let Some(node) = pending.pop() {
            let inner = innermost[node as usize];
            let entered = if inner == NONE {
                innermost[node as usize] = own;
                node
            } else {
                let outer = outermost(&mut around, inner);
                if outer == own {
                    continue;
                }
                around[outer as usize] = own;
                loops[outer as usize].parent = Some(LoopId(own));
                loops[outer as usize].header
            };
            if entered != header {
                pending.extend(graph.predecessors(entered).iter().copied().filter(|&from| reached[from as usize]));
            }
        }
        // A header whose loop is not its own latch is in the loop all the same.
        if innermost[header as usize] == NONE {
            innermost[header as usize] = own;
        }
    }
    for index in (0..loops.len()).rev() {
        loops[index].depth = loops[index].parent.map_or(1, |parent| loops[parent.0 as usize].depth + 1);
    }
    (loops, innermost)
}

fn outermost(around: &mut [u32], mut inner: u32) -> u32 {
    while around[inner as usize] != inner {
        // Halving the path keeps later walks short.
        around[inner as usize] = around[around[inner as usize] as usize];
        inner = around[inner as usize];
    }
    inner
}
