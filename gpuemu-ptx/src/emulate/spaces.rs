//! Where the state spaces lie among generic addresses.

use crate::program::FunctionId;

/// Generic addresses of shared memory begin here: above all that a host or a GPU gives out.
pub const SHARED: u64 = 1 << 56;
/// Generic addresses of local memory.
pub const LOCAL: u64 = 2 << 56;
/// Generic addresses of kernel parameters.
pub const PARAMETER: u64 = 3 << 56;
/// Addresses of functions.
pub const FUNCTION: u64 = 4 << 56;
/// Bytes of each window.
pub const WINDOW: u64 = 1 << 32;

/// The address of a function.
pub fn function_address(id: FunctionId) -> u64 {
    FUNCTION + 16 * (u64::from(id.0) + 1)
}

/// The function at an address.
pub fn function_at(address: u64) -> Option<FunctionId> {
    let index = address.checked_sub(FUNCTION)?;
    (index != 0 && index % 16 == 0 && index / 16 <= u64::from(u32::MAX)).then(|| FunctionId((index / 16 - 1) as u32))
}
