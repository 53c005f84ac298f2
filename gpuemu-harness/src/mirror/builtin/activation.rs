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
    each_block(arguments, |x: &[R], out| {
        if R::PRECISE {
            // (1 + tanh y) / 2 = sigmoid(2 y), which does not cancel.
            out.extend(x.iter().map(|&x| inner(x) + inner(x)));
            sigmoid_each(out);
            multiply_each(out, x);
        } else {
            out.extend(x.iter().map(|&x| inner(x)));
            tanh_each(out);
            for (value, &x) in out.iter_mut().zip(x) {
                *value = half * x * (R::ONE + *value);
            }
        }
    })
}

/// `x * sigmoid(x)`; -inf is NaN, as in PyTorch.
pub fn silu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        silu_each(out);
    })
}

/// `1 / (1 + e^-x)`.
pub fn sigmoid<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        sigmoid_each(out);
    })
}

/// Hyperbolic tangent. In a working precision it is `1 - 2 / (e^2x + 1)`, which kernels without the function compute.
pub fn tanh<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    if R::PRECISE {
        return each(arguments, |x: R| x.tanh());
    }
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        tanh_each(out);
    })
}

/// `e^x`.
pub fn exp<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    each_block(arguments, |x: &[R], out| {
        out.extend_from_slice(x);
        R::exp_each(out);
    })
}

/// `silu(gate) * up`, broadcast against one another (N. Shazeer, "GLU variants improve transformer", 2020).
pub fn swiglu<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let (gate, up) = (arguments.input(0), arguments.input(1));
    let shape = broadcast(&gate.shape, &up.shape)?;
    let (gates, ups) = (reals::<f64>(gate), reals::<f64>(up));
    let (gates, ups) = (stretch(&gates, &gate.shape, &shape), stretch(&ups, &up.shape, &shape));
    let mut answer = Vec::with_capacity(gates.len());
    for (gate, up) in gates.chunks(BLOCK).zip(ups.chunks(BLOCK)) {
        let mut gated = R::from_f64s(gate).into_owned();
        silu_each(&mut gated);
        multiply_each(&mut gated, &R::from_f64s(up));
        R::append_f64s(&gated, &mut answer);
    }
    arguments.answer(&shape, answer)
}

/// `1 - 2 / (e^2x + 1)`.
fn tanh_each<R: Real>(values: &mut [R]) {
    for value in values.iter_mut() {
        *value = *value + *value;
    }
    R::exp_each(values);
    for value in values.iter_mut() {
        *value = R::ONE - (R::ONE + R::ONE) / (*value + R::ONE);
    }
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
    each_block(arguments, |x: &[R], out| out.extend(x.iter().map(|&value| function(value))))
}

/// A function of blocks: it appends as many values as it is given.
fn each_block<R: Real>(arguments: &Arguments<'_>, function: impl Fn(&[R], &mut Vec<R>)) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let (mut answer, mut out) = (Vec::with_capacity(x.len()), Vec::with_capacity(BLOCK));
    for block in reals::<f64>(x).chunks(BLOCK) {
        out.clear();
        function(&R::from_f64s(block), &mut out);
        R::append_f64s(&out, &mut answer);
    }
    arguments.answer(&x.shape, answer)
}
