//! How many values are needed at one time.

use super::Place;
use crate::flow::Liveness;
use crate::program::{Callee, Function, FunctionId, Program, RegisterId};

/// The point of a kernel where the most registers hold values that will still be read.
///
/// This is a property of the program, not the register count of a compiled kernel: `ptxas` orders instructions anew,
/// computes cheap values again instead of keeping them, and rounds up. It grows where a change makes a kernel keep more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Values of up to 32 bits, twice those of 64, four times those of 128; predicates are not among them.
    pub registers: u32,
    /// Predicates alive there.
    pub predicates: u32,
    /// Values of 16 bits or less alive there. Each takes a register.
    pub bits16: u32,
    /// Values of 32 bits alive there.
    pub bits32: u32,
    /// Values of 64 bits alive there.
    pub bits64: u32,
    /// Values of 128 bits alive there.
    pub bits128: u32,
    /// Where that is; `None` for a function without instructions.
    pub place: Option<Place>,
}

impl Pressure {
    fn change(&mut self, function: &Function, register: RegisterId, by: i32) {
        let (class, registers) = match function.register(register).ty.bits() {
            1 => (&mut self.predicates, 0),
            0..=16 => (&mut self.bits16, 1),
            17..=32 => (&mut self.bits32, 1),
            33..=64 => (&mut self.bits64, 2),
            _ => (&mut self.bits128, 4),
        };
        *class = class.wrapping_add_signed(by);
        self.registers = self.registers.wrapping_add_signed(by * registers);
    }

    fn with(mut self, callee: Self) -> Self {
        self.registers += callee.registers;
        self.predicates += callee.predicates;
        self.bits16 += callee.bits16;
        self.bits32 += callee.bits32;
        self.bits64 += callee.bits64;
        self.bits128 += callee.bits128;
        self
    }
}

/// The widest point of a function; `called` has that of every function it calls, by number.
pub(super) fn widest(
    program: &Program,
    id: FunctionId,
    liveness: &Liveness,
    called: &rustc_hash::FxHashMap<FunctionId, Pressure>,
) -> Pressure {
    let function = program.function(id);
    let flow = &function.flow;
    let mut widest = Pressure::default();
    let mut live = vec![false; function.registers.len()];
    let mut touched = Vec::new();
    for &block in &flow.order {
        let mut now = Pressure::default();
        let mut widest_here = Pressure::default();
        for register in liveness.live_out(flow, block) {
            live[register as usize] = true;
            touched.push(register);
            now.change(function, RegisterId(register), 1);
        }
        for index in flow.block(block).instructions.clone().rev() {
            let instruction = &function.instructions[index as usize];
            // What is written needs its register even if nothing reads it, at the same time as what lives on.
            let mut after = now;
            function.writes(instruction, |register| {
                let alive = &mut live[register.0 as usize];
                if !*alive {
                    after.change(function, register, 1);
                } else if liveness.replaces(function, index, register.0) {
                    *alive = false;
                    now.change(function, register, -1);
                }
            });
            // While a callee runs, what lives on here stays.
            let during = function.call(instruction).map(|call| match call.callee {
                Callee::Direct(callee) => called.get(&callee).copied().unwrap_or_default(),
                Callee::OneOf(_, callees) => callees
                    .iter()
                    .filter_map(|callee| called.get(callee))
                    .max_by_key(|pressure| pressure.registers)
                    .copied()
                    .unwrap_or_default(),
                Callee::Any(..) => Pressure::default(),
            });
            let during = during.map(|callee| now.with(callee));
            function.reads(instruction, |register| {
                let alive = &mut live[register.0 as usize];
                if !*alive {
                    *alive = true;
                    touched.push(register.0);
                    now.change(function, register, 1);
                }
            });
            for candidate in [Some(after), during, Some(now)].into_iter().flatten() {
                // From the end of the block to its beginning: of equals the first in the text stays.
                if candidate.registers >= widest_here.registers {
                    widest_here = Pressure { place: Some(Place::new(program, id, index)), ..candidate };
                }
            }
        }
        if widest_here.registers > widest.registers || widest.place.is_none() {
            widest = widest_here;
        }
        for register in touched.drain(..) {
            live[register as usize] = false;
        }
    }
    widest
}
