//! binary16 and bfloat16 arithmetic on bit patterns. Packed forms are these, applied to both halves
//! (`integer::halves`, `halves3`).
//!
//! Sums and products go through binary32, whose 24 bits are at least twice 11 and two more: rounding twice then equals
//! rounding once. A fused multiply-add needs more: its exact product plus the addend is rounded to odd first, in binary32
//! for binary16 and in binary64 for bfloat16, whose exponents are wider.

use super::exact::Rounding;
use super::float::{add_odd, narrow};

/// PTX's canonical binary16 and bfloat16 NaN.
pub const NAN16: u16 = 0x7fff;

/// binary16 to binary32, exact; a NaN becomes canonical.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> u32 {
    let sign = u32::from(h & 0x8000) << 16;
    let m = u32::from(h & 0x7fff) << 13;
    let shifted = m + (112 << 23);
    // A subnormal: its integer behind the exponent of the smallest normal, less that normal.
    let small = f32::from_bits(m + (113 << 23)) - f32::from_bits(113 << 23);
    let large = if m > 0x0f80_0000 { 0x7fff_ffff } else { 0x7f80_0000 | sign };
    if m < 0x0080_0000 {
        small.to_bits() | sign
    } else if m >= 0x0f80_0000 {
        large
    } else {
        shifted | sign
    }
}

/// bfloat16 to binary32, exact; a NaN keeps its bits.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> u32 {
    u32::from(h) << 16
}

/// binary32 to binary16, to nearest even.
#[inline(always)]
pub fn f32_to_f16(x: u32) -> u16 {
    let sign = (x >> 16) as u16 & 0x8000;
    let m = x & 0x7fff_ffff;
    let normal = (m.wrapping_add(0xfff + (m >> 13 & 1)) >> 13).wrapping_sub(112 << 10);
    // The last bit of 0.5 is binary16's smallest subnormal, so that the host rounds.
    let small = (f32::from_bits(m) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let magnitude = if m < 0x3880_0000 {
        small
    } else if m >= 0x4780_0000 {
        0x7c00
    } else {
        normal
    };
    if m > 0x7f80_0000 { NAN16 } else { magnitude as u16 | sign }
}

/// binary32 to bfloat16, to nearest even.
#[inline(always)]
pub fn f32_to_bf16(x: u32) -> u16 {
    let rounded = (x.wrapping_add(0x7fff + (x >> 16 & 1)) >> 16) as u16;
    if x & 0x7fff_ffff > 0x7f80_0000 { NAN16 } else { rounded }
}

/// `.ftz` of binary16.
#[inline(always)]
pub fn flush_f16(a: u16) -> u16 {
    if a & 0x7c00 == 0 { a & 0x8000 } else { a }
}

/// `.sat` of binary16: clamped to [0, 1], NaN and -0 give +0.
#[inline(always)]
pub fn saturate_f16(a: u16) -> u16 {
    if a > 0x7c00 { 0 } else { a.min(0x3c00) }
}

/// `.relu` of binary16: negative values give +0, NaN stays.
#[inline(always)]
pub fn relu_f16(a: u16) -> u16 {
    if a & 0x7fff > 0x7c00 {
        NAN16
    } else if a & 0x8000 != 0 {
        0
    } else {
        a
    }
}

/// `.relu` of bfloat16.
#[inline(always)]
pub fn relu_bf16(a: u16) -> u16 {
    if a & 0x7fff > 0x7f80 {
        NAN16
    } else if a & 0x8000 != 0 {
        0
    } else {
        a
    }
}

#[inline(always)]
fn h(a: u16) -> f32 {
    f32::from_bits(f16_to_f32(a))
}

#[inline(always)]
fn b(a: u16) -> f32 {
    f32::from_bits(bf16_to_f32(a))
}

/// `add.rn.f16`.
#[inline(always)]
pub fn add_f16(x: u16, y: u16) -> u16 {
    f32_to_f16((h(x) + h(y)).to_bits())
}

/// `sub.rn.f16`.
#[inline(always)]
pub fn sub_f16(x: u16, y: u16) -> u16 {
    f32_to_f16((h(x) - h(y)).to_bits())
}

/// `mul.rn.f16`.
#[inline(always)]
pub fn mul_f16(x: u16, y: u16) -> u16 {
    f32_to_f16((h(x) * h(y)).to_bits())
}

/// `fma.rn.f16`, rounded once.
#[inline(always)]
pub fn fma_f16(x: u16, y: u16, z: u16) -> u16 {
    f32_to_f16(fma_odd(x, y, z))
}

#[inline(always)]
fn fma_odd(x: u16, y: u16, z: u16) -> u32 {
    // The binary32 product is exact. The sum is rounded to odd in binary32, which leaves 13 bits below binary16's.
    let (p, c) = (h(x) * h(y), h(z));
    let s = p + c;
    let t = s - p;
    let error = (p - (s - t)) + (c - t);
    let bits = s.to_bits();
    let inexact = error != 0.0 && bits & 1 == 0 && s.is_finite();
    let step = if (error < 0.0) == (s < 0.0) { 1 } else { u32::MAX };
    if inexact { bits.wrapping_add(step) } else { bits }
}

/// The `.ftz` finish, of a binary32 number rounded to odd: what lies below the smallest normal after rounding with no
/// bound on the exponent becomes zero.
#[inline(always)]
fn narrow_ftz(wide: u32) -> u16 {
    let result = f32_to_f16(wide);
    // Times 2^8: the smallest normal becomes 2^-6.
    let scaled = f32_to_f16((f32::from_bits(wide) * 256.0).to_bits());
    if scaled & 0x7fff < 0x2400 { result & 0x8000 } else { result }
}

/// `mul.rn.ftz.f16`.
#[inline(always)]
pub fn mul_f16_ftz(x: u16, y: u16) -> u16 {
    narrow_ftz((h(flush_f16(x)) * h(flush_f16(y))).to_bits())
}

/// `fma.rn.ftz.f16`.
#[inline(always)]
pub fn fma_f16_ftz(x: u16, y: u16, z: u16) -> u16 {
    narrow_ftz(fma_odd(flush_f16(x), flush_f16(y), flush_f16(z)))
}

/// `add.rn.bf16`.
#[inline(always)]
pub fn add_bf16(x: u16, y: u16) -> u16 {
    f32_to_bf16((b(x) + b(y)).to_bits())
}

/// `sub.rn.bf16`.
#[inline(always)]
pub fn sub_bf16(x: u16, y: u16) -> u16 {
    f32_to_bf16((b(x) - b(y)).to_bits())
}

/// `mul.rn.bf16`.
#[inline(always)]
pub fn mul_bf16(x: u16, y: u16) -> u16 {
    f32_to_bf16((b(x) * b(y)).to_bits())
}

/// `fma.rn.bf16`, rounded once.
#[inline(always)]
pub fn fma_bf16(x: u16, y: u16, z: u16) -> u16 {
    let s = add_odd(f64::from(b(x)) * f64::from(b(y)), f64::from(b(z)));
    // Truncated to binary32 with what is lost kept in its last bit: 16 bits below bfloat16's.
    let t = narrow(s, Rounding::Zero);
    let lost = f64::from(f32::from_bits(t)) != s && s.is_finite();
    f32_to_bf16(t | u32::from(lost))
}

/// `abs.f16`.
#[inline(always)]
pub fn abs_f16(a: u16) -> u16 {
    if a & 0x7fff > 0x7c00 { NAN16 } else { a & 0x7fff }
}

/// `neg.f16`.
#[inline(always)]
pub fn neg_f16(a: u16) -> u16 {
    if a & 0x7fff > 0x7c00 { NAN16 } else { a ^ 0x8000 }
}

/// `abs.bf16`.
#[inline(always)]
pub fn abs_bf16(a: u16) -> u16 {
    if a & 0x7fff > 0x7f80 { NAN16 } else { a & 0x7fff }
}

/// `neg.bf16`.
#[inline(always)]
pub fn neg_bf16(a: u16) -> u16 {
    if a & 0x7fff > 0x7f80 { NAN16 } else { a ^ 0x8000 }
}

/// Applies a three-operand half instruction to the low and to the high halves.
#[inline(always)]
pub fn halves3(a: u32, b: u32, c: u32, f: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let high = f((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(f(a as u16, b as u16, c as u16)) | u32::from(high) << 16
}
