//! Arithmetic in each working precision: what a built-in reference is generic over.

use super::vector_math;
use half::{bf16, f16};
use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A number of one working precision. Every operation rounds to it, to nearest even.
pub trait Real:
    Copy
    + Debug
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// A NaN.
    const NAN: Self;
    /// Whether expected values are computed in it. Formulas that cancel are then rewritten so that they do not; in a
    /// working precision they stay as kernels write them.
    const PRECISE: bool = false;

    /// The nearest number of this precision.
    fn from_f64(value: f64) -> Self;
    /// The value, exact.
    fn to_f64(self) -> f64;
    /// What a multiplication unit keeps of a factor of a product: the number itself, but for tf32 and fp8.
    fn factor(self) -> Self {
        self
    }
    /// e to the power of it.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// e to the power of it, minus one.
    fn exp_m1(self) -> Self;

    /// Natural logarithm of one more than it.
    fn ln_1p(self) -> Self {
        Self::from_f64(self.to_f64().ln_1p())
    }
    /// One minus the error function.
    fn erfc(self) -> Self {
        Self::from_f64(libm::erfc(self.to_f64()))
    }
    /// `self * b + c`, rounded twice (float64: once).
    #[inline]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    /// Magnitude.
    fn abs(self) -> Self {
        if self.to_f64().is_sign_negative() { -self } else { self }
    }
    /// Whether it is NaN.
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    /// [`Real::from_f64`] of each.
    fn from_f64s(values: &[f64]) -> Cow<'_, [Self]> {
        values.iter().map(|&value| Self::from_f64(value)).collect()
    }
    /// [`Real::to_f64`] of each.
    fn into_f64s(values: Vec<Self>) -> Vec<f64> {
        values.into_iter().map(Self::to_f64).collect()
    }
    /// Appends [`Real::to_f64`] of each.
    fn append_f64s(values: &[Self], to: &mut Vec<f64>) {
        to.extend(values.iter().map(|value| value.to_f64()));
    }
    /// Appends what `map` makes of a row, read and written in this precision; `scratch` holds the row before and after
    /// (float64: neither is copied).
    fn map_row(
        row: &[f64],
        to: &mut Vec<f64>,
        scratch: &mut [Vec<Self>; 2],
        map: &mut impl FnMut(&[Self], &mut Vec<Self>),
    ) {
        let [rounded, mapped] = scratch;
        rounded.clear();
        rounded.extend(row.iter().map(|&value| Self::from_f64(value)));
        mapped.clear();
        map(rounded, mapped);
        Self::append_f64s(mapped, to);
    }
    /// [`Real::exp`] of each, in place.
    fn exp_each(values: &mut [Self]) {
        for value in values {
            *value = value.exp();
        }
    }
    /// The sum: one after the other, as the plainest kernel adds (float64: pairwise, so that the error stays below a
    /// few units in the last place of the sum of magnitudes, whatever the length).
    fn sum(values: &[Self]) -> Self {
        values.iter().fold(Self::ZERO, |sum, &value| sum + value)
    }
    /// The largest value; NaN when there is one, -inf when there is no value.
    fn max(values: &[Self]) -> Self {
        let max = values.iter().fold(-Self::INFINITY, |max, &value| if value > max { value } else { max });
        if values.iter().any(|value| value.is_nan()) { Self::NAN } else { max }
    }
}

/// [`Real::max`] of a primitive type: several maxima side by side, NaN marked in masks of the type's own width, so that
/// the loop becomes vector code.
macro_rules! vector_max {
    ($T:ty, $Mask:ty) => {
        fn max(values: &[Self]) -> Self {
            const LANES: usize = 16;
            let larger = |a: $T, b: $T| if b > a { b } else { a };
            let (mut max, mut nan) = ([<$T>::NEG_INFINITY; LANES], [0 as $Mask; LANES]);
            let chunks = values.chunks_exact(LANES);
            for (place, &value) in chunks.remainder().iter().enumerate() {
                max[place] = larger(max[place], value);
                nan[place] |= <$Mask>::from(value.is_nan());
            }
            for chunk in chunks {
                for place in 0..LANES {
                    max[place] = larger(max[place], chunk[place]);
                    nan[place] |= if chunk[place].is_nan() { <$Mask>::MAX } else { 0 };
                }
            }
            let any_nan = nan.into_iter().any(|mask| mask != 0);
            if any_nan { <$T>::NAN } else { max.into_iter().fold(<$T>::NEG_INFINITY, larger) }
        }
    };
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const INFINITY: Self = f64::INFINITY;
    const NAN: Self = f64::NAN;
    const PRECISE: bool = true;

    #[inline]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline]
    fn exp(self) -> Self {
        f64::exp(self)
    }
    #[inline]
    fn ln(self) -> Self {
        f64::ln(self)
    }
    #[inline]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    #[inline]
    fn tanh(self) -> Self {
        f64::tanh(self)
    }
    #[inline]
    fn erf(self) -> Self {
        libm::erf(self)
    }
    #[inline]
    fn exp_m1(self) -> Self {
        f64::exp_m1(self)
    }
    #[inline]
    fn ln_1p(self) -> Self {
        f64::ln_1p(self)
    }
    #[inline]
    fn mul_add(self, b: Self, c: Self) -> Self {
        f64::mul_add(self, b, c)
    }
    #[inline]
    fn abs(self) -> Self {
        f64::abs(self)
    }

    fn from_f64s(values: &[f64]) -> Cow<'_, [Self]> {
        Cow::Borrowed(values)
    }
    fn into_f64s(values: Vec<Self>) -> Vec<f64> {
        values
    }
    fn append_f64s(values: &[Self], to: &mut Vec<f64>) {
        to.extend_from_slice(values);
    }
    fn map_row(row: &[f64], to: &mut Vec<f64>, _: &mut [Vec<Self>; 2], map: &mut impl FnMut(&[Self], &mut Vec<Self>)) {
        map(row, to);
    }
    fn exp_each(values: &mut [Self]) {
        vector_math::exp_f64(values);
    }
    fn sum(values: &[Self]) -> Self {
        pairwise_sum(values)
    }
    vector_max!(f64, u64);
}

/// Sums halves apart down to blocks of 128, those in eight partial sums.
fn pairwise_sum(values: &[f64]) -> f64 {
    if values.len() > 128 {
        let (low, high) = values.split_at((values.len() / 2).next_multiple_of(8));
        return pairwise_sum(low) + pairwise_sum(high);
    }
    let mut partial = [0.0; 8];
    let eights = values.chunks_exact(8);
    for (place, value) in eights.remainder().iter().enumerate() {
        partial[place] = *value;
    }
    for eight in eights {
        for (sum, value) in partial.iter_mut().zip(eight) {
            *sum += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = partial;
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const INFINITY: Self = f32::INFINITY;
    const NAN: Self = f32::NAN;

    #[inline]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn exp(self) -> Self {
        f32::exp(self)
    }
    #[inline]
    fn ln(self) -> Self {
        f32::ln(self)
    }
    #[inline]
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }
    #[inline]
    fn tanh(self) -> Self {
        f32::tanh(self)
    }
    #[inline]
    fn erf(self) -> Self {
        libm::erff(self)
    }
    #[inline]
    fn exp_m1(self) -> Self {
        f32::exp_m1(self)
    }
    #[inline]
    fn abs(self) -> Self {
        f32::abs(self)
    }

    fn exp_each(values: &mut [Self]) {
        vector_math::exp_f32(values);
    }
    vector_max!(f32, u32);
}

macro_rules! delegate {
    ($Name:ident, $round:expr) => {
        impl Add for $Name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                $Name($round(self.0 + other.0))
            }
        }
        impl Sub for $Name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                $Name($round(self.0 - other.0))
            }
        }
        impl Mul for $Name {
            type Output = Self;
            #[inline]
            fn mul(self, other: Self) -> Self {
                $Name($round(self.0 * other.0))
            }
        }
        impl Div for $Name {
            type Output = Self;
            #[inline]
            fn div(self, other: Self) -> Self {
                $Name($round(self.0 / other.0))
            }
        }
        impl Neg for $Name {
            type Output = Self;
            #[inline]
            fn neg(self) -> Self {
                $Name(-self.0)
            }
        }
        impl AddAssign for $Name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
    };
}

macro_rules! delegate_functions {
    ($Name:ident, $round:expr) => {
        const ZERO: Self = $Name(0.0);
        const ONE: Self = $Name(1.0);
        const INFINITY: Self = $Name(f32::INFINITY);
        const NAN: Self = $Name(f32::NAN);

        #[inline]
        fn from_f64(value: f64) -> Self {
            $Name($round(value as f32))
        }
        #[inline]
        fn to_f64(self) -> f64 {
            f64::from(self.0)
        }
        #[inline]
        fn exp(self) -> Self {
            $Name($round(self.0.exp()))
        }
        #[inline]
        fn ln(self) -> Self {
            $Name($round(self.0.ln()))
        }
        #[inline]
        fn sqrt(self) -> Self {
            $Name($round(self.0.sqrt()))
        }
        #[inline]
        fn tanh(self) -> Self {
            $Name($round(self.0.tanh()))
        }
        #[inline]
        fn erf(self) -> Self {
            $Name($round(libm::erff(self.0)))
        }
        #[inline]
        fn exp_m1(self) -> Self {
            $Name($round(self.0.exp_m1()))
        }
    };
}

/// A float32 whose products round their factors to a narrower format first.
macro_rules! narrow_factors {
    ($(#[$doc:meta])* $Name:ident, $factor:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $Name(pub f32);

        delegate!($Name, |value: f32| value);

        impl Real for $Name {
            delegate_functions!($Name, |value: f32| value);
            #[inline]
            fn factor(self) -> Self {
                let narrow: fn(f32) -> f32 = $factor;
                $Name(narrow(self.0))
            }
        }
    };
}

/// A 16-bit format: operations are done in float32 and rounded. For one operation on 16-bit operands that is the
/// correctly rounded result (float32 has more than twice the fraction bits).
macro_rules! sixteen_bits {
    ($(#[$doc:meta])* $Name:ident, $half:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $Name(pub f32);

        delegate!($Name, |value: f32| <$half>::from_f32(value).to_f32());

        impl Real for $Name {
            delegate_functions!($Name, |value: f32| <$half>::from_f32(value).to_f32());
        }
    };
}

narrow_factors!(
    /// float32 with tf32 factors: 10 fraction bits, the lower 13 bits rounded off to nearest even.
    Tf32,
    |value| {
        let bits = value.to_bits();
        if bits & 0x7f80_0000 == 0x7f80_0000 {
            return value;
        }
        let half = 0xfff + ((bits >> 13) & 1);
        f32::from_bits((bits + half) & !0x1fff)
    }
);
narrow_factors!(
    /// float32 with fp8 e4m3fn factors.
    Fp8Factors,
    |value| crate::tensor::round_to_dtype(f64::from(value), gpuemu_contract::DType::Float8E4M3) as f32
);
sixteen_bits!(
    /// binary16 arithmetic.
    Half,
    f16
);
sixteen_bits!(
    /// bfloat16 arithmetic.
    Brain,
    bf16
);

/// Calls `$body` with `$R` bound to the number type of a working precision.
#[macro_export]
#[doc(hidden)]
macro_rules! with_real {
    ($precision:expr, $R:ident => $body:expr) => {
        match $precision {
            gpuemu_contract::Compute::Float64 => {
                type $R = f64;
                $body
            }
            gpuemu_contract::Compute::Float32 => {
                type $R = f32;
                $body
            }
            gpuemu_contract::Compute::Tf32 => {
                type $R = $crate::mirror::real::Tf32;
                $body
            }
            gpuemu_contract::Compute::Float16 => {
                type $R = $crate::mirror::real::Half;
                $body
            }
            gpuemu_contract::Compute::BFloat16 => {
                type $R = $crate::mirror::real::Brain;
                $body
            }
            gpuemu_contract::Compute::Float8 => {
                type $R = $crate::mirror::real::Fp8Factors;
                $body
            }
        }
    };
}
