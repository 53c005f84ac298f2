//! Figures of what was built and run, and the accepted ones they are held against.

pub mod snapshot;
