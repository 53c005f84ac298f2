//! What memory remembers while sanitizers are on: which bytes were written, and who accessed what when.
//!
//! [`Grid`] is one launch's; every block that runs has a [`Block`], which is told of each access *before* it is done and
//! of everything that orders threads. Its answers are [`Finding`]s. Memory accesses work without any of this.
//!
//! **Order.** An access happens before another of the same block where barriers, warp-level synchronisation, releases
//! and acquires lead from one to the other: every warp has a clock that such events advance, and knows how far it has
//! seen the others' clocks (vector clocks; Mattern 1989, FastTrack, Flanagan and Freund 2009). Blocks are unordered but
//! for releases and acquires at device scope: a release (or a fence, then a strong write) of an address and an acquiring
//! read of it, through any number of other blocks. Two strong accesses of scopes that include both threads never race
//! (PTX ISA, memory consistency model, "morally strong"). Where the model leaves a choice, the detector is silent: a
//! strong read acquires unless it is relaxed by name, a fence counts for the whole warp and what barriers made the warp see, and an acquire counts
//! for the whole block. Writes of one value to one place are no race, nor are copies of one floating-point value, stored
//! by one instruction, that differ in their last bits: compilers store what several threads hold alike.
//!
//! **Memory.** A bit for every byte that was written, and for every 4 bytes of what kernels write two stamps of 4 bytes,
//! of the last write and the last read: 1.13 times the tensor where it is only written or only read, else 2.13 times.
//! Lanes side by side that access less than 4 bytes each share a stamp; pages (4 KiB of tensor) on which they do not lie
//! side by side are kept by 2 bytes or by 1. Inputs have no cells, and pages that nobody touches cost nothing.

pub mod bits;
pub mod block;
pub mod cells;
pub mod clocks;
pub mod grid;
pub mod instructions;
pub mod log;
mod order;
mod quick;
#[cfg(test)]
mod tests;

pub use block::{Block, Finding, Race, Seen};
pub use grid::Grid;
pub use instructions::{Instruction, Meeting};

/// The threads that see a memory operation in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Those of the block (`.cta`).
    Block,
    /// Those of other blocks as well (`.cluster`, `.gpu`, `.sys`).
    Device,
}

/// Memory order of an access. Volatile accesses are relaxed at device scope, as are atomics that name no order: much code
/// hands data over with those and a barrier, which is right on hardware for what no cache has held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// An ordinary access: orders nothing, and races with any other that nothing orders.
    Weak,
    /// An ordinary read that takes memory to be constant: what the launch writes, it may or may not see.
    Constant,
    /// Strong: does not race with strong accesses. A read that sees a release is ordered after it.
    Relaxed(Scope),
    /// Strong, and relaxed by name: a read that sees a release is ordered after it once a fence follows.
    Unordered(Scope),
    /// Strong, and a read that sees a release is ordered after it.
    Acquire(Scope),
    /// Strong, and what came before it is ordered before who sees it.
    Release(Scope),
    /// Both.
    AcquireRelease(Scope),
}

impl Order {
    /// The scope of a strong access.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Weak | Self::Constant => None,
            Self::Relaxed(scope) | Self::Unordered(scope) => Some(scope),
            Self::Acquire(scope) | Self::Release(scope) | Self::AcquireRelease(scope) => Some(scope),
        }
    }

    /// Whether a read of this order is ordered after the release that it sees, without a fence behind it.
    pub fn acquires(self) -> bool {
        matches!(self, Self::Relaxed(_) | Self::Acquire(_) | Self::AcquireRelease(_))
    }

    /// Whether a write of this order releases by itself, without a fence before it.
    pub fn releases(self) -> bool {
        matches!(self, Self::Release(_) | Self::AcquireRelease(_))
    }
}
