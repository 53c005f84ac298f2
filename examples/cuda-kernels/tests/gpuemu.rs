//! Runs every test of `gpuemu.toml`.

gpuemu_harness::main!();
