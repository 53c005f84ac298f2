//! Rules about kernels: each says what is wrong or costly at a place of the source, and what to do about it.

mod context;
mod divergent_barrier;
mod evaluate;
mod float_atomic_order;
mod fp64_in_fp32;
mod index_wraps;
mod missing_barrier;
mod narrow_global_access;
mod regions;
mod rule;
mod shuffle_under_divergence;
mod spill_in_loop;
mod trace;
mod uninitialised_register;
mod unused_parameter;

pub use rule::{Finding, RULES, Related, Rule, Severity, check};
