//! The Rust type of each dtype, and exact conversions to and from float64.

use bytemuck::{Pod, Zeroable};
use gpuemu_contract::DType;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::fmt;

/// One byte, 0 or 1 (any other byte counts as true): poison may stand where a `bool` may not.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

/// fp8 e4m3fn: no infinities, largest magnitude 448, NaN is 0x7f or 0xff.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// fp8 e5m2: infinities and NaNs as in IEEE, largest finite magnitude 57344.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

/// The Rust type of a dtype.
pub trait Element: Pod + Default + PartialEq + fmt::Debug + Send + Sync {
    /// The dtype it stands for.
    const DTYPE: DType;

    /// The value; exact but for 64-bit integers beyond 2^53.
    fn to_f64(self) -> f64;

    /// The nearest value, ties to even. Integers truncate toward zero and saturate; fp8 e4m3fn turns magnitudes that
    /// round beyond 448 into NaN, as NumPy's `ml_dtypes` and PyTorch do.
    fn from_f64(value: f64) -> Self;

    /// [`Element::to_f64`] of each.
    fn to_f64s(values: &[Self]) -> Vec<f64> {
        values.iter().map(|value| value.to_f64()).collect()
    }
}

/// An element type with a fraction: what most kernels are generic over.
pub trait Float: Element {
    /// The value, exact (float64: the nearest float32).
    fn to_f32(self) -> f32;

    /// The nearest value, ties to even.
    fn from_f32(value: f32) -> Self;
}

macro_rules! integers {
    ($($T:ty => $dtype:ident),*) => {$(
        impl Element for $T {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline]
            fn from_f64(value: f64) -> Self { value as $T }
        }
    )*};
}
integers!(i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64);

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self.0 != 0)
    }
    #[inline]
    fn from_f64(value: f64) -> Self {
        Bool(u8::from(value != 0.0))
    }
}

impl Element for f64 {
    const DTYPE: DType = DType::Float64;
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline]
    fn from_f64(value: f64) -> Self {
        value
    }
}

impl Float for f64 {
    #[inline]
    fn to_f32(self) -> f32 {
        self as f32
    }
    #[inline]
    fn from_f32(value: f32) -> Self {
        f64::from(value)
    }
}

impl Element for f32 {
    const DTYPE: DType = DType::Float32;
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Float for f32 {
    #[inline]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline]
    fn from_f32(value: f32) -> Self {
        value
    }
}

macro_rules! halves {
    ($($T:ty => $dtype:ident),*) => {$(
        impl Element for $T {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_f64(self) -> f64 { f64::from(self.to_f32()) }
            fn to_f64s(values: &[Self]) -> Vec<f64> {
                let mut wide = vec![0.0; values.len()];
                // Several at once where the processor can.
                values.convert_to_f64_slice(&mut wide);
                wide
            }
            /// Rounds once: `half`'s own conversion from f64 passes through f32 on some processors and rounds twice.
            #[inline]
            fn from_f64(value: f64) -> Self { <$T>::from_f32(<$T>::before_rounding(value)) }
        }
        impl Float for $T {
            #[inline]
            fn to_f32(self) -> f32 { <$T>::to_f32(self) }
            #[inline]
            fn from_f32(value: f32) -> Self { <$T>::from_f32(value) }
        }
        impl RoundOnce for $T {}
    )*};
}

/// A float64 turned into a float32 by rounding to odd: a second rounding to 16 bits then gives what one would have.
trait RoundOnce {
    #[inline]
    fn before_rounding(value: f64) -> f32 {
        let nearest = value as f32;
        let back = f64::from(nearest);
        if back == value || nearest.is_nan() {
            return nearest;
        }
        // Inexact: take the neighbour toward zero and set its last bit. Overflow becomes the largest finite number
        // with its odd last bit, which still overflows a 16-bit format.
        let toward_zero = if back.abs() > value.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
        f32::from_bits(toward_zero | 1)
    }
}

halves!(f16 => Float16, bf16 => BFloat16);

macro_rules! bytes {
    ($T:ident, $dtype:ident) => {
        impl Element for $T {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_f64(self) -> f64 {
                decode_byte(self.0, DType::$dtype)
            }
            #[inline]
            fn from_f64(value: f64) -> Self {
                $T(encode_byte(value, DType::$dtype))
            }
        }
        impl Float for $T {
            #[inline]
            fn to_f32(self) -> f32 {
                self.to_f64() as f32
            }
            #[inline]
            fn from_f32(value: f32) -> Self {
                Self::from_f64(f64::from(value))
            }
        }
        impl fmt::Debug for $T {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.to_f64())
            }
        }
    };
}
bytes!(F8E4M3, Float8E4M3);
bytes!(F8E5M2, Float8E5M2);

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 != 0)
    }
}

fn decode_byte(byte: u8, dtype: DType) -> f64 {
    let (fraction_bits, min_exponent) = fp8_format(dtype);
    let sign = if byte & 0x80 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from((byte & 0x7f) >> fraction_bits);
    let fraction = f64::from(byte & ((1 << fraction_bits) - 1));
    let one = f64::from(1u32 << fraction_bits);
    match dtype {
        DType::Float8E4M3 if byte & 0x7f == 0x7f => return f64::NAN,
        DType::Float8E5M2 if exponent == 31 => {
            return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        _ => {}
    }
    if exponent == 0 {
        sign * (fraction / one) * power_of_two(min_exponent)
    } else {
        sign * (1.0 + fraction / one) * power_of_two(exponent - 1 + min_exponent)
    }
}

fn encode_byte(value: f64, dtype: DType) -> u8 {
    let (fraction_bits, min_exponent) = fp8_format(dtype);
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let (nan, infinity) = if dtype == DType::Float8E4M3 { (0x7f, 0x7f) } else { (0x7e, 0x7c) };
    if value.is_nan() {
        return sign | nan;
    }
    let rounded = round_to_dtype(value.abs(), dtype);
    if !rounded.is_finite() {
        return sign | infinity;
    }
    if rounded == 0.0 {
        return sign;
    }
    let exponent = exponent_of(rounded).max(min_exponent);
    let steps = (rounded / power_of_two(exponent - fraction_bits)) as u32; // exact: a whole number of steps
    let biased = (exponent - min_exponent) as u32;
    // A normal number has the hidden bit in `steps`, which raises the exponent field by one.
    sign | ((biased << fraction_bits) + steps) as u8
}

const fn fp8_format(dtype: DType) -> (i32, i32) {
    match dtype {
        DType::Float8E4M3 => (3, -6),
        _ => (2, -14),
    }
}

/// 2^exponent for exponents of normal float64 numbers.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// floor(log2(value)) of a normal, positive float64.
fn exponent_of(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The value of `dtype` nearest to `value`, ties to even, as a float64. Beyond the largest finite magnitude: infinity
/// (NaN for fp8 e4m3fn, which has none). Integers truncate toward zero and saturate.
pub fn round_to_dtype(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => value,
        DType::Float32 => f64::from(value as f32),
        DType::Float16 => f16::from_f32(f16::before_rounding(value)).to_f64(),
        DType::BFloat16 => bf16::from_f32(bf16::before_rounding(value)).to_f64(),
        DType::Float8E4M3 | DType::Float8E5M2 => {
            if !value.is_finite() {
                return if dtype.has_infinity() { value } else { f64::NAN };
            }
            let (fraction_bits, min_exponent) = fp8_format(dtype);
            let magnitude = value.abs();
            let exponent = exponent_of(magnitude).max(min_exponent);
            let step = power_of_two(exponent - fraction_bits);
            let rounded = (magnitude / step).round_ties_even() * step;
            let largest = dtype.max_finite().expect("fp8 is floating point");
            let result = match rounded > largest {
                false => rounded,
                true if dtype.has_infinity() => f64::INFINITY,
                true => f64::NAN,
            };
            result.copysign(value)
        }
        _ => {
            let (low, high) = dtype.integer_range().expect("an integer dtype");
            (value.trunc() as i128).clamp(low, high) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_values_of_the_specification() {
        // OCP 8-bit floating point specification, table 2.
        for (byte, value) in [(0x7e, 448.0), (0x08, 0.015625), (0x07, 0.013671875), (0x01, 0.001953125), (0x38, 1.0)] {
            assert_eq!(F8E4M3(byte).to_f64(), value);
            assert_eq!(F8E4M3(byte | 0x80).to_f64(), -value);
        }
        for (byte, value) in [(0x7b, 57344.0), (0x04, 6.103515625e-5), (0x03, 4.57763671875e-5), (0x3c, 1.0)] {
            assert_eq!(F8E5M2(byte).to_f64(), value);
        }
        assert!(F8E4M3(0x7f).to_f64().is_nan() && F8E5M2(0x7d).to_f64().is_nan());
        assert_eq!(F8E5M2(0xfc).to_f64(), f64::NEG_INFINITY);
    }

    #[test]
    fn fp8_bytes_round_trip() {
        for byte in 0..=255u8 {
            let value = F8E4M3(byte).to_f64();
            assert!(value.is_nan() || F8E4M3::from_f64(value) == F8E4M3(byte), "e4m3fn {byte:#x}");
            let value = F8E5M2(byte).to_f64();
            assert!(value.is_nan() || F8E5M2::from_f64(value) == F8E5M2(byte), "e5m2 {byte:#x}");
        }
    }

    #[test]
    fn ties_go_to_even_and_overflow_as_the_format_says() {
        let table = [
            (DType::Float8E4M3, 464.0, 448.0), // half way to 480, which does not exist: even is 448
            (DType::Float8E4M3, 465.0, f64::NAN),
            (DType::Float8E5M2, 61439.0, 57344.0),
            (DType::Float8E5M2, 61440.0, f64::INFINITY),
            (DType::Float8E4M3, 1.0625, 1.0),
            (DType::Float8E4M3, 1.1875, 1.25),
            (DType::Float16, 65519.0, 65504.0),
            (DType::Float16, 65520.0, f64::INFINITY),
            // 1 + 2^-11 + 2^-40 is above the tie between 1 and 1 + 2^-10; through float32 it would be the tie itself.
            (DType::Float16, 1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0 + 2f64.powi(-10)),
            (DType::BFloat16, 1.0 + 2f64.powi(-8) + 2f64.powi(-40), 1.0 + 2f64.powi(-7)),
            (DType::BFloat16, 1.0 + 2f64.powi(-8), 1.0),
            (DType::Float16, 1e300, f64::INFINITY),
            (DType::Int8, 200.7, 127.0),
            (DType::UInt8, -3.0, 0.0),
        ];
        for (dtype, value, expected) in table {
            let got = round_to_dtype(value, dtype);
            assert!(got == expected || got.is_nan() && expected.is_nan(), "{dtype} {value}: {got}");
        }
    }
}
