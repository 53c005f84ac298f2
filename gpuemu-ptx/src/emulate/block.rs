//! One block: its warps, each in turn, until all have left.

use super::context::{Barrier, BlockState, Context};
use super::launch::mixed;
use super::problem::{Reason, Trouble, Wait};
use super::warp::{Outcome, Saved, Warp};
use crate::fault::Action;
use crate::memory::shadow::Finding;
use crate::memory::{Local, Shared, shadow};

/// Instructions that a warp runs before others of its block do.
const SLICE: u64 = 1 << 16;

/// Rounds over the warps of a block before other blocks run, where blocks may wait for each other.
const ROUNDS: u32 = 4;

/// Instructions of a block before it is asked whether all of it stands still, at first.
const FIRST_LOOK: u64 = 1 << 16;

/// The same in a launch in which some have waited.
const FIRST_OF_MANY: u64 = 1 << 12;

/// Instructions between two such questions, at most.
const SELDOM: u64 = 1 << 22;

/// Rounds over the warps that such a question takes at most.
const LOOKS: u32 = 16;

/// Instructions that a warp runs in one of them, and loops that begin again meanwhile; more where questions are seldom.
const LOOK: (u64, u64) = (1 << 10, 4);

/// Places at which threads wait that are told apart, at most.
const WAITS: usize = 64;

/// A block and its warps.
pub struct Block<'a> {
    /// What instructions see of it.
    pub state: BlockState,
    warps: Vec<Warp>,
    /// What sanitizers remember of it.
    shadow: Option<shadow::Block<'a>>,
    steps: u64,
    /// From how many of its instructions on it is asked whether it stands still, and how many pass between.
    next_look: u64,
    between_looks: u64,
    /// Whether it stood still when it ran last.
    stands: bool,
}

/// What a round over the warps of a block came to.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// All threads have left.
    finished: bool,
    /// Something was done.
    moved: bool,
    /// Every warp that is left waits for a barrier or stands still.
    quiet: bool,
    /// Some warp stands still.
    still: bool,
}

/// How a run of a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOutcome {
    /// All threads have left.
    Finished,
    /// Others may run first.
    Paused,
    /// Nothing in it will change unless other blocks change memory, or nothing at all.
    Still {
        /// Whether it reads memory that other blocks can write.
        sees_others: bool,
    },
    /// The warp of this number stopped at this instruction; the context says why.
    Fault {
        /// The warp.
        warp: u32,
        /// The instruction.
        place: u32,
    },
}

impl<'a> Block<'a> {
    /// Room for a block; `None` where there is none for its threads' stacks.
    pub fn new(context: &Context<'a>) -> Option<Self> {
        let launch = context.launch;
        let warps = (0..launch.warps()).map(|index| Warp::new(index, context)).collect();
        let local = match launch.local {
            0 => None,
            bytes => {
                let mut local = Local::new(bytes, launch.threads())?;
                if context.grid.is_some() && launch.sanitizers.initialisation {
                    local.watch()?;
                }
                Some(local)
            }
        };
        let state = BlockState {
            position: [0; 3],
            number: 0,
            shared: Shared::new(launch.shared),
            local,
            barriers: Default::default(),
            touched: 0,
            complete: false,
            alive: 0,
            told: 0,
        };
        let shadow = match context.grid {
            Some(grid) => Some(shadow::Block::new(context.global, grid, launch.shared)?),
            None => None,
        };
        Some(Self { state, warps, shadow, steps: 0, next_look: 0, between_looks: 0, stands: false })
    }

    /// Makes it the block of this number, before its first instruction.
    pub fn start(&mut self, number: u64, context: &Context<'_>) {
        self.state.number = number;
        self.state.position = context.launch.position(number);
        self.state.alive = context.launch.threads();
        self.state.barriers = [Barrier::default(); super::context::BARRIERS];
        self.state.touched = 0;
        self.state.told = 0;
        self.state.complete = false;
        if context.launch.shared != 0 {
            self.state.shared.reset();
        }
        if let Some(local) = &mut self.state.local {
            local.reset();
        }
        self.steps = 0;
        let first_look = if context.has_waited { FIRST_OF_MANY } else { FIRST_LOOK };
        (self.next_look, self.between_looks, self.stands) = (first_look, first_look, false);
        if let Some(shadow) = &mut self.shadow {
            shadow.start(number as u32, context.launch.warps());
        }
        self.warps.iter_mut().for_each(|warp| warp.start(context));
    }

    /// Runs it, to its end or for a while. The context's block is this one meanwhile.
    pub fn run(&mut self, context: &mut Context<'a>, cooperative: bool) -> BlockOutcome {
        std::mem::swap(&mut self.state, &mut context.block);
        std::mem::swap(&mut self.shadow, &mut context.shadow);
        context.steps = self.steps;
        context.limit = context.launch.budget;
        let outcome = self.rounds(context, cooperative);
        self.steps = context.steps;
        std::mem::swap(&mut self.state, &mut context.block);
        std::mem::swap(&mut self.shadow, &mut context.shadow);
        outcome
    }

    fn rounds(&mut self, context: &mut Context<'a>, cooperative: bool) -> BlockOutcome {
        let mut round = 0;
        if self.stands
            && let Some(outcome) = self.look(context)
        {
            return outcome;
        }
        loop {
            let Round { finished, moved, quiet, still } = match self.round(context, round, false) {
                Ok(round) => round,
                Err(outcome) => return outcome,
            };
            if finished {
                return BlockOutcome::Finished;
            }
            if context.steps >= context.limit {
                let running = |warp: &&Warp| !warp.is_finished();
                let warp = self.warps.iter().find(running).map_or(0, |warp| warp.index);
                context.trouble = Some(Trouble::Runaway { lane: 0, budget: context.launch.budget });
                return BlockOutcome::Fault { warp, place: self.warps[warp as usize].place() };
            }
            if !moved {
                return self.deadlock(context);
            }
            if (quiet && still || context.steps >= self.next_look)
                && let Some(outcome) = self.look(context)
            {
                return outcome;
            }
            round += 1;
            if cooperative && (round % ROUNDS == 0 || context.launch.seed.is_some()) {
                return BlockOutcome::Paused;
            }
        }
    }

    /// Each warp in turn, for a while; where it is watched, until it stands still or something has changed.
    fn round(&mut self, context: &mut Context<'a>, round: u32, watched: bool) -> Result<Round, BlockOutcome> {
        let mut went = Round { finished: true, moved: false, quiet: true, still: false };
        let (most, turns) = (LOOK.0.max(self.between_looks >> 8), LOOK.1.max(self.between_looks >> 14));
        let count = self.warps.len();
        let shift = context.launch.seed.map_or(0, |seed| shuffled(seed, context.block.number, round));
        for turn in 0..count {
            let index = match context.launch.seed {
                None => turn,
                Some(_) => permuted(turn, count, shift),
            };
            if self.warps[index].is_finished() {
                continue;
            }
            if context.watch.is_over() {
                context.trouble = Some(Trouble::Cancelled { lane: 0 });
                return Err(BlockOutcome::Fault { warp: index as u32, place: self.warps[index].place() });
            }
            let warp = &mut self.warps[index];
            let before = context.steps;
            let outcome = match watched {
                true => warp.run_watched(context, (most.max(warp.looks.0), turns.max(warp.looks.1))),
                false => warp.run(context, SLICE),
            };
            match outcome {
                Outcome::Finished => {
                    went.moved = true;
                    if let Some(shadow) = &mut context.shadow {
                        shadow.retire(index as u32);
                    }
                }
                Outcome::Blocked => {
                    went.finished = false;
                    went.moved |= context.steps != before;
                }
                Outcome::Still => (went.finished, went.moved, went.still) = (false, true, true),
                Outcome::Paused => (went.finished, went.moved, went.quiet) = (false, true, false),
                Outcome::Fault => {
                    let outcome = BlockOutcome::Fault { warp: index as u32, place: self.warps[index].stopped };
                    return Err(self.writer(index, context).unwrap_or(outcome));
                }
            }
            while let Some((barrier, result)) = context.opened() {
                went.moved = true;
                if let Some(outcome) = self.passed(barrier, context) {
                    return Err(outcome);
                }
                self.open(barrier, result);
            }
            if watched && !went.quiet {
                // The others have their turn in the next round.
                break;
            }
        }
        Ok(went)
    }

    /// Asks whether it stands still: whether all its warps come back to where they were, while nothing changes that any
    /// of them could see. How it ended, or `None` where it goes on.
    fn look(&mut self, context: &mut Context<'a>) -> Option<BlockOutcome> {
        self.stands = false;
        self.warps.iter_mut().for_each(|warp| warp.polls.clear());
        context.sees_others = false;
        let changes = context.changes;
        let mut before: Option<(Vec<Saved>, [Barrier; super::context::BARRIERS], u32)> = None;
        for round in 1..=LOOKS {
            let Round { finished, moved, quiet, .. } = match self.round(context, round, true) {
                Ok(round) => round,
                Err(outcome) => return Some(outcome),
            };
            if finished {
                return Some(BlockOutcome::Finished);
            }
            if !moved {
                return Some(self.deadlock(context));
            }
            if !quiet || context.changes != changes || !self.warps.iter().all(Warp::is_complete) {
                break;
            }
            if let Some((warps, barriers, touched)) = &before
                && *touched == context.block.touched
                && *barriers == context.block.barriers
                && self.warps.iter().zip(warps).all(|(warp, saved)| warp.is(saved))
            {
                self.stands = true;
                context.has_waited = true;
                return Some(BlockOutcome::Still { sees_others: context.sees_others });
            }
            if round.is_power_of_two() {
                let warps = self.warps.iter().map(Warp::saved).collect();
                before = Some((warps, context.block.barriers, context.block.touched));
            }
        }
        self.between_looks = SELDOM.min(2 * self.between_looks);
        self.next_look = context.steps + self.between_looks;
        None
    }

    /// Adds what its threads wait for, once it stands still.
    pub fn waits(&self, waits: &mut Vec<Wait>) {
        for warp in &self.warps {
            for (lanes, place, reason) in warp.waits() {
                let known = waits.iter().position(|wait| {
                    wait.place == place
                        && match (wait.reason, reason) {
                            (Reason::Memory(one), Reason::Memory(other)) => {
                                // Of shared memory every block has its own.
                                one.address == other.address && one.space == other.space && one.value == other.value
                            }
                            (one, other) => one == other,
                        }
                });
                let threads = u64::from(lanes.count_ones());
                match known {
                    Some(known) => waits[known].threads += threads,
                    None if waits.len() == WAITS => {}
                    None => {
                        let lane = lanes.trailing_zeros();
                        let (block, thread) = (self.state.position, self.thread(warp.index, lane));
                        waits.push(Wait { block, thread, lane, threads, place, reason });
                    }
                }
            }
        }
    }

    fn open(&mut self, barrier: u32, result: u32) {
        for warp in &mut self.warps {
            warp.open(barrier, result);
        }
    }

    /// A barrier of the whole block is about to open, though a warp went on behind it without it.
    fn passed(&self, barrier: u32, context: &mut Context<'_>) -> Option<BlockOutcome> {
        let code = context.code;
        if code.passed.is_empty() || !context.launch.sanitizers.races {
            return None;
        }
        let place = |warp: &Warp| match warp.waiting().filter(|(_, arrival)| arrival.barrier == barrier) {
            Some((_, arrival)) => arrival.place,
            None => warp.stopped,
        };
        let first = place(&self.warps[0]);
        if self.warps.iter().all(|warp| place(warp) == first) {
            return None;
        }
        for waits in &self.warps {
            let Some((lane, arrival)) = waits.waiting().filter(|(_, arrival)| arrival.barrier == barrier) else {
                continue;
            };
            let other = self.warps.iter().find(|warp| {
                let here = warp.is_finished() || warp.waiting().is_some_and(|(_, arrival)| arrival.barrier == barrier);
                here && code.passes(arrival.place, place(warp))
            });
            if let Some(other) = other {
                context.trouble = Some(Trouble::BarrierPassed { lane, warp: other.index, place: place(other) });
                return Some(BlockOutcome::Fault { warp: waits.index, place: arrival.place });
            }
        }
        None
    }

    /// A warp read what nothing wrote. Where another warp writes it before it can meet the reader, the two race, and
    /// that says more: the others run on, as far as they come without the reader.
    fn writer(&mut self, reader: usize, context: &mut Context<'a>) -> Option<BlockOutcome> {
        let told = context.trouble.take();
        if !matches!(told, Some(Trouble::Found { finding: Finding::Uninitialised { .. }, .. })) {
            context.trouble = told;
            return None;
        }
        // Warps that have stopped at what they found.
        let mut stopped = 1_u32 << reader;
        let end = context.steps + SLICE;
        let mut moved = context.launch.sanitizers.races;
        while moved && context.steps < end {
            moved = false;
            for index in 0..self.warps.len() {
                if stopped >> index & 1 != 0 || self.warps[index].is_finished() {
                    continue;
                }
                let before = context.steps;
                match self.warps[index].run(context, SLICE) {
                    Outcome::Fault => {
                        if let Some(Trouble::Found { finding: Finding::Race(race), .. }) = context.trouble
                            && race.earlier.action == Action::Read
                            && stopped >> race.earlier.warp & 1 != 0
                        {
                            return Some(BlockOutcome::Fault { warp: index as u32, place: self.warps[index].stopped });
                        }
                        stopped |= 1 << index;
                    }
                    Outcome::Finished => moved = true,
                    Outcome::Blocked | Outcome::Still | Outcome::Paused => moved |= context.steps != before,
                }
                while let Some((barrier, result)) = context.opened() {
                    self.open(barrier, result);
                }
            }
        }
        context.trouble = told;
        None
    }

    fn deadlock(&self, context: &mut Context<'_>) -> BlockOutcome {
        for warp in &self.warps {
            if let Some((lane, arrival)) = warp.waiting() {
                let (arrived, expected) = context.progress(arrival.barrier);
                context.trouble = Some(Trouble::Deadlock { lane, arrived, expected, barrier: arrival.barrier });
                return BlockOutcome::Fault { warp: warp.index, place: arrival.place };
            }
        }
        let warp = self.warps.iter().find(|warp| !warp.is_finished()).map_or(0, |warp| warp.index);
        context.trouble = Some(Trouble::Deadlock { lane: 0, arrived: 0, expected: 0, barrier: 0 });
        BlockOutcome::Fault { warp, place: self.warps[warp as usize].place() }
    }

    /// Instructions that it has run.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Where a thread of a warp is in the block.
    pub fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        self.warps[warp as usize].tid.map(|row| row[lane as usize % 32])
    }
}

/// A number from a seed, a block and a round.
fn shuffled(seed: u64, block: u64, round: u32) -> u64 {
    mixed(seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(round).wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// The place of a turn in one of the orders of so many warps: a rotation, forwards or backwards.
fn permuted(turn: usize, count: usize, shift: u64) -> usize {
    let at = (turn + (shift >> 1) as usize % count) % count;
    if shift & 1 == 0 { at } else { count - 1 - at }
}
