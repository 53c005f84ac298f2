//! Gathers, scatters, losses, convolutions.

use gpuemu_harness::{Float, View, ViewMut, op};

/// Kind: race (lost update). Duplicate indices overwrite one another: a plain store where an atomic add belongs.
#[op("scatter_add_lost")]
pub fn scatter_add_lost<T: Float>(base: View<T>, index: View<i64>, src: View<T>, mut out: ViewMut<T>) {
    for r in 0..base.size(0) {
        for c in 0..base.size(1) {
            out[[r, c]] = base[[r, c]];
        }
    }
    for r in 0..src.size(0) {
        for c in 0..src.size(1) {
            let to = index[[r, c]] as usize;
            out[[to, c]] = T::from_f32(base[[to, c]].to_f32() + src[[r, c]].to_f32()); // FAULT: should read out
        }
    }
}

/// Kind: uninitialised output. Rows with the ignored target return before they write.
#[op("cross_entropy_ignored")]
pub fn cross_entropy_ignored<T: Float>(logits: View<T>, targets: View<i64>, mut out: ViewMut<T>, ignore_index: i64) {
    let classes = logits.size(1);
    for r in 0..logits.size(0) {
        let target = targets[[r]];
        if target == ignore_index {
            continue; // FAULT: the loss of the row is zero, and nobody says so
        }
        let max = (0..classes).map(|c| logits[[r, c]].to_f32()).fold(f32::NEG_INFINITY, crate::tails::nan_max);
        let sum: f32 = (0..classes).map(|c| (logits[[r, c]].to_f32() - max).exp()).sum();
        out[[r]] = T::from_f32(sum.ln() - (logits[[r, target as usize]].to_f32() - max));
    }
}

/// Kind: other (index semantics). Indices are taken modulo the last full tile of the table.
#[op("embedding_table")]
pub fn embedding_table<T: Float>(table: View<T>, ids: View<i64>, mut out: ViewMut<T>) {
    let full = (table.size(0) / 16 * 16).max(1);
    for r in 0..ids.size(0) {
        let from = ids[[r]] as usize % if table.size(0) >= 16 { full } else { table.size(0) }; // FAULT
        for c in 0..table.size(1) {
            out[[r, c]] = table[[from, c]];
        }
    }
}

/// Kind: backward, gradient. The gradient of a bias is summed over chunks of rows; the last chunk is moved back to be
/// full, so that rows before it count twice.
#[op("bias_gradient")]
pub fn bias_gradient<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    const CHUNK: usize = 16;
    let (height, width) = (x.size(0), x.size(1));
    for c in 0..width {
        let mut sum = 0.0f32;
        for start in (0..height).step_by(CHUNK) {
            let from = start.min(height.saturating_sub(CHUNK)); // FAULT: rows below `start` are in the sum already
            sum += (from..(from + CHUNK).min(height)).map(|r| x[[r, c]].to_f32()).sum::<f32>();
        }
        out[[c]] = T::from_f32(sum);
    }
}

/// Kind: normalisation of grouped axes (shapes of higher rank). The size of a group is taken from the last axis alone.
#[op("group_norm_size")]
pub fn group_norm_size<T: Float>(x: View<T>, mut out: ViewMut<T>, groups: i64, eps: f64) {
    let (batches, channels, length) = (x.size(0), x.size(1), x.size(2));
    let each = channels / groups as usize;
    for b in 0..batches {
        for g in 0..groups as usize {
            let members = || (g * each..(g + 1) * each).flat_map(|c| (0..length).map(move |l| (c, l)));
            let count = length as f32; // FAULT: each * length
            let mean = members().map(|(c, l)| x[[b, c, l]].to_f32()).sum::<f32>() / count;
            let variance = members().map(|(c, l)| (x[[b, c, l]].to_f32() - mean).powi(2)).sum::<f32>() / count;
            for (c, l) in members() {
                out[[b, c, l]] = T::from_f32((x[[b, c, l]].to_f32() - mean) / (variance + eps as f32).sqrt());
            }
        }
    }
}

/// Kind: tail mask (padding). The window is clamped to the image where it should read zeros.
#[op("conv2d_clamped")]
pub fn conv2d_clamped<T: Float>(x: View<T>, weight: View<T>, mut out: ViewMut<T>, padding: i64) {
    let (height, width) = (x.size(2), x.size(3));
    for n in 0..out.size(0) {
        for o in 0..out.size(1) {
            for i in 0..out.size(2) {
                for j in 0..out.size(3) {
                    let mut sum = 0.0f32;
                    for c in 0..x.size(1) {
                        for di in 0..weight.size(2) {
                            for dj in 0..weight.size(3) {
                                let at = |place: usize, step: usize, size: usize| {
                                    ((place + step) as i64 - padding).clamp(0, size as i64 - 1) as usize // FAULT
                                };
                                let pixel = x[[n, c, at(i, di, height), at(j, dj, width)]].to_f32();
                                sum += pixel * weight[[o, c, di, dj]].to_f32();
                            }
                        }
                    }
                    out[[n, o, i, j]] = T::from_f32(sum);
                }
            }
        }
    }
}
