//! The one matrix product that every product of the built-in references goes through.

use std::ops::{Add, Mul};

/// What a product is computed in: a working precision, or wrapping integers.
pub(super) trait Term: Copy + Add<Output = Self> + Mul<Output = Self> {}

impl<T: Copy + Add<Output = T> + Mul<Output = T>> Term for T {}

/// Rows and columns of a tile: its sums fit the vector registers of AVX2 in float64.
const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// Dense `a` [m, k] times dense `b` [k, n], as dense [m, n].
///
/// Every sum starts at `zero` and takes its k products in order, one multiplication and one addition each, never fused:
/// the same bits on every processor. Nothing is skipped, so 0 * inf stays NaN. With k = 0 every sum is `zero`.
pub(super) fn multiply<T: Term>(zero: T, a: &[T], b: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    assert!(a.len() == m * k && b.len() == k * n, "operands of {} and {} for {m}x{k}x{n}", a.len(), b.len());
    let mut out = vec![zero; m * n];
    if out.is_empty() || k == 0 {
        return out;
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that `panels_avx2` asks for.
        unsafe { panels_avx2(zero, a, b, [k, n], &mut out) };
        return out;
    }
    panels(zero, a, b, [k, n], &mut out);
    out
}

/// [`panels`], compiled for processors with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn panels_avx2<T: Term>(zero: T, a: &[T], b: &[T], sizes: [usize; 2], out: &mut [T]) {
    panels(zero, a, b, sizes, out);
}

/// The product by panels of columns, each copied together first so that a tile walks memory in order.
#[inline(always)]
fn panels<T: Term>(zero: T, a: &[T], b: &[T], [k, n]: [usize; 2], out: &mut [T]) {
    if out.len() < ROWS * n {
        return few_rows(a, b, [k, n], out);
    }
    let mut panel = Vec::with_capacity(k * COLUMNS);
    let whole = n - n % COLUMNS;
    for left in (0..whole).step_by(COLUMNS) {
        panel.clear();
        panel.extend(b.chunks_exact(n).flat_map(|row| &row[left..left + COLUMNS]).copied());
        down_panel::<T, COLUMNS>(zero, a, &panel, k, &mut out[left..], n);
    }
    for left in whole..n {
        panel.clear();
        panel.extend(b.chunks_exact(n).map(|row| row[left]));
        down_panel::<T, 1>(zero, a, &panel, k, &mut out[left..], n);
    }
}

/// All rows of `a` against one panel of `WIDTH` columns.
#[inline(always)]
fn down_panel<T: Term, const WIDTH: usize>(zero: T, a: &[T], panel: &[T], k: usize, out: &mut [T], n: usize) {
    let mut blocks = a.chunks_exact(ROWS * k);
    let mut top = 0;
    for block in &mut blocks {
        tile::<T, ROWS, WIDTH>(zero, block, panel, k, &mut out[top * n..], n);
        top += ROWS;
    }
    for row in blocks.remainder().chunks_exact(k) {
        tile::<T, 1, WIDTH>(zero, row, panel, k, &mut out[top * n..], n);
        top += 1;
    }
}

/// `HEIGHT` x `WIDTH` sums, held in registers while k runs.
#[inline(always)]
fn tile<T: Term, const HEIGHT: usize, const WIDTH: usize>(
    zero: T,
    a: &[T],
    panel: &[T],
    k: usize,
    out: &mut [T],
    n: usize,
) {
    let rows: [&[T]; HEIGHT] = std::array::from_fn(|row| &a[row * k..(row + 1) * k]);
    let mut sums = [[zero; WIDTH]; HEIGHT];
    for (step, factors) in panel.chunks_exact(WIDTH).enumerate() {
        for (row, sums) in rows.iter().zip(&mut sums) {
            for (sum, &factor) in sums.iter_mut().zip(factors) {
                *sum = *sum + row[step] * factor;
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        out[row * n..row * n + WIDTH].copy_from_slice(sums);
    }
}

/// The product of so few rows that copying panels would cost more than it saves: `b` is read once, in order.
#[inline(always)]
fn few_rows<T: Term>(a: &[T], b: &[T], [k, n]: [usize; 2], out: &mut [T]) {
    for (factors, sums) in a.chunks_exact(k).zip(out.chunks_exact_mut(n)) {
        for (&factor, row) in factors.iter().zip(b.chunks_exact(n)) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum = *sum + factor * value;
            }
        }
    }
}

/// Dense [rows, columns] turned into dense [columns, rows], block by block so that both sides stay in the cache.
pub(super) fn transposed<T: Copy>(values: &[T], rows: usize, columns: usize) -> Vec<T> {
    const BLOCK: usize = 16;
    let mut turned = values.to_vec();
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    turned[column * rows + row] = values[row * columns + column];
                }
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size around the edges of a tile, against sums of whole numbers that float64 holds exactly.
    #[test]
    fn every_size_around_a_tile() {
        for m in [0, 1, 3, 4, 5, 9] {
            for k in [0, 1, 2, 7] {
                for n in [0, 1, 7, 8, 9, 17] {
                    // a[i][s] = i + 1 - 2s, b[s][j] = j - s: any element out of place shows.
                    let a: Vec<f64> = (0..m * k).map(|at| (at / k) as f64 + 1.0 - 2.0 * (at % k) as f64).collect();
                    let b: Vec<f64> = (0..k * n).map(|at| (at % n) as f64 - (at / n) as f64).collect();
                    let out = multiply(0.0, &a, &b, [m, k, n]);
                    for i in 0..m {
                        for j in 0..n {
                            let right: f64 =
                                (0..k).map(|s| (i as f64 + 1.0 - 2.0 * s as f64) * (j as f64 - s as f64)).sum();
                            assert_eq!(out[i * n + j], right, "{m}x{k}x{n} at [{i}, {j}]");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn zero_times_infinity_is_nan_wherever_it_stands() {
        for (m, n) in [1, 4, 5].into_iter().flat_map(|m| [1, 8, 9].map(|n| (m, n))) {
            let mut b = vec![1.0; 2 * n];
            b[n + n - 1] = f64::INFINITY;
            let out = multiply(0.0, &[1.0, 0.0].repeat(m), &b, [m, 2, n]);
            for (number, value) in out.iter().enumerate() {
                assert_eq!(value.is_nan(), number % n == n - 1, "element {number} of {m}x{n}");
            }
        }
    }

    #[test]
    fn transposing_across_blocks() {
        let values: Vec<(usize, usize)> = (0..17).flat_map(|row| (0..35).map(move |column| (row, column))).collect();
        let turned: Vec<(usize, usize)> = (0..35).flat_map(|column| (0..17).map(move |row| (row, column))).collect();
        assert_eq!(transposed(&values, 17, 35), turned);
        assert_eq!(transposed(&[1, 2, 3, 4, 5, 6], 2, 3), [1, 4, 2, 5, 3, 6]);
        assert_eq!(transposed::<i32>(&[], 0, 3), Vec::<i32>::new());
    }
}
