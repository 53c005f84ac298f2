//! Execution on the CPU: a device with its memory, modules loaded on it, and launches.
//!
//! [`Device`] is the way in. A launch runs warp by warp, 32 lanes an instruction; every instruction was decoded once,
//! when its module was loaded, into a pointer to a loop over lanes and the registers that it works on.

mod block;
mod butterfly;
mod cancel;
mod code;
mod context;
mod copies;
mod counters;
mod decode;
mod demand;
mod device;
mod effects;
mod grid;
mod hoist;
mod index;
mod invariant;
mod launch;
mod layout;
mod module;
mod native;
mod op;
mod ops;
mod options;
mod output;
mod passed;
mod problem;
mod registers;
mod report;
mod spaces;
mod vector;
mod warp;

pub use cancel::Cancel;
pub use counters::{Counters, Passes, Requests};
pub use device::{Argument, Device, Launched, Refused, Shape};
pub use module::Module;
pub use options::{Options, Sanitizers};
pub use output::Printed;
