//! What can go wrong while code runs, as instructions find it.

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
    /// The launch ran more instructions than it may.
    Runaway {
        /// The first lane.
        lane: u32,
        /// The budget.
        budget: u64,
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
            | Self::AbsentLanes { lane, .. }
            | Self::NotNamed { lane, .. }
            | Self::ShuffleSource { lane, .. }
            | Self::DivergentBarrier { lane, .. }
            | Self::BarrierPassed { lane, .. }
            | Self::Deadlock { lane, .. }
            | Self::BadBarrier { lane, .. }
            | Self::Runaway { lane, .. }
            | Self::BadFree { lane, .. } => lane,
        }
    }
}
