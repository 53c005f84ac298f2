//! Elementwise operators of one operand, and SwiGLU.

use crate::scalar::{Number, Real, RealScalar, Scalar};
use crate::strided::{Strided, StridedMut, grid};

/// Elements of a block.
pub const BLOCK: usize = 256;

/// One thread an element, blocks of [`BLOCK`].
fn each<T: Scalar>(x: Strided<T>, mut out: StridedMut<T>, function: impl Fn(T::Acc) -> T::Acc) {
    for block in grid(x.len(), BLOCK) {
        for i in block {
            *out.element(i) = T::store(function(x.element(i).load()));
        }
    }
}

/// `x/2 (1 + erf(x / sqrt 2))`.
pub fn gelu<T: RealScalar>(x: Strided<T>, out: StridedMut<T>) {
    let root = T::Acc::of(std::f64::consts::FRAC_1_SQRT_2);
    each(x, out, |x| T::Acc::HALF * x * (T::Acc::ONE + (x * root).erf()));
}

/// `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.
pub fn gelu_tanh<T: RealScalar>(x: Strided<T>, out: StridedMut<T>) {
    let (factor, cubic) = (T::Acc::of((2.0 / std::f64::consts::PI).sqrt()), T::Acc::of(0.044715));
    each(x, out, |x| T::Acc::HALF * x * (T::Acc::ONE + (factor * (x + cubic * x * x * x)).tanh()));
}

/// `x / (1 + exp(-x))`.
pub fn silu<T: RealScalar>(x: Strided<T>, out: StridedMut<T>) {
    each(x, out, |x| x / (T::Acc::ONE + (-x).exp()));
}

/// `x` above zero, `slope x` elsewhere.
pub fn leaky_relu<T: RealScalar>(x: Strided<T>, out: StridedMut<T>, slope: f64) {
    let slope = T::Acc::of(slope);
    each(x, out, |x| if x > T::Acc::ZERO { x } else { slope * x });
}

/// `x` above zero, `alpha (exp(x) - 1)` elsewhere.
pub fn elu<T: RealScalar>(x: Strided<T>, out: StridedMut<T>, alpha: f64) {
    let alpha = T::Acc::of(alpha);
    each(x, out, |x| if x > T::Acc::ZERO { x } else { alpha * x.exp_m1() });
}

/// `silu(gate) up`.
pub fn swiglu<T: RealScalar>(gate: Strided<T>, up: Strided<T>, mut out: StridedMut<T>) {
    for block in grid(gate.len(), BLOCK) {
        for i in block {
            let gate = gate.element(i).load();
            let silu = gate / (T::Acc::ONE + (-gate).exp());
            *out.element(i) = T::store(silu * up.element(i).load());
        }
    }
}
