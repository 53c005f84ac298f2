//! Relations: what must hold between two runs of one subject.

use super::check::{self, Run};
use super::oracle::{Answer, Oracle};
use crate::case::Case;
use crate::case::rng::{self, SplitMix64};
use crate::error::Result;
use crate::subject::Subject;
use crate::validate::compare::Rules;
use crate::validate::honesty::Poison;
use crate::validate::relations;
use crate::validate::verdict::{Check, Failure};
use gpuemu_contract::{Expression, OutputShape, Shape, TensorDecl};

/// Checks the relations that the op declares.
///
/// # Errors
///
/// When the reference cannot answer the changed case.
pub(super) fn check(
    oracle: &Oracle<'_>,
    subject: &dyn Subject,
    case: &Case,
    run: &Run,
    answer: &Answer<'_>,
) -> Result<Option<Failure>> {
    let relations = &oracle.op().relations;
    if relations.deterministic
        && let Some(failure) = repeats(oracle, subject, case, run)
    {
        return Ok(Some(failure));
    }
    if let Some(dim) = &relations.batch
        && let Some(failure) = alone(oracle, subject, case, run, dim)
    {
        return Ok(Some(failure));
    }
    if let Some(dim) = &relations.permutes {
        return permuted(oracle, subject, case, run, answer, dim);
    }
    Ok(None)
}

/// The same inputs give the same bits again, in another order of blocks and warps where the subject has any.
fn repeats(oracle: &Oracle<'_>, subject: &dyn Subject, case: &Case, run: &Run) -> Option<Failure> {
    let other = subject.reordered(rng::derive(case.spec.seed, "order of the repetition"));
    let subject = other.as_deref().unwrap_or(subject);
    let again = match check::execute(&oracle.op().schema, subject, case, Poison::First) {
        Ok(again) => again,
        Err(error) => return Some(check::subject_failed(&error)),
    };
    for ((name, first), (_, second)) in run.answers.iter().zip(&again.answers) {
        let (Some(first), Some(second)) = (first, second) else { continue };
        if (first.dtype(), first.shape()) != (second.dtype(), second.shape()) {
            let message = format!("{name} has another shape or dtype when the same inputs are given again");
            return Some(check::failure(Check::Relation, Some(name), message));
        }
        if let Some(mut failure) = relations::same_bits(name, "the same inputs again", first, second) {
            failure.diagnosis.push(
                "the result depends on the order of something: atomic additions, unordered threads, or state kept \
                 between calls"
                    .to_owned(),
            );
            return Some(failure);
        }
    }
    None
}

/// A row of the batch alone gives the same bits as in its batch: the same compiled function runs on both sides.
fn alone(oracle: &Oracle<'_>, subject: &dyn Subject, case: &Case, run: &Run, dim: &str) -> Option<Failure> {
    let size = case.spec.dims.iter().find(|(name, _)| name == dim).map(|(_, size)| *size)?;
    if size < 2 {
        return None;
    }
    let row = SplitMix64::new(rng::derive(case.spec.seed, "row of the batch")).below(size) as usize;
    let schema = &oracle.op().schema;
    let mut single = case.clone();
    for (name, dim_size) in &mut single.spec.dims {
        if name == dim {
            *dim_size = 1;
        }
    }
    for (declared, (_, tensor)) in schema.inputs.iter().zip(&mut single.inputs) {
        if let Some(axis) = axis_of(declared, dim, tensor.shape().len()) {
            *tensor = relations::select(tensor, axis, row, row + 1);
        }
    }
    for (declared, (.., shape)) in schema.outputs.iter().zip(&mut single.outputs) {
        if let Some(shape) = shape
            && let Some(axis) = axis_of(declared, dim, shape.len())
        {
            shape[axis] = 1;
        }
    }
    let lone = match check::execute(&oracle.op().schema, subject, &single, Poison::First) {
        Ok(lone) => lone,
        Err(error) => {
            let message = format!("row {row} of {dim} alone: {error}");
            return Some(check::failure(Check::Relation, None, message));
        }
    };
    for (declared, ((name, batch), (_, lone))) in schema.results().zip(run.answers.iter().zip(&lone.answers)) {
        let (Some(batch), Some(lone)) = (batch, lone) else { continue };
        let Some(axis) = axis_of(declared, dim, batch.shape().len()) else { continue };
        let in_batch = relations::select(batch, axis, row, row + 1);
        if (in_batch.dtype(), in_batch.shape()) != (lone.dtype(), lone.shape()) {
            let message =
                format!("{name} of row {row} of {dim}={size} alone has another shape or dtype than in its batch");
            return Some(check::failure(Check::Relation, Some(name), message));
        }
        let relation = format!("row {row} of {dim}={size} alone");
        if let Some(mut failure) = relations::same_bits(name, &relation, &in_batch, lone) {
            failure.diagnosis.push(format!(
                "the order of operations on one row depends on the number of rows ({dim}): another kernel, tile or split is \
                 chosen by it"
            ));
            return Some(failure);
        }
    }
    None
}

/// Permuting the inputs along a dimension permutes the outputs, within the bounds of both (the order of a reduction
/// along it may change).
fn permuted(
    oracle: &Oracle<'_>,
    subject: &dyn Subject,
    case: &Case,
    run: &Run,
    answer: &Answer<'_>,
    dim: &str,
) -> Result<Option<Failure>> {
    let Some((_, size)) = case.spec.dims.iter().find(|(name, _)| name == dim) else { return Ok(None) };
    if *size < 2 {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..*size as usize).collect();
    let mut stream = SplitMix64::new(rng::derive(case.spec.seed, "permutation"));
    for place in (1..order.len()).rev() {
        order.swap(place, stream.below(place as u64 + 1) as usize);
    }
    let schema = &oracle.op().schema;
    let mut moved = case.clone();
    for (declared, (_, tensor)) in schema.inputs.iter().zip(&mut moved.inputs) {
        if let Some(axis) = axis_of(declared, dim, tensor.shape().len()) {
            *tensor = relations::permute(tensor, axis, &order);
        }
    }
    let other = match check::execute(&oracle.op().schema, subject, &moved, Poison::First) {
        Ok(other) => other,
        Err(error) => {
            let message = format!("inputs permuted along {dim}: {error}");
            return Ok(Some(check::failure(Check::Relation, None, message)));
        }
    };
    for (place, (declared, ((name, first), (_, second)))) in
        schema.results().zip(run.answers.iter().zip(&other.answers)).enumerate()
    {
        let (Some(first), Some(second)) = (first, second) else { continue };
        if (first.dtype(), first.shape()) != (second.dtype(), second.shape()) {
            let message = format!("{name} has another shape or dtype when the inputs are permuted along {dim}");
            return Ok(Some(check::failure(Check::Relation, Some(name), message)));
        }
        let back = match axis_of(declared, dim, first.shape().len()) {
            Some(axis) => relations::unpermute(second, axis, &order),
            None => second.to_contiguous(),
        };
        let relation = format!("the inputs permuted along {dim}");
        let failure = match first.dtype().is_float() {
            false => relations::same_bits(name, &relation, first, &back),
            true => {
                let rules =
                    Rules { check_nan: oracle.op().check_nan, check_inf: oracle.op().check_inf, either_right: None };
                answer.allowed(place, |allowed, either_right| {
                    let both: Vec<f64> = allowed.iter().map(|allowed| 2.0 * allowed).collect();
                    let rules = Rules { either_right, ..rules };
                    relations::within_bounds(name, &relation, first, &back, &both, &rules)
                })?
            }
        };
        if failure.is_some() {
            return Ok(failure);
        }
    }
    Ok(None)
}

/// The axis of a tensor that is exactly the named dimension.
fn axis_of(declared: &TensorDecl, dim: &str, rank: usize) -> Option<usize> {
    let OutputShape::Declared(Shape::Fixed(axes) | Shape::AnyRank(axes)) = &declared.shape else { return None };
    let unnamed = rank.checked_sub(axes.len())?;
    let is_dim = |axis: &Expression| matches!(axis, Expression::Name(name) if name == dim);
    axes.iter().position(is_dim).map(|axis| unnamed + axis)
}
