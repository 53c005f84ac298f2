//! The program as a whole: variables, source files and locations, functions by name.

use crate::error::Error;

use super::form::{Form, FormId};
use super::function::{Function, FunctionId, Symbol};
use super::types::{Linkage, Space, Type};

/// Number of a [`Variable`] in [`Program::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u32);

/// Number of a [`Location`] in [`Program::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationId(pub u32);

/// A module, resolved.
#[derive(Clone, Debug)]
pub struct Program {
    /// `.version`.
    pub version: (u16, u16),
    /// `.target`: the architecture (`sm_90a`), then options.
    pub targets: Vec<Box<str>>,
    /// 32 or 64.
    pub address_size: u8,
    /// The files that locations name, in the order declared.
    pub files: Vec<SourceFile>,
    /// Variables of the module.
    pub variables: Vec<Variable>,
    /// Functions and entries, defined or declared, each once.
    pub functions: Vec<Function>,
    /// Every spelling of an opcode in the module, once.
    pub forms: Vec<Form>,
    /// Every place of a source that a `.loc` names, once.
    pub locations: Vec<Location>,
}

/// `.file`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The number that `.loc` refers to.
    pub index: u32,
    /// Its path, as the compiler wrote it.
    pub path: Box<str>,
}

/// A place in a source file, and where the function around it was inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Number of a file: [`SourceFile::index`].
    pub file: u32,
    /// One-based line; 0 where the compiler knew none.
    pub line: u32,
    /// One-based column; 0 where the compiler knew none.
    pub column: u32,
    /// The function that was inlined, where the module's debug strings name it.
    pub function: Option<Box<str>>,
    /// The place of the call that was inlined.
    pub inlined_at: Option<LocationId>,
}

/// A variable in memory: of the module, or of a function (shared, local, param).
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: Box<str>,
    /// Byte offset of its declaration in the text.
    pub offset: u32,
    /// Who sees it.
    pub linkage: Linkage,
    /// Where it lives.
    pub space: Space,
    /// The type of an element.
    pub ty: Type,
    /// Elements of a vector type; 1 without.
    pub vector: u8,
    /// Its size in bytes; 0 for an array without extent, whose size the launch gives (`.extern .shared`).
    pub size: u64,
    /// What its address is a multiple of, in bytes.
    pub align: u32,
    /// Its first bytes; what follows up to `size` is zero (global, constant) or undefined.
    pub initial: Vec<u8>,
    /// Addresses to write into those bytes once they are known.
    pub relocations: Vec<Relocation>,
}

/// An address that an initial value holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the variable, in bytes.
    pub offset: u64,
    /// How many bytes are written.
    pub width: u8,
    /// Whose address.
    pub symbol: Symbol,
    /// Bytes added to it.
    pub addend: i64,
    /// Whether it is the generic address rather than that in the symbol's own space.
    pub generic: bool,
    /// The byte that is wanted, as a mask of the address: the result is shifted down to the lowest bit of the mask.
    pub mask: Option<u64>,
}

impl Program {
    /// The form of an instruction.
    pub fn form(&self, id: FormId) -> &Form {
        &self.forms[id.0 as usize]
    }

    /// A function by number.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// A variable of the module by number.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0 as usize]
    }

    /// A place by number.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[id.0 as usize]
    }

    /// The entries that a host can launch, in order.
    pub fn entries(&self) -> impl Iterator<Item = (FunctionId, &Function)> {
        (0..).map(FunctionId).zip(&self.functions).filter(|(_, function)| function.entry && function.defined)
    }

    /// An entry by name.
    ///
    /// # Errors
    ///
    /// The nearest name, where there is no such entry.
    pub fn entry(&self, name: &str) -> Result<FunctionId, Error> {
        if let Some((id, _)) = self.entries().find(|(_, function)| &*function.name == name) {
            return Ok(id);
        }
        let names = self.entries().map(|(_, function)| &*function.name);
        let only = match (self.entries().next(), self.entries().nth(1)) {
            (Some((_, function)), None) => Some(function.name.to_string()),
            _ => None,
        };
        let nearest = crate::error::nearest(name, names).or(only);
        Err(Error::NoEntry { name: name.to_owned(), nearest, entries: self.entries().count() })
    }

    /// The path of a file by the number that locations give.
    pub fn path(&self, file: u32) -> Option<&str> {
        self.files.iter().find(|candidate| candidate.index == file).map(|file| &*file.path)
    }

    /// A place as people read it, `softmax.py:12:5`; the file's number stands in for a path that is missing.
    pub fn place(&self, id: LocationId) -> String {
        let location = self.location(id);
        let path = self.path(location.file).map_or_else(|| format!("file {}", location.file), str::to_owned);
        match location.column {
            0 => format!("{path}:{}", location.line),
            column => format!("{path}:{}:{column}", location.line),
        }
    }

    /// A place and those it was inlined at, innermost first.
    pub fn chain(&self, id: LocationId) -> impl Iterator<Item = LocationId> + '_ {
        std::iter::successors(Some(id), |id| self.location(*id).inlined_at)
    }
}
