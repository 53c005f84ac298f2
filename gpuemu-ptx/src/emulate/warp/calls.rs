//! Calls of functions and their ends.

use super::{Fragment, Join, NONE, State, Warp};
use crate::emulate::context::Context;
use crate::emulate::problem::Trouble;
use crate::emulate::registers::{Frame, LANES};

/// Rows of registers that all open calls of a warp may have: 32 MiB.
const MOST_ROWS: u32 = 1 << 18;

impl Warp {
    /// Lanes call a function: all that are active wait for each other behind the call.
    pub(super) fn call(
        &mut self,
        fragment: Fragment,
        active: u32,
        mask: u32,
        known: Option<u32>,
        list: i32,
        context: &mut Context<'_>,
    ) -> bool {
        let rest = active & !mask;
        let mut fragment = fragment;
        if rest != 0 {
            // The lanes that do not call wait behind it.
            let join = self.new_join(Join {
                place: fragment.place,
                expected: active,
                arrived: rest,
                parent: fragment.join,
                frame: fragment.frame,
                call: None,
            });
            fragment.join = join;
        }
        let mut groups: Vec<(u32, u32)> = Vec::new();
        match known {
            Some(routine) => groups.push((routine, mask)),
            None => {
                for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                    match groups.iter_mut().find(|(routine, _)| *routine == self.places[lane]) {
                        Some((_, lanes)) => *lanes |= 1 << lane,
                        None => groups.push((self.places[lane], 1 << lane)),
                    }
                }
                if groups.len() > 1 {
                    let join = self.new_join(Join {
                        place: fragment.place,
                        expected: mask,
                        arrived: 0,
                        parent: fragment.join,
                        frame: fragment.frame,
                        call: None,
                    });
                    fragment.join = join;
                }
            }
        }
        let code = context.code;
        let Some(caller) = code.routine_at(fragment.place) else { return false };
        for (routine, lanes) in groups.into_iter().rev() {
            let callee = &code.functions[routine as usize];
            let from = fragment.frame;
            let frame = Frame {
                row: from.row + caller.rows,
                predicate: from.predicate + caller.predicates,
                local: from.local + caller.local,
                depth: from.depth + 1,
            };
            let bytes = frame.local.saturating_add(callee.local);
            let rows = frame.row.saturating_add(callee.rows);
            let taken = (0..LANES).any(|lane| lanes >> lane & 1 != 0 && bytes > self.stack[lane]);
            if frame.depth > context.launch.depth || taken || rows > MOST_ROWS {
                context.trouble = Some(Trouble::StackOverflow { lane: lanes.trailing_zeros(), depth: frame.depth });
                return false;
            }
            let join = self.new_join(Join {
                place: fragment.place,
                expected: lanes,
                arrived: 0,
                parent: fragment.join,
                frame: from,
                call: Some((list, routine)),
            });
            if callee.local != 0
                && let Some(local) = &mut context.block.local
            {
                local.enter(self.index, lanes, frame.local.into(), callee.local.into());
            }
            self.registers.enter(frame, callee.rows, callee.predicates);
            self.registers.clear_rows(&callee.unwritten, lanes);
            self.registers.select(from);
            let count = code.lists[list as usize] as usize;
            for (argument, &to) in callee.parameters.iter().enumerate().take(count) {
                let row = code.lists[list as usize + 1 + 2 * argument];
                let rows = code.lists[list as usize + 2 + 2 * argument];
                for part in 0..rows {
                    let values = *self.registers.stored::<u32>(row + part);
                    // The callee's rows follow those of the caller.
                    self.registers.write::<u32>(caller.rows as i32 + to + part, &values, lanes);
                }
            }
            self.fragments.insert(0, Fragment { place: callee.start, lanes, join, frame, state: State::Ready });
        }
        true
    }

    /// Lanes return from a function, or leave the kernel where none was called.
    pub(super) fn give_back(&mut self, fragment: Fragment, lanes: u32, context: &mut Context<'_>) {
        let call = self.leave(lanes, fragment.join, true);
        if call == NONE {
            self.exit(lanes, context);
            return;
        }
        let join = &mut self.joins[call as usize];
        join.arrived |= lanes;
        if join.arrived == join.expected
            && let Some((list, routine)) = join.call
        {
            self.end_call(call, list, routine, context);
        }
    }

    /// All lanes of a call have returned: results are copied, and they go on behind it.
    pub(super) fn end_call(&mut self, index: u32, list: i32, routine: u32, context: &Context<'_>) {
        let join = self.joins[index as usize];
        self.spare.push(index);
        if join.expected == 0 {
            return;
        }
        let code = context.code;
        let callee = &code.functions[routine as usize];
        let Some(caller) = code.routine_at(join.place) else { return };
        self.registers.select(join.frame);
        let arguments = code.lists[list as usize] as usize;
        let results = list as usize + 1 + 2 * arguments;
        let count = code.lists[results] as usize;
        for (result, &from) in callee.returns.iter().enumerate().take(count) {
            let row = code.lists[results + 1 + 2 * result];
            let rows = code.lists[results + 2 + 2 * result];
            for part in 0..rows {
                let values = *self.registers.stored::<u32>(caller.rows as i32 + from + part);
                self.registers.write::<u32>(row + part, &values, join.expected);
            }
        }
        self.go_on(join);
    }
}
