//! Softmax and its logarithm.

use crate::block;
use crate::scalar::{Real, RealScalar, Scalar};
use crate::strided::{Line, Strided, StridedMut, grid};

/// Elements of a row that a block holds at once.
pub const TILE: usize = 128;

/// One block a row, three passes: maximum, sum of exponentials, quotients.
pub fn softmax<T: RealScalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let max = block::max(x.len(), |i| x.at(i).load());
        let sum = block::sum(x.len(), |i| (x.at(i).load() - max).exp());
        let mut out = out.line(axis, row);
        for i in 0..x.len() {
            out.set(i, T::store((x.at(i).load() - max).exp() / sum));
        }
    }
}

/// Two passes: maximum and sum together, tile by tile, then quotients.
pub fn softmax_online<T: RealScalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let running = Running::over(x);
        let mut out = out.line(axis, row);
        for i in 0..x.len() {
            out.set(i, T::store((x.at(i).load() - running.max).exp() / running.sum));
        }
    }
}

/// Maximum and sum tile by tile, then `(x - max) - ln(sum)`.
pub fn log_softmax<T: RealScalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let running = Running::over(x);
        let log = running.sum.ln();
        let mut out = out.line(axis, row);
        for i in 0..x.len() {
            out.set(i, T::store((x.at(i).load() - running.max) - log));
        }
    }
}

/// The largest value so far, and the sum of `exp(x - max)` so far.
#[derive(Clone, Copy, Debug)]
pub struct Running<A> {
    /// The largest value.
    pub max: A,
    /// The sum of exponentials below it.
    pub sum: A,
}

impl<A: Real> Running<A> {
    /// Of nothing.
    pub fn new() -> Self {
        Running { max: A::LOWEST, sum: A::ZERO }
    }

    /// Of a whole line.
    pub fn over<T: Scalar<Acc = A>>(x: Line<T>) -> Self {
        let mut running = Running::<A>::new();
        for tile in grid(x.len(), TILE) {
            let load = |i| x.at(tile.start + i).load();
            let max = running.max.larger(block::max(tile.len(), load));
            // As long as everything is -inf, the sum stays 0: -inf - -inf would be NaN.
            if max == A::LOWEST {
                continue;
            }
            let sum = block::sum(tile.len(), |i| (load(i) - max).exp());
            running = Running { max, sum: running.rescaled(max) + sum };
        }
        running
    }

    /// The sum as it would be under a larger maximum.
    pub fn rescaled(&self, max: A) -> A {
        if self.max == A::LOWEST { self.sum } else { self.sum * (self.max - max).exp() }
    }
}

impl<A: Real> Default for Running<A> {
    fn default() -> Self {
        Running::new()
    }
}
