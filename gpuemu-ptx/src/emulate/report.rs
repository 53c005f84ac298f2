//! From what an instruction found wrong to a fault that says where and why.

use super::code::Code;
use super::grid::Stopped;
use super::problem::Trouble;
use crate::fault::{Action, Fault, FaultKind, Site, Thread};
use crate::memory::{Global, Place};
use crate::program::{Program, Space};

/// The fault of a launch that stopped.
pub fn fault(stopped: Stopped, code: &Code, program: &Program, kernel: &str, global: &Global) -> Fault {
    let origin = code.origins[stopped.place as usize];
    let function = program.function(origin.function);
    let instruction = function.instructions.get(origin.instruction as usize);
    let site = instruction.map_or_else(Site::default, |instruction| Site {
        line: instruction.line,
        instruction: program.form(instruction.form).text.to_string(),
        source: instruction.location.map(|location| program.place(location)),
    });
    let thread = Thread { block: stopped.block, thread: Some(stopped.thread) };
    described(&stopped, kernel, global, code).by(thread).at(site)
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

fn described(stopped: &Stopped, kernel: &str, global: &Global, code: &Code) -> Fault {
    let new = |kind| Fault::new(kind, kernel);
    match &stopped.trouble {
        Trouble::Access { problem, space, write } => {
            let action = if *write { Action::Write } else { Action::Read };
            let place = match space {
                Space::Shared => Place::Outside {
                    region: "shared memory".to_owned(),
                    offset: problem.address as i64,
                    bytes: u64::from(code.shared),
                    element: 0,
                },
                Space::Local => Place::Outside {
                    region: "local memory".to_owned(),
                    offset: problem.address as i64,
                    bytes: code.functions.iter().map(|routine| u64::from(routine.local)).sum(),
                    element: 0,
                },
                _ => global.place(problem.address, problem.bytes),
            };
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
        Trouble::Deadlock { arrived, expected, barrier, .. } => {
            let threads = format!("{arrived} of {expected} threads came to barrier {barrier}, and no other can");
            new(FaultKind::Deadlock).because(threads)
        }
        Trouble::BadBarrier { reason, .. } => new(FaultKind::IllegalInstruction).because(*reason),
        Trouble::Runaway { budget, .. } => {
            new(FaultKind::Runaway).because(format!("the block ran {budget} instructions and has not ended"))
        }
        Trouble::BadFree { reason, .. } => new(FaultKind::InvalidFree).because(reason.clone()),
        Trouble::CopyInFlight { address, .. } => new(FaultKind::UninitialisedRead)
            .because(format!("an asynchronous copy to shared address {address:#x} was not waited for")),
    }
}
