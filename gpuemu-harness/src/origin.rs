//! What a test binary knows of the package it was compiled in.

/// Written into a test binary by `tests!` and `main!`, so that it runs from any folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The package's folder, absolute.
    pub package: &'static str,
    /// The `gpuemu.toml` it was compiled against, absolute.
    pub contract: &'static str,
}
