//! Rotary position embedding.

use super::arguments::{Arguments, reals};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::Array;

/// Every pair (u, w) of x at position s is turned by an angle: `(u cos - w sin, w cos + u sin)`, with `cos[s, i]` and
/// `sin[s, i]` for pair i. x [..., S, D] with D even, cos and sin [S, D/2], out as x.
///
/// By default pair i is elements i and i + D/2 (halves, as GPT-NeoX and Llama have it); with `interleaved` it is
/// elements 2i and 2i + 1 (as RoFormer's paper and GPT-J). NaN and infinities stay inside their pair: inf * 0 is NaN.
/// The products are elementwise, so no precision narrows their factors.
pub fn rope<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let [.., length, depth] = x.shape[..] else {
        return Err(arguments.shape_error(0, "shape [..., S, D]"));
    };
    if depth % 2 != 0 {
        return Err(arguments.shape_error(0, "an even last axis"));
    }
    let half = depth / 2;
    for role in 1..3 {
        if arguments.input(role).shape != [length, half] {
            return Err(arguments.shape_error(role, &format!("shape [{length}, {half}]")));
        }
    }
    let (cos, sin) = (reals::<R>(arguments.input(1)), reals::<R>(arguments.input(2)));
    let mut out = reals::<R>(x).into_owned();
    if out.is_empty() {
        return arguments.answer(&x.shape, out);
    }
    let interleaved = arguments.bool("interleaved")?;
    for (number, row) in out.chunks_exact_mut(depth).enumerate() {
        let angles = number % length * half;
        for pair in 0..half {
            let (first, second) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + half) };
            let (u, w) = (row[first], row[second]);
            let (cos, sin) = (cos[angles + pair], sin[angles + pair]);
            row[first] = u * cos - w * sin;
            row[second] = w * cos + u * sin;
        }
    }
    arguments.answer(&x.shape, out)
}

#[cfg(test)]
mod tests {
    use super::super::operands::asking::*;
    use gpuemu_contract::ParamValue::Bool;
    use gpuemu_contract::{Compute, EdgePolicy};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    /// Position 0 is turned by nothing; at position 1 pair 0 by a right angle, pair 1 by the angle of the 3-4-5 triangle.
    #[test]
    fn both_pairings_at_known_angles() {
        let x = floats(&[1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 1.0, 10.0, 3.0, 20.0]);
        let (cos, sin) = (floats(&[2, 2], &[1.0, 1.0, 0.0, 0.6]), floats(&[2, 2], &[0.0, 0.0, 1.0, 0.8]));
        for (interleaved, right) in [
            // Pairs (1, 3) and (10, 20): 10 * 0.6 - 20 * 0.8 = -10, 20 * 0.6 + 10 * 0.8 = 20.
            (false, [1.0, 2.0, 3.0, 4.0, -3.0, -10.0, 1.0, 20.0]),
            // Pairs (1, 10) and (3, 20): 3 * 0.6 - 20 * 0.8 = -14.2, 20 * 0.6 + 3 * 0.8 = 14.4.
            (true, [1.0, 2.0, 3.0, 4.0, -10.0, 1.0, -14.2, 14.4]),
        ] {
            let inputs = [x.clone(), cos.clone(), sin.clone()];
            assert_values(&ask("rope", &inputs, &[("interleaved", Bool(interleaved))]), &[1, 2, 4], &right);
        }
    }

    #[test]
    fn every_head_reads_the_angles_of_its_position() {
        // Two heads, two positions, one pair each: position 1 is turned by a right angle.
        let x = floats(&[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let inputs = [x, floats(&[2, 1], &[1.0, 0.0]), floats(&[2, 1], &[0.0, 1.0])];
        assert_values(&ask("rope", &inputs, &[]), &[2, 2, 2], &[1.0, 2.0, -4.0, 3.0, 5.0, 6.0, -8.0, 7.0]);
    }

    #[test]
    fn not_finite_stays_inside_its_pair() {
        let inputs =
            [floats(&[1, 4], &[INF, 1.0, 1.0, 2.0]), floats(&[1, 2], &[1.0, 1.0]), floats(&[1, 2], &[0.0, 0.0])];
        assert_values(&ask("rope", &inputs, &[]), &[1, 4], &[INF, 1.0, NAN, 2.0]);
        assert_values(&ask("rope", &inputs, &[("interleaved", Bool(true))]), &[1, 4], &[INF, NAN, 1.0, 2.0]);
    }

    #[test]
    fn its_products_are_no_matrix_products() {
        let fine = 1.0 + 2f64.powi(-11); // no number of tf32
        let inputs = [floats(&[1, 2], &[fine, 0.0]), floats(&[1, 1], &[1.0]), floats(&[1, 1], &[0.0])];
        let out = ask_in("rope", &inputs, &[], Compute::Tf32, EdgePolicy::default()).expect("an answer");
        assert_values(&out, &[1, 2], &[fine, 0.0]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let x = floats(&[2, 4], &[0.0; 8]);
        let (right, wrong) = (floats(&[2, 2], &[0.0; 4]), floats(&[1, 4], &[0.0; 4]));
        for (inputs, says) in [
            ([x.clone(), wrong.clone(), right.clone()], "in1 of rope must have shape [2, 2]"),
            ([x, right.clone(), wrong], "in2 of rope must have shape [2, 2]"),
            ([floats(&[1, 3], &[0.0; 3]), right.clone(), right], "in0 of rope must have an even last axis"),
        ] {
            let text = message("rope", &inputs, &[]);
            assert!(text.contains(says), "{text}");
        }
    }
}
