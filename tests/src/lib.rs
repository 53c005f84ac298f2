//! What the workspace-level suites share.

pub mod programs;
pub mod projects;
pub mod ptx;
pub mod sessions;
pub mod synthetic;
