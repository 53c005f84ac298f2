//! What a branch decides: the blocks on its sides, and whether a side simply leaves.

use rustc_hash::FxHashSet;

use super::context::Context;
use super::evaluate::{Evaluator, Value};
use super::rule::Severity;
use crate::flow::BlockId;
use crate::program::{Opcode, Operand, RegisterId, Special, Variance};

/// The most blocks that one question walks over: hostile functions get no answer rather than a slow one.
const PATIENCE: usize = 20_000;

impl Context<'_> {
    /// The blocks that a way from `start` passes before `end`, which is not among them.
    pub fn between(&self, start: BlockId, end: Option<BlockId>) -> FxHashSet<BlockId> {
        let mut seen = FxHashSet::default();
        let mut pending = vec![start];
        while let Some(block) = pending.pop() {
            if Some(block) != end && seen.len() < PATIENCE && seen.insert(block) {
                pending.extend(self.flow.successors(block));
            }
        }
        seen
    }

    /// Whether threads that come to `block` leave without doing anything that others could see or wait for: nothing but
    /// jumps and the end.
    pub fn leaves(&self, block: BlockId) -> bool {
        let mut block = block;
        for _ in 0..8 {
            let found = self.flow.block(block);
            let quiet = found.instructions.clone().all(|index| {
                let opcode = self.at(index).opcode;
                matches!(opcode, Opcode::Ret | Opcode::Exit | Opcode::Bra | Opcode::Mov | Opcode::Trap)
                    || matches!(opcode, Opcode::St | Opcode::Ld | Opcode::Add | Opcode::Cvt)
            });
            if !quiet {
                return false;
            }
            let mut next = self.flow.successors(block);
            match (next.next(), next.next(), found.leaves) {
                (None, _, true) => return true,
                (Some(only), None, false) => block = only,
                _ => return false,
            }
        }
        false
    }

    /// Whether there is nothing in a block but the way out.
    pub fn returns(&self, block: BlockId) -> bool {
        let found = self.flow.block(block);
        found.leaves
            && found.instructions.clone().all(|index| matches!(self.at(index).opcode, Opcode::Ret | Opcode::Exit))
    }

    /// Where the sides of a branch meet again; `None` where they only meet at the end, or at nothing but it.
    pub fn meeting(&self, branch: BlockId) -> Option<BlockId> {
        self.flow.block(branch).post_dominator.filter(|meeting| !self.leaves(*meeting))
    }

    /// Whether what an instruction reads by a register differs between threads because of their indices alone: arithmetic
    /// on `%tid` and `%laneid` with numbers that a block has in common, without memory, exchanges or counters of loops.
    pub fn by_index(&self, reader: u32, register: RegisterId) -> bool {
        let mut pending = vec![(reader, register)];
        let (mut steps, mut rooted) = (64, false);
        while let Some((reader, register)) = pending.pop() {
            if self.variances.at(reader, register) == Variance::Block {
                continue;
            }
            steps -= 1;
            let Some(writer) = self.writer_at(reader, register).filter(|_| steps > 0) else { return false };
            let arithmetic = matches!(
                self.at(writer).opcode,
                Opcode::Mov
                    | Opcode::Add
                    | Opcode::Sub
                    | Opcode::Mul
                    | Opcode::Mad
                    | Opcode::Shl
                    | Opcode::Shr
                    | Opcode::And
                    | Opcode::Or
                    | Opcode::Xor
                    | Opcode::Not
                    | Opcode::Cvt
                    | Opcode::Bfe
                    | Opcode::Setp
                    | Opcode::Min
                    | Opcode::Max
            );
            if !arithmetic {
                return false;
            }
            let operands = self.function.operands_of(self.at(writer));
            rooted |= operands.iter().any(|operand| {
                matches!(
                    operand,
                    Operand::Special(Special::TidX | Special::TidY | Special::TidZ | Special::Laneid | Special::Warpid)
                )
            });
            self.function.reads(self.at(writer), |register| pending.push((writer, register)));
        }
        rooted
    }

    /// How sure it is that the branch at the end of a block parts the threads of a group of `group`: an error where the
    /// condition, computed for a small block, does so; a warning where it depends on the threads' indices and on numbers
    /// that are not known; `None` where memory or exchanges have part in it, which may give all threads the same.
    pub fn parts(&self, evaluator: &mut Evaluator<'_, '_>, branch: BlockId, group: usize) -> Option<Severity> {
        let index = self.branch(branch);
        let guard = self.at(index).guard?;
        match evaluator.register(index, guard.register) {
            Some(values) => {
                let differs = |group: &[Value]| group.iter().any(|value| value.bits & 1 != group[0].bits & 1);
                values.chunks(group.max(1)).any(differs).then_some(Severity::Error)
            }
            None => self.by_index(index, guard.register).then_some(Severity::Warning),
        }
    }

    /// The variance of what an instruction writes, by what it reads.
    pub fn written(&self, writer: u32) -> Variance {
        let mut variance = Variance::Block;
        self.function.reads(self.at(writer), |register| variance = variance.max(self.variances.at(writer, register)));
        let index = self.function.operands_of(self.at(writer)).iter().any(|operand| {
            matches!(operand, Operand::Special(Special::TidX | Special::TidY | Special::TidZ | Special::Laneid))
        });
        if index { Variance::Thread } else { variance }
    }

    /// The condition of the branch at the end of a block, as a person would name it.
    pub fn condition(&self, branch: BlockId) -> String {
        let instruction = self.at(self.branch(branch));
        match (instruction.guard, self.function.operands_of(instruction)) {
            (Some(guard), _) => {
                let not = if guard.negated { "!" } else { "" };
                format!("`{not}{}`", self.name(guard.register))
            }
            (None, [Operand::Register(register), ..]) => format!("`{}`", self.name(*register)),
            _ => "a condition".to_owned(),
        }
    }
}
