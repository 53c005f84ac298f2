//! From a syntax tree to a program.

mod body;
mod initial;
mod locations;
mod module;
mod names;
mod operands;
mod parameters;
