//! A test binary of ten thousand tests that do nothing, to measure what the runner itself costs:
//! `ten_thousand --list --format terse` and `ten_thousand --exact op_4321::float32::layout`.

use gpuemu_harness::environment::Environment;
use gpuemu_harness::runner::main_with;
use gpuemu_harness::suite::{Outcome, Suite, TestEntry};
use std::process::ExitCode;

const OPS: usize = 10_000 / STRATEGIES.len();
const STRATEGIES: [&str; 5] = ["adversarial", "boundary", "default", "edge", "layout"];

struct TenThousand;

fn entry(name: String) -> TestEntry {
    TestEntry { name, cannot_run: None, regression: false }
}

impl Suite for TenThousand {
    fn name(&self) -> &str {
        "ten-thousand"
    }

    fn tests(&self) -> Vec<TestEntry> {
        let names = (0..OPS).flat_map(|op| STRATEGIES.map(|strategy| format!("op_{op:04}::float32::{strategy}")));
        names.map(entry).collect()
    }

    fn resolve(&self, name: &str) -> Option<TestEntry> {
        let (op, strategy) = name.strip_prefix("op_")?.split_once("::float32::")?;
        let known = op.len() == 4 && op.parse::<usize>().is_ok_and(|op| op < OPS) && STRATEGIES.contains(&strategy);
        known.then(|| entry(name.to_owned()))
    }

    fn test_of_case(&self, spec: &str) -> gpuemu_harness::Result<String> {
        Ok(spec.split('{').next().unwrap_or_default().to_owned())
    }

    fn run(&self, _name: &str) -> Outcome {
        Outcome::default()
    }
}

fn main() -> ExitCode {
    match Environment::read() {
        Ok(environment) => main_with(TenThousand, std::env::args_os(), &environment),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(101)
        }
    }
}
