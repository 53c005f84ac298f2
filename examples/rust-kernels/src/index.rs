//! Reading and adding by index.

use crate::scalar::{Number, Scalar};
use crate::strided::{Strided, StridedMut, grid};

/// Columns of a block.
pub const COLUMNS: usize = 64;

/// Rows of a table: `out[n] = table[ids[n]]`, one block a row.
pub fn embedding<T: Copy>(table: Strided<T>, ids: Strided<i64>, mut out: StridedMut<T>) {
    for row in 0..ids.shape()[0] {
        let from = ids.at([row]) as usize;
        for columns in grid(table.shape()[1], COLUMNS) {
            for column in columns {
                out.set([row, column], table.at([from, column]));
            }
        }
    }
}

/// `out[r, p] = x[r, index[r, p]]`.
pub fn gather<T: Copy>(x: Strided<T>, index: Strided<i64>, mut out: StridedMut<T>) {
    let &[rows, picks] = index.shape() else { panic!("gather by an index that is no matrix") };
    for row in 0..rows {
        for picks in grid(picks, COLUMNS) {
            for pick in picks {
                out.set([row, pick], x.at([row, index.at([row, pick]) as usize]));
            }
        }
    }
}

/// `out = base`, then `out[index[n, c], c] += src[n, c]`. A block owns some columns and adds in shared memory, in
/// the wide type, so that no two blocks meet in one element.
pub fn scatter_add<T: Scalar>(base: Strided<T>, index: Strided<i64>, src: Strided<T>, mut out: StridedMut<T>) {
    let (&[rows, columns], &[sources, _]) = (base.shape(), index.shape()) else {
        panic!("scatter_add of tensors that are no matrices")
    };
    for block in grid(columns, COLUMNS) {
        let width = block.len();
        let mut shared = vec![T::Acc::ZERO; rows * width];
        for row in 0..rows {
            for column in block.clone() {
                shared[row * width + column - block.start] = base.at([row, column]).load();
            }
        }
        for source in 0..sources {
            for column in block.clone() {
                let row = index.at([source, column]) as usize;
                shared[row * width + column - block.start] += src.at([source, column]).load();
            }
        }
        for row in 0..rows {
            for column in block.clone() {
                out.set([row, column], T::store(shared[row * width + column - block.start]));
            }
        }
    }
}
