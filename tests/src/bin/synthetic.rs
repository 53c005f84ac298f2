//! The synthetic suite as a program, for tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpuemu_tests::synthetic::main()
}
