//! What the sums of products of matrix instructions are told: formats, and how an architecture adds.

/// How an architecture adds up the products of one format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SumRule {
    /// Fraction bits that a term keeps behind the largest exponent.
    pub fraction_bits: u32,
    /// Products in one sum.
    pub group: u32,
    /// Mantissa bits of a binary32 result; the others are zero.
    pub result_bits: u32,
}

/// The format of a matrix element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Element {
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// binary32 of which the low 13 bits are ignored.
    Tf32,
    /// fp8 with four exponent bits; no infinity.
    E4m3,
    /// fp8 with five exponent bits.
    E5m2,
}

/// The format of the accumulator and of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Accumulator {
    /// binary32, results cut toward zero.
    F32,
    /// binary16, results rounded to nearest even.
    F16,
}

impl Element {
    /// Exponent and mantissa bits.
    pub(super) const fn widths(self) -> (u32, u32) {
        match self {
            Element::F16 => (5, 10),
            Element::Bf16 => (8, 7),
            Element::Tf32 => (8, 10),
            Element::E4m3 => (4, 3),
            Element::E5m2 => (5, 2),
        }
    }
}

/// Below the exponent of every product.
pub(super) const ZERO: i32 = -4096;

/// Above the exponent of every product; a NaN's significand is 0, an infinity's its sign.
pub(super) const SPECIAL: i32 = 16384;

/// Eight sums side by side.
pub(super) const COLUMNS: usize = 8;
