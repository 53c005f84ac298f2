//! What can be wrong with a module that parses.

use std::fmt;

/// A place in a module that means nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// One-based line.
    pub line: u32,
    /// One-based column, in characters.
    pub column: u32,
    /// The statement there, cut where it is long.
    pub excerpt: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each field is named after what it holds, and the message says the rest")]
pub enum Problem {
    UnknownOpcode { opcode: String, nearest: Option<String> },
    UnknownModifier { opcode: String, modifier: String, nearest: Option<String> },
    MisplacedModifier { opcode: String, modifier: String },
    MissingType { opcode: String },
    Undeclared { name: String, nearest: Option<String> },
    Twice { name: String, line: u32 },
    NoLabel { name: String, nearest: Option<String> },
    NoFunction { name: String, nearest: Option<String> },
    NotARegister { name: String },
    NotAPredicate { name: String, ty: &'static str },
    OperandCount { opcode: String, expected: String, found: usize },
    OperandKind { opcode: String, index: usize, expected: &'static str },
    Width { opcode: String, name: String, ty: &'static str, bits: u32, expected: u32 },
    VectorLength { opcode: String, expected: usize, found: usize },
    VectorWidth { opcode: String, bits: u32, expected: u32 },
    TooManyRegisters { name: String, limit: u32 },
    TooLarge { name: String },
    Initial { name: String, reason: &'static str },
    AddressBase { name: String },
    BadCall { reason: &'static str },
    Arguments { function: String, expected: usize, found: usize },
    DynamicElement { name: String },
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.problem)?;
        if !self.excerpt.is_empty() {
            let (number, gutter) = (self.line.to_string(), " ".repeat(self.line.to_string().len()));
            write!(f, "\n{gutter} |\n{number} | {}", self.excerpt)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = |nearest: &Option<String>| match nearest {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None => String::new(),
        };
        match self {
            Self::UnknownOpcode { opcode, nearest } => write!(f, "unknown opcode `{opcode}`{}", hint(nearest)),
            Self::UnknownModifier { opcode, modifier, nearest } => {
                write!(f, "unknown modifier `.{modifier}` of `{opcode}`{}", hint(nearest))
            }
            Self::MisplacedModifier { opcode, modifier } => write!(f, "`{opcode}` takes no `.{modifier}`"),
            Self::MissingType { opcode } => write!(f, "`{opcode}` needs a type"),
            Self::Undeclared { name, nearest } => {
                write!(f, "`{name}` is not declared before this line in this scope{}", hint(nearest))
            }
            Self::Twice { name, line } => write!(f, "`{name}` is declared twice in this scope: line {line} has it"),
            Self::NoLabel { name, nearest } => write!(f, "there is no label `{name}` in this scope{}", hint(nearest)),
            Self::NoFunction { name, nearest } => write!(f, "there is no function `{name}`{}", hint(nearest)),
            Self::NotARegister { name } => write!(f, "`{name}` is not a register"),
            Self::NotAPredicate { name, ty } => write!(f, "`{name}` is a `.{ty}`, not a predicate"),
            Self::OperandCount { opcode, expected, found } => {
                write!(f, "`{opcode}` takes {expected}, and has {found}")
            }
            Self::OperandKind { opcode, index, expected } => {
                write!(f, "operand {} of `{opcode}` should be {expected}", index + 1)
            }
            Self::Width { opcode, name, ty, bits, expected } => {
                write!(f, "`{name}` is a `.{ty}` of {bits} bits, where `{opcode}` takes {expected}")
            }
            Self::VectorLength { opcode, expected, found } => {
                write!(f, "`{opcode}` takes {expected} elements, and has {found}")
            }
            Self::VectorWidth { opcode, bits, expected } => {
                write!(f, "the elements have {bits} bits together, where `{opcode}` takes {expected}")
            }
            Self::TooManyRegisters { name, limit } => {
                write!(f, "`{name}` makes more than {limit} registers in one function")
            }
            Self::TooLarge { name } => write!(f, "`{name}` is larger than any memory"),
            Self::Initial { name, reason } => write!(f, "the initial value of `{name}` {reason}"),
            Self::AddressBase { name } => write!(f, "`{name}` is nothing that an address can be counted from"),
            Self::BadCall { reason } => write!(f, "this call {reason}"),
            Self::Arguments { function, expected, found } => {
                write!(f, "`{function}` takes {expected} arguments, and gets {found}")
            }
            Self::DynamicElement { name } => {
                write!(f, "an element of `{name}` at an index in a register: write the address of it instead")
            }
        }
    }
}
