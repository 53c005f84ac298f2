//! Where the registers and variables of a function lie.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use super::decode::Place;
use crate::flow::{Accesses, BlockId, Liveness};
use crate::program::{
    Base, Callee, Function, FunctionId, Operand, Parameter, Program, ScalarType, Space, Symbol, VariableId,
};

/// The frame of a function.
pub struct Layout {
    /// For every register its first row, or its predicate.
    pub slots: Vec<i32>,
    /// Rows.
    pub rows: u32,
    /// Predicates: number 0 always holds.
    pub predicates: u32,
    /// Bytes of local memory.
    pub local: u32,
    /// First row of every parameter.
    pub parameters: Vec<i32>,
    /// First row of every value returned.
    pub returns: Vec<i32>,
    /// Where the function's variables lie.
    pub variables: Vec<Placed>,
    /// Rows that instructions may read before any wrote them.
    pub unwritten: Vec<i32>,
}

/// Where a variable of a function lies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placed {
    /// Bytes from the frame's local memory.
    pub offset: u32,
    /// First row, of a `.param` variable.
    pub row: Option<i32>,
}

impl Layout {
    /// Places everything.
    pub fn new(function: &Function) -> Self {
        let Slots { slots, mut rows, predicates, mut unwritten } = Slots::new(function);
        let registers = rows;
        let mut take = |bytes: u64| {
            let first = rows;
            rows += bytes.div_ceil(4) as i32;
            first
        };
        let mut place = |parameter: &Parameter| match parameter.register {
            Some(register) => slots[register.0 as usize],
            None => take(u64::from(parameter.size)),
        };
        let parameters = match function.entry {
            true => Vec::new(),
            false => function.parameters.iter().map(&mut place).collect(),
        };
        let returns = function.returns.iter().map(&mut place).collect();
        let mut local = 0u32;
        let variables = function
            .variables
            .iter()
            .map(|variable| match variable.space {
                Space::Parameter => Placed { offset: 0, row: Some(take(variable.size)) },
                Space::Local => {
                    let offset = local.next_multiple_of(variable.align.max(1));
                    local = offset.saturating_add(variable.size.min(u64::from(u32::MAX / 2)) as u32);
                    Placed { offset, row: None }
                }
                _ => Placed::default(),
            })
            .collect();
        let local = local.next_multiple_of(16);
        // Variables of `.param` may be written in part.
        unwritten.extend(registers..rows);
        Self {
            slots,
            rows: rows as u32,
            predicates: predicates as u32,
            local,
            parameters,
            returns,
            variables,
            unwritten,
        }
    }

    /// A place for one more register, which it shares with none: its first row, or its predicate.
    pub fn place(&mut self, ty: ScalarType) -> i32 {
        let (next, size) = match ty.bits() {
            1 => (&mut self.predicates, 1),
            bits => (&mut self.rows, bits.div_ceil(32)),
        };
        let place = *next as i32;
        *next += size;
        place
    }
}

/// Where registers lie: two that are never needed at the same time may share a place.
struct Slots {
    slots: Vec<i32>,
    rows: i32,
    predicates: i32,
    unwritten: Vec<i32>,
}

/// What the instructions of a function read and write.
pub struct Uses<'a>(pub &'a Function);

impl Accesses for Uses<'_> {
    fn registers(&self) -> usize {
        self.0.registers.len()
    }
    fn reads(&self, instruction: u32, mut visit: impl FnMut(u32)) {
        self.0.reads(&self.0.instructions[instruction as usize], |register| visit(register.0));
    }
    fn writes(&self, instruction: u32, mut visit: impl FnMut(u32)) {
        self.0.writes(&self.0.instructions[instruction as usize], |register| visit(register.0));
    }
    fn may_keep(&self, instruction: u32) -> bool {
        self.0.instructions[instruction as usize].guard.is_some()
    }
}

impl Slots {
    /// Linear scan over the text: a register is kept from the first place where it matters to the last.
    fn new(function: &Function) -> Self {
        let count = function.registers.len();
        let (mut first, mut last) = (vec![u32::MAX; count], vec![0u32; count]);
        let mut needed = |register: u32, at: u32| {
            let register = register as usize;
            first[register] = first[register].min(at);
            last[register] = last[register].max(at);
        };
        let uses = Uses(function);
        let end = function.instructions.len() as u32;
        for at in 0..end {
            uses.reads(at, |register| needed(register, at));
            uses.writes(at, |register| needed(register, at));
        }
        let liveness = Liveness::new(&function.flow, &uses);
        for (id, block) in (0..).map(BlockId).zip(&function.flow.blocks) {
            for &register in liveness.live_in(id) {
                needed(register, block.instructions.start);
            }
            for register in liveness.live_out(&function.flow, id) {
                needed(register, block.instructions.end);
            }
        }
        // The caller writes parameters before the first instruction, and reads results after the last.
        for parameter in function.parameters.iter().chain(&function.returns) {
            if let Some(register) = parameter.register {
                needed(register.0, 0);
                needed(register.0, end);
            }
        }
        let mut order: Vec<usize> = (0..count).filter(|&register| first[register] != u32::MAX).collect();
        order.sort_by_key(|&register| first[register]);
        let mut made = Self { slots: vec![0; count], rows: 0, predicates: 1, unwritten: Vec::new() };
        // Places by size: 0 for predicates, else rows.
        let mut free: [Vec<i32>; 5] = Default::default();
        let mut ends: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        for register in order {
            while let Some(&Reverse((at, ended))) = ends.peek()
                && at < first[register]
            {
                ends.pop();
                free[size(function, ended)].push(made.slots[ended]);
            }
            let size = size(function, register);
            made.slots[register] = free[size].pop().unwrap_or_else(|| {
                let next = if size == 0 { &mut made.predicates } else { &mut made.rows };
                let place = *next;
                *next += size.max(1) as i32;
                place
            });
            ends.push(Reverse((last[register], register)));
        }
        for register in unwritten(function, &liveness) {
            let row = made.slots[register];
            made.unwritten.extend(row..row + size(function, register) as i32);
        }
        made.unwritten.sort_unstable();
        made.unwritten.dedup();
        made
    }
}

/// Registers that may be read where nothing wrote them: live at the beginning, or written under guards only.
fn unwritten(function: &Function, liveness: &Liveness) -> Vec<usize> {
    let mut written = vec![false; function.registers.len()];
    for instruction in function.instructions.iter().filter(|instruction| instruction.guard.is_none()) {
        function.writes(instruction, |register| written[register.0 as usize] = true);
    }
    let begins = |register: &usize| liveness.live_in(BlockId(0)).binary_search(&(*register as u32)).is_ok();
    (0..function.registers.len()).filter(|register| !written[*register] || begins(register)).collect()
}

/// Rows of a register; 0 for a predicate.
fn size(function: &Function, register: usize) -> usize {
    match function.registers[register].ty.bits() {
        1 => 0,
        bits => bits.div_ceil(32) as usize,
    }
}

/// The entry, then every function that it may call.
pub fn reached(program: &Program, entry: FunctionId) -> Vec<FunctionId> {
    let mut order = vec![entry];
    let mut known: FxHashSet<_> = order.iter().copied().collect();
    let mut pending: VecDeque<_> = order.iter().copied().collect();
    let mut indirect = false;
    while let Some(id) = pending.pop_front() {
        let function = program.function(id);
        let mut found = Vec::new();
        for instruction in &function.instructions {
            let Some(call) = function.call(instruction) else { continue };
            match call.callee {
                Callee::Direct(callee) => found.push(callee),
                Callee::OneOf(_, callees) => found.extend(callees),
                Callee::Any(..) if !indirect => {
                    indirect = true;
                    found.extend(addressed(program));
                }
                Callee::Any(..) => {}
            }
        }
        for callee in found {
            if program.function(callee).defined && known.insert(callee) {
                order.push(callee);
                pending.push_back(callee);
            }
        }
    }
    order
}

/// The functions whose address is taken.
fn addressed(program: &Program) -> Vec<FunctionId> {
    let mut found = Vec::new();
    for function in &program.functions {
        for operand in &function.operands {
            if let Operand::Symbol(Symbol::Function(id), _) = operand {
                found.push(*id);
            }
        }
    }
    for variable in program.variables.iter().chain(program.functions.iter().flat_map(|function| &function.variables)) {
        for relocation in &variable.relocations {
            if let Symbol::Function(id) = relocation.symbol {
                found.push(id);
            }
        }
    }
    found.retain(|id| !program.function(*id).entry);
    found.sort_unstable();
    found.dedup();
    found
}

/// Offsets of the shared variables that these functions can name, and the bytes of all. Dynamic shared memory begins
/// there.
pub fn shared(program: &Program, functions: &[FunctionId]) -> (FxHashMap<Place, u32>, u32) {
    let mut named: FxHashSet<VariableId> = FxHashSet::default();
    for id in functions {
        for operand in &program.function(*id).operands {
            if let Operand::Symbol(Symbol::Variable(id), _) | Operand::Address(Base::Symbol(Symbol::Variable(id)), _) =
                operand
            {
                named.insert(*id);
            }
        }
    }
    let (mut places, mut end, mut dynamic) = (FxHashMap::default(), 0u64, Vec::new());
    let mut align = 1;
    let mut put = |place: Place, size: u64, alignment: u32, end: &mut u64| match size {
        0 => {
            align = align.max(alignment);
            dynamic.push(place);
        }
        size => {
            let offset = end.next_multiple_of(u64::from(alignment.max(1)));
            places.insert(place, offset.min(u64::from(u32::MAX)) as u32);
            *end = offset + size;
        }
    };
    for (id, variable) in (0..).map(VariableId).zip(&program.variables) {
        if variable.space == Space::Shared && named.contains(&id) {
            put(Place::Module(id), variable.size, variable.align, &mut end);
        }
    }
    for &id in functions {
        for (index, variable) in (0..).zip(&program.function(id).variables) {
            if variable.space == Space::Shared {
                put(Place::Function(id, index), variable.size, variable.align, &mut end);
            }
        }
    }
    let start = end.next_multiple_of(u64::from(align)).min(u64::from(u32::MAX)) as u32;
    for place in dynamic {
        places.insert(place, start);
    }
    // Static memory ends where dynamic memory begins.
    (places, start)
}
