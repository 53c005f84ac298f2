//! Tensors as NumPy arrays over the same memory, and arrays as tensors.

use gpuemu_harness::{DType, Layout, Tensor};
use pyo3::exceptions::{PyImportError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, PoisonError};

/// The memory of a tensor, owned by Python as long as an array looks at it (NumPy's array interface, version 3).
#[pyclass(frozen, module = "pytest_gpuemu._core")]
pub struct Memory {
    tensor: Mutex<Option<Tensor>>,
    /// Where the bytes begin: they do not move while the tensor is in here.
    start: usize,
}

impl Memory {
    /// Takes a tensor in.
    pub fn new(mut tensor: Tensor) -> Memory {
        let start = tensor.bytes_mut().as_mut_ptr() as usize;
        Memory { tensor: Mutex::new(Some(tensor)), start }
    }

    /// The tensor as it is now. Where Python has kept an array of it, a copy: what is written there later is not seen.
    pub fn take(memory: Py<Memory>, py: Python<'_>) -> Tensor {
        // SAFETY: the pointer is that of a live object, and the interpreter lock is held.
        let alone = unsafe { ffi::Py_REFCNT(memory.as_ptr()) } == 1;
        let mut slot = memory.bind(py).get().tensor.lock().unwrap_or_else(PoisonError::into_inner);
        let tensor = if alone { slot.take() } else { slot.clone() };
        tensor.unwrap_or_else(|| Tensor::zeros(DType::UInt8, Layout::contiguous(&[0])))
    }
}

#[pymethods]
impl Memory {
    #[getter(__array_interface__)]
    fn array_interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let slot = self.tensor.lock().unwrap_or_else(PoisonError::into_inner);
        let tensor = slot.as_ref().ok_or_else(|| PyValueError::new_err("this memory was given back"))?;
        let (layout, size) = (tensor.layout(), tensor.dtype().size());
        let offset = if tensor.is_empty() { 0 } else { layout.offset * size };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, &layout.shape)?)?;
        interface.set_item("strides", PyTuple::new(py, layout.strides.iter().map(|stride| stride * size as isize))?)?;
        interface.set_item("typestr", typestr(tensor.dtype()))?;
        interface.set_item("data", (self.start + offset, false))?;
        Ok(interface)
    }
}

/// The type that holds an element's bits: NumPy itself has neither bfloat16 nor fp8.
fn typestr(dtype: DType) -> &'static str {
    match dtype {
        DType::Float64 => "<f8",
        DType::Float32 => "<f4",
        DType::Float16 => "<f2",
        DType::BFloat16 => "<u2",
        DType::Float8E4M3 | DType::Float8E5M2 => "|u1",
        DType::Int8 => "|i1",
        DType::Int16 => "<i2",
        DType::Int32 => "<i4",
        DType::Int64 => "<i8",
        DType::UInt8 => "|u1",
        DType::UInt16 => "<u2",
        DType::UInt32 => "<u4",
        DType::UInt64 => "<u8",
        DType::Bool => "|b1",
    }
}

fn asarray(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ASARRAY.import(py, "numpy", "asarray")
}

/// The type in `ml_dtypes` of a dtype that NumPy itself lacks.
fn extension_type(py: Python<'_>, dtype: DType) -> PyResult<Option<&Bound<'_, PyAny>>> {
    static BFLOAT16: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static E4M3: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static E5M2: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let imported = match dtype {
        DType::BFloat16 => BFLOAT16.import(py, "ml_dtypes", "bfloat16"),
        DType::Float8E4M3 => E4M3.import(py, "ml_dtypes", "float8_e4m3fn"),
        DType::Float8E5M2 => E5M2.import(py, "ml_dtypes", "float8_e5m2"),
        _ => return Ok(None),
    };
    imported.map(Some).map_err(|error| {
        let message = format!("{dtype} in NumPy arrays needs ml_dtypes ({error}): pip install ml_dtypes");
        PyImportError::new_err(message)
    })
}

/// A writable array over the memory. `bits`: bfloat16 and fp8 come as unsigned integers of their size.
pub fn array<'py>(py: Python<'py>, memory: &Py<Memory>, dtype: DType, bits: bool) -> PyResult<Bound<'py, PyAny>> {
    let plain = asarray(py)?.call1((memory,))?;
    match if bits { None } else { extension_type(py, dtype)? } {
        None => Ok(plain),
        Some(extension) => plain.call_method1("view", (extension,)),
    }
}

/// A tensor with the elements of a C-contiguous NumPy array, whose bits are those of `dtype`.
pub fn tensor(array: &Bound<'_, PyAny>, dtype: &str) -> PyResult<Tensor> {
    let known =
        DType::from_name(dtype).ok_or_else(|| PyValueError::new_err(format!("{dtype} is no dtype of gpuemu")))?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let mut tensor = Tensor::zeros(known, Layout::contiguous(&shape));
    let (bytes, contiguous): (usize, bool) =
        (array.getattr("nbytes")?.extract()?, array.getattr("flags")?.getattr("c_contiguous")?.extract()?);
    if bytes != tensor.bytes().len() || !contiguous {
        return Err(PyValueError::new_err(format!(
            "an array of {bytes} bytes, contiguous: {contiguous}, as {dtype} {shape:?}"
        )));
    }
    if bytes > 0 {
        let (start, _): (usize, bool) = array.getattr("__array_interface__")?.get_item("data")?.extract()?;
        // SAFETY: NumPy says that `bytes` bytes lie there, without gaps; the array is alive as long as it is borrowed, and
        // the interpreter lock is held.
        let source = unsafe { std::slice::from_raw_parts(start as *const u8, bytes) };
        tensor.bytes_mut().copy_from_slice(source);
    }
    Ok(tensor)
}

/// Adds what lives here to the extension module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Memory>()
}
