//! What a kernel costs, as far as its PTX tells without running it.
//!
//! Everything counts what the entry can reach, through the functions it calls, and nothing else. A count stands beside
//! its weight, in which an instruction counts ten times for every loop around it ([`TURNS`]): how much of the kernel it
//! is, if loops turn.

mod class;
mod index;
mod measure;
mod memory;
mod pressure;

pub use class::Class;
pub use index::wrapping_products;
pub use measure::measure;
pub use memory::{Access, Direction, accesses};
pub use pressure::Pressure;

use crate::program::{FunctionId, LocationId, Program};
use std::collections::BTreeMap;

/// Turns that a loop is taken to make, where nothing is known.
pub const TURNS: u64 = 10;

/// How often something is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many there are in the text.
    pub instructions: u64,
    /// How many are executed, if every loop makes [`TURNS`] turns.
    pub weighted: u64,
}

impl Count {
    /// Adds `times` things of this weight.
    pub fn add(&mut self, times: u64, weight: u64) {
        self.instructions += times;
        self.weighted = self.weighted.saturating_add(times.saturating_mul(weight));
    }
}

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The function, the entry or one that it calls.
    pub function: FunctionId,
    /// The index of the instruction in it.
    pub instruction: u32,
    /// One-based line of the PTX.
    pub line: u32,
    /// One-based column of the PTX, in bytes.
    pub column: u32,
    /// Its place in the source, where a `.loc` gives one.
    pub location: Option<LocationId>,
}

impl Place {
    /// The place of an instruction.
    pub fn new(program: &Program, function: FunctionId, instruction: u32) -> Self {
        let found = &program.function(function).instructions[instruction as usize];
        Self { function, instruction, line: found.line, column: found.column, location: found.location }
    }
}

/// What one entry costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// The name of the entry.
    pub entry: String,
    /// The functions that it reaches, itself first, in the order found.
    pub functions: Vec<FunctionId>,
    /// Functions that it calls without their bodies being in the module (`vprintf`), by name, in order.
    pub external: Vec<String>,
    /// Whether a function can call itself, through others or not: its stack has no bound that is known.
    pub recursive: bool,
    /// All instructions.
    pub instructions: Count,
    /// Instructions by what kind of unit they keep busy. Classes that do not occur are not there.
    pub mix: BTreeMap<Class, Count>,
    /// The most values that are needed at one time.
    pub pressure: Pressure,
    /// Loads from local memory, and the bytes a thread loads with them: spilled registers and arrays on the stack.
    pub local_loads: Count,
    /// Bytes that local loads move, a thread.
    pub local_load_bytes: Count,
    /// Stores to local memory.
    pub local_stores: Count,
    /// Bytes that local stores move, a thread.
    pub local_store_bytes: Count,
    /// Bytes of local memory that are declared, a thread: arrays that are no registers, and what a compiler spilled
    /// before `ptxas`, which spills more where registers run out.
    pub local_bytes: u64,
    /// Bytes of shared memory that are declared with a size, a block.
    pub shared_bytes: u64,
    /// Whether there is shared memory whose size the launch gives.
    pub dynamic_shared: bool,
    /// Every access to global memory (or by a generic address), in order.
    pub accesses: Vec<Access>,
    /// Accesses to global memory by how many bytes a thread moves with one of them: 16 is the widest before Blackwell.
    pub access_bytes: BTreeMap<u32, Count>,
    /// Loops.
    pub loops: u64,
    /// Loops around the instruction that has most around it, within one function.
    pub loop_depth: u32,
    /// Branches that may go either way.
    pub branches: Count,
    /// Those of them that may part the threads of a warp.
    pub divergent_branches: Count,
    /// Where those are.
    pub divergent: Vec<Place>,
    /// Barriers of the block: `bar`, `barrier`, without those of a warp.
    pub barriers: Count,
    /// Barriers of a warp: `bar.warp.sync`.
    pub warp_barriers: Count,
    /// Atomics and reductions on global memory or by a generic address.
    pub global_atomics: Count,
    /// Atomics and reductions on shared memory.
    pub shared_atomics: Count,
    /// Arithmetic in double precision, conversions to and from it included.
    pub doubles: Count,
    /// Whether memory holds doubles: some are loaded or stored. Without, double-precision arithmetic is on data of
    /// another type.
    pub double_data: bool,
    /// Arithmetic in single precision or less.
    pub singles: Count,
    /// Products of 32 bits, neither factor a constant, that reach an address of global memory.
    pub wrapping: Vec<Place>,
    /// Matrix instructions.
    pub matrix: Count,
    /// Copies that go on while the thread does: `cp.async` and its kin.
    pub asynchronous_copies: Count,
}
