//! What stands at the top level of a module.

use super::Parser;
use super::declaration::{begins_declaration, linkage};
use crate::parse::fault::{Fault, Parsed};
use crate::parse::{File, Item, Linkage, Module, Section};

impl<'a> Parser<'a> {
    pub(super) fn module(mut self) -> Parsed<Module<'a>> {
        if !self.lexer.eat_directive("version")? {
            return self.lexer.expected("`.version`, with which a PTX module begins");
        }
        let version = self.version()?;
        if self.lexer.peek_directive() != "target" {
            return self.lexer.expected("`.target` after `.version`");
        }
        let mut module = Module { version, targets: Vec::new(), address_size: 32, items: Vec::new() };
        while !self.lexer.is_at_end() {
            self.item(&mut module)?;
        }
        Ok(module)
    }

    /// `8.7`, which looks like a float and is none.
    fn version(&mut self) -> Parsed<(u16, u16)> {
        let start = self.lexer.at();
        let digits = |from: usize| {
            let count = (from..).take_while(|&ahead| self.lexer.peek_at(ahead).is_ascii_digit()).count();
            self.lexer.slice(start + from, start + from + count)
        };
        let major = digits(0);
        let point = self.lexer.peek_at(major.len()) == b'.';
        let minor = if point { digits(major.len() + 1) } else { "" };
        let (Ok(major_number), Ok(minor_number)) = (major.parse(), minor.parse()) else {
            return self.lexer.expected("a version of PTX, such as `8.7`");
        };
        self.lexer.advance(major.len() + 1 + minor.len())?;
        Ok((major_number, minor_number))
    }

    fn item(&mut self, module: &mut Module<'a>) -> Parsed<()> {
        let offset = self.lexer.offset();
        let word = self.lexer.peek_directive();
        let linkage = linkage(word);
        if linkage != Linkage::Local {
            self.lexer.take_directive(word)?;
            return self.declared_item(module, offset, linkage);
        }
        match word {
            "target" => {
                self.lexer.take_directive(word)?;
                let targets = self.separated(|parser| parser.lexer.name("an architecture, such as `sm_90`"))?;
                module.targets.extend(targets);
            }
            "address_size" => {
                self.lexer.take_directive(word)?;
                let start = self.lexer.at();
                module.address_size = match self.count(64, "32 or 64")? {
                    size @ (32 | 64) => size as u8,
                    _ => return Err(Fault::new(start, "32 or 64")),
                };
            }
            "file" => {
                self.lexer.take_directive(word)?;
                let file = self.file()?;
                self.take::<Item<'_>>(1)?;
                module.items.push(Item::File(file));
            }
            "section" => {
                self.lexer.take_directive(word)?;
                // `.debug_info` with its dot, or a name.
                let start = self.lexer.at();
                let dot = usize::from(self.lexer.peek() == b'.');
                let name = self.lexer.slice(start, start + dot + self.lexer.name_ahead(dot).len());
                if name.len() == dot {
                    return self.lexer.expected("the name of a section");
                }
                self.lexer.advance(name.len())?;
                let body = self.lexer.enclosed(b'{', b'}', "`{` and the contents of a section")?;
                self.take::<Item<'_>>(1)?;
                module.items.push(Item::Section(Section { name, body }));
            }
            "pragma" => {
                self.lexer.take_directive(word)?;
                let strings = self.pragma()?;
                self.take::<Item<'_>>(1)?;
                module.items.push(Item::Pragma(strings));
            }
            "alias" => {
                self.lexer.take_directive(word)?;
                let name = self.lexer.name("the new name of a function")?;
                self.lexer.expect(b',', "`,` and the function that an alias is for")?;
                let target = self.lexer.name("the function that an alias is for")?;
                self.semicolon("an alias")?;
                self.take::<Item<'_>>(1)?;
                module.items.push(Item::Alias { name, target });
            }
            _ if self.lexer.peek() == b';' => self.lexer.advance(1)?,
            _ => self.declared_item(module, offset, linkage)?,
        }
        Ok(())
    }

    /// A variable or function, behind its linkage.
    fn declared_item(&mut self, module: &mut Module<'a>, offset: u32, linkage: Linkage) -> Parsed<()> {
        match self.lexer.peek_directive() {
            word @ ("entry" | "func") => {
                self.lexer.take_directive(word)?;
                let function = self.function(offset, linkage, word == "entry")?;
                self.take::<Item<'_>>(1)?;
                module.items.push(Item::Function(function));
                Ok(())
            }
            word if begins_declaration(word) => self.variables(offset, linkage, |parser, variable| {
                parser.take::<Item<'_>>(1)?;
                module.items.push(Item::Variable(variable));
                Ok(())
            }),
            _ if linkage != Linkage::Local => self.lexer.expected("`.entry`, `.func` or a state space"),
            _ => self.lexer.expected("a directive of a module (`.entry`, `.func`, `.global`, `.file`, ...)"),
        }
    }

    /// `1 "path", 123, 456`.
    fn file(&mut self) -> Parsed<File<'a>> {
        let index = self.count(u64::from(u32::MAX), "the number of a file")? as u32;
        let path = self.lexer.string("the path of a file")?;
        let mut stamp = None;
        if self.lexer.eat(b',')? {
            let time = self.count(u64::MAX, "the time of a file")?;
            self.lexer.expect(b',', "`,` and the size of a file")?;
            stamp = Some((time, self.count(u64::MAX, "the size of a file")?));
        }
        Ok(File { index, path, stamp })
    }

    /// `"a", "b";`
    pub(super) fn pragma(&mut self) -> Parsed<Vec<&'a str>> {
        let strings = self.separated(|parser| parser.lexer.string("a string"))?;
        self.semicolon("a pragma")?;
        Ok(strings)
    }
}
