//! Functions and prototypes.

use super::Parser;
use crate::parse::fault::Parsed;
use crate::parse::lexer::is_digit;
use crate::parse::{Body, Directive, Function, Linkage, Offset, Prototype};

/// What may stand between the parameters of a function and its body, without numbers.
const FLAGS: [&str; 7] =
    ["attribute", "blocksareclusters", "explicitcluster", "language", "noreturn", "pragma", "unique"];

/// What may stand there with numbers.
const LIMITS: [&str; 9] = [
    "abi_preserve",
    "abi_preserve_control",
    "maxclusterrank",
    "maxnctapersm",
    "maxnreg",
    "maxntid",
    "minnctapersm",
    "reqnctapercluster",
    "reqntid",
];

impl<'a> Parser<'a> {
    /// Reads a function from behind `.entry` or `.func`.
    pub(super) fn function(&mut self, offset: Offset, linkage: Linkage, entry: bool) -> Parsed<Function<'a>> {
        let mut directives = Vec::new();
        self.directives(&mut directives)?;
        let returns = if !entry && self.lexer.peek() == b'(' { self.parameters()? } else { Vec::new() };
        let name = self.lexer.name("the name of a function")?;
        let parameters = if self.lexer.peek() == b'(' { self.parameters()? } else { Vec::new() };
        self.directives(&mut directives)?;
        let body = match self.lexer.peek() {
            b';' => {
                self.lexer.advance(1)?;
                None
            }
            b'{' => Some(self.body()?),
            _ => return self.lexer.expected("`{` and the body of a function, `;`, or a directive such as `.maxntid`"),
        };
        Ok(Function { offset, linkage, entry, name, returns, parameters, directives, body })
    }

    /// Reads `(returns) _ (parameters) .noreturn` from behind `.callprototype`.
    pub(super) fn prototype(&mut self) -> Parsed<Prototype<'a>> {
        let returns = if self.lexer.peek() == b'(' { self.parameters()? } else { Vec::new() };
        self.lexer.name("`_`, the place of a name in a prototype")?;
        let parameters = if self.lexer.peek() == b'(' { self.parameters()? } else { Vec::new() };
        let mut directives = Vec::new();
        self.directives(&mut directives)?;
        self.semicolon("a prototype")?;
        Ok(Prototype { returns, parameters, directives })
    }

    fn directives(&mut self, directives: &mut Vec<Directive<'a>>) -> Parsed<()> {
        loop {
            let name = self.lexer.peek_directive();
            if name.is_empty() {
                return Ok(());
            }
            let limit = LIMITS.contains(&name);
            if !limit && !FLAGS.contains(&name) {
                return self.lexer.expected("a directive of a function (`.maxntid`, `.reqntid`, `.noreturn`, ...)");
            }
            self.lexer.take_directive(name)?;
            match name {
                "pragma" => {
                    for text in self.pragma()? {
                        directives.push(Directive { name, numbers: Vec::new(), text: Some(text) });
                    }
                }
                "attribute" => {
                    let text = self.lexer.enclosed(b'(', b')', "`(` after `.attribute`")?.trim();
                    directives.push(Directive { name, numbers: Vec::new(), text: Some(text) });
                }
                _ => {
                    let text = match self.lexer.peek() {
                        b'"' => Some(self.lexer.string("a string")?),
                        _ => None,
                    };
                    let numbered = limit || is_digit(self.lexer.peek()) || (text.is_some() && self.lexer.eat(b',')?);
                    let numbers = match numbered {
                        true => self.separated(|parser| parser.count(u64::MAX, "a number"))?,
                        false => Vec::new(),
                    };
                    directives.push(Directive { name, numbers, text });
                }
            }
        }
    }

    /// `{ ... }`, the brace being next.
    fn body(&mut self) -> Parsed<Body<'a>> {
        let mut statements = self.statements()?;
        let mut operands = std::mem::take(&mut self.operands);
        // What the vectors grew ahead of their needs would stay for as long as the tree does.
        statements.shrink_to_fit();
        operands.shrink_to_fit();
        Ok(Body { statements, operands })
    }
}
