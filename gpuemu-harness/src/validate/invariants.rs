//! Invariants: what must hold of an answer whatever the mirror says.

use super::compare::plain;
use super::grid::Grid;
use super::verdict::{Check, Failure, Mismatch};
use crate::tensor::{Array, Layout, Tensor};
use gpuemu_contract::Invariants;

/// Checks the invariants of one output, in the order in which the contract lists them; the first that does not hold.
///
/// Elements (of `rows_sum_to`: rows) that the mirror itself has not finite are left out: a NaN that was put into the
/// input rightly comes out. NaN is neither below zero nor out of bounds; `no_nan` is about it.
///
/// - `bounded` allows half a step of the dtype at each end, for an answer that was rounded onto it.
/// - `rows_sum_to` allows `sum of half a step of every element + (n + 16) * unit_roundoff * sum of |elements|` for a row
///   of `n`: each element was rounded to the dtype once, and the row was normalised by a sum whose error is at most
///   `n * unit_roundoff` of it in any order; 16 more for the exponential and the division.
///
/// `first_input` is the shape of the op's first input, `unit_roundoff` that of the working precision.
pub fn check(
    output: &str,
    got: &Tensor,
    expected: &Array,
    first_input: Option<&[usize]>,
    unit_roundoff: f64,
    invariants: &Invariants,
) -> Option<Failure> {
    if invariants.shape_preserved
        && let Some(shape) = first_input
        && got.shape() != shape
    {
        let message = format!("{output} has shape {:?}, the first input {shape:?} (shape_preserved)", got.shape());
        return Some(plain(Check::Invariant, output, message));
    }
    let elementwise = invariants.non_negative || invariants.no_nan || invariants.no_inf || invariants.bounded.is_some();
    if !elementwise && invariants.rows_sum_to.is_none() || got.is_empty() {
        return None;
    }
    let values = got.to_array();
    let grid = Grid::of(got.dtype());
    let judged = |number: usize| expected.at(number).is_finite();
    let first = |broken: &dyn Fn(f64) -> bool| (0..values.len()).find(|&n| judged(n) && broken(values.at(n)));
    let fail = |number: usize, allowed: f64, message: String| {
        let (got, expected) = (values.at(number), expected.at(number));
        let index = Layout::index_of(&values.shape, number);
        let first = Mismatch { index, expected, got, allowed, ulp: grid.ulp(got, expected) };
        Some(Failure { first: Some(first), ..plain(Check::Invariant, output, message) })
    };
    let place = |number: usize| Layout::index_of(&values.shape, number);
    if invariants.non_negative
        && let Some(at) = first(&|value| value < 0.0)
    {
        let message = format!("{output} is {} at {:?}, below zero (non_negative)", values.at(at), place(at));
        return fail(at, 0.0, message);
    }
    if invariants.no_nan
        && let Some(at) = first(&f64::is_nan)
    {
        return fail(at, 0.0, format!("{output} is NaN at {:?} (no_nan)", place(at)));
    }
    if invariants.no_inf
        && let Some(at) = first(&f64::is_infinite)
    {
        return fail(at, 0.0, format!("{output} is {} at {:?} (no_inf)", values.at(at), place(at)));
    }
    if let Some(target) = invariants.rows_sum_to {
        let length = values.shape.last().copied().unwrap_or(1);
        for start in (0..values.len()).step_by(length.max(1)) {
            let row = start..start + length;
            if !row.clone().all(judged) {
                continue;
            }
            let sum: f64 = row.clone().map(|number| values.at(number)).sum();
            let magnitudes: f64 = row.clone().map(|number| values.at(number).abs()).sum();
            let rounding: f64 = row.map(|number| grid.step(values.at(number)) / 2.0).sum();
            let allowed = rounding + (length as f64 + 16.0) * unit_roundoff * magnitudes;
            let right = (sum - target).abs() <= allowed;
            if !right {
                let index = place(start);
                let row = &index[..index.len().saturating_sub(1)];
                let message = format!(
                    "row {row:?} of {output} sums to {sum}, not to {target}; allowed is {allowed:.3e} (rows_sum_to)"
                );
                return Some(plain(Check::Invariant, output, message));
            }
        }
    }
    if let Some((low, high)) = invariants.bounded {
        let (least, most) = (low - grid.step(low) / 2.0, high + grid.step(high) / 2.0);
        if let Some(at) = first(&|value| value < least || value > most) {
            let message =
                format!("{output} is {} at {:?}, outside of {low} to {high} (bounded)", values.at(at), place(at));
            return fail(at, 0.0, message);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_contract::DType;
    use half::f16;

    const U: f64 = 5.960464477539063e-8;

    fn run(got: &[f32], expected: &[f64], invariants: &Invariants) -> Option<String> {
        let shape = [got.len() / 2, 2];
        let expected = Array::float(DType::Float32, &shape, expected.to_vec());
        check("out", &Tensor::from_slice(&shape, got), &expected, Some(&[1, 2]), U, invariants).map(|f| f.message)
    }

    #[test]
    fn each_invariant_holds_and_fails() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let non_negative = Invariants { non_negative: true, ..Invariants::default() };
        let no_nan = Invariants { no_nan: true, ..Invariants::default() };
        let no_inf = Invariants { no_inf: true, ..Invariants::default() };
        let sums = Invariants { rows_sum_to: Some(1.0), ..Invariants::default() };
        let bounded = Invariants { bounded: Some((-1.0, 1.0)), ..Invariants::default() };
        let shape = Invariants { shape_preserved: true, ..Invariants::default() };
        let ok = [0.0, 0.0];
        let table: [(&Invariants, Vec<f32>, Vec<f64>, Option<&str>); 17] = [
            (&non_negative, vec![0.0, -0.0], ok.to_vec(), None),
            (&non_negative, vec![nan, inf], ok.to_vec(), None),
            (&non_negative, vec![1.0, -0.5], ok.to_vec(), Some("out is -0.5 at [0, 1], below zero (non_negative)")),
            (&no_nan, vec![inf, 1.0], ok.to_vec(), None),
            (&no_nan, vec![1.0, nan], ok.to_vec(), Some("out is NaN at [0, 1] (no_nan)")),
            (&no_nan, vec![1.0, nan], vec![0.0, f64::NAN], None),
            (&no_inf, vec![nan, 1.0], ok.to_vec(), None),
            (&no_inf, vec![-inf, 1.0], ok.to_vec(), Some("out is -inf at [0, 0] (no_inf)")),
            (&sums, vec![0.25, 0.75], ok.to_vec(), None),
            (&sums, vec![0.25, 0.75000006], ok.to_vec(), None),
            (&sums, vec![0.25, 0.75, 0.5, 0.4], [0.0; 4].to_vec(), Some("row [1] of out sums to 0.900")),
            (&sums, vec![0.25, 0.75, nan, nan], vec![0.0, 0.0, f64::NAN, f64::NAN], None),
            (&sums, vec![nan, nan], ok.to_vec(), Some("row [0] of out sums to NaN")),
            (&bounded, vec![-1.0, 1.0], ok.to_vec(), None),
            (&bounded, vec![-1.5, 1.0], ok.to_vec(), Some("out is -1.5 at [0, 0], outside of -1 to 1 (bounded)")),
            (&shape, vec![1.0, 1.0], ok.to_vec(), None),
            (&shape, vec![1.0; 4], [0.0; 4].to_vec(), Some("out has shape [2, 2], the first input [1, 2]")),
        ];
        for (invariants, got, expected, message) in table {
            let found = run(&got, &expected, invariants);
            match message {
                None => assert_eq!(found, None, "{got:?}"),
                Some(start) => assert!(found.as_deref().is_some_and(|found| found.starts_with(start)), "{found:?}"),
            }
        }
    }

    #[test]
    fn rows_of_narrow_dtypes_may_miss_by_their_rounding() {
        let sums = Invariants { rows_sum_to: Some(1.0), ..Invariants::default() };
        // 2^k equal parts are exact; a third is not: three times float16's 0.33325 is 0.99976.
        for (parts, value, right) in [(3, 1.0 / 3.0, true), (7, 1.0 / 7.0, true), (3, 0.332, false)] {
            let got = Tensor::from_slice(&[parts], &vec![f16::from_f64(value); parts]);
            let expected = Array::float(DType::Float16, &[parts], vec![value; parts]);
            assert_eq!(check("out", &got, &expected, None, U, &sums).is_none(), right, "{parts} {value}");
        }
    }
}
