//! Addresses of functions: numbers that no memory has.

use crate::program::FunctionId;

/// Addresses of functions.
pub const FUNCTION: u64 = 4 << 56;
/// The address of a function.
pub fn function_address(id: FunctionId) -> u64 {
    FUNCTION + 16 * (u64::from(id.0) + 1)
}

/// The function at an address.
pub fn function_at(address: u64) -> Option<FunctionId> {
    let index = address.checked_sub(FUNCTION)?;
    (index != 0 && index % 16 == 0 && index / 16 <= u64::from(u32::MAX)).then(|| FunctionId((index / 16 - 1) as u32))
}
