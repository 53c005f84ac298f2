//! What products and indexing share: integer operands, factors, indices that name places, NaN and empty sums.

use super::arguments::{Arguments, reals};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::{Array, Layout, Tensor, Values};
use gpuemu_contract::{EmptyPolicy, NanPolicy};
use std::borrow::Cow;
use std::num::Wrapping;

/// The values of an array as a multiplication unit takes them: rounded to the working precision, then to its factors.
pub(super) fn factors<R: Real>(array: &Array) -> Cow<'_, [R]> {
    let values = reals::<R>(array);
    // Most precisions keep every factor as it is, and float64 then borrows the array.
    if values.iter().all(|value| value.factor() == *value) {
        return values;
    }
    values.iter().map(|value| value.factor()).collect()
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
        Layout::index_of(&indices.shape, number)
    )))
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

/// What tests of several operators ask with.
#[cfg(test)]
pub(super) mod asking {
    use super::super::arguments;
    use super::*;
    use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};

    /// A float64 array.
    pub fn floats(shape: &[usize], values: &[f64]) -> Array {
        Array::float(DType::Float64, shape, values.to_vec())
    }

    /// An int64 array.
    pub fn integers(shape: &[usize], values: &[i64]) -> Array {
        Array::integer(DType::Int64, shape, values.to_vec())
    }

    /// The only answer, in float64, natural edges.
    pub fn ask(name: &str, inputs: &[Array], params: &[(&str, ParamValue)]) -> Array {
        ask_in(name, inputs, params, Compute::Float64, EdgePolicy::default()).expect("an answer")
    }

    /// The only answer in that precision, under those edge semantics.
    pub fn ask_in(
        name: &str,
        inputs: &[Array],
        params: &[(&str, ParamValue)],
        precision: Compute,
        edges: EdgePolicy,
    ) -> Result<Array> {
        let integer = inputs.iter().all(|array| array.integers().is_some());
        let dtype = if integer { inputs[0].dtype } else { DType::Float64 };
        arguments::ask(name, inputs, params, (dtype, precision, edges)).map(|mut answers| answers.remove(0))
    }

    /// The message of an error.
    pub fn message(name: &str, inputs: &[Array], params: &[(&str, ParamValue)]) -> String {
        let answer = ask_in(name, inputs, params, Compute::Float64, EdgePolicy::default());
        answer.expect_err("an error").to_string()
    }

    /// Edge semantics of a reduction over nothing.
    pub fn empty(empty: EmptyPolicy) -> EdgePolicy {
        EdgePolicy { empty, ..EdgePolicy::default() }
    }

    /// Panics unless the array is these values, NaN where NaN stands, to a few units in the last place.
    #[track_caller]
    pub fn assert_values(array: &Array, shape: &[usize], expected: &[f64]) {
        assert_eq!(array.shape, shape);
        let values: Vec<f64> = (0..array.len()).map(|number| array.at(number)).collect();
        let same = |(&got, &right): (&f64, &f64)| {
            got == right || (got - right).abs() <= 1e-15 * right.abs() || got.is_nan() && right.is_nan()
        };
        assert!(
            values.len() == expected.len() && values.iter().zip(expected).all(same),
            "got {values:?}, expected {expected:?}"
        );
    }
}
