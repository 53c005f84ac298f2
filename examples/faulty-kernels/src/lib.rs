//! Kernels with one fault each. Every function is a right kernel but for the line marked `FAULT`; its comment names the
//! kind of bug report it stands for. `cargo test --test gpuemu` fails in every op, and shows what gpuemu says about each;
//! `cargo test` checks that each is caught.

pub mod accumulation;
pub mod attention;
pub mod constants;
pub mod edges;
pub mod indexing;
pub mod layouts;
pub mod state;
pub mod tails;

use gpuemu_harness::{Element, View, ViewMut};

/// Elements of a tile along the last axis, as the schema declares it.
pub const TILE: usize = 128;

/// Rows and columns of a tensor seen as a matrix of rows along its last axis; works for any rank from 1.
pub fn rows<T: Element>(x: &View<'_, T>) -> (usize, usize) {
    let columns = x.shape().last().copied().unwrap_or(1);
    (x.len().checked_div(columns).unwrap_or(0), columns)
}

/// The multi-index of a row: its number split over all axes but the last.
fn row_offset(shape: &[usize], strides: &[isize], mut row: usize) -> isize {
    let mut at = 0;
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        at += (row % shape[axis]) as isize * strides[axis];
        row /= shape[axis];
    }
    at
}

/// One element of a row, whatever the layout.
pub fn load<T: Element>(x: &View<'_, T>, row: usize, column: usize) -> T {
    let stride = x.strides().last().copied().unwrap_or(0);
    let at = x.offset() as isize + row_offset(x.shape(), x.strides(), row) + column as isize * stride;
    x.data()[at as usize]
}

/// Writes one element of a row, whatever the layout.
pub fn store<T: Element>(out: &mut ViewMut<'_, T>, row: usize, column: usize, value: T) {
    let stride = out.strides().last().copied().unwrap_or(0);
    let at = out.offset() as isize + row_offset(out.shape(), out.strides(), row) + column as isize * stride;
    out.data_mut()[at as usize] = value;
}
