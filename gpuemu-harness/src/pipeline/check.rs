//! One case through all stages: run the subject on poisoned outputs, answer by the mirror, compare.

use super::oracle::Oracle;
use super::relate;
use crate::case::Case;
use crate::error::Result;
use crate::subject::{Call, Subject, SubjectError};
use crate::tensor::{Array, Layout, Tensor};
use crate::validate::compare::{self, Bound, Comparison};
use crate::validate::diagnosis::{self, Scene};
use crate::validate::health::Health;
use crate::validate::honesty::{self, Pattern};
use crate::validate::invariants;
use crate::validate::statistics::Histogram;
use crate::validate::verdict::{Check, Failure, Statistics};
use std::time::{Duration, Instant};

/// What became of one case.
#[derive(Debug)]
pub struct Checked {
    /// The first failed check, in the order of checks.
    pub failure: Option<Failure>,
    /// Error statistics of each compared output.
    pub outputs: Vec<(String, Statistics, Histogram)>,
    /// Wall-clock time of the subject's first run.
    pub subject_time: Duration,
}

/// What one run of a subject left behind.
pub(super) struct Run {
    /// The answers in the order of [`gpuemu_contract::Schema::results`]: `inout` inputs, then outputs.
    pub answers: Vec<(String, Option<Tensor>)>,
    /// The inputs as they are now, `inout` ones included.
    pub inputs: Vec<(String, Tensor)>,
    pub time: Duration,
}

/// Runs a case and judges the answer.
///
/// # Errors
///
/// When the reference cannot answer; everything that the subject does is a [`Failure`].
pub fn check(
    oracle: &Oracle<'_>,
    subject: &dyn Subject,
    case: &Case,
    health: Option<&mut Health>,
) -> Result<Checked> {
    let mut checked = Checked { failure: None, outputs: Vec::new(), subject_time: Duration::ZERO };
    // The subject runs first: it must not find the right answer in memory that the mirror has left behind.
    let run = match execute(oracle, subject, case, Pattern::First) {
        Ok(run) => run,
        Err(error) => {
            checked.failure = Some(subject_failed(&error));
            return Ok(checked);
        }
    };
    checked.subject_time = run.time;
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

    let mut first_failure = None;
    let mut comparisons = Vec::with_capacity(answers.len());
    for (place, (name, got, expected)) in answers.iter().enumerate() {
        let comparison = answer.compare(place, got)?;
        outputs.push(((*name).clone(), comparison.statistics.clone(), comparison.histogram.clone()));
        if let Some(mut failure) = comparison.failure(name) {
            let keep = match &first_failure {
                None => true,
                Some(Failure { check, .. }) => failure.check < *check,
            };
            if keep {
                explain(oracle, case, run, &answer, place, got, expected, &mut failure)?;
                first_failure = Some(failure);
            }
        }
        comparisons.push(comparison);
    }
    if let Some(health) = health {
        observe(health, oracle, case, &answer, &answers, &comparisons)?;
    }
    if first_failure.is_some() {
        return Ok(first_failure);
    }

    let first_input = case.inputs.first().map(|(_, tensor)| tensor.shape());
    for (name, got, expected) in &answers {
        if let Some(failure) = invariants::check(&op.invariants, name, got, expected, first_input) {
            return Ok(Some(failure));
        }
    }
    if let Some(failure) = relate::check(oracle, subject, case, run, &answer)? {
        return Ok(Some(failure));
    }
    if op.relations.inputs_untouched
        && let Some(failure) = untouched(oracle, case, run)
    {
        return Ok(Some(failure));
    }
    Ok(None)
}

/// Runs the subject once on copies of the case's inputs, with outputs that hold poison.
pub(super) fn execute(
    oracle: &Oracle<'_>,
    subject: &dyn Subject,
    case: &Case,
    pattern: Pattern,
) -> std::result::Result<Run, SubjectError> {
    let mut inputs = case.inputs.clone();
    let mut outputs: Vec<(String, Option<Tensor>)> = case
        .outputs
        .iter()
        .map(|(name, dtype, shape)| {
            let tensor = shape.as_ref().map(|shape| {
                let layout = Layout::contiguous(shape);
                let capacity = layout.span() + honesty::GUARD;
                let mut tensor = Tensor::with_capacity(*dtype, layout, capacity);
                honesty::poison(&mut tensor, pattern);
                tensor
            });
            (name.clone(), tensor)
        })
        .collect();
    let mut call = Call {
        dtype: case.spec.test.dtype,
        inputs: &mut inputs,
        outputs: &mut outputs,
        params: &case.params,
    };
    let started = Instant::now();
    subject.run(&mut call)?;
    let time = started.elapsed();
    let schema = &oracle.op().schema;
    let mut answers = Vec::with_capacity(outputs.len());
    for (declared, (name, tensor)) in schema.inputs.iter().zip(&inputs) {
        if declared.inout {
            answers.push((name.clone(), Some(tensor.clone())));
        }
    }
    answers.extend(outputs);
    Ok(Run { answers, inputs, time })
}

pub(super) fn subject_failed(error: &SubjectError) -> Failure {
    failure(Check::Subject, None, error.message.clone())
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

/// Elements that nothing wrote: they hold the poison of this run, and of a second one with another pattern.
fn unwritten(
    oracle: &Oracle<'_>,
    subject: &dyn Subject,
    case: &Case,
    run: &Run,
) -> Result<Option<Failure>> {
    let suspicious = run
        .answers
        .iter()
        .any(|(_, tensor)| tensor.as_ref().is_some_and(|tensor| honesty::holds_poison(tensor, Pattern::First)));
    let spilled = run.answers.iter().find(|(name, tensor)| {
        case.outputs.iter().any(|(output, ..)| output == name)
            && tensor.as_ref().is_some_and(|tensor| honesty::guard_written(tensor, Pattern::First))
    });
    if let Some((name, _)) = spilled {
        let message = format!("{} wrote behind the last element of {name}", subject.describe());
        return Ok(Some(failure(Check::Unwritten, Some(name), message)));
    }
    if !suspicious {
        return Ok(None);
    }
    let second = match execute(oracle, subject, case, Pattern::Second) {
        Ok(second) => second,
        Err(error) => return Ok(Some(subject_failed(&error))),
    };
    for ((name, first), (_, second)) in run.answers.iter().zip(&second.answers) {
        let (Some(first), Some(second)) = (first, second) else { continue };
        let is_output = case.outputs.iter().any(|(output, ..)| output == name);
        if is_output && let Some(found) = honesty::unwritten(first, second) {
            let message = format!(
                "{} of {} elements of {name} were never written, the first at {:?}",
                found.count,
                first.len(),
                found.first
            );
            let mut failure = failure(Check::Unwritten, Some(name), message);
            let axes = oracle.axes_of(name, first.shape().len());
            failure.diagnosis = diagnosis::places(&found.mask, first.shape(), &axes);
            failure.picture = crate::validate::picture::picture(&found.mask, first.shape(), &axes);
            return Ok(Some(failure));
        }
    }
    Ok(None)
}

fn untouched(oracle: &Oracle<'_>, case: &Case, run: &Run) -> Option<Failure> {
    for (declared, ((name, before), (_, after))) in
        oracle.op().schema.inputs.iter().zip(case.inputs.iter().zip(&run.inputs))
    {
        if declared.inout {
            continue;
        }
        if let Some(place) = crate::validate::relations::first_difference(before, after) {
            let message = format!("input {name} was written: {place}");
            return Some(failure(Check::InputWritten, Some(name), message));
        }
    }
    None
}
