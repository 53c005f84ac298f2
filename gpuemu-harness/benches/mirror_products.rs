//! How fast the built-in mirror multiplies: items are floating-point operations, two for each product of a sum.

use divan::Bencher;
use divan::counter::ItemsCount;
use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};
use gpuemu_harness::mirror::{Mirror, Question, builtin};
use gpuemu_harness::tensor::Array;

fn main() {
    divan::main();
}

const PRECISIONS: [Compute; 4] = [Compute::Float64, Compute::Float32, Compute::Tf32, Compute::BFloat16];

/// Values in (-1, 1) that look random.
fn wave(shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let value = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    Array::float(DType::Float32, shape, (1..=count as u64).map(value).collect())
}

fn bench(
    bencher: Bencher<'_, '_>,
    name: &str,
    shapes: &[&[usize]],
    params: &[(&str, ParamValue)],
    precision: Compute,
    operations: usize,
) {
    let inputs: Vec<_> = shapes.iter().enumerate().map(|(role, shape)| (format!("in{role}"), wave(shape))).collect();
    let params: Vec<_> = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let outputs = [("out".to_owned(), DType::Float32)];
    let question =
        Question { inputs: &inputs, params: &params, outputs: &outputs, precision, edges: EdgePolicy::default() };
    let mirror = builtin::find(name).expect("a built-in");
    bencher.counter(ItemsCount::new(operations)).bench(|| mirror.answer(&question).expect("an answer"));
}

#[divan::bench(args = PRECISIONS)]
fn matmul_256(bencher: Bencher<'_, '_>, precision: Compute) {
    bench(bencher, "matmul", &[&[256, 256], &[256, 256]], &[], precision, 2 * 256 * 256 * 256);
}

#[divan::bench(args = [[1, 64, 64], [7, 1025, 129], [1, 4096, 1000], [512, 512, 512]])]
fn matmul_float64(bencher: Bencher<'_, '_>, [m, k, n]: [usize; 3]) {
    bench(bencher, "matmul", &[&[m, k], &[k, n]], &[], Compute::Float64, 2 * m * k * n);
}

/// Eight heads of 128 queries, depth 64.
#[divan::bench(args = PRECISIONS)]
fn attention_full(bencher: Bencher<'_, '_>, precision: Compute) {
    attention(bencher, precision, false);
}

/// The same, causal; the same number of operations is counted, though half of them are not needed.
#[divan::bench(args = PRECISIONS)]
fn attention_causal(bencher: Bencher<'_, '_>, precision: Compute) {
    attention(bencher, precision, true);
}

fn attention(bencher: Bencher<'_, '_>, precision: Compute, causal: bool) {
    let shape: &[usize] = &[1, 8, 128, 64];
    let params = [("causal", ParamValue::Bool(causal))];
    bench(bencher, "attention", &[shape, shape, shape], &params, precision, 8 * 128 * 128 * 64 * 4);
}

/// Two images of 16 channels, 32 by 32, 16 filters of 3 by 3, padded by 1.
#[divan::bench(args = PRECISIONS)]
fn conv2d(bencher: Bencher<'_, '_>, precision: Compute) {
    let operations = 2 * 2 * 16 * 32 * 32 * 16 * 9;
    let shapes: [&[usize]; 2] = [&[2, 16, 32, 32], &[16, 16, 3, 3]];
    bench(bencher, "conv2d", &shapes, &[("padding", ParamValue::Int(1))], precision, operations);
}
