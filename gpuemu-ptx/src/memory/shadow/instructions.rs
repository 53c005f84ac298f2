//! What a block's shadow is told: accesses by instructions, and the events that order them.

use std::sync::Arc;

use super::bits::Bits;
use super::block::{Block, Clash, Finding, Race, lanes};
use super::cells::stamp;
use super::clocks::{ACTORS, Cover};
use super::log::{ATOMIC, COPY, PENDING, Record, WRITE};
use super::quick::Quick;
use super::{Order, Scope};
use crate::memory::access::{self, Element, View};
use crate::memory::global::Cache;
use crate::memory::region::{Region, Role};
use crate::memory::shared::Shared;
use crate::memory::{LANES, SHARED_WINDOW};

/// What warps arrive at and wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Meeting {
    /// A barrier by number, where some warps only arrive (`bar.arrive`).
    Barrier(u32),
    /// An mbarrier by its address in shared memory.
    Mbarrier(u32),
}

impl Meeting {
    fn key(self) -> u64 {
        match self {
            Self::Barrier(number) => 1 << 40 | u64::from(number),
            Self::Mbarrier(address) => address.into(),
        }
    }
}

/// An access of a warp: who and where.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    /// The warp in its block.
    pub warp: u32,
    /// The caller's number for the instruction, to be found in [`super::Seen`].
    pub site: u32,
    /// Its memory order.
    pub order: Order,
    /// Of a store, the bits of the lane number in which lanes that differ store one value, each rounded in its own order.
    pub alike: u8,
}

/// Bytes that a lane of an access writes, for comparison.
fn bytes_of<T: Element, const N: usize>(values: &[[T; LANES]; N], lane: usize) -> [u8; 64] {
    const { assert!(size_of::<T>() * N <= 64, "no vector is longer") };
    let mut bytes = [0; 64];
    for (element, row) in values.iter().enumerate() {
        // SAFETY: all elements together have at most 64 bytes.
        unsafe { bytes.as_mut_ptr().add(element * size_of::<T>()).cast::<T>().write_unaligned(row[lane]) }
    }
    bytes
}

/// Whether a write leaves what the earlier one wrote, or what it is a copy of but for the last bits.
///
/// Compilers let several threads hold copies of one value and store them all. A sum of such copies may be rounded in
/// each thread's own order, so that copies of floating-point values agree but for a few units in the last place.
fn same_value<T: Element, const N: usize>(
    instruction: Instruction,
    values: &[[T; LANES]; N],
    places: &[u64; LANES],
    view: View,
    clash: Clash,
) -> bool {
    let size = size_of::<T>();
    let width = (size * N) as u64;
    let place = places[clash.lane];
    let mine = bytes_of(values, clash.lane);
    let theirs = clash.other.map(|other| (places[other], bytes_of(values, other)));
    let before = |at: u64| match &theirs {
        Some((place, bytes)) if at.wrapping_sub(*place) < width => Some(bytes[(at - place) as usize]),
        // SAFETY: within the view, whose bytes are valid and accessed by atomics where threads race.
        _ => (at < view.bytes).then(|| unsafe { u8::read_relaxed(view.host.add(at as usize)) }),
    };
    let end = (clash.from + clash.bytes).min(place + width);
    let touched = |element: &usize| {
        let from = place + (element * size) as u64;
        from < end && clash.from < from + size as u64
    };
    (0..N).filter(touched).all(|element| {
        let (mut old, mut new) = (0_u128, 0_u128);
        for byte in (0..size).rev() {
            let at = element * size + byte;
            let Some(before) = before(place + at as u64) else { return false };
            // Bytes without a conflict do not count.
            let here = (clash.from..end).contains(&(place + at as u64)) || clash.copies;
            old = old << 8 | u128::from(if here { before } else { mine[at] });
            new = new << 8 | u128::from(mine[at]);
        }
        let noise = || size == 4 && within_noise(old as u32, new as u32, scale(values, clash.mask));
        // Lanes that combined one value in both orders, or a warp that does all that another one did.
        let one = |other: usize| (other ^ clash.lane) as u32 & !u32::from(instruction.alike) == 0;
        let wrote = |other: usize| {
            let other = bytes_of(values, other);
            let bytes = &other[element * size..][..size];
            bytes.iter().rev().fold(0, |value: u128, byte| value << 8 | u128::from(*byte)) == old
        };
        let combined = || match clash.other {
            Some(other) => one(other),
            None => lanes(clash.mask).any(|other| places[other] == place && one(other) && wrote(other)),
        };
        old == new || clash.copies && (nearly(old, new, size) || noise() || combined())
    })
}

/// The largest binary32 number that the lanes write.
fn scale<T: Element, const N: usize>(values: &[[T; LANES]; N], mask: u32) -> f32 {
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap_or_default()).abs();
    let largest = |lane| bytes_of(values, lane)[..4 * N].chunks_exact(4).map(number).fold(0.0, f32::max);
    lanes(mask).map(largest).fold(0.0, f32::max)
}

/// Whether two binary32 numbers differ by what rounding leaves of terms that cancel, given how large numbers are around
/// them. Integers are no such numbers: they are far smaller.
fn within_noise(a: u32, b: u32, scale: f32) -> bool {
    const NOISE: f32 = 1.0 / 65_536.0;
    scale > 1e-30 && scale.is_finite() && (f32::from_bits(a) - f32::from_bits(b)).abs() <= scale * NOISE
}

/// Whether all lanes, which are several, write the same bytes to what looks like one place.
#[inline(always)]
fn alike<T: Element, const N: usize>(addresses: &[u64; LANES], values: &[[T; LANES]; N], mask: u32) -> bool {
    let (first, last) = (mask.trailing_zeros() as usize % LANES, (mask | 1).ilog2() as usize);
    first != last && addresses[first] == addresses[last] && alike_in_lanes(values, mask)
}

#[inline(never)]
fn alike_in_lanes<T: Element, const N: usize>(values: &[[T; LANES]; N], mask: u32) -> bool {
    if mask == u32::MAX {
        return values.iter().all(|row| row[1..] == row[..LANES - 1]);
    }
    let first = bytes_of(values, mask.trailing_zeros() as usize % LANES);
    lanes(mask).all(|lane| bytes_of(values, lane) == first)
}

/// Units in the last place that copies of a binary32 number may differ by, a fifth of a percent at most: terms a few thousand
/// times as large may have cancelled, each lane's in its own order. Lanes that write numbers of their own are further apart.
const CANCELLED: u64 = 1 << 14;

/// Whether two patterns of so many bytes are one floating-point value, or two of half the width, but for the last bits.
/// Small integers are subnormal numbers in any format, and never are.
fn nearly(a: u128, b: u128, bytes: usize) -> bool {
    let near = |bits: u32, exponent: u32, units: u64| {
        let mask = u64::MAX >> (64 - bits);
        let (a, b) = (a as u64 & mask, b as u64 & mask);
        let normal = |x: u64| {
            let field = x >> (bits - 1 - exponent) & ((1 << exponent) - 1);
            field != 0 && field != (1 << exponent) - 1
        };
        normal(a) && normal(b) && a >> (bits - 1) == b >> (bits - 1) && a.abs_diff(b) <= units
    };
    let half = |a: u64, b: u64| {
        let large = |x: u64| x & 0x7fff >= 0x0400;
        large(a) && large(b) && a.abs_diff(b) <= 2
    };
    match bytes {
        2 => half(a as u64, b as u64),
        4 => {
            near(32, 8, CANCELLED) || half(a as u64 & 0xffff, b as u64 & 0xffff) && half(a as u64 >> 16, b as u64 >> 16)
        }
        8 => near(64, 11, 1 << 10),
        _ => false,
    }
}

/// A race in a region, by the addresses that kernels see.
fn moved(race: Race, base: u64) -> Finding {
    Finding::Race(Race { address: race.address + base, start: race.start + base, ..race })
}

impl<'g> Block<'g> {
    /// The region of the first lane: mostly that of the instruction's last access.
    #[inline(always)]
    fn near(&self, cache: &mut Cache<'g>, addresses: &[u64; LANES], mask: u32) -> Option<&'g Region> {
        let first = addresses[mask.trailing_zeros() as usize % LANES];
        match cache.region().filter(|region| region.contains(first) && !region.is_released()) {
            Some(region) => Some(region),
            None => self.look(cache, first),
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&self, cache: &mut Cache<'g>, address: u64) -> Option<&'g Region> {
        let region = self.global.find(address)?;
        cache.remember(region);
        Some(region)
    }

    /// Calls `run` for every region that lanes access, with the lanes that fit it and their offsets. Lanes that fit none
    /// are left out: the access itself tells of them.
    fn by_region(
        &mut self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        mut run: impl FnMut(&mut Self, &'g Region, &[u64; LANES], u32) -> Option<Finding>,
    ) -> Option<Finding> {
        let mut left = mask;
        while left != 0 {
            let first = addresses[left.trailing_zeros() as usize];
            let region = match cache.region().filter(|region| region.contains(first) && !region.is_released()) {
                Some(region) => Some(region),
                None => self.global.find(first),
            };
            let Some(region) = region else {
                left &= left - 1;
                continue;
            };
            cache.remember(region);
            let view = View { base: region.base(), bytes: region.bytes(), host: std::ptr::null_mut() };
            let fit = match access::fits(view, addresses, left, width.into()) {
                true => left,
                false => lanes(left)
                    .filter(|&lane| access::fits(view, addresses, 1 << lane, width.into()))
                    .fold(0, |fit, lane| fit | 1 << lane),
            };
            if fit != 0 {
                let places = addresses.map(|address| address.wrapping_sub(region.base()));
                let found = run(self, region, &places, fit);
                if found.is_some() {
                    return found;
                }
            }
            left &= !(fit | left & left.wrapping_neg());
        }
        None
    }

    /// A load from global memory is about to be done: `width` bytes a lane. `needed` are the bytes that something must
    /// have written, as bits from the lowest; where it is 0, some byte of each lane must be.
    #[inline(always)]
    pub fn load(
        &mut self,
        cache: &mut Cache<'g>,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        needed: u32,
    ) -> Option<Finding> {
        if mask == 0 {
            return None;
        }
        if instruction.order == Order::Weak
            && let Some(region) = self.near(cache, addresses, mask)
        {
            if region.is_settled() && access::inside(region.base(), region.bytes(), addresses, mask, width.into()) {
                return None;
            }
            match self.quick_global(region, instruction, 0, addresses, mask, width, false) {
                Quick::Done => return None,
                Quick::Left(hard) => {
                    return self.rest(region, instruction, 0, addresses, mask, hard, width, |_| false);
                }
                Quick::Not => {}
            }
        }
        self.load_watched(cache, instruction, addresses, mask, width, needed)
    }

    #[inline(never)]
    fn load_watched(
        &mut self,
        cache: &mut Cache<'g>,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        needed: u32,
    ) -> Option<Finding> {
        let found = self.by_region(cache, addresses, mask, width, |this, region, places, mask| {
            let unwritten =
                region.written().and_then(|written| this.unwritten(written, addresses, places, mask, width, needed));
            let Some(cells) = region.cells() else { return unwritten };
            let actor = this.actor(instruction.warp, instruction.order, 0, instruction.site, false, width);
            let race = this.access(false, cells, &actor, places, mask, mask, width, |_| false);
            let race = race.map(|race| moved(race, region.base()));
            race.or(unwritten)
        });
        if let Some(scope) = instruction.order.scope()
            && self.grid.has_releases()
        {
            self.acquire(instruction.warp, addresses, mask, scope);
        }
        found
    }

    /// A store to global memory is about to be done; the values are those that [`crate::memory::Global::store`] takes.
    #[inline]
    pub fn store<T: Element, const N: usize>(
        &mut self,
        cache: &mut Cache<'g>,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Option<Finding> {
        let width = (size_of::<T>() * N) as u32;
        if instruction.order == Order::Weak
            && let Some(region) = self.near(cache, addresses, mask)
        {
            match self.quick_global(region, instruction, WRITE, addresses, mask, width, alike(addresses, values, mask))
            {
                Quick::Done => return None,
                Quick::Left(hard) => {
                    let places = addresses.map(|address| address.wrapping_sub(region.base()));
                    let view = View { base: 0, ..region.all_readable() };
                    let same = |clash| same_value(instruction, values, &places, view, clash);
                    return self.rest(region, instruction, WRITE, addresses, mask, hard, width, same);
                }
                Quick::Not => {}
            }
        }
        let found = self.by_region(cache, addresses, mask, width, |this, region, places, mask| {
            this.write(region, instruction, WRITE, addresses, places, mask, width, |clash| {
                same_value(instruction, values, places, View { base: 0, ..region.all_readable() }, clash)
            })
        });
        self.release(instruction, addresses, mask, 0);
        found
    }

    /// A weak store of 4 or 8 bytes a lane, side by side from `first` on, to the region that the instruction accessed last.
    /// `false` where that is not so easily recorded: then [`Block::store`] is to be asked.
    #[inline(always)]
    pub fn store_run(&mut self, cache: &Cache<'g>, instruction: Instruction, first: u64, width: u32) -> bool {
        let region = cache.region().filter(|region| !region.is_released());
        region.is_some_and(|region| self.quick_run(region, instruction, first, width) == Quick::Done)
    }

    /// An atomic on global memory is about to be done; `reads` says whether the old value matters (not for `exch`).
    pub fn atomic(
        &mut self,
        cache: &mut Cache<'g>,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        reads: bool,
    ) -> Option<Finding> {
        let kind = WRITE | ATOMIC;
        let region = self.near(cache, addresses, mask).filter(|region| region.written().is_none_or(Bits::is_whole));
        let quick = region.map_or(Quick::Not, |region| {
            match self.quick_global(region, instruction, kind, addresses, mask, width, false) {
                Quick::Left(_) => Quick::Not,
                quick => quick,
            }
        });
        let run = if quick == Quick::Done { 0 } else { mask };
        let found = self.by_region(cache, addresses, run, width, |this, region, places, mask| {
            let unwritten = region
                .written()
                .filter(|_| reads)
                .and_then(|written| this.unwritten(written, addresses, places, mask, width, u32::MAX));
            let wrong = this.write(region, instruction, kind, addresses, places, mask, width, |_| false);
            wrong.or(unwritten)
        });
        if let Some(scope) = instruction.order.scope()
            && self.grid.has_releases()
        {
            self.acquire(instruction.warp, addresses, mask, scope);
        }
        self.release(instruction, addresses, mask, 0);
        found
    }

    #[allow(clippy::too_many_arguments)]
    fn write(
        &mut self,
        region: &Region,
        instruction: Instruction,
        kind: u8,
        addresses: &[u64; LANES],
        places: &[u64; LANES],
        mask: u32,
        width: u32,
        same: impl FnMut(Clash) -> bool,
    ) -> Option<Finding> {
        if region.role() == Role::Input {
            let lane = mask.trailing_zeros() as usize;
            return Some(Finding::InputWritten { lane: lane as u8, address: addresses[lane], bytes: width });
        }
        let cells = region.cells()?;
        if let Some(written) = region.written() {
            self.note_written(written, cells, places, mask, width);
        }
        let actor = self.actor(instruction.warp, instruction.order, kind, instruction.site, false, width);
        let race = self.access(false, cells, &actor, places, mask, mask, width, same);
        race.map(|race| moved(race, region.base()))
    }

    /// What [`Quick::Left`] leaves of an access to one region.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn rest(
        &mut self,
        region: &Region,
        instruction: Instruction,
        kind: u8,
        addresses: &[u64; LANES],
        mask: u32,
        hard: u32,
        width: u32,
        same: impl FnMut(Clash) -> bool,
    ) -> Option<Finding> {
        let cells = region.cells()?;
        let places = addresses.map(|address| address.wrapping_sub(region.base()));
        if kind & WRITE != 0
            && let Some(written) = region.written()
        {
            self.note_written(written, cells, &places, hard, width);
        }
        let actor = self.actor(instruction.warp, instruction.order, kind, instruction.site, false, width);
        let race = self.access(false, cells, &actor, &places, mask, hard, width, same);
        race.map(|race| moved(race, region.base()))
    }

    /// A load from shared memory is about to be done: as [`Block::load`].
    #[inline]
    pub fn load_shared(
        &mut self,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        needed: u32,
    ) -> Option<Finding> {
        let hard = match self.quick_shared(instruction, 0, addresses, mask, width, false) {
            Quick::Done => return None,
            Quick::Left(hard) => hard,
            Quick::Not => mask,
        };
        let mask = self.within_shared(addresses, mask, width);
        let hard = hard & mask;
        let unwritten = self.unwritten_shared(addresses, hard, width, needed);
        let actor = self.actor(instruction.warp, instruction.order, 0, instruction.site, true, width);
        let race = self.access_shared(&actor, addresses, mask, hard, width, |_| false);
        if instruction.order.scope().is_some() {
            for lane in lanes(mask) {
                self.clocks.wait(instruction.warp, SHARED_WINDOW + addresses[lane]);
            }
        }
        race.or(unwritten)
    }

    /// A store to shared memory is about to be done; the values are those that [`Shared::store`] takes.
    #[inline]
    pub fn store_shared<T: Element, const N: usize>(
        &mut self,
        memory: &Shared,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Option<Finding> {
        let width = (size_of::<T>() * N) as u32;
        let hard = match self.quick_shared(instruction, WRITE, addresses, mask, width, alike(addresses, values, mask)) {
            Quick::Done => return None,
            Quick::Left(hard) => hard,
            Quick::Not => mask,
        };
        let mask = self.within_shared(addresses, mask, width);
        let actor = self.actor(instruction.warp, instruction.order, WRITE, instruction.site, true, width);
        let same = |clash| same_value(instruction, values, addresses, memory.view(), clash);
        let found = self.access_shared(&actor, addresses, mask, hard & mask, width, same);
        self.release(instruction, addresses, mask, SHARED_WINDOW);
        found
    }

    /// An atomic on shared memory is about to be done.
    pub fn atomic_shared(
        &mut self,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        reads: bool,
    ) -> Option<Finding> {
        let mask = self.within_shared(addresses, mask, width);
        let unwritten = self.unwritten_shared(addresses, mask, width, u32::MAX).filter(|_| reads);
        let actor = self.actor(instruction.warp, instruction.order, WRITE | ATOMIC, instruction.site, true, width);
        let race = self.access_shared(&actor, addresses, mask, mask, width, |_| false);
        if instruction.order.scope().is_some() {
            for lane in lanes(mask) {
                self.clocks.wait(instruction.warp, SHARED_WINDOW + addresses[lane]);
            }
        }
        self.release(instruction, addresses, mask, SHARED_WINDOW);
        race.or(unwritten)
    }

    /// `cp.async` is about to write `width` bytes a lane to shared memory. The writes are nobody's until the warp waits
    /// for them ([`Block::wait_copies`]) or hands them to an mbarrier ([`Block::arrive_copies`]).
    pub fn copy_shared(
        &mut self,
        instruction: Instruction,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
    ) -> Option<Finding> {
        let mask = self.within_shared(addresses, mask, width);
        let actor = self.copy_actor(instruction.warp, instruction.site);
        self.copies[instruction.warp as usize].open.push(actor.record);
        match self.quick_copy(&actor, addresses, mask, width) {
            Quick::Done => None,
            Quick::Left(hard) => self.access_shared(&actor, addresses, mask, hard, width, |_| false),
            Quick::Not => self.access_shared(&actor, addresses, mask, mask, width, |_| false),
        }
    }

    /// `cp.async.commit_group`.
    pub fn commit_copies(&mut self, warp: u32) {
        let copies = &mut self.copies[warp as usize];
        let group = std::mem::take(&mut copies.open);
        copies.groups.push_back(group);
    }

    /// `cp.async.wait_group`: all but the last so many groups are done, their writes the warp's own.
    pub fn wait_copies(&mut self, warp: u32, but: u32) {
        let mut done = Vec::new();
        let copies = &mut self.copies[warp as usize];
        while copies.groups.len() > but as usize {
            done.extend(copies.groups.pop_front().into_iter().flatten());
        }
        self.settle_copies(warp, done);
    }

    /// `cp.async.wait_all`, and what `cp.async.mbarrier.arrive` waits for before it arrives.
    pub fn wait_all_copies(&mut self, warp: u32) {
        self.commit_copies(warp);
        self.wait_copies(warp, 0);
    }

    /// `cp.async.mbarrier.arrive`.
    pub fn arrive_copies(&mut self, warp: u32, meeting: Meeting) {
        self.wait_all_copies(warp);
        self.arrive(warp, meeting);
    }

    fn settle_copies(&mut self, warp: u32, records: Vec<u32>) {
        if records.is_empty() {
            return;
        }
        self.clocks.touch(warp);
        let now = self.clocks.now(warp);
        self.shared.settle(&records, now);
    }

    /// A bulk copy is about to write a range of shared memory; its end completes the phase of an mbarrier.
    pub fn bulk_copy_shared(&mut self, site: u32, address: u32, bytes: u32, meeting: Meeting) -> Option<Finding> {
        let (from, bytes) = (u64::from(address), u64::from(bytes));
        let record = Record { block: self.index, site, clock: PENDING, warp: 32, flags: WRITE | COPY };
        let record = self.shared.add(record);
        self.bulk.entry(meeting.key()).or_default().push(record);
        self.touch_range(record, from, bytes)
    }

    /// A barrier of warps, as bits: all lanes of them have arrived. Warps that are gone count as arrived
    /// ([`Block::retire`]).
    pub fn barrier(&mut self, warps: u32) {
        if self.clocks.barrier(warps) {
            self.shared.settled = stamp(self.shared.next(), 0);
        }
    }

    /// Lanes of a warp synchronise: `bar.warp.sync` and every other `.sync` instruction; with `u32::MAX` all of them. Lanes
    /// that are gone may be counted in.
    #[inline]
    pub fn warp_sync(&mut self, warp: u32, lanes: u32) {
        self.clocks.warp_sync(warp, lanes);
    }

    /// A warp has left the kernel.
    pub fn retire(&mut self, warp: u32) {
        self.clocks.retire(warp);
    }

    /// `membar`, `fence`: `.cta` is of the block's scope, all else of the device's.
    pub fn fence(&mut self, warp: u32, scope: Scope) {
        self.clocks.fence(warp, scope == Scope::Device);
    }

    /// A warp arrives: what it did so far is seen by who waits for the phase.
    pub fn arrive(&mut self, warp: u32, meeting: Meeting) {
        let cover = self.clocks.release(warp);
        self.clocks.arrive(meeting.key(), &cover, false);
    }

    /// All that a phase waits for has arrived.
    pub fn complete(&mut self, meeting: Meeting) {
        let key = meeting.key();
        if let Some(records) = self.bulk.remove(&key) {
            let now = self.clocks.engine();
            self.shared.settle(&records, now);
            let mut cover: Cover = [0; ACTORS];
            cover[ACTORS - 1] = now;
            self.clocks.arrive(key, &cover, false);
        }
        self.clocks.complete(key);
    }

    /// A warp has waited for a phase that is complete.
    pub fn wait(&mut self, warp: u32, meeting: Meeting) {
        self.clocks.wait(warp, meeting.key());
    }

    /// An mbarrier is made anew or invalidated.
    pub fn forget(&mut self, meeting: Meeting) {
        self.clocks.forget(meeting.key());
    }

    fn acquire(&mut self, warp: u32, addresses: &[u64; LANES], mask: u32, scope: Scope) {
        let mut last = None;
        for lane in lanes(mask) {
            if last == Some(addresses[lane]) {
                continue;
            }
            last = Some(addresses[lane]);
            let device = scope == Scope::Device;
            if let Some(cover) = self.grid.acquire(addresses[lane], self.index, device, &mut self.acquired) {
                self.clocks.acquire(warp, &cover);
                self.foreign.clear();
            }
        }
    }

    /// A strong write to `window + address` covers what came before its fence, or before itself where it releases.
    fn release(&mut self, instruction: Instruction, addresses: &[u64; LANES], mask: u32, window: u64) {
        let Some(scope) = instruction.order.scope() else { return };
        let warp = instruction.warp;
        let fenced = |this: &Self, device| this.clocks.fenced(warp, device);
        let (own, device) = match (instruction.order.releases(), scope) {
            (true, Scope::Device) => {
                let cover = self.clocks.release(warp);
                (Some(cover), Some(cover))
            }
            (true, Scope::Block) => {
                let device = fenced(self, true);
                (Some(self.clocks.release(warp)), device)
            }
            (false, _) => (fenced(self, false), fenced(self, true)),
        };
        let Some(own) = own else { return };
        let device = device.filter(|_| scope == Scope::Device && window == 0);
        let (shared_own, shared_device) = (Arc::new(own), device.map(Arc::new));
        let mut last = None;
        for lane in lanes(mask) {
            if last == Some(addresses[lane]) {
                continue;
            }
            last = Some(addresses[lane]);
            if window != 0 {
                self.clocks.arrive(window + addresses[lane], &own, true);
            } else {
                let device = shared_device.as_ref();
                self.grid.release(addresses[lane], self.index, &shared_own, device, &self.acquired);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_terms_that_cancel() {
        let table = [
            (1e-7_f32.to_bits(), (-2e-7_f32).to_bits(), 0.5, true),
            (0, 3e-8_f32.to_bits(), 0.5, true),
            (0.25_f32.to_bits(), 0.251_f32.to_bits(), 0.5, false),
            (5, 6, f32::from_bits(1 << 22), false),
            (f32::NAN.to_bits(), 0, 0.5, false),
            (0, 1.0_f32.to_bits(), f32::INFINITY, false),
        ];
        for (a, b, scale, noise) in table {
            assert_eq!(within_noise(a, b, scale), noise, "{a:#x}, {b:#x}, {scale}");
        }
        let mut values = [[0.25_f32.to_bits(); LANES]; 2];
        values[1][3] = (-8.0_f32).to_bits();
        assert_eq!(scale(&values, u32::MAX), 8.0);
        assert_eq!(scale(&values, 0b0111), 0.25);
    }

    #[test]
    fn copies_that_were_rounded_differently() {
        let table: &[(u128, u128, usize, bool)] = &[
            (0x3f80_0000, 0x3f80_0001, 4, true),
            (0xbf80_0000, 0xbf7f_fffe, 4, true),
            // A mean of 0.005 over numbers around 1, as `m1 + (m2 - m1) / 2` and as `m2 + (m1 - m2) / 2`.
            (0x3ba3_d70a, 0x3ba3_d76e, 4, true),
            (0x3f80_0000, 0x3f80_4000, 4, true),
            (0x3f80_0000, 0x3f80_4001, 4, false),
            (0x3f80_0000, 0xbf80_0000, 4, false),
            (0x3f80_0000, 0x3f90_0000, 4, false),
            // Indices and counts.
            (5, 6, 4, false),
            (70_000, 70_001, 4, false),
            (5_000, 5_001, 4, false),
            (5_000, 5_001, 8, false),
            (5, 6, 2, false),
            // Infinity and the largest number.
            (0x7f80_0000, 0x7f7f_ffff, 4, false),
            (0x3c00_4000, 0x3c01_3fff, 4, true),
            (0x3c00_4000, 0x3c09_4000, 4, false),
            (0x3c00_4000, 0x3d00_4000, 4, false),
            (0x3c00, 0x3c01, 2, true),
            (0x3c00, 0x3c08, 2, false),
            (0x3ff0_0000_0000_0000, 0x3ff0_0000_0000_0003, 8, true),
            (0x3ff0_0000_0000_0000, 0x3ff0_0001_0000_0000, 8, false),
            (1, 2, 1, false),
        ];
        for &(a, b, bytes, near) in table {
            assert_eq!(nearly(a, b, bytes), near, "{a:#x}, {b:#x}");
        }
    }
}
