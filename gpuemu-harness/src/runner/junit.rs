//! `--format junit`, and the file that `GPUEMU_JUNIT` names: both hold the document of `report/junit.rs`.

use super::events::{Event, Finished, Reporter, Summary, TestResult};
use crate::report::junit::{Case, Status, document};
use std::io::{self, Write};

/// Writes one document when the run is over.
pub struct Junit<W> {
    out: W,
    suite: String,
}

impl<W: Write + Send> Junit<W> {
    /// Writes to `out`.
    pub fn new(out: W, suite: &str) -> Junit<W> {
        Junit { out, suite: suite.to_owned() }
    }
}

impl<W: Write + Send> Reporter for Junit<W> {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::Ended(summary) = event {
            let text = document(&self.suite, summary.time, &cases(summary)).map_err(io::Error::other)?;
            writeln!(self.out, "{}", text.trim_end())?;
            self.out.flush()?;
        }
        Ok(())
    }
}

/// The tests of a run as the report wants them, sorted by name.
pub fn cases(summary: &Summary) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = summary.finished.iter().map(case).collect();
    cases.sort_by_key(|case| case.name);
    cases
}

fn case(test: &Finished) -> Case<'_> {
    let (status, properties) = match &test.result {
        TestResult::Ignored(reason) => (Status::Ignored(reason.as_deref()), &[][..]),
        TestResult::Run(outcome) => {
            let status = outcome.failure.as_deref().map_or(Status::Passed, Status::Failed);
            (status, &outcome.properties[..])
        }
    };
    Case { name: &test.name, time: test.time, status, properties }
}
