//! What kernels do with global memory: loads, stores and atomics of a warp.

use std::sync::PoisonError;

use super::Global;
use crate::memory::LANES;
use crate::memory::access::{self, Element, Problem, ProblemKind, Racing, View};
use crate::memory::atomic::{self, Rule};
use crate::memory::region::Region;

/// The region that an instruction accessed last: one for every instruction that accesses memory, or for every warp.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cache<'g> {
    region: Option<&'g Region>,
}

impl<'g> Cache<'g> {
    /// The region of the last access.
    #[inline(always)]
    pub fn region(&self) -> Option<&'g Region> {
        self.region
    }

    #[inline(always)]
    pub(in crate::memory) fn remember(&mut self, region: &'g Region) {
        self.region = Some(region);
    }
}

impl Global {
    /// Loads an element of 4 or 8 bytes a lane from places that follow each other from `first` on, where the region that
    /// the instruction accessed last holds all; `false` elsewhere, with nothing loaded.
    #[inline(always)]
    pub fn load_run<T: Element>(&self, cache: &Cache<'_>, first: u64, out: &mut [T; LANES]) -> bool {
        // SAFETY: as in `load`.
        cache.region.is_some_and(|region| unsafe { access::load_run::<T, Racing>(region.readable(), first, out) })
    }

    /// As [`Global::load_run`] and [`Global::load_settled`].
    #[inline(always)]
    pub fn load_settled_run<T: Element>(&self, cache: &Cache<'_>, first: u64, out: &mut [T; LANES]) -> bool {
        cache.region.is_some_and(|region| {
            // SAFETY: as in `load`.
            region.is_settled() && unsafe { access::load_run::<T, Racing>(region.readable(), first, out) }
        })
    }

    /// As [`Global::load_run`], words of 4 bytes from places 16 bytes apart; with `settled` as [`Global::load_settled`].
    #[inline(always)]
    pub fn load_column(&self, cache: &Cache<'_>, first: u64, settled: bool, out: &mut [u32; LANES]) -> bool {
        cache.region.is_some_and(|region| {
            // SAFETY: as in `load`.
            (!settled || region.is_settled()) && unsafe { access::load_column(region.readable(), first, out) }
        })
    }

    /// As [`Global::load_run`], a store.
    #[inline(always)]
    pub fn store_run<T: Element>(&self, cache: &Cache<'_>, first: u64, values: &[T; LANES]) -> bool {
        // SAFETY: as in `store`.
        cache.region.is_some_and(|region| unsafe { access::store_run::<T, Racing>(region.writable(), first, values) })
    }

    /// Loads `N` elements of every lane that takes part; the other lanes of `out` stay.
    ///
    /// # Errors
    ///
    /// The first lane that is not within a region, or not aligned to all its bytes. Nothing is loaded then.
    #[inline(always)]
    pub fn load<'g, T: Element, const N: usize>(
        &'g self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Problem> {
        if let Some(region) = cache.region {
            // SAFETY: the region's bytes are valid, and accessed by atomics only while kernels run.
            if unsafe { access::load::<T, N, Racing>(region.readable(), addresses, mask, out) } {
                return Ok(());
            }
        }
        self.load_anywhere(cache, addresses, mask, out)
    }

    /// Loads where all lanes are in the region that the instruction accessed last and nothing can be wrong with that: it is
    /// whole and kernels only read it. `false`, with nothing done, elsewhere.
    #[inline(always)]
    pub fn load_settled<T: Element, const N: usize>(
        &self,
        cache: &Cache<'_>,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> bool {
        cache.region.is_some_and(|region| {
            // SAFETY: as in `load`.
            region.is_settled() && unsafe { access::load::<T, N, Racing>(region.readable(), addresses, mask, out) }
        })
    }

    #[cold]
    #[inline(never)]
    fn load_anywhere<'g, T: Element, const N: usize>(
        &'g self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Problem> {
        let width = (size_of::<T>() * N) as u64;
        self.split(cache, addresses, mask, width, Region::all_readable, |view, lanes| {
            // SAFETY: as in `load`.
            let done = unsafe { access::load::<T, N, Racing>(view, addresses, lanes, out) };
            debug_assert!(done, "lanes were checked");
        })
    }

    /// Stores `N` elements of every lane that takes part, lanes in order.
    ///
    /// # Errors
    ///
    /// The first lane that is not within a region, not aligned to all its bytes, or in constant memory. Nothing is
    /// stored then.
    #[inline(always)]
    pub fn store<'g, T: Element, const N: usize>(
        &'g self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Problem> {
        if let Some(region) = cache.region {
            // SAFETY: the region's bytes are valid, and accessed by atomics only while kernels run.
            if unsafe { access::store::<T, N, Racing>(region.writable(), addresses, mask, values) } {
                return Ok(());
            }
        }
        self.store_anywhere(cache, addresses, mask, values)
    }

    #[cold]
    #[inline(never)]
    fn store_anywhere<'g, T: Element, const N: usize>(
        &'g self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Problem> {
        let width = (size_of::<T>() * N) as u64;
        self.split(cache, addresses, mask, width, Region::all_writable, |view, lanes| {
            // SAFETY: as in `store`.
            let done = unsafe { access::store::<T, N, Racing>(view, addresses, lanes, values) };
            debug_assert!(done, "lanes were checked");
        })
    }

    /// An atomic of every lane that takes part, lanes in order. Values stand in the low bits of the operands; `second` is
    /// the new value of a compare-and-swap, whose expected value is the operand. `old` gets what was there.
    ///
    /// # Errors
    ///
    /// As for a store.
    #[allow(clippy::too_many_arguments)]
    pub fn atomic<'g>(
        &'g self,
        cache: &mut Cache<'g>,
        rule: &Rule,
        addresses: &[u64; LANES],
        mask: u32,
        operands: &[u64; LANES],
        second: &[u64; LANES],
        old: &mut [u64; LANES],
    ) -> Result<(), Problem> {
        self.split(cache, addresses, mask, rule.bytes().into(), Region::all_writable, |view, lanes| {
            // SAFETY: the region's bytes are valid, and accessed by atomics only while kernels run; the lanes fit.
            unsafe { rule.run(view, addresses, lanes, operands, second, old) }
        })
    }

    /// `atom.exch.b128`, and with `expected` `atom.cas.b128`, of every lane that takes part, lanes in order.
    ///
    /// # Errors
    ///
    /// As for a store.
    pub fn atomic128<'g>(
        &'g self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        expected: Option<&[u128; LANES]>,
        new: &[u128; LANES],
        old: &mut [u128; LANES],
    ) -> Result<(), Problem> {
        let _alone = self.wide.lock().unwrap_or_else(PoisonError::into_inner);
        self.split(cache, addresses, mask, 16, Region::all_writable, |view, lanes| {
            // SAFETY: as in `atomic`; the lock keeps other 128-bit atomics out.
            unsafe { atomic::run128(view, addresses, lanes, expected, new, old) }
        })
    }

    /// Checks every lane, then calls `run` with a view and the lanes that fit it: once where all are in one region, else
    /// a lane at a time, in order.
    fn split<'g>(
        &'g self,
        cache: &mut Cache<'g>,
        addresses: &[u64; LANES],
        mask: u32,
        width: u64,
        view: impl Fn(&Region) -> View,
        mut run: impl FnMut(View, u32),
    ) -> Result<(), Problem> {
        if mask == 0 {
            return Ok(());
        }
        let fits = |region: &Region| !region.has_gaps() && access::fits(view(region), addresses, mask, width);
        if let Some(region) = cache.region.filter(|region| fits(region)) {
            run(view(region), mask);
            return Ok(());
        }
        if let Some(region) = self.find(addresses[mask.trailing_zeros() as usize]) {
            cache.region = Some(region);
            if fits(region) {
                run(view(region), mask);
                return Ok(());
            }
        }
        let lanes = || (0..LANES).filter(|lane| mask >> lane & 1 != 0);
        let nothing = View { base: 0, bytes: 0, host: std::ptr::null_mut() };
        for lane in lanes() {
            let region = self.find(addresses[lane]);
            let seen = region.map_or(nothing, &view);
            if let Some(mut problem) = access::blame(seen, addresses, 1 << lane, width) {
                let room = |region: &Region| region.bytes() - (addresses[lane] - region.base());
                let whole = region.is_some_and(|region| seen.bytes < region.bytes() && room(region) >= width);
                if problem.kind == ProblemKind::Unmapped && whole {
                    problem.kind = ProblemKind::ReadOnly;
                }
                return Err(problem);
            }
            let address = addresses[lane];
            if region.is_some_and(|region| region.touches_gap(address - region.base(), width)) {
                let kind = ProblemKind::Unmapped;
                return Err(Problem { lane: lane as u8, kind, address, bytes: width as u32 });
            }
        }
        for lane in lanes() {
            if let Some(region) = self.find(addresses[lane]) {
                run(view(region), 1 << lane);
            }
        }
        Ok(())
    }
}
