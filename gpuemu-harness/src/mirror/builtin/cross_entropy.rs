//! Cross entropy of class indices.

use super::arguments::{Arguments, reals};
use super::operands::{indices, place, propagates_nan};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::Array;
use gpuemu_contract::EmptyPolicy;

/// `loss[i] = ln(sum_c exp(x[i, c] - m)) - (x[i, t] - m)` with `m = max_c x[i, c]` and `t = targets[i]`: logits [..., C],
/// targets [...]. `reduction = "none"` answers every loss in the shape of the targets, `"sum"` their sum and `"mean"`
/// their mean as a scalar of rank 0.
///
/// A target equal to `ignore_index` (which may itself be a class) has loss 0, whatever its logits, and does not count
/// in the mean; any other target outside of the classes is an error. NaN or +inf among the logits makes the loss NaN; a
/// target whose logit is -inf has loss +inf; a row of -inf alone is NaN. Where no target counts, the mean is NaN (0
/// under `empty = "zero"`) and the sum 0 (NaN under `empty = "nan"`), as PyTorch's.
pub fn cross_entropy<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    propagates_nan(arguments)?;
    let logits = arguments.input(0);
    let targets = indices(arguments, 1)?;
    let Some((&classes, leading)) = logits.shape.split_last() else {
        return Err(arguments.shape_error(0, "at least one axis"));
    };
    if arguments.input(1).shape != leading {
        return Err(arguments.shape_error(1, &format!("shape {leading:?}")));
    }
    let ignored = arguments.int("ignore_index")?;

    let values = reals::<R>(logits);
    let mut losses = Vec::with_capacity(targets.len());
    let mut counted = Vec::with_capacity(targets.len());
    for (number, &target) in targets.iter().enumerate() {
        if target == ignored {
            losses.push(R::ZERO);
            continue;
        }
        let row = &values[number * classes..][..classes];
        let loss = row_loss(row, place(arguments, 1, number, classes)?);
        losses.push(loss);
        counted.push(loss);
    }

    let reduction = arguments.text("reduction")?.expect("reduction has a default");
    if reduction == "none" {
        return arguments.answer(leading, losses);
    }
    let mean = reduction == "mean";
    let total = match (counted.is_empty(), arguments.edges().empty) {
        (true, EmptyPolicy::Zero) => R::ZERO,
        (true, EmptyPolicy::Nan) => R::NAN,
        (true, _) => {
            if mean {
                R::NAN
            } else {
                R::ZERO
            }
        }
        (false, _) if mean => R::sum(&counted) / R::from_f64(counted.len() as f64),
        (false, _) => R::sum(&counted),
    };
    arguments.answer(&[], vec![total])
}

fn row_loss<R: Real>(row: &[R], target: usize) -> R {
    let max = R::max(row);
    let mut exponentials: Vec<R> = row.iter().map(|&logit| logit - max).collect();
    let shifted = exponentials[target];
    R::exp_each(&mut exponentials);
    R::sum(&exponentials).ln() - shifted
}
