//! Norms: layer, RMS, group, L2.

use crate::block;
use crate::reduce::Moments;
use crate::scalar::{Number, Real, RealScalar};
use crate::strided::{Strided, StridedMut};

/// `(x - mean) / sqrt(var + eps) * weight + bias` over the last axis; mean and variance in two passes.
pub fn layer_norm<T: RealScalar>(
    x: Strided<T>,
    weight: Option<Strided<T>>,
    bias: Option<Strided<T>>,
    mut out: StridedMut<T>,
    eps: f64,
) {
    let axis = x.shape().len() - 1;
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let count = T::Acc::count(x.len());
        let mean = block::sum(x.len(), |i| x.at(i).load()) / count;
        let squares = block::sum(x.len(), |i| {
            let deviation = x.at(i).load() - mean;
            deviation * deviation
        });
        let reciprocal = T::Acc::ONE / (squares / count + T::Acc::of(eps)).sqrt();
        let mut out = out.line(axis, row);
        for i in 0..x.len() {
            let mut value = (x.at(i).load() - mean) * reciprocal;
            if let Some(weight) = weight {
                value = value * weight.at([i]).load();
            }
            if let Some(bias) = bias {
                value += bias.at([i]).load();
            }
            out.set(i, T::store(value));
        }
    }
}

/// `x / sqrt(mean(x^2) + eps) * weight` over the last axis.
pub fn rms_norm<T: RealScalar>(x: Strided<T>, weight: Option<Strided<T>>, mut out: StridedMut<T>, eps: f64) {
    let axis = x.shape().len() - 1;
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let squares = block::sum(x.len(), |i| x.at(i).load() * x.at(i).load());
        let root = (squares / T::Acc::count(x.len()) + T::Acc::of(eps)).sqrt();
        let mut out = out.line(axis, row);
        for i in 0..x.len() {
            let value = x.at(i).load() / root;
            out.set(i, T::store(weight.map_or(value, |weight| value * weight.at([i]).load())));
        }
    }
}

/// [`layer_norm`] over groups of channels: x is [N, C, L], weight and bias are [C]. Tiles are merged as they are read.
pub fn group_norm<T: RealScalar>(
    x: Strided<T>,
    weight: Strided<T>,
    bias: Strided<T>,
    mut out: StridedMut<T>,
    groups: usize,
    eps: f64,
) {
    let &[samples, channels, length] = x.shape() else { panic!("group_norm of a tensor that is not [N, C, L]") };
    let own = channels / groups;
    for sample in 0..samples {
        for group in 0..groups {
            let place = |i: usize| [sample, group * own + i / length, i % length];
            let moments = Moments::over(own * length, |i| x.at(place(i)).load());
            let deviation = (moments.squares / moments.count + T::Acc::of(eps)).sqrt();
            for i in 0..own * length {
                let [_, channel, _] = place(i);
                let value = (x.at(place(i)).load() - moments.mean) / deviation;
                let value = value * weight.at([channel]).load() + bias.at([channel]).load();
                out.set(place(i), T::store(value));
            }
        }
    }
}

/// `x / max(sqrt(sum(x^2)), eps)` along `axis`.
pub fn l2_norm<T: RealScalar>(x: Strided<T>, mut out: StridedMut<T>, axis: usize, eps: f64) {
    let eps = T::Acc::of(eps);
    for row in 0..x.lines(axis) {
        let x = x.line(axis, row);
        let norm = block::sum(x.len(), |i| x.at(i).load() * x.at(i).load()).sqrt();
        let norm = norm.larger(eps);
        let mut out = out.line(axis, row);
        for i in 0..x.len() {
            out.set(i, T::store(x.at(i).load() / norm));
        }
    }
}
