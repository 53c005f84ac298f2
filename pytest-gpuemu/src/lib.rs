//! `pytest_gpuemu._core`: the harness and the emulator as a Python extension module.

mod emulator;

use pyo3::prelude::*;

/// One line a part: each registers its classes and functions.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    emulator::register(module)?;
    Ok(())
}
