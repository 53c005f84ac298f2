//! Tensors on their way to and from another process: dense little-endian elements.

use super::real::Real;
use crate::error::{Error, Result};
use crate::tensor::{Array, Layout, Tensor, Values};
use crate::with_real;
use gpuemu_contract::{Compute, DType};
use std::borrow::Cow;
use std::ops::RangeInclusive;

#[cfg(target_endian = "big")]
compile_error!("tensors cross process borders as little-endian bytes, which this build would not write");

/// One tensor, row-major without gaps.
#[derive(Clone, Debug)]
pub struct Dense<'a> {
    /// Its name in the schema.
    pub name: &'a str,
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: &'a [usize],
    /// Little-endian elements.
    pub bytes: Cow<'a, [u8]>,
}

impl<'a> Dense<'a> {
    /// The elements of a tensor of any layout, in its own dtype.
    pub fn of_tensor(name: &'a str, tensor: &'a Tensor) -> Dense<'a> {
        let bytes = if tensor.layout().is_contiguous() {
            let size = tensor.dtype().size();
            let start = if tensor.is_empty() { 0 } else { tensor.layout().offset * size };
            Cow::Borrowed(&tensor.bytes()[start..start + tensor.len() * size])
        } else {
            Cow::Owned(tensor.to_contiguous().bytes().to_vec())
        };
        Dense { name, dtype: tensor.dtype(), shape: tensor.shape(), bytes }
    }

    /// The values of an array as a reference is asked about them. Integers keep their dtype. Floats are rounded to the
    /// precision and sent in the narrowest dtype that NumPy computes in and that holds it: float64 for float64, float16
    /// for float16, float32 for all others.
    pub fn of_array(name: &'a str, array: &'a Array, precision: Compute) -> Dense<'a> {
        let (dtype, bytes) = match &array.values {
            Values::Integer(_) => (array.dtype, Cow::Owned(Tensor::from_array(array, array.dtype).bytes().to_vec())),
            Values::Float(values) if precision == Compute::Float64 => {
                (DType::Float64, Cow::Borrowed(bytemuck::cast_slice(values.as_slice())))
            }
            Values::Float(values) => {
                let rounded: Vec<f64> = with_real!(precision, R => {
                    values.iter().map(|&value| R::from_f64(value).factor().to_f64()).collect()
                });
                let dtype = if precision == Compute::Float16 { DType::Float16 } else { DType::Float32 };
                let rounded = Array { dtype, shape: array.shape.clone(), values: Values::Float(rounded) };
                (dtype, Cow::Owned(Tensor::from_array(&rounded, dtype).bytes().to_vec()))
            }
        };
        Dense { name, dtype, shape: &array.shape, bytes }
    }
}

/// A tensor of these bytes. The error says how many there should be.
pub fn tensor(dtype: DType, shape: &[usize], bytes: &[u8]) -> std::result::Result<Tensor, String> {
    let length = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    match length.and_then(|length| length.checked_mul(dtype.size())) {
        None => Err(format!("shape {shape:?} has more elements than memory can hold")),
        Some(expected) if expected != bytes.len() => {
            Err(format!("{} bytes of data for shape {shape:?} of {dtype}, which takes {expected}", bytes.len()))
        }
        // Sizes of zero leave room for others whose product is too large for strides.
        Some(_)
            if shape
                .iter()
                .try_fold(1isize, |product, &size| product.checked_mul((size as isize).max(1)))
                .is_none() =>
        {
            Err(format!("shape {shape:?} is larger than memory can be addressed"))
        }
        Some(_) => {
            let mut tensor = Tensor::zeros(dtype, Layout::contiguous(shape));
            tensor.bytes_mut().copy_from_slice(bytes);
            Ok(tensor)
        }
    }
}

/// What a reference answered for an output, as exact values. Any float dtype answers for a float output (it is not
/// rounded); any integer dtype or bool for an integer output or bool, provided that every value is one of the declared dtype.
pub fn answer(name: &str, declared: DType, tensor: &Tensor) -> Result<Array> {
    let answered = tensor.dtype();
    let mut array = tensor.to_array();
    match (declared.integer_range(), &array.values) {
        (None, Values::Float(_)) => {}
        (Some((low, high)), Values::Integer(values)) => {
            if let Some(value) = outside(values, answered, low..=high) {
                return Err(Error::ReferenceFailed(format!(
                    "output {name} is declared {declared} and the reference answered {value}, which {declared} does not hold"
                )));
            }
        }
        _ => {
            return Err(Error::ReferenceFailed(format!(
                "output {name} is declared {declared} and the reference answered {answered}; convert the answer, or \
                 declare the output's dtype in [ops.schema]"
            )));
        }
    }
    array.dtype = declared;
    Ok(array)
}

/// The first of these values of dtype `dtype` that is not in the range.
pub fn outside(values: &[i64], dtype: DType, range: RangeInclusive<i128>) -> Option<i128> {
    let exact = |value: i64| if dtype == DType::UInt64 { i128::from(value as u64) } else { i128::from(value) };
    values.iter().map(|&value| exact(value)).find(|value| !range.contains(value))
}
