//! Standard output, kept for the runner's own lines: what a subject prints would land between them and break what tools
//! read.

use std::fs::File;
use std::io::{self, IsTerminal, Stdout, Write};

/// Standard output as the runner writes it. While it is alive and not shared, everything else in the process that writes
/// to standard output (a subject, its C library, a child process) writes to standard error.
pub enum Output {
    /// Kept: the terminal, pipe or file that standard output was.
    Own(File),
    /// Shared with the rest of the process.
    Shared(Stdout),
}

impl Output {
    /// Keeps standard output for the runner.
    #[cfg(unix)]
    pub fn own() -> Output {
        use std::os::fd::AsFd;
        let own = || -> io::Result<File> {
            let own = io::stdout().as_fd().try_clone_to_owned()?;
            rustix::stdio::dup2_stdout(io::stderr())?;
            Ok(own.into())
        };
        own().map_or_else(|_| Output::shared(), Output::Own)
    }

    /// Shares standard output: there is no way here to keep it.
    #[cfg(not(unix))]
    pub fn own() -> Output {
        Output::shared()
    }

    /// Shares standard output with whatever else writes to it.
    pub fn shared() -> Output {
        Output::Shared(io::stdout())
    }

    /// A person is reading along.
    pub fn is_terminal(&self) -> bool {
        match self {
            Output::Own(file) => file.is_terminal(),
            Output::Shared(stdout) => stdout.is_terminal(),
        }
    }

    /// Another way to the same place.
    pub fn writer(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Output::Own(file) => Box::new(file.try_clone()?),
            Output::Shared(_) => Box::new(io::stdout()),
        })
    }
}

#[cfg(unix)]
impl Drop for Output {
    fn drop(&mut self) {
        if let Output::Own(file) = self {
            // What was printed meanwhile and is still buffered goes where it would have gone.
            let _ = io::stdout().flush();
            let _ = rustix::stdio::dup2_stdout(file);
        }
    }
}
