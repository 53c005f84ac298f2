//! The seam between the runner and what it runs: a list of named tests, each of which passes or fails.

use crate::error::Result;
use std::num::NonZeroUsize;

/// A test as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestEntry {
    /// `a::b::c`: stable, with no seed, path or host fact in it.
    pub name: String,
    /// Why it cannot run on this host, where it cannot: it is listed as ignored, and fails when it is run all the same.
    pub cannot_run: Option<String>,
    /// A saved regression: it runs before the tests that are not.
    pub regression: bool,
}

/// What became of one test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The whole report of a failure, as a person reads it; its first line says what is wrong. `None`: the test passed.
    pub failure: Option<String>,
    /// Facts for machines (number of cases, worst error, the replay command), in the order they are shown.
    pub properties: Vec<(String, String)>,
}

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that cannot run on this host.
    pub ignored: usize,
    /// Tests that the command line did not select.
    pub filtered_out: usize,
    /// Every test of the suite is over: none was left out, and the run was not stopped.
    pub complete: bool,
}

/// What a test binary holds.
pub trait Suite: Send + Sync + 'static {
    /// The project's name: the name of the suite in a JUnit report.
    fn name(&self) -> &str;

    /// Every test, sorted by name, each name once.
    fn tests(&self) -> Vec<TestEntry>;

    /// How many tests there are; asked for only to say how many were not selected.
    fn count(&self) -> usize {
        self.tests().len()
    }

    /// The test of that exact name, found without listing the others.
    fn resolve(&self, name: &str) -> Option<TestEntry>;

    /// The name of the test that a spec (the value of `GPUEMU_CASE`) belongs to. An error when it is no spec.
    fn test_of_case(&self, spec: &str) -> Result<String>;

    /// Tests run at once where the command line and `RUST_TEST_THREADS` do not say; by default the cores of the host.
    fn threads(&self) -> Option<NonZeroUsize> {
        None
    }

    /// Runs a test of the list. What it has to say goes into the outcome, never to standard output.
    fn run(&self, name: &str) -> Outcome;

    /// Called once after the last test of a run (under nextest, of a process): writes the reports of the whole run and
    /// returns the lines that a person should read below the summary. An error fails the run.
    fn finish(&self, totals: &Totals) -> Result<Vec<String>> {
        let _ = totals;
        Ok(Vec::new())
    }
}
