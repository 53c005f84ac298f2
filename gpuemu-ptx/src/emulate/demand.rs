//! Which lanes want what a load gives them, and which parts of it.
//!
//! Compilers let all threads of a block load a scalar that one of them needs. Whether the others race with a later store
//! of that one makes no difference to anything: a load is watched in the lanes that use its value, where that is known.

//!
//! The same goes for elements of a vector that nothing uses: whether anything wrote them makes no difference.

use rustc_hash::FxHashSet;

use super::butterfly::ANY;
use crate::program::{Function, Guard, Instruction, Opcode, Operand, RegisterId};

/// Who reads each register of a function, and who writes it.
pub struct Uses {
    /// Instructions that read it as an operand.
    readers: Vec<Vec<u32>>,
    /// Whether it guards an instruction.
    guards: Vec<bool>,
    /// The instructions that write it: one, or one of several.
    writer: Vec<Option<(u32, bool)>>,
}

/// What is wanted of what a load gives, and what is known of what a store stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The predicate of the lanes that want it.
    pub lanes: i32,
    /// The bits of the lane number in which lanes exchange what becomes of it: those that differ from one that wants it in
    /// these alone may want it too.
    pub across: u8,
    /// The bytes of each lane that are used, as bits from the lowest; 0 where that is not known.
    pub bytes: u32,
    /// Of a store, the bits of the lane number in which lanes that differ store one value: see [`super::butterfly`].
    pub alike: u8,
}

/// Instructions that are followed, at most.
const FOLLOWED: usize = 64;

impl Uses {
    /// Of a function.
    pub fn new(function: &Function) -> Self {
        let count = function.registers.len();
        let mut uses = Self { readers: vec![Vec::new(); count], guards: vec![false; count], writer: vec![None; count] };
        for (at, instruction) in (0..).zip(&function.instructions) {
            let unguarded = Instruction { guard: None, ..*instruction };
            function.reads(&unguarded, |register| uses.readers[register.0 as usize].push(at));
            if let Some(guard) = instruction.guard {
                uses.guards[guard.register.0 as usize] = true;
            }
            function.writes(instruction, |register| {
                let writer = &mut uses.writer[register.0 as usize];
                *writer = Some((at, writer.is_none()));
            });
        }
        uses
    }

    /// An instruction that writes a register, the last one, and whether it is the only one.
    pub fn writer(&self, register: RegisterId) -> Option<(u32, bool)> {
        self.writer[register.0 as usize]
    }

    /// The bytes of the elements, so many bytes each, that some instruction uses.
    pub fn bytes(&self, function: &Function, to: &Operand, size: u32) -> u32 {
        let used = |operand: &Operand| match operand {
            Operand::Register(register) => {
                let register = register.0 as usize;
                !self.readers[register].is_empty() || self.guards[register]
            }
            _ => false,
        };
        let element = ((1_u64 << size) - 1) as u32;
        match to {
            Operand::Vector(range) => {
                let elements = function.inside(range).iter().enumerate();
                let used = elements.filter(|(_, operand)| used(operand));
                used.fold(0, |bytes, (index, _)| bytes | element << (index as u32 * size))
            }
            operand if used(operand) => element,
            _ => 0,
        }
    }

    /// The one predicate under which all that becomes of these registers is used, where there is one whose value is
    /// settled before the instruction, and the bits of the lane number in which lanes exchange what becomes of them: lanes
    /// from which none gets it that is to use it may do so as they like.
    /// `is_butterfly` knows a shuffle's form.
    pub fn demand(
        &self,
        function: &Function,
        from: &[RegisterId],
        instruction: u32,
        is_butterfly: impl Fn(&Instruction) -> bool,
    ) -> Option<(Guard, u8)> {
        let mut known: FxHashSet<RegisterId> = from.iter().copied().collect();
        let mut pending: Vec<RegisterId> = from.to_vec();
        let (mut wanted, mut across): (Option<Guard>, u8) = (None, 0);
        let mut followed = 0;
        while let Some(register) = pending.pop() {
            if self.guards[register.0 as usize] {
                return None;
            }
            for &at in &self.readers[register.0 as usize] {
                followed += 1;
                let reader = &function.instructions[at as usize];
                match reader.guard {
                    _ if followed > FOLLOWED => return None,
                    Some(guard) if wanted.is_none_or(|wanted| wanted == guard) => wanted = Some(guard),
                    Some(_) => return None,
                    None if is_pure(reader.opcode) || reader.opcode == Opcode::Shfl => {
                        if reader.opcode == Opcode::Shfl {
                            across |= if is_butterfly(reader) { exchanged(function, reader, register) } else { ANY };
                        }
                        function.writes(reader, |next| {
                            if known.insert(next) {
                                pending.push(next);
                            }
                        });
                    }
                    None => return None,
                }
            }
        }
        let guard = wanted?;
        match self.writer[guard.register.0 as usize] {
            Some((at, true)) if at < instruction && function.instructions[at as usize].guard.is_none() => {
                Some((guard, across))
            }
            _ => None,
        }
    }
}

/// The bits in which lanes differ that a butterfly hands a register to.
fn exchanged(function: &Function, shuffle: &Instruction, register: RegisterId) -> u8 {
    match function.operands_of(shuffle) {
        [_, Operand::Register(value), Operand::Integer(stride), ..] if *value == register => (stride & 31) as u8,
        _ => ANY,
    }
}

/// The lanes that differ from some of these in some of these bits.
pub fn reached(lanes: u32, across: u8) -> u32 {
    const LOWER: [u32; 5] = [0x5555_5555, 0x3333_3333, 0x0f0f_0f0f, 0x00ff_00ff, 0x0000_ffff];
    LOWER
        .iter()
        .enumerate()
        .filter(|(bit, _)| across >> bit & 1 != 0)
        .fold(lanes, |lanes, (bit, lower)| lanes | (lanes & lower) << (1 << bit) | lanes >> (1 << bit) & lower)
}

/// The registers of an operand that is written.
pub fn registers(function: &Function, operand: &Operand) -> Vec<RegisterId> {
    match operand {
        Operand::Register(register) => vec![*register],
        Operand::Vector(range) => {
            function.inside(range).iter().flat_map(|operand| registers(function, operand)).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether an instruction does nothing but compute its result, lane by lane.
pub fn is_pure(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Abs | Add
            | And
            | Bfe
            | Bfi
            | Bfind
            | Brev
            | Clz
            | Cnot
            | Copysign
            | Cvt
            | Cvta
            | Div
            | Dp4a
            | Ex2
            | Fma
            | Lg2
            | Lop3
            | Mad
            | Max
            | Min
            | Mov
            | Mul
            | Neg
            | Not
            | Or
            | Popc
            | Prmt
            | Rcp
            | Rem
            | Rsqrt
            | Selp
            | Set
            | Setp
            | Shf
            | Shl
            | Shr
            | Sqrt
            | Sub
            | Tanh
            | Xor
    )
}
