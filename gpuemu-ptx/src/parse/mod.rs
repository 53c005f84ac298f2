//! PTX text and its syntax tree.

mod ast;

pub use ast::*;
