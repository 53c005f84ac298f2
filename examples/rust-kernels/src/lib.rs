//! A kernel crate in miniature: operators written as GPU kernels are, in blocks and tiles with tails, over strided
//! memory, accumulated in float32 whatever the tensors are stored as.
//!
//! Nothing here knows gpuemu. The tests bind each kernel to an op of `gpuemu.toml` with a function of a few lines
//! (`tests/bindings/mod.rs`), which is also where the test's views become what these kernels take. A crate whose kernels
//! take gpuemu's views themselves can write `#[gpuemu_harness::op("...")]` right on them instead, at the price of the
//! dependency; the tests are then one line, `gpuemu_harness::main!()`.

pub mod activation;
pub mod arithmetic;
pub mod attention;
pub mod block;
pub mod convolution;
pub mod index;
pub mod loss;
pub mod norm;
pub mod product;
pub mod quantize;
pub mod reduce;
pub mod rope;
pub mod scalar;
pub mod softmax;
pub mod strided;
pub mod transpose;

pub use scalar::{Number, Real, RealScalar, Scalar};
pub use strided::{Strided, StridedMut};
