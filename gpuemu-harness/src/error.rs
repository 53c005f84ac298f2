//! The one error enum of this crate.

use std::fmt;

/// What went wrong outside of a verdict. Messages are in lower case and fit to follow "failed: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// `gpuemu.toml` is missing or wrong, or an op in it cannot be run as declared (`ConfigError`).
    Config(String),
    /// No op of that name (`OpNotFound`).
    OpNotFound(String),
    /// No entry of that name in a compiled kernel (`KernelNotFound`).
    KernelNotFound(String),
    /// The committed PTX of a kernel is missing or not that of its source (`ArtifactNotFound`).
    Artifact(String),
    /// A PTX file cannot be read (`PtxParseError`).
    Ptx(String),
    /// A tool of the CUDA toolkit is missing or did not answer (`ToolFailed`).
    Tool(String),
    /// A spec, a name or an argument is malformed (`InvalidRequest`).
    InvalidRequest(String),
    /// A reference could not answer (`ReferenceScriptFailed`).
    ReferenceFailed(String),
    /// A fresh calibration does not fit the envelope file.
    Calibration(String),
    /// A file that was asked for is not there (`NotFound`).
    NotFound(String),
    /// A file could not be read or written.
    File(String),
    /// The other side of a protocol speaks another version (`VersionMismatch`).
    VersionMismatch(String),
    /// The user has stopped the run.
    Interrupted,
    /// A fault of gpuemu itself (`InternalError`).
    Internal(String),
}

impl Error {
    /// The seed's code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Config(_) => "ConfigError",
            Error::OpNotFound(_) => "OpNotFound",
            Error::KernelNotFound(_) => "KernelNotFound",
            Error::Artifact(_) => "ArtifactNotFound",
            Error::Ptx(_) => "PtxParseError",
            Error::Tool(_) => "ToolFailed",
            Error::InvalidRequest(_) => "InvalidRequest",
            Error::ReferenceFailed(_) => "ReferenceScriptFailed",
            Error::Calibration(_) => "CalibrationError",
            Error::NotFound(_) => "NotFound",
            Error::File(_) => "FileError",
            Error::VersionMismatch(_) => "VersionMismatch",
            Error::Interrupted => "Interrupted",
            Error::Internal(_) => "InternalError",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(message)
            | Error::OpNotFound(message)
            | Error::KernelNotFound(message)
            | Error::Artifact(message)
            | Error::Ptx(message)
            | Error::Tool(message)
            | Error::InvalidRequest(message)
            | Error::ReferenceFailed(message)
            | Error::Calibration(message)
            | Error::NotFound(message)
            | Error::File(message)
            | Error::VersionMismatch(message)
            | Error::Internal(message) => f.write_str(message),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

/// A result with the crate's error.
pub type Result<T> = std::result::Result<T, Error>;
