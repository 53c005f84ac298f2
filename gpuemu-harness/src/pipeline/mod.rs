//! One case through all stages, and the cases of one test.

pub mod accuracy;
pub mod artifact;
pub mod calibration;
pub mod check;
mod explain;
mod measured;
pub mod oracle;
mod relate;
pub mod session;
pub mod trial;
