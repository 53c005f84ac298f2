//! Stride and layout assumptions; indices in tiles.

use crate::{TILE, load, rows, store, tails::set};
use gpuemu_harness::{Float, View, ViewMut, op};

/// Kind: stride assumption. The input is read as if it were contiguous.
#[op("sum_contiguous")]
pub fn sum_contiguous<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        // FAULT: rows are `width` apart only in a contiguous tensor
        let sum: f32 = (0..width).map(|c| x.data().get(x.offset() + r * width + c).map_or(0.0, |v| v.to_f32())).sum();
        set(&mut out, r, sum);
    }
}

/// Kind: stride assumption. The strides of `a` are used for `b` too.
#[op("add_strides")]
pub fn add_strides<T: Float>(a: View<T>, b: View<T>, mut out: ViewMut<T>) {
    let (height, width) = (a.size(0), a.size(1));
    for r in 0..height {
        for c in 0..width {
            let step = r as isize * a.stride(0) + c as isize * a.stride(1); // FAULT: `b` has its own
            let other = b.data().get((b.offset() as isize + step).max(0) as usize).map_or(0.0, |v| v.to_f32());
            out[[r, c]] = T::from_f32(a[[r, c]].to_f32() + other);
        }
    }
}

/// Kind: stride assumption. The row stride is honoured, the column stride taken for 1.
#[op("rms_norm_columns")]
pub fn rms_norm_columns<T: Float>(x: View<T>, mut out: ViewMut<T>, eps: f64) {
    let (height, width) = (x.size(0), x.size(1));
    for r in 0..height {
        let start = x.offset() as isize + r as isize * x.stride(0);
        let value = |c: usize| x.data().get((start + c as isize).max(0) as usize).map_or(0.0, |v| v.to_f32()); // FAULT
        let mean = (0..width).map(|c| value(c) * value(c)).sum::<f32>() / width as f32;
        for c in 0..width {
            out[[r, c]] = T::from_f32(value(c) / (mean + eps as f32).sqrt());
        }
    }
}

/// Kind: layout. Tiles are written to where they were read from, transposed only inside.
#[op("transpose_tiles")]
pub fn transpose_tiles<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    const SIDE: usize = 32;
    let (height, width) = (x.size(0), x.size(1));
    for r in 0..height {
        for c in 0..width {
            let (tile_r, tile_c) = (r / SIDE, c / SIDE);
            let swapped = (tile_r * SIDE + c % SIDE, tile_c * SIDE + r % SIDE);
            // FAULT: the tile's own coordinates are not exchanged where the tile exists on both sides
            let (to_r, to_c) = if swapped.0 < width && swapped.1 < height { swapped } else { (c, r) };
            out[[to_r, to_c]] = x[[r, c]];
        }
    }
}

/// Kind: zero-size, rank-0, size-1. A bias of one element is read with the stride of a full row.
#[op("add_broadcast")]
pub fn add_broadcast<T: Float>(a: View<T>, b: View<T>, mut out: ViewMut<T>) {
    let (height, width) = (a.size(0), a.size(1));
    for r in 0..height {
        for c in 0..width {
            let at = b.offset() as isize + c as isize * b.stride(0); // FAULT: a size of 1 has a stride too
            let bias = b.data().get(at as usize).map_or(0.0, |v| v.to_f32());
            out[[r, c]] = T::from_f32(a[[r, c]].to_f32() + bias);
        }
    }
}

/// Kind: zero-size. A reduction over nothing returns before it writes the identity.
#[op("sum_empty")]
pub fn sum_empty<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let width = x.size(1);
    if width == 0 {
        return; // FAULT: the outputs are never written
    }
    for r in 0..x.size(0) {
        let sum: f32 = (0..width).map(|c| load(&x, r, c).to_f32()).sum();
        set(&mut out, r, sum);
    }
}

/// Kind: other (padding value). The padded lanes of the last tile count in the mean.
#[op("mean_padding")]
pub fn mean_padding<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        let sum: f32 = (0..width).map(|c| load(&x, r, c).to_f32()).sum();
        set(&mut out, r, sum / width.next_multiple_of(TILE) as f32); // FAULT: divided by the padded width
    }
}

/// Kind: layout. Only the even columns are stored: a vector store with half its lanes masked off.
#[op("exp_vector")]
pub fn exp_vector<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    let (height, width) = rows(&x);
    for r in 0..height {
        for c in (0..width).step_by(2) {
            let pair = [c, (c + 1).min(width - 1)];
            store(&mut out, r, pair[0], T::from_f32(load(&x, r, pair[0]).to_f32().exp()));
            store(&mut out, r, pair[1], T::from_f32(load(&x, r, pair[0]).to_f32().exp())); // FAULT: lane 0 twice
        }
    }
}
