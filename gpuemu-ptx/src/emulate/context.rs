//! What instructions see besides their warp: the launch, the block and its memories.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustc_hash::FxHashMap;

use super::cancel::Watch;
use super::code::Code;
use super::counters::Count;
use super::launch::{Launch, mixed};
use super::op::Signal;
use super::output::Output;
use super::problem::{Trouble, Wrapped};
use super::warp::{Arrival, Reduction};
use crate::memory::shadow::{self, Meeting};
use crate::memory::{Cache, Global, Local, Shared};

/// Bytes of the heap that an allocation takes at least.
const LEAST: u64 = 64;

/// Named barriers of a block.
pub const BARRIERS: usize = 16;

/// What instructions see besides their warp.
pub struct Context<'a> {
    /// The code.
    pub code: &'a Code,
    /// The launch.
    pub launch: &'a Launch,
    /// Global memory.
    pub global: &'a Global,
    /// The region that each instruction accessed last.
    pub caches: Vec<Cache<'a>>,
    /// What sanitizers remember of the launch, where they are on.
    pub grid: Option<&'a shadow::Grid>,
    /// What they remember of the block.
    pub shadow: Option<shadow::Block<'a>>,
    /// The block that runs.
    pub block: BlockState,
    /// Instructions that the block has run, those of each warp counted.
    pub steps: u64,
    /// How many it may run.
    pub limit: u64,
    /// Grows with all that is done but what is watched and changes nothing that could be read.
    pub changes: u64,
    /// Whether lanes have stood still in this launch, as this worker knows.
    pub has_waited: bool,
    /// Whether what was watched read memory that other blocks can write.
    pub sees_others: bool,
    /// Whether the launch shall end.
    pub watch: Watch<'a>,
    /// What an instruction found wrong.
    pub trouble: Option<Trouble>,
    /// An index that wrapped around, and whose access is about to fail.
    pub wrapped: Option<Wrapped>,
    /// What is counted of each instruction; empty where nothing is.
    pub counts: Vec<Count>,
    /// Threads that `malloc` gave null, by block and warp, and how much the last of them asked for.
    pub out_of_heap: FxHashMap<(u64, u32), (u32, u64)>,
    /// Bytes that `malloc` gave out.
    pub heap: &'a AtomicU64,
    /// What was printed, as far as there is room.
    pub printed: Output,
}

/// What belongs to one block.
pub struct BlockState {
    /// Where it is in the grid.
    pub position: [u32; 3],
    /// Its number in the grid.
    pub number: u64,
    /// Its shared memory.
    pub shared: Shared,
    /// The stacks of its threads.
    pub local: Option<Local>,
    /// Its barriers.
    pub barriers: [Barrier; BARRIERS],
    /// Those at which threads have come, by number.
    pub touched: u32,
    /// Whether one of them may be complete.
    pub complete: bool,
    /// Threads that have not left.
    pub alive: u32,
    /// What it has told other threads through memory, so far.
    pub told: u64,
}

/// A barrier of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Barrier {
    /// Threads that came.
    threads: u32,
    /// The same, where a warp counts whole.
    whole: u32,
    /// Threads that it is for; 0 for all that have not left.
    count: u32,
    /// Predicates that held, and whether all did.
    holding: u32,
    all: bool,
    reduction: Reduction,
    /// Warps that wait.
    waiting: u32,
    /// Whether some only arrived.
    passed: bool,
}

impl Barrier {
    /// Whether all have come, where so many threads have not left.
    fn is_complete(&self, alive: u32) -> bool {
        match self.count {
            0 => self.threads >= alive,
            count => self.whole >= count,
        }
    }
}

impl Context<'_> {
    /// A strong write is done. Where orders are permuted, others may go first now: what they see of it should be all that
    /// they were promised.
    #[inline]
    pub fn told(&mut self) -> Signal {
        let Some(seed) = self.launch.seed else { return Signal::Next };
        self.block.told += 1;
        match mixed(seed ^ self.block.number << 32 ^ self.block.told) & 1 {
            0 => Signal::Next,
            _ => Signal::Yield,
        }
    }

    /// Lanes of a warp arrive at a barrier.
    pub fn arrive(&mut self, arrival: &Arrival, lanes: u32, warp: u32) {
        let index = arrival.barrier as usize % BARRIERS;
        let barrier = &mut self.block.barriers[index];
        if self.block.touched >> index & 1 == 0 {
            self.block.touched |= 1 << index;
            *barrier = Barrier { all: true, reduction: arrival.reduction, ..Barrier::default() };
        }
        barrier.threads += lanes.count_ones();
        barrier.whole += if arrival.aligned { 32 } else { lanes.count_ones() };
        barrier.count = barrier.count.max(arrival.count);
        barrier.holding += (arrival.truths & lanes).count_ones();
        barrier.all &= arrival.truths & lanes == lanes;
        self.block.complete |= barrier.is_complete(self.block.alive);
        if arrival.waits {
            barrier.waiting |= 1 << (warp % 32);
        } else {
            barrier.passed = true;
            if let Some(shadow) = &mut self.shadow {
                shadow.arrive(warp, Meeting::Barrier(arrival.barrier));
            }
        }
    }

    /// Lanes have left the kernel.
    pub fn left(&mut self, lanes: u32) {
        self.block.alive -= lanes.count_ones();
        self.block.complete = true;
    }

    /// A barrier at which all have come, closed again: its number and the result of its reduction.
    #[inline]
    pub fn opened(&mut self) -> Option<(u32, u32)> {
        if self.block.complete { self.opened_of_touched() } else { None }
    }

    fn opened_of_touched(&mut self) -> Option<(u32, u32)> {
        let (alive, touched) = (self.block.alive, self.block.touched);
        let complete = |index: u32| self.block.barriers[index as usize % BARRIERS].is_complete(alive);
        let mut rest = touched;
        let index = loop {
            let index = rest.trailing_zeros();
            if rest == 0 {
                self.block.complete = false;
                return None;
            }
            if complete(index) {
                break index;
            }
            rest &= rest - 1;
        };
        self.block.touched &= !(1 << index);
        let barrier = &mut self.block.barriers[index as usize];
        let result = match barrier.reduction {
            Reduction::None => 0,
            Reduction::Count => barrier.holding,
            Reduction::All => u32::from(barrier.all),
            Reduction::Any => u32::from(barrier.holding != 0),
        };
        let (waiting, passed) = (barrier.waiting, barrier.passed);
        *barrier = Barrier::default();
        if let Some(shadow) = &mut self.shadow {
            let meeting = Meeting::Barrier(index);
            let warps = (0..32).filter(|warp| waiting >> warp & 1 != 0);
            if passed {
                warps.clone().for_each(|warp| shadow.arrive(warp, meeting));
                shadow.complete(meeting);
                warps.for_each(|warp| shadow.wait(warp, meeting));
            } else {
                shadow.barrier(waiting);
            }
        }
        Some((index, result))
    }

    /// Memory for `malloc`: 0 where there is none.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        // What is known of each allocation takes room too.
        let taken = bytes.max(LEAST);
        if bytes == 0 || taken > self.launch.heap.saturating_sub(self.heap.load(Relaxed)) {
            return 0;
        }
        self.heap.fetch_add(taken, Relaxed);
        self.global.allocate(bytes, 16, "the heap").unwrap_or(0)
    }

    /// Threads that came to a barrier, and how many it waits for.
    pub fn progress(&self, barrier: u32) -> (u32, u32) {
        let state = &self.block.barriers[barrier as usize % BARRIERS];
        match state.count {
            0 => (state.threads, self.block.alive),
            count => (state.whole, count),
        }
    }
}
