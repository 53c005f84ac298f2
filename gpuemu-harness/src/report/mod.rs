//! Reports: what a person, a CI system and the next run need to know.

pub mod accuracy;
pub mod artifact;
pub mod failure;
pub mod junit;
pub mod regressions;
pub mod results;
