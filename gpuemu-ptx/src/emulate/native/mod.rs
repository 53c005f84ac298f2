//! Straight runs of common instructions as machine code of the host, for hosts with AVX2.
//!
//! An interpreted instruction of a warp costs a call, the places of its operands and a trip through memory for every value.
//! A run of instructions that every lane executes and that touch registers alone is instead compiled when its module is
//! loaded, and stands in the code as one operation at the place of its first. Wherever it does not fit, in a warp whose
//! lanes have parted or whose steps are watched, the operations it was made of are executed as they are.

mod assembler;
mod emit;
mod step;
#[cfg(test)]
mod tests;

use memmap2::{Mmap, MmapMut};

use self::assembler::Assembler;
use self::emit::Step;
use super::code::Origin;
use super::context::Context;
use super::effects::Effect;
use super::layout::Uses;
use super::op::{Op, Signal};
use super::registers::{FULL, Row};
use super::warp::Warp;
use crate::flow::{Accesses, BlockId, Liveness};
use crate::program::{Function, FunctionId, Program};

/// A compiled run: works on the first row of the frame, the end of the constants and the first predicate of the frame.
type Compiled = unsafe extern "sysv64" fn(*mut Row, *const Row, *mut u32);

/// Fewer instructions than this are not worth a call.
const SHORTEST: usize = 2;

/// More than this are several runs: what is written out must stay in reach.
const LONGEST: usize = 4096;

/// The operations as they are executed where nothing is watched.
pub struct Native {
    /// Machine code of the host, which `ops` point into.
    _code: Option<Mmap>,
    /// The operations, those that begin a run replaced by the run.
    pub ops: Vec<Op>,
    /// For each the first from it on that the loop which runs them must look at before: one that has a guard.
    pub free: Vec<u32>,
}

impl Native {
    /// The operations as they are.
    pub fn none(ops: &[Op]) -> Self {
        Self::of(None, ops.to_vec())
    }

    fn of(code: Option<Mmap>, ops: Vec<Op>) -> Self {
        let mut free = vec![ops.len() as u32; ops.len()];
        for place in (0..ops.len()).rev() {
            free[place] = match free.get(place + 1) {
                _ if ops[place].guard != 0 => place as u32,
                Some(&next) => next,
                None => ops.len() as u32,
            };
        }
        Self { _code: code, ops, free }
    }
}

/// Executes the access at `a` in the lanes in which predicate `b` holds.
unsafe fn guarded(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
    let mask = mask & warp.registers.truth(op.b);
    if mask == 0 {
        return Signal::Next;
    }
    let plain = &context.code.ops[op.a as usize];
    // SAFETY: as for any operation of the code.
    unsafe { (plain.run)(warp, context, plain, mask) }
}

/// Executes a compiled run: its address is `imm`, the operations it stands for begin at `a` and are `d`; `e` says whether
/// lanes exchange values in it.
unsafe fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
    if mask != FULL {
        let plain = &context.code.ops[op.a as usize];
        // SAFETY: as for any operation of the code.
        return unsafe { (plain.run)(warp, context, plain, mask) };
    }
    if op.e != 0
        && let Some(shadow) = &mut context.shadow
    {
        shadow.warp_sync(warp.index, FULL);
    }
    let (rows, constants, truths) = warp.registers.places();
    // SAFETY: the address of a function of this kind, which `Native` keeps; it touches the rows, constants and predicates
    // that the operations it was made of name.
    unsafe {
        let compiled = std::mem::transmute::<*const (), Compiled>(op.imm as usize as *const ());
        compiled(rows, constants, truths);
    }
    Signal::Run
}

/// What is known of a function when its runs are compiled.
pub struct Source<'a> {
    /// The program.
    pub program: &'a Program,
    /// All operations.
    pub ops: &'a [Op],
    /// Where each comes from.
    pub origins: &'a [Origin],
    /// For each whether it is all that its instruction does.
    pub whole: &'a [bool],
    /// For each what it changes or sees beside registers.
    pub effects: &'a [Effect],
}

impl Source<'_> {
    /// Compiles what can be; without machine code where the host refuses memory for it.
    pub fn compile(&self) -> Native {
        let mut assembler = Assembler::new(&emit::POOL);
        let mut runs = Vec::new();
        let mut wanted: Option<(FunctionId, Vec<u32>)> = None;
        let mut at = 0;
        while at < self.ops.len() {
            let origin = self.origins[at];
            let function = self.program.function(origin.function);
            if wanted.as_ref().is_none_or(|(id, _)| *id != origin.function) {
                wanted = Some((origin.function, until(function)));
            }
            let until = wanted.as_ref().map_or(&[][..], |(_, until)| until);
            let steps: Vec<Step> =
                (at..self.ops.len()).take(LONGEST).map_while(|next| self.step(function, origin, next, until)).collect();
            if steps.len() >= SHORTEST {
                runs.push((at, assembler.place(), steps.len(), steps.iter().any(exchanges)));
                emit::emit(&mut assembler, &steps);
            }
            at += steps.len().max(1);
        }
        let mut ops = self.ops.to_vec();
        for (at, op) in ops.iter_mut().enumerate() {
            if op.guard != 0 && matches!(self.effects[at], Effect::Access(_)) {
                *op = Op { run: guarded, imm: 0, d: 0, a: at as i32, b: op.guard, c: 0, e: 0, guard: 0 };
            }
        }
        let code = if runs.is_empty() { None } else { executable(&assembler.finish()) };
        let Some(code) = code else { return Native::of(None, ops) };
        for (at, place, length, exchanges) in runs {
            let imm = code.as_ptr() as u64 + place as u64;
            ops[at] = Op { run, imm, d: length as i32, a: at as i32, b: 0, c: 0, e: i32::from(exchanges), guard: 0 };
        }
        Native::of(Some(code), ops)
    }

    /// The operation as a step of the run that begins with `first`.
    fn step(&self, function: &Function, first: Origin, at: usize, until: &[u32]) -> Option<Step> {
        let origin = self.origins[at];
        let block = |origin: Origin| function.flow.block_of(origin.instruction);
        if !self.whole[at] || origin.function != first.function || block(origin) != block(first) {
            return None;
        }
        let op = &self.ops[at];
        let instruction = &function.instructions[origin.instruction as usize];
        let kind = step::kind(self.program, function, instruction, op)?;
        let until = until[origin.instruction as usize];
        Some(Step { kind, d: op.d, operands: [op.a, op.b, op.c], instruction: origin.instruction, until })
    }
}

fn exchanges(step: &Step) -> bool {
    matches!(step.kind, step::Kind::Butterfly(_))
}

/// Puts code where it can be executed.
fn executable(code: &[u8]) -> Option<Mmap> {
    let mut memory = MmapMut::map_anon(code.len()).ok()?;
    memory.copy_from_slice(code);
    memory.make_exec().ok()
}

/// For every instruction the last one of its block that reads what it writes: `u32::MAX` where that may be read behind
/// the block or by a caller, 0 where nothing reads it.
fn until(function: &Function) -> Vec<u32> {
    let uses = Uses(function);
    let liveness = Liveness::new(&function.flow, &uses);
    let mut outside = vec![false; function.registers.len()];
    for parameter in function.parameters.iter().chain(&function.returns) {
        if let Some(register) = parameter.register {
            outside[register.0 as usize] = true;
        }
    }
    let mut until = vec![0; function.instructions.len()];
    // Of what a register holds at the place that is looked at.
    let mut wanted = vec![0u32; function.registers.len()];
    for (id, block) in (0..).map(BlockId).zip(&function.flow.blocks) {
        let live = liveness.live_out(&function.flow, id);
        live.iter().for_each(|&register| wanted[register as usize] = u32::MAX);
        for at in block.instructions.clone().rev() {
            uses.writes(at, |register| {
                let index = register as usize;
                until[at as usize] = match outside[index] {
                    true => u32::MAX,
                    false => wanted[index].max(until[at as usize]),
                };
                if liveness.replaces(&uses, at, register) {
                    wanted[index] = 0;
                } else {
                    // What was there stays in some lanes.
                    wanted[index] = wanted[index].max(at);
                }
            });
            uses.reads(at, |register| {
                let wanted = &mut wanted[register as usize];
                *wanted = (*wanted).max(at);
            });
        }
        for at in block.instructions.clone() {
            uses.writes(at, |register| wanted[register as usize] = 0);
            uses.reads(at, |register| wanted[register as usize] = 0);
        }
        live.iter().for_each(|&register| wanted[register as usize] = 0);
    }
    until
}
