//! Operands as text.

use std::fmt::{self, Display, Formatter, Write};
use std::ops::Range;

use crate::parse::Operand;

/// The operands of a body, by which those inside others are found.
pub(super) struct Values<'a>(pub(super) &'a [Operand<'a>]);

impl<'a> Values<'a> {
    /// The operands of a range; those of it that the body has.
    pub(super) fn of(&self, range: &Range<u32>) -> &'a [Operand<'a>] {
        self.0.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// `a, b, c`.
    pub(super) fn list(&self, f: &mut Formatter<'_>, operands: &[Operand<'_>]) -> fmt::Result {
        for (position, operand) in operands.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            self.operand(f, operand)?;
        }
        Ok(())
    }

    pub(super) fn operand(&self, f: &mut Formatter<'_>, operand: &Operand<'_>) -> fmt::Result {
        match operand {
            Operand::Name(name) => f.write_str(name),
            Operand::Negated(name) => write!(f, "!{name}"),
            Operand::Minus(name) => write!(f, "-{name}"),
            Operand::Integer { bits, unsigned: true } => write!(f, "{bits}U"),
            Operand::Integer { bits, unsigned: false } => write!(f, "{}", Decimal(*bits as i64)),
            Operand::Float32(bits) => write!(f, "0f{bits:08X}"),
            Operand::Float64(bits) => write!(f, "0d{bits:016X}"),
            Operand::Pair(first, second) => write!(f, "{first}|{second}"),
            Operand::Vector(range) => self.enclosed(f, '{', range, '}'),
            Operand::VectorPair(range, predicate) => {
                self.enclosed(f, '{', range, '}')?;
                write!(f, "|{predicate}")
            }
            Operand::List(range) => self.enclosed(f, '(', range, ')'),
            Operand::Address { base: Some(base), offset: 0 } => write!(f, "[{base}]"),
            Operand::Address { base: Some(base), offset } => write!(f, "[{base}+{}]", Decimal(*offset)),
            Operand::Address { base: None, offset } => write!(f, "[{}]", Decimal(*offset)),
            Operand::Unified { base, offset } => {
                self.operand(f, &Operand::Address { base: Some(base), offset: *offset })?;
                f.write_str(".unified")
            }
            Operand::Indexed(range) => {
                f.write_char('[')?;
                if let [address, rest @ ..] = self.of(range) {
                    match address {
                        Operand::Address { base: Some(base), offset: 0 } => f.write_str(base)?,
                        Operand::Address { base: Some(base), offset } => write!(f, "{base}+{}", Decimal(*offset))?,
                        Operand::Address { base: None, offset } => write!(f, "{}", Decimal(*offset))?,
                        other => self.operand(f, other)?,
                    }
                    f.write_str(", ")?;
                    self.list(f, rest)?;
                }
                f.write_char(']')
            }
            Operand::Element(range) => match self.of(range) {
                [symbol, index] => {
                    self.operand(f, symbol)?;
                    f.write_char('[')?;
                    self.operand(f, index)?;
                    f.write_char(']')
                }
                _ => Ok(()),
            },
            Operand::Sum { symbol, addend } => write!(f, "{symbol}+{}", Decimal(*addend)),
        }
    }

    fn enclosed(&self, f: &mut Formatter<'_>, open: char, range: &Range<u32>, close: char) -> fmt::Result {
        f.write_char(open)?;
        self.list(f, self.of(range))?;
        f.write_char(close)
    }
}

/// A signed number that reads as itself: the least has no literal of its own.
pub(super) struct Decimal(pub(super) i64);

impl Display for Decimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            i64::MIN => f.write_str("(.s64)0x8000000000000000"),
            value => value.fmt(f),
        }
    }
}
