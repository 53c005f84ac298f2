#![allow(unused)]

use gpuemu_harness::{Float, View, ViewMut, op};

type Number = f32;

#[op("embedding")]
fn fixed_dtype<T: Float>(table: View<T>, ids: View<i64>, out: ViewMut<T>) {}

#[op("softmax")]
fn not_tested(x: View<f64>, out: ViewMut<f64>, axis: i64) {}

#[op("softmax")]
fn two_dtypes(x: View<f32>, out: ViewMut<half>, axis: i64) {}

#[op("softmax")]
fn alias(x: View<Number>, out: ViewMut<Number>, axis: i64) {}

#[op("embedding")]
fn mixed(table: View<f32>, ids: View<i32>, out: ViewMut<gpuemu_harness::f16>) {}

fn main() {}
