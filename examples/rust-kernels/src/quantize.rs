//! To eight bits and back, with one scale a row.

use crate::scalar::{Real, RealScalar};
use crate::strided::{Strided, StridedMut};

/// `x / scale + zero_point`, rounded to nearest even and saturated. x [R, C], scale [R, 1].
pub fn quantize<T: RealScalar>(x: Strided<T>, scale: Strided<f32>, mut out: StridedMut<i8>, zero_point: i64) {
    for row in 0..x.shape()[0] {
        let scale = T::Acc::of(scale.at([row, 0]).into());
        for column in 0..x.shape()[1] {
            let quantized = x.at([row, column]).load() / scale + T::Acc::of(zero_point as f64);
            // The conversion saturates.
            out.set([row, column], quantized.to_f64().round_ties_even() as i8);
        }
    }
}

/// `(x - zero_point) * scale`. x [R, C], scale [R, 1].
pub fn dequantize<T: RealScalar>(x: Strided<i8>, scale: Strided<f32>, mut out: StridedMut<T>, zero_point: i64) {
    for row in 0..x.shape()[0] {
        let scale = T::Acc::of(scale.at([row, 0]).into());
        for column in 0..x.shape()[1] {
            // The difference of two small integers is exact.
            let steps = T::Acc::of((i64::from(x.at([row, column])) - zero_point) as f64);
            out.set([row, column], T::store(steps * scale));
        }
    }
}
