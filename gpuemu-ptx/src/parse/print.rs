//! A module as PTX text, and modules compared without their offsets.

mod operand;
mod statement;

use std::fmt::{self, Display, Formatter, Write};

use super::{Directive, Function, Initial, Item, Linkage, Module, Pointer, Space, Statement, Type, Variable};
use operand::{Decimal, Values};
use statement::BodyText;

/// PTX that reads as the same module, but for offsets.
impl Display for Module<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, ".version {}.{}", self.version.0, self.version.1)?;
        writeln!(f, ".target {}", Separated(&self.targets))?;
        writeln!(f, ".address_size {}", self.address_size)?;
        self.items.iter().try_for_each(|item| writeln!(f, "\n{item}"))
    }
}

impl Module<'_> {
    /// Whether two modules say the same, wherever in their texts they say it.
    pub fn same_but_for_offsets(&self, other: &Module<'_>) -> bool {
        self.clone().without_offsets() == other.clone().without_offsets()
    }

    /// The module with every offset 0.
    #[must_use]
    pub fn without_offsets(mut self) -> Self {
        for item in &mut self.items {
            match item {
                Item::Variable(variable) => variable.offset = 0,
                Item::Function(function) => {
                    function.offset = 0;
                    function.returns.iter_mut().chain(&mut function.parameters).for_each(|it| it.offset = 0);
                    function.body.iter_mut().flat_map(|body| &mut body.statements).for_each(forget_offsets);
                }
                Item::File(_) | Item::Section(_) | Item::Pragma(_) | Item::Alias { .. } => {}
            }
        }
        self
    }
}

fn forget_offsets(statement: &mut Statement<'_>) {
    match statement {
        Statement::Instruction(instruction) => instruction.offset = 0,
        Statement::Label(label) => label.offset = 0,
        Statement::Variable(variable) => variable.offset = 0,
        Statement::CallPrototype(prototype) => {
            prototype.returns.iter_mut().chain(&mut prototype.parameters).for_each(|it| it.offset = 0);
        }
        Statement::Location(_)
        | Statement::Open
        | Statement::Close
        | Statement::Pragma(_)
        | Statement::BranchTargets(_)
        | Statement::CallTargets(_) => {}
    }
}

/// `a, b, c`.
struct Separated<'a, T>(&'a [T]);

impl<T: Display> Display for Separated<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, value) in self.0.iter().enumerate() {
            write!(f, "{}{value}", if position == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// `"a", "b"`.
fn quoted(f: &mut Formatter<'_>, strings: &[&str]) -> fmt::Result {
    for (position, string) in strings.iter().enumerate() {
        write!(f, "{}\"{string}\"", if position == 0 { " " } else { ", " })?;
    }
    Ok(())
}

impl Display for Item<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Item::File(file) => {
                write!(f, ".file {} \"{}\"", file.index, file.path)?;
                file.stamp.map_or(Ok(()), |(time, size)| write!(f, ", {time}, {size}"))
            }
            Item::Section(section) => write!(f, ".section {} {{{}}}", section.name, section.body),
            Item::Pragma(strings) => {
                f.write_str(".pragma")?;
                quoted(f, strings)?;
                f.write_char(';')
            }
            Item::Variable(variable) => write!(f, "{variable};"),
            Item::Function(function) => function.fmt(f),
            Item::Alias { name, target } => write!(f, ".alias {name}, {target};"),
        }
    }
}

impl Display for Linkage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Linkage::Local => "",
            Linkage::Visible => ".visible ",
            Linkage::Extern => ".extern ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        })
    }
}

/// As the directive: `.global`.
impl Display for Space {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Register => ".reg",
            Space::Special => ".sreg",
            Space::Constant => ".const",
            Space::Global => ".global",
            Space::Local => ".local",
            Space::Parameter => ".param",
            Space::Shared => ".shared",
            Space::Texture => ".tex",
        })
    }
}

/// As the directive: `.b32`.
impl Display for Type {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::B8 => ".b8",
            Type::B16 => ".b16",
            Type::B32 => ".b32",
            Type::B64 => ".b64",
            Type::B128 => ".b128",
            Type::U8 => ".u8",
            Type::U16 => ".u16",
            Type::U32 => ".u32",
            Type::U64 => ".u64",
            Type::S8 => ".s8",
            Type::S16 => ".s16",
            Type::S32 => ".s32",
            Type::S64 => ".s64",
            Type::F16 => ".f16",
            Type::F16x2 => ".f16x2",
            Type::Bf16 => ".bf16",
            Type::Bf16x2 => ".bf16x2",
            Type::F32 => ".f32",
            Type::F64 => ".f64",
            Type::Predicate => ".pred",
            Type::TextureReference => ".texref",
            Type::SamplerReference => ".samplerref",
            Type::SurfaceReference => ".surfref",
        })
    }
}

/// The declaration, without what ends it.
impl Display for Variable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.linkage, self.space)?;
        if let Some(bank) = self.bank {
            write!(f, "[{bank}]")?;
        }
        if let Some(attributes) = self.attributes {
            write!(f, " .attribute({attributes})")?;
        }
        if let Some(align) = self.align {
            write!(f, " .align {align}")?;
        }
        if self.vector != 1 {
            write!(f, " .v{}", self.vector)?;
        }
        write!(f, " {}", self.ty)?;
        if let Some(Pointer { space, align }) = self.pointer {
            f.write_str(" .ptr")?;
            space.map_or(Ok(()), |space| write!(f, " {space}"))?;
            align.map_or(Ok(()), |align| write!(f, " .align {align}"))?;
        }
        write!(f, " {}", self.name)?;
        if let Some(count) = self.count {
            write!(f, "<{count}>")?;
        }
        for extent in &self.extents {
            match extent {
                Some(extent) => write!(f, "[{extent}]")?,
                None => f.write_str("[]")?,
            }
        }
        self.initial.as_ref().map_or(Ok(()), |initial| write!(f, " = {initial}"))
    }
}

impl Display for Initial<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Initial::Value(value) => Values(&[]).operand(f, value),
            Initial::Address { symbol, addend, generic, mask } => {
                mask.map_or(Ok(()), |mask| write!(f, "{mask:#x}("))?;
                match generic {
                    true => write!(f, "generic({symbol})")?,
                    false => f.write_str(symbol)?,
                }
                if *addend != 0 {
                    write!(f, "+{}", Decimal(*addend))?;
                }
                mask.map_or(Ok(()), |_| f.write_char(')'))
            }
            Initial::List(values) => write!(f, "{{{}}}", Separated(values)),
            Initial::Property { name, value } => {
                write!(f, "{name} = ")?;
                Values(&[]).operand(f, value)
            }
        }
    }
}

impl Display for Function<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.linkage, if self.entry { ".entry" } else { ".func" })?;
        // The place of a function's attributes is before its name; whatever else was there is read behind it as well.
        let before = self.directives.iter().take_while(|directive| directive.name == "attribute").count();
        self.directives[..before].iter().try_for_each(|directive| write!(f, " {directive}"))?;
        if !self.returns.is_empty() {
            write!(f, " ({})", Separated(&self.returns))?;
        }
        write!(f, " {}({})", self.name, Separated(&self.parameters))?;
        self.directives[before..].iter().try_for_each(|directive| write!(f, "\n{directive}"))?;
        match &self.body {
            Some(body) => write!(f, "\n{}", BodyText(body)),
            None => f.write_char(';'),
        }
    }
}

impl Display for Directive<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name)?;
        match self.text {
            Some(text) if self.name == "attribute" => write!(f, "({text})")?,
            Some(text) => write!(f, " \"{text}\"")?,
            None => {}
        }
        if !self.numbers.is_empty() {
            write!(f, "{} {}", if self.text.is_some() { "," } else { "" }, Separated(&self.numbers))?;
        }
        if self.name == "pragma" { f.write_char(';') } else { Ok(()) }
    }
}
