//! Matrix products in tiles.

use crate::scalar::{Number, Scalar};
use crate::strided::{Strided, StridedMut, grid};

/// Rows and columns of the output that a block computes.
pub const TILE: usize = 16;

/// How deep a tile of the operands is.
pub const DEPTH: usize = 32;

/// `a b`: a [M, K], b [K, N], out [M, N].
pub fn matmul<T: Scalar>(a: Strided<T>, b: Strided<T>, mut out: StridedMut<T>) {
    let (&[rows, inner], &[_, columns]) = (a.shape(), b.shape()) else {
        panic!("matmul of tensors that are no matrices")
    };
    let a = |row, k| a.at([row, k]).load();
    let b = |k, column| b.at([k, column]).load();
    multiply([rows, inner, columns], a, b, |row, column, sum| out.set([row, column], T::store(sum)));
}

/// A [`matmul`] for each matrix of the batch: a [B, M, K], b [B, K, N], out [B, M, N].
pub fn batched_matmul<T: Scalar>(a: Strided<T>, b: Strided<T>, mut out: StridedMut<T>) {
    let (&[batch, rows, inner], &[_, _, columns]) = (a.shape(), b.shape()) else {
        panic!("batched_matmul of tensors that are no batches of matrices")
    };
    for number in 0..batch {
        let a = |row, k| a.at([number, row, k]).load();
        let b = |k, column| b.at([number, k, column]).load();
        multiply([rows, inner, columns], a, b, |row, column, sum| out.set([number, row, column], T::store(sum)));
    }
}

/// `x weight^T + bias`: x [M, K], weight [N, K], bias [N], out [M, N]. The bias is added before the sum is rounded.
pub fn linear<T: Scalar>(x: Strided<T>, weight: Strided<T>, bias: Option<Strided<T>>, mut out: StridedMut<T>) {
    let (&[rows, inner], &[columns, _]) = (x.shape(), weight.shape()) else {
        panic!("linear of tensors that are no matrices")
    };
    let x = |row, k| x.at([row, k]).load();
    let transposed = |k, column| weight.at([column, k]).load();
    multiply([rows, inner, columns], x, transposed, |row, column, sum| {
        let sum = bias.map_or(sum, |bias| sum + bias.at([column]).load());
        out.set([row, column], T::store(sum));
    });
}

/// Every block computes a tile of the output: it loads tiles of both operands, with zeros past their ends, and
/// accumulates their product.
fn multiply<A: Number>(
    [rows, inner, columns]: [usize; 3],
    a: impl Fn(usize, usize) -> A,
    b: impl Fn(usize, usize) -> A,
    mut store: impl FnMut(usize, usize, A),
) {
    for row_tile in grid(rows, TILE) {
        for column_tile in grid(columns, TILE) {
            let mut sums = [[A::ZERO; TILE]; TILE];
            for depth in grid(inner, DEPTH) {
                let (mut left, mut right) = ([[A::ZERO; DEPTH]; TILE], [[A::ZERO; TILE]; DEPTH]);
                for k in depth.clone() {
                    for row in row_tile.clone() {
                        left[row - row_tile.start][k - depth.start] = a(row, k);
                    }
                    for column in column_tile.clone() {
                        right[k - depth.start][column - column_tile.start] = b(k, column);
                    }
                }
                for (sums, left) in sums.iter_mut().zip(&left) {
                    for (left, right) in left.iter().zip(&right) {
                        for (sum, &right) in sums.iter_mut().zip(right) {
                            *sum += *left * right;
                        }
                    }
                }
            }
            for row in row_tile.clone() {
                for column in column_tile.clone() {
                    store(row, column, sums[row - row_tile.start][column - column_tile.start]);
                }
            }
        }
    }
}
