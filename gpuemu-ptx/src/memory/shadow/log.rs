//! Records of accesses, named by the stamps in cells: who, when, where in the program.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use super::cells::RECORDS;
use crate::memory::backing::Backing;

/// Of a write.
pub const WRITE: u8 = 1;
/// Of an atomic.
pub const ATOMIC: u8 = 2;
/// Of a strong access.
pub const STRONG: u8 = 4;
/// Of a strong access that threads of other blocks see in order.
pub const DEVICE: u8 = 8;
/// Of an asynchronous copy.
pub const COPY: u8 = 16;
/// Of an access of two bytes a lane.
pub const HALVES: u8 = 32;
/// Of an access of one byte a lane.
pub const BYTES: u8 = 64;

/// Of a read that takes memory to be constant.
pub const CONSTANT: u8 = 128;

/// The clock of an asynchronous copy that nobody has waited for.
pub const PENDING: u32 = u32::MAX;

/// One instruction's accesses by one warp between two events that order threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The block, linear.
    pub block: u32,
    /// The caller's number for the instruction.
    pub site: u32,
    /// The warp's clock.
    pub clock: u32,
    /// The warp in its block.
    pub warp: u8,
    /// What kind of access.
    pub flags: u8,
}

/// Records that a block takes from the log at once.
const CHUNK: u32 = 256;

/// Records that all blocks of a launch write and read. Their numbers go on from launch to launch, so that cells need no
/// clearing between: what is older than the first is nobody's.
#[derive(Debug)]
pub struct Log {
    backing: Backing,
    first: u32,
    next: Arc<AtomicU32>,
}

impl Log {
    /// An empty log, whose numbers begin where `next` is.
    pub fn new(next: Arc<AtomicU32>) -> Option<Self> {
        let first = next.load(Ordering::Relaxed);
        Some(Self { backing: Backing::zeroed(u64::from(RECORDS - first) * 16)?, first, next })
    }

    /// Number of the first record.
    #[inline(always)]
    pub fn first(&self) -> u32 {
        self.first
    }

    #[inline(always)]
    fn word(&self, record: u32, word: usize) -> &AtomicU32 {
        let index = record.wrapping_sub(self.first);
        assert!(index < RECORDS - self.first);
        // SAFETY: within the backing, aligned, accessed as atomics only.
        unsafe { &*self.backing.start().as_ptr().cast::<AtomicU32>().add(index as usize * 4 + word) }
    }

    /// Adds a record, by a number of `chunk`, which is renewed where it is empty; 0 where the log is full.
    pub fn add(&self, record: Record, chunk: &mut Range<u32>) -> u32 {
        if chunk.start >= chunk.end {
            if self.is_full() {
                return 0;
            }
            let start = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            *chunk = start..start + CHUNK;
        }
        let index = chunk.start;
        if index >= RECORDS {
            return 0;
        }
        chunk.start += 1;
        self.word(index, 0).store(record.block, Ordering::Relaxed);
        self.word(index, 1).store(record.site, Ordering::Relaxed);
        self.word(index, 2).store(record.clock, Ordering::Relaxed);
        self.word(index, 3).store(u32::from(record.warp) | u32::from(record.flags) << 8, Ordering::Relaxed);
        // Whoever finds the record's number in a cell finds the record.
        fence(Ordering::Release);
        index
    }

    /// A record by number; `None` where it is of an earlier launch.
    pub fn get(&self, index: u32) -> Option<Record> {
        if index < self.first {
            return None;
        }
        fence(Ordering::Acquire);
        let last = self.word(index, 3).load(Ordering::Relaxed);
        Some(Record {
            block: self.word(index, 0).load(Ordering::Relaxed),
            site: self.word(index, 1).load(Ordering::Relaxed),
            clock: self.word(index, 2).load(Ordering::Relaxed),
            warp: last as u8,
            flags: (last >> 8) as u8,
        })
    }

    /// Whether no record fits any more, so that races go unseen from here on.
    pub fn is_full(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= RECORDS
    }
}
