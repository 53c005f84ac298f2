//! Which registers may differ between the threads of a block, and which branches may part them.
//!
//! A register is as variable as what it is computed from. It also differs where threads come from different sides of a
//! branch that parted them and a write on the way is still alive where they meet. Threads that left the kernel are not
//! compared with. Blocks are taken to be a multiple of 32 threads wide in x, so that `%tid.x / 32` is one number a warp.

use std::collections::VecDeque;

use super::form::Form;
use super::function::{Base, Function, FunctionId, Instruction, Operand, RegisterId};
use super::modifier::Word;
use super::module::Program;
use super::opcode::Opcode;
use super::special::Special;
use super::types::{Compare, Order, Space};
use super::uses::Uses;
use super::webs::Webs;
use crate::flow::{BlockId, Liveness};

/// Who may see different values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variance {
    /// All threads of a block see one value.
    #[default]
    Block,
    /// All threads of a warp see one value.
    Warp,
    /// Every thread may see its own.
    Thread,
}

/// The variance of every value of a function, and of every branch.
pub struct Variances {
    webs: Webs,
    nodes: Vec<Variance>,
    branches: Vec<(BlockId, Variance)>,
}

/// Steps of the walk over regions that branches decide, as a multiple of the instructions: what is beyond is left alone.
const PATIENCE: usize = 64;

impl Variances {
    /// Computes them to a fixpoint.
    pub fn new(program: &Program, id: FunctionId, uses: &Uses, liveness: &Liveness) -> Self {
        let function = program.function(id);
        let webs = Webs::new(function, uses, liveness);
        let mut solver = Solver {
            program,
            function,
            uses,
            nodes: vec![Variance::Block; webs.nodes()],
            webs,
            branches: vec![Variance::Block; function.flow.blocks.len()],
            pending: (0..function.instructions.len() as u32).collect(),
            queued: vec![true; function.instructions.len()],
            patience: PATIENCE * (function.instructions.len() + 64),
        };
        for parameter in function.parameters.iter().filter_map(|parameter| parameter.register) {
            solver.raise(parameter.0, Variance::Thread);
        }
        solver.run(liveness);
        let branches = (0..).map(BlockId).zip(solver.branches).filter(|(_, variance)| *variance > Variance::Block);
        Self { webs: solver.webs, nodes: solver.nodes, branches: branches.collect() }
    }

    /// The variance of a register as an instruction reads it.
    pub fn at(&self, instruction: u32, register: RegisterId) -> Variance {
        self.nodes[self.webs.read(instruction, register) as usize]
    }

    /// The blocks that end in a branch which threads of one block may take differently.
    pub fn branches(&self) -> &[(BlockId, Variance)] {
        &self.branches
    }
}

struct Solver<'p> {
    program: &'p Program,
    function: &'p Function,
    uses: &'p Uses,
    webs: Webs,
    nodes: Vec<Variance>,
    branches: Vec<Variance>,
    pending: VecDeque<u32>,
    queued: Vec<bool>,
    patience: usize,
}

impl Solver<'_> {
    fn run(&mut self, liveness: &Liveness) {
        while let Some(index) = self.pending.pop_front() {
            self.queued[index as usize] = false;
            let function = self.function;
            let instruction = &function.instructions[index as usize];
            if matches!(instruction.opcode, Opcode::Bra | Opcode::Brx) {
                self.branch(index, liveness);
                continue;
            }
            let known = |register: RegisterId| self.nodes[self.webs.read(index, register) as usize];
            let variance = result(self.program, function, self.uses, known, instruction);
            if variance > Variance::Block {
                function.writes(instruction, |register| self.raise(self.webs.written(index, register), variance));
            }
        }
    }

    fn raise(&mut self, node: u32, variance: Variance) {
        let mut raised = vec![node];
        while let Some(node) = raised.pop() {
            let known = &mut self.nodes[node as usize];
            if variance <= *known {
                continue;
            }
            *known = variance;
            let (readers, flows) = self.webs.followers(node, self.uses);
            for &reader in readers {
                if !std::mem::replace(&mut self.queued[reader as usize], true) {
                    self.pending.push_back(reader);
                }
            }
            raised.extend_from_slice(flows);
        }
    }

    /// A branch that parts threads makes what is written on either side, and alive where they meet, as variable.
    fn branch(&mut self, index: u32, liveness: &Liveness) {
        let (function, flow) = (self.function, &self.function.flow);
        let mut variance = Variance::Block;
        function.reads(&function.instructions[index as usize], |register| {
            variance = variance.max(self.nodes[self.webs.read(index, register) as usize]);
        });
        let block = flow.block_of(index);
        if variance <= self.branches[block.0 as usize] {
            return;
        }
        self.branches[block.0 as usize] = variance;
        let Some(meeting) = flow.block(block).post_dominator else { return };
        let alive = liveness.live_in(meeting);
        if alive.is_empty() {
            return;
        }
        let mut region = Vec::new();
        let mut pending = vec![block];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(next) = pending.pop() {
            flow.controlled_by(next, |controlled| {
                self.patience = self.patience.saturating_sub(1);
                if controlled != meeting && seen.insert(controlled) {
                    region.push(controlled);
                    pending.push(controlled);
                }
            });
            if self.patience == 0 {
                return;
            }
        }
        for block in region {
            for instruction in flow.block(block).instructions.clone() {
                self.patience = self.patience.saturating_sub(1);
                function.writes(&function.instructions[instruction as usize], |register| {
                    if alive.binary_search(&register.0).is_ok() {
                        self.raise(self.webs.at(meeting, register), variance);
                    }
                });
            }
        }
    }
}

/// The variance of what an instruction writes.
fn result(
    program: &Program,
    function: &Function,
    uses: &Uses,
    known: impl Fn(RegisterId) -> Variance,
    instruction: &Instruction,
) -> Variance {
    let form = program.form(instruction.form);
    let operands = function.operands_of(instruction);
    let mut read = Variance::Block;
    function.reads(instruction, |register| read = read.max(known(register)));
    match instruction.opcode {
        Opcode::Mov => read.max(special_variance(function, operands)),
        Opcode::Ld | Opcode::Ldu => load(function, form, operands).max(read),
        Opcode::Atom | Opcode::Match | Opcode::Elect | Opcode::Call | Opcode::Ldmatrix => Variance::Thread,
        Opcode::Wmma | Opcode::Mma | Opcode::Wgmma | Opcode::Tcgen05 | Opcode::Movmatrix => Variance::Thread,
        // A lane that all name alike gives one value to the warp.
        Opcode::Shfl if form.has(Word::Idx) => match operands.get(2) {
            Some(Operand::Integer(_)) => read.min(Variance::Warp),
            Some(Operand::Register(lane)) if known(*lane) <= Variance::Warp => read.min(Variance::Warp),
            _ => read,
        },
        Opcode::Vote | Opcode::Redux => read.min(Variance::Warp),
        Opcode::Activemask => Variance::Warp,
        // A reduction over the block.
        Opcode::Bar | Opcode::Barrier => Variance::Block,
        Opcode::Shr | Opcode::Bfe | Opcode::And | Opcode::Setp | Opcode::Div
            if by_warps(function, uses, form, operands) =>
        {
            read.min(Variance::Warp)
        }
        // Parts of a register other than `%tid` come with special registers among any operands.
        _ => read.max(special_variance(function, operands)),
    }
}

fn load(function: &Function, form: &Form, operands: &[Operand]) -> Variance {
    match (form.space, form.order) {
        // Another thread may write between two of these.
        (_, Some(Order::Volatile | Order::Relaxed | Order::Acquire | Order::Mmio)) => Variance::Thread,
        (Some(Space::Local), _) => Variance::Thread,
        (Some(Space::Parameter), _) if !function.entry => Variance::Thread,
        // What a call returned.
        (Some(Space::Parameter), _) => match operands.get(1) {
            Some(Operand::Address(Base::Symbol(super::function::Symbol::Local(_)), _)) => Variance::Thread,
            _ => Variance::Block,
        },
        _ => Variance::Block,
    }
}

fn special_variance(function: &Function, operands: &[Operand]) -> Variance {
    let mut variance = Variance::Block;
    for operand in operands {
        match operand {
            Operand::Special(special) => variance = variance.max(of_special(*special)),
            Operand::Vector(range) => {
                for operand in function.inside(range) {
                    if let Operand::Special(special) = operand {
                        variance = variance.max(of_special(*special));
                    }
                }
            }
            _ => {}
        }
    }
    variance
}

fn of_special(special: Special) -> Variance {
    use Special::*;
    match special {
        TidX | TidY | TidZ | Laneid | LanemaskEq | LanemaskLe | LanemaskLt | LanemaskGe | LanemaskGt => {
            Variance::Thread
        }
        Warpid | Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi => Variance::Warp,
        _ => Variance::Block,
    }
}

/// Whether an instruction takes of `%tid.x` only what a warp has in common: its quotient by a multiple of 32, or whether
/// it is below one.
fn by_warps(function: &Function, uses: &Uses, form: &Form, operands: &[Operand]) -> bool {
    let [_, Operand::Register(index), Operand::Integer(number), ..] = operands else { return false };
    if !is_thread_index(function, uses, *index) {
        return false;
    }
    match form.opcode {
        Opcode::Shr | Opcode::Bfe => *number >= 5,
        Opcode::And => number & 31 == 0,
        Opcode::Div => number % 32 == 0 && *number > 0,
        Opcode::Setp => match form.compare {
            Some(Compare::Less | Compare::Lower | Compare::GreaterEqual | Compare::HigherSame) => number % 32 == 0,
            Some(Compare::Greater | Compare::Higher | Compare::LessEqual | Compare::LowerSame) => number % 32 == 31,
            _ => false,
        },
        _ => false,
    }
}

/// Whether a register holds `%tid.x`.
fn is_thread_index(function: &Function, uses: &Uses, mut register: RegisterId) -> bool {
    // Copies of copies: a few, so that a chain of them costs nothing.
    for _ in 0..8 {
        let Some(writer) = uses.only_writer(register) else { return false };
        let writer = &function.instructions[writer as usize];
        if !matches!(writer.opcode, Opcode::Mov | Opcode::Cvt) || writer.guard.is_some() {
            return false;
        }
        match function.operands_of(writer) {
            [_, Operand::Special(Special::TidX)] => return true,
            [_, Operand::Register(source)] => register = *source,
            _ => return false,
        }
    }
    false
}
