//! The spec: the one line of text that names a case completely.

use gpuemu_contract::{ParamValue, TestName};

/// A parsed spec line.
///
/// `softmax::float32::adversarial{B=1,S=7,H=3;axis=-1} x:row adversarial@2^40 seed=9f3c5a7700112233 x[0,0,2]=inf`
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The test the case belongs to.
    pub test: TestName,
    /// Named dimensions, in the order of the schema.
    pub dims: Vec<(String, u64)>,
    /// Leading shape of the `...` tensors, where the schema has any: written as the dimension `...=2x3x4`.
    pub any_rank: Option<Vec<u64>>,
    /// Parameters, in the order of the contract.
    pub params: Vec<(String, ParamValue)>,
    /// How each input is laid out and filled, in the order of the schema.
    pub inputs: Vec<InputSpec>,
    /// Seed of the case: every input's stream derives from it and the input's name.
    pub seed: u64,
    /// Single values replaced after filling.
    pub edits: Vec<Edit>,
    /// A regression file that holds what a line cannot say; the rest of the line then repeats it for readers.
    pub file: Option<String>,
}

/// How one input is laid out and filled.
#[derive(Clone, Debug, PartialEq)]
pub struct InputSpec {
    /// The input's name.
    pub name: String,
    /// How it lies in memory.
    pub layout: LayoutKind,
    /// How its values are drawn.
    pub values: Distribution,
}

/// How a tensor lies in memory. Gaps hold poison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LayoutKind {
    /// Row-major without gaps, at the start of its memory.
    #[default]
    Row,
    /// The last two axes exchanged in memory.
    Transposed,
    /// Every axis reversed in memory (column-major).
    Column,
    /// Rows longer in memory than the tensor: gaps behind each.
    Padded,
    /// Every second element of a larger row-major tensor along the last axis.
    Sliced,
    /// Row-major, starting behind a gap.
    Offset,
    /// Stride 0 along the first axis: all its slices are one.
    Broadcast,
    /// Negative stride along the last axis.
    Reversed,
}

/// How values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Name of the distribution: `normal`, `uniform`, `adversarial`, ...
    pub name: String,
    /// Scale as a power of two (`@2^40`), where it is not 0.
    pub exponent: i32,
}

/// A single value replaced after filling: `x[0,0,2]=inf`.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The input.
    pub input: String,
    /// The element.
    pub index: Vec<u64>,
    /// Its new value, rounded to the dtype.
    pub value: f64,
}
