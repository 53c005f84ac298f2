//! One case through all stages, and the cases of one test.

pub mod check;
pub mod oracle;
pub mod relate;
pub mod session;
pub mod trial;
