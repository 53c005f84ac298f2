//! How a device runs kernels.

use super::cancel::Cancel;
use crate::memory::Addressing;

/// What is watched while kernels run. Addresses outside every tensor, misaligned ones and what threads cannot do
/// together are always told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sanitizers {
    /// Accesses that nothing orders, to shared and global memory, and barriers that some warps pass by.
    pub races: bool,
    /// Reads of memory that nothing wrote.
    pub initialisation: bool,
    /// Writes to tensors that are declared as inputs.
    pub inputs: bool,
    /// Index arithmetic of 32 bits that wrapped around before it became an address. Modules are loaded with it or without.
    pub indices: bool,
}

impl Sanitizers {
    /// All of them.
    pub const ALL: Self = Self { races: true, initialisation: true, inputs: true, indices: true };
    /// None of them.
    pub const NONE: Self = Self { races: false, initialisation: false, inputs: false, indices: false };

    /// Whether any is on that remembers what became of memory.
    pub fn any(self) -> bool {
        self.races || self.initialisation || self.inputs
    }
}

/// How a device runs kernels.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads of the host that run blocks, at most. Results do not depend on it.
    pub threads: usize,
    /// Instructions that one block may run, those of each warp counted, before it counts as a loop without end.
    pub budget: u64,
    /// The order in which blocks are taken up and warps take turns, from a seed; `None` for that of their numbers.
    pub seed: Option<u64>,
    /// What is watched. Memory remembers what it takes only where any is on when the device is made.
    pub sanitizers: Sanitizers,
    /// Whether what a launch executes is counted: [`super::Counters`]. Modules are loaded with it or without.
    pub counters: bool,
    /// Whether modules are loaded with straight runs of instructions compiled for the host, where it has what they need.
    /// Results do not depend on it.
    pub native: bool,
    /// Bytes that `malloc` in kernels may give out in one launch: CUDA's default is 8 MiB.
    pub heap: u64,
    /// What device addresses look like.
    pub addressing: Addressing,
    /// Multiprocessors that kernels see.
    pub multiprocessors: u32,
    /// What ends a launch before its kernel does; `None`: nothing.
    pub cancel: Option<Cancel>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            budget: 1 << 30,
            seed: None,
            sanitizers: Sanitizers::ALL,
            counters: false,
            native: true,
            heap: 8 << 20,
            addressing: Addressing::Virtual,
            multiprocessors: 108,
            cancel: None,
        }
    }
}
