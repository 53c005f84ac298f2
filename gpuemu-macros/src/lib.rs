//! `#[op]`, `tests!` and `main!` of gpuemu-harness.
