//! 32-bit products that become addresses.

use crate::program::{
    Base, Form, Function, FunctionId, Instruction, Opcode, Operand, Program, RegisterId, ScalarType, Space, Uses, Word,
};

/// The instructions of a function that multiply two 32-bit registers into 32 bits, whose product reaches an address of
/// global memory by additions, shifts, widening and the like. In order.
///
/// Such a product wraps silently where it is larger than 2^31 or 2^32, as a row times a row's length is in a large
/// tensor. Products with a constant factor and products that are widened as they are made (`mul.wide`) are not among
/// them.
pub fn wrapping_products(program: &Program, id: FunctionId, uses: &Uses) -> Vec<u32> {
    let function = program.function(id);
    let mut found = Vec::new();
    let mut seen = vec![false; function.registers.len()];
    let mut pending = Vec::new();
    for block in function.flow.blocks.iter().filter(|block| block.reachable) {
        for instruction in &function.instructions[block.instructions.start as usize..block.instructions.end as usize] {
            address_registers(function, program.form(instruction.form), instruction, |register| {
                if !std::mem::replace(&mut seen[register.0 as usize], true) {
                    pending.push(register);
                }
            });
        }
    }
    while let Some(register) = pending.pop() {
        for &writer in uses.writers(register) {
            let instruction = &function.instructions[writer as usize];
            let form = program.form(instruction.form);
            if !carries_indices(form) {
                continue;
            }
            let operands = function.operands_of(instruction);
            let multiplies = matches!(form.opcode, Opcode::Mul | Opcode::Mad) && !form.has(Word::Wide);
            let factors = matches!(operands, [_, Operand::Register(_), Operand::Register(_), ..]);
            if multiplies && factors && form.ty().bits() == 32 && !form.has(Word::Hi) {
                found.push(writer);
            }
            for operand in &operands[1..] {
                if let Operand::Register(source) = operand
                    && !std::mem::replace(&mut seen[source.0 as usize], true)
                {
                    pending.push(*source);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether what an instruction writes is an index, or part of one, where what it reads is.
fn carries_indices(form: &Form) -> bool {
    use Opcode::*;
    let integer = form.types.iter().all(|ty| !ty.is_float() && *ty != ScalarType::Predicate);
    integer
        && matches!(
            form.opcode,
            Add | Sub | Mul | Mad | Shl | Shr | Div | Or | Mov | Cvt | Cvta | Selp | Min | Max | Neg
        )
}

/// Calls `visit` with every register that an instruction takes an address of global memory from.
fn address_registers(function: &Function, form: &Form, instruction: &Instruction, mut visit: impl FnMut(RegisterId)) {
    use Opcode::*;
    let global = matches!(form.space, Some(Space::Global) | None) || form.has(Word::Global);
    if !global || !matches!(form.opcode, Ld | Ldu | St | Atom | Red | Cp | Prefetch | Wmma | Multimem) {
        return;
    }
    // Of a copy from global to shared memory the second address is the global one.
    let skipped = usize::from(form.opcode == Cp && form.space == Some(Space::Shared));
    let addresses = function.operands_of(instruction).iter().filter_map(|operand| match operand {
        Operand::Address(Base::Register(register), _) => Some(*register),
        _ => None,
    });
    addresses.skip(skipped).for_each(&mut visit);
}
