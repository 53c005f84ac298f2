//! Cases, mirror, validation, shrinking and reports: gpuemu's test harness for Rust.

pub mod case;
pub mod environment;
pub mod error;
pub mod mirror;
pub mod report;
pub mod runner;
pub mod subject;
pub mod suite;
pub mod tensor;
pub mod validate;

pub use error::{Error, Result};
pub use gpuemu_contract::{DType, ParamValue};
pub use half::{bf16, f16};
pub use tensor::{Array, Bool, Element, F8E4M3, F8E5M2, Float, Layout, Tensor, View, ViewMut};
