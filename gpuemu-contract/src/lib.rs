//! The contract between a kernel repository and gpuemu: one file, `gpuemu.toml`, read here and nowhere else.
//!
//! Every front (the Rust harness, its macros, the Python plugin) reads the file through [`Contract`], so that all of
//! them list the same tests under the same names.

pub mod builtin;
pub mod contract;
pub mod dtype;
pub mod expression;
pub mod names;
pub mod operator;

pub use builtin::{Builtin, ParamDefault, Parameter, Role, RoleKind};
pub use contract::{Argument, ArtifactChecks, Ci, Contract, Kernel, Launch, Policies, Project, Validation};
pub use dtype::{Compute, DType};
pub use expression::{Bindings, Condition, Expression, ExpressionError};
pub use names::{Strategy, TestName};
pub use operator::{
    Dimension, Domain, EdgePolicy, EmptyPolicy, ExecutionMode, Invariants, NanPolicy, Op, OutputShape, Param,
    ParamValue, Reference, Relations, Schema, Shape, TensorDType, TensorDecl, Tolerance,
};
