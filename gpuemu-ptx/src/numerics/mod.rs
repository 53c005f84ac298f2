//! The arithmetic of PTX as pure functions on bits: mostly one scalar at a time, no state, nothing allocated.
//!
//! `exact` rounds any result of any format; `float`, `half`, `convert` and `integer` are the instructions; `special`
//! is the special-function unit, `special_rows` the same for a whole warp; `tensor_core` the sums of products of matrix
//! instructions. Functions take and give the bit patterns that registers hold; they are small enough to be inlined into
//! loops over lanes.

pub mod convert;
pub mod exact;
pub mod float;
pub mod fragment;
pub mod half;
pub mod integer;
pub mod special;
pub mod special_rows;
mod special_tables;
#[cfg(target_arch = "x86_64")]
mod special_wide;
mod sum_rule;
pub mod tensor_core;
#[cfg(target_arch = "x86_64")]
mod tensor_core_wide;
pub mod video;
