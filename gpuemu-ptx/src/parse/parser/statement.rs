//! Statements of a function.

use super::Parser;
use super::declaration::{begins_declaration, linkage};
use crate::parse::fault::{Fault, Parsed};
use crate::parse::lexer::begins_name;
use crate::parse::{Guard, Inlined, Instruction, Label, Linkage, Location, Statement, Variable};

impl<'a> Parser<'a> {
    /// Reads the statements of a body, its brace being next, and the brace that closes it.
    pub(super) fn statements(&mut self) -> Parsed<Vec<Statement<'a>>> {
        let mut statements = Vec::new();
        // Where the braces that are open stand; the first is the function's own.
        let mut open = vec![self.lexer.offset()];
        self.lexer.advance(1)?;
        loop {
            let byte = self.lexer.peek();
            if begins_name(byte) {
                let statement = self.label_or_instruction()?;
                self.take::<Statement<'_>>(1)?;
                statements.push(statement);
                continue;
            }
            match byte {
                b'@' => {
                    let offset = self.lexer.offset();
                    let guard = self.guard()?;
                    let statement = self.instruction(offset, Some(guard))?;
                    self.take::<Statement<'_>>(1)?;
                    statements.push(statement);
                }
                b'.' => self.directive(&mut statements)?,
                b'{' => {
                    open.push(self.lexer.offset());
                    self.lexer.advance(1)?;
                    // Its place among the braces that are open, too.
                    self.take::<(Statement<'_>, u32)>(1)?;
                    statements.push(Statement::Open);
                }
                b'}' => {
                    open.pop();
                    self.lexer.advance(1)?;
                    if open.is_empty() {
                        return Ok(statements);
                    }
                    self.take::<Statement<'_>>(1)?;
                    statements.push(Statement::Close);
                }
                // Inline assembly leaves empty statements behind.
                b';' => self.lexer.advance(1)?,
                _ if self.lexer.is_at_end() => {
                    let innermost = open.last().copied().unwrap_or(0) as usize;
                    return Err(Fault::new(self.lexer.at(), "`}`").opened(innermost, b'{'));
                }
                _ => return self.lexer.expected("an instruction, a label, a directive or `}`"),
            }
        }
    }

    #[inline]
    fn label_or_instruction(&mut self) -> Parsed<Statement<'a>> {
        let offset = self.lexer.offset();
        let (word, end) = self.lexer.peek_word();
        if let Some(length) = self.lexer.label_length(word.len()) {
            self.lexer.advance(length)?;
            return Ok(Statement::Label(Label { offset, name: word }));
        }
        self.instruction_of(offset, None, end)
    }

    fn instruction(&mut self, offset: u32, guard: Option<Guard<'a>>) -> Parsed<Statement<'a>> {
        if !begins_name(self.lexer.peek()) {
            return self.lexer.expected("an instruction after its predicate");
        }
        let (_, end) = self.lexer.peek_word();
        self.instruction_of(offset, guard, end)
    }

    /// An instruction, the first word of which ends at `end`.
    #[inline]
    fn instruction_of(&mut self, offset: u32, guard: Option<Guard<'a>>, end: usize) -> Parsed<Statement<'a>> {
        if !self.lexer.peek().is_ascii_lowercase() {
            return self.lexer.expected("an instruction, a label, a directive or `}`");
        }
        let opcode = self.lexer.opcode(end)?;
        let call = opcode
            .strip_prefix("call")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        let operands = if call { self.call_operands()? } else { self.operands()? };
        if self.lexer.peek() != b';' {
            return self.missing("`,` or `;` after an operand");
        }
        self.lexer.advance(1)?;
        Ok(Statement::Instruction(Instruction { offset, guard, opcode, operands }))
    }

    /// `@p`, `@!p`.
    fn guard(&mut self) -> Parsed<Guard<'a>> {
        self.lexer.advance(1)?;
        let negated = self.lexer.eat(b'!')?;
        let register = self.lexer.name("a predicate after `@`")?;
        Ok(Guard { register, negated })
    }

    fn directive(&mut self, statements: &mut Vec<Statement<'a>>) -> Parsed<()> {
        let offset = self.lexer.offset();
        let word = self.lexer.peek_directive();
        let linkage = linkage(word);
        if linkage != Linkage::Local || begins_declaration(word) {
            if linkage != Linkage::Local {
                self.lexer.take_directive(word)?;
            }
            return self.variables(offset, linkage, |parser, variable| {
                parser.take::<(Statement<'_>, Variable<'_>)>(1)?;
                statements.push(Statement::Variable(Box::new(variable)));
                Ok(())
            });
        }
        let statement = match word {
            "loc" => {
                let assembly = self.lexer.in_assembly();
                self.lexer.take_directive(word)?;
                let location = self.location()?;
                if assembly {
                    // LLVM counts the lines of the assembly on from that of the statement which it stands in, as if they
                    // were lines of the source: the place before it is right for all of it.
                    return Ok(());
                }
                self.take::<Location<'_>>(1)?;
                Statement::Location(Box::new(location))
            }
            "pragma" => {
                self.lexer.take_directive(word)?;
                Statement::Pragma(self.pragma()?)
            }
            "branchtargets" => {
                self.lexer.take_directive(word)?;
                let targets = self.separated(Self::branch_target)?;
                self.semicolon("branch targets")?;
                Statement::BranchTargets(targets)
            }
            "calltargets" => {
                self.lexer.take_directive(word)?;
                let targets = self.separated(|parser| parser.lexer.name("a function"))?;
                self.semicolon("call targets")?;
                Statement::CallTargets(targets)
            }
            "callprototype" => {
                self.lexer.take_directive(word)?;
                Statement::CallPrototype(Box::new(self.prototype()?))
            }
            _ => return self.lexer.expected("a directive of a function's body (`.reg`, `.shared`, `.loc`, ...)"),
        };
        self.take::<Statement<'_>>(1)?;
        statements.push(statement);
        Ok(())
    }

    /// `name`, or `name<3>` for `name0` to `name2`, which is kept as written.
    fn branch_target(&mut self) -> Parsed<&'a str> {
        let start = self.lexer.at();
        let name = self.lexer.name("a label")?;
        if !self.lexer.eat(b'<')? {
            return Ok(name);
        }
        self.bracketed_count(u64::from(u32::MAX), "how many labels there are")?;
        let end = self.lexer.at() + 1;
        self.lexer.expect(b'>', "`>` after the number of labels")?;
        Ok(self.lexer.slice(start, end))
    }

    /// `1 23 5, function_name $L__info_string0+4, inlined_at 1 30 6`.
    fn location(&mut self) -> Parsed<Location<'a>> {
        let (file, line, column) = self.place()?;
        let mut inlined = None;
        if self.lexer.eat(b',')? {
            if self.lexer.peek_name() != "function_name" {
                return self.lexer.expected("`function_name`");
            }
            self.lexer.name("`function_name`")?;
            let function = self.lexer.name("a label of a debug section")?;
            let start = self.lexer.at();
            let Ok(addend) = u32::try_from(self.addend()?) else {
                return Err(Fault::new(start, "an offset of less than 4 GiB"));
            };
            if !self.lexer.eat(b',')? {
                return self.missing("`,` and `inlined_at`");
            }
            if self.lexer.peek_name() != "inlined_at" {
                return self.lexer.expected("`inlined_at`");
            }
            self.lexer.name("`inlined_at`")?;
            let (file, line, column) = self.place()?;
            inlined = Some(Inlined { function, addend, file, line, column });
        }
        Ok(Location { file, line, column, inlined })
    }

    /// `file line column`.
    fn place(&mut self) -> Parsed<(u32, u32, u32)> {
        Ok((self.plain("the number of a file")?, self.plain("a line")?, self.plain("a column")?))
    }

    /// A decimal number of up to 32 bits, in a place where `1 -2` is two numbers.
    fn plain(&mut self, expected: &str) -> Parsed<u32> {
        let mut digits = 0;
        let mut value = 0_u32;
        loop {
            let byte = self.lexer.peek_at(digits);
            if !byte.is_ascii_digit() {
                break;
            }
            match value.checked_mul(10).and_then(|value| value.checked_add(u32::from(byte - b'0'))) {
                Some(next) => value = next,
                None => return self.lexer.expected(format!("{expected}, a number of at most 32 bits")),
            }
            digits += 1;
        }
        if digits == 0 {
            return self.missing(expected);
        }
        self.lexer.advance(digits)?;
        Ok(value)
    }
}
