//! One pass over an answer and its expected values: which elements are wrong, and how large the errors are.

use super::blocks::{BLOCK, Blocks};
use super::grid::Grid;
use super::scan::{Allowed, Lane, Sums, scan};
use super::statistics::{Gathered, Histogram};
use super::verdict::{Check, Failure, Mismatch, Statistics};
use crate::tensor::{Array, Bool, Element, F8E4M3, F8E5M2, Layout, Tensor, Values};
use gpuemu_contract::{DType, Tolerance};
use half::{bf16, f16};
use std::borrow::Cow;

/// Largest allowed absolute difference of each element.
#[derive(Clone, Copy, Debug)]
pub enum Bound<'a> {
    /// `steps * step + relative * |expected| + absolute`, where `step` is the distance between neighbouring numbers of
    /// the output's dtype at the expected value (integers and bool: 1).
    Formula {
        /// Steps of the dtype. Half a step is what rounding the exact value once costs; integers that must be exact
        /// have it too.
        steps: f64,
        /// Part of the expected magnitude.
        relative: f64,
        /// Absolute part.
        absolute: f64,
    },
    /// One bound an element, in row-major order, everything included.
    PerElement(&'a [f64]),
}

impl Bound<'_> {
    /// The expected value rounded once to the dtype, and nothing more.
    pub const ROUNDED: Bound<'static> = Bound::Formula { steps: 0.5, relative: 0.0, absolute: 0.0 };

    /// Rounding of the output, and `relative * |expected| + absolute`.
    pub const fn cheap(relative: f64, absolute: f64) -> Bound<'static> {
        Bound::Formula { steps: 0.5, relative, absolute }
    }

    /// An explicit tolerance: beside it one step of a floating-point dtype; integers get no step of their own.
    pub fn tolerance(tolerance: &Tolerance, dtype: DType) -> Bound<'static> {
        let steps = if dtype.is_float() { 1.0 } else { 0.5 };
        Bound::Formula { steps, relative: tolerance.relative, absolute: tolerance.absolute }
    }

    /// Largest allowed absolute difference of one element.
    pub(super) fn at(&self, number: usize, expected: f64, grid: &Grid) -> f64 {
        match self {
            Bound::Formula { steps, relative, absolute } => {
                steps * grid.step(expected) + (relative * expected.abs() + absolute)
            }
            Bound::PerElement(each) => each[number],
        }
    }
}

/// What is demanded of values that are not finite.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// A NaN of the mirror must be answered by NaN. Off: elements where the mirror is NaN are not compared. A NaN where
    /// the mirror is finite is wrong either way.
    pub check_nan: bool,
    /// An infinity of the mirror must be answered by the same infinity. Off: elements where the mirror is infinite are
    /// not compared. An infinity where the mirror is finite is wrong either way.
    pub check_inf: bool,
    /// Elements where the working precision and float64 disagree about being finite: both answers are right there.
    pub either_right: Option<&'a [bool]>,
}

impl Default for Rules<'_> {
    fn default() -> Self {
        Rules { check_nan: true, check_inf: true, either_right: None }
    }
}

/// What one comparison found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Counts and errors.
    pub statistics: Statistics,
    /// Absolute errors by size, to put cases together.
    pub histogram: Histogram,
    /// The first element, in row-major order, that is finite on both sides and outside its bound.
    pub first: Option<Mismatch>,
    /// Elements that are finite on one side only, or not finite in different ways.
    pub non_finite: Option<NonFinite>,
}

/// Elements whose being finite, infinite or NaN is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// The first one, in row-major order.
    pub first: Mismatch,
    /// What is wrong with it.
    pub kind: NonFiniteKind,
    /// How many there are, of every kind.
    pub count: u64,
}

/// How an element that is not finite is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NonFiniteKind {
    /// NaN where the mirror is finite.
    NanWhereFinite,
    /// Infinity where the mirror is finite.
    InfinityWhereFinite,
    /// A number where the mirror is NaN.
    FiniteWhereNan,
    /// A number where the mirror is infinite.
    FiniteWhereInfinity,
    /// NaN where the mirror is infinite.
    NanWhereInfinity,
    /// Infinity where the mirror is NaN.
    InfinityWhereNan,
    /// Infinity of the other sign.
    OtherInfinity,
}

impl NonFiniteKind {
    /// A phrase for messages.
    pub const fn describe(self) -> &'static str {
        match self {
            NonFiniteKind::NanWhereFinite => "NaN where the mirror is finite",
            NonFiniteKind::InfinityWhereFinite => "infinity where the mirror is finite",
            NonFiniteKind::FiniteWhereNan => "a number where the mirror is NaN",
            NonFiniteKind::FiniteWhereInfinity => "a number where the mirror is infinite",
            NonFiniteKind::NanWhereInfinity => "NaN where the mirror is infinite",
            NonFiniteKind::InfinityWhereNan => "infinity where the mirror is NaN",
            NonFiniteKind::OtherInfinity => "the infinity of the other sign",
        }
    }
}

impl Comparison {
    /// Whether every element is right.
    pub fn agrees(&self) -> bool {
        self.first.is_none() && self.non_finite.is_none()
    }

    /// The failed check, if one failed; non-finite positions come before values. Diagnosis and picture are left empty.
    pub fn failure(&self, output: &str) -> Option<Failure> {
        let statistics = &self.statistics;
        let (check, first, message) = if let Some(wrong) = &self.non_finite {
            let (count, all) = (wrong.count, statistics.count);
            let message = format!(
                "{output} has {} at {:?}; {count} of {all} elements are wrong in this way",
                wrong.kind.describe(),
                wrong.first.index
            );
            (Check::NonFinite, wrong.first.clone(), message)
        } else {
            let first = self.first.clone()?;
            let message = format!(
                "{} of {} elements of {output} differ by more than allowed, the first at {:?}",
                statistics.exceeding, statistics.count, first.index
            );
            (Check::Values, first, message)
        };
        Some(Failure {
            check,
            output: Some(output.to_string()),
            message,
            first: Some(first),
            statistics: Some(statistics.clone()),
            diagnosis: Vec::new(),
            picture: Vec::new(),
        })
    }
}

/// The failure of an answer that has another shape.
pub fn check_shape(output: &str, got: &[usize], expected: &[usize]) -> Option<Failure> {
    let message = format!("{output} has shape {got:?}, the mirror {expected:?}");
    (got != expected).then(|| plain(Check::Shape, output, message))
}

/// The failure of an answer that has another dtype.
pub fn check_dtype(output: &str, got: DType, expected: DType) -> Option<Failure> {
    let message = format!("{output} is {got}, it should be {expected}");
    (got != expected).then(|| plain(Check::DType, output, message))
}

/// A failure that is a sentence.
pub(super) fn plain(check: Check, output: &str, message: String) -> Failure {
    Failure {
        check,
        output: Some(output.to_string()),
        message,
        first: None,
        statistics: None,
        diagnosis: Vec::new(),
        picture: Vec::new(),
    }
}

/// Compares an answer with its expected values, which are never rounded for it.
///
/// Float: an element is right when `|got - expected|` is at most its bound, NaN where NaN, an infinity where the same
/// infinity; +0 and -0 are equal. Where the expected value, or one within the bound of it, rounds beyond the largest
/// finite number, that infinity is right too; fp8 e4m3fn, which has none, answers with NaN, and both fp8 formats may
/// saturate at the largest finite number. Integers and bool are compared as 64-bit integers; with expected values that
/// are float (the unrounded mirror of a quantisation), as floats.
///
/// Memory beside the operands: some 40 kB, whatever their size. Panics when shapes, or the number of bounds, differ:
/// [`check_shape`] comes first.
pub fn compare(got: &Tensor, expected: &Array, bound: Bound<'_>, rules: &Rules<'_>) -> Comparison {
    assert_eq!(got.shape(), expected.shape, "compare arrays of one shape");
    if let Bound::PerElement(each) = bound {
        assert_eq!(each.len(), expected.len(), "one bound an element");
    }
    if let Some(mask) = rules.either_right {
        assert_eq!(mask.len(), expected.len(), "one entry an element");
    }
    let mut pass = Pass {
        judge: Judge { grid: Grid::of(got.dtype()), dtype: got.dtype(), bound, rules: *rules },
        gathered: Gathered::new(expected.len()),
        number: 0,
        first: None,
        non_finite: None,
    };
    visit(got, expected, &mut pass);
    let (statistics, histogram) = pass.gathered.finish();
    let mismatch = |(number, got, wanted, allowed): (usize, f64, f64, f64)| Mismatch {
        index: Layout::index_of(&expected.shape, number),
        expected: wanted,
        got,
        allowed,
        ulp: pass.judge.grid.ulp(got, wanted),
    };
    Comparison {
        statistics,
        histogram,
        first: pass.first.map(mismatch),
        non_finite: pass.non_finite.map(|(kind, count, first)| NonFinite { first: mismatch(first), kind, count }),
    }
}

/// Which elements are wrong, in row-major order: a second pass for those who explain a failure.
pub fn wrong_elements(got: &Tensor, expected: &Array, bound: Bound<'_>, rules: &Rules<'_>) -> Vec<bool> {
    assert_eq!(got.shape(), expected.shape, "compare arrays of one shape");
    let judge = Judge { grid: Grid::of(got.dtype()), dtype: got.dtype(), bound, rules: *rules };
    let mut marks = Marks { judge, wrong: Vec::with_capacity(expected.len()) };
    visit(got, expected, &mut marks);
    marks.wrong
}

/// Something that is shown an answer block by block.
trait Visitor {
    fn floats<G: Lane>(&mut self, got: &[G], expected: &[f64]);
    fn integers(&mut self, got: &[i64], expected: &[i64]);
}

fn visit(got: &Tensor, expected: &Array, visitor: &mut impl Visitor) {
    fn float<T: Element, G: Lane + Default>(
        got: &Tensor,
        expected: &[f64],
        visitor: &mut impl Visitor,
        convert: for<'b> fn(&'b [T], &'b mut [G; BLOCK]) -> &'b [G],
    ) {
        let mut blocks = Blocks::new(got.data::<T>(), got.layout());
        let mut buffer = [G::default(); BLOCK];
        for expected in expected.chunks(BLOCK) {
            visitor.floats(convert(blocks.next(), &mut buffer), expected);
        }
    }
    fn integer<T: Element>(got: &Tensor, expected: &Array, visitor: &mut impl Visitor, exact: fn(T) -> i64) {
        match &expected.values {
            Values::Integer(expected) => {
                let mut blocks = Blocks::new(got.data::<T>(), got.layout());
                let mut buffer = [0i64; BLOCK];
                for expected in expected.chunks(BLOCK) {
                    let block = blocks.next();
                    for (to, &from) in buffer.iter_mut().zip(block) {
                        *to = exact(from);
                    }
                    visitor.integers(&buffer[..block.len()], expected);
                }
            }
            Values::Float(expected) => float::<T, f64>(got, expected, visitor, |from, to| {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = from.to_f64();
                }
                &to[..from.len()]
            }),
        }
    }
    let floats: Cow<'_, [f64]> = match &expected.values {
        Values::Float(values) => Cow::Borrowed(values),
        Values::Integer(_) if got.dtype().is_float() => (0..expected.len()).map(|number| expected.at(number)).collect(),
        Values::Integer(_) => Cow::Borrowed(&[]),
    };
    match got.dtype() {
        DType::Float64 => float::<f64, f64>(got, &floats, visitor, |from, _| from),
        DType::Float32 => float::<f32, f32>(got, &floats, visitor, |from, _| from),
        DType::Float16 => float::<f16, f16>(got, &floats, visitor, |from, _| from),
        DType::BFloat16 => float::<bf16, bf16>(got, &floats, visitor, |from, _| from),
        DType::Float8E4M3 => float::<F8E4M3, f32>(got, &floats, visitor, |from, to| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = E4M3[from.0 as usize];
            }
            &to[..from.len()]
        }),
        DType::Float8E5M2 => float::<F8E5M2, f32>(got, &floats, visitor, |from, to| {
            for (to, from) in to.iter_mut().zip(from) {
                *to = E5M2[from.0 as usize];
            }
            &to[..from.len()]
        }),
        DType::Int8 => integer::<i8>(got, expected, visitor, i64::from),
        DType::Int16 => integer::<i16>(got, expected, visitor, i64::from),
        DType::Int32 => integer::<i32>(got, expected, visitor, i64::from),
        DType::Int64 => integer::<i64>(got, expected, visitor, |value| value),
        DType::UInt8 => integer::<u8>(got, expected, visitor, i64::from),
        DType::UInt16 => integer::<u16>(got, expected, visitor, i64::from),
        DType::UInt32 => integer::<u32>(got, expected, visitor, i64::from),
        DType::UInt64 => integer::<u64>(got, expected, visitor, |value| value as i64),
        DType::Bool => integer::<Bool>(got, expected, visitor, |value| i64::from(value.0 != 0)),
    }
}

/// Every fp8 number, by its byte.
static E4M3: std::sync::LazyLock<[f32; 256]> =
    std::sync::LazyLock::new(|| std::array::from_fn(|byte| F8E4M3(byte as u8).to_f64() as f32));
static E5M2: std::sync::LazyLock<[f32; 256]> =
    std::sync::LazyLock::new(|| std::array::from_fn(|byte| F8E5M2(byte as u8).to_f64() as f32));

/// What is right, for one element.
struct Judge<'a> {
    grid: Grid,
    dtype: DType,
    bound: Bound<'a>,
    rules: Rules<'a>,
}

/// The outcome of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Judgement {
    /// The rules leave it out.
    NotCompared,
    /// Right, and there is no error to speak of: not finite, or saturated.
    Right,
    /// Finite on both sides.
    Error { error: f64, allowed: f64 },
    /// Wrong in a way that has no error.
    Wrong(NonFiniteKind),
}

impl Judge<'_> {
    fn float(&self, number: usize, got: f64, expected: f64) -> Judgement {
        let either = self.rules.either_right.is_some_and(|mask| mask[number]);
        let fp8 = matches!(self.dtype, DType::Float8E4M3 | DType::Float8E5M2);
        let same_sign = got.is_sign_negative() == expected.is_sign_negative();
        if expected.is_nan() {
            return match got {
                _ if !self.rules.check_nan => Judgement::NotCompared,
                // No integer is NaN: what a quantisation makes of one is left open.
                got if got.is_nan() || either || !self.dtype.is_float() => Judgement::Right,
                got if got.is_infinite() => Judgement::Wrong(NonFiniteKind::InfinityWhereNan),
                _ => Judgement::Wrong(NonFiniteKind::FiniteWhereNan),
            };
        }
        if expected.is_infinite() {
            let saturated = fp8 && same_sign && got.abs() == self.grid.largest();
            return match got {
                _ if !self.rules.check_inf => Judgement::NotCompared,
                got if got == expected || either || saturated => Judgement::Right,
                got if got.is_nan() && self.dtype.is_float() && !self.dtype.has_infinity() => Judgement::Right,
                got if got.is_nan() => Judgement::Wrong(NonFiniteKind::NanWhereInfinity),
                got if got.is_infinite() => Judgement::Wrong(NonFiniteKind::OtherInfinity),
                _ => Judgement::Wrong(NonFiniteKind::FiniteWhereInfinity),
            };
        }
        let allowed = self.bound.at(number, expected, &self.grid);
        // How far from zero a right answer may lie before it is rounded to the dtype.
        let reach = expected.abs() + (allowed - self.grid.step(expected) / 2.0).max(0.0);
        if got.is_finite() {
            let error = (got - expected).abs();
            let saturated = fp8 && same_sign && got.abs() == self.grid.largest() && reach >= self.grid.largest();
            return if error > allowed && saturated { Judgement::Right } else { Judgement::Error { error, allowed } };
        }
        let overflows = reach >= self.grid.overflow();
        match got {
            _ if either => Judgement::Right,
            got if got.is_nan() && overflows && !self.dtype.has_infinity() => Judgement::Right,
            got if got.is_nan() => Judgement::Wrong(NonFiniteKind::NanWhereFinite),
            _ if overflows && same_sign => Judgement::Right,
            _ => Judgement::Wrong(NonFiniteKind::InfinityWhereFinite),
        }
    }

    fn integer(&self, number: usize, got: i64, expected: i64) -> (f64, f64, Judgement) {
        let (error, got, expected) = if self.dtype == DType::UInt64 {
            let (got, expected) = (got as u64, expected as u64);
            (got.abs_diff(expected), got as f64, expected as f64)
        } else {
            (got.abs_diff(expected), got as f64, expected as f64)
        };
        let allowed = self.bound.at(number, expected, &self.grid);
        (got, expected, Judgement::Error { error: error as f64, allowed })
    }

    fn sums(&self, got: f64, expected: f64, error: f64, allowed: f64) -> Sums {
        let magnitude = expected.abs();
        let rel = if magnitude < self.grid.min_normal { 0.0 } else { error / magnitude };
        let ulp = if self.dtype.is_float() { self.grid.ulp(got, expected) } else { error };
        let of_bound = if error == 0.0 { 0.0 } else { error / allowed };
        Sums { abs: error, rel, ulp, max_abs: error, max_rel: rel, max_ulp: ulp, of_bound }
    }
}

/// False for a bound that is NaN, which must not let anything pass.
fn within(error: f64, allowed: f64) -> bool {
    error <= allowed
}

/// The pass of [`compare`].
struct Pass<'a> {
    judge: Judge<'a>,
    gathered: Gathered,
    /// Row-major number of the first element of the next block.
    number: usize,
    /// Number, got, expected, allowed.
    first: Option<(usize, f64, f64, f64)>,
    non_finite: Option<(NonFiniteKind, u64, (usize, f64, f64, f64))>,
}

impl Pass<'_> {
    fn element(&mut self, number: usize, got: f64, expected: f64, judgement: Judgement) {
        if judgement == Judgement::NotCompared {
            return;
        }
        self.gathered.count += 1;
        match judgement {
            Judgement::NotCompared | Judgement::Right => {}
            Judgement::Error { error, allowed } => {
                self.gathered.element(&self.judge.sums(got, expected, error, allowed));
                if !within(error, allowed) {
                    self.gathered.exceeding += 1;
                    self.first.get_or_insert((number, got, expected, allowed));
                }
            }
            Judgement::Wrong(kind) => {
                self.gathered.exceeding += 1;
                self.non_finite.get_or_insert((kind, 0, (number, got, expected, 0.0))).1 += 1;
            }
        }
    }
}

impl Visitor for Pass<'_> {
    fn floats<G: Lane>(&mut self, got: &[G], expected: &[f64]) {
        let allowed = match self.judge.bound {
            Bound::Formula { steps, relative, absolute } => Allowed::Formula { steps, relative, absolute },
            Bound::PerElement(each) => Allowed::Each(&each[self.number..self.number + got.len()]),
        };
        let mut buckets = [0; BLOCK];
        // The fast pass takes steps from exponents, which integers do not have.
        let sums = if self.judge.dtype.is_float() {
            scan(got, expected, allowed, &self.judge.grid, &mut buckets)
        } else {
            None
        };
        if let Some(sums) = sums {
            self.gathered.block(&sums, &buckets[..got.len()]);
        } else {
            for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
                let number = self.number + at;
                let judgement = self.judge.float(number, got.into(), expected);
                self.element(number, got.into(), expected, judgement);
            }
        }
        self.number += got.len();
    }

    fn integers(&mut self, got: &[i64], expected: &[i64]) {
        let different = got.iter().zip(expected).fold(0, |bits, (got, expected)| bits | (got ^ expected));
        if different == 0 {
            self.gathered.exact(got.len() as u64);
        } else {
            for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
                let number = self.number + at;
                let (got, expected, judgement) = self.judge.integer(number, got, expected);
                self.element(number, got, expected, judgement);
            }
        }
        self.number += got.len();
    }
}

/// The pass of [`wrong_elements`].
struct Marks<'a> {
    judge: Judge<'a>,
    wrong: Vec<bool>,
}

impl Marks<'_> {
    fn mark(&mut self, judgement: Judgement) {
        self.wrong.push(match judgement {
            Judgement::NotCompared | Judgement::Right => false,
            Judgement::Error { error, allowed } => !within(error, allowed),
            Judgement::Wrong(_) => true,
        });
    }
}

impl Visitor for Marks<'_> {
    fn floats<G: Lane>(&mut self, got: &[G], expected: &[f64]) {
        for (&got, &expected) in got.iter().zip(expected) {
            self.mark(self.judge.float(self.wrong.len(), got.into(), expected));
        }
    }

    fn integers(&mut self, got: &[i64], expected: &[i64]) {
        for (&got, &expected) in got.iter().zip(expected) {
            self.mark(self.judge.integer(self.wrong.len(), got, expected).2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::round_to_dtype;
    use proptest::prelude::*;

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    fn one(dtype: DType, got: f64, expected: f64, bound: Bound<'_>, rules: &Rules<'_>) -> Comparison {
        let got = Tensor::from_array(&Array::float(dtype, &[1], vec![got]), dtype);
        compare(&got, &Array::float(dtype, &[1], vec![expected]), bound, rules)
    }

    #[test]
    fn values_against_their_bound() {
        let loose = Bound::cheap(1e-3, 0.0);
        let table = [
            // dtype, got, expected, bound, right
            (DType::Float32, 0.1f32 as f64, 0.1, Bound::ROUNDED, true),
            (DType::Float32, f64::from(0.1f32.next_up()), 0.1, Bound::ROUNDED, false),
            (
                DType::Float32,
                1e8 + 8.0,
                1e8,
                Bound::tolerance(&Tolerance { absolute: 0.0, relative: 0.0 }, DType::Float32),
                true,
            ),
            (
                DType::Float32,
                1e8 + 16.0,
                1e8,
                Bound::tolerance(&Tolerance { absolute: 0.0, relative: 0.0 }, DType::Float32),
                false,
            ),
            (DType::Float32, 90e-7, 1e-7, loose, false),
            (DType::Float32, 0.0, -0.0, Bound::ROUNDED, true),
            (DType::Float16, 2049.0, 2049.0, Bound::ROUNDED, true), // both neighbours of the tie
            (DType::Float16, 2050.0, 2049.0, Bound::ROUNDED, true),
            (DType::Float16, 2048.0, 2049.0, Bound::ROUNDED, true),
            (DType::Float16, 2048.0, 2049.1, Bound::ROUNDED, false),
            (DType::Float16, 5.960464477539063e-8, 3e-8, Bound::ROUNDED, true), // smallest subnormal
            (DType::Float16, 1.1920928955078125e-7, 3e-8, Bound::ROUNDED, false),
            (DType::BFloat16, 1.0078125, 1.00391, Bound::ROUNDED, true),
            (DType::Float64, 1.0, 1.0, Bound::ROUNDED, true),
            (DType::Float64, 1.0 + 2.3e-16, 1.0, Bound::ROUNDED, false),
            (DType::Float32, 1.0, 1.0, Bound::cheap(NAN, 0.0), false),
            (DType::Float32, 1.0, 2.0, Bound::PerElement(&[1.0]), true),
            (DType::Float32, 1.0, 2.0, Bound::PerElement(&[0.99]), false),
            (DType::Float32, 1.0, 1.0, Bound::PerElement(&[NAN]), false),
            (DType::Float32, 1.0, 1.0, Bound::PerElement(&[0.0]), true),
        ];
        for (dtype, got, expected, bound, right) in table {
            let comparison = one(dtype, got, expected, bound, &Rules::default());
            assert_eq!(comparison.agrees(), right, "{dtype} {got} {expected} {bound:?}");
            assert_eq!(comparison.statistics.exceeding, u64::from(!right));
            assert_eq!((comparison.statistics.count, comparison.statistics.finite), (1, 1));
        }
    }

    #[test]
    fn values_that_are_not_finite() {
        use NonFiniteKind::*;
        let table = [
            (DType::Float32, NAN, NAN, None),
            (DType::Float32, INF, INF, None),
            (DType::Float32, -INF, INF, Some(OtherInfinity)),
            (DType::Float32, NAN, 1.0, Some(NanWhereFinite)),
            (DType::Float32, 1.0, NAN, Some(FiniteWhereNan)),
            (DType::Float32, INF, 1.0, Some(InfinityWhereFinite)),
            (DType::Float32, 1.0, -INF, Some(FiniteWhereInfinity)),
            (DType::Float32, f64::from(f32::MAX), INF, Some(FiniteWhereInfinity)),
            (DType::Float32, NAN, INF, Some(NanWhereInfinity)),
            (DType::Float32, INF, NAN, Some(InfinityWhereNan)),
            (DType::Float32, INF, 1e39, None),
            (DType::Float32, -INF, 1e39, Some(InfinityWhereFinite)),
            (DType::Float16, INF, 65520.0, None),
            (DType::Float16, INF, 65519.0, None), // the tie is within the bound
            (DType::Float16, INF, 65000.0, Some(InfinityWhereFinite)),
            (DType::Float16, NAN, 1e9, Some(NanWhereFinite)),
            (DType::Float8E5M2, INF, 61440.0, None),
            (DType::Float8E4M3, NAN, 465.0, None), // no infinity: NaN is the overflow
            (DType::Float8E4M3, NAN, -1e9, None),
            (DType::Float8E4M3, NAN, INF, None),
            (DType::Float8E4M3, NAN, 440.0, Some(NanWhereFinite)),
            (DType::Float8E4M3, 448.0, INF, None), // saturated
            (DType::Float8E4M3, 448.0, -INF, Some(FiniteWhereInfinity)),
            (DType::Float8E5M2, -57344.0, -INF, None),
        ];
        for (dtype, got, expected, kind) in table {
            // 1.6e-5 of 65519 reaches the tie at 65520, 1.6e-5 of 65000 does not.
            let comparison = one(dtype, got, expected, Bound::cheap(1.6e-5, 0.0), &Rules::default());
            let found = comparison.non_finite.as_ref().map(|wrong| wrong.kind);
            assert_eq!(found, kind, "{dtype} {got} {expected}");
            assert_eq!(comparison.statistics.exceeding, u64::from(kind.is_some()));
            assert_eq!(comparison.statistics.count, 1);
        }
        // Without an envelope the tie is out of reach.
        let comparison = one(DType::Float16, INF, 65519.0, Bound::ROUNDED, &Rules::default());
        assert!(!comparison.agrees());
    }

    #[test]
    fn saturation_is_right_for_fp8_alone() {
        let table = [
            (DType::Float8E4M3, 448.0, 1e6, true),
            (DType::Float8E4M3, -448.0, 1e6, false),
            (DType::Float8E4M3, 416.0, 1e6, false),
            (DType::Float8E5M2, 57344.0, 1e6, true),
            (DType::Float16, 65504.0, 1e6, false),
            (DType::Float32, f64::from(f32::MAX), 1e39, false),
        ];
        for (dtype, got, expected, right) in table {
            let comparison = one(dtype, got, expected, Bound::ROUNDED, &Rules::default());
            assert_eq!(comparison.agrees(), right, "{dtype} {got} {expected}");
        }
    }

    #[test]
    fn checks_that_are_switched_off() {
        let no_nan = Rules { check_nan: false, ..Rules::default() };
        let no_inf = Rules { check_inf: false, ..Rules::default() };
        let table = [
            (1.0, NAN, no_nan, true, 0),
            (NAN, 1.0, no_nan, false, 1),
            (1.0, INF, no_nan, false, 1),
            (1.0, INF, no_inf, true, 0),
            (NAN, INF, no_inf, true, 0),
            (INF, 1.0, no_inf, false, 1),
        ];
        for (got, expected, rules, right, count) in table {
            let comparison = one(DType::Float32, got, expected, Bound::ROUNDED, &rules);
            assert_eq!((comparison.agrees(), comparison.statistics.count), (right, count), "{got} {expected}");
        }
    }

    #[test]
    fn integers_are_exact() {
        let big = (1i64 << 53) + 1;
        let table: &[(Tensor, Vec<i64>, u64)] = &[
            (Tensor::from_slice(&[2], &[big, i64::MIN]), vec![big, i64::MIN], 0),
            (Tensor::from_slice(&[2], &[big, i64::MIN]), vec![big - 1, i64::MAX], 2),
            (Tensor::from_slice(&[1], &[u64::MAX]), vec![-1], 0),
            (Tensor::from_slice(&[1], &[u64::MAX]), vec![-2], 1),
            (Tensor::from_slice(&[2], &[-1i8, 127]), vec![-1, 127], 0),
            (Tensor::from_slice(&[2], &[Bool(1), Bool(7)]), vec![1, 1], 0),
            (Tensor::from_slice(&[2], &[Bool(0), Bool(7)]), vec![1, 0], 2),
        ];
        for (got, expected, exceeding) in table {
            let expected = Array::integer(got.dtype(), got.shape(), expected.clone());
            let comparison = compare(got, &expected, Bound::ROUNDED, &Rules::default());
            assert_eq!(comparison.statistics.exceeding, *exceeding, "{got:?}");
            assert_eq!(comparison.agrees(), *exceeding == 0);
        }
    }

    #[test]
    fn a_quantised_answer_may_be_compared_with_the_unrounded_mirror() {
        let got = Tensor::from_slice(&[3], &[2i8, 3, 4]);
        for (expected, exceeding) in [([2.5, 2.5, 4.4], 0), ([2.6, 2.5, 4.4], 1), ([NAN, 2.5, 4.4], 0)] {
            let expected = Array::float(DType::Int8, &[3], expected.to_vec());
            assert_eq!(compare(&got, &expected, Bound::ROUNDED, &Rules::default()).statistics.exceeding, exceeding);
        }
    }

    #[test]
    fn empty_answers_and_single_elements() {
        for shape in [&[0][..], &[2, 0, 3]] {
            let got = Tensor::zeros(
                DType::Float16,
                Layout { shape: shape.to_vec(), strides: vec![1; shape.len()], offset: 9 },
            );
            let comparison =
                compare(&got, &Array::float(DType::Float16, shape, vec![]), Bound::ROUNDED, &Rules::default());
            assert!(comparison.agrees());
            assert_eq!(comparison.statistics, Statistics::default());
        }
        let got = Tensor::from_slice(&[], &[2.0f32]);
        let comparison =
            compare(&got, &Array::float(DType::Float32, &[], vec![1.0]), Bound::ROUNDED, &Rules::default());
        let first = comparison.first.expect("it differs");
        assert_eq!((first.index, first.got, first.expected, first.ulp), (vec![], 2.0, 1.0, 8388608.0));
    }

    #[test]
    fn messages_name_the_thing_and_the_place() {
        let got = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 9.0]);
        let expected = Array::float(DType::Float32, &[2, 2], vec![1.0, 2.0, 3.0, 4.0]);
        let failure = compare(&got, &expected, Bound::ROUNDED, &Rules::default()).failure("out").unwrap();
        assert_eq!(failure.message, "1 of 4 elements of out differ by more than allowed, the first at [1, 1]");
        let expected = Array::float(DType::Float32, &[2, 2], vec![1.0, NAN, 3.0, 4.0]);
        let failure = compare(&got, &expected, Bound::ROUNDED, &Rules::default()).failure("out").unwrap();
        assert_eq!(failure.check, Check::NonFinite);
        assert!(
            failure.message.starts_with("out has a number where the mirror is NaN at [0, 1]"),
            "{}",
            failure.message
        );
        assert_eq!(check_shape("out", &[2], &[2, 1]).unwrap().message, "out has shape [2], the mirror [2, 1]");
        assert!(check_dtype("out", DType::Int8, DType::Int8).is_none());
    }

    /// A value near the interesting places of a dtype.
    fn values() -> impl Strategy<Value = f64> {
        prop_oneof![
            8 => -4.0f64..4.0,
            2 => (-160i32..140, -2.0f64..2.0).prop_map(|(exponent, value)| value * 2f64.powi(exponent)),
            1 => prop::sample::select(vec![0.0, -0.0, NAN, INF, -INF, 448.0, 464.0, 65504.0, 65520.0, 3.4e38, 3.5e38, 1e300]),
        ]
    }

    proptest! {
        /// Against one that looks at an element at a time and keeps everything.
        #[test]
        fn one_pass_finds_what_a_slow_one_finds(
            dtype in prop::sample::select(vec![
                DType::Float64, DType::Float32, DType::Float16, DType::BFloat16, DType::Float8E4M3, DType::Float8E5M2,
            ]),
            rows in 1usize..5,
            columns in prop_oneof![1usize..12, 300usize..1100],
            seeds in prop::collection::vec((values(), prop_oneof![6 => Just(0.0), 3 => -1e-3f64..1e-3, 1 => -3.0f64..3.0]), 1..40),
            stride in prop::sample::select(vec![1usize, 2]),
            swap in any::<bool>(),
            per_element in any::<bool>(),
        ) {
            let count = rows * columns;
            // Mostly tame values, so that fast blocks occur: the drawn ones stand at scattered places.
            let mut expected = vec![1.5; count];
            let mut answers = vec![1.5; count];
            for (number, (value, error)) in seeds.iter().enumerate() {
                let at = (number * 7919) % count;
                expected[at] = *value;
                answers[at] = value * (1.0 + error);
            }
            let shape = [rows, columns];
            let layout = if swap {
                Layout { shape: shape.to_vec(), strides: vec![stride as isize, (rows * stride) as isize], offset: 3 }
            } else {
                Layout { shape: shape.to_vec(), strides: vec![(columns * stride + 1) as isize, stride as isize], offset: 1 }
            };
            let mut got = Tensor::zeros(dtype, layout);
            got.copy_elements_from(&Tensor::from_array(&Array::float(dtype, &shape, answers), dtype));
            let expected = Array::float(dtype, &shape, expected);
            let grid = Grid::of(dtype);
            let allowed: Vec<f64> = expected.floats().unwrap().iter()
                .map(|value| 0.5 * grid.step(*value) + (1e-4 * value.abs() + 1e-7)).collect();
            let bound = if per_element { Bound::PerElement(&allowed) } else { Bound::cheap(1e-4, 1e-7) };
            let rules = Rules::default();
            let fast = compare(&got, &expected, bound, &rules);
            let marks = wrong_elements(&got, &expected, bound, &rules);

            let answers = got.to_array();
            let (mut exceeding, mut errors, mut max_ulp, mut sum_ulp, mut max_rel) = (0, Vec::new(), 0.0f64, 0.0, 0.0f64);
            for number in 0..count {
                let (g, e) = (answers.at(number), expected.at(number));
                prop_assert!(g.is_nan() || round_to_dtype(g, dtype) == g);
                let slack = 1e-4 * e.abs() + 1e-7;
                let limit = dtype.max_finite().unwrap();
                let wrong = if e.is_nan() {
                    !g.is_nan()
                } else if g.is_finite() && e.is_finite() {
                    let ulp = grid.ulp(g, e);
                    max_ulp = max_ulp.max(ulp);
                    sum_ulp += ulp;
                    if e.abs() >= grid.min_normal { max_rel = max_rel.max((g - e).abs() / e.abs()) }
                    let fp8_max = dtype.size() == 1 && g == limit.copysign(e) && e.abs() + slack >= limit;
                    let beyond = (g - e).abs() > allowed[number];
                    // A right answer at the end of the range has no error to speak of.
                    if !(beyond && fp8_max) { errors.push((g - e).abs()) }
                    beyond && !fp8_max
                } else if g.is_finite() {
                    !(dtype.size() == 1 && g == limit.copysign(e))
                } else if dtype == DType::Float8E4M3 {
                    e.is_finite() && e.abs() + slack < 464.0
                } else {
                    !(g == e || (g.is_infinite() && e.signum() == g.signum() && e.abs() + slack >= grid.overflow()))
                };
                prop_assert_eq!(marks[number], wrong, "{} {} at {}", g, e, number);
                exceeding += u64::from(wrong);
            }
            let s = &fast.statistics;
            prop_assert_eq!((s.count, s.exceeding, s.finite), (count as u64, exceeding, errors.len() as u64));
            let first = marks.iter().position(|&wrong| wrong);
            let found = [fast.first.as_ref(), fast.non_finite.as_ref().map(|wrong| &wrong.first)];
            let found = found.into_iter().flatten().map(|m| m.index[0] * columns + m.index[1]).min();
            prop_assert_eq!(found, first);
            let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-9 * b.abs();
            // Saturated fp8 elements have no error to speak of; everything else must agree.
            if dtype.size() > 1 {
                errors.sort_by(f64::total_cmp);
                let max = errors.last().copied().unwrap_or(0.0);
                prop_assert!(close(s.max_abs, max) && close(s.max_ulp, max_ulp) && close(s.max_rel, max_rel), "{s:?}");
                if !errors.is_empty() {
                    let n = errors.len();
                    prop_assert!(close(s.mean_abs, errors.iter().sum::<f64>() / n as f64), "{s:?}");
                    prop_assert!(close(s.mean_ulp, sum_ulp / n as f64), "{s:?} {}", sum_ulp / n as f64);
                    for (got, fraction) in [(s.p50_abs, 0.5), (s.p90_abs, 0.9), (s.p99_abs, 0.99)] {
                        let right = errors[((fraction * n as f64).ceil() as usize).clamp(1, n) - 1];
                        let right = right.min(f64::from(f32::MAX));
                        prop_assert!((got - right).abs() <= 0.13 * right + 2f64.powi(-128), "{got} {right}");
                    }
                }
            }
        }
    }
}
