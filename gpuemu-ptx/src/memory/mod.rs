//! The memories of a device: global regions, a block's shared memory, a thread's local memory, and the shadows that
//! know who touched what.
//!
//! Addresses are 64 bits wide and generic: the state space of an access is seen from its address, as on a GPU. Global
//! addresses are what the host hands out ([`Global::allocate`]); shared and local memory are seen through windows
//! ([`SHARED_WINDOW`], [`LOCAL_WINDOW`]). Constants and parameters are read-only regions of global memory, so that
//! `cvta` and `cvta.to` change nothing but shared and local addresses.
//!
//! An instruction accesses memory for 32 lanes at once: 32 addresses and a mask of the lanes that take part. Values come
//! and go as `[[T; 32]; N]`, a row for every element of a vector; rows of lanes that take no part stay as they are.

pub mod access;
pub mod atomic;
mod backing;
pub mod global;
pub mod local;
pub mod region;
pub mod shadow;
pub mod shared;
#[cfg(test)]
mod tests;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vector;

pub use access::{Action, Element, Problem, ProblemKind};
pub use atomic::{Number, Rule, Update};
pub use global::{Addressing, Cache, Global, Place};
pub use local::Local;
pub use region::{Region, Role};
pub use shared::Shared;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// First generic address of shared memory: above every address that a host or a device of today uses for global memory
/// (48 bits), and within the 49 bits of a GPU's addresses.
pub const SHARED_WINDOW: u64 = 0x1_fe00_0000_0000;

/// First generic address of a thread's local memory.
pub const LOCAL_WINDOW: u64 = 0x1_ff00_0000_0000;

/// Bytes of a window.
pub const WINDOW_BYTES: u64 = 1 << 32;

/// What memory a generic address lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Window {
    /// Global memory, constants and parameters, or none.
    Global,
    /// The block's shared memory; the address within it is [`Window::offset`].
    Shared,
    /// The thread's local memory.
    Local,
}

impl Window {
    /// The memory of a generic address.
    #[inline(always)]
    pub fn of(address: u64) -> Self {
        match address >> 32 {
            high if high == SHARED_WINDOW >> 32 => Self::Shared,
            high if high == LOCAL_WINDOW >> 32 => Self::Local,
            _ => Self::Global,
        }
    }

    /// The address in the window's own space: what `cvta.to` gives.
    #[inline(always)]
    pub fn offset(self, address: u64) -> u64 {
        match self {
            Self::Global => address,
            Self::Shared => address.wrapping_sub(SHARED_WINDOW),
            Self::Local => address.wrapping_sub(LOCAL_WINDOW),
        }
    }

    /// The generic address of one in the window's own space: what `cvta` gives.
    #[inline(always)]
    pub fn generic(self, offset: u64) -> u64 {
        match self {
            Self::Global => offset,
            Self::Shared => offset.wrapping_add(SHARED_WINDOW),
            Self::Local => offset.wrapping_add(LOCAL_WINDOW),
        }
    }

    /// Which lanes of a generic access go to global, shared and local memory.
    #[inline]
    pub fn split(addresses: &[u64; LANES], mask: u32) -> [u32; 3] {
        let mut lanes = [0; 3];
        for (lane, &address) in addresses.iter().enumerate() {
            lanes[Self::of(address) as usize] |= 1 << lane;
        }
        lanes.map(|these| these & mask)
    }
}
