//! Wrong constant, epsilon or base; quantisation scale and zero point.

use crate::{load, rows, store};
use gpuemu_harness::{Float, View, ViewMut, op};

/// Kind: wrong constant. The factor 0.5 is missing.
#[op("gelu_half")]
pub fn gelu_half<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        for c in 0..width {
            let v = load(&x, r, c).to_f32();
            let inner = 0.797_884_6 * (v + 0.044_715 * v * v * v);
            store(&mut out, r, c, T::from_f32(v * (1.0 + inner.tanh()))); // FAULT: 0.5 *
        }
    }
}

/// Kind: wrong constant. sigmoid(1.702 x), the quick approximation, in place of sigmoid(x).
#[op("silu_beta")]
pub fn silu_beta<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        for c in 0..width {
            let v = load(&x, r, c).to_f32();
            store(&mut out, r, c, T::from_f32(v / (1.0 + (-1.702 * v).exp()))); // FAULT
        }
    }
}

/// Kind: wrong constant. The root of the sum of squares is forgotten.
#[op("l2_norm_root")]
pub fn l2_norm_root<T: Float>(x: View<T>, mut out: ViewMut<T>, eps: f64) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let squares: f32 = (0..width).map(|c| load(&x, r, c).to_f32().powi(2)).sum();
        let norm = squares.max(eps as f32); // FAULT: .sqrt()
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32() / norm));
        }
    }
}

/// Kind: wrong epsilon. It is floored to 1e-4.
#[op("rms_norm_epsilon")]
pub fn rms_norm_epsilon<T: Float>(x: View<T>, mut out: ViewMut<T>, eps: f64) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let mean = (0..width).map(|c| load(&x, r, c).to_f32().powi(2)).sum::<f32>() / width as f32;
        let factor = 1.0 / (mean + (eps as f32).max(1e-4)).sqrt(); // FAULT
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32() * factor));
        }
    }
}

/// Kind: wrong epsilon. It is lost: rows of a constant divide by zero.
#[op("layer_norm_epsilon")]
pub fn layer_norm_epsilon<T: Float>(x: View<T>, mut out: ViewMut<T>, _eps: f64) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let mean = (0..width).map(|c| load(&x, r, c).to_f32()).sum::<f32>() / width as f32;
        let variance = (0..width).map(|c| (load(&x, r, c).to_f32() - mean).powi(2)).sum::<f32>() / width as f32;
        for c in 0..width {
            store(&mut out, r, c, T::from_f32((load(&x, r, c).to_f32() - mean) / variance.sqrt())); // FAULT
        }
    }
}

/// Kind: quantisation scale. A scale of zero (a block of zeros) divides 0 by 0; the cast turns NaN into 0, but any
/// scale below one is taken for one.
#[op("quantize_scale")]
pub fn quantize_scale(x: View<f32>, scale: View<f32>, mut out: ViewMut<i8>) {
    let (height, width) = rows(&x);
    let at = scale.offset();
    for r in 0..height {
        for c in 0..width {
            let value = load(&x, r, c) / scale.data()[at].max(0.05); // FAULT: tiny scales are floored
            store(&mut out, r, c, value.round_ties_even().clamp(-128.0, 127.0) as i8);
        }
    }
}

/// Kind: quantisation. Truncated toward zero where it should be rounded.
#[op("quantize_truncates")]
pub fn quantize_truncates(x: View<f32>, scale: View<f32>, mut out: ViewMut<i8>) {
    let (height, width) = rows(&x);
    let at = scale.offset();
    for r in 0..height {
        for c in 0..width {
            store(&mut out, r, c, (load(&x, r, c) / scale.data()[at]).clamp(-128.0, 127.0) as i8); // FAULT
        }
    }
}

/// Kind: zero point. It is added where it should be subtracted.
#[op("dequantize_zero_point")]
pub fn dequantize_zero_point(x: View<i8>, scale: View<f32>, mut out: ViewMut<f32>, zero_point: i64) {
    let (height, width) = rows(&x);
    let at = scale.offset();
    for r in 0..height {
        for c in 0..width {
            store(&mut out, r, c, (f32::from(load(&x, r, c)) + zero_point as f32) * scale.data()[at]); // FAULT
        }
    }
}
