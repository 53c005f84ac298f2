//! `mov`, packing and unpacking.

use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Op, Ternary, Truths, Unary};
use crate::emulate::registers::Lane;
use crate::program::{Operand, ScalarType};

/// An operation of three operands around a closure.
pub fn ternary_op<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(u64, A, B, C) -> D + Copy>(d: &Decoder<'_>, _: F) -> Op {
    d.op_of::<Ternary<F, D, A, B, C>>()
}

/// An operation of one operand around a closure.
pub fn unary_op<D: Lane, A: Lane, F: Fn(u64, A) -> D + Copy>(d: &Decoder<'_>, _: F) -> Op {
    d.op_of::<Unary<F, D, A>>()
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let ty = d.ty()?;
    if ty == ScalarType::Predicate {
        let to = d.truth_destination(d.operand(0)?)?;
        let a = d.truth(d.operand(1)?)?;
        d.emit(Op { d: to, a, ..copy_truth(d, |a, _| a) });
        return Ok(());
    }
    let (to, from) = (d.operand(0)?, d.operand(1)?);
    if d.form.vector > 1 {
        let (Operand::Vector(to), Operand::Vector(from)) = (to, from) else { return refuse("it needs two vectors") };
        let (to, from) = (d.function.inside(to), d.function.inside(from));
        for (to, from) in to.iter().zip(from) {
            one(d, ty, to, from)?;
        }
        return Ok(());
    }
    match (to, from) {
        (Operand::Vector(to), from) => unpack(d, ty, d.function.inside(to), from),
        (to, Operand::Vector(from)) => pack(d, ty, to, d.function.inside(from)),
        (to, from) => one(d, ty, to, from),
    }
}

fn copy_truth<F: Fn(u32, u32) -> u32 + Copy>(d: &Decoder<'_>, _: F) -> Op {
    d.op_of::<Truths<F>>()
}

fn one(d: &mut Decoder<'_>, ty: ScalarType, to: &Operand, from: &Operand) -> Decoded {
    macro_rules! copy {
        ($t:ty) => {{
            let a = d.source_of::<$t>(from)?;
            let to = d.destination_of::<$t>(to, ty.is_signed())?;
            d.copy::<$t>(to, a);
        }};
    }
    match ty.bits() {
        8 => copy!(u8),
        16 => copy!(u16),
        32 => copy!(u32),
        64 => copy!(u64),
        128 => copy!(u128),
        _ => return refuse("it has no such type"),
    }
    Ok(())
}

fn bits_of(d: &Decoder<'_>, whole: ScalarType, parts: &[Operand]) -> Decoded<u32> {
    let count = parts.len() as u32;
    let bits = whole.bits() / count.max(1);
    let fits = parts.iter().all(|part| match part {
        Operand::Register(register) => d.function.register(*register).ty.bits() == bits,
        _ => true,
    });
    match fits && bits * count == whole.bits() {
        true => Ok(bits),
        false => refuse("the parts are not of one size"),
    }
}

/// `mov.b64 d, {a, b}`.
fn pack(d: &mut Decoder<'_>, ty: ScalarType, to: &Operand, parts: &[Operand]) -> Decoded {
    let bits = bits_of(d, ty, parts)?;
    match (ty.bits(), bits) {
        (64, 32) => {
            let ab = (d.source_of::<u32>(&parts[0])?, d.source_of::<u32>(&parts[1])?);
            let to = d.destination_of::<u64>(to, false)?;
            d.apply2(to, ab, 0, |_, a: u32, b: u32| u64::from(a) | u64::from(b) << 32);
        }
        (32, 16) => {
            let ab = (d.source_of::<u16>(&parts[0])?, d.source_of::<u16>(&parts[1])?);
            let to = d.destination_of::<u32>(to, false)?;
            d.apply2(to, ab, 0, |_, a: u16, b: u16| u32::from(a) | u32::from(b) << 16);
        }
        (128, 64) => {
            let ab = (d.source_of::<u64>(&parts[0])?, d.source_of::<u64>(&parts[1])?);
            let to = d.destination_of::<u128>(to, false)?;
            d.apply2(to, ab, 0, |_, a: u64, b: u64| u128::from(a) | u128::from(b) << 64);
        }
        (16, 8) | (32, 8) => {
            let mut so_far = d.constant::<u32>(0);
            for (part, shift) in parts.iter().zip((0..).step_by(8)) {
                let b = d.source_of::<u8>(part)?;
                let next = d.temporary::<u32>();
                d.apply2(next, (so_far, b), shift, |k, a: u32, b: u8| a | u32::from(b) << k);
                so_far = next;
            }
            let to = d.destination_of::<u32>(to, false)?;
            d.copy::<u32>(to, so_far);
        }
        (64, 16) | (64, 8) | (128, 32) => {
            let mut so_far = d.constant::<u128>(0);
            for (part, shift) in parts.iter().zip((0..).step_by(bits as usize)) {
                let b = d.source_of::<u32>(part)?;
                let next = d.temporary::<u128>();
                d.apply2(next, (so_far, b), shift, |k, a: u128, b: u32| a | u128::from(b) << k);
                so_far = next;
            }
            match ty.bits() {
                64 => {
                    let to = d.destination_of::<u64>(to, false)?;
                    d.apply1(to, so_far, 0, |_, a: u128| a as u64);
                }
                _ => {
                    let to = d.destination_of::<u128>(to, false)?;
                    d.copy::<u128>(to, so_far);
                }
            }
        }
        _ => return refuse("the parts are of a size that it does not pack"),
    }
    Ok(())
}

/// `mov.b64 {a, b}, d`.
fn unpack(d: &mut Decoder<'_>, ty: ScalarType, parts: &[Operand], from: &Operand) -> Decoded {
    let bits = bits_of(d, ty, parts)?;
    macro_rules! unpack {
        ($whole:ty, $part:ty) => {{
            let mut a = d.source_of::<$whole>(from)?;
            // The source may be one of the parts where the sizes allow it; keep what is still to be read.
            if parts.iter().any(|part| matches!((part, from), (Operand::Register(x), Operand::Register(y)) if x == y)) {
                let kept = d.temporary::<$whole>();
                d.copy::<$whole>(kept, a);
                a = kept;
            }
            for (part, shift) in parts.iter().zip((0..).step_by(bits as usize)) {
                if !matches!(part, Operand::Discard) {
                    let to = d.destination_of::<$part>(part, false)?;
                    d.apply1(to, a, shift, |k, x: $whole| (x >> k) as $part);
                }
            }
        }};
    }
    match (ty.bits(), bits) {
        (64, 32) => unpack!(u64, u32),
        (32, 16) => unpack!(u32, u16),
        (32, 8) => unpack!(u32, u8),
        (16, 8) => unpack!(u16, u8),
        (64, 16) => unpack!(u64, u16),
        (64, 8) => unpack!(u64, u8),
        (128, 64) => unpack!(u128, u64),
        (128, 32) => unpack!(u128, u32),
        _ => return refuse("the parts are of a size that it does not unpack"),
    }
    Ok(())
}
