//! What an entry's parameters point to, as far as its accesses show.

use super::{Base, Form, Function, Opcode, Operand, Program, RegisterId, ScalarType, Space, Symbol, Uses, Word};
use super::{FunctionId, Instruction};

/// One access to memory through an address that parameters have a part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerAccess {
    /// The parameters that are summands of its address, by place: one is a pointer, the others are offsets.
    pub parameters: Vec<u32>,
    /// The type that is loaded, stored or updated.
    pub ty: ScalarType,
    /// How many of that type a thread moves at once.
    pub vector: u8,
    /// Whether it writes, a load does not.
    pub writes: bool,
    /// One-based line of the PTX.
    pub line: u32,
}

/// The accesses of an entry to global memory through its parameters, in the order of the text. Those of functions that it
/// calls are not among them.
pub fn pointer_accesses(program: &Program, entry: FunctionId) -> Vec<PointerAccess> {
    let function = program.function(entry);
    let uses = Uses::new(function);
    let access = |instruction: &Instruction| {
        let form = program.form(instruction.form);
        let register = address(function, form, instruction)?;
        let parameters = summands(program, function, &uses, register);
        let writes = !matches!(form.opcode, Opcode::Ld | Opcode::Ldu);
        let access =
            PointerAccess { parameters, ty: *form.types.first()?, vector: form.vector, writes, line: instruction.line };
        Some(access).filter(|access| !access.parameters.is_empty())
    };
    function.instructions.iter().filter_map(access).collect()
}

fn address(function: &Function, form: &Form, instruction: &Instruction) -> Option<RegisterId> {
    let place = match form.opcode {
        Opcode::Ld | Opcode::Ldu | Opcode::Atom => 1,
        Opcode::St | Opcode::Red => 0,
        _ => return None,
    };
    if !matches!(form.space, None | Some(Space::Global)) {
        return None;
    }
    match function.operands_of(instruction).get(place)? {
        Operand::Address(Base::Register(register), _) => Some(*register),
        _ => None,
    }
}

/// The parameters that reach a register by sums and copies alone.
fn summands(program: &Program, function: &Function, uses: &Uses, register: RegisterId) -> Vec<u32> {
    let (mut seen, mut pending, mut found) = (vec![register], vec![register], Vec::new());
    while let Some(register) = pending.pop() {
        for &writer in uses.writers(register) {
            let instruction = &function.instructions[writer as usize];
            let (form, operands) = (program.form(instruction.form), function.operands_of(instruction));
            let from = match form.opcode {
                Opcode::Ld if form.space == Some(Space::Parameter) => {
                    if let Some(Operand::Address(Base::Symbol(Symbol::Parameter(place)), 0)) = operands.get(1) {
                        found.push(*place);
                    }
                    continue;
                }
                Opcode::Add | Opcode::Sub | Opcode::Mov | Opcode::Cvta => operands.get(1..),
                Opcode::Selp => operands.get(1..3),
                Opcode::Mad if form.has(Word::Wide) || form.has(Word::Lo) => operands.get(3..),
                _ => None,
            };
            for operand in from.unwrap_or_default() {
                if let Operand::Register(source) = operand
                    && function.register(*source).ty.bits() == 64
                    && !seen.contains(source)
                {
                    seen.push(*source);
                    pending.push(*source);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
