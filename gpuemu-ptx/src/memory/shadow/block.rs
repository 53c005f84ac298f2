//! The shadow of one block that runs: accesses are checked and recorded, and events order them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::cells::{ASYNC, Cells, RECORDS, SEVERAL, lane_of, record_of, stamp};
use super::clocks::{Clocks, Cover};
use super::grid::{Acquired, Grid};
use super::log::{ATOMIC, COPY, DEVICE, PENDING, Record, STRONG, WRITE};
use super::{Order, Scope};
use crate::memory::LANES;
use crate::memory::access::{self, Action, View};
use crate::memory::global::Global;

/// Of a read, besides [`SEVERAL`]: the unordered readers are in several warps or blocks.
const WARPS: u32 = 1 << 6;
/// Of a read of global memory, besides [`WARPS`]: in several blocks. The stamp is that of the first.
const BLOCKS: u32 = ASYNC;
/// Properties of a read's stamp.
const PROPERTIES: u32 = SEVERAL | WARPS | BLOCKS;

/// What was found wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It races with an earlier one.
    Race(Race),
    /// It reads memory that nothing wrote: bytes that it needs, or all of them.
    Uninitialised {
        /// The lane.
        lane: u8,
        /// Its address.
        address: u64,
        /// Bytes that the lane reads.
        bytes: u32,
        /// Those that nothing wrote, as bits from the lowest.
        missing: u32,
    },
    /// It writes to an input.
    InputWritten {
        /// The lane.
        lane: u8,
        /// Its address.
        address: u64,
        /// Bytes that the lane writes.
        bytes: u32,
    },
}

/// Two accesses that nothing orders, one of them a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Race {
    /// The lane of the later one.
    pub lane: u8,
    /// First byte that both access: an address of the space of the access.
    pub address: u64,
    /// First byte of the later one.
    pub start: u64,
    /// Bytes of the later one.
    pub bytes: u32,
    /// What the later one does.
    pub action: Action,
    /// The earlier one.
    pub earlier: Seen,
}

/// An access as it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The block, linear.
    pub block: u32,
    /// The warp in its block.
    pub warp: u8,
    /// The lane; `None` where several threads read and it was not the one remembered, whose block and warp these are.
    pub lane: Option<u8>,
    /// The caller's number for the instruction.
    pub site: u32,
    /// What it did.
    pub action: Action,
}

/// Records of one warp's instructions at its present time, found again by instruction.
#[derive(Debug, Default)]
struct Contexts {
    entries: Vec<[Context; 64]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    site: u32,
    clock: u32,
    flags: u8,
    record: u32,
}

impl Contexts {
    fn restart(&mut self, warps: u32) {
        self.entries.clear();
        self.entries.resize(warps as usize, [Context::default(); 64]);
    }

    #[inline(always)]
    fn get(&mut self, warp: u32, site: u32, clock: u32, flags: u8, add: impl FnOnce() -> u32) -> u32 {
        let entry = &mut self.entries[warp as usize][(site & 63) as usize];
        if entry.clock != clock || entry.site != site || entry.flags != flags {
            *entry = Context { site, clock, flags, record: add() };
        }
        entry.record
    }
}

/// Shared memory's shadow.
#[derive(Debug)]
pub(super) struct SharedShadow {
    /// Taken out while an access goes through them.
    cells: Option<Box<Cells>>,
    pub(super) written: Bits,
    records: Vec<Record>,
    /// Number of the first of `records`. Numbers go on from block to block, so that cells need no clearing: what is
    /// older is nobody's.
    first: u32,
    /// Stamps below are ordered before all that the block does now.
    pub(super) settled: u32,
}

impl SharedShadow {
    pub(super) fn next(&self) -> u32 {
        self.first + self.records.len() as u32
    }

    pub(super) fn add(&mut self, record: Record) -> u32 {
        let next = self.next();
        if next >= RECORDS {
            return 0;
        }
        self.records.push(record);
        next
    }

    /// Copies are done, at this time of who waited for them.
    pub(super) fn settle(&mut self, records: &[u32], clock: u32) {
        for &record in records {
            if let Some(index) = record.checked_sub(self.first) {
                self.records[index as usize].clock = clock;
            }
        }
    }
}

/// Copies that were begun and not waited for.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Records of groups that were committed.
    pub(super) groups: VecDeque<Vec<u32>>,
    /// Records of the group that is open.
    pub(super) open: Vec<u32>,
}

/// Who accesses, and how.
#[derive(Clone, Copy)]
pub(super) struct Actor {
    block: u32,
    warp: u32,
    site: u32,
    flags: u8,
    pub(super) record: u32,
}

/// Part of a write that conflicts with an earlier one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clash {
    /// The lane that writes.
    pub lane: usize,
    /// First byte in conflict, and how many.
    pub from: u64,
    pub bytes: u64,
    /// The lane of the same instruction that it conflicts with, where it is one.
    pub other: Option<usize>,
    /// Whether the same instruction of the same block wrote before: maybe copies of one value.
    pub copies: bool,
    /// The lanes of the instruction.
    pub mask: u32,
}

/// The shadow of a block: see the [module](super).
#[derive(Debug)]
pub struct Block<'g> {
    pub(super) global: &'g Global,
    pub(super) grid: &'g Grid,
    pub(super) index: u32,
    pub(super) clocks: Clocks,
    contexts: Contexts,
    shared_contexts: Contexts,
    pub(super) shared: SharedShadow,
    pub(super) copies: Vec<Copies>,
    /// Copies that no warp performs, by the object that their end completes.
    pub(super) bulk: FxHashMap<u64, Vec<u32>>,
    pub(super) acquired: Acquired,
    /// How far other blocks are seen, found so far.
    pub(super) foreign: FxHashMap<u32, Option<Cover>>,
}

/// Where stamps lead.
#[derive(Clone, Copy)]
enum Book<'a> {
    Global(&'a Grid),
    Shared(&'a [Record], u32),
}

impl Book<'_> {
    fn get(self, stamp: u32) -> Option<Record> {
        let number = record_of(stamp);
        match self {
            Self::Global(grid) => Some(grid.log.get(number)),
            Self::Shared(records, first) => records.get(number.checked_sub(first)? as usize).copied(),
        }
    }
}

fn flags_of(order: Order, kind: u8) -> u8 {
    kind | match order.scope() {
        None => 0,
        Some(Scope::Block) => STRONG,
        Some(Scope::Device) => STRONG | DEVICE,
    }
}

fn action_of(flags: u8) -> Action {
    match flags {
        _ if flags & COPY != 0 && flags & WRITE != 0 => Action::AsyncWrite,
        _ if flags & ATOMIC != 0 => Action::Atomic,
        _ if flags & WRITE != 0 => Action::Write,
        _ => Action::Read,
    }
}

#[inline(always)]
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

impl<'g> Block<'g> {
    /// For blocks of a launch with so much shared memory; [`Block::start`] says which. `None` where the host has no room.
    pub fn new(global: &'g Global, grid: &'g Grid, shared_bytes: u32) -> Option<Self> {
        let shared = SharedShadow {
            cells: Some(Box::new(Cells::new(shared_bytes.into())?)),
            written: Bits::new(shared_bytes.into())?,
            records: Vec::new(),
            first: 1,
            settled: 1 << 7,
        };
        Some(Self {
            global,
            grid,
            index: 0,
            clocks: Clocks::new(1),
            contexts: Contexts::default(),
            shared_contexts: Contexts::default(),
            shared,
            copies: Vec::new(),
            bulk: FxHashMap::default(),
            acquired: Acquired::default(),
            foreign: FxHashMap::default(),
        })
    }

    /// A new block begins, of so many warps.
    pub fn start(&mut self, index: u32, warps: u32) {
        self.index = index;
        self.clocks.restart(warps);
        self.contexts.restart(warps);
        self.shared_contexts.restart(warps);
        self.copies.clear();
        self.copies.resize_with(warps as usize, Copies::default);
        self.bulk.clear();
        self.acquired.clear();
        self.foreign.clear();
        let shared = &mut self.shared;
        shared.first = shared.next();
        shared.records.clear();
        if shared.first > RECORDS / 2 {
            shared.cells.iter_mut().for_each(|cells| cells.clear());
            shared.first = 1;
        }
        shared.settled = shared.first << 7;
        shared.written.clear();
    }

    pub(super) fn actor(&mut self, warp: u32, order: Order, kind: u8, site: u32, in_shared: bool) -> Actor {
        let flags = flags_of(order, kind);
        self.clocks.touch(warp);
        let clock = self.clocks.now(warp);
        let record = Record { block: self.index, site, clock, warp: warp as u8, flags };
        let record = match in_shared {
            true => self.shared_contexts.get(warp, site, clock, flags, || self.shared.add(record)),
            false => self.contexts.get(warp, site, clock, flags, || self.grid.log.add(record)),
        };
        Actor { block: self.index, warp, site, flags, record }
    }

    /// Whether what a stamp names is ordered before what a lane does now.
    fn ordered(&mut self, in_shared: bool, stamp: u32, actor: &Actor, lane: usize) -> bool {
        let book = match in_shared {
            true => Book::Shared(&self.shared.records, self.shared.first),
            false => Book::Global(self.grid),
        };
        let Some(record) = book.get(stamp) else { return true };
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
                true => Some([0; super::clocks::ACTORS]),
                false => self.grid.sees(acquired, record.block),
            });
            return sees.is_none_or(|sees| sees[usize::from(record.warp)] >= record.clock);
        }
        if strong {
            return true;
        }
        if !in_shared && stamp & BLOCKS != 0 {
            // Readers in other blocks, of which no more is known.
            return !self.acquired.is_empty();
        }
        if u32::from(record.warp) != actor.warp {
            return self.clocks.sees(actor.warp, record.warp) >= record.clock;
        }
        if stamp & WARPS != 0 {
            return self.clocks.met_since(actor.warp, record.clock);
        }
        let same = lane_of(stamp) == lane && stamp & SEVERAL == 0;
        same || self.clocks.lanes_ordered(actor.warp, lane, lane_of(stamp), record.clock)
    }

    fn seen(&mut self, in_shared: bool, stamp: u32, actor: &Actor, lane: usize) -> Seen {
        let book = match in_shared {
            true => Book::Shared(&self.shared.records, self.shared.first),
            false => Book::Global(self.grid),
        };
        let record = book.get(stamp).unwrap_or_default();
        // Where the one that is named is ordered, it is another of several readers.
        let several = record.flags & WRITE == 0 && stamp & PROPERTIES != 0;
        let known = !several || !self.ordered(in_shared, stamp & !PROPERTIES, actor, lane);
        Seen {
            block: record.block,
            warp: record.warp,
            lane: known.then_some(lane_of(stamp) as u8),
            site: record.site,
            action: action_of(record.flags),
        }
    }

    /// One cell's part of an access: the stamp that it conflicts with, if any. The cell remembers the access.
    fn touch(&mut self, in_shared: bool, cell: &AtomicU64, actor: &Actor, lane: usize) -> Option<u32> {
        let settled = if in_shared { self.shared.settled } else { 1 };
        let old = cell.load(Relaxed);
        let (write, read) = ((old >> 32) as u32, old as u32);
        let mine = stamp(actor.record, lane) | if actor.flags & COPY != 0 { ASYNC } else { 0 };
        let fine = |this: &mut Self, stamp: u32| {
            stamp < settled || stamp == mine && stamp & ASYNC == 0 || this.ordered(in_shared, stamp, actor, lane)
        };
        if actor.flags & WRITE != 0 {
            let conflict = if !fine(self, write) {
                Some(write)
            } else if !fine(self, read) {
                Some(read)
            } else {
                None
            };
            if old != u64::from(mine) << 32 {
                cell.store(u64::from(mine) << 32, Relaxed);
            }
            return conflict;
        }
        let conflict = if fine(self, write) { None } else { Some(write) };
        if read & !PROPERTIES != mine {
            let read = if fine(self, read) { mine } else { self.readers(in_shared, read, mine, actor) };
            cell.store(u64::from(write) << 32 | u64::from(read), Relaxed);
        }
        conflict
    }

    /// The stamp of a read that nothing orders after another.
    fn readers(&self, in_shared: bool, read: u32, mine: u32, actor: &Actor) -> u32 {
        let book = match in_shared {
            true => Book::Shared(&self.shared.records, self.shared.first),
            false => Book::Global(self.grid),
        };
        let first = book.get(read).unwrap_or_default();
        match (first.block == actor.block, u32::from(first.warp) == actor.warp) {
            (false, _) => read | PROPERTIES,
            (true, _) if !in_shared && read & BLOCKS != 0 => read,
            (true, true) if read & PROPERTIES == 0 => mine | SEVERAL,
            (true, false) if read & WARPS == 0 => mine | SEVERAL | WARPS,
            (true, _) => read,
        }
    }

    /// Lanes at consecutive places, as loops without branches: where the last accesses are settled, or are each lane's own
    /// or one other warp's. `cells` are those of the lanes up to the last in `mask`. `false`, with nothing done, where it
    /// is not so easy.
    #[inline]
    fn touch_run(&mut self, in_shared: bool, cells: &[AtomicU64], actor: &Actor, mask: u32, each: usize) -> bool {
        let settled = if in_shared { self.shared.settled } else { 1 };
        let first = stamp(actor.record, 0);
        let write = actor.flags & WRITE != 0;
        if actor.flags & COPY != 0 {
            return false;
        }
        let part = |lane: usize| mask >> lane & 1 != 0;
        let mut unsettled = false;
        for cell in cells {
            let old = cell.load(Relaxed);
            unsettled |= (old >> 32) as u32 >= settled || old as u32 >= settled;
        }
        if unsettled && !self.one_instruction(in_shared, cells, actor, mask, each) {
            let old = cells[0].load(Relaxed);
            let (first_write, first_read) = ((old >> 32) as u32, old as u32);
            let (mut writes_hard, mut reads_hard) = (false, false);
            let (mut one_writer, mut one_reader) = (lane_of(first_write) == 0, lane_of(first_read) == 0);
            // Readers that one more changes nothing about.
            let enough = if in_shared { WARPS } else { BLOCKS };
            let mut crowded = in_shared || self.acquired.is_empty();
            for (lane, cells) in cells.chunks_exact(each).enumerate().filter(|&(lane, _)| part(lane)) {
                let lane = lane as u32;
                for cell in cells {
                    let old = cell.load(Relaxed);
                    let (last_write, last_read) = ((old >> 32) as u32, old as u32);
                    writes_hard |= last_write >= settled && last_write != first + lane;
                    reads_hard |= last_read >= settled && last_read != first + lane;
                    one_writer &= last_write == first_write.wrapping_add(lane);
                    one_reader &= last_read == first_read.wrapping_add(lane);
                    crowded &= last_read >= settled && last_read & enough != 0;
                }
            }
            if writes_hard && !(one_writer && self.ordered(in_shared, first_write, actor, 0)) {
                return false;
            }
            if !write && crowded {
                return true;
            }
            let one_reader = one_reader && first_read & PROPERTIES == 0;
            if reads_hard && !(one_reader && self.ordered(in_shared, first_read, actor, 0)) {
                return false;
            }
        }
        for (lane, cells) in cells.chunks_exact(each).enumerate().filter(|&(lane, _)| part(lane)) {
            let mine = u64::from(first + lane as u32);
            for cell in cells {
                match write {
                    true => cell.store(mine << 32, Relaxed),
                    false => cell.store(cell.load(Relaxed) & !0xffff_ffff | mine, Relaxed),
                }
            }
        }
        true
    }

    /// Whether one instruction of one warp, lane for lane, was the last to write, and one the last to read, both ordered
    /// before now: memory that is updated in place, or tile by tile.
    #[inline(always)]
    fn one_instruction(&mut self, in_shared: bool, cells: &[AtomicU64], actor: &Actor, mask: u32, each: usize) -> bool {
        let first = cells[0].load(Relaxed);
        let (write, read) = ((first >> 32) as u32, first as u32);
        if lane_of(write) != 0 || lane_of(read) != 0 || read & PROPERTIES != 0 {
            return false;
        }
        let step = u64::from(write != 0) << 32 | u64::from(read != 0);
        let (mut other, mut expected) = (0, first);
        for (lane, cells) in cells.chunks_exact(each).enumerate() {
            let part = u64::from(mask >> lane & 1).wrapping_neg();
            for cell in cells {
                other |= (cell.load(Relaxed) ^ expected) & part;
            }
            expected += step;
        }
        let mut fine = |stamp| stamp == 0 || self.ordered(in_shared, stamp, actor, 0);
        other == 0 && fine(write) && fine(read)
    }

    /// The cells of one lane, where the last accesses are settled or its own. `false`, with nothing done, elsewhere.
    #[inline(always)]
    fn touch_own(&self, in_shared: bool, cells: &[AtomicU64], actor: &Actor, lane: usize) -> bool {
        let settled = if in_shared { self.shared.settled } else { 1 };
        let mine = stamp(actor.record, lane);
        let mut easy = actor.flags & COPY == 0;
        for cell in cells {
            let old = cell.load(Relaxed);
            let (write, read) = ((old >> 32) as u32, old as u32);
            easy &= (write < settled || write == mine) && (read < settled || read == mine);
        }
        if easy {
            for cell in cells {
                let write = match actor.flags & WRITE != 0 {
                    true => u64::from(mine) << 32,
                    false => cell.load(Relaxed) & !0xffff_ffff | u64::from(mine),
                };
                cell.store(write, Relaxed);
            }
        }
        easy
    }

    /// Checks and records an access to one memory: `places` are offsets in it, and all lanes fit.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn access(
        &mut self,
        in_shared: bool,
        cells: &Cells,
        actor: &Actor,
        places: &[u64; LANES],
        mask: u32,
        width: u32,
        same_value: impl FnMut(Clash) -> bool,
    ) -> Option<Race> {
        // The log is full: nothing can be remembered, and what is remembered is no longer what was last.
        if actor.record == 0 || mask == 0 {
            return None;
        }
        let words = width.is_multiple_of(4);
        if words && access::consecutive(places, width.into()) {
            let lanes = u64::from(LANES as u32 - mask.leading_zeros());
            let run = cells.coarse(places[0], u64::from(width) * lanes);
            if let Some(run) = run
                && self.touch_run(in_shared, run, actor, mask, width as usize / 4)
            {
                return None;
            }
        }
        let mut hard = mask;
        if words {
            for lane in lanes(mask) {
                let own = cells.coarse(places[lane], width.into());
                if own.is_some_and(|own| self.touch_own(in_shared, own, actor, lane)) {
                    hard &= !(1 << lane);
                }
            }
        }
        match hard {
            0 => None,
            hard => self.access_by_lane(in_shared, cells, actor, places, mask, hard, width, same_value),
        }
    }

    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn access_by_lane(
        &mut self,
        in_shared: bool,
        cells: &Cells,
        actor: &Actor,
        places: &[u64; LANES],
        mask: u32,
        hard: u32,
        width: u32,
        mut same_value: impl FnMut(Clash) -> bool,
    ) -> Option<Race> {
        let mut found = None;
        for lane in lanes(hard) {
            cells.visit(places[lane], width.into(), |cell, first, bytes| {
                let Some(stamp) = self.touch(in_shared, cell, actor, lane) else { return };
                if found.is_some() {
                    return;
                }
                let earlier = self.seen(in_shared, stamp, actor, lane);
                let plain = WRITE | ATOMIC | COPY;
                if actor.flags & plain == WRITE && earlier.action == Action::Write {
                    // Two writes of one value, in one instruction or in two, leave that value.
                    let here = record_of(stamp) == actor.record;
                    let other = Some(lane_of(stamp)).filter(|&other| {
                        here && mask >> other & 1 != 0
                            && places[other] < first + bytes
                            && first < places[other] + u64::from(width)
                    });
                    let copies = earlier.site == actor.site && earlier.block == actor.block;
                    let from = first.max(places[lane]);
                    if same_value(Clash { lane, from, bytes: first + bytes - from, other, copies, mask }) {
                        return;
                    }
                }
                let (start, action) = (places[lane], action_of(actor.flags));
                found =
                    Some(Race { lane: lane as u8, address: first.max(start), start, bytes: width, action, earlier });
            });
        }
        found
    }

    /// The same in shared memory, whose cells this block owns.
    #[inline]
    pub(super) fn access_shared(
        &mut self,
        actor: &Actor,
        places: &[u64; LANES],
        mask: u32,
        width: u32,
        same_value: impl FnMut(Clash) -> bool,
    ) -> Option<Finding> {
        let cells = self.shared.cells.take()?;
        let race = self.access(true, &cells, actor, places, mask, width, same_value);
        self.shared.cells = Some(cells);
        race.map(Finding::Race)
    }

    /// A copy that no warp performs touches a range of shared memory.
    pub(super) fn touch_range(&mut self, record: u32, from: u64, bytes: u64) -> Option<Finding> {
        let actor = Actor { block: self.index, warp: 0, site: 0, flags: WRITE | COPY, record };
        let cells = self.shared.cells.take()?;
        let mut found = None;
        cells.visit(from, bytes, |cell, first, _| {
            let Some(stamp) = self.touch(true, cell, &actor, 0) else { return };
            if found.is_none() {
                let earlier = self.seen(true, stamp, &actor, 0);
                let (address, action) = (first.max(from), Action::AsyncWrite);
                found =
                    Some(Finding::Race(Race { lane: 0, address, start: from, bytes: bytes as u32, action, earlier }));
            }
        });
        self.shared.cells = Some(cells);
        found
    }

    /// A new record for a copy of a warp.
    pub(super) fn copy_actor(&mut self, warp: u32, site: u32) -> Actor {
        let flags = WRITE | COPY;
        let record = Record { block: self.index, site, clock: PENDING, warp: warp as u8, flags };
        Actor { block: self.index, warp, site, flags, record: self.shared.add(record) }
    }

    /// The lanes that lie within shared memory.
    #[inline]
    pub(super) fn within_shared(&self, addresses: &[u64; LANES], mask: u32, width: u32) -> u32 {
        let view = View { base: 0, bytes: self.shared.written.bytes(), host: std::ptr::null_mut() };
        match access::fits(view, addresses, mask, width.into()) {
            true => mask,
            false => lanes(mask)
                .filter(|&lane| access::fits(view, addresses, 1 << lane, width.into()))
                .fold(0, |fit, lane| fit | 1 << lane),
        }
    }

    /// The first lane that reads what nothing wrote: some byte that it needs, or every byte. `addresses` are told of
    /// `places`.
    #[inline]
    pub(super) fn unwritten(
        &self,
        written: &Bits,
        addresses: &[u64; LANES],
        places: &[u64; LANES],
        mask: u32,
        width: u32,
        needed: u32,
    ) -> Option<Finding> {
        if written.is_whole() {
            return None;
        }
        let all = ((1_u64 << width) - 1) as u32;
        if mask == u32::MAX
            && access::consecutive(places, width.into())
            && written.contains(places[0], u64::from(width) * LANES as u64)
        {
            return None;
        }
        lanes(mask).find_map(|lane| {
            let missing = all & !written.among(places[lane], width);
            let wrong = missing & needed != 0 || missing == all;
            let (lane, address) = (lane as u8, addresses[lane]);
            wrong.then_some(Finding::Uninitialised { lane, address, bytes: width, missing })
        })
    }

    /// Lanes are about to write.
    #[inline]
    pub(super) fn note_written(&self, written: &Bits, places: &[u64; LANES], mask: u32, width: u32) {
        if written.is_whole() {
            return;
        }
        if mask == u32::MAX && access::consecutive(places, width.into()) {
            written.insert(places[0], u64::from(width) * LANES as u64);
            return;
        }
        lanes(mask).for_each(|lane| written.insert(places[lane], width.into()));
    }
}
