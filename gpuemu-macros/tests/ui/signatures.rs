#![allow(unused)]

use gpuemu_harness::{Float, View, ViewMut, op};

#[op("softmax")]
async fn later(x: View<'_, f32>, out: ViewMut<'_, f32>, axis: i64) {}

#[op("softmax")]
unsafe fn raw(x: View<f32>, out: ViewMut<f32>, axis: i64) {}

#[op("softmax")]
fn tile<const TILE: usize>(x: View<f32>, out: ViewMut<f32>, axis: i64) {}

#[op("softmax")]
fn two_types<T: Float, A: Float>(x: View<T>, out: ViewMut<A>, axis: i64) {}

struct Kernels;
impl Kernels {
    #[op("softmax")]
    fn method(&self, x: View<f32>, out: ViewMut<f32>, axis: i64) {}
}

fn main() {}
