//! From a program's instructions to code: registers placed, operands found, functions picked.

mod constants;
mod entry;
mod operands;
mod templates;

use rustc_hash::{FxHashMap, FxHashSet};

use self::constants::Constants;
pub use self::operands::Address;
use super::butterfly::Butterflies;
use super::code::{Code, NOWHERE, Origin, Routine};
use super::counters::Counted;
use super::demand::{Demand, Uses};
use super::effects::{self, Touch};
use super::index::Indices;
use super::layout::Layout;
use super::native::{Native, Source};
use super::op::{self, Body, Op, Run, Signal};
use super::ops;
use super::registers::Lane;
use crate::arch::Arch;
use crate::error::Error;
use crate::program::{
    Form, Function, FunctionId, Instruction, Opcode, Operand, Program, RegisterId, ScalarType, Symbol, VariableId,
};

/// Why an instruction cannot be executed, fit to follow "cannot be executed: ".
pub type Refusal = String;

/// The result of decoding a part.
pub type Decoded<T = ()> = Result<T, Refusal>;

/// What decoding needs to know beside the program.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// The architecture it runs on.
    pub arch: &'a Arch,
    /// Whether the host's wide functions are picked.
    pub wide: bool,
    /// Addresses of the variables of the module.
    pub addresses: &'a FxHashMap<VariableId, u64>,
    /// Whether what is executed is counted.
    pub counters: bool,
    /// Whether straight runs become machine code.
    pub native: bool,
    /// Whether indices that wrap around are watched.
    pub indices: bool,
    /// Whether accesses to memory are.
    pub watched: bool,
}

/// The decoder, at one instruction of one function.
pub struct Decoder<'a> {
    /// The program.
    pub program: &'a Program,
    /// The function.
    pub function: &'a Function,
    /// Its form.
    pub form: &'a Form,
    /// Its operands.
    pub operands: &'a [Operand],
    /// What it may use.
    pub settings: Settings<'a>,
    /// Lists of the code.
    pub lists: Vec<i32>,
    /// Calls found: the operation whose target is to be filled in.
    pub calls: Vec<(u32, FunctionId)>,
    /// Operations that remember a region of memory.
    sites: Vec<u32>,
    /// For each of them what is wanted of what it loads.
    demands: Vec<Demand>,
    /// For loads whose value some lanes want the predicate of those, and the bits in which lanes exchange it.
    wanted: FxHashMap<u32, (i32, u8)>,
    uses: Uses,
    butterflies: Butterflies,
    /// Operations that access memory, in order.
    touches: Vec<(u32, Touch)>,
    /// Whether something was found that ties blocks together.
    pub ordered: bool,
    /// Whether something takes local memory at run time.
    pub grows: bool,
    /// Where the function keeps what it has to give back when it returns.
    kept: Option<i32>,
    /// What is counted.
    pub counted: Vec<Counted>,
    /// The indices of the function that are watched.
    pub indices: Indices,
    /// The first row of their exact values, the predicate of the first widening, and where each widening is.
    exact: (i32, i32, Vec<u32>),
    /// Where the entry ends.
    ends: FxHashSet<u32>,
    ops: Vec<Op>,
    origins: Vec<Origin>,
    /// For each operation whether it is all that its instruction does; short of those at the end.
    whole: Vec<bool>,
    constants: Constants,
    layout: Layout,
    shared: &'a FxHashMap<Place, u32>,
    origin: Origin,
    guard: i32,
    first: u32,
    temporaries: u32,
    temporary_predicates: u32,
    most: (u32, u32),
    fixups: Vec<Fixup>,
    after: Vec<Op>,
}

/// A shared variable: of the module, or of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Of the module.
    Module(VariableId),
    /// Of a function.
    Function(FunctionId, u32),
}

enum Fixup {
    /// `d` of an operation is an index of an instruction of the function.
    Target(u32),
    /// `e` is one.
    Meeting(u32),
    /// An element of a list is one.
    Listed(u32),
}

/// Decodes an entry and all that it may call.
pub fn decode(program: &Program, entry: FunctionId, settings: Settings<'_>) -> Result<Code, Error> {
    let reached = super::layout::reached(program, entry);
    let (shared, static_bytes) = super::layout::shared(program, &reached);
    let routines = reached.iter().copied().zip(0..).collect::<FxHashMap<_, _>>();
    let mut functions = Vec::new();
    let mut decoder: Option<Decoder<'_>> = None;
    for &id in &reached {
        let function = program.function(id);
        let layout = Layout::new(function);
        let mut next = match decoder.take() {
            Some(decoder) => Decoder {
                function,
                layout,
                uses: Uses::new(function),
                butterflies: Butterflies::new(program, function),
                ..decoder
            },
            None => Decoder {
                program,
                function,
                form: &program.forms[0],
                operands: &[],
                settings,
                lists: Vec::new(),
                calls: Vec::new(),
                ordered: false,
                counted: Vec::new(),
                indices: Indices::default(),
                exact: (0, 0, Vec::new()),
                sites: Vec::new(),
                demands: Vec::new(),
                touches: Vec::new(),
                wanted: FxHashMap::default(),
                uses: Uses::new(function),
                butterflies: Butterflies::new(program, function),
                ends: FxHashSet::default(),
                ops: Vec::new(),
                origins: Vec::new(),
                whole: Vec::new(),
                constants: Constants::default(),
                layout,
                shared: &shared,
                origin: Origin { function: id, instruction: 0 },
                guard: 0,
                first: 0,
                temporaries: 0,
                temporary_predicates: 0,
                most: (0, 0),
                kept: None,
                grows: false,
                fixups: Vec::new(),
                after: Vec::new(),
            },
        };
        functions.push(next.function(id)?);
        decoder = Some(next);
    }
    let Some(mut decoder) = decoder else {
        return Err(Error::NoEntry { name: String::new(), nearest: None, entries: 0 });
    };
    for (at, callee) in std::mem::take(&mut decoder.calls) {
        decoder.ops[at as usize].d = routines.get(&callee).copied().unwrap_or(0) as i32;
    }
    decoder.constants.rows.reverse();
    decoder.whole.resize(decoder.ops.len(), false);
    let effects = effects::effects(program, &decoder.origins, &decoder.touches);
    let Decoder { ops, origins, whole, .. } = &decoder;
    let native = match settings.native && settings.wide {
        true => Source { program, ops, origins, whole, effects: &effects }.compile(),
        false => Native::none(ops),
    };
    Ok(Code {
        effects,
        native,
        ops: decoder.ops,
        origins: decoder.origins,
        constants: decoder.constants.rows.into_boxed_slice(),
        lists: decoder.lists,
        functions,
        routines,
        shared: static_bytes,
        ordered: decoder.ordered,
        grows: decoder.grows,
        caches: decoder.sites.len().max(1),
        sites: decoder.sites,
        demands: decoder.demands,
        counted: decoder.counted,
        ends: decoder.ends,
        passed: super::passed::passed(program, program.function(entry)),
        entry,
    })
}

impl<'a> Decoder<'a> {
    fn function(&mut self, id: FunctionId) -> Result<Routine, Error> {
        let start = self.ops.len() as u32;
        self.most = (0, 0);
        self.indices = match self.settings.indices {
            true => Indices::new(self.program, self.function),
            false => Indices::default(),
        };
        let widenings = self.indices.widenings.len();
        self.exact = (self.layout.rows as i32, self.layout.predicates as i32, vec![NOWHERE; widenings]);
        self.layout.rows += 2 * self.indices.values;
        self.layout.predicates += widenings as u32;
        let instructions = &self.function.instructions;
        let mut starts = Vec::with_capacity(instructions.len() + 1);
        let takes = |instruction: &Instruction| {
            matches!(self.program.form(instruction.form).opcode, Opcode::Alloca | Opcode::Stackrestore)
        };
        self.kept = None;
        if !self.function.entry && instructions.iter().any(takes) {
            let row = self.layout.rows as i32;
            self.layout.rows += 2;
            self.kept = Some(row);
            self.origin = Origin { function: id, instruction: 0 };
            self.guard = 0;
            self.emit(Op { d: row, ..self.op_of::<ops::stack::Save>() });
        }
        self.demands_of_loads(id).map_err(|(line, instruction, reason)| Error::NotExecutable {
            line,
            instruction,
            reason,
        })?;
        for (index, instruction) in (0..).zip(instructions) {
            starts.push(self.ops.len() as u32);
            self.origin = Origin { function: id, instruction: index };
            self.form = self.program.form(instruction.form);
            let function = self.function;
            self.operands = function.operands_of(instruction);
            self.instruction(instruction).map_err(|reason| Error::NotExecutable {
                line: instruction.line,
                instruction: self.form.text.to_string(),
                reason,
            })?;
        }
        starts.push(self.ops.len() as u32);
        if self.function.entry {
            for (index, &start) in (0..).zip(&starts) {
                if self.leads_to_end(index) {
                    self.ends.insert(start);
                }
            }
        }
        // The end of a function returns.
        self.origin = Origin { function: id, instruction: instructions.len().saturating_sub(1) as u32 };
        (self.guard, self.temporaries) = (0, 0);
        self.emit_return();
        for fixup in std::mem::take(&mut self.fixups) {
            let fix = |value: &mut i32| *value = starts[*value as usize] as i32;
            match fixup {
                Fixup::Target(at) => fix(&mut self.ops[at as usize].d),
                Fixup::Meeting(at) => fix(&mut self.ops[at as usize].e),
                Fixup::Listed(at) => fix(&mut self.lists[at as usize]),
            }
        }
        Ok(Routine {
            start,
            rows: self.layout.rows + self.most.0,
            predicates: self.layout.predicates + self.most.1,
            local: self.layout.local,
            parameters: self.layout.parameters.clone(),
            returns: self.layout.returns.clone(),
            unwritten: self.layout.unwritten.clone(),
        })
    }

    /// Whether a thread that comes to an instruction of an entry leaves without doing anything else.
    fn leads_to_end(&self, mut index: u32) -> bool {
        // A jump to a jump is what compilers leave at most, without optimisation.
        for _ in 0..4 {
            let Some(instruction) = self.function.instructions.get(index as usize) else { return true };
            match (instruction.opcode, instruction.guard, self.function.operands_of(instruction)) {
                (Opcode::Ret | Opcode::Exit, None, _) => return true,
                (Opcode::Bra, None, [Operand::Label(target)]) => index = *target,
                _ => return false,
            }
        }
        false
    }

    fn instruction(&mut self, instruction: &Instruction) -> Decoded {
        self.guard = match instruction.guard {
            Some(guard) if guard.negated => !self.slot(guard.register),
            Some(guard) => self.slot(guard.register),
            None => 0,
        };
        self.first = self.ops.len() as u32;
        (self.temporaries, self.temporary_predicates) = (0, 0);
        if self.settings.counters {
            ops::count::before(self, self.guard);
        }
        ops::index::before(self)?;
        let first = self.ops.len();
        ops::decode(self)?;
        if self.ops.len() == first + 1 && self.after.is_empty() {
            self.whole.resize(first, false);
            self.whole.push(true);
        }
        for op in std::mem::take(&mut self.after) {
            self.emit(op);
        }
        Ok(())
    }

    /// The number of the instruction being decoded.
    pub fn index(&self) -> u32 {
        self.origin.instruction
    }

    /// Where the exact value of an index lies, by number.
    pub fn exact_row(&self, value: u32) -> i32 {
        self.exact.0 + 2 * value as i32
    }

    /// The predicate that says whether the index of a widening wrapped around.
    pub fn wrap_flag(&self, widening: u32) -> i32 {
        self.exact.1 + widening as i32
    }

    /// The current operation is of this widening.
    pub fn widened_at(&mut self, widening: u32) {
        self.exact.2[widening as usize] = self.ops.len() as u32;
    }

    /// The number of the exact value of a widening, whether it has a sign, and where it is.
    pub fn watched(&self, number: u32) -> (u32, bool, i32) {
        let (value, signed) = self.indices.widenings[number as usize];
        (value, signed, self.exact.2[number as usize] as i32)
    }

    /// The row or predicate of a register.
    pub fn slot(&self, register: RegisterId) -> i32 {
        self.layout.slots[register.0 as usize]
    }

    /// The first row of a parameter of the function, or of a value that it returns.
    pub fn parameter_row(&self, symbol: Symbol) -> Option<i32> {
        match symbol {
            Symbol::Parameter(index) if !self.function.entry => self.layout.parameters.get(index as usize).copied(),
            Symbol::Return(index) => self.layout.returns.get(index as usize).copied(),
            Symbol::Local(id) => self.layout.variables[id.0 as usize].row,
            _ => None,
        }
    }

    /// An operation that does `run`, with nothing else yet.
    pub fn op(&self, run: Run) -> Op {
        Op { run, imm: 0, d: 0, a: 0, b: 0, c: 0, e: 0, guard: self.guard }
    }

    /// An operation that does `B`.
    pub fn op_of<B: Body>(&self) -> Op {
        self.op(op::pick::<B>(self.settings.wide))
    }

    /// Appends an operation.
    pub fn emit(&mut self, op: Op) -> u32 {
        self.ops.push(op);
        self.origins.push(self.origin);
        self.ops.len() as u32 - 1
    }

    /// Appends an operation that accesses memory.
    pub fn emit_access(&mut self, op: Op, touch: Touch) -> u32 {
        self.touches.push((self.ops.len() as u32, touch));
        self.emit(op)
    }

    /// Appends the end of a function, which gives back what it took of the stack.
    pub fn emit_return(&mut self) {
        if let Some(a) = self.kept {
            self.emit(Op { a, ..self.op_of::<ops::stack::Restore>() });
        }
        self.emit(self.op_of::<ops::control::Return>());
    }

    /// Bytes of local memory that the function's frame has.
    pub fn frame_bytes(&self) -> u32 {
        self.layout.local
    }

    /// Appends an operation after all others of the instruction.
    pub fn emit_after(&mut self, op: Op) {
        self.after.push(op);
    }

    /// Appends a jump to an instruction of the function; lanes that part there meet at another.
    pub fn emit_jump(&mut self, mut op: Op, target: u32, meeting: Option<u32>) {
        op.d = target as i32;
        op.e = meeting.map_or(NOWHERE as i32, |meeting| meeting as i32);
        let at = self.emit(op);
        self.fixups.push(Fixup::Target(at));
        if meeting.is_some() {
            self.fixups.push(Fixup::Meeting(at));
        }
    }

    /// Appends a list of instructions of the function and says where it begins.
    pub fn list_of_targets(&mut self, targets: &[u32]) -> i32 {
        let start = self.lists.len();
        for &target in targets {
            self.fixups.push(Fixup::Listed(self.lists.len() as u32));
            self.lists.push(target as i32);
        }
        start as i32
    }

    /// As `emit_jump`, for a jump through a list.
    pub fn emit_indirect(&mut self, mut op: Op, meeting: Option<u32>) {
        op.e = meeting.map_or(NOWHERE as i32, |meeting| meeting as i32);
        let at = self.emit(op);
        if meeting.is_some() {
            self.fixups.push(Fixup::Meeting(at));
        }
    }

    /// A place for the region that a load accessed last; the load is watched where its value is wanted.
    /// `bytes` is the size of an element.
    pub fn load_cache(&mut self, bytes: u32) -> Decoded<i32> {
        let to = self.operand(0)?;
        let cache = self.cache();
        let (lanes, across) = self.wanted.get(&self.origin.instruction).copied().unwrap_or_default();
        self.demands[cache as usize] =
            Demand { lanes, across, bytes: self.uses.bytes(self.function, to, bytes), alike: 0 };
        Ok(cache)
    }

    /// Whether anything reads what an instruction writes here.
    pub fn is_read(&self, to: &Operand) -> bool {
        self.uses.bytes(self.function, to, 1) != 0
    }

    /// A place for the region that a store accessed last; what it stores may be one value.
    pub fn store_cache(&mut self) -> i32 {
        let cache = self.cache();
        self.demands[cache as usize].alike = self.butterflies.alike(self.origin.instruction);
        cache
    }

    /// A place for the region that an instruction accessed last.
    pub fn cache(&mut self) -> i32 {
        self.sites.push(self.ops.len() as u32);
        self.demands.push(Demand::default());
        self.sites.len() as i32 - 1
    }

    /// Appends a list and says where it begins.
    pub fn list(&mut self, items: impl IntoIterator<Item = i32>) -> i32 {
        let start = self.lists.len() as i32;
        self.lists.extend(items);
        start
    }

    /// Rows for a value that lives during the instruction.
    pub fn temporary<L: Lane>(&mut self) -> i32 {
        // Wide values at even rows are no faster; any row is aligned.
        let row = self.layout.rows + self.temporaries;
        self.temporaries += L::ROWS as u32;
        self.most.0 = self.most.0.max(self.temporaries);
        row as i32
    }

    /// A predicate that lives during the instruction.
    pub fn temporary_predicate(&mut self) -> i32 {
        let predicate = self.layout.predicates + self.temporary_predicates;
        self.temporary_predicates += 1;
        self.most.1 = self.most.1.max(self.temporary_predicates);
        predicate as i32
    }

    /// A constant in all lanes.
    pub fn constant<L: Lane>(&mut self, bits: u64) -> i32 {
        self.constants.get::<L>(u128::from(bits))
    }

    fn signed(&self) -> bool {
        self.form.types.first().is_some_and(|ty| ty.is_signed())
    }

    /// The first type of the form; a refusal where there is none.
    pub fn ty(&self) -> Decoded<ScalarType> {
        self.form.types.first().copied().ok_or_else(|| "it has no type".to_owned())
    }

    /// The opcode.
    pub fn opcode(&self) -> Opcode {
        self.form.opcode
    }

    /// Where lanes that part at this instruction meet again.
    pub fn meeting(&self) -> Option<u32> {
        let flow = &self.function.flow;
        let block = flow.block(flow.block_of(self.origin.instruction));
        block.post_dominator.map(|block| flow.block(block).instructions.start)
    }
}

/// What an unwritten form is refused with.
pub fn refuse<T>(what: &str) -> Decoded<T> {
    Err(what.to_owned())
}

const _: () = assert!(size_of::<Op>() <= 40 && size_of::<Signal>() == 1);
