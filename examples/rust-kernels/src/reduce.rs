//! Reductions and scans along one axis.

use crate::block;
use crate::scalar::{Number, Real, RealScalar, Scalar};
use crate::strided::{Line, Strided, StridedMut, grid};

/// Elements that one block reduces.
pub const TILE: usize = 256;

/// Elements that one block scans.
pub const SCAN: usize = 64;

/// The sum in two launches: blocks leave partial sums, and one block adds those.
pub fn sum<T: Scalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        *out.element(row) = T::store(split_sum(x.line(axis, row)));
    }
}

fn split_sum<T: Scalar>(x: Line<T>) -> T::Acc {
    let partials: Vec<T::Acc> =
        grid(x.len(), TILE).map(|block| block::sum(block.len(), |i| x.at(block.start + i).load())).collect();
    block::sum(partials.len(), |i| partials[i])
}

/// The mean.
pub fn mean<T: RealScalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        *out.element(row) = T::store(split_sum(x) / T::Acc::count(x.len()));
    }
}

/// `sum((x - mean)^2) / max(n - correction, 0)`, from the moments of tiles.
pub fn var<T: RealScalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize, correction: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let moments = Moments::over(x.len(), |i| x.at(i).load());
        *out.element(row) = T::store(moments.squares / T::Acc::count(x.len().saturating_sub(correction)));
    }
}

/// The largest value; a NaN wins.
pub fn max<T: Scalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        *out.element(row) = T::store(block::max(x.len(), |i| x.at(i).load()));
    }
}

/// The place of the first largest value; the first NaN wins.
pub fn argmax<T: Scalar>(x: Strided<T>, mut out: StridedMut<i64>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let (_, place) = block::reduce(
            x.len(),
            (T::Acc::LOWEST, usize::MAX),
            |i| (x.at(i).load(), i),
            |a, b| if beats(b, a) { b } else { a },
        );
        *out.element(row) = place as i64;
    }
}

/// Whether a candidate is larger, or as large and earlier.
fn beats<A: Number>((value, place): (A, usize), (other, other_place): (A, usize)) -> bool {
    match (value.is_nan(), other.is_nan()) {
        (true, false) => true,
        (false, true) => false,
        (true, true) => place < other_place,
        (false, false) => value > other || value == other && place < other_place,
    }
}

/// The running sum: every block scans its tile, and adds what the blocks before it add up to.
pub fn cumsum<T: Scalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize) {
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let mut out = out.line(axis, row);
        let mut carry = T::Acc::ZERO;
        for tile in grid(x.len(), SCAN) {
            let mut shared = [T::Acc::ZERO; SCAN];
            for i in tile.clone() {
                shared[i - tile.start] = x.at(i).load();
            }
            let total = scan(&mut shared[..tile.len()]);
            for i in tile.clone() {
                out.set(i, T::store(carry + shared[i - tile.start]));
            }
            carry += total;
        }
    }
}

/// The inclusive scan of a tile in steps of 1, 2, 4, ... (W. D. Hillis and G. L. Steele, 1986); answers its last element.
fn scan<A: Number>(tile: &mut [A]) -> A {
    let mut step = 1;
    while step < tile.len() {
        // From the back, so that every element reads what the step before left.
        for i in (step..tile.len()).rev() {
            tile[i] = tile[i - step] + tile[i];
        }
        step *= 2;
    }
    tile[tile.len() - 1]
}

/// Count, mean and sum of squared deviations.
#[derive(Clone, Copy, Debug)]
pub struct Moments<A> {
    /// Elements.
    pub count: A,
    /// Their mean.
    pub mean: A,
    /// The sum of `(x - mean)^2`.
    pub squares: A,
}

impl<A: Real> Moments<A> {
    /// Of `load(0)` to `load(len - 1)`: two passes over each tile, and tiles merged.
    pub fn over(len: usize, load: impl Fn(usize) -> A) -> Self {
        let mut all = Moments { count: A::ZERO, mean: A::ZERO, squares: A::ZERO };
        for tile in grid(len, TILE) {
            let count = A::count(tile.len());
            let mean = block::sum(tile.len(), |i| load(tile.start + i)) / count;
            let squares = block::sum(tile.len(), |i| {
                let deviation = load(tile.start + i) - mean;
                deviation * deviation
            });
            let tile = Moments { count, mean, squares };
            all = if all.count == A::ZERO { tile } else { all.merged(tile) };
        }
        all
    }

    /// T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    /// variances", 1979.
    fn merged(self, other: Self) -> Self {
        let count = self.count + other.count;
        let difference = other.mean - self.mean;
        let share = other.count / count;
        Moments {
            count,
            mean: self.mean + difference * share,
            squares: self.squares + other.squares + difference * (difference * (self.count * share)),
        }
    }
}
