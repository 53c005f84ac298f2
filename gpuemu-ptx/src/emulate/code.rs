//! What an entry and everything it calls became: instructions, constants, and where each came from.

use rustc_hash::{FxHashMap, FxHashSet};

use super::counters::Counted;
use super::demand::Demand;
use super::effects::Effect;
use super::native::Native;
use super::op::Op;
use super::registers::Row;
use crate::program::FunctionId;

/// No place in the code.
pub const NOWHERE: u32 = u32::MAX;

/// The code of one entry.
pub struct Code {
    /// Instructions of all functions, the entry first.
    pub ops: Vec<Op>,
    /// The same as they are executed where nothing is watched.
    pub native: Native,
    /// Where each instruction stands in the program.
    pub origins: Vec<Origin>,
    /// Constants, the last ones first: see [`super::registers::Registers`].
    pub constants: Box<[Row]>,
    /// Lists of registers, places and numbers that instructions refer to.
    pub lists: Vec<i32>,
    /// The functions, the entry first.
    pub functions: Vec<Routine>,
    /// The functions by their number in the program.
    pub routines: FxHashMap<FunctionId, u32>,
    /// Bytes of static shared memory.
    pub shared: u32,
    /// Whether a block's result may depend on when it runs beside others: atomics, volatile and ordered accesses.
    pub ordered: bool,
    /// Whether threads take local memory at run time.
    pub grows: bool,
    /// Instructions that remember a region of memory.
    pub caches: usize,
    /// The operation that each of them is, or the first of its instruction.
    pub sites: Vec<u32>,
    /// For each of them what is wanted of what it loads.
    pub demands: Vec<Demand>,
    /// For each operation what it changes or sees beside registers.
    pub effects: Vec<Effect>,
    /// Barriers of the block, and places at which a thread has passed one by: instructions of the entry.
    pub passed: FxHashSet<(u32, u32)>,
    /// Where threads have nothing left to do but leave: the entry's `ret` and `exit`, and jumps there.
    pub ends: FxHashSet<u32>,
    /// The entry.
    pub entry: FunctionId,
    /// What is counted, in the order of the code; empty where nothing is.
    pub counted: Vec<Counted>,
}

/// One function.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its first instruction.
    pub start: u32,
    /// Rows of a frame.
    pub rows: u32,
    /// Predicates of a frame.
    pub predicates: u32,
    /// Bytes of local memory of a frame.
    pub local: u32,
    /// First row of every parameter, and of every value returned.
    pub parameters: Vec<i32>,
    /// See `parameters`.
    pub returns: Vec<i32>,
    /// Rows that instructions may read before any wrote them: zero at the beginning.
    pub unwritten: Vec<i32>,
}

/// Where an instruction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Number of the function in the program.
    pub function: FunctionId,
    /// Index in [`crate::program::Function::instructions`].
    pub instruction: u32,
}

impl Code {
    /// Whether a thread at the second place has gone by the barrier at the first, which others wait at.
    pub fn passes(&self, barrier: u32, place: u32) -> bool {
        let [barrier, place] = [barrier, place].map(|place| self.origins.get(place as usize));
        barrier.zip(place).is_some_and(|(barrier, place)| {
            let both = [barrier.function, place.function] == [self.entry; 2];
            both && self.passed.contains(&(barrier.instruction, place.instruction))
        })
    }

    /// The function that an instruction is of.
    pub fn routine_at(&self, place: u32) -> Option<&Routine> {
        let after = self.functions.partition_point(|routine| routine.start <= place);
        after.checked_sub(1).map(|index| &self.functions[index])
    }
}
