//! `--logfile`: one line a test in a file, beside whatever else is written.

use super::events::{Event, Reporter, TestResult};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Writes to a file and tells another reporter.
pub struct Logfile {
    file: File,
    inner: Box<dyn Reporter>,
}

impl Logfile {
    /// Creates the file, or empties it.
    pub fn create(path: &Path, inner: Box<dyn Reporter>) -> Result<Logfile, String> {
        let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Logfile { file, inner })
    }
}

impl Reporter for Logfile {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::TestFinished(test) = event {
            match &test.result {
                _ if test.failure().is_some() => writeln!(self.file, "failed {}", test.name)?,
                TestResult::Run(_) => writeln!(self.file, "ok {}", test.name)?,
                TestResult::Ignored(None) => writeln!(self.file, "ignored {}", test.name)?,
                TestResult::Ignored(Some(reason)) => writeln!(self.file, "ignored: {reason} {}", test.name)?,
            }
        }
        self.inner.report(event)
    }
}
