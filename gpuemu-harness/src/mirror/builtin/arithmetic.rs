//! Elementwise arithmetic of several operands, broadcast against one another as in NumPy.
//!
//! Where every operand is an integer and so is the output, the answer is exact modulo the output's range. Anything else
//! is floating point.

use super::arguments::{Arguments, broadcast, reals, stretch};
use super::operands::{all_integers, integer_answer};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::Array;
use gpuemu_contract::DType;
use std::num::Wrapping;

/// `a + b`.
pub fn add<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    elementwise::<R, 2>(arguments, |[a, b]| Ok(a + b), |[a, b]| a + b)
}

/// `a - b`.
pub fn sub<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    elementwise::<R, 2>(arguments, |[a, b]| Ok(a - b), |[a, b]| a - b)
}

/// `a * b`.
pub fn mul<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    elementwise::<R, 2>(arguments, |[a, b]| Ok(a * b), |[a, b]| a * b)
}

/// `a / b`. Between integers, for an integer output, it truncates toward zero as C does; an integer division by zero
/// has no answer and is an error. With a float output integers are divided as numbers.
pub fn div<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let unsigned = arguments.input(0).dtype == DType::UInt64 && arguments.input(1).dtype == DType::UInt64;
    let divide = |[a, b]: [Wrapping<i64>; 2]| match b.0 {
        0 => Err(Error::ReferenceFailed(format!(
            "div: an integer division by zero has no answer; give {} a domain without 0",
            arguments.input_name(1)
        ))),
        _ if unsigned => Ok(Wrapping((a.0 as u64 / b.0 as u64) as i64)),
        _ => Ok(a / b),
    };
    elementwise::<R, 2>(arguments, divide, |[a, b]| a / b)
}

/// `a * b + c`: rounded once in float64, twice in a working precision (a kernel may do either).
pub fn fma<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    elementwise::<R, 3>(arguments, |[a, b, c]| Ok(a * b + c), |[a, b, c]| a.mul_add(b, c))
}

fn elementwise<R: Real, const N: usize>(
    arguments: &Arguments<'_>,
    exact: impl Fn([Wrapping<i64>; N]) -> Result<Wrapping<i64>>,
    real: impl Fn([R; N]) -> R,
) -> Result<Vec<Array>> {
    let mut shape = Vec::new();
    for role in 0..N {
        shape = broadcast(&shape, &arguments.input(role).shape)?;
    }
    let count: usize = shape.iter().product();
    if !arguments.output_dtype().is_float()
        && let Some(integers) = all_integers(arguments, N)
    {
        let operands: Vec<_> =
            (0..N).map(|role| stretch(&integers[role], &arguments.input(role).shape, &shape)).collect();
        let answer: Result<_> = (0..count).map(|at| exact(std::array::from_fn(|role| operands[role][at]))).collect();
        return integer_answer(arguments, &shape, answer?);
    }
    let values: [_; N] = std::array::from_fn(|role| reals::<R>(arguments.input(role)));
    let operands: [_; N] = std::array::from_fn(|role| stretch(&values[role], &arguments.input(role).shape, &shape));
    let slices: [&[R]; N] = std::array::from_fn(|role| &operands[role][..count]);
    arguments.answer(&shape, (0..count).map(|at| real(std::array::from_fn(|role| slices[role][at]))).collect())
}
