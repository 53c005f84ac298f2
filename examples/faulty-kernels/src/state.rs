//! Faults that show between runs: mutated inputs, nondeterminism, batch variance, autotuning; and a cheat.

use crate::{load, rows, store, tails::set};
use gpuemu_harness::subject::{Call, SubjectError};
use gpuemu_harness::{Float, View, ViewMut, op};
use std::sync::atomic::{AtomicU64, Ordering};

/// Kind: in-place aliasing, mutated input. The gate is overwritten as scratch space.
#[op("swiglu_scratch")]
pub fn swiglu_scratch(call: &mut Call<'_>) -> Result<(), SubjectError> {
    let (gates, ups) = call.inputs.split_at_mut(1);
    let (gate, up) = (&mut gates[0].1, &ups[0].1);
    let layout = gate.layout().clone();
    let mut gate = gate.view_mut::<f32>();
    let up = up.view::<f32>();
    let mut out = call.outputs[0].1.as_mut().expect("the schema declares the shape").view_mut::<f32>();
    for r in 0..layout.shape[0] {
        for c in 0..layout.shape[1] {
            let value = gate[[r, c]];
            gate[[r, c]] = value / (1.0 + (-value).exp()); // FAULT
            out[[r, c]] = gate[[r, c]] * up[[r, c]];
        }
    }
    Ok(())
}

/// Kind: atomics, nondeterminism. Partial sums arrive in an order that changes from run to run.
#[op("sum_order")]
pub fn sum_order<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let (height, width) = rows(&x);
    for r in 0..height {
        let start = if width == 0 { 0 } else { RUNS.fetch_add(7, Ordering::Relaxed) as usize % width };
        let sum: f32 = (0..width).map(|c| load(&x, r, (start + c) % width).to_f32()).sum(); // FAULT
        set(&mut out, r, sum);
    }
}

/// Kind: batch variance. Large batches take a kernel that sums in another order.
#[op("rms_norm_batch")]
pub fn rms_norm_batch<T: Float>(x: View<T>, mut out: ViewMut<T>, eps: f64) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let square = |c: usize| load(&x, r, c).to_f32().powi(2);
        let sum: f32 = match height {
            0..4 => (0..width).map(square).sum(),
            _ => (0..2).map(|half| (half..width).step_by(2).map(square).sum::<f32>()).sum(), // FAULT
        };
        let factor = 1.0 / (sum / width as f32 + eps as f32).sqrt();
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(load(&x, r, c).to_f32() * factor));
        }
    }
}

/// Kind: autotune-dependent result. Tuning runs the in-place kernel on the live buffer before the real run.
#[op("residual_tuned")]
pub fn residual_tuned<T: Float>(mut x: ViewMut<T>, residual: View<T>) {
    let runs = if x.size(1) > 64 { 2 } else { 1 }; // FAULT: one trial run where tuning is worth it
    for _ in 0..runs {
        for r in 0..x.size(0) {
            for c in 0..x.size(1) {
                x[[r, c]] = T::from_f32(x[[r, c]].to_f32() + residual[[r, c]].to_f32());
            }
        }
    }
}

/// Kind: reward hacking. Answers zeros, which a loose absolute tolerance lets through.
#[op("softmax_zeros")]
pub fn softmax_zeros<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(0.0)); // FAULT
        }
    }
}
