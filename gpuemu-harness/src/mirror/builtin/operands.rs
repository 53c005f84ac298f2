//! What products and indexing share: integer operands, factors, indices that name places, NaN and empty sums.

use super::arguments::{Arguments, reals};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::{Array, Tensor, Values};
use gpuemu_contract::{EmptyPolicy, NanPolicy};
use std::borrow::Cow;
use std::num::Wrapping;

/// The values of an array as a multiplication unit takes them: rounded to the working precision, then to its factors.
pub(super) fn factors<R: Real>(array: &Array) -> Vec<R> {
    reals::<R>(array).iter().map(|value| value.factor()).collect()
}

/// The integer values of every input, when all are integers: their products and sums are exact, modulo 2^64.
pub(super) fn all_integers<'a>(arguments: &Arguments<'a>, inputs: usize) -> Option<Vec<Vec<Wrapping<i64>>>> {
    let integers = |array: &'a Array| Some(array.integers()?.iter().copied().map(Wrapping).collect());
    (0..inputs).filter_map(|role| arguments.optional(role)).map(integers).collect()
}

/// An answer of integers: in an integer dtype they wrap to it, as NumPy's and PyTorch's do.
pub(super) fn integer_answer(
    arguments: &Arguments<'_>,
    shape: &[usize],
    values: Vec<Wrapping<i64>>,
) -> Result<Vec<Array>> {
    let dtype = arguments.output_dtype();
    Ok(vec![if dtype.is_float() {
        Array::float(dtype, shape, values.into_iter().map(|value| value.0 as f64).collect())
    } else {
        let exact = Array::integer(dtype, shape, values.into_iter().map(|value| value.0).collect());
        Tensor::from_array(&exact, dtype).to_array()
    }])
}

/// An error where `nan = "ignore"` is asked of an op whose sums have no way to leave a NaN out.
pub(super) fn propagates_nan(arguments: &Arguments<'_>) -> Result<()> {
    match arguments.edges().nan {
        NanPolicy::Propagate => Ok(()),
        NanPolicy::Ignore => Err(Error::Config(format!(
            "{} has no nan = \"ignore\": a NaN that it reads makes its answer NaN; drop the policy or name a reference \
             of your own",
            arguments.name()
        ))),
    }
}

/// What a sum over nothing is: zero, or NaN under `empty = "nan"`.
pub(super) fn empty_sum<R: Real>(arguments: &Arguments<'_>) -> R {
    match arguments.edges().empty {
        EmptyPolicy::Nan => R::NAN,
        EmptyPolicy::Natural | EmptyPolicy::Zero | EmptyPolicy::Error => R::ZERO,
    }
}

/// The integers of an input that holds indices.
pub(super) fn indices<'a>(arguments: &Arguments<'a>, role: usize) -> Result<&'a [i64]> {
    arguments.input(role).integers().ok_or_else(|| {
        Error::Config(format!("{} of {} must hold integers", arguments.input_name(role), arguments.name()))
    })
}

/// One index as a place among `size`; an error that says where it stands when there is no such place.
pub(super) fn place(arguments: &Arguments<'_>, role: usize, number: usize, size: usize) -> Result<usize> {
    let indices = arguments.input(role);
    let index = indices.integers().map_or(-1, |values| values[number]);
    // Unsigned values beyond i64::MAX read as negative: outside either way.
    if let Ok(place) = usize::try_from(index)
        && place < size
    {
        return Ok(place);
    }
    let name = arguments.input_name(role);
    let shown = indices.at(number);
    Err(Error::ReferenceFailed(format!(
        "{name}{:?} is {shown}, outside of 0..{size}; give {name} a domain that keeps it inside",
        coordinates(number, &indices.shape)
    )))
}

/// The index along each axis of element `number` in row-major order.
pub(super) fn coordinates(mut number: usize, shape: &[usize]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, &size) in coordinates.iter_mut().zip(shape).rev() {
        *coordinate = number % size;
        number /= size;
    }
    coordinates
}

/// The elements of an array at the given places, floats rounded to the working precision.
pub(super) fn picked<R: Real>(array: &Array, places: &[usize]) -> Values {
    match &array.values {
        Values::Float(values) => {
            let values: Cow<'_, [R]> = R::from_f64s(values);
            Values::Float(places.iter().map(|&at| values[at].to_f64()).collect())
        }
        Values::Integer(values) => Values::Integer(places.iter().map(|&at| values[at]).collect()),
    }
}
