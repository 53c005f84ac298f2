//! Which write a read sees, for registers that several instructions write.
//!
//! A node stands for one value: of a register that is written once the register itself, of others each write, and for
//! every block where such a register is alive at the beginning a node in which the values of the ways there meet.

use rustc_hash::FxHashMap;

use super::function::{Function, RegisterId};
use super::uses::Uses;
use crate::flow::{BlockId, Grouped, Liveness};

/// The values of a function and who sees them.
pub(super) struct Webs {
    nodes: usize,
    /// The node that an instruction reads by a register that has several writes.
    reads: FxHashMap<(u32, u32), u32>,
    /// The node that an instruction makes of such a register.
    writes: FxHashMap<(u32, u32), u32>,
    /// The node in which values meet at the beginning of a block.
    meetings: FxHashMap<(u32, u32), u32>,
    /// For every node past the registers, who takes its value on: instructions, then nodes.
    readers: Grouped,
    flows: Grouped,
    registers: u32,
}

impl Webs {
    /// One pass over the instructions, and one over what is alive between blocks.
    pub fn new(function: &Function, uses: &Uses, liveness: &Liveness) -> Self {
        let flow = &function.flow;
        let registers = function.registers.len() as u32;
        let several = |register: u32| uses.writers(RegisterId(register)).len() > 1;
        let mut next = registers;
        let mut fresh = || {
            next += 1;
            next - 1
        };
        let (mut reads, mut writes, mut meetings) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        for &block in &flow.order {
            for &register in liveness.live_in(block).iter().filter(|register| several(**register)) {
                meetings.insert((block.0, register), fresh());
            }
        }
        let (mut readers, mut flows) = (Vec::new(), Vec::new());
        // The value of each register now, valid for the block beside it.
        let mut current = vec![(u32::MAX, 0_u32); registers as usize];
        for &block in &flow.order {
            for &register in liveness.live_in(block) {
                if let Some(&node) = meetings.get(&(block.0, register)) {
                    current[register as usize] = (block.0, node);
                }
            }
            for index in flow.block(block).instructions.clone() {
                let instruction = &function.instructions[index as usize];
                function.reads(instruction, |register| {
                    if let (true, (of, node)) = (several(register.0), current[register.0 as usize])
                        && of == block.0
                    {
                        reads.insert((index, register.0), node);
                        readers.push((node - registers, index));
                    }
                });
                function.writes(instruction, |register| {
                    if several(register.0) {
                        let node = fresh();
                        let (of, before) = current[register.0 as usize];
                        if of == block.0 && instruction.guard.is_some() {
                            flows.push((before - registers, node));
                        }
                        writes.insert((index, register.0), node);
                        current[register.0 as usize] = (block.0, node);
                    }
                });
            }
            for after in flow.successors(block) {
                for &register in liveness.live_in(after).iter().filter(|register| several(**register)) {
                    let (of, node) = current[register as usize];
                    if let (true, Some(&meeting)) = (of == block.0, meetings.get(&(after.0, register))) {
                        flows.push((node - registers, meeting));
                    }
                }
            }
        }
        let own = (next - registers) as usize;
        Self {
            nodes: next as usize,
            reads,
            writes,
            meetings,
            readers: Grouped::new(own, &readers),
            flows: Grouped::new(own, &flows),
            registers,
        }
    }

    /// How many nodes there are. The first are those of the registers.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The node that an instruction reads.
    pub fn read(&self, instruction: u32, register: RegisterId) -> u32 {
        self.reads.get(&(instruction, register.0)).copied().unwrap_or(register.0)
    }

    /// The node that an instruction makes.
    pub fn written(&self, instruction: u32, register: RegisterId) -> u32 {
        self.writes.get(&(instruction, register.0)).copied().unwrap_or(register.0)
    }

    /// The node that a register is at the beginning of a block.
    pub fn at(&self, block: BlockId, register: RegisterId) -> u32 {
        self.meetings.get(&(block.0, register.0)).copied().unwrap_or(register.0)
    }

    /// The instructions that read a node, and the nodes that it becomes.
    pub fn followers<'s>(&'s self, node: u32, uses: &'s Uses) -> (&'s [u32], &'s [u32]) {
        match node.checked_sub(self.registers) {
            None => (uses.readers(RegisterId(node)), &[]),
            Some(own) => (self.readers.of(own), self.flows.of(own)),
        }
    }
}
