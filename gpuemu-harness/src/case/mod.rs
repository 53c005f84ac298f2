//! Cases: which inputs, described by one line of text that regenerates them byte for byte.

pub mod spec;

use crate::tensor::Tensor;
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
