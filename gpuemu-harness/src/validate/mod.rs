//! Validation: do two answers agree, within what op and dtype can justify? Handed arrays and bounds; knows no mirror.

pub mod verdict;
