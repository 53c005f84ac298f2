//! Whether the lanes of a warp only wait.
//!
//! Lanes that come back to one place with the registers that they had there, while nothing that could be read has
//! changed, will do so for ever unless somebody else changes it. They are said to stand still. What cannot be looked
//! into (a clock, a call of the system, an asynchronous copy) counts as a change, and so does every write but one of
//! the value that is there: a loop that counts, waits for a time or makes any progress never stands still.

use super::{Arrival, Fragment, Join, NONE, Outcome, State, Wanted, Warp};
use crate::emulate::context::Context;
use crate::emulate::effects::{Effect, Touch};
use crate::emulate::op::Signal;
use crate::emulate::problem::Reason;
use crate::emulate::registers::{LANES, Row};
use crate::fault::Action;
use crate::memory::{Cache, Element, LOCAL_WINDOW, SHARED_WINDOW, Window};
use crate::program::Space;

/// Instructions that a warp runs before it is looked at, at first: most never are so long in a loop.
pub const FIRST_LOOK: u64 = 1 << 13;
/// The same in a launch in which some have waited.
pub const FIRST_OF_MANY: u64 = 1 << 8;
/// Instructions between two looks at a warp whose lanes stood still at the last.
const SOON: u64 = 64;
/// Instructions between two looks, at most.
const SELDOM: u64 = 1 << 18;
/// Instructions that a look takes, and loops that begin again meanwhile; more of them where looks are seldom.
pub const LOOK: (u64, u64) = (512, 4);
/// Accesses that a warp remembers of a loop.
const POLLS: usize = 16;

/// What lanes that wait read: the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The operation.
    pub place: u32,
    /// The lanes that execute it.
    pub lanes: u32,
    /// The memory.
    pub space: Space,
    /// Where it reads, in that space.
    pub address: u64,
    /// How many bytes.
    pub bytes: u32,
    /// What it does.
    pub action: Action,
    /// The first eight bytes that it finds.
    pub value: u64,
    /// Whether it is an access that may wait for others.
    pub ordered: bool,
}

/// A warp as it was.
pub struct Saved {
    rows: Vec<Row>,
    predicates: Vec<u32>,
    carry: u32,
    alive: u32,
    stack: [u32; LANES],
    standing: Vec<Standing>,
}

/// Where lanes are, and what they wait for.
#[derive(Clone, PartialEq, Eq)]
struct Standing {
    fragment: Fragment,
    gathering: Option<Wanted>,
    arrival: Option<Arrival>,
    joins: Vec<Join>,
}

impl Warp {
    /// What it is, to compare with what it will be.
    pub fn saved(&self) -> Saved {
        let (rows, predicates) = self.registers.all();
        Saved {
            rows: rows.to_vec(),
            predicates: predicates.to_vec(),
            carry: self.carry,
            alive: self.alive,
            stack: self.stack,
            standing: self.standing(),
        }
    }

    /// Whether it is what it was.
    pub fn is(&self, saved: &Saved) -> bool {
        let (rows, predicates) = self.registers.all();
        self.carry == saved.carry
            && self.alive == saved.alive
            && predicates == saved.predicates
            && rows == saved.rows
            && self.stack == saved.stack
            && self.standing() == saved.standing
    }

    fn standing(&self) -> Vec<Standing> {
        let one = |fragment: &Fragment| {
            let first = fragment.lanes.trailing_zeros() as usize % LANES;
            let mut joins = Vec::new();
            let mut next = fragment.join;
            while next != NONE {
                let join = self.joins[next as usize];
                joins.push(Join { parent: NONE, ..join });
                next = join.parent;
            }
            Standing {
                fragment: Fragment { join: NONE, ..*fragment },
                gathering: (fragment.state == State::Gathering).then(|| self.gathering[first]),
                arrival: matches!(fragment.state, State::Assembling | State::Waiting).then(|| self.arrivals[first]),
                joins,
            }
        };
        let mut standing: Vec<_> = self.fragments.iter().map(one).collect();
        standing.sort_by_key(|standing| standing.fragment.lanes);
        standing
    }

    /// Whether every lane that has not left is at an instruction, and none behind a branch until others come.
    pub fn is_complete(&self) -> bool {
        self.fragments.iter().fold(0, |lanes, fragment| lanes | fragment.lanes) == self.alive
    }

    /// A fragment went back to the beginning of a loop, and something is to be done about it: all that is done then.
    #[cold]
    #[inline(never)]
    pub(super) fn turned<const WATCHED: bool>(
        &mut self,
        fragment: Fragment,
        branch: u32,
        begun: u64,
        context: &mut Context<'_>,
    ) -> Result<(), Outcome> {
        if context.steps >= context.limit {
            return Err(self.ran_away(fragment.lanes.trailing_zeros(), branch, context));
        }
        if WATCHED || context.steps >= self.next_look {
            self.turned = true;
            self.fragments.insert(0, fragment);
        } else {
            debug_assert!(context.steps > begun);
            self.give_way(fragment, fragment.lanes);
        }
        Ok(())
    }

    /// Looks at what its lanes do. `None`: they go on.
    pub(super) fn look(&mut self, context: &mut Context<'_>) -> Option<Outcome> {
        self.polls.clear();
        let between = self.between_looks;
        let limits = (self.looks.0.max(between >> 7), self.looks.1.max(between >> 10));
        let outcome = self.run_watched(context, limits);
        if self.still != 0 {
            self.looks = limits;
        }
        context.has_waited |= self.still != 0;
        // Where some of its lanes wait for others of them, each look brings one further.
        self.between_looks = if self.still != 0 { SOON } else { SELDOM.min(2 * self.between_looks) };
        self.next_look = context.steps + self.between_looks;
        self.still = 0;
        (outcome != Outcome::Paused).then_some(outcome)
    }

    /// Runs all its lanes until each waits for a barrier or stands still, and says [`Outcome::Still`] or
    /// [`Outcome::Blocked`]; [`Outcome::Paused`] as soon as something has changed, or after about `most` instructions or so many turns of a loop.
    pub fn run_watched(&mut self, context: &mut Context<'_>, (most, most_turns): (u64, u64)) -> Outcome {
        let (start, changes) = (context.steps, context.changes);
        // As it was when the fragment that runs began: lanes that stand still stop where they did before, so that the warp
        // is what it was from one look to the next.
        let mut first: Option<(Fragment, Saved)> = None;
        let mut saved: Option<(Fragment, Saved)> = None;
        let mut turns = 0u64;
        self.still = 0;
        loop {
            let moves = |fragment: &Fragment| fragment.state == State::Ready && fragment.lanes & !self.still != 0;
            let Some(index) = self.fragments.iter().position(moves) else {
                if self.still != 0 && self.fragments.iter().any(|fragment| fragment.state == State::Ready) {
                    match self.gather_rest(context) {
                        Ok(true) => continue,
                        Ok(false) => return Outcome::Still,
                        Err(outcome) => return outcome,
                    }
                }
                match self.unblock(context) {
                    Some(outcome) => return outcome,
                    None => continue,
                }
            };
            if first.is_none() {
                first = Some((self.fragments[index], self.saved()));
            }
            let fragment = self.fragments.remove(index);
            self.registers.select(fragment.frame);
            self.turned = false;
            match self.run_fragment::<true>(fragment, context) {
                Ok(()) | Err(Outcome::Paused) => {}
                Err(outcome) => return outcome,
            }
            if context.changes != changes || context.steps - start > most {
                self.turned = false;
                return Outcome::Paused;
            }
            if std::mem::take(&mut self.turned) {
                let here = self.fragments[0];
                let is = |(at, saved): &(Fragment, Saved)| {
                    at.place == here.place && at.lanes == here.lanes && self.is(saved)
                };
                if [&first, &saved].into_iter().flatten().any(is) {
                    self.still |= here.lanes;
                    (first, saved, turns) = (None, None, 0);
                    let here = self.fragments.remove(0);
                    self.give_way(here, here.lanes);
                    continue;
                }
                turns += 1;
                if turns > most_turns {
                    return Outcome::Paused;
                }
                // A loop may come to rest after a few turns, or need several for one round.
                if saved.is_none() || turns.is_power_of_two() {
                    saved = Some((here, self.saved()));
                }
            }
        }
    }

    /// Where its lanes wait, and for what, once it stands still: what they read before anything else, those accesses that
    /// may wait for others before those that may not.
    pub fn waits(&self) -> Vec<(u32, u32, Reason)> {
        let ordered = self.polls.iter().any(|poll| poll.ordered);
        let polls = self.polls.iter().filter(|poll| poll.ordered == ordered);
        let mut waits: Vec<_> = polls.map(|poll| (poll.lanes, poll.place, Reason::Memory(*poll))).collect();
        let told = self.polls.iter().fold(0, |lanes, poll| lanes | poll.lanes);
        for fragment in &self.fragments {
            let lanes = fragment.lanes;
            let first = lanes.trailing_zeros() as usize % LANES;
            match fragment.state {
                _ if lanes & told != 0 => {}
                State::Ready => waits.push((lanes, fragment.place, Reason::Nothing)),
                State::Gathering => waits.push((lanes, fragment.place, Reason::Lanes)),
                State::Assembling | State::Waiting => {
                    waits.push((lanes, self.arrivals[first].place, Reason::Barrier));
                }
            }
        }
        waits
    }

    /// Lanes that wait for others of their warp go on where those have left. Whether any does.
    fn gather_rest(&mut self, context: &mut Context<'_>) -> Result<bool, Outcome> {
        let count = |warp: &Self| warp.fragments.iter().filter(|one| one.state == State::Gathering).count();
        let before = count(self);
        let places = self.fragments.iter().filter(|one| one.state == State::Gathering).map(|one| one.place);
        for place in places.collect::<Vec<_>>() {
            self.gather(place, context)?;
        }
        Ok(count(self) != before)
    }

    /// Executes an operation and watches what it does.
    #[inline(never)]
    pub(super) fn execute_watched(&mut self, context: &mut Context<'_>, place: u32, mask: u32) -> Signal {
        let code = context.code;
        let op = &code.ops[place as usize];
        let touch = match code.effects[place as usize] {
            Effect::Access(touch) => touch,
            effect => {
                context.changes += u64::from(effect == Effect::Unknown);
                // SAFETY: as in `run_fragment`.
                return unsafe { (op.run)(self, context, op, mask) };
            }
        };
        let addresses = touch.addresses(self, op);
        let before = found(context, touch, self.index, &addresses, mask);
        if touch.action != Action::Write {
            self.remember(context, touch, &addresses, place, mask, before.as_ref());
        }
        // SAFETY: as in `run_fragment`.
        let signal = unsafe { (op.run)(self, context, op, mask) };
        if touch.action != Action::Read {
            let after = found(context, touch, self.index, &addresses, mask);
            context.changes += u64::from(before.is_none() || before != after);
        }
        // Lanes that sleep change nothing.
        if signal == Signal::Yield { Signal::Next } else { signal }
    }

    fn remember(
        &mut self,
        context: &mut Context<'_>,
        touch: Touch,
        addresses: &[u64; LANES],
        place: u32,
        lanes: u32,
        found: Option<&Found>,
    ) {
        let lane = lanes.trailing_zeros() as usize % LANES;
        let (space, address) = match touch.space {
            Some(space) => (space, addresses[lane]),
            None => match Window::of(addresses[lane]) {
                Window::Shared => (Space::Shared, addresses[lane].wrapping_sub(SHARED_WINDOW)),
                Window::Local => (Space::Local, addresses[lane].wrapping_sub(LOCAL_WINDOW)),
                Window::Global => (Space::Global, addresses[lane]),
            },
        };
        let global = match touch.space {
            None => Window::split(addresses, lanes)[0] != 0,
            Some(space) => space == Space::Global,
        };
        context.sees_others |= global;
        if matches!(space, Space::Constant | Space::Local) {
            return;
        }
        let Touch { bytes, action, ordered, .. } = touch;
        let value = found.map_or(0, |found| found[lane][0]);
        let poll = Poll { place, lanes, space, address, bytes, action, value, ordered };
        match self.polls.iter().position(|known| known.place == place && known.lanes & lanes != 0) {
            Some(known) => self.polls[known] = poll,
            None if self.polls.len() < POLLS => self.polls.push(poll),
            None => {}
        }
    }
}

/// What memory holds for each lane, the bytes that are accessed.
type Found = [[u64; 4]; LANES];

/// What is there; `None` where something is wrong with an address, which the access itself will say.
fn found(context: &Context<'_>, touch: Touch, warp: u32, addresses: &[u64; LANES], mask: u32) -> Option<Found> {
    let mut all = [[0; 4]; LANES];
    match touch.bytes {
        1 => each::<u8, 1>(context, touch, warp, addresses, mask, &mut all, u64::from),
        2 => each::<u16, 1>(context, touch, warp, addresses, mask, &mut all, u64::from),
        4 => each::<u32, 1>(context, touch, warp, addresses, mask, &mut all, u64::from),
        8 => each::<u64, 1>(context, touch, warp, addresses, mask, &mut all, |x| x),
        16 => each::<u64, 2>(context, touch, warp, addresses, mask, &mut all, |x| x),
        _ => each::<u64, 4>(context, touch, warp, addresses, mask, &mut all, |x| x),
    }?;
    Some(all)
}

fn each<T: Element, const N: usize>(
    context: &Context<'_>,
    touch: Touch,
    warp: u32,
    addresses: &[u64; LANES],
    mask: u32,
    all: &mut Found,
    number: impl Fn(T) -> u64,
) -> Option<()> {
    let mut out = [[T::default(); LANES]; N];
    let (lanes, base) = match touch.space {
        None => (Window::split(addresses, mask), [0, SHARED_WINDOW, LOCAL_WINDOW]),
        Some(Space::Shared) => ([0, mask, 0], [0; 3]),
        Some(Space::Local) => ([0, 0, mask], [0; 3]),
        Some(_) => ([mask, 0, 0], [0; 3]),
    };
    let within = |base: u64| addresses.map(|address| address.wrapping_sub(base));
    if lanes[0] != 0 {
        context.global.load(&mut Cache::default(), addresses, lanes[0], &mut out).ok()?;
    }
    if lanes[1] != 0 {
        context.block.shared.load(&within(base[1]), lanes[1], &mut out).ok()?;
    }
    if lanes[2] != 0 {
        context.block.local.as_ref()?.load(warp, &within(base[2]), lanes[2], &mut out).ok()?;
    }
    for (element, row) in out.iter().enumerate() {
        for (lane, &value) in row.iter().enumerate() {
            all[lane][element] = number(value);
        }
    }
    Some(())
}
