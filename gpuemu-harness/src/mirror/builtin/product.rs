//! Matrix products: matmul, batched_matmul and linear.

use super::arguments::{Arguments, broadcast, broadcast_layout, reals};
use super::gemm::{Term, multiply, transposed};
use super::operands::{all_integers, empty_sum, factors, integer_answer, propagates_nan};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::Array;
use std::borrow::Cow;
use std::num::Wrapping;

/// `out[i, j] = sum_k a[i, k] b[k, j]`: a [M, K] (stored as [K, M] with `transpose_a`), b [K, N] (stored as [N, K] with
/// `transpose_b`), out [M, N].
///
/// Products are summed in the order of k. NaN and infinities propagate, 0 * inf is NaN. With K = 0 every element is 0,
/// under `empty = "nan"` NaN. Integers give exact sums, wrapped to the output's dtype.
pub fn matmul<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    for role in 0..2 {
        if arguments.input(role).shape.len() != 2 {
            return Err(arguments.shape_error(role, "two axes"));
        }
    }
    batches::<R>(arguments)
}

/// [`matmul`] of each matrix of a batch: a [..., M, K], b [..., K, N], out [..., M, N]. The leading axes are broadcast
/// against one another; an empty batch answers nothing.
pub fn batched_matmul<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    for role in 0..2 {
        if arguments.input(role).shape.len() < 3 {
            return Err(arguments.shape_error(role, "three axes or more"));
        }
    }
    batches::<R>(arguments)
}

fn batches<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    propagates_nan(arguments)?;
    let plan = Plan::new(arguments)?;
    let shape = plan.output_shape();
    if let Some(integers) = all_integers(arguments, 2) {
        return integer_answer(arguments, &shape, plan.run(Wrapping(0), &integers[0], &integers[1]));
    }
    let zero = if plan.sizes[1] == 0 { empty_sum(arguments) } else { R::ZERO };
    let (a, b) = (factors::<R>(arguments.input(0)), factors::<R>(arguments.input(1)));
    arguments.answer(&shape, plan.run(zero, &a, &b))
}

/// Which matrices are multiplied with which.
struct Plan {
    /// M, K and N.
    sizes: [usize; 3],
    /// Whether each operand is stored transposed.
    transpose: [bool; 2],
    /// Leading axes of the output.
    batch: Vec<usize>,
    /// The matrix of each operand that every matrix of the output reads.
    sources: [Vec<usize>; 2],
}

impl Plan {
    fn new(arguments: &Arguments<'_>) -> Result<Plan> {
        let transpose = [arguments.bool("transpose_a")?, arguments.bool("transpose_b")?];
        let [(a_leading, a), (b_leading, b)] = [0, 1].map(|role| {
            let (leading, &[rows, columns]) = arguments.input(role).shape.split_last_chunk().expect("two axes or more");
            (leading, if transpose[role] { [columns, rows] } else { [rows, columns] })
        });
        if a[1] != b[0] {
            return Err(Error::Config(format!(
                "{} sums over {} in {} {:?} but {} in {} {:?}",
                arguments.name(),
                a[1],
                arguments.input_name(0),
                arguments.input(0).shape,
                b[0],
                arguments.input_name(1),
                arguments.input(1).shape
            )));
        }
        let batch = broadcast(a_leading, b_leading)?;
        let sources = [a_leading, b_leading].map(|leading| broadcast_layout(leading, &batch).positions().collect());
        Ok(Plan { sizes: [a[0], a[1], b[1]], transpose, batch, sources })
    }

    fn output_shape(&self) -> Vec<usize> {
        [&self.batch[..], &[self.sizes[0], self.sizes[2]]].concat()
    }

    fn run<T: Term>(&self, zero: T, a: &[T], b: &[T]) -> Vec<T> {
        let [m, k, n] = self.sizes;
        let a = Operand::new(a, [m, k], self.transpose[0]);
        let b = Operand::new(b, [k, n], self.transpose[1]);
        let mut out = Vec::with_capacity(self.sources[0].len() * m * n);
        for (&left, &right) in self.sources[0].iter().zip(&self.sources[1]) {
            out.extend(multiply(zero, a.matrix(left), b.matrix(right), self.sizes));
        }
        out
    }
}

/// Dense matrices one after the other, each turned the way the product reads it.
struct Operand<'a, T: Copy> {
    values: Cow<'a, [T]>,
    size: usize,
}

impl<'a, T: Copy> Operand<'a, T> {
    fn new(values: &'a [T], [rows, columns]: [usize; 2], stored_transposed: bool) -> Self {
        let size = rows * columns;
        let values = if stored_transposed && size > 0 {
            values.chunks_exact(size).flat_map(|matrix| transposed(matrix, columns, rows)).collect()
        } else {
            Cow::Borrowed(values)
        };
        Operand { values, size }
    }

    fn matrix(&self, number: usize) -> &[T] {
        &self.values[number * self.size..][..self.size]
    }
}

/// `out[..., o] = sum_i x[..., i] weight[o, i] + bias[o]`: x [..., I], weight [O, I], bias [O] or none, out [..., O].
///
/// The bias is added last. Everything else as [`matmul`].
pub fn linear<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    propagates_nan(arguments)?;
    let (x, weight) = (arguments.input(0), arguments.input(1));
    let Some((&inner, leading)) = x.shape.split_last() else {
        return Err(arguments.shape_error(0, "at least one axis"));
    };
    let outer = match weight.shape[..] {
        [outer, own] if own == inner => outer,
        _ => return Err(arguments.shape_error(1, &format!("shape [O, {inner}]"))),
    };
    if arguments.optional(2).is_some_and(|bias| bias.shape != [outer]) {
        return Err(arguments.shape_error(2, &format!("shape [{outer}]")));
    }
    let shape = [leading, &[outer]].concat();
    let sizes = [leading.iter().product(), inner, outer];
    if let Some(integers) = all_integers(arguments, 3) {
        let weight = transposed(&integers[1], outer, inner);
        let mut out = multiply(Wrapping(0), &integers[0], &weight, sizes);
        if let Some(bias) = integers.get(2) {
            add_to_rows(&mut out, bias);
        }
        return integer_answer(arguments, &shape, out);
    }
    let zero = if inner == 0 { empty_sum(arguments) } else { R::ZERO };
    let weight = transposed(&factors::<R>(weight), outer, inner);
    let mut out = multiply(zero, &factors::<R>(x), &weight, sizes);
    if let Some(bias) = arguments.optional(2) {
        add_to_rows(&mut out, &reals::<R>(bias));
    }
    arguments.answer(&shape, out)
}

fn add_to_rows<T: Term>(out: &mut [T], bias: &[T]) {
    if bias.is_empty() {
        return;
    }
    for row in out.chunks_exact_mut(bias.len()) {
        for (value, &bias) in row.iter_mut().zip(bias) {
            *value = *value + bias;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operands::asking::*;
    use gpuemu_contract::ParamValue::Bool;
    use gpuemu_contract::{Compute, EdgePolicy, EmptyPolicy, NanPolicy};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    #[test]
    fn two_by_three_times_three_by_two_stored_four_ways() {
        // [1 2 3; 4 5 6] [7 8; 9 10; 11 12] = [58 64; 139 154]
        let (a, a_turned) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let (b, b_turned) = ([7.0, 8.0, 9.0, 10.0, 11.0, 12.0], [7.0, 9.0, 11.0, 8.0, 10.0, 12.0]);
        for (turn_a, turn_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let a = if turn_a { floats(&[3, 2], &a_turned) } else { floats(&[2, 3], &a) };
            let b = if turn_b { floats(&[2, 3], &b_turned) } else { floats(&[3, 2], &b) };
            let params = [("transpose_a", Bool(turn_a)), ("transpose_b", Bool(turn_b))];
            assert_values(&ask("matmul", &[a, b], &params), &[2, 2], &[58.0, 64.0, 139.0, 154.0]);
        }
    }

    #[test]
    fn batches_broadcast() {
        let a = floats(&[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = floats(&[3, 2, 1], &[1.0, 0.0, 0.0, 1.0, 10.0, 10.0]);
        let out = ask("batched_matmul", &[a.clone(), b], &[]);
        assert_values(&out, &[2, 3, 1, 1], &[1.0, 2.0, 30.0, 3.0, 4.0, 70.0]);
        assert_values(&ask("batched_matmul", &[a, floats(&[0, 2, 1], &[])], &[]), &[2, 0, 1, 1], &[]);
    }

    #[test]
    fn linear_adds_its_bias_to_every_row() {
        let (x, weight) =
            (floats(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]), floats(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, -1.0]));
        let out = ask("linear", &[x.clone(), weight.clone()], &[]);
        assert_values(&out, &[2, 1, 3], &[1.0, 2.0, -1.0, 3.0, 4.0, -1.0]);
        let out = ask("linear", &[x, weight, floats(&[3], &[10.0, 20.0, 30.0])], &[]);
        assert_values(&out, &[2, 1, 3], &[11.0, 22.0, 29.0, 13.0, 24.0, 29.0]);
    }

    #[test]
    fn a_sum_over_nothing() {
        let inputs = [floats(&[1, 0], &[]), floats(&[0, 2], &[])];
        for (policy, value) in [(EmptyPolicy::Natural, 0.0), (EmptyPolicy::Zero, 0.0), (EmptyPolicy::Nan, NAN)] {
            let out = ask_in("matmul", &inputs, &[], Compute::Float32, empty(policy)).expect("an answer");
            assert_values(&out, &[1, 2], &[value, value]);
        }
        let out = ask("linear", &[floats(&[1, 0], &[]), floats(&[2, 0], &[]), floats(&[2], &[3.0, 4.0])], &[]);
        assert_values(&out, &[1, 2], &[3.0, 4.0]);
        assert_values(&ask("matmul", &[floats(&[0, 1], &[]), floats(&[1, 2], &[1.0, 2.0])], &[]), &[0, 2], &[]);
    }

    #[test]
    fn nan_and_infinity_propagate() {
        let a = floats(&[3, 2], &[0.0, 1.0, 1.0, 1.0, INF, 1.0]);
        let b = floats(&[2, 3], &[INF, 1.0, NAN, -INF, 2.0, 3.0]);
        assert_values(&ask("matmul", &[a, b], &[]), &[3, 3], &[NAN, 2.0, NAN, NAN, 3.0, NAN, NAN, INF, NAN]);
        let ignore = EdgePolicy { nan: NanPolicy::Ignore, ..EdgePolicy::default() };
        let inputs = [floats(&[1, 1], &[1.0]), floats(&[1, 1], &[1.0])];
        let error = ask_in("matmul", &inputs, &[], Compute::Float64, ignore).expect_err("an error").to_string();
        assert!(error.starts_with("matmul has no nan = \"ignore\""), "{error}");
    }

    /// What each precision makes of `a . b` (all of one row and one column).
    #[test]
    fn each_precision_rounds_where_it_should() {
        use Compute::{BFloat16, Float8, Float16, Float32, Float64, Tf32};
        let fine = 1.0 + 2f64.powi(-11); // halfway between neighbours of tf32 and float16: rounds to 1
        let table: &[(Compute, &[f64], &[f64], f64)] = &[
            (Float64, &[fine], &[1.0], fine),
            (Float32, &[fine], &[1.0], fine),
            (Tf32, &[fine], &[1.0], 1.0),
            (Tf32, &[1.0], &[fine], 1.0),
            (Float16, &[fine], &[1.0], 1.0),
            (BFloat16, &[1.0 + 2f64.powi(-7)], &[1.0], 1.0 + 2f64.powi(-7)),
            (BFloat16, &[1.0 + 2f64.powi(-8)], &[1.0], 1.0),
            (Float8, &[1.0625], &[1.0], 1.0),
            (Float8, &[1.125], &[1.125], 1.265625),
            // Sums: float32 for tf32 and fp8, their own 16 bits for the halves.
            (Float64, &[1e8, 1.0, -1e8], &[1.0, 1.0, 1.0], 1.0),
            (Float32, &[1e8, 1.0, -1e8], &[1.0, 1.0, 1.0], 0.0),
            (Tf32, &[2048.0, 1.0], &[1.0, 1.0], 2049.0),
            (Float8, &[64.0, 1.0], &[64.0, 1.0], 4097.0),
            (Float16, &[2048.0, 1.0], &[1.0, 1.0], 2048.0),
            (BFloat16, &[256.0, 1.0], &[1.0, 1.0], 256.0),
            (Float16, &[256.0], &[256.0], INF),
        ];
        for &(precision, a, b, right) in table {
            let inputs = [floats(&[1, a.len()], a), floats(&[b.len(), 1], b)];
            let out = ask_in("matmul", &inputs, &[], precision, EdgePolicy::default()).expect("an answer");
            assert_eq!(out.at(0), right, "{precision:?} {a:?} {b:?}");
        }
        // The bias is no factor.
        let inputs = [floats(&[1, 1], &[0.0]), floats(&[1, 1], &[0.0]), floats(&[1], &[fine])];
        let out = ask_in("linear", &inputs, &[], Tf32, EdgePolicy::default()).expect("an answer");
        assert_eq!(out.at(0), fine);
    }

    #[test]
    fn integers_are_exact_and_wrap() {
        let big = (1 << 53) + 1; // float64 has no such number
        let out = ask("matmul", &[integers(&[1, 2], &[big, 1]), integers(&[2, 1], &[1, 1])], &[]);
        assert_eq!(out.integers(), Some(&[big + 1][..]));
        let out = ask("linear", &[integers(&[1, 1], &[i64::MAX]), integers(&[1, 1], &[2]), integers(&[1], &[3])], &[]);
        assert_eq!(out.integers(), Some(&[1][..]));
    }

    #[test]
    fn shapes_that_do_not_fit_are_named() {
        let (tall, flat) = (floats(&[3, 2], &[0.0; 6]), floats(&[2, 3], &[0.0; 6]));
        for (name, inputs, says) in [
            ("matmul", vec![tall.clone(), tall.clone()], "matmul sums over 2 in in0 [3, 2] but 3 in in1 [3, 2]"),
            ("matmul", vec![floats(&[2], &[0.0; 2]), flat.clone()], "in0 of matmul must have two axes"),
            ("batched_matmul", vec![flat.clone(), tall.clone()], "in0 of batched_matmul must have three axes"),
            ("linear", vec![tall.clone(), flat.clone()], "in1 of linear must have shape [O, 2]"),
            ("linear", vec![tall.clone(), tall, floats(&[2], &[0.0; 2])], "in2 of linear must have shape [3]"),
        ] {
            let text = message(name, &inputs, &[]);
            assert!(text.contains(says), "{text}");
        }
    }
}
