//! Accesses to global memory: how wide each is.

use super::{Place, TURNS};
use crate::program::{Base, Form, FunctionId, Instruction, Opcode, Operand, Program, Space, Symbol, Word};

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Into registers.
    Load,
    /// Out of registers.
    Store,
    /// Both ways, at once.
    Atomic,
    /// Into shared memory, by `cp.async`.
    Copy,
}

/// One access to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where it is.
    pub place: Place,
    /// Which way its bytes go.
    pub direction: Direction,
    /// Bytes that one thread moves with it.
    pub bytes: u32,
    /// Whether its address is generic: it may be global memory, and may be shared or local.
    pub generic: bool,
    /// Loops around it.
    pub depth: u32,
}

/// The accesses of one function to global memory, in order, those never reached left out.
pub fn accesses(program: &Program, id: FunctionId) -> Vec<Access> {
    let function = program.function(id);
    let mut accesses = Vec::new();
    for block in function.flow.blocks.iter().filter(|block| block.reachable) {
        for index in block.instructions.clone() {
            let instruction = &function.instructions[index as usize];
            let form = program.form(instruction.form);
            if let Some((direction, bytes, generic)) = access(program, id, instruction, form) {
                let depth = function.flow.depth(function.flow.block_of(index));
                accesses.push(Access { place: Place::new(program, id, index), direction, bytes, generic, depth });
            }
        }
    }
    accesses
}

/// The weight of an instruction in so many loops.
pub(super) fn weight(depth: u32) -> u64 {
    TURNS.saturating_pow(depth)
}

/// Bytes that one thread moves with a load, store or atomic.
pub(super) fn bytes(form: &Form) -> u32 {
    form.types.first().map_or(0, |ty| ty.bytes()) * u32::from(form.vector)
}

/// The direction and bytes of an access to global memory, and whether its address is generic.
fn access(program: &Program, id: FunctionId, instruction: &Instruction, form: &Form) -> Option<(Direction, u32, bool)> {
    let operands = program.function(id).operands_of(instruction);
    let direction = match form.opcode {
        Opcode::Ld | Opcode::Ldu => Direction::Load,
        Opcode::St if !form.has(Word::Bulk) && !form.has(Word::Async) => Direction::Store,
        Opcode::Atom | Opcode::Red if !form.has(Word::Async) => Direction::Atomic,
        // Bulk copies are one thread's order for a whole tile: a width a thread says nothing of them.
        Opcode::Cp if form.has(Word::Async) && !form.has(Word::Bulk) => {
            let [_, _, Operand::Integer(bytes), ..] = operands else { return None };
            return form.has(Word::Global).then_some((Direction::Copy, *bytes as u32, false));
        }
        _ => return None,
    };
    let generic = match form.space {
        Some(Space::Global) => false,
        None => {
            let address = operands.iter().find_map(|operand| match operand {
                Operand::Address(base, _) => Some(*base),
                _ => None,
            });
            match address {
                // The address of a variable is known to be in its space.
                Some(Base::Symbol(Symbol::Variable(variable))) => {
                    if program.variable(variable).space != Space::Global {
                        return None;
                    }
                    false
                }
                Some(Base::Symbol(_)) => return None,
                _ => true,
            }
        }
        Some(_) => return None,
    };
    Some((direction, bytes(form), generic))
}
