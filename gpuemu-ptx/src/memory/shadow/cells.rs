//! Who accessed what last: a cell for every few bytes.
//!
//! A cell has two stamps, of the last write and of the last read. A stamp names a record of the log, the lane, and
//! properties; 0 is none. Where lanes next to each other access one or two bytes each, one stamp stands for all of a
//! cell's bytes.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::memory::backing::Backing;

/// Log2 of the bytes of memory that share their fineness.
pub const PAGE: u32 = 12;
/// Log2 of the bytes of a cell, from coarse to fine.
const GRAINS: [u32; 3] = [2, 1, 0];

/// Of a write: it is asynchronous, so that not even its own thread is ordered after it until it waits.
pub const ASYNC: u32 = 1 << 31;
/// Of a read: threads that nothing orders read here; the stamp is that of the first.
pub const SEVERAL: u32 = 1 << 5;
/// Without [`SEVERAL`]: the lane and those after it each accessed its own part of the cell.
pub const SPREAD: u32 = 1 << 6;
/// Records that stamps can name, 0 excepted.
pub const RECORDS: u32 = 1 << 24;

/// The stamp of a lane's access.
#[inline(always)]
pub fn stamp(record: u32, lane: usize) -> u32 {
    record << 7 | lane as u32
}

/// The record that a stamp names.
#[inline(always)]
pub fn record_of(stamp: u32) -> u32 {
    stamp >> 7 & (RECORDS - 1)
}

/// The lane that a stamp names.
#[inline(always)]
pub fn lane_of(stamp: u32) -> usize {
    (stamp & 31) as usize
}

/// Whether a stamp is of several lanes, each with its own part of the cell.
#[inline(always)]
pub fn is_spread(stamp: u32) -> bool {
    stamp & (SEVERAL | SPREAD) == SPREAD
}

/// The stamps of cells of one size.
#[derive(Debug)]
struct Level {
    writes: Backing,
    reads: Backing,
}

impl Level {
    fn new(bytes: u64, level: usize) -> Option<Self> {
        let room = (bytes.div_ceil(1 << GRAINS[level]) + 8) * 4;
        Some(Self { writes: Backing::zeroed(room)?, reads: Backing::zeroed(room)? })
    }
}

/// Pages that share a lock lie so far apart.
const LOCKS: u64 = 64;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Lock(AtomicBool);

/// The cells of one memory.
#[derive(Debug)]
pub struct Cells {
    bytes: u64,
    coarse: Level,
    /// By fineness; they appear when a page needs them.
    fine: [OnceLock<Option<Level>>; 2],
    /// A byte for every page: which level its cells are in, and what stamps they have.
    pages: Backing,
    locks: Box<[Lock]>,
    making: Mutex<()>,
}

/// The bits of a page's byte that say its level.
const LEVEL: u8 = 3;
/// Of a page: it may have stamps of writes.
const WRITTEN: u8 = 4;
/// It may have stamps of reads.
const READ: u8 = 8;

impl Cells {
    /// Empty cells for so many bytes. `None` where the host has no room.
    pub fn new(bytes: u64) -> Option<Self> {
        Some(Self {
            bytes,
            coarse: Level::new(bytes, 0)?,
            fine: [const { OnceLock::new() }; 2],
            pages: Backing::zeroed((bytes >> PAGE) + 2)?,
            locks: (0..LOCKS).map(|_| Lock::default()).collect(),
            making: Mutex::new(()),
        })
    }

    /// Bytes of the memory.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn level(&self, level: usize) -> Option<&Level> {
        match level.checked_sub(1) {
            None => Some(&self.coarse),
            Some(index) => self.fine[index].get().and_then(Option::as_ref),
        }
    }

    #[inline(always)]
    fn state(&self, page: u64) -> &AtomicU8 {
        assert!(page < self.pages.bytes() as u64);
        // SAFETY: within the backing, whose bytes are accessed as atomics only.
        unsafe { &*self.pages.start().as_ptr().add(page as usize).cast::<AtomicU8>() }
    }

    /// The cells of a page, for the caller alone until it lets them go.
    #[inline(always)]
    pub fn hold(&self, page: u64) -> Page<'_> {
        let lock = &self.locks[(page % LOCKS) as usize].0;
        while lock.swap(true, Acquire) {
            while lock.load(Relaxed) {
                std::thread::yield_now();
            }
        }
        Page { cells: self, page, state: self.state(page).load(Relaxed), lock: Some(lock) }
    }

    /// The same for who is alone anyway.
    ///
    /// # Safety
    ///
    /// Nobody else accesses these cells meanwhile.
    #[inline(always)]
    pub unsafe fn hold_alone(&self, page: u64) -> Page<'_> {
        Page { cells: self, page, state: self.state(page).load(Relaxed), lock: None }
    }

    /// Bytes of the pages of the host that hold stamps.
    #[cfg(test)]
    pub fn footprint(&self) -> usize {
        let levels = (0..3).filter_map(|level| self.level(level)).flat_map(|level| [&level.writes, &level.reads]);
        let held = levels.map(|stamps| {
            // SAFETY: the backing is owned and zeroed; the test's threads are done with it.
            let bytes = unsafe { std::slice::from_raw_parts(stamps.start().as_ptr(), stamps.bytes()) };
            bytes.chunks(4096).filter(|page| page.iter().any(|&byte| byte != 0)).count() * 4096
        });
        held.sum()
    }

    /// Empties all cells.
    pub fn clear(&mut self) {
        let levels = std::iter::once(&mut self.coarse)
            .chain(self.fine.iter_mut().filter_map(|level| level.get_mut().and_then(Option::as_mut)));
        for level in levels {
            for stamps in [&mut level.writes, &mut level.reads] {
                // SAFETY: the backing is owned, and `self` borrowed alone.
                unsafe { stamps.start().as_ptr().write_bytes(0, stamps.bytes()) }
            }
        }
    }
}

/// One page's cells, held.
pub struct Page<'c> {
    cells: &'c Cells,
    page: u64,
    state: u8,
    lock: Option<&'c AtomicBool>,
}

impl Drop for Page<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            lock.store(false, Release);
        }
    }
}

impl Page<'_> {
    /// Its number.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.page
    }

    /// Whether its cells have four bytes each.
    #[inline(always)]
    pub fn is_coarse(&self) -> bool {
        self.state & LEVEL == 0
    }

    /// Whether it may have stamps of writes.
    #[inline(always)]
    pub fn is_written(&self) -> bool {
        self.state & WRITTEN != 0
    }

    /// Whether it may have stamps of reads.
    #[inline(always)]
    pub fn is_read(&self) -> bool {
        self.state & READ != 0
    }

    /// It will have stamps of writes, or of reads.
    #[inline(always)]
    pub fn mark(&mut self, write: bool) {
        let flag = if write { WRITTEN } else { READ };
        if self.state & flag == 0 {
            self.state |= flag;
            self.cells.state(self.page).store(self.state, Relaxed);
        }
    }

    /// The stamps of `count` cells of four bytes from a byte on: writes, reads. `None` where they are not all in the page,
    /// or it is finer.
    #[inline(always)]
    pub fn coarse(&mut self, from: u64, count: usize) -> Option<(&mut [u32], &mut [u32])> {
        let end = from + 4 * count as u64;
        let within = from >> PAGE == self.page && end <= (self.page + 1) << PAGE && end <= self.cells.bytes + 3;
        if !self.is_coarse() || !within {
            return None;
        }
        let level = &self.cells.coarse;
        debug_assert!((from / 4) as usize + count <= level.writes.bytes() / 4);
        // SAFETY: within the backings, which have a stamp for every cell, and within the page, which is held.
        Some(unsafe {
            let first = (from / 4) as usize;
            let slice = |stamps: &Backing| {
                std::slice::from_raw_parts_mut(stamps.start().as_ptr().cast::<u32>().add(first), count)
            };
            (slice(&level.writes), slice(&level.reads))
        })
    }

    /// Makes the page as fine as the edges of a range ask; `unit` says how many bytes each lane of a spread stamp
    /// accessed.
    #[inline]
    pub fn refine_for(&mut self, from: u64, end: u64, unit: impl Fn(u32) -> u32) {
        // An access that ends where the memory does covers its last cell whole.
        let edges = from | if end == self.cells.bytes { 0 } else { end };
        let wanted = (2 - edges.trailing_zeros().min(2)) as usize;
        if usize::from(self.state & LEVEL) < wanted {
            self.refine(wanted, unit);
        }
    }

    /// Calls `visit` with the stamps of every cell of a range in this page, writes and reads, and with the first byte and
    /// the bytes that the cell stands for.
    #[inline]
    pub fn visit_refined(&mut self, from: u64, end: u64, mut visit: impl FnMut(&mut u32, &mut u32, u64, u64)) {
        let level = usize::from(self.state & LEVEL);
        let grain = GRAINS[level];
        let Some(level) = self.cells.level(level) else { return };
        for index in from >> grain..((end - 1) >> grain) + 1 {
            assert!(index < level.writes.bytes() as u64 / 4 && index << grain >> PAGE == self.page);
            // SAFETY: within the backings, and within the page, which is held.
            let (write, read) = unsafe {
                let at = |stamps: &Backing| stamps.start().as_ptr().cast::<u32>().add(index as usize);
                (&mut *at(&level.writes), &mut *at(&level.reads))
            };
            visit(write, read, index << grain, 1 << grain);
        }
    }

    /// Makes the page as fine as `wanted`.
    #[cold]
    fn refine(&mut self, wanted: usize, unit: impl Fn(u32) -> u32) {
        let cells = self.cells;
        let made = {
            let _alone = cells.making.lock().unwrap_or_else(PoisonError::into_inner);
            cells.fine[wanted - 1].get_or_init(|| Level::new(cells.bytes, wanted)).is_some()
        };
        let level = usize::from(self.state & LEVEL);
        let (true, Some(coarse), Some(fine)) = (made, cells.level(level), cells.level(wanted)) else { return };
        let (from, to) = (self.page << PAGE, ((self.page + 1) << PAGE).min(cells.bytes));
        for (coarse, fine) in [(&coarse.writes, &fine.writes), (&coarse.reads, &fine.reads)] {
            for index in from >> GRAINS[wanted]..((to - 1) >> GRAINS[wanted]) + 1 {
                let first = index << GRAINS[wanted];
                let whole = first >> GRAINS[level];
                assert!(whole < coarse.bytes() as u64 / 4 && index < fine.bytes() as u64 / 4);
                // SAFETY: within the backings, and within the page, which is held.
                let (old, new) = unsafe {
                    let old = *coarse.start().as_ptr().cast::<u32>().add(whole as usize);
                    (old, &mut *fine.start().as_ptr().cast::<u32>().add(index as usize))
                };
                // Untouched cells stay untouched.
                if old == 0 {
                    continue;
                }
                *new = old;
                if is_spread(old) {
                    let unit = unit(old).max(1);
                    *new += (first - (whole << GRAINS[level])) as u32 / unit;
                    if 1 << GRAINS[wanted] <= unit {
                        *new &= !SPREAD;
                    }
                }
            }
        }
        self.state = self.state & !LEVEL | wanted as u8;
        cells.state(self.page).store(self.state, Relaxed);
    }
}

/// The pages of a range, each with the part of the range that is in it.
pub fn pages(from: u64, end: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let mut at = from;
    std::iter::from_fn(move || {
        let page = at >> PAGE;
        let upto = ((page + 1) << PAGE).min(end);
        let part = (at < end).then_some((page, at, upto));
        at = upto;
        part
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(cells: &Cells, from: u64, bytes: u64, mut each: impl FnMut(&mut u32, u64, u64)) {
        for (page, from, end) in pages(from, (from + bytes).min(cells.bytes)) {
            let mut held = cells.hold(page);
            held.refine_for(from, end, |_| 2);
            held.visit_refined(from, end, |write, _, first, bytes| each(write, first, bytes));
        }
    }

    fn visited(cells: &Cells, from: u64, bytes: u64) -> Vec<(u64, u64, u32)> {
        let mut seen = Vec::new();
        visit(cells, from, bytes, |write, first, bytes| seen.push((first, bytes, *write)));
        seen
    }

    fn stamp_at(place: u64) -> u32 {
        stamp(place as u32 + 1, 0)
    }

    #[test]
    fn pages_become_finer_and_keep_what_they_know() {
        let cells = Cells::new(10_000).unwrap();
        visit(&cells, 8, 8, |write, first, _| *write = stamp_at(first));
        let (a, b) = (stamp_at(8), stamp_at(12));
        assert_eq!(visited(&cells, 4, 12), [(4, 4, 0), (8, 4, a), (12, 4, b)]);
        assert!(cells.hold(0).coarse(8, 2).is_some());
        assert_eq!(visited(&cells, 10, 4), [(10, 2, a), (12, 2, b)]);
        assert!(cells.hold(0).coarse(8, 2).is_none());
        assert_eq!(visited(&cells, 11, 2), [(11, 1, a), (12, 1, b)]);
        // The next page is as coarse as before.
        assert_eq!(visited(&cells, 4096, 8), [(4096, 4, 0), (4100, 4, 0)]);
        // Across the border of two pages.
        assert_eq!(visited(&cells, 4094, 4), [(4094, 1, 0), (4095, 1, 0), (4096, 2, 0)]);
    }

    #[test]
    fn lanes_that_share_a_cell_part_when_it_does() {
        let cells = Cells::new(64).unwrap();
        visit(&cells, 0, 8, |write, first, _| *write = stamp(9, first as usize / 2) | SPREAD);
        let lane = |lane| stamp(9, lane);
        assert_eq!(visited(&cells, 2, 6), [(2, 2, lane(1)), (4, 2, lane(2)), (6, 2, lane(3))]);
        assert_eq!(visited(&cells, 5, 2), [(5, 1, lane(2)), (6, 1, lane(3))]);
        let bytes = Cells::new(64).unwrap();
        let mut seen = Vec::new();
        let mut held = bytes.hold(0);
        held.visit_refined(0, 4, |write, _, _, _| *write = stamp(9, 4) | SPREAD);
        held.refine_for(0, 2, |_| 1);
        held.visit_refined(0, 2, |write, _, _, _| seen.push(*write));
        held.refine_for(3, 4, |_| 1);
        held.visit_refined(3, 4, |write, _, _, _| seen.push(*write));
        assert_eq!(seen, [lane(4) | SPREAD, lane(7)]);
    }

    #[test]
    fn cells_beyond_a_page_or_the_memory_are_not_given() {
        let cells = Cells::new(8200).unwrap();
        for (page, from, count) in [(0, 4092, 2), (0, 4096, 1), (1, 4092, 1), (2, 8196, 2)] {
            assert!(cells.hold(page).coarse(from, count).is_none(), "{page}, {from}, {count}");
        }
        for (page, from, count) in [(0, 0, 1024), (1, 8188, 1), (2, 8192, 2)] {
            let count_there = cells.hold(page).coarse(from, count).map(|(writes, _)| writes.len());
            assert_eq!(count_there, Some(count), "{page}, {from}");
        }
    }

    #[test]
    fn the_last_bytes_are_one_cell() {
        let cells = Cells::new(6).unwrap();
        assert_eq!(visited(&cells, 4, 2), [(4, 4, 0)]);
        assert_eq!(visited(&cells, 0, 6), [(0, 4, 0), (4, 4, 0)]);
    }
}
