//! `unused-parameter`.

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::program::{Base, Function, Operand, Parameter, Space, Symbol};

pub(super) const RULE: Rule = Rule {
    name: "unused-parameter",
    summary: "a parameter of the entry is never read",
    severity: Severity::Note,
    explanation: "A parameter that nothing reads is an argument that has no effect: forgotten in the code, or left over in \
                  the signature. The two scratch pointers that Triton adds at the end of every kernel are passed over.",
};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let function = context.function;
    if context.id != context.entry || function.instructions.is_empty() {
        return;
    }
    let mut used = vec![false; function.parameters.len()];
    for (_, instruction, _) in context.instructions() {
        for operand in function.operands_of(instruction) {
            mark(function, operand, &mut used);
        }
    }
    let scratch = scratch(&function.parameters, &used);
    for (number, parameter) in function.parameters.iter().enumerate().take(function.parameters.len() - scratch) {
        if !used[number] {
            let message = format!("parameter {number}, `{}`, is never read", parameter.name);
            findings.push(context.finding(&RULE, 0, message));
        }
    }
}

fn mark(function: &Function, operand: &Operand, used: &mut [bool]) {
    match operand {
        Operand::Symbol(Symbol::Parameter(index), _) | Operand::Address(Base::Symbol(Symbol::Parameter(index)), _) => {
            used[*index as usize] = true;
        }
        Operand::Vector(range) | Operand::List(range) | Operand::Indexed(range) => {
            function.inside(range).iter().for_each(|operand| mark(function, operand, used));
        }
        _ => {}
    }
}

/// How many of the last parameters are Triton's own: two unused pointers to global memory.
fn scratch(parameters: &[Parameter], used: &[bool]) -> usize {
    let added = |(parameter, used): (&Parameter, &bool)| {
        !used && parameter.pointer.is_some_and(|pointer| pointer.space == Some(Space::Global))
    };
    parameters.iter().zip(used).rev().take(2).take_while(|pair| added(*pair)).count()
}
