//! The contract between a kernel repository and gpuemu: one file, `gpuemu.toml`, read here and nowhere else.
//!
//! Every front (the Rust harness, its macros, the Python plugin) reads the file through [`Contract`], so that all of
//! them list the same tests under the same names. [`Contract::find`] and [`Contract::load`] are the way in; what is wrong
//! with a file comes back as [`ContractErrors`], all at once, each with its place.
//!
//! # Keys
//!
//! Every key a file may have; any other is an error.
//!
#![doc = include_str!("../KEYS.md")]

pub mod artifact;
pub mod builtin;
mod check;
pub mod contract;
mod document;
pub mod dtype;
pub mod error;
pub mod expression;
mod expression_parser;
pub mod key_docs;
pub mod keys;
mod kind;
pub mod names;
pub mod operator;
mod read;

pub use builtin::{Builtin, ParamDefault, Parameter, Role, RoleKind};
pub use contract::{
    Argument, ArtifactChecks, Ci, Contract, Kernel, Launch, LintPolicy, Measured, Policies, Project, Sanitizers,
    Validation,
};
pub use dtype::{Compute, DType};
pub use error::{ContractError, ContractErrors, Place, nearest};
pub use expression::{Bindings, Condition, Expression, ExpressionError};
pub use names::{KERNEL, Strategy, TestName};
pub use operator::{
    Dimension, Domain, EdgePolicy, EmptyPolicy, ExecutionMode, Invariants, NanPolicy, Op, OutputShape, Param,
    ParamValue, Reference, Relations, Schema, Shape, TensorDType, TensorDecl, Tolerance,
};
pub use read::FILE_NAME;
