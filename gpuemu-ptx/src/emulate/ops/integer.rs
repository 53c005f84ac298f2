//! Integer arithmetic.

use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Carrying, Op};
use crate::emulate::registers::Lane;
use crate::numerics::integer as int;
use crate::program::{Opcode, ScalarType, Word};

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    use ScalarType::*;
    let ty = d.ty()?;
    let signed = ty.is_signed();
    let has = |word| d.form.has(word);
    let (cc, sat, hi, wide, relu) = (has(Word::Cc), has(Word::Sat), has(Word::Hi), has(Word::Wide), has(Word::Relu));
    match d.opcode() {
        Opcode::Add | Opcode::Addc | Opcode::Sub | Opcode::Subc
            if cc || matches!(d.opcode(), Opcode::Addc | Opcode::Subc) =>
        {
            let (a, b) = match ty.bits() {
                64 => (d.source::<u64>(1)?, d.source::<u64>(2)?),
                _ => (d.source::<u32>(1)?, d.source::<u32>(2)?),
            };
            carrying(d, ty, (a, b), matches!(d.opcode(), Opcode::Sub | Opcode::Subc), None)
        }
        Opcode::Add if sat => d.binary(0, |_, a: u32, b: u32| int::add_sat_s32(a, b)),
        Opcode::Sub if sat => d.binary(0, |_, a: u32, b: u32| int::sub_sat_s32(a, b)),
        Opcode::Add => match ty {
            U16 | S16 | B16 => d.binary(0, |_, a: u16, b: u16| a.wrapping_add(b)),
            U32 | S32 | B32 => d.binary(0, |_, a: u32, b: u32| a.wrapping_add(b)),
            U64 | S64 | B64 => d.binary(0, |_, a: u64, b: u64| a.wrapping_add(b)),
            U16x2 | S16x2 => d.binary(0, |_, a: u32, b: u32| int::halves(a, b, |a, b| a.wrapping_add(b))),
            _ => refuse("it has no such type"),
        },
        Opcode::Sub => match ty {
            U16 | S16 | B16 => d.binary(0, |_, a: u16, b: u16| a.wrapping_sub(b)),
            U32 | S32 | B32 => d.binary(0, |_, a: u32, b: u32| a.wrapping_sub(b)),
            U64 | S64 | B64 => d.binary(0, |_, a: u64, b: u64| a.wrapping_sub(b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mul if wide => match ty {
            U16 => d.binary(0, |_, a: u16, b: u16| int::mul_wide_u16(a, b)),
            S16 => d.binary(0, |_, a: u16, b: u16| int::mul_wide_s16(a, b)),
            U32 => d.binary(0, |_, a: u32, b: u32| int::mul_wide_u32(a, b)),
            S32 => d.binary(0, |_, a: u32, b: u32| int::mul_wide_s32(a, b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mul if hi => match ty {
            U16 => d.binary(0, |_, a: u16, b: u16| int::mul_hi_u16(a, b)),
            S16 => d.binary(0, |_, a: u16, b: u16| int::mul_hi_s16(a, b)),
            U32 => d.binary(0, |_, a: u32, b: u32| int::mul_hi_u32(a, b)),
            S32 => d.binary(0, |_, a: u32, b: u32| int::mul_hi_s32(a, b)),
            U64 => d.binary(0, |_, a: u64, b: u64| int::mul_hi_u64(a, b)),
            S64 => d.binary(0, |_, a: u64, b: u64| int::mul_hi_s64(a, b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mul => match ty.bits() {
            16 => d.binary(0, |_, a: u16, b: u16| a.wrapping_mul(b)),
            32 => d.binary(0, |_, a: u32, b: u32| a.wrapping_mul(b)),
            64 => d.binary(0, |_, a: u64, b: u64| a.wrapping_mul(b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mad | Opcode::Madc if cc || d.opcode() == Opcode::Madc => mad_carry(d, ty, hi, signed),
        Opcode::Mad if wide => match ty {
            U16 => d.ternary(0, |_, a: u16, b: u16, c: u32| int::mul_wide_u16(a, b).wrapping_add(c)),
            S16 => d.ternary(0, |_, a: u16, b: u16, c: u32| int::mul_wide_s16(a, b).wrapping_add(c)),
            U32 => d.ternary(0, |_, a: u32, b: u32, c: u64| int::mul_wide_u32(a, b).wrapping_add(c)),
            S32 => d.ternary(0, |_, a: u32, b: u32, c: u64| int::mul_wide_s32(a, b).wrapping_add(c)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mad if hi && sat => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mad_hi_sat_s32(a, b, c)),
        Opcode::Mad if hi => match ty {
            U16 => d.ternary(0, |_, a: u16, b: u16, c: u16| int::mul_hi_u16(a, b).wrapping_add(c)),
            S16 => d.ternary(0, |_, a: u16, b: u16, c: u16| int::mul_hi_s16(a, b).wrapping_add(c)),
            U32 => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mul_hi_u32(a, b).wrapping_add(c)),
            S32 => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mul_hi_s32(a, b).wrapping_add(c)),
            U64 => d.ternary(0, |_, a: u64, b: u64, c: u64| int::mul_hi_u64(a, b).wrapping_add(c)),
            S64 => d.ternary(0, |_, a: u64, b: u64, c: u64| int::mul_hi_s64(a, b).wrapping_add(c)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mad => match ty.bits() {
            16 => d.ternary(0, |_, a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c)),
            32 => d.ternary(0, |_, a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c)),
            64 => d.ternary(0, |_, a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c)),
            _ => refuse("it has no such type"),
        },
        Opcode::Mul24 => match (hi, signed) {
            (false, false) => d.binary(0, |_, a: u32, b: u32| int::mul24_lo_u32(a, b)),
            (false, true) => d.binary(0, |_, a: u32, b: u32| int::mul24_lo_s32(a, b)),
            (true, false) => d.binary(0, |_, a: u32, b: u32| int::mul24_hi_u32(a, b)),
            (true, true) => d.binary(0, |_, a: u32, b: u32| int::mul24_hi_s32(a, b)),
        },
        Opcode::Mad24 if sat => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mad24_hi_sat_s32(a, b, c)),
        Opcode::Mad24 => match (hi, signed) {
            (false, false) => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mul24_lo_u32(a, b).wrapping_add(c)),
            (false, true) => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mul24_lo_s32(a, b).wrapping_add(c)),
            (true, false) => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mul24_hi_u32(a, b).wrapping_add(c)),
            (true, true) => d.ternary(0, |_, a: u32, b: u32, c: u32| int::mul24_hi_s32(a, b).wrapping_add(c)),
        },
        Opcode::Sad => match ty {
            U16 => d.ternary(0, |_, a: u16, b: u16, c: u16| int::sad_u16(a, b, c)),
            S16 => d.ternary(0, |_, a: u16, b: u16, c: u16| int::sad_s16(a, b, c)),
            U32 => d.ternary(0, |_, a: u32, b: u32, c: u32| int::sad_u32(a, b, c)),
            S32 => d.ternary(0, |_, a: u32, b: u32, c: u32| int::sad_s32(a, b, c)),
            U64 => d.ternary(0, |_, a: u64, b: u64, c: u64| int::sad_u64(a, b, c)),
            S64 => d.ternary(0, |_, a: u64, b: u64, c: u64| int::sad_s64(a, b, c)),
            _ => refuse("it has no such type"),
        },
        Opcode::Div => match ty {
            U16 => d.binary(0, |_, a: u16, b: u16| int::div_u16(a, b)),
            S16 => d.binary(0, |_, a: u16, b: u16| int::div_s16(a, b)),
            U32 => d.binary(0, |_, a: u32, b: u32| int::div_u32(a, b)),
            S32 => d.binary(0, |_, a: u32, b: u32| int::div_s32(a, b)),
            U64 => d.binary(0, |_, a: u64, b: u64| int::div_u64(a, b)),
            S64 => d.binary(0, |_, a: u64, b: u64| int::div_s64(a, b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Rem => match ty {
            U16 => d.binary(0, |_, a: u16, b: u16| int::rem_u16(a, b)),
            S16 => d.binary(0, |_, a: u16, b: u16| int::rem_s16(a, b)),
            U32 => d.binary(0, |_, a: u32, b: u32| int::rem_u32(a, b)),
            S32 => d.binary(0, |_, a: u32, b: u32| int::rem_s32(a, b)),
            U64 => d.binary(0, |_, a: u64, b: u64| int::rem_u64(a, b)),
            S64 => d.binary(0, |_, a: u64, b: u64| int::rem_s64(a, b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Abs => match ty.bits() {
            16 => d.unary(0, |_, a: u16| int::abs_s16(a)),
            32 => d.unary(0, |_, a: u32| int::abs_s32(a)),
            64 => d.unary(0, |_, a: u64| int::abs_s64(a)),
            _ => refuse("it has no such type"),
        },
        Opcode::Neg => match ty.bits() {
            16 => d.unary(0, |_, a: u16| a.wrapping_neg()),
            32 => d.unary(0, |_, a: u32| a.wrapping_neg()),
            64 => d.unary(0, |_, a: u64| a.wrapping_neg()),
            _ => refuse("it has no such type"),
        },
        Opcode::Min => match ty {
            S32 if relu => d.binary(0, |_, a: u32, b: u32| int::min_relu_s32(a, b)),
            U16 => d.binary(0, |_, a: u16, b: u16| a.min(b)),
            S16 => d.binary(0, |_, a: i16, b: i16| a.min(b)),
            U32 => d.binary(0, |_, a: u32, b: u32| a.min(b)),
            S32 => d.binary(0, |_, a: i32, b: i32| a.min(b)),
            U64 => d.binary(0, |_, a: u64, b: u64| a.min(b)),
            S64 => d.binary(0, |_, a: i64, b: i64| a.min(b)),
            U16x2 => d.binary(0, |_, a: u32, b: u32| int::halves(a, b, |a, b| a.min(b))),
            S16x2 => d.binary(u64::from(relu), |k, a: u32, b: u32| {
                int::halves(a, b, |a, b| (a as i16).min(b as i16).max(if k != 0 { 0 } else { i16::MIN }) as u16)
            }),
            _ => refuse("it has no such type"),
        },
        Opcode::Max => match ty {
            S32 if relu => d.binary(0, |_, a: u32, b: u32| int::max_relu_s32(a, b)),
            U16 => d.binary(0, |_, a: u16, b: u16| a.max(b)),
            S16 => d.binary(0, |_, a: i16, b: i16| a.max(b)),
            U32 => d.binary(0, |_, a: u32, b: u32| a.max(b)),
            S32 => d.binary(0, |_, a: i32, b: i32| a.max(b)),
            U64 => d.binary(0, |_, a: u64, b: u64| a.max(b)),
            S64 => d.binary(0, |_, a: i64, b: i64| a.max(b)),
            U16x2 => d.binary(0, |_, a: u32, b: u32| int::halves(a, b, |a, b| a.max(b))),
            S16x2 => d.binary(u64::from(relu), |k, a: u32, b: u32| {
                int::halves(a, b, |a, b| (a as i16).max(b as i16).max(if k != 0 { 0 } else { i16::MIN }) as u16)
            }),
            _ => refuse("it has no such type"),
        },
        Opcode::Bfe => match ty {
            U32 => d.ternary(0, |_, a: u32, b: u32, c: u32| int::bfe_u32(a, b, c)),
            S32 => d.ternary(0, |_, a: u32, b: u32, c: u32| int::bfe_s32(a, b, c)),
            U64 => d.ternary(0, |_, a: u64, b: u32, c: u32| int::bfe_u64(a, b, c)),
            S64 => d.ternary(0, |_, a: u64, b: u32, c: u32| int::bfe_s64(a, b, c)),
            _ => refuse("it has no such type"),
        },
        Opcode::Bfi => match ty.bits() {
            32 => d.quaternary(0, |_, a: u32, b: u32, c: u32, e: u32| int::bfi_b32(a, b, c, e)),
            64 => d.quaternary(0, |_, a: u64, b: u64, c: u32, e: u32| int::bfi_b64(a, b, c, e)),
            _ => refuse("it has no such type"),
        },
        Opcode::Bfind => {
            let k = u64::from(d.form.has(Word::Shiftamt));
            match ty {
                U32 => d.unary(k, |k, a: u32| int::bfind_u32(a, k != 0)),
                S32 => d.unary(k, |k, a: u32| int::bfind_s32(a, k != 0)),
                U64 => d.unary(k, |k, a: u64| int::bfind_u64(a, k != 0)),
                S64 => d.unary(k, |k, a: u64| int::bfind_s64(a, k != 0)),
                _ => refuse("it has no such type"),
            }
        }
        Opcode::Bmsk => {
            let k = u64::from(d.form.has(Word::Clamp));
            d.binary(k, |k, a: u32, b: u32| int::bmsk(a, b, k != 0))
        }
        Opcode::Szext => {
            let k = u64::from(d.form.has(Word::Clamp)) | u64::from(signed) << 1;
            d.binary(k, |k, a: u32, b: u32| int::szext(a, b, k & 2 != 0, k & 1 != 0))
        }
        Opcode::Fns => d.ternary(0, |_, a: u32, b: u32, c: i32| int::fns_b32(a, b, c)),
        Opcode::Dp4a | Opcode::Dp2a => {
            let second = d.form.types.get(1).is_some_and(|ty| ty.is_signed());
            let k = u64::from(signed) | u64::from(second) << 1 | u64::from(hi) << 2;
            match d.opcode() {
                Opcode::Dp4a => d.ternary(k, |k, a: u32, b: u32, c: u32| int::dp4a(a, b, c, k & 1 != 0, k & 2 != 0)),
                _ => d.ternary(k, |k, a: u32, b: u32, c: u32| int::dp2a(a, b, c, k & 1 != 0, k & 2 != 0, k & 4 != 0)),
            }
        }
        Opcode::Brev => match ty.bits() {
            32 => d.unary(0, |_, a: u32| a.reverse_bits()),
            64 => d.unary(0, |_, a: u64| a.reverse_bits()),
            _ => refuse("it has no such type"),
        },
        Opcode::Clz => match ty.bits() {
            32 => d.unary(0, |_, a: u32| a.leading_zeros()),
            64 => d.unary(0, |_, a: u64| a.leading_zeros()),
            _ => refuse("it has no such type"),
        },
        Opcode::Popc => match ty.bits() {
            32 => d.unary(0, |_, a: u32| a.count_ones()),
            64 => d.unary(0, |_, a: u64| a.count_ones()),
            _ => refuse("it has no such type"),
        },
        Opcode::Cnot => match ty.bits() {
            16 => d.unary(0, |_, a: u16| int::cnot_b16(a)),
            32 => d.unary(0, |_, a: u32| int::cnot_b32(a)),
            64 => d.unary(0, |_, a: u64| int::cnot_b64(a)),
            _ => refuse("it has no such type"),
        },
        _ => refuse("it has no such type"),
    }
}

/// `d = a + b` or `a - b` with the carry flag.
fn carrying(d: &mut Decoder<'_>, ty: ScalarType, (a, b): (i32, i32), minus: bool, reads: Option<bool>) -> Decoded {
    let reads = reads.unwrap_or(matches!(d.opcode(), Opcode::Addc | Opcode::Subc));
    // Without the flag, a difference starts with it set, as if nothing had been borrowed.
    let imm = u64::from(reads) | u64::from(minus) << 1 | u64::from(d.form.has(Word::Cc)) << 2;
    match (ty.bits(), minus) {
        (32, false) => carry(d, (a, b), imm, int::add_carry32),
        (32, true) => carry(d, (a, b), imm, int::sub_carry32),
        (64, false) => carry(d, (a, b), imm, int::add_carry64),
        (64, true) => carry(d, (a, b), imm, int::sub_carry64),
        _ => refuse("it has no such type"),
    }
}

fn carry<A: Lane, F: Fn(A, A, bool) -> (A, bool) + Copy>(
    d: &mut Decoder<'_>,
    (a, b): (i32, i32),
    imm: u64,
    _: F,
) -> Decoded {
    let to = d.destination::<A>(0, false)?;
    d.emit(Op { d: to, a, b, imm, ..d.op_of::<Carrying<F, A>>() });
    Ok(())
}

/// `mad.lo.cc`, `madc.hi` and their like: the product, then the sum with the flag.
fn mad_carry(d: &mut Decoder<'_>, ty: ScalarType, hi: bool, signed: bool) -> Decoded {
    let reads = d.opcode() == Opcode::Madc;
    macro_rules! product {
        ($t:ty, $hi_u:expr, $hi_s:expr) => {{
            let (a, b, c) = (d.source::<$t>(1)?, d.source::<$t>(2)?, d.source::<$t>(3)?);
            let product = d.temporary::<$t>();
            match (hi, signed) {
                (false, _) => d.apply2(product, (a, b), 0, |_, a: $t, b: $t| a.wrapping_mul(b)),
                (true, false) => d.apply2(product, (a, b), 0, |_, a: $t, b: $t| $hi_u(a, b)),
                (true, true) => d.apply2(product, (a, b), 0, |_, a: $t, b: $t| $hi_s(a, b)),
            }
            carrying(d, ty, (product, c), false, Some(reads))
        }};
    }
    match ty.bits() {
        32 => product!(u32, int::mul_hi_u32, int::mul_hi_s32),
        64 => product!(u64, int::mul_hi_u64, int::mul_hi_s64),
        _ => refuse("it has no such type"),
    }
}
