//! Reports: what a person, a CI system and the next run need to know.

pub mod junit;
pub mod results;
