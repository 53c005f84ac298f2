//! One case through all stages: run the subject on poisoned outputs, answer by the mirror, compare.

use super::oracle::Oracle;
use super::{explain, relate};
use crate::case::Case;
use crate::error::Result;
use crate::subject::{Call, REFUSED, Subject, SubjectError, UNUSABLE};
use crate::tensor::{Layout, Tensor};
use crate::validate::compare;
use crate::validate::health::Health;
use crate::validate::honesty::{self, Poison};
use crate::validate::invariants;
use crate::validate::relations;
use crate::validate::statistics::Histogram;
use crate::validate::verdict::{Check, Failure, Statistics};
use gpuemu_contract::Schema;
use std::time::{Duration, Instant};

/// What became of one case.
#[derive(Debug)]
pub struct Checked {
    /// The first failed check, in the order of checks.
    pub failure: Option<Failure>,
    /// No case changes the failure: there is nothing to shrink, and no case to keep.
    pub every_case: bool,
    /// Error statistics of each compared output.
    pub outputs: Vec<(String, Statistics, Histogram)>,
    /// Wall-clock time of the subject's first run.
    pub subject_time: Duration,
    /// Whether it ran in another order than the usual one.
    pub reordered: bool,
    /// What the subject says of its first run.
    pub notes: Vec<String>,
}

/// What one run of a subject left behind.
pub(super) struct Run {
    /// The answers in the order of [`gpuemu_contract::Schema::results`]: `inout` inputs, then outputs.
    pub answers: Vec<(String, Option<Tensor>)>,
    /// The inputs as they are now, `inout` ones included.
    pub inputs: Vec<(String, Tensor)>,
    pub time: Duration,
    /// What the subject says of the run.
    pub notes: Vec<String>,
}

/// Elements behind every output that must keep their poison.
const GUARD: usize = 64;

/// Runs a case and judges the answer.
///
/// # Errors
///
/// When the reference cannot answer; everything that the subject does is a [`Failure`].
pub fn check(oracle: &Oracle<'_>, subject: &dyn Subject, case: &Case, health: Option<&mut Health>) -> Result<Checked> {
    let mut checked = Checked {
        failure: None,
        every_case: false,
        outputs: Vec::new(),
        subject_time: Duration::ZERO,
        reordered: false,
        notes: Vec::new(),
    };
    // The subject runs first: it must not find the right answer in memory that the mirror has left behind.
    let run = match execute(&oracle.op().schema, subject, case, Poison::First) {
        Ok(run) => run,
        Err(error) => {
            checked.every_case = matches!(error.kind, REFUSED | UNUSABLE);
            checked.failure = Some(subject_failed(&error));
            return Ok(checked);
        }
    };
    checked.subject_time = run.time;
    checked.notes.clone_from(&run.notes);
    checked.failure = judge(oracle, subject, case, &run, health, &mut checked.outputs)?;
    Ok(checked)
}

fn judge(
    oracle: &Oracle<'_>,
    subject: &dyn Subject,
    case: &Case,
    run: &Run,
    health: Option<&mut Health>,
    outputs: &mut Vec<(String, Statistics, Histogram)>,
) -> Result<Option<Failure>> {
    let op = oracle.op();
    let answer = oracle.answer(case)?;

    let mut answers = Vec::with_capacity(run.answers.len());
    for ((name, got), expected) in run.answers.iter().zip(&answer.expected) {
        let Some(got) = got else {
            let message = format!("{} returned nothing for {name}", subject.describe());
            return Ok(Some(failure(Check::Shape, Some(name), message)));
        };
        answers.push((name, got, expected));
    }
    for (name, got, expected) in &answers {
        if let Some(failure) = compare::check_shape(name, got.shape(), &expected.shape) {
            return Ok(Some(failure));
        }
    }
    for (name, got, expected) in &answers {
        if let Some(failure) = compare::check_dtype(name, got.dtype(), expected.dtype) {
            return Ok(Some(failure));
        }
    }
    if let Some(failure) = unwritten(oracle, subject, case, run)? {
        return Ok(Some(failure));
    }

    let mut worst: Option<(usize, Failure)> = None;
    for (place, (name, got, _)) in answers.iter().enumerate() {
        let comparison = answer.compare(place, got)?;
        outputs.push(((*name).clone(), comparison.statistics.clone(), comparison.histogram.clone()));
        if let Some(failure) = comparison.failure(name)
            && worst.as_ref().is_none_or(|(_, other)| failure.check < other.check)
        {
            worst = Some((place, failure));
        }
    }
    if let Some((place, mut failure)) = worst {
        let (_, got, _) = answers[place];
        explain::explain(oracle, case, &answer, place, got, &mut failure)?;
        return Ok(Some(failure));
    }
    if let Some(health) = health {
        for (place, (name, ..)) in answers.iter().enumerate() {
            answer.observe(place, name, health)?;
        }
    }

    let first_input = case.inputs.first().map(|(_, tensor)| tensor.shape());
    for (name, got, expected) in &answers {
        let unit = op.compute_for(oracle.dtype()).unit_roundoff();
        if let Some(failure) = invariants::check(name, got, expected, first_input, unit, &op.invariants) {
            return Ok(Some(failure));
        }
    }
    if let Some(failure) = relate::check(oracle, subject, case, run, &answer)? {
        return Ok(Some(failure));
    }
    if op.relations.inputs_untouched {
        let inout: Vec<bool> = op.schema.inputs.iter().map(|input| input.inout).collect();
        return Ok(relations::untouched(&case.inputs, &run.inputs, &inout));
    }
    Ok(None)
}

/// Runs the subject once on copies of the case's inputs, with outputs that hold poison.
pub(super) fn execute(
    schema: &Schema,
    subject: &dyn Subject,
    case: &Case,
    poison: Poison,
) -> std::result::Result<Run, SubjectError> {
    let mut inputs = case.inputs.clone();
    let mut outputs: Vec<(String, Option<Tensor>)> = case
        .outputs
        .iter()
        .map(|(name, dtype, shape)| {
            let tensor = shape.as_ref().map(|shape| {
                let layout = Layout::contiguous(shape);
                let capacity = layout.span() + GUARD;
                let mut tensor = Tensor::with_capacity(*dtype, layout, capacity);
                poison.fill(&mut tensor);
                tensor
            });
            (name.clone(), tensor)
        })
        .collect();
    let mut call = Call {
        dtype: case.spec.test.dtype,
        inputs: &mut inputs,
        outputs: &mut outputs,
        dims: &case.spec.dims,
        params: &case.params,
        notes: Vec::new(),
    };
    let started = Instant::now();
    subject.run(&mut call)?;
    let time = started.elapsed();
    let notes = std::mem::take(&mut call.notes);
    let mut answers = Vec::with_capacity(outputs.len());
    for (declared, (name, tensor)) in schema.inputs.iter().zip(&inputs) {
        if declared.inout {
            answers.push((name.clone(), Some(tensor.clone())));
        }
    }
    answers.extend(outputs);
    Ok(Run { answers, inputs, time, notes })
}

pub(super) fn subject_failed(error: &SubjectError) -> Failure {
    let check = match error.kind {
        REFUSED => Check::Launch,
        kind if error.fault => Check::Fault(kind),
        _ => Check::Subject,
    };
    failure(check, None, error.message.clone())
}

/// A failure that is a sentence.
pub(super) fn failure(check: Check, output: Option<&str>, message: String) -> Failure {
    Failure {
        check,
        output: output.map(str::to_owned),
        message,
        first: None,
        statistics: None,
        diagnosis: Vec::new(),
        picture: Vec::new(),
    }
}

/// Elements that nothing wrote: they hold the poison of this run, and of a second one with the other poison.
fn unwritten(oracle: &Oracle<'_>, subject: &dyn Subject, case: &Case, run: &Run) -> Result<Option<Failure>> {
    let inout = run.answers.len() - case.outputs.len();
    for (name, tensor) in &run.answers[inout..] {
        if let Some(tensor) = tensor
            && let Some(position) = Poison::First.gap_written(tensor)
        {
            return Ok(Some(honesty::gap_failure(name, tensor, position)));
        }
    }
    let suspects: Vec<_> = run.answers[inout..]
        .iter()
        .map(|(_, tensor)| tensor.as_ref().and_then(|t| Poison::First.suspects(t)))
        .collect();
    if suspects.iter().all(Option::is_none) {
        return Ok(None);
    }
    let second = match execute(&oracle.op().schema, subject, case, Poison::Second) {
        Ok(second) => second,
        Err(error) => return Ok(Some(subject_failed(&error))),
    };
    for (first, (name, tensor)) in suspects.into_iter().zip(&second.answers[inout..]) {
        let (Some(first), Some(tensor)) = (first, tensor) else { continue };
        if let Some(second) = Poison::Second.suspects(tensor)
            && let Some(marks) = honesty::unwritten(&first, &second)
        {
            let mut failure = honesty::unwritten_failure(name, tensor.shape(), &marks);
            explain::places(oracle, name, tensor.shape(), &marks, &mut failure);
            return Ok(Some(failure));
        }
    }
    Ok(None)
}
