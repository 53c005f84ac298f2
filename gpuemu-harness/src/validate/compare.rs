//! One pass over an answer and its expected values: which elements are wrong, and how large the errors are.

mod judge;

use super::blocks::{BLOCK, Blocks};
use super::grid::Grid;
use super::scan::{Allowed, Lane, scan};
use super::statistics::{Gathered, Histogram};
use super::verdict::{Check, Failure, Mismatch, Statistics};
use crate::tensor::{Array, Bool, Element, F8E4M3, F8E5M2, Layout, Tensor, Values};
use gpuemu_contract::DType;
use half::{bf16, f16};
pub use judge::{Bound, NonFiniteKind, Rules};
use judge::{Judge, Judgement, within};
use std::borrow::Cow;
use std::ops::Range;

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

/// Bounds of a run of elements that a first bound did not clear.
#[derive(Clone, Debug, PartialEq)]
pub struct Closer {
    /// One bound an element of the run, everything included; at least what the first bound allows.
    pub allowed: Vec<f64>,
    /// Elements where either of two answers is right.
    pub either_right: Option<Vec<bool>>,
}

/// Looks closely at a run of elements, in row-major order; `None` where nothing more is known.
pub type Look<'l> = dyn FnMut(Range<usize>) -> Option<Closer> + 'l;

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
    run(got, expected, bound, rules, None)
}

/// [`compare`], with a closer look at those elements that the bound does not clear, in the same pass.
pub fn compare_closely(
    got: &Tensor,
    expected: &Array,
    bound: Bound<'_>,
    rules: &Rules<'_>,
    look: &mut Look<'_>,
) -> Comparison {
    run(got, expected, bound, rules, Some(look))
}

fn run(got: &Tensor, expected: &Array, bound: Bound<'_>, rules: &Rules<'_>, look: Option<&mut Look<'_>>) -> Comparison {
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
        look,
        buckets: [0; BLOCK],
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

/// The pass of [`compare`].
struct Pass<'a, 'l> {
    judge: Judge<'a>,
    gathered: Gathered,
    look: Option<&'a mut Look<'l>>,
    /// Room for the buckets of a block, not cleared between blocks.
    buckets: [u32; BLOCK],
    /// Row-major number of the first element of the next block.
    number: usize,
    /// Number, got, expected, allowed.
    first: Option<(usize, f64, f64, f64)>,
    non_finite: Option<(NonFiniteKind, u64, (usize, f64, f64, f64))>,
}

impl Pass<'_, '_> {
    /// Takes a block that has nothing unusual in it; `false`: it has, and was not taken.
    fn fast<G: Lane>(&mut self, got: &[G], expected: &[f64], allowed: Allowed<'_>) -> bool {
        // The fast pass takes steps from exponents, which integers do not have.
        if !self.judge.dtype.is_float() {
            return false;
        }
        let sums = scan(got, expected, allowed, &self.judge.grid, &mut self.buckets);
        if let Some(sums) = &sums {
            self.gathered.block(sums, &self.buckets[..got.len()]);
        }
        sums.is_some()
    }

    /// Takes a block element by element; `first` is the number by which `judge` knows its first element.
    fn slow<G: Lane>(&mut self, judge: &Judge<'_>, first: usize, got: &[G], expected: &[f64]) {
        for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            let judgement = judge.float(first + at, got.into(), expected);
            self.element(self.number + at, got.into(), expected, judgement);
        }
    }

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

impl Visitor for Pass<'_, '_> {
    fn floats<G: Lane>(&mut self, got: &[G], expected: &[f64]) {
        let elements = self.number..self.number + got.len();
        let allowed = match self.judge.bound {
            Bound::Formula { steps, relative, absolute } => Allowed::Formula { steps, relative, absolute },
            Bound::PerElement(each) => Allowed::Each(&each[elements.clone()]),
        };
        if !self.fast(got, expected, allowed) {
            match self.look.as_mut().and_then(|look| look(elements.clone())) {
                Some(closer) => {
                    if !self.fast(got, expected, Allowed::Each(&closer.allowed)) {
                        let bound = Bound::PerElement(&closer.allowed);
                        let rules = Rules { either_right: closer.either_right.as_deref(), ..self.judge.rules };
                        let judge = Judge { bound, rules, ..self.judge };
                        self.slow(&judge, 0, got, expected);
                    }
                }
                None => {
                    let judge = self.judge;
                    self.slow(&judge, elements.start, got, expected);
                }
            }
        }
        self.number = elements.end;
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
mod tests;
