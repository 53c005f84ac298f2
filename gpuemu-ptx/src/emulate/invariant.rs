//! What a kernel's threads can work out before anything else: values that come from thread and block numbers, parameters and
//! constants alone, and never change.
//!
//! Which lanes want what a load gives is often decided by such a value, computed in another basic block than the load's, or
//! by one of its conditions. Asked before the first instruction, it is known at every load.

use rustc_hash::FxHashMap;

use super::demand::{Uses, Wanted, comes_before, is_pure};
use crate::program::{
    Base, Form, Function, Guard, Instruction, Opcode, Operand, Operation, Program, RegisterId, ScalarType, Space,
    Special, Symbol, Word,
};

/// Instructions between a predicate and what it is worked out from, at most.
const DEEPEST: u32 = 16;
/// Conditions that a predicate combines one in the other, at most.
const NESTED: u32 = 6;
/// Predicates that decide over one load, at most.
const PREDICATES: usize = 8;

/// The invariant values of an entry.
pub struct Invariants<'a> {
    program: &'a Program,
    function: &'a Function,
    uses: &'a Uses,
    /// Whether a register holds one, where that was asked.
    known: FxHashMap<RegisterId, bool>,
}

impl<'a> Invariants<'a> {
    /// Of an entry.
    pub fn new(program: &'a Program, function: &'a Function, uses: &'a Uses) -> Self {
        Self { program, function, uses, known: FxHashMap::default() }
    }

    /// Predicates with one value each, one of which at least holds in every lane that uses what a load gives; `None` where
    /// there are no such ones.
    pub fn deciding(&mut self, wanted: &Wanted) -> Option<Vec<Guard>> {
        let mut all: Vec<Guard> = Vec::new();
        for used in &wanted.uses {
            let of_this = used.under.iter().find_map(|&(at, guard)| self.implied(guard, at, NESTED))?;
            for guard in of_this {
                if !all.contains(&guard) {
                    all.push(guard);
                }
            }
            if all.len() > PREDICATES {
                return None;
            }
        }
        Some(all)
    }

    /// Appends the instructions that work out an invariant register, each after those it needs, where they are not there
    /// yet. Beyond `most` the list is of no use.
    pub fn steps(&self, register: RegisterId, done: &mut Vec<u32>, most: usize) {
        let Some((writer, _)) = self.uses.writer(register).filter(|(writer, _)| !done.contains(writer)) else { return };
        if done.len() <= most {
            self.function.reads(&self.function.instructions[writer as usize], |read| self.steps(read, done, most));
            done.push(writer);
        }
    }

    /// The instruction that alone writes a register, in all lanes and before `reader`.
    fn writer(&self, register: RegisterId, reader: u32) -> Option<(u32, &'a Instruction)> {
        let (writer, only) = self.uses.writer(register)?;
        let instruction = &self.function.instructions[writer as usize];
        let first = comes_before(self.function, writer, reader);
        (only && first && instruction.guard.is_none()).then_some((writer, instruction))
    }

    /// Invariant predicates of which one at least holds wherever this one does, as an instruction sees it.
    fn implied(&mut self, guard: Guard, reader: u32, deepest: u32) -> Option<Vec<Guard>> {
        let (at, instruction) = self.writer(guard.register, reader)?;
        if self.is_invariant(guard.register, DEEPEST) {
            return Some(vec![guard]);
        }
        let form = self.program.form(instruction.form);
        let operands = self.function.operands_of(instruction);
        let negated = guard.negated;
        let literal = |operand: &Operand, negated: bool| match *operand {
            Operand::Register(register) => Some(Guard { register, negated }),
            Operand::Negated(register) => Some(Guard { register, negated: !negated }),
            _ => None,
        };
        let deepest = deepest.checked_sub(1)?;
        let predicates = form.types.first() == Some(&ScalarType::Predicate);
        match (form.opcode, operands) {
            (Opcode::Mov, [_, a]) if predicates => self.implied(literal(a, negated)?, at, deepest),
            (Opcode::Not, [_, a]) if predicates => self.implied(literal(a, !negated)?, at, deepest),
            // One of two conditions is enough to know of.
            (Opcode::And | Opcode::Or, [_, a, b]) if predicates && (form.opcode == Opcode::And) != negated => {
                [a, b].into_iter().find_map(|operand| self.implied(literal(operand, negated)?, at, deepest))
            }
            (Opcode::And | Opcode::Or, [_, a, b]) if predicates => {
                let mut either = self.implied(literal(a, negated)?, at, deepest)?;
                either.extend(self.implied(literal(b, negated)?, at, deepest)?);
                (either.len() <= PREDICATES).then_some(either)
            }
            // A comparison and a predicate.
            (Opcode::Setp, [_, _, _, with]) => match form.operation {
                Some(Operation::And) if !negated => self.implied(literal(with, false)?, at, deepest),
                Some(Operation::Or) if negated => self.implied(literal(with, true)?, at, deepest),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a register holds one value wherever it is read behind its only writer.
    fn is_invariant(&mut self, register: RegisterId, deepest: u32) -> bool {
        if let Some(&known) = self.known.get(&register) {
            return known;
        }
        let Some(deepest) = deepest.checked_sub(1) else { return false };
        let known = self.is_worked_out(register, deepest);
        self.known.insert(register, known);
        known
    }

    fn is_worked_out(&mut self, register: RegisterId, deepest: u32) -> bool {
        let Some((writer, true)) = self.uses.writer(register) else { return false };
        let function = self.function;
        let instruction = &function.instructions[writer as usize];
        let form = self.program.form(instruction.form);
        let operands = function.operands_of(instruction);
        if instruction.guard.is_some() {
            return false;
        }
        match instruction.opcode {
            Opcode::Ld => return is_parameter(function, form, operands),
            opcode if !is_pure(opcode) || form.has(Word::Cc) => return false,
            _ => {}
        }
        if !operands.iter().all(is_constant) {
            return false;
        }
        let mut read = Vec::new();
        function.reads(instruction, |register| read.push(register));
        // What a register has before anything is written to it is nothing to go by.
        read.into_iter().all(|read| self.writer(read, writer).is_some() && self.is_invariant(read, deepest))
    }
}

/// Whether an instruction loads one parameter of the entry, as a whole.
fn is_parameter(function: &Function, form: &Form, operands: &[Operand]) -> bool {
    let [Operand::Register(_), Operand::Address(Base::Symbol(Symbol::Parameter(index)), offset)] = operands else {
        return false;
    };
    let size = function.parameters[*index as usize].size;
    let bytes = form.types.first().map_or(u32::MAX, |ty| ty.bytes());
    let inside = u32::try_from(*offset).is_ok_and(|offset| u64::from(offset) + u64::from(bytes) <= u64::from(size));
    function.entry && form.space == Some(Space::Parameter) && inside
}

/// Whether an operand that is no register is the same whenever it is read.
fn is_constant(operand: &Operand) -> bool {
    use Special::*;
    match operand {
        Operand::Register(_) | Operand::Negated(_) | Operand::Pair(..) | Operand::Discard => true,
        Operand::Integer(_) | Operand::Float32(_) | Operand::Float64(_) => true,
        Operand::Special(special) => matches!(
            special,
            TidX | TidY
                | TidZ
                | NtidX
                | NtidY
                | NtidZ
                | CtaidX
                | CtaidY
                | CtaidZ
                | NctaidX
                | NctaidY
                | NctaidZ
                | Laneid
                | LanemaskEq
                | LanemaskLe
                | LanemaskLt
                | LanemaskGe
                | LanemaskGt
        ),
        _ => false,
    }
}
