//! Who accessed what last: a cell for every few bytes.
//!
//! A cell holds a stamp of the last write (high half) and one of the last read (low half). A stamp names a record of the
//! log, the lane, and two properties; 0 is none.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::memory::backing::Backing;

/// Bytes of memory that share their fineness.
const PAGE: u64 = 4096;
/// Log2 of the bytes of a cell, from coarse to fine.
const GRAINS: [u32; 3] = [2, 1, 0];

/// Of a write: it is asynchronous, so that not even its own thread is ordered after it until it waits.
pub const ASYNC: u32 = 1 << 31;
/// Of a read: threads that nothing orders read here; the stamp is that of the first.
pub const SEVERAL: u32 = 1 << 5;
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

/// The cells of one memory.
#[derive(Debug)]
pub struct Cells {
    bytes: u64,
    /// By fineness; the finer ones appear when a page needs them.
    levels: [OnceLock<Option<Backing>>; 3],
    /// A byte for every page: which level its cells are in.
    pages: Backing,
    refining: Mutex<()>,
}

impl Cells {
    /// Empty cells for so many bytes. `None` where the host has no room.
    pub fn new(bytes: u64) -> Option<Self> {
        let pages = Backing::zeroed(bytes.div_ceil(PAGE) + 1)?;
        let cells = Self { bytes, levels: [const { OnceLock::new() }; 3], pages, refining: Mutex::new(()) };
        cells.level(0)?;
        Some(cells)
    }

    fn level(&self, level: usize) -> Option<&Backing> {
        let make = || Backing::zeroed((self.bytes.div_ceil(1 << GRAINS[level]) + 8) * 8);
        self.levels[level].get_or_init(make).as_ref()
    }

    #[inline(always)]
    fn page(&self, page: u64) -> &AtomicU8 {
        assert!(page < self.pages.bytes() as u64);
        // SAFETY: within the backing, whose bytes are accessed as atomics only.
        unsafe { &*self.pages.start().as_ptr().add(page as usize).cast::<AtomicU8>() }
    }

    #[inline(always)]
    fn cell(backing: &Backing, index: u64) -> &AtomicU64 {
        assert!(index < backing.bytes() as u64 / 8);
        // SAFETY: within the backing, aligned to 256 bytes at its start, accessed as atomics only.
        unsafe { &*backing.start().as_ptr().cast::<AtomicU64>().add(index as usize) }
    }

    /// The cells of a range within one page whose edges and page are coarse; `None` where finer ones are called for.
    #[inline(always)]
    pub fn coarse(&self, from: u64, bytes: u64) -> Option<&[AtomicU64]> {
        let end = from.checked_add(bytes).filter(|&end| end <= self.bytes && end != 0)?;
        if !(from | bytes).is_multiple_of(4) {
            return None;
        }
        for page in from / PAGE..=(end - 1) / PAGE {
            if self.page(page).load(Relaxed) != 0 {
                return None;
            }
        }
        let backing = self.levels[0].get()?.as_ref()?;
        debug_assert!(end / 4 <= backing.bytes() as u64 / 8);
        // SAFETY: within the backing, as its size is that of all cells.
        Some(unsafe {
            let first = backing.start().as_ptr().cast::<AtomicU64>().add((from / 4) as usize);
            std::slice::from_raw_parts(first, (bytes / 4) as usize)
        })
    }

    /// Calls `visit` with every cell of a range, and the first byte and the bytes that the cell stands for. Pages become
    /// as fine as the edges of the range ask.
    #[inline]
    pub fn visit(&self, from: u64, bytes: u64, mut visit: impl FnMut(&AtomicU64, u64, u64)) {
        let end = (from + bytes).min(self.bytes);
        let mut at = from;
        while at < end {
            let page = at / PAGE;
            let upto = ((page + 1) * PAGE).min(end);
            // An access that ends where the memory does covers its last cell whole.
            let edges = at | if upto == self.bytes { 0 } else { upto };
            let wanted = (2 - edges.trailing_zeros().min(2)) as usize;
            let mut level = usize::from(self.page(page).load(Relaxed));
            if level < wanted {
                level = self.refine(page, wanted);
            }
            let grain = GRAINS[level];
            let Some(backing) = self.levels[level].get().and_then(Option::as_ref) else { return };
            for index in at >> grain..((upto - 1) >> grain) + 1 {
                visit(Self::cell(backing, index), index << grain, 1 << grain);
            }
            at = upto;
        }
    }

    /// Makes a page as fine as `wanted`, and says how fine it is.
    #[cold]
    fn refine(&self, page: u64, wanted: usize) -> usize {
        let _alone = self.refining.lock().unwrap_or_else(PoisonError::into_inner);
        let level = usize::from(self.page(page).load(Relaxed));
        if level >= wanted {
            return level;
        }
        let (Some(coarse), Some(fine)) = (self.level(level), self.level(wanted)) else { return level };
        let (from, to) = (page * PAGE, ((page + 1) * PAGE).min(self.bytes));
        for index in from >> GRAINS[wanted]..((to - 1) >> GRAINS[wanted]) + 1 {
            let old = Self::cell(coarse, index << GRAINS[wanted] >> GRAINS[level]).load(Relaxed);
            // Untouched cells stay untouched.
            if old != 0 {
                Self::cell(fine, index).store(old, Relaxed);
            }
        }
        self.page(page).store(wanted as u8, Relaxed);
        wanted
    }

    /// Empties all cells.
    pub fn clear(&mut self) {
        for level in self.levels.iter_mut().filter_map(|level| level.get_mut()?.as_mut()) {
            // SAFETY: the backing is owned, and `self` borrowed alone.
            unsafe { level.start().as_ptr().write_bytes(0, level.bytes()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(cells: &Cells, from: u64, bytes: u64) -> Vec<(u64, u64, u64)> {
        let mut seen = Vec::new();
        cells.visit(from, bytes, |cell, first, bytes| seen.push((first, bytes, cell.load(Relaxed))));
        seen
    }

    #[test]
    fn pages_become_finer_and_keep_what_they_know() {
        let cells = Cells::new(10_000).unwrap();
        cells.visit(8, 8, |cell, first, _| cell.store(first + 1, Relaxed));
        assert_eq!(visited(&cells, 4, 12), [(4, 4, 0), (8, 4, 9), (12, 4, 13)]);
        assert!(cells.coarse(8, 8).is_some());
        assert_eq!(visited(&cells, 10, 4), [(10, 2, 9), (12, 2, 13)]);
        assert!(cells.coarse(8, 8).is_none());
        assert_eq!(visited(&cells, 11, 2), [(11, 1, 9), (12, 1, 13)]);
        // The next page is as coarse as before.
        assert_eq!(visited(&cells, 4096, 8), [(4096, 4, 0), (4100, 4, 0)]);
        // Across the border of two pages.
        assert_eq!(visited(&cells, 4094, 4), [(4094, 1, 0), (4095, 1, 0), (4096, 2, 0)]);
    }

    #[test]
    fn ranges_beyond_the_memory_have_no_cells() {
        let cells = Cells::new(64).unwrap();
        for (from, bytes) in [(60, 8), (64, 4), (4_u64.wrapping_neg(), 8), (0, 0), (2, 4), (0, 6)] {
            assert!(cells.coarse(from, bytes).is_none(), "{from}, {bytes}");
        }
        assert_eq!(cells.coarse(0, 64).unwrap().len(), 16);
    }

    #[test]
    fn the_last_bytes_are_one_cell() {
        let cells = Cells::new(6).unwrap();
        assert_eq!(visited(&cells, 4, 2), [(4, 4, 0)]);
        assert_eq!(visited(&cells, 0, 6), [(0, 4, 0), (4, 4, 0)]);
    }
}
