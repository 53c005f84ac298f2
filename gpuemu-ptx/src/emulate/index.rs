//! Index arithmetic of 32 bits that becomes an address, found in a function before it is decoded.
//!
//! `row * stride + column` in 32 bits is a wrong address once it leaves 32 bits, and often one inside the tensor. What is
//! followed is certain: from an access back to the one instruction that widened the index, and from there back through
//! sums and products as long as each value has one writer. Remainders, shifts to the right, masks and minima end it, so
//! that hashes and other intended wraps are values like any other.

use rustc_hash::FxHashMap;

use crate::program::{Base, Form, Function, Opcode, Operand, Program, RegisterId, ScalarType, Space, Uses, Word};

/// Sums and products of a function that are followed, at most.
const MOST: usize = 256;
/// Steps from an access back to where its index was widened, at most.
const STEPS: u32 = 16;

/// A value that takes part in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A sum or product that is followed, by number.
    Followed(u32),
    /// A register whose value is taken as it is.
    Register(RegisterId),
    /// A number, as 32 bits with a sign.
    Constant(i32),
}

/// What a followed instruction does to its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `a + b`
    Sum(Source, Source),
    /// `a - b`
    Difference(Source, Source),
    /// `a * b`
    Product(Source, Source),
    /// `a * b + c`
    ProductSum(Source, Source, Source),
}

/// What is done before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The exact value, of this number, of the sum or product that it computes.
    Exact(u32, Arithmetic),
    /// The index that it widens is compared with its exact value: number of the widening, number of the value, the
    /// register, whether it has a sign.
    Widened(u32, u32, RegisterId, bool),
    /// The widenings that its address comes from are looked at.
    Accessed(Vec<u32>),
}

/// What is done before the instructions of a function.
#[derive(Debug, Default)]
pub struct Indices {
    steps: FxHashMap<u32, Vec<Step>>,
    /// How many exact values there are.
    pub values: u32,
    /// Of every widening the number of the exact value, and whether it has a sign.
    pub widenings: Vec<(u32, bool)>,
}

struct Search<'a> {
    program: &'a Program,
    function: &'a Function,
    uses: Uses,
    found: Indices,
    /// The followed value that an instruction computes, where it is one.
    values: FxHashMap<u32, Option<u32>>,
    /// The widenings that an instruction is.
    widened: FxHashMap<u32, Vec<u32>>,
}

impl Indices {
    /// Of a function.
    pub fn new(program: &Program, function: &Function) -> Self {
        let mut search = Search {
            program,
            function,
            uses: Uses::new(function),
            found: Self::default(),
            values: FxHashMap::default(),
            widened: FxHashMap::default(),
        };
        for (at, instruction) in (0..).zip(&function.instructions) {
            let form = program.form(instruction.form);
            let Some(operand) = address_of(form) else { continue };
            let register = match function.operands_of(instruction).get(operand) {
                Some(Operand::Register(register) | Operand::Address(Base::Register(register), _)) => *register,
                _ => continue,
            };
            let mut widenings = Vec::new();
            search.follow(register, STEPS, &mut widenings);
            widenings.sort_unstable();
            widenings.dedup();
            if !widenings.is_empty() {
                search.found.steps.entry(at).or_default().push(Step::Accessed(widenings));
            }
        }
        search.found
    }

    /// What is done before an instruction.
    pub fn before(&self, instruction: u32) -> &[Step] {
        self.steps.get(&instruction).map_or(&[], Vec::as_slice)
    }
}

/// The operand that is an address in global memory, or may be one.
fn address_of(form: &Form) -> Option<usize> {
    let operand = match form.opcode {
        Opcode::Ld | Opcode::Ldu | Opcode::Atom => 1,
        Opcode::St | Opcode::Red => 0,
        Opcode::Cp if form.has(Word::Global) && form.has(Word::Async) => return Some(1),
        _ => return None,
    };
    matches!(form.space, None | Some(Space::Global)).then_some(operand)
}

impl Search<'_> {
    /// The one instruction that writes a register, whatever lanes run.
    fn writer(&self, register: RegisterId) -> Option<u32> {
        let at = self.uses.only_writer(register)?;
        self.function.instructions[at as usize].guard.is_none().then_some(at)
    }

    /// The widenings that an address of 64 bits comes from.
    fn follow(&mut self, register: RegisterId, steps: u32, widenings: &mut Vec<u32>) {
        let Some(at) = self.writer(register).filter(|_| steps > 0) else { return };
        let (program, function) = (self.program, self.function);
        let instruction = &function.instructions[at as usize];
        let (form, operands) = (program.form(instruction.form), function.operands_of(instruction));
        let wide = form.types.first().is_some_and(|ty| ty.bits() == 64 && ty.is_integer());
        let from: &[Operand] = match form.opcode {
            Opcode::Mul | Opcode::Mad if form.has(Word::Wide) => {
                if form.types.first().is_some_and(|ty| ty.bits() == 32) {
                    widenings.extend(self.widening(at, &operands[1..3], form.ty().is_signed()));
                }
                operands.get(3..).unwrap_or_default()
            }
            Opcode::Cvt => {
                let [to, from] = form.types[..] else { return };
                if to.bits() == 64 && to.is_integer() && from.bits() == 32 && from.is_integer() {
                    widenings.extend(self.widening(at, &operands[1..2], from.is_signed()));
                }
                return;
            }
            Opcode::Add | Opcode::Sub if wide => &operands[1..],
            Opcode::Mul | Opcode::Mad if wide && form.has(Word::Lo) => &operands[1..],
            Opcode::Mov | Opcode::Cvta if wide => &operands[1..],
            Opcode::Shl if wide => &operands[1..2],
            _ => return,
        };
        for operand in from {
            if let Operand::Register(register) = operand {
                self.follow(*register, steps - 1, widenings);
            }
        }
    }

    /// The widenings that an instruction is: one for each operand that is a followed sum or product.
    fn widening(&mut self, at: u32, operands: &[Operand], signed: bool) -> Vec<u32> {
        if let Some(known) = self.widened.get(&at) {
            return known.clone();
        }
        let mut made = Vec::new();
        for operand in operands {
            let Operand::Register(register) = operand else { continue };
            let Source::Followed(value) = self.source(operand, STEPS) else { continue };
            let number = self.found.widenings.len() as u32;
            self.found.widenings.push((value, signed));
            self.found.steps.entry(at).or_default().push(Step::Widened(number, value, *register, signed));
            made.push(number);
        }
        self.widened.insert(at, made.clone());
        made
    }

    fn source(&mut self, operand: &Operand, steps: u32) -> Source {
        match operand {
            Operand::Integer(bits) => Source::Constant(*bits as u32 as i32),
            Operand::Register(register) => match self.value(*register, steps) {
                Some(value) => Source::Followed(value),
                None => Source::Register(*register),
            },
            _ => unreachable!("sums of other operands are not followed"),
        }
    }

    /// The number of the followed value that a register holds.
    fn value(&mut self, register: RegisterId, steps: u32) -> Option<u32> {
        let at = self.writer(register).filter(|_| steps > 0)?;
        if let Some(&known) = self.values.get(&at) {
            return known;
        }
        // Whatever leads back here is no sum of one writer each.
        self.values.insert(at, None);
        let value = self.arithmetic(at, steps - 1).and_then(|arithmetic| {
            let number = self.found.values;
            if number as usize >= MOST {
                return None;
            }
            self.found.values += 1;
            self.found.steps.entry(at).or_default().push(Step::Exact(number, arithmetic));
            Some(number)
        });
        self.values.insert(at, value);
        value
    }

    fn arithmetic(&mut self, at: u32, steps: u32) -> Option<Arithmetic> {
        let (program, function) = (self.program, self.function);
        let instruction = &function.instructions[at as usize];
        let (form, operands) = (program.form(instruction.form), function.operands_of(instruction));
        let followable = |operand: &Operand| match operand {
            Operand::Integer(_) => true,
            Operand::Register(register) => function.register(*register).ty.bits() == 32,
            _ => false,
        };
        let integers = form.types.first().is_some_and(|ty| ty.bits() == 32 && ty.is_integer());
        if !integers || form.has(Word::Sat) || !operands.iter().all(followable) {
            return None;
        }
        Some(match form.opcode {
            Opcode::Mul if form.has(Word::Lo) => {
                Arithmetic::Product(self.source(&operands[1], steps), self.source(&operands[2], steps))
            }
            Opcode::Mad if form.has(Word::Lo) => Arithmetic::ProductSum(
                self.source(&operands[1], steps),
                self.source(&operands[2], steps),
                self.source(&operands[3], steps),
            ),
            Opcode::Shl => match operands[2] {
                Operand::Integer(by) if by < 31 => {
                    Arithmetic::Product(self.source(&operands[1], steps), Source::Constant(1 << by))
                }
                _ => return None,
            },
            Opcode::Add => Arithmetic::Sum(self.source(&operands[1], steps), self.source(&operands[2], steps)),
            Opcode::Sub => Arithmetic::Difference(self.source(&operands[1], steps), self.source(&operands[2], steps)),
            _ => return None,
        })
    }
}

trait Integer {
    fn is_integer(&self) -> bool;
}

impl Integer for ScalarType {
    fn is_integer(&self) -> bool {
        !self.is_float() && *self != Self::Predicate
    }
}
