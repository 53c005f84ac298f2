//! The value of a register for every thread of a small block, where it depends on the thread's index alone.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::context::Context;
use crate::program::{Compare, Form, Opcode, Operand, RegisterId, ScalarType, Special, Symbol, Word};

/// A value: a number, or bytes past a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub symbol: Option<Symbol>,
    pub bits: u64,
}

/// One value a thread.
pub(super) type Values = Rc<[Value]>;

/// Values of registers for a block of this shape.
pub(super) struct Evaluator<'c, 'p> {
    context: &'c Context<'p>,
    block: [u32; 3],
    /// By the instruction that writes a register, and the register.
    known: FxHashMap<(u32, RegisterId), Option<Values>>,
}

/// The most threads that are looked at.
const THREADS: u32 = 256;
/// The longest chain of instructions that is followed.
const DEPTH: u32 = 48;

/// Shapes of blocks that the entry may be launched with, largest first: the one that it requires, or 256 threads in a row
/// down to one warp, or several with rows, where those have a part.
pub(super) fn blocks(context: &Context<'_>) -> Vec<[u32; 3]> {
    let entry = context.program.function(context.entry);
    let rows = context.function.operands.iter().any(|operand| {
        matches!(operand, Operand::Special(Special::TidY | Special::TidZ | Special::NtidY | Special::NtidZ))
    });
    match entry.required_threads {
        Some(threads) => {
            let mut block = threads.map(|extent| extent.max(1));
            // The first threads of a large block are as good as all.
            while block.iter().map(|&extent| u64::from(extent)).product::<u64>() > u64::from(THREADS) {
                let largest = (0..3).max_by_key(|&axis| block[axis]).unwrap_or(0);
                block[largest] = block[largest].div_ceil(2);
            }
            vec![block]
        }
        None if rows => vec![[32, 8, 1], [16, 16, 1], [8, 4, 1]],
        None => [THREADS, 128, 64, 32].map(|threads| [threads, 1, 1]).to_vec(),
    }
}

impl<'c, 'p> Evaluator<'c, 'p> {
    /// For the smallest block worth a look: [`blocks`].
    pub fn new(context: &'c Context<'p>) -> Self {
        let smallest = blocks(context).pop().unwrap_or([32, 1, 1]);
        Self::of_block(context, smallest)
    }

    /// For a block of this shape.
    pub fn of_block(context: &'c Context<'p>, block: [u32; 3]) -> Self {
        Self { context, block, known: FxHashMap::default() }
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.block.iter().product::<u32>() as usize
    }

    /// The values of a register as an instruction reads it, one a thread; `None` where anything but the thread's index
    /// has part in them.
    pub fn register(&mut self, reader: u32, register: RegisterId) -> Option<Values> {
        self.follow(reader, register, 0)
    }

    fn follow(&mut self, reader: u32, register: RegisterId, depth: u32) -> Option<Values> {
        let writer = self.context.writer_at(reader, register)?;
        if let Some(known) = self.known.get(&(writer, register)) {
            return known.clone();
        }
        if depth > DEPTH {
            return None;
        }
        // Registers that feed themselves have several writes, or none that ends the chain.
        self.known.insert((writer, register), None);
        let values = self.compute(writer, register, depth);
        self.known.insert((writer, register), values.clone());
        values
    }

    fn compute(&mut self, writer: u32, register: RegisterId, depth: u32) -> Option<Values> {
        let (instruction, form) = (self.context.at(writer), self.context.form(writer));
        let operands = self.context.function.operands_of(instruction);
        if instruction.guard.is_some() || operands.first() != Some(&Operand::Register(register)) {
            return None;
        }
        let mut sources = [const { None }; 4];
        for (source, operand) in sources.iter_mut().zip(&operands[1..]) {
            *source = Some(self.operand(writer, operand, depth)?);
        }
        let count = operands.len() - 1;
        let threads = self.threads();
        let mut values = Vec::with_capacity(threads);
        for thread in 0..threads {
            let mut arguments = [Value { symbol: None, bits: 0 }; 4];
            for (argument, source) in arguments.iter_mut().zip(&sources) {
                if let Some(source) = source {
                    *argument = source[thread];
                }
            }
            values.push(apply(form, arguments.get(..count)?)?);
        }
        Some(values.into())
    }

    fn operand(&mut self, reader: u32, operand: &Operand, depth: u32) -> Option<Values> {
        let threads = self.threads();
        let same = |symbol, bits| Some(vec![Value { symbol, bits }; threads].into());
        match operand {
            Operand::Register(register) => self.follow(reader, *register, depth + 1),
            Operand::Negated(register) => {
                let values = self.follow(reader, *register, depth + 1)?;
                Some(values.iter().map(|value| Value { symbol: None, bits: value.bits ^ 1 }).collect())
            }
            Operand::Integer(bits) => same(None, *bits),
            Operand::Symbol(symbol, addend) => same(Some(*symbol), *addend as u64),
            Operand::Special(special) => {
                let bits = |thread| {
                    of_thread(*special, self.block, thread).map(|value| Value { symbol: None, bits: u64::from(value) })
                };
                (0..threads as u32).map(bits).collect::<Option<Vec<_>>>().map(Into::into)
            }
            _ => None,
        }
    }
}

/// The result of an instruction of integers; `None` for one that is not known here.
pub(super) fn apply(form: &Form, arguments: &[Value]) -> Option<Value> {
    let ty = form.types.first().copied().unwrap_or(ScalarType::B64);
    let source = form.types.last().copied().unwrap_or(ty);
    if ty.is_float() || source.is_float() || ty.bits() > 64 || ty.lanes() > 1 {
        return None;
    }
    let argument = |index: usize| arguments.get(index).copied();
    let wide = form.has(Word::Wide);
    // Numbers of the width and sign that the instruction reads.
    let signed = |value: Value| sign_extend(value.bits, source.bits());
    let unsigned = |value: Value| mask(value.bits, source.bits());
    let number = |value: Value| {
        if value.symbol.is_some() {
            return None;
        }
        Some(if source.is_signed() { i128::from(signed(value)) } else { i128::from(unsigned(value)) })
    };
    let numbers = |index: usize| argument(index).and_then(number);
    let result_bits = if wide { ty.bits() * 2 } else { ty.bits() };
    let plain = |value: i128| Some(Value { symbol: None, bits: mask(value as u64, result_bits) });
    match form.opcode {
        Opcode::Mov | Opcode::Cvta => argument(0).map(|value| match value.symbol {
            Some(_) => value,
            None => Value { bits: mask(value.bits, ty.bits()), ..value },
        }),
        Opcode::Cvt if form.modifiers.len() == 2 => match argument(0)? {
            value @ Value { symbol: Some(_), .. } => Some(value),
            value => plain(number(value)?),
        },
        Opcode::Add if !form.has(Word::Sat) && !form.has(Word::Cc) => {
            let (a, b) = (argument(0)?, argument(1)?);
            match (a.symbol, b.symbol) {
                (Some(_), Some(_)) => None,
                (None, None) => plain(number(a)? + number(b)?),
                // An address keeps its symbol; offsets are small and may be negative.
                (symbol, other) => {
                    let bits = sign_extend(a.bits, ty.bits()).wrapping_add(sign_extend(b.bits, ty.bits()));
                    Some(Value { symbol: symbol.or(other), bits: bits as u64 })
                }
            }
        }
        Opcode::Sub if !form.has(Word::Sat) && !form.has(Word::Cc) => plain(numbers(0)? - numbers(1)?),
        Opcode::Mul if !form.has(Word::Hi) => plain(numbers(0)?.wrapping_mul(numbers(1)?)),
        Opcode::Mul => plain(numbers(0)?.wrapping_mul(numbers(1)?) >> source.bits()),
        Opcode::Mad if !form.has(Word::Hi) && !form.has(Word::Sat) && !form.has(Word::Cc) => {
            let product = numbers(0)?.wrapping_mul(numbers(1)?);
            let addend = argument(2)?;
            match addend.symbol {
                None => plain(product + i128::from(sign_extend(addend.bits, result_bits))),
                Some(_) => {
                    let bits = sign_extend(mask(product as u64, result_bits), result_bits);
                    Some(Value { bits: addend.bits.wrapping_add(bits as u64), ..addend })
                }
            }
        }
        Opcode::Shl => {
            let by = numbers(1)?;
            plain(if (0..i128::from(ty.bits())).contains(&by) { numbers(0)? << by } else { 0 })
        }
        Opcode::Shr => {
            let by = numbers(1)?;
            let by = if (0..i128::from(ty.bits())).contains(&by) { by } else { 127 };
            plain(numbers(0)? >> by)
        }
        Opcode::And => plain(numbers(0)? & numbers(1)?),
        Opcode::Or => plain(numbers(0)? | numbers(1)?),
        Opcode::Xor => plain(numbers(0)? ^ numbers(1)?),
        Opcode::Not => plain(!numbers(0)?),
        Opcode::Neg => plain(-numbers(0)?),
        Opcode::Min => plain(numbers(0)?.min(numbers(1)?)),
        Opcode::Max => plain(numbers(0)?.max(numbers(1)?)),
        Opcode::Div if numbers(1)? != 0 => plain(numbers(0)? / numbers(1)?),
        Opcode::Rem if numbers(1)? != 0 => plain(numbers(0)? % numbers(1)?),
        Opcode::Bfe if !ty.is_signed() => {
            let (value, start, length) = (numbers(0)?, numbers(1)? & 0xFF, numbers(2)? & 0xFF);
            let value = if start < 64 { value >> start } else { 0 };
            plain(if length < 64 { value & ((1 << length) - 1) } else { value })
        }
        Opcode::Lop3 => {
            let (a, b, c, table) = (numbers(0)?, numbers(1)?, numbers(2)?, numbers(3)?);
            let minterm = |index: i128| {
                let pick = |value: i128, bit: i128| if index & bit != 0 { value } else { !value };
                if table >> index & 1 == 1 { pick(a, 4) & pick(b, 2) & pick(c, 1) } else { 0 }
            };
            plain((0..8).map(minterm).fold(0, |all, term| all | term))
        }
        Opcode::Selp => {
            let chosen = argument(2)?;
            if chosen.bits & 1 == 1 { argument(0) } else { argument(1) }
        }
        Opcode::Setp if form.operation.is_none() => {
            let (a, b) = (argument(0)?, argument(1)?);
            if a.symbol.is_some() || b.symbol.is_some() {
                return None;
            }
            let (a, b, ua, ub) = (number(a)?, number(b)?, unsigned(a), unsigned(b));
            let holds = match form.compare? {
                Compare::Equal => a == b,
                Compare::NotEqual => a != b,
                Compare::Less => a < b,
                Compare::LessEqual => a <= b,
                Compare::Greater => a > b,
                Compare::GreaterEqual => a >= b,
                Compare::Lower => ua < ub,
                Compare::LowerSame => ua <= ub,
                Compare::Higher => ua > ub,
                Compare::HigherSame => ua >= ub,
                _ => return None,
            };
            Some(Value { symbol: None, bits: u64::from(holds) })
        }
        _ => None,
    }
}

fn mask(bits: u64, width: u32) -> u64 {
    if width >= 64 { bits } else { bits & ((1 << width) - 1) }
}

fn sign_extend(bits: u64, width: u32) -> i64 {
    let shift = 64_u32.saturating_sub(width);
    ((bits << shift) as i64) >> shift
}

/// What a special register holds in the thread of this number in a block of this shape; `None` where that is not all that
/// it depends on.
pub(super) fn of_thread(special: Special, [x, y, z]: [u32; 3], thread: u32) -> Option<u32> {
    Some(match special {
        Special::TidX => thread % x,
        Special::TidY => thread / x % y,
        Special::TidZ => thread / x / y,
        Special::NtidX => x,
        Special::NtidY => y,
        Special::NtidZ => z,
        Special::Laneid => thread % 32,
        Special::Warpid => thread / 32,
        _ => return None,
    })
}
