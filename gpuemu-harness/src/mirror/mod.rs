//! The mirror: the right answer of one case, in float64 and in the working precision.

pub mod builtin;
mod open;
pub mod protocol;
pub mod real;
pub mod script;
pub mod wire;
pub mod worker;

pub use open::open;
mod vector_math;

use crate::error::Result;
use crate::tensor::Array;
use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};

/// What a mirror is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The inputs in the order of the schema, `inout` tensors included, already quantised to their dtypes.
    pub inputs: &'a [(String, Array)],
    /// The case's parameters.
    pub params: &'a [(String, ParamValue)],
    /// Name and dtype of each answer, in the order of [`gpuemu_contract::Schema::results`].
    pub outputs: &'a [(String, DType)],
    /// The arithmetic to use. `Float64`: the expected value. Anything else: what a correct kernel that computes in this
    /// precision might answer; inputs are rounded to it first, every intermediate result is a number of it
    /// (`Tf32`, `Float8`: factors of products are rounded, everything else is float32).
    pub precision: Compute,
    /// Written edge semantics.
    pub edges: EdgePolicy,
}

/// Something that knows the right answer of an op.
pub trait Mirror: Send + Sync {
    /// The answers, one for each of `question.outputs`. Float values are never rounded to the output's dtype. Where
    /// that is an integer (a quantisation), an answer of floats is the value before rounding: every integer within half
    /// a step of it is right, and for a NaN every integer.
    fn answer(&self, question: &Question<'_>) -> Result<Vec<Array>>;

    /// Whether it can evaluate in a working precision. Where it cannot, a question in one is answered in float64.
    fn has_working_precision(&self) -> bool {
        true
    }

    /// The axes of an answer that the op reduces along, or normalises over (counted on the output, from the front):
    /// elements along them share their error scale. Empty when every element stands alone.
    fn pooled_axes(&self, question: &Question<'_>, output: usize) -> Vec<usize> {
        let _ = (question, output);
        Vec::new()
    }

    /// How many leading axes of an answer are separable: each slice along them is what the mirror answers to that slice of
    /// the first input alone (same shape as the answer), whatever the number of slices; other inputs are read whole.
    /// A question about a few slices then stands for one about all. 0: the answer is only known as a whole.
    fn separable_axes(&self, question: &Question<'_>, output: usize) -> usize {
        let _ = (question, output);
        0
    }

    /// What a person should know about the answers so far, for the report.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
