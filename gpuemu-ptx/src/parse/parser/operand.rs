//! Operands of instructions.

use std::ops::Range;

use super::Parser;
use crate::parse::Operand;
use crate::parse::fault::{Fault, Parsed};
use crate::parse::lexer::begins_name;

impl<'a> Parser<'a> {
    /// Reads the operands of an instruction, up to its end.
    pub(super) fn operands(&mut self) -> Parsed<Range<u32>> {
        let base = self.pending.len();
        if self.lexer.peek() != b';' {
            if !self.at_operand() {
                return self.missing("`;` or an operand");
            }
            loop {
                let operand = self.operand()?;
                self.pending.push(operand);
                self.has_room::<Operand<'_>>(self.pending.len())?;
                if !self.lexer.eat(b',')? {
                    break;
                }
            }
        }
        self.settle(base)
    }

    /// Reads the operands of a call, up to its end, in the order that the tree gives.
    pub(super) fn call_operands(&mut self) -> Parsed<Range<u32>> {
        let base = self.pending.len();
        if self.lexer.peek() == b'(' {
            let returns = self.list()?;
            self.pending.push(returns);
            self.lexer.expect(b',', "`,` and the function to call")?;
        } else if self.lexer.peek_name() == "_" {
            // `call _, f, (a)`: nothing comes back.
            self.lexer.advance(1)?;
            self.lexer.expect(b',', "`,` and the function to call")?;
            self.pending.push(Operand::List(0..0));
        } else {
            self.pending.push(Operand::List(0..0));
        }
        if self.lexer.peek_name() == "_" {
            return self.lexer.expected("the function to call");
        }
        let callee = self.lexer.name("the function to call")?;
        self.pending.push(Operand::Name(callee));
        let mut more = self.lexer.eat(b',')?;
        if more && self.lexer.peek() == b'(' {
            let arguments = self.list()?;
            self.pending.push(arguments);
            more = self.lexer.eat(b',')?;
        } else {
            self.pending.push(Operand::List(0..0));
        }
        if more {
            let prototype = self.lexer.name("the arguments, or the prototype or targets of the call")?;
            self.pending.push(Operand::Name(prototype));
        }
        self.settle(base)
    }

    /// Moves what is pending from `base` on among the operands of the function.
    fn settle(&mut self, base: usize) -> Parsed<Range<u32>> {
        let start = self.operands.len() as u32;
        self.take::<Operand<'_>>(self.pending.len() - base)?;
        self.operands.extend(self.pending.drain(base..));
        Ok(start..self.operands.len() as u32)
    }

    /// Whether a name that is no constant begins `ahead` of the cursor.
    #[inline]
    fn at_symbol(&self, ahead: usize) -> bool {
        let byte = self.lexer.peek_at(ahead);
        begins_name(byte) && !(byte == b'W' && self.lexer.name_ahead(ahead) == "WARP_SZ")
    }

    /// Whether an operand can begin here.
    #[inline]
    fn at_operand(&self) -> bool {
        begins_name(self.lexer.peek()) || matches!(self.lexer.peek(), b'[' | b'{') || self.at_constant()
    }

    #[inline]
    fn operand(&mut self) -> Parsed<Operand<'a>> {
        if self.at_symbol(0) {
            let name = self.lexer.dotted_name("an operand")?;
            return match self.lexer.peek() {
                b',' | b';' => Ok(Operand::Name(name)),
                next => self.after_name(name, next),
            };
        }
        let byte = self.lexer.peek();
        match byte {
            b'[' => self.address(),
            b'{' => {
                let elements = self.nested(Self::vector)?;
                if !self.lexer.eat(b'|')? {
                    return Ok(Operand::Vector(elements));
                }
                Ok(Operand::VectorPair(elements, self.lexer.name("a predicate after `|`")?))
            }
            b'!' | b'-' if self.at_symbol(self.lexer.width_with_blanks()) => {
                self.lexer.advance(1)?;
                let name = self.lexer.dotted_name("a register")?;
                Ok(if byte == b'!' { Operand::Negated(name) } else { Operand::Minus(name) })
            }
            _ if self.at_constant() => Ok(self.constant()?.operand()),
            _ => self.lexer.expected("an operand"),
        }
    }

    /// What follows a name that is an operand or begins one.
    fn after_name(&mut self, name: &'a str, next: u8) -> Parsed<Operand<'a>> {
        match next {
            b'|' => {
                self.lexer.advance(1)?;
                Ok(Operand::Pair(name, self.lexer.name("a register after `|`")?))
            }
            b'+' | b'-' => Ok(Operand::Sum { symbol: name, addend: self.addend()? }),
            b'[' => {
                self.lexer.advance(1)?;
                let base = self.pending.len();
                self.pending.push(Operand::Name(name));
                let index = if self.at_constant() {
                    Operand::Integer { bits: self.integer()?, unsigned: false }
                } else {
                    let register = self.lexer.dotted_name("the index of an element")?;
                    match self.lexer.peek() {
                        b'+' | b'-' => Operand::Sum { symbol: register, addend: self.addend()? },
                        _ => Operand::Name(register),
                    }
                };
                self.pending.push(index);
                self.lexer.expect(b']', "`]` after the index of an element")?;
                self.settle(base).map(Operand::Element)
            }
            // Whoever called knows best what may follow.
            _ => Ok(Operand::Name(name)),
        }
    }

    /// `{a, b}`, its brace being next.
    fn vector(&mut self) -> Parsed<Range<u32>> {
        self.lexer.advance(1)?;
        self.group(b'}', "`,` or `}` of a vector")
    }

    /// `(a, b)` of a call, its parenthesis being next.
    fn list(&mut self) -> Parsed<Operand<'a>> {
        self.lexer.advance(1)?;
        if self.lexer.eat(b')')? {
            return Ok(Operand::List(0..0));
        }
        Ok(Operand::List(self.group(b')', "`,` or `)` of a call")?))
    }

    /// Operands, one or more, up to `close`.
    fn group(&mut self, close: u8, expected: &str) -> Parsed<Range<u32>> {
        let base = self.pending.len();
        loop {
            let operand = self.operand()?;
            self.pending.push(operand);
            self.has_room::<Operand<'_>>(self.pending.len())?;
            if self.lexer.eat(b',')? {
                continue;
            }
            self.lexer.expect(close, expected)?;
            return self.settle(base);
        }
    }

    /// `[base+offset]`, `[base, {x, y}]`.
    fn address(&mut self) -> Parsed<Operand<'a>> {
        self.lexer.advance(1)?;
        let address = if self.at_symbol(0) {
            let base = self.lexer.dotted_name("an address")?;
            match self.lexer.peek() {
                b']' | b',' => Operand::Address { base: Some(base), offset: 0 },
                b'+' | b'-' => Operand::Address { base: Some(base), offset: self.addend()? },
                _ => return self.lexer.expected("`]`, `+` or `,` after the base of an address"),
            }
        } else if self.at_constant() {
            let start = self.lexer.at();
            let value = self.constant()?.operand();
            let Operand::Integer { bits, .. } = value else {
                return Err(Fault::new(start, "an integer as an address"));
            };
            Operand::Address { base: None, offset: bits as i64 }
        } else {
            return self.lexer.expected("an address");
        };
        if self.lexer.peek() != b',' {
            self.lexer.expect(b']', "`]` of an address")?;
            return match address {
                Operand::Address { base: Some(base), offset } if self.lexer.eat_directive("unified")? => {
                    Ok(Operand::Unified { base, offset })
                }
                address => Ok(address),
            };
        }
        let base = self.pending.len();
        self.pending.push(address);
        while self.lexer.eat(b',')? {
            let operand = self.nested(Self::operand)?;
            self.pending.push(operand);
        }
        self.lexer.expect(b']', "`,` or `]` of an address")?;
        self.settle(base).map(Operand::Indexed)
    }
}
