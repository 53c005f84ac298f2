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
