//! One launch: how many threads, and what they are given.

use super::options::Sanitizers;

/// A launch that was found fit to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub dynamic_shared: u32,
    /// Shared memory of a block, static and dynamic.
    pub shared: u32,
    /// Local memory of a thread.
    pub local: u32,
    /// Calls that may be open at once.
    pub depth: u32,
    /// Instructions that one block may run, those of each warp counted.
    pub budget: u64,
    /// Bytes that `malloc` may give out.
    pub heap: u64,
    /// The entry's parameters, as memory.
    pub parameters: Vec<u8>,
    /// The generic address of the first parameter.
    pub parameter_base: u64,
    /// Its number on the device: `%gridid`.
    pub number: u64,
    /// Multiprocessors that the device has: `%nsmid`.
    pub multiprocessors: u32,
    /// What is watched.
    pub sanitizers: Sanitizers,
    /// The order of warps, where it is not the usual one.
    pub seed: Option<u64>,
}

impl Launch {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a block.
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&extent| u64::from(extent)).product()
    }

    /// Where a block is in the grid.
    pub fn position(&self, block: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [(block % x) as u32, (block / x % y) as u32, (block / (x * y)) as u32]
    }
}
