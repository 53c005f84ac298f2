//! A directed graph of nodes 0 to n-1, its edges in both directions.

use super::grouped::Grouped;

/// A directed graph, its edges grouped by either end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    successors: Grouped,
    predecessors: Grouped,
}

impl Graph {
    /// A graph of `nodes` nodes and these edges, each from the first to the second.
    pub fn new(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let reversed: Vec<_> = edges.iter().map(|&(from, to)| (to, from)).collect();
        Self { successors: Grouped::new(nodes, edges), predecessors: Grouped::new(nodes, &reversed) }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.successors.groups()
    }

    /// Where the edges of a node lead, in the order given.
    pub fn successors(&self, node: u32) -> &[u32] {
        self.successors.of(node)
    }

    /// Where the edges to a node come from.
    pub fn predecessors(&self, node: u32) -> &[u32] {
        self.predecessors.of(node)
    }

    /// The same nodes with every edge turned round.
    pub fn reversed(self) -> Self {
        Self { successors: self.predecessors, predecessors: self.successors }
    }

    /// The nodes that `root` reaches, each before the nodes it reaches that do not reach it.
    pub fn reverse_postorder(&self, root: u32) -> Vec<u32> {
        let mut seen = vec![false; self.nodes()];
        let mut order = Vec::new();
        let mut path = Vec::new();
        if self.nodes() > 0 {
            seen[root as usize] = true;
            path.push((root, 0));
        }
        while let Some((node, next)) = path.last_mut() {
            match self.successors(*node).get(*next) {
                Some(&to) => {
                    *next += 1;
                    if !std::mem::replace(&mut seen[to as usize], true) {
                        path.push((to, 0));
                    }
                }
                None => {
                    order.push(*node);
                    path.pop();
                }
            }
        }
        order.reverse();
        order
    }
}
