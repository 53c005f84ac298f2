//! The suite of whatever contract `GPUEMU_CONFIG` names, with no function bound to it: what a test binary costs before it
//! runs anything.

use gpuemu_harness::Origin;
use std::process::ExitCode;

fn main() -> ExitCode {
    gpuemu_harness::expansion::run_main(Origin {
        package: env!("CARGO_MANIFEST_DIR"),
        contract: "GPUEMU_CONFIG is not set",
    })
}
