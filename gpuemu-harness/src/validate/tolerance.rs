//! How far a right answer may be from the expected value: the envelope of an op, its calibration, and bounds from it.
//!
//! The bound of one element is
//!
//! ```text
//! rounding of the output dtype + 4 * max(rho * scale + alpha * u * (largest input), error of the working-precision mirror)
//!     + 4 * underflow
//! ```
//!
//! where `u` is the unit roundoff of the working precision and `scale` the element's natural error: the largest change
//! of the float64 answer when every input is perturbed by one unit of roundoff, a few random signs, at least
//! `u * |expected|`. The scale, and the error of the working-precision mirror, are pooled (largest one) along the axes
//! that the op reduces or normalises over: a single sample is small by luck.
//!
//! `rho` covers errors that are proportional to the scale, `alpha` formulas that cancel (the tail of GELU, a layer norm
//! over two elements), whose error follows the inputs and not the answer. Both are calibrated once, over moderate
//! inputs: an envelope that has seen extreme ones allows anything.
//!
//! `underflow` is what the working precision may lose where numbers become subnormal, whatever the scale: a GPU may flush
//! them to zero (`.ftz`, and `atom.add.f32` always: PTX ISA). An op whose envelope is exact gets none. Elements whose scale
//! is no larger say nothing about proportional errors and are left out of a calibration.
//!
//! **Integers** must be exact, but where a reference of the user's rounds floats to them: where its answer in working
//! precision is another integer, both are right; of 8 bits, as quantised numbers have, so is the next one where a perturbed
//! input gives it, for a formula written otherwise falls to the other side of a tie.
//!
//! **float64** has no higher precision to look down from. Both sides then err alike, and the part in the parentheses
//! counts twice. `rho` and `alpha` have no dimension, so those of a float32 calibration hold; the error of a float64
//! evaluation is estimated by that of the float32 one, scaled by 2^-29 (the ratio of the unit roundoffs), and the scale
//! by perturbing by 2^-24 and scaling in the same way, where float64's own noise does not disturb.

use super::compare::Bound;
use super::grid::Grid;
use crate::tensor::{Array, Values};
use gpuemu_contract::{Compute, DType};

/// Safety factor of every bound: another order of summation, approximate instructions, fused products.
const SAFETY: f64 = 4.0;

/// The error that an op and dtype may show, in units without dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Envelope {
    /// Error per scale.
    pub rho: f64,
    /// Error per unit roundoff of the largest input.
    pub alpha: f64,
}

/// What is known about one output of one case.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The float64 answer.
    pub expected: &'a Array,
    /// Float64 answers to perturbed inputs.
    pub perturbed: &'a [Array],
    /// Relative size of that perturbation: the unit roundoff of `working`, for float64 2^-24.
    pub perturbation: f64,
    /// The answer in working precision (for float64: in float32) and the unit roundoff it was computed with. `None`
    /// where the mirror cannot evaluate in one.
    pub working: Option<(&'a Array, f64)>,
    /// Unit roundoff of the precision a right kernel may compute in.
    pub unit_roundoff: f64,
    /// Largest finite magnitude among the float inputs.
    pub largest_input: f64,
    /// Axes of the output along which elements share their scale.
    pub pooled_axes: &'a [usize],
    /// Dtype of the output.
    pub dtype: DType,
    /// Added to every bound: a step for operators that quantise, else 0.
    pub extra: f64,
    /// What may be lost where numbers become subnormal.
    pub underflow: f64,
}

/// What arithmetic of a precision may lose where numbers become subnormal: all of the largest of them where hardware flushes
/// them to zero, as it does with an exponent of 8 bits; with one of 5 a step.
pub fn underflow(compute: Compute) -> f64 {
    match compute {
        Compute::Float64 => 0.0,
        Compute::Float16 => Grid::of(DType::Float16).step(0.0),
        Compute::Float32 | Compute::Tf32 | Compute::BFloat16 | Compute::Float8 => f32::MIN_POSITIVE.into(),
    }
}

/// Bounds of one output.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Largest allowed absolute difference of each element, in row-major order, rounding included.
    pub allowed: Vec<f64>,
    /// Elements where float64 and the working precision disagree about being finite, so that either answer is right.
    /// `None` when there is none.
    pub either_right: Option<Vec<bool>>,
}

/// The bound that needs no evidence: never above the full one of [`bounds`] with the same envelope, unit roundoff and
/// `extra`, since a scale is at least `u * |expected|`. What it clears needs no closer look.
pub fn cheap(envelope: &Envelope, unit_roundoff: f64, dtype: DType, extra: f64) -> Bound<'static> {
    if !dtype.is_float() {
        return Bound::cheap(0.0, extra);
    }
    // A hair below, so that no rounding in either formula turns the order round.
    Bound::cheap(SAFETY * sides(dtype) * envelope.rho * unit_roundoff * (1.0 - 1e-12), extra * (1.0 - 1e-12))
}

/// How many of the two sides err: the mirror does too where it has no more precision than the output.
fn sides(dtype: DType) -> f64 {
    if dtype == DType::Float64 { 2.0 } else { 1.0 }
}

/// The full bound of every element. Answers of integers have `extra` and half a step, so that without `extra` they are
/// exact; an integer output with an unrounded float answer (a quantisation) has half a step for its rounding, and what
/// any float answer has before it is rounded. Elements whose expected value is not finite have the bound 0: it is not used.
///
/// Panics when the arrays' sizes differ or a pooled axis does not exist.
pub fn bounds(envelope: &Envelope, evidence: &Evidence<'_>) -> Bounds {
    let expected = match &evidence.expected.values {
        Values::Float(values) => values,
        Values::Integer(values) => return Bounds { allowed: of_integers(evidence, values), either_right: None },
    };
    let (mut scales, mut errors, either_right) = samples_of(evidence, expected);
    pool(&mut scales, &evidence.expected.shape, evidence.pooled_axes);
    pool(&mut errors, &evidence.expected.shape, evidence.pooled_axes);
    let grid = Grid::of(evidence.dtype);
    let floor = envelope.alpha * evidence.unit_roundoff * evidence.largest_input;
    let factor = SAFETY * sides(evidence.dtype);
    let underflow = if envelope.rho > 0.0 { SAFETY * evidence.underflow } else { 0.0 };
    let extra = evidence.extra + underflow;
    let allowed = expected
        .iter()
        .zip(scales.iter().zip(&errors))
        .map(|(&expected, (&scale, &error))| {
            if !expected.is_finite() {
                return 0.0;
            }
            grid.step(expected) / 2.0 + factor * (envelope.rho * scale + floor).max(error) + extra
        })
        .collect();
    Bounds { allowed, either_right }
}

/// Whether integers of a dtype are numbers that were quantised, as far as a dtype tells.
pub fn is_quantised(dtype: DType) -> bool {
    matches!(dtype, DType::Int8 | DType::UInt8)
}

/// The bounds of integers: half a step and `extra`, more where a right evaluation rounds to another integer.
fn of_integers(evidence: &Evidence<'_>, expected: &[i64]) -> Vec<f64> {
    let mut apart = vec![0.0f64; expected.len()];
    let mut reach = |other: &Array, most: f64| {
        let Values::Integer(others) = &other.values else { return };
        assert_eq!(others.len(), expected.len(), "answers of one shape");
        for ((apart, &other), &expected) in apart.iter_mut().zip(others).zip(expected) {
            *apart = apart.max((other.abs_diff(expected) as f64).min(most));
        }
    };
    if let Some((working, _)) = evidence.working {
        reach(working, f64::INFINITY);
    }
    // Which of equal elements comes first is no matter of rounding: numbers of elements have more bits.
    if is_quantised(evidence.dtype) {
        evidence.perturbed.iter().for_each(|perturbed| reach(perturbed, 1.0));
    }
    apart.into_iter().map(|apart| 0.5 + apart + evidence.extra).collect()
}

/// Scale and working-precision error of every element, not yet pooled, and where either answer is right.
fn samples_of(evidence: &Evidence<'_>, expected: &[f64]) -> (Vec<f64>, Vec<f64>, Option<Vec<bool>>) {
    let unit = evidence.unit_roundoff;
    // A huge factor over a tiny one would not be finite; nothing here is.
    let to_scale = unit / evidence.perturbation;
    let mut scales: Vec<f64> =
        expected.iter().map(|value| if value.is_finite() { unit * value.abs() } else { 0.0 }).collect();
    for perturbed in evidence.perturbed {
        let perturbed = perturbed.floats().expect("a float answer");
        assert_eq!(perturbed.len(), expected.len(), "answers of one shape");
        for ((scale, &perturbed), &expected) in scales.iter_mut().zip(perturbed).zip(expected) {
            let change = (perturbed - expected).abs() * to_scale;
            // Not finite on either side: no change to speak of.
            if change.is_finite() && change > *scale {
                *scale = change;
            }
        }
    }
    let mut errors = vec![0.0; expected.len()];
    let mut either_right: Option<Vec<bool>> = None;
    if let Some((working, roundoff)) = evidence.working {
        let working = working.floats().expect("a float answer");
        assert_eq!(working.len(), expected.len(), "answers of one shape");
        let to_unit = unit / roundoff;
        // Without a branch, so that it becomes vector code; what is not finite is looked at once more.
        let mut finite = true;
        for ((slot, &working), &expected) in errors.iter_mut().zip(working).zip(expected) {
            let error = (working - expected).abs();
            finite &= error < f64::INFINITY;
            *slot = if error < f64::INFINITY { error * to_unit } else { 0.0 };
        }
        // An estimate from a narrower format says nothing about where this one overflows.
        if !finite && roundoff == unit {
            for (number, (working, value)) in working.iter().zip(expected).enumerate() {
                if working.is_finite() != value.is_finite() {
                    either_right.get_or_insert_with(|| vec![false; expected.len()])[number] = true;
                }
            }
        }
    }
    (scales, errors, either_right)
}

/// Replaces every element by the largest one along the given axes.
fn pool(values: &mut [f64], shape: &[usize], axes: &[usize]) {
    if values.is_empty() {
        return;
    }
    for &axis in axes {
        let size = shape[axis];
        let inner: usize = shape[axis + 1..].iter().product();
        for slab in values.chunks_mut(size * inner) {
            if inner == 1 {
                let largest = largest_of(slab);
                slab.fill(largest);
                continue;
            }
            for place in 0..inner {
                let largest = slab.iter().skip(place).step_by(inner).fold(0.0, |old: f64, &new| old.max(new));
                slab.iter_mut().skip(place).step_by(inner).for_each(|value| *value = largest);
            }
        }
    }
}

/// The largest of values that are not negative, 0 for none: several maxima side by side, so that none waits for the last.
fn largest_of(values: &[f64]) -> f64 {
    const LANES: usize = 8;
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut largest = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    for (largest, &value) in largest.iter_mut().zip(chunks.remainder()) {
        *largest = larger(*largest, value);
    }
    for chunk in chunks {
        for (largest, &value) in largest.iter_mut().zip(chunk) {
            *largest = larger(*largest, value);
        }
    }
    largest.into_iter().fold(0.0, larger)
}

/// One element of a calibration case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Error of the working-precision mirror.
    pub error: f64,
    /// The element's scale, pooled.
    pub scale: f64,
    /// Unit roundoff times the largest input.
    pub floor: f64,
}

/// The samples of one output of a calibration case; left out are elements that are not finite, and those whose scale
/// drowns in what underflow takes.
pub fn samples(evidence: &Evidence<'_>) -> Vec<Sample> {
    let Some(expected) = evidence.expected.floats() else { return Vec::new() };
    let (mut scales, errors, _) = samples_of(evidence, expected);
    let Some((working, _)) = evidence.working else { return Vec::new() };
    let working = working.floats().expect("a float answer");
    pool(&mut scales, &evidence.expected.shape, evidence.pooled_axes);
    let floor = evidence.unit_roundoff * evidence.largest_input;
    (0..expected.len())
        .filter(|&number| expected[number].is_finite() && working[number].is_finite())
        .filter(|&number| scales[number] == 0.0 || scales[number] > evidence.underflow)
        .map(|number| Sample { error: errors[number], scale: scales[number], floor })
        .collect()
}

/// The smallest envelope that covers every sample: `error <= rho * scale + alpha * floor`.
///
/// Of the many pairs that do, the one with the least `rho + alpha * m` is taken, `m` being the median of
/// `floor / scale` over the samples: what alpha costs the typical element. Where the typical element's error follows its
/// scale and a few cancel, alpha is cheap and takes the few; a median, because for those few `floor / scale` has no
/// limit. The sum is convex in alpha, so a search by thirds finds the least. Both are rounded up to two digits, which
/// keeps a reviewed file still.
///
/// An op whose every error is 0 (a copy, a comparison) gets rho 0: it must be exact. Any other gets at least 1: one
/// rounding of an input is always allowed. No samples: rho 1, alpha 0.
pub fn fit(samples: &[Sample]) -> Envelope {
    let erring: Vec<Sample> = samples.iter().copied().filter(|sample| sample.error > 0.0).collect();
    if erring.is_empty() {
        return Envelope { rho: if samples.is_empty() { 1.0 } else { 0.0 }, alpha: 0.0 };
    }
    let mut ratios: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.scale > 0.0)
        .map(|sample| sample.floor / sample.scale)
        .filter(|ratio| ratio.is_finite())
        .collect();
    let typical = if ratios.is_empty() {
        1.0
    } else {
        let middle = ratios.len() / 2;
        *ratios.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    let rho_for = |alpha: f64| {
        erring
            .iter()
            .filter(|sample| sample.scale > 0.0)
            .map(|sample| (sample.error - alpha * sample.floor) / sample.scale)
            .fold(1.0, f64::max)
    };
    // Without a scale only alpha can cover an error; without either nothing can.
    let least = erring
        .iter()
        .filter(|sample| sample.scale == 0.0 && sample.floor > 0.0)
        .map(|sample| sample.error / sample.floor)
        .fold(0.0, f64::max);
    let most = erring
        .iter()
        .filter(|sample| sample.floor > 0.0)
        .map(|sample| sample.error / sample.floor)
        .fold(least, f64::max);
    let cost = |alpha: f64| rho_for(alpha) + alpha * typical;
    let (mut low, mut high) = (least, most);
    for _ in 0..60 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if cost(a) <= cost(b) { high = b } else { low = a }
    }
    // The ends are where the answer is exact.
    let alpha = [least, (low + high) / 2.0].into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).expect("two");
    let alpha = if alpha == 0.0 { 0.0 } else { two_digits_up(alpha) };
    Envelope { rho: two_digits_up(rho_for(alpha)), alpha }
}

/// Rounded up to two significant decimal digits.
fn two_digits_up(value: f64) -> f64 {
    let digits = 1 - value.log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    let scaled = |value: f64| if digits >= 0 { value * scale } else { value / scale };
    // A value that has two digits already stays, in spite of the rounding of the product.
    let whole = (scaled(value) * (1.0 - 1e-12)).ceil();
    if digits >= 0 { whole / scale } else { whole * scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;
    use crate::validate::compare::{Rules, compare};
    use proptest::prelude::*;

    const U: f64 = 5.960464477539063e-8;

    fn evidence<'a>(expected: &'a Array, perturbed: &'a [Array]) -> Evidence<'a> {
        Evidence {
            expected,
            perturbed,
            perturbation: U,
            working: None,
            unit_roundoff: U,
            largest_input: 0.0,
            pooled_axes: &[],
            dtype: expected.dtype,
            extra: 0.0,
            underflow: 0.0,
        }
    }

    fn floats(dtype: DType, values: &[f64]) -> Array {
        Array::float(dtype, &[values.len()], values.to_vec())
    }

    #[test]
    fn the_formula_by_hand() {
        let envelope = Envelope { rho: 2.0, alpha: 0.5 };
        let expected = floats(DType::Float16, &[1.0, 0.0, -3.0]);
        let perturbed = [floats(DType::Float16, &[1.0, 1e-6, -3.0]), floats(DType::Float16, &[1.0, -2e-6, -3.0])];
        let working = floats(DType::Float16, &[1.0 + 1e-4, 0.0, -3.0]);
        let all = Evidence {
            working: Some((&working, U)),
            largest_input: 8.0,
            extra: 0.25,
            ..evidence(&expected, &perturbed)
        };
        let allowed = bounds(&envelope, &all).allowed;
        let working_error = (1.0 + 1e-4) - 1.0;
        let table = [
            // half a step of float16 at 1 is 2^-11; the working error is the largest term
            2f64.powi(-11) + 4.0 * working_error + 0.25,
            // half the subnormal step; the larger of the two changes; alpha * u * 8
            2f64.powi(-25) + 4.0 * (2.0 * 2e-6 + 0.5 * U * 8.0) + 0.25,
            // no change at all: u * |expected|
            2f64.powi(-10) + 4.0 * (2.0 * U * 3.0 + 0.5 * U * 8.0) + 0.25,
        ];
        for (got, wanted) in allowed.iter().zip(table) {
            assert!((got - wanted).abs() <= 1e-15, "{got} {wanted}");
        }
    }

    #[test]
    fn what_underflow_takes() {
        // Half a subnormal step of float32, four roundings of the value, four times what may be flushed.
        let least = f64::from(f32::MIN_POSITIVE);
        let expected = floats(DType::Float32, &[least / 2.0]);
        let all = Evidence { underflow: underflow(Compute::Float32), ..evidence(&expected, &[]) };
        let allowed = bounds(&Envelope { rho: 1.0, alpha: 0.0 }, &all).allowed;
        assert_eq!(allowed, [2f64.powi(-150) + 4.0 * U * least / 2.0 + 4.0 * least]);
        // What must be exact stays so.
        assert_eq!(bounds(&Envelope { rho: 0.0, alpha: 0.0 }, &all).allowed, [2f64.powi(-150)]);
        assert_eq!(underflow(Compute::Float16), 2f64.powi(-24));
        // A product that underflows is wrong by all of itself: it says nothing about its roundings.
        let expected = floats(DType::Float32, &[1.0, 1e-44, 0.0, 1e-20]);
        let working = floats(DType::Float32, &[1.0 + U, 0.0, 0.0, 1e-20]);
        let all = Evidence {
            working: Some((&working, U)),
            underflow: underflow(Compute::Float32),
            ..evidence(&expected, &[])
        };
        let errors: Vec<f64> = samples(&all).iter().map(|sample| sample.error).collect();
        assert_eq!(errors, [U, 0.0, 0.0]);
        assert_eq!(fit(&samples(&all)), Envelope { rho: 1.0, alpha: 0.0 });
    }

    #[test]
    fn integers_that_a_reference_rounds_from_floats() {
        // (dtype, in working precision, two perturbed inputs, what is right beside the expected 63)
        let table: [(DType, i64, [i64; 2], &[i64]); 5] = [
            (DType::Int32, 63, [63, 63], &[]),
            (DType::Int32, 64, [63, 63], &[64, 62]),
            // The number of an element, or a count: a perturbed input says nothing.
            (DType::Int32, 63, [64, 3], &[]),
            (DType::Int8, 63, [64, 63], &[64, 62]),
            (DType::UInt8, 63, [63, 3], &[64, 62]),
        ];
        for (dtype, working, perturbed, right) in table {
            let of = |value: i64| Array::integer(dtype, &[1], vec![value]);
            let (expected, working, perturbed) = (of(63), of(working), perturbed.map(of));
            let all = Evidence { working: Some((&working, U)), ..evidence(&expected, &perturbed) };
            let allowed = bounds(&Envelope { rho: 0.0, alpha: 0.0 }, &all).allowed[0];
            for got in 60..=66 {
                let passes = (got - 63_i64).abs() as f64 <= allowed;
                assert_eq!(passes, got == 63 || right.contains(&got), "{dtype} {got} beside {right:?}");
            }
        }
    }

    #[test]
    fn scales_are_pooled_along_the_reduced_axis() {
        let expected = Array::float(DType::Float32, &[2, 3], vec![1.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
        let envelope = Envelope { rho: 1.0, alpha: 0.0 };
        let pooled = |axes: &[usize]| {
            let evidence = Evidence { pooled_axes: axes, ..evidence(&expected, &[]) };
            let half: Vec<f64> =
                expected.floats().unwrap().iter().map(|v| Grid::of(DType::Float32).step(*v) / 2.0).collect();
            let allowed = bounds(&envelope, &evidence).allowed;
            allowed
                .iter()
                .zip(half)
                .map(|(allowed, half)| ((allowed - half) / (4.0 * U) * 1e6).round() / 1e6)
                .collect::<Vec<_>>()
        };
        assert_eq!(pooled(&[]), [1.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
        assert_eq!(pooled(&[1]), [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
        assert_eq!(pooled(&[0]), [1.0, 0.0, 2.0, 1.0, 0.0, 2.0]);
        assert_eq!(pooled(&[0, 1]), [2.0; 6]);
    }

    #[test]
    fn either_answer_is_right_where_the_working_precision_overflows() {
        let expected = floats(DType::Float32, &[1e30, 1.0, 2.0, f64::INFINITY]);
        let working = floats(DType::Float32, &[f64::INFINITY, f64::NAN, 2.0, f64::INFINITY]);
        let all = Evidence { working: Some((&working, U)), ..evidence(&expected, &[]) };
        let bounds = bounds(&Envelope { rho: 1.0, alpha: 0.0 }, &all);
        assert_eq!(bounds.either_right.as_deref(), Some(&[true, true, false, false][..]));
        assert!(bounds.allowed.iter().all(|allowed| allowed.is_finite()));
        let rules = Rules { either_right: bounds.either_right.as_deref(), ..Rules::default() };
        for (got, right) in [
            ([f32::INFINITY, f32::NAN, 2.0, f32::INFINITY], true),
            ([1e30, 1.0, 2.0, f32::INFINITY], true),
            ([1.1e30, 1.0, 2.0, f32::INFINITY], false),
            ([1e30, 1.0, f32::NAN, f32::INFINITY], false),
        ] {
            let tensor = Tensor::from_slice(&[4], &got);
            let comparison = compare(&tensor, &expected, Bound::PerElement(&bounds.allowed), &rules);
            assert_eq!(comparison.agrees(), right, "{got:?}");
        }
    }

    #[test]
    fn float64_counts_both_sides_and_scales_a_float32_estimate() {
        let unit = 2f64.powi(-53);
        let expected = floats(DType::Float64, &[1.0, 1.0]);
        // Perturbed by 2^-24, the first answer moves by 3 * 2^-24, the second stays.
        let perturbed = [floats(DType::Float64, &[1.0 + 3.0 * U, 1.0])];
        let working = floats(DType::Float64, &[1.0, 1.0 + 16.0 * U]);
        let all = Evidence { unit_roundoff: unit, working: Some((&working, U)), ..evidence(&expected, &perturbed) };
        let allowed = bounds(&Envelope { rho: 1.0, alpha: 0.0 }, &all).allowed;
        assert_eq!(allowed, [unit + 8.0 * 3.0 * unit, unit + 8.0 * 16.0 * unit]);
        // float32 overflows where float64 does not: that says nothing.
        let working = floats(DType::Float64, &[f64::INFINITY, 1.0]);
        let all = Evidence { working: Some((&working, U)), ..all };
        assert_eq!(bounds(&Envelope { rho: 1.0, alpha: 0.0 }, &all).either_right, None);
    }

    #[test]
    fn integers_must_be_exact_but_for_the_extra_step() {
        let expected = Array::integer(DType::Int8, &[2], vec![3, -4]);
        let all = Evidence { extra: 1.0, ..evidence(&expected, &[]) };
        assert_eq!(bounds(&Envelope { rho: 9.0, alpha: 9.0 }, &all).allowed, [1.5, 1.5]);
        let tensor = Tensor::from_slice(&[2], &[3i8, -6]);
        let exact = cheap(&Envelope { rho: 9.0, alpha: 9.0 }, U, DType::Int8, 0.0);
        assert_eq!(compare(&tensor, &expected, exact, &Rules::default()).statistics.exceeding, 1);
    }

    #[test]
    fn quantised_integers_may_fall_to_either_side_of_a_tie() {
        // Before rounding: two ties, one of them missed by a float32 rounding, no number, and 7.6.
        let values = vec![2.5, 100.5 - 1e-6, f64::NAN, 7.6];
        let expected = Array::float(DType::Int8, &[4], values);
        let all = Evidence { dtype: DType::Int8, ..evidence(&expected, &[]) };
        let allowed = bounds(&Envelope { rho: 1.0, alpha: 0.0 }, &all).allowed;
        let table = [([2i8, 101, 0, 8], 0), ([3, 100, -128, 8], 0), ([3, 100, 127, 7], 1), ([4, 102, 0, 9], 3)];
        for (got, wrong) in table {
            let tensor = Tensor::from_slice(&[4], &got);
            let comparison = compare(&tensor, &expected, Bound::PerElement(&allowed), &Rules::default());
            assert_eq!(comparison.statistics.exceeding, wrong, "{got:?}");
            assert_eq!(comparison.agrees(), wrong == 0, "{got:?}");
        }
    }

    #[test]
    fn fit_of_synthetic_errors() {
        // (what, samples, rho, alpha)
        let proportional: Vec<Sample> =
            (1..1000).map(|i| Sample { error: 1.5 * f64::from(i % 7) / 6.0 * U, scale: U, floor: 4.0 * U }).collect();
        // Like GELU: the body errs by 1.2 scales; in the tail the answer and its scale vanish and the error stays.
        let mut cancelling: Vec<Sample> =
            (0..900).map(|i| Sample { error: f64::from(i % 5) * 0.3 * U, scale: U, floor: 5.0 * U }).collect();
        cancelling.extend((1..100).map(|i| Sample { error: 2.5 * U, scale: U * 10f64.powi(-i), floor: 5.0 * U }));
        let exact = vec![Sample { error: 0.0, scale: U, floor: U }; 50];
        let tiny = vec![Sample { error: 0.01 * U, scale: U, floor: U }; 50];
        let no_scale = vec![Sample { error: 0.5 * U, scale: 0.0, floor: U }; 50];
        let table = [
            ("proportional", proportional, 1.5, 0.0),
            ("cancelling", cancelling, 1.0, 0.5),
            ("exact", exact, 0.0, 0.0),
            ("less than one rounding", tiny, 1.0, 0.0),
            ("nothing but the floor", no_scale, 1.0, 0.5),
            ("no samples", Vec::new(), 1.0, 0.0),
        ];
        for (what, samples, rho, alpha) in table {
            let envelope = fit(&samples);
            assert!((envelope.rho - rho).abs() < 1e-9, "{what}: {envelope:?}");
            assert!((envelope.alpha - alpha).abs() < 1e-9, "{what}: {envelope:?}");
        }
    }

    #[test]
    fn digits_are_rounded_up() {
        for (value, rounded) in [(1.0, 1.0), (1.01, 1.1), (0.0123, 0.013), (123.0, 130.0), (9.91, 10.0), (0.5, 0.5)] {
            assert_eq!(two_digits_up(value), rounded, "{value}");
        }
    }

    proptest! {
        #[test]
        fn fit_covers_every_sample(
            samples in prop::collection::vec((0.0f64..10.0, -12i32..3, -3i32..3), 1..60)
        ) {
            let samples: Vec<Sample> = samples
                .into_iter()
                .map(|(error, scale, floor)| Sample {
                    error: error * U,
                    scale: U * 10f64.powi(scale),
                    floor: U * 10f64.powi(floor),
                })
                .collect();
            let envelope = fit(&samples);
            for sample in &samples {
                let covered = envelope.rho * sample.scale + envelope.alpha * sample.floor;
                prop_assert!(sample.error <= covered * (1.0 + 1e-9), "{sample:?} {envelope:?}");
            }
        }

        #[test]
        fn the_cheap_bound_is_never_above_the_full_one(
            values in prop::collection::vec(any::<f64>(), 1..30),
            rho in 0.0f64..100.0,
            alpha in 0.0f64..10.0,
            extra in 0.0f64..2.0,
            dtype in prop::sample::select(vec![DType::Float64, DType::Float32, DType::Float16, DType::BFloat16, DType::Float8E4M3]),
        ) {
            let values: Vec<f64> = values.iter().map(|value| if value.abs() < 1e290 { *value } else { 1.0 }).collect();
            let expected = floats(dtype, &values);
            let envelope = Envelope { rho, alpha };
            let all = Evidence { extra, largest_input: 3.0, ..evidence(&expected, &[]) };
            let full = bounds(&envelope, &all).allowed;
            let Bound::Formula { steps, relative, absolute } = cheap(&envelope, U, dtype, extra) else { unreachable!() };
            for (value, full) in values.iter().zip(full) {
                let cheap = steps * Grid::of(dtype).step(*value) + (relative * value.abs() + absolute);
                // But for the rounding of the two formulas themselves.
                prop_assert!(cheap <= full * (1.0 + 4.0 * f64::EPSILON), "{value}: {cheap} {full}");
            }
        }
    }
}
