//! How accurate a subject is over the fixed cases of an op and dtype.

use super::check;
use super::session::Session;
use super::trial::Trial;
use crate::case::spec::Spec;
use crate::case::strategy::Planner;
use crate::case::{Case, build};
use crate::error::{Error, Result};
use crate::validate::compare::{self, Bound, Rules};
use crate::validate::honesty::Poison;
use crate::validate::statistics::{Histogram, Total};
use crate::validate::tolerance::Envelope;
use crate::validate::verdict::Statistics;
use gpuemu_contract::{DType, Op, Strategy, TestName};

/// The accuracy of a subject.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Cases run.
    pub cases: u32,
    /// Names of the strategies they are of.
    pub strategies: Vec<&'static str>,
    /// The envelope that the bounds come from.
    pub envelope: Envelope,
    /// Error statistics of each output over all cases. Shares of the bound are those of the full bound of every element.
    pub outputs: Vec<(String, Total)>,
}

/// A case that is wrong: there is no accuracy to speak of.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The case.
    pub spec: Spec,
    /// What is wrong.
    pub message: String,
}

/// Measures the subject of an op over the cases that the file declares: all strategies, the declared number of cases, the
/// declared seed. `GPUEMU_SEED`, `_CASES`, `_STRATEGIES` and the profile change nothing: figures of other cases could
/// not be compared.
///
/// # Errors
///
/// When the reference cannot answer or nothing computes the op.
pub fn measure(session: &Session, op: &str, dtype: DType) -> Result<std::result::Result<Measured, Wrong>> {
    let declared = session.declared();
    let name = TestName { op: op.to_owned(), dtype, strategy: Strategy::Default };
    let own;
    let op = match name.kernel().and_then(|kernel| declared.kernel(kernel)) {
        Some(kernel) => {
            own = declared.op_of(kernel);
            own.as_ref()
        }
        None => declared.op(op),
    };
    let Some(op) = op else { return Err(Error::OpNotFound(format!("no op `{}`", name.op))) };
    let mut outputs: Vec<(String, Total)> = Vec::new();
    let mut cases = 0;
    let mut envelope = None;
    for &strategy in &op.strategies {
        let test = TestName { op: op.tested_as(), dtype, strategy };
        let trial = Trial::new(session, op, &test)?;
        let planner = Planner::new(op, &test, declared.validation.seed)?;
        for index in 0..op.cases {
            let spec = trial.plan(&planner, index)?;
            let case = build::build(op, &spec, trial.oracle.generator())?;
            let of_case = match errors(&trial, op, &case)? {
                Ok(errors) => errors,
                Err(message) => return Ok(Err(Wrong { spec, message })),
            };
            for (name, statistics, histogram) in of_case {
                let place = outputs.iter().position(|(output, _)| *output == name).unwrap_or_else(|| {
                    outputs.push((name, Total::default()));
                    outputs.len() - 1
                });
                outputs[place].1.add(&statistics, &histogram);
            }
            cases += 1;
        }
        envelope = Some(trial.oracle.envelope()?);
    }
    let Some(envelope) = envelope else {
        return Err(Error::Config(format!("op `{}` has no strategy, so nothing to measure", op.name)));
    };
    let strategies = op.strategies.iter().map(|strategy| strategy.name()).collect();
    Ok(Ok(Measured { cases, strategies, envelope, outputs }))
}

/// The errors of every output of a case, or what is wrong with it.
fn errors(
    trial: &Trial<'_>,
    op: &Op,
    case: &Case,
) -> Result<std::result::Result<Vec<(String, Statistics, Histogram)>, String>> {
    let run = match check::execute(&op.schema, &*trial.subject, case, Poison::First) {
        Ok(run) => run,
        Err(error) => return Ok(Err(error.message)),
    };
    let answer = trial.oracle.answer(case)?;
    let mut errors = Vec::with_capacity(run.answers.len());
    for (place, (name, got)) in run.answers.iter().enumerate() {
        let expected = &answer.expected[place];
        let Some(got) = got else {
            return Ok(Err(format!("{} returned nothing for {name}", trial.subject.describe())));
        };
        let wrong = compare::check_shape(name, got.shape(), &expected.shape)
            .or_else(|| compare::check_dtype(name, got.dtype(), expected.dtype));
        if let Some(failure) = wrong {
            return Ok(Err(failure.message));
        }
        // Not by the cheap bound first: which of the two clears an element would move its share of the bound.
        let comparison = answer.allowed(place, |allowed, either_right| {
            let rules = Rules { either_right, ..answer.rules(place) };
            compare::compare(got, expected, Bound::PerElement(allowed), &rules)
        })?;
        if let Some(failure) = comparison.failure(name) {
            return Ok(Err(failure.message));
        }
        errors.push((name.clone(), comparison.statistics, comparison.histogram));
    }
    debug_assert_eq!(errors.len(), op.schema.results().count(), "an answer for each result");
    Ok(Ok(errors))
}
