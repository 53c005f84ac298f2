//! Reductions and scans along one axis.
//!
//! Under `nan = "ignore"` a NaN counts as absent (in a running sum: as 0). A row with nothing in it, or nothing but
//! ignored NaNs, answers what each operator states, unless `empty = "zero"` or `empty = "nan"` says otherwise.

use super::arguments::{Arguments, Rows};
use super::norm::squared_deviations;
use super::operands::{all_integers, integer_answer};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::{Array, Values};
use gpuemu_contract::{DType, EmptyPolicy, NanPolicy};
use std::borrow::Cow;
use std::num::Wrapping;

/// The sum; of nothing 0. Integers for an integer output are exact modulo its range.
pub fn sum<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    if !arguments.output_dtype().is_float()
        && let Some(integers) = all_integers(arguments, 1)
    {
        let (rows, shape) = reduced(arguments)?;
        integers_have_no_nan(arguments, &rows)?;
        let sums = rows.reduce(&integers[0], |row| row.iter().copied().sum());
        return integer_answer(arguments, &shape, sums);
    }
    reduce::<R>(arguments, R::ZERO, R::sum)
}

/// The mean; of nothing NaN.
pub fn mean<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    reduce::<R>(arguments, R::NAN, |row| R::sum(row) / R::from_f64(row.len() as f64))
}

/// `sum((x - mean)^2) / max(n - correction, 0)`, in two passes; of nothing NaN. As in PyTorch, `correction = n` gives
/// NaN for a constant row and +inf for any other.
pub fn var<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let correction = arguments.int("correction")?;
    reduce::<R>(arguments, R::NAN, |row| {
        let mean = R::sum(row) / R::from_f64(row.len() as f64);
        let freedom = (row.len() as i64).saturating_sub(correction).max(0);
        squared_deviations(row, mean) / R::from_f64(freedom as f64)
    })
}

/// The largest value; of nothing -inf, or the smallest integer. A NaN wins.
pub fn max<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    extreme::<R>(arguments, true)
}

/// The smallest value; of nothing +inf, or the largest integer. A NaN wins.
pub fn min<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    extreme::<R>(arguments, false)
}

/// The place of the first largest value; the first NaN wins, or, ignored, is passed over (nothing but NaNs: place 0).
/// Of nothing there is no place: an error, unless `empty = "zero"`.
pub fn argmax<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let (rows, shape) = reduced(arguments)?;
    if rows.length == 0 && rows.count() > 0 && arguments.edges().empty != EmptyPolicy::Zero {
        return Err(Error::ReferenceFailed(
            "argmax: an axis of size 0 has no largest element; keep the axis above 0 or set empty = \"zero\"".into(),
        ));
    }
    let ignore = arguments.edges().nan == NanPolicy::Ignore;
    let x = arguments.input(0);
    let places = match &x.values {
        Values::Integer(values) if x.dtype == DType::UInt64 => {
            rows.reduce(values, |row| first_best(row, |value, best| (value as u64) > best as u64, |_| false, ignore))
        }
        Values::Integer(values) => {
            rows.reduce(values, |row| first_best(row, |value, best| value > best, |_| false, ignore))
        }
        Values::Float(_) => {
            let beats = |value: R, best: R| value > best;
            rows.reduce_reals(x, |row: &[R]| first_best(row, beats, R::is_nan, ignore))
        }
    };
    integer_answer(arguments, &shape, places.into_iter().map(|place| Wrapping(place as i64)).collect())
}

/// The running sum. A NaN or an infinity reaches everything after it.
pub fn cumsum<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let rows = Rows::along(&x.shape, arguments.axis(&x.shape)?);
    if !arguments.output_dtype().is_float()
        && let Some(integers) = all_integers(arguments, 1)
    {
        let sums = rows.map(&integers[0], |row, out| {
            out.extend(row.iter().scan(Wrapping(0), |sum, &value| {
                *sum += value;
                Some(*sum)
            }));
        });
        return integer_answer(arguments, &x.shape, sums);
    }
    let ignore = arguments.edges().nan == NanPolicy::Ignore;
    let sums = rows.map_reals(x, |row: &[R], out| {
        let (mut sum, mut lost) = (R::ZERO, R::ZERO);
        out.extend(row.iter().map(|&value| {
            let value = if ignore && value.is_nan() { R::ZERO } else { value };
            let next = sum + value;
            if R::PRECISE {
                // What the addition rounded away (A. Neumaier, 1974); not a number once a sum is not finite.
                let (large, small) = if sum.abs() >= value.abs() { (sum, value) } else { (value, sum) };
                lost += (large - next) + small;
            }
            sum = next;
            if R::PRECISE && sum.abs() < R::INFINITY { sum + lost } else { sum }
        }));
    });
    arguments.answer(&x.shape, sums)
}

/// The rows along parameter `axis`, and the shape without it (with size 1 under `keepdims`).
fn reduced(arguments: &Arguments<'_>) -> Result<(Rows, Vec<usize>)> {
    let mut shape = arguments.input(0).shape.clone();
    let axis = arguments.axis(&shape)?;
    let rows = Rows::along(&shape, axis);
    if arguments.bool("keepdims")? {
        shape[axis] = 1;
    } else {
        shape.remove(axis);
    }
    Ok((rows, shape))
}

/// What is left of a row once NaNs are ignored, if they are.
fn present<'a, R: Real>(row: &'a [R], arguments: &Arguments<'_>) -> Cow<'a, [R]> {
    match arguments.edges().nan {
        NanPolicy::Ignore => row.iter().copied().filter(|value| !value.is_nan()).collect(),
        NanPolicy::Propagate => Cow::Borrowed(row),
    }
}

fn reduce<R: Real>(arguments: &Arguments<'_>, natural: R, function: impl Fn(&[R]) -> R) -> Result<Vec<Array>> {
    let (rows, shape) = reduced(arguments)?;
    let of_nothing = match arguments.edges().empty {
        EmptyPolicy::Natural | EmptyPolicy::Error => natural,
        EmptyPolicy::Zero => R::ZERO,
        EmptyPolicy::Nan => R::NAN,
    };
    let answer = rows.reduce_reals(arguments.input(0), |row: &[R]| {
        let row = present(row, arguments);
        if row.is_empty() { of_nothing } else { function(&row) }
    });
    arguments.answer(&shape, answer)
}

fn extreme<R: Real>(arguments: &Arguments<'_>, largest: bool) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let Values::Integer(values) = &x.values else {
        return match largest {
            true => reduce::<R>(arguments, -R::INFINITY, R::max),
            false => reduce::<R>(arguments, R::INFINITY, |row| {
                let negated: Vec<R> = row.iter().map(|&value| -value).collect();
                -R::max(&negated)
            }),
        };
    };
    let (rows, shape) = reduced(arguments)?;
    integers_have_no_nan(arguments, &rows)?;
    // Flipping the sign bit of a uint64 makes its order that of an int64.
    let flip = if x.dtype == DType::UInt64 { i64::MIN } else { 0 };
    let (low, high) = x.dtype.integer_range().expect("an integer dtype");
    let of_nothing = match arguments.edges().empty {
        EmptyPolicy::Zero => 0,
        _ if largest => low as i64,
        _ => high as i64,
    };
    let answer = rows.reduce(values, |row| {
        let ordered = row.iter().map(|&value| value ^ flip);
        let best = if largest { ordered.max() } else { ordered.min() };
        Wrapping(best.map_or(of_nothing, |value| value ^ flip))
    });
    integer_answer(arguments, &shape, answer)
}

fn integers_have_no_nan(arguments: &Arguments<'_>, rows: &Rows) -> Result<()> {
    if rows.length == 0 && rows.count() > 0 && arguments.edges().empty == EmptyPolicy::Nan {
        return Err(Error::Config(format!(
            "empty = \"nan\" of {}: no integer is NaN; declare a float output or another policy",
            arguments.name()
        )));
    }
    Ok(())
}

/// The place of the first value that none beats; the first NaN at once, unless NaNs are passed over.
fn first_best<T: Copy>(row: &[T], beats: impl Fn(T, T) -> bool, is_nan: impl Fn(T) -> bool, ignore: bool) -> usize {
    let mut best: Option<usize> = None;
    for (place, &value) in row.iter().enumerate() {
        if is_nan(value) {
            if ignore {
                continue;
            }
            return place;
        }
        if best.is_none_or(|best| beats(value, row[best])) {
            best = Some(place);
        }
    }
    best.unwrap_or(0)
}
