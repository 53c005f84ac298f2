//! Which lanes of a warp hold copies of one value, each rounded in its own order.
//!
//! A reduction by `shfl.bfly` leaves its result in all lanes, but one lane has combined `a` with `b` and its partner `b`
//! with `a`: where terms cancel, what Welford's mean is left with differs in any number of digits. Compilers let all of
//! those lanes store it, since it is one value. Whether a stored value is such a one is read off the code before it runs.
//!
//! For every register the bits of the lane number are kept that it may vary in. What a butterfly over one of those bits
//! combines no longer varies in it if the combination is symmetric, which is tried in float64: both orders of random
//! arguments have to agree.

mod symmetry;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use self::symmetry::Combination;
use super::demand::is_pure;
use crate::program::{
    Base, Form, Function, Instruction, Opcode, Operand, Program, RegisterId, Space, Special, Uses, Word,
};

/// All bits of the number of a lane.
pub const ANY: u8 = 0x1f;
/// For every bit of a value the bits of the lane number that it may vary in.
type Bits = [u8; 64];

/// What the stores of a function store.
pub struct Butterflies {
    stored: FxHashMap<u32, u8>,
}

impl Butterflies {
    /// Of a function.
    pub fn new(program: &Program, function: &Function) -> Self {
        let exchanges = |instruction: &Instruction| instruction.opcode == Opcode::Shfl;
        if function.flow.irreducible || !function.instructions.iter().any(exchanges) {
            return Self { stored: FxHashMap::default() };
        }
        let mut search = Search {
            program,
            function,
            uses: Uses::new(function),
            known: vec![None; function.registers.len()],
            stored: FxHashMap::default(),
        };
        for at in 0..function.instructions.len() as u32 {
            search.instruction(at);
        }
        Self { stored: search.stored }
    }

    /// The bits of the lane number in which lanes that differ store one value, but for rounding.
    pub fn alike(&self, instruction: u32) -> u8 {
        ANY & !self.stored.get(&instruction).copied().unwrap_or(ANY)
    }
}

struct Search<'a> {
    program: &'a Program,
    function: &'a Function,
    uses: Uses,
    known: Vec<Option<Bits>>,
    stored: FxHashMap<u32, u8>,
}

/// The bits in which a value may vary at all.
fn varies(bits: &Bits) -> u8 {
    bits.iter().fold(0, |all, one| all | one)
}

impl Search<'_> {
    fn instruction(&mut self, at: u32) {
        let function = self.function;
        let instruction = &function.instructions[at as usize];
        let form = self.program.form(instruction.form);
        let operands = function.operands_of(instruction);
        if form.opcode == Opcode::St {
            let value = operands.get(1).map_or([ANY; 64], |operand| self.operand(at, operand));
            self.stored.insert(at, varies(&value));
            return;
        }
        let result = self.result(at, form, operands);
        function.writes(instruction, |register| self.write(at, instruction, register, result));
    }

    /// What an instruction writes.
    fn result(&self, at: u32, form: &Form, operands: &[Operand]) -> Bits {
        let read = |index: usize| operands.get(index).map_or([ANY; 64], |operand| self.operand(at, operand));
        match form.opcode {
            Opcode::Ld | Opcode::Ldu if form.space == Some(Space::Parameter) => {
                [if self.function.entry { 0 } else { ANY }; 64]
            }
            // One address, one value: the lanes load together. Local memory is each thread's own.
            Opcode::Ld | Opcode::Ldu if matches!(form.space, None | Some(Space::Local)) => [ANY; 64],
            Opcode::Ld | Opcode::Ldu => [varies(&read(1)); 64],
            Opcode::Shfl => match self.exchange(at) {
                Some((source, _)) => self.register(at, source),
                None => [ANY; 64],
            },
            Opcode::Redux if is_whole(operands.get(2)) => [0; 64],
            opcode if is_pure(opcode) => self.pure(at, form, operands),
            _ => [ANY; 64],
        }
    }

    /// What an instruction gives that does nothing but compute.
    fn pure(&self, at: u32, form: &Form, operands: &[Operand]) -> Bits {
        let sources = operands.get(usize::from(self.function.instructions[at as usize].writes)..).unwrap_or_default();
        let bits: Vec<Bits> = sources.iter().map(|operand| self.operand(at, operand)).collect();
        let whole = bits.iter().fold(0, |all, one| all | varies(one));
        if whole == 0 {
            return [0; 64];
        }
        let constant = |index: usize| match sources.get(index) {
            Some(Operand::Integer(value)) => Some(*value),
            _ => None,
        };
        let mut result = [whole; 64];
        match form.opcode {
            Opcode::Mov if bits.len() == 1 && matches!(sources[0], Operand::Register(_) | Operand::Special(_)) => {
                result = bits[0];
            }
            Opcode::Cvta if bits.len() == 1 => result = bits[0],
            Opcode::Cvt if form.types.len() == 2 && !form.types.iter().any(|ty| ty.is_float()) => {
                let width = form.types[1].bits().min(64) as usize;
                let above = if form.types[1].is_signed() { bits[0][width - 1] } else { 0 };
                result = bits[0];
                result[width..].fill(above);
            }
            Opcode::And | Opcode::Or | Opcode::Xor => {
                let (flip, keep) = (form.opcode == Opcode::Or, form.opcode == Opcode::Xor);
                for (bit, one) in result.iter_mut().enumerate() {
                    let decided = |index| constant(index).is_some_and(|value| (value >> bit & 1 == 1) == flip);
                    let settled = !keep && (decided(0) || decided(1));
                    *one = if settled { 0 } else { bits.iter().fold(0, |all, source| all | source[bit]) };
                }
            }
            Opcode::Shl | Opcode::Shr if constant(1).is_some_and(|by| by < 64) => {
                let by = constant(1).unwrap_or_default() as usize;
                let width = form.types.first().map_or(64, |ty| ty.bits().min(64)) as usize;
                let above = match form.types.first() {
                    Some(ty) if ty.is_signed() => bits[0][width - 1],
                    _ => 0,
                };
                for (bit, one) in result.iter_mut().enumerate() {
                    *one = match form.opcode {
                        Opcode::Shl => bit.checked_sub(by).map_or(0, |from| bits[0][from]),
                        _ if bit + by < width => bits[0][bit + by],
                        _ => above,
                    };
                }
            }
            // Carries run upwards.
            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Mad
                if form.types.first().is_some_and(|ty| !ty.is_float() && ty.lanes() == 1) && !form.has(Word::Hi) =>
            {
                let mut below = 0;
                for (bit, one) in result.iter_mut().enumerate() {
                    below |= bits.iter().fold(0, |all, source| all | source[bit]);
                    *one = below;
                }
            }
            _ => {}
        }
        let (mut combined, varying) = (None, varies(&result));
        for stride in (0..5).map(|bit| 1 << bit).filter(|stride| varying & stride != 0) {
            if let Some(rest) = self.combines(at, stride) {
                combined = Some(combined.unwrap_or(ANY) & rest);
            }
        }
        match combined {
            Some(rest) if rest & varying != varying => [rest & varying; 64],
            _ => result,
        }
    }

    /// Where an instruction combines what lanes `stride` apart exchanged, each with its own, and the order does not matter:
    /// the bits that the result may still vary in.
    fn combines(&self, at: u32, stride: u8) -> Option<u8> {
        let combination = Combination::new(self, at, stride)?;
        combination.is_symmetric().then(|| combination.varies() & !stride)
    }

    /// Records a value that an instruction writes.
    fn write(&mut self, at: u32, instruction: &Instruction, register: RegisterId, mut bits: Bits) {
        let mut join = |other: u8| bits.iter_mut().for_each(|one| *one |= other);
        let flow = &self.function.flow;
        let writers = self.uses.writers(register);
        if instruction.guard.is_some() || writers.len() > 1 {
            // Straight code, whose lanes are together: each has one of the values.
            let together = writers.iter().all(|&writer| flow.block_of(writer) == flow.block_of(at));
            let guard = instruction.guard.map_or(0, |guard| varies(&self.register(at, guard.register)));
            let before = match self.known[register.0 as usize] {
                Some(before) => varies(&before),
                None if instruction.guard.is_none() => 0,
                None => ANY,
            };
            join(if together { guard | before } else { ANY });
        }
        self.known[register.0 as usize] = Some(bits);
    }

    /// A register as an instruction reads it.
    fn register(&self, at: u32, register: RegisterId) -> Bits {
        let flow = &self.function.flow;
        // Lanes that leave a loop at different turns have the values of different turns.
        let left = self.uses.writers(register).iter().any(|&writer| {
            let inner = flow.block(flow.block_of(writer)).innermost;
            inner.is_some_and(|inner| !flow.in_loop(flow.block_of(at), inner))
        });
        // One that nothing wrote so far comes from the turn before.
        self.known[register.0 as usize].filter(|_| !left).unwrap_or([ANY; 64])
    }

    fn operand(&self, at: u32, operand: &Operand) -> Bits {
        match operand {
            Operand::Register(register) | Operand::Negated(register) => self.register(at, *register),
            Operand::Integer(_) | Operand::Float32(_) | Operand::Float64(_) | Operand::Symbol(..) => [0; 64],
            Operand::Address(Base::Register(register), offset) => {
                let mut below = 0;
                match offset {
                    0 => self.register(at, *register),
                    _ => self.register(at, *register).map(|one| {
                        below |= one;
                        below
                    }),
                }
            }
            Operand::Address(..) => [0; 64],
            Operand::Special(special) => self.special(*special),
            Operand::Vector(range) => {
                let parts = self.function.inside(range).iter();
                [parts.fold(0, |all, part| all | varies(&self.operand(at, part))); 64]
            }
            _ => [ANY; 64],
        }
    }

    fn special(&self, special: Special) -> Bits {
        use Special::*;
        let lane = |bit: usize| if bit < 5 { 1 << bit } else { 0 };
        // Only then is the number of a lane the end of that of its thread.
        let rows = matches!(self.function.required_threads, Some([x, 1, 1]) if x % 32 == 0);
        match special {
            Laneid => std::array::from_fn(lane),
            TidX if rows => std::array::from_fn(lane),
            TidY | TidZ if rows => [0; 64],
            NtidX | NtidY | NtidZ | CtaidX | CtaidY | CtaidZ | NctaidX | NctaidY | NctaidZ | Warpid => [0; 64],
            _ => [ANY; 64],
        }
    }

    /// What a butterfly exchanges, and how far apart, where all lanes take part in it.
    fn exchange(&self, at: u32) -> Option<(RegisterId, u8)> {
        let instruction = &self.function.instructions[at as usize];
        let form = self.program.form(instruction.form);
        let butterfly = form.has(Word::Bfly) && instruction.guard.is_none();
        let [_, Operand::Register(source), Operand::Integer(stride), Operand::Integer(clamp), members] =
            self.function.operands_of(instruction)
        else {
            return None;
        };
        // Segments narrower than a warp are kept to where the stride stays within them.
        let whole = clamp & 0x1f == 0x1f && stride & clamp >> 8 == 0 && is_whole(Some(members));
        let stride = *stride as u8;
        (form.opcode == Opcode::Shfl && butterfly && whole && stride.is_power_of_two() && stride <= 16)
            .then_some((*source, stride))
    }

    /// The one instruction that writes a register, where it does so in all lanes.
    fn writer(&self, register: RegisterId) -> Option<u32> {
        let at = self.uses.only_writer(register)?;
        self.function.instructions[at as usize].guard.is_none().then_some(at)
    }
}

/// Whether an operand names all lanes.
fn is_whole(members: Option<&Operand>) -> bool {
    matches!(members, Some(Operand::Integer(members)) if *members as u32 == u32::MAX)
}
