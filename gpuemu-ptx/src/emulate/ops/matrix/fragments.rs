//! Fragments between the registers of a warp and arrays of rows: one gather and one scatter for every product.

use crate::emulate::decode::{Decoded, Decoder};
use crate::emulate::registers::{LANES, Lane};
use crate::emulate::warp::Warp;
use crate::program::Operand;

/// A register of a fragment: 32 bits, or 64 for binary64.
pub trait Word: Lane<Store = Self> {
    /// Its width.
    const BITS: usize;
    /// The element at a place, of so many bits.
    fn cut(self, place: usize, bits: usize) -> Self;
    /// An element moved to its place.
    fn laid(self, place: usize, bits: usize) -> Self;
    /// Both.
    fn with(self, other: Self) -> Self;
}

macro_rules! word {
    ($($ty:ty),*) => {$(
        impl Word for $ty {
            const BITS: usize = <$ty>::BITS as usize;
            #[inline(always)]
            fn cut(self, place: usize, bits: usize) -> Self {
                if bits == <Self as Word>::BITS { self } else { self >> (place * bits) & ((1 << bits) - 1) }
            }
            #[inline(always)]
            fn laid(self, place: usize, bits: usize) -> Self {
                if bits == <Self as Word>::BITS { self } else { (self & ((1 << bits) - 1)) << (place * bits) }
            }
            #[inline(always)]
            fn with(self, other: Self) -> Self {
                self | other
            }
        }
    )*};
}

word!(u32, u64);

/// The matrix that registers hold, elements of `BITS` in the low bits: `at` says row and column by lane, register and
/// place in the register.
#[inline(always)]
pub fn gather<W: Word, const ROWS: usize, const COLUMNS: usize, const BITS: usize>(
    warp: &Warp,
    registers: &[i32],
    at: impl Fn(usize, usize, usize) -> (usize, usize),
) -> [[W; COLUMNS]; ROWS] {
    let mut matrix = [[W::default(); COLUMNS]; ROWS];
    for (register, &row) in registers.iter().enumerate() {
        for (lane, &word) in warp.registers.stored::<W>(row).iter().enumerate() {
            for place in 0..W::BITS / BITS {
                let (m, n) = at(lane, register, place);
                matrix[m][n] = word.cut(place, BITS);
            }
        }
    }
    matrix
}

/// Writes a matrix to registers, as `gather` reads it.
#[inline(always)]
pub fn scatter<W: Word, const ROWS: usize, const COLUMNS: usize, const BITS: usize>(
    warp: &mut Warp,
    registers: &[i32],
    matrix: &[[W; COLUMNS]; ROWS],
    mask: u32,
    at: impl Fn(usize, usize, usize) -> (usize, usize),
) {
    for (register, &row) in registers.iter().enumerate() {
        let mut out = [W::default(); LANES];
        for (lane, word) in out.iter_mut().enumerate() {
            for place in 0..W::BITS / BITS {
                let (m, n) = at(lane, register, place);
                *word = word.with(matrix[m][n].laid(place, BITS));
            }
        }
        warp.registers.write::<W>(row, &out, mask);
    }
}

/// The registers of an operand, a vector or one.
pub fn registers(d: &mut Decoder<'_>, index: usize, written: bool, wide: bool) -> Decoded<Vec<i32>> {
    let operands = match d.operand(index)? {
        Operand::Vector(range) => d.function.inside(range).to_vec(),
        operand => vec![operand.clone()],
    };
    operands
        .iter()
        .map(|operand| match (written, wide) {
            (true, true) => d.destination_of::<u64>(operand, false),
            (true, false) => d.destination_of::<u32>(operand, false),
            (false, true) => d.source_of::<u64>(operand),
            (false, false) => d.source_of::<u32>(operand),
        })
        .collect()
}
