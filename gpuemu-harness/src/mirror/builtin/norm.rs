//! Norms: layer, RMS, group and L2.

use super::arguments::{Arguments, Rows, reals};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::Array;
use std::borrow::Cow;

/// The pooled axes of an op over the last axis.
pub fn pools_last(arguments: &Arguments<'_>) -> Result<Vec<usize>> {
    Ok(arguments.input(0).shape.len().checked_sub(1).into_iter().collect())
}

/// The pooled axes of [`group_norm`]: all but the first.
pub fn pools_all_but_first(arguments: &Arguments<'_>) -> Result<Vec<usize>> {
    Ok((1..arguments.input(0).shape.len()).collect())
}

/// `layer_norm(x) = (x - mean) / sqrt(var + eps) * weight + bias` over the last axis, `var` without correction.
///
/// As PyTorch: a NaN or an infinity makes its row NaN; the policies for NaN and for empty do not apply.
pub fn layer_norm<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let (x, rows) = (arguments.input(0), last_axis(arguments)?);
    let eps = R::from_f64(arguments.float("eps")?);
    let (weight, bias) = (affine::<R>(arguments, 1, rows.length)?, affine::<R>(arguments, 2, rows.length)?);
    let answer =
        rows.map_reals(x, |row: &[R], out| {
            let (mean, variance) = mean_and_variance(row);
            let deviation = (variance + eps).sqrt();
            out.extend(row.iter().enumerate().map(|(at, &value)| {
                scale_and_shift((value - mean) / deviation, weight.as_deref(), bias.as_deref(), at)
            }));
        });
    arguments.answer(&x.shape, answer)
}

/// `rms_norm(x) = x / sqrt(mean(x^2) + eps) * weight` over the last axis.
///
/// As PyTorch: a NaN makes its row NaN, an infinity is NaN and makes the others 0; the policies for NaN and for empty
/// do not apply.
pub fn rms_norm<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let (x, rows) = (arguments.input(0), last_axis(arguments)?);
    let eps = R::from_f64(arguments.float("eps")?);
    let weight = affine::<R>(arguments, 1, rows.length)?;
    let answer = rows.map_reals(x, |row: &[R], out| {
        let root = (sum_of_squares(row, R::ZERO) / R::from_f64(row.len() as f64) + eps).sqrt();
        out.extend(
            row.iter().enumerate().map(|(at, &value)| scale_and_shift(value / root, weight.as_deref(), None, at)),
        );
    });
    arguments.answer(&x.shape, answer)
}

/// [`layer_norm`] over groups of channels: `x` is `[N, C, ...]`, a group is `C / groups` channels and everything after
/// them, `weight` and `bias` are `[C]`.
pub fn group_norm<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let (groups, eps) = (arguments.count("groups", 1)?, R::from_f64(arguments.float("eps")?));
    let &[samples, channels, ref rest @ ..] = x.shape.as_slice() else {
        return Err(arguments.shape_error(0, "at least two axes, [N, C, ...]"));
    };
    if channels % groups != 0 {
        return Err(Error::Config(format!("group_norm: {channels} channels do not divide into {groups} groups")));
    }
    let area: usize = rest.iter().product();
    let rows = Rows { outer: samples * groups, length: channels / groups * area, inner: 1 };
    let (weight, bias) = (affine::<R>(arguments, 1, channels)?, affine::<R>(arguments, 2, channels)?);
    let mut first_channel = 0;
    let answer = rows.map_reals(x, |row: &[R], out| {
        let (mean, variance) = mean_and_variance(row);
        let deviation = (variance + eps).sqrt();
        out.extend(row.iter().enumerate().map(|(at, &value)| {
            let channel = first_channel + at / area;
            scale_and_shift((value - mean) / deviation, weight.as_deref(), bias.as_deref(), channel)
        }));
        first_channel = (first_channel + channels / groups) % channels;
    });
    arguments.answer(&x.shape, answer)
}

/// `l2_norm(x) = x / max(sqrt(sum(x^2)), eps)` along parameter `axis`, as `torch.nn.functional.normalize`.
///
/// A NaN makes its row NaN, an infinity is NaN and makes the others 0; the policies for NaN and for empty do not apply.
pub fn l2_norm<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let eps = R::from_f64(arguments.float("eps")?);
    let rows = Rows::along(&x.shape, arguments.axis(&x.shape)?);
    let answer = rows.map_reals(x, |row: &[R], out| {
        let norm = sum_of_squares(row, R::ZERO).sqrt();
        let norm = if norm < eps { eps } else { norm };
        out.extend(row.iter().map(|&value| value / norm));
    });
    arguments.answer(&x.shape, answer)
}

/// Mean and variance (without correction) in two passes.
pub(super) fn mean_and_variance<R: Real>(row: &[R]) -> (R, R) {
    let count = R::from_f64(row.len() as f64);
    let mean = R::sum(row) / count;
    (mean, squared_deviations(row, mean) / count)
}

/// The sum of `(x - mean)^2`. In float64 without the error of the mean itself (T. F. Chan, G. H. Golub and R. J.
/// LeVeque, "Algorithms for computing the sample variance", 1983, equation 1.7: the corrected two-pass algorithm).
pub(super) fn squared_deviations<R: Real>(row: &[R], mean: R) -> R {
    let squares = sum_of_squares(row, mean);
    if !R::PRECISE || row.is_empty() {
        return squares;
    }
    let deviations: Vec<R> = row.iter().map(|&value| value - mean).collect();
    let left = R::sum(&deviations);
    squares - left * left / R::from_f64(row.len() as f64)
}

fn sum_of_squares<R: Real>(row: &[R], mean: R) -> R {
    let squares: Vec<R> = row
        .iter()
        .map(|&value| {
            let deviation = value - mean;
            deviation * deviation
        })
        .collect();
    R::sum(&squares)
}

fn scale_and_shift<R: Real>(value: R, weight: Option<&[R]>, bias: Option<&[R]>, at: usize) -> R {
    let scaled = weight.map_or(value, |weight| value * weight[at]);
    bias.map_or(scaled, |bias| scaled + bias[at])
}

fn last_axis(arguments: &Arguments<'_>) -> Result<Rows> {
    let shape = &arguments.input(0).shape;
    match shape.len() {
        0 => Err(arguments.shape_error(0, "at least one axis")),
        rank => Ok(Rows::along(shape, rank - 1)),
    }
}

/// An optional weight or bias of one axis.
fn affine<'a, R: Real>(arguments: &Arguments<'a>, role: usize, size: usize) -> Result<Option<Cow<'a, [R]>>> {
    match arguments.optional(role) {
        Some(array) if array.shape != [size] => Err(arguments.shape_error(role, &format!("shape [{size}]"))),
        array => Ok(array.map(reals::<R>)),
    }
}
