//! From text to a [`Module`]: the doors, and what all parts of the parser share.

mod constant;
mod declaration;
mod function;
mod module;
mod number;
mod operand;
mod statement;

use super::fault::{Fault, Parsed, known_binary, not_utf8};
use super::lexer::Lexer;
use super::{Module, Operand};
use crate::error::Error;

/// How deep parentheses, initial values and vectors may lie inside each other. Only these are read by recursion; blocks
/// of statements may lie as deep as they like.
const DEPTH: u32 = 64;

/// Reads a module.
///
/// One leading byte order mark and trailing NUL bytes, as `nvrtcGetPTX` leaves, are no part of the text.
///
/// # Errors
///
/// [`Error::Syntax`] at the first place where the text is not PTX; [`Error::TooLong`] from 4 GiB on.
pub fn parse(text: &str) -> Result<Module<'_>, Error> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::TooLong { bytes: text.len() as u64 });
    }
    let end = text.trim_end_matches('\0');
    Parser::new(end).and_then(Parser::module).map_err(|fault| fault.explain(end))
}

/// Reads a module from the bytes of a file.
///
/// # Errors
///
/// As [`parse`]; [`Error::Syntax`] at the first byte that is not UTF-8.
pub fn parse_bytes(bytes: &[u8]) -> Result<Module<'_>, Error> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(Error::TooLong { bytes: bytes.len() as u64 });
    }
    if let Some(error) = known_binary(bytes) {
        return Err(error);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => Err(not_utf8(bytes, error.valid_up_to())),
    }
}

/// The parser: a cursor, and the operands of the function that it is in.
struct Parser<'a> {
    lexer: Lexer<'a>,
    /// Operands of the function so far.
    operands: Vec<Operand<'a>>,
    /// Operands of lists that are not complete yet.
    pending: Vec<Operand<'a>>,
    /// How deep the recursion is.
    depth: u32,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Parser<'a>> {
        Ok(Parser { lexer: Lexer::new(text)?, operands: Vec::new(), pending: Vec::new(), depth: 0 })
    }

    /// Reads something that may lie inside itself.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH {
            return self.lexer.expected(format!("at most {DEPTH} of these inside each other"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Reads `a, b, c`, one or more.
    fn separated<T>(&mut self, mut read: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut values = vec![read(self)?];
        while self.lexer.eat(b',')? {
            values.push(read(self)?);
        }
        Ok(values)
    }

    fn semicolon(&mut self, after: &str) -> Parsed<()> {
        if self.lexer.peek() != b';' {
            return self.missing(format!("`;` after {after}"));
        }
        self.lexer.advance(1)
    }

    /// "expected ..." behind the token before.
    #[cold]
    fn missing<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        Err(Fault::new(self.lexer.at(), expected).missing())
    }
}
