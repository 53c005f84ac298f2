//! Bodies of functions as text.

use std::fmt::{self, Display, Formatter, Write};

use super::operand::Values;
use super::{Separated, quoted};
use crate::parse::{Body, Guard, Inlined, Instruction, Location, Operand, Prototype, Statement};

/// Blanks before the statements of the deepest blocks: text must not grow with the square of the depth.
const INDENT: usize = 8;

/// A body in its braces.
pub(super) struct BodyText<'a>(pub(super) &'a Body<'a>);

impl Display for BodyText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let values = Values(&self.0.operands);
        let mut depth = 1_usize;
        f.write_str("{\n")?;
        for statement in &self.0.statements {
            if matches!(statement, Statement::Close) {
                depth = depth.saturating_sub(1);
            }
            let indent = match statement {
                Statement::Label(_) => 0,
                _ => depth.min(INDENT),
            };
            (0..indent).try_for_each(|_| f.write_char('\t'))?;
            if matches!(statement, Statement::Open) {
                depth += 1;
            }
            self::statement(f, &values, statement)?;
            f.write_char('\n')?;
        }
        f.write_char('}')
    }
}

fn statement(f: &mut Formatter<'_>, values: &Values<'_>, statement: &Statement<'_>) -> fmt::Result {
    match statement {
        Statement::Instruction(instruction) => self::instruction(f, values, instruction),
        Statement::Label(label) => write!(f, "{}:", label.name),
        Statement::Variable(variable) => write!(f, "{variable};"),
        Statement::Location(location) => location.fmt(f),
        Statement::Open => f.write_char('{'),
        Statement::Close => f.write_char('}'),
        Statement::Pragma(strings) => {
            f.write_str(".pragma")?;
            quoted(f, strings)?;
            f.write_char(';')
        }
        Statement::BranchTargets(labels) => write!(f, ".branchtargets {};", Separated(labels)),
        Statement::CallTargets(functions) => write!(f, ".calltargets {};", Separated(functions)),
        Statement::CallPrototype(prototype) => write!(f, ".callprototype {prototype};"),
    }
}

fn instruction(f: &mut Formatter<'_>, values: &Values<'_>, instruction: &Instruction<'_>) -> fmt::Result {
    if let Some(Guard { register, negated }) = instruction.guard {
        write!(f, "@{}{register} ", if negated { "!" } else { "" })?;
    }
    f.write_str(instruction.opcode)?;
    let operands = values.of(&instruction.operands);
    // A call shows neither what it does not return nor arguments that it does not pass.
    let empty = |operand: &Operand<'_>| matches!(operand, Operand::List(range) if range.is_empty());
    let mut separator = " ";
    for operand in operands.iter().filter(|operand| !empty(operand)) {
        f.write_str(separator)?;
        values.operand(f, operand)?;
        separator = ", ";
    }
    f.write_char(';')
}

impl Display for Location<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ".loc {} {} {}", self.file, self.line, self.column)?;
        let Some(Inlined { function, addend, file, line, column }) = self.inlined else { return Ok(()) };
        write!(f, ", function_name {function}")?;
        if addend != 0 {
            write!(f, "+{addend}")?;
        }
        write!(f, ", inlined_at {file} {line} {column}")
    }
}

impl Display for Prototype<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.returns.is_empty() {
            write!(f, "({}) ", Separated(&self.returns))?;
        }
        write!(f, "_ ({})", Separated(&self.parameters))?;
        self.directives.iter().try_for_each(|directive| write!(f, " {directive}"))
    }
}
