//! One bit for every byte: whether something wrote it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::memory::backing::Backing;

/// A set of bytes of one memory. Threads of the host may add to it at the same time.
#[derive(Debug)]
pub struct Bits {
    backing: Backing,
    bytes: u64,
    /// Whether all bytes are in the set, whatever the bits say.
    whole: AtomicBool,
}

impl Bits {
    /// The empty set, of a memory of so many bytes. `None` where the host has no room.
    pub fn new(bytes: u64) -> Option<Self> {
        Some(Self { backing: Backing::zeroed(bytes.div_ceil(64) * 8 + 8)?, bytes, whole: AtomicBool::new(false) })
    }

    /// Bytes of the memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether every byte is known to be in the set, at no cost.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.whole.load(Relaxed)
    }

    #[inline(always)]
    fn octet(&self, index: u64) -> &AtomicU8 {
        assert!(index < self.backing.bytes() as u64);
        // SAFETY: within the backing, whose bytes are accessed as atomics only.
        unsafe { &*self.backing.start().as_ptr().add(index as usize).cast::<AtomicU8>() }
    }

    /// 64 bytes' bits.
    #[inline(always)]
    fn word(&self, index: u64) -> &AtomicU64 {
        assert!(index < self.backing.bytes() as u64 / 8);
        // SAFETY: within the backing, aligned, and accessed as atomics only.
        unsafe { &*self.backing.start().as_ptr().cast::<AtomicU64>().add(index as usize) }
    }

    /// Adds bytes.
    #[inline]
    pub fn insert(&self, from: u64, bytes: u64) {
        if bytes == 0 || self.is_whole() {
            return;
        }
        if bytes >= self.bytes {
            self.whole.store(true, Relaxed);
            return;
        }
        let end = (from + bytes).min(self.bytes);
        let mut at = from;
        if (from | bytes).is_multiple_of(64) {
            while at < end {
                let word = self.word(at / 64);
                if word.load(Relaxed) != u64::MAX {
                    word.store(u64::MAX, Relaxed);
                }
                at += 64;
            }
        }
        while at < end {
            let index = at / 8;
            let upto = (index * 8 + 8).min(end);
            let mask = bits_of(at % 8, upto - at);
            let octet = self.octet(index);
            if mask == 0xff {
                octet.store(mask, Relaxed);
            } else if octet.load(Relaxed) & mask != mask {
                octet.fetch_or(mask, Relaxed);
            }
            at = upto;
        }
    }

    /// Adds bytes that nobody else adds neighbours of at this time: those of a page of cells that is held.
    #[inline(always)]
    pub fn insert_held(&self, from: u64, bytes: u64) {
        if self.is_whole() {
            return;
        }
        let end = (from + bytes).min(self.bytes);
        let mut at = from;
        while at < end {
            let word = self.word(at / 64);
            let upto = ((at / 64 + 1) * 64).min(end);
            let mask = u64::MAX >> (64 - (upto - at)) << (at % 64);
            let old = word.load(Relaxed);
            if old | mask != old {
                word.store(old | mask, Relaxed);
            }
            at = upto;
        }
    }

    /// Removes bytes.
    pub fn remove(&mut self, from: u64, bytes: u64) {
        let end = (from + bytes).min(self.bytes);
        if *self.whole.get_mut() {
            *self.whole.get_mut() = false;
            for index in 0..self.bytes.div_ceil(8) {
                self.octet(index).store(0xff, Relaxed);
            }
        }
        let mut at = from;
        while at < end {
            let index = at / 8;
            let upto = (index * 8 + 8).min(end);
            let octet = self.octet(index);
            octet.store(octet.load(Relaxed) & !bits_of(at % 8, upto - at), Relaxed);
            at = upto;
        }
    }

    /// The bytes of a range that are in the set, as bits from the lowest; a range of up to 32 bytes.
    #[inline]
    pub fn among(&self, from: u64, bytes: u32) -> u32 {
        let all = (1_u64 << bytes) - 1;
        if self.is_whole() || from >= self.bytes {
            return all as u32;
        }
        let (first, shift) = (from / 8, from % 8);
        let octets = (shift + u64::from(bytes)).div_ceil(8);
        let mut found = 0;
        for octet in 0..octets {
            found |= u64::from(self.octet(first + octet).load(Relaxed)) << (8 * octet);
        }
        (found >> shift & all) as u32
    }

    /// Whether all bytes of a range are in the set.
    #[inline]
    pub fn contains(&self, from: u64, bytes: u64) -> bool {
        if self.is_whole() {
            return true;
        }
        let end = (from + bytes).min(self.bytes);
        let mut at = from;
        let mut missing = 0;
        if (from | bytes).is_multiple_of(64) {
            let mut all = u64::MAX;
            while at < end {
                all &= self.word(at / 64).load(Relaxed);
                at += 64;
            }
            return all == u64::MAX;
        }
        while at < end {
            let index = at / 8;
            let upto = (index * 8 + 8).min(end);
            missing |= bits_of(at % 8, upto - at) & !self.octet(index).load(Relaxed);
            at = upto;
        }
        missing == 0
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        *self.whole.get_mut() = false;
        match self.backing.bytes() {
            // SAFETY: the backing is owned, and `self` borrowed alone.
            0..0x10_0000 => unsafe { self.backing.start().as_ptr().write_bytes(0, self.backing.bytes()) },
            // A fresh one touches nothing.
            bytes => self.backing = Backing::zeroed(bytes as u64).expect("as much as was there before"),
        }
    }

    /// The ranges, first and one past the last byte, that are not in the set.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        if self.is_whole() {
            return ranges;
        }
        let mut add = |from: u64, to: u64| match ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => ranges.push((from, to)),
        };
        for index in 0..self.bytes.div_ceil(8) {
            let end = (index * 8 + 8).min(self.bytes);
            match self.octet(index).load(Relaxed) {
                0xff => {}
                0 => add(index * 8, end),
                octet => {
                    for at in (index * 8..end).filter(|at| octet >> (at % 8) & 1 == 0) {
                        add(at, at + 1);
                    }
                }
            }
        }
        ranges
    }
}

/// `count` ones from bit `first` on.
#[inline(always)]
fn bits_of(first: u64, count: u64) -> u8 {
    (((1_u32 << count) - 1) << first) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_missing() {
        let table: &[(u64, &[(u64, u64)], &[(u64, u64)])] = &[
            (20, &[], &[(0, 20)]),
            (20, &[(0, 20)], &[]),
            (20, &[(0, 4), (4, 16)], &[]),
            (20, &[(3, 14)], &[(0, 3), (17, 20)]),
            (20, &[(0, 1), (19, 1)], &[(1, 19)]),
            (16, &[(8, 8)], &[(0, 8)]),
            (1, &[], &[(0, 1)]),
            (0, &[], &[]),
        ];
        for &(bytes, inserted, missing) in table {
            let bits = Bits::new(bytes).unwrap();
            inserted.iter().for_each(|&(from, bytes)| bits.insert(from, bytes));
            assert_eq!(bits.missing(), missing, "{bytes}, {inserted:?}");
            for from in 0..bytes {
                let there = !missing.iter().any(|&(first, end)| first <= from && from < end);
                assert_eq!(bits.contains(from, 1), there, "{from} of {bytes}, {inserted:?}");
                assert_eq!(bits.among(from, 1) == 1, there, "{from} of {bytes}, {inserted:?}");
            }
        }
    }

    #[test]
    fn removed_bytes_are_missing() {
        let mut bits = Bits::new(20).unwrap();
        bits.insert(0, 20);
        bits.remove(3, 14);
        assert_eq!(bits.missing(), [(3, 17)]);
        bits.insert(4, 2);
        bits.remove(5, 100);
        assert_eq!(bits.missing(), [(3, 4), (5, 20)]);
    }

    #[test]
    fn bytes_among_32() {
        let bits = Bits::new(64).unwrap();
        bits.insert(5, 3);
        bits.insert(20, 20);
        assert_eq!(bits.among(4, 8), 0b0000_1110);
        assert_eq!(bits.among(5, 3), 0b111);
        assert_eq!(bits.among(7, 32), 0xffff_e001);
    }
}
