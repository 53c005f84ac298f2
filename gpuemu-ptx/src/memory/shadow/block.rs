//! The shadow of one block that runs: accesses are checked and recorded, and events order them.

use std::collections::VecDeque;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::cells::{ASYNC, Cells, Page, RECORDS, SEVERAL, SPREAD, pages, record_of};
use super::clocks::{Clocks, Cover};
use super::grid::{Acquired, Grid};
use super::log::{ATOMIC, BYTES, CONSTANT, COPY, DEVICE, HALVES, PENDING, Record, STRONG, WRITE};
use super::{Order, Scope};
use crate::memory::LANES;
use crate::memory::access::{self, Action, View};
use crate::memory::global::Global;

/// Of a read, besides [`SEVERAL`]: the unordered readers are in several warps or blocks.
pub(super) const WARPS: u32 = SEVERAL | SPREAD;
/// Of a read of global memory, besides [`WARPS`]: in several blocks. The stamp is that of the first.
pub(super) const BLOCKS: u32 = ASYNC;
/// Properties of a read's stamp.
pub(super) const PROPERTIES: u32 = WARPS | BLOCKS;

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
    /// Whether the later one is a read that takes memory to be constant.
    pub constant: bool,
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
    /// The block, counted, so that entries of others are none.
    block: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Context {
    site: u32,
    clock: u32,
    flags: u8,
    record: u32,
    block: u32,
}

impl Contexts {
    fn restart(&mut self, warps: u32) {
        self.block = self.block.wrapping_add(1);
        if self.entries.len() < warps as usize || self.block == 0 {
            self.entries.clear();
            self.entries.resize(warps as usize, [Context::default(); 64]);
            self.block = 1;
        }
    }

    #[inline(always)]
    fn get(&mut self, warp: u32, site: u32, clock: u32, flags: u8, add: impl FnOnce() -> u32) -> u32 {
        let entry = &mut self.entries[warp as usize][(site & 63) as usize];
        if entry.clock != clock || entry.site != site || entry.flags != flags || entry.block != self.block {
            *entry = Context { site, clock, flags, record: add(), block: self.block };
        }
        entry.record
    }
}

/// Shared memory's shadow.
#[derive(Debug)]
pub(super) struct SharedShadow {
    /// Taken out while an access goes through them.
    pub(super) cells: Option<Box<Cells>>,
    /// Bytes of the memory.
    pub(super) bytes: u64,
    /// Whether accesses could not be recorded, so that cells do not tell what was written.
    pub(super) lost: bool,
    pub(super) records: Vec<Record>,
    /// Number of the first of `records`. Numbers go on from block to block, so that cells need no clearing: what is
    /// older is nobody's.
    pub(super) first: u32,
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
            self.lost = true;
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
    pub(super) block: u32,
    pub(super) warp: u32,
    pub(super) site: u32,
    pub(super) flags: u8,
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
    /// Whether the host has what the wide roads need: see [`super::quick`].
    pub(super) wide: bool,
    /// Records of the log that are this block's to use.
    chunk: Range<u32>,
    contexts: Contexts,
    shared_contexts: Contexts,
    pub(super) shared: SharedShadow,
    pub(super) copies: Vec<Copies>,
    /// Copies that no warp performs, by the object that their end completes.
    pub(super) bulk: FxHashMap<u64, Vec<u32>>,
    pub(super) acquired: Acquired,
    /// What it has seen, and acquires with the next fence.
    pub(super) unfenced: Acquired,
    /// How far other blocks are seen, found so far.
    pub(super) foreign: FxHashMap<u32, Option<Cover>>,
}

/// A page of a memory's cells: a block is alone with its own shared memory, and with all where one thread runs them.
#[inline(always)]
pub(super) fn hold(cells: &Cells, page: u64, alone: bool) -> Page<'_> {
    match alone {
        // SAFETY: by the promise of `Grid::assume_alone`, or because shared memory's cells are in this block.
        true => unsafe { cells.hold_alone(page) },
        false => cells.hold(page),
    }
}

/// Where stamps lead.
#[derive(Clone, Copy)]
pub(super) enum Book<'a> {
    Global(&'a Grid),
    Shared(&'a [Record], u32),
}

impl Book<'_> {
    #[inline(always)]
    pub(super) fn get(self, stamp: u32) -> Option<Record> {
        let number = record_of(stamp);
        match self {
            Self::Global(grid) => grid.log.get(number),
            Self::Shared(records, first) => records.get(number.checked_sub(first)? as usize).copied(),
        }
    }
}

fn flags_of(order: Order, kind: u8) -> u8 {
    kind | match order.scope() {
        None if order == Order::Constant => CONSTANT,
        None => 0,
        Some(Scope::Block) => STRONG,
        Some(Scope::Device) => STRONG | DEVICE,
    }
}

pub(super) fn action_of(flags: u8) -> Action {
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
            bytes: shared_bytes.into(),
            lost: false,
            records: Vec::new(),
            first: 1,
            settled: 1 << 7,
        };
        Some(Self {
            global,
            grid,
            index: 0,
            clocks: Clocks::new(1),
            wide: super::quick::host_is_wide(),
            chunk: 0..0,
            contexts: Contexts::default(),
            shared_contexts: Contexts::default(),
            shared,
            copies: Vec::new(),
            bulk: FxHashMap::default(),
            acquired: Acquired::default(),
            unfenced: Acquired::default(),
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
        self.unfenced.clear();
        self.foreign.clear();
        let shared = &mut self.shared;
        shared.first = shared.next();
        shared.records.clear();
        if shared.first > RECORDS / 2 {
            shared.cells.iter_mut().for_each(|cells| cells.clear());
            shared.first = 1;
        }
        shared.settled = shared.first << 7;
        shared.lost = false;
    }

    #[inline(always)]
    pub(super) fn actor(&mut self, warp: u32, order: Order, kind: u8, site: u32, in_shared: bool, width: u32) -> Actor {
        let unit = match width {
            1 => BYTES,
            2 => HALVES,
            _ => 0,
        };
        let flags = flags_of(order, kind) | unit;
        self.clocks.touch(warp);
        let clock = self.clocks.now(warp);
        let record = Record { block: self.index, site, clock, warp: warp as u8, flags };
        let record = match in_shared {
            true => self.shared_contexts.get(warp, site, clock, flags, || self.shared.add(record)),
            false => self.contexts.get(warp, site, clock, flags, || self.grid.log.add(record, &mut self.chunk)),
        };
        Actor { block: self.index, warp, site, flags, record }
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
        let view = View { base: 0, bytes: self.shared.bytes, host: std::ptr::null_mut() };
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
        lanes(mask).find_map(|lane| {
            let missing = all & !written.among(places[lane], width);
            missed(lane, addresses[lane], width, missing, needed)
        })
    }

    /// The same in shared memory, whose cells tell: those that this block wrote.
    pub(super) fn unwritten_shared(
        &mut self,
        places: &[u64; LANES],
        mask: u32,
        width: u32,
        needed: u32,
    ) -> Option<Finding> {
        if self.shared.lost {
            return None;
        }
        let cells = self.shared.cells.take()?;
        let floor = self.shared.first << 7;
        let found = lanes(mask).find_map(|lane| {
            let mut missing = 0;
            let from = places[lane];
            for (page, at, end) in pages(from, from + u64::from(width)) {
                hold(&cells, page, true).visit_refined(at, end, |write, _, first, bytes| {
                    if *write & !ASYNC < floor {
                        for byte in first.max(at)..(first + bytes).min(end) {
                            missing |= 1 << (byte - from);
                        }
                    }
                });
            }
            missed(lane, from, width, missing, needed)
        });
        self.shared.cells = Some(cells);
        found
    }

    /// Lanes are about to write a region.
    pub(super) fn note_written(&self, written: &Bits, cells: &Cells, places: &[u64; LANES], mask: u32, width: u32) {
        if written.is_whole() {
            return;
        }
        for lane in lanes(mask) {
            for (page, from, end) in pages(places[lane], places[lane] + u64::from(width)) {
                let _held = hold(cells, page, self.grid.is_alone());
                written.insert_held(from, end - from);
            }
        }
    }
}

/// A finding where a lane misses bytes that it needs, or all that it reads.
fn missed(lane: usize, address: u64, bytes: u32, missing: u32, needed: u32) -> Option<Finding> {
    let all = ((1_u64 << bytes) - 1) as u32;
    let wrong = missing & needed != 0 || missing == all;
    wrong.then_some(Finding::Uninitialised { lane: lane as u8, address, bytes, missing })
}
