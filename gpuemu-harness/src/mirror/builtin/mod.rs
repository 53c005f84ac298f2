//! Built-in references, one operator or family a file.

pub mod arguments;
mod attention;
mod convolution;
mod cross_entropy;
mod gemm;
mod index;
mod normalize;
mod operands;
mod product;
mod rope;
mod table;

pub use table::{Operator, find};
