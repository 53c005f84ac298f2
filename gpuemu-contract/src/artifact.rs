//! Names that a contract may use of compiled kernels: rules of the lint and metrics of a snapshot.
//!
//! They are data of this crate, so that a misspelt one is an error when the file is read; a suite of the workspace holds
//! them equal to what the inspection computes.

/// Rules of the lint, as `[kernels.allow]` names them.
pub const RULES: &[&str] = &["fp64-in-fp32", "index-wraps", "missing-barrier", "narrow-global-access", "spill-in-loop"];

/// Metrics of a snapshot that have a budget, as `[kernels.budget]` names them.
pub const METRICS: &[&str] = &["instructions", "ptxas_registers"];
