//! Scripts that speak the JSON protocol, one process a run: references, and what script subjects are made of.

use super::wire::{self, Dense};
use super::{Mirror, Question, protocol};
use crate::error::{Error, Result};
use crate::process::{self, Ending, Limits};
use crate::python::Python;
use crate::tensor::{Array, Tensor};
use gpuemu_contract::{Compute, DType, ParamValue};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A script and how to run it. `*.py` runs under the Python interpreter, anything else by itself.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file, absolute.
    pub path: PathBuf,
    /// The folder it runs in: that of `gpuemu.toml`.
    pub root: PathBuf,
    /// The interpreter of Python scripts.
    pub python: Python,
    /// Time one run may take.
    pub timeout: Duration,
}

/// A script that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A short stable word: `not found`, `not started`, `exited`, `killed`, `timed out`, `too much output`, `garbage`.
    pub kind: &'static str,
    /// What happened, fit to follow "failed: ".
    pub message: String,
}

impl Failure {
    /// Whether it ran at all.
    pub fn started(&self) -> bool {
        !matches!(self.kind, "not found" | "not started")
    }
}

impl Script {
    /// A script of a project whose `gpuemu.toml` lies in `root`, with the default time-out.
    pub fn new(path: &Path, root: &Path, python: Python) -> Script {
        Script { path: path.to_owned(), root: root.to_owned(), python, timeout: process::TIMEOUT }
    }

    /// Runs it once. The answers come in the order of `outputs`, in whatever shape and dtype the script gave them.
    pub fn ask(
        &self,
        inputs: &[Dense<'_>],
        params: &[(String, ParamValue)],
        outputs: &[&str],
    ) -> std::result::Result<Vec<Tensor>, Failure> {
        if !self.path.is_file() {
            return Err(Failure { kind: "not found", message: format!("there is no {self}") });
        }
        let request = Arc::new(protocol::request(inputs, params));
        // An answer is seldom much larger than its question; what is larger than both is a script gone wild.
        let limits = Limits { timeout: self.timeout, stdout: (64 << 20).max(request.len().saturating_mul(16)) };
        let finished = if self.path.extension().is_some_and(|extension| extension == "py") {
            self.python.start(&self.to_string(), |interpreter| {
                let mut command = Command::new(interpreter);
                process::run(command.arg(&self.path).current_dir(&self.root), Arc::clone(&request), limits)
            })
        } else {
            process::run(Command::new(&self.path).current_dir(&self.root), request, limits).map_err(|error| {
                Error::ReferenceFailed(format!(
                    "{self} could not be started: {error}; it must be executable, or end in .py"
                ))
            })
        };
        let finished = finished.map_err(|error| Failure { kind: "not started", message: error.to_string() })?;
        let stderr = process::quote_stderr(&finished.stderr);
        if finished.ending != Ending::Exited(0) {
            let stderr = if stderr.is_empty() { "; it printed nothing to standard error" } else { &stderr };
            let message = format!("{self} {}{stderr}", finished.ending);
            return Err(Failure { kind: finished.ending.kind(), message });
        }
        protocol::answer(&finished.stdout, outputs)
            .map_err(|error| Failure { kind: "garbage", message: format!("{self} {error}{stderr}") })
    }
}

impl fmt::Display for Script {
    /// As messages name it: relative to the folder of `gpuemu.toml` where it lies below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "script {}", self.path.strip_prefix(&self.root).unwrap_or(&self.path).display())
    }
}

/// A reference script. It is asked about float64 (float inputs sent as float64) and answers at the precision it is
/// given; see [`Dense::of_array`] for working precisions.
#[derive(Debug)]
pub struct ScriptMirror {
    script: Script,
    narrow: AtomicBool,
}

impl ScriptMirror {
    /// A reference that is this script.
    pub fn new(script: Script) -> ScriptMirror {
        ScriptMirror { script, narrow: AtomicBool::new(false) }
    }
}

impl Mirror for ScriptMirror {
    fn answer(&self, question: &Question<'_>) -> Result<Vec<Array>> {
        let inputs: Vec<Dense<'_>> =
            question.inputs.iter().map(|(name, array)| Dense::of_array(name, array, question.precision)).collect();
        let outputs: Vec<&str> = question.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let answers = self.script.ask(&inputs, question.params, &outputs).map_err(|failure| match failure.kind {
            "not found" => Error::NotFound(failure.message),
            _ => Error::ReferenceFailed(failure.message),
        })?;
        note_narrow(question, &answers, &self.narrow);
        let arrays = question.outputs.iter().zip(&answers).map(|((name, dtype), tensor)| {
            wire::answer(name, *dtype, tensor)
                .map_err(|error| Error::ReferenceFailed(format!("{}: {error}", self.script)))
        });
        arrays.collect()
    }

    fn notes(&self) -> Vec<String> {
        narrow_note(&self.script.to_string(), &self.narrow)
    }
}

/// Remembers that a float64 question was answered in a narrower dtype.
pub fn note_narrow(question: &Question<'_>, answers: &[Tensor], narrow: &AtomicBool) {
    let narrower = |dtype: DType| dtype.is_float() && dtype != DType::Float64;
    if question.precision == Compute::Float64 && answers.iter().any(|tensor| narrower(tensor.dtype())) {
        narrow.store(true, Ordering::Relaxed);
    }
}

/// What a person should know about such a reference.
pub fn narrow_note(name: &str, narrow: &AtomicBool) -> Vec<String> {
    if !narrow.load(Ordering::Relaxed) {
        return Vec::new();
    }
    vec![format!(
        "{name} was given float64 and answered a narrower dtype: its own rounding errors count as the kernel's; compute \
         in the dtype of the inputs"
    )]
}
