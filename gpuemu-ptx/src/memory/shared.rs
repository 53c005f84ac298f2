//! A block's shared memory: static variables first, then what the launch adds.

use super::LANES;
use super::access::{self, Alone, Element, Problem, View};
use super::atomic::{self, Rule};
use super::backing::Backing;

/// What shared memory holds before anything writes it: a quiet NaN in every floating-point type, and no small integer.
pub const POISON: u8 = 0xff;

/// Shared memory of one block. Addresses are those of the shared space, from 0.
#[derive(Debug)]
pub struct Shared {
    backing: Backing,
    bytes: u64,
}

impl Shared {
    /// So many bytes, poisoned. The launch checks them against the limit of the architecture.
    pub fn new(bytes: u32) -> Self {
        let backing = Backing::zeroed(bytes.into()).expect("a block's shared memory is small");
        let mut shared = Self { backing, bytes: bytes.into() };
        shared.reset();
        shared
    }

    /// Poisons all of it, for the next block.
    pub fn reset(&mut self) {
        // SAFETY: the bytes are owned, and `self` is borrowed alone.
        unsafe { self.backing.start().as_ptr().write_bytes(POISON, self.backing.bytes()) }
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of it.
    pub fn contents(&self) -> &[u8] {
        // SAFETY: owned, initialised by `reset`, and borrowed along with `self`.
        unsafe { std::slice::from_raw_parts(self.backing.start().as_ptr(), self.backing.bytes()) }
    }

    /// All of it, to write.
    pub fn contents_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, alone.
        unsafe { std::slice::from_raw_parts_mut(self.backing.start().as_ptr(), self.backing.bytes()) }
    }

    #[inline(always)]
    pub(super) fn view(&self) -> View {
        View { base: 0, bytes: self.bytes, host: self.backing.start().as_ptr() }
    }

    #[cold]
    #[inline(never)]
    fn problem(&self, addresses: &[u64; LANES], mask: u32, width: u64) -> Problem {
        access::blame(self.view(), addresses, mask, width).expect("some lane does not fit")
    }

    /// Loads an element of 4 or 8 bytes a lane from places that follow each other from `first` on; `false` where not all
    /// are there or aligned to 8 bytes, with nothing loaded.
    #[inline(always)]
    pub fn load_run<T: Element>(&self, first: u64, out: &mut [T; LANES]) -> bool {
        // SAFETY: as in `load`.
        unsafe { access::load_run::<T, Alone>(self.view(), first, out) }
    }

    /// Loads four times 4 bytes of every lane from its place in 32 bits plus an offset into rows; `false` where that is not
    /// quickly done or some lane does not fit, with nothing loaded.
    ///
    /// # Safety
    ///
    /// The rows are valid for writes.
    #[inline(always)]
    pub unsafe fn load_fours(&self, places: &[u32; LANES], offset: u32, rows: [*mut [u32; LANES]; 4]) -> bool {
        // SAFETY: as in `load`, and the caller's.
        unsafe { access::load_fours(self.view(), places, offset, rows) }
    }

    /// As [`Shared::load_run`], a store.
    #[inline(always)]
    pub fn store_run<T: Element>(&mut self, first: u64, values: &[T; LANES]) -> bool {
        // SAFETY: as in `store`.
        unsafe { access::store_run::<T, Alone>(self.view(), first, values) }
    }

    /// Loads `N` elements of every lane that takes part; the other lanes of `out` stay.
    ///
    /// # Errors
    ///
    /// The first lane past the end, or not aligned to all its bytes. Nothing is loaded then.
    #[inline(always)]
    pub fn load<T: Element, const N: usize>(
        &self,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Problem> {
        // SAFETY: the view is all of this memory, and `self` keeps writers out.
        match unsafe { access::load::<T, N, Alone>(self.view(), addresses, mask, out) } {
            true => Ok(()),
            false => Err(self.problem(addresses, mask, (size_of::<T>() * N) as u64)),
        }
    }

    /// Stores `N` elements of every lane that takes part, lanes in order.
    ///
    /// # Errors
    ///
    /// As for a load. Nothing is stored then.
    #[inline(always)]
    pub fn store<T: Element, const N: usize>(
        &mut self,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Problem> {
        // SAFETY: the view is all of this memory, and `self` is borrowed alone.
        match unsafe { access::store::<T, N, Alone>(self.view(), addresses, mask, values) } {
            true => Ok(()),
            false => Err(self.problem(addresses, mask, (size_of::<T>() * N) as u64)),
        }
    }

    /// An atomic of every lane that takes part, as [`super::Global::atomic`].
    ///
    /// # Errors
    ///
    /// As for a load. Nothing is changed then.
    pub fn atomic(
        &mut self,
        rule: &Rule,
        addresses: &[u64; LANES],
        mask: u32,
        operands: &[u64; LANES],
        second: &[u64; LANES],
        old: &mut [u64; LANES],
    ) -> Result<(), Problem> {
        if !access::fits(self.view(), addresses, mask, rule.bytes().into()) {
            return Err(self.problem(addresses, mask, rule.bytes().into()));
        }
        // SAFETY: the lanes fit all of this memory, and `self` is borrowed alone.
        unsafe { rule.run(self.view(), addresses, mask, operands, second, old) };
        Ok(())
    }

    /// A 128-bit atomic, as [`super::Global::atomic128`].
    ///
    /// # Errors
    ///
    /// As for a load. Nothing is changed then.
    pub fn atomic128(
        &mut self,
        addresses: &[u64; LANES],
        mask: u32,
        expected: Option<&[u128; LANES]>,
        new: &[u128; LANES],
        old: &mut [u128; LANES],
    ) -> Result<(), Problem> {
        if !access::fits(self.view(), addresses, mask, 16) {
            return Err(self.problem(addresses, mask, 16));
        }
        // SAFETY: as in `atomic`.
        unsafe { atomic::run128(self.view(), addresses, mask, expected, new, old) };
        Ok(())
    }
}
