//! Constant expressions, evaluated by the rules of the PTX ISA, section "Constant Expressions": integers have 64 bits,
//! signed unless written otherwise or too large; two operands are unsigned if one is; floats are float64.

use super::Parser;
use crate::parse::Operand;
use crate::parse::fault::{Fault, Parsed};
use crate::parse::lexer::{begins_name, is_digit};

/// Lanes of a warp: the constant `WARP_SZ`.
const WARP_SIZE: i64 = 32;

/// The value of a constant expression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    /// `.s64`.
    Signed(i64),
    /// `.u64`.
    Unsigned(u64),
    /// `.f64`.
    Float(f64),
    /// The bits of a literal `0f...`, kept until an operator wants a float64.
    Float32(u32),
}

impl Value {
    pub(super) fn operand<'a>(self) -> Operand<'a> {
        match self {
            Value::Signed(value) => Operand::Integer { bits: value as u64, unsigned: false },
            Value::Unsigned(bits) => Operand::Integer { bits, unsigned: true },
            Value::Float(value) => Operand::Float64(value.to_bits()),
            Value::Float32(bits) => Operand::Float32(bits),
        }
    }

    /// The bits of an integer.
    fn bits(self) -> Option<u64> {
        match self {
            Value::Signed(value) => Some(value as u64),
            Value::Unsigned(bits) => Some(bits),
            Value::Float(_) | Value::Float32(_) => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Value::Signed(value) => value as f64,
            Value::Unsigned(value) => value as f64,
            Value::Float(value) => value,
            Value::Float32(bits) => f64::from(f32::from_bits(bits)),
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Value::Float(_) | Value::Float32(_))
    }
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// How tightly it binds, as in C.
    fn precedence(self) -> u8 {
        use Operator::*;
        match self {
            Or => 1,
            And => 2,
            BitOr => 3,
            BitXor => 4,
            BitAnd => 5,
            Equal | NotEqual => 6,
            Less | LessEqual | Greater | GreaterEqual => 7,
            ShiftLeft | ShiftRight => 8,
            Add | Subtract => SUM,
            Multiply | Divide | Remainder => SUM + 1,
        }
    }

    /// `None`: a divisor is zero, or one of the operands is a float and the operator takes integers.
    fn apply(self, left: Value, right: Value) -> Option<Value> {
        use Operator::*;
        let truth = |holds: bool| Some(Value::Signed(i64::from(holds)));
        if left.is_float() || right.is_float() {
            let (a, b) = (left.float(), right.float());
            return match self {
                Add => Some(Value::Float(a + b)),
                Subtract => Some(Value::Float(a - b)),
                Multiply => Some(Value::Float(a * b)),
                Divide => Some(Value::Float(a / b)),
                Less => truth(a < b),
                LessEqual => truth(a <= b),
                Greater => truth(a > b),
                GreaterEqual => truth(a >= b),
                Equal => truth(a == b),
                NotEqual => truth(a != b),
                _ => None,
            };
        }
        let (a, b) = (left.bits()?, right.bits()?);
        let signed = matches!((left, right), (Value::Signed(_), Value::Signed(_)));
        let (s, t) = (a as i64, b as i64);
        let converted = |bits: u64| Some(if signed { Value::Signed(bits as i64) } else { Value::Unsigned(bits) });
        let ordering = if signed { s.cmp(&t) } else { a.cmp(&b) };
        match self {
            Or => truth(a != 0 || b != 0),
            And => truth(a != 0 && b != 0),
            BitOr => converted(a | b),
            BitXor => converted(a ^ b),
            BitAnd => converted(a & b),
            Equal => truth(a == b),
            NotEqual => truth(a != b),
            Less => truth(ordering.is_lt()),
            LessEqual => truth(ordering.is_le()),
            Greater => truth(ordering.is_gt()),
            GreaterEqual => truth(ordering.is_ge()),
            // The result has the type of the first operand; so has what a right shift fills in.
            ShiftLeft => Some(match left {
                Value::Signed(_) => Value::Signed(if b < 64 { s << b } else { 0 }),
                _ => Value::Unsigned(if b < 64 { a << b } else { 0 }),
            }),
            ShiftRight => Some(match left {
                Value::Signed(_) => Value::Signed(s >> b.min(63)),
                _ => Value::Unsigned(if b < 64 { a >> b } else { 0 }),
            }),
            Add => converted(a.wrapping_add(b)),
            Subtract => converted(a.wrapping_sub(b)),
            Multiply => converted(a.wrapping_mul(b)),
            Divide if b == 0 => None,
            Divide if signed => Some(Value::Signed(s.wrapping_div(t))),
            Divide => Some(Value::Unsigned(a / b)),
            // Operands are unsigned and the result is signed.
            Remainder => Some(Value::Signed(a.checked_rem(b)? as i64)),
        }
    }
}

/// Precedence of `+` and `-`.
const SUM: u8 = 9;

fn non_negative(value: Value, most: u64) -> Option<u64> {
    match value {
        Value::Signed(value) => u64::try_from(value).ok().filter(|&value| value <= most),
        Value::Unsigned(value) => Some(value).filter(|&value| value <= most),
        Value::Float(_) | Value::Float32(_) => None,
    }
}

impl<'a> Parser<'a> {
    /// Whether a constant expression, and nothing else, begins here: a sign counts, a parenthesis too.
    pub(super) fn at_constant(&self) -> bool {
        let byte = self.lexer.peek();
        is_digit(byte)
            || matches!(byte, b'-' | b'+' | b'~' | b'(')
            || (byte == b'.' && is_digit(self.lexer.peek_at(1)))
            || (byte == b'!' && (!begins_name(self.lexer.peek_at(1)) || self.lexer.name_ahead(1) == "WARP_SZ"))
            || self.lexer.peek_name() == "WARP_SZ"
    }

    /// Reads a constant expression.
    pub(super) fn constant(&mut self) -> Parsed<Value> {
        if is_digit(self.lexer.peek()) {
            let value = self.number()?;
            if matches!(self.lexer.peek(), b',' | b';' | b']' | b'}' | b')') {
                return Ok(value);
            }
            return self.conditional(Some(value));
        }
        self.conditional(None)
    }

    /// Reads a constant expression that is an integer; its bits.
    pub(super) fn integer(&mut self) -> Parsed<u64> {
        let start = self.lexer.at();
        match self.constant()?.bits() {
            Some(bits) => Ok(bits),
            None => Err(Fault::new(start, "an integer")),
        }
    }

    /// Reads an integer that is not negative and at most `most`.
    pub(super) fn count(&mut self, most: u64, expected: &str) -> Parsed<u64> {
        let start = self.lexer.at();
        if !self.at_constant() {
            return self.lexer.expected(expected);
        }
        let value = self.constant()?;
        non_negative(value, most).ok_or_else(|| Fault::new(start, expected))
    }

    /// Reads a count in angle brackets, in which `>` is no operator.
    pub(super) fn bracketed_count(&mut self, most: u64, expected: &str) -> Parsed<u64> {
        let start = self.lexer.at();
        if !self.at_constant() {
            return self.lexer.expected(expected);
        }
        let first = self.unary()?;
        let value = self.binary(first, SUM)?;
        non_negative(value, most).ok_or_else(|| Fault::new(start, expected))
    }

    /// Reads what is added to an address: a sum that goes on from `+` or `-`, which is next.
    pub(super) fn addend(&mut self) -> Parsed<i64> {
        let mut sum = 0_i64;
        loop {
            let start = self.lexer.at();
            let negative = match self.lexer.peek() {
                b'+' => false,
                b'-' => true,
                _ => return Ok(sum),
            };
            self.lexer.advance(1)?;
            let first = self.unary()?;
            let Some(term) = self.binary(first, SUM + 1)?.bits() else {
                return Err(Fault::new(start + 1, "an integer"));
            };
            sum = if negative { sum.wrapping_sub(term as i64) } else { sum.wrapping_add(term as i64) };
        }
    }

    /// `condition ? a : b`, or what stands without `?`, from its first value on where that has been read.
    fn conditional(&mut self, first: Option<Value>) -> Parsed<Value> {
        let start = self.lexer.at();
        let first = match first {
            Some(value) => value,
            None => self.unary()?,
        };
        let condition = self.binary(first, 1)?;
        if !self.lexer.eat(b'?')? {
            return Ok(condition);
        }
        let Some(holds) = condition.bits() else {
            return Err(Fault::new(start, "an integer before `?`"));
        };
        let yes = self.nested(|parser| parser.conditional(None))?;
        self.lexer.expect(b':', "`:` and the other value")?;
        let other = self.lexer.at();
        let no = self.nested(|parser| parser.conditional(None))?;
        if yes.is_float() != no.is_float() {
            return Err(Fault::new(other, "two integers or two floats on the sides of `:`"));
        }
        let unsigned = matches!(yes, Value::Unsigned(_)) || matches!(no, Value::Unsigned(_));
        match if holds != 0 { yes } else { no } {
            Value::Signed(value) if unsigned => Ok(Value::Unsigned(value as u64)),
            value => Ok(value),
        }
    }

    /// Operators that bind at least as tightly as `least`, behind `left`.
    fn binary(&mut self, mut left: Value, least: u8) -> Parsed<Value> {
        while let Some((operator, width)) = self.peek_operator() {
            if operator.precedence() < least {
                break;
            }
            let at = self.lexer.at();
            self.lexer.advance(width)?;
            let first = self.unary()?;
            let right = self.binary(first, operator.precedence() + 1)?;
            left = match operator.apply(left, right) {
                Some(value) => value,
                None if left.is_float() || right.is_float() => {
                    return Err(Fault::new(at, "an operator for floats").wide(width));
                }
                None => return Err(Fault::new(at, "a divisor that is not zero").wide(width)),
            };
        }
        Ok(left)
    }

    fn peek_operator(&self) -> Option<(Operator, usize)> {
        use Operator::*;
        Some(match (self.lexer.peek(), self.lexer.peek_at(1)) {
            (b'|', b'|') => (Or, 2),
            (b'&', b'&') => (And, 2),
            (b'=', b'=') => (Equal, 2),
            (b'!', b'=') => (NotEqual, 2),
            (b'<', b'=') => (LessEqual, 2),
            (b'>', b'=') => (GreaterEqual, 2),
            (b'<', b'<') => (ShiftLeft, 2),
            (b'>', b'>') => (ShiftRight, 2),
            (b'|', _) => (BitOr, 1),
            (b'^', _) => (BitXor, 1),
            (b'&', _) => (BitAnd, 1),
            (b'<', _) => (Less, 1),
            (b'>', _) => (Greater, 1),
            (b'+', _) => (Add, 1),
            (b'-', _) => (Subtract, 1),
            (b'*', _) => (Multiply, 1),
            (b'/', _) => (Divide, 1),
            (b'%', _) => (Remainder, 1),
            _ => return None,
        })
    }

    /// A value with what stands before it: signs, `!`, `~`, casts.
    fn unary(&mut self) -> Parsed<Value> {
        let at = self.lexer.at();
        let byte = self.lexer.peek();
        match byte {
            b'-' | b'+' | b'!' | b'~' => {
                self.lexer.advance(1)?;
                let value = self.nested(Self::unary)?;
                let bits = value.bits();
                match (byte, value) {
                    (b'+', value) => Ok(value),
                    (b'-', Value::Signed(value)) => Ok(Value::Signed(value.wrapping_neg())),
                    (b'-', Value::Unsigned(value)) => Ok(Value::Unsigned(value.wrapping_neg())),
                    (b'-', Value::Float(value)) => Ok(Value::Float(-value)),
                    (b'-', Value::Float32(bits)) => Ok(Value::Float32(bits ^ (1 << 31))),
                    _ => match bits {
                        Some(bits) if byte == b'!' => Ok(Value::Signed(i64::from(bits == 0))),
                        Some(bits) => Ok(Value::Unsigned(!bits)),
                        None => Err(Fault::new(at + 1, format!("an integer after `{}`", byte as char))),
                    },
                }
            }
            b'(' => {
                self.lexer.advance(1)?;
                let cast = self.lexer.peek_directive();
                if cast == "s64" || cast == "u64" {
                    self.lexer.take_directive(cast)?;
                    self.lexer.expect(b')', "`)` after the type of a cast")?;
                    let operand = self.lexer.at();
                    return match self.nested(Self::unary)?.bits() {
                        Some(bits) if cast == "s64" => Ok(Value::Signed(bits as i64)),
                        Some(bits) => Ok(Value::Unsigned(bits)),
                        None => Err(Fault::new(operand, "an integer after a cast")),
                    };
                }
                let value = self.nested(|parser| parser.conditional(None))?;
                self.lexer.expect(b')', "`)`")?;
                Ok(value)
            }
            _ if is_digit(byte) || (byte == b'.' && is_digit(self.lexer.peek_at(1))) => self.number(),
            _ if self.lexer.peek_name() == "WARP_SZ" => {
                self.lexer.name("WARP_SZ")?;
                Ok(Value::Signed(WARP_SIZE))
            }
            _ => self.lexer.expected("a number"),
        }
    }
}
