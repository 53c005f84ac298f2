//! Barriers of the block that a thread can pass by.
//!
//! A barrier of the whole block waits for all threads that have not left. One that has left counts as arrived (PTX ISA,
//! `exit`), so that an early return is no fault. A thread that goes on behind the barrier without it is: the barrier is
//! then in code that not all threads of the block execute alike (PTX ISA, `bar.sync`), though hardware goes on.

use rustc_hash::FxHashSet;

use super::demand::is_pure;
use crate::flow::BlockId;
use crate::program::{Function, Instruction, Opcode, Program, Word};

/// Whether all threads of the block wait there for each other.
fn is_barrier(program: &Program, instruction: &Instruction, operands: usize) -> bool {
    let form = program.form(instruction.form);
    let aligned = instruction.opcode == Opcode::Bar || instruction.opcode == Opcode::Barrier && form.has(Word::Aligned);
    let other = [Word::Warp, Word::Cluster, Word::Arrive].into_iter().any(|word| form.has(word));
    // Without a count of threads.
    aligned && !other && operands == if form.has(Word::Red) { 3 } else { 1 }
}

/// Whether an instruction does more than compute or jump.
fn matters(instruction: &Instruction) -> bool {
    !is_pure(instruction.opcode) && !matches!(instruction.opcode, Opcode::Bra | Opcode::Ret | Opcode::Exit)
}

/// Pairs of instructions: a barrier, and another barrier or an end at which a thread has passed the first by, having gone
/// through a block that every thread comes to behind the barrier and that does not lead to it.
pub fn passed(program: &Program, function: &Function) -> FxHashSet<(u32, u32)> {
    let (flow, instructions) = (&function.flow, &function.instructions);
    let numbered = || (0..).zip(instructions);
    let barrier = |instruction: &Instruction| is_barrier(program, instruction, function.operands_of(instruction).len());
    let barriers: Vec<u32> = numbered().filter(|(_, one)| barrier(one)).map(|(at, _)| at).collect();
    if barriers.is_empty() {
        return FxHashSet::default();
    }
    let last = instructions.len() as u32 - 1;
    let ends = numbered().filter(|(at, one)| matches!(one.opcode, Opcode::Ret | Opcode::Exit) || *at == last);
    let places: Vec<u32> = barriers.iter().copied().chain(ends.map(|(at, _)| at)).collect();
    let mut pairs = FxHashSet::default();
    for &barrier in &barriers {
        let own = flow.block_of(barrier);
        let behind: Vec<BlockId> =
            std::iter::successors(flow.block(own).post_dominator, |&id| flow.block(id).post_dominator)
                .take(flow.blocks.len())
                .filter(|&id| !flow.dominates(id, own))
                .filter(|&id| flow.block(id).instructions.clone().any(|at| matters(&instructions[at as usize])))
                .collect();
        for &place in places.iter().filter(|&&place| place != barrier) {
            let at = flow.block_of(place);
            if behind.iter().any(|&id| flow.dominates(id, at)) {
                pairs.insert((barrier, place));
            }
        }
    }
    pairs
}
