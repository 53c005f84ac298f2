//! Cases, mirror, validation, shrinking and reports: gpuemu's test harness for Rust.

pub mod calibrate;
pub mod case;
pub mod environment;
pub mod error;
pub mod files;
pub mod front;
pub mod inspect;
pub mod memory;
pub mod mirror;
pub mod origin;
pub mod pipeline;
pub mod process;
pub mod project;
pub mod python;
pub mod report;
pub mod runner;
pub mod subject;
pub mod suite;
pub mod tensor;
pub mod validate;

pub use error::{Error, Result};
pub use gpuemu_contract::{DType, ParamValue, Strategy, TestName};
pub use gpuemu_macros::{main, op, tests};
pub use half::{bf16, f16};
pub use origin::Origin;
pub use subject::{Call, Subject, SubjectError};
pub use tensor::{Array, Bool, Element, F8E4M3, F8E5M2, Float, Layout, Tensor, View, ViewMut};

/// What the expansions of `#[op]`, `tests!` and `main!` name. No part of the public interface.
#[doc(hidden)]
pub mod expansion {
    pub use crate::project::{run_main, run_test};
    pub use crate::subject::arguments::{Arguments, give};
    pub use crate::subject::function::{Binding, Implementation};
    pub use inventory;
}
