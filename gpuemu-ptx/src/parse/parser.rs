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

/// Bytes that the syntax tree of any text may take.
const TREE: usize = 128 << 20;

/// Bytes that it may take besides for every byte of the text: twice what compilers' modules take. Texts made to take
/// more, `{}{}{}` without end, are refused before they fill the memory.
const TREE_A_BYTE: usize = 12;

/// Reads a module.
///
/// One leading byte order mark and trailing NUL bytes, as `nvrtcGetPTX` leaves, are no part of the text.
///
/// # Errors
///
/// [`Error::Syntax`] at the first place where the text is not PTX, or where its tree would take more than 128 MiB and
/// twelve times the text; [`Error::TooLong`] from 4 GiB on.
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
    /// Bytes that the tree may still take.
    room: usize,
    /// Bytes that it might take at the beginning.
    space: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Parser<'a>> {
        let space = TREE.saturating_add(text.len().saturating_mul(TREE_A_BYTE));
        let lexer = Lexer::new(text)?;
        Ok(Parser { lexer, operands: Vec::new(), pending: Vec::new(), depth: 0, room: space, space })
    }

    /// Takes room for `count` more parts of the tree.
    #[inline]
    fn take<T>(&mut self, count: usize) -> Parsed<()> {
        match self.room.checked_sub(count * size_of::<T>()) {
            Some(room) => {
                self.room = room;
                Ok(())
            }
            None => self.no_room(),
        }
    }

    /// Looks whether `count` more parts of the tree would have room.
    #[inline]
    fn has_room<T>(&self, count: usize) -> Parsed<()> {
        if count * size_of::<T>() <= self.room { Ok(()) } else { self.no_room() }
    }

    #[cold]
    fn no_room(&self) -> Parsed<()> {
        self.lexer.expected(format!("fewer parts before this: the tree of the text passes {} MiB", self.space >> 20))
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
        self.take::<T>(1)?;
        while self.lexer.eat(b',')? {
            values.push(read(self)?);
            self.take::<T>(1)?;
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
