//! Constant expressions, evaluated by the rules of the PTX ISA, section "Constant Expressions": integers have 64 bits,
//! signed unless written otherwise or too large; two operands are unsigned if one is; floats are float64, and mix with
//! no integer. Where the ISA is silent (how far a shift goes) or ptxas does not follow it (the sign of a remainder),
//! ptxas 12.9 is followed: its constants are what runs.

use super::Parser;
use crate::parse::Operand;
use crate::parse::fault::{Fault, Parsed};
use crate::parse::lexer::{continues_name, is_digit};

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
    /// The bits of a literal `0f...`, which no operator takes.
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

    fn truth(holds: bool) -> Value {
        Value::Signed(i64::from(holds))
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

    /// # Errors
    ///
    /// What is expected in place of the operator or of what is around it.
    fn apply(self, left: Value, right: Value) -> Result<Value, &'static str> {
        match (left, right) {
            (Value::Float32(_), _) | (_, Value::Float32(_)) => Err(FLOAT32),
            (Value::Float(a), Value::Float(b)) => self.apply_to_floats(a, b),
            (Value::Float(_), _) | (_, Value::Float(_)) => Err("two integers or two floats around an operator"),
            (Value::Signed(a), Value::Signed(b)) => self.apply_to_integers(a as u64, b as u64, true, true),
            (Value::Signed(a), Value::Unsigned(b)) => self.apply_to_integers(a as u64, b, true, false),
            (Value::Unsigned(a), Value::Signed(b)) => self.apply_to_integers(a, b as u64, false, true),
            (Value::Unsigned(a), Value::Unsigned(b)) => self.apply_to_integers(a, b, false, false),
        }
    }

    fn apply_to_floats(self, a: f64, b: f64) -> Result<Value, &'static str> {
        use Operator::*;
        match self {
            Add => Ok(Value::Float(a + b)),
            Subtract => Ok(Value::Float(a - b)),
            Multiply => Ok(Value::Float(a * b)),
            Divide if b == 0.0 => Err(ZERO),
            Divide => Ok(Value::Float(a / b)),
            Less => Ok(Value::truth(a < b)),
            LessEqual => Ok(Value::truth(a <= b)),
            Greater => Ok(Value::truth(a > b)),
            GreaterEqual => Ok(Value::truth(a >= b)),
            Equal => Ok(Value::truth(a == b)),
            NotEqual => Ok(Value::truth(a != b)),
            Or | And | BitOr | BitXor | BitAnd | ShiftLeft | ShiftRight | Remainder => Err("an operator for floats"),
        }
    }

    fn apply_to_integers(self, a: u64, b: u64, left: bool, right: bool) -> Result<Value, &'static str> {
        use Operator::*;
        let typed = |bits: u64, signed: bool| if signed { Value::Signed(bits as i64) } else { Value::Unsigned(bits) };
        let signed = left && right;
        let (s, t) = (a as i64, b as i64);
        let ordering = if signed { s.cmp(&t) } else { a.cmp(&b) };
        Ok(match self {
            Or => Value::truth(a != 0 || b != 0),
            And => Value::truth(a != 0 && b != 0),
            BitOr => typed(a | b, signed),
            BitXor => typed(a ^ b, signed),
            BitAnd => typed(a & b, signed),
            Equal => Value::truth(a == b),
            NotEqual => Value::truth(a != b),
            Less => Value::truth(ordering.is_lt()),
            LessEqual => Value::truth(ordering.is_le()),
            Greater => Value::truth(ordering.is_gt()),
            GreaterEqual => Value::truth(ordering.is_ge()),
            // A shift has the type of its first operand, and goes as far as the low six bits of the second say.
            ShiftLeft => typed(a.wrapping_shl(b as u32), left),
            ShiftRight if left => Value::Signed(s.wrapping_shr(b as u32)),
            ShiftRight => Value::Unsigned(a.wrapping_shr(b as u32)),
            Add => typed(a.wrapping_add(b), signed),
            Subtract => typed(a.wrapping_sub(b), signed),
            Multiply => typed(a.wrapping_mul(b), signed),
            Divide | Remainder if b == 0 => return Err(ZERO),
            Divide if signed => Value::Signed(s.wrapping_div(t)),
            Divide => Value::Unsigned(a / b),
            Remainder => Value::Unsigned(a % b),
        })
    }
}

/// What is expected of an operator beside `0f...`.
const FLOAT32: &str = "no operator (a float32 `0f...` takes none)";

/// What is expected of a divisor.
const ZERO: &str = "a divisor that is not zero";

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
            || matches!(byte, b'-' | b'+' | b'~' | b'!' | b'(')
            || (byte == b'.' && is_digit(self.lexer.peek_at(1)))
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
            left = operator.apply(left, right).map_err(|expected| Fault::new(at, expected).wide(width))?;
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
            // `5 %r1` lacks a comma.
            (b'%', next) if !continues_name(next) => (Remainder, 1),
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
                    _ => match bits {
                        Some(bits) if byte == b'!' => Ok(Value::Signed(i64::from(bits == 0))),
                        Some(bits) => Ok(Value::Unsigned(!bits)),
                        None if byte == b'-' => Err(Fault::new(at, FLOAT32).wide(1)),
                        None => Err(Fault::new(at, "an operator for floats").wide(1)),
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
