//! Tail mask and grid coverage; split reductions.

use crate::{TILE, load, rows, store};
use gpuemu_harness::{Float, View, ViewMut, op};

/// Kind: tail mask. The sum leaves the last partial tile out.
#[op("softmax_tail")]
pub fn softmax_tail<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    let full = width / TILE * TILE; // FAULT: not rounded up
    for r in 0..height {
        let max = (0..width).map(|c| load(&x, r, c).to_f32()).fold(f32::NEG_INFINITY, nan_max);
        let sum: f32 = (0..if full == 0 { width } else { full }).map(|c| (load(&x, r, c).to_f32() - max).exp()).sum();
        for c in 0..width {
            store(&mut out, r, c, T::from_f32((load(&x, r, c).to_f32() - max).exp() / sum));
        }
    }
}

/// Kind: tail mask. Lanes past the end load 0 instead of minus infinity: they raise the maximum and join the sum.
#[op("softmax_other")]
pub fn softmax_other<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    let padded = width.next_power_of_two();
    for r in 0..height {
        let lane = |c: usize| if c < width { load(&x, r, c).to_f32() } else { 0.0 }; // FAULT: other=0.0
        let max = (0..padded).map(lane).fold(f32::NEG_INFINITY, nan_max);
        let sum: f32 = (0..padded).map(|c| (lane(c) - max).exp()).sum();
        for c in 0..width {
            store(&mut out, r, c, T::from_f32((lane(c) - max).exp() / sum));
        }
    }
}

/// Kind: grid coverage. The number of blocks is rounded down, so that the last elements are never written.
#[op("relu_grid")]
pub fn relu_grid<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    let blocks = (height * width) / TILE; // FAULT: should be div_ceil
    for i in 0..blocks * TILE {
        let value = load(&x, i / width, i % width).to_f32();
        store(&mut out, i / width, i % width, T::from_f32(if value < 0.0 { 0.0 } else { value }));
    }
}

/// Kind: grid coverage. The grid is capped and no block takes a second row.
#[op("sigmoid_capped")]
pub fn sigmoid_capped<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height.min(32) {
        // FAULT: no grid-stride loop behind the cap
        for c in 0..width {
            store(&mut out, r, c, T::from_f32(1.0 / (1.0 + (-load(&x, r, c).to_f32()).exp())));
        }
    }
}

/// Kind: split reduction. The row is summed in four parts; the last part is one element short when the row does not
/// divide.
#[op("sum_split")]
pub fn sum_split<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    let part = width / 4; // FAULT: the remainder belongs to nobody
    for r in 0..height {
        let partial = |p: usize| -> f32 { (p * part..(p + 1) * part).map(|c| load(&x, r, c).to_f32()).sum() };
        let sum = if width < 4 { (0..width).map(|c| load(&x, r, c).to_f32()).sum() } else { (0..4).map(partial).sum() };
        set(&mut out, r, sum);
    }
}

/// Kind: split reduction. A block scan that carries only the sum of the block just before.
#[op("cumsum_carry")]
pub fn cumsum_carry<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let mut carry = 0.0f32;
        for start in (0..width).step_by(TILE) {
            let mut sum = 0.0f32;
            for c in start..(start + TILE).min(width) {
                sum += load(&x, r, c).to_f32();
                store(&mut out, r, c, T::from_f32(carry + sum));
            }
            carry = sum; // FAULT: should be carry += sum
        }
    }
}

/// Kind: index off by one. Every element comes from its left neighbour.
#[op("tanh_shifted")]
pub fn tanh_shifted<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        for c in 0..width {
            let from = if c == 0 { 0 } else { c - 1 }; // FAULT
            store(&mut out, r, c, T::from_f32(load(&x, r, from).to_f32().tanh()));
        }
    }
}

/// Kind: int32 index overflow, at 16 bits so that it shows on small tensors: offsets past 65,535 wrap.
#[op("silu_index")]
pub fn silu_index<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for i in 0..height * width {
        let from = i as u16 as usize; // FAULT: the offset is kept in too few bits
        let value = load(&x, from / width, from % width).to_f32();
        store(&mut out, i / width, i % width, T::from_f32(value / (1.0 + (-value).exp())));
    }
}

pub(crate) fn nan_max(a: f32, b: f32) -> f32 {
    if a.is_nan() || a > b { a } else { b }
}

/// Writes the answer of one row into an output that lacks the last axis.
pub(crate) fn set<T: Float>(out: &mut ViewMut<'_, T>, row: usize, value: f32) {
    let (shape, strides) = (out.shape().to_vec(), out.strides().to_vec());
    let (mut at, mut row) = (out.offset() as isize, row);
    for axis in (0..shape.len()).rev() {
        at += (row % shape[axis]) as isize * strides[axis];
        row /= shape[axis];
    }
    out.data_mut()[at as usize] = T::from_f32(value);
}
