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

#[cfg(test)]
mod tests {
    use super::super::operands::asking::*;
    use super::*;
    use gpuemu_contract::Compute;
    use gpuemu_contract::ParamValue::{Int, Text};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    #[test]
    fn losses_of_known_odds() {
        // Odds 1 : 2 : 5, so the losses are ln 8, ln 4 and ln 1.6; shifting a row changes nothing.
        let row = [0.0, 2f64.ln(), 5f64.ln()];
        let logits: Vec<f64> = row.iter().copied().chain(row.map(|x| x + 64.0)).chain(row).collect();
        let inputs = [floats(&[3, 3], &logits), integers(&[3], &[0, 1, 2])];
        let right = [8f64.ln(), 4f64.ln(), 1.6f64.ln()];
        let out = ask("cross_entropy", &inputs, &[]);
        for (number, right) in right.iter().enumerate() {
            assert!((out.at(number) - right).abs() < 1e-14, "{number}: {} is not {right}", out.at(number));
        }
        for (reduction, right) in [("sum", 51.2f64.ln()), ("mean", 51.2f64.ln() / 3.0)] {
            let out = ask("cross_entropy", &inputs, &[("reduction", Text(reduction.into()))]);
            assert_eq!(out.shape, [0usize; 0]);
            assert!((out.at(0) - right).abs() < 1e-14, "{reduction}");
        }
    }

    #[test]
    fn ignored_targets_count_nowhere() {
        // Two equal classes: a loss of ln 2 where it counts; the ignored row is NaN and not read.
        let logits = floats(&[3, 2], &[1.0, 1.0, NAN, NAN, 3.0, 3.0]);
        let two = 2f64.ln();
        for (ignored, targets) in [(None, [0, -100, 1]), (Some(-1), [0, -1, 1]), (Some(1), [0, 1, 0])] {
            let params: Vec<_> = ignored.map(|value| ("ignore_index", Int(value))).into_iter().collect();
            let inputs = [logits.clone(), integers(&[3], &targets)];
            assert_values(&ask("cross_entropy", &inputs, &params), &[3], &[two, 0.0, two]);
            for (reduction, right) in [("sum", 2.0 * two), ("mean", two)] {
                let params = [&params[..], &[("reduction", Text(reduction.into()))]].concat();
                assert_values(&ask("cross_entropy", &inputs, &params), &[], &[right]);
            }
        }
    }

    #[test]
    fn no_target_that_counts() {
        let inputs = [floats(&[1, 2], &[1.0, 1.0]), integers(&[1], &[-100])];
        for (reduction, policy, right) in [
            ("mean", EmptyPolicy::Natural, NAN),
            ("mean", EmptyPolicy::Zero, 0.0),
            ("mean", EmptyPolicy::Nan, NAN),
            ("sum", EmptyPolicy::Natural, 0.0),
            ("sum", EmptyPolicy::Zero, 0.0),
            ("sum", EmptyPolicy::Nan, NAN),
        ] {
            let params = [("reduction", Text(reduction.into()))];
            let out = ask_in("cross_entropy", &inputs, &params, Compute::Float32, empty(policy)).expect("an answer");
            assert_values(&out, &[], &[right]);
        }
        assert_values(&ask("cross_entropy", &[floats(&[0, 2], &[]), integers(&[0], &[])], &[]), &[0], &[]);
    }

    #[test]
    fn logits_that_are_not_finite() {
        for (row, target, right) in [
            ([-INF, 0.0], 0, INF),
            ([-INF, 0.0], 1, 0.0),
            ([-INF, -INF], 0, NAN),
            ([INF, 0.0], 0, NAN),
            ([INF, 0.0], 1, NAN),
            ([NAN, 0.0], 1, NAN),
            ([-1e300, 1e300], 0, 2e300),
        ] {
            let out = ask("cross_entropy", &[floats(&[1, 2], &row), integers(&[1], &[target])], &[]);
            assert_values(&out, &[1], &[right]);
        }
    }

    #[test]
    fn a_target_outside_is_named() {
        let logits = floats(&[1, 2, 3], &[0.0; 6]);
        let text = message("cross_entropy", &[logits.clone(), integers(&[1, 2], &[0, 3])], &[]);
        assert!(text.contains("in1[0, 1] is 3, outside of 0..3"), "{text}");
        let text = message("cross_entropy", &[logits, integers(&[2], &[0, 0])], &[]);
        assert!(text.contains("in1 of cross_entropy must have shape [1, 2]"), "{text}");
    }
}
