//! Elementwise arithmetic of several operands, broadcast to the shape of the output.

use crate::activation::BLOCK;
use crate::scalar::{Real, RealScalar, Scalar};
use crate::strided::{Strided, StridedMut, grid};

/// `a + b`.
pub fn add<T: Scalar>(a: Strided<T>, b: Strided<T>, mut out: StridedMut<T>) {
    let shape = out.shape().to_vec();
    for block in grid(out.len(), BLOCK) {
        for i in block {
            *out.element(i) = T::store(a.broadcast(&shape, i).load() + b.broadcast(&shape, i).load());
        }
    }
}

/// `a * b + c`, rounded once.
pub fn fma<T: RealScalar>(a: Strided<T>, b: Strided<T>, c: Strided<T>, mut out: StridedMut<T>) {
    let shape = out.shape().to_vec();
    for block in grid(out.len(), BLOCK) {
        for i in block {
            let [a, b, c] = [a, b, c].map(|operand| operand.broadcast(&shape, i).load());
            *out.element(i) = T::store(a.mul_add(b, c));
        }
    }
}

/// `x += residual`, in place.
pub fn add_residual<T: Scalar>(mut x: StridedMut<T>, residual: Strided<T>) {
    for block in grid(x.len(), BLOCK) {
        for i in block {
            let x = x.element(i);
            *x = T::store(x.load() + residual.element(i).load());
        }
    }
}
