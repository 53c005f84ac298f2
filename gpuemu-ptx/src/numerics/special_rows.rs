//! The special-function unit for the 32 lanes of a warp at once: `special`'s arithmetic, bit for bit, without branches,
//! so that it becomes vector code.

use super::exact::Rounding;
use super::float::{NAN32, is_nan32, mul32, mul32_ftz};
use super::special;
use super::special_tables::{EX2, LG2, RCP, RSQRT, SQRT, Segment, Use};
#[cfg(target_arch = "x86_64")]
use super::special_wide;

/// Lanes of a warp.
const LANES: usize = 32;

/// A value of every lane.
pub type Row = [u32; LANES];

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;
const ONE: u32 = 0x3f80_0000;
/// 2^24, and other scales.
const UP: f32 = 16_777_216.0;

/// A row by lane.
#[inline(always)]
fn row(f: impl Fn(usize) -> u32) -> Row {
    let mut out = [0; LANES];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(lane);
    }
    out
}

#[inline(always)]
fn mul(a: u32, b: f32) -> u32 {
    mul32(a, b.to_bits(), Rounding::Nearest)
}

/// `x^2 / 2^19` of 17 bits, each row of partial products cut before it is added. The two low bits of `x` add nothing, and
/// what the others add stays below 2^16.
#[inline(always)]
fn squares(x: &Row) -> Row {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the host has AVX2.
        return unsafe { special_wide::squares(x) };
    }
    let (mut y, mut sum) = ([0u16; LANES], [0u16; LANES]);
    for lane in 0..LANES {
        y[lane] = (x[lane] >> 1) as u16 & !1;
    }
    for bit in 1..16 {
        for lane in 0..LANES {
            // Shifted right by 18 less the bit's place in `x`, as the upper half of a product.
            let shifted = (u32::from(y[lane]) * u32::from(y[lane] & 1 << bit)) >> 16;
            sum[lane] = sum[lane].wrapping_add(shifted as u16);
        }
    }
    row(|lane| u32::from(sum[lane] >> 1))
}

/// A table with a segment in one word: the constant in the upper half, then the slope in 20 bits, the curvature in 12.
const fn packed<const N: usize>(table: &[Segment; N]) -> [u64; N] {
    let mut packed = [0; N];
    let mut at = 0;
    while at < N {
        let (constant, slope, curvature) = table[at];
        assert!(slope >= -(1 << 19) && slope < 1 << 19 && curvature >= -(1 << 11) && curvature < 1 << 11);
        packed[at] = (constant as u64) << 32 | (slope as u32 as u64) << 12 & 0xffff_ffff | curvature as u64 & 0xfff;
        at += 1;
    }
    packed
}

pub(super) static PACKED_EX2: [u64; 64] = packed(&EX2);
pub(super) static PACKED_RCP: [u64; 128] = packed(&RCP);
static PACKED_RSQRT: [u64; 128] = packed(&RSQRT);
static PACKED_LG2: [u64; 64] = packed(&LG2);

pub(super) const EX2_USE: Use = Use { up: 13, square_up: 0, offset: 0x77e2 };
pub(super) const RCP_USE: Use = Use { up: 13, square_up: 0, offset: 0x47e7 };

/// A function of rows in vectors of the host where it has AVX2, else by the arithmetic of single lanes.
macro_rules! wide_or {
    ($out:ident, $wide:ident$(::<$approx:literal>)?, $any:ident, $($argument:expr),*) => {{
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the host has AVX2 and FMA.
            return unsafe { special_wide::$wide$(::<$approx>)?($($argument,)* $out) };
        }
        *$out = $any($($argument),*);
    }};
}

/// The segment of every lane.
#[inline(always)]
fn segments<const N: usize>(table: &[u64; N], index: &Row) -> [u64; LANES] {
    let mut segments = [0; LANES];
    for lane in 0..LANES {
        segments[lane] = table[index[lane] as usize % N];
    }
    segments
}

/// The parabola of every lane at `x`, with the square of `whole`; none is negative, all are shifted right by two more
/// bits than the constants were shifted left. In 32 bits, by the upper and the lower seven bits of `x`, since what is cut
/// below a sum of whole numbers cuts it alike.
#[inline(always)]
fn parabolas<const N: usize>(table: &[u64; N], how: &Use, index: &Row, x: &Row, whole: &Row) -> Row {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the host has AVX2.
        return unsafe { special_wide::parabolas(table, how, index, x, whole) };
    }
    let (segments, square) = (segments(table, index), squares(whole));
    row(|lane| {
        let (constant, rest) = ((segments[lane] >> 32) as i32, segments[lane] as i32);
        let (slope, curvature) = (rest >> 12, rest << 20 >> 20);
        let lower = slope * (x[lane] & 127) as i32 + curvature * (square[lane] << how.square_up) as i32 + how.offset;
        let upper = slope * (x[lane] >> 7) as i32;
        ((constant + ((upper + (lower >> 7)) >> (how.up - 7))) >> 2) as u32
    })
}

/// As `special::assemble`, of one lane.
#[inline(always)]
fn assemble(sign: u32, exponent: i32, significand: u32) -> u32 {
    let carry = significand >> 24;
    let field = exponent + 127 + carry as i32;
    let bits = (field as u32) << 23 | (significand >> carry) & 0x7f_ffff;
    sign | if field >= 255 {
        INFINITY
    } else if field <= 0 {
        0
    } else {
        bits
    }
}

#[inline(always)]
fn unit_ex2(a: &Row) -> Row {
    // Seven bits and 23 behind the point, cut; what is out of range is replaced at the end.
    let fixed = row(|lane| {
        let magnitude = a[lane] & !SIGN;
        let exponent = (magnitude >> 23) as i32 - 127;
        let significand = magnitude & 0x7f_ffff | 0x80_0000;
        let (left, right) = (exponent.clamp(0, 7) as u32, (-exponent).clamp(0, 31) as u32);
        let fixed = (significand << left) >> right;
        let fixed = if magnitude < 0x0080_0000 { 0 } else { fixed };
        // A negative argument is complemented, not negated, unless it is a whole number.
        let negative = (a[lane] as i32 >> 31) as u32;
        let whole = u32::from(fixed & 0x7f_ffff == 0) & negative;
        (fixed ^ negative).wrapping_add(whole)
    });
    let x = row(|lane| fixed[lane] & 0x1_ffff);
    let index = row(|lane| fixed[lane] >> 17 & 63);
    let sums = parabolas(&PACKED_EX2, &EX2_USE, &index, &x, &x);
    row(|lane| {
        let magnitude = a[lane] & !SIGN;
        let usual = assemble(0, fixed[lane] as i32 >> 23, sums[lane]);
        let large = if a[lane] & SIGN != 0 { 0 } else { INFINITY };
        let known = if magnitude >= 0x4300_0000 { large } else { usual };
        if magnitude > INFINITY { NAN32 } else { known }
    })
}

/// `special::ex2` of every lane.
#[inline(always)]
pub fn ex2(a: &Row, ftz: bool, out: &mut Row) {
    wide_or!(out, ex2, any_ex2, a, ftz)
}

#[inline(always)]
pub(super) fn any_ex2(a: &Row, ftz: bool) -> Row {
    if ftz {
        return unit_ex2(a);
    }
    let small = |lane: usize| f32::from_bits(a[lane]) < -126.0;
    let result = unit_ex2(&row(|lane| if small(lane) { mul(a[lane], 0.5) } else { a[lane] }));
    row(|lane| {
        let square = mul32(result[lane], result[lane], Rounding::Nearest);
        if small(lane) { square } else { result[lane] }
    })
}

#[inline(always)]
fn unit_rcp(a: &Row) -> Row {
    let x = row(|lane| a[lane] & 0xffff);
    let index = row(|lane| a[lane] >> 16 & 127);
    let sums = parabolas(&PACKED_RCP, &RCP_USE, &index, &x, &row(|lane| 2 * x[lane]));
    row(|lane| {
        let (sign, field, mantissa) = (a[lane] & SIGN, a[lane] >> 23 & 255, a[lane] & 0x7f_ffff);
        let usual = assemble(sign, 126 - field as i32, sums[lane]);
        let top = if mantissa != 0 { NAN32 } else { sign };
        let known = if field == 255 { top } else { usual };
        if field == 0 { sign | INFINITY } else { known }
    })
}

/// `special::rcp` of every lane.
#[inline(always)]
pub fn rcp(a: &Row, ftz: bool, out: &mut Row) {
    wide_or!(out, rcp, any_rcp, a, ftz)
}

#[inline(always)]
pub(super) fn any_rcp(a: &Row, ftz: bool) -> Row {
    if ftz {
        return unit_rcp(a);
    }
    let scale = |lane: usize| {
        let magnitude = a[lane] & !SIGN;
        let small = magnitude & INFINITY == 0 && magnitude != 0;
        let large = magnitude > 0x7e80_0000 && magnitude < INFINITY;
        let scale = if large { 0.25 } else { 1.0 };
        if small { UP } else { scale }
    };
    let result = unit_rcp(&row(|lane| if scale(lane) == 1.0 { a[lane] } else { mul(a[lane], scale(lane)) }));
    row(|lane| if scale(lane) == 1.0 { result[lane] } else { mul(result[lane], scale(lane)) })
}

#[inline(always)]
fn unit_rsqrt(a: &Row) -> Row {
    let x = row(|lane| a[lane] & 0x1_ffff);
    // The lowest bit of the exponent, which is one more than that of the field.
    let index = row(|lane| (!(a[lane] >> 23) & 1) << 6 | a[lane] >> 17 & 63);
    let how = Use { up: 14, square_up: 2, offset: 0x7fff };
    let sums = parabolas(&PACKED_RSQRT, &how, &index, &x, &x);
    row(|lane| {
        let (field, mantissa) = ((a[lane] >> 23 & 255) as i32, a[lane] & 0x7f_ffff);
        let half = (field - 127) >> 1;
        let usual = assemble(0, -1 - half, sums[lane]);
        let power = field & 1 != 0 && mantissa == 0;
        let known = if power { ((127 - half) as u32) << 23 } else { usual };
        let known = if field == 255 { 0 } else { known };
        let known = if a[lane] & SIGN != 0 { NAN32 } else { known };
        let known = if field == 0 { a[lane] & SIGN | INFINITY } else { known };
        if is_nan32(a[lane]) { NAN32 } else { known }
    })
}

/// Whether a lane is subnormal, and not zero.
#[inline(always)]
fn is_subnormal(a: u32) -> bool {
    a & INFINITY == 0 && a & !SIGN != 0
}

/// Where all lanes hold one number, as the sums of rows do, one answer does for all.
macro_rules! one_for_all {
    ($a:ident, $one:path, $ftz:ident, $out:ident) => {
        if $a.iter().fold(0, |apart, lane| apart | (lane ^ $a[0])) == 0 {
            *$out = [$one($a[0], $ftz); LANES];
            return;
        }
    };
}

/// Calls `unit` with subnormal lanes times 2^24, and gives their results to `after`. No function: one that takes a
/// function is not inlined whole.
macro_rules! scaled {
    ($a:ident, $ftz:ident, $unit:ident, |$x:ident| $after:expr) => {{
        if $ftz {
            return $unit($a);
        }
        let result = $unit(&row(|lane| if is_subnormal($a[lane]) { mul($a[lane], UP) } else { $a[lane] }));
        row(|lane| {
            let $x = result[lane];
            if is_subnormal($a[lane]) { $after } else { $x }
        })
    }};
}

/// `special::rsqrt` of every lane.
#[inline(always)]
pub fn rsqrt(a: &Row, ftz: bool, out: &mut Row) {
    one_for_all!(a, special::rsqrt, ftz, out);
    *out = any_rsqrt(a, ftz);
}

#[inline(always)]
fn any_rsqrt(a: &Row, ftz: bool) -> Row {
    scaled!(a, ftz, unit_rsqrt, |x| mul(x, 4096.0))
}

/// `special::sqrt` of every lane.
#[inline(always)]
pub fn sqrt(a: &Row, ftz: bool, out: &mut Row) {
    one_for_all!(a, special::sqrt, ftz, out);
    *out = any_sqrt(a, ftz);
}

#[inline(always)]
fn any_sqrt(a: &Row, ftz: bool) -> Row {
    scaled!(a, ftz, unit_sqrt, |x| mul(x, 1.0 / 4096.0))
}

/// `special::lg2` of every lane.
#[inline(always)]
pub fn lg2(a: &Row, ftz: bool, out: &mut Row) {
    one_for_all!(a, special::lg2, ftz, out);
    *out = any_lg2(a, ftz);
}

#[inline(always)]
fn any_lg2(a: &Row, ftz: bool) -> Row {
    scaled!(a, ftz, unit_lg2, |x| (f32::from_bits(x) - 24.0).to_bits())
}

#[inline(always)]
fn unit_sqrt(a: &Row) -> Row {
    let x = row(|lane| a[lane] & 0x1_ffff);
    let index = row(|lane| (!(a[lane] >> 23) & 1) << 6 | a[lane] >> 17 & 63);
    let square = squares(&x);
    let (mut constant, mut slope, mut curvature) = ([0i64; LANES], [0i32; LANES], [0i32; LANES]);
    for lane in 0..LANES {
        let segment = SQRT[index[lane] as usize % 128];
        (constant[lane], slope[lane], curvature[lane]) = (segment.0, segment.1 as i32, segment.2 as i32);
    }
    row(|lane| {
        let sum = constant[lane]
            + i64::from(slope[lane]) * i64::from(x[lane] as i32)
            + i64::from(curvature[lane]) * i64::from(square[lane] as i32);
        let exponent = (a[lane] >> 23 & 255) as i32 - 127;
        let usual = assemble(0, exponent >> 1, (sum as u64 >> 17) as u32);
        let known = if a[lane] == INFINITY { INFINITY } else { usual };
        let known = if a[lane] & SIGN != 0 { NAN32 } else { known };
        let known = if a[lane] & INFINITY == 0 { a[lane] & SIGN } else { known };
        if is_nan32(a[lane]) { NAN32 } else { known }
    })
}

#[inline(always)]
fn unit_lg2(a: &Row) -> Row {
    let x = row(|lane| a[lane] & 0x1_ffff);
    let index = row(|lane| a[lane] >> 17 & 63);
    let (segments, square) = (segments(&PACKED_LG2, &index), squares(&x));
    row(|lane| {
        let rest = segments[lane] as i32;
        let fraction = ((segments[lane] >> 32 << 12) as i64)
            + i64::from(rest >> 12) * i64::from(x[lane] as i32)
            + i64::from(rest << 20 >> 20) * i64::from((square[lane] << 1) as i32)
            + 0x3345;
        let field = (a[lane] >> 23 & 255) as i32;
        let sum = ((i64::from(field - 127) << 38) + fraction) >> 2;
        // A negative sum is complemented, not negated.
        let negative = sum >> 63;
        let magnitude = (sum ^ negative) as u64;
        // Below 2^44, so that binary64 holds it whole: its exponent is that of the first bit, its significand the rest.
        let float = (magnitude as f64).to_bits();
        let bits = ((float >> 52) as i32 - 1023 - 36 + 127) as u32;
        let usual = (negative as u32) & SIGN | bits << 23 | (float >> 29) as u32 & 0x7f_ffff;
        let known = if a[lane] == ONE || magnitude == 0 { 0 } else { usual };
        let known = if field == 255 { INFINITY } else { known };
        let known = if a[lane] & SIGN != 0 { NAN32 } else { known };
        let known = if field == 0 { SIGN | INFINITY } else { known };
        if is_nan32(a[lane]) { NAN32 } else { known }
    })
}

/// `special::div_approx` of every lane.
#[inline(always)]
pub fn div_approx(a: &Row, b: &Row, ftz: bool, out: &mut Row) {
    wide_or!(out, div::<true>, any_div_approx, a, b, ftz)
}

#[inline(always)]
pub(super) fn any_div_approx(a: &Row, b: &Row, ftz: bool) -> Row {
    if ftz {
        let result = unit_rcp(b);
        return row(|lane| mul32_ftz(a[lane], result[lane], Rounding::Nearest));
    }
    divided(a, b, |b| if b & INFINITY == 0 { UP } else { 1.0 })
}

/// `special::div_full` of every lane.
#[inline(always)]
pub fn div_full(a: &Row, b: &Row, ftz: bool, out: &mut Row) {
    wide_or!(out, div::<false>, any_div_full, a, b, ftz)
}

#[inline(always)]
pub(super) fn any_div_full(a: &Row, b: &Row, ftz: bool) -> Row {
    let large = |b: u32| b & !SIGN > 0x7e80_0000;
    if ftz {
        let scale = |b| if large(b) { 0.25f32 } else { 1.0 };
        let by = |x: u32, b: u32| mul32_ftz(x, scale(b).to_bits(), Rounding::Nearest);
        let result = unit_rcp(&row(|lane| by(b[lane], b[lane])));
        return row(|lane| mul32_ftz(by(a[lane], b[lane]), result[lane], Rounding::Nearest));
    }
    divided(a, b, |b| {
        let scale = if b & INFINITY == 0 { UP } else { 1.0 };
        if large(b) { 0.25 } else { scale }
    })
}

/// Both operands times a scale of the divisor's, then the reciprocal and the product.
#[inline(always)]
fn divided(a: &Row, b: &Row, scale: impl Fn(u32) -> f32) -> Row {
    let result = unit_rcp(&row(|lane| mul(b[lane], scale(b[lane]))));
    row(|lane| mul32(mul(a[lane], scale(b[lane])), result[lane], Rounding::Nearest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit patterns that cover every exponent, both ends of every segment and numbers in between.
    fn arguments() -> Vec<u32> {
        let mut state = 1u32;
        let mut found = Vec::new();
        for top in 0..1 << 16 {
            for low in [0, 1, 0x7fff, 0x8000, 0xffff] {
                found.push(top << 16 | low);
            }
            for _ in 0..27 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                found.push(top << 16 | state >> 16);
            }
        }
        found
    }

    fn agrees(name: &str, rows: impl Fn(&Row, &mut Row), one: impl Fn(u32) -> u32) {
        for chunk in arguments().chunks_exact(LANES) {
            let a: Row = chunk.try_into().unwrap();
            let (mut got, right) = ([7; LANES], a.map(&one));
            rows(&a, &mut got);
            if let Some(lane) = (0..LANES).find(|&lane| got[lane] != right[lane]) {
                panic!("{name} of {:#x}: {:#x} instead of {:#x}", a[lane], got[lane], right[lane]);
            }
            let lane = a[0] as usize >> 16 & 31;
            rows(&[a[lane]; LANES], &mut got);
            assert_eq!(got, [right[lane]; LANES], "{name} of {:#x} in all lanes", a[lane]);
        }
    }

    #[test]
    fn rows_agree_with_one_lane() {
        for ftz in [false, true] {
            agrees("ex2", |a, out| ex2(a, ftz, out), |a| special::ex2(a, ftz));
            agrees("rcp", |a, out| rcp(a, ftz, out), |a| special::rcp(a, ftz));
            agrees("rsqrt", |a, out| rsqrt(a, ftz, out), |a| special::rsqrt(a, ftz));
            agrees("sqrt", |a, out| sqrt(a, ftz, out), |a| special::sqrt(a, ftz));
            agrees("lg2", |a, out| lg2(a, ftz, out), |a| special::lg2(a, ftz));
            agrees("1 / x", |a, out| div_full(&[ONE; LANES], a, ftz, out), |a| special::div_full(ONE, a, ftz));
            agrees("1 / x", |a, out| div_approx(&[ONE; LANES], a, ftz, out), |a| special::div_approx(ONE, a, ftz));
            for b in [0, 1, 0x1234_5678, 0x3f9d_0000, 0x7e80_0001, 0x7f80_0000, 0x7fc0_0000, 0xbf12_3456, 0x8000_0100] {
                let other = [b; LANES];
                agrees("div.full", |a, out| div_full(a, &other, ftz, out), |a| special::div_full(a, b, ftz));
                agrees("div.full by", |a, out| div_full(&other, a, ftz, out), |a| special::div_full(b, a, ftz));
                agrees("div.approx", |a, out| div_approx(a, &other, ftz, out), |a| special::div_approx(a, b, ftz));
                agrees("div.approx by", |a, out| div_approx(&other, a, ftz, out), |a| special::div_approx(b, a, ftz));
            }
        }
    }
}
