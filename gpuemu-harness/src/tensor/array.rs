//! Dense values at full precision: what the mirror reads and answers.

use super::{Element, Layout, Tensor};
use crate::with_element;
use gpuemu_contract::DType;

/// A dense, row-major array of exact values.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The dtype of the tensor it was read from, or of the output it stands for. Its values need not be rounded to it.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// The values.
    pub values: Values,
}

/// Values of an [`Array`].
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of a floating-point dtype.
    Float(Vec<f64>),
    /// Of an integer dtype or bool. uint64 values beyond `i64::MAX` wrap: read them with the array's dtype.
    Integer(Vec<i64>),
}

impl Array {
    /// An array of float values. Panics when their number is not the shape's.
    pub fn float(dtype: DType, shape: &[usize], values: Vec<f64>) -> Array {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "{} values for shape {shape:?}", values.len());
        Array { dtype, shape: shape.to_vec(), values: Values::Float(values) }
    }

    /// An array of integer values. Panics when their number is not the shape's.
    pub fn integer(dtype: DType, shape: &[usize], values: Vec<i64>) -> Array {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "{} values for shape {shape:?}", values.len());
        Array { dtype, shape: shape.to_vec(), values: Values::Integer(values) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Float(values) => values.len(),
            Values::Integer(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The float values; `None` for integers.
    pub fn floats(&self) -> Option<&[f64]> {
        match &self.values {
            Values::Float(values) => Some(values),
            Values::Integer(_) => None,
        }
    }

    /// The integer values; `None` for floats.
    pub fn integers(&self) -> Option<&[i64]> {
        match &self.values {
            Values::Integer(values) => Some(values),
            Values::Float(_) => None,
        }
    }

    /// One value as a float64, by row-major number.
    pub fn at(&self, number: usize) -> f64 {
        match &self.values {
            Values::Float(values) => values[number],
            Values::Integer(values) if self.dtype == DType::UInt64 => values[number] as u64 as f64,
            Values::Integer(values) => values[number] as f64,
        }
    }
}

pub(super) fn read(tensor: &Tensor) -> Array {
    fn each<T: Element, U>(tensor: &Tensor, value: impl Fn(T) -> U) -> Vec<U> {
        let (data, layout) = (tensor.data::<T>(), tensor.layout());
        if layout.is_empty() {
            Vec::new()
        } else if layout.is_contiguous() {
            data[layout.offset..layout.offset + layout.len()].iter().map(|&element| value(element)).collect()
        } else {
            layout.positions().map(|at| value(data[at])).collect()
        }
    }
    let layout = tensor.layout();
    let values = match tensor.dtype() {
        DType::Int64 => Values::Integer(each::<i64, _>(tensor, |value| value)),
        DType::UInt64 => Values::Integer(each::<u64, _>(tensor, |value| value as i64)),
        dtype if dtype.is_float() && layout.is_contiguous() && !layout.is_empty() => {
            let elements = layout.offset..layout.offset + layout.len();
            with_element!(dtype, T => Values::Float(T::to_f64s(&tensor.data::<T>()[elements])))
        }
        dtype if dtype.is_float() => {
            with_element!(dtype, T => Values::Float(each::<T, _>(tensor, |value| value.to_f64())))
        }
        dtype => with_element!(dtype, T => Values::Integer(each::<T, _>(tensor, |value| value.to_f64() as i64))),
    };
    Array { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), values }
}

pub(super) fn write(array: &Array, dtype: DType) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, Layout::contiguous(&array.shape));
    match (&array.values, dtype) {
        (Values::Integer(values), DType::Int64) => tensor.data_mut::<i64>().copy_from_slice(values),
        (Values::Integer(values), DType::UInt64) => {
            tensor.data_mut::<u64>().copy_from_slice(bytemuck::cast_slice(values));
        }
        (Values::Float(values), _) => with_element!(dtype, T => {
            for (to, &value) in tensor.data_mut::<T>().iter_mut().zip(values) {
                *to = T::from_f64(value);
            }
        }),
        (Values::Integer(values), _) => with_element!(dtype, T => {
            for (to, &value) in tensor.data_mut::<T>().iter_mut().zip(values) {
                *to = T::from_f64(wrap(value, dtype) as f64);
            }
        }),
    }
    tensor
}

/// The value an integer dtype keeps of a 64-bit integer: its low bits (bool: whether it is not zero).
fn wrap(value: i64, dtype: DType) -> i64 {
    match dtype {
        DType::Int8 => i64::from(value as i8),
        DType::Int16 => i64::from(value as i16),
        DType::Int32 => i64::from(value as i32),
        DType::UInt8 => i64::from(value as u8),
        DType::UInt16 => i64::from(value as u16),
        DType::UInt32 => i64::from(value as u32),
        DType::Bool => i64::from(value != 0),
        _ => value,
    }
}
