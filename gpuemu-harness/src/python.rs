//! The Python interpreter that scripts and workers run under.

use crate::error::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};

/// Which interpreter to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Python {
    candidates: Vec<PathBuf>,
    named: bool,
}

impl Python {
    /// The interpreter of that path or name, or else the first on the search path.
    pub fn new(named: Option<&Path>) -> Python {
        let usual = if cfg!(windows) { ["python", "python3"] } else { ["python3", "python"] };
        match named {
            Some(path) => Python { candidates: vec![path.to_owned()], named: true },
            None => Python { candidates: usual.map(PathBuf::from).to_vec(), named: false },
        }
    }

    /// Starts something with the first interpreter that is there. `purpose` names in an error what needs it.
    pub fn start<T>(&self, purpose: &str, mut start: impl FnMut(&Path) -> io::Result<T>) -> Result<T> {
        for candidate in &self.candidates {
            match start(candidate) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(Error::ReferenceFailed(format!(
                        "{purpose} needs Python, and {} could not be started: {error}; name an interpreter in GPUEMU_PYTHON",
                        candidate.display()
                    )));
                }
                Ok(started) => return Ok(started),
            }
        }
        let tried = self.candidates.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ");
        Err(Error::ReferenceFailed(if self.named {
            format!("{purpose} needs Python, and GPUEMU_PYTHON names {tried}, which is not there")
        } else {
            format!(
                "{purpose} needs Python, and neither {} is on the search path; install Python 3 or name an interpreter in GPUEMU_PYTHON",
                tried.replace(" and ", " nor ")
            )
        }))
    }
}
