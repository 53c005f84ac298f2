//! `cargo test`: every op of `gpuemu.toml`.

mod bindings;

gpuemu_harness::main!();
