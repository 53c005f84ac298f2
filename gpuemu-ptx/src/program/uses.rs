//! Who writes and who reads each register of a function.

use super::function::{Function, RegisterId};
use crate::flow::Accesses;

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
    writers: Lists,
    readers: Lists,
}

#[derive(Clone, Debug)]
struct Lists {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Lists {
    fn new(groups: usize, pairs: &[(u32, u32)]) -> Self {
        let mut starts = vec![0_u32; groups + 1];
        for &(group, _) in pairs {
            starts[group as usize + 1] += 1;
        }
        for group in 0..groups {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut members = vec![0; pairs.len()];
        for &(group, member) in pairs {
            members[next[group as usize] as usize] = member;
            next[group as usize] += 1;
        }
        Self { starts, members }
    }

    fn of(&self, group: u32) -> &[u32] {
        &self.members[self.starts[group as usize] as usize..self.starts[group as usize + 1] as usize]
    }
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
        Self { writers: Lists::new(registers, &writers), readers: Lists::new(registers, &readers) }
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
