//! Right or wrong: the bound of one element, what is demanded of values that are not finite, and the judgement.

use crate::validate::grid::Grid;
use crate::validate::scan::Sums;
use gpuemu_contract::{DType, Tolerance};

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
    pub(in crate::validate) fn at(&self, number: usize, expected: f64, grid: &Grid) -> f64 {
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

/// What is right, for one element.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) grid: Grid,
    pub(super) dtype: DType,
    pub(super) bound: Bound<'a>,
    pub(super) rules: Rules<'a>,
}

/// The outcome of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Judgement {
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
    pub(super) fn float(&self, number: usize, got: f64, expected: f64) -> Judgement {
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

    pub(super) fn integer(&self, number: usize, got: i64, expected: i64) -> (f64, f64, Judgement) {
        let (error, got, expected) = if self.dtype == DType::UInt64 {
            let (got, expected) = (got as u64, expected as u64);
            (got.abs_diff(expected), got as f64, expected as f64)
        } else {
            (got.abs_diff(expected), got as f64, expected as f64)
        };
        let allowed = self.bound.at(number, expected, &self.grid);
        (got, expected, Judgement::Error { error: error as f64, allowed })
    }

    pub(super) fn sums(&self, got: f64, expected: f64, error: f64, allowed: f64) -> Sums {
        let magnitude = expected.abs();
        let rel = if magnitude < self.grid.min_normal { 0.0 } else { error / magnitude };
        let ulp = if self.dtype.is_float() { self.grid.ulp(got, expected) } else { error };
        let of_bound = if error == 0.0 { 0.0 } else { error / allowed };
        Sums { abs: error, rel, ulp, max_abs: error, max_rel: rel, max_ulp: ulp, of_bound }
    }
}

/// False for a bound that is NaN, which must not let anything pass.
pub(super) fn within(error: f64, allowed: f64) -> bool {
    error <= allowed
}
