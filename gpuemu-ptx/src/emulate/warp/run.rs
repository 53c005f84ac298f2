//! The loop that runs the lanes of a warp.

use super::watch::{FIRST_LOOK, FIRST_OF_MANY, LOOK};
use super::{Arrival, Fragment, NONE, Outcome, State, Wanted, Warp};
use crate::emulate::code::NOWHERE;
use crate::emulate::context::Context;
use crate::emulate::copies::Copies;
use crate::emulate::op::{Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::{FULL, Frame, LANES, Registers};

/// Instructions that a fragment may run while others of its warp could.
const PATIENCE: u64 = 1 << 14;

impl Warp {
    /// Warp `index` of a worker, for any block.
    pub fn new(index: u32, context: &Context<'_>) -> Self {
        let block = context.launch.block;
        let thread = |lane: usize| index * LANES as u32 + lane as u32;
        Self {
            registers: Registers::new(&context.code.constants),
            carry: 0,
            index,
            alive: 0,
            tid: [
                std::array::from_fn(|lane| thread(lane) % block[0]),
                std::array::from_fn(|lane| thread(lane) / block[0] % block[1]),
                std::array::from_fn(|lane| thread(lane) / (block[0] * block[1])),
            ],
            stack: [0; LANES],
            places: [0; LANES],
            wanted: Wanted::default(),
            copies: Copies::default(),
            active: 0,
            stopped: 0,
            still: 0,
            polls: Vec::new(),
            turned: false,
            next_look: 0,
            between_looks: 0,
            looks: LOOK,
            fragments: Vec::new(),
            joins: Vec::new(),
            spare: Vec::new(),
            gathering: [Wanted::default(); LANES],
            arrivals: [Arrival::default(); LANES],
        }
    }

    /// Sends its lanes to the beginning of the entry, for the next block.
    pub fn start(&mut self, context: &Context<'_>) {
        let lanes = (context.launch.threads() - self.index * LANES as u32).min(LANES as u32);
        self.alive = if lanes == 32 { FULL } else { (1 << lanes) - 1 };
        self.carry = 0;
        self.stack = [context.launch.local; LANES];
        self.copies.clear();
        self.still = 0;
        self.polls.clear();
        let first_look = if context.has_waited { FIRST_OF_MANY } else { FIRST_LOOK };
        self.looks = LOOK;
        (self.next_look, self.between_looks) = (first_look, first_look);
        self.joins.clear();
        self.spare.clear();
        self.fragments.clear();
        let entry = &context.code.functions[0];
        let frame = Frame::default();
        self.registers.clear();
        self.registers.enter(frame, entry.rows, entry.predicates);
        self.registers.clear_rows(&entry.unwritten, FULL);
        self.fragments.push(Fragment { place: 0, lanes: self.alive, join: NONE, frame, state: State::Ready });
    }

    /// Runs it until it cannot go on, or for about `slice` instructions.
    pub fn run(&mut self, context: &mut Context<'_>, slice: u64) -> Outcome {
        let start = context.steps;
        // Nothing is known of what it does.
        context.changes += 1;
        self.still = 0;
        loop {
            let Some(index) = self.fragments.iter().position(|fragment| fragment.state == State::Ready) else {
                match self.unblock(context) {
                    Some(outcome) => return outcome,
                    None => continue,
                }
            };
            // Field by field: the host waits where a copy of the whole reads across what was written in parts.
            let Fragment { place, lanes, join, frame, state } = self.fragments[index];
            match self.fragments.len() {
                // A warp that is whole has one.
                1 => self.fragments.clear(),
                _ => _ = self.fragments.remove(index),
            }
            self.registers.select(frame);
            let fragment = Fragment { place, lanes, join, frame, state };
            match self.run_fragment::<false>(fragment, context) {
                Ok(()) if std::mem::take(&mut self.turned) => match self.look(context) {
                    None => {}
                    Some(outcome) => return outcome,
                },
                Ok(()) => {}
                Err(outcome) => return outcome,
            }
            if context.steps - start > slice {
                return if self.fragments.is_empty() { Outcome::Finished } else { Outcome::Paused };
            }
        }
    }

    /// Runs one fragment until it ends, parts with its parts put aside, waits, or has run for long; where it is watched,
    /// until it comes back to the beginning of a loop.
    pub(super) fn run_fragment<const WATCHED: bool>(
        &mut self,
        mut fragment: Fragment,
        context: &mut Context<'_>,
    ) -> Result<(), Outcome> {
        let code = context.code;
        let ops = &code.ops[..];
        let fast = &code.native.ops[..];
        let mut place = fragment.place;
        let mut active = fragment.lanes;
        self.active = active;
        let mut stop = self.stop(fragment.join);
        let (begun, changes) = (context.steps, context.changes);
        // From here on something is to be done where a loop begins again.
        let pause = context.limit.min(begun + PATIENCE + 1).min(self.next_look);
        let mut since = place;
        loop {
            if place == stop {
                context.steps += u64::from(place.wrapping_sub(since));
                let join = &mut self.joins[fragment.join as usize];
                join.arrived |= active;
                if join.arrived != join.expected {
                    return Ok(());
                }
                active = join.expected;
                self.active = active;
                let done = fragment.join;
                fragment.join = join.parent;
                self.spare.push(done);
                stop = self.stop(fragment.join);
                since = place;
                continue;
            }
            // SAFETY: the decoder picked functions for this host, and the warp's frames are those of this code.
            let run = |warp: &mut Self, context: &mut _, op: &Op, mask| unsafe { (op.run)(warp, context, op, mask) };
            let mut op = &ops[place as usize];
            let mut mask = active;
            let mut signal = Signal::Next;
            // Up to the next guard, or to the join, nothing is asked between two instructions.
            let free = code.native.free[place as usize];
            let free = if stop > place { free.min(stop) } else { free };
            if WATCHED {
                mask &= self.registers.truth(op.guard);
                place += 1;
                if mask != 0 {
                    signal = self.execute_watched(context, place - 1, mask);
                    if signal == Signal::Next && context.changes != changes {
                        // That is all that was to be known.
                        context.steps += u64::from(place.wrapping_sub(since));
                        self.fragments.push(Fragment { place, lanes: active, state: State::Ready, ..fragment });
                        return Ok(());
                    }
                }
            } else if place < free {
                while place < free {
                    op = &fast[place as usize];
                    place += 1;
                    signal = run(self, context, op, active);
                    if signal == Signal::Run {
                        // They end before the next guard and the next join.
                        place += op.d as u32 - 1;
                        signal = Signal::Next;
                    } else if signal != Signal::Next {
                        break;
                    }
                }
            } else {
                mask &= self.registers.truth(op.guard);
                place += 1;
                if mask != 0 {
                    signal = run(self, context, op, mask);
                }
            }
            if signal == Signal::Next {
                continue;
            }
            if signal == Signal::Branch && mask == active {
                let target = op.d as u32;
                context.steps += u64::from(place.wrapping_sub(since));
                if target < place && (WATCHED || context.steps >= pause) {
                    let fragment = Fragment { place: target, lanes: active, ..fragment };
                    return self.turned::<WATCHED>(fragment, place - 1, begun, context);
                }
                place = target;
                since = place;
                continue;
            }
            context.steps += u64::from(place.wrapping_sub(since));
            return self.after(Fragment { place, lanes: active, ..fragment }, op, (mask, signal), context);
        }
    }

    /// Does what an operation asks for that ends the run of a fragment, which stands behind it: some of its lanes go
    /// elsewhere, wait, leave, or have found something wrong.
    fn after(
        &mut self,
        fragment: Fragment,
        op: &Op,
        (mask, signal): (u32, Signal),
        context: &mut Context<'_>,
    ) -> Result<(), Outcome> {
        let Fragment { place, lanes: active, .. } = fragment;
        let rest = active & !mask;
        match signal {
            Signal::Barrier => {
                if rest != 0 {
                    self.fragments.push(Fragment { lanes: rest, ..fragment });
                }
                let fragment = Fragment { lanes: mask, ..fragment };
                let arrival = &mut self.arrivals[mask.trailing_zeros() as usize % LANES];
                arrival.place = place - 1;
                let waits = arrival.waits;
                if arrival.aligned && mask != self.alive {
                    self.fragments.push(Fragment { state: State::Assembling, ..fragment });
                    return Ok(());
                }
                context.arrive(arrival, mask, self.index);
                let alone = self.fragments.is_empty();
                let state = if waits { State::Waiting } else { State::Ready };
                self.fragments.push(Fragment { state, ..fragment });
                return if waits && alone { Err(Outcome::Blocked) } else { Ok(()) };
            }
            Signal::Branch => {
                let target = op.d as u32;
                // The part that stays closer to the beginning goes first: loops before what follows them.
                let parts =
                    if target < place { [(target, mask), (place, rest)] } else { [(place, rest), (target, mask)] };
                self.part(fragment, active, &parts, op.e as u32);
            }
            Signal::Indirect => {
                let mut parts: Vec<(u32, u32)> = Vec::new();
                if rest != 0 {
                    parts.push((place, rest));
                }
                for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                    match parts.iter_mut().find(|(target, _)| *target == self.places[lane]) {
                        Some((_, lanes)) => *lanes |= 1 << lane,
                        None => parts.push((self.places[lane], 1 << lane)),
                    }
                }
                self.part(fragment, active, &parts, op.e as u32);
            }
            Signal::Call | Signal::IndirectCall => {
                let known = (signal == Signal::Call).then_some(op.d as u32);
                if !self.call(fragment, active, mask, known, op.c, context) {
                    self.stopped = place - 1;
                    return Err(Outcome::Fault);
                }
            }
            Signal::Return | Signal::Exit => {
                self.stopped = place - 1;
                if rest != 0 {
                    self.fragments.push(Fragment { lanes: rest, ..fragment });
                }
                match signal {
                    Signal::Return => self.give_back(fragment, mask, context),
                    _ => self.exit(mask, context),
                }
            }
            Signal::Gather => {
                self.gathering[active.trailing_zeros() as usize % LANES] = self.wanted;
                self.fragments.push(Fragment { place: place - 1, state: State::Gathering, ..fragment });
                return self.gather(place - 1, context);
            }
            Signal::Yield => {
                self.fragments.push(Fragment { state: State::Ready, ..fragment });
                return Err(Outcome::Paused);
            }
            Signal::Fault | Signal::Run | Signal::Next => {
                self.stopped = place - 1;
                return Err(Outcome::Fault);
            }
        }
        Ok(())
    }

    /// It has run more than it may.
    pub(super) fn ran_away(&mut self, lane: u32, place: u32, context: &mut Context<'_>) -> Outcome {
        context.trouble = Some(Trouble::Runaway { lane, budget: context.launch.budget });
        self.stopped = place;
        Outcome::Fault
    }

    /// Where a fragment with this join stops.
    pub(super) fn stop(&self, join: u32) -> u32 {
        match self.joins.get(join as usize) {
            Some(join) if join.call.is_none() => join.place,
            _ => NOWHERE,
        }
    }

    /// The next instruction of the lanes that come first.
    pub fn place(&self) -> u32 {
        self.fragments.first().map_or(0, |fragment| fragment.place)
    }

    /// Whether all lanes have left.
    pub fn is_finished(&self) -> bool {
        self.fragments.is_empty()
    }
}
