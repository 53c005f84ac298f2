//! What can be wrong with a module, or with a wish about it.

use std::fmt;

use crate::program::ProgramError;

/// Everything that this crate refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not PTX.
    Syntax(Box<SyntaxError>),
    /// The text is too long for offsets of 32 bits.
    TooLong {
        /// Its length in bytes.
        bytes: u64,
    },
    /// The text is PTX, and means nothing.
    Program(Box<ProgramError>),
    /// A module has no entry of this name.
    NoEntry {
        /// The name asked for.
        name: String,
        /// The entry spelt most like it, or the only one.
        nearest: Option<String>,
        /// How many entries there are.
        entries: usize,
    },
    /// No architecture of that name is known.
    UnknownTarget(String),
    /// The description of an architecture is wrong.
    Arch(String),
    /// A tool of NVIDIA's is not there, or what was found is not that tool.
    ToolMissing(String),
    /// Tools of NVIDIA's are there, and none of them knows this version of PTX, this target or this machine code.
    ToolUnsuitable(String),
    /// A tool does not take this module.
    Refused {
        /// One-based line of the PTX text, where the tool names one.
        line: Option<u32>,
        /// What the tool says.
        message: String,
    },
    /// A tool died, hung, or printed what is not understood.
    ToolFailed(String),
    /// A file could not be read or written.
    File(String),
    /// An instruction of a module that the emulator does not execute.
    NotExecutable {
        /// Line of the PTX text, from 1.
        line: u32,
        /// The instruction's opcode, with its modifiers.
        instruction: String,
        /// Why, a sentence without a stop.
        reason: String,
    },
    /// Memory of a device that cannot be had, or that the host asks for wrongly.
    Memory(String),
}

/// What this crate's functions answer.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Where a text stops being PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// One-based line.
    pub line: u32,
    /// One-based column, in characters.
    pub column: u32,
    /// Characters at fault, at least 1.
    pub width: u32,
    /// What may stand there, fit to follow "expected ".
    pub expected: String,
    /// What stands there, fit to follow "found ".
    pub found: String,
    /// The line's text; the part around the place, where the line is long.
    pub excerpt: String,
    /// Characters of the excerpt before the place.
    pub indent: u32,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Syntax(error) => error.fmt(f),
            Error::Program(error) => error.fmt(f),
            Error::NoEntry { name, nearest, entries } => {
                write!(f, "the module has no entry `{name}`")?;
                match (nearest, entries) {
                    (Some(nearest), _) => write!(f, "; did you mean `{nearest}`?"),
                    (None, 0) => write!(f, ": it has none at all"),
                    (None, entries) => write!(f, " among its {entries}"),
                }
            }
            Error::UnknownTarget(message)
            | Error::ToolMissing(message)
            | Error::ToolUnsuitable(message)
            | Error::ToolFailed(message)
            | Error::File(message)
            | Error::Memory(message)
            | Error::Refused { message, .. } => f.write_str(message),
            Error::NotExecutable { line, instruction, reason } => {
                write!(f, "line {line}: `{instruction}` cannot be executed: {reason}")
            }
            Error::Arch(message) => write!(f, "the description of an architecture is wrong: {message}"),
            Error::TooLong { bytes } => {
                write!(f, "the text is {bytes} bytes long: a module has less than {} (4 GiB)", 1_u64 << 32)
            }
        }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        // A tab keeps its width above and below, whatever the terminal makes of it.
        let before: String =
            self.excerpt.chars().take(self.indent as usize).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "line {number}, column {}: expected {}, found {}", self.column, self.expected, self.found)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.excerpt)?;
        write!(f, "{gutter} | {before}{}", "^".repeat(self.width as usize))
    }
}

impl std::error::Error for Error {}
impl std::error::Error for SyntaxError {}

/// The candidate spelt most like `wanted`, if it is near enough to be what was meant: at most one edit in three
/// characters.
pub(crate) fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let most = wanted.chars().count().div_ceil(3).min(4);
    candidates
        .into_iter()
        // Words of very different lengths are not worth the time of a closer look.
        .filter(|candidate| candidate.len().abs_diff(wanted.len()) <= 4 * most)
        .map(|candidate| (strsim::osa_distance(wanted, candidate), candidate))
        .filter(|&(edits, candidate)| edits > 0 && edits <= most && edits < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}
