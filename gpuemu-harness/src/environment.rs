//! Every environment variable gpuemu reads, read once.

use std::path::PathBuf;

/// What the environment asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `GPUEMU_PYTHON`: the Python interpreter that references and script subjects run under.
    pub python: Option<PathBuf>,
}

impl Environment {
    /// Reads the variables of this process.
    pub fn read() -> Environment {
        Environment { python: std::env::var_os("GPUEMU_PYTHON").filter(|value| !value.is_empty()).map(PathBuf::from) }
    }
}
