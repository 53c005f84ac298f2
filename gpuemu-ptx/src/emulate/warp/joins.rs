//! Where lanes part and meet again.

use super::{Fragment, Join, NONE, State, Warp};
use crate::emulate::code::NOWHERE;
use crate::emulate::context::Context;

impl Warp {
    pub(super) fn new_join(&mut self, join: Join) -> u32 {
        match self.spare.pop() {
            Some(index) => {
                self.joins[index as usize] = join;
                index
            }
            None => {
                self.joins.push(join);
                self.joins.len() as u32 - 1
            }
        }
    }

    /// Lanes part: each part goes on by itself, and all meet at `meeting`.
    pub(super) fn part(&mut self, fragment: Fragment, lanes: u32, parts: &[(u32, u32)], meeting: u32) {
        if let [(place, _)] = *parts {
            self.fragments.insert(0, Fragment { place, lanes, ..fragment });
            return;
        }
        let mut join = fragment.join;
        if meeting != NOWHERE && self.stop(join) != meeting {
            join = self.new_join(Join {
                place: meeting,
                expected: lanes,
                arrived: 0,
                parent: fragment.join,
                frame: fragment.frame,
                call: None,
            });
        }
        for &(place, lanes) in parts.iter().rev() {
            if place == meeting {
                self.joins[join as usize].arrived |= lanes;
            } else {
                // Newest first: the parts run before whatever waits elsewhere.
                self.fragments.insert(0, Fragment { place, lanes, join, state: State::Ready, ..fragment });
            }
        }
        if meeting != NOWHERE {
            self.settle(join);
        }
    }

    /// Lets a join's lanes go on where all have come.
    fn settle(&mut self, index: u32) {
        let join = self.joins[index as usize];
        if join.expected == 0 {
            self.spare.push(index);
            return;
        }
        if join.arrived == join.expected {
            self.spare.push(index);
            self.go_on(join);
        }
    }

    /// The lanes of a join are together, and go on behind it before whatever waits elsewhere.
    pub(super) fn go_on(&mut self, join: Join) {
        self.fragments.insert(
            0,
            Fragment {
                place: join.place,
                lanes: join.expected,
                join: join.parent,
                frame: join.frame,
                state: State::Ready,
            },
        );
    }

    /// A fragment has run for long: others go first, and lanes that wait for it at joins wait no longer.
    pub(super) fn give_way(&mut self, fragment: Fragment, lanes: u32) {
        let mut next = fragment.join;
        while next != NONE {
            let join = self.joins[next as usize];
            if join.arrived != 0 && join.call.is_none() {
                self.joins[next as usize].expected &= !join.arrived;
                self.joins[next as usize].arrived = 0;
                self.fragments.push(Fragment {
                    place: join.place,
                    lanes: join.arrived,
                    join: join.parent,
                    frame: join.frame,
                    state: State::Ready,
                });
            }
            next = join.parent;
        }
        self.fragments.push(Fragment { lanes, state: State::Ready, ..fragment });
    }

    /// Lanes leave all joins up to that of their call, or all.
    pub(super) fn leave(&mut self, lanes: u32, from: u32, to_call: bool) -> u32 {
        let mut next = from;
        while next != NONE {
            let join = &mut self.joins[next as usize];
            if to_call && join.call.is_some() {
                return next;
            }
            join.expected &= !lanes;
            join.arrived &= !lanes;
            let parent = join.parent;
            self.settle(next);
            next = parent;
        }
        NONE
    }

    /// Lanes leave the kernel.
    pub(super) fn exit(&mut self, lanes: u32, context: &mut Context<'_>) {
        self.alive &= !lanes;
        // The lanes may be expected at joins of every fragment that they came from.
        for index in 0..self.joins.len() as u32 {
            if self.spare.contains(&index) {
                continue;
            }
            let join = &mut self.joins[index as usize];
            if join.expected & lanes != 0 {
                join.expected &= !lanes;
                join.arrived &= !lanes;
                match join.call {
                    // The end of a call is reached by its lanes, or by none.
                    Some((list, routine)) if join.arrived == join.expected => {
                        self.end_call(index, list, routine, context)
                    }
                    Some(_) => {}
                    None => self.settle(index),
                }
            }
        }
        context.left(lanes);
    }
}
