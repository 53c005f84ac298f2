//! Host memory that costs nothing until it is touched.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use memmap2::{MmapOptions, MmapRaw};

/// What every backing is aligned to.
pub(super) const ALIGN: usize = 256;

/// From how many bytes on memory is mapped page by page rather than taken from the heap.
const MAPPED: usize = 1 << 15;

/// Zeroed memory. Its bytes are written through raw pointers only, by whoever proves that this is right.
#[derive(Debug)]
pub(super) struct Backing {
    start: NonNull<u8>,
    bytes: usize,
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Heap(Layout),
    /// Kept for its drop, which unmaps.
    Mapped(#[allow(dead_code)] MmapRaw),
}

// SAFETY: the memory is owned, and its address does not depend on the thread.
unsafe impl Send for Backing {}
// SAFETY: a shared backing hands out a pointer and a length; accesses through the pointer carry their own proof.
unsafe impl Sync for Backing {}

impl Backing {
    /// `bytes` zeros at a multiple of [`ALIGN`]. `None` where the host has no room for the addresses.
    pub(super) fn zeroed(bytes: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= isize::MAX as usize - ALIGN)?;
        if bytes < MAPPED {
            let layout = Layout::from_size_align(bytes.max(1), ALIGN).ok()?;
            // SAFETY: the layout has at least one byte.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
            return Some(Self { start, bytes, memory: Memory::Heap(layout) });
        }
        let map: MmapRaw = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok()?.into();
        let start = NonNull::new(map.as_mut_ptr())?;
        Some(Self { start, bytes, memory: Memory::Mapped(map) })
    }

    /// The first byte.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// How many there are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if let Memory::Heap(layout) = self.memory {
            // SAFETY: allocated with this layout, and released once, here.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_zeroed_and_aligned() {
        for bytes in [0, 1, 255, 4096, MAPPED as u64 - 1, MAPPED as u64, 1 << 20] {
            let backing = Backing::zeroed(bytes).unwrap();
            assert_eq!(backing.start().as_ptr() as usize % ALIGN, 0, "{bytes}");
            // SAFETY: the bytes are owned and zeroed.
            let contents = unsafe { std::slice::from_raw_parts(backing.start().as_ptr(), backing.bytes()) };
            assert!(contents.iter().all(|&byte| byte == 0), "{bytes}");
        }
    }

    #[test]
    fn a_terabyte_costs_nothing_until_it_is_touched() {
        let backing = Backing::zeroed(1 << 40).unwrap();
        // SAFETY: the last byte is within the mapping, which nobody else sees.
        unsafe {
            let last = backing.start().as_ptr().add((1 << 40) - 1);
            last.write(7);
            assert_eq!(last.read(), 7);
        }
    }

    #[test]
    fn more_than_the_address_space_is_refused() {
        assert!(Backing::zeroed(u64::MAX).is_none());
        assert!(Backing::zeroed(1 << 60).is_none());
    }
}
