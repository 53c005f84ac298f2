//! Control flow of a function: basic blocks, who dominates whom, loops, and which values are live where.
//!
//! Everything here knows instructions as numbers only.

mod blocks;
mod dominators;
mod graph;
mod grouped;
mod liveness;
mod loops;

pub use blocks::{Block, BlockId, Flow, Jump};
pub use graph::Graph;
pub(crate) use grouped::Grouped;
pub use liveness::{Accesses, Liveness};
pub use loops::{Loop, LoopId};

#[cfg(test)]
mod tests;
