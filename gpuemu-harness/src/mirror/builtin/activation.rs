//! Elementwise operators of one operand, and SwiGLU. A NaN stays a NaN everywhere.

use super::arguments::{Arguments, broadcast, reals, stretch};
use super::operands::{all_integers, integer_answer};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::Array;
use gpuemu_contract::DType;
use std::num::Wrapping;

/// Elements worked on at once: what a block needs stays in the nearest cache.
const BLOCK: usize = 1024;

/// `max(x, 0)`. Integers stay exact.
pub fn relu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    if let Some(integers) = all_integers(arguments, 1) {
        let signed = arguments.input(0).dtype != DType::UInt64;
        let positive = integers[0].iter().map(|&value| if signed { value.max(Wrapping(0)) } else { value }).collect();
        return integer_answer(arguments, &arguments.input(0).shape, positive);
    }
    each(arguments, |x: R| if x <= R::ZERO { R::ZERO } else { x })
}

/// `x` above zero, `slope * x` elsewhere.
pub fn leaky_relu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let slope = R::from_f64(arguments.float("slope")?);
    each(arguments, |x: R| if x > R::ZERO { x } else { slope * x })
}

/// `x` above zero, `alpha * (e^x - 1)` elsewhere. In a working precision the difference is taken as it stands: few
/// kernels have a function for it.
pub fn elu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let alpha = R::from_f64(arguments.float("alpha")?);
    each(arguments, |x: R| match x > R::ZERO {
        true => x,
        false if R::PRECISE => alpha * x.exp_m1(),
        false => alpha * (x.exp() - R::ONE),
    })
}

/// With parameter `approximate = "none"`: `x/2 * (1 + erf(x / sqrt 2))`; with `"tanh"`:
/// `x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` (D. Hendrycks and K. Gimpel, "Gaussian error linear units", 2016).
/// -inf is NaN, as in PyTorch.
pub fn gelu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let half = R::from_f64(0.5);
    if arguments.text("approximate")?.as_deref() != Some("tanh") {
        let root = R::from_f64(std::f64::consts::FRAC_1_SQRT_2);
        return each(arguments, |x: R| match R::PRECISE {
            true => half * x * (-x * root).erfc(),
            false => half * x * (R::ONE + (x * root).erf()),
        });
    }
    let (slope, cubic) = (R::from_f64((2.0 / std::f64::consts::PI).sqrt()), R::from_f64(0.044715));
    let inner = |x: R| slope * (x + cubic * (x * x * x));
    if !R::PRECISE {
        return each(arguments, |x: R| half * x * (R::ONE + inner(x).tanh()));
    }
    // (1 + tanh y) / 2 = sigmoid(2 y), which does not cancel.
    each_block(arguments, |x: &[R], out| {
        out.extend(x.iter().map(|&x| inner(x) + inner(x)));
        let start = out.len() - x.len();
        sigmoid_each(&mut out[start..]);
        multiply_each(&mut out[start..], x);
    })
}

/// `x * sigmoid(x)`; -inf is NaN, as in PyTorch.
pub fn silu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        let start = out.len() - x.len();
        silu_each(&mut out[start..]);
    })
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        let start = out.len() - x.len();
        sigmoid_each(&mut out[start..]);
    })
}

/// Hyperbolic tangent. In a working precision it is `1 - 2 / (e^2x + 1)`, which kernels without the function compute.
pub fn tanh<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    if R::PRECISE {
        return each(arguments, |x: R| x.tanh());
    }
    each_block(arguments, |x: &[R], out| {
        out.extend(x.iter().map(|&x| x + x));
        let start = out.len() - x.len();
        R::exp_each(&mut out[start..]);
        for value in &mut out[start..] {
            *value = R::ONE - (R::ONE + R::ONE) / (*value + R::ONE);
        }
    })
}

/// `e^x`.
pub fn exp<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        let start = out.len() - x.len();
        R::exp_each(&mut out[start..]);
    })
}

/// `silu(gate) * up`, broadcast against one another (N. Shazeer, "GLU variants improve transformer", 2020).
pub fn swiglu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let (gate, up) = (arguments.input(0), arguments.input(1));
    let shape = broadcast(&gate.shape, &up.shape)?;
    let mut gated = reals::<R>(gate).into_owned();
    gated.chunks_mut(BLOCK).for_each(silu_each);
    let up = reals::<R>(up);
    let mut answer = stretch(&gated, &gate.shape, &shape).into_owned();
    multiply_each(&mut answer, &stretch(&up, &arguments.input(1).shape, &shape));
    arguments.answer(&shape, answer)
}

fn silu_each<R: Real>(values: &mut [R]) {
    if R::PRECISE {
        let x = values.to_vec();
        sigmoid_each(values);
        multiply_each(values, &x);
    } else {
        let mut powers: Vec<R> = values.iter().map(|&x| -x).collect();
        R::exp_each(&mut powers);
        for (value, &power) in values.iter_mut().zip(&powers) {
            *value = *value / (R::ONE + power);
        }
    }
}

fn sigmoid_each<R: Real>(values: &mut [R]) {
    // e^-|x| neither overflows nor cancels; below zero, 1 / (1 + e^-x) = e^x / (1 + e^x).
    let mut powers: Vec<R> = values.iter().map(|&x| if R::PRECISE { -x.abs() } else { -x }).collect();
    R::exp_each(&mut powers);
    for (value, &power) in values.iter_mut().zip(&powers) {
        let numerator = if R::PRECISE && *value < R::ZERO { power } else { R::ONE };
        *value = numerator / (R::ONE + power);
    }
}

fn multiply_each<R: Real>(values: &mut [R], factors: &[R]) {
    for (value, &factor) in values.iter_mut().zip(factors) {
        *value = *value * factor;
    }
}

/// A function of each element.
fn each<R: Real>(arguments: &Arguments<'_>, function: impl Fn(R) -> R) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    arguments.answer(&x.shape, reals::<R>(x).iter().map(|&value| function(value)).collect())
}

/// A function of blocks: it appends as many values as it is given.
fn each_block<R: Real>(arguments: &Arguments<'_>, function: impl Fn(&[R], &mut Vec<R>)) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let mut answer = Vec::with_capacity(x.len());
    for block in reals::<R>(x).chunks(BLOCK) {
        function(block, &mut answer);
    }
    arguments.answer(&x.shape, answer)
}
