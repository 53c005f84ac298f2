//! NaN and infinity propagation; overflow in intermediates; cancellation.

use crate::{load, rows, store, tails::nan_max, tails::set};
use gpuemu_harness::{Float, View, ViewMut, op};

/// Kind: NaN propagation. The hardware maximum drops NaN.
#[op("max_drops_nan")]
pub fn max_drops_nan<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let max = (0..width).map(|c| load(&x, r, c).to_f32()).fold(f32::NEG_INFINITY, f32::max); // FAULT
        set(&mut out, r, max);
    }
}

/// Kind: NaN propagation. The index of the largest number, as if NaN were absent.
#[op("argmax_skips_nan")]
pub fn argmax_skips_nan<T: Float>(x: View<T>, mut out: ViewMut<i64>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let (mut best, mut at) = (f32::NEG_INFINITY, 0);
        for c in 0..width {
            let value = load(&x, r, c).to_f32();
            // FAULT: a comparison with NaN is never true
            if value > best {
                (best, at) = (value, c);
            }
        }
        set_index(&mut out, r, at);
    }
}

/// Kind: other (index semantics). Of equal maxima the last one is reported.
#[op("argmax_last")]
pub fn argmax_last<T: Float>(x: View<T>, mut out: ViewMut<i64>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let (mut best, mut at) = (f32::NEG_INFINITY, 0);
        for c in 0..width {
            let value = load(&x, r, c).to_f32();
            if best.is_nan() {
                break;
            }
            // FAULT: should be >
            if value >= best || value.is_nan() {
                (best, at) = (value, c);
            }
        }
        set_index(&mut out, r, at);
    }
}

/// Kind: NaN propagation. Each of 32 lanes keeps a running maximum and sum; lanes that see no element merge
/// exp(-inf - -inf).
#[op("log_softmax_lanes")]
pub fn log_softmax_lanes<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    const LANES: usize = 32;
    let (height, width) = rows(&x);
    for r in 0..height {
        let mut lanes = [(f32::NEG_INFINITY, 0.0f32); LANES];
        for c in 0..width {
            let (max, sum) = &mut lanes[c % LANES];
            let value = load(&x, r, c).to_f32();
            let new = nan_max(*max, value);
            let kept = if *max == f32::NEG_INFINITY { 0.0 } else { *sum * (*max - new).exp() };
            (*max, *sum) = (new, kept + (value - new).exp());
        }
        // A tree over the lanes, as shuffles do it.
        for stride in [16, 8, 4, 2, 1] {
            for lane in 0..stride {
                let ((max, sum), (other_max, other_sum)) = (lanes[lane], lanes[lane + stride]);
                let new = nan_max(max, other_max);
                // FAULT: where both lanes are idle this is exp(-inf - -inf)
                lanes[lane] = (new, sum * (max - new).exp() + other_sum * (other_max - new).exp());
            }
        }
        let (max, sum) = lanes[0];
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32() - max - sum.ln()));
        }
    }
}

/// Kind: overflow in an intermediate. The row's maximum is not subtracted.
#[op("softmax_no_max")]
pub fn softmax_no_max<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let sum: f32 = (0..width).map(|c| load(&x, r, c).to_f32().exp()).sum(); // FAULT
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32().exp() / sum));
        }
    }
}

/// Kind: overflow in an intermediate. Maximum and logarithm are added before they are subtracted: large offsets cancel
/// what is left.
#[op("log_softmax_offset")]
pub fn log_softmax_offset<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let max = (0..width).map(|c| load(&x, r, c).to_f32()).fold(f32::NEG_INFINITY, nan_max);
        let sum: f32 = (0..width).map(|c| (load(&x, r, c).to_f32() - max).exp()).sum();
        let total = max + sum.ln(); // FAULT: should be (x - max) - ln(sum)
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32() - total));
        }
    }
}

/// Kind: overflow in an intermediate. tanh through exp(2x), which overflows to NaN.
#[op("tanh_overflow")]
pub fn tanh_overflow<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        for c in 0..width {
            let e = (2.0 * load(&x, r, c).to_f32()).exp();
            store(&mut out, r, c, T::from_f32((e - 1.0) / (e + 1.0))); // FAULT: inf / inf
        }
    }
}

fn set_index(out: &mut ViewMut<'_, i64>, row: usize, value: usize) {
    let at = out.offset() + row;
    out.data_mut()[at] = value as i64;
}
