//! `index-wraps`.

use super::context::Context;
use super::rule::{Finding, Rule, Severity};
use crate::program::{Opcode, Operand, RegisterId, ScalarType, Space, Special, Word};

pub(super) const RULE: Rule = Rule {
    name: "index-wraps",
    summary: "a 32-bit product of run-time values becomes an address of global memory",
    severity: Severity::Note,
    explanation: "A row times the length of a row passes 2^31 in a tensor of more than two thousand million elements, and the \
                  index wraps without a word: the kernel reads and writes elsewhere. Convert one factor to 64 bits before the \
                  product (`(long)row * stride`; in Triton `row.to(tl.int64) * stride`). Nothing is said of products whose \
                  factors have bounds that the code itself shows, and of a block's number times the block's size, which a \
                  launch keeps in range. Whether a product wraps is a question of the tensors that a kernel is given, and \
                  nearly every kernel with strides has such products: a function has one finding, at the first of them, \
                  which names the others.",
};

/// How many products a finding points at besides its own.
const RELATED: usize = 8;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let mut found: Option<Finding> = None;
    let mut others = Vec::new();
    for place in context.metrics.wrapping.iter().filter(|place| place.function == context.id) {
        let instruction = context.at(place.instruction);
        let [_, Operand::Register(first), Operand::Register(second), ..] = context.function.operands_of(instruction)
        else {
            continue;
        };
        let (a, b) = (Origin::of(context, *first), Origin::of(context, *second));
        if a.bound.saturating_mul(b.bound) < 1 << 31 || a.grid && b.grid {
            continue;
        }
        // One factor at least is a number that a caller chooses.
        if !a.chosen && !b.chosen {
            continue;
        }
        let message = format!(
            "the product of `{}` ({}) and `{}` ({}) has 32 bits and becomes an address: it wraps where it passes 2^31. Convert \
             one of them to 64 bits first",
            context.name(*first),
            a.words(),
            context.name(*second),
            b.words()
        );
        match found {
            None => found = Some(context.finding(&RULE, place.instruction, message)),
            Some(_) => others.push(place.instruction),
        }
    }
    let Some(mut finding) = found else { return };
    match others.len() {
        0 => {}
        1 => finding.message.push_str(". Another product of this kernel is like it"),
        more => finding.message.push_str(&format!(". {more} more products of this kernel are like it")),
    }
    // Several of one line of the source are one place to look at.
    let line = |instruction: u32| {
        let found = context.at(instruction);
        found.location.map_or((0, found.line), |id| {
            let location = context.program.location(id);
            (location.file + 1, location.line)
        })
    };
    let mut told = vec![line(finding.place.instruction)];
    for other in others {
        if told.len() <= RELATED && !told.contains(&line(other)) {
            told.push(line(other));
            finding = finding.with(context.related(other, "another product that becomes an address"));
        }
    }
    findings.push(finding);
}

/// Where a factor comes from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// No value of it is larger.
    bound: u64,
    /// Whether it is made of the sizes and numbers of blocks and threads alone.
    grid: bool,
    /// Whether a parameter or memory has part in it.
    chosen: bool,
    /// Whether threads or blocks have part in it.
    numbered: bool,
}

/// Steps back from a factor: what is further is taken to have no bound.
const STEPS: u32 = 24;

impl Origin {
    const UNKNOWN: Self = Self { bound: u32::MAX as u64, grid: false, chosen: true, numbered: false };

    fn of(context: &Context<'_>, register: RegisterId) -> Self {
        let mut steps = STEPS;
        Self::follow(context, register, &mut steps, 0)
    }

    fn words(self) -> &'static str {
        match (self.chosen, self.numbered) {
            (true, true) => "made of parameters and of the thread's or block's number",
            (true, false) => "from a parameter or memory",
            (false, true) => "from the thread's or block's number",
            (false, false) => "counted",
        }
    }

    fn constant(value: u64) -> Self {
        Self { bound: value, grid: true, chosen: false, numbered: false }
    }

    /// The depth is bounded, and the steps with it: a chain of any length ends.
    fn follow(context: &Context<'_>, register: RegisterId, steps: &mut u32, depth: u32) -> Self {
        if *steps == 0 || depth > 12 {
            return Self::UNKNOWN;
        }
        *steps -= 1;
        let Some((instruction, form)) = context.definition(register) else {
            // A counter of a loop, or a value of several ways: what made it is not followed.
            return Self { chosen: true, ..Self::UNKNOWN };
        };
        let operands = context.function.operands_of(instruction);
        let mut operand = |index: usize| match operands.get(index) {
            Some(Operand::Register(register)) => Self::follow(context, *register, steps, depth + 1),
            Some(Operand::Integer(bits)) => {
                Self::constant(if *bits > u64::from(u32::MAX) { u64::from(*bits as u32) } else { *bits })
            }
            Some(Operand::Special(special)) => Self::special(*special),
            _ => Self::UNKNOWN,
        };
        let join = |a: Self, b: Self, bound: u64| Self {
            bound: bound.min(u64::from(u32::MAX)),
            grid: a.grid && b.grid,
            chosen: a.chosen || b.chosen,
            numbered: a.numbered || b.numbered,
        };
        let narrow = |origin: Self, bits: u32| Self { bound: origin.bound.min((1 << bits.min(32)) - 1), ..origin };
        match form.opcode {
            Opcode::Mov => operand(1),
            Opcode::Cvt => match form.types.last() {
                Some(source) if !source.is_signed() => narrow(operand(1), source.bits()),
                _ => operand(1),
            },
            Opcode::Ld => {
                let ty = form.types.first().copied().unwrap_or(ScalarType::B32);
                let small = !ty.is_signed() && ty.bits() < 32 && form.space != Some(Space::Parameter);
                if small { narrow(Self::UNKNOWN, ty.bits()) } else { Self::UNKNOWN }
            }
            Opcode::And => {
                let (a, b) = (operand(1), operand(2));
                join(a, b, a.bound.min(b.bound))
            }
            Opcode::Or | Opcode::Xor => {
                let (a, b) = (operand(1), operand(2));
                let larger = a.bound.max(b.bound);
                join(a, b, (larger + 1).next_power_of_two() - 1)
            }
            Opcode::Add => {
                let (a, b) = (operand(1), operand(2));
                join(a, b, a.bound.saturating_add(b.bound))
            }
            Opcode::Mul if !form.has(Word::Hi) => {
                let (a, b) = (operand(1), operand(2));
                join(a, b, a.bound.saturating_mul(b.bound))
            }
            Opcode::Mad if !form.has(Word::Hi) => {
                let (a, b, c) = (operand(1), operand(2), operand(3));
                let product = join(a, b, a.bound.saturating_mul(b.bound));
                join(product, c, product.bound.saturating_add(c.bound))
            }
            Opcode::Shl => match operands.get(2) {
                Some(Operand::Integer(by)) => {
                    let a = operand(1);
                    join(a, a, a.bound.checked_shl(*by as u32).unwrap_or(u64::MAX))
                }
                _ => Self::UNKNOWN,
            },
            Opcode::Shr => match operands.get(2) {
                Some(Operand::Integer(by)) => {
                    let a = operand(1);
                    join(a, a, a.bound >> (*by).min(63))
                }
                _ => operand(1),
            },
            Opcode::Bfe => match operands.get(3) {
                Some(Operand::Integer(bits)) => narrow(operand(1), *bits as u32),
                _ => operand(1),
            },
            Opcode::Rem => {
                let (a, b) = (operand(1), operand(2));
                join(a, b, a.bound.min(b.bound.saturating_sub(1)))
            }
            Opcode::Div => {
                let (a, b) = (operand(1), operand(2));
                let divisor = match operands.get(2) {
                    Some(Operand::Integer(value)) => (*value).max(1),
                    _ => 1,
                };
                join(a, b, a.bound / divisor)
            }
            Opcode::Min => {
                let (a, b) = (operand(1), operand(2));
                join(a, b, a.bound.min(b.bound))
            }
            Opcode::Max | Opcode::Selp => {
                let (a, b) = (operand(1), operand(2));
                join(a, b, a.bound.max(b.bound))
            }
            _ => Self::UNKNOWN,
        }
    }

    /// The bounds of CUDA's programming guide: 1024 threads of a block in x and y, 64 in z; 2^31 - 1 blocks in x, 65,535
    /// in y and z.
    fn special(special: Special) -> Self {
        use Special::*;
        let (bound, numbered) = match special {
            TidX | TidY => (1023, true),
            TidZ => (63, true),
            NtidX | NtidY => (1024, false),
            NtidZ => (64, false),
            CtaidX => ((1 << 31) - 1, true),
            NctaidX => ((1 << 31) - 1, false),
            CtaidY | CtaidZ => (65_534, true),
            NctaidY | NctaidZ => (65_535, false),
            Laneid => (31, true),
            Warpid => (63, true),
            _ => (u64::from(u32::MAX), true),
        };
        Self { bound, grid: true, chosen: false, numbered }
    }
}
