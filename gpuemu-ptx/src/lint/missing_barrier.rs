//! `missing-barrier-between-shared-write-and-read`.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{Context, is_block_barrier};
use super::evaluate::blocks;
use super::rule::{Finding, Rule, Severity};
use super::trace::{Event, Kind, Tracer};
use crate::program::{Opcode, Space, Symbol};

pub(super) const RULE: Rule = Rule {
    name: "missing-barrier-between-shared-write-and-read",
    summary: "a thread reads shared memory that another writes, and nothing orders the two",
    severity: Severity::Error,
    explanation: "Threads run in no order that a program may count on, those of one warp included. Between a write of shared \
                  memory and the read of it by another thread there has to be a barrier (`__syncthreads`, `__syncwarp` \
                  within a warp), and another before the next write, as in a loop over tiles, which would otherwise overtake \
                  a slow reader. The rule follows every thread of one block, with \
                  a number or two for the sizes that the kernel is given, and speaks where two threads come to one byte \
                  between the same barriers. It says nothing of addresses and conditions that hang on what was loaded, and \
                  of accesses behind fences, flags, asynchronous copies and calls, up to the next barrier.",
};

/// What integer parameters are taken to be: a number with many divisors, and one with none.
const SIZES: [u64; 2] = [1040, 1021];
/// Pairs of accesses that are compared for one way of a block.
const PAIRS: usize = 400_000;

/// Two instructions, the earlier and the later, and what they do.
type Pair = (Meeting, u32, u32);

/// How two accesses meet, in the order in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meeting {
    ReadOfWritten,
    WriteOfRead,
    /// One of them is atomic.
    Update,
}

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let (mut reads, mut writes) = (false, false);
    for (_, _, form) in context.instructions().filter(|(_, _, form)| form.space == Some(Space::Shared)) {
        reads |= matches!(form.opcode, Opcode::Ld | Opcode::Ldmatrix | Opcode::Atom | Opcode::Red);
        writes |= form.opcode == Opcode::St || matches!(form.opcode, Opcode::Atom | Opcode::Red);
    }
    if !reads || !writes {
        return;
    }
    let mut told = FxHashSet::default();
    for ((meeting, earlier, later), (one, other)) in conflicts(context) {
        // One finding for two instructions, whichever comes first.
        if told.contains(&earlier) || !told.insert(later) {
            continue;
        }
        let (message, there) = words(context, meeting, earlier, later, one, other);
        let related = context.related(earlier, there);
        findings.push(context.finding(&RULE, later, message).with(related));
    }
}

/// What is said of two accesses of the threads `one`, which comes first in the text's order, and `other`.
fn words(
    context: &Context<'_>,
    meeting: Meeting,
    earlier: u32,
    later: u32,
    one: u32,
    other: u32,
) -> (String, &'static str) {
    let done = |index: u32| match context.at(index).opcode {
        Opcode::St => ("writes", "written", "write"),
        Opcode::Ld | Opcode::Ldmatrix => ("reads", "read", "read"),
        _ => ("updates", "updated", "update"),
    };
    let ((does, _, may), (did, participle, _)) = (done(later), done(earlier));
    let there = match participle {
        "written" => "it is written here",
        "read" => "it is read here",
        _ => "it is updated here",
    };
    let message = match meeting {
        Meeting::ReadOfWritten => format!(
            "this reads shared memory that another thread wrote with no barrier since: thread {other} reads what thread {one} \
             wrote. Put a barrier between the two"
        ),
        _ => format!(
            "this {does} shared memory that another thread {did} with no barrier since: thread {other} may {may} before thread \
             {one} has {participle}. Put a barrier between the two"
        ),
    };
    (message, there)
}

/// The pairs of instructions of which two threads come to one byte with nothing to order them, and two such threads.
fn conflicts(context: &Context<'_>) -> BTreeMap<Pair, (u32, u32)> {
    let entry = context.program.function(context.entry);
    let limit = entry.maximum_threads.map_or(u32::MAX, |threads| threads.iter().map(|extent| extent.max(&1)).product());
    let shapes = blocks(context);
    let rows = shapes.iter().any(|shape| shape[1] > 1 || shape[2] > 1);
    let warps = several_warps(context);
    let mut tracer = Tracer::new(context);
    let mut agreed: Option<BTreeMap<Pair, (u32, u32)>> = None;
    for (number, &shape) in shapes.iter().enumerate() {
        let last = number + 1 == shapes.len();
        if !last && shape.iter().product::<u32>() > limit {
            continue;
        }
        let mut found = BTreeMap::new();
        let mut inside = true;
        for size in SIZES {
            for events in tracer.ways(shape, size) {
                let fits = events.iter().all(|event| fits(context, event, entry.required_threads.is_some() || last));
                inside &= fits;
                // A launch that reaches past the arrays is none that the kernel is for.
                if fits {
                    compare(&events, warps, &mut found);
                }
            }
        }
        if !inside && !last {
            continue;
        }
        match &mut agreed {
            // Which shape with rows the kernel is for is not known: what is wrong is wrong in all.
            Some(agreed) => agreed.retain(|pair, _| found.contains_key(pair)),
            None => agreed = Some(found),
        }
        if !rows {
            break;
        }
    }
    agreed.unwrap_or_default()
}

/// Whether a block is known to have more than one warp: by what it requires, or by a barrier for all of it.
fn several_warps(context: &Context<'_>) -> bool {
    let required = context.program.function(context.entry).required_threads;
    required.is_some_and(|threads| threads.iter().map(|&extent| extent.max(1)).product::<u32>() > 32)
        || context.instructions().any(|(_, instruction, form)| is_block_barrier(form, instruction.count as usize))
}

/// Whether an access lies within its variable. One whose size the launch gives is a bound only where `any` is as good.
fn fits(context: &Context<'_>, event: &Event, any: bool) -> bool {
    let variable = match event.symbol {
        Symbol::Variable(id) => context.program.variable(id),
        Symbol::Local(id) => &context.function.variables[id.0 as usize],
        _ => return false,
    };
    let end = event.first.map_or(Some(0), |first| first.checked_add(event.width));
    end.is_some_and(|end| end <= variable.size || (variable.size == 0 && any))
}

/// Adds the pairs of accesses that two threads make to one byte with nothing to order them.
fn compare(events: &[Event], warps: bool, found: &mut BTreeMap<Pair, (u32, u32)>) {
    let mut groups: FxHashMap<(u64, Symbol), Vec<Event>> = FxHashMap::default();
    for event in events {
        groups.entry((event.barriers, event.symbol)).or_default().push(*event);
    }
    let mut patience = PAIRS;
    for group in groups.values_mut() {
        group.sort_by_key(|event| (event.first, event.thread, event.turn, event.at));
        let widest = group.iter().map(|event| event.width).max().unwrap_or(0);
        let changes = group.iter().filter(|event| event.kind != Kind::Read);
        for change in changes {
            let near = match change.first {
                Some(first) => {
                    let from = group.partition_point(|event| event.first.is_none_or(|at| at + widest <= first));
                    let to = group.partition_point(|event| event.first.is_none_or(|at| at < first + change.width));
                    &group[from..to]
                }
                // Anywhere in the array.
                None => &group[..],
            };
            for other in near {
                patience = patience.saturating_sub(1);
                if patience == 0 {
                    return;
                }
                // As the text and the turns of loops have them.
                let first = (change.turn, change.at) < (other.turn, other.at);
                let meeting = match (change.kind, other.kind) {
                    _ if other.thread == change.thread || !overlaps(change, other) => continue,
                    (Kind::Write, Kind::Write) | (Kind::Update, Kind::Update) | (_, Kind::Update) => continue,
                    (Kind::Update, _) => Meeting::Update,
                    (_, _) if first => Meeting::ReadOfWritten,
                    (_, _) => Meeting::WriteOfRead,
                };
                if !unordered(change, other, warps) {
                    continue;
                }
                let (before, after) = if first { (change, other) } else { (other, change) };
                let pair = (meeting, before.at, after.at);
                if found.contains_key(&pair) {
                    continue;
                }
                // What several write, the reader among them, is no sure conflict.
                let own =
                    |event: &Event| event.kind == Kind::Write && event.thread == other.thread && overlaps(event, other);
                if other.kind == Kind::Read && near.iter().any(own) {
                    continue;
                }
                found.insert(pair, (before.thread, after.thread));
            }
        }
    }
}

fn overlaps(a: &Event, b: &Event) -> bool {
    match (a.first, b.first) {
        (Some(x), Some(y)) => x < y + b.width && y < x + a.width,
        _ => true,
    }
}

/// Whether nothing orders two accesses between the same barriers of two threads.
fn unordered(a: &Event, b: &Event, warps: bool) -> bool {
    if a.thread / 32 == b.thread / 32 {
        return a.exchanges == b.exchanges;
    }
    // What orders a warp is no order between two, but a kernel with nothing else may be for one.
    warps || (a.exchanges == 0 && b.exchanges == 0)
}
