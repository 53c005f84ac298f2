//! Scaled dot-product attention.

use super::arguments::Arguments;
use super::gemm::{multiply, transposed};
use super::operands::{empty_sum, factors, propagates_nan};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::Array;
use gpuemu_contract::EmptyPolicy;

/// `out[i] = sum_j p[i, j] v[j]` with `p[i] = softmax_j(scale * q[i].k[j])`, for every head of every batch: q [B, H, S, D],
/// k [B, G, T, D], v [B, G, T, E], out [B, H, S, E].
///
/// G divides H: head h reads the keys and values of head h / (H / G). `scale` is 1/sqrt(D) where the op gives none.
/// With `causal`, query i sees keys 0 to i, counted from the first query and the first key, as `is_causal` of PyTorch's
/// `scaled_dot_product_attention` (its documentation: `ones(L, S).tril(diagonal=0)`), also where S and T differ.
///
/// A key that is not seen takes no part at all: a NaN in it or in its value shows nowhere. Among the keys that are
/// seen NaN propagates, a +inf score makes the row NaN, and a probability of 0 times an infinite value is NaN. A row
/// whose scores are all -inf is NaN, zeros under `empty = "zero"`. With no key at all (T = 0) the sum over nothing is 0,
/// under `empty = "nan"` NaN. Scores, probabilities and sums are numbers of the working precision.
pub fn attention<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    propagates_nan(arguments)?;
    let sizes = Sizes::new(arguments)?;
    let Sizes { batch, heads, groups, queries, keys, depth, value_depth } = sizes;
    let scale = R::from_f64(arguments.derived_float("scale")?.unwrap_or(1.0 / (depth as f64).sqrt()));
    let causal = arguments.bool("causal")?;
    let empty_is_zero = arguments.edges().empty == EmptyPolicy::Zero;
    let shape = [batch, heads, queries, value_depth];
    if keys == 0 {
        return arguments.answer(&shape, vec![empty_sum::<R>(arguments); shape.iter().product()]);
    }

    let [q, k, v] = [0, 1, 2].map(|role| factors::<R>(arguments.input(role)));
    let mut out = Vec::with_capacity(shape.iter().product());
    let mut transposed_keys = Vec::new();
    for head in 0..batch * heads {
        let (q, group) = (&q[head * queries * depth..][..queries * depth], head * groups / heads);
        let v = &v[group * keys * value_depth..][..keys * value_depth];
        if head == 0 || (head - 1) * groups / heads != group {
            transposed_keys = transposed(&k[group * keys * depth..][..keys * depth], keys, depth);
        }
        let mut scores = multiply(R::ZERO, q, &transposed_keys, [queries, depth, keys]);
        for (query, row) in scores.chunks_exact_mut(keys).enumerate() {
            let seen = if causal { keys.min(query + 1) } else { keys };
            for score in &mut row[..seen] {
                *score = *score * scale;
            }
            softmax(&mut row[..seen], empty_is_zero);
            for probability in &mut row[..seen] {
                *probability = probability.factor();
            }
        }
        if causal {
            for (query, row) in scores.chunks_exact(keys).enumerate() {
                let seen = keys.min(query + 1);
                weighted_sum(&row[..seen], &v[..seen * value_depth], value_depth, &mut out);
            }
        } else {
            out.extend(multiply(R::ZERO, &scores, v, [queries, keys, value_depth]));
        }
    }
    arguments.answer(&shape, out)
}

/// Turns scores into probabilities in place.
fn softmax<R: Real>(row: &mut [R], empty_is_zero: bool) {
    let max = R::max(row);
    if empty_is_zero && max == -R::INFINITY {
        row.fill(R::ZERO);
        return;
    }
    for score in row.iter_mut() {
        *score = *score - max;
    }
    R::exp_each(row);
    let sum = R::sum(row);
    for value in row {
        *value = *value / sum;
    }
}

/// Appends `sum_j weights[j] * rows[j]`, rows of `width`. The same order, and so the same bits, as a product of matrices.
fn weighted_sum<R: Real>(weights: &[R], rows: &[R], width: usize, out: &mut Vec<R>) {
    let start = out.len();
    out.resize(start + width, R::ZERO);
    if width == 0 {
        return;
    }
    let sums = &mut out[start..];
    for (&weight, row) in weights.iter().zip(rows.chunks_exact(width)) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += weight * value;
        }
    }
}

struct Sizes {
    batch: usize,
    heads: usize,
    /// Heads of keys and values.
    groups: usize,
    queries: usize,
    keys: usize,
    depth: usize,
    value_depth: usize,
}

impl Sizes {
    fn new(arguments: &Arguments<'_>) -> Result<Sizes> {
        let [batch, heads, queries, depth] = arguments.input(0).shape[..] else {
            return Err(arguments.shape_error(0, "shape [B, H, S, D]"));
        };
        let (groups, keys) = match arguments.input(1).shape[..] {
            [own_batch, groups, keys, own_depth] if own_batch == batch && own_depth == depth => (groups, keys),
            _ => return Err(arguments.shape_error(1, &format!("shape [{batch}, heads, T, {depth}]"))),
        };
        if heads > 0 && (groups == 0 || heads % groups != 0) {
            return Err(arguments.shape_error(1, &format!("heads that divide the {heads} of the queries")));
        }
        let value_depth = match arguments.input(2).shape[..] {
            [own_batch, own_groups, own_keys, value_depth]
                if [own_batch, own_groups, own_keys] == [batch, groups, keys] =>
            {
                value_depth
            }
            _ => return Err(arguments.shape_error(2, &format!("shape [{batch}, {groups}, {keys}, E]"))),
        };
        Ok(Sizes { batch, heads, groups, queries, keys, depth, value_depth })
    }
}

#[cfg(test)]
mod tests {
    use super::super::operands::asking::*;
    use super::*;
    use gpuemu_contract::ParamValue::{Bool, Float};
    use gpuemu_contract::{Compute, EdgePolicy};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    /// One head of depth 1.
    fn head(values: &[f64]) -> Array {
        floats(&[1, 1, values.len(), 1], values)
    }

    #[test]
    fn weights_are_the_softmax_of_scaled_products() {
        // Scores ln 2 and 0: weights 2/3 and 1/3.
        let inputs = [head(&[1.0]), head(&[1.0, 0.0]), head(&[3.0, 6.0])];
        assert_values(&ask("attention", &inputs, &[("scale", Float(2f64.ln()))]), &[1, 1, 1, 1], &[4.0]);
        // Depth 4, so the default scale is 1/2: scores ln 3 and 0, weights 3/4 and 1/4.
        let q = floats(&[1, 1, 1, 4], &[2.0 * 3f64.ln(), 0.0, 0.0, 0.0]);
        let k = floats(&[1, 1, 2, 4], &[1.0, 5.0, 5.0, 5.0, 0.0, 5.0, 5.0, 5.0]);
        let v = floats(&[1, 1, 2, 2], &[4.0, 40.0, 8.0, 80.0]);
        assert_values(&ask("attention", &[q, k, v], &[]), &[1, 1, 1, 2], &[5.0, 50.0]);
    }

    #[test]
    fn causal_counts_from_the_first_query_and_key() {
        // Equal scores: the mean of the values seen.
        let values = head(&[2.0, 4.0, 9.0]);
        for (queries, right) in
            [(1, &[2.0][..]), (2, &[2.0, 3.0]), (3, &[2.0, 3.0, 5.0]), (5, &[2.0, 3.0, 5.0, 5.0, 5.0])]
        {
            let inputs = [head(&vec![0.0; queries]), head(&[1.0; 3]), values.clone()];
            assert_values(&ask("attention", &inputs, &[("causal", Bool(true))]), &[1, 1, queries, 1], right);
        }
    }

    #[test]
    fn neighbouring_heads_share_a_group() {
        let q = floats(&[2, 4, 1, 1], &[0.0; 8]);
        let (k, v) = (floats(&[2, 2, 1, 1], &[1.0; 4]), floats(&[2, 2, 1, 1], &[10.0, 20.0, 30.0, 40.0]));
        let right = [10.0, 10.0, 20.0, 20.0, 30.0, 30.0, 40.0, 40.0];
        assert_values(&ask("attention", &[q.clone(), k, v], &[]), &[2, 4, 1, 1], &right);
        let (k, v) = (floats(&[2, 1, 1, 1], &[1.0; 2]), floats(&[2, 1, 1, 1], &[10.0, 20.0]));
        let right = [10.0, 10.0, 10.0, 10.0, 20.0, 20.0, 20.0, 20.0];
        assert_values(&ask("attention", &[q.clone(), k, v], &[]), &[2, 4, 1, 1], &right);
        // The keys, too, are the group's own: the first head sees equal keys, the last one only its second key.
        let k = floats(&[1, 2, 2, 1], &[1.0, 1.0, 0.0, 2000.0]);
        let v = floats(&[1, 2, 2, 1], &[1.0, 3.0, 5.0, 7.0]);
        let q = floats(&[1, 2, 1, 1], &[1.0, 1.0]);
        assert_values(&ask("attention", &[q, k, v], &[]), &[1, 2, 1, 1], &[2.0, 7.0]);
        let three = floats(&[1, 3, 1, 1], &[0.0; 3]);
        let two = floats(&[1, 2, 1, 1], &[0.0; 2]);
        let text = message("attention", &[three, two.clone(), two], &[]);
        assert!(text.contains("in1 of attention must have heads that divide the 3 of the queries"), "{text}");
    }

    #[test]
    fn what_is_not_seen_takes_no_part() {
        for (k, v, right) in [
            ([0.0, NAN], [5.0, 6.0], [5.0, NAN]),
            ([0.0, 0.0], [5.0, NAN], [5.0, NAN]),
            ([0.0, INF], [5.0, 6.0], [5.0, NAN]),
            ([NAN, 0.0], [5.0, 6.0], [NAN, NAN]),
            ([0.0, -INF], [5.0, 6.0], [5.0, 5.0]),
            ([0.0, -INF], [5.0, INF], [5.0, NAN]),
        ] {
            let inputs = [head(&[1.0, 1.0]), head(&k), head(&v)];
            assert_values(&ask("attention", &inputs, &[("causal", Bool(true))]), &[1, 1, 2, 1], &right);
        }
    }

    #[test]
    fn rows_that_see_nothing() {
        let dead = [head(&[1.0]), head(&[-INF, -INF]), head(&[5.0, 6.0])];
        let none = [head(&[1.0]), head(&[]), head(&[])];
        for (policy, of_dead, of_none) in
            [(EmptyPolicy::Natural, NAN, 0.0), (EmptyPolicy::Zero, 0.0, 0.0), (EmptyPolicy::Nan, NAN, NAN)]
        {
            for (inputs, right) in [(&dead, of_dead), (&none, of_none)] {
                let out = ask_in("attention", inputs, &[], Compute::Float64, empty(policy)).expect("an answer");
                assert_values(&out, &[1, 1, 1, 1], &[right]);
            }
        }
        assert_values(&ask("attention", &[head(&[]), head(&[1.0]), head(&[1.0])], &[]), &[1, 1, 0, 1], &[]);
    }

    #[test]
    fn factors_are_rounded_on_both_sides_of_the_softmax() {
        // tf32: the value loses its last bit, the probability 1/3 becomes 0.333251953125 (0x3eaaaaab to 0x3eaaa000).
        let inputs = [head(&[0.0]), head(&[0.0; 3]), head(&[1.0, 0.0, 0.0])];
        let out = ask_in("attention", &inputs, &[], Compute::Tf32, EdgePolicy::default()).expect("an answer");
        assert_values(&out, &[1, 1, 1, 1], &[0.333251953125]);
        let inputs = [head(&[0.0]), head(&[0.0]), head(&[1.0 + 2f64.powi(-11)])];
        let out = ask_in("attention", &inputs, &[], Compute::Tf32, EdgePolicy::default()).expect("an answer");
        assert_values(&out, &[1, 1, 1, 1], &[1.0]);
    }
}
