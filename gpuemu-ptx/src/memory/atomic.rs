//! What atomics do to a value: every operation and type of `atom` and `red`.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::LANES;
use super::access::View;
use crate::numerics::exact::Rounding;
use crate::numerics::{float, half};

/// The operation of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Update {
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Add,
    /// `old >= operand ? 0 : old + 1`.
    Increment,
    /// `old == 0 || old > operand ? operand : old - 1`.
    Decrement,
    Minimum,
    Maximum,
}

/// What an atomic makes of the bits of its operands. Bits without meaning (`b32`) count as unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Number {
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
}

impl Number {
    /// Its bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::U16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::F16x2 | Self::Bf16x2 | Self::F32 => 4,
            Self::U64 | Self::S64 | Self::F64 => 8,
        }
    }
}

type Combine = fn(old: u64, operand: u64, second: u64) -> u64;

/// An atomic, decoded: how an old value and the operands make a new one. 128 bits have functions of their own.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    bytes: u32,
    combine: Combine,
}

fn extremum(number: Number, largest: bool) -> Option<Combine> {
    // Without `.NaN` the other operand of a NaN is the result.
    const PLAIN: float::Extremum = float::Extremum { nan: false, xorsign_abs: false };
    Some(match (number, largest) {
        (Number::U16 | Number::U32 | Number::U64, false) => |old, operand, _| old.min(operand),
        (Number::U16 | Number::U32 | Number::U64, true) => |old, operand, _| old.max(operand),
        (Number::S32, false) => |old, operand, _| u64::from((old as i32).min(operand as i32) as u32),
        (Number::S32, true) => |old, operand, _| u64::from((old as i32).max(operand as i32) as u32),
        (Number::S64, false) => |old, operand, _| (old as i64).min(operand as i64) as u64,
        (Number::S64, true) => |old, operand, _| (old as i64).max(operand as i64) as u64,
        (Number::F16, false) => |old, operand, _| float::min_f16(old as u16, operand as u16, PLAIN).into(),
        (Number::F16, true) => |old, operand, _| float::max_f16(old as u16, operand as u16, PLAIN).into(),
        (Number::Bf16, false) => |old, operand, _| float::min_bf16(old as u16, operand as u16, PLAIN).into(),
        (Number::Bf16, true) => |old, operand, _| float::max_bf16(old as u16, operand as u16, PLAIN).into(),
        (Number::F16x2, false) => |old, operand, _| both(old, operand, |a, b| float::min_f16(a, b, PLAIN)),
        (Number::F16x2, true) => |old, operand, _| both(old, operand, |a, b| float::max_f16(a, b, PLAIN)),
        (Number::Bf16x2, false) => |old, operand, _| both(old, operand, |a, b| float::min_bf16(a, b, PLAIN)),
        (Number::Bf16x2, true) => |old, operand, _| both(old, operand, |a, b| float::max_bf16(a, b, PLAIN)),
        (Number::F32 | Number::F64, _) => return None,
    })
}

fn both(old: u64, operand: u64, combine: impl Fn(u16, u16) -> u16) -> u64 {
    let low = combine(old as u16, operand as u16);
    let high = combine((old >> 16) as u16, (operand >> 16) as u16);
    u64::from(low) | u64::from(high) << 16
}

fn sum(number: Number, flush: bool) -> Combine {
    match number {
        Number::U16 => |old, operand, _| u64::from((old as u16).wrapping_add(operand as u16)),
        Number::U32 | Number::S32 => |old, operand, _| u64::from((old as u32).wrapping_add(operand as u32)),
        Number::U64 | Number::S64 => |old, operand, _| old.wrapping_add(operand),
        Number::F16 => |old, operand, _| half::add_f16(old as u16, operand as u16).into(),
        Number::Bf16 => |old, operand, _| half::add_bf16(old as u16, operand as u16).into(),
        Number::F16x2 => |old, operand, _| both(old, operand, half::add_f16),
        Number::Bf16x2 => |old, operand, _| both(old, operand, half::add_bf16),
        Number::F32 if flush => |old, operand, _| {
            let sum = float::add32(float::flush32(old as u32), float::flush32(operand as u32), Rounding::Nearest);
            float::flush32(sum).into()
        },
        Number::F32 => |old, operand, _| float::add32(old as u32, operand as u32, Rounding::Nearest).into(),
        Number::F64 => |old, operand, _| float::add64(old, operand, Rounding::Nearest),
    }
}

impl Rule {
    /// `None` where PTX has no such atomic. `shared` tells shared from global memory: in the latter, `add.f32` flushes
    /// subnormal operands and results to zero (PTX ISA, `atom`).
    pub fn new(update: Update, number: Number, shared: bool) -> Option<Self> {
        let whole = matches!(number, Number::U32 | Number::S32 | Number::U64 | Number::S64);
        let combine: Combine = match update {
            Update::And if whole => |old, operand, _| old & operand,
            Update::Or if whole => |old, operand, _| old | operand,
            Update::Xor if whole => |old, operand, _| old ^ operand,
            Update::Exchange if whole => |_, operand, _| operand,
            Update::CompareAndSwap if whole || number == Number::U16 => {
                |old, expected, new| if old == expected { new } else { old }
            }
            Update::Add if number != Number::U16 => sum(number, !shared),
            Update::Increment if number == Number::U32 => |old, operand, _| if old >= operand { 0 } else { old + 1 },
            Update::Decrement if number == Number::U32 => {
                |old, operand, _| if old == 0 || old > operand { operand } else { old - 1 }
            }
            Update::Minimum if number != Number::U16 => extremum(number, false)?,
            Update::Maximum if number != Number::U16 => extremum(number, true)?,
            _ => return None,
        };
        Some(Self { bytes: number.bytes(), combine })
    }

    /// Bytes that a lane accesses.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The new value of one old value. `second` is the new value of a compare-and-swap, `operand` then the expected one.
    #[inline]
    pub fn apply(&self, old: u64, operand: u64, second: u64) -> u64 {
        (self.combine)(old, operand, second)
    }

    /// Applies itself to every lane that takes part, lanes in order.
    ///
    /// # Safety
    ///
    /// Every such lane fits the view ([`super::access::fits`]), whose bytes are valid for reads and writes and meanwhile
    /// accessed by atomics only.
    pub(super) unsafe fn run(
        &self,
        view: View,
        addresses: &[u64; LANES],
        mask: u32,
        operands: &[u64; LANES],
        second: &[u64; LANES],
        old: &mut [u64; LANES],
    ) {
        let mut lanes = mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let (operand, second) = (operands[lane], second[lane]);
            // SAFETY: the lane fits, so that the bytes are within the view and aligned.
            old[lane] = unsafe {
                let at = view.host.add(addresses[lane].wrapping_sub(view.base) as usize);
                match self.bytes {
                    2 => {
                        let low = |value: u64| value & 0xffff;
                        (*at.cast::<AtomicU16>())
                            .fetch_update(Relaxed, Relaxed, |old| {
                                Some((self.apply(u16::from_le(old).into(), low(operand), low(second)) as u16).to_le())
                            })
                            .map_or_else(|old| u16::from_le(old).into(), |old| u16::from_le(old).into())
                    }
                    4 => {
                        let low = |value: u64| value & 0xffff_ffff;
                        (*at.cast::<AtomicU32>())
                            .fetch_update(Relaxed, Relaxed, |old| {
                                Some((self.apply(u32::from_le(old).into(), low(operand), low(second)) as u32).to_le())
                            })
                            .map_or_else(|old| u32::from_le(old).into(), |old| u32::from_le(old).into())
                    }
                    _ => (*at.cast::<AtomicU64>())
                        .fetch_update(Relaxed, Relaxed, |old| {
                            Some(self.apply(u64::from_le(old), operand, second).to_le())
                        })
                        .map_or_else(u64::from_le, u64::from_le),
                }
            };
        }
    }
}

/// `atom.exch.b128` and `atom.cas.b128`, lanes in order: with `expected`, the value is exchanged only where it is equal.
///
/// # Safety
///
/// As for [`Rule::run`]; besides, the caller keeps other 128-bit atomics out.
pub(super) unsafe fn run128(
    view: View,
    addresses: &[u64; LANES],
    mask: u32,
    expected: Option<&[u128; LANES]>,
    new: &[u128; LANES],
    old: &mut [u128; LANES],
) {
    use super::access::Element;
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        // SAFETY: the lane fits, so that the bytes are within the view and aligned.
        unsafe {
            let at = view.host.add(addresses[lane].wrapping_sub(view.base) as usize);
            old[lane] = u128::read_relaxed(at);
            if expected.is_none_or(|expected| expected[lane] == old[lane]) {
                new[lane].write_relaxed(at);
            }
        }
    }
}
