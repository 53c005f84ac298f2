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

/// What becomes of what a load gives.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where it is used for good.
    pub uses: Vec<Use>,
    /// The bits of the lane number in which lanes exchange what becomes of it: lanes from which none gets it that is to use
    /// it may do so as they like.
    pub across: u8,
    /// Whether each instruction on its way comes before the next, on every way through the function.
    straight: bool,
}

/// An instruction that uses a value for more than to compute another.
#[derive(Clone, Debug)]
pub struct Use {
    /// Its guard.
    guard: Option<Guard>,
    /// Predicates all of which hold in the lanes that execute it, and the instruction that asks for each.
    pub under: Vec<(u32, Guard)>,
}

impl Wanted {
    /// The guard of all uses, where they have one.
    pub fn guard(&self) -> Option<Guard> {
        let mut guards = self.uses.iter().map(|used| used.guard);
        let first = guards.next()??;
        guards.all(|guard| guard == Some(first)).then_some(first)
    }
}

/// Instructions that are followed, at most.
const FOLLOWED: usize = 128;
/// Blocks before a use whose branches are looked at, at most.
const DECIDING: usize = 16;

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

    /// What becomes of what the load at `load` gives; `None` where any lane may use it.
    /// `is_butterfly` knows a shuffle's form.
    pub fn wanted(
        &self,
        function: &Function,
        load: u32,
        is_butterfly: impl Fn(&Instruction) -> bool,
    ) -> Option<Wanted> {
        let mut pending: Vec<(u32, RegisterId)> = Vec::new();
        function.writes(&function.instructions[load as usize], |register| pending.push((load, register)));
        let mut known: FxHashSet<(u32, RegisterId)> = pending.iter().copied().collect();
        let mut wanted = Wanted { uses: Vec::new(), across: 0, straight: self.replaces(function, load) };
        let mut followed = 0;
        while let Some((from, register)) = pending.pop() {
            if self.guards[register.0 as usize] {
                return None;
            }
            for &at in &self.readers[register.0 as usize] {
                followed += 1;
                if followed > FOLLOWED {
                    return None;
                }
                let reader = &function.instructions[at as usize];
                wanted.straight &= comes_before(function, from, at);
                if reader.guard.is_some() || !(is_pure(reader.opcode) || reader.opcode == Opcode::Shfl) {
                    let own = reader.guard.map(|guard| (at, guard));
                    let under: Vec<(u32, Guard)> = own.into_iter().chain(deciding(function, at)).collect();
                    if under.is_empty() {
                        return None;
                    }
                    wanted.uses.push(Use { guard: reader.guard, under });
                    continue;
                }
                if reader.opcode == Opcode::Shfl {
                    wanted.across |= if is_butterfly(reader) { exchanged(function, reader, register) } else { ANY };
                }
                function.writes(reader, |next| {
                    if known.insert((at, next)) {
                        pending.push((at, next));
                    }
                });
            }
        }
        (!wanted.uses.is_empty()).then_some(wanted)
    }

    /// The one predicate of all uses, where its value at the load is the one that it has wherever what this load gives is
    /// used.
    pub fn settled(&self, function: &Function, load: u32, wanted: &Wanted) -> Option<Guard> {
        let guard = wanted.guard()?;
        let (writer, only) = self.writer(guard.register)?;
        let unguarded = function.instructions[writer as usize].guard.is_none();
        // Where each comes before the next on all ways, nothing of another turn of a loop is in between.
        let same = wanted.straight || happens_once(function, writer);
        (only && unguarded && same && comes_before(function, writer, load)).then_some(guard)
    }

    /// Whether nothing that a load gave before is in its registers after it.
    fn replaces(&self, function: &Function, load: u32) -> bool {
        let instruction = &function.instructions[load as usize];
        if instruction.guard.is_none() || happens_once(function, load) {
            return true;
        }
        let before = function.flow.block(function.flow.block_of(load)).instructions.start..load;
        let mut all = true;
        function.writes(instruction, |register| {
            all &= before.clone().any(|at| {
                let earlier = &function.instructions[at as usize];
                let mut writes = false;
                function.writes(earlier, |written| writes |= written == register);
                writes && earlier.guard.is_none()
            });
        });
        all
    }
}

/// Whether an instruction is executed before another on every way to it.
pub fn comes_before(function: &Function, first: u32, then: u32) -> bool {
    let blocks = [first, then].map(|at| function.flow.block_of(at));
    if blocks[0] == blocks[1] { first < then } else { function.flow.dominates(blocks[0], blocks[1]) }
}

/// Whether a call of the function executes an instruction once at most.
fn happens_once(function: &Function, at: u32) -> bool {
    !function.flow.irreducible && function.flow.block(function.flow.block_of(at)).innermost.is_none()
}

/// Predicates that hold where an instruction is executed: those of branches that have to lead to its block.
fn deciding(function: &Function, at: u32) -> Vec<(u32, Guard)> {
    let flow = &function.flow;
    let mut found = Vec::new();
    let around = std::iter::successors(Some(flow.block_of(at)), |&block| flow.block(block).dominator);
    for block in around.take(DECIDING) {
        let mut before = flow.predecessors(block);
        let (Some(only), None) = (before.next(), before.next()) else { continue };
        let last = flow.block(only).instructions.end - 1;
        let branch = &function.instructions[last as usize];
        let (Opcode::Bra, Some(guard)) = (branch.opcode, branch.guard) else { continue };
        let [Operand::Label(target)] = function.operands_of(branch) else { continue };
        let start = flow.block(block).instructions.start;
        match (*target == start, last + 1 == start) {
            (true, false) => found.push((last, guard)),
            (false, true) => found.push((last, Guard { negated: !guard.negated, ..guard })),
            _ => {}
        }
    }
    found
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
