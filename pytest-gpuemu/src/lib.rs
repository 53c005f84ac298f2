//! `pytest_gpuemu._core`: the harness and the emulator as a Python extension module.

mod arrays;
mod case;
mod emulator;
mod errors;
mod front;
mod mirror;
mod project;
mod subject;
mod verdict;

use pyo3::prelude::*;

/// One line a part: each registers its classes and functions.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    arrays::register(module)?;
    project::register(module)?;
    case::register(module)?;
    emulator::register(module)?;
    Ok(())
}
