//! PTX text and its syntax tree.

mod ast;
mod fault;
mod lexer;
mod line_index;
mod opcode;
mod parser;
mod print;

pub use ast::*;
pub use line_index::{LineIndex, Position};
pub use opcode::plain_opcode;
pub use parser::{parse, parse_bytes};
