//! Test names: an op, a dtype and a strategy, joined as Rust joins a path.

use crate::DType;
use std::fmt;

/// A way of choosing cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strategy {
    /// Shapes from the declared candidates, moderate values.
    Default,
    /// Shapes at and around the edges: 1, tile and tile plus or minus one, primes, the largest.
    Boundary,
    /// Shapes without boundary sizes, moderate values.
    Regular,
    /// As `default`, float32 only: it selects a dtype and is not a test of its own.
    SingleDtypeF32,
    /// As `default`, float16 only: it selects a dtype and is not a test of its own.
    SingleDtypeF16,
    /// A few localised NaNs; most rows stay finite.
    NanInjected,
    /// A mix of few non-finite values, edge magnitudes, structured rows and zero blocks.
    Adversarial,
    /// The largest magnitudes at which the working-precision mirror stays finite.
    Edge,
    /// Constant rows, one-hot, ramps, near-cancelling signs, equal maxima, all -inf rows.
    Structured,
    /// Transposed, sliced, padded, offset and broadcast views with real gaps in memory.
    Layout,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 10] = [
        Strategy::Default,
        Strategy::Boundary,
        Strategy::Regular,
        Strategy::SingleDtypeF32,
        Strategy::SingleDtypeF16,
        Strategy::NanInjected,
        Strategy::Adversarial,
        Strategy::Edge,
        Strategy::Structured,
        Strategy::Layout,
    ];

    /// The name used in `gpuemu.toml` and as the last part of a test's name.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Default => "default",
            Strategy::Boundary => "boundary",
            Strategy::Regular => "regular",
            Strategy::SingleDtypeF32 => "single_dtype_f32",
            Strategy::SingleDtypeF16 => "single_dtype_f16",
            Strategy::NanInjected => "nan_injected",
            Strategy::Adversarial => "adversarial",
            Strategy::Edge => "edge",
            Strategy::Structured => "structured",
            Strategy::Layout => "layout",
        }
    }

    /// The strategy of that exact name, if there is one.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// The dtype a `single_dtype_*` strategy selects.
    pub const fn selects(self) -> Option<DType> {
        match self {
            Strategy::SingleDtypeF32 => Some(DType::Float32),
            Strategy::SingleDtypeF16 => Some(DType::Float16),
            _ => None,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the names of compiled kernels' tests begin with; no op is called so.
pub const KERNEL: &str = "kernel";

/// The name of a test: `op::dtype::strategy` or `kernel::name::dtype::strategy`, the same in every front, with no seed,
/// path or host fact in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TestName {
    /// What is tested: the op's name, or `kernel::` and the kernel's.
    pub op: String,
    /// The dtype the op's `same` tensors take.
    pub dtype: DType,
    /// How the cases are chosen.
    pub strategy: Strategy,
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}::{}", self.op, self.dtype, self.strategy)
    }
}

impl TestName {
    /// Reads `op::dtype::strategy` or `kernel::name::dtype::strategy`; `None` when the text is not of that form.
    pub fn parse(text: &str) -> Option<TestName> {
        let mut parts = text.rsplitn(3, "::");
        let (strategy, dtype, op) = (parts.next()?, parts.next()?, parts.next()?);
        let name = op.strip_prefix(KERNEL).and_then(|rest| rest.strip_prefix("::")).unwrap_or(op);
        if name.is_empty() || name.contains("::") {
            return None;
        }
        Some(TestName { op: op.to_owned(), dtype: DType::from_name(dtype)?, strategy: Strategy::from_name(strategy)? })
    }

    /// The kernel that is tested, where it is one.
    pub fn kernel(&self) -> Option<&str> {
        self.op.strip_prefix(KERNEL)?.strip_prefix("::")
    }
}
