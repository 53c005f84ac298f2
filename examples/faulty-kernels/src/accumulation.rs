//! Low-precision accumulation; dtype promotion and casting.

use crate::{load, rows, store, tails::nan_max, tails::set};
use gpuemu_harness::{Float, View, ViewMut, f16, op};

/// Kind: low-precision accumulation. The running sum is kept in half precision.
#[op("sum_half")]
pub fn sum_half<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let mut sum = f16::ZERO;
        for c in 0..width {
            sum = f16::from_f32(sum.to_f32() + load(&x, r, c).to_f32()); // FAULT
        }
        set(&mut out, r, sum.to_f32());
    }
}

/// Kind: low-precision accumulation. The accumulator of the product is stored in the inputs' dtype after every step.
#[op("matmul_accumulator")]
pub fn matmul_accumulator<T: Float>(a: View<T>, b: View<T>, mut out: ViewMut<T>) {
    let (m, k, n) = (a.size(0), a.size(1), b.size(1));
    for i in 0..m {
        for j in 0..n {
            let mut sum = f16::ZERO;
            for p in 0..k {
                sum = f16::from_f32(sum.to_f32() + a[[i, p]].to_f32() * b[[p, j]].to_f32()); // FAULT
            }
            out[[i, j]] = T::from_f32(sum.to_f32());
        }
    }
}

/// Kind: low-precision accumulation (tf32). Factors lose 13 bits on their way into the tensor core.
#[op("matmul_tf32")]
pub fn matmul_tf32(a: View<f32>, b: View<f32>, mut out: ViewMut<f32>) {
    let narrow = |value: f32| f32::from_bits(value.to_bits() & 0xffff_e000); // FAULT: the contract says float32
    for i in 0..a.size(0) {
        for j in 0..b.size(1) {
            out[[i, j]] = (0..a.size(1)).map(|p| narrow(a[[i, p]]) * narrow(b[[p, j]])).sum();
        }
    }
}

/// Kind: low-precision accumulation. The tile loop assigns where it should add: only the last tile of K is left.
#[op("matmul_assign")]
pub fn matmul_assign<T: Float>(a: View<T>, b: View<T>, mut out: ViewMut<T>) {
    const TILE_K: usize = 32;
    let (m, k, n) = (a.size(0), a.size(1), b.size(1));
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0f32;
            for start in (0..k).step_by(TILE_K) {
                sum = (start..(start + TILE_K).min(k)).map(|p| a[[i, p]].to_f32() * b[[p, j]].to_f32()).sum(); // FAULT
            }
            out[[i, j]] = T::from_f32(sum);
        }
    }
}

/// Kind: dtype promotion. A float64 softmax that computes in float32.
#[op("softmax_double")]
pub fn softmax_double(x: View<f64>, mut out: ViewMut<f64>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let max = (0..width).map(|c| load(&x, r, c) as f32).fold(f32::NEG_INFINITY, nan_max); // FAULT
        let sum: f32 = (0..width).map(|c| (load(&x, r, c) as f32 - max).exp()).sum();
        for c in 0..width {
            store(&mut out, r, c, f64::from((load(&x, r, c) as f32 - max).exp() / sum));
        }
    }
}

/// Kind: low-precision accumulation. Variance as the mean of squares minus the squared mean: a common offset cancels.
#[op("layer_norm_one_pass")]
pub fn layer_norm_one_pass<T: Float>(x: View<T>, mut out: ViewMut<T>, eps: f64) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let (mut sum, mut squares) = (0.0f32, 0.0f32);
        for c in 0..width {
            let value = load(&x, r, c).to_f32();
            sum += value;
            squares += value * value;
        }
        let mean = sum / width as f32;
        let variance = squares / width as f32 - mean * mean; // FAULT
        for c in 0..width {
            store(&mut out, r, c, T::from_f32((load(&x, r, c).to_f32() - mean) / (variance + eps as f32).sqrt()));
        }
    }
}

/// Kind: low-precision accumulation. The normalising factor is rounded to bfloat16 before it is multiplied.
#[op("rms_norm_factor")]
pub fn rms_norm_factor<T: Float>(x: View<T>, mut out: ViewMut<T>, eps: f64) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let mean = (0..width).map(|c| load(&x, r, c).to_f32().powi(2)).sum::<f32>() / width as f32;
        let factor = gpuemu_harness::bf16::from_f32(1.0 / (mean + eps as f32).sqrt()).to_f32(); // FAULT
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32() * factor));
        }
    }
}
