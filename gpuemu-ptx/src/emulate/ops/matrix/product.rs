//! What a matrix instruction multiplies and how, and the arithmetic of each kind.

use super::fragments::Word;
use crate::numerics::tensor_core::{
    Accumulator, Element, SumRule, multiply_add, multiply_add_bits, multiply_add_f64, multiply_add_fp8_as_f16,
    multiply_add_int,
};

/// What kinds of numbers are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Floats: the factors' formats and the sums'.
    Float(Element, Element, Accumulator),
    /// fp8 where the tensor core has no such product.
    Unpacked(Element, Element, Accumulator),
    /// binary64.
    Double,
    /// Bits of an element, the signs of both.
    Integer(u32, bool, bool),
    /// Counts of ones, under `and` or else exclusive or.
    Bits(bool),
}

/// A matrix product of fragments: its kind and rule, found by number in `imm`.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// What is multiplied.
    pub kind: Kind,
    /// How products are added.
    pub rule: SumRule,
    /// Whether integers are clamped.
    pub satfinite: bool,
    /// Which threads have the places of a sparse matrix.
    pub selector: u32,
}

const ELEMENTS: [Element; 5] = [Element::F16, Element::Bf16, Element::Tf32, Element::E4m3, Element::E5m2];

impl Product {
    /// As a number.
    pub fn encoded(self) -> u64 {
        let at = |element| ELEMENTS.iter().position(|one| *one == element).unwrap_or(0) as u64;
        let kind = match self.kind {
            Kind::Float(a, b, accumulator) => {
                at(a) << 4 | at(b) << 8 | u64::from(accumulator == Accumulator::F16) << 12
            }
            Kind::Unpacked(a, b, accumulator) => {
                1 | at(a) << 4 | at(b) << 8 | u64::from(accumulator == Accumulator::F16) << 12
            }
            Kind::Double => 2,
            Kind::Integer(bits, a, b) => 3 | u64::from(bits) << 4 | u64::from(a) << 8 | u64::from(b) << 9,
            Kind::Bits(and) => 4 | u64::from(and) << 4,
        };
        let rule = u64::from(self.rule.fraction_bits)
            | u64::from(self.rule.group) << 8
            | u64::from(self.rule.result_bits) << 16;
        kind | u64::from(self.satfinite) << 15 | u64::from(self.selector & 3) << 16 | rule << 32
    }

    /// Back.
    #[inline(always)]
    pub fn decoded(imm: u64) -> Self {
        let element = |at: u32| ELEMENTS[(imm >> at & 15) as usize % ELEMENTS.len()];
        let bit = |at: u32| imm >> at & 1 != 0;
        let accumulator = if bit(12) { Accumulator::F16 } else { Accumulator::F32 };
        let kind = match imm & 15 {
            0 => Kind::Float(element(4), element(8), accumulator),
            1 => Kind::Unpacked(element(4), element(8), accumulator),
            2 => Kind::Double,
            3 => Kind::Integer((imm >> 4 & 15) as u32, bit(8), bit(9)),
            _ => Kind::Bits(bit(4)),
        };
        let byte = |at: u32| (imm >> at & 255) as u32;
        let rule = SumRule { fraction_bits: byte(32), group: byte(40), result_bits: byte(48) };
        Self { kind, rule, satfinite: bit(15), selector: (imm >> 16 & 3) as u32 }
    }
}

/// The arithmetic of a product of whole matrices: a type for each kind, so that each is a loop of its own.
pub trait Arithmetic {
    /// What registers are read as.
    type Word: Word;
    /// Bits of an element of the accumulator.
    const SUM_BITS: usize;
    /// `a * b + c`.
    fn multiply<const M: usize, const K: usize>(
        product: &Product,
        a: &[[Self::Word; K]; M],
        b: &[[Self::Word; 8]; K],
        c: &[[Self::Word; 8]; M],
    ) -> [[Self::Word; 8]; M];
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident, $word:ty, $bits:literal, |$product:ident, $a:ident, $b:ident, $c:ident| $multiply:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl Arithmetic for $name {
            type Word = $word;
            const SUM_BITS: usize = $bits;
            #[inline(always)]
            fn multiply<const M: usize, const K: usize>(
                $product: &Product,
                $a: &[[$word; K]; M],
                $b: &[[$word; 8]; K],
                $c: &[[$word; 8]; M],
            ) -> [[$word; 8]; M] {
                $multiply
            }
        }
    )*};
}

arithmetic! {
    /// binary16, sums in binary32.
    Half, u32, 32, |p, a, b, c| multiply_add(p.rule, (Element::F16, Element::F16), Accumulator::F32, a, b, c);
    /// binary16, sums in binary16.
    HalfSums, u32, 16, |p, a, b, c| multiply_add(p.rule, (Element::F16, Element::F16), Accumulator::F16, a, b, c);
    /// bfloat16.
    Brain, u32, 32, |p, a, b, c| multiply_add(p.rule, (Element::Bf16, Element::Bf16), Accumulator::F32, a, b, c);
    /// tf32.
    Tensor, u32, 32, |p, a, b, c| multiply_add(p.rule, (Element::Tf32, Element::Tf32), Accumulator::F32, a, b, c);
    /// Floats of eight bits, sums in binary32.
    Small, u32, 32, |p, a, b, c| small(p, a, b, c);
    /// Floats of eight bits, sums in binary16.
    SmallSums, u32, 16, |p, a, b, c| small(p, a, b, c);
    /// Integers.
    Whole, u32, 32, |p, a, b, c| match p.kind {
        Kind::Integer(bits, x, y) => {
            let up = 32 - bits;
            let value = |code: u32, signed: bool| {
                if signed { (code << up) as i32 >> up } else { (code << up >> up) as i32 }
            };
            let a = a.map(|row| row.map(|code| value(code, x)));
            let b = b.map(|row| row.map(|code| value(code, y)));
            multiply_add_int(p.satfinite, &a, &b, c)
        }
        _ => *c,
    };
    /// Single bits, 32 to an element.
    Bits, u32, 32, |p, a, b, c| multiply_add_bits(p.kind == Kind::Bits(true), a, b, c);
    /// binary64.
    Double, u64, 64, |_p, a, b, c| multiply_add_f64(a, b, c);
}

/// Floats of eight bits: by the tensor core's rule for them, or unpacked to binary16.
#[inline(always)]
fn small<const M: usize, const K: usize>(
    product: &Product,
    a: &[[u32; K]; M],
    b: &[[u32; 8]; K],
    c: &[[u32; 8]; M],
) -> [[u32; 8]; M] {
    match product.kind {
        Kind::Float(x, y, accumulator) => multiply_add(product.rule, (x, y), accumulator, a, b, c),
        Kind::Unpacked(x, y, accumulator) => multiply_add_fp8_as_f16(product.rule, (x, y), accumulator, a, b, c),
        _ => *c,
    }
}
