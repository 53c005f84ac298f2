//! Machine-readable results: one file a test under `target/gpuemu/results/`, one JSON line a case.

use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::validate::verdict::{Check, Statistics};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One line of a results file.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The spec that regenerates the case.
    pub spec: String,
    /// `pass`, or the name of the check that failed.
    pub verdict: &'static str,
    /// Error statistics of each output.
    pub outputs: Vec<OutputLine>,
    /// Wall-clock time of the subject, in microseconds.
    pub subject_microseconds: u64,
}

/// Error statistics of one output, see [`Statistics`] for their meaning.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct OutputLine {
    pub name: String,
    pub count: u64,
    pub exceeding: u64,
    pub max_abs: Option<f64>,
    pub mean_abs: Option<f64>,
    pub p50_abs: Option<f64>,
    pub p90_abs: Option<f64>,
    pub p99_abs: Option<f64>,
    pub max_rel: Option<f64>,
    pub mean_rel: Option<f64>,
    pub max_ulp: Option<f64>,
    pub mean_ulp: Option<f64>,
    pub worst_of_bound: Option<f64>,
}

impl OutputLine {
    /// The statistics of one output; non-finite figures, which JSON cannot say, become null.
    pub fn new(name: &str, statistics: &Statistics) -> OutputLine {
        let finite = |value: f64| value.is_finite().then_some(value);
        OutputLine {
            name: name.to_owned(),
            count: statistics.count,
            exceeding: statistics.exceeding,
            max_abs: finite(statistics.max_abs),
            mean_abs: finite(statistics.mean_abs),
            p50_abs: finite(statistics.p50_abs),
            p90_abs: finite(statistics.p90_abs),
            p99_abs: finite(statistics.p99_abs),
            max_rel: finite(statistics.max_rel),
            mean_rel: finite(statistics.mean_rel),
            max_ulp: finite(statistics.max_ulp),
            mean_ulp: finite(statistics.mean_ulp),
            worst_of_bound: finite(statistics.worst_of_bound),
        }
    }
}

/// What `verdict` says in a line.
pub fn verdict_word(check: Option<Check>) -> &'static str {
    check.map_or("pass", Check::name)
}

/// The folder that results go to: `gpuemu` in the target folder that holds the running binary, or `target/gpuemu` below
/// `root` when the binary lies elsewhere.
pub fn folder(root: &Path) -> PathBuf {
    let target = std::env::current_exe()
        .ok()
        .and_then(|binary| binary.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_owned));
    target.unwrap_or_else(|| root.join("target")).join("gpuemu")
}

/// Replaces the results of one test. The file appears whole or not at all.
pub fn write(folder: &Path, test: &str, lines: &[Line]) -> Result<PathBuf> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).map_err(|error| Error::Internal(error.to_string()))?;
        text.push(b'\n');
    }
    let path = folder.join("results").join(format!("{}.jsonl", test.replace("::", ".")));
    write_atomically(&path, &text)?;
    Ok(path)
}
