//! The registers of one warp: rows of 32 lanes, a frame of them for every call.
//!
//! A row holds 32 bits of every lane. Registers of 8, 16 and 32 bits are one row, zero-extended; registers of 64 bits are
//! two rows read as 32 words of 64 bits; 128 bits are four. Predicates are bits of one word, a word a predicate.

use std::mem::MaybeUninit;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// All lanes.
pub const FULL: u32 = u32::MAX;

/// 32 bits of every lane.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct Row(pub [u32; LANES]);

/// A value of one lane, and how a register keeps it.
pub trait Lane: Copy + Default {
    /// What a register holds of it.
    type Store: Copy + Default + Into<u128>;
    /// Rows that it takes.
    const ROWS: usize = size_of::<Self::Store>() / 4;
    /// From what the register holds.
    fn unpack(stored: Self::Store) -> Self;
    /// To what the register holds.
    fn pack(self) -> Self::Store;
    /// The low bits of a number, as the register would hold them.
    fn stored(bits: u128) -> Self::Store;
    /// `new` where `whole` is all ones, `old` where it is zero.
    fn mix(whole: u32, new: Self::Store, old: Self::Store) -> Self::Store;
}

macro_rules! lane {
    ($($ty:ty, $store:ty, $value:ident, $unpack:expr, $pack:expr;)*) => {$(
        impl Lane for $ty {
            type Store = $store;
            #[inline(always)]
            fn unpack($value: $store) -> Self {
                $unpack
            }
            #[inline(always)]
            fn pack(self) -> $store {
                let $value = self;
                $pack
            }
            fn stored(bits: u128) -> $store {
                Self::unpack(bits as $store).pack()
            }
            #[inline(always)]
            fn mix(whole: u32, new: $store, old: $store) -> $store {
                old ^ (old ^ new) & whole as i32 as $store
            }
        }
    )*};
}

lane! {
    u8, u32, x, x as u8, u32::from(x);
    u16, u32, x, x as u16, u32::from(x);
    i16, u32, x, x as i16, u32::from(x as u16);
    u32, u32, x, x, x;
    i32, u32, x, x as i32, x as u32;
    f32, u32, x, f32::from_bits(x), x.to_bits();
    u64, u64, x, x, x;
    i64, u64, x, x as i64, x as u64;
    f64, u64, x, f64::from_bits(x), x.to_bits();
    u128, u128, x, x, x;
}

/// Where a frame's registers begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// First row.
    pub row: u32,
    /// First predicate.
    pub predicate: u32,
    /// Bytes of local memory that the callers use.
    pub local: u32,
    /// Calls that are open.
    pub depth: u32,
}

/// Rows and predicates of a warp.
///
/// A register is named by the number of its first row in the frame; a negative number names a constant, counted back
/// from the end of the pool. A predicate is named by its number in the frame, or by the complement of it for its
/// negation.
pub struct Registers {
    rows: Vec<Row>,
    predicates: Vec<u32>,
    frame: Frame,
    /// First row of the current frame.
    base: *mut Row,
    /// First predicate of the current frame.
    truths: *mut u32,
    /// One past the last constant.
    constants: *const Row,
}

// SAFETY: the pointers lead into the two vectors, which move along, and into constants that are shared and never change.
unsafe impl Send for Registers {}

impl Registers {
    /// No frame yet. `constants` outlive the registers, and every instruction names rows of the frame it runs in or of
    /// the constants: the decoder hands out no others.
    pub fn new(constants: &[Row]) -> Self {
        Self {
            rows: Vec::new(),
            predicates: Vec::new(),
            frame: Frame::default(),
            base: std::ptr::null_mut(),
            truths: std::ptr::null_mut(),
            constants: constants.as_ptr_range().end,
        }
    }

    /// The current frame.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// All rows and predicates, of every frame.
    pub fn all(&self) -> (&[Row], &[u32]) {
        (&self.rows, &self.predicates)
    }

    /// Makes predicates zero, as they are at the beginning of a block.
    pub fn clear(&mut self) {
        self.predicates.fill(0);
    }

    /// Makes rows of the current frame zero in the lanes of a mask.
    pub fn clear_rows(&mut self, rows: &[i32], mask: u32) {
        for &row in rows {
            self.write::<u32>(row, &[0; LANES], mask);
        }
    }

    /// Enters a frame of so many rows and predicates; new rows are zero.
    pub fn enter(&mut self, frame: Frame, rows: u32, predicates: u32) {
        let rows = frame.row as usize + rows as usize;
        let predicates = frame.predicate as usize + predicates as usize;
        if self.rows.len() < rows {
            self.rows.resize(rows, Row([0; LANES]));
        }
        if self.predicates.len() < predicates {
            self.predicates.resize(predicates, 0);
        }
        self.select(frame);
    }

    /// Goes to a frame that was entered before.
    pub fn select(&mut self, frame: Frame) {
        debug_assert!(frame.row as usize <= self.rows.len() && (frame.predicate as usize) < self.predicates.len());
        self.frame = frame;
        self.base = self.rows[frame.row as usize..].as_mut_ptr();
        self.truths = self.predicates[frame.predicate as usize..].as_mut_ptr();
        self.predicates[frame.predicate as usize] = FULL;
    }

    #[inline(always)]
    fn place(&self, register: i32) -> *const Row {
        // SAFETY: the decoder names rows of the frame and of the constants only; `enter` made room for the former.
        unsafe {
            match register >= 0 {
                true => self.base.cast_const().add(register as usize),
                false => self.constants.offset(register as isize),
            }
        }
    }

    /// The first row of the current frame, the end of the constants, and the first predicate of the frame.
    #[inline(always)]
    pub fn places(&mut self) -> (*mut Row, *const Row, *mut u32) {
        (self.base, self.constants, self.truths)
    }

    /// What a register holds.
    #[inline(always)]
    pub fn stored<L: Lane>(&self, register: i32) -> &[L::Store; LANES] {
        // SAFETY: as in `place`; a register of this type has `L::ROWS` rows, all initialised, more than aligned enough,
        // and nothing writes them while `self` is borrowed.
        unsafe { &*self.place(register).cast() }
    }

    /// The value of one lane.
    #[inline(always)]
    pub fn lane<L: Lane>(&self, register: i32, lane: usize) -> L {
        L::unpack(self.stored::<L>(register)[lane])
    }

    /// A register as it is written, all lanes at once.
    #[inline(always)]
    pub fn row_mut<L: Lane>(&mut self, register: i32) -> &mut [L::Store; LANES] {
        debug_assert!(register >= 0);
        // SAFETY: as in `stored`; destinations are never constants, and `self` is borrowed alone.
        unsafe { &mut *self.base.add(register as usize).cast() }
    }

    /// Writes the lanes of a mask.
    #[inline(always)]
    pub fn write<L: Lane>(&mut self, register: i32, values: &[L::Store; LANES], mask: u32) {
        let to: *mut L::Store = self.row_mut::<L>(register).as_mut_ptr();
        if mask == FULL {
            // SAFETY: a row of 32 lanes, which `self` owns.
            unsafe { copy::<L>(values.as_ptr(), to) };
            return;
        }
        // Beside it, so that the values themselves need no place in memory where the mask is full.
        let mut kept = MaybeUninit::<[L::Store; LANES]>::uninit();
        let from: *mut L::Store = kept.as_mut_ptr().cast();
        // SAFETY: rows of 32 lanes of so many bytes, one of them the warp's own.
        unsafe {
            copy::<L>(values.as_ptr(), from);
            match L::ROWS {
                1 => blend::<u32>(to.cast(), from.cast(), mask),
                2 => blend::<u64>(to.cast(), from.cast(), mask),
                _ => blend::<u128>(to.cast(), from.cast(), mask),
            }
        }
    }

    /// The lanes in which a predicate, or its negation, holds.
    #[inline(always)]
    pub fn truth(&self, predicate: i32) -> u32 {
        let sign = predicate >> 31;
        // SAFETY: the decoder names predicates of the frame only, and `enter` made room for them.
        unsafe { *self.truths.add((predicate ^ sign) as usize) ^ sign as u32 }
    }

    /// Writes a predicate in the lanes of a mask.
    #[inline(always)]
    pub fn set_truth(&mut self, predicate: i32, value: u32, mask: u32) {
        debug_assert!(predicate > 0);
        // SAFETY: as in `truth`; number 0, which is always true, is never a destination.
        unsafe {
            let to = self.truths.add(predicate as usize);
            *to = *to & !mask | value & mask;
        }
    }
}

/// Copies all lanes, 32 bytes at a time: what was computed in vectors of as many goes straight from the host's registers
/// to the row, which a copy of memory would not let it.
///
/// # Safety
///
/// Both places have 32 lanes; they are the same or do not overlap.
#[inline(always)]
unsafe fn copy<L: Lane>(from: *const L::Store, to: *mut L::Store) {
    #[cfg(target_arch = "x86_64")]
    for part in 0..size_of::<L::Store>() {
        use std::arch::x86_64::__m256i;
        // SAFETY: the caller's: 32 lanes are as many parts of 32 bytes as a lane has bytes.
        unsafe {
            let value = from.cast::<__m256i>().add(part).read_unaligned();
            to.cast::<__m256i>().add(part).write_unaligned(value);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's.
    unsafe {
        std::ptr::copy(from, to, LANES)
    };
}

/// Copies the lanes of a mask.
///
/// # Safety
///
/// Both places have 32 lanes, and do not overlap.
#[inline(never)]
unsafe fn blend<T: Copy>(to: *mut T, from: *const T, mask: u32) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() < 16 && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the caller's, and the host has AVX2.
        return unsafe { blend_wide::<T>(to.cast(), from.cast(), mask) };
    }
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: the caller's.
        unsafe { to.add(lane).write(from.add(lane).read()) };
    }
}

/// As `blend`, of 4 or 8 bytes a lane.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn blend_wide<T>(to: *mut std::arch::x86_64::__m256i, from: *const std::arch::x86_64::__m256i, mask: u32) {
    use std::arch::x86_64::*;
    let lanes = 32 / size_of::<T>();
    for part in 0..LANES / lanes {
        let here = (mask >> (part * lanes)) as i32;
        let taken = match size_of::<T>() {
            4 => {
                let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(here), bits), bits)
            }
            _ => {
                let bits = _mm256_setr_epi64x(1, 2, 4, 8);
                _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(here.into()), bits), bits)
            }
        };
        // SAFETY: the caller's: there are so many parts of 32 bytes.
        unsafe {
            let mixed = _mm256_blendv_epi8(_mm256_loadu_si256(to.add(part)), _mm256_loadu_si256(from.add(part)), taken);
            _mm256_storeu_si256(to.add(part), mixed);
        }
    }
}
