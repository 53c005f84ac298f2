//! The emulator's device, for drivers written in Python.

use pyo3::prelude::*;

/// Adds what lives here to the extension module.
pub fn register(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
