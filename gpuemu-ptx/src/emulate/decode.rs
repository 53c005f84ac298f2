//! From a program's instructions to code: registers placed, operands found, functions picked.

use rustc_hash::FxHashMap;

use super::code::{Code, NOWHERE, Origin, Routine};
use super::demand::{self, Demand, Uses};
use super::layout::Layout;
use super::op::{self, Body, Op, Run, Signal};
use super::ops;
use super::registers::{LANES, Lane, Row};
use super::spaces;
use crate::arch::Arch;
use crate::error::Error;
use crate::program::{
    Base, Form, Function, FunctionId, Instruction, Opcode, Operand, Program, RegisterId, ScalarType, Space, Special,
    Symbol, VariableId,
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
    uses: Uses,
    /// Whether something was found that ties blocks together.
    pub ordered: bool,
    ops: Vec<Op>,
    origins: Vec<Origin>,
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

/// Constants, each once.
#[derive(Default)]
struct Constants {
    /// In reverse: row -1 is the first.
    rows: Vec<Row>,
    known: FxHashMap<(u32, u128), i32>,
}

impl Constants {
    fn get<L: Lane>(&mut self, bits: u128) -> i32 {
        let rows = L::ROWS as u32;
        let next = -(self.rows.len() as i32) - rows as i32;
        // As the register holds it: -1 of 16 bits is another constant than -1 of 32.
        let bits: u128 = L::stored(bits).into();
        *self.known.entry((rows, bits)).or_insert_with(|| {
            let mut made = [Row([0; LANES]); 4];
            // SAFETY: four rows are room for 32 lanes of up to 128 bits, and aligned enough.
            let lanes = unsafe { &mut *made.as_mut_ptr().cast::<[L::Store; LANES]>() };
            *lanes = [L::stored(bits); LANES];
            self.rows.extend(made[..rows as usize].iter().rev());
            next
        })
    }
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
            Some(decoder) => Decoder { function, layout, uses: Uses::new(function), ..decoder },
            None => Decoder {
                program,
                function,
                form: &program.forms[0],
                operands: &[],
                settings,
                lists: Vec::new(),
                calls: Vec::new(),
                ordered: false,
                sites: Vec::new(),
                demands: Vec::new(),
                uses: Uses::new(function),
                ops: Vec::new(),
                origins: Vec::new(),
                constants: Constants::default(),
                layout,
                shared: &shared,
                origin: Origin { function: id, instruction: 0 },
                guard: 0,
                first: 0,
                temporaries: 0,
                temporary_predicates: 0,
                most: (0, 0),
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
    Ok(Code {
        ops: decoder.ops,
        origins: decoder.origins,
        constants: decoder.constants.rows.into_boxed_slice(),
        lists: decoder.lists,
        functions,
        routines,
        shared: static_bytes,
        ordered: decoder.ordered,
        caches: decoder.sites.len().max(1),
        sites: decoder.sites,
        demands: decoder.demands,
        passed: super::passed::passed(program, program.function(entry)),
        entry,
    })
}

impl<'a> Decoder<'a> {
    fn function(&mut self, id: FunctionId) -> Result<Routine, Error> {
        let start = self.ops.len() as u32;
        self.most = (0, 0);
        let instructions = &self.function.instructions;
        let mut starts = Vec::with_capacity(instructions.len() + 1);
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
        // The end of a function returns.
        self.origin = Origin { function: id, instruction: instructions.len().saturating_sub(1) as u32 };
        (self.guard, self.temporaries) = (0, 0);
        self.emit(self.op(op::pick::<ops::control::Return>(self.settings.wide)));
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

    fn instruction(&mut self, instruction: &Instruction) -> Decoded {
        self.guard = match instruction.guard {
            Some(guard) if guard.negated => !self.slot(guard.register),
            Some(guard) => self.slot(guard.register),
            None => 0,
        };
        self.first = self.ops.len() as u32;
        (self.temporaries, self.temporary_predicates) = (0, 0);
        ops::decode(self)?;
        for op in std::mem::take(&mut self.after) {
            self.emit(op);
        }
        Ok(())
    }

    /// The number of the instruction being decoded.
    pub fn index(&self) -> u32 {
        self.origin.instruction
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
        let registers = demand::registers(self.function, to);
        let demand = self.uses.demand(self.function, &registers, self.origin.instruction);
        let cache = self.cache();
        let (lanes, across) = match demand {
            Some((guard, across)) if guard.negated => (!self.slot(guard.register), across),
            Some((guard, across)) => (self.slot(guard.register), across),
            None => (0, false),
        };
        self.demands[cache as usize] = Demand { lanes, across, bytes: self.uses.bytes(self.function, to, bytes) };
        Ok(cache)
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

    /// An operand by number.
    pub fn operand(&self, index: usize) -> Decoded<&'a Operand> {
        self.operands.get(index).ok_or_else(|| format!("it has no operand {}", index + 1))
    }

    /// Whether there is an operand of this number.
    pub fn has_operand(&self, index: usize) -> bool {
        index < self.operands.len()
    }

    /// Where an operand that is read lies, as a value of type `L`.
    pub fn source<L: Lane>(&mut self, index: usize) -> Decoded<i32> {
        let operand = self.operand(index)?;
        self.source_of::<L>(operand)
    }

    /// Where an operand that is read lies.
    pub fn source_of<L: Lane>(&mut self, operand: &Operand) -> Decoded<i32> {
        let wide = L::ROWS == 2;
        Ok(match operand {
            Operand::Register(register) => {
                let ty = self.function.register(*register).ty;
                let slot = self.slot(*register);
                match (ty.bits(), L::ROWS) {
                    (1, _) => return Err("a predicate stands where a number should".to_owned()),
                    (..=32, 1) | (64, 2) | (128, 4) => slot,
                    (64, 1) => self.converted(slot, |_, x: u64| x as u32),
                    (..=32, 2) => self.converted(slot, |_, x: u32| u64::from(x)),
                    (64, 4) => self.converted(slot, |_, x: u64| u128::from(x)),
                    (bits, _) => return Err(format!("a register of {bits} bits does not fit")),
                }
            }
            Operand::Integer(bits) => self.constants.get::<L>(u128::from(*bits)),
            Operand::Float32(bits) if wide => self.constant::<u64>(f64::from(f32::from_bits(*bits)).to_bits()),
            Operand::Float32(bits) => self.constant::<u32>(u64::from(*bits)),
            Operand::Float64(bits) if wide => self.constant::<u64>(*bits),
            Operand::Float64(bits) => self.constant::<u32>(u64::from((f64::from_bits(*bits) as f32).to_bits())),
            Operand::Special(special) => self.special::<L>(*special)?,
            Operand::Environment(_) => self.constant::<u32>(0),
            Operand::Symbol(symbol, addend) => self.address_of::<L>(*symbol, *addend)?,
            Operand::Discard => self.constant::<L>(0),
            _ => return Err("an operand is of a kind that it cannot have".to_owned()),
        })
    }

    /// A copy of a row, converted.
    fn converted<A: Lane, D: Lane, F: Fn(u64, A) -> D + Copy>(&mut self, from: i32, _: F) -> i32 {
        let d = self.temporary::<D>();
        let op = Op { d, a: from, ..self.op_of::<op::Unary<F, D, A>>() };
        self.emit(op);
        d
    }

    fn special<L: Lane>(&mut self, special: Special) -> Decoded<i32> {
        ops::special::check(special)?;
        let wide = special.ty().bits() == 64;
        let d = if wide { self.temporary::<u64>() } else { self.temporary::<u32>() };
        let op = Op { d, imm: special as u64, ..self.op_of::<ops::special::Read>() };
        self.emit(op);
        Ok(match (wide, L::ROWS) {
            (true, 2) | (false, 1) => d,
            (true, _) => self.converted(d, |_, x: u64| x as u32),
            (false, _) => self.converted(d, |_, x: u32| u64::from(x)),
        })
    }

    /// The address of a symbol in its own space.
    fn address_of<L: Lane>(&mut self, symbol: Symbol, addend: i64) -> Decoded<i32> {
        if let Symbol::Local(id) = symbol
            && self.function.variables[id.0 as usize].space == Space::Local
        {
            // Where it is depends on the calls that are open.
            let offset = self.layout.variables[id.0 as usize].offset as i64 + addend;
            let d = self.temporary::<u64>();
            let op = Op { d, imm: offset as u64, ..self.op_of::<ops::special::LocalAddress>() };
            self.emit(op);
            return Ok(if L::ROWS == 2 { d } else { self.converted(d, |_, x: u64| x as u32) });
        }
        let address = self.symbol_address(symbol)?.wrapping_add(addend as u64);
        Ok(self.constants.get::<L>(u128::from(address)))
    }

    /// The address of a symbol whose place does not change: in its own space.
    pub fn symbol_address(&self, symbol: Symbol) -> Decoded<u64> {
        let name = |space: Space, name: &str| format!("`{name}` has no address in {space:?} memory");
        match symbol {
            Symbol::Variable(id) => {
                let variable = self.program.variable(id);
                match variable.space {
                    Space::Shared => Ok(u64::from(self.shared[&Place::Module(id)])),
                    space => self.settings.addresses.get(&id).copied().ok_or_else(|| name(space, &variable.name)),
                }
            }
            Symbol::Local(id) => {
                let variable = &self.function.variables[id.0 as usize];
                let place = Place::Function(self.origin.function, id.0);
                match variable.space {
                    Space::Shared => Ok(u64::from(self.shared[&place])),
                    space => Err(name(space, &variable.name)),
                }
            }
            Symbol::Parameter(index) if self.function.entry => {
                Ok(u64::from(self.function.parameters[index as usize].offset))
            }
            Symbol::Parameter(_) | Symbol::Return(_) => {
                Err("the address of a function's parameter is taken".to_owned())
            }
            Symbol::Function(id) => Ok(spaces::function_address(id)),
        }
    }

    /// Where the operand that is written lies. Where the register is wider than the value, the value is widened
    /// afterwards, by its sign if `signed`.
    pub fn destination<L: Lane>(&mut self, index: usize, signed: bool) -> Decoded<i32> {
        let operand = self.operand(index)?;
        self.destination_of::<L>(operand, signed)
    }

    /// As `destination`.
    pub fn destination_of<L: Lane>(&mut self, operand: &Operand, signed: bool) -> Decoded<i32> {
        match operand {
            Operand::Register(register) => {
                let bits = self.function.register(*register).ty.bits();
                let slot = self.slot(*register);
                match (bits, L::ROWS) {
                    (1, _) => Err("a predicate stands where a register should".to_owned()),
                    (..=32, 1) | (64, 2) | (128, 4) => Ok(slot),
                    (64, 1) => {
                        let d = self.temporary::<u32>();
                        let op = match signed {
                            true => self.widening(|_, x: i32| i64::from(x)),
                            false => self.widening(|_, x: u32| u64::from(x)),
                        };
                        self.after.push(Op { d: slot, a: d, ..op });
                        Ok(d)
                    }
                    (128, 2) => {
                        let d = self.temporary::<u64>();
                        let op = self.widening(|_, x: u64| u128::from(x));
                        self.after.push(Op { d: slot, a: d, ..op });
                        Ok(d)
                    }
                    (bits, _) => Err(format!("a register of {bits} bits is too small")),
                }
            }
            Operand::Discard => Ok(self.temporary::<L>()),
            _ => Err("its result goes to something that is no register".to_owned()),
        }
    }

    fn widening<A: Lane, D: Lane, F: Fn(u64, A) -> D + Copy>(&self, _: F) -> Op {
        self.op_of::<op::Unary<F, D, A>>()
    }

    /// A predicate that is read: the number, or its complement for a negation.
    pub fn truth(&self, operand: &Operand) -> Decoded<i32> {
        match operand {
            Operand::Register(register) | Operand::Negated(register)
                if self.function.register(*register).ty != ScalarType::Predicate =>
            {
                Err(format!("{} is no predicate", self.function.register_name(*register)))
            }
            Operand::Register(register) => Ok(self.slot(*register)),
            Operand::Negated(register) => Ok(!self.slot(*register)),
            Operand::Integer(bits) => Ok(if *bits == 0 { !0 } else { 0 }),
            _ => Err("an operand should be a predicate".to_owned()),
        }
    }

    /// A predicate that is written; 0 for `_`.
    pub fn truth_destination(&self, operand: &Operand) -> Decoded<i32> {
        match operand {
            Operand::Discard => Ok(0),
            Operand::Register(register) if self.function.register(*register).ty == ScalarType::Predicate => {
                Ok(self.slot(*register))
            }
            _ => Err("its result should be a predicate".to_owned()),
        }
    }

    /// An address: the register it is counted from, and the bytes to add.
    pub fn address(&mut self, index: usize) -> Decoded<Address> {
        let operand = self.operand(index)?;
        self.address_operand(operand)
    }

    /// As `address`.
    pub fn address_operand(&mut self, operand: &Operand) -> Decoded<Address> {
        Ok(match operand {
            Operand::Address(Base::Register(register), offset) => self.register_address(*register, *offset),
            Operand::Register(register) => self.register_address(*register, 0),
            Operand::Address(Base::Absolute, offset) => Address::fixed(*offset as u64),
            Operand::Integer(bits) => Address::fixed(*bits),
            Operand::Address(Base::Symbol(symbol), offset) | Operand::Symbol(symbol, offset) => {
                if let Symbol::Local(id) = symbol
                    && self.function.variables[id.0 as usize].space == Space::Local
                {
                    let register = self.address_of::<u64>(*symbol, *offset)?;
                    return Ok(Address { register: Some((register, 64)), offset: 0, symbol: Some(*symbol) });
                }
                if self.parameter_row(*symbol).is_some() {
                    return Ok(Address { register: None, offset: *offset as u64, symbol: Some(*symbol) });
                }
                let address = self.symbol_address(*symbol)?.wrapping_add(*offset as u64);
                Address { register: None, offset: address, symbol: Some(*symbol) }
            }
            _ => return Err("its address is of a kind that it cannot have".to_owned()),
        })
    }

    fn register_address(&self, register: RegisterId, offset: i64) -> Address {
        let bits = self.function.register(register).ty.bits();
        Address { register: Some((self.slot(register), bits)), offset: offset as u64, symbol: None }
    }

    /// The register of an address as 64 bits, sums of 32 bits wrapping there; and the bytes to add.
    pub fn wide_address(&mut self, address: Address) -> (i32, u64) {
        match address.register {
            Some((register, 64)) => (register, address.offset),
            Some((register, _)) => {
                let d = self.temporary::<u64>();
                let op = self.widening(|k, x: u32| u64::from(x.wrapping_add(k as u32)));
                self.emit(Op { d, a: register, imm: address.offset, ..op });
                (d, 0)
            }
            None => (self.constant::<u64>(0), address.offset),
        }
    }

    /// Emits `d = f(imm, a)` on the instruction's operands.
    pub fn unary<D: Lane, A: Lane, F: Fn(u64, A) -> D + Copy>(&mut self, imm: u64, _: F) -> Decoded {
        let a = self.source::<A>(1)?;
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, imm, ..self.op_of::<op::Unary<F, D, A>>() });
        Ok(())
    }

    /// Emits `d = f(imm, a, b)`.
    pub fn binary<D: Lane, A: Lane, B: Lane, F: Fn(u64, A, B) -> D + Copy>(&mut self, imm: u64, _: F) -> Decoded {
        let (a, b) = (self.source::<A>(1)?, self.source::<B>(2)?);
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, b, imm, ..self.op_of::<op::Binary<F, D, A, B>>() });
        Ok(())
    }

    /// Emits `d = f(imm, a, b, c)`.
    pub fn ternary<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(u64, A, B, C) -> D + Copy>(
        &mut self,
        imm: u64,
        _: F,
    ) -> Decoded {
        let (a, b, c) = (self.source::<A>(1)?, self.source::<B>(2)?, self.source::<C>(3)?);
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, b, c, imm, ..self.op_of::<op::Ternary<F, D, A, B, C>>() });
        Ok(())
    }

    /// Emits `d = f(imm, a, b, c, e)`.
    pub fn quaternary<D: Lane, A: Lane, B: Lane, C: Lane, E: Lane, F: Fn(u64, A, B, C, E) -> D + Copy>(
        &mut self,
        imm: u64,
        _: F,
    ) -> Decoded {
        let (a, b) = (self.source::<A>(1)?, self.source::<B>(2)?);
        let (c, e) = (self.source::<C>(3)?, self.source::<E>(4)?);
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, b, c, e, imm, ..self.op_of::<op::Quaternary<F, D, A, B, C, E>>() });
        Ok(())
    }

    /// Emits `f` on registers given by number, to a register given by number.
    pub fn apply1<D: Lane, A: Lane, F: Fn(u64, A) -> D + Copy>(&mut self, d: i32, a: i32, imm: u64, _: F) {
        self.emit(Op { d, a, imm, ..self.op_of::<op::Unary<F, D, A>>() });
    }

    /// As `apply1`, of two operands.
    pub fn apply2<D: Lane, A: Lane, B: Lane, F: Fn(u64, A, B) -> D + Copy>(
        &mut self,
        d: i32,
        (a, b): (i32, i32),
        imm: u64,
        _: F,
    ) {
        self.emit(Op { d, a, b, imm, ..self.op_of::<op::Binary<F, D, A, B>>() });
    }

    /// Copies a row.
    pub fn copy<L: Lane>(&mut self, d: i32, a: i32) {
        self.apply1(d, a, 0, |_, x: L| x);
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

/// An address as written.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The register it is counted from, and its bits.
    pub register: Option<(i32, u32)>,
    /// Bytes to add.
    pub offset: u64,
    /// The symbol it is counted from.
    pub symbol: Option<Symbol>,
}

impl Address {
    fn fixed(offset: u64) -> Self {
        Self { register: None, offset, symbol: None }
    }
}

/// What an unwritten form is refused with.
pub fn refuse<T>(what: &str) -> Decoded<T> {
    Err(what.to_owned())
}

const _: () = assert!(size_of::<Op>() <= 40 && size_of::<Signal>() == 1);
