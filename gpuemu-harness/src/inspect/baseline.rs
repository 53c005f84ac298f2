//! A baseline: the figures of one test, and what a change of each means.

use std::path::{Path, PathBuf};

/// The folder beside `gpuemu.toml` that holds accepted figures.
pub const FOLDER: &str = "gpuemu-snapshots";

/// One figure of a baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name, unique in the baseline, without `=`.
    pub name: String,
    /// Its value, kept to four significant digits.
    pub value: f64,
    /// What a change of it means.
    pub judged: Judged,
    /// Relative change that is accepted silently, where it is not that of the whole baseline.
    pub budget: Option<f64>,
    /// Where a person should look when it changed: `kernels/softmax.cu:12`.
    pub place: Option<String>,
}

impl Metric {
    /// A figure with the budget of its baseline and no place.
    pub fn new(name: impl Into<String>, value: f64, judged: Judged) -> Metric {
        Metric { name: name.into(), value, judged, budget: None, place: None }
    }
}

/// A tool that reports some of the figures, and that another machine may have not or in another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name, which is also that of its fact in [`Baseline::info`]; its figures are called `<name>_...`.
    pub name: &'static str,
    /// Its version, or why it reports nothing here.
    pub version: Result<String, String>,
}

/// What a change of a figure means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judged {
    /// Growth beyond the budget is worse. `resolution` is the relative step in which the figure is measured (0 for an
    /// exact one): it is allowed on top of the budget.
    LowerIsBetter {
        /// Relative step of the measurement.
        resolution: f64,
    },
    /// A fall beyond the budget is worse.
    HigherIsBetter,
    /// Neither way is better: it has to be looked at. Where the figure has no budget of its own, any change counts.
    Neither {
        /// What to look at where it fell.
        fell: &'static str,
    },
    /// Shown beside the others, never a reason to fail: how many cases were measured.
    Shown,
}

/// The figures of one test.
#[derive(Clone, Debug)]
pub struct Baseline<'a> {
    /// The folder of `gpuemu.toml`.
    pub root: &'a Path,
    /// The accepted file relative to it, ending in `.snap`.
    pub file: PathBuf,
    /// What the figures are, in one line.
    pub description: String,
    /// Facts that a reviewer needs beside the figures: dtype, target, profile.
    pub info: Vec<(&'static str, String)>,
    /// The figures, in the order they are shown.
    pub metrics: Vec<Metric>,
    /// Tools whose figures are compared only where they are there, and judged only by the version that was accepted.
    pub tools: Vec<Tool>,
    /// What names of figures begin with that are parts of a whole: shown, and 0 where they are not written.
    pub parts: &'static [&'static str],
}
