#![allow(unused)]

use gpuemu_harness::{View, ViewMut, op};

#[op("sofmax")]
fn misspelt(x: View<f32>, out: ViewMut<f32>, axis: i64) {}

#[op("convolution")]
fn unlike_any(x: View<f32>, out: ViewMut<f32>) {}

#[op(softmax)]
fn not_text(x: View<f32>, out: ViewMut<f32>, axis: i64) {}

#[op("softmax")]
struct NoFunction;

fn main() {}
