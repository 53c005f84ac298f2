//! From what an instruction found wrong to a fault that says where and why.

use super::code::Code;
use super::grid::Stopped;
use super::launch::Launch;
use super::problem::{Reason, Trouble, Wait, Wrapped};
use crate::fault::{Accessed, Action, Fault, FaultKind, Other, Site, Thread};
use crate::memory::shadow::{Finding, Seen};
use crate::memory::{Global, Place};
use crate::program::{Program, Space};

/// Where an operation stands.
fn site(place: u32, code: &Code, program: &Program) -> Site {
    let Some(origin) = code.origins.get(place as usize) else { return Site::default() };
    let function = program.function(origin.function);
    let instruction = function.instructions.get(origin.instruction as usize);
    instruction.map_or_else(Site::default, |instruction| Site {
        line: instruction.line,
        instruction: program.form(instruction.form).text.to_string(),
        source: instruction.location.map(|location| program.place(location)),
    })
}

/// The fault of a launch that stopped.
pub fn fault(
    stopped: Stopped,
    code: &Code,
    launch: &Launch,
    program: &Program,
    kernel: &str,
    global: &Global,
) -> Fault {
    let thread = Thread { block: stopped.block, thread: Some(stopped.thread) };
    let here = site(stopped.place, code, program);
    let fault = match stopped.trouble {
        Trouble::Found { finding, space, action } => {
            let fault = found(finding, space, action, kernel, global, code, launch);
            match finding {
                Finding::Race(race) => {
                    let place = code.sites.get(race.earlier.site as usize).copied().unwrap_or(u32::MAX);
                    fault.against(Other {
                        thread: seen(race.earlier, launch),
                        site: site(place, code, program),
                        action: race.earlier.action,
                    })
                }
                _ => fault,
            }
        }
        Trouble::IndexWraps(wrapped) => {
            let Wrapped { action, bytes, address, .. } = wrapped;
            let place = global.place(address, bytes);
            let accessed = Accessed { action, bytes, address, place };
            let fault = Fault { accessed: Some(accessed), ..Fault::new(FaultKind::IndexWraps, kernel) };
            fault.because(wrapped_to(wrapped, code, program))
        }
        _ => {
            let fault = described(&stopped, kernel, global, code, launch, program);
            let wrapped = stopped
                .wrapped
                .filter(|wrapped| fault.accessed.as_ref().is_some_and(|accessed| accessed.address == wrapped.address));
            match (wrapped, stopped.out_of_heap) {
                (Some(wrapped), _) => fault.because(wrapped_to(wrapped, code, program)),
                (None, Some(bytes)) if fault.kind == FaultKind::NullPointer => fault.because(format!(
                    "`malloc` has given this thread null: it asked for {bytes} bytes, and of the heap's {} too few were left",
                    launch.heap
                )),
                (None, _) => fault,
            }
        }
    };
    fault.by(thread).at(here)
}

/// What an index should be and is.
fn wrapped_to(wrapped: Wrapped, code: &Code, program: &Program) -> String {
    let Wrapped { exact, signed, .. } = wrapped;
    let held = if signed { i64::from(exact as i32) } else { i64::from(exact as u32) };
    let at = match site(wrapped.place, code, program) {
        site if site == Site::default() => String::new(),
        site => format!(", at {site}"),
    };
    format!("its index is computed in 32 bits{at}: {exact} wraps around to {held}")
}

/// A thread as a sanitizer remembers it.
fn seen(seen: Seen, launch: &Launch) -> Thread {
    let thread = seen.lane.map(|lane| {
        let thread = u32::from(seen.warp) * 32 + u32::from(lane);
        let [x, y, _] = launch.block;
        [thread % x, thread / x % y, thread / (x * y)]
    });
    Thread { block: launch.position(seen.block.into()), thread }
}

/// What a sanitizer found.
fn found(
    finding: Finding,
    space: Space,
    action: Action,
    kernel: &str,
    global: &Global,
    code: &Code,
    launch: &Launch,
) -> Fault {
    let (kind, action, address, bytes) = match finding {
        Finding::Race(race) => {
            let kind = match space {
                Space::Shared => FaultKind::SharedRace,
                _ if race.constant => FaultKind::StaleRead,
                _ => FaultKind::GlobalRace,
            };
            (kind, race.action, race.start, race.bytes)
        }
        Finding::Uninitialised { address, bytes, .. } => (FaultKind::UninitialisedRead, action, address, bytes),
        Finding::InputWritten { address, bytes, .. } => (FaultKind::InputWritten, action, address, bytes),
    };
    let place = place(space, address, bytes, global, code, launch);
    let fault = Fault { accessed: Some(Accessed { action, bytes, address, place }), ..Fault::new(kind, kernel) };
    match finding {
        Finding::Uninitialised { bytes, missing, .. } if missing.count_ones() < bytes => fault.because(format!(
            "nothing wrote {} of these bytes, from byte {}",
            missing.count_ones(),
            missing.trailing_zeros()
        )),
        Finding::Race(race) if race.constant => fault.because(
            "`.nc` takes memory to be constant while a kernel runs (`__ldg`, `const T* __restrict__`): no barrier helps",
        ),
        Finding::Uninitialised { .. } if space != Space::Shared => {
            fault.because("or no barrier, fence or launch stands between the write and this read")
        }
        _ => fault,
    }
}

/// Threads that wait which are told beside the first.
const TOLD: usize = 3;

/// Threads that wait for ever.
fn standstill(
    waits: &[Wait],
    (unstarted, resident): (u64, u64),
    new: impl Fn(FaultKind) -> Fault,
    global: &Global,
    code: &Code,
    launch: &Launch,
    program: &Program,
) -> Fault {
    let [first, others @ ..] = waits else { return new(FaultKind::Deadlock) };
    let (fault, mut lines) = match first.reason {
        Reason::Nothing => {
            let text =
                "it comes back here for ever: its registers are what they were, and nothing in memory has changed";
            (new(FaultKind::Endless), vec![text.to_owned()])
        }
        Reason::Memory(poll) => {
            let place = place(poll.space, poll.address, poll.bytes, global, code, launch);
            let accessed = Accessed { action: poll.action, bytes: poll.bytes, address: poll.address, place };
            let value = if poll.bytes > 8 { "what is there".to_owned() } else { poll.value.to_string() };
            let who = match first.threads {
                1 => "it waits".to_owned(),
                threads => format!("{threads} threads wait"),
            };
            let text = format!("{who} for another value than {value}, and no thread is left that could write one");
            (Fault { accessed: Some(accessed), ..new(FaultKind::Deadlock) }, vec![text])
        }
        Reason::Barrier | Reason::Lanes => (new(FaultKind::Deadlock), Vec::new()),
    };
    for wait in others.iter().take(TOLD) {
        let thread = Thread { block: wait.block, thread: Some(wait.thread) };
        let (who, waits) = match wait.threads {
            1 => (thread.to_string(), "waits"),
            threads => (format!("{threads} threads, the first {thread},"), "wait"),
        };
        let at = site(wait.place, code, program);
        lines.push(match wait.reason {
            Reason::Nothing => format!("{who} {waits} for nothing, at {at}"),
            Reason::Memory(poll) => {
                let place = place(poll.space, poll.address, poll.bytes, global, code, launch);
                format!("{who} {waits} for another value than {}, {place}, at {at}", poll.value)
            }
            Reason::Barrier => format!("{who} {waits} at the barrier at {at}"),
            Reason::Lanes => format!("{who} {waits} for other lanes at {at}"),
        });
    }
    let more: u64 = others.iter().skip(TOLD).map(|wait| wait.threads).sum();
    if more != 0 {
        lines.push(format!("and {more} more threads wait elsewhere"));
    }
    if unstarted != 0 {
        lines.push(format!(
            "{unstarted} blocks have not begun: {resident} are on the device at once, and all of them wait"
        ));
    }
    fault.because(lines.join("\n  "))
}

/// What is at an address.
fn place(space: Space, address: u64, bytes: u32, global: &Global, code: &Code, launch: &Launch) -> Place {
    let (region, size) = match space {
        Space::Shared => ("shared memory", u64::from(launch.shared)),
        Space::Local => ("local memory", code.functions.iter().map(|routine| u64::from(routine.local)).sum()),
        _ => return global.place(address, bytes),
    };
    let region = region.to_owned();
    match address.checked_add(u64::from(bytes)).is_some_and(|end| end <= size) {
        true => Place::Inside { region, offset: address, bytes: size, element: 0 },
        false => Place::Outside { region, offset: address as i64, bytes: size, element: 0 },
    }
}

fn lanes(mask: u32) -> String {
    let mut text = String::new();
    let mut lane = 0;
    while lane < 32 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let end = (lane..32).take_while(|lane| mask >> lane & 1 != 0).last().unwrap_or(lane);
        if !text.is_empty() {
            text += ", ";
        }
        text += &if end > lane { format!("{lane} to {end}") } else { lane.to_string() };
        lane = end + 1;
    }
    if text.is_empty() { "no lane".to_owned() } else { format!("lanes {text}") }
}

fn described(
    stopped: &Stopped,
    kernel: &str,
    global: &Global,
    code: &Code,
    launch: &Launch,
    program: &Program,
) -> Fault {
    let new = |kind| Fault::new(kind, kernel);
    match &stopped.trouble {
        Trouble::Access { problem, space, write } => {
            let action = if *write { Action::Write } else { Action::Read };
            let place = place(*space, problem.address, problem.bytes, global, code, launch);
            Fault::access(kernel, *problem, action, place)
        }
        Trouble::Trap { .. } => new(FaultKind::Trap),
        Trouble::Assertion { message, .. } => new(FaultKind::Assert).because(message.clone()),
        Trouble::BranchIndex { index, targets, .. } => {
            new(FaultKind::InvalidTarget).because(format!("index {index} of a list of {targets} targets"))
        }
        Trouble::CallTarget { address, .. } => {
            new(FaultKind::InvalidTarget).because(format!("no function of this prototype is at {address:#x}"))
        }
        Trouble::StackOverflow { depth, .. } => {
            new(FaultKind::StackOverflow).because(format!("{depth} calls are open"))
        }
        Trouble::StackUsedUp { bytes, left, .. } => new(FaultKind::StackOverflow)
            .because(format!("it asks for {bytes} bytes, and {left} are left of the thread's local memory")),
        Trouble::BadStack { address, .. } => {
            new(FaultKind::IllegalInstruction).because(format!("{address:#x} is no stack pointer that is still good"))
        }
        Trouble::AbsentLanes { named, present, .. } => {
            let missing = lanes(named & !present);
            new(FaultKind::InactiveLane).because(format!("it names {missing}, which do not take part"))
        }
        Trouble::NotNamed { named, lane } => {
            new(FaultKind::InactiveLane).because(format!("its mask has {} and not lane {lane} itself", lanes(*named)))
        }
        Trouble::ShuffleSource { lane, from } => {
            new(FaultKind::InactiveLane).because(format!("lane {lane} reads lane {from}, which takes no part"))
        }
        Trouble::DivergentBarrier { present, alive, .. } => {
            let missing = lanes(alive & !present);
            new(FaultKind::DivergentBarrier).because(format!("{missing} of the warp do not come to it"))
        }
        Trouble::BarrierPassed { warp, place, .. } => {
            let (first, last) = (warp * 32, warp * 32 + 31);
            let Site { line, .. } = site(*place, code, program);
            new(FaultKind::BarrierPassed)
                .because(format!("threads {first} to {last} of the block went on without it, to PTX line {line}"))
        }
        Trouble::Deadlock { arrived, expected, barrier, .. } => {
            let threads = format!("{arrived} of {expected} threads came to barrier {barrier}, and no other can");
            new(FaultKind::Deadlock).because(threads)
        }
        Trouble::BadBarrier { reason, .. } => new(FaultKind::IllegalInstruction).because(*reason),
        Trouble::Standstill { waits, unstarted, resident, .. } => {
            standstill(waits, (*unstarted, *resident), new, global, code, launch, program)
        }
        Trouble::Runaway { budget, .. } => {
            new(FaultKind::Runaway).because(format!("the block ran {budget} instructions and has not ended"))
        }
        Trouble::Cancelled { .. } => new(FaultKind::Cancelled),
        Trouble::BadFree { reason, .. } => new(FaultKind::InvalidFree).because(reason.clone()),
        // Told above.
        Trouble::Found { .. } | Trouble::IndexWraps(_) => new(FaultKind::IllegalAddress),
    }
}
