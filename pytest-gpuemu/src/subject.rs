//! A Python callable as a subject: given arrays over the call's own memory, before the mirror exists.

use crate::arrays::{self, Memory};
use crate::front::Interrupt;
use gpuemu_harness::subject::UNUSABLE;
use gpuemu_harness::{Call, DType, Layout, ParamValue, Subject, SubjectError, Tensor};
use pyo3::exceptions::{PyException, PyImportError, PySystemExit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};
use std::fmt;
use std::sync::Arc;

/// A callable of the user. `caller` is a `pytest_gpuemu.calling.Subject`: it knows the signature and the kind of array.
pub struct PythonSubject {
    caller: Py<PyAny>,
    description: String,
    dtypes: Option<Vec<DType>>,
    /// The caller converts bits itself: bfloat16 and fp8 are handed over as integers.
    bits: bool,
    interrupt: Arc<Interrupt>,
}

impl fmt::Debug for PythonSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonSubject").field("description", &self.description).finish()
    }
}

/// What a call of Python left: the name of an answer, and its tensor; `None` where it was written in place.
type Answers = Vec<(String, Option<Tensor>)>;

impl PythonSubject {
    /// The subject of a `pytest_gpuemu.calling.Subject`.
    pub fn new(caller: &Bound<'_, PyAny>, interrupt: Arc<Interrupt>) -> PyResult<PythonSubject> {
        let names: Option<Vec<String>> = caller.getattr("dtypes")?.extract()?;
        Ok(PythonSubject {
            description: caller.getattr("description")?.extract()?,
            dtypes: names.map(|names| names.iter().filter_map(|name| DType::from_name(name)).collect()),
            bits: caller.getattr("bits")?.extract()?,
            caller: caller.clone().unbind(),
            interrupt,
        })
    }

    fn ask(&self, py: Python<'_>, inputs: &[Handed], outputs: &[Option<Handed>], call: &Call<'_>) -> PyResult<Answers> {
        let (given, wanted, dtypes) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
        for ((name, _), handed) in call.inputs.iter().zip(inputs) {
            given.set_item(name, arrays::array(py, &handed.memory, handed.dtype, self.bits)?)?;
            dtypes.set_item(name, handed.dtype.name())?;
        }
        for ((name, _), handed) in call.outputs.iter().zip(outputs) {
            match handed {
                Some(handed) => {
                    wanted.set_item(name, arrays::array(py, &handed.memory, handed.dtype, self.bits)?)?;
                    dtypes.set_item(name, handed.dtype.name())?;
                }
                None => wanted.set_item(name, py.None())?,
            }
        }
        let params = parameters(py, call.params)?;
        let result = self.caller.bind(py).call_method1("run", (given, wanted, params, dtypes, call.dtype.name()))?;
        read(result.cast::<PyList>()?)
    }
}

/// Parameters by name.
pub fn parameters<'py>(py: Python<'py>, params: &[(String, ParamValue)]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, value) in params {
        match value {
            ParamValue::Int(value) => all.set_item(name, value)?,
            ParamValue::Float(value) => all.set_item(name, value)?,
            ParamValue::Bool(value) => all.set_item(name, value)?,
            ParamValue::Text(value) => all.set_item(name, value)?,
        }
    }
    Ok(all)
}

/// Answers from a list of `(name, dtype, array)`; without an array, the answer was written in place.
pub fn read(list: &Bound<'_, PyList>) -> PyResult<Answers> {
    let mut answers = Vec::with_capacity(list.len());
    for entry in list {
        let (name, dtype, array): (String, String, Option<Bound<'_, PyAny>>) = entry.extract()?;
        answers.push((name, array.map(|array| arrays::tensor(&array, &dtype)).transpose()?));
    }
    Ok(answers)
}

/// A tensor of a call while Python has it.
struct Handed {
    memory: Py<Memory>,
    dtype: DType,
}

fn hand(py: Python<'_>, tensor: &mut Tensor) -> PyResult<Handed> {
    let dtype = tensor.dtype();
    let own = std::mem::replace(tensor, Tensor::zeros(dtype, Layout::contiguous(&[0])));
    Ok(Handed { memory: Py::new(py, Memory::new(own))?, dtype })
}

impl Subject for PythonSubject {
    fn run(&self, call: &mut Call<'_>) -> Result<(), SubjectError> {
        Python::attach(|py| {
            let broken = |error: PyErr| SubjectError { kind: "internal", message: error.to_string(), fault: false };
            let mut inputs = Vec::with_capacity(call.inputs.len());
            for (_, tensor) in call.inputs.iter_mut() {
                inputs.push(hand(py, tensor).map_err(broken)?);
            }
            let mut outputs = Vec::with_capacity(call.outputs.len());
            for (_, tensor) in call.outputs.iter_mut() {
                outputs.push(tensor.as_mut().map(|tensor| hand(py, tensor)).transpose().map_err(broken)?);
            }
            let asked = self.ask(py, &inputs, &outputs, call).map_err(|error| explain(py, error, &self.interrupt));
            for ((_, tensor), handed) in call.inputs.iter_mut().zip(inputs) {
                *tensor = Memory::take(handed.memory, py);
            }
            for ((_, tensor), handed) in call.outputs.iter_mut().zip(outputs) {
                *tensor = handed.map(|handed| Memory::take(handed.memory, py));
            }
            place(call, asked?)
        })
    }

    fn supports(&self, dtype: DType) -> bool {
        self.dtypes.as_ref().is_none_or(|dtypes| dtypes.contains(&dtype))
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

/// Leaves returned answers where the call wants them.
pub fn place(call: &mut Call<'_>, answers: Answers) -> Result<(), SubjectError> {
    for (name, tensor) in answers {
        let Some(tensor) = tensor else { continue };
        if let Some((_, output)) = call.outputs.iter_mut().find(|(own, _)| *own == name) {
            *output = Some(tensor);
        } else if let Some((_, input)) = call.inputs.iter_mut().find(|(own, _)| *own == name) {
            if (input.dtype(), input.shape()) != (tensor.dtype(), tensor.shape()) {
                let message = format!(
                    "returned {} of shape {:?} for the inout tensor {name}, which is {} of shape {:?}",
                    tensor.dtype(),
                    tensor.shape(),
                    input.dtype(),
                    input.shape()
                );
                return Err(SubjectError { kind: "mismatch", message, fault: false });
            }
            input.copy_elements_from(&tensor);
        }
    }
    Ok(())
}

/// An exception as the error of a subject. What ends the run is kept for that.
pub fn explain(py: Python<'_>, error: PyErr, interrupt: &Interrupt) -> SubjectError {
    if !error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PySystemExit>(py) {
        interrupt.set(error);
        return SubjectError { kind: "interrupted", message: "interrupted".to_owned(), fault: false };
    }
    let kind = if depends_on_the_case(py, &error) { "raised" } else { UNUSABLE };
    SubjectError { kind, message: explanation(py, &error), fault: false }
}

/// Whether another case may fare better: none brings a module that is not there.
fn depends_on_the_case(py: Python<'_>, error: &PyErr) -> bool {
    static UNUSABLE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let unusable = UNUSABLE.import(py, "pytest_gpuemu.arrays", "Unusable");
    !error.is_instance_of::<PyImportError>(py) && !unusable.is_ok_and(|class| error.is_instance(py, class))
}

/// What the user should read of an exception: it, and where in their own code it came from.
pub fn explanation(py: Python<'_>, error: &PyErr) -> String {
    static EXPLAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = EXPLAIN
        .import(py, "pytest_gpuemu.calling", "explain")
        .and_then(|explain| explain.call1((error.value(py),)))
        .and_then(|text| text.extract());
    text.unwrap_or_else(|_| error.to_string())
}
