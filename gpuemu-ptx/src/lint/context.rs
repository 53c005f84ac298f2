//! What every rule asks of a function.

use rustc_hash::FxHashSet;

use super::rule::{Finding, Related, Rule, Severity};
use crate::flow::{BlockId, Flow, Liveness};
use crate::metrics::{Metrics, Place};
use crate::program::{Form, Function, FunctionId, Instruction, Opcode, Program, RegisterId, Uses, Variances, Word};

/// Blocks that a search for what wrote a register walks back over.
const WAYS: usize = 256;

/// A function under the eyes of the rules.
pub(super) struct Context<'p> {
    pub program: &'p Program,
    /// The entry that everything is about.
    pub entry: FunctionId,
    pub id: FunctionId,
    pub function: &'p Function,
    pub flow: &'p Flow,
    pub metrics: &'p Metrics,
    pub uses: Uses,
    pub liveness: Liveness,
    pub variances: Variances,
}

impl<'p> Context<'p> {
    pub fn new(program: &'p Program, entry: FunctionId, id: FunctionId, metrics: &'p Metrics) -> Self {
        let function = program.function(id);
        let uses = Uses::new(function);
        let liveness = Liveness::new(&function.flow, function);
        let variances = Variances::new(program, id, &uses, &liveness);
        Self { program, entry, id, function, flow: &function.flow, metrics, uses, liveness, variances }
    }

    /// The instructions that are reached, with their indices and forms, in the order of the text.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, &'p Instruction, &'p Form)> + '_ {
        let reached = self.flow.blocks.iter().filter(|block| block.reachable);
        reached.flat_map(|block| block.instructions.clone()).map(|index| (index, self.at(index), self.form(index)))
    }

    pub fn at(&self, index: u32) -> &'p Instruction {
        &self.function.instructions[index as usize]
    }

    pub fn form(&self, index: u32) -> &'p Form {
        self.program.form(self.at(index).form)
    }

    pub fn place(&self, index: u32) -> Place {
        Place::new(self.program, self.id, index)
    }

    pub fn name(&self, register: RegisterId) -> String {
        self.function.register_name(register)
    }

    /// The last instruction of a block: its branch, where it ends in one.
    pub fn branch(&self, block: BlockId) -> u32 {
        self.flow.block(block).instructions.end - 1
    }

    /// The only write of a register and its form, where it is the only one.
    pub fn definition(&self, register: RegisterId) -> Option<(&'p Instruction, &'p Form)> {
        let index = self.uses.only_writer(register)?;
        Some((self.at(index), self.form(index)))
    }

    /// The one write whose value an instruction reads by a register, whatever way led there; `None` where there are
    /// several, or one that may leave what was there before. Compilers use a register again for another value.
    pub fn writer_at(&self, reader: u32, register: RegisterId) -> Option<u32> {
        let writers = self.uses.writers(register);
        if let &[only] = writers {
            return Some(only);
        }
        let last_before = |block: BlockId, end: u32| {
            let begin = self.flow.block(block).instructions.start;
            let before = &writers[..writers.partition_point(|&writer| writer < end)];
            before.last().copied().filter(|&writer| writer >= begin)
        };
        let mut found = None;
        let mut seen = FxHashSet::default();
        let mut pending = vec![(self.flow.block_of(reader), reader)];
        while let Some((block, end)) = pending.pop() {
            match last_before(block, end) {
                Some(writer) if found.is_some_and(|other| other != writer) => return None,
                Some(writer) => found = Some(writer),
                // From the beginning on nothing has written it.
                None if block == BlockId(0) || seen.len() > WAYS => return None,
                None => pending.extend(
                    self.flow
                        .predecessors(block)
                        .filter(|before| seen.insert(*before))
                        .map(|before| (before, self.flow.block(before).instructions.end)),
                ),
            }
        }
        found.filter(|&writer| self.at(writer).guard.is_none())
    }

    pub fn finding(&self, rule: &'static Rule, index: u32, message: String) -> Finding {
        Finding { rule, severity: rule.severity, message, place: self.place(index), related: Vec::new(), more: 0 }
    }

    pub fn related(&self, index: u32, message: impl Into<String>) -> Related {
        Related { message: message.into(), place: self.place(index) }
    }
}

impl Finding {
    pub(super) fn with(mut self, related: Related) -> Self {
        self.related.push(related);
        self
    }

    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

/// Whether a form is a barrier that all threads of a block must reach: without a count of threads among its operands.
pub(super) fn is_block_barrier(form: &Form, operands: usize) -> bool {
    let reduces = form.has(Word::Red);
    matches!(form.opcode, Opcode::Bar | Opcode::Barrier)
        && !form.has(Word::Warp)
        && !form.has(Word::Cluster)
        && !form.has(Word::Arrive)
        // `bar.red` has its result and its predicate besides.
        && operands == if reduces { 3 } else { 1 }
}
