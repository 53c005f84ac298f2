//! Brings forward what decides whether a loaded value is used.
//!
//! Where a block has more threads than elements, compilers let several threads load the same element and one of them
//! store what became of it; whether a thread is that one, they often work out after the load. [`super::demand`] asks
//! before it. What is worked out from nothing that the load gives can as well stand in front of it.

use std::collections::BTreeSet;

use super::demand::{self, Uses};
use crate::program::{Function, Opcode, RegisterId};

/// Instructions that are brought forward for one load, at most.
const MOST: usize = 16;

/// Reorders instructions within their basic blocks; nothing that they compute changes.
pub fn hoist(function: &mut Function) {
    let mut uses = Uses::new(function);
    for block in 0..function.flow.blocks.len() {
        let range = function.flow.blocks[block].instructions.clone();
        let mut at = range.start;
        while at < range.end {
            if function.instructions[at as usize].opcode == Opcode::Ld
                && let Some(earlier) = decisive(function, &uses, at, range.end)
            {
                for (moved, &from) in earlier.iter().enumerate() {
                    // Those before it have moved already, and left its place as it was.
                    function.instructions[at as usize + moved..=from as usize].rotate_right(1);
                }
                at += earlier.len() as u32;
                uses = Uses::new(function);
            }
            at += 1;
        }
    }
}

/// The instructions behind the load at `load`, in order, that its demand is worked out by; `None` where there are none,
/// or one of them cannot be brought forward.
fn decisive(function: &Function, uses: &Uses, load: u32, end: u32) -> Option<BTreeSet<u32>> {
    let guard = uses.wanted(function, load, |_| false)?.guard()?;
    let (mut earlier, mut pending) = (BTreeSet::new(), vec![guard.register]);
    while let Some(register) = pending.pop() {
        let writer = only_writer(uses, register)?;
        if writer < load || earlier.contains(&writer) {
            continue;
        }
        let instruction = &function.instructions[writer as usize];
        let movable = instruction.guard.is_none() && demand::is_pure(instruction.opcode);
        // In a loop what reads it before sees the value of the last turn.
        let is_read = (load..writer).any(|at| {
            let mut found = false;
            function.reads(&function.instructions[at as usize], |read| found |= read == register);
            found
        });
        if writer == load || writer >= end || !movable || is_read || earlier.len() == MOST {
            return None;
        }
        earlier.insert(writer);
        function.reads(instruction, |register| pending.push(register));
    }
    (!earlier.is_empty()).then_some(earlier)
}

/// The one instruction that writes a register; `None` where there are several, or none.
fn only_writer(uses: &Uses, register: RegisterId) -> Option<u32> {
    uses.writer(register).filter(|&(_, only)| only).map(|(at, _)| at)
}
