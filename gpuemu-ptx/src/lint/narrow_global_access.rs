//! `narrow-global-access`.

use rustc_hash::FxHashMap;

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::metrics::{Access, Direction};
use crate::program::{Base, Opcode, Operand, RegisterId, Symbol, Variance, Word};

pub(super) const RULE: Rule = Rule {
    name: "narrow-global-access",
    summary: "global memory is accessed in smaller pieces than a thread could move at once",
    severity: Severity::Warning,
    explanation: "A thread moves up to 16 bytes with one access. Two cases are told. A thread accesses neighbouring \
                  elements one by one although its addresses are aligned for one vector access, as far as the code shows: \
                  use `float2`, `float4` or a cast to them. And a loop that moves elements of one or two bytes each, four or \
                  more at a turn: give each thread several neighbouring elements (in Triton: hints such as \
                  `tl.multiple_of`, or strides that are known to be multiples of 16). Remainders after an unrolled loop and \
                  stencils, whose neighbours are not aligned, are passed over.",
};

/// Narrow accesses in one turn of a loop from which on they are told: less is a remainder.
const NARROW_A_TURN: usize = 4;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let accesses: Vec<&Access> = context
        .metrics
        .accesses
        .iter()
        .filter(|access| access.place.function == context.id && access.direction != Direction::Atomic)
        .collect();
    let mut told = neighbours(context, &accesses, findings);
    told.sort_unstable();
    narrow_in_loops(context, &accesses, &told, findings);
}

/// Accesses of one block by the same register, side by side.
fn neighbours(context: &Context<'_>, accesses: &[&Access], findings: &mut Vec<Finding>) -> Vec<u32> {
    let mut groups: FxHashMap<_, Vec<(i64, u32)>> = FxHashMap::default();
    for access in accesses {
        let index = access.place.instruction;
        let (instruction, form) = (context.at(index), context.form(index));
        // What is volatile or ordered is so for a reason.
        if form.vector > 1 || form.order.is_some() || instruction.opcode == Opcode::Cp || access.bytes >= 16 {
            continue;
        }
        let address = context.function.operands_of(instruction).iter().find_map(|operand| match operand {
            Operand::Address(Base::Register(register), offset) => Some((*register, *offset)),
            _ => None,
        });
        let Some((register, offset)) = address else { continue };
        if context.uses.only_writer(register).is_none() {
            continue;
        }
        let key = (context.flow.block_of(index), register, access.direction, access.bytes, instruction.guard);
        groups.entry(key).or_default().push((offset, index));
    }
    let mut told = Vec::new();
    for ((_, register, direction, bytes, _), mut members) in groups {
        members.sort_unstable();
        members.dedup_by_key(|member| member.0);
        // Runs of neighbours, each offset one element after the last.
        for run in members.chunk_by(|a, b| b.0 - a.0 == i64::from(bytes)) {
            let moved = run.len() as u64 * u64::from(bytes);
            let width = [16, 8, 4].into_iter().find(|width| moved.is_multiple_of(*width) && *width > u64::from(bytes));
            let Some(width) = width.filter(|_| run.len() > 1) else { continue };
            let aligned = run[0].0.rem_euclid(width as i64) == 0 && multiple(context, register, width);
            if !aligned {
                continue;
            }
            let first = run.iter().map(|member| member.1).min().unwrap_or_default();
            let verb = if direction == Direction::Store { "stores" } else { "loads" };
            let message = format!(
                "a thread {verb} {} neighbouring elements of {bytes} bytes one by one: one access of {width} bytes, a vector of \
                 {}, would do",
                run.len(),
                width / u64::from(bytes)
            );
            let mut finding = context.finding(&RULE, first, message);
            for (_, index) in run.iter().filter(|member| member.1 != first).take(3) {
                finding = finding.with(context.related(*index, "its neighbour"));
            }
            findings.push(finding);
            told.extend(run.iter().map(|member| member.1));
        }
    }
    told
}

/// Loops that move elements of one or two bytes each.
fn narrow_in_loops(context: &Context<'_>, accesses: &[&Access], told: &[u32], findings: &mut Vec<Finding>) {
    let mut groups: FxHashMap<_, Vec<&Access>> = FxHashMap::default();
    for access in accesses.iter().filter(|access| access.bytes <= 2 && access.depth > 0) {
        let index = access.place.instruction;
        if told.binary_search(&index).is_err() && context.form(index).order.is_none() {
            let innermost = context.flow.block(context.flow.block_of(index)).innermost;
            groups.entry((innermost, access.direction, access.bytes)).or_default().push(access);
        }
    }
    for ((_, direction, bytes), members) in groups {
        if members.len() < NARROW_A_TURN {
            continue;
        }
        let verb = if direction == Direction::Store { "stores" } else { "loads" };
        let plural = if bytes == 1 { "" } else { "s" };
        for access in members.iter() {
            let message = format!(
                "a turn of this loop {verb} {} times {bytes} byte{plural} a thread: give each thread neighbouring elements, \
                 which one access of up to 16 bytes can move",
                members.len()
            );
            let finding = context.finding(&RULE, access.place.instruction, message);
            findings.push(finding.severity(Severity::Note));
        }
    }
}

/// Whether a register is a multiple of `width` as far as the code shows: every term is a multiple of it by its factor, and
/// a pointer that a parameter gives is aligned for any vector. At least one term tells threads apart.
fn multiple(context: &Context<'_>, register: RegisterId, width: u64) -> bool {
    let mut threads = false;
    let mut steps = 64;
    terms(context, register, width, &mut threads, &mut steps) && threads
}

/// Whether `register * factor` is a multiple of `width`, where what is left of `width` has to come from the register.
fn terms(context: &Context<'_>, register: RegisterId, width: u64, threads: &mut bool, steps: &mut u32) -> bool {
    let Some(writer) = context.uses.only_writer(register) else { return width <= 1 };
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    if width <= 1 {
        *threads |= context.written(writer) == Variance::Thread;
        return true;
    }
    let (instruction, form) = (context.at(writer), context.form(writer));
    if instruction.guard.is_some() || form.types.first().is_none_or(|ty| ty.is_float()) {
        return false;
    }
    let operands = context.function.operands_of(instruction);
    let mut part = |operand: Option<&Operand>, width: u64| match operand {
        Some(Operand::Register(source)) => terms(context, *source, width, threads, steps),
        Some(Operand::Integer(value)) => value % width == 0,
        _ => width <= 1,
    };
    let factor = |operand: Option<&Operand>| match operand {
        // What a factor brings of the powers of two that are needed.
        Some(Operand::Integer(value)) if *value > 0 => 1_u64 << value.trailing_zeros().min(4),
        _ => 1,
    };
    let left = |by: u64| width.div_ceil(by);
    match form.opcode {
        Opcode::Add | Opcode::Sub => part(operands.get(1), width) && part(operands.get(2), width),
        Opcode::Mov | Opcode::Cvta => part(operands.get(1), width),
        Opcode::Cvt => part(operands.get(1), width),
        Opcode::Mul if !form.has(Word::Hi) => part(operands.get(1), left(factor(operands.get(2)))),
        Opcode::Mad if !form.has(Word::Hi) => {
            part(operands.get(1), left(factor(operands.get(2)))) && part(operands.get(3), width)
        }
        Opcode::Shl => match operands.get(2) {
            Some(Operand::Integer(by)) => part(operands.get(1), left(1 << (*by).min(4))),
            _ => false,
        },
        // The pointers that a launch gives come from an allocation, which is aligned for any access.
        Opcode::Ld => form.types.first().is_some_and(|ty| ty.bits() == 64) && parameter(operands),
        _ => false,
    }
}

fn parameter(operands: &[Operand]) -> bool {
    matches!(operands.get(1), Some(Operand::Address(Base::Symbol(Symbol::Parameter(_)), _)))
}
