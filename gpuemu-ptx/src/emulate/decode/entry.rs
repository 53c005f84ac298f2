//! What is worked out before the first instruction of an entry: who wants what loads give, where that never changes.

use rustc_hash::FxHashMap;

use super::{Decoder, Refusal};
use crate::emulate::code::Origin;
use crate::emulate::demand::Wanted;
use crate::emulate::invariant::Invariants;
use crate::emulate::op::Op;
use crate::emulate::ops;
use crate::program::{FunctionId, Guard, Instruction, Opcode, RegisterId, Space, Word};

/// Instructions that are executed before the first of an entry, at most.
const MOST: usize = 64;

/// Why an instruction is refused: its line, its text and the reason.
type Refused = (u32, String, Refusal);

impl Decoder<'_> {
    /// Finds for each load of the function which lanes want what it gives.
    pub(super) fn demands_of_loads(&mut self, id: FunctionId) -> Result<(), Refused> {
        self.wanted.clear();
        if !self.settings.watched {
            return Ok(());
        }
        let (program, function) = (self.program, self.function);
        let is_butterfly = |instruction: &Instruction| program.form(instruction.form).has(Word::Bfly);
        let mut invariants = Invariants::new(program, function, &self.uses);
        let (mut steps, mut decided) = (Vec::new(), Vec::new());
        for (at, instruction) in (0..).zip(&function.instructions) {
            let watched = program.form(instruction.form).space != Some(Space::Parameter);
            if !matches!(instruction.opcode, Opcode::Ld | Opcode::Ldu) || !watched {
                continue;
            }
            let Some(wanted) = self.uses.wanted(function, at, is_butterfly) else { continue };
            if let Some(guard) = self.uses.settled(function, at, &wanted) {
                self.wanted.insert(at, (self.truth_of(guard), wanted.across));
            } else if function.entry
                && let Some(guards) = deciding(&mut invariants, &wanted, &mut steps)
            {
                decided.push((at, guards, wanted.across));
            }
        }
        self.origin = Origin { function: id, instruction: 0 };
        self.work_out(&steps, &decided)
    }

    fn truth_of(&self, guard: Guard) -> i32 {
        let slot = self.slot(guard.register);
        if guard.negated { !slot } else { slot }
    }

    /// Executes instructions on copies of their registers, and keeps for every load whether one of its predicates holds.
    fn work_out(&mut self, steps: &[u32], decided: &[(u32, Vec<Guard>, u8)]) -> Result<(), Refused> {
        let function = self.function;
        let mut own: Vec<(RegisterId, i32)> = Vec::new();
        for &at in steps {
            let instruction = &function.instructions[at as usize];
            function.writes(instruction, |register| {
                own.push((register, self.slot(register)));
                self.layout.slots[register.0 as usize] = self.layout.place(function.register(register).ty);
            });
            self.form = self.program.form(instruction.form);
            self.operands = function.operands_of(instruction);
            (self.guard, self.temporaries, self.temporary_predicates) = (0, 0, 0);
            let refused = |reason| (instruction.line, self.form.text.to_string(), reason);
            ops::decode(self).map_err(refused)?;
            for op in std::mem::take(&mut self.after) {
                self.emit(op);
            }
        }
        self.guard = 0;
        let mut made: FxHashMap<Vec<i32>, i32> = FxHashMap::default();
        for (at, guards, across) in decided {
            let truths: Vec<i32> = guards.iter().map(|&guard| self.truth_of(guard)).collect();
            let mut rest = truths.iter().copied();
            let mut lanes = rest.next().unwrap_or(0);
            if let Some(&known) = made.get(&truths) {
                lanes = known;
            } else if truths.len() > 1 {
                let d = self.layout.place(crate::program::ScalarType::Predicate);
                for b in rest {
                    self.emit(Op { d, a: lanes, b, ..ops::logic::either(self) });
                    lanes = d;
                }
                made.insert(truths, lanes);
            }
            self.wanted.insert(*at, (lanes, *across));
        }
        for (register, slot) in own.into_iter().rev() {
            self.layout.slots[register.0 as usize] = slot;
        }
        Ok(())
    }
}

/// The predicates that decide over a load; `steps` is what has to be worked out for them and for those before.
fn deciding(invariants: &mut Invariants<'_>, wanted: &Wanted, steps: &mut Vec<u32>) -> Option<Vec<Guard>> {
    let guards = invariants.deciding(wanted)?;
    let before = steps.len();
    for guard in &guards {
        invariants.steps(guard.register, steps, MOST);
    }
    if steps.len() > MOST {
        steps.truncate(before);
        return None;
    }
    Some(guards)
}
