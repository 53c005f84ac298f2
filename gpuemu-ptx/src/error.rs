//! The one error enum of this crate.

use std::fmt;

/// What went wrong. Messages are in lower case and fit to follow "failed: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No architecture of that name is known.
    UnknownTarget(String),
    /// The file of an architecture is wrong.
    Arch(String),
    /// A tool of NVIDIA's is not there, or what was found is not that tool.
    ToolMissing(String),
    /// A tool does not take this module: its version of PTX, its target or its text. With the line of the PTX, where the
    /// tool names one.
    Refused {
        /// Line of the PTX text, from 1.
        line: Option<u32>,
        /// What the tool says.
        message: String,
    },
    /// A tool died, hung, or printed what is not understood.
    ToolFailed(String),
    /// A file could not be read or written.
    File(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownTarget(message)
            | Error::ToolMissing(message)
            | Error::ToolFailed(message)
            | Error::File(message)
            | Error::Refused { message, .. } => f.write_str(message),
            Error::Arch(message) => write!(f, "the description of an architecture is wrong: {message}"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;
