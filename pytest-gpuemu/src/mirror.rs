//! A Python reference, evaluated in this process.

use crate::arrays::{self, Memory};
use crate::front::Interrupt;
use crate::subject::{explain, parameters, read};
use gpuemu_harness::mirror::script::{narrow_note, note_narrow};
use gpuemu_harness::mirror::wire::{self, Dense};
use gpuemu_harness::mirror::{Mirror, Question};
use gpuemu_harness::tensor::Array;
use gpuemu_harness::{Error, Result, Tensor};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A function of NumPy arrays. `caller` is a `pytest_gpuemu.calling.Reference`.
pub struct PythonMirror {
    caller: Py<PyAny>,
    name: String,
    narrow: AtomicBool,
    interrupt: Arc<Interrupt>,
}

impl PythonMirror {
    /// The mirror of a `pytest_gpuemu.calling.Reference`.
    pub fn new(caller: &Bound<'_, PyAny>, interrupt: Arc<Interrupt>) -> PyResult<PythonMirror> {
        let name = caller.getattr("description")?.extract()?;
        Ok(PythonMirror { caller: caller.clone().unbind(), name, narrow: AtomicBool::new(false), interrupt })
    }

    fn ask(&self, py: Python<'_>, question: &Question<'_>) -> PyResult<Vec<Tensor>> {
        let inputs = PyDict::new(py);
        for (name, array) in question.inputs {
            let dense = Dense::of_array(name, array, question.precision);
            let tensor = wire::tensor(dense.dtype, dense.shape, &dense.bytes)
                .map_err(pyo3::exceptions::PyValueError::new_err)?;
            let memory = Py::new(py, Memory::new(tensor))?;
            inputs.set_item(name, arrays::array(py, &memory, dense.dtype, false)?)?;
        }
        let names: Vec<&str> = question.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let result = self.caller.bind(py).call_method1("answer", (inputs, parameters(py, question.params)?, names))?;
        let answers = read(result.cast::<PyList>()?)?;
        Ok(answers.into_iter().filter_map(|(_, tensor)| tensor).collect())
    }
}

impl Mirror for PythonMirror {
    fn answer(&self, question: &Question<'_>) -> Result<Vec<Array>> {
        let answers = Python::attach(|py| {
            self.ask(py, question).map_err(|error| {
                let error = explain(py, error, &self.interrupt);
                Error::ReferenceFailed(format!("{}: {}", self.name, error.message))
            })
        })?;
        note_narrow(question, &answers, &self.narrow);
        let arrays = question.outputs.iter().zip(&answers).map(|((name, dtype), tensor)| {
            wire::answer(name, *dtype, tensor)
                .map_err(|error| Error::ReferenceFailed(format!("{}: {error}", self.name)))
        });
        arrays.collect()
    }

    fn notes(&self) -> Vec<String> {
        narrow_note(&self.name, &self.narrow)
    }
}
