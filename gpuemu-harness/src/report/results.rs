//! Machine-readable results: one file a test under `target/gpuemu/results/<project>/`, one JSON line a case.

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
    /// What the subject says of its run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
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

/// The folder that results of a project go to: `gpuemu/results/<project>` in the target folder that holds the running
/// binary, or in `target` below `root` when the binary lies elsewhere. Packages that share a target folder are told apart
/// by `project`; one that has no name goes by its folder's.
pub fn folder(root: &Path, project: &str) -> PathBuf {
    folder_in(&target_folder(root), root, project)
}

/// The folder that results of a project go to, in the folder `base` of a front.
pub fn folder_in(base: &Path, root: &Path, project: &str) -> PathBuf {
    let project = match (project, root.file_name()) {
        (UNNAMED, Some(folder)) => folder_name(&folder.to_string_lossy()),
        (project, _) => folder_name(project),
    };
    base.join("results").join(project)
}

/// `gpuemu` in the target folder that holds the running binary, or in `target` below `root`.
pub fn target_folder(root: &Path) -> PathBuf {
    let target = std::env::current_exe()
        .ok()
        .and_then(|binary| binary.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_owned));
    target.unwrap_or_else(|| root.join("target")).join("gpuemu")
}

/// What the contract calls a project whose file does not name it.
const UNNAMED: &str = "unnamed";

/// A project's name as the name of one folder: whatever may mean more than itself in a path becomes `_`.
fn folder_name(project: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let name: String = project.chars().take(100).map(|c| if plain(c) { c } else { '_' }).collect();
    // A name of dots is another folder, and trailing dots and spaces are lost on Windows.
    match name.trim_end_matches(['.', ' ']) {
        "" => "_".to_owned(),
        name => name.trim_start_matches(' ').to_owned(),
    }
}

/// Where the findings of all tests are gathered, as SARIF, when results go to `folder`.
pub fn lint_log(folder: &Path) -> PathBuf {
    folder.ancestors().nth(2).unwrap_or(folder).join("lint.sarif")
}

/// Replaces the results of one test. The file appears whole or not at all.
pub fn write(folder: &Path, test: &str, lines: &[impl Serialize]) -> Result<PathBuf> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line).map_err(|error| Error::Internal(error.to_string()))?;
        text.push(b'\n');
    }
    let path = folder.join(format!("{}.jsonl", test.replace("::", ".")));
    write_atomically(&path, &text)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_one_folder_whatever_it_is_called() {
        let table = [
            ("my-kernels", "my-kernels"),
            ("flash attention 2.0", "flash attention 2.0"),
            ("../../etc", ".._.._etc"),
            ("a/b\\c:d", "a_b_c_d"),
            ("..", "_"),
            ("", "_"),
            (" x. ", "x"),
            ("k\u{e4}rn", "k\u{e4}rn"),
            ("nul\0l", "nul_l"),
        ];
        for (project, name) in table {
            assert_eq!(folder_name(project), name, "{project:?}");
            assert!(folder(Path::new("/somewhere/kernels"), project).ends_with(Path::new("gpuemu/results").join(name)));
        }
        assert!(folder(Path::new("/somewhere/kernels"), "unnamed").ends_with("gpuemu/results/kernels"));
    }
}
