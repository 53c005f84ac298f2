#![allow(unused)]

use gpuemu_harness::{Float, View, ViewMut, op};

#[op("layer_norm")]
fn misspelt<T: Float>(x: View<T>, wieght: View<T>, out: ViewMut<T>, epsilon: f64) {}

#[op("softmax")]
fn lacking<T: Float>(x: View<T>) {}

#[op("softmax")]
fn pattern<T: Float>(x: View<T>, out: ViewMut<T>, (axis, _): (i64, i64)) {}

fn main() {}
