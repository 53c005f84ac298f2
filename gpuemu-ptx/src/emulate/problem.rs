//! What can go wrong while code runs, as instructions find it.

use super::warp::Poll;
use crate::fault::Action;
use crate::memory::Problem;
use crate::memory::shadow::Finding;
use crate::program::Space;

/// What an instruction found, before it is known where in the source it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An access that memory refuses.
    Access {
        /// What memory says.
        problem: Problem,
        /// The space that the address is in; `None` for a generic one that leads to global memory.
        space: Space,
        /// Whether it was a store or an atomic.
        write: bool,
    },
    /// What a sanitizer found.
    Found {
        /// What it says.
        finding: Finding,
        /// The memory.
        space: Space,
        /// What the access does.
        action: Action,
    },
    /// An index of 32 bits wrapped around and leads to another place of a tensor.
    IndexWraps(Wrapped),
    /// `trap`.
    Trap {
        /// The first lane that came.
        lane: u32,
    },
    /// `assert` did not hold.
    Assertion {
        /// The lane.
        lane: u32,
        /// The condition, the file, the line and the function.
        message: String,
    },
    /// `brx.idx` past the end of its list.
    BranchIndex {
        /// The lane.
        lane: u32,
        /// The index.
        index: u32,
        /// Targets in the list.
        targets: u64,
    },
    /// A call to an address where no function of that prototype is.
    CallTarget {
        /// The lane.
        lane: u32,
        /// The address.
        address: u64,
    },
    /// Calls use more local memory than there is.
    StackOverflow {
        /// The lane.
        lane: u32,
        /// Calls that were open.
        depth: u32,
    },
    /// `alloca` asks for more than is left of a thread's local memory.
    StackUsedUp {
        /// The lane.
        lane: u32,
        /// Bytes that it asks for.
        bytes: u64,
        /// Bytes that are left.
        left: u64,
    },
    /// `stackrestore` of what nothing saved, or what was given back.
    BadStack {
        /// The lane.
        lane: u32,
        /// What it restores.
        address: u64,
    },
    /// An instruction for several lanes, some of which have left or can never come.
    AbsentLanes {
        /// The first lane that is there.
        lane: u32,
        /// Lanes that it names.
        named: u32,
        /// Lanes that came.
        present: u32,
    },
    /// The executing lane is not among the lanes that the instruction names.
    NotNamed {
        /// The lane.
        lane: u32,
        /// Lanes that it names.
        named: u32,
    },
    /// A shuffle reads a lane that takes no part.
    ShuffleSource {
        /// The lane.
        lane: u32,
        /// The lane that it reads.
        from: u32,
    },
    /// A barrier for all threads of a warp, reached by some of them.
    DivergentBarrier {
        /// The first lane that waits.
        lane: u32,
        /// Lanes that came.
        present: u32,
        /// Lanes that have not left.
        alive: u32,
    },
    /// A barrier for all threads of the block, which a warp passed by.
    BarrierPassed {
        /// The first lane that waits.
        lane: u32,
        /// The warp that does not.
        warp: u32,
        /// Where that warp left, or waits.
        place: u32,
    },
    /// Threads that wait for each other for ever.
    Deadlock {
        /// The first lane that waits.
        lane: u32,
        /// Threads that came to the barrier.
        arrived: u32,
        /// Threads that it waits for.
        expected: u32,
        /// Number of the barrier.
        barrier: u32,
    },
    /// A barrier's number or count is none.
    BadBarrier {
        /// The lane.
        lane: u32,
        /// What is wrong.
        reason: &'static str,
    },
    /// Threads that come back to where they were again and again, with nothing changed, and all others wait.
    Standstill {
        /// The first lane of the first of them.
        lane: u32,
        /// All of them; the first is the one to tell of.
        waits: Vec<Wait>,
        /// Blocks that have not begun.
        unstarted: u64,
        /// Blocks that have.
        resident: u64,
    },
    /// The launch ran more instructions than it may.
    Runaway {
        /// The first lane.
        lane: u32,
        /// The budget.
        budget: u64,
    },
    /// The launch was ended from outside.
    Cancelled {
        /// The first lane.
        lane: u32,
    },
    /// `free` of what is no allocation.
    BadFree {
        /// The lane.
        lane: u32,
        /// What it frees.
        address: u64,
        /// Why it cannot.
        reason: String,
    },
}

/// An index of 32 bits that is not what its sums and products come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapped {
    /// The lane.
    pub lane: u32,
    /// What they come to.
    pub exact: i64,
    /// Whether the index has a sign.
    pub signed: bool,
    /// The instruction that made an address of it.
    pub place: u32,
    /// The address that was accessed.
    pub address: u64,
    /// How many bytes.
    pub bytes: u32,
    /// What was done.
    pub action: Action,
}

/// Threads that wait at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The block of the first of them.
    pub block: [u32; 3],
    /// The first of them.
    pub thread: [u32; 3],
    /// Its lane.
    pub lane: u32,
    /// How many there are.
    pub threads: u64,
    /// The instruction.
    pub place: u32,
    /// What they wait for.
    pub reason: Reason,
}

/// What threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing: they go round a loop that has no end.
    Nothing,
    /// Another value in memory.
    Memory(Poll),
    /// A barrier of the block.
    Barrier,
    /// Other lanes of their warp.
    Lanes,
}

impl Trouble {
    /// The lane that found it.
    pub fn lane(&self) -> u32 {
        match *self {
            Self::Access { problem, .. } => u32::from(problem.lane),
            Self::Found { finding, .. } => match finding {
                Finding::Race(race) => u32::from(race.lane),
                Finding::Uninitialised { lane, .. } | Finding::InputWritten { lane, .. } => u32::from(lane),
            },
            Self::IndexWraps(wrapped) => wrapped.lane,
            Self::Trap { lane }
            | Self::Assertion { lane, .. }
            | Self::BranchIndex { lane, .. }
            | Self::CallTarget { lane, .. }
            | Self::StackOverflow { lane, .. }
            | Self::StackUsedUp { lane, .. }
            | Self::BadStack { lane, .. }
            | Self::AbsentLanes { lane, .. }
            | Self::NotNamed { lane, .. }
            | Self::ShuffleSource { lane, .. }
            | Self::DivergentBarrier { lane, .. }
            | Self::BarrierPassed { lane, .. }
            | Self::Deadlock { lane, .. }
            | Self::BadBarrier { lane, .. }
            | Self::Standstill { lane, .. }
            | Self::Runaway { lane, .. }
            | Self::Cancelled { lane }
            | Self::BadFree { lane, .. } => lane,
        }
    }
}
