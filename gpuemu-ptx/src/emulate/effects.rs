//! What an instruction changes beside registers, or sees of what others change: asked where it is to be known whether
//! threads do nothing but wait.

use super::code::Origin;
use super::op::Op;
use super::ops::memory::moved;
use super::registers::LANES;
use super::warp::Warp;
use crate::fault::Action;
use crate::program::{Callee, Function, Instruction, Opcode, Operand, Program, Space, Special};

/// What an operation changes or sees beside what belongs to its warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// An access to memory.
    Access(Touch),
    /// What is not looked into: a clock, a call of the system, an asynchronous copy.
    Unknown,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The memory; `None`: as the address says.
    pub space: Option<Space>,
    /// Bytes of a lane, a power of two up to 32.
    pub bytes: u32,
    /// Whether the address has 32 bits.
    pub narrow: bool,
    /// What is added to the operation's register `a`.
    pub offset: u64,
    /// What is done.
    pub action: Action,
    /// Whether it is an access that may wait for others: ordered or volatile.
    pub ordered: bool,
}

impl Touch {
    /// The addresses of all lanes.
    pub fn addresses(&self, warp: &Warp, op: &Op) -> [u64; LANES] {
        if self.narrow {
            let base = warp.registers.stored::<u32>(op.a);
            return base.map(|base| u64::from(base.wrapping_add(self.offset as u32)));
        }
        moved(warp.registers.stored::<u64>(op.a), self.offset)
    }
}

/// The effects of all operations: `touches` are those that access memory, in order.
pub fn effects(program: &Program, origins: &[Origin], touches: &[(u32, Touch)]) -> Vec<Effect> {
    let mut effects: Vec<Effect> = origins
        .iter()
        .map(|origin| {
            let function = program.function(origin.function);
            let instruction = function.instructions.get(origin.instruction as usize);
            instruction.map_or(Effect::None, |instruction| of(program, function, instruction))
        })
        .collect();
    for &(at, touch) in touches {
        // What else the instruction became works out its address, or takes apart what it got.
        let origin = origins[at as usize];
        let before = (0..at as usize).rev().take_while(|&before| origins[before] == origin);
        let after = (at as usize..origins.len()).take_while(|&after| origins[after] == origin);
        for place in before.chain(after) {
            if effects[place] == Effect::Unknown {
                effects[place] = Effect::None;
            }
        }
        effects[at as usize] = Effect::Access(touch);
    }
    effects
}

fn of(program: &Program, function: &Function, instruction: &Instruction) -> Effect {
    use Opcode::*;
    let unknown = match instruction.opcode {
        // Those that store; `touches` knows better where they do it here and now.
        St => program.form(instruction.form).space != Some(Space::Parameter),
        Atom | Red | Cp | Stmatrix | Wmma | Mbarrier => true,
        // Which lanes are together is up to the hardware.
        Activemask | Elect => true,
        Call => match function.call(instruction).map(|call| call.callee) {
            Some(Callee::Direct(callee)) => !program.function(callee).defined,
            Some(_) => false,
            None => true,
        },
        Griddepcontrol | Pmevent | Clusterlaunchcontrol | Multimem | Setmaxnreg | Tcgen05 | Tensormap | Wgmma => true,
        _ => function.operands_of(instruction).iter().any(|operand| is_clock(function, operand)),
    };
    if unknown { Effect::Unknown } else { Effect::None }
}

fn is_clock(function: &Function, operand: &Operand) -> bool {
    use Special::*;
    match operand {
        Operand::Special(special) => {
            matches!(special, Clock | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi)
        }
        Operand::Vector(range) => function.inside(range).iter().any(|operand| is_clock(function, operand)),
        _ => false,
    }
}
