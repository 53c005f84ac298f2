//! Scaled dot-product attention: q [B, H, S, D], k [B, G, T, D], v [B, G, T, E], out [B, H, S, E]; head h reads the keys
//! and values of head h / (H / G). With `causal`, query i sees keys 0 to i.

use crate::block;
use crate::scalar::{Number, Real, RealScalar, Scalar};
use crate::softmax::Running;
use crate::strided::{Strided, StridedMut, grid};

/// Keys of a tile.
pub const TILE: usize = 16;

/// Queries of a block.
pub const QUERIES: usize = 8;

/// All scores of a query at once: scores, softmax, weighted sum.
pub fn attention<T: RealScalar>(q: Strided<T>, k: Strided<T>, v: Strided<T>, mut out: StridedMut<T>, causal: bool) {
    let sizes = Sizes::of(q, k, v);
    let mut scores = vec![T::Acc::ZERO; sizes.keys];
    for [batch, head, query] in sizes.queries() {
        let group = head / sizes.share();
        let scores = &mut scores[..sizes.seen(query, causal)];
        for (key, score) in scores.iter_mut().enumerate() {
            *score = sizes.score(q, k, [batch, head, query], [batch, group, key]);
        }
        let max = block::max(scores.len(), |key| scores[key]);
        let sum = block::sum(scores.len(), |key| (scores[key] - max).exp());
        for score in scores.iter_mut() {
            *score = (*score - max).exp() / sum;
        }
        for column in 0..sizes.value_depth {
            let value = block::sum(scores.len(), |key| scores[key] * v.at([batch, group, key, column]).load());
            out.set([batch, head, query, column], T::store(value));
        }
    }
}

/// Keys in tiles with a running softmax (T. Dao et al., "FlashAttention", 2022, algorithm 1): the output so far stays
/// normalised, so that it never exceeds the values it averages.
pub fn flash_attention<T: RealScalar>(
    q: Strided<T>,
    k: Strided<T>,
    v: Strided<T>,
    mut out: StridedMut<T>,
    causal: bool,
) {
    let sizes = Sizes::of(q, k, v);
    let width = sizes.value_depth;
    for [batch, head] in sizes.heads() {
        let group = head / sizes.share();
        for block in grid(sizes.queries, QUERIES) {
            let mut running = [Running::<T::Acc>::new(); QUERIES];
            let mut averages = vec![T::Acc::ZERO; QUERIES * width];
            // No query of the block sees a key beyond those of its last query.
            for tile in grid(sizes.seen(block.end - 1, causal), TILE) {
                for query in block.clone() {
                    let lane = query - block.start;
                    let mut scores = [T::Acc::ZERO; TILE];
                    let seen = tile.end.min(sizes.seen(query, causal)).saturating_sub(tile.start);
                    for (key, score) in scores.iter_mut().take(seen).enumerate() {
                        *score = sizes.score(q, k, [batch, head, query], [batch, group, tile.start + key]);
                    }
                    let value = |key: usize, column| v.at([batch, group, tile.start + key, column]).load();
                    running[lane] =
                        accumulate(running[lane], &mut scores[..seen], &mut averages[lane * width..][..width], value);
                }
            }
            for query in block.clone() {
                let lane = query - block.start;
                for column in 0..width {
                    // Where every key that is seen has score -inf, no probability is defined.
                    let undefined = sizes.keys > 0 && running[lane].sum == T::Acc::ZERO;
                    let value =
                        if undefined { T::Acc::ZERO / running[lane].sum } else { averages[lane * width + column] };
                    out.set([batch, head, query, column], T::store(value));
                }
            }
        }
    }
}

/// Takes a tile of keys into a query's average. The scores become the shares of their keys.
fn accumulate<A: Real>(
    running: Running<A>,
    scores: &mut [A],
    average: &mut [A],
    value: impl Fn(usize, usize) -> A,
) -> Running<A> {
    let max = running.max.larger(block::max(scores.len(), |key| scores[key]));
    // As long as every score is -inf, every share is 0: -inf - -inf would be NaN.
    let nothing = max == A::LOWEST;
    for score in scores.iter_mut() {
        *score = if nothing { A::ZERO } else { (*score - max).exp() };
    }
    let before = running.rescaled(max);
    let sum = before + block::sum(scores.len(), |key| scores[key]);
    let keep = if nothing { A::ONE } else { before / sum };
    for score in scores.iter_mut() {
        *score = if nothing { A::ZERO } else { *score / sum };
    }
    for (column, average) in average.iter_mut().enumerate() {
        *average = *average * keep + block::sum(scores.len(), |key| scores[key] * value(key, column));
    }
    Running { max, sum }
}

struct Sizes<A> {
    batch: usize,
    heads: usize,
    /// Heads of keys and values.
    groups: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    value_depth: usize,
    scale: A,
}

impl<A: Real> Sizes<A> {
    fn of<T: Scalar<Acc = A>>(q: Strided<T>, k: Strided<T>, v: Strided<T>) -> Self {
        let (&[batch, heads, queries, depth], &[_, groups, keys, _], &[.., value_depth]) =
            (q.shape(), k.shape(), v.shape())
        else {
            panic!("attention of tensors that are not [B, H, S, D]")
        };
        let scale = A::of(1.0 / (depth as f64).sqrt());
        Sizes { batch, heads, groups, queries, keys, depth, value_depth, scale }
    }

    /// Every head of every batch.
    fn heads(&self) -> impl Iterator<Item = [usize; 2]> + use<A> {
        let heads = self.heads;
        (0..self.batch).flat_map(move |batch| (0..heads).map(move |head| [batch, head]))
    }

    /// Every query of every head.
    fn queries(&self) -> impl Iterator<Item = [usize; 3]> + use<A> {
        let queries = self.queries;
        self.heads().flat_map(move |[batch, head]| (0..queries).map(move |query| [batch, head, query]))
    }

    /// How many heads share the same keys and values.
    fn share(&self) -> usize {
        self.heads / self.groups
    }

    /// How many keys a query sees.
    fn seen(&self, query: usize, causal: bool) -> usize {
        if causal { self.keys.min(query + 1) } else { self.keys }
    }

    fn score<T: Scalar<Acc = A>>(&self, q: Strided<T>, k: Strided<T>, query: [usize; 3], key: [usize; 3]) -> A {
        let ([b, h, i], [c, g, j]) = (query, key);
        block::sum(self.depth, |d| q.at([b, h, i, d]).load() * k.at([c, g, j, d]).load()) * self.scale
    }
}
