//! The spec: the one line of text that names a case completely.
//!
//! ```text
//! line    = spec | "@" path
//! spec    = op "::" dtype "::" strategy "{" [sizes] [";" params] "}" {" " input} " seed=" 16 hex digits {" " edit} [" @" path]
//! sizes   = name "=" number {"," name "=" number}      the shape behind `...` is written `...=2x3x4`, or `...=scalar`
//! params  = name "=" value {"," name "=" value}        -1, 1e-5, true, "text" (escaped as in Rust)
//! input   = name ":" layout " " distribution ["@2^" exponent]
//! edit    = input "[" [number {"," number}] "]=" (number | "inf" | "-inf" | "NaN")
//! path    = no whitespace and no quote, or in double quotes, escaped as in Rust
//! ```

pub use super::kind::{Kind, LayoutKind};
use gpuemu_contract::{ParamValue, TestName};
use std::fmt;

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

impl Spec {
    /// The size of a named dimension.
    pub fn dim(&self, name: &str) -> Option<u64> {
        self.dims.iter().find(|(dim, _)| dim == name).map(|(_, size)| *size)
    }

    /// How the input of that name is laid out and filled.
    pub fn input(&self, name: &str) -> Option<&InputSpec> {
        self.inputs.iter().find(|input| input.name == name)
    }
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

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Which distribution.
    pub kind: Kind,
    /// Scale as a power of two (`@2^40`), where it is not 0: from -1074 to 1023.
    pub exponent: i32,
}

impl Distribution {
    /// The smallest and the largest exponent: the powers of two that are float64 numbers.
    pub const EXPONENTS: std::ops::RangeInclusive<i32> = -1074..=1023;
}

impl From<Kind> for Distribution {
    fn from(kind: Kind) -> Self {
        Distribution { kind, exponent: 0 }
    }
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

/// What a line may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A spec.
    Spec(Spec),
    /// A regression file, by path: `@gpuemu-regressions/softmax/9f3c5a.toml`.
    File(String),
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exponent {
            0 => write!(f, "{}", self.kind),
            exponent => write!(f, "{}@2^{exponent}", self.kind),
        }
    }
}

impl fmt::Display for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {}", self.name, self.layout, self.values)
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.input)?;
        for (position, index) in self.index.iter().enumerate() {
            write!(f, "{}{index}", if position == 0 { "" } else { "," })?;
        }
        write!(f, "]={:?}", self.value)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.test)?;
        let mut separator = "";
        if let Some(shape) = &self.any_rank {
            write!(f, "...={}", Shape(shape))?;
            separator = ",";
        }
        for (name, size) in &self.dims {
            write!(f, "{separator}{name}={size}")?;
            separator = ",";
        }
        separator = ";";
        for (name, value) in &self.params {
            write!(f, "{separator}{name}={value}")?;
            separator = ",";
        }
        f.write_str("}")?;
        for input in &self.inputs {
            write!(f, " {input}")?;
        }
        write!(f, " seed={:016x}", self.seed)?;
        for edit in &self.edits {
            write!(f, " {edit}")?;
        }
        match &self.file {
            Some(path) => write!(f, " {}", Line::File(path.clone())),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Spec(spec) => write!(f, "{spec}"),
            Line::File(path) if path.is_empty() || path.contains(|c: char| c.is_whitespace() || c == '"') => {
                write!(f, "@{path:?}")
            }
            Line::File(path) => write!(f, "@{path}"),
        }
    }
}

/// A shape as a spec writes it: `2x3x4`, or `scalar`.
struct Shape<'a>(&'a [u64]);

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("scalar");
        }
        for (position, size) in self.0.iter().enumerate() {
            write!(f, "{}{size}", if position == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}
