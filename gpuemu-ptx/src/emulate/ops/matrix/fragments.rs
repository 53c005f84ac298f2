//! Fragments between the registers of a warp and arrays of rows: one gather and one scatter for every product.

use crate::emulate::decode::{Decoded, Decoder};
use crate::emulate::registers::{LANES, Lane};
use crate::emulate::warp::Warp;
use crate::numerics::fragment;
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

/// The first factor of `mma`, by row.
#[inline(always)]
pub fn factor_a<W: Word, const M: usize, const K: usize, const BITS: usize>(warp: &Warp, from: &[i32]) -> [[W; K]; M] {
    let packed = const { W::BITS / BITS };
    if packed != 2 {
        return gather::<W, M, K, BITS>(warp, from, |lane, register, place| {
            fragment::a(lane, register, place, packed, M)
        });
    }
    let mut a = [[W::default(); K]; M];
    for (register, &row) in from.iter().enumerate() {
        let words = warp.registers.stored::<W>(row);
        // Eight rows of eight neighbours in k, four words each.
        let (m, k) = (register % (M / 8) * 8, register / (M / 8) * 8);
        for row in 0..8 {
            for pair in 0..4 {
                let word = words[4 * row + pair];
                a[m + row][k + 2 * pair] = word.cut(0, BITS);
                a[m + row][k + 2 * pair + 1] = word.cut(1, BITS);
            }
        }
    }
    a
}

/// The second factor of `mma`, by k.
#[inline(always)]
pub fn factor_b<W: Word, const K: usize, const BITS: usize>(warp: &Warp, from: &[i32]) -> [[W; 8]; K] {
    let packed = const { W::BITS / BITS };
    if packed != 2 {
        return gather::<W, K, 8, BITS>(warp, from, |lane, register, place| fragment::b(lane, register, place, packed));
    }
    let mut b = [[W::default(); 8]; K];
    for (register, &row) in from.iter().enumerate() {
        let words = warp.registers.stored::<W>(row);
        for pair in 0..4 {
            let mut column = [W::default(); 8];
            for n in 0..8 {
                column[n] = words[4 * n + pair];
            }
            b[8 * register + 2 * pair] = column.map(|word| word.cut(0, BITS));
            b[8 * register + 2 * pair + 1] = column.map(|word| word.cut(1, BITS));
        }
    }
    b
}

/// The addend of `mma`, by row.
#[inline(always)]
pub fn addend<W: Word, const M: usize, const BITS: usize>(warp: &Warp, from: &[i32]) -> [[W; 8]; M] {
    let packed = const { W::BITS / BITS };
    if packed != 1 {
        let at = |lane, register, place| fragment::c(lane, packed * register + place);
        return gather::<W, M, 8, BITS>(warp, from, at);
    }
    let mut c = [[W::default(); 8]; M];
    for (register, &row) in from.iter().enumerate() {
        let words = warp.registers.stored::<W>(row);
        let (to, side) = (register / 2 * 8, register % 2);
        for m in 0..8 {
            for pair in 0..4 {
                c[to + m][2 * pair + side] = words[4 * m + pair];
            }
        }
    }
    c
}

/// Writes the result of `mma`.
#[inline(always)]
pub fn result<W: Word, const M: usize, const BITS: usize>(warp: &mut Warp, to: &[i32], d: &[[W; 8]; M], mask: u32) {
    let packed = const { W::BITS / BITS };
    if packed != 1 {
        let at = |lane, register, place| fragment::c(lane, packed * register + place);
        return scatter::<W, M, 8, BITS>(warp, to, d, mask, at);
    }
    for (register, &row) in to.iter().enumerate() {
        let mut out = [W::default(); LANES];
        let (from, side) = (register / 2 * 8, register % 2);
        for m in 0..8 {
            for pair in 0..4 {
                out[4 * m + pair] = d[from + m][2 * pair + side];
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
