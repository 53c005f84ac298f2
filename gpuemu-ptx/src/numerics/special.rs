//! The special-function unit: `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `tanh` and the divisions built on it.
//!
//! The unit works in fixed point: the top bits of the argument choose a segment of a table, the others are `x`, and the
//! answer is `constant + slope * x + curvature * square(x)` with a truncated square. `special_tables` holds the tables;
//! the offsets below are the unit's own.

use super::convert::f32_to_f16_in;
use super::exact::Rounding;
use super::float::{NAN32, canonical32, flush32, is_nan32, mul32, mul32_ftz};
use super::half::{NAN16, bf16_to_f32, f16_to_f32, f32_to_f16};
use super::special_tables::{EX2, LG2, RCP, RSQRT, SIN, SQRT, Segment};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const ONE: u32 = 0x3f80_0000;

#[inline(always)]
fn mul(a: u32, b: f32) -> u32 {
    mul32(a, b.to_bits(), Rounding::Nearest)
}

#[inline(always)]
fn is_subnormal(a: u32) -> bool {
    a & INFINITY == 0 && a & !SIGN != 0
}

/// `x^2 / 2^19` of 17 bits, as the unit's array of partial products gives it: each row is cut before it is added.
#[inline]
fn square(x: u32) -> i64 {
    let mut sum = 0;
    for i in 0..17 {
        sum += (x >> (18 - i)) & (x >> i & 1).wrapping_neg();
    }
    i64::from(sum >> 1)
}

/// `(constant << shift) + slope * x + curvature * square`.
#[inline(always)]
fn parabola(segment: Segment, shift: u32, x: u32, square: i64) -> i64 {
    (i64::from(segment.0) << shift) + i64::from(segment.1) * i64::from(x) + i64::from(segment.2) * square
}

/// A significand of 24 bits (or 2^24) at `2^exponent` of its first bit; past the range infinity, below it zero.
#[inline(always)]
fn assemble(sign: u32, exponent: i32, significand: i64) -> u32 {
    let carry = significand >> 24;
    let field = exponent + 127 + carry as i32;
    if field >= 255 {
        sign | INFINITY
    } else if field <= 0 {
        sign
    } else {
        sign | (field as u32) << 23 | (significand >> carry) as u32 & 0x7f_ffff
    }
}

/// The unit's 2^x.
#[inline]
fn unit_ex2(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    if magnitude > INFINITY {
        return NAN32;
    }
    if magnitude >= 0x4300_0000 {
        // 128 and more.
        return if a & SIGN != 0 { 0 } else { INFINITY };
    }
    // Seven bits and 23 behind the point, cut.
    let exponent = (magnitude >> 23) as i32 - 127;
    let significand = magnitude & 0x7f_ffff | 0x80_0000;
    let fixed =
        if exponent >= 0 { significand << exponent } else { significand.checked_shr(-exponent as u32).unwrap_or(0) };
    let fixed = if magnitude < 0x0080_0000 { 0 } else { fixed as i32 };
    // A negative argument is complemented, not negated, unless it is a whole number.
    let fixed = match (a & SIGN != 0, fixed & 0x7f_ffff) {
        (false, _) => fixed,
        (true, 0) => -fixed,
        (true, _) => !fixed,
    };
    let (whole, fraction) = (fixed >> 23, fixed as u32 & 0x7f_ffff);
    let x = fraction & 0x1_ffff;
    let sum = parabola(EX2[(fraction >> 17) as usize], 13, x, square(x)) + 0x77e2;
    assemble(0, whole, sum >> 15)
}

/// `ex2.approx{.ftz}.f32`. Without `.ftz` an argument below -126 is halved and the result squared.
#[inline]
pub fn ex2(a: u32, ftz: bool) -> u32 {
    if !ftz && f32::from_bits(a) < -126.0 {
        let half = unit_ex2(mul(a, 0.5));
        return mul32(half, half, Rounding::Nearest);
    }
    unit_ex2(a)
}

/// The unit's 1/x of normal numbers; subnormal ones count as zero, and subnormal results become zero.
#[inline]
fn unit_rcp(a: u32) -> u32 {
    let (sign, field, mantissa) = (a & SIGN, a >> 23 & 255, a & 0x7f_ffff);
    if field == 255 {
        return if mantissa != 0 { NAN32 } else { sign };
    }
    if field == 0 {
        return sign | INFINITY;
    }
    let x = mantissa & 0xffff;
    let sum = parabola(RCP[(mantissa >> 16) as usize], 13, x, square(2 * x)) + 0x47e7;
    assemble(sign, 126 - field as i32, sum >> 15)
}

/// `rcp.approx{.ftz}.f32`. Without `.ftz` arguments at either end are scaled first, and the result after.
#[inline]
pub fn rcp(a: u32, ftz: bool) -> u32 {
    let magnitude = a & !SIGN;
    if !ftz && is_subnormal(a) {
        return mul(unit_rcp(mul(a, 16_777_216.0)), 16_777_216.0);
    }
    if !ftz && magnitude > 0x7e80_0000 && magnitude < INFINITY {
        return mul(unit_rcp(mul(a, 0.25)), 0.25);
    }
    unit_rcp(a)
}

/// The unit's 1/sqrt(x).
#[inline]
fn unit_rsqrt(a: u32) -> u32 {
    let (field, mantissa) = ((a >> 23 & 255) as i32, a & 0x7f_ffff);
    if is_nan32(a) {
        return NAN32;
    }
    if field == 0 {
        return a & SIGN | INFINITY;
    }
    if a & SIGN != 0 {
        return NAN32;
    }
    if field == 255 {
        return 0;
    }
    let exponent = field - 127;
    let odd = (exponent & 1) as u32;
    let half = exponent >> 1;
    if odd == 0 && mantissa == 0 {
        return ((127 - half) as u32) << 23;
    }
    let x = mantissa & 0x1_ffff;
    let sum = parabola(RSQRT[(odd << 6 | mantissa >> 17) as usize], 14, x, square(x) << 2) + 0x7fff;
    assemble(0, -1 - half, sum >> 16)
}

/// `rsqrt.approx{.ftz}.f32`.
#[inline]
pub fn rsqrt(a: u32, ftz: bool) -> u32 {
    if !ftz && is_subnormal(a) {
        return mul(unit_rsqrt(mul(a, 16_777_216.0)), 4096.0);
    }
    unit_rsqrt(a)
}

/// `sqrt.approx{.ftz}.f32`.
#[inline]
pub fn sqrt(a: u32, ftz: bool) -> u32 {
    if !ftz && is_subnormal(a) {
        return mul(unit_sqrt(mul(a, 16_777_216.0)), 1.0 / 4096.0);
    }
    unit_sqrt(a)
}

fn unit_sqrt(a: u32) -> u32 {
    if is_nan32(a) {
        return NAN32;
    }
    if a & INFINITY == 0 {
        return a & SIGN;
    }
    if a & SIGN != 0 {
        return NAN32;
    }
    if a == INFINITY {
        return a;
    }
    let (exponent, mantissa) = ((a >> 23) as i32 - 127, a & 0x7f_ffff);
    let x = mantissa & 0x1_ffff;
    let (constant, slope, curvature) = SQRT[((exponent & 1) as u32 * 64 + (mantissa >> 17)) as usize];
    let sum = constant + slope * i64::from(x) + curvature * square(x);
    assemble(0, exponent >> 1, sum >> 17)
}

/// The unit's log2.
#[inline]
fn unit_lg2(a: u32) -> u32 {
    let (field, mantissa) = ((a >> 23 & 255) as i32, a & 0x7f_ffff);
    if is_nan32(a) {
        return NAN32;
    }
    if field == 0 {
        return SIGN | INFINITY;
    }
    if a & SIGN != 0 {
        return NAN32;
    }
    if field == 255 {
        return INFINITY;
    }
    let x = mantissa & 0x1_ffff;
    if a == ONE {
        return 0;
    }
    let fraction = parabola(LG2[(mantissa >> 17) as usize], 12, x, square(x) << 1) + 0x3345;
    let sum = ((i64::from(field - 127) << 38) + fraction) >> 2;
    // A negative sum is complemented, not negated.
    if sum < 0 { SIGN | fixed_to_float(!sum, 36) } else { fixed_to_float(sum, 36) }
}

/// Fixed point, normalised and cut to 24 bits.
#[inline(always)]
fn fixed_to_float(sum: i64, point: i32) -> u32 {
    if sum == 0 {
        return 0;
    }
    let sign = if sum < 0 { SIGN } else { 0 };
    let magnitude = sum.unsigned_abs();
    let top = 63 - magnitude.leading_zeros() as i32;
    let significand = if top > 23 { magnitude >> (top - 23) } else { magnitude << (23 - top) };
    sign | ((top - point + 127) as u32) << 23 | significand as u32 & 0x7f_ffff
}

/// `lg2.approx{.ftz}.f32`. Without `.ftz` a subnormal argument is scaled by 2^24.
#[inline]
pub fn lg2(a: u32, ftz: bool) -> u32 {
    if !ftz && is_subnormal(a) {
        let x = f32::from_bits(unit_lg2(mul(a, 16_777_216.0)));
        return (x - 24.0).to_bits();
    }
    unit_lg2(a)
}

/// The unit's sine of `a` revolutions, a quarter later for the cosine.
#[inline]
fn unit_sin(a: u32, cosine: bool) -> u32 {
    let magnitude = a & !SIGN;
    if magnitude >= INFINITY {
        return NAN32;
    }
    // 25 bits behind the point, cut; whole revolutions fall away.
    let shift = (magnitude >> 23) as i32 - 150 + 25;
    let significand = magnitude & 0x7f_ffff | 0x80_0000;
    let turn = if shift >= 32 {
        0
    } else if shift >= 0 {
        significand.checked_shl(shift as u32).unwrap_or(0)
    } else {
        significand.checked_shr(-shift as u32).unwrap_or(0)
    };
    let quadrant = (turn >> 23) + u32::from(cosine);
    let place = turn & 0x7f_ffff;
    let place = if quadrant & 1 != 0 { 0x7f_ffff - place } else { place };
    let x = place & 0x1_ffff;
    let sum = parabola(SIN[(place >> 17) as usize], 11, x, square(x));
    let negative = (quadrant & 2 != 0) != (!cosine && a & SIGN != 0);
    fixed_to_float(sum, 37) | if negative { SIGN } else { 0 }
}

/// 1/(2 pi), which the compiler multiplies the angle by.
const REVOLUTION: u32 = 0x3e22_f983;

/// `sin.approx{.ftz}.f32`.
#[inline]
pub fn sin(a: u32, ftz: bool) -> u32 {
    unit_sin(turns(a, ftz), false)
}

/// `cos.approx{.ftz}.f32`.
#[inline]
pub fn cos(a: u32, ftz: bool) -> u32 {
    unit_sin(turns(a, ftz), true)
}

#[inline(always)]
fn turns(a: u32, ftz: bool) -> u32 {
    if ftz { flush32(mul32(flush32(a), REVOLUTION, Rounding::Zero)) } else { mul32(a, REVOLUTION, Rounding::Zero) }
}

/// `div.approx{.ftz}.f32`: a reciprocal and a product. Without `.ftz` a subnormal divisor is scaled; divisors above 2^126
/// give zero, as PTX says.
#[inline]
pub fn div_approx(a: u32, b: u32, ftz: bool) -> u32 {
    if ftz {
        return mul32_ftz(a, unit_rcp(b), Rounding::Nearest);
    }
    let scale = if b & INFINITY == 0 { 16_777_216.0 } else { 1.0 };
    mul32(mul(a, scale), unit_rcp(mul(b, scale)), Rounding::Nearest)
}

/// `div.full{.ftz}.f32`: as `div_approx`, with large divisors scaled down too.
#[inline]
pub fn div_full(a: u32, b: u32, ftz: bool) -> u32 {
    let large = b & !SIGN > 0x7e80_0000;
    if ftz {
        let scale = if large { 0.25 } else { 1.0 };
        let scaled = |x| mul32_ftz(x, f32::to_bits(scale), Rounding::Nearest);
        return mul32_ftz(scaled(a), unit_rcp(scaled(b)), Rounding::Nearest);
    }
    let scale = if large {
        0.25
    } else if b & INFINITY == 0 {
        16_777_216.0
    } else {
        1.0
    };
    mul32(mul(a, scale), unit_rcp(mul(b, scale)), Rounding::Nearest)
}

/// `tanh.approx.f32`: the operand itself below 2^-8, as the unit answers; above, where the unit's table is not known, the
/// nearest binary32 number. The unit differs from it by at most PTX's relative 2^-11 (119 units in the last place were
/// the most seen).
#[inline]
pub fn tanh(a: u32) -> u32 {
    if a & !SIGN < 0x3b80_0000 {
        return a;
    }
    canonical32(libm::tanh(f64::from(f32::from_bits(a))) as f32)
}

/// `tanh.approx.f16`: cut as the hardware cuts it, where the hardware stays within an absolute 2^-10.987.
#[inline]
pub fn tanh_f16(a: u16) -> u16 {
    f32_to_f16_in(tanh(f16_to_f32(a)), Rounding::Zero)
}

/// `tanh.approx.bf16`: cut as the hardware cuts it, where the hardware stays within a relative 2^-8.
#[inline]
pub fn tanh_bf16(a: u16) -> u16 {
    let x = tanh(bf16_to_f32(a));
    if is_nan32(x) { NAN16 } else { (x >> 16) as u16 }
}

/// `ex2.approx.f16`: the unit's result, cut.
#[inline]
pub fn ex2_f16(a: u16) -> u16 {
    let x = unit_ex2(f16_to_f32(a));
    if x >= 0x4780_0000 { f32_to_f16(x) } else { f32_to_f16_in(x, Rounding::Zero) }
}

/// `ex2.approx.ftz.bf16`: the unit's result, cut.
#[inline]
pub fn ex2_bf16(a: u16) -> u16 {
    (unit_ex2(bf16_to_f32(a)) >> 16) as u16
}

/// The high word of a binary64 number whose significand has 24 bits (or 2^24), cut to 20 bits behind the point.
#[inline(always)]
fn assemble_high(sign: u64, exponent: i32, significand: i64) -> u64 {
    let carry = significand >> 24;
    let field = exponent + 1023 + carry as i32;
    if field <= 0 {
        return sign;
    }
    sign | (field as u64) << 52 | ((significand >> carry) as u64 >> 3 & 0xf_ffff) << 32
}

/// The NaN of the binary64 seeds.
const NAN_HIGH: u64 = 0x7fff_ffff_0000_0000;

/// `rcp.approx.ftz.f64`: the high word from the table of `rcp`, the low word zero.
#[inline]
pub fn rcp_f64(a: u64) -> u64 {
    let (sign, field, mantissa) = (a & 1 << 63, (a >> 52 & 2047) as i32, (a >> 29) as u32 & 0x7f_fff8);
    if field == 2047 {
        // Only the high word is looked at: a NaN with nothing there passes for infinity.
        return if mantissa != 0 { NAN_HIGH } else { sign };
    }
    if field == 0 {
        return sign | 0x7ff << 52;
    }
    let x = mantissa & 0xffff;
    let sum = parabola(RCP[(mantissa >> 16) as usize], 13, x, square(2 * x)) + 0x47e7;
    assemble_high(sign, 1022 - field, sum >> 15)
}

/// The seed of the binary64 reciprocal square root.
#[inline]
fn unit_rsqrt_f64(a: u64) -> u64 {
    let (field, mantissa) = ((a >> 52 & 2047) as i32, (a >> 29) as u32 & 0x7f_fff8);
    if field == 2047 && mantissa != 0 {
        return NAN_HIGH;
    }
    if field == 0 {
        return a & 1 << 63 | 0x7ff << 52;
    }
    if a >> 63 != 0 {
        return NAN_HIGH;
    }
    if field == 2047 {
        return 0;
    }
    let exponent = field - 1023;
    let (odd, half) = ((exponent & 1) as u32, exponent >> 1);
    if odd == 0 && mantissa == 0 {
        return ((1023 - half) as u64) << 52;
    }
    let x = mantissa & 0x1_ffff;
    let sum = parabola(RSQRT[(odd << 6 | mantissa >> 17) as usize], 14, x, square(x) << 2) + 0x7fff;
    assemble_high(0, -1 - half, sum >> 16)
}

/// `rsqrt.approx{.ftz}.f64`. With `.ftz` the seed itself; without, refined once to nearly full precision.
#[inline]
pub fn rsqrt_f64(a: u64, ftz: bool) -> u64 {
    if ftz {
        return unit_rsqrt_f64(a);
    }
    let x = f64::from_bits(a);
    if x.is_nan() || x < 0.0 {
        return if x.is_nan() { a | 1 << 51 } else { 0xfff8_0000_0000_0000 };
    }
    if x == 0.0 || x.is_infinite() {
        return unit_rsqrt_f64(a);
    }
    let small = x < f64::MIN_POSITIVE;
    let x = if small { x * 18_014_398_509_481_984.0 } else { x };
    let y = f64::from_bits(unit_rsqrt_f64(x.to_bits()));
    let e = (-x).mul_add(y * y, 1.0);
    let y = e.mul_add(0.375, 0.5).mul_add(e * y, y);
    (if small { y * 134_217_728.0 } else { y }).to_bits()
}
