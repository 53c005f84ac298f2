//! The JUnit report of a run, for continuous-integration systems.

use crate::error::{Error, Result};
use crate::files::write_atomically;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One test of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Case<'a> {
    /// Its whole name.
    pub name: &'a str,
    /// How long it took.
    pub time: Duration,
    /// How it ended.
    pub status: Status<'a>,
    /// Facts about it, as properties.
    pub properties: &'a [(String, String)],
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status<'a> {
    /// It passed.
    Passed,
    /// It failed, with this report.
    Failed(&'a str),
    /// It was not run, for this reason if one is known.
    Ignored(Option<&'a str>),
}

/// The document, in the conventions of nextest's: a suite a binary, `classname` the suite, `name` the test's whole name.
pub fn document(suite: &str, time: Duration, cases: &[Case<'_>]) -> Result<String> {
    let mut test_suite = TestSuite::new(suite);
    test_suite.set_time(time);
    for case in cases {
        let status = match case.status {
            Status::Passed => TestCaseStatus::success(),
            Status::Failed(report) => {
                // quick-junit drops tabs together with escape sequences and control characters.
                let report = report.replace('\t', "    ");
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type("gpuemu failure");
                status.set_message(report.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim());
                status.set_description(report.trim_end());
                status
            }
            Status::Ignored(reason) => {
                let mut status = TestCaseStatus::skipped();
                if let Some(reason) = reason {
                    status.set_message(reason);
                }
                status
            }
        };
        let mut test_case = TestCase::new(case.name, status);
        test_case.set_classname(suite).set_time(case.time);
        for (name, value) in case.properties {
            test_case.add_property((name.as_str(), value.as_str()));
        }
        test_suite.add_test_case(test_case);
    }
    let mut report = Report::new(suite);
    report.set_time(time).add_test_suite(test_suite);
    report.to_string().map_err(|error| Error::Internal(format!("cannot write a JUnit report: {error}")))
}

/// The file that a report goes to: `path` itself, or a file in it, named after the suite, where `path` is a folder that
/// several binaries share (it exists, or its name ends in a slash).
pub fn file(path: &Path, suite: &str) -> PathBuf {
    let folder = path.is_dir() || path.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
    if !folder {
        return path.to_owned();
    }
    let name: String = suite.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    path.join(format!("{name}.xml"))
}

/// Writes the report. The file appears whole or not at all.
pub fn write(path: &Path, suite: &str, time: Duration, cases: &[Case<'_>]) -> Result<()> {
    write_atomically(&file(path, suite), document(suite, time, cases)?.as_bytes())
}
