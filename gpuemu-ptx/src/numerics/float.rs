//! binary32 and binary64 arithmetic on bit patterns, in PTX's four rounding modes.
//!
//! Round to nearest is the host's own operation. binary32 in a directed mode goes through binary64: a product of two
//! 24-bit significands is exact there, and the error of a sum is itself a binary64 number, so the direction of rounding
//! is known. binary64 in a directed mode takes the integer road of `exact`. The host must round to nearest, as Rust
//! assumes. `.ftz` is `flush32` before and after an operation, `.sat` is `saturate32` after it.

use super::exact::{F64, Rounding};
use std::cmp::Ordering;

/// PTX's canonical binary32 NaN.
pub const NAN32: u32 = 0x7fff_ffff;
/// The binary64 NaN of an invalid operation.
pub const NAN64: u64 = 0xfff8_0000_0000_0000;

const SIGN32: u32 = 0x8000_0000;
const INFINITY32: u32 = 0x7f80_0000;
const SIGN64: u64 = 1 << 63;
const INFINITY64: u64 = 0x7ff << 52;
const QUIET64: u64 = 1 << 51;

#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The bits of a binary32 result, a NaN in canonical form.
#[inline(always)]
pub fn canonical32(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

/// Whether the pattern is a NaN.
#[inline(always)]
pub fn is_nan32(a: u32) -> bool {
    a & !SIGN32 > INFINITY32
}

/// Whether the pattern is a NaN.
#[inline(always)]
pub fn is_nan64(a: u64) -> bool {
    a & !SIGN64 > INFINITY64
}

/// `.ftz`: a subnormal becomes zero of its sign.
#[inline(always)]
pub fn flush32(a: u32) -> u32 {
    if a & INFINITY32 == 0 { a & SIGN32 } else { a }
}

/// `.sat`: clamped to [0, 1]; NaN and -0 give +0.
#[inline(always)]
pub fn saturate32(a: u32) -> u32 {
    let x = f(a);
    if x > 0.0 { if x < 1.0 { a } else { 0x3f80_0000 } } else { 0 }
}

/// `.sat` of binary64.
#[inline(always)]
pub fn saturate64(a: u64) -> u64 {
    let x = d(a);
    if x > 0.0 { if x < 1.0 { a } else { 1f64.to_bits() } } else { 0 }
}

/// Turns a result rounded to nearest into one rounded in `rounding`'s direction. `nearest` is not NaN; `side` says how
/// its magnitude compares with that of the exact result, whose sign is `negative`.
#[inline]
fn directed32(nearest: u32, side: Ordering, negative: bool, rounding: Rounding) -> u32 {
    let outward = match rounding {
        Rounding::Nearest => return nearest,
        Rounding::Zero => false,
        Rounding::Down => negative,
        Rounding::Up => !negative,
    };
    match side {
        Ordering::Greater if !outward => nearest - 1,
        Ordering::Less if outward => nearest + 1,
        _ => nearest,
    }
}

/// binary64 to binary32.
#[inline]
pub fn narrow(x: f64, rounding: Rounding) -> u32 {
    let y = x as f32;
    if rounding == Rounding::Nearest || x.is_nan() {
        return canonical32(y);
    }
    let side = f64::from(y.abs()).partial_cmp(&x.abs()).unwrap_or(Ordering::Equal);
    directed32(y.to_bits(), side, x.is_sign_negative(), rounding)
}

/// `x + y` of binary64 rounded to odd: the neighbour with an odd last bit where the sum is inexact. Whatever has two
/// bits less can be rounded from it in any direction as if from the exact sum. The operands stay far from overflow.
#[inline(always)]
pub(super) fn add_odd(x: f64, y: f64) -> f64 {
    let s = x + y;
    let t = s - x;
    let error = (x - (s - t)) + (y - t);
    let bits = s.to_bits();
    let inexact = error != 0.0 && bits & 1 == 0 && s.is_finite();
    let outward = (error < 0.0) == (s < 0.0);
    let step = if outward { 1 } else { u64::MAX };
    d(if inexact { bits.wrapping_add(step) } else { bits })
}

/// `x + y` of binary32 operands already widened, or of an exact product and an operand.
#[inline]
fn sum32(x: f64, y: f64, rounding: Rounding) -> u32 {
    let s = add_odd(x, y);
    if s == 0.0 && rounding == Rounding::Down && !(x.is_sign_positive() && y.is_sign_positive()) {
        return SIGN32;
    }
    narrow(s, rounding)
}

/// `add.f32`.
#[inline]
pub fn add32(a: u32, b: u32, rounding: Rounding) -> u32 {
    if rounding == Rounding::Nearest {
        return canonical32(f(a) + f(b));
    }
    sum32(f64::from(f(a)), f64::from(f(b)), rounding)
}

/// `sub.f32`.
#[inline]
pub fn sub32(a: u32, b: u32, rounding: Rounding) -> u32 {
    add32(a, b ^ SIGN32, rounding)
}

/// `mul.f32`.
#[inline]
pub fn mul32(a: u32, b: u32, rounding: Rounding) -> u32 {
    if rounding == Rounding::Nearest {
        return canonical32(f(a) * f(b));
    }
    narrow(f64::from(f(a)) * f64::from(f(b)), rounding)
}

/// `fma.f32`. Round to nearest is one machine instruction where the caller is compiled for a host with FMA, and the C
/// library's correct routine elsewhere; `fma32_through_f64` is a road with neither.
#[inline]
pub fn fma32(a: u32, b: u32, c: u32, rounding: Rounding) -> u32 {
    if rounding == Rounding::Nearest {
        return canonical32(f(a).mul_add(f(b), f(c)));
    }
    fma32_through_f64(a, b, c, rounding)
}

/// `fma.f32` with neither the host's FMA nor a library: the exact product in binary64, plus the addend, rounded to odd.
#[inline]
pub fn fma32_through_f64(a: u32, b: u32, c: u32, rounding: Rounding) -> u32 {
    sum32(f64::from(f(a)) * f64::from(f(b)), f64::from(f(c)), rounding)
}

/// 2^32, and the smallest normal number times it.
pub(super) const SCALE: f32 = 4_294_967_296.0;
pub(super) const SCALED_LEAST: f32 = f32::MIN_POSITIVE * SCALE;

/// `mul.ftz.f32`. The hardware flushes what lies below the smallest normal after rounding to 24 bits with no bound on
/// the exponent, which a product scaled up shows; the rounded result itself may have come up to that number.
#[inline]
pub fn mul32_ftz(a: u32, b: u32, rounding: Rounding) -> u32 {
    let (a, b) = (flush32(a), flush32(b));
    let result = mul32(a, b, rounding);
    let scaled = if rounding == Rounding::Nearest {
        // A scaled factor that overflows belongs to a product that is not tiny.
        f(a) * SCALE * f(b)
    } else {
        f(narrow(f64::from(f(a)) * f64::from(f(b)) * f64::from(SCALE), rounding))
    };
    if scaled.abs() < SCALED_LEAST { result & SIGN32 } else { result }
}

/// `fma.ftz.f32`, flushed as `mul32_ftz`.
#[inline]
pub fn fma32_ftz(a: u32, b: u32, c: u32, rounding: Rounding) -> u32 {
    let (a, b, c) = (flush32(a), flush32(b), flush32(c));
    let result = fma32(a, b, c, rounding);
    let scaled = if rounding == Rounding::Nearest {
        (f(a) * SCALE).mul_add(f(b), f(c) * SCALE)
    } else {
        let sum = add_odd(f64::from(f(a)) * f64::from(f(b)), f64::from(f(c)));
        f(narrow(sum * f64::from(SCALE), rounding))
    };
    if scaled.abs() < SCALED_LEAST { result & SIGN32 } else { result }
}

/// `div.ftz.f32`.
#[inline]
pub fn div32_ftz(a: u32, b: u32, rounding: Rounding) -> u32 {
    let (a, b) = (flush32(a), flush32(b));
    let result = div32(a, b, rounding);
    // A quotient of two 24-bit significands comes no nearer to a power of two than 2^-24 of it.
    if (f64::from(f(a)) / f64::from(f(b))).abs() < f64::from(f32::MIN_POSITIVE) { result & SIGN32 } else { result }
}

/// `div.f32` (`.rn` and the directed ones; the approximate forms are in `special`).
#[inline]
pub fn div32(a: u32, b: u32, rounding: Rounding) -> u32 {
    let (x, y) = (f(a), f(b));
    let q = x / y;
    if rounding == Rounding::Nearest || !x.is_finite() || !y.is_finite() || y == 0.0 {
        return canonical32(q);
    }
    // Both products are exact; infinity is larger than any quotient that overflowed.
    let side = (f64::from(q.abs()) * f64::from(y.abs())).partial_cmp(&f64::from(x.abs())).unwrap_or(Ordering::Equal);
    directed32(q.to_bits(), side, (a ^ b) & SIGN32 != 0, rounding)
}

/// `rcp.f32`.
#[inline]
pub fn rcp32(a: u32, rounding: Rounding) -> u32 {
    div32(0x3f80_0000, a, rounding)
}

/// `sqrt.f32`.
#[inline]
pub fn sqrt32(a: u32, rounding: Rounding) -> u32 {
    let x = f(a);
    let root = x.sqrt();
    if rounding == Rounding::Nearest || x.is_nan() || x <= 0.0 || x.is_infinite() {
        return canonical32(root);
    }
    let side = (f64::from(root) * f64::from(root)).partial_cmp(&f64::from(x)).unwrap_or(Ordering::Equal);
    directed32(root.to_bits(), side, false, rounding)
}

/// How `min` and `max` treat what order alone does not settle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extremum {
    /// `.NaN`: a NaN operand makes the result NaN; without it the other operand is the result.
    pub nan: bool,
    /// `.xorsign.abs`: the operands count by magnitude, the result takes the exclusive or of their signs.
    pub xorsign_abs: bool,
}

macro_rules! extremum {
    ($min:ident, $max:ident, $pick:ident, $t:ty, $nan:expr, $sign:expr, $infinity:expr, $what:literal) => {
        #[inline(always)]
        fn $pick(a: $t, b: $t, mode: Extremum, largest: bool) -> $t {
            const SIGN: $t = $sign;
            const LARGEST: $t = $infinity;
            let sign = if mode.xorsign_abs { (a ^ b) & SIGN } else { 0 };
            let (x, y) = if mode.xorsign_abs { (a & !SIGN, b & !SIGN) } else { (a, b) };
            // Sign and magnitude to an order in which -0 < +0, as PTX asks.
            let key = |v: $t| v ^ if v & SIGN != 0 { <$t>::MAX } else { SIGN };
            let (nx, ny) = (a & !SIGN > LARGEST, b & !SIGN > LARGEST);
            let picked = if (key(x) < key(y)) != largest { x } else { y };
            let picked = if nx {
                y
            } else if ny {
                x
            } else {
                picked
            };
            let invalid = (nx && ny) || (mode.nan && (nx || ny));
            if invalid { $nan } else { picked | sign }
        }
        #[doc = concat!("`min", $what, "`.")]
        #[inline(always)]
        pub fn $min(a: $t, b: $t, mode: Extremum) -> $t {
            $pick(a, b, mode, false)
        }
        #[doc = concat!("`max", $what, "`.")]
        #[inline(always)]
        pub fn $max(a: $t, b: $t, mode: Extremum) -> $t {
            $pick(a, b, mode, true)
        }
    };
}

extremum!(min32, max32, pick32, u32, NAN32, SIGN32, INFINITY32, ".f32");
extremum!(min_f16, max_f16, pick_f16, u16, 0x7fff, 0x8000, 0x7c00, ".f16");
extremum!(min_bf16, max_bf16, pick_bf16, u16, 0x7fff, 0x8000, 0x7f80, ".bf16");

/// `min.f64`: as binary32's, but two NaNs give the second, quieted.
#[inline]
pub fn min64(a: u64, b: u64) -> u64 {
    pick64(a, b, false)
}

/// `max.f64`.
#[inline]
pub fn max64(a: u64, b: u64) -> u64 {
    pick64(a, b, true)
}

#[inline(always)]
fn pick64(a: u64, b: u64, largest: bool) -> u64 {
    let key = |v: u64| v ^ if v & SIGN64 != 0 { u64::MAX } else { SIGN64 };
    let picked = if (key(a) < key(b)) != largest { a } else { b };
    match (is_nan64(a), is_nan64(b)) {
        (true, true) => b | QUIET64,
        (true, false) => b,
        (false, true) => a,
        (false, false) => picked,
    }
}

/// Three-operand `min.f32` (sm_100): the two-operand one applied twice.
#[inline]
pub fn min3_32(a: u32, b: u32, c: u32, mode: Extremum) -> u32 {
    min32(min32(a, b, mode), c, mode)
}

/// Three-operand `max.f32` (sm_100).
#[inline]
pub fn max3_32(a: u32, b: u32, c: u32, mode: Extremum) -> u32 {
    max32(max32(a, b, mode), c, mode)
}

/// `abs.f32`.
#[inline(always)]
pub fn abs32(a: u32) -> u32 {
    if is_nan32(a) { NAN32 } else { a & !SIGN32 }
}

/// `neg.f32`.
#[inline(always)]
pub fn neg32(a: u32) -> u32 {
    if is_nan32(a) { NAN32 } else { a ^ SIGN32 }
}

/// `abs.f64`: a NaN is quieted and keeps its sign.
#[inline(always)]
pub fn abs64(a: u64) -> u64 {
    if is_nan64(a) { a | QUIET64 } else { a & !SIGN64 }
}

/// `neg.f64`: a NaN is quieted and keeps its sign.
#[inline(always)]
pub fn neg64(a: u64) -> u64 {
    if is_nan64(a) { a | QUIET64 } else { a ^ SIGN64 }
}

/// `copysign.f32 d, a, b`: the sign of `a`, the magnitude of `b`.
#[inline(always)]
pub fn copysign32(a: u32, b: u32) -> u32 {
    (a & SIGN32) | (b & !SIGN32)
}

/// `copysign.f64 d, a, b`: the sign of `a`, the magnitude of `b`.
#[inline(always)]
pub fn copysign64(a: u64, b: u64) -> u64 {
    (a & SIGN64) | (b & !SIGN64)
}

/// The question that `testp` asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// Neither infinite nor NaN.
    Finite,
    /// Positive or negative infinity.
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither infinite, NaN nor subnormal; zero counts as normal.
    Normal,
    /// Subnormal; zero is not.
    Subnormal,
}

/// `testp.f32`.
#[inline(always)]
pub fn testp32(a: u32, property: Property) -> bool {
    let (m, e) = (a & !SIGN32, a & INFINITY32);
    match property {
        Property::Finite => e != INFINITY32,
        Property::Infinite => m == INFINITY32,
        Property::Number => m <= INFINITY32,
        Property::NotANumber => m > INFINITY32,
        Property::Normal => e != INFINITY32 && (e != 0 || m == 0),
        Property::Subnormal => e == 0 && m != 0,
    }
}

/// `testp.f64`.
#[inline(always)]
pub fn testp64(a: u64, property: Property) -> bool {
    let (m, e) = (a & !SIGN64, a & INFINITY64);
    match property {
        Property::Finite => e != INFINITY64,
        Property::Infinite => m == INFINITY64,
        Property::Number => m <= INFINITY64,
        Property::NotANumber => m > INFINITY64,
        Property::Normal => e != INFINITY64 && (e != 0 || m == 0),
        Property::Subnormal => e == 0 && m != 0,
    }
}

/// The comparison of `setp`, `set` and `slct`. The `u` forms hold as well when an operand is NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // PTX's own names
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

macro_rules! compare {
    ($name:ident, $t:ty, $bits:ty, $what:literal) => {
        #[doc = concat!("`setp", $what, "`. `ne` of a NaN is false, `neu` true.")]
        // Written so that a NaN, of which no comparison holds, falls on the right side.
        #[allow(clippy::neg_cmp_op_on_partial_ord, clippy::double_comparisons, clippy::nonminimal_bool)]
        #[inline(always)]
        pub fn $name(a: $bits, b: $bits, comparison: Comparison) -> bool {
            let (x, y) = (<$t>::from_bits(a), <$t>::from_bits(b));
            match comparison {
                Comparison::Eq => x == y,
                Comparison::Ne => x < y || x > y,
                Comparison::Lt => x < y,
                Comparison::Le => x <= y,
                Comparison::Gt => x > y,
                Comparison::Ge => x >= y,
                Comparison::Equ => !(x < y || x > y),
                Comparison::Neu => x != y,
                Comparison::Ltu => !(x >= y),
                Comparison::Leu => !(x > y),
                Comparison::Gtu => !(x <= y),
                Comparison::Geu => !(x < y),
                Comparison::Num => !(x.is_nan() || y.is_nan()),
                Comparison::Nan => x.is_nan() || y.is_nan(),
            }
        }
    };
}

compare!(compare32, f32, u32, ".f32");
compare!(compare64, f64, u64, ".f64");

/// The NaN that a binary64 operation answers for NaN operands: the hardware passes on the first of them in the order
/// of `operands` (second factor, addend, first factor), quieted.
#[inline]
fn propagate64(operands: &[u64]) -> Option<u64> {
    operands.iter().find(|&&x| is_nan64(x)).map(|x| x | QUIET64)
}

/// A NaN of the host becomes the GPU's.
#[inline(always)]
fn settle64(x: f64, operands: &[u64]) -> u64 {
    if x.is_nan() { propagate64(operands).unwrap_or(NAN64) } else { x.to_bits() }
}

/// `add.f64`.
#[inline]
pub fn add64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let s = d(a) + d(b);
    if rounding == Rounding::Nearest || s.is_nan() { settle64(s, &[b, a]) } else { F64.add(a, b, rounding) }
}

/// `sub.f64`.
#[inline]
pub fn sub64(a: u64, b: u64, rounding: Rounding) -> u64 {
    if is_nan64(b) { add64(a, b, rounding) } else { add64(a, b ^ SIGN64, rounding) }
}

/// `mul.f64`.
#[inline]
pub fn mul64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let p = d(a) * d(b);
    if rounding == Rounding::Nearest || p.is_nan() { settle64(p, &[b, a]) } else { F64.mul(a, b, rounding) }
}

/// `fma.f64`.
#[inline]
pub fn fma64(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    let x = d(a).mul_add(d(b), d(c));
    if rounding == Rounding::Nearest || x.is_nan() { settle64(x, &[b, c, a]) } else { F64.fma(a, b, c, rounding) }
}

/// `div.f64`.
#[inline]
pub fn div64(a: u64, b: u64, rounding: Rounding) -> u64 {
    let q = d(a) / d(b);
    if rounding == Rounding::Nearest || q.is_nan() { settle64(q, &[a, b]) } else { F64.div(a, b, rounding) }
}

/// `rcp.f64`.
#[inline]
pub fn rcp64(a: u64, rounding: Rounding) -> u64 {
    div64(1f64.to_bits(), a, rounding)
}

/// `sqrt.f64`.
#[inline]
pub fn sqrt64(a: u64, rounding: Rounding) -> u64 {
    let r = d(a).sqrt();
    if rounding == Rounding::Nearest || r.is_nan() { settle64(r, &[a]) } else { F64.sqrt(a, rounding) }
}
