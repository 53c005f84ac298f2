//! `spill-in-loop`.

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::metrics::Class;
use crate::program::{Base, Opcode, Operand};

pub(super) const RULE: Rule = Rule {
    name: "spill-in-loop",
    summary: "local memory is read or written in a loop",
    severity: Severity::Warning,
    explanation: "Local memory is memory: a value that lives there costs a trip through the caches at every turn of the \
                  loop. Compilers put spilled registers there, and arrays whose index is not known: these are a note, since \
                  functions of the mathematical library (`sinf` of large arguments) have some. Unroll the loop so that \
                  indices are constants, or keep less at a time. Code compiled for debuggers, which keeps every \
                  variable in memory, is passed over.",
};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    if context.program.targets.iter().any(|target| &**target == "debug") {
        return;
    }
    for (index, instruction, form) in context.instructions() {
        let depth = context.flow.depth(context.flow.block_of(index));
        if depth == 0 || Class::of(form) != Class::Local {
            continue;
        }
        let varies = context.function.operands_of(instruction).iter().any(|operand| match operand {
            // The frame's own address is made outside of loops; one made in the loop is an index into an array.
            Operand::Address(Base::Register(register), _) => context.uses.writers(*register).iter().any(|&writer| {
                let block = context.flow.block_of(writer);
                context.flow.depth(block) > 0
            }),
            _ => false,
        });
        let verb = if instruction.opcode == Opcode::St { "writes" } else { "reads" };
        let what =
            if varies { "an element of an array at an index that varies" } else { "a value that has no register" };
        let loops = if depth == 1 { "a loop".to_owned() } else { format!("{depth} nested loops") };
        let message =
            format!("`{}` {verb} local memory in {loops}: {what}. Unroll the loop or keep less at a time", form.text);
        let severity = if varies { Severity::Note } else { Severity::Warning };
        findings.push(context.finding(&RULE, index, message).severity(severity));
    }
}
