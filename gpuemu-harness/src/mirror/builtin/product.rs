//! Matrix products: matmul, batched_matmul and linear.

use super::arguments::{Arguments, reals};
use super::gemm::{Term, multiply, transposed};
use super::operands::{all_integers, empty_sum, factors, integer_answer, propagates_nan};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::Array;
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
    transpose: [bool; 2],
    /// Leading axes of the output.
    batch: Vec<usize>,
    /// Leading axes of the operands.
    leading: [Vec<usize>; 2],
}

impl Plan {
    fn new(arguments: &Arguments<'_>) -> Result<Plan> {
        let transpose = [arguments.bool("transpose_a")?, arguments.bool("transpose_b")?];
        let mut leading = [Vec::new(), Vec::new()];
        let mut matrices = [[0, 0]; 2];
        for role in 0..2 {
            let (batch, matrix) =
                arguments.input(role).shape.split_last_chunk::<2>().expect("checked to have two axes");
            leading[role] = batch.to_vec();
            matrices[role] = if transpose[role] { [matrix[1], matrix[0]] } else { *matrix };
        }
        let [[m, k], [inner, n]] = matrices;
        if k != inner {
            return Err(Error::Config(format!(
                "{} sums over {k} in {} {:?} but {inner} in {} {:?}",
                arguments.name(),
                arguments.input_name(0),
                arguments.input(0).shape,
                arguments.input_name(1),
                arguments.input(1).shape
            )));
        }
        let rank = leading[0].len().max(leading[1].len());
        let mut batch = Vec::with_capacity(rank);
        for axis in 0..rank {
            let size = |shape: &[usize]| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
            batch.push(match (size(&leading[0]), size(&leading[1])) {
                (left, right) if left == right || right == 1 => left,
                (1, right) => right,
                _ => {
                    return Err(arguments.shape_error(1, &format!("leading axes that broadcast with {:?}", leading[0])));
                }
            });
        }
        Ok(Plan { sizes: [m, k, n], transpose, batch, leading })
    }

    fn output_shape(&self) -> Vec<usize> {
        [&self.batch[..], &[self.sizes[0], self.sizes[2]]].concat()
    }

    fn run<T: Term>(&self, zero: T, a: &[T], b: &[T]) -> Vec<T> {
        let [m, k, n] = self.sizes;
        let a = Operand::new(a, [m, k], self.transpose[0]);
        let b = Operand::new(b, [k, n], self.transpose[1]);
        let count = self.batch.iter().product::<usize>();
        let mut out = Vec::with_capacity(count * m * n);
        for number in 0..count {
            let a = a.matrix(self.source(0, number));
            out.extend(multiply(zero, a, b.matrix(self.source(1, number)), self.sizes));
        }
        out
    }

    /// The matrix of an operand that matrix `number` of the output reads.
    fn source(&self, operand: usize, mut number: usize) -> usize {
        let leading = &self.leading[operand];
        let (mut source, mut step) = (0, 1);
        // The last axes first: that is how broadcasting lines them up.
        for (axis, &size) in self.batch.iter().rev().enumerate() {
            let (coordinate, own) = (number % size, leading.iter().rev().nth(axis).copied().unwrap_or(1));
            number /= size;
            if own != 1 {
                source += coordinate * step;
            }
            step *= own;
        }
        source
    }
}

/// Dense matrices one after the other, each turned the way the product reads it.
struct Operand<T> {
    values: Vec<T>,
    size: usize,
}

impl<T: Copy> Operand<T> {
    fn new(values: &[T], [rows, columns]: [usize; 2], stored_transposed: bool) -> Self {
        let size = rows * columns;
        let values = if stored_transposed && size > 0 {
            values.chunks_exact(size).flat_map(|matrix| transposed(matrix, columns, rows)).collect()
        } else {
            values.to_vec()
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
