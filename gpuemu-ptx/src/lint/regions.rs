//! What a branch decides: the blocks on its sides, and whether a side simply leaves.

use rustc_hash::FxHashSet;

use super::context::Context;
use crate::flow::BlockId;
use crate::program::{Opcode, Operand};

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

    /// Where the sides of a branch meet again; `None` where they only meet at the end, or at nothing but it.
    pub fn meeting(&self, branch: BlockId) -> Option<BlockId> {
        self.flow.block(branch).post_dominator.filter(|meeting| !self.leaves(*meeting))
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
