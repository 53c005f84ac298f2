//! Causal masks, scales, head mapping, rotary positions.

use crate::tails::nan_max;
use gpuemu_harness::{Float, View, ViewMut, op};

/// What one attention kernel does differently from a right one.
struct Fault {
    scale: fn(usize) -> f32,
    visible: fn(usize, usize) -> bool,
    head: fn(usize, usize, usize) -> usize,
}

const RIGHT: Fault = Fault {
    scale: |depth| 1.0 / (depth as f32).sqrt(),
    visible: |query, key| key <= query,
    head: |head, heads, shared| head / (heads / shared).max(1),
};

/// Softmax attention over [B, H, S, D], two passes a query; `shared` key and value heads serve groups of query heads.
fn attend<T: Float>(q: &View<T>, k: &View<T>, v: &View<T>, out: &mut ViewMut<T>, causal: bool, fault: &Fault) {
    let (batches, heads, queries, depth) = (q.size(0), q.size(1), q.size(2), q.size(3));
    let (shared, keys) = (k.size(1), k.size(2));
    for b in 0..batches {
        for h in 0..heads {
            let from = (fault.head)(h, heads, shared);
            for i in 0..queries {
                let score = |j: usize| -> f32 {
                    if causal && !(fault.visible)(i, j) {
                        return f32::NEG_INFINITY;
                    }
                    let dot = (0..depth).map(|d| q[[b, h, i, d]].to_f32() * k[[b, from, j, d]].to_f32()).sum::<f32>();
                    dot * (fault.scale)(depth)
                };
                let scores: Vec<f32> = (0..keys).map(score).collect();
                let max = scores.iter().copied().fold(f32::NEG_INFINITY, nan_max);
                let sum: f32 = scores.iter().map(|s| (s - max).exp()).sum();
                for d in 0..depth {
                    let value: f32 = scores
                        .iter()
                        .enumerate()
                        .map(|(j, s)| (s - max).exp() / sum * v[[b, from, j, d]].to_f32())
                        .sum();
                    out[[b, h, i, d]] = T::from_f32(value);
                }
            }
        }
    }
}

/// Kind: wrong constant. Scores are not divided by the root of the head's depth.
#[op("attention_scale")]
pub fn attention_scale<T: Float>(q: View<T>, k: View<T>, v: View<T>, mut out: ViewMut<T>, causal: bool) {
    attend(&q, &k, &v, &mut out, causal, &Fault { scale: |_| 1.0, ..RIGHT }); // FAULT
}

/// Kind: causal mask off by one. A query sees the key after its own.
#[op("attention_causal")]
pub fn attention_causal<T: Float>(q: View<T>, k: View<T>, v: View<T>, mut out: ViewMut<T>, causal: bool) {
    attend(&q, &k, &v, &mut out, causal, &Fault { visible: |query, key| key <= query + 1, ..RIGHT }); // FAULT
}

/// Kind: causal mask off by one. The mask is decided for a whole tile from the tile's start.
#[op("attention_tile_mask")]
pub fn attention_tile_mask<T: Float>(q: View<T>, k: View<T>, v: View<T>, mut out: ViewMut<T>, causal: bool) {
    attend(&q, &k, &v, &mut out, causal, &Fault { visible: |query, key| key / 4 * 4 <= query, ..RIGHT }); // FAULT
}

/// Kind: grouped heads. Key heads are dealt out round-robin where groups of neighbours share one.
#[op("attention_heads")]
pub fn attention_heads<T: Float>(q: View<T>, k: View<T>, v: View<T>, mut out: ViewMut<T>, causal: bool) {
    attend(&q, &k, &v, &mut out, causal, &Fault { head: |head, _, shared| head % shared, ..RIGHT }); // FAULT
}

/// Kind: split reduction (online softmax). The running output is not rescaled when the maximum rises.
#[op("attention_rescale")]
pub fn attention_rescale<T: Float>(q: View<T>, k: View<T>, v: View<T>, mut out: ViewMut<T>, causal: bool) {
    let (depth, keys) = (q.size(3), k.size(2));
    let group = (q.size(1) / k.size(1)).max(1);
    for b in 0..q.size(0) {
        for h in 0..q.size(1) {
            for i in 0..q.size(2) {
                let (mut max, mut sum, mut acc) = (f32::NEG_INFINITY, 0.0f32, vec![0.0f32; depth]);
                for j in 0..keys {
                    if causal && j > i {
                        break;
                    }
                    let dot: f32 =
                        (0..depth).map(|d| q[[b, h, i, d]].to_f32() * k[[b, h / group, j, d]].to_f32()).sum();
                    let score = dot / (depth as f32).sqrt();
                    let new = nan_max(max, score);
                    let weight = (score - new).exp();
                    sum = if max == f32::NEG_INFINITY { 0.0 } else { sum * (max - new).exp() } + weight;
                    for (d, acc) in acc.iter_mut().enumerate() {
                        *acc += weight * v[[b, h / group, j, d]].to_f32(); // FAULT: acc * exp(max - new) first
                    }
                    max = new;
                }
                for d in 0..depth {
                    out[[b, h, i, d]] = T::from_f32(acc[d] / sum);
                }
            }
        }
    }
}

/// Kind: rotary pairing. Neighbours are rotated where halves belong together.
#[op("rope_pairing")]
pub fn rope_pairing<T: Float>(x: View<T>, cos: View<T>, sin: View<T>, mut out: ViewMut<T>) {
    rotate(&x, &cos, &sin, &mut out, |s| s, |pair, _| (2 * pair, 2 * pair + 1)); // FAULT: (pair, pair + half)
}

/// Kind: rotary position. Positions count from one.
#[op("rope_position")]
pub fn rope_position<T: Float>(x: View<T>, cos: View<T>, sin: View<T>, mut out: ViewMut<T>) {
    let last = cos.size(0).saturating_sub(1);
    rotate(&x, &cos, &sin, &mut out, |s| (s + 1).min(last), |pair, half| (pair, pair + half)); // FAULT: s
}

fn rotate<T: Float>(
    x: &View<T>,
    cos: &View<T>,
    sin: &View<T>,
    out: &mut ViewMut<T>,
    position: impl Fn(usize) -> usize,
    pairing: impl Fn(usize, usize) -> (usize, usize),
) {
    let half = x.size(3) / 2;
    for b in 0..x.size(0) {
        for h in 0..x.size(1) {
            for s in 0..x.size(2) {
                for pair in 0..half {
                    let (i, j) = pairing(pair, half);
                    let (c, n) = (cos[[position(s), pair]].to_f32(), sin[[position(s), pair]].to_f32());
                    let (first, second) = (x[[b, h, s, i]].to_f32(), x[[b, h, s, j]].to_f32());
                    out[[b, h, s, i]] = T::from_f32(first * c - second * n);
                    out[[b, h, s, j]] = T::from_f32(second * c + first * n);
                }
            }
        }
    }
}
