//! One warp: its lanes, where they are, and the loop that runs them.
//!
//! Lanes that are at the same place with the same calls open form a fragment. Where a branch parts them, they wait for
//! each other at the branch's immediate post-dominator (a join), so that a warp is whole again as soon as it can be. A
//! fragment that runs for long while others wait gives way, and then lanes that wait at its join go on without it: no
//! lane can keep another from running for ever.

use super::code::NOWHERE;
use super::context::Context;
use super::op::Signal;
use super::problem::Trouble;
use super::registers::{FULL, Frame, LANES, Registers};

/// Instructions that a fragment may run while others of its warp could.
const PATIENCE: u64 = 1 << 14;

/// Rows of registers that all open calls of a warp may have: 32 MiB.
const MOST_ROWS: u32 = 1 << 18;

/// No join.
const NONE: u32 = u32::MAX;

/// Lanes at one place.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// Their next instruction.
    pub place: u32,
    /// The lanes.
    pub lanes: u32,
    /// The join where they wait for others.
    join: u32,
    /// Their registers.
    pub frame: Frame,
    /// What they wait for.
    state: State,
}

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing.
    Ready,
    /// Lanes that must execute the instruction with them; at any place for `bar.warp.sync`.
    Gathering { wanted: u32, anywhere: bool },
    /// The rest of their warp, to arrive together at a barrier of the block.
    Assembling(Arrival),
    /// A barrier of the block.
    Waiting(Arrival),
}

/// Where lanes that parted meet.
#[derive(Clone, Copy, Debug)]
struct Join {
    place: u32,
    expected: u32,
    arrived: u32,
    parent: u32,
    frame: Frame,
    /// For the end of a call, the list that says where results go and the routine that returns them.
    call: Option<(i32, u32)>,
}

/// How lanes arrive at a barrier of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the barrier.
    pub barrier: u32,
    /// Threads that it is for; 0 for all of the block.
    pub count: u32,
    /// Whether the lanes wait.
    pub waits: bool,
    /// Whether all lanes of the warp must come together.
    pub aligned: bool,
    /// The reduction: none, `popc`, `and`, `or`.
    pub reduction: Reduction,
    /// Lanes whose predicate holds.
    pub truths: u32,
    /// Where the result goes: a register or a predicate.
    pub result: i32,
    /// The instruction.
    pub place: u32,
}

/// What `bar.red` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Nothing: the barrier reduces nothing.
    #[default]
    None,
    /// Counts.
    Count,
    /// Whether all hold.
    All,
    /// Whether any holds.
    Any,
}

/// How a run of a warp ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All lanes have left.
    Finished,
    /// Every lane waits for a barrier of the block.
    Blocked,
    /// The slice is used up.
    Paused,
    /// [`Context::trouble`] says what is wrong.
    Fault,
}

/// A warp.
pub struct Warp {
    /// Its registers.
    pub registers: Registers,
    /// The carry flag of every lane.
    pub carry: u32,
    /// Its number in the block.
    pub index: u32,
    /// Lanes that have not left.
    pub alive: u32,
    /// `%tid` of every lane.
    pub tid: [[u32; LANES]; 3],
    /// Where each lane goes: of an indirect branch or call.
    pub places: [u32; LANES],
    /// The lanes that the instruction needs.
    pub wanted: u32,
    /// Whether they may come to it at other places.
    pub anywhere: bool,
    /// How the lanes arrive at a barrier.
    pub arrival: Arrival,
    /// Asynchronous copies in flight.
    pub copies: super::copies::Copies,
    /// The lanes that run now, those of the guard's among them or not.
    pub active: u32,
    /// Where the warp stopped on a fault.
    pub stopped: u32,
    fragments: Vec<Fragment>,
    joins: Vec<Join>,
    spare: Vec<u32>,
}

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
            places: [0; LANES],
            wanted: 0,
            anywhere: false,
            arrival: Arrival::default(),
            copies: super::copies::Copies::default(),
            active: 0,
            stopped: 0,
            fragments: Vec::new(),
            joins: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Sends its lanes to the beginning of the entry, for the next block.
    pub fn start(&mut self, context: &Context<'_>) {
        let lanes = (context.launch.threads() - self.index * LANES as u32).min(LANES as u32);
        self.alive = if lanes == 32 { FULL } else { (1 << lanes) - 1 };
        self.carry = 0;
        self.copies.clear();
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
        loop {
            let Some(index) = self.fragments.iter().position(|fragment| fragment.state == State::Ready) else {
                match self.unblock(context) {
                    Some(outcome) => return outcome,
                    None => continue,
                }
            };
            let fragment = self.fragments.remove(index);
            self.registers.select(fragment.frame);
            match self.run_fragment(fragment, context) {
                Ok(()) => {}
                Err(outcome) => return outcome,
            }
            if context.steps - start > slice {
                return if self.fragments.is_empty() { Outcome::Finished } else { Outcome::Paused };
            }
        }
    }

    /// Runs one fragment until it ends, parts with its parts put aside, waits, or has run for long.
    fn run_fragment(&mut self, mut fragment: Fragment, context: &mut Context<'_>) -> Result<(), Outcome> {
        let code = context.code;
        let ops = &code.ops[..];
        let mut place = fragment.place;
        let mut active = fragment.lanes;
        self.active = active;
        let mut stop = self.stop(fragment.join);
        let begun = context.steps;
        let mut since = place;
        macro_rules! fault {
            () => {{
                context.steps += u64::from(place.wrapping_sub(since));
                self.stopped = place - 1;
                return Err(Outcome::Fault);
            }};
        }
        macro_rules! put_back {
            ($place:expr, $state:expr) => {{
                context.steps += u64::from(place.wrapping_sub(since));
                let state = $state;
                fragment.place = $place;
                self.fragments.push(Fragment { lanes: active, state, ..fragment });
            }};
        }
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
            let op = &ops[place as usize];
            let mask = active & self.registers.truth(op.guard);
            place += 1;
            if mask == 0 {
                continue;
            }
            // SAFETY: the decoder picked functions for this host, and the warp's frames are those of this code.
            let signal = unsafe { (op.run)(self, context, op, mask) };
            if signal == Signal::Next {
                continue;
            }
            match signal {
                Signal::Branch => {
                    let target = op.d as u32;
                    if mask == active {
                        context.steps += u64::from(place.wrapping_sub(since));
                        if target < place {
                            if context.steps >= context.limit {
                                context.trouble = Some(Trouble::Runaway {
                                    lane: mask.trailing_zeros(),
                                    budget: context.launch.budget,
                                });
                                self.stopped = place - 1;
                                return Err(Outcome::Fault);
                            }
                            if context.steps - begun > PATIENCE {
                                fragment.place = target;
                                self.give_way(fragment, active);
                                return Ok(());
                            }
                        }
                        place = target;
                        since = place;
                        continue;
                    }
                    context.steps += u64::from(place.wrapping_sub(since));
                    let rest = active & !mask;
                    // The part that stays closer to the beginning goes first: loops before what follows them.
                    let parts =
                        if target < place { [(target, mask), (place, rest)] } else { [(place, rest), (target, mask)] };
                    self.part(fragment, active, &parts, op.e as u32);
                    return Ok(());
                }
                Signal::Indirect => {
                    context.steps += u64::from(place.wrapping_sub(since));
                    let mut parts: Vec<(u32, u32)> = Vec::new();
                    if active & !mask != 0 {
                        parts.push((place, active & !mask));
                    }
                    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                        match parts.iter_mut().find(|(target, _)| *target == self.places[lane]) {
                            Some((_, lanes)) => *lanes |= 1 << lane,
                            None => parts.push((self.places[lane], 1 << lane)),
                        }
                    }
                    self.part(fragment, active, &parts, op.e as u32);
                    return Ok(());
                }
                Signal::Call | Signal::IndirectCall => {
                    context.steps += u64::from(place.wrapping_sub(since));
                    fragment.place = place;
                    let (list, known) = (op.c, (signal == Signal::Call).then_some(op.d as u32));
                    return match self.call(fragment, active, mask, known, list, context) {
                        true => Ok(()),
                        false => {
                            self.stopped = place - 1;
                            Err(Outcome::Fault)
                        }
                    };
                }
                Signal::Return => {
                    context.steps += u64::from(place.wrapping_sub(since));
                    self.stopped = place - 1;
                    let rest = active & !mask;
                    if rest != 0 {
                        self.fragments.push(Fragment { place, lanes: rest, ..fragment });
                    }
                    self.give_back(fragment, mask, context);
                    return Ok(());
                }
                Signal::Exit => {
                    context.steps += u64::from(place.wrapping_sub(since));
                    self.stopped = place - 1;
                    let rest = active & !mask;
                    if rest != 0 {
                        self.fragments.push(Fragment { place, lanes: rest, ..fragment });
                    }
                    self.exit(mask, context);
                    return Ok(());
                }
                Signal::Gather => {
                    let state = State::Gathering { wanted: self.wanted, anywhere: self.anywhere };
                    put_back!(place - 1, state);
                    return self.gather(place - 1, context);
                }
                Signal::Barrier => {
                    let rest = active & !mask;
                    let arrival = Arrival { place: place - 1, ..self.arrival };
                    if rest != 0 {
                        self.fragments.push(Fragment { place, lanes: rest, ..fragment });
                        active = mask;
                    }
                    if !arrival.aligned || mask == self.alive {
                        if !context.arrive(&arrival, mask, self.index) {
                            fault!();
                        }
                        let state = if arrival.waits { State::Waiting(arrival) } else { State::Ready };
                        put_back!(place, state);
                    } else {
                        put_back!(place, State::Assembling(arrival));
                    }
                    return Ok(());
                }
                Signal::Yield => {
                    put_back!(place, State::Ready);
                    return Err(Outcome::Paused);
                }
                Signal::Fault | Signal::Next => fault!(),
            }
        }
    }

    /// Where a fragment with this join stops.
    fn stop(&self, join: u32) -> u32 {
        match self.joins.get(join as usize) {
            Some(join) if join.call.is_none() => join.place,
            _ => NOWHERE,
        }
    }

    fn new_join(&mut self, join: Join) -> u32 {
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
    fn part(&mut self, fragment: Fragment, lanes: u32, parts: &[(u32, u32)], meeting: u32) {
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
    }

    /// A fragment has run for long: others go first, and lanes that wait for it at joins wait no longer.
    fn give_way(&mut self, fragment: Fragment, lanes: u32) {
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
    fn leave(&mut self, lanes: u32, from: u32, to_call: bool) -> u32 {
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
    fn exit(&mut self, lanes: u32, context: &mut Context<'_>) {
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

    /// Lanes call a function: all that are active wait for each other behind the call.
    fn call(
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
            if frame.depth > context.launch.depth || bytes > context.launch.local || rows > MOST_ROWS {
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
    fn give_back(&mut self, fragment: Fragment, lanes: u32, context: &mut Context<'_>) {
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
    fn end_call(&mut self, index: u32, list: i32, routine: u32, context: &Context<'_>) {
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

    /// Executes an instruction that needs several lanes, where all that can come are there.
    fn gather(&mut self, place: u32, context: &mut Context<'_>) -> Result<(), Outcome> {
        let code = context.code;
        let together = |fragment: &Fragment, first: &Fragment| match (fragment.state, first.state) {
            (State::Gathering { wanted: a, anywhere: x }, State::Gathering { wanted: b, anywhere: y }) => {
                a == b && x == y && (x || fragment.place == first.place && fragment.frame == first.frame)
            }
            _ => false,
        };
        let Some(first) = self
            .fragments
            .iter()
            .find(|fragment| fragment.place == place && matches!(fragment.state, State::Gathering { .. }))
            .copied()
        else {
            return Ok(());
        };
        let State::Gathering { wanted, anywhere } = first.state else { return Ok(()) };
        let lanes = self.fragments.iter().filter(|fragment| together(fragment, &first)).fold(0, |all, x| all | x.lanes);
        if wanted & self.alive & !lanes != 0 {
            return Ok(());
        }
        if !anywhere {
            let op = &code.ops[place as usize];
            self.registers.select(first.frame);
            let mask = lanes & self.registers.truth(op.guard);
            self.active = lanes;
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
    fn unblock(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        if self.fragments.is_empty() {
            return Some(Outcome::Finished);
        }
        // Lanes that left since are waited for no more.
        for index in 0..self.fragments.len() {
            if let State::Gathering { .. } = self.fragments[index].state {
                let place = self.fragments[index].place;
                if let Err(outcome) = self.gather(place, context) {
                    return Some(outcome);
                }
                if self.fragments.iter().any(|fragment| fragment.state == State::Ready) {
                    return None;
                }
            }
        }
        let assembling = |fragment: &Fragment| match fragment.state {
            State::Assembling(arrival) => Some(arrival),
            _ => None,
        };
        if let Some(arrival) = self.fragments.iter().find_map(assembling) {
            let same = |fragment: &Fragment| assembling(fragment).is_some_and(|other| other.place == arrival.place);
            let lanes = self.fragments.iter().filter(|fragment| same(fragment)).fold(0, |all, one| all | one.lanes);
            if lanes != self.alive {
                context.trouble =
                    Some(Trouble::DivergentBarrier { lane: lanes.trailing_zeros(), present: lanes, alive: self.alive });
                self.stopped = arrival.place;
                return Some(Outcome::Fault);
            }
            let truths = self.fragments.iter().filter_map(assembling).fold(0, |all, one| all | one.truths);
            let arrival = Arrival { truths, ..arrival };
            if !context.arrive(&arrival, lanes, self.index) {
                self.stopped = arrival.place;
                return Some(Outcome::Fault);
            }
            let state = if arrival.waits { State::Waiting(arrival) } else { State::Ready };
            for fragment in self.fragments.iter_mut().filter(|fragment| same(fragment)) {
                fragment.state = state;
            }
            return if arrival.waits { Some(Outcome::Blocked) } else { None };
        }
        if let Some(fragment) = self.fragments.iter().find(|one| matches!(one.state, State::Gathering { .. })) {
            // Lanes at a barrier of the block may come once it opens, unless the warp's own lanes keep it shut.
            let (place, lanes) = (fragment.place, fragment.lanes);
            let State::Gathering { wanted, .. } = fragment.state else { return Some(Outcome::Blocked) };
            let at_barrier = self.fragments.iter().any(|one| matches!(one.state, State::Waiting(_)));
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
        for index in 0..self.fragments.len() {
            let fragment = self.fragments[index];
            let State::Waiting(arrival) = fragment.state else { continue };
            if arrival.barrier != barrier {
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
        self.fragments.iter().find_map(|fragment| match fragment.state {
            State::Waiting(arrival) => Some((fragment.lanes.trailing_zeros(), arrival)),
            _ => None,
        })
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
