//! What the compiled artifact of a kernel costs, and the accepted figures that those of this run are held against.

pub mod committed;
pub mod compile;
pub mod finding;
pub mod policy;
pub mod sarif;
pub mod snapshot;
