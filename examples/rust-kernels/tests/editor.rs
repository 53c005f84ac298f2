//! The same tests as functions that an editor lists and runs one by one. Off by default, for they would run twice.

mod bindings;

gpuemu_harness::tests!();
