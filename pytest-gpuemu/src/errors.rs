//! Errors of the harness as Python exceptions, each with its code, and the wall that no panic passes.

use gpuemu_harness::Error;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

create_exception!(
    pytest_gpuemu,
    GpuemuError,
    PyException,
    "Something outside of a verdict went wrong; `code` says what."
);
create_exception!(pytest_gpuemu, ConfigError, GpuemuError, "`gpuemu.toml` is missing or wrong.");
create_exception!(pytest_gpuemu, NotFoundError, GpuemuError, "No op, kernel, artifact or file of that name.");
create_exception!(pytest_gpuemu, RequestError, GpuemuError, "A spec, a name or a setting is malformed.");
create_exception!(pytest_gpuemu, ReferenceFailed, GpuemuError, "A reference could not answer.");
create_exception!(pytest_gpuemu, InternalError, GpuemuError, "A fault of gpuemu itself.");

/// The exception of an error.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let message = error.to_string();
    let exception = match error {
        Error::Config(_) => ConfigError::new_err(message),
        Error::OpNotFound(_) | Error::KernelNotFound(_) | Error::NotFound(_) | Error::Artifact(_) => {
            NotFoundError::new_err(message)
        }
        Error::InvalidRequest(_) => RequestError::new_err(message),
        Error::ReferenceFailed(_) => ReferenceFailed::new_err(message),
        Error::Internal(_) => InternalError::new_err(message),
        _ => GpuemuError::new_err(message),
    };
    with_code(py, exception, error.code())
}

fn with_code(py: Python<'_>, exception: PyErr, code: &str) -> PyErr {
    match exception.value(py).setattr("code", code) {
        Ok(()) => exception,
        Err(other) => other,
    }
}

/// Does long work without the interpreter lock. A panic becomes an `InternalError`.
pub fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(raised(py, &error)),
        Err(payload) => {
            let message = format!("gpuemu itself panicked: {}", panic_text(&*payload));
            Err(with_code(py, InternalError::new_err(message), "InternalError"))
        }
    }
}

/// The message of a panic.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("with a value that is no text")
}

/// Adds what lives here to the extension module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let root = py.get_type::<GpuemuError>();
    root.setattr("code", "InternalError")?;
    module.add("GpuemuError", root)?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("NotFoundError", py.get_type::<NotFoundError>())?;
    module.add("RequestError", py.get_type::<RequestError>())?;
    module.add("ReferenceFailed", py.get_type::<ReferenceFailed>())?;
    module.add("InternalError", py.get_type::<InternalError>())
}
