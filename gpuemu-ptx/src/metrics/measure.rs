//! From a program to the metrics of one entry.

use rustc_hash::{FxHashMap, FxHashSet};

use super::class::Class;
use super::index::wrapping_products;
use super::memory::{accesses, bytes, weight};
use super::pressure::widest;
use super::{Count, Metrics, Place};
use crate::flow::Liveness;
use crate::program::{
    Callee, Form, Function, FunctionId, Opcode, Operand, Program, ScalarType, Space, Uses, VariableId, Variance,
    Variances, Word,
};

/// Weighs an entry and all that it calls.
pub fn measure(program: &Program, entry: FunctionId) -> Metrics {
    let mut metrics = Metrics { entry: program.function(entry).name.to_string(), ..Metrics::default() };
    let order = reached(program, entry, &mut metrics);
    let mut pressures = FxHashMap::default();
    let mut variables = FxHashSet::default();
    // Callees come before their callers, as far as there is no recursion.
    for &id in order.iter().rev() {
        let function = program.function(id);
        let uses = Uses::new(function);
        let liveness = Liveness::new(&function.flow, function);
        let pressure = widest(program, id, &liveness, &pressures);
        pressures.insert(id, pressure);
        count(program, id, &mut metrics, &mut variables);
        metrics.accesses.extend(accesses(program, id));
        let wrapping = wrapping_products(program, id, &uses);
        metrics.wrapping.extend(wrapping.into_iter().map(|index| Place::new(program, id, index)));
        divergence(program, id, &mut metrics, &Variances::new(program, id, &uses, &liveness));
    }
    metrics.pressure = pressures.get(&entry).copied().unwrap_or_default();
    metrics.functions = order;
    let position = |place: &Place| (place.line, place.instruction);
    metrics.accesses.sort_by_key(|access| position(&access.place));
    metrics.wrapping.sort_by_key(position);
    metrics.divergent.sort_by_key(position);
    for access in &metrics.accesses {
        metrics.access_bytes.entry(access.bytes).or_default().add(1, weight(access.depth));
    }
    for variable in variables {
        declared(&program.variable(variable).clone(), &mut metrics);
    }
    metrics
}

/// The functions that an entry reaches, each before those that only it calls.
fn reached(program: &Program, entry: FunctionId, metrics: &mut Metrics) -> Vec<FunctionId> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Open,
        Done,
    }
    let mut states: FxHashMap<FunctionId, State> = FxHashMap::default();
    let mut finished = Vec::new();
    let mut external = FxHashSet::default();
    let mut path = vec![(entry, callees(program, entry), 0)];
    states.insert(entry, State::Open);
    while let Some((id, callees_of_id, next)) = path.last_mut() {
        let Some(&callee) = callees_of_id.get(*next) else {
            states.insert(*id, State::Done);
            finished.push(*id);
            path.pop();
            continue;
        };
        *next += 1;
        match states.get(&callee) {
            Some(State::Open) => metrics.recursive = true,
            Some(State::Done) => {}
            None if !program.function(callee).defined => drop(external.insert(callee)),
            None => {
                states.insert(callee, State::Open);
                path.push((callee, callees(program, callee), 0));
            }
        }
    }
    metrics.external = external.iter().map(|id| program.function(*id).name.to_string()).collect();
    metrics.external.sort();
    finished.reverse();
    finished
}

/// The functions that reachable calls of a function may call. An indirect call without a list may call any function of
/// the module whose address is taken; which those are is not followed.
fn callees(program: &Program, id: FunctionId) -> Vec<FunctionId> {
    let function = program.function(id);
    let mut callees = Vec::new();
    for block in function.flow.blocks.iter().filter(|block| block.reachable) {
        // Other calls than the last instruction of a block are common: a call ends no block.
        for instruction in &function.instructions[block.instructions.start as usize..block.instructions.end as usize] {
            match function.call(instruction).map(|call| call.callee) {
                Some(Callee::Direct(callee)) => callees.push(callee),
                Some(Callee::OneOf(_, list)) => callees.extend(list),
                Some(Callee::Any(..)) | None => {}
            }
        }
    }
    callees
}

/// Counts everything that each instruction tells by itself.
fn count(program: &Program, id: FunctionId, metrics: &mut Metrics, variables: &mut FxHashSet<VariableId>) {
    let function = program.function(id);
    let flow = &function.flow;
    metrics.loops += flow.loops.len() as u64;
    for variable in &function.variables {
        declared(variable, metrics);
    }
    let mut mix = [Count::default(); Class::ALL.len()];
    for &block in &flow.order {
        let depth = flow.depth(block);
        metrics.loop_depth = metrics.loop_depth.max(depth);
        let weight = weight(depth);
        metrics.instructions.add(flow.block(block).instructions.len() as u64, weight);
        for index in flow.block(block).instructions.clone() {
            let instruction = &function.instructions[index as usize];
            let form = program.form(instruction.form);
            let class = Class::of(form);
            mix[class as usize].add(1, weight);
            memory(form, metrics, weight);
            arithmetic(form, class, metrics, weight);
            let chooses = matches!(instruction.opcode, Opcode::Bra | Opcode::Ret | Opcode::Exit);
            if instruction.opcode == Opcode::Brx || chooses && instruction.guard.is_some() {
                metrics.branches.add(1, weight);
            }
            mentioned(function, instruction, variables);
        }
    }
    for (class, count) in Class::ALL.iter().zip(mix).filter(|(_, count)| count.instructions > 0) {
        let total = metrics.mix.entry(*class).or_default();
        total.instructions += count.instructions;
        total.weighted = total.weighted.saturating_add(count.weighted);
    }
    metrics.double_data |= double_data(program, function);
}

fn memory(form: &Form, metrics: &mut Metrics, weight: u64) {
    match form.opcode {
        Opcode::Ld | Opcode::Ldu if form.space == Some(Space::Local) => {
            metrics.local_loads.add(1, weight);
            metrics.local_load_bytes.add(u64::from(bytes(form)), weight);
        }
        Opcode::St if form.space == Some(Space::Local) => {
            metrics.local_stores.add(1, weight);
            metrics.local_store_bytes.add(u64::from(bytes(form)), weight);
        }
        Opcode::Bar | Opcode::Barrier if form.has(Word::Warp) => metrics.warp_barriers.add(1, weight),
        Opcode::Bar | Opcode::Barrier => metrics.barriers.add(1, weight),
        Opcode::Atom | Opcode::Red => match form.space {
            Some(Space::Shared) => metrics.shared_atomics.add(1, weight),
            _ => metrics.global_atomics.add(1, weight),
        },
        Opcode::Cp if form.has(Word::Global) || form.has(Word::Bulk) => {
            let commits = [Word::CommitGroup, Word::WaitGroup, Word::WaitAll].iter().any(|word| form.has(*word));
            if !commits {
                metrics.asynchronous_copies.add(1, weight);
            }
        }
        _ => {}
    }
}

fn arithmetic(form: &Form, class: Class, metrics: &mut Metrics, weight: u64) {
    match class {
        Class::Double => metrics.doubles.add(1, weight),
        Class::Single | Class::Half | Class::Special => metrics.singles.add(1, weight),
        Class::Conversion if form.types.contains(&ScalarType::F64) => metrics.doubles.add(1, weight),
        Class::Predicate if form.types.last() == Some(&ScalarType::F64) => metrics.doubles.add(1, weight),
        Class::Matrix => metrics.matrix.add(1, weight),
        _ => {}
    }
}

/// Notes the variables of the module that an instruction names.
fn mentioned(function: &Function, instruction: &crate::program::Instruction, variables: &mut FxHashSet<VariableId>) {
    use crate::program::{Base, Symbol};
    let mut note = |operand: &Operand| match operand {
        Operand::Symbol(Symbol::Variable(id), _) | Operand::Address(Base::Symbol(Symbol::Variable(id)), _) => {
            variables.insert(*id);
        }
        _ => {}
    };
    for operand in function.operands_of(instruction) {
        match operand {
            Operand::Vector(range) | Operand::Indexed(range) => function.inside(range).iter().for_each(&mut note),
            _ => note(operand),
        }
    }
}

fn declared(variable: &crate::program::Variable, metrics: &mut Metrics) {
    match variable.space {
        Space::Local => metrics.local_bytes += variable.size,
        Space::Shared if variable.size == 0 => metrics.dynamic_shared = true,
        Space::Shared => metrics.shared_bytes += variable.size,
        _ => {}
    }
}

/// Whether doubles come from memory or go there: an access of their type, or of 64 bits whose register double-precision
/// arithmetic shares.
fn double_data(program: &Program, function: &Function) -> bool {
    let mut moved = vec![false; function.registers.len()];
    let is_data = |space: Option<Space>| !matches!(space, Some(Space::Parameter | Space::Local));
    for instruction in &function.instructions {
        let form = program.form(instruction.form);
        let moves = matches!(form.opcode, Opcode::Ld | Opcode::St | Opcode::Atom | Opcode::Red | Opcode::Ldu);
        if !moves || !is_data(form.space) {
            continue;
        }
        match form.types.first() {
            Some(ScalarType::F64) => return true,
            Some(ty) if ty.bits() == 64 => {
                let value = match form.opcode {
                    Opcode::St | Opcode::Red => 1,
                    _ => 0,
                };
                match function.operands_of(instruction).get(value) {
                    Some(Operand::Register(register)) => moved[register.0 as usize] = true,
                    Some(Operand::Vector(range)) => {
                        for operand in function.inside(range) {
                            if let Operand::Register(register) = operand {
                                moved[register.0 as usize] = true;
                            }
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    function.instructions.iter().any(|instruction| {
        let form = program.form(instruction.form);
        let calculates = Class::of(form) == Class::Double || form.opcode == Opcode::Cvt;
        let mut shares = false;
        if calculates && form.types.contains(&ScalarType::F64) {
            let mut look = |register: crate::program::RegisterId| {
                let wide = function.register(register).ty.bits() == 64;
                shares |= wide && moved[register.0 as usize];
            };
            function.reads(instruction, &mut look);
            function.writes(instruction, &mut look);
        }
        shares
    })
}

fn divergence(program: &Program, id: FunctionId, metrics: &mut Metrics, variances: &Variances) {
    let function = program.function(id);
    let flow = &function.flow;
    // Some threads leave and others stay.
    for block in flow.blocks.iter().filter(|block| block.reachable && !block.instructions.is_empty()) {
        let last = block.instructions.end - 1;
        let instruction = &function.instructions[last as usize];
        let Some(guard) = instruction.guard else { continue };
        let returns = matches!(instruction.opcode, Opcode::Ret | Opcode::Exit);
        if returns && variances.at(last, guard.register) == Variance::Thread {
            metrics.divergent_branches.add(1, weight(flow.depth(flow.block_of(last))));
            metrics.divergent.push(Place::new(program, id, last));
        }
    }
    for &(block, variance) in variances.branches() {
        if variance == Variance::Thread && flow.block(block).reachable {
            metrics.divergent_branches.add(1, weight(flow.depth(block)));
            metrics.divergent.push(Place::new(program, id, flow.block(block).instructions.end - 1));
        }
    }
}
