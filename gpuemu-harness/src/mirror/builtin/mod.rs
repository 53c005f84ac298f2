//! Built-in references, one operator or family a file.

mod activation;
pub mod arguments;
mod arithmetic;
mod attention;
mod convolution;
mod cross_entropy;
mod gemm;
#[cfg(test)]
mod hand_values;
mod index;
mod norm;
mod normalize;
mod operands;
mod product;
mod quantize;
mod reduction;
mod rope;
mod table;
mod transpose;

pub use table::{Operator, find};
