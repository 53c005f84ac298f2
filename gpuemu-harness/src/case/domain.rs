//! Domains with their expressions evaluated: what the values of one input of one case may be.

use super::kind::Kind;
use crate::error::{Error, Result};
use gpuemu_contract::{Bindings, DType, Domain};

/// A domain of one case.
#[derive(Clone, Debug, PartialEq)]
pub enum Limits {
    /// Integers from the first to the second, both included.
    Integer(i128, i128),
    /// Floats from the first to the second.
    Float(f64, f64),
    /// Floats above zero.
    Positive,
    /// Floats in [0, 1].
    Probability,
    /// Along the last axis, each of 0..n once.
    Permutation,
    /// Ascending along the last axis, from the range.
    Sorted(i128, i128),
    /// No value twice along the last axis, from the range.
    Unique(i128, i128),
    /// Along the last axis, one 1 and zeros.
    OneHot,
    /// Along the last axis, from 0 ascending to this.
    Offsets(i128),
    /// Another domain, with some entries replaced by this sentinel.
    Sentinel(Box<Limits>, i64),
}

impl Limits {
    /// The domain of a tensor of this dtype with its expressions evaluated. In an integer dtype a domain of floats means
    /// the whole numbers in it: `positive` from 1 on, `probability` 0 and 1.
    pub fn of(domain: &Domain, dtype: DType, bindings: &Bindings) -> Result<Limits> {
        let value = |expression: &gpuemu_contract::Expression| -> Result<i128> {
            expression.evaluate(bindings).map(i128::from).map_err(|error| Error::Config(format!("domain: {error}")))
        };
        Ok(match domain {
            Domain::FloatRange(low, high) if !dtype.is_float() => {
                let (least, most) = dtype.integer_range().unwrap_or((0, 0));
                Limits::Integer((low.ceil() as i128).max(least), (high.floor() as i128).min(most))
            }
            Domain::Positive if !dtype.is_float() => {
                Limits::Integer(1, dtype.integer_range().map_or(1, |(_, most)| most))
            }
            Domain::Probability if !dtype.is_float() => Limits::Integer(0, 1),
            Domain::IntegerRange(low, high) => Limits::Integer(value(low)?, value(high)?),
            Domain::FloatRange(low, high) => Limits::Float(*low, *high),
            Domain::Positive => Limits::Positive,
            Domain::Probability => Limits::Probability,
            Domain::Permutation => Limits::Permutation,
            Domain::Sorted(low, high) => Limits::Sorted(value(low)?, value(high)?),
            Domain::Unique(low, high) => Limits::Unique(value(low)?, value(high)?),
            Domain::OneHot => Limits::OneHot,
            Domain::Offsets(size) => Limits::Offsets(value(size)?),
            Domain::Sentinel(inner, sentinel) => {
                Limits::Sentinel(Box::new(Limits::of(inner, dtype, bindings)?), *sentinel)
            }
        })
    }

    /// Whether values are whole numbers, whatever the dtype.
    pub fn is_integer(&self) -> bool {
        match self {
            Limits::Float(..) | Limits::Positive | Limits::Probability => false,
            Limits::Sentinel(inner, _) => inner.is_integer(),
            _ => true,
        }
    }

    /// Whether a tensor of this dtype and shape can be filled at all; says why not.
    pub fn admit(&self, dtype: DType, shape: &[usize]) -> std::result::Result<(), String> {
        if shape.contains(&0) {
            return Ok(());
        }
        let row = shape.last().copied().unwrap_or(1) as i128;
        // Of a float dtype: the integers up to which it has every one, 2^(fraction bits + 1).
        let whole = dtype.fraction_bits().map_or(0, |bits| 1i128 << (bits + 1));
        let (least, most) = dtype.integer_range().unwrap_or((-whole, whole));
        let range = |low: i128, high: i128| -> std::result::Result<i128, String> {
            if low > high {
                return Err(format!("its domain is empty: from {low} to {high}"));
            }
            if low < least || high > most {
                return Err(format!("its domain, {low} to {high}, does not fit in {dtype}"));
            }
            Ok(high - low + 1)
        };
        match self {
            Limits::Integer(low, high) | Limits::Sorted(low, high) => range(*low, *high).map(drop),
            Limits::Unique(low, high) => match range(*low, *high)? {
                room if room < row => Err(format!("rows of {row} unique values do not fit in {low} to {high}")),
                _ => Ok(()),
            },
            Limits::Permutation => range(0, row - 1).map(drop),
            Limits::OneHot => Ok(()),
            Limits::Offsets(size) => match range(0, *size)? {
                1.. if row == 1 && *size > 0 => Err(format!("a single offset cannot be both 0 and {size}")),
                _ => Ok(()),
            },
            Limits::Float(low, high) if !(low <= high && low.is_finite() && high.is_finite()) => {
                Err(format!("its domain is empty: from {low} to {high}"))
            }
            Limits::Float(..) | Limits::Positive | Limits::Probability if !dtype.is_float() => {
                Err(format!("its domain is one of floats, its dtype is {dtype}"))
            }
            Limits::Float(..) | Limits::Positive | Limits::Probability => Ok(()),
            Limits::Sentinel(inner, _) if !inner.is_integer() => {
                Err("a sentinel stands in a domain of integers, its own is one of floats".to_owned())
            }
            Limits::Sentinel(inner, sentinel) => {
                if !(least..=most).contains(&i128::from(*sentinel)) {
                    return Err(format!("its sentinel, {sentinel}, does not fit in {dtype}"));
                }
                inner.admit(dtype, shape)
            }
        }
    }
}

/// The distributions an input of this dtype and domain can have, the simplest first.
pub fn kinds(dtype: DType, limits: Option<&Limits>) -> &'static [Kind] {
    use Kind::*;
    match limits {
        Some(Limits::Sentinel(inner, _)) => kinds(dtype, Some(inner)),
        Some(Limits::Integer(..)) => &[Zeros, Ones, Constant, OneHot, Ramp, Small, FullRange, Extremes],
        Some(Limits::Sorted(..)) => &[Zeros, Ones, Constant, Sorted],
        Some(Limits::Unique(..)) => &[Ramp, Unique],
        Some(Limits::Permutation) => &[Ramp, Permutation],
        Some(Limits::OneHot) => &[OneHot],
        Some(Limits::Offsets(_)) => &[Ramp, Offsets],
        Some(Limits::Float(..)) => &[Zeros, Ones, Constant, Ramp, Uniform, Normal, Range, Bounds, Structured],
        Some(Limits::Probability) => {
            &[Zeros, Ones, Constant, OneHot, Ramp, Uniform, Normal, Probability, Range, Bounds, Tiny, Structured]
        }
        Some(Limits::Positive) => &[
            Ones,
            Constant,
            Ramp,
            Uniform,
            Normal,
            Positive,
            Probability,
            Shifted,
            Alternating,
            EqualMaxima,
            Tiny,
            Edge,
            Structured,
        ],
        None if dtype.is_float() => &[
            Zeros,
            Ones,
            Constant,
            OneHot,
            Ramp,
            Uniform,
            Normal,
            Positive,
            Probability,
            Shifted,
            Alternating,
            EqualMaxima,
            Tiny,
            Edge,
            Structured,
            NegInfRows,
            NanFew,
            InfFew,
            Adversarial,
        ],
        None => &[Zeros, Ones, Constant, OneHot, Ramp, Small, FullRange, Extremes],
    }
}

/// The distribution that says least about an input: normal values, small integers, or what its domain prescribes.
pub fn plain(dtype: DType, limits: Option<&Limits>) -> Kind {
    match limits {
        Some(Limits::Sentinel(inner, _)) => plain(dtype, Some(inner)),
        Some(Limits::Integer(..)) => Kind::FullRange,
        Some(Limits::Sorted(..)) => Kind::Sorted,
        Some(Limits::Unique(..)) => Kind::Unique,
        Some(Limits::Permutation) => Kind::Permutation,
        Some(Limits::OneHot) => Kind::OneHot,
        Some(Limits::Offsets(_)) => Kind::Offsets,
        Some(Limits::Float(..)) => Kind::Range,
        Some(Limits::Probability) => Kind::Probability,
        Some(Limits::Positive) => Kind::Positive,
        None if dtype.is_float() => Kind::Normal,
        None => Kind::Small,
    }
}
