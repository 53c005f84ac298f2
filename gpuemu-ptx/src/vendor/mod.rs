//! NVIDIA's own tools, where they are present: real registers and spills from ptxas, machine code from nvdisasm.
//!
//! A [`Toolbox`] is told where to look, finds the tools when it first needs them, and remembers what they said about a
//! text in a folder, by content. What is not there is said, and never guessed.

mod cache;
mod child;
mod find;
mod nvrtc;
mod ptxas;
mod report;
mod sass;
mod toolbox;

pub use report::{Diagnostic, EntryReport, FunctionReport, PtxasOutput};
pub use sass::{SassClass, SassMix, read_sass};
pub use toolbox::{Assembly, Compiled, Job, Toolbox};

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The tools that are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tool {
    /// The assembler: PTX to machine code.
    Ptxas,
    /// The disassembler of machine code.
    Nvdisasm,
    /// The other one, which lists what is in a binary.
    Cuobjdump,
    /// The CUDA C++ compiler.
    Nvcc,
}

impl Tool {
    /// The name of its executable.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Ptxas => "ptxas",
            Tool::Nvdisasm => "nvdisasm",
            Tool::Cuobjdump => "cuobjdump",
            Tool::Nvcc => "nvcc",
        }
    }

    /// What it calls itself in answer to `--version`.
    fn title(self) -> &'static str {
        match self {
            Tool::Ptxas => "Ptx optimizing assembler",
            Tool::Nvdisasm => "CUDA disassembler",
            Tool::Cuobjdump => "fat binary listing tool",
            Tool::Nvcc => "Cuda compiler driver",
        }
    }

    /// The environment variable that names one.
    fn variable(self) -> &'static str {
        match self {
            Tool::Ptxas => "GPUEMU_PTXAS",
            Tool::Nvdisasm => "GPUEMU_NVDISASM",
            Tool::Cuobjdump => "GPUEMU_CUOBJDUMP",
            Tool::Nvcc => "GPUEMU_NVCC",
        }
    }

    /// How to get it.
    fn advice(self) -> &'static str {
        match self {
            Tool::Ptxas => {
                "install the CUDA toolkit, `pip install triton` or `pip install nvidia-cuda-nvcc`, or name one in GPUEMU_PTXAS"
            }
            Tool::Nvdisasm | Tool::Cuobjdump => {
                "install the CUDA toolkit or `pip install triton`, or name one in GPUEMU_NVDISASM or GPUEMU_CUOBJDUMP"
            }
            Tool::Nvcc => {
                "install the CUDA toolkit or `pip install nvidia-cuda-nvcc nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl`; \
                 sources without code of the host need no more than `pip install nvidia-cuda-nvrtc`"
            }
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where tools are looked for, and what they may use up. This crate reads no environment variable itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The one ptxas to use, instead of looking for one.
    pub ptxas: Option<PathBuf>,
    /// The one nvdisasm to use.
    pub nvdisasm: Option<PathBuf>,
    /// The one cuobjdump to use.
    pub cuobjdump: Option<PathBuf>,
    /// The one nvcc to use.
    pub nvcc: Option<PathBuf>,
    /// The value of `PATH`; looked through first.
    pub path: Option<OsString>,
    /// A Python interpreter; the Triton and NVIDIA wheels in its folders are looked through after `path`.
    pub python: Option<PathBuf>,
    /// A folder that keeps answers. Several processes may share it; it may be deleted at any time.
    pub cache: Option<PathBuf>,
    /// How long one run of a tool may take.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ptxas: None,
            nvdisasm: None,
            cuobjdump: None,
            nvcc: None,
            path: None,
            python: None,
            cache: None,
            timeout: Duration::from_secs(60),
        }
    }
}

impl Settings {
    fn named(&self, tool: Tool) -> Option<&PathBuf> {
        match tool {
            Tool::Ptxas => self.ptxas.as_ref(),
            Tool::Nvdisasm => self.nvdisasm.as_ref(),
            Tool::Cuobjdump => self.cuobjdump.as_ref(),
            Tool::Nvcc => self.nvcc.as_ref(),
        }
    }
}
