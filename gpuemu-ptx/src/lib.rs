//! PTX on machines with no GPU.
//!
//! Text becomes a [`parse::Module`] (syntax, borrowed from the text), that becomes a program (names resolved, control
//! flow known), and a program is weighed or executed. The crate knows nothing of operators, cases or `gpuemu.toml`.

pub mod arch;
mod error;
pub mod flow;
pub mod lint;
pub mod metrics;
pub mod numerics;
pub mod occupancy;
pub mod parse;
pub mod program;
pub mod vendor;

pub use error::{Error, SyntaxError};
