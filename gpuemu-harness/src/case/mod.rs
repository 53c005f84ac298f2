//! Cases: which inputs, described by one line of text that regenerates them byte for byte.

pub mod build;
pub mod domain;
pub mod kind;
pub mod layout;
pub mod rng;
mod schedule;
pub mod shape;
pub mod shrink;
pub mod spec;
mod spec_parser;
pub mod strategy;
#[cfg(test)]
mod testing;
pub mod values;

use crate::error::Result;
use crate::tensor::{Array, Tensor};
use gpuemu_contract::{DType, ParamValue};
use spec::Spec;

/// One concrete input of one op.
#[derive(Clone, Debug)]
pub struct Case {
    /// The line that names it completely.
    pub spec: Spec,
    /// The inputs in the order of the schema.
    pub inputs: Vec<(String, Tensor)>,
    /// The outputs in the order of the schema: name, dtype, and the shape where the schema declares it.
    pub outputs: Vec<(String, DType, Option<Vec<usize>>)>,
    /// Parameters in the order of the contract.
    pub params: Vec<(String, ParamValue)>,
}

/// A user's own generator of an input's values.
pub trait Generate {
    /// Values of `request.shape`. The same request must give the same values.
    fn generate(&self, request: &Request<'_>) -> Result<Array>;
}

/// What a user's generator is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The generator, `package.module:function`.
    pub target: &'a str,
    /// Seed of the input's stream.
    pub seed: u64,
    /// The dtype the values will be rounded to.
    pub dtype: DType,
    /// The shape to answer.
    pub shape: &'a [usize],
    /// The case's dimensions.
    pub dims: &'a [(String, u64)],
    /// The case's parameters.
    pub params: &'a [(String, ParamValue)],
}
