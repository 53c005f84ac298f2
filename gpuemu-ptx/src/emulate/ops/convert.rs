//! `cvt`: between integers, between floats, and across.

use super::float::{number, numbered, rounding};
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::numerics::convert::{self as cv, Finish, Integer, TfRounding};
use crate::numerics::exact::Rounding;
use crate::numerics::{float as fl, half as hf};
use crate::program::{self, Operand, ScalarType, Word};

/// Bits of `imm`: the rounding in 0 and 1, then these; the result's integer type from bit 8, the operand's from bit 24.
const FTZ: u64 = 4;
const SAT: u64 = 8;
const RELU: u64 = 16;
const SATFINITE: u64 = 32;
/// The register of an integer result has more than 16 bits.
const WIDE: u64 = 128;
/// The small float is e5m2 rather than e4m3.
const E5M2: u64 = 64;

#[inline(always)]
fn integer(k: u64, at: u32) -> Integer {
    Integer { bits: (k >> at & 127) as u32, signed: k >> (at + 7) & 1 != 0 }
}

fn encoded(ty: ScalarType, at: u32) -> Option<u64> {
    use ScalarType::*;
    let known = matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64);
    known.then(|| (u64::from(ty.bits()) | u64::from(ty.is_signed()) << 7) << at)
}

#[inline(always)]
fn flush(k: u64, a: u32) -> u32 {
    if k & FTZ != 0 { fl::flush32(a) } else { a }
}

#[inline(always)]
fn clamp(k: u64, a: u32) -> u32 {
    if k & SAT != 0 { fl::saturate32(a) } else { a }
}

#[inline(always)]
fn finish(k: u64) -> Finish {
    Finish { relu: k & RELU != 0, satfinite: k & SATFINITE != 0 }
}

#[inline(always)]
fn small(k: u64) -> cv::Small {
    if k & E5M2 != 0 { cv::E5M2 } else { cv::E4M3 }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    if d.form.has(Word::Pack) {
        return pack(d);
    }
    let [to, from] = *d.form.types.as_slice() else { return refuse("it needs two types") };
    if d.form.rounding == Some(program::Rounding::Stochastic) {
        return refuse("stochastic rounding is not executed yet");
    }
    if to == ScalarType::Tf32 {
        return tf32(d);
    }
    if d.form.has(Word::ScaledN2Ue8m0) {
        return refuse("scaled conversions are not executed yet");
    }
    let bit = |word, bit| if d.form.has(word) { bit } else { 0 };
    let flags = bit(Word::Ftz, FTZ) | bit(Word::Sat, SAT) | bit(Word::Relu, RELU) | bit(Word::Satfinite, SATFINITE);
    let r = number(rounding(d)?);
    let wide = match d.operand(0)? {
        Operand::Register(register) => d.function.register(*register).ty.bits() > 16,
        _ => true,
    };
    let k = r | flags | if wide && encoded(to, 8).is_some() { WIDE } else { 0 };
    match (encoded(to, 8), encoded(from, 24)) {
        (Some(t), Some(f)) => integers(d, to, from, k | t | f),
        (Some(t), None) => to_integer(d, to, from, k | t),
        (None, Some(f)) => from_integer(d, to, from, k | f),
        (None, None) => floats(d, to, from, k),
    }
}

fn integers(d: &mut Decoder<'_>, to: ScalarType, from: ScalarType, k: u64) -> Decoded {
    use ScalarType::*;
    if k & SAT == 0 {
        // Widening and cutting, the commonest.
        match (to, from) {
            (U64, U32) => return d.unary(0, |_, a: u32| u64::from(a)),
            (U64 | S64, S32) => return d.unary(0, |_, a: i32| i64::from(a)),
            (S64, U32) => return d.unary(0, |_, a: u32| u64::from(a)),
            (U32 | S32, U64 | S64) => return d.unary(0, |_, a: u64| a as u32),
            (U32 | S32, U16) => return d.unary(0, |_, a: u16| u32::from(a)),
            (U32 | S32, S16) => return d.unary(0, |_, a: i16| i32::from(a)),
            (U16, U32 | S32) => return d.unary(0, |_, a: u32| a as u16),
            (U32 | S32, U8) => return d.unary(0, |_, a: u8| u32::from(a)),
            _ => {}
        }
    }
    // The result is extended to the register by its own sign, as loads do.
    match (to.bits() == 64, from.bits() == 64) {
        (false, false) => d.unary(k, |k, a: u32| integer_result(k, u64::from(a))),
        (false, true) => d.unary(k, |k, a: u64| integer_result(k, a)),
        (true, false) => {
            d.unary(k, |k, a: u32| cv::int_to_int(u64::from(a), integer(k, 24), integer(k, 8), k & SAT != 0))
        }
        (true, true) => d.unary(k, |k, a: u64| cv::int_to_int(a, integer(k, 24), integer(k, 8), k & SAT != 0)),
    }
}

#[inline(always)]
fn integer_result(k: u64, a: u64) -> u32 {
    fit(k, cv::int_to_int(a, integer(k, 24), integer(k, 8), k & SAT != 0))
}

/// What a row holds of an integer: it is extended to the 16 bits of its register, or to 32 if those are there.
#[inline(always)]
fn fit(k: u64, value: u64) -> u32 {
    match k & WIDE {
        0 => u32::from(value as u16),
        _ => value as u32,
    }
}

fn to_integer(d: &mut Decoder<'_>, to: ScalarType, from: ScalarType, k: u64) -> Decoded {
    use ScalarType::*;
    let zero = number(Rounding::Zero);
    match (to, from) {
        (S32, F32) if k & 7 == zero => return d.unary(0, |_, a: u32| cv::f32_to_s32_rz(a)),
        (U32, F32) if k & 7 == zero => return d.unary(0, |_, a: u32| cv::f32_to_u32_rz(a)),
        _ => {}
    }
    macro_rules! convert {
        ($t:ty, |$k:ident, $a:ident| $e:expr) => {
            match to.bits() {
                64 => d.unary(k, |$k, $a: $t| $e),
                _ => d.unary(k, |$k, $a: $t| fit($k, $e)),
            }
        };
    }
    match from {
        F32 => convert!(u32, |k, a| cv::f32_to_int(flush(k, a), integer(k, 8), numbered(k))),
        F64 => convert!(u64, |k, a| cv::f64_to_int(a, integer(k, 8), numbered(k))),
        F16 => convert!(u16, |k, a| cv::f16_to_int(a, integer(k, 8), numbered(k))),
        Bf16 => convert!(u16, |k, a| cv::bf16_to_int(a, integer(k, 8), numbered(k))),
        _ => refuse("it has no such types"),
    }
}

fn from_integer(d: &mut Decoder<'_>, to: ScalarType, from: ScalarType, k: u64) -> Decoded {
    use ScalarType::*;
    if (to, k & 31) == (F32, 0) {
        match from {
            S32 => return d.unary(0, |_, a: i32| a as f32),
            U32 => return d.unary(0, |_, a: u32| a as f32),
            _ => {}
        }
    }
    macro_rules! convert {
        (|$k:ident, $a:ident| $e:expr) => {
            match from.bits() {
                64 => d.unary(k, |$k, $a: u64| $e),
                _ => d.unary(k, |$k, a: u32| {
                    let $a = u64::from(a);
                    $e
                }),
            }
        };
    }
    match to {
        F32 => convert!(|k, a| clamp(k, cv::int_to_f32(a, integer(k, 24), numbered(k)))),
        F64 => convert!(|k, a| cv::int_to_f64(a, integer(k, 24), numbered(k))),
        F16 => convert!(|k, a| cv::int_to_f16(a, integer(k, 24), numbered(k))),
        Bf16 => convert!(|k, a| cv::int_to_bf16(a, integer(k, 24), numbered(k))),
        _ => refuse("it has no such types"),
    }
}

/// Emits a conversion of two operands, the first to the high half.
fn two<F: Fn(u64, u32, u32) -> u32 + Copy>(d: &mut Decoder<'_>, k: u64, f: F) -> Decoded {
    d.binary(k, f)
}

fn floats(d: &mut Decoder<'_>, to: ScalarType, from: ScalarType, k: u64) -> Decoded {
    use ScalarType::*;
    let integral = d.form.rounding.is_some_and(|rounding| rounding >= program::Rounding::IntegerNearest);
    let k = if matches!(to, E5m2x2) || matches!(from, E5m2x2) { k | E5M2 } else { k };
    match (to, from) {
        (F16x2, F32) if k == 0 => {
            two(d, 0, |_, a, b| u32::from(hf::f32_to_f16(a)) << 16 | u32::from(hf::f32_to_f16(b)))
        }
        (Bf16x2, F32) if k == 0 => {
            two(d, 0, |_, a, b| u32::from(hf::f32_to_bf16(a)) << 16 | u32::from(hf::f32_to_bf16(b)))
        }
        (F16x2, F32) => two(d, k, |k, a, b| {
            let half = |x| u32::from(cv::f32_to_f16_finish(x, numbered(k), finish(k)));
            half(a) << 16 | half(b)
        }),
        (Bf16x2, F32) => two(d, k, |k, a, b| {
            let half = |x| u32::from(cv::f32_to_bf16_finish(x, numbered(k), finish(k)));
            half(a) << 16 | half(b)
        }),
        (F16, F32) if k == 0 => d.unary(0, |_, a: u32| hf::f32_to_f16(a)),
        (Bf16, F32) if k == 0 => d.unary(0, |_, a: u32| hf::f32_to_bf16(a)),
        (F32, F16) if k == 0 => d.unary(0, |_, a: u16| hf::f16_to_f32(a)),
        (F32, Bf16) if k == 0 => d.unary(0, |_, a: u16| hf::bf16_to_f32(a)),
        // Subnormal operands are far below the result's: it rounds them as they are.
        (F16, F32) => d.unary(k, |k, a: u32| {
            let half = cv::f32_to_f16_finish(a, numbered(k), finish(k));
            if k & SAT != 0 { hf::saturate_f16(half) } else { half }
        }),
        (Bf16, F32) => d.unary(k, |k, a: u32| cv::f32_to_bf16_finish(a, numbered(k), finish(k))),
        (E4m3x2 | E5m2x2, F32) => {
            let (a, b) = (d.source::<u32>(1)?, d.source::<u32>(2)?);
            let to = d.destination::<u16>(0, false)?;
            d.apply2(to, (a, b), k, |k, a: u32, b: u32| cv::f32_to_small_x2(a, b, small(k), k & RELU != 0));
            Ok(())
        }
        (E4m3x2 | E5m2x2, F16x2) => d.unary(k, |k, a: u32| cv::f16x2_to_small_x2(a, small(k), k & RELU != 0)),
        (F16x2, E4m3x2 | E5m2x2) => d.unary(k, |k, a: u16| cv::small_x2_to_f16x2(a, small(k), k & RELU != 0)),
        (F32, F32) if integral => d.unary(k, |k, a: u32| clamp(k, cv::f32_to_integral(flush(k, a), numbered(k)))),
        (F32, F32) => d.unary(k, |k, a: u32| match k & FTZ {
            0 => clamp(k, a),
            _ => cv::f32_to_f32_ftz(a, k & SAT != 0),
        }),
        (F64, F64) if integral => d.unary(k, |k, a: u64| cv::f64_to_integral(a, numbered(k))),
        (F64, F64) => d.unary(k, |k, a: u64| if k & SAT != 0 { fl::saturate64(a) } else { a }),
        (F16, F16) if integral => d.unary(k, |k, a: u16| cv::f16_to_integral(a, numbered(k))),
        (F16, F16) => d.unary(k, |k, a: u16| if k & SAT != 0 { hf::saturate_f16(a) } else { a }),
        (Bf16, Bf16) if integral => d.unary(k, |k, a: u16| cv::bf16_to_integral(a, numbered(k))),
        (F32, F64) => d.unary(k, |k, a: u64| clamp(k, flush(k, cv::f64_to_f32(a, numbered(k))))),
        (F16, F64) => d.unary(k, |k, a: u64| cv::f64_to_f16(a, numbered(k))),
        (Bf16, F64) => d.unary(k, |k, a: u64| cv::f64_to_bf16(a, numbered(k))),
        (F32, F16) => d.unary(k, |k, a: u16| clamp(k, flush(k, hf::f16_to_f32(a)))),
        (F32, Bf16) => d.unary(k, |k, a: u16| clamp(k, flush(k, hf::bf16_to_f32(a)))),
        (F64, F16) => d.unary(0, |_, a: u16| cv::f16_to_f64(a)),
        (F64, Bf16) => d.unary(0, |_, a: u16| cv::bf16_to_f64(a)),
        (F64, F32) => {
            d.unary(k, |k, a: u32| cv::f32_to_f64(if k & FTZ != 0 { cv::f32_to_f32_ftz(a, false) } else { a }))
        }
        (Bf16, F16) => d.unary(k, |k, a: u16| cv::f16_to_bf16(a, numbered(k))),
        (F16, Bf16) => d.unary(k, |k, a: u16| cv::bf16_to_f16(a, numbered(k))),
        _ => refuse("it has no such types, or they are not executed yet"),
    }
}

fn tf32(d: &mut Decoder<'_>) -> Decoded {
    let bit = |word, bit| if d.form.has(word) { bit } else { 0 };
    let mode = match d.form.rounding {
        Some(program::Rounding::NearestAway) | None => 0,
        Some(program::Rounding::Nearest) => 1,
        _ => 2,
    };
    let k = mode | bit(Word::Relu, RELU) | bit(Word::Satfinite, SATFINITE);
    d.unary(k, |k, a: u32| {
        let mode = match k & 3 {
            0 => TfRounding::NearestAway,
            1 => TfRounding::Nearest,
            _ => TfRounding::Zero,
        };
        cv::f32_to_tf32(a, mode, finish(k))
    })
}

fn pack(d: &mut Decoder<'_>) -> Decoded {
    let to = d.ty()?;
    // Four- and two-bit types are told apart by their width alone.
    let k = (u64::from(to.bits()) | u64::from(to.is_signed()) << 7) << 8;
    match to.bits() {
        16 => two(d, k, |k, a, b| cv::pack_16(a, b, integer(k, 8))),
        _ => d.ternary(k, |k, a: u32, b: u32, c: u32| cv::pack_small(a, b, c, integer(k, 8))),
    }
}
