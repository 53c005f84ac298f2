//! One warp: its lanes, where they are, and what they wait for.
//!
//! Lanes that are at the same place with the same calls open form a fragment. Where a branch parts them, they wait for
//! each other at the branch's immediate post-dominator (a join), so that a warp is whole again as soon as it can be. A
//! fragment that runs for long while others wait gives way, and then lanes that wait at its join go on without it: no
//! lane can keep another from running for ever.

mod calls;
mod joins;
mod meeting;
mod run;
mod watch;

use super::registers::{Frame, LANES, Registers};

pub use watch::{Poll, Saved};

/// No join.
const NONE: u32 = u32::MAX;

/// Lanes at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fragment {
    /// Their next instruction.
    place: u32,
    /// The lanes.
    lanes: u32,
    /// The join where they wait for others.
    join: u32,
    /// What they wait for.
    state: State,
    /// Their registers.
    frame: Frame,
}

/// What lanes wait for. As wide as the other fields of a fragment, which is copied often and has no gaps so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum State {
    /// Nothing.
    Ready,
    /// Lanes that must execute the instruction with them: [`Warp::gathering`] of their first lane.
    Gathering,
    /// The rest of their warp, to arrive together at a barrier of the block: [`Warp::arrivals`] of their first lane.
    Assembling,
    /// A barrier of the block, likewise.
    Waiting,
}

/// The lanes that an instruction needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The lanes.
    pub lanes: u32,
    /// Whether they may come to it at other places: `bar.warp.sync`.
    pub anywhere: bool,
}

/// Where lanes that parted meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Join {
    place: u32,
    expected: u32,
    arrived: u32,
    parent: u32,
    frame: Frame,
    /// For the end of a call, the list that says where results go and the routine that returns them.
    call: Option<(i32, u32)>,
}

/// How lanes arrive at a barrier of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the barrier.
    pub barrier: u32,
    /// Threads that it is for; 0 for all of the block.
    pub count: u32,
    /// Whether the lanes wait.
    pub waits: bool,
    /// Whether all lanes of the warp must come together.
    pub aligned: bool,
    /// The reduction: none, `popc`, `and`, `or`.
    pub reduction: Reduction,
    /// Lanes whose predicate holds.
    pub truths: u32,
    /// Where the result goes: a register or a predicate.
    pub result: i32,
    /// The instruction.
    pub place: u32,
}

/// What `bar.red` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Nothing: the barrier reduces nothing.
    #[default]
    None,
    /// Counts.
    Count,
    /// Whether all hold.
    All,
    /// Whether any holds.
    Any,
}

/// How a run of a warp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All lanes have left.
    Finished,
    /// Every lane waits for a barrier of the block.
    Blocked,
    /// Every lane that does not wait for a barrier goes round a loop in which nothing changes.
    Still,
    /// The slice is used up.
    Paused,
    /// [`Context::trouble`] says what is wrong.
    Fault,
}

/// A warp.
pub struct Warp {
    /// Its registers.
    pub registers: Registers,
    /// The carry flag of every lane.
    pub carry: u32,
    /// Its number in the block.
    pub index: u32,
    /// Lanes that have not left.
    pub alive: u32,
    /// `%tid` of every lane.
    pub tid: [[u32; LANES]; 3],
    /// Where what each lane took of its local memory at run time begins: it ends where the memory does.
    pub stack: [u32; LANES],
    /// Where each lane goes: of an indirect branch or call.
    pub places: [u32; LANES],
    /// The lanes that the instruction needs.
    pub wanted: Wanted,
    /// Asynchronous copies in flight.
    pub copies: super::copies::Copies,
    /// The lanes that run now, those of the guard's among them or not.
    pub active: u32,
    /// Where the warp stopped on a fault.
    pub stopped: u32,
    /// Lanes that stand still, of those that were looked at last.
    pub still: u32,
    /// What they read on their way.
    pub polls: Vec<Poll>,
    /// Whether a fragment has just come back to the beginning of a loop, where that is watched.
    turned: bool,
    /// From how many instructions of the block on its lanes are looked at, and how many then pass before the next look.
    next_look: u64,
    between_looks: u64,
    /// Instructions, and loops that begin again, in which it was seen to stand still.
    pub looks: (u64, u64),
    fragments: Vec<Fragment>,
    joins: Vec<Join>,
    spare: Vec<u32>,
    /// What fragments wait for, by their first lane: they have no lane in common.
    gathering: [Wanted; LANES],
    /// How fragments arrived at a barrier, by their first lane.
    pub arrivals: [Arrival; LANES],
}
