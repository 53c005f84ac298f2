//! A suite whose every answer is known beforehand, for tests of the runner alone.
//!
//! `SYNTHETIC` chooses what it holds beside tests that pass: words of `failing`, `many`, `panicking`, `printing`,
//! `regression`, `slow`, `empty`, `twice` and `unfinished`, separated by spaces.

use gpuemu_harness::environment::Environment;
use gpuemu_harness::runner::{main_with, refuse};
use gpuemu_harness::suite::{Outcome, Suite, TestEntry, Totals};
use gpuemu_harness::{Error, Result};
use std::process::ExitCode;

/// Names of the tests that pass.
pub const PASSING: [&str; 4] = [
    "gelu::float32::boundary",
    "softmax::float16::boundary",
    "softmax::float32::adversarial",
    "softmax::float32::boundary",
];

/// The test that cannot run, and why.
pub const IGNORED: (&str, &str) = ("tanh::float32::boundary", "no ptxas on this host");

/// The test that fails in the `failing` suite.
pub const FAILING: &str = "softmax::float32::edge";

/// The test of the `slow` suite that takes a second and a half.
pub const SLOW: &str = "attention::float32::boundary";

/// How many tests that pass the `many` suite has beside: `many::float32::case_000` and so on.
pub const MANY: usize = 200;

/// What its report says: everything that a document or a line of JSON has to escape.
pub const REPORT: &str = "softmax::float32::edge failed: \"out\"[0] is 1 < 2 & 3\n\tat C:\\tile\u{b7} ]]> \u{1}end";

/// What there is to say about the first test that passes.
pub const PROPERTY: (&str, &str) = ("cases", "30");

/// The suite.
pub struct Synthetic {
    holds: Vec<String>,
}

impl Synthetic {
    /// The suite that `SYNTHETIC` asks for.
    pub fn from_environment() -> Synthetic {
        Synthetic::holding(&std::env::var("SYNTHETIC").unwrap_or_default())
    }

    /// The suite that holds what these words say.
    pub fn holding(words: &str) -> Synthetic {
        Synthetic { holds: words.split_whitespace().map(str::to_owned).collect() }
    }

    fn holds(&self, word: &str) -> bool {
        self.holds.iter().any(|held| held == word)
    }
}

impl Suite for Synthetic {
    fn name(&self) -> &str {
        "synthetic kernels"
    }

    fn tests(&self) -> Vec<TestEntry> {
        if self.holds("empty") {
            return Vec::new();
        }
        let entry = |name: &str| TestEntry { name: name.to_owned(), cannot_run: None, regression: false };
        let mut tests: Vec<TestEntry> = PASSING.iter().map(|name| entry(name)).collect();
        tests.push(TestEntry { cannot_run: Some(IGNORED.1.to_owned()), ..entry(IGNORED.0) });
        for (word, name) in [
            ("failing", FAILING),
            ("panicking", "swish::float32::boundary"),
            ("printing", "noisy::float32::boundary"),
            ("slow", SLOW),
            ("twice", PASSING[0]),
        ] {
            if self.holds(word) {
                tests.push(entry(name));
            }
        }
        if self.holds("many") {
            tests.extend((0..MANY).map(|index| entry(&format!("many::float32::case_{index:03}"))));
        }
        if self.holds("regression") {
            tests.push(TestEntry { regression: true, ..entry("softmax::regressions::r9f3c5a") });
        }
        tests.sort_by(|a, b| a.name.cmp(&b.name));
        tests
    }

    fn resolve(&self, name: &str) -> Option<TestEntry> {
        self.tests().into_iter().find(|test| test.name == name)
    }

    fn test_of_case(&self, spec: &str) -> Result<String> {
        match spec.split_once('{') {
            Some((name, _)) => Ok(name.to_owned()),
            None => Err(Error::InvalidRequest(format!("`{spec}` is no spec"))),
        }
    }

    fn run(&self, name: &str) -> Outcome {
        match name {
            FAILING => Outcome { failure: Some(REPORT.to_owned()), properties: vec![("replay".into(), "x".into())] },
            SLOW => {
                std::thread::sleep(std::time::Duration::from_millis(1500));
                Outcome::default()
            }
            "swish::float32::boundary" => panic!("index out of bounds"),
            "noisy::float32::boundary" => {
                print!("{{ \"type\": \"noise");
                Outcome::default()
            }
            _ if name == PASSING[0] => {
                Outcome { failure: None, properties: vec![(PROPERTY.0.into(), PROPERTY.1.into())] }
            }
            _ => Outcome::default(),
        }
    }

    fn finish(&self, totals: &Totals) -> Result<Vec<String>> {
        if self.holds("unfinished") {
            return Err(Error::File("cannot write results: disk full".into()));
        }
        let unused = self.holds("regression") && totals.complete;
        Ok(unused.then(|| "1 regression was not used".to_owned()).into_iter().collect())
    }
}

/// The main of a test binary that holds this suite.
pub fn main() -> ExitCode {
    match Environment::read() {
        Ok(environment) => main_with(Synthetic::from_environment(), std::env::args_os(), &environment),
        Err(error) => refuse(&error),
    }
}
