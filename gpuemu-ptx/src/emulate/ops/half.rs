//! binary16 and bfloat16 arithmetic, one and two at a time.

use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::numerics::float::{self as fl, Extremum};
use crate::numerics::{half as hf, integer as int, special as sp};
use crate::program::{Opcode, ScalarType, Word};

/// Bits of `imm`.
const FTZ: u64 = 1;
const SAT: u64 = 2;
const RELU: u64 = 4;
const NAN: u64 = 8;
const XORSIGN: u64 = 16;

#[inline(always)]
fn f16(k: u64, x: u16) -> u16 {
    if k & FTZ != 0 { hf::flush_f16(x) } else { x }
}

#[inline(always)]
fn f16_out(k: u64, x: u16) -> u16 {
    let x = f16(k, x);
    let x = if k & SAT != 0 { hf::saturate_f16(x) } else { x };
    if k & RELU != 0 { hf::relu_f16(x) } else { x }
}

#[inline(always)]
fn bf16_out(k: u64, x: u16) -> u16 {
    if k & RELU != 0 { hf::relu_bf16(x) } else { x }
}

#[inline(always)]
fn mode(k: u64) -> Extremum {
    Extremum { nan: k & NAN != 0, xorsign_abs: k & XORSIGN != 0 }
}

/// `f` on both halves.
#[inline(always)]
fn both(a: u32, f: impl Fn(u16) -> u16) -> u32 {
    u32::from(f(a as u16)) | u32::from(f((a >> 16) as u16)) << 16
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let ty = d.ty()?;
    let bit = |word, bit| if d.form.has(word) { bit } else { 0 };
    let k = bit(Word::Ftz, FTZ)
        | bit(Word::Sat, SAT)
        | bit(Word::Relu, RELU)
        | bit(Word::NaNResult, NAN)
        | bit(Word::Xorsign, XORSIGN);
    macro_rules! one {
        ($f16:expr, $bf16:expr) => {
            match ty {
                ScalarType::F16 => d.unary(k, |k, a: u16| $f16(k, a)),
                ScalarType::F16x2 => d.unary(k, |k, a: u32| both(a, |a| $f16(k, a))),
                ScalarType::Bf16 => d.unary(k, |k, a: u16| $bf16(k, a)),
                _ => d.unary(k, |k, a: u32| both(a, |a| $bf16(k, a))),
            }
        };
    }
    macro_rules! two {
        ($f16:expr, $bf16:expr) => {
            match ty {
                ScalarType::F16 => d.binary(k, |k, a: u16, b: u16| $f16(k, a, b)),
                ScalarType::F16x2 => d.binary(k, |k, a: u32, b: u32| int::halves(a, b, |a, b| $f16(k, a, b))),
                ScalarType::Bf16 => d.binary(k, |k, a: u16, b: u16| $bf16(k, a, b)),
                _ => d.binary(k, |k, a: u32, b: u32| int::halves(a, b, |a, b| $bf16(k, a, b))),
            }
        };
    }
    macro_rules! three {
        ($f16:expr, $bf16:expr) => {
            match ty {
                ScalarType::F16 => d.ternary(k, |k, a: u16, b: u16, c: u16| $f16(k, a, b, c)),
                ScalarType::F16x2 => {
                    d.ternary(k, |k, a: u32, b: u32, c: u32| hf::halves3(a, b, c, |a, b, c| $f16(k, a, b, c)))
                }
                ScalarType::Bf16 => d.ternary(k, |k, a: u16, b: u16, c: u16| $bf16(k, a, b, c)),
                _ => d.ternary(k, |k, a: u32, b: u32, c: u32| hf::halves3(a, b, c, |a, b, c| $bf16(k, a, b, c))),
            }
        };
    }
    match d.opcode() {
        Opcode::Add => two!(|k, a, b| f16_out(k, hf::add_f16(f16(k, a), f16(k, b))), |_: u64, a, b| hf::add_bf16(a, b)),
        Opcode::Sub => two!(|k, a, b| f16_out(k, hf::sub_f16(f16(k, a), f16(k, b))), |_: u64, a, b| hf::sub_bf16(a, b)),
        Opcode::Mul if k & FTZ != 0 => {
            two!(|k, a, b| f16_out(k, hf::mul_f16_ftz(a, b)), |_: u64, a, b| hf::mul_bf16(a, b))
        }
        Opcode::Mul => two!(|k, a, b| f16_out(k, hf::mul_f16(f16(k, a), f16(k, b))), |_: u64, a, b| hf::mul_bf16(a, b)),
        Opcode::Fma if d.form.has(Word::Oob) => refuse("`.oob` is not executed"),
        Opcode::Fma if k & FTZ != 0 => {
            three!(|k, a, b, c| f16_out(k, hf::fma_f16_ftz(a, b, c)), |k, a, b, c| bf16_out(k, hf::fma_bf16(a, b, c)))
        }
        Opcode::Fma => {
            three!(|k, a, b, c| f16_out(k, hf::fma_f16(f16(k, a), f16(k, b), f16(k, c))), |k, a, b, c| bf16_out(
                k,
                hf::fma_bf16(a, b, c)
            ))
        }
        Opcode::Min => {
            two!(|k, a, b| f16(k, fl::min_f16(f16(k, a), f16(k, b), mode(k))), |k, a, b| fl::min_bf16(a, b, mode(k)))
        }
        Opcode::Max => {
            two!(|k, a, b| f16(k, fl::max_f16(f16(k, a), f16(k, b), mode(k))), |k, a, b| fl::max_bf16(a, b, mode(k)))
        }
        Opcode::Abs => one!(|k, a| f16(k, hf::abs_f16(a)), |_: u64, a| hf::abs_bf16(a)),
        Opcode::Neg => one!(|k, a| f16(k, hf::neg_f16(a)), |_: u64, a| hf::neg_bf16(a)),
        Opcode::Ex2 => one!(|_: u64, a| sp::ex2_f16(a), |_: u64, a| sp::ex2_bf16(a)),
        Opcode::Tanh => one!(|_: u64, a| sp::tanh_f16(a), |_: u64, a| sp::tanh_bf16(a)),
        _ => refuse("it has no such type"),
    }
}
