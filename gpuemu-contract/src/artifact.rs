//! Names that a contract may use of compiled kernels: rules of the lint and metrics of a snapshot.
//!
//! They are data of this crate, so that a misspelt one is an error when the file is read; a suite of the workspace holds
//! them equal to what the inspection computes.

/// Rules of the lint, as `[kernels.allow]` names them.
pub const RULES: &[&str] = &[
    "divergent-barrier",
    "float-atomic-order",
    "fp64-in-fp32",
    "index-wraps",
    "missing-barrier-between-shared-write-and-read",
    "narrow-global-access",
    "shuffle-under-divergence",
    "spill-in-loop",
    "uninitialised-register",
    "unused-parameter",
];

/// Metrics of a snapshot that have a budget, as `[kernels.budget]` names them.
pub const METRICS: &[&str] = &[
    "barriers",
    "branches",
    "divergent_branches",
    "double_instructions",
    "global_atomics",
    "instructions",
    "launch_atomics",
    "launch_bank_conflicts",
    "launch_barriers",
    "launch_divergent_branches",
    "launch_instructions",
    "launch_lanes",
    "launch_load_sectors",
    "launch_store_sectors",
    "live_registers",
    "load_bytes",
    "local_accesses",
    "local_bytes",
    "ptxas_occupancy",
    "ptxas_registers",
    "ptxas_shared",
    "ptxas_spill_loads",
    "ptxas_spill_stores",
    "ptxas_stack",
    "sass_instructions",
    "shared_atomics",
    "shared_bytes",
    "store_bytes",
    "weighted_instructions",
    "wrapping_products",
];
