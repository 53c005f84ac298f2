//! The built-in references as data: the order of their inputs, their outputs and parameters.
//!
//! The tensors of an op stand for the roles of its built-in by position, parameters by name. How each built-in is
//! computed is the mirror's business; this table is what a contract is checked against.

use crate::{DType, ParamValue, TensorDType};

/// A reference that ships with gpuemu.
#[derive(Debug, PartialEq)]
pub struct Builtin {
    /// The name a `reference = "..."` gives.
    pub name: &'static str,
    /// Inputs in order. Optional ones stand last and are dropped from the end.
    pub inputs: &'static [Role],
    /// Outputs in order.
    pub outputs: &'static [&'static str],
    /// The dtype of the outputs where the op declares none.
    pub output_dtype: TensorDType,
    /// Parameters, in the order of the documentation.
    pub params: &'static [Parameter],
}

/// One input of a built-in.
#[derive(Debug, PartialEq)]
pub struct Role {
    /// Its name, which is also the tensor's name in an op that declares no inputs.
    pub name: &'static str,
    /// Whether an op may leave it out.
    pub optional: bool,
    /// The shape in an op that declares none: expressions over [`default_dimension`]s and integer parameters.
    pub shape: &'static [&'static str],
    /// What it may hold.
    pub kind: RoleKind,
}

/// What an input of a built-in may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoleKind {
    /// Any values of the test's dtype.
    Values,
    /// Finite values of the test's dtype. Right kernels differ in whether they touch some of them at all (keys behind a
    /// causal mask, weights that meet only padding) or in which order they fold them (weights and biases of norms), and 0 times NaN or infinity shows the difference.
    Finite,
    /// Values above zero, of float32 in an op that declares nothing.
    Positive,
    /// Integers that name places: from 0 to the given expression (over the default dimensions), both included.
    Index(&'static str),
    /// Quantised values: int8 in an op that declares nothing.
    Quantized,
}

impl RoleKind {
    /// The dtype in an op that declares none.
    pub const fn dtype(self) -> TensorDType {
        match self {
            RoleKind::Values | RoleKind::Finite => TensorDType::Same,
            RoleKind::Positive => TensorDType::Fixed(DType::Float32),
            RoleKind::Index(_) => TensorDType::Fixed(DType::Int64),
            RoleKind::Quantized => TensorDType::Fixed(DType::Int8),
        }
    }
}

/// One parameter of a built-in.
#[derive(Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The value where an op gives none.
    pub default: ParamDefault,
    /// The texts it may be, for a parameter that is one of a few words; else empty.
    pub choices: &'static [&'static str],
}

/// The value a parameter has where an op gives none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamDefault {
    /// The op must give an integer.
    RequiredInt,
    /// An integer.
    Int(i64),
    /// A float; an integer is taken for one.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text.
    Text(&'static str),
    /// A float that depends on the shapes; the text says how.
    DerivedFloat(&'static str),
    /// Text that depends on the shapes; the text says how.
    DerivedText(&'static str),
}

impl ParamDefault {
    /// The default as a value; `None` where there is none or it depends on the shapes.
    pub fn value(self) -> Option<ParamValue> {
        match self {
            ParamDefault::Int(value) => Some(ParamValue::Int(value)),
            ParamDefault::Float(value) => Some(ParamValue::Float(value)),
            ParamDefault::Bool(value) => Some(ParamValue::Bool(value)),
            ParamDefault::Text(value) => Some(ParamValue::Text(value.to_owned())),
            ParamDefault::RequiredInt | ParamDefault::DerivedFloat(_) | ParamDefault::DerivedText(_) => None,
        }
    }

    /// The type a value must have, in words.
    pub const fn type_name(self) -> &'static str {
        match self {
            ParamDefault::RequiredInt | ParamDefault::Int(_) => "an integer",
            ParamDefault::Float(_) | ParamDefault::DerivedFloat(_) => "a number",
            ParamDefault::Bool(_) => "true or false",
            ParamDefault::Text(_) | ParamDefault::DerivedText(_) => "a string",
        }
    }

    /// Whether a value has the right type. An integer is taken for a float.
    pub const fn accepts(self, value: &ParamValue) -> bool {
        matches!(
            (self, value),
            (ParamDefault::RequiredInt | ParamDefault::Int(_), ParamValue::Int(_))
                | (ParamDefault::Float(_) | ParamDefault::DerivedFloat(_), ParamValue::Float(_) | ParamValue::Int(_))
                | (ParamDefault::Bool(_), ParamValue::Bool(_))
                | (ParamDefault::Text(_) | ParamDefault::DerivedText(_), ParamValue::Text(_))
        )
    }
}

impl Builtin {
    /// Every built-in.
    pub const ALL: &'static [Builtin] = BUILTINS;

    /// The built-in of that exact name.
    pub fn find(name: &str) -> Option<&'static Builtin> {
        Builtin::ALL.iter().find(|builtin| builtin.name == name)
    }

    /// The parameter of that exact name.
    pub fn param(&self, name: &str) -> Option<&'static Parameter> {
        self.params.iter().find(|param| param.name == name)
    }

    /// How few inputs an op may give.
    pub fn min_inputs(&self) -> usize {
        self.inputs.iter().filter(|role| !role.optional).count()
    }
}

/// Sizes of the dimensions that ops without a schema have.
pub fn default_dimension(name: &str) -> Option<&'static [u64]> {
    Some(match name {
        "batch" => &[1, 2, 8],
        "sequence" => &[1, 7, 128],
        "hidden" => &[1, 3, 256],
        "rows" | "inner" | "columns" => &[1, 7, 64],
        "picks" => &[1, 5, 33],
        "classes" => &[1, 10, 257],
        "vocabulary" => &[1, 11, 500],
        "kv_heads" => &[1, 2],
        "group" => &[1, 3],
        "heads" => &[1, 4],
        "depth" => &[1, 16, 64],
        "half_depth" => &[1, 8, 32],
        "channels" | "filters" => &[1, 3, 8],
        "height" | "width" => &[3, 8, 17],
        _ => return None,
    })
}

const fn values(name: &'static str, shape: &'static [&'static str]) -> Role {
    Role { name, optional: false, shape, kind: RoleKind::Values }
}

const fn finite(name: &'static str, shape: &'static [&'static str]) -> Role {
    Role { name, optional: false, shape, kind: RoleKind::Finite }
}

/// Weights and biases that may be missing: they are folded into a scale and a shift in one order or another.
const fn optional(name: &'static str, shape: &'static [&'static str]) -> Role {
    Role { name, optional: true, shape, kind: RoleKind::Finite }
}

const fn index(name: &'static str, shape: &'static [&'static str], last: &'static str) -> Role {
    Role { name, optional: false, shape, kind: RoleKind::Index(last) }
}

const fn param(name: &'static str, default: ParamDefault) -> Parameter {
    Parameter { name, default, choices: &[] }
}

const fn choice(name: &'static str, default: &'static str, choices: &'static [&'static str]) -> Parameter {
    Parameter { name, default: ParamDefault::Text(default), choices }
}

const fn builtin(name: &'static str, inputs: &'static [Role], params: &'static [Parameter]) -> Builtin {
    Builtin { name, inputs, outputs: &["out"], output_dtype: TensorDType::Same, params }
}

const fn answering(builtin: Builtin, dtype: DType) -> Builtin {
    Builtin { output_dtype: TensorDType::Fixed(dtype), ..builtin }
}

const ROWS: &[&str] = &["batch", "sequence", "hidden"];
const X: &[Role] = &[values("x", ROWS)];
const A_B: &[Role] = &[values("a", ROWS), values("b", ROWS)];
const AXIS: Parameter = param("axis", ParamDefault::Int(-1));
const ALONG_AXIS: &[Parameter] = &[AXIS];
const REDUCTION: &[Parameter] = &[AXIS, param("keepdims", ParamDefault::Bool(false))];
const TRANSPOSES: &[Parameter] =
    &[param("transpose_a", ParamDefault::Bool(false)), param("transpose_b", ParamDefault::Bool(false))];
const HEADS: &[&str] = &["batch", "kv_heads", "sequence", "depth"];
const SCALE: Role = Role { name: "scale", optional: false, shape: &["hidden"], kind: RoleKind::Positive };

const BUILTINS: &[Builtin] = &[
    // Normalisation along an axis.
    builtin("softmax", X, ALONG_AXIS),
    builtin("log_softmax", X, ALONG_AXIS),
    // layer_norm and rms_norm go over the last axis; weight and bias have its size.
    builtin(
        "layer_norm",
        &[values("x", ROWS), optional("weight", &["hidden"]), optional("bias", &["hidden"])],
        &[param("eps", ParamDefault::Float(1e-5))],
    ),
    builtin(
        "rms_norm",
        &[values("x", ROWS), optional("weight", &["hidden"])],
        &[param("eps", ParamDefault::Float(1e-6))],
    ),
    // x is [N, C, ...]; a group is C / groups channels and everything after them; weight and bias are [C].
    builtin(
        "group_norm",
        &[
            values("x", &["batch", "groups*channels", "sequence"]),
            optional("weight", &["groups*channels"]),
            optional("bias", &["groups*channels"]),
        ],
        &[param("groups", ParamDefault::RequiredInt), param("eps", ParamDefault::Float(1e-5))],
    ),
    // x / max(sqrt(sum x^2), eps)
    builtin("l2_norm", X, &[AXIS, param("eps", ParamDefault::Float(1e-12))]),
    // Elementwise, one operand.
    builtin("relu", X, &[]),
    builtin("leaky_relu", X, &[param("slope", ParamDefault::Float(0.01))]),
    builtin("elu", X, &[param("alpha", ParamDefault::Float(1.0))]),
    builtin("gelu", X, &[choice("approximate", "none", &["none", "tanh"])]),
    builtin("silu", X, &[]),
    builtin("sigmoid", X, &[]),
    builtin("tanh", X, &[]),
    builtin("exp", X, &[]),
    // Elementwise, several operands, broadcast against one another.
    builtin("swiglu", &[values("gate", ROWS), values("up", ROWS)], &[]), // silu(gate) * up
    builtin("add", A_B, &[]),
    builtin("sub", A_B, &[]),
    builtin("mul", A_B, &[]),
    builtin("div", A_B, &[]),
    builtin("fma", &[values("a", ROWS), values("b", ROWS), values("c", ROWS)], &[]), // a * b + c
    // Reductions and scans along an axis.
    builtin("sum", X, REDUCTION),
    builtin("mean", X, REDUCTION),
    builtin("var", X, &[AXIS, param("keepdims", ParamDefault::Bool(false)), param("correction", ParamDefault::Int(0))]),
    builtin("max", X, REDUCTION),
    builtin("min", X, REDUCTION),
    answering(builtin("argmax", X, REDUCTION), DType::Int64),
    builtin("cumsum", X, ALONG_AXIS),
    // Products. A transposed operand is stored as [K, M] or [N, K].
    builtin("matmul", &[values("a", &["rows", "inner"]), values("b", &["inner", "columns"])], TRANSPOSES),
    builtin(
        "batched_matmul",
        &[values("a", &["batch", "rows", "inner"]), values("b", &["batch", "inner", "columns"])],
        TRANSPOSES,
    ),
    // weight is [out, in].
    builtin(
        "linear",
        &[values("x", &["rows", "inner"]), values("weight", &["columns", "inner"]), optional("bias", &["columns"])],
        &[],
    ),
    // q is [B, H, S, D]; k and v may have fewer heads, each shared by a run of H / kv_heads neighbours.
    builtin(
        "attention",
        &[values("q", &["batch", "kv_heads*group", "sequence", "depth"]), finite("k", HEADS), finite("v", HEADS)],
        &[param("scale", ParamDefault::DerivedFloat("1/sqrt(D)")), param("causal", ParamDefault::Bool(false))],
    ),
    builtin(
        "cross_entropy",
        &[values("logits", &["rows", "classes"]), index("targets", &["rows"], "classes - 1")],
        &[param("ignore_index", ParamDefault::Int(-100)), choice("reduction", "none", &["none", "mean", "sum"])],
    ),
    // x is [..., S, D]; cos and sin are [S, D/2].
    builtin(
        "rope",
        &[
            values("x", &["batch", "heads", "sequence", "2*half_depth"]),
            values("cos", &["sequence", "half_depth"]),
            values("sin", &["sequence", "half_depth"]),
        ],
        &[param("interleaved", ParamDefault::Bool(false))],
    ),
    // Indexing. gather and scatter_add index as torch.gather and torch.scatter_add: index has the shape of what is
    // read into or added from.
    builtin(
        "embedding",
        &[values("table", &["vocabulary", "hidden"]), index("ids", &["batch", "sequence"], "vocabulary - 1")],
        &[],
    ),
    builtin(
        "gather",
        &[values("x", &["rows", "columns"]), index("index", &["rows", "picks"], "columns - 1")],
        ALONG_AXIS,
    ),
    builtin(
        "scatter_add",
        &[
            values("base", &["rows", "hidden"]),
            index("index", &["picks", "hidden"], "rows - 1"),
            values("src", &["picks", "hidden"]),
        ],
        &[param("axis", ParamDefault::Int(0))],
    ),
    // permutation is text such as "1,0,2".
    builtin("transpose", X, &[param("permutation", ParamDefault::DerivedText("the last two axes swapped"))]),
    // Quantisation; scale broadcasts against x. quantize answers in the dtype its output declares, an int8 or an fp8.
    answering(
        builtin("quantize", &[values("x", ROWS), SCALE], &[param("zero_point", ParamDefault::Int(0))]),
        DType::Int8,
    ),
    builtin(
        "dequantize",
        &[Role { name: "x", optional: false, shape: ROWS, kind: RoleKind::Quantized }, SCALE],
        &[param("zero_point", ParamDefault::Int(0))],
    ),
    // x is [N, C, H, W], weight [F, C / groups, KH, KW]; stride, padding and dilation are the same in both directions.
    builtin(
        "conv2d",
        &[
            values("x", &["batch", "channels", "height", "width"]),
            finite("weight", &["filters", "channels", "3", "3"]),
            optional("bias", &["filters"]),
        ],
        &[
            param("stride", ParamDefault::Int(1)),
            param("padding", ParamDefault::Int(0)),
            param("dilation", ParamDefault::Int(1)),
            param("groups", ParamDefault::Int(1)),
        ],
    ),
];
