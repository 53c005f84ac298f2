//! Literal numbers.

use super::Parser;
use super::constant::Value;
use crate::parse::fault::{Fault, Parsed};
use crate::parse::lexer::{continues_name, is_digit};

impl<'a> Parser<'a> {
    /// Takes a number: `12`, `0x1F`, `017`, `0b101`, each with or without `U`; `0f3F800000`, `0d3FF0000000000000`;
    /// `1.5`, `1e-5`.
    #[inline]
    pub(super) fn number(&mut self) -> Parsed<Value> {
        // Most numbers are short and decimal.
        let mut digits = 0;
        let mut value = 0_i64;
        while digits < 18 {
            let byte = self.lexer.peek_at(digits);
            if !is_digit(byte) {
                break;
            }
            value = value * 10 + i64::from(byte - b'0');
            digits += 1;
        }
        let next = self.lexer.peek_at(digits);
        let octal = digits > 1 && self.lexer.peek() == b'0';
        if digits > 0 && !octal && !continues_name(next) && next != b'.' {
            self.lexer.advance(digits)?;
            return Ok(Value::Signed(value));
        }
        self.other_number()
    }

    fn other_number(&mut self) -> Parsed<Value> {
        let start = self.lexer.at();
        let mut length = 0;
        while continues_name(self.lexer.peek_at(length)) {
            length += 1;
        }
        let word = self.lexer.slice(start, start + length);
        let prefix = word.as_bytes().get(..2).unwrap_or_default();
        let (radix, digits) = match prefix {
            b"0f" | b"0F" => {
                let bits = self.bits(word, 8, "8 hexadecimal digits of a float32 after `0f`")?;
                return Ok(Value::Float32(bits as u32));
            }
            b"0d" | b"0D" => {
                let bits = self.bits(word, 16, "16 hexadecimal digits of a float64 after `0d`")?;
                return Ok(Value::Float(f64::from_bits(bits)));
            }
            b"0x" | b"0X" => (16, &word[2..]),
            b"0b" | b"0B" => (2, &word[2..]),
            _ if self.is_decimal_float(word) => return self.decimal_float(word),
            [b'0', b'0'..=b'9'] => (8, &word[1..]),
            _ => (10, word),
        };
        let (digits, unsigned) = match digits.strip_suffix('U') {
            Some(digits) => (digits, true),
            None => (digits, false),
        };
        if digits.is_empty() || !digits.bytes().all(|digit| (digit as char).is_digit(radix)) {
            return self.lexer.expected("a number");
        }
        let Ok(bits) = u64::from_str_radix(digits, radix) else {
            return self.lexer.expected("an integer of at most 64 bits");
        };
        self.lexer.advance(length)?;
        Ok(if unsigned || bits > i64::MAX as u64 { Value::Unsigned(bits) } else { Value::Signed(bits as i64) })
    }

    /// The digits of `word` behind its prefix, which are `count`.
    fn bits(&mut self, word: &str, count: usize, expected: &str) -> Parsed<u64> {
        let digits = &word[2..];
        if digits.len() != count || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return self.lexer.expected(expected);
        }
        self.lexer.advance(word.len())?;
        Ok(u64::from_str_radix(digits, 16).unwrap_or_default())
    }

    /// Whether `word`, which is next, is how a decimal number with a point or an exponent begins.
    fn is_decimal_float(&self, word: &str) -> bool {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        let point = digits == word.len() && self.lexer.peek_at(digits) == b'.';
        point || (digits > 0 && matches!(word.as_bytes().get(digits), Some(b'e' | b'E')))
    }

    fn decimal_float(&mut self, word: &str) -> Parsed<Value> {
        let start = self.lexer.at();
        let mut length = word.bytes().take_while(u8::is_ascii_digit).count();
        let digits = |from: usize| (from..).take_while(|&ahead| is_digit(self.lexer.peek_at(ahead))).count();
        if self.lexer.peek_at(length) == b'.' {
            length += 1;
            length += digits(length);
        }
        if matches!(self.lexer.peek_at(length), b'e' | b'E') {
            let sign = usize::from(matches!(self.lexer.peek_at(length + 1), b'+' | b'-'));
            let exponent = digits(length + 1 + sign);
            if exponent == 0 {
                return Err(Fault::new(start, "the digits of an exponent").wide(length + 1 + sign));
            }
            length += 1 + sign + exponent;
        }
        let text = self.lexer.slice(start, start + length);
        match text.parse::<f64>() {
            Ok(value) if value.is_infinite() => self.lexer.expected("a number within the range of float64"),
            Ok(value) if !continues_name(self.lexer.peek_at(length)) => {
                self.lexer.advance(length)?;
                Ok(Value::Float(value))
            }
            _ => self.lexer.expected("a number"),
        }
    }
}
