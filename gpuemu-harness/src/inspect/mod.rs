//! What the compiled artifact of a kernel costs, and the accepted figures that those of this run are held against.

pub mod accepted;
pub mod artifact;
pub mod baseline;
pub mod committed;
pub mod comparison;
pub mod compile;
pub mod figures;
pub mod finding;
pub mod lint;
pub mod policy;
pub mod sarif;
pub mod snapshot;
