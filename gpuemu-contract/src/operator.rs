//! One operator as declared: its tensors, dimensions, parameters and what must hold of its answers.

use crate::names::KERNEL;
use crate::{Compute, Condition, DType, Expression, Strategy};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// An `[[ops]]` entry, with every default of `[validation]` already filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// Its name: an identifier, unique in the file.
    pub name: String,
    /// The compiled kernel that computes it, in the op that [`crate::Contract::op_of`] makes of a kernel's; `None` for the
    /// ops of the file.
    pub kernel: Option<String>,
    /// One-based line of its header in the file, for messages.
    pub line: usize,
    /// What the right answer is computed by.
    pub reference: Reference,
    /// A Python callable that is the subject, `package.module:function`.
    pub module: Option<String>,
    /// A script that is the subject, as an absolute path.
    pub op_script: Option<PathBuf>,
    /// Who runs the op (the seed's key; informative).
    pub execution_mode: ExecutionMode,
    /// Frameworks the op is meant for: which arrays a Python function is given.
    pub frameworks: Vec<String>,
    /// Working precision a correct kernel may use. `None`: float64 for float64, else float32.
    pub compute: Option<Compute>,
    /// Tensors and dimensions.
    pub schema: Schema,
    /// Parameters in the order of the file.
    pub params: Vec<Param>,
    /// What must hold of every output.
    pub invariants: Invariants,
    /// What must hold between two runs.
    pub relations: Relations,
    /// Explicit tolerances, the op's own over `[validation.tolerances]`. Where one is given it replaces the envelope.
    pub tolerances: BTreeMap<DType, Tolerance>,
    /// Dtypes to test, in the order of the file.
    pub dtypes: Vec<DType>,
    /// Cases a test runs.
    pub cases: u32,
    /// Strategies that are tests (`single_dtype_*` already applied to `dtypes`).
    pub strategies: Vec<Strategy>,
    /// Written edge semantics that the mirror obeys.
    pub edges: EdgePolicy,
    /// Non-finite outputs must stand exactly where the mirror has NaN.
    pub check_nan: bool,
    /// Non-finite outputs must stand exactly where the mirror has infinities.
    pub check_inf: bool,
}

impl Op {
    /// The first part of its tests' names: its own name, or `kernel::` and the kernel's.
    pub fn tested_as(&self) -> String {
        match &self.kernel {
            None => self.name.clone(),
            Some(kernel) => format!("{KERNEL}::{kernel}"),
        }
    }

    /// The working precision a correct kernel may use on tensors of `dtype`.
    pub fn compute_for(&self, dtype: DType) -> Compute {
        match (self.compute, dtype) {
            (Some(compute), _) => compute,
            (None, DType::Float64) => Compute::Float64,
            (None, _) => Compute::Float32,
        }
    }
}

/// Where an op's right answer comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A built-in of that name, see [`crate::builtin`].
    Builtin(String),
    /// A script that speaks the JSON protocol, as an absolute path.
    Script(PathBuf),
    /// A Python function, called in a warm worker.
    Function {
        /// Dotted module path.
        module: String,
        /// Function name inside it.
        function: String,
    },
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Builtin(name) => f.write_str(name),
            Reference::Script(path) => write!(f, "{}", path.display()),
            Reference::Function { module, function } => write!(f, "{module}:{function}"),
        }
    }
}

/// The seed's `execution_mode`; here it only says who runs the op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExecutionMode {
    /// A bound function.
    #[default]
    ClientSide,
    /// The same as `client_side`.
    DaemonOrchestrated,
    /// The `op_script`.
    ScriptBased,
}

/// Tensors and dimensions of an op.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// Named dimensions, in the order of the file.
    pub dims: Vec<(String, Dimension)>,
    /// Inputs, in the order of the file. Tensors with `inout` are outputs too.
    pub inputs: Vec<TensorDecl>,
    /// Outputs, in the order of the file (without `inout` inputs).
    pub outputs: Vec<TensorDecl>,
    /// Constraints between dimensions (and integer parameters) that every case satisfies (`where`).
    pub constraints: Vec<Condition>,
}

impl Schema {
    /// The input of that name.
    pub fn input(&self, name: &str) -> Option<&TensorDecl> {
        self.inputs.iter().find(|tensor| tensor.name == name)
    }

    /// Outputs a case has, as the mirror answers them: the `inout` inputs first, then the outputs.
    pub fn results(&self) -> impl Iterator<Item = &TensorDecl> {
        self.inputs.iter().filter(|tensor| tensor.inout).chain(&self.outputs)
    }
}

/// The sizes a named dimension may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// Declared sizes, in the order of the file.
    pub candidates: Vec<u64>,
    /// The kernel's tile along this dimension; adds the sizes at and around it.
    pub tile: Option<u64>,
    /// The smallest size (0 to include empty); 1 by default.
    pub min: u64,
}

/// One tensor of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorDecl {
    /// Its name, an identifier.
    pub name: String,
    /// Its shape.
    pub shape: OutputShape,
    /// Its dtype.
    pub dtype: TensorDType,
    /// Where its values come from; `None` for any value.
    pub domain: Option<Domain>,
    /// Layouts the subject accepts (names of layout kinds); `None` for all.
    pub layouts: Option<Vec<String>>,
    /// A user's own generator, `package.module:function`.
    pub generate: Option<String>,
    /// An input that the operator overwrites with an answer.
    pub inout: bool,
}

/// The shape of a tensor: written, or (for outputs of the seed's files, which name none) whatever the reference answers.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputShape {
    /// As declared.
    Declared(Shape),
    /// As the reference answers.
    FromReference,
}

/// A declared shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// One expression an axis, over dimensions and integer parameters. Empty for rank 0.
    Fixed(Vec<Expression>),
    /// `["..."]`, optionally followed by fixed axes: any rank, the same leading shape for every such tensor of a case.
    AnyRank(Vec<Expression>),
}

/// The dtype of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorDType {
    /// The dtype of the test.
    Same,
    /// Always this one.
    Fixed(DType),
}

impl TensorDType {
    /// The dtype in a test of dtype `test`.
    pub fn resolve(self, test: DType) -> DType {
        match self {
            TensorDType::Same => test,
            TensorDType::Fixed(dtype) => dtype,
        }
    }
}

/// The values an input may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// Integers from the first to the second, both included; expressions over dimensions.
    IntegerRange(Expression, Expression),
    /// Floats from the first to the second.
    FloatRange(f64, f64),
    /// Floats above zero.
    Positive,
    /// Floats in [0, 1].
    Probability,
    /// Along the last axis, each of 0..n once.
    Permutation,
    /// Ascending along the last axis, values from the range.
    Sorted(Expression, Expression),
    /// No value twice along the last axis, values from the range.
    Unique(Expression, Expression),
    /// Along the last axis, one 1 and zeros.
    OneHot,
    /// Offsets of ragged rows: starts at 0, ascending (rows may be empty), ends at the given size.
    Offsets(Expression),
    /// Another domain, with some entries replaced by this sentinel.
    Sentinel(Box<Domain>, i64),
}

/// A parameter and the values it is sampled from (one value: a constant).
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name, an identifier.
    pub name: String,
    /// Values to sample from; never empty.
    pub candidates: Vec<ParamValue>,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue {
    /// A TOML integer.
    Int(i64),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Bool(bool),
    /// A TOML string.
    Text(String),
}

impl fmt::Display for ParamValue {
    /// As a spec writes it: floats always with a point or an exponent, text in double quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamValue::Int(value) => write!(f, "{value}"),
            ParamValue::Float(value) => write!(f, "{value:?}"),
            ParamValue::Bool(value) => write!(f, "{value}"),
            ParamValue::Text(value) => write!(f, "{value:?}"),
        }
    }
}

/// `[ops.invariants]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invariants {
    /// No output value is below zero.
    pub non_negative: bool,
    /// Every output has the shape of the first input.
    pub shape_preserved: bool,
    /// No output value is NaN.
    pub no_nan: bool,
    /// No output value is infinite.
    pub no_inf: bool,
    /// Every row (last axis) sums to this.
    pub rows_sum_to: Option<f64>,
    /// Every output value lies between these two.
    pub bounded: Option<(f64, f64)>,
}

/// `[ops.relations]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Relations {
    /// A dimension along which rows are independent: a row alone equals the row in its batch.
    pub batch: Option<String>,
    /// A dimension along which permuting the inputs permutes the outputs.
    pub permutes: Option<String>,
    /// The same inputs give the same bits twice.
    pub deterministic: bool,
    /// Inputs that are not `inout` keep their bytes. On unless switched off.
    pub inputs_untouched: bool,
}

impl Default for Relations {
    fn default() -> Self {
        Relations { batch: None, permutes: None, deterministic: false, inputs_untouched: true }
    }
}

/// An explicit tolerance: `|got - expected| <= absolute + relative * |expected|`, beside one rounding of the dtype.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub absolute: f64,
    /// Relative part.
    pub relative: f64,
}

/// Written edge semantics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgePolicy {
    /// What a reduction does with NaN.
    pub nan: NanPolicy,
    /// What a reduction over nothing answers.
    pub empty: EmptyPolicy,
}

/// What a reduction does with NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NanPolicy {
    /// A NaN in a row makes its answer NaN (argmax: the index of the first NaN).
    #[default]
    Propagate,
    /// A NaN counts as absent.
    Ignore,
}

/// What a reduction over nothing answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyPolicy {
    /// The op's own identity or NaN, as its built-in states.
    #[default]
    Natural,
    /// Zero.
    Zero,
    /// NaN.
    Nan,
    /// No such case is generated.
    Error,
}
