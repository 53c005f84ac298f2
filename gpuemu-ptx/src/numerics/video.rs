//! The video instructions: integers cut out of registers, one operation on them, a second one or a merge.
//!
//! PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions". Nothing in between is rounded or wrapped: the
//! result of the first operation is as wide as it needs to be until it is clamped or cut.

/// A part of a register: where it begins and how wide it is, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its lowest bit.
    pub shift: u32,
    /// 8, 16 or 32.
    pub bits: u32,
}

/// A whole register.
pub const WORD: Part = Part { shift: 0, bits: 32 };

impl Part {
    /// Byte 0 to 3.
    pub fn byte(number: u32) -> Self {
        Self { shift: 8 * number, bits: 8 }
    }

    /// Half 0 or 1.
    pub fn half(number: u32) -> Self {
        Self { shift: 16 * number, bits: 16 }
    }

    fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }

    #[inline(always)]
    fn of(self, word: u32, signed: bool) -> i64 {
        let up = 32 - self.bits;
        let cut = word >> self.shift << up;
        if signed { i64::from(cut as i32 >> up) } else { i64::from(cut >> up) }
    }

    #[inline(always)]
    fn put(self, value: u32, into: u32) -> u32 {
        into & !(self.mask() << self.shift) | (value & self.mask()) << self.shift
    }

    /// The nearest number of the part's width.
    #[inline(always)]
    fn clamp(self, value: i128, signed: bool) -> i128 {
        let (low, high) = match signed {
            true => (-1 << (self.bits - 1), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        };
        value.clamp(low, high)
    }

    fn code(self) -> u64 {
        u64::from(self.shift / 8) | u64::from(self.bits / 16) << 2
    }

    #[inline(always)]
    fn from_code(code: u64) -> Self {
        let bits = match code >> 2 & 3 {
            0 => 8,
            1 => 16,
            _ => 32,
        };
        Self { shift: (code as u32 & 3) * 8, bits }
    }
}

/// The first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PTX's own names")]
pub enum Operation {
    Add,
    Subtract,
    Difference,
    Minimum,
    Maximum,
    ShiftLeft,
    ShiftRight,
    Average,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

use Operation::*;

const OPERATIONS: [Operation; 14] = [
    Add,
    Subtract,
    Difference,
    Minimum,
    Maximum,
    ShiftLeft,
    ShiftRight,
    Average,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
];

impl Operation {
    #[inline(always)]
    fn apply(self, a: i64, b: i64) -> i128 {
        let (a, b) = (i128::from(a), i128::from(b));
        match self {
            Add => a + b,
            Subtract => a - b,
            Difference => (a - b).abs(),
            Minimum => a.min(b),
            Maximum => a.max(b),
            ShiftLeft => a << b,
            ShiftRight => a >> b,
            // To the nearest, ties upward, of a sum that is not negative; else downward.
            Average => (a + b + i128::from(a + b >= 0)) >> 1,
            Equal => (a == b).into(),
            NotEqual => (a != b).into(),
            Less => (a < b).into(),
            LessEqual => (a <= b).into(),
            Greater => (a > b).into(),
            GreaterEqual => (a >= b).into(),
        }
    }
}

/// The second operation, with `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "PTX's own names")]
pub enum Second {
    None,
    Add,
    Minimum,
    Maximum,
}

/// Which types are signed, and whether results are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the operands by name")]
pub struct Types {
    pub d: bool,
    pub a: bool,
    pub b: bool,
    pub sat: bool,
}

impl Types {
    fn code(self) -> u64 {
        u64::from(self.d) | u64::from(self.a) << 1 | u64::from(self.b) << 2 | u64::from(self.sat) << 3
    }

    #[inline(always)]
    fn from_code(code: u64) -> Self {
        let bit = |at: u32| code >> at & 1 != 0;
        Self { d: bit(0), a: bit(1), b: bit(2), sat: bit(3) }
    }
}

/// `vadd`, `vsub`, `vabsdiff`, `vmin`, `vmax`, `vshl`, `vshr`, `vset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// What is done.
    pub operation: Operation,
    /// The types.
    pub types: Types,
    /// The part of `a`.
    pub a: Part,
    /// The part of `b`.
    pub b: Part,
    /// What follows.
    pub second: Second,
    /// Shifts by the low five bits of `b`, else by at most 32.
    pub wrap: bool,
    /// The part of `c` that the result replaces.
    pub merge: Option<Part>,
}

impl Scalar {
    /// As a number that [`Scalar::decoded`] reads.
    pub fn encoded(self) -> u64 {
        self.operation as u64
            | self.types.code() << 4
            | self.a.code() << 8
            | self.b.code() << 12
            | (self.second as u64) << 16
            | u64::from(self.wrap) << 18
            | self.merge.unwrap_or(WORD).code() << 20
            | u64::from(self.merge.is_some()) << 24
    }

    /// Back.
    #[inline(always)]
    pub fn decoded(code: u64) -> Self {
        Self {
            operation: OPERATIONS[(code & 15).min(13) as usize],
            types: Types::from_code(code >> 4),
            a: Part::from_code(code >> 8),
            b: Part::from_code(code >> 12),
            second: [Second::None, Second::Add, Second::Minimum, Second::Maximum][(code >> 16 & 3) as usize],
            wrap: code >> 18 & 1 != 0,
            merge: (code >> 24 & 1 != 0).then(|| Part::from_code(code >> 20)),
        }
    }

    /// The result.
    #[inline(always)]
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let (x, y) = (self.a.of(a, self.types.a), self.b.of(b, self.types.b));
        let y = match self.operation {
            ShiftLeft | ShiftRight if self.wrap => y & 31,
            ShiftLeft | ShiftRight => y.min(32),
            _ => y,
        };
        let mut value = self.operation.apply(x, y);
        if self.types.sat {
            value = self.merge.unwrap_or(WORD).clamp(value, self.types.d);
        }
        let value = value as u32;
        let (signed, other) = (value as i32, c as i32);
        match (self.merge, self.second) {
            (Some(part), _) => part.put(value, c),
            (None, Second::None) => value,
            (None, Second::Add) => value.wrapping_add(c),
            (None, Second::Minimum) if self.types.d => signed.min(other) as u32,
            (None, Second::Maximum) if self.types.d => signed.max(other) as u32,
            (None, Second::Minimum) => value.min(c),
            (None, Second::Maximum) => value.max(c),
        }
    }
}

/// `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiplyAdd {
    /// The types; that of `d` counts for nothing.
    pub types: Types,
    /// The part of `a`.
    pub a: Part,
    /// The part of `b`.
    pub b: Part,
    /// The product is subtracted from `c`.
    pub negated: bool,
    /// `c` is subtracted.
    pub minus: bool,
    /// One is added.
    pub plus_one: bool,
    /// Bits that the sum is shifted right by.
    pub scale: u32,
}

impl MultiplyAdd {
    /// As a number that [`MultiplyAdd::decoded`] reads.
    pub fn encoded(self) -> u64 {
        self.types.code()
            | self.a.code() << 4
            | self.b.code() << 8
            | u64::from(self.negated) << 12
            | u64::from(self.minus) << 13
            | u64::from(self.plus_one) << 14
            | u64::from(self.scale) << 16
    }

    /// Back.
    #[inline(always)]
    pub fn decoded(code: u64) -> Self {
        let bit = |at: u32| code >> at & 1 != 0;
        Self {
            types: Types::from_code(code),
            a: Part::from_code(code >> 4),
            b: Part::from_code(code >> 8),
            negated: bit(12),
            minus: bit(13),
            plus_one: bit(14),
            scale: (code >> 16 & 15) as u32,
        }
    }

    /// The result.
    #[inline(always)]
    pub fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let product = i128::from(self.a.of(a, self.types.a)) * i128::from(self.b.of(b, self.types.b));
        let signed = self.types.a || self.types.b || self.negated || self.minus;
        let product = if self.negated { -product } else { product };
        // The complement of 32 bits, then one.
        let (c, one) = if self.minus { (!c, 1) } else { (c, i128::from(self.plus_one)) };
        let c = if signed { i128::from(c as i32) } else { i128::from(c) };
        let mut value = (product + c + one) >> self.scale;
        if self.types.sat {
            value = WORD.clamp(value, signed);
        }
        value as u32
    }
}

/// `vadd2`, `vavrg4` and their like: `LANES` parts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd {
    /// What is done.
    pub operation: Operation,
    /// The types.
    pub types: Types,
    /// The sum of the parts is added to `c`; else parts replace those of `c`.
    pub add: bool,
    /// The parts that count, a bit each.
    pub mask: u32,
    /// For each part which of the parts of `a`, then of `b`, it takes, four bits each.
    pub a: u32,
    /// The same for the second operand.
    pub b: u32,
}

impl Simd {
    /// As a number that [`Simd::decoded`] reads.
    pub fn encoded(self) -> u64 {
        self.operation as u64
            | self.types.code() << 4
            | u64::from(self.add) << 8
            | u64::from(self.mask & 15) << 12
            | u64::from(self.a & 0xffff) << 16
            | u64::from(self.b & 0xffff) << 32
    }

    /// Back.
    #[inline(always)]
    pub fn decoded(code: u64) -> Self {
        Self {
            operation: OPERATIONS[(code & 15).min(13) as usize],
            types: Types::from_code(code >> 4),
            add: code >> 8 & 1 != 0,
            mask: (code >> 12 & 15) as u32,
            a: (code >> 16 & 0xffff) as u32,
            b: (code >> 32 & 0xffff) as u32,
        }
    }

    /// The result.
    #[inline(always)]
    pub fn apply<const LANES: u32>(self, a: u32, b: u32, c: u32) -> u32 {
        let part = |number: u32| Part { shift: number % LANES * (32 / LANES), bits: 32 / LANES };
        let chosen = |selector: u32, lane: u32, signed: bool| {
            let number = selector >> (4 * lane) & 7;
            part(number).of(if number < LANES { a } else { b }, signed)
        };
        let mut d = c;
        for lane in (0..LANES).filter(|lane| self.mask >> lane & 1 != 0) {
            let (x, y) = (chosen(self.a, lane, self.types.a), chosen(self.b, lane, self.types.b));
            let mut value = self.operation.apply(x, y);
            if self.types.sat {
                value = part(lane).clamp(value, self.types.d);
            }
            d = if self.add { d.wrapping_add(value as u32) } else { part(lane).put(value as u32, d) };
        }
        d
    }
}
