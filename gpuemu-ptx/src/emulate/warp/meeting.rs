//! Lanes that wait for each other: at instructions of several lanes, and at barriers of the block.

use super::{Arrival, Fragment, Outcome, Reduction, State, Wanted, Warp};
use crate::emulate::context::Context;
use crate::emulate::effects::Effect;
use crate::emulate::op::Signal;
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;

impl Fragment {
    /// Its first lane, by which the warp keeps what it waits for.
    fn first(&self) -> usize {
        self.lanes.trailing_zeros() as usize % LANES
    }
}

impl Warp {
    /// Executes an instruction that needs several lanes, where all that can come are there.
    pub(super) fn gather(&mut self, place: u32, context: &mut Context<'_>) -> Result<(), Outcome> {
        let code = context.code;
        let Some(first) = self
            .fragments
            .iter()
            .find(|fragment| fragment.place == place && fragment.state == State::Gathering)
            .copied()
        else {
            return Ok(());
        };
        let gathering = self.gathering;
        let needs = |fragment: &Fragment| gathering[fragment.first()];
        let Wanted { lanes: wanted, anywhere } = needs(&first);
        let together = |fragment: &Fragment, first: &Fragment| {
            fragment.state == State::Gathering
                && needs(fragment) == needs(first)
                && (anywhere || fragment.place == first.place && fragment.frame == first.frame)
        };
        let lanes = self.fragments.iter().filter(|fragment| together(fragment, &first)).fold(0, |all, x| all | x.lanes);
        if wanted & self.alive & !lanes != 0 {
            return Ok(());
        }
        if !anywhere {
            let op = &code.ops[place as usize];
            self.registers.select(first.frame);
            let mask = lanes & self.registers.truth(op.guard);
            self.active = lanes;
            // Whatever it does, it is not looked into.
            context.changes += u64::from(code.effects[place as usize] != Effect::None);
            // SAFETY: as in `run_fragment`.
            let signal = unsafe { (op.run)(self, context, op, mask) };
            if signal == Signal::Gather {
                self.absent(mask, wanted, context);
            }
            if signal != Signal::Next {
                self.stopped = place;
                return Err(Outcome::Fault);
            }
        }
        if anywhere && let Some(shadow) = &mut context.shadow {
            shadow.warp_sync(self.index, lanes);
        }
        let mut merged: Option<usize> = None;
        let mut index = 0;
        while index < self.fragments.len() {
            if together(&self.fragments[index], &first) {
                let fragment = &mut self.fragments[index];
                fragment.state = State::Ready;
                fragment.place += 1;
                let fragment = *fragment;
                // Lanes that wait at the same join go on together.
                match merged.map(|at| &mut self.fragments[at]) {
                    Some(into) if into.join == fragment.join && into.place == fragment.place => {
                        into.lanes |= fragment.lanes;
                        self.fragments.remove(index);
                        continue;
                    }
                    _ => merged = Some(index),
                }
            }
            index += 1;
        }
        Ok(())
    }

    fn absent(&self, present: u32, named: u32, context: &mut Context<'_>) {
        let lane = present.trailing_zeros().min(31);
        context.trouble = Some(Trouble::AbsentLanes { lane, named, present });
    }

    /// No fragment can run: brings lanes together that wait for each other, or says how it ended.
    pub(super) fn unblock(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if self.fragments.is_empty() {
            return Some(Outcome::Finished);
        }
        if let [fragment] = &self.fragments[..]
            && fragment.state == State::Waiting
        {
            return Some(Outcome::Blocked);
        }
        // Lanes that left since are waited for no more.
        for index in 0..self.fragments.len() {
            if self.fragments[index].state == State::Gathering {
                let place = self.fragments[index].place;
                if let Err(outcome) = self.gather(place, context) {
                    return Some(outcome);
                }
                if self.fragments.iter().any(|fragment| fragment.state == State::Ready) {
                    return None;
                }
            }
        }
        let arrivals = self.arrivals;
        let assembling =
            |fragment: &Fragment| (fragment.state == State::Assembling).then(|| arrivals[fragment.first()]);
        if let Some(arrival) = self.fragments.iter().find_map(assembling) {
            let same = |fragment: &Fragment| assembling(fragment).is_some_and(|other| other.place == arrival.place);
            let lanes = self.fragments.iter().filter(|fragment| same(fragment)).fold(0, |all, one| all | one.lanes);
            // Those that wait for the others only to leave with them have left: an early return is no fault.
            let missing = self.alive & !lanes;
            let leaving = (0..).zip(&self.joins).fold(0, |all, (index, join)| {
                let ends = join.call.is_none() && context.code.ends.contains(&join.place);
                if ends && !self.spare.contains(&index) { all | join.arrived } else { all }
            });
            if missing != 0 && missing & !leaving == 0 {
                self.exit(missing, context);
                return None;
            }
            if missing != 0 {
                context.trouble =
                    Some(Trouble::DivergentBarrier { lane: lanes.trailing_zeros(), present: lanes, alive: self.alive });
                self.stopped = arrival.place;
                return Some(Outcome::Fault);
            }
            let truths = self.fragments.iter().filter_map(assembling).fold(0, |all, one| all | one.truths);
            let arrival = Arrival { truths, ..arrival };
            context.arrive(&arrival, lanes, self.index);
            for fragment in self.fragments.iter_mut().filter(|fragment| same(fragment)) {
                fragment.state = if arrival.waits { State::Waiting } else { State::Ready };
                self.arrivals[fragment.first()] = arrival;
            }
            return if arrival.waits { Some(Outcome::Blocked) } else { None };
        }
        if let Some(fragment) = self.fragments.iter().find(|one| one.state == State::Gathering) {
            // Lanes at a barrier of the block may come once it opens, unless the warp's own lanes keep it shut.
            let (place, lanes, wanted) = (fragment.place, fragment.lanes, self.gathering[fragment.first()].lanes);
            let at_barrier = self.fragments.iter().any(|one| one.state == State::Waiting);
            if !at_barrier {
                self.absent(lanes, wanted, context);
                self.stopped = place;
                return Some(Outcome::Fault);
            }
        }
        Some(Outcome::Blocked)
    }

    /// A barrier of the block opened: lanes that waited there go on.
    pub fn open(&mut self, barrier: u32, result: u32) {
        if let [fragment] = &mut self.fragments[..] {
            let arrival = &self.arrivals[fragment.first()];
            if fragment.state != State::Waiting || arrival.barrier != barrier {
                return;
            }
            if arrival.reduction == Reduction::None {
                fragment.state = State::Ready;
                return;
            }
        }
        for index in 0..self.fragments.len() {
            let fragment = self.fragments[index];
            let arrival = self.arrivals[fragment.first()];
            if fragment.state != State::Waiting || arrival.barrier != barrier {
                continue;
            }
            self.fragments[index].state = State::Ready;
            if arrival.reduction != Reduction::None && arrival.result != 0 {
                self.registers.select(fragment.frame);
                match arrival.reduction {
                    Reduction::Count => {
                        self.registers.write::<u32>(arrival.result - 1, &[result; LANES], fragment.lanes);
                    }
                    _ => {
                        let truth = 0u32.wrapping_sub(result & 1);
                        self.registers.set_truth(arrival.result, truth, fragment.lanes);
                    }
                }
            }
        }
        // Lanes that came to the barrier apart and have nothing between them go on together.
        let mut index = 1;
        while index < self.fragments.len() {
            let (a, b) = (self.fragments[index - 1], self.fragments[index]);
            let same = a.place == b.place && a.join == b.join && a.frame == b.frame;
            if same && a.state == State::Ready && b.state == State::Ready {
                self.fragments[index - 1].lanes |= b.lanes;
                self.fragments.remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// The first lane that waits for a barrier of the block, and how it arrived.
    pub fn waiting(&self) -> Option<(u32, Arrival)> {
        let fragment = self.fragments.iter().find(|fragment| fragment.state == State::Waiting)?;
        Some((fragment.first() as u32, self.arrivals[fragment.first()]))
    }
}
