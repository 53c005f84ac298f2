//! How a device runs kernels.

use crate::memory::Addressing;

/// How a device runs kernels.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads of the host that run blocks, at most. Results do not depend on it.
    pub threads: usize,
    /// Instructions that one block may run, those of each warp counted, before it counts as a loop without end.
    pub budget: u64,
    /// The order in which warps take turns, from a seed; `None` for that of their numbers.
    pub seed: Option<u64>,
    /// Bytes that `malloc` in kernels may give out in one launch: CUDA's default is 8 MiB.
    pub heap: u64,
    /// What device addresses look like.
    pub addressing: Addressing,
    /// Multiprocessors that kernels see.
    pub multiprocessors: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            budget: 1 << 30,
            seed: None,
            heap: 8 << 20,
            addressing: Addressing::Virtual,
            multiprocessors: 108,
        }
    }
}
