//! `cvt`: between integers, between floats, and across, with PTX's rules for NaN, overflow and saturation.
//!
//! Integers travel in 64 bits, sign- or zero-extended from their own width.

use super::exact::{BF16, F16, F32, F64, Format, Rounding};
use super::float::{NAN32, flush32, is_nan32, is_nan64, narrow, saturate32};
use super::half::{NAN16, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, relu_bf16, relu_f16};

/// An integer type of `bits` 8, 16, 32 or 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Integer {
    /// The width in bits.
    pub bits: u32,
    /// `.s` rather than `.u`.
    pub signed: bool,
}

impl Integer {
    /// `a` cut to the type's width and extended to 64 bits by its kind.
    #[inline(always)]
    pub fn extend(self, a: u64) -> u64 {
        let up = 64 - self.bits;
        if self.signed { ((a << up) as i64 >> up) as u64 } else { a << up >> up }
    }

    #[inline(always)]
    fn range(self) -> (i128, i128) {
        if self.signed { (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) } else { (0, (1 << self.bits) - 1) }
    }
}

/// Integer to integer: `.sat` clamps, otherwise the bits are cut or extended.
#[inline]
pub fn int_to_int(a: u64, from: Integer, to: Integer, sat: bool) -> u64 {
    let x = from.extend(a);
    if !sat {
        return to.extend(x);
    }
    let value = if from.signed { i128::from(x as i64) } else { i128::from(x) };
    let (low, high) = to.range();
    value.clamp(low, high) as u64
}

/// Rounds to an integer value in floating point.
#[inline(always)]
fn integral(x: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
    }
}

/// Clamps an integral value; NaN gives `nan`.
#[inline(always)]
fn clamp_to(x: f64, to: Integer, nan: u64) -> u64 {
    if x.is_nan() {
        return nan;
    }
    if to.signed {
        let (low, high) = (i64::MIN >> (64 - to.bits), i64::MAX >> (64 - to.bits));
        (x as i64).clamp(low, high) as u64
    } else {
        (x as u64).min(u64::MAX >> (64 - to.bits))
    }
}

/// What a NaN becomes: zero, or the top bit alone where a 64-bit type takes part (PTX ISA, `cvt`).
#[inline(always)]
fn nan_to_int(to: Integer, wide: bool) -> u64 {
    if wide || to.bits == 64 { to.extend(1 << (to.bits - 1)) } else { 0 }
}

/// `cvt.{rni,rzi,rmi,rpi}.{s,u}{8,16,32,64}.f32`: clamped to the type's range.
#[inline]
pub fn f32_to_int(a: u32, to: Integer, rounding: Rounding) -> u64 {
    clamp_to(integral(f64::from(f32::from_bits(a)), rounding), to, nan_to_int(to, false))
}

/// `cvt.rzi.s32.f32`, the common one.
#[inline(always)]
pub fn f32_to_s32_rz(a: u32) -> u32 {
    f32::from_bits(a) as i32 as u32
}

/// `cvt.rzi.u32.f32`.
#[inline(always)]
pub fn f32_to_u32_rz(a: u32) -> u32 {
    f32::from_bits(a) as u32
}

/// From `.f64`.
#[inline]
pub fn f64_to_int(a: u64, to: Integer, rounding: Rounding) -> u64 {
    clamp_to(integral(f64::from_bits(a), rounding), to, nan_to_int(to, true))
}

/// From `.f16`.
#[inline]
pub fn f16_to_int(a: u16, to: Integer, rounding: Rounding) -> u64 {
    f32_to_int(f16_to_f32(a), to, rounding)
}

/// From `.bf16`.
#[inline]
pub fn bf16_to_int(a: u16, to: Integer, rounding: Rounding) -> u64 {
    f32_to_int(bf16_to_f32(a), to, rounding)
}

#[inline]
fn int_to(format: Format, a: u64, from: Integer, rounding: Rounding) -> u64 {
    let x = from.extend(a);
    let negative = from.signed && (x as i64) < 0;
    let magnitude = if negative { x.wrapping_neg() } else { x };
    format.pack(negative, 0, u128::from(magnitude), rounding)
}

/// `cvt.{rn,rz,rm,rp}.f32.{s,u}{8,16,32,64}`.
#[inline]
pub fn int_to_f32(a: u64, from: Integer, rounding: Rounding) -> u32 {
    if rounding == Rounding::Nearest {
        let x = from.extend(a);
        return if from.signed { x as i64 as f32 } else { x as f32 }.to_bits();
    }
    int_to(F32, a, from, rounding) as u32
}

/// To `.f64`.
#[inline]
pub fn int_to_f64(a: u64, from: Integer, rounding: Rounding) -> u64 {
    if rounding == Rounding::Nearest || from.bits < 64 {
        let x = from.extend(a);
        return if from.signed { x as i64 as f64 } else { x as f64 }.to_bits();
    }
    int_to(F64, a, from, rounding)
}

/// To `.f16`.
#[inline]
pub fn int_to_f16(a: u64, from: Integer, rounding: Rounding) -> u16 {
    int_to(F16, a, from, rounding) as u16
}

/// To `.bf16`.
#[inline]
pub fn int_to_bf16(a: u64, from: Integer, rounding: Rounding) -> u16 {
    int_to(BF16, a, from, rounding) as u16
}

/// `cvt.{rni,rzi,rmi,rpi}.f32.f32`.
#[inline]
pub fn f32_to_integral(a: u32, rounding: Rounding) -> u32 {
    let x = f32::from_bits(a);
    if x.is_nan() {
        return NAN32;
    }
    match rounding {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
    }
    .to_bits()
}

/// `cvt.{rni,rzi,rmi,rpi}.f64.f64`.
#[inline]
pub fn f64_to_integral(a: u64, rounding: Rounding) -> u64 {
    let x = f64::from_bits(a);
    if x.is_nan() { a | 1 << 51 } else { integral(x, rounding).to_bits() }
}

/// `cvt.{rni,rzi,rmi,rpi}.f16.f16`.
#[inline]
pub fn f16_to_integral(a: u16, rounding: Rounding) -> u16 {
    f32_to_f16(f32_to_integral(f16_to_f32(a), rounding))
}

/// `cvt.{rni,rzi,rmi,rpi}.bf16.bf16`.
#[inline]
pub fn bf16_to_integral(a: u16, rounding: Rounding) -> u16 {
    f32_to_bf16(f32_to_integral(bf16_to_f32(a), rounding))
}

/// `cvt.f64.f32`: a NaN keeps its sign and payload, quieted.
#[inline(always)]
pub fn f32_to_f64(a: u32) -> u64 {
    if is_nan32(a) {
        return widen_nan(u64::from(a >> 31), u64::from(a) << 29);
    }
    f64::from(f32::from_bits(a)).to_bits()
}

/// `cvt.f64.f16`.
#[inline]
pub fn f16_to_f64(a: u16) -> u64 {
    if a & 0x7fff > 0x7c00 {
        return widen_nan(u64::from(a >> 15), u64::from(a) << 42);
    }
    f32_to_f64(f16_to_f32(a))
}

/// `cvt.f64.bf16`.
#[inline]
pub fn bf16_to_f64(a: u16) -> u64 {
    f32_to_f64(bf16_to_f32(a))
}

fn widen_nan(sign: u64, payload: u64) -> u64 {
    sign << 63 | 0x7ff8 << 48 | payload & ((1 << 51) - 1)
}

/// A binary64 NaN in a smaller format: sign and the top of the payload, quieted.
#[inline(always)]
fn narrow_nan(a: u64, to: Format) -> Option<u64> {
    let payload = (a & ((1 << 52) - 1)) >> (52 - to.mantissa);
    let sign = a >> 63 << (to.exponent + to.mantissa);
    is_nan64(a).then(|| sign | ((2 << to.exponent) - 1) << (to.mantissa - 1) | payload)
}

/// `cvt.{rn,rz,rm,rp}.f32.f64`: a NaN keeps its sign and the top of its payload, quieted.
#[inline]
pub fn f64_to_f32(a: u64, rounding: Rounding) -> u32 {
    narrow_nan(a, F32).map_or_else(|| narrow(f64::from_bits(a), rounding), |nan| nan as u32)
}

/// `cvt.{rn,rz,rm,rp}.f16.f64`, rounded once.
#[inline]
pub fn f64_to_f16(a: u64, rounding: Rounding) -> u16 {
    narrow_nan(a, F16).unwrap_or_else(|| F16.round(F64.value(a), rounding)) as u16
}

/// `cvt.{rn,rz,rm,rp}.bf16.f64`, rounded once.
#[inline]
pub fn f64_to_bf16(a: u64, rounding: Rounding) -> u16 {
    narrow_nan(a, BF16).unwrap_or_else(|| BF16.round(F64.value(a), rounding)) as u16
}

/// `cvt.{rn,rz,rm,rp}.f16.f32`.
#[inline]
pub fn f32_to_f16_in(a: u32, rounding: Rounding) -> u16 {
    if rounding == Rounding::Nearest { f32_to_f16(a) } else { F16.round(F32.value(u64::from(a)), rounding) as u16 }
}

/// `cvt.{rn,rz,rm,rp}.bf16.f32`.
#[inline]
pub fn f32_to_bf16_in(a: u32, rounding: Rounding) -> u16 {
    if rounding == Rounding::Nearest { f32_to_bf16(a) } else { BF16.round(F32.value(u64::from(a)), rounding) as u16 }
}

/// The finishing of a conversion to a half format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Finish {
    /// `.relu`: negative results give +0, NaN the canonical NaN.
    pub relu: bool,
    /// `.satfinite`: a result past the largest finite number gives that number.
    pub satfinite: bool,
}

/// `cvt.{rn,rz}{.relu}{.satfinite}.f16.f32`.
#[inline]
pub fn f32_to_f16_finish(a: u32, rounding: Rounding, finish: Finish) -> u16 {
    let x = f32_to_f16_in(a, rounding);
    let x = if finish.satfinite && x & 0x7fff == 0x7c00 { x - 1 } else { x };
    if finish.relu { relu_f16(x) } else { x }
}

/// `cvt.{rn,rz}{.relu}{.satfinite}.bf16.f32`.
#[inline]
pub fn f32_to_bf16_finish(a: u32, rounding: Rounding, finish: Finish) -> u16 {
    let x = f32_to_bf16_in(a, rounding);
    let x = if finish.satfinite && x & 0x7fff == 0x7f80 { x - 1 } else { x };
    if finish.relu { relu_bf16(x) } else { x }
}

/// `cvt.{..}.f16.bf16`.
#[inline]
pub fn bf16_to_f16(a: u16, rounding: Rounding) -> u16 {
    f32_to_f16_in(bf16_to_f32(a), rounding)
}

/// `cvt.{..}.bf16.f16`.
#[inline]
pub fn f16_to_bf16(a: u16, rounding: Rounding) -> u16 {
    f32_to_bf16_in(f16_to_f32(a), rounding)
}

/// `cvt.ftz.f32.f32` and `cvt.ftz.sat.f32.f32`: the only plain copies that look at the value.
#[inline(always)]
pub fn f32_to_f32_ftz(a: u32, sat: bool) -> u32 {
    let a = if is_nan32(a) { NAN32 } else { flush32(a) };
    if sat { saturate32(a) } else { a }
}

/// The rounding of a conversion to `.tf32`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TfRounding {
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
    /// `.rn`.
    Nearest,
    /// `.rz`.
    Zero,
}

/// `cvt.{rna,rn,rz}{.relu}{.satfinite}.tf32.f32`: ten bits of mantissa, the others zero. A NaN becomes 0x7fffe000; under
/// `.rna` it is cut like any other value (to infinity if its payload is all below), and `.rna.satfinite` steps back
/// from there, as the hardware does.
#[inline]
pub fn f32_to_tf32(a: u32, rounding: TfRounding, finish: Finish) -> u32 {
    let magnitude = a & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 && rounding != TfRounding::NearestAway {
        return 0x7fff_e000;
    }
    let rounded = match rounding {
        TfRounding::NearestAway if magnitude < 0x7f80_0000 => magnitude + 0x1000,
        TfRounding::NearestAway | TfRounding::Zero => magnitude,
        TfRounding::Nearest => magnitude + 0xfff + (magnitude >> 13 & 1),
    } & !0x1fff;
    let rounded = if finish.satfinite && rounded >= 0x7f80_0000 { rounded - 0x2000 } else { rounded };
    if finish.relu && a >> 31 != 0 { 0 } else { rounded | a & 0x8000_0000 }
}

/// A float of at most eight bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Small {
    exponent: u32,
    mantissa: u32,
    /// The code of the largest finite number.
    largest: u8,
    /// The code that a NaN becomes.
    nan: u8,
}

/// `.e4m3`: no infinity, NaN 0x7f, at most 448.
pub const E4M3: Small = Small { exponent: 4, mantissa: 3, largest: 0x7e, nan: 0x7f };
/// `.e5m2`: infinity 0x7c, at most 57344.
pub const E5M2: Small = Small { exponent: 5, mantissa: 2, largest: 0x7b, nan: 0x7f };
/// `.e2m1`: neither infinity nor NaN, at most 6.
pub const E2M1: Small = Small { exponent: 2, mantissa: 1, largest: 7, nan: 7 };
/// `.e2m3`: neither infinity nor NaN, at most 7.5.
pub const E2M3: Small = Small { exponent: 2, mantissa: 3, largest: 31, nan: 31 };
/// `.e3m2`: neither infinity nor NaN, at most 28.
pub const E3M2: Small = Small { exponent: 3, mantissa: 2, largest: 31, nan: 31 };

/// `cvt.rn.satfinite{.relu}` from binary32 to a small float: to nearest even, past the largest the largest.
#[inline]
pub fn f32_to_small(a: u32, to: Small, relu: bool) -> u8 {
    let magnitude = a & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return to.nan;
    }
    if relu && a >> 31 != 0 {
        return 0;
    }
    let sign = ((a >> 31) as u8) << (to.exponent + to.mantissa);
    let exponent = (magnitude >> 23) as i32 - 127;
    let significand = magnitude & 0x7f_ffff | 0x80_0000;
    let smallest = 2 - (1 << (to.exponent - 1)) - to.mantissa as i32;
    let last = (exponent - to.mantissa as i32).max(smallest);
    // At least 20, since no format has more than three bits.
    let drop = last - (exponent - 23);
    if drop > 24 {
        return sign;
    }
    let kept = significand >> drop;
    let rest = significand & ((1 << drop) - 1);
    let half = 1 << (drop - 1);
    let kept = kept + u32::from(rest > half || (rest == half && kept & 1 == 1));
    let code = if kept < 1 << to.mantissa { kept } else { kept + (((last - smallest) as u32) << to.mantissa) };
    sign | code.min(u32::from(to.largest)) as u8
}

/// A small float to binary16, exact.
#[inline]
pub fn small_to_f16(code: u8, from: Small) -> u16 {
    let width = from.exponent + from.mantissa;
    let sign = u16::from(code >> width & 1) << 15;
    let magnitude = code & ((1 << width) - 1);
    if from.exponent == 5 {
        return if magnitude > 0x7c { NAN16 } else { sign | u16::from(magnitude) << 8 };
    }
    if from.exponent == 4 && magnitude == 0x7f {
        return NAN16;
    }
    let field = u32::from(magnitude) >> from.mantissa;
    let mantissa = u32::from(magnitude) & ((1 << from.mantissa) - 1);
    let smallest = 2 - (1 << (from.exponent - 1)) - from.mantissa as i32;
    let (significand, exponent) =
        if field == 0 { (mantissa, smallest) } else { (mantissa | 1 << from.mantissa, smallest + field as i32 - 1) };
    sign | F16.pack(false, exponent, u128::from(significand), Rounding::Nearest) as u16
}

/// `cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f32 d, a, b`: `a` in the high byte.
#[inline]
pub fn f32_to_small_x2(a: u32, b: u32, to: Small, relu: bool) -> u16 {
    u16::from(f32_to_small(a, to, relu)) << 8 | u16::from(f32_to_small(b, to, relu))
}

/// `cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2}.f16x2`.
#[inline]
pub fn f16x2_to_small_x2(a: u32, to: Small, relu: bool) -> u16 {
    f32_to_small_x2(f16_to_f32((a >> 16) as u16), f16_to_f32(a as u16), to, relu)
}

/// `cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2}`.
#[inline]
pub fn small_x2_to_f16x2(a: u16, from: Small, relu: bool) -> u32 {
    let one = |code: u8| {
        let x = small_to_f16(code, from);
        u32::from(if relu { relu_f16(x) } else { x })
    };
    one((a >> 8) as u8) << 16 | one(a as u8)
}

/// `cvt.{rz,rp}.satfinite.ue8m0x2.f32`, one element: the power of two below or above. Negative values count as zero,
/// whose code is 0 (2^-127); NaN is 0xff.
#[inline]
pub fn f32_to_ue8m0(a: u32, up: bool) -> u8 {
    if a & 0x7fff_ffff > 0x7f80_0000 {
        return 0xff;
    }
    if a >> 31 != 0 {
        return 0;
    }
    let (field, mantissa) = (a >> 23, a & 0x7f_ffff);
    // 2^-127 itself is a subnormal binary32; what lies above it rounds up to 2^-126.
    let above = if field == 0 { mantissa > 0x40_0000 } else { mantissa != 0 };
    (field + u32::from(up && above)).min(254) as u8
}

/// `cvt.rn.bf16x2.ue8m0x2`, one element.
#[inline]
pub fn ue8m0_to_bf16(code: u8) -> u16 {
    match code {
        0xff => NAN16,
        0 => 0x0040,
        _ => u16::from(code) << 7,
    }
}

/// `cvt.pack.sat.{s16,u16}.s32 d, a, b`: `a` in the high half.
#[inline]
pub fn pack_16(a: u32, b: u32, to: Integer) -> u32 {
    (clamp_s32(a, to) << 16) | (clamp_s32(b, to) & 0xffff)
}

/// `cvt.pack.sat.{s,u}{8,4,2}.s32.b32 d, a, b, c`: `c` shifted up by two elements, then `a`, then `b`.
#[inline]
pub fn pack_small(a: u32, b: u32, c: u32, to: Integer) -> u32 {
    let mask = (1 << to.bits) - 1;
    c << (2 * to.bits) | (clamp_s32(a, to) & mask) << to.bits | (clamp_s32(b, to) & mask)
}

#[inline(always)]
fn clamp_s32(a: u32, to: Integer) -> u32 {
    let (low, high) =
        if to.signed { (-(1 << (to.bits - 1)), (1 << (to.bits - 1)) - 1) } else { (0, (1i32 << to.bits) - 1) };
    (a as i32).clamp(low, high) as u32
}
