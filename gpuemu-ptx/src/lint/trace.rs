//! The ways of all threads of one block through a function, with numbers for its parameters and nothing in its memory:
//! which thread comes to which byte of shared memory, between which barriers.
//!
//! Integers are computed as far as they hang on indices, parameters and constants. What was loaded is open, and so is
//! what is made of it. A condition that is open and one for the block is tried both ways. Where threads may part by one,
//! what they do until they meet again is left out, and a thread that would come to a barrier there is followed no
//! further. So every access that is told of is one of a launch that may be.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::context::{Context, is_block_barrier};
use super::evaluate::{Value, apply};
use crate::flow::BlockId;
use crate::program::{
    Base, Form, Instruction, Opcode, Operand, Order, RegisterId, ScalarType, Space, Special, Symbol, Variance, Word,
};

/// Steps that one thread is followed for. What lies beyond is not seen.
const STEPS: u32 = 6_000;
/// How often a thread passes one barrier: a third turn of a loop shows nothing that the second does not.
const TURNS: u32 = 3;
/// Ways that open conditions are tried in.
const WAYS: usize = 12;
/// Steps of all threads on all ways of one launch.
const PATIENCE: u32 = 1_000_000;
/// Accesses of one thread that are kept.
const EVENTS: usize = 1_024;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Read,
    Write,
    /// Reads and writes in one, as every thread that shares the element does.
    Update,
}

/// One access of one thread to shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub thread: u32,
    /// The instruction.
    pub at: u32,
    /// Jumps back in the text that the thread has made before.
    pub turn: u32,
    pub kind: Kind,
    pub symbol: Symbol,
    /// The first byte; `None` for any, of an update at an address that data decides.
    pub first: Option<u64>,
    pub width: u64,
    /// What barriers of the block were passed before.
    pub barriers: u64,
    /// What the warp has exchanged since the last of them; 0 for nothing.
    pub exchanges: u64,
}

/// What an instruction does to the order of accesses of different threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Orders {
    Nothing,
    /// Those of one warp.
    Warp,
    /// Those of the block.
    Block,
    /// Some, by a protocol that is not followed.
    Somehow,
}

/// What is known of a register.
#[derive(Clone, Copy)]
enum Datum {
    Known(Value),
    Open {
        /// Equal for what is certainly equal.
        id: u64,
        /// What it is an address in.
        symbol: Option<Symbol>,
        /// Whether more than data and numbers that a block has in common is in it.
        own: bool,
    },
}

/// The blocks that a branch decides.
struct Region {
    /// Where its sides meet.
    meeting: Option<BlockId>,
    /// What is written there, as far as it matters.
    writes: Vec<RegisterId>,
    accesses: bool,
    orders: bool,
}

/// Everything about a function that does not hang on the launch.
pub(super) struct Tracer<'c, 'p> {
    context: &'c Context<'p>,
    /// For every instruction the next one that matters, itself if it does.
    next: Vec<u32>,
    regions: FxHashMap<BlockId, Rc<Region>>,
    patience: u32,
}

/// A block of threads on its way.
struct Run<'r> {
    block: [u32; 3],
    /// What every integer parameter is.
    number: u64,
    /// What to answer to open conditions, in the order in which they come.
    plan: &'r [bool],
    answers: Vec<bool>,
    decided: FxHashMap<u64, bool>,
    events: Vec<Event>,
}

/// One thread on its way.
struct Thread {
    number: u32,
    registers: Vec<Option<Datum>>,
    visits: FxHashMap<u32, u32>,
    step: u32,
    turn: u32,
    barriers: u64,
    exchanges: u64,
    /// Something other than a barrier may order its accesses from here to the next barrier.
    ordered: bool,
}

fn hash(parts: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    parts.hash(&mut hasher);
    hasher.finish()
}

impl<'c, 'p> Tracer<'c, 'p> {
    pub fn new(context: &'c Context<'p>) -> Self {
        let function = context.function;
        let mut needed = FxHashSet::default();
        let mut pending = Vec::new();
        let mut matters = vec![false; function.instructions.len()];
        for (index, instruction) in (0..).zip(&function.instructions) {
            let form = context.form(index);
            let turns =
                matches!(instruction.opcode, Opcode::Bra | Opcode::Brx | Opcode::Ret | Opcode::Exit | Opcode::Trap);
            let access = kind(form).is_some();
            if turns || access || orders(context, index) != Orders::Nothing {
                matters[index as usize] = true;
                pending.extend(instruction.guard.map(|guard| guard.register));
                for operand in function.operands_of(instruction) {
                    if let (true, Operand::Address(Base::Register(register), _)) = (access, operand) {
                        pending.push(*register);
                    }
                }
            }
        }
        while let Some(register) = pending.pop() {
            if !needed.insert(register) {
                continue;
            }
            for &writer in context.uses.writers(register) {
                matters[writer as usize] = true;
                let instruction = context.at(writer);
                match instruction.opcode {
                    // What comes out of these is open, whatever goes in.
                    Opcode::Ld | Opcode::Ldu | Opcode::Atom | Opcode::Shfl | Opcode::Ldmatrix | Opcode::Call => {
                        pending.extend(instruction.guard.map(|guard| guard.register));
                    }
                    _ => function.reads(instruction, |read| pending.push(read)),
                }
            }
        }
        let mut next = vec![matters.len() as u32; matters.len() + 1];
        for index in (0..matters.len()).rev() {
            next[index] = if matters[index] { index as u32 } else { next[index + 1] };
        }
        Self { context, next, regions: FxHashMap::default(), patience: 0 }
    }

    /// What a block of this shape does where every integer parameter is `number`: the accesses of each way that open
    /// conditions allow.
    pub fn ways(&mut self, block: [u32; 3], number: u64) -> Vec<Vec<Event>> {
        let mut plans = VecDeque::from([Vec::new()]);
        let mut ways = Vec::new();
        self.patience = PATIENCE;
        while let Some(plan) = plans.pop_front() {
            let mut run = Run {
                block,
                number,
                plan: &plan,
                answers: Vec::new(),
                decided: FxHashMap::default(),
                events: Vec::new(),
            };
            for thread in 0..block.iter().product() {
                self.follow(&mut run, thread);
            }
            for index in plan.len()..run.answers.len() {
                if ways.len() + plans.len() + 1 < WAYS && self.patience > 0 {
                    let mut other = run.answers[..=index].to_vec();
                    other[index] = !other[index];
                    plans.push_back(other);
                }
            }
            ways.push(run.events);
        }
        ways
    }

    fn follow(&mut self, run: &mut Run<'_>, number: u32) {
        let function = self.context.function;
        let mut thread = Thread {
            number,
            registers: vec![None; function.registers.len()],
            visits: FxHashMap::default(),
            step: 0,
            turn: 0,
            barriers: 0,
            exchanges: 0,
            ordered: false,
        };
        let begin = run.events.len();
        let mut index = 0;
        loop {
            index = self.next[index as usize];
            thread.step += 1;
            self.patience = self.patience.saturating_sub(1);
            if index as usize >= function.instructions.len()
                || thread.step > STEPS
                || self.patience == 0
                || run.events.len() - begin > EVENTS
            {
                return;
            }
            let Some(then) = self.step(run, &mut thread, index) else { return };
            thread.turn += u32::from(then <= index);
            index = then;
        }
    }

    /// Does one instruction, and says which comes next.
    fn step(&mut self, run: &mut Run<'_>, thread: &mut Thread, index: u32) -> Option<u32> {
        let context = self.context;
        let (instruction, form) = (context.at(index), context.form(index));
        let condition = instruction.guard.map(|guard| (thread.read(guard.register, index), guard));
        // Whether it is executed.
        let holds = match condition {
            None => Some(true),
            Some((Datum::Known(value), guard)) => Some((value.bits & 1 == 1) != guard.negated),
            Some((Datum::Open { .. }, _)) => None,
        };
        match instruction.opcode {
            Opcode::Bra => {
                let [Operand::Label(target)] = context.function.operands_of(instruction) else { return None };
                return match (holds, condition) {
                    (Some(true), _) => Some(*target),
                    (Some(false), _) => Some(index + 1),
                    (None, Some((Datum::Open { id, .. }, guard))) => {
                        self.open(run, thread, index, id, guard.register, |holds| {
                            if holds != guard.negated { *target } else { index + 1 }
                        })
                    }
                    (None, _) => None,
                };
            }
            Opcode::Brx => return None,
            Opcode::Ret | Opcode::Exit | Opcode::Trap => return (holds == Some(false)).then_some(index + 1),
            _ => {}
        }
        if let (Some(true), Some(kind), false) = (holds, kind(form), thread.ordered) {
            run.events.extend(access(context, thread, index, kind));
        }
        match (orders(context, index), holds) {
            (Orders::Nothing, _) | (_, Some(false)) => {}
            (Orders::Block, None) => return None,
            (Orders::Block, Some(true)) => {
                let turns = thread.visits.entry(index).or_default();
                *turns += 1;
                if *turns > TURNS {
                    return None;
                }
                thread.barriers = hash((thread.barriers, index));
                thread.exchanges = 0;
                thread.ordered = false;
            }
            (Orders::Warp, Some(true)) => thread.exchanges = hash((thread.exchanges, index, 1)),
            (Orders::Warp, None) | (Orders::Somehow, _) => thread.ordered = true,
        }
        if holds != Some(false) {
            let computed = match holds {
                Some(_) => compute(context, run, thread, index),
                None => None,
            };
            let mut first = true;
            let mut visit = None;
            context.function.writes(instruction, |register| {
                let datum = computed.filter(|_| std::mem::take(&mut first)).unwrap_or_else(|| {
                    let visit = *visit.get_or_insert_with(|| thread.visit(index));
                    Datum::Open { id: hash((index, register, visit)), symbol: None, own: !loads_data(form) }
                });
                thread.registers[register.0 as usize] = Some(datum);
            });
        }
        Some(index + 1)
    }

    /// Where a thread goes at a branch whose condition is open; `None` where it is not followed.
    fn open(
        &mut self,
        run: &mut Run<'_>,
        thread: &mut Thread,
        branch: u32,
        condition: u64,
        register: RegisterId,
        go: impl Fn(bool) -> u32,
    ) -> Option<u32> {
        let region = self.region(self.context.flow.block_of(branch));
        let quiet = !region.accesses && !region.orders;
        if let (false, Variance::Block) = (quiet, self.context.variances.at(branch, register)) {
            if let Some(&known) = run.decided.get(&condition) {
                return Some(go(known));
            }
            let onward = go(false) == branch + 1;
            // The way on first: a loop is left after its first turn.
            let holds = run.plan.get(run.answers.len()).copied().unwrap_or(!onward);
            run.answers.push(holds);
            run.decided.insert(condition, holds);
            return Some(go(holds));
        }
        if region.orders {
            return None;
        }
        let meeting = region.meeting?;
        let visit = thread.visit(branch);
        for &register in &region.writes {
            let id = hash((branch, register, visit, 2));
            thread.registers[register.0 as usize] = Some(Datum::Open { id, symbol: None, own: true });
        }
        Some(self.context.flow.block(meeting).instructions.start)
    }

    fn region(&mut self, block: BlockId) -> Rc<Region> {
        if let Some(known) = self.regions.get(&block) {
            return Rc::clone(known);
        }
        let context = self.context;
        let meeting = context.flow.block(block).post_dominator;
        let mut region = Region { meeting, writes: Vec::new(), accesses: false, orders: false };
        let blocks: FxHashSet<BlockId> =
            context.flow.successors(block).flat_map(|side| context.between(side, meeting)).collect();
        for index in blocks.into_iter().flat_map(|block| context.flow.block(block).instructions.clone()) {
            if self.next[index as usize] != index {
                continue;
            }
            region.accesses |= kind(context.form(index)).is_some();
            region.orders |= orders(context, index) != Orders::Nothing;
            context.function.writes(context.at(index), |register| region.writes.push(register));
        }
        region.writes.sort_unstable_by_key(|register| register.0);
        region.writes.dedup();
        let region = Rc::new(region);
        self.regions.insert(block, Rc::clone(&region));
        region
    }
}

impl Thread {
    fn read(&self, register: RegisterId, reader: u32) -> Datum {
        let undefined = Datum::Open { id: hash((reader, register, self.step)), symbol: None, own: true };
        self.registers[register.0 as usize].unwrap_or(undefined)
    }

    /// How often the thread has been here.
    fn visit(&mut self, index: u32) -> u32 {
        let visits = self.visits.entry(index).or_default();
        *visits += 1;
        *visits
    }
}

/// What an instruction does with shared memory; `None` for anything but a plain access.
fn kind(form: &Form) -> Option<Kind> {
    let plain = matches!(form.order, None | Some(Order::Weak));
    if form.space != Some(Space::Shared) {
        return None;
    }
    match form.opcode {
        Opcode::St if plain && !form.has(Word::Async) && !form.has(Word::Bulk) => Some(Kind::Write),
        Opcode::Ld | Opcode::Ldmatrix if plain => Some(Kind::Read),
        Opcode::Atom | Opcode::Red if plain || form.order == Some(Order::Relaxed) => {
            (!form.has(Word::Async)).then_some(Kind::Update)
        }
        _ => None,
    }
}

/// Whether an instruction may order accesses of different threads.
fn orders(context: &Context<'_>, index: u32) -> Orders {
    use Opcode::*;
    let (instruction, form) = (context.at(index), context.form(index));
    match instruction.opcode {
        Bar | Barrier if form.has(Word::Warp) => Orders::Warp,
        Bar | Barrier if is_block_barrier(form, instruction.count as usize) => Orders::Block,
        Bar | Barrier if counts_all(context, instruction) => Orders::Block,
        Shfl | Vote | Match | Redux | Mma | Wmma | Movmatrix | Stmatrix | Elect => Orders::Warp,
        Bar | Barrier | Fence | Membar | Mbarrier | Call | Wgmma | Tcgen05 | Griddepcontrol | Cp => Orders::Somehow,
        St if form.has(Word::Async) || form.has(Word::Bulk) => Orders::Somehow,
        // An update whose answer nobody looks at tells no thread of another.
        Atom | Red if kind(form) == Some(Kind::Update) || form.space == Some(Space::Global) => {
            let mut read = false;
            context.function.writes(instruction, |register| read |= !context.uses.readers(register).is_empty());
            let relaxed = matches!(form.order, None | Some(Order::Relaxed));
            if read || !relaxed { Orders::Somehow } else { Orders::Nothing }
        }
        Atom | Red => Orders::Somehow,
        Ld | St if !matches!(form.order, None | Some(Order::Weak)) => Orders::Somehow,
        _ => Orders::Nothing,
    }
}

/// Whether a barrier with a count of threads waits for as many as a block must have.
fn counts_all(context: &Context<'_>, instruction: &Instruction) -> bool {
    let Some(required) = context.program.function(context.entry).required_threads else { return false };
    let threads: u64 = required.iter().map(|&extent| u64::from(extent.max(1))).product();
    let form = context.program.form(instruction.form);
    !form.has(Word::Arrive)
        && !form.has(Word::Red)
        && !form.has(Word::Cluster)
        && matches!(context.function.operands_of(instruction), [_, Operand::Integer(count)] if *count == threads)
}

/// Whether what an instruction writes comes from the memory that a kernel works on.
fn loads_data(form: &Form) -> bool {
    matches!(form.opcode, Opcode::Ld | Opcode::Ldu) && matches!(form.space, Some(Space::Global | Space::Constant))
}

/// The access that a thread makes at an instruction, where its address is known.
fn access(context: &Context<'_>, thread: &Thread, index: u32, kind: Kind) -> Option<Event> {
    let (instruction, form) = (context.at(index), context.form(index));
    let (base, offset) = context.function.operands_of(instruction).iter().find_map(|operand| match operand {
        Operand::Address(base, offset) => Some((*base, *offset as u64)),
        _ => None,
    })?;
    let (symbol, first) = match base {
        Base::Symbol(symbol) => (symbol, Some(offset)),
        Base::Register(register) => match thread.read(register, index) {
            Datum::Known(value) => (value.symbol?, Some(value.bits.wrapping_add(offset))),
            // Threads update what others update too: any of them may come to any element that data names.
            Datum::Open { symbol, own: false, .. } if kind == Kind::Update => (symbol?, None),
            Datum::Open { .. } => return None,
        },
        Base::Absolute => return None,
    };
    let lane = thread.number % 32;
    let (width, lanes) = match form.opcode {
        // Lanes beyond those give no address of a row.
        Opcode::Ldmatrix if form.has(Word::X1) => (16, 8),
        Opcode::Ldmatrix if form.has(Word::X2) => (16, 16),
        Opcode::Ldmatrix => (16, 32),
        _ => (u64::from(form.types.first()?.bytes()) * u64::from(form.vector), 32),
    };
    (lane < lanes).then_some(Event {
        thread: thread.number,
        at: index,
        turn: thread.turn,
        kind,
        symbol,
        first,
        width,
        barriers: thread.barriers,
        exchanges: thread.exchanges,
    })
}

/// What an instruction gives; `None` where it comes from outside.
fn compute(context: &Context<'_>, run: &Run<'_>, thread: &Thread, index: u32) -> Option<Datum> {
    let (instruction, form) = (context.at(index), context.form(index));
    let operands = context.function.operands_of(instruction);
    let [Operand::Register(_), sources @ ..] = operands else { return None };
    if let (Opcode::Ld, Some(Space::Parameter), [Operand::Address(Base::Symbol(Symbol::Parameter(_)), _)]) =
        (form.opcode, form.space, sources)
    {
        let ty = form.ty();
        let plain = !ty.is_float() && matches!(ty.bits(), 32 | 64) && form.vector == 1;
        return plain.then_some(Datum::Known(Value { symbol: None, bits: run.number }));
    }
    if sources.len() > 4 || instruction.writes != 1 || instruction.accumulates || !is_arithmetic(form.opcode) {
        return None;
    }
    let mut data = [Datum::Known(Value { symbol: None, bits: 0 }); 4];
    for (datum, operand) in data.iter_mut().zip(sources) {
        *datum = source(run, thread, index, operand)?;
    }
    let data = &data[..sources.len()];
    let mut values = [Value { symbol: None, bits: 0 }; 4];
    let mut open = false;
    for (value, datum) in values.iter_mut().zip(data) {
        match datum {
            Datum::Known(known) => *value = *known,
            Datum::Open { .. } => open = true,
        }
    }
    if let (false, Some(value)) = (open, apply(form, &values[..sources.len()])) {
        return Some(Datum::Known(value));
    }
    // One side may be enough.
    let predicates = form.types.first() == Some(&ScalarType::Predicate);
    match (form.opcode, data) {
        (
            Opcode::And,
            [Datum::Known(Value { symbol: None, bits: 0 }), _] | [_, Datum::Known(Value { symbol: None, bits: 0 })],
        ) => {
            return Some(Datum::Known(Value { symbol: None, bits: 0 }));
        }
        (Opcode::Or, [Datum::Known(known), _] | [_, Datum::Known(known)]) if predicates && known.bits & 1 == 1 => {
            return Some(Datum::Known(*known));
        }
        (Opcode::Selp, [a, b, Datum::Known(condition)]) => return Some(if condition.bits & 1 == 1 { *a } else { *b }),
        _ => {}
    }
    let mut id = hash((instruction.form.0, 3));
    let (mut base, mut own) = (None, false);
    for (datum, operand) in data.iter().zip(sources) {
        match datum {
            Datum::Known(value) => {
                id = hash((id, value.symbol, value.bits));
                base = base.or(value.symbol);
                own |= match operand {
                    Operand::Register(register) => context.variances.at(index, *register) > Variance::Block,
                    Operand::Special(_) => true,
                    _ => false,
                };
            }
            Datum::Open { id: other, symbol, own: varies } => {
                id = hash((id, other));
                base = base.or(*symbol);
                own |= varies;
            }
        }
    }
    let keeps = matches!(form.opcode, Opcode::Mov | Opcode::Cvta | Opcode::Cvt | Opcode::Add | Opcode::Mad);
    Some(Datum::Open { id, symbol: base.filter(|_| keeps), own })
}

/// Whether a result hangs on the operands alone.
fn is_arithmetic(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Mov | Cvta
            | Cvt
            | Add
            | Sub
            | Mul
            | Mad
            | Shl
            | Shr
            | And
            | Or
            | Xor
            | Not
            | Neg
            | Abs
            | Min
            | Max
            | Div
            | Rem
            | Bfe
            | Lop3
            | Selp
            | Setp
    )
}

fn source(run: &Run<'_>, thread: &Thread, reader: u32, operand: &Operand) -> Option<Datum> {
    let known = |symbol, bits| Some(Datum::Known(Value { symbol, bits }));
    match operand {
        Operand::Register(register) => Some(thread.read(*register, reader)),
        Operand::Negated(register) => Some(match thread.read(*register, reader) {
            Datum::Known(value) => Datum::Known(Value { symbol: None, bits: value.bits ^ 1 }),
            Datum::Open { id, own, .. } => Datum::Open { id: hash((id, 4)), symbol: None, own },
        }),
        Operand::Integer(bits) => known(None, *bits),
        Operand::Float32(bits) => known(None, u64::from(*bits)),
        Operand::Float64(bits) => known(None, *bits),
        Operand::Symbol(symbol, addend) => known(Some(*symbol), *addend as u64),
        Operand::Special(special) => {
            let bits = match special {
                // The first block of a few.
                Special::CtaidX | Special::CtaidY | Special::CtaidZ => 0,
                Special::NctaidX => 2,
                Special::NctaidY | Special::NctaidZ => 1,
                _ => super::evaluate::of_thread(*special, run.block, thread.number)?,
            };
            known(None, u64::from(bits))
        }
        _ => None,
    }
}
