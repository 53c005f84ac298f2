//! Immediate dominators, after Lengauer and Tarjan (1979), the variant with simple path compression: O(m log n).

use super::graph::Graph;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// The immediate dominator of every node that `root` reaches: [`NONE`] for the root itself and for all others.
pub(super) fn immediate_dominators(graph: &Graph, root: u32) -> Vec<u32> {
    let nodes = graph.nodes();
    let mut dominators = vec![NONE; nodes];
    if nodes == 0 {
        return dominators;
    }
    // Nodes are renamed by their order in a depth-first search; 0 is the root.
    let mut number = vec![NONE; nodes];
    let mut nodes_by_number = Vec::new();
    let mut parent = Vec::new();
    let mut stack = vec![(root, NONE)];
    while let Some((node, from)) = stack.pop() {
        if number[node as usize] != NONE {
            continue;
        }
        let own = nodes_by_number.len() as u32;
        number[node as usize] = own;
        nodes_by_number.push(node);
        parent.push(from);
        stack.extend(graph.successors(node).iter().rev().map(|&to| (to, own)));
    }
    let count = nodes_by_number.len();
    let mut semi: Vec<u32> = (0..count as u32).collect();
    let mut forest = Forest { ancestor: vec![NONE; count], label: semi.clone(), path: Vec::new() };
    let mut immediate = vec![0_u32; count];
    // The nodes whose semidominator this is, as linked lists.
    let (mut bucket, mut next) = (vec![NONE; count], vec![NONE; count]);
    for own in (1..count as u32).rev() {
        for &from in graph.predecessors(nodes_by_number[own as usize]) {
            let from = number[from as usize];
            if from != NONE {
                let best = forest.evaluate(from, &semi);
                semi[own as usize] = semi[own as usize].min(semi[best as usize]);
            }
        }
        next[own as usize] = std::mem::replace(&mut bucket[semi[own as usize] as usize], own);
        let above = parent[own as usize];
        forest.ancestor[own as usize] = above;
        let mut member = std::mem::replace(&mut bucket[above as usize], NONE);
        while member != NONE {
            let best = forest.evaluate(member, &semi);
            immediate[member as usize] = if semi[best as usize] < semi[member as usize] { best } else { above };
            member = next[member as usize];
        }
    }
    for own in 1..count {
        if immediate[own] != semi[own] {
            immediate[own] = immediate[immediate[own] as usize];
        }
        dominators[nodes_by_number[own] as usize] = nodes_by_number[immediate[own] as usize];
    }
    dominators
}

/// The forest of nodes already visited, with paths compressed as they are walked.
struct Forest {
    ancestor: Vec<u32>,
    /// The node with the least semidominator between a node and the root of its tree.
    label: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    fn evaluate(&mut self, node: u32, semi: &[u32]) -> u32 {
        if self.ancestor[node as usize] == NONE {
            return node;
        }
        let mut walk = node;
        while self.ancestor[self.ancestor[walk as usize] as usize] != NONE {
            self.path.push(walk);
            walk = self.ancestor[walk as usize];
        }
        while let Some(below) = self.path.pop() {
            let above = self.ancestor[below as usize] as usize;
            if semi[self.label[above] as usize] < semi[self.label[below as usize] as usize] {
                self.label[below as usize] = self.label[above];
            }
            self.ancestor[below as usize] = self.ancestor[above];
        }
        self.label[node as usize]
    }
}
