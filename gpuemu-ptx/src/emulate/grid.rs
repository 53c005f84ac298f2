//! All blocks of a launch: side by side where nothing ties them together, else in turn.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};

use super::block::{Block, BlockOutcome};
use super::cancel::{Cancel, End, PACE, Watch};
use super::code::Code;
use super::context::{BARRIERS, Barrier, BlockState, Context};
use super::counters::{self, Count};
use super::launch::Launch;
use super::output::{Output, Printed};
use super::problem::{Reason, Trouble, Wait, Wrapped};
use crate::memory::{Cache, Global, Shared, shadow};

/// Blocks that a worker takes up at once, where blocks run side by side.
const MOST_TOGETHER: u64 = 16;

/// What a launch left behind beside memory.
#[derive(Debug, Default)]
pub struct Report {
    /// What kernels printed, block by block.
    pub printed: Vec<Printed>,
    /// Instructions that were executed, those of each warp counted.
    pub instructions: u64,
    /// What was counted of each instruction.
    pub counts: Vec<Count>,
    /// The first fault, in the order of blocks.
    pub stopped: Option<Stopped>,
}

/// Where and why a launch stopped.
#[derive(Debug)]
pub struct Stopped {
    /// How many blocks were taken up before its own.
    pub turn: u64,
    /// Where it is in the grid.
    pub block: [u32; 3],
    /// The thread.
    pub thread: [u32; 3],
    /// The instruction.
    pub place: u32,
    /// Why.
    pub trouble: Trouble,
    /// An index that wrapped around before, in the same lane.
    pub wrapped: Option<Wrapped>,
    /// Bytes that the thread asked `malloc` for, which gave it null.
    pub out_of_heap: Option<u64>,
}

/// Blocks that a worker puts aside, at most.
const ASIDE: usize = 256;

/// A block that was taken up after so many others.
type Turn<'a> = (u64, Block<'a>);

/// What a worker of the host found.
#[derive(Default)]
struct Found<'a> {
    /// With the turn of the block.
    printed: Vec<(u64, Vec<Printed>)>,
    instructions: u64,
    counts: Vec<Count>,
    stopped: Option<Stopped>,
    /// Blocks that stand still until others have written.
    aside: Vec<Turn<'a>>,
}

fn context<'a>(
    code: &'a Code,
    launch: &'a Launch,
    global: &'a Global,
    grid: Option<&'a shadow::Grid>,
    heap: &'a AtomicU64,
    watch: Watch<'a>,
) -> Context<'a> {
    Context {
        code,
        launch,
        global,
        caches: vec![Cache::default(); code.caches],
        grid,
        shadow: None,
        block: BlockState {
            position: [0; 3],
            number: 0,
            shared: Shared::new(0),
            local: None,
            barriers: [Barrier::default(); BARRIERS],
            touched: 0,
            complete: false,
            alive: 0,
            told: 0,
        },
        steps: 0,
        limit: launch.budget,
        changes: 0,
        has_waited: false,
        sees_others: false,
        watch,
        trouble: None,
        wrapped: None,
        counts: vec![Count::default(); code.counted.len()],
        out_of_heap: Default::default(),
        heap,
        printed: Output::new(),
    }
}

/// Runs a launch on so many threads of the host at most.
pub fn run(
    code: &Code,
    launch: &Launch,
    global: &Global,
    grid: Option<&shadow::Grid>,
    threads: usize,
    cancel: Option<&Cancel>,
) -> Report {
    let end = End::new(cancel);
    let heap = AtomicU64::new(0);
    let blocks = launch.blocks();
    let threads = if code.ordered { 1 } else { threads.clamp(1, blocks.clamp(1, 256) as usize) };
    if let Some(grid) = grid.filter(|_| threads == 1) {
        // SAFETY: this thread runs all blocks.
        unsafe { grid.assume_alone() };
    }
    let mut found = Vec::new();
    if code.ordered {
        found.push(in_turn(code, launch, global, grid, &heap, end.asking(), None));
    } else {
        // Blocks next to each other often share a page or a line of the host's cache: one worker takes several.
        let together = (blocks / (threads as u64 * 16)).clamp(1, MOST_TOGETHER);
        let queue = Queue { next: AtomicU64::new(0), together, first_stopped: AtomicU64::new(u64::MAX) };
        let work = |watch| side_by_side(code, launch, global, grid, &heap, &queue, watch);
        std::thread::scope(|scope| {
            let (sender, others) = mpsc::channel();
            for _ in 1..threads {
                let sender = sender.clone();
                let (work, end) = (&work, &end);
                scope.spawn(move || {
                    let _ = sender.send(work(end.told()));
                });
            }
            drop(sender);
            found.push(work(end.asking()));
            let mut watch = end.asking();
            loop {
                match others.recv_timeout(PACE) {
                    Ok(other) => found.push(other),
                    // The others are still at it: they see what this thread is told.
                    Err(RecvTimeoutError::Timeout) => _ = watch.is_over(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
    }
    // Blocks that stand still go on once all others have run.
    let mut aside: Vec<_> = found.iter_mut().flat_map(|one| std::mem::take(&mut one.aside)).collect();
    if !aside.is_empty() && found.iter().all(|one| one.stopped.is_none()) {
        aside.sort_by_key(|(turn, _)| *turn);
        found.push(in_turn(code, launch, global, grid, &heap, end.asking(), Some(aside.into())));
    }
    let mut report = Report::default();
    let mut printed = Vec::new();
    for one in found {
        report.instructions += one.instructions;
        counters::merge(&mut report.counts, &one.counts);
        printed.extend(one.printed);
        if let Some(stopped) = one.stopped
            && report.stopped.as_ref().is_none_or(|before| stopped.turn < before.turn)
        {
            report.stopped = Some(stopped);
        }
    }
    printed.sort_by_key(|(turn, _)| *turn);
    let last = report.stopped.as_ref().map_or(u64::MAX, |stopped| stopped.turn);
    let told = printed.into_iter().filter(|(turn, _)| *turn <= last);
    report.printed = Output::first(told.flat_map(|(_, printed)| printed));
    report
}

fn no_room(launch: &Launch) -> Stopped {
    Stopped {
        turn: 0,
        block: [0; 3],
        thread: [0; 3],
        place: 0,
        trouble: Trouble::StackOverflow { lane: 0, depth: launch.depth },
        wrapped: None,
        out_of_heap: None,
    }
}

/// What is left to do of blocks that run side by side.
struct Queue {
    /// The turn that comes next.
    next: AtomicU64,
    /// Turns that a worker takes at once.
    together: u64,
    /// The first turn that stopped.
    first_stopped: AtomicU64,
}

/// One worker: takes blocks in order until none is left, or an earlier one has stopped.
fn side_by_side<'a>(
    code: &'a Code,
    launch: &'a Launch,
    global: &'a Global,
    grid: Option<&'a shadow::Grid>,
    heap: &'a AtomicU64,
    queue: &Queue,
    watch: Watch<'a>,
) -> Found<'a> {
    let mut found = Found::default();
    let mut context = context(code, launch, global, grid, heap, watch);
    let Some(mut block) = Block::new(&context) else {
        found.stopped = Some(no_room(launch));
        return found;
    };
    let order = launch.order();
    let mut turns = 0..0;
    loop {
        let turn = turns.next().unwrap_or_else(|| {
            let first = queue.next.fetch_add(queue.together, Relaxed);
            turns = first + 1..first + queue.together;
            first
        });
        if turn >= launch.blocks() || turn > queue.first_stopped.load(Relaxed) {
            found.counts = context.counts;
            return found;
        }
        block.start(order.block(turn), &context);
        let outcome = block.run(&mut context, false);
        found.instructions += context.steps;
        let printed = context.printed.take();
        if !printed.is_empty() {
            found.printed.push((turn, printed));
        }
        if let BlockOutcome::Still { sees_others } = outcome {
            // What it waits for, other blocks may write yet.
            if sees_others
                && launch.blocks() > 1
                && found.aside.len() < ASIDE
                && let Some(next) = Block::new(&context)
            {
                found.aside.push((turn, std::mem::replace(&mut block, next)));
                continue;
            }
            found.stopped = Some(stands_still(&[&(turn, block)], 0));
        } else if let BlockOutcome::Fault { warp, place } = outcome {
            found.stopped = Some(stopped(&block, turn, &mut context, warp, place));
        } else {
            continue;
        }
        queue.first_stopped.fetch_min(turn, Relaxed);
        found.counts = context.counts;
        return found;
    }
}

fn stopped(block: &Block<'_>, turn: u64, context: &mut Context<'_>, warp: u32, place: u32) -> Stopped {
    let trouble = context.trouble.take().unwrap_or(Trouble::Trap { lane: 0 });
    let refused = context.out_of_heap.get(&(block.state.number, warp));
    Stopped {
        out_of_heap: refused.filter(|(lanes, _)| lanes >> (trouble.lane() % 32) & 1 != 0).map(|(_, bytes)| *bytes),
        turn,
        block: block.state.position,
        thread: block.thread(warp, trouble.lane()),
        place,
        wrapped: context.wrapped.take().filter(|wrapped| wrapped.lane == trouble.lane()),
        trouble,
    }
}

/// No thread of these blocks will do anything but wait.
fn stands_still(blocks: &[&Turn<'_>], unstarted: u64) -> Stopped {
    let mut blocks = blocks.to_vec();
    blocks.sort_by_key(|(_, block)| block.state.number);
    let mut waits: Vec<Wait> = Vec::new();
    blocks.iter().for_each(|(_, block)| block.waits(&mut waits));
    // Threads that wait for nothing keep all others waiting; else those that wait for memory say most.
    let rank = |wait: &Wait| match wait.reason {
        Reason::Nothing => 0,
        Reason::Memory(poll) if poll.ordered => 1,
        Reason::Memory(_) => 2,
        Reason::Barrier | Reason::Lanes => 3,
    };
    waits.sort_by_key(rank);
    if let [first, ..] = &mut waits[..]
        && rank(first) == 3
    {
        // Barriers that open again and again.
        first.reason = Reason::Nothing;
    }
    let first = waits.first().cloned();
    let trouble = Trouble::Standstill {
        lane: first.as_ref().map_or(0, |first| first.lane),
        waits,
        unstarted,
        resident: blocks.len() as u64,
    };
    Stopped {
        turn: blocks.iter().map(|(turn, _)| *turn).min().unwrap_or(0),
        block: first.as_ref().map_or([0; 3], |first| first.block),
        thread: first.as_ref().map_or([0; 3], |first| first.thread),
        place: first.map_or(0, |first| first.place),
        trouble,
        wrapped: None,
        out_of_heap: None,
    }
}

/// All blocks in order, each for a while: those that wait for others are taken up again. `waiting`: these blocks alone,
/// which have begun.
fn in_turn<'a>(
    code: &'a Code,
    launch: &'a Launch,
    global: &'a Global,
    grid: Option<&'a shadow::Grid>,
    heap: &'a AtomicU64,
    watch: Watch<'a>,
    waiting: Option<VecDeque<Turn<'a>>>,
) -> Found<'a> {
    let mut found = Found::default();
    let mut context = context(code, launch, global, grid, heap, watch);
    let mut next = if waiting.is_some() { launch.blocks() } else { 0 };
    let mut waiting = waiting.unwrap_or_default();
    let mut spare: Vec<Block<'_>> = Vec::new();
    let order = launch.order_in_turn();
    // Blocks that stood still one after the other, with nothing changed since.
    let (mut still, mut changes) = (0, 0);
    loop {
        let begins = next < launch.blocks() && (waiting.len() as u64) < launch.resident;
        let (turn, mut block) = if begins {
            let Some(mut block) = spare.pop().or_else(|| Block::new(&context)) else {
                found.stopped = Some(no_room(launch));
                return found;
            };
            block.start(order.block(next), &context);
            next += 1;
            (next - 1, block)
        } else {
            match waiting.pop_front() {
                Some(taken) => taken,
                None => {
                    found.counts = context.counts;
                    return found;
                }
            }
        };
        let before = if begins { 0 } else { block.steps() };
        let outcome = block.run(&mut context, true);
        found.instructions += context.steps - before;
        let printed = context.printed.take();
        if !printed.is_empty() {
            found.printed.push((turn, printed));
        }
        match outcome {
            BlockOutcome::Finished => spare.push(block),
            BlockOutcome::Paused => waiting.push_back((turn, block)),
            BlockOutcome::Still { sees_others } => {
                still = if context.changes == changes { still + 1 } else { 1 };
                changes = context.changes;
                waiting.push_back((turn, block));
                let full = next == launch.blocks() || waiting.len() as u64 == launch.resident;
                let stopped = if !sees_others {
                    waiting.back().map(|block| stands_still(&[block], 0))
                } else if still >= waiting.len() && full {
                    Some(stands_still(&waiting.iter().collect::<Vec<_>>(), launch.blocks() - next))
                } else {
                    None
                };
                if stopped.is_some() {
                    found.stopped = stopped;
                    found.counts = context.counts;
                    return found;
                }
            }
            BlockOutcome::Fault { warp, place } => {
                found.stopped = Some(stopped(&block, turn, &mut context, warp, place));
                found.counts = context.counts;
                return found;
            }
        }
    }
}
