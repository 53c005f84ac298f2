//! `float-atomic-order`.

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::program::{Opcode, Operation};

pub(super) const RULE: Rule = Rule {
    name: "float-atomic-order",
    summary: "atomic additions of floats: sums depend on the order of threads",
    severity: Severity::Note,
    explanation: "Addition of floats rounds, so that the result of several atomic additions depends on the order in which \
                  threads come, which changes from run to run. Compare such results with a tolerance, or add in a fixed \
                  order: reduce within a block first and add the partial sums in one place.",
};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    for (index, instruction, form) in context.instructions() {
        let atomic = matches!(instruction.opcode, Opcode::Atom | Opcode::Red);
        let Some(ty) = form.types.first().filter(|ty| ty.is_float()) else { continue };
        if atomic && form.operation == Some(Operation::Add) {
            let message = format!(
                "`{}` adds a {ty} atomically: the sum depends on the order in which threads come, and differs from run to run",
                form.text
            );
            findings.push(context.finding(&RULE, index, message));
        }
    }
}
