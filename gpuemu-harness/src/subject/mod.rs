//! Subjects: whatever computes the output under test.

pub mod arguments;
mod elements;
pub mod function;
pub mod kernel;
mod launch;
mod placement;
mod refusal;
pub mod script;

use crate::tensor::Tensor;
use gpuemu_contract::{DType, ParamValue};
use std::fmt;
use std::sync::Arc;

/// What a subject is given, and where it leaves its answers.
#[derive(Debug)]
pub struct Call<'a> {
    /// The dtype of the test.
    pub dtype: DType,
    /// The inputs in the order of the schema, with their layouts. `inout` tensors are answers too; all others must keep
    /// their bytes.
    pub inputs: &'a mut [(String, Tensor)],
    /// The outputs in the order of the schema. Where the shape is declared, a poisoned tensor to write into (a subject
    /// may replace it by one of its own); `None` where only the subject knows the shape.
    pub outputs: &'a mut [(String, Option<Tensor>)],
    /// The case's dimensions.
    pub dims: &'a [(String, u64)],
    /// The case's parameters.
    pub params: &'a [(String, ParamValue)],
    /// What the subject has to say of the run beside its answers, a line each.
    pub notes: Vec<String>,
}

/// Something that computes the output under test.
pub trait Subject: Send + Sync {
    /// Computes the outputs of one case.
    fn run(&self, call: &mut Call<'_>) -> Result<(), SubjectError>;

    /// Whether it has an implementation for this dtype.
    fn supports(&self, dtype: DType) -> bool;

    /// What it is, in a few words for messages: `function softmax`, `script scripts/softmax_op.py`.
    fn describe(&self) -> String;

    /// The same with what runs side by side in it taken up in another order, one for each seed. `None` where nobody but the
    /// subject itself says in which order it works.
    fn reordered(&self, seed: u64) -> Option<Arc<dyn Subject>> {
        let _ = seed;
        None
    }
}

/// [`SubjectError::kind`] of a launch that is refused whatever the case: there is nothing to shrink, and no case to keep.
pub const REFUSED: &str = "refused";

/// [`SubjectError::kind`] of a subject that is not there or cannot be called at all, whatever the case: a module that cannot
/// be imported, a script that does not start.
pub const UNUSABLE: &str = "unusable";

/// A subject that could not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectError {
    /// A short stable word for the kind: `panicked`, `exited`, `timed out`, `garbage`, ...
    pub kind: &'static str,
    /// What happened, fit to follow "failed: "; may have several lines.
    pub message: String,
    /// Whether `kind` is that of a fault in a compiled kernel.
    pub fault: bool,
}

impl fmt::Display for SubjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SubjectError {}
