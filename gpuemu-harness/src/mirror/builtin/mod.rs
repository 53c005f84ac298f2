//! Built-in references, one operator or family a file.

pub mod arguments;
mod normalize;
mod table;

pub use table::{Operator, find};
