//! Every op of `gpuemu.toml`, each bound to a faulty kernel: every test here fails.

gpuemu_harness::main!();
