//! Whether accesses are ordered, a cell at a time.

use rustc_hash::FxHashMap;

use super::block::{Actor, BLOCKS, Block, Book, Clash, Finding, PROPERTIES, Race, Seen, WARPS, action_of, hold, lanes};
use super::cells::{ASYNC, Cells, SEVERAL, is_spread, lane_of, pages, record_of, stamp};
use super::clocks::ACTORS;
use super::log::{ATOMIC, BYTES, CONSTANT, COPY, DEVICE, HALVES, PENDING, STRONG, WRITE};
use crate::memory::LANES;
use crate::memory::access::Action;

/// Of which lanes an answer about order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Of one lane.
    Lane,
    /// Of one lane and, alike, of those after it, each with its cells.
    Row,
    /// The same where several lanes share a cell.
    Spread,
    /// Of any lane.
    Any,
}

impl Block<'_> {
    /// Stamps below are ordered before all that the block does now.
    #[inline(always)]
    pub(super) fn settled(&self, in_shared: bool) -> u32 {
        match in_shared {
            true => self.shared.settled,
            false => self.grid.log.first() << 7,
        }
    }

    #[inline(always)]
    fn book(&self, in_shared: bool) -> Book<'_> {
        match in_shared {
            true => Book::Shared(&self.shared.records, self.shared.first),
            false => Book::Global(self.grid),
        }
    }

    /// How many bytes each lane of a stamp accessed, where lanes share cells.
    pub(super) fn unit(&self, in_shared: bool, stamp: u32) -> u32 {
        let record = self.book(in_shared).get(stamp).unwrap_or_default();
        if record.flags & HALVES != 0 { 2 } else { 1 }
    }

    /// Whether what a stamp names is ordered before what a lane does now.
    pub(super) fn ordered(&mut self, in_shared: bool, stamp: u32, actor: &Actor, lane: usize, of: Of) -> bool {
        let Some(record) = self.book(in_shared).get(stamp) else { return true };
        if record.flags & COPY != 0 && record.clock == PENDING {
            return false;
        }
        let strong = record.flags & actor.flags & STRONG != 0;
        if record.block != actor.block {
            if strong && record.flags & actor.flags & DEVICE != 0 {
                return true;
            }
            let acquired = &self.acquired;
            let sees = self.foreign.entry(record.block).or_insert_with(|| match acquired.is_empty() {
                true => Some([0; ACTORS]),
                false => self.grid.sees(acquired, record.block),
            });
            return sees.is_none_or(|sees| sees[usize::from(record.warp)] >= record.clock);
        }
        if strong {
            return true;
        }
        // Asynchronous writes that were waited for keep their mark, which says other things of reads.
        let read = record.flags & WRITE == 0;
        if !in_shared && read && stamp & BLOCKS != 0 {
            // Readers in other blocks, of which no more is known.
            return !self.acquired.is_empty();
        }
        if u32::from(record.warp) != actor.warp {
            return self.clocks.sees(actor.warp, record.warp) >= record.clock;
        }
        if stamp & WARPS == WARPS {
            return self.clocks.met_since(actor.warp, record.clock);
        }
        if self.clocks.warp_ordered(actor.warp, record.clock) {
            return true;
        }
        let (spread, unit) = (is_spread(stamp), HALVES | BYTES);
        let alike = spread == (of == Of::Spread) && (!spread || record.flags & unit == actor.flags & unit);
        if lane_of(stamp) == lane && stamp & SEVERAL == 0 && alike && of != Of::Any {
            return true;
        }
        of == Of::Lane && !spread && self.clocks.lanes_ordered(actor.warp, lane, lane_of(stamp), record.clock)
    }

    fn seen(&mut self, in_shared: bool, stamp: u32, actor: &Actor, lane: usize) -> Seen {
        let record = self.book(in_shared).get(stamp).unwrap_or_default();
        // Where the one that is named is ordered, it is another of several readers.
        let several = record.flags & WRITE == 0 && stamp & PROPERTIES != 0;
        let known = !several || !self.ordered(in_shared, stamp & !PROPERTIES, actor, lane, Of::Lane);
        Seen {
            block: record.block,
            warp: record.warp,
            lane: known.then_some(lane_of(stamp) as u8),
            site: record.site,
            action: action_of(record.flags),
        }
    }

    /// One cell's part of an access: the stamp that it conflicts with, if any. The cell remembers the access.
    fn touch(
        &mut self,
        in_shared: bool,
        (write, read): (&mut u32, &mut u32),
        actor: &Actor,
        lane: usize,
    ) -> Option<u32> {
        let settled = self.settled(in_shared);
        let mine = stamp(actor.record, lane) | if actor.flags & COPY != 0 { ASYNC } else { 0 };
        let fine = |this: &mut Self, stamp: u32| {
            let own = stamp == mine && stamp & ASYNC == 0;
            stamp < settled || own || this.ordered(in_shared, stamp, actor, lane, Of::Lane)
        };
        if actor.flags & WRITE != 0 {
            let conflict = if !fine(self, *write) {
                Some(*write)
            } else if !fine(self, *read) {
                Some(*read)
            } else {
                None
            };
            *write = mine;
            // A stamp that was never written costs no memory.
            if *read != 0 {
                *read = 0;
            }
            return conflict;
        }
        let stale = actor.flags & CONSTANT != 0 && *write >= settled;
        let conflict = if fine(self, *write) && !stale { None } else { Some(*write) };
        if *read & !PROPERTIES != mine {
            *read = if fine(self, *read) { mine } else { self.readers(in_shared, *read, mine, actor) };
        }
        conflict
    }

    /// The stamp of a read that nothing orders after another.
    pub(super) fn readers(&self, in_shared: bool, read: u32, mine: u32, actor: &Actor) -> u32 {
        let first = self.book(in_shared).get(read).unwrap_or_default();
        let mine = mine & !PROPERTIES;
        match (first.block == actor.block, u32::from(first.warp) == actor.warp) {
            (false, _) => read | PROPERTIES,
            (true, _) if !in_shared && read & BLOCKS != 0 => read,
            (true, true) if read & SEVERAL == 0 => mine | SEVERAL,
            (true, false) if read & WARPS != WARPS => mine | WARPS,
            (true, _) => read,
        }
    }

    /// Checks and records an access to one memory, of the lanes `hard` among `all`: `places` are offsets in it, and all
    /// lanes fit.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn access(
        &mut self,
        in_shared: bool,
        cells: &Cells,
        actor: &Actor,
        places: &[u64; LANES],
        all: u32,
        hard: u32,
        width: u32,
        mut same_value: impl FnMut(Clash) -> bool,
    ) -> Option<Race> {
        // The log is full: nothing can be remembered, and what is remembered is no longer what was last.
        if actor.record == 0 {
            return None;
        }
        let alone = in_shared || self.grid.is_alone();
        let (end_of_memory, write) = (cells.bytes(), actor.flags & WRITE != 0);
        let mut found = None;
        // What was there before the instruction, where several of its lanes write one place: all are held against that.
        let mut before: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
        let several = write && meet(places, hard);
        for lane in lanes(hard) {
            let start = places[lane];
            for (page, from, end) in pages(start, (start + u64::from(width)).min(end_of_memory)) {
                let mut held = hold(cells, page, alone);
                held.mark(write);
                held.refine_for(from, end, |stamp| self.unit(in_shared, stamp));
                held.visit_refined(from, end, |write, read, first, bytes| {
                    let mut old = None;
                    if several && let Some((mut write, mut read)) = before.insert(first, (*write, *read)) {
                        before.insert(first, (write, read));
                        old = self.touch(in_shared, (&mut write, &mut read), actor, lane);
                    }
                    let new = self.touch(in_shared, (write, read), actor, lane);
                    for stamp in [old, new].into_iter().flatten() {
                        if found.is_some() {
                            return;
                        }
                        let earlier = self.seen(in_shared, stamp, actor, lane);
                        let plain = WRITE | ATOMIC | COPY;
                        if actor.flags & plain == WRITE && earlier.action == Action::Write {
                            // Two writes of one value, in one instruction or in two, leave that value.
                            let here = record_of(stamp) == actor.record;
                            let other = Some(lane_of(stamp)).filter(|&other| {
                                here && all >> other & 1 != 0
                                    && places[other] < first + bytes
                                    && first < places[other] + u64::from(width)
                            });
                            let copies = earlier.site == actor.site && earlier.block == actor.block;
                            let from = first.max(start);
                            if same_value(Clash { lane, from, bytes: first + bytes - from, other, copies, mask: all }) {
                                continue;
                            }
                        }
                        let (address, action) = (first.max(start), action_of(actor.flags));
                        let constant = actor.flags & CONSTANT != 0;
                        found =
                            Some(Race { lane: lane as u8, address, start, bytes: width, action, constant, earlier });
                    }
                });
            }
        }
        found
    }

    /// The same in shared memory, whose cells this block owns.
    #[inline]
    pub(super) fn access_shared(
        &mut self,
        actor: &Actor,
        places: &[u64; LANES],
        all: u32,
        hard: u32,
        width: u32,
        same_value: impl FnMut(Clash) -> bool,
    ) -> Option<Finding> {
        let cells = self.shared.cells.take()?;
        let race = self.access(true, &cells, actor, places, all, hard, width, same_value);
        self.shared.cells = Some(cells);
        race.map(Finding::Race)
    }

    /// A copy that no warp performs touches a range of shared memory.
    pub(super) fn touch_range(&mut self, record: u32, from: u64, bytes: u64) -> Option<Finding> {
        let actor = Actor { block: self.index, warp: 0, site: 0, flags: WRITE | COPY, record };
        let cells = self.shared.cells.take()?;
        let mut found = None;
        for (page, at, end) in pages(from, (from + bytes).min(cells.bytes())) {
            let mut held = hold(&cells, page, true);
            held.mark(true);
            held.refine_for(at, end, |stamp| self.unit(true, stamp));
            held.visit_refined(at, end, |write, read, first, _| {
                let Some(stamp) = self.touch(true, (write, read), &actor, 0) else { return };
                if found.is_none() {
                    let earlier = self.seen(true, stamp, &actor, 0);
                    let (address, action) = (first.max(from), Action::AsyncWrite);
                    let (start, bytes) = (from, bytes as u32);
                    found = Some(Race { lane: 0, address, start, bytes, action, constant: false, earlier });
                }
            });
        }
        self.shared.cells = Some(cells);
        found.map(Finding::Race)
    }
}

/// Whether some of the lanes are at one place: aligned accesses of one width overlap nowhere else.
fn meet(places: &[u64; LANES], mask: u32) -> bool {
    lanes(mask).any(|lane| lanes(mask & ((1 << lane) - 1)).any(|other| places[other] == places[lane]))
}
