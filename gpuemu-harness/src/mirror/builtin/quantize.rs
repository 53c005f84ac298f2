//! To few bits and back.

use super::arguments::{Arguments, broadcast, reals, stretch};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::Array;
use std::borrow::Cow;

/// `x / scale + zero_point`, saturated to the range of the output's dtype (an integer or an fp8, whose largest finite
/// magnitude bounds it), and not rounded: the answer holds floats even for an integer dtype. Right is any integer
/// within half a step of it, so that ties may go either way. `scale` broadcasts against `x`. A NaN stays a NaN; for an
/// integer dtype, which has none, any integer is then right.
pub fn quantize<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let dtype = arguments.output_dtype();
    let (low, high) = match (dtype.integer_range(), dtype.max_finite()) {
        (Some((low, high)), _) => (low as f64, high as f64),
        (None, Some(largest)) => (-largest, largest),
        (None, None) => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let (x, scale) = operands::<R>(arguments)?;
    let zero_point = R::from_f64(arguments.int("zero_point")? as f64);
    let saturate = |value: f64| match value {
        value if value < low => low,
        value if value > high => high,
        value => value,
    };
    let quantized = x.iter().zip(scale.iter()).map(|(&x, &scale)| saturate((x / scale + zero_point).to_f64()));
    Ok(vec![Array::float(dtype, &arguments.input(0).shape, quantized.collect())])
}

/// `(x - zero_point) * scale`; `scale` broadcasts against `x`.
pub fn dequantize<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let (x, scale) = operands::<R>(arguments)?;
    let zero_point = R::from_f64(arguments.int("zero_point")? as f64);
    let answer = x.iter().zip(scale.iter()).map(|(&x, &scale)| (x - zero_point) * scale).collect();
    arguments.answer(&arguments.input(0).shape, answer)
}

fn operands<'a, R: Real>(arguments: &Arguments<'a>) -> Result<(Cow<'a, [R]>, Vec<R>)> {
    let (x, scale) = (arguments.input(0), arguments.input(1));
    if broadcast(&x.shape, &scale.shape)? != x.shape {
        return Err(arguments.shape_error(1, &format!("a shape that broadcasts to {:?}", x.shape)));
    }
    Ok((reals(x), stretch(&reals::<R>(scale), &scale.shape, &x.shape).into_owned()))
}
