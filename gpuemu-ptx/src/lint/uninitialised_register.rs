//! `uninitialised-register`.

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::flow::BlockId;
use crate::program::{Opcode, Operand, RegisterId};

pub(super) const RULE: Rule = Rule {
    name: "uninitialised-register",
    summary: "a register is read that nothing has written",
    severity: Severity::Error,
    explanation: "A register that is read before any write holds whatever was left in it. Where no way to the read passes a \
                  write, that is an error; where some way passes none, a note, since the condition of that way may never \
                  hold. Writes under a guard count as writes. Reads that only move or pack the value are passed over: \
                  compilers move values that no one will look at.",
};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let (function, flow) = (context.function, context.flow);
    if flow.blocks.is_empty() {
        return;
    }
    for &register in context.liveness.live_in(BlockId(0)) {
        let register = RegisterId(register);
        if function.parameters.iter().any(|parameter| parameter.register == Some(register)) {
            continue;
        }
        let writers = context.uses.writers(register);
        if writers.iter().any(|&writer| context.at(writer).guard.is_some()) {
            continue;
        }
        let reached = after_writes(context, writers);
        let mut maybe = None;
        let mut readers = context.uses.readers(register).to_vec();
        readers.dedup();
        for reader in readers {
            let block = flow.block_of(reader);
            if !flow.block(block).reachable || !matters(context, reader, register) {
                continue;
            }
            let earlier = writers.iter().any(|&writer| flow.block_of(writer) == block && writer < reader);
            if reached[block.0 as usize] || earlier {
                // The first read in the text stands for those that some way reaches without a write.
                if !earlier && context.liveness.live_in(block).binary_search(&register.0).is_ok() {
                    maybe = maybe.or(Some(reader));
                }
                continue;
            }
            let message = format!(
                "`{}` is read here, and no way to this place writes it: it holds whatever was left in it",
                context.name(register)
            );
            findings.push(context.finding(&RULE, reader, message));
            maybe = None;
            break;
        }
        if let Some(reader) = maybe {
            let message = format!(
                "`{}` is read here, and some way to this place does not write it: give it a value on every way",
                context.name(register)
            );
            let mut finding = context.finding(&RULE, reader, message).severity(Severity::Note);
            if let Some(&writer) = writers.first() {
                finding = finding.with(context.related(writer, "it is written here"));
            }
            findings.push(finding);
        }
    }
}

/// The blocks that some way from a write reaches, at their beginning.
fn after_writes(context: &Context<'_>, writers: &[u32]) -> Vec<bool> {
    let mut reached = vec![false; context.flow.blocks.len()];
    let mut pending: Vec<BlockId> = Vec::new();
    for &writer in writers {
        let block = context.flow.block_of(writer);
        if context.flow.block(block).reachable {
            pending.extend(context.flow.successors(block));
        }
    }
    while let Some(block) = pending.pop() {
        if !std::mem::replace(&mut reached[block.0 as usize], true) {
            pending.extend(context.flow.successors(block));
        }
    }
    reached
}

/// Whether a read does something with the value rather than carry it on.
fn matters(context: &Context<'_>, reader: u32, register: RegisterId) -> bool {
    let instruction = context.at(reader);
    let carries = matches!(
        instruction.opcode,
        Opcode::Mov
            | Opcode::Cvt
            | Opcode::Selp
            | Opcode::Prmt
            | Opcode::Shfl
            | Opcode::Bfi
            | Opcode::Shf
            | Opcode::Cvta
    );
    let guard = instruction.guard.is_some_and(|guard| guard.register == register);
    let packed = context
        .function
        .operands_of(instruction)
        .iter()
        .any(|operand| matches!(operand, Operand::Vector(range) if range.len() > 1));
    guard || !carries && !packed
}
