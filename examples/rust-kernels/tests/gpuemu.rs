//! `cargo test`: every op of `gpuemu.toml`, through one runner that also writes the reports.

mod bindings;

gpuemu_harness::main!();
