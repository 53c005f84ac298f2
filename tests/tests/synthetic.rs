//! The synthetic suite as a test target of its own, for tests that run it through cargo and nextest.

use std::process::ExitCode;

fn main() -> ExitCode {
    gpuemu_tests::synthetic::main()
}
