//! NVRTC, the CUDA C++ compiler that is a library: for machines that have its wheel and no nvcc.
//!
//! It runs in the Python whose wheel it is, a process of its own: a library that is loaded here would take the tests
//! with it when it dies, and could not be ended when it hangs.

use super::child::{self, Ending, Limits};
use super::find::lossy;
use super::ptxas::quote;
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SCRIPT: &str = include_str!("nvrtc.py");

/// What it prints is its version and its complaints.
const OUTPUT: usize = 16 << 20;

/// The library, and the folders of headers that its wheels bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    path: PathBuf,
    includes: Vec<PathBuf>,
}

impl Library {
    /// The newest in the wheels of the first of these folders that has one: `nvidia/cu13/lib/libnvrtc.so.13`, and before CUDA 13
    /// `nvidia/cuda_nvrtc/lib/libnvrtc.so.12`.
    pub fn find(folders: &[PathBuf]) -> Option<Library> {
        let entries = |folder: &Path| {
            let mut paths: Vec<PathBuf> =
                fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            paths.sort();
            paths
        };
        folders.iter().find_map(|folder| {
            let mut parts = entries(&folder.join("nvidia"));
            // `cu13` holds everything of CUDA 13; before, every part had a folder: `cuda_nvrtc`.
            let whole = |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().contains('_'));
            parts.sort_by_key(|path| (!whole(path), std::cmp::Reverse(path.clone())));
            let libraries = parts.iter().flat_map(|part| ["lib", "bin", "bin/x86_64"].map(|folder| part.join(folder)));
            let path = libraries.flat_map(|folder| entries(&folder)).find(|path| is_library(path))?;
            let includes = parts.iter().map(|part| part.join("include")).filter(|folder| folder.is_dir());
            // Where the headers of libcu++ lie since CUDA 13.
            let includes = includes.flat_map(|folder| [folder.join("cccl"), folder]).filter(|folder| folder.is_dir());
            Some(Library { path, includes: includes.collect() })
        })
    }

    /// Compiles a file for one target (`sm_80`): the compiler's name and version, and the PTX.
    pub fn compile(
        &self,
        python: &Path,
        source: &Path,
        target: &str,
        flags: &[String],
        timeout: Duration,
    ) -> Result<(String, String)> {
        let label = format!("NVRTC ({})", self.path.display());
        let broken = |error: std::io::Error| Error::File(format!("cannot prepare a run of {label}: {error}"));
        let folder = tempfile::tempdir().map_err(broken)?;
        let ptx = folder.path().join("module.ptx");
        let mut command = Command::new(python);
        command.args(["-I", "-c", SCRIPT]).arg(&self.path).arg(source).arg(source).arg(&ptx);
        command.arg(format!("--gpu-architecture={}", target.replacen("sm_", "compute_", 1))).args(flags);
        // What a file includes by quotes lies beside it; NVRTC knows no such place by itself.
        let beside = source.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for include in std::iter::once(beside).chain(self.includes.iter().map(PathBuf::as_path)) {
            command.arg(format!("--include-path={}", include.display()));
        }
        let finished = child::run(&mut command, Limits { timeout, output: OUTPUT })
            .map_err(|error| Error::ToolFailed(format!("{} could not be started: {error}", python.display())))?;
        let said = quote(&lossy(&finished.stderr));
        match finished.ending {
            Ending::Exited(0) => {}
            Ending::Exited(1) => {
                let message = format!("{label} refuses {} for {target}{said}", source.display());
                return Err(Error::Refused { line: None, message });
            }
            Ending::Exited(3) => return Err(Error::ToolFailed(format!("{label} is of no use{said}"))),
            ending => {
                let message = format!("{label} {ending}, on {} for {target}{said}", source.display());
                return Err(Error::ToolFailed(message));
            }
        }
        let text = fs::read_to_string(&ptx)
            .map_err(|error| Error::ToolFailed(format!("{label} succeeded and left no PTX: {error}{said}")))?;
        Ok((format!("nvrtc {}", lossy(&finished.stdout).trim()), text))
    }
}

/// `libnvrtc.so.13`, `nvrtc64_130_0.dll`; not the builtins beside it, nor the other build of the same release.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let named = name.starts_with("libnvrtc.so.") || (name.starts_with("nvrtc64_") && name.ends_with(".dll"));
    named && !name.contains(".alt") && path.is_file()
}
