//! binary32 and binary64 arithmetic, and the special functions.

use std::marker::PhantomData;

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{BinaryRow, Body, OnRows, Op, Signal, UnaryRow, closure};
use crate::emulate::registers::LANES;
use crate::emulate::vector;
use crate::emulate::warp::Warp;
use crate::numerics::exact::Rounding;
use crate::numerics::float::{self as fl, Extremum, Property};
use crate::numerics::{half as hf, special as sp, special_rows as rows};
use crate::program::{self, Opcode, ScalarType, Word};
use rows::Row;

/// Bits of `imm` for what an operation is told at run time: the rounding in bits 0 and 1, then these.
const FTZ: u64 = 4;
const SAT: u64 = 8;
const NAN: u64 = 16;
const XORSIGN: u64 = 32;
/// One of the operands is subtracted or counts by magnitude, as the operation says.
const ABS: u64 = 64;

/// The rounding of a form, as numerics names it.
pub fn rounding(d: &Decoder<'_>) -> Decoded<Rounding> {
    Ok(match d.form.rounding {
        None | Some(program::Rounding::Nearest | program::Rounding::IntegerNearest) => Rounding::Nearest,
        Some(program::Rounding::Zero | program::Rounding::IntegerZero) => Rounding::Zero,
        Some(program::Rounding::Down | program::Rounding::IntegerDown) => Rounding::Down,
        Some(program::Rounding::Up | program::Rounding::IntegerUp) => Rounding::Up,
        Some(other) => return Err(format!("the rounding {other} is not executed")),
    })
}

/// A rounding by number.
#[inline(always)]
pub fn numbered(k: u64) -> Rounding {
    match k & 3 {
        0 => Rounding::Nearest,
        1 => Rounding::Zero,
        2 => Rounding::Down,
        _ => Rounding::Up,
    }
}

/// The number of a rounding.
pub fn number(rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest => 0,
        Rounding::Zero => 1,
        Rounding::Down => 2,
        Rounding::Up => 3,
    }
}

#[inline(always)]
fn into(k: u64, a: u32) -> u32 {
    if k & FTZ != 0 { fl::flush32(a) } else { a }
}

#[inline(always)]
fn clamp(k: u64, a: u32) -> u32 {
    if k & SAT != 0 { fl::saturate32(a) } else { a }
}

#[inline(always)]
fn out(k: u64, a: u32) -> u32 {
    clamp(k, into(k, a))
}

/// `d = f(a, b, c)`, or `g(a, b, c)` where some lane comes to the smallest normal number: it may have been
/// rounded up to it, and the hardware flushes before.
pub struct Flushed<F, G>(PhantomData<(F, G)>);

impl<F: Fn(u32, u32, u32) -> u32 + Copy, G: Fn(u32, u32, u32) -> u32 + Copy> Body for Flushed<F, G> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let (f, g) = (closure::<F>(), closure::<G>());
        let registers = &warp.registers;
        let [a, b, c] = [op.a, op.b, op.c].map(|register| registers.stored::<u32>(register));
        let mut out = [0; LANES];
        let mut least = false;
        for lane in 0..LANES {
            out[lane] = f(a[lane], b[lane], c[lane]);
            least |= out[lane] << 1 == 0x0100_0000;
        }
        if least {
            out = std::array::from_fn(|lane| g(a[lane], b[lane], c[lane]));
        }
        warp.registers.write::<u32>(op.d, &out, mask);
        Signal::Next
    }
}

fn flushed<F: Fn(u32, u32, u32) -> u32 + Copy, G: Fn(u32, u32, u32) -> u32 + Copy>(
    d: &mut Decoder<'_>,
    (a, b, c): (i32, i32, i32),
    _: F,
    _: G,
) -> Decoded {
    let to = d.destination::<u32>(0, false)?;
    d.emit(Op { d: to, a, b, c, ..d.op_of::<Flushed<F, G>>() });
    Ok(())
}

#[inline(always)]
fn mode(k: u64) -> Extremum {
    Extremum { nan: k & NAN != 0, xorsign_abs: k & XORSIGN != 0 }
}

/// The bits that a form asks for.
fn flags(d: &Decoder<'_>) -> Decoded<u64> {
    let bit = |word, bit| if d.form.has(word) { bit } else { 0 };
    Ok(number(rounding(d)?)
        | bit(Word::Ftz, FTZ)
        | bit(Word::Sat, SAT)
        | bit(Word::NaNResult, NAN)
        | bit(Word::Xorsign, XORSIGN)
        | bit(Word::Abs, ABS))
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    if d.opcode() == Opcode::Testp {
        return testp(d);
    }
    match d.ty()? {
        ScalarType::F32 => single(d),
        ScalarType::F64 => double(d),
        _ => refuse("it has no such type"),
    }
}

fn single(d: &mut Decoder<'_>) -> Decoded {
    const NEAREST: Rounding = Rounding::Nearest;
    // `add.f32.bf16` and its like: an operand of sixteen bits.
    if d.form.types.len() > 1 {
        return mixed(d);
    }
    let k = flags(d)?;
    let approximate = d.form.has(Word::Approx);
    // The common forms are loops without a question in them; the others ask at run time.
    match (d.opcode(), k) {
        (Opcode::Add, 0) => d.binary_by::<vector::Add>(),
        (Opcode::Sub, 0) => d.binary_by::<vector::Sub>(),
        (Opcode::Mul, 0) => d.binary_by::<vector::Mul>(),
        (Opcode::Fma | Opcode::Mad, 0) => d.ternary_by::<vector::Fma>(),
        (Opcode::Fma | Opcode::Mad, FTZ) => {
            let abc = (d.source::<u32>(1)?, d.source::<u32>(2)?, d.source::<u32>(3)?);
            flushed(
                d,
                abc,
                |a, b, c| fl::flush32(fl::fma32(fl::flush32(a), fl::flush32(b), fl::flush32(c), NEAREST)),
                |a, b, c| fl::fma32_ftz(a, b, c, NEAREST),
            )
        }
        (Opcode::Mul, FTZ) => {
            let (a, b) = (d.source::<u32>(1)?, d.source::<u32>(2)?);
            flushed(
                d,
                (a, b, b),
                |a, b, _| fl::flush32(fl::mul32(fl::flush32(a), fl::flush32(b), NEAREST)),
                |a, b, _| fl::mul32_ftz(a, b, NEAREST),
            )
        }
        (Opcode::Add, FTZ) => {
            d.binary(0, |_, a: u32, b: u32| fl::flush32(fl::add32(fl::flush32(a), fl::flush32(b), NEAREST)))
        }
        (Opcode::Add, _) => d.binary(k, |k, a: u32, b: u32| out(k, fl::add32(into(k, a), into(k, b), numbered(k)))),
        (Opcode::Sub, _) => d.binary(k, |k, a: u32, b: u32| out(k, fl::sub32(into(k, a), into(k, b), numbered(k)))),
        (Opcode::Mul, _) if k & FTZ != 0 => d.binary(k, |k, a: u32, b: u32| clamp(k, fl::mul32_ftz(a, b, numbered(k)))),
        (Opcode::Fma | Opcode::Mad, _) if k & FTZ != 0 => {
            d.ternary(k, |k, a: u32, b: u32, c: u32| clamp(k, fl::fma32_ftz(a, b, c, numbered(k))))
        }
        (Opcode::Mul, _) => d.binary(k, |k, a: u32, b: u32| out(k, fl::mul32(into(k, a), into(k, b), numbered(k)))),
        (Opcode::Fma | Opcode::Mad, _) => {
            d.ternary(k, |k, a: u32, b: u32, c: u32| out(k, fl::fma32(into(k, a), into(k, b), into(k, c), numbered(k))))
        }
        (Opcode::Div, FTZ) if d.form.has(Word::Full) => rows2::<DivFullFlushed>(d),
        (Opcode::Div, _) if d.form.has(Word::Full) => rows2::<DivFull>(d),
        (Opcode::Div, FTZ) if approximate => rows2::<DivApproxFlushed>(d),
        (Opcode::Div, _) if approximate => rows2::<DivApprox>(d),
        (Opcode::Div, 0) => d.binary(0, |_, a: u32, b: u32| fl::div32(a, b, NEAREST)),
        (Opcode::Div, _) if k & FTZ != 0 => d.binary(k, |k, a: u32, b: u32| clamp(k, fl::div32_ftz(a, b, numbered(k)))),
        (Opcode::Div, _) => d.binary(k, |k, a: u32, b: u32| out(k, fl::div32(into(k, a), into(k, b), numbered(k)))),
        (Opcode::Rcp, FTZ) if approximate => rows1::<RcpFlushed>(d),
        (Opcode::Rcp, _) if approximate => rows1::<Rcp>(d),
        (Opcode::Rcp, _) => d.unary(k, |k, a: u32| out(k, fl::rcp32(into(k, a), numbered(k)))),
        (Opcode::Sqrt, FTZ) if approximate => rows1::<SqrtFlushed>(d),
        (Opcode::Sqrt, _) if approximate => rows1::<Sqrt>(d),
        (Opcode::Sqrt, _) => d.unary(k, |k, a: u32| out(k, fl::sqrt32(into(k, a), numbered(k)))),
        (Opcode::Rsqrt, FTZ) => rows1::<RsqrtFlushed>(d),
        (Opcode::Rsqrt, _) => rows1::<Rsqrt>(d),
        (Opcode::Sin, _) => d.unary(k, |k, a: u32| sp::sin(a, k & FTZ != 0)),
        (Opcode::Cos, _) => d.unary(k, |k, a: u32| sp::cos(a, k & FTZ != 0)),
        (Opcode::Lg2, FTZ) => rows1::<Lg2Flushed>(d),
        (Opcode::Lg2, _) => rows1::<Lg2>(d),
        (Opcode::Ex2, FTZ) => rows1::<Ex2Flushed>(d),
        (Opcode::Ex2, _) => rows1::<Ex2>(d),
        (Opcode::Tanh, _) => d.unary(0, |_, a: u32| sp::tanh(a)),
        (Opcode::Abs, _) => d.unary(k, |k, a: u32| into(k, fl::abs32(a))),
        (Opcode::Neg, _) => d.unary(k, |k, a: u32| into(k, fl::neg32(a))),
        (Opcode::Copysign, _) => d.binary(0, |_, a: u32, b: u32| fl::copysign32(a, b)),
        (Opcode::Min, _) if d.has_operand(3) => {
            d.ternary(k, |k, a: u32, b: u32, c: u32| into(k, fl::min3_32(into(k, a), into(k, b), into(k, c), mode(k))))
        }
        (Opcode::Max, _) if d.has_operand(3) => {
            d.ternary(k, |k, a: u32, b: u32, c: u32| into(k, fl::max3_32(into(k, a), into(k, b), into(k, c), mode(k))))
        }
        (Opcode::Min, 0) => d.binary_by::<vector::Min>(),
        (Opcode::Max, 0) => d.binary_by::<vector::Max>(),
        (Opcode::Min, _) => d.binary(k, |k, a: u32, b: u32| fl::min32(into(k, a), into(k, b), mode(k))),
        (Opcode::Max, _) => d.binary(k, |k, a: u32, b: u32| fl::max32(into(k, a), into(k, b), mode(k))),
        _ => refuse("it has no such type"),
    }
}

macro_rules! on_rows {
    ($($(#[$doc:meta])* $name:ident, $flushed:ident = $function:ident($($operand:ident),*);)*) => {$(
        $(#[$doc])*
        pub struct $name;
        /// The same with `.ftz`.
        pub struct $flushed;
        on_rows!($name, $function, false, $($operand),*);
        on_rows!($flushed, $function, true, $($operand),*);
    )*};
    ($name:ident, $function:ident, $ftz:literal, $($operand:ident),*) => {
        impl OnRows<{ [$(stringify!($operand)),*].len() }> for $name {
            #[inline(always)]
            fn apply([$($operand),*]: [&Row; [$(stringify!($operand)),*].len()], out: &mut Row) {
                rows::$function($($operand,)* $ftz, out);
            }
        }
    };
}

on_rows! {
    /// `ex2.approx`.
    Ex2, Ex2Flushed = ex2(a);
    /// `lg2.approx`.
    Lg2, Lg2Flushed = lg2(a);
    /// `rcp.approx`.
    Rcp, RcpFlushed = rcp(a);
    /// `rsqrt.approx`.
    Rsqrt, RsqrtFlushed = rsqrt(a);
    /// `sqrt.approx`.
    Sqrt, SqrtFlushed = sqrt(a);
    /// `div.full`.
    DivFull, DivFullFlushed = div_full(a, b);
    /// `div.approx`.
    DivApprox, DivApproxFlushed = div_approx(a, b);
}

fn rows1<F: OnRows<1>>(d: &mut Decoder<'_>) -> Decoded {
    let a = d.source::<u32>(1)?;
    let to = d.destination::<u32>(0, false)?;
    d.emit(Op { d: to, a, ..d.op_of::<UnaryRow<F>>() });
    Ok(())
}

fn rows2<F: OnRows<2>>(d: &mut Decoder<'_>) -> Decoded {
    let (a, b) = (d.source::<u32>(1)?, d.source::<u32>(2)?);
    let to = d.destination::<u32>(0, false)?;
    d.emit(Op { d: to, a, b, ..d.op_of::<BinaryRow<F>>() });
    Ok(())
}

/// `add`, `sub` and `fma` of binary32 with operands of sixteen bits: widened first, which is exact.
fn mixed(d: &mut Decoder<'_>) -> Decoded {
    let k = flags(d)?;
    let half = match d.form.types[1] {
        ScalarType::F16 => 1 << 7,
        ScalarType::Bf16 => 0,
        _ => return refuse("it has no such type"),
    };
    #[inline(always)]
    fn widen(k: u64, x: u16) -> u32 {
        if k & 1 << 7 != 0 { hf::f16_to_f32(x) } else { hf::bf16_to_f32(x) }
    }
    let k = k | half;
    match d.opcode() {
        Opcode::Add => d.binary(k, |k, a: u16, b: u32| out(k, fl::add32(widen(k, a), b, numbered(k)))),
        Opcode::Sub => d.binary(k, |k, a: u16, b: u32| out(k, fl::sub32(widen(k, a), b, numbered(k)))),
        Opcode::Fma => {
            d.ternary(k, |k, a: u16, b: u16, c: u32| out(k, fl::fma32(widen(k, a), widen(k, b), c, numbered(k))))
        }
        _ => refuse("it has no such type"),
    }
}

fn double(d: &mut Decoder<'_>) -> Decoded {
    const NEAREST: Rounding = Rounding::Nearest;
    let k = flags(d)?;
    let approximate = d.form.has(Word::Approx);
    match (d.opcode(), k & 3) {
        (Opcode::Add, 0) => d.binary(0, |_, a: u64, b: u64| fl::add64(a, b, NEAREST)),
        (Opcode::Sub, 0) => d.binary(0, |_, a: u64, b: u64| fl::sub64(a, b, NEAREST)),
        (Opcode::Mul, 0) => d.binary(0, |_, a: u64, b: u64| fl::mul64(a, b, NEAREST)),
        (Opcode::Fma | Opcode::Mad, 0) => d.ternary(0, |_, a: u64, b: u64, c: u64| fl::fma64(a, b, c, NEAREST)),
        (Opcode::Add, _) => d.binary(k, |k, a: u64, b: u64| fl::add64(a, b, numbered(k))),
        (Opcode::Sub, _) => d.binary(k, |k, a: u64, b: u64| fl::sub64(a, b, numbered(k))),
        (Opcode::Mul, _) => d.binary(k, |k, a: u64, b: u64| fl::mul64(a, b, numbered(k))),
        (Opcode::Fma | Opcode::Mad, _) => d.ternary(k, |k, a: u64, b: u64, c: u64| fl::fma64(a, b, c, numbered(k))),
        (Opcode::Div, _) => d.binary(k, |k, a: u64, b: u64| fl::div64(a, b, numbered(k))),
        (Opcode::Rcp, _) if approximate => d.unary(0, |_, a: u64| sp::rcp_f64(a)),
        (Opcode::Rcp, _) => d.unary(k, |k, a: u64| fl::rcp64(a, numbered(k))),
        (Opcode::Sqrt, _) => d.unary(k, |k, a: u64| fl::sqrt64(a, numbered(k))),
        (Opcode::Rsqrt, _) => d.unary(k, |k, a: u64| sp::rsqrt_f64(a, k & FTZ != 0)),
        (Opcode::Abs, _) => d.unary(0, |_, a: u64| fl::abs64(a)),
        (Opcode::Neg, _) => d.unary(0, |_, a: u64| fl::neg64(a)),
        (Opcode::Copysign, _) => d.binary(0, |_, a: u64, b: u64| fl::copysign64(a, b)),
        (Opcode::Min, _) => d.binary(0, |_, a: u64, b: u64| fl::min64(a, b)),
        (Opcode::Max, _) => d.binary(0, |_, a: u64, b: u64| fl::max64(a, b)),
        _ => refuse("it has no such type"),
    }
}

fn testp(d: &mut Decoder<'_>) -> Decoded {
    #[inline(always)]
    fn property(k: u64) -> Property {
        match k {
            0 => Property::Finite,
            1 => Property::Infinite,
            2 => Property::Number,
            3 => Property::NotANumber,
            4 => Property::Normal,
            _ => Property::Subnormal,
        }
    }
    let words = [Word::Finite, Word::Infinite, Word::Number, Word::NotANumber, Word::Normal, Word::Subnormal];
    let Some(which) = words.iter().position(|word| d.form.has(*word)) else { return refuse("it tests nothing") };
    let to = d.truth_destination(d.operand(0)?)?;
    let zero = d.constant::<u64>(0);
    match d.ty()?.bits() {
        32 => {
            let a = d.source::<u32>(1)?;
            super::compare::emit(d, (to, 0), (a, zero), (0, 0), which as u64, |k, a: u32, _: u32| {
                fl::testp32(a, property(k))
            });
        }
        _ => {
            let a = d.source::<u64>(1)?;
            super::compare::emit(d, (to, 0), (a, zero), (0, 0), which as u64, |k, a: u64, _: u64| {
                fl::testp64(a, property(k))
            });
        }
    }
    Ok(())
}
