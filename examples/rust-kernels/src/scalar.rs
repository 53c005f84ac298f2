//! Element types, and the types that kernels compute in: float32 for every float but float64.

use half::{bf16, f16};
use std::num::Wrapping;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// What kernels compute with.
pub trait Number:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + AddAssign + Send + Sync + 'static
{
    /// Zero.
    const ZERO: Self;
    /// What every other value is at least as large as.
    const LOWEST: Self;

    /// Whether it is no number.
    fn is_nan(self) -> bool;

    /// The larger of two; a NaN wins.
    #[inline]
    fn larger(self, other: Self) -> Self {
        if self.is_nan() || self > other { self } else { other }
    }
}

/// What kernels compute with where they divide and take roots and exponentials.
#[allow(missing_docs)]
pub trait Real: Number + Div<Output = Self> + Neg<Output = Self> {
    const ONE: Self;
    const HALF: Self;

    /// The nearest value.
    fn of(value: f64) -> Self;

    /// The value as a float64.
    fn to_f64(self) -> f64;

    fn exp(self) -> Self;
    fn exp_m1(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    fn mul_add(self, factor: Self, summand: Self) -> Self;

    /// A count.
    #[inline]
    fn count(count: usize) -> Self {
        Self::of(count as f64)
    }
}

/// An element as it lies in memory.
pub trait Scalar: Copy + Send + Sync + 'static {
    /// What it is computed in.
    type Acc: Number;

    /// Widened.
    fn load(self) -> Self::Acc;

    /// Rounded.
    fn store(value: Self::Acc) -> Self;
}

/// An element with a fraction.
pub trait RealScalar: Scalar<Acc: Real> {}

macro_rules! reals {
    ($($T:ident, $erf:path;)*) => {$(
        impl Number for $T {
            const ZERO: Self = 0.0;
            const LOWEST: Self = $T::NEG_INFINITY;
            #[inline]
            fn is_nan(self) -> bool { $T::is_nan(self) }
        }
        impl Real for $T {
            const ONE: Self = 1.0;
            const HALF: Self = 0.5;
            #[inline]
            fn of(value: f64) -> Self { value as $T }
            #[inline]
            fn to_f64(self) -> f64 { self.into() }
            #[inline]
            fn exp(self) -> Self { $T::exp(self) }
            #[inline]
            fn exp_m1(self) -> Self { $T::exp_m1(self) }
            #[inline]
            fn ln(self) -> Self { $T::ln(self) }
            #[inline]
            fn sqrt(self) -> Self { $T::sqrt(self) }
            #[inline]
            fn tanh(self) -> Self { $T::tanh(self) }
            #[inline]
            fn erf(self) -> Self { $erf(self) }
            #[inline]
            fn mul_add(self, factor: Self, summand: Self) -> Self { $T::mul_add(self, factor, summand) }
        }
        impl Scalar for $T {
            type Acc = $T;
            #[inline]
            fn load(self) -> $T { self }
            #[inline]
            fn store(value: $T) -> $T { value }
        }
        impl RealScalar for $T {}
    )*};
}
reals! { f32, libm::erff; f64, libm::erf; }

macro_rules! halves {
    ($($T:ident),*) => {$(
        impl Scalar for $T {
            type Acc = f32;
            #[inline]
            fn load(self) -> f32 { self.to_f32() }
            #[inline]
            fn store(value: f32) -> $T { $T::from_f32(value) }
        }
        impl RealScalar for $T {}
    )*};
}
halves!(f16, bf16);

/// Integers wrap, as they do on a GPU.
impl Number for Wrapping<i32> {
    const ZERO: Self = Wrapping(0);
    const LOWEST: Self = Wrapping(i32::MIN);
    #[inline]
    fn is_nan(self) -> bool {
        false
    }
}

impl Scalar for i32 {
    type Acc = Wrapping<i32>;
    #[inline]
    fn load(self) -> Wrapping<i32> {
        Wrapping(self)
    }
    #[inline]
    fn store(value: Wrapping<i32>) -> i32 {
        value.0
    }
}
