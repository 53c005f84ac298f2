#![allow(unused)]

use gpuemu_harness::{Tensor, View, ViewMut, op};

#[op("softmax")]
fn number(x: View<f32>, axis: i64) -> Vec<f32> {
    Vec::new()
}

#[op("softmax")]
fn too_many(x: View<f32>, axis: i64) -> Result<(Tensor, Tensor), String> {
    Err(String::new())
}

#[op("softmax")]
fn both_ways(x: View<f32>, out: ViewMut<f32>, axis: i64) -> Tensor {
    Tensor::from_slice(&[0], &[0.0f32; 0])
}

fn main() {}
