//! Who writes and who reads each register of a function.

use super::function::{Function, RegisterId};
use crate::flow::{Accesses, Grouped};

impl Accesses for Function {
    fn registers(&self) -> usize {
        self.registers.len()
    }

    fn reads(&self, instruction: u32, mut visit: impl FnMut(u32)) {
        Self::reads(self, &self.instructions[instruction as usize], |register| visit(register.0));
    }

    fn writes(&self, instruction: u32, mut visit: impl FnMut(u32)) {
        Self::writes(self, &self.instructions[instruction as usize], |register| visit(register.0));
    }

    fn may_keep(&self, instruction: u32) -> bool {
        self.instructions[instruction as usize].guard.is_some()
    }
}

/// For every register the instructions that write it and those that read it, in order.
#[derive(Clone, Debug)]
pub struct Uses {
    writers: Grouped,
    readers: Grouped,
}

impl Uses {
    /// Looks through all instructions once.
    pub fn new(function: &Function) -> Self {
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for (index, instruction) in (0..).zip(&function.instructions) {
            function.writes(instruction, |register| writers.push((register.0, index)));
            function.reads(instruction, |register| readers.push((register.0, index)));
        }
        let registers = function.registers.len();
        Self { writers: Grouped::new(registers, &writers), readers: Grouped::new(registers, &readers) }
    }

    /// The instructions that write a register.
    pub fn writers(&self, register: RegisterId) -> &[u32] {
        self.writers.of(register.0)
    }

    /// The instructions that read a register. One that reads it twice is there twice.
    pub fn readers(&self, register: RegisterId) -> &[u32] {
        self.readers.of(register.0)
    }

    /// The only instruction that writes a register, where there is one only.
    pub fn only_writer(&self, register: RegisterId) -> Option<u32> {
        match self.writers(register) {
            &[writer] => Some(writer),
            _ => None,
        }
    }
}
