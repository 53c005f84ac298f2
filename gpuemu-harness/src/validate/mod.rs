//! Validation: do two answers agree, within what op and dtype can justify? Handed arrays and bounds; knows no mirror.

mod blocks;
pub mod compare;
pub mod diagnosis;
pub mod grid;
pub mod health;
pub mod honesty;
pub mod invariants;
pub mod picture;
pub mod relations;
mod scan;
pub mod statistics;
pub mod tolerance;
pub mod verdict;
