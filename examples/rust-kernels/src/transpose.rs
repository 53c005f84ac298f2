//! Axes in another order.

use crate::strided::{Strided, StridedMut, grid};

/// Rows and columns of a tile.
pub const TILE: usize = 32;

/// The last two axes of x [B, M, N] exchanged, through tiles, so that both sides are walked along their rows.
pub fn transpose<T: Copy + Default>(x: Strided<T>, mut out: StridedMut<T>) {
    let &[batch, rows, columns] = x.shape() else { panic!("transpose of a tensor that is not [B, M, N]") };
    for number in 0..batch {
        for row_tile in grid(rows, TILE) {
            for column_tile in grid(columns, TILE) {
                let mut shared = [[T::default(); TILE]; TILE];
                for row in row_tile.clone() {
                    for column in column_tile.clone() {
                        shared[row - row_tile.start][column - column_tile.start] = x.at([number, row, column]);
                    }
                }
                for column in column_tile.clone() {
                    for row in row_tile.clone() {
                        out.set([number, column, row], shared[row - row_tile.start][column - column_tile.start]);
                    }
                }
            }
        }
    }
}
