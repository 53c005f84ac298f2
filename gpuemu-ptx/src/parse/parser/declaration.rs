//! Declarations of variables, registers and parameters.

use super::Parser;
use crate::parse::fault::Parsed;
use crate::parse::lexer::begins_name;
use crate::parse::{Initial, Linkage, Offset, Operand, Pointer, Space, Type, Variable};

/// The state space that a directive names.
fn space(word: &str) -> Option<Space> {
    Some(match word {
        "reg" => Space::Register,
        "sreg" => Space::Special,
        "const" => Space::Constant,
        "global" => Space::Global,
        "local" => Space::Local,
        "param" => Space::Parameter,
        "shared" => Space::Shared,
        "tex" => Space::Texture,
        _ => return None,
    })
}

/// The linkage that a directive names; none for any other.
pub(super) fn linkage(word: &str) -> Linkage {
    match word {
        "visible" => Linkage::Visible,
        "extern" => Linkage::Extern,
        "weak" => Linkage::Weak,
        "common" => Linkage::Common,
        _ => Linkage::Local,
    }
}

/// Whether a declaration can begin with a directive.
pub(super) fn begins_declaration(word: &str) -> bool {
    space(word).is_some() || word == "align" || word == "attribute"
}

/// The type that a directive names.
fn ty(word: &str) -> Option<Type> {
    Some(match word {
        "b8" => Type::B8,
        "b16" => Type::B16,
        "b32" => Type::B32,
        "b64" => Type::B64,
        "b128" => Type::B128,
        "u8" => Type::U8,
        "u16" => Type::U16,
        "u32" => Type::U32,
        "u64" => Type::U64,
        "s8" => Type::S8,
        "s16" => Type::S16,
        "s32" => Type::S32,
        "s64" => Type::S64,
        "f16" => Type::F16,
        "f16x2" => Type::F16x2,
        "bf16" => Type::Bf16,
        "bf16x2" => Type::Bf16x2,
        "f32" => Type::F32,
        "f64" => Type::F64,
        "pred" => Type::Predicate,
        "texref" => Type::TextureReference,
        "samplerref" => Type::SamplerReference,
        "surfref" => Type::SurfaceReference,
        _ => return None,
    })
}

impl<'a> Parser<'a> {
    /// Reads `.space ... a, b = 1;` from behind its linkage; one variable a name.
    pub(super) fn variables(
        &mut self,
        offset: Offset,
        linkage: Linkage,
        mut each: impl FnMut(&mut Self, Variable<'a>) -> Parsed<()>,
    ) -> Parsed<()> {
        let head = self.variable_head(offset, linkage)?;
        loop {
            let variable = self.named_variable(&head)?;
            each(self, variable)?;
            if !self.lexer.eat(b',')? {
                break;
            }
        }
        if self.lexer.peek() != b';' {
            return self.missing("`,` or `;` after a variable");
        }
        self.lexer.advance(1)
    }

    /// Reads `(.param .b32 a, .reg .b32 b)`, the parenthesis being next.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Variable<'a>>> {
        self.lexer.expect(b'(', "`(` before parameters")?;
        let mut parameters = Vec::new();
        if self.lexer.eat(b')')? {
            return Ok(parameters);
        }
        loop {
            let head = self.variable_head(self.lexer.offset(), Linkage::Local)?;
            self.take::<Variable<'_>>(1)?;
            parameters.push(self.named_variable(&head)?);
            if self.lexer.eat(b',')? {
                continue;
            }
            self.lexer.expect(b')', "`,` or `)` after a parameter")?;
            return Ok(parameters);
        }
    }

    /// What stands before the names: state space, alignment, vector and element type, pointer, attributes. ptxas takes
    /// alignment and attributes on either side of the space.
    fn variable_head(&mut self, offset: Offset, linkage: Linkage) -> Parsed<Variable<'a>> {
        let mut head = Variable {
            offset,
            linkage,
            space: Space::Register,
            bank: None,
            align: None,
            vector: 1,
            ty: Type::B8,
            pointer: None,
            attributes: None,
            name: "",
            count: None,
            extents: Vec::new(),
            initial: None,
        };
        let mut placed = false;
        let mut typed = false;
        loop {
            let word = self.lexer.peek_directive();
            if word.is_empty() {
                break;
            }
            if let Some(space) = space(word).filter(|_| !placed) {
                self.lexer.take_directive(word)?;
                (head.space, placed) = (space, true);
                if self.lexer.eat(b'[')? {
                    head.bank = Some(self.count(u64::from(u32::MAX), "the number of a bank")? as u32);
                    self.lexer.expect(b']', "`]` after a bank")?;
                }
                continue;
            }
            if let Some(ty) = ty(word).filter(|_| placed && !typed) {
                self.lexer.take_directive(word)?;
                (head.ty, typed) = (ty, true);
                continue;
            }
            match word {
                "align" => {
                    self.lexer.take_directive(word)?;
                    let align = self.count(u64::from(u32::MAX), "an alignment in bytes")? as u32;
                    match &mut head.pointer {
                        Some(pointer) => pointer.align = Some(align),
                        None => head.align = Some(align),
                    }
                }
                "v2" | "v4" | "v8" if placed && !typed => {
                    self.lexer.take_directive(word)?;
                    head.vector = word.as_bytes()[1] - b'0';
                }
                "ptr" if typed => {
                    self.lexer.take_directive(word)?;
                    head.pointer = Some(Pointer { space: None, align: None });
                }
                "attribute" => {
                    self.lexer.take_directive(word)?;
                    head.attributes = Some(self.lexer.enclosed(b'(', b')', "`(` after `.attribute`")?.trim());
                }
                _ if !placed => break,
                _ => match (&mut head.pointer, space(word)) {
                    (Some(pointer), Some(space)) => {
                        pointer.space = Some(space);
                        self.lexer.take_directive(word)?;
                    }
                    _ if typed => return self.lexer.expected("the name of a variable"),
                    _ => return self.lexer.expected("a type (`.b32`, `.f32`, `.pred`, ...)"),
                },
            }
        }
        if !placed {
            return self.lexer.expected("a state space (`.reg`, `.param`, `.global`, `.shared`, ...)");
        }
        if !typed {
            return self.lexer.expected("a type (`.b32`, `.f32`, `.pred`, ...)");
        }
        Ok(head)
    }

    /// A name with its count, extents and initial value.
    fn named_variable(&mut self, head: &Variable<'a>) -> Parsed<Variable<'a>> {
        let mut variable = head.clone();
        variable.name = self.lexer.name("the name of a variable")?;
        if self.lexer.eat(b'<')? {
            variable.count = Some(self.bracketed_count(u64::from(u32::MAX), "how many variables there are")? as u32);
            self.lexer.expect(b'>', "`>` after the number of variables")?;
        }
        while self.lexer.eat(b'[')? {
            if self.lexer.eat(b']')? {
                variable.extents.push(None);
                continue;
            }
            let extent = self.count(u64::MAX, "the number of elements, or `]`")?;
            variable.extents.push(Some(extent));
            self.lexer.expect(b']', "`]` after the number of elements")?;
        }
        if self.lexer.eat(b'=')? {
            variable.initial = Some(self.initial()?);
        }
        Ok(variable)
    }

    fn initial(&mut self) -> Parsed<Initial<'a>> {
        if self.lexer.peek() == b'{' {
            return self.nested(|parser| {
                parser.lexer.advance(1)?;
                if parser.lexer.eat(b'}')? {
                    return Ok(Initial::List(Vec::new()));
                }
                let values = parser.separated(Self::initial)?;
                parser.lexer.expect(b'}', "`,` or `}` of an initial value")?;
                Ok(Initial::List(values))
            });
        }
        if self.at_constant() {
            let value = self.constant()?.operand();
            return match value {
                Operand::Integer { bits, .. } if self.lexer.peek() == b'(' => {
                    self.lexer.advance(1)?;
                    let address = self.address_value(Some(bits))?;
                    self.lexer.expect(b')', "`)` after the address that a mask is for")?;
                    Ok(address)
                }
                _ => Ok(Initial::Value(value)),
            };
        }
        if !begins_name(self.lexer.peek()) {
            return self.lexer.expected("an initial value");
        }
        self.address_value(None)
    }

    /// `name`, `name+8`, `generic(name)+8`; without a mask also `property = value`.
    fn address_value(&mut self, mask: Option<u64>) -> Parsed<Initial<'a>> {
        let name = self.lexer.name("a variable or function")?;
        let generic = name == "generic" && self.lexer.peek() == b'(';
        let mut symbol = name;
        let mut addend = 0_i64;
        if generic {
            self.lexer.advance(1)?;
            symbol = self.lexer.name("a variable or function")?;
            addend = self.addend()?;
            self.lexer.expect(b')', "`)` after `generic(` and a name")?;
        } else if mask.is_none() && self.lexer.peek() == b'=' {
            self.lexer.advance(1)?;
            let value = match self.at_constant() {
                true => self.constant()?.operand(),
                false => Operand::Name(self.lexer.name("the value of a property")?),
            };
            return Ok(Initial::Property { name, value });
        }
        addend = addend.wrapping_add(self.addend()?);
        Ok(Initial::Address { symbol, addend, generic, mask })
    }
}
