//! Global memory: regions by address.

mod kernel;
mod place;

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::backing::{ALIGN, Backing};
use super::region::{Region, Role};
use super::shadow::cells::RECORDS;
use crate::error::{Error, Result};

pub use kernel::Cache;
pub use place::Place;

/// The first device address.
const FIRST: u64 = 0x7f00_0000_0000;
/// Where device addresses end: below the windows of shared and local memory.
const LAST: u64 = 0x1_f000_0000_0000;
/// Addresses between two regions that belong to none: an index of 32 bits that wraps around, times 8 bytes, stays
/// within.
const GUARD: u64 = 1 << 35;
/// The same once there are many regions.
const SMALL_GUARD: u64 = 1 << 26;
/// From which address on guards are small.
const CROWDED: u64 = 0x1_7f00_0000_0000;
/// Freed regions that are remembered.
const REMEMBERED: usize = 4096;

/// What device addresses look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// Numbers of their own, from 0x7f00_0000_0000 up, the same in every run, 32 GiB apart.
    #[default]
    Virtual,
    /// The host's own addresses: for clients that pass pointers of theirs inside data.
    Host,
}

/// Global memory of a device: shared by all threads of the host that run its blocks.
///
/// Nobody but kernels accesses a region while one runs: [`Global::read`], [`Global::write`] and [`Global::fill`] take
/// care of that by borrowing the whole memory for as long.
#[derive(Debug)]
pub struct Global {
    addressing: Addressing,
    /// Whether regions have shadows.
    checked: bool,
    table: RwLock<Table>,
    /// Held by the 128-bit atomics, which the host may not have.
    wide: Mutex<()>,
    /// The next record of a launch that is watched: see [`super::shadow`].
    record: Arc<AtomicU32>,
}

#[derive(Debug)]
struct Table {
    /// By address. Boxed, so that a region stays where it is: it goes only with `&mut Global`.
    #[allow(clippy::vec_box, reason = "references to regions outlive the growth of the vector")]
    regions: Vec<Box<Region>>,
    freed: VecDeque<Freed>,
    /// One past the last address given out.
    next: u64,
}

#[derive(Debug)]
struct Freed {
    name: Box<str>,
    base: u64,
    bytes: u64,
    element: u32,
}

impl Default for Global {
    fn default() -> Self {
        Self::new(Addressing::Virtual, false)
    }
}

impl Global {
    /// No memory yet. `checked` regions remember what [`super::shadow`] asks for.
    pub fn new(addressing: Addressing, checked: bool) -> Self {
        let table = Table { regions: Vec::new(), freed: VecDeque::new(), next: FIRST };
        Self {
            addressing,
            checked,
            table: RwLock::new(table),
            wide: Mutex::new(()),
            record: Arc::new(AtomicU32::new(1)),
        }
    }

    /// Whether regions have shadows.
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    /// Zeroed memory, which counts as not written, at a multiple of `align`, and of no larger power of two below 256, so that a kernel finds the
    /// alignment that it was promised and no better. Nothing is taken from the host until it is touched.
    ///
    /// # Errors
    ///
    /// An alignment that is no power of two, or a host without room for so many addresses.
    pub fn allocate(&self, bytes: u64, align: u64, name: &str) -> Result<u64> {
        if !align.is_power_of_two() || align > 1 << 32 {
            return Err(Error::Memory(format!("{name}: an alignment of {align} bytes is no power of two up to 4 GiB")));
        }
        let small = if align < ALIGN as u64 { align } else { 0 };
        let room = match self.addressing {
            Addressing::Virtual => small,
            Addressing::Host => small + align,
        };
        let backing = bytes
            .checked_add(room)
            .and_then(Backing::zeroed)
            .ok_or_else(|| Error::Memory(format!("{name}: out of memory: no room for {bytes} bytes")))?;
        let start = backing.start().as_ptr() as u64;
        let skipped = match self.addressing {
            Addressing::Virtual => small,
            Addressing::Host => start.next_multiple_of(align.max(ALIGN as u64)) - start + small,
        };
        // SAFETY: `skipped` is within the room added above: the start is a multiple of 256 already.
        let host = unsafe { backing.start().add(skipped as usize) };
        self.enter(host, bytes, align.max(ALIGN as u64), name, Some(backing), None)
    }

    /// The caller's memory, seen by kernels from the address returned: in [`Addressing::Host`] the pointer itself, else
    /// one that agrees with it in the low 8 bits, so that kernels find the caller's alignment.
    ///
    /// # Safety
    ///
    /// The bytes stay valid for reads and writes until the region is freed or the memory dropped, for reads only where
    /// the region is declared [`Role::Constant`] before the first launch, and nobody else accesses them during a launch.
    ///
    /// # Errors
    ///
    /// In [`Addressing::Host`], memory that overlaps a region.
    pub unsafe fn borrow(&self, host: *mut u8, bytes: u64, name: &str) -> Result<u64> {
        let Some(host) = NonNull::new(host) else {
            return Err(Error::Memory(format!("{name}: the pointer is null")));
        };
        if bytes > isize::MAX as u64 {
            return Err(Error::Memory(format!("{name}: {bytes} bytes are more than an address space")));
        }
        self.enter(host, bytes, ALIGN as u64, name, None, None)
    }

    /// As [`Global::borrow`], at the pointer itself: for pointers that lie in data or in integers.
    ///
    /// # Safety
    ///
    /// That of [`Global::borrow`].
    ///
    /// # Errors
    ///
    /// Memory that overlaps a region.
    pub unsafe fn borrow_in_place(&self, host: *mut u8, bytes: u64, name: &str) -> Result<()> {
        let Some(host) = NonNull::new(host) else {
            return Err(Error::Memory(format!("{name}: the pointer is null")));
        };
        let base = host.as_ptr() as u64;
        if bytes > isize::MAX as u64 || base.checked_add(bytes).is_none_or(|end| end > LAST) {
            return Err(Error::Memory(format!("{name}: {bytes} bytes at {base:#x} are no addresses of a device")));
        }
        self.enter(host, bytes, ALIGN as u64, name, None, Some(base)).map(|_| ())
    }

    fn enter(
        &self,
        host: NonNull<u8>,
        bytes: u64,
        align: u64,
        name: &str,
        backing: Option<Backing>,
        fixed: Option<u64>,
    ) -> Result<u64> {
        let start = host.as_ptr() as u64;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let base = match (fixed, self.addressing) {
            (Some(base), _) => base,
            (None, Addressing::Host) => start,
            (None, Addressing::Virtual) => {
                let guard = if table.next < CROWDED { GUARD } else { SMALL_GUARD };
                let guard = if table.next == FIRST { 0 } else { guard };
                let base = (table.next + guard).next_multiple_of(align.max(1 << 16)) + start % ALIGN as u64;
                if base.checked_add(bytes).is_none_or(|end| end > LAST) {
                    let message = format!("{name}: out of memory: the device has no addresses left for {bytes} bytes");
                    return Err(Error::Memory(message));
                }
                table.next = base + bytes;
                base
            }
        };
        let index = table.regions.partition_point(|region| region.base() < base);
        let before = index.checked_sub(1).map(|before| &table.regions[before]);
        let after = table.regions.get(index);
        let overlapped = before
            .filter(|before| base - before.base() < before.bytes())
            .or(after.filter(|after| after.base() - base < bytes || after.base() == base && bytes == 0));
        if let Some(region) = overlapped {
            let message =
                format!("{name}: its {bytes} bytes at {base:#x} overlap {}'s {}", region.name(), region.bytes());
            return Err(Error::Memory(message));
        }
        table
            .freed
            .retain(|freed| freed.base.wrapping_sub(base) >= bytes && base.wrapping_sub(freed.base) >= freed.bytes);
        // What the caller lends holds what the caller wrote.
        let written = backing.is_none();
        let mut region = Box::new(Region::new(name, base, bytes, host, backing));
        if self.checked && region.watch(written).is_none() {
            return Err(Error::Memory(format!("{name}: out of memory: no room for the shadow of {bytes} bytes")));
        }
        table.regions.insert(index, region);
        Ok(base)
    }

    fn beginning_at(&mut self, base: u64) -> Result<&mut Region> {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        match table.regions.binary_search_by_key(&base, |region| region.base()) {
            Ok(index) => Ok(&mut table.regions[index]),
            Err(_) => Err(Error::Memory(format!("no region begins at {base:#x}"))),
        }
    }

    /// Says what the region at `base` is to kernels, and how large its elements are in bytes (0: unknown).
    ///
    /// # Errors
    ///
    /// No region begins there.
    pub fn declare(&mut self, base: u64, role: Role, element: u32) -> Result<()> {
        self.beginning_at(base)?.declare(role, element);
        Ok(())
    }

    /// `bytes` bytes from `from` on, counted from the start of the region at `base`, belong to no element of its tensor: the
    /// gaps that strides leave. Kernels must not touch them; the host may. Accesses to such a region are slower.
    ///
    /// # Errors
    ///
    /// No region begins there, or the bytes are not all within it.
    pub fn exclude(&mut self, base: u64, from: u64, bytes: u64) -> Result<()> {
        let region = self.beginning_at(base)?;
        if from.checked_add(bytes).is_none_or(|end| end > region.bytes()) {
            return Err(Error::Memory(format!(
                "{}: a gap of {bytes} bytes at {from} is not within its {} bytes",
                region.name(),
                region.bytes()
            )));
        }
        region.exclude(from, bytes).ok_or_else(|| Error::Memory(format!("{}: out of memory", region.name())))
    }

    /// What came before a launch is ordered before it: the number of its first record is past all that cells know, or
    /// cells know nothing.
    pub(super) fn begin_launch(&mut self) -> Arc<AtomicU32> {
        if self.record.load(Relaxed) > RECORDS / 4 {
            let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
            table.regions.iter_mut().for_each(|region| region.forget_accesses());
            self.record = Arc::new(AtomicU32::new(1));
        }
        self.record.clone()
    }

    /// The region at `base` counts as not written, whatever it holds: an output, or a workspace, before a launch. Fill it
    /// with a pattern first, where its contents shall tell.
    ///
    /// # Errors
    ///
    /// No region begins there.
    pub fn forget(&mut self, base: u64) -> Result<()> {
        self.beginning_at(base)?.forget_writes();
        Ok(())
    }

    /// `bytes` bytes from `from` on, counted from the start of the region at `base`, count as not written: what is left
    /// of an output after a launch that wrote some of it.
    ///
    /// # Errors
    ///
    /// No region begins there, or the bytes are not all within it.
    pub fn forget_part(&mut self, base: u64, from: u64, bytes: u64) -> Result<()> {
        let region = self.beginning_at(base)?;
        if from.checked_add(bytes).is_none_or(|end| end > region.bytes()) {
            let message = format!("{}: {bytes} bytes at {from} are not within its {}", region.name(), region.bytes());
            return Err(Error::Memory(message));
        }
        region.forget_part(from, bytes);
        Ok(())
    }

    /// Where addresses go on from: see [`Global::rewind`].
    pub fn mark(&mut self) -> u64 {
        self.table.get_mut().unwrap_or_else(PoisonError::into_inner).next
    }

    /// Gives back the memory of every region made since [`Global::mark`] answered so, as if none had been: the same
    /// launch sees the same addresses again, however many came before. Nothing happens in [`Addressing::Host`].
    pub fn rewind(&mut self, mark: u64) {
        if self.addressing == Addressing::Host {
            return;
        }
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        table.regions.retain(|region| region.base() < mark);
        table.freed.retain(|freed| freed.base < mark);
        table.next = mark;
    }

    /// Gives a region's memory back. Its addresses are not used again soon; accesses to them are told as use after free.
    ///
    /// # Errors
    ///
    /// No region begins there: the name of the one that the address lies in, or that it was freed before.
    pub fn free(&mut self, base: u64) -> Result<()> {
        let place = self.place(base, 1);
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Ok(index) = table.regions.binary_search_by_key(&base, |region| region.base()) else {
            return Err(Error::Memory(match place {
                Place::Freed { region, offset: 0, .. } => format!("{region} was freed before"),
                place => format!("{base:#x} is not the start of a region: {place}"),
            }));
        };
        let region = table.regions.remove(index);
        if table.freed.len() == REMEMBERED {
            table.freed.pop_front();
        }
        table.freed.push_back(Freed {
            name: region.name().into(),
            base,
            bytes: region.bytes(),
            element: region.element(),
        });
        Ok(())
    }

    /// What a kernel's `free` does: the region answers no more; its memory goes with [`Global::free`] or with the whole.
    ///
    /// # Errors
    ///
    /// As [`Global::free`]'s.
    pub fn release(&self, base: u64) -> Result<()> {
        match self.find(base) {
            Some(region) if region.base() == base => {
                region.release();
                Ok(())
            }
            _ => Err(Error::Memory(match self.place(base, 1) {
                Place::Freed { region, offset: 0, .. } => format!("{region} was freed before"),
                place => format!("{base:#x} is not the start of a region: {place}"),
            })),
        }
    }

    /// The region that an address lies in, unless it was freed.
    pub fn find(&self, address: u64) -> Option<&Region> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let index = table.regions.partition_point(|region| region.base() <= address).checked_sub(1)?;
        let region: *const Region = &*table.regions[index];
        // SAFETY: the region is boxed and leaves the table only with `&mut self`, so it lives as long as this borrow.
        let region = unsafe { &*region };
        (region.contains(address) && !region.is_released()).then_some(region)
    }

    /// Every region that was not freed, by address.
    pub fn regions(&self) -> Vec<&Region> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let regions = table.regions.iter().map(|region| -> *const Region { &**region });
        // SAFETY: as in `find`.
        regions.map(|region| unsafe { &*region }).filter(|region| !region.is_released()).collect()
    }

    fn hosted(&self, address: u64, bytes: usize, write: bool) -> Result<*mut u8> {
        let region = self.find(address).or_else(|| {
            // The end of a region is a place for nothing.
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            let found: Option<*const Region> = table
                .regions
                .iter()
                .find(|region| bytes == 0 && region.base() == address)
                .map(|region| &raw const **region);
            // SAFETY: as in `find`.
            found.map(|region| unsafe { &*region })
        });
        let view = region.map(Region::all_readable);
        match view.filter(|view| (address - view.base).checked_add(bytes as u64).is_some_and(|end| end <= view.bytes)) {
            // SAFETY: the offset is within the region's host memory.
            Some(view) => Ok(unsafe { view.host.add((address - view.base) as usize) }),
            None => {
                let action = if write { "write" } else { "read" };
                let place = self.place(address, bytes.min(u32::MAX as usize) as u32);
                Err(Error::Memory(format!("cannot {action} {bytes} bytes at {address:#x}: {place}")))
            }
        }
    }

    /// Copies memory to the host.
    ///
    /// # Errors
    ///
    /// Bytes that are not all in one region.
    pub fn read(&mut self, address: u64, to: &mut [u8]) -> Result<()> {
        let from = self.hosted(address, to.len(), false)?;
        // SAFETY: so many bytes are valid from there on; no kernel runs while `self` is borrowed so.
        unsafe { std::ptr::copy(from, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Copies memory from the host, constants included.
    ///
    /// # Errors
    ///
    /// Bytes that are not all in one region.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<()> {
        let to = self.hosted(address, from.len(), true)?;
        // SAFETY: as in `read`.
        unsafe { std::ptr::copy(from.as_ptr(), to, from.len()) };
        self.note_written(address, from.len() as u64);
        Ok(())
    }

    /// Fills memory with a pattern, repeated and cut at the end; whole pages of a large region are touched.
    ///
    /// # Errors
    ///
    /// Bytes that are not all in one region, or no pattern.
    pub fn fill(&mut self, address: u64, bytes: u64, pattern: &[u8]) -> Result<()> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let to = self.hosted(address, length, true)?;
        match *pattern {
            [] => return Err(Error::Memory("nothing to fill memory with: the pattern is empty".to_owned())),
            // SAFETY: as in `read`.
            [byte] => unsafe { to.write_bytes(byte, length) },
            _ => {
                for start in (0..length).step_by(pattern.len()) {
                    let part = pattern.len().min(length - start);
                    // SAFETY: as in `read`; `start + part` is at most `length`.
                    unsafe { std::ptr::copy(pattern.as_ptr(), to.add(start), part) };
                }
            }
        }
        self.note_written(address, bytes);
        Ok(())
    }

    fn note_written(&self, address: u64, bytes: u64) {
        if let Some((region, written)) = self.find(address).and_then(|region| Some((region, region.written()?))) {
            written.insert(address - region.base(), bytes);
        }
    }
}
