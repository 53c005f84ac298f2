#![allow(unused)]

use gpuemu_harness::{Float, Tensor, View, ViewMut, op};

#[op("softmax")]
fn output_read<T: Float>(x: View<T>, out: View<T>, axis: i64) {}

#[op("softmax")]
fn input_written<T: Float>(x: ViewMut<T>, out: ViewMut<T>, axis: i64) {}

#[op("accumulate")]
fn inout_read<T: Float>(total: View<T>, x: View<T>) {}

#[op("softmax")]
fn slice(x: &[f32], out: ViewMut<f32>, axis: i64) {}

#[op("softmax")]
fn param_type(x: &Tensor, out: &mut Tensor, axis: bool) {}

#[op("layer_norm")]
fn float_as_integer<T: Float>(x: View<T>, weight: View<T>, out: ViewMut<T>, eps: i64) {}

fn main() {}
