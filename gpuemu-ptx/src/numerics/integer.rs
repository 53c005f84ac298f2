//! Integer arithmetic, shifts, bit fields and byte permutation, with the results of the hardware where PTX leaves them
//! open (division by zero, shifts past the width).

macro_rules! wide {
    ($u:ty, $s:ty, $uw:ty, $sw:ty, $mul_hi_u:ident, $mul_hi_s:ident, $div_u:ident, $div_s:ident, $rem_u:ident, $rem_s:ident,
     $sad_u:ident, $sad_s:ident, $abs:ident, $shl:ident, $shr_u:ident, $shr_s:ident, $cnot:ident, $bits:literal) => {
        #[doc = concat!("`mul.hi.u", $bits, "`.")]
        #[inline(always)]
        pub fn $mul_hi_u(a: $u, b: $u) -> $u {
            ((<$uw>::from(a) * <$uw>::from(b)) >> <$u>::BITS) as $u
        }
        #[doc = concat!("`mul.hi.s", $bits, "`.")]
        #[inline(always)]
        pub fn $mul_hi_s(a: $u, b: $u) -> $u {
            ((<$sw>::from(a as $s) * <$sw>::from(b as $s)) >> <$u>::BITS) as $u
        }
        #[doc = concat!("`div.u", $bits, "`: all ones for a zero divisor.")]
        #[inline(always)]
        pub fn $div_u(a: $u, b: $u) -> $u {
            if b == 0 { <$u>::MAX } else { a / b }
        }
        #[doc = concat!("`div.s", $bits, "`: wraps; all ones for a zero divisor.")]
        #[inline(always)]
        pub fn $div_s(a: $u, b: $u) -> $u {
            if b == 0 { <$u>::MAX } else { (a as $s).wrapping_div(b as $s) as $u }
        }
        #[doc = concat!("`rem.u", $bits, "`: all ones for a zero divisor.")]
        #[inline(always)]
        pub fn $rem_u(a: $u, b: $u) -> $u {
            if b == 0 { <$u>::MAX } else { a % b }
        }
        #[doc = concat!("`rem.s", $bits, "`: the dividend's sign; all ones for a zero divisor.")]
        #[inline(always)]
        pub fn $rem_s(a: $u, b: $u) -> $u {
            if b == 0 { <$u>::MAX } else { (a as $s).wrapping_rem(b as $s) as $u }
        }
        #[doc = concat!("`sad.u", $bits, "`: `c + |a - b|`.")]
        #[inline(always)]
        pub fn $sad_u(a: $u, b: $u, c: $u) -> $u {
            c.wrapping_add(a.abs_diff(b))
        }
        #[doc = concat!("`sad.s", $bits, "`: `c + |a - b|`.")]
        #[inline(always)]
        pub fn $sad_s(a: $u, b: $u, c: $u) -> $u {
            c.wrapping_add((a as $s).abs_diff(b as $s))
        }
        #[doc = concat!("`abs.s", $bits, "`: the smallest number stays as it is.")]
        #[inline(always)]
        pub fn $abs(a: $u) -> $u {
            (a as $s).wrapping_abs() as $u
        }
        #[doc = concat!("`shl.b", $bits, "`: zero past the width.")]
        #[inline(always)]
        pub fn $shl(a: $u, by: u32) -> $u {
            if by < <$u>::BITS { a << by } else { 0 }
        }
        #[doc = concat!("`shr.u", $bits, "`: zero past the width.")]
        #[inline(always)]
        pub fn $shr_u(a: $u, by: u32) -> $u {
            if by < <$u>::BITS { a >> by } else { 0 }
        }
        #[doc = concat!("`shr.s", $bits, "`: the sign past the width.")]
        #[inline(always)]
        pub fn $shr_s(a: $u, by: u32) -> $u {
            ((a as $s) >> by.min(<$u>::BITS - 1)) as $u
        }
        #[doc = concat!("`cnot.b", $bits, "`.")]
        #[inline(always)]
        pub fn $cnot(a: $u) -> $u {
            <$u>::from(a == 0)
        }
    };
}

wide!(
    u16, i16, u32, i32, mul_hi_u16, mul_hi_s16, div_u16, div_s16, rem_u16, rem_s16, sad_u16, sad_s16, abs_s16, shl_b16,
    shr_u16, shr_s16, cnot_b16, "16"
);
wide!(
    u32, i32, u64, i64, mul_hi_u32, mul_hi_s32, div_u32, div_s32, rem_u32, rem_s32, sad_u32, sad_s32, abs_s32, shl_b32,
    shr_u32, shr_s32, cnot_b32, "32"
);
wide!(
    u64, i64, u128, i128, mul_hi_u64, mul_hi_s64, div_u64, div_s64, rem_u64, rem_s64, sad_u64, sad_s64, abs_s64,
    shl_b64, shr_u64, shr_s64, cnot_b64, "64"
);

/// `mul.wide.u16`.
#[inline(always)]
pub fn mul_wide_u16(a: u16, b: u16) -> u32 {
    u32::from(a) * u32::from(b)
}

/// `mul.wide.s16`.
#[inline(always)]
pub fn mul_wide_s16(a: u16, b: u16) -> u32 {
    (i32::from(a as i16) * i32::from(b as i16)) as u32
}

/// `mul.wide.u32`.
#[inline(always)]
pub fn mul_wide_u32(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}

/// `mul.wide.s32`.
#[inline(always)]
pub fn mul_wide_s32(a: u32, b: u32) -> u64 {
    (i64::from(a as i32) * i64::from(b as i32)) as u64
}

#[inline(always)]
fn u24(a: u32) -> u64 {
    u64::from(a & 0xff_ffff)
}

#[inline(always)]
fn s24(a: u32) -> i64 {
    i64::from((a << 8) as i32 >> 8)
}

/// `mul24.lo.u32`: the low 32 of the 48 bits.
#[inline(always)]
pub fn mul24_lo_u32(a: u32, b: u32) -> u32 {
    (u24(a) * u24(b)) as u32
}

/// `mul24.lo.s32`.
#[inline(always)]
pub fn mul24_lo_s32(a: u32, b: u32) -> u32 {
    (s24(a) * s24(b)) as u32
}

/// `mul24.hi.u32`: the high 32 of the 48 bits.
#[inline(always)]
pub fn mul24_hi_u32(a: u32, b: u32) -> u32 {
    ((u24(a) * u24(b)) >> 16) as u32
}

/// `mul24.hi.s32`.
#[inline(always)]
pub fn mul24_hi_s32(a: u32, b: u32) -> u32 {
    ((s24(a) * s24(b)) >> 16) as u32
}

/// `add.cc`, `addc`: the sum and the carry out.
#[inline(always)]
pub fn add_carry32(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let (s, x) = a.overflowing_add(b);
    let (s, y) = s.overflowing_add(u32::from(carry));
    (s, x | y)
}

/// `add.cc`, `addc` of 64 bits.
#[inline(always)]
pub fn add_carry64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    let (s, x) = a.overflowing_add(b);
    let (s, y) = s.overflowing_add(u64::from(carry));
    (s, x | y)
}

/// `sub.cc` (with `carry` set), `subc` (with the flag): the difference and the flag, which is clear after a borrow. That
/// is seen where a program mixes the two families: `addc` after `sub.cc` adds one when nothing was borrowed.
#[inline(always)]
pub fn sub_carry32(a: u32, b: u32, carry: bool) -> (u32, bool) {
    add_carry32(a, !b, carry)
}

/// `sub.cc`, `subc` of 64 bits.
#[inline(always)]
pub fn sub_carry64(a: u64, b: u64, carry: bool) -> (u64, bool) {
    add_carry64(a, !b, carry)
}

/// `add.sat.s32`.
#[inline(always)]
pub fn add_sat_s32(a: u32, b: u32) -> u32 {
    (a as i32).saturating_add(b as i32) as u32
}

/// `sub.sat.s32`.
#[inline(always)]
pub fn sub_sat_s32(a: u32, b: u32) -> u32 {
    (a as i32).saturating_sub(b as i32) as u32
}

/// `mad.hi.sat.s32`.
#[inline(always)]
pub fn mad_hi_sat_s32(a: u32, b: u32, c: u32) -> u32 {
    (mul_hi_s32(a, b) as i32).saturating_add(c as i32) as u32
}

/// `mad24.hi.sat.s32`.
#[inline(always)]
pub fn mad24_hi_sat_s32(a: u32, b: u32, c: u32) -> u32 {
    (mul24_hi_s32(a, b) as i32).saturating_add(c as i32) as u32
}

/// `min.relu.s32`.
#[inline(always)]
pub fn min_relu_s32(a: u32, b: u32) -> u32 {
    (a as i32).min(b as i32).max(0) as u32
}

/// `max.relu.s32`.
#[inline(always)]
pub fn max_relu_s32(a: u32, b: u32) -> u32 {
    (a as i32).max(b as i32).max(0) as u32
}

/// Applies `f` to the low and to the high halves: `.u16x2`, `.f16x2` and their like.
#[inline(always)]
pub fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// `bfe.u32`: `length` bits from `position` (low 8 bits of each count), zeros past the end.
#[inline(always)]
pub fn bfe_u32(a: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 255, length & 255);
    let x = shr_u32(a, position);
    if length >= 32 { x } else { x & ((1 << length) - 1) }
}

/// `bfe.s32`: as `bfe_u32`, filled up with the field's top bit, or `a`'s where the field ends past it.
#[inline(always)]
pub fn bfe_s32(a: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let top = (position + length - 1).min(31);
    let sign = if a >> top & 1 != 0 { u32::MAX } else { 0 };
    let field = shr_u32(a, position);
    let valid = (top + 1).saturating_sub(position).min(32);
    let mask = if valid >= 32 { u32::MAX } else { (1 << valid) - 1 };
    (field & mask) | (sign & !mask)
}

/// `bfe.u64`.
#[inline(always)]
pub fn bfe_u64(a: u64, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    let x = shr_u64(a, position);
    if length >= 64 { x } else { x & ((1 << length) - 1) }
}

/// `bfe.s64`.
#[inline(always)]
pub fn bfe_s64(a: u64, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    if length == 0 {
        return 0;
    }
    let top = (position + length - 1).min(63);
    let sign = if a >> top & 1 != 0 { u64::MAX } else { 0 };
    let field = shr_u64(a, position);
    let valid = (top + 1).saturating_sub(position).min(64);
    let mask = if valid >= 64 { u64::MAX } else { (1 << valid) - 1 };
    (field & mask) | (sign & !mask)
}

/// `bfi.b32`: the low `length` bits of `a` into `b` at `position`.
#[inline(always)]
pub fn bfi_b32(a: u32, b: u32, position: u32, length: u32) -> u32 {
    let (position, length) = (position & 255, length & 255);
    let mask = if length >= 32 { u32::MAX } else { (1 << length) - 1 };
    let mask = shl_b32(mask, position);
    (b & !mask) | (shl_b32(a, position) & mask)
}

/// `bfi.b64`.
#[inline(always)]
pub fn bfi_b64(a: u64, b: u64, position: u32, length: u32) -> u64 {
    let (position, length) = (position & 255, length & 255);
    let mask = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = shl_b64(mask, position);
    (b & !mask) | (shl_b64(a, position) & mask)
}

/// `bfind.u32`: the place of the highest one bit, all ones where there is none; with `shiftamt` the left shift that
/// brings it to the top.
#[inline(always)]
pub fn bfind_u32(a: u32, shiftamt: bool) -> u32 {
    if a == 0 {
        u32::MAX
    } else if shiftamt {
        a.leading_zeros()
    } else {
        31 - a.leading_zeros()
    }
}

/// `bfind.s32`: the highest bit that differs from the sign.
#[inline(always)]
pub fn bfind_s32(a: u32, shiftamt: bool) -> u32 {
    bfind_u32(if (a as i32) < 0 { !a } else { a }, shiftamt)
}

/// `bfind.u64`.
#[inline(always)]
pub fn bfind_u64(a: u64, shiftamt: bool) -> u32 {
    if a == 0 {
        u32::MAX
    } else if shiftamt {
        a.leading_zeros()
    } else {
        63 - a.leading_zeros()
    }
}

/// `bfind.s64`.
#[inline(always)]
pub fn bfind_s64(a: u64, shiftamt: bool) -> u32 {
    bfind_u64(if (a as i64) < 0 { !a } else { a }, shiftamt)
}

/// `fns.b32`: the place of the n-th one bit from `base`, up for n > 0 and down for n < 0 (`base`'s own bit counts); for
/// n = 0 `base` itself where its bit is set; all ones where there is none or `base` is past the word.
#[inline]
pub fn fns_b32(mask: u32, base: u32, n: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if n == 0 {
        return if mask >> base & 1 != 0 { base } else { u32::MAX };
    }
    let (mut at, step) = (base as i32, if n > 0 { 1 } else { -1 });
    let mut left = n.unsigned_abs();
    while (0..32).contains(&at) {
        if mask >> at & 1 != 0 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += step;
    }
    u32::MAX
}

/// `lop3.b32`: the truth table `table`, indexed by the bits of a (4), b (2), c (1).
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut d = 0;
    for row in 0..8u8 {
        let x = if row & 4 != 0 { a } else { !a };
        let y = if row & 2 != 0 { b } else { !b };
        let z = if row & 1 != 0 { c } else { !c };
        let on = if table >> row & 1 != 0 { u32::MAX } else { 0 };
        d |= x & y & z & on;
    }
    d
}

/// The mode of `prmt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permute {
    /// Four selectors of four bits; the highest bit repeats the byte's sign.
    Generic,
    /// `.f4e`: four bytes upward.
    Forward,
    /// `.b4e`: four bytes downward.
    Backward,
    /// `.rc8`: one byte four times.
    Replicate8,
    /// `.ecl`: edge clamp left.
    EdgeLeft,
    /// `.ecr`: edge clamp right.
    EdgeRight,
    /// `.rc16`: one half twice.
    Replicate16,
}

/// `prmt.b32`: picks four of the eight bytes `{b, a}`.
#[inline(always)]
pub fn prmt(a: u32, b: u32, selector: u32, mode: Permute) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let byte = |i: u32| (bytes >> (8 * (i & 7))) as u32 & 255;
    let s = selector & 3;
    let picks = match mode {
        Permute::Generic => {
            let mut d = 0;
            for i in 0..4 {
                let n = selector >> (4 * i);
                let x = byte(n);
                let x = if n & 8 != 0 { (x >> 7) * 255 } else { x };
                d |= x << (8 * i);
            }
            return d;
        }
        Permute::Forward => [s, s + 1, s + 2, s + 3],
        Permute::Backward => [s, s + 7, s + 6, s + 5],
        Permute::Replicate8 => [s; 4],
        Permute::EdgeLeft => [s, s.max(1), s.max(2), 3],
        Permute::EdgeRight => [0, s.min(1), s.min(2), s],
        Permute::Replicate16 => {
            let h = (s & 1) * 2;
            [h, h + 1, h, h + 1]
        }
    };
    byte(picks[0]) | byte(picks[1]) << 8 | byte(picks[2]) << 16 | byte(picks[3]) << 24
}

/// The amount of a funnel shift: modulo 32 (`.wrap`) or at most 32 (`.clamp`).
#[inline(always)]
fn funnel(amount: u32, clamp: bool) -> u32 {
    if clamp { amount.min(32) } else { amount & 31 }
}

/// `shf.l.b32`: the high word of `{b, a}` shifted left.
#[inline(always)]
pub fn shf_l(a: u32, b: u32, amount: u32, clamp: bool) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) << funnel(amount, clamp) >> 32) as u32
}

/// `shf.r.b32`: the low word of `{b, a}` shifted right.
#[inline(always)]
pub fn shf_r(a: u32, b: u32, amount: u32, clamp: bool) -> u32 {
    ((u64::from(b) << 32 | u64::from(a)) >> funnel(amount, clamp)) as u32
}

/// Byte `i` of `a` as a number.
#[inline(always)]
fn byte(a: u32, i: u32, signed: bool) -> i32 {
    let x = (a >> (8 * i)) as u8;
    if signed { i32::from(x as i8) } else { i32::from(x) }
}

/// `dp4a`: four products of bytes added to `c`; `a_signed` is the first type, `b_signed` the second.
#[inline(always)]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let mut sum = c;
    for i in 0..4 {
        sum = sum.wrapping_add((byte(a, i, a_signed) * byte(b, i, b_signed)) as u32);
    }
    sum
}

/// `dp2a`: two halves of `a` times the low (or high) two bytes of `b`, added to `c`.
#[inline(always)]
pub fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, high: bool) -> u32 {
    let mut sum = c;
    for i in 0..2 {
        let h = (a >> (16 * i)) as u16;
        let x = if a_signed { i32::from(h as i16) } else { i32::from(h) };
        let y = byte(b, i + if high { 2 } else { 0 }, b_signed);
        sum = sum.wrapping_add((x * y) as u32);
    }
    sum
}

/// The width of `szext` and `bmsk`: the low five bits (`.wrap`) or at most 32 (`.clamp`).
#[inline(always)]
fn width(n: u32, clamp: bool) -> u32 {
    if clamp { n.min(32) } else { n & 31 }
}

/// `szext.s32`, `szext.u32`: the low `n` bits, filled up with their sign or with zeros.
#[inline(always)]
pub fn szext(a: u32, n: u32, signed: bool, clamp: bool) -> u32 {
    let n = width(n, clamp);
    if n == 0 {
        return 0;
    }
    let up = 32 - n;
    if signed { ((a << up) as i32 >> up) as u32 } else { a << up >> up }
}

/// `bmsk.b32`: `length` ones from `position`.
#[inline(always)]
pub fn bmsk(position: u32, length: u32, clamp: bool) -> u32 {
    let (position, length) = (width(position, clamp), width(length, clamp));
    let ones = if length == 32 { u32::MAX } else { (1 << length) - 1 };
    shl_b32(ones, position)
}
