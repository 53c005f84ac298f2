//! Loads and stores of 32 lanes: bounds and alignment once an instruction, then a copy or a gather.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::LANES;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::vector;

/// A number of 1 to 16 bytes as memory holds it, least significant byte first.
///
/// # Safety
///
/// Every pattern of bits is a value, and there is no padding.
pub unsafe trait Element: Copy + Default + PartialEq + 'static {
    /// Reads while other threads of the host may write.
    ///
    /// # Safety
    ///
    /// `at` is valid for reads and aligned to the size, or to 8 bytes for 16.
    unsafe fn read_relaxed(at: *const u8) -> Self;

    /// Writes while other threads of the host may read or write.
    ///
    /// # Safety
    ///
    /// `at` is valid for writes and aligned to the size, or to 8 bytes for 16.
    unsafe fn write_relaxed(self, at: *mut u8);
}

macro_rules! element {
    ($($ty:ty, $atomic:ty;)*) => {$(
        // SAFETY: an integer.
        unsafe impl Element for $ty {
            #[inline(always)]
            unsafe fn read_relaxed(at: *const u8) -> Self {
                // SAFETY: the caller vouches for the place; every access to it while threads run is atomic.
                <$ty>::from_le(unsafe { (*at.cast::<$atomic>()).load(Relaxed) })
            }
            #[inline(always)]
            unsafe fn write_relaxed(self, at: *mut u8) {
                // SAFETY: as above.
                unsafe { (*at.cast::<$atomic>()).store(self.to_le(), Relaxed) }
            }
        }
    )*};
}

element! {
    u8, AtomicU8;
    u16, AtomicU16;
    u32, AtomicU32;
    u64, AtomicU64;
}

// SAFETY: an integer. Two halves, each read and written whole: a GPU, too, promises no more for 16 bytes of a vector.
unsafe impl Element for u128 {
    #[inline(always)]
    unsafe fn read_relaxed(at: *const u8) -> Self {
        // SAFETY: the caller vouches for both halves.
        let (low, high) = unsafe { (u64::read_relaxed(at), u64::read_relaxed(at.add(8))) };
        u128::from(low) | u128::from(high) << 64
    }
    #[inline(always)]
    unsafe fn write_relaxed(self, at: *mut u8) {
        // SAFETY: the caller vouches for both halves.
        unsafe {
            (self as u64).write_relaxed(at);
            ((self >> 64) as u64).write_relaxed(at.add(8));
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Action {
    Read,
    Write,
    Atomic,
    /// An asynchronous copy's write: by no thread until it is waited for.
    AsyncWrite,
}

/// How an access was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProblemKind {
    /// Nothing is mapped at some byte of it.
    Unmapped,
    /// The address is no multiple of the bytes that the access takes.
    Misaligned,
    /// A write to, or an atomic on, memory that cannot be written (constants, parameters).
    ReadOnly,
}

/// The first lane whose access cannot be done. Nothing of the instruction was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The lane, from 0.
    pub lane: u8,
    /// What is wrong.
    pub kind: ProblemKind,
    /// The address, in the space of the access.
    pub address: u64,
    /// Bytes that the lane accesses.
    pub bytes: u32,
}

/// Bytes of the host that a device sees from `base` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// Address of the first byte.
    pub base: u64,
    /// How many there are: at most 2^63.
    pub bytes: u64,
    /// Where they are. Agrees with `base` in the low 8 bits, so that what is aligned there is aligned here.
    pub host: *mut u8,
}

/// Whether other threads of the host may access the same memory at the same time.
pub(super) trait Mode {
    /// Whether they may.
    const RACING: bool;
}

/// Global memory: blocks run in parallel.
pub(super) struct Racing;
/// Shared and local memory: one thread of the host at a time.
pub(super) struct Alone;

impl Mode for Racing {
    const RACING: bool = true;
}
impl Mode for Alone {
    const RACING: bool = false;
}

#[inline(always)]
unsafe fn read<T: Element, M: Mode>(at: *const u8) -> T {
    // SAFETY: the caller's.
    unsafe {
        match M::RACING || cfg!(target_endian = "big") {
            true => T::read_relaxed(at),
            false => at.cast::<T>().read_unaligned(),
        }
    }
}

#[inline(always)]
unsafe fn write<T: Element, M: Mode>(value: T, at: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        match M::RACING || cfg!(target_endian = "big") {
            true => value.write_relaxed(at),
            false => at.cast::<T>().write_unaligned(value),
        }
    }
}

/// Whether places that follow each other gain nothing over any others.
#[inline(always)]
fn quick<const N: usize>(size: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return size == 4 && N == 4 && vector::is_there();
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// Whether 32 elements of this size are copied as a whole: accesses of 8 bytes are no less atomic than those of 4.
#[inline(always)]
fn can_copy(size: usize, at: *const u8) -> bool {
    matches!(size, 4 | 8) && (at as usize).is_multiple_of(8)
}

/// Copies bytes of which either side may be accessed by other threads of the host meanwhile: 8 at a time or more, a
/// multiple of 128 in all.
///
/// # Safety
///
/// Both places are valid for so many bytes and aligned to 8, and do not overlap.
#[inline(always)]
unsafe fn copy_racing(from: *const u8, to: *mut u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if std::arch::is_x86_feature_detected!("avx") {
        for at in (0..bytes).step_by(128) {
            // SAFETY: the caller's. Atomic accesses do not become vector code, and a later vector load of what several
            // stores wrote waits for them; instructions of the host's own know nothing of data races, and on x86 the
            // aligned words of a vector access are accessed whole.
            unsafe {
                std::arch::asm!(
                    "vmovups ymm0, [{from}]",
                    "vmovups ymm1, [{from} + 32]",
                    "vmovups ymm2, [{from} + 64]",
                    "vmovups ymm3, [{from} + 96]",
                    "vmovups [{to}], ymm0",
                    "vmovups [{to} + 32], ymm1",
                    "vmovups [{to} + 64], ymm2",
                    "vmovups [{to} + 96], ymm3",
                    from = in(reg) from.add(at),
                    to = in(reg) to.add(at),
                    out("ymm0") _,
                    out("ymm1") _,
                    out("ymm2") _,
                    out("ymm3") _,
                    options(nostack, preserves_flags),
                );
            }
        }
        return;
    }
    for at in (0..bytes).step_by(8) {
        // SAFETY: the caller's.
        unsafe { u64::read_relaxed(from.add(at)).write_relaxed(to.add(at)) };
    }
}

/// All ones where the lane takes part, else zero.
#[inline(always)]
fn taking_part(mask: u32, lane: usize) -> u64 {
    (u64::from(mask >> lane) & 1).wrapping_neg()
}

/// Whether lane `i` is at the first address plus `i * width`.
#[inline(always)]
pub(crate) fn consecutive(addresses: &[u64; LANES], width: u64) -> bool {
    // Mostly the first two tell.
    if addresses[1].wrapping_sub(addresses[0]) != width {
        return false;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if vector::is_there() {
        // SAFETY: the host has AVX2.
        return unsafe { vector::consecutive(addresses, width) };
    }
    let mut apart = 0;
    for (lane, &address) in addresses.iter().enumerate() {
        apart |= address ^ addresses[0].wrapping_add(lane as u64 * width);
    }
    apart == 0
}

/// Whether all lanes that take part lie within the view, aligned to `width` bytes, a power of two.
#[inline(always)]
pub(super) fn fits(view: View, addresses: &[u64; LANES], mask: u32, width: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask == u32::MAX && vector::is_there() {
        // SAFETY: the host has AVX2.
        return unsafe { vector::fit(view.base, view.bytes, addresses, width) };
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask != 0 && vector::is_there() {
        // SAFETY: the host has AVX2.
        return unsafe { vector::fit(view.base, view.bytes, &vector::filled(addresses, mask), width) };
    }
    // A negative limit makes every lane fall outside.
    let limit = view.bytes.wrapping_sub(width);
    let (mut outside, mut low) = (0, 0);
    for (lane, &address) in addresses.iter().enumerate() {
        let part = taking_part(mask, lane);
        let offset = address.wrapping_sub(view.base);
        outside |= (offset | limit.wrapping_sub(offset)) & part;
        low |= address & part;
    }
    // `limit` is below 2^63, so that its difference to an offset is negative exactly when the offset is larger.
    (outside | limit) >> 63 == 0 && low & (width - 1) == 0 || mask == 0
}

/// Whether all lanes that take part lie within `bytes` bytes from `base` on.
#[inline(always)]
pub(super) fn inside(base: u64, bytes: u64, addresses: &[u64; LANES], mask: u32, width: u64) -> bool {
    let limit = bytes.wrapping_sub(width);
    let mut outside = 0;
    for (lane, &address) in addresses.iter().enumerate() {
        let offset = address.wrapping_sub(base);
        outside |= (offset | limit.wrapping_sub(offset)) & taking_part(mask, lane);
    }
    (outside | limit) >> 63 == 0
}

/// Loads an element a lane from places that follow each other from `first` on. `false` where that is not possible at
/// once, with nothing done.
///
/// # Safety
///
/// As for [`load`].
#[inline(always)]
pub(super) unsafe fn load_run<T: Element, M: Mode>(view: View, first: u64, out: &mut [T; LANES]) -> bool {
    let bytes = size_of::<[T; LANES]>();
    let Some(at) = run(view, first, bytes) else { return false };
    ask_ahead::<M>(at, bytes);
    // SAFETY: `run` found all bytes within the view, at a multiple of 8.
    unsafe {
        match M::RACING {
            true => copy_racing(at, out.as_mut_ptr().cast(), bytes),
            false => std::ptr::copy_nonoverlapping(at, out.as_mut_ptr().cast(), bytes),
        }
    }
    true
}

/// As [`load_run`], a store.
///
/// # Safety
///
/// As for [`store`].
#[inline(always)]
pub(super) unsafe fn store_run<T: Element, M: Mode>(view: View, first: u64, values: &[T; LANES]) -> bool {
    let bytes = size_of::<[T; LANES]>();
    let Some(at) = run(view, first, bytes) else { return false };
    ask_ahead::<M>(at, bytes);
    // SAFETY: as in `load_run`.
    unsafe {
        match M::RACING {
            true => copy_racing(values.as_ptr().cast(), at, bytes),
            false => std::ptr::copy_nonoverlapping(values.as_ptr().cast(), at, bytes),
        }
    }
    true
}

/// Asks the host for what lies as far on as the next block mostly is, a page of the host: its own guesses end with
/// the page.
#[inline(always)]
fn ask_ahead<M: Mode>(at: *const u8, bytes: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if M::RACING {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in (0..bytes).step_by(64) {
            // SAFETY: SSE is part of x86-64, and a place that is none is not touched.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(4096 + line).cast()) };
        }
    }
    let _ = (at, bytes);
}

/// Where bytes from an address on lie, if all are within the view, aligned to 8, and as they are in the host's memory.
#[inline(always)]
fn run(view: View, first: u64, bytes: usize) -> Option<*mut u8> {
    let offset = first.wrapping_sub(view.base);
    let fits = view.bytes >= bytes as u64 && offset <= view.bytes - bytes as u64;
    // SAFETY: within the view.
    let at = fits.then(|| unsafe { view.host.add(offset as usize) })?;
    (cfg!(target_endian = "little") && (at as usize).is_multiple_of(8) && first.is_multiple_of(8)).then_some(at)
}

/// Loads four times 4 bytes a lane from places of 32 bits, for a whole warp, into rows. `false` where that is not quickly
/// done or some lane does not fit, with nothing done.
///
/// # Safety
///
/// As for [`load`]; the view's base is 0, and the rows are valid for writes.
#[inline(always)]
pub(super) unsafe fn load_fours(view: View, places: &[u32; LANES], offset: u32, rows: [*mut [u32; LANES]; 4]) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if vector::is_there() {
        // SAFETY: the caller's, and the host has AVX2.
        return unsafe { vector::fours(view.host, view.bytes, places, offset, rows) };
    }
    let _ = (view, places, offset, rows);
    false
}

/// Loads 4 bytes a lane from places 16 bytes apart: a column of vectors of four. `false` where not all bytes from the
/// first on, 512 of them, are within the view, with nothing done.
///
/// # Safety
///
/// As for [`load`].
#[inline(always)]
pub(super) unsafe fn load_column(view: View, first: u64, out: &mut [u32; LANES]) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if vector::is_there() {
        let bytes = 16 * LANES as u64;
        let offset = first.wrapping_sub(view.base);
        if view.bytes < bytes || offset > view.bytes - bytes || !first.is_multiple_of(4) {
            return false;
        }
        // SAFETY: the caller's; all bytes from `offset` on are within the view, and the host has AVX2.
        unsafe { vector::every_fourth(view.host.add(offset as usize), out) };
        return true;
    }
    let _ = (view, first, out);
    false
}

/// Loads 4 bytes from one place for all lanes. `false` where their places are not one, or it is not within the view,
/// with nothing done.
///
/// # Safety
///
/// As for [`load`].
#[inline(always)]
unsafe fn load_one<M: Mode>(view: View, addresses: &[u64; LANES], out: *mut [u32; LANES]) -> bool {
    let offset = addresses[0].wrapping_sub(view.base);
    if !consecutive(addresses, 0) || view.bytes < 4 || offset > view.bytes - 4 || !addresses[0].is_multiple_of(4) {
        return false;
    }
    // SAFETY: the caller's; the place is within the view and aligned, and `out` is a row of 32 words.
    unsafe { out.write([read::<u32, M>(view.host.add(offset as usize)); LANES]) };
    true
}

/// Loads `N` elements a lane. `false` where some lane does not fit, with nothing done.
///
/// # Safety
///
/// The view's bytes are valid for reads; with [`Alone`], nobody writes them meanwhile.
#[inline(always)]
pub(super) unsafe fn load<T: Element, const N: usize, M: Mode>(
    view: View,
    addresses: &[u64; LANES],
    mask: u32,
    out: &mut [[T; LANES]; N],
) -> bool {
    let size = size_of::<T>();
    let width = (size * N) as u64;
    if mask == u32::MAX && !quick::<N>(size) && consecutive(addresses, width) {
        let offset = addresses[0].wrapping_sub(view.base);
        let all = width * LANES as u64;
        if view.bytes < all || offset > view.bytes - all || addresses[0] & (width - 1) != 0 {
            return false;
        }
        // SAFETY: `offset` and all bytes from it on are within the view; the pointer is aligned as the address is.
        unsafe {
            let at = view.host.add(offset as usize);
            if N == 1 && M::RACING && cfg!(target_endian = "little") && can_copy(size, at) {
                copy_racing(at, out.as_mut_ptr().cast(), size * LANES);
                return true;
            }
            for lane in 0..LANES {
                for (element, row) in out.iter_mut().enumerate() {
                    row[lane] = read::<T, M>(at.add(lane * width as usize + element * size));
                }
            }
        }
        return true;
    }
    // SAFETY: the caller's; there is a row of 32 elements of 4 bytes.
    if size == 4 && N == 1 && mask == u32::MAX && unsafe { load_one::<M>(view, addresses, out.as_mut_ptr().cast()) } {
        return true;
    }
    if !fits(view, addresses, mask, width) {
        return false;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask == u32::MAX && size == 16 && N == 1 && vector::is_there() {
        // SAFETY: as below; there is a row of 32 elements of 16 bytes.
        unsafe { vector::gather16(view.host, view.base, addresses, out.as_mut_ptr().cast()) };
        return true;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask == u32::MAX && size == 4 && matches!(N, 1 | 4) && vector::is_there() {
        // SAFETY: as below; there are `N` rows of 32 elements of 4 bytes.
        unsafe {
            match N {
                1 => vector::gather(view.host, view.base, addresses, out.as_mut_ptr().cast()),
                _ => {
                    if addresses[1].wrapping_sub(addresses[0]) == width {
                        ask_ahead::<M>(view.host.add(addresses[0].wrapping_sub(view.base) as usize), 512);
                    }
                    vector::gather4(view.host, view.base, addresses, out.as_mut_ptr().cast());
                }
            }
        }
        return true;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask.count_ones() > 4 && size == 4 && N == 1 && vector::is_there() {
        let mut values = [0; LANES];
        // SAFETY: as below, of the lanes that take part, which the others follow; `out` is a row of 32 words.
        unsafe {
            let out = &mut *out.as_mut_ptr().cast::<[u32; LANES]>();
            if vector::load_some(view.host, view.base, addresses, mask, out) {
                return true;
            }
            vector::gather(view.host, view.base, &vector::filled(addresses, mask), &mut values);
            vector::copy_some(&values, out, mask);
        }
        return true;
    }
    let mut lanes = mask;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: `fits` says that the lane's bytes are within the view and aligned.
        unsafe {
            let at = view.host.add(addresses[lane].wrapping_sub(view.base) as usize);
            for (element, row) in out.iter_mut().enumerate() {
                row[lane] = read::<T, M>(at.add(element * size));
            }
        }
    }
    true
}

/// Stores `N` elements a lane, lanes in order. `false` where some lane does not fit, with nothing done.
///
/// # Safety
///
/// The view's bytes are valid for writes; with [`Alone`], nobody accesses them meanwhile.
#[inline(always)]
pub(super) unsafe fn store<T: Element, const N: usize, M: Mode>(
    view: View,
    addresses: &[u64; LANES],
    mask: u32,
    values: &[[T; LANES]; N],
) -> bool {
    let size = size_of::<T>();
    let width = (size * N) as u64;
    if mask == u32::MAX && !quick::<N>(size) && consecutive(addresses, width) {
        let offset = addresses[0].wrapping_sub(view.base);
        let all = width * LANES as u64;
        if view.bytes < all || offset > view.bytes - all || addresses[0] & (width - 1) != 0 {
            return false;
        }
        // SAFETY: as in `load`.
        unsafe {
            let at = view.host.add(offset as usize);
            if N == 1 && M::RACING && cfg!(target_endian = "little") && can_copy(size, at) {
                copy_racing(values.as_ptr().cast(), at, size * LANES);
                return true;
            }
            for lane in 0..LANES {
                for (element, row) in values.iter().enumerate() {
                    write::<T, M>(row[lane], at.add(lane * width as usize + element * size));
                }
            }
        }
        return true;
    }
    if !fits(view, addresses, mask, width) {
        return false;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask == u32::MAX && size == 4 && N == 4 && vector::is_there() {
        // SAFETY: as below; there are four rows of 32 elements of 4 bytes.
        unsafe {
            if addresses[1].wrapping_sub(addresses[0]) == width {
                ask_ahead::<M>(view.host.add(addresses[0].wrapping_sub(view.base) as usize), 512);
            }
            vector::scatter4(view.host, view.base, addresses, values.as_ptr().cast());
        }
        return true;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if mask.count_ones() > 4 && size == 4 && N == 1 && vector::is_there() {
        // SAFETY: as below, of the lanes that take part; `values` is a row of 32 words.
        let values = unsafe { &*values.as_ptr().cast::<[u32; LANES]>() };
        // SAFETY: as below.
        if unsafe { vector::store_some(view.host, view.base, addresses, mask, values) } {
            return true;
        }
    }
    let mut lanes = mask;
    while lanes != 0 {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes - 1;
        // SAFETY: `fits` says that the lane's bytes are within the view and aligned.
        unsafe {
            let at = view.host.add(addresses[lane].wrapping_sub(view.base) as usize);
            for (element, row) in values.iter().enumerate() {
                write::<T, M>(row[lane], at.add(element * size));
            }
        }
    }
    true
}

/// The first lane that does not fit the view, for a message: misaligned before unmapped, as a GPU checks.
#[cold]
pub(super) fn blame(view: View, addresses: &[u64; LANES], mask: u32, width: u64) -> Option<Problem> {
    (0..LANES).filter(|lane| mask >> lane & 1 != 0).find_map(|lane| {
        let address = addresses[lane];
        let inside = view.bytes >= width && address.wrapping_sub(view.base) <= view.bytes - width;
        let kind = match (address & (width - 1) != 0, inside) {
            (true, _) => ProblemKind::Misaligned,
            (false, false) => ProblemKind::Unmapped,
            (false, true) => return None,
        };
        Some(Problem { lane: lane as u8, kind, address, bytes: width as u32 })
    })
}
