//! Running programs and keeping what they leave behind.

use std::ffi::OsStr;
use std::process::Command;

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code, `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

/// A program that sees none of the variables by which the caller's own test run is steered.
pub fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let steers = ["GPUEMU_", "RUST_TEST_", "NEXTEST", "INSTA_"].iter().any(|prefix| text.starts_with(prefix));
        if steers || text == "CI" {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs it to its end.
pub fn ran(command: &mut Command) -> Ran {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}
