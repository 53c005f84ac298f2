//! Records of accesses, named by the stamps in cells: who, when, where in the program.

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

/// Records that all blocks of a launch write and read.
#[derive(Debug)]
pub struct Log {
    backing: Backing,
    next: AtomicU32,
}

impl Log {
    /// An empty log.
    pub fn new() -> Option<Self> {
        Some(Self { backing: Backing::zeroed(u64::from(RECORDS) * 16)?, next: AtomicU32::new(1) })
    }

    #[inline(always)]
    fn word(&self, record: u32, word: usize) -> &AtomicU32 {
        assert!(record < RECORDS);
        // SAFETY: within the backing, aligned, accessed as atomics only.
        unsafe { &*self.backing.start().as_ptr().cast::<AtomicU32>().add(record as usize * 4 + word) }
    }

    /// Adds a record; 0 where the log is full.
    pub fn add(&self, record: Record) -> u32 {
        let index = self.next.load(Ordering::Relaxed);
        if index >= RECORDS {
            return 0;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        if index >= RECORDS {
            return 0;
        }
        self.word(index, 0).store(record.block, Ordering::Relaxed);
        self.word(index, 1).store(record.site, Ordering::Relaxed);
        self.word(index, 2).store(record.clock, Ordering::Relaxed);
        self.word(index, 3).store(u32::from(record.warp) | u32::from(record.flags) << 8, Ordering::Relaxed);
        // Whoever finds the record's number in a cell finds the record.
        fence(Ordering::Release);
        index
    }

    /// A record by number.
    pub fn get(&self, index: u32) -> Record {
        fence(Ordering::Acquire);
        let last = self.word(index, 3).load(Ordering::Relaxed);
        Record {
            block: self.word(index, 0).load(Ordering::Relaxed),
            site: self.word(index, 1).load(Ordering::Relaxed),
            clock: self.word(index, 2).load(Ordering::Relaxed),
            warp: last as u8,
            flags: (last >> 8) as u8,
        }
    }

    /// Whether no record fits any more, so that races go unseen from here on.
    pub fn is_full(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= RECORDS
    }
}
