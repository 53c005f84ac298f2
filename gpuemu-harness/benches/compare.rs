//! Pace of the comparison: all statistics in one pass. Both operands count as arrays of the dtype under test, as is
//! usual for `allclose`; `honest` counts the bytes that are really read, the expected values being float64.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use gpuemu_contract::DType;
use gpuemu_harness::tensor::round_to_dtype;
use gpuemu_harness::validate::compare::{Bound, Rules, compare};
use gpuemu_harness::{Array, Layout, Tensor};

fn main() {
    divan::main();
}

const ROWS: usize = 1024;
const COLUMNS: usize = 4096;

/// Expected values between -4 and 4 from a multiplicative sequence, and answers that are off by half a step at most.
fn operands(dtype: DType) -> (Tensor, Array) {
    sized(dtype, ROWS)
}

fn sized(dtype: DType, rows: usize) -> (Tensor, Array) {
    let mut state = 1u64;
    let values: Vec<f64> = (0..rows * COLUMNS)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 50) as f64 - 4.0
        })
        .collect();
    let rounded: Vec<f64> = values.iter().map(|&value| round_to_dtype(value, dtype)).collect();
    let shape = [rows, COLUMNS];
    (Tensor::from_array(&Array::float(dtype, &shape, rounded), dtype), Array::float(dtype, &shape, values))
}

fn run(bencher: Bencher, got: &Tensor, expected: &Array, bound: Bound, bytes: usize) {
    bencher.counter(BytesCount::new(bytes * expected.len())).bench_local(|| {
        let comparison = compare(black_box(got), black_box(expected), bound, &Rules::default());
        assert!(comparison.agrees());
        comparison
    });
}

const DTYPES: [DType; 5] = [DType::Float64, DType::Float32, DType::Float16, DType::BFloat16, DType::Float8E4M3];

#[divan::bench(args = DTYPES)]
fn contiguous(bencher: Bencher, dtype: DType) {
    let (got, expected) = operands(dtype);
    run(bencher, &got, &expected, Bound::cheap(1e-6, 0.0), 2 * dtype.size());
}

/// A quarter of a million elements, which stay in the processor's caches.
#[divan::bench(args = DTYPES)]
fn cached(bencher: Bencher, dtype: DType) {
    let (got, expected) = sized(dtype, 64);
    run(bencher, &got, &expected, Bound::cheap(1e-6, 0.0), 2 * dtype.size());
}

#[divan::bench(args = DTYPES)]
fn honest(bencher: Bencher, dtype: DType) {
    let (got, expected) = operands(dtype);
    run(bencher, &got, &expected, Bound::cheap(1e-6, 0.0), dtype.size() + 8);
}

#[divan::bench(args = [DType::Float32, DType::Float16])]
fn bound_per_element(bencher: Bencher, dtype: DType) {
    let (got, expected) = operands(dtype);
    let bounds = vec![0.1; expected.len()];
    run(bencher, &got, &expected, Bound::PerElement(&bounds), 2 * dtype.size());
}

#[divan::bench(args = [DType::Float32, DType::Float16])]
fn all_exact(bencher: Bencher, dtype: DType) {
    let (got, _) = operands(dtype);
    let expected = got.to_array();
    run(bencher, &got, &expected, Bound::cheap(1e-6, 0.0), 2 * dtype.size());
}

#[divan::bench(args = [DType::Float32, DType::Float16])]
fn padded_rows(bencher: Bencher, dtype: DType) {
    let (got, expected) = operands(dtype);
    let layout = Layout { shape: vec![ROWS, COLUMNS], strides: vec![COLUMNS as isize + 24, 1], offset: 8 };
    let mut view = Tensor::zeros(dtype, layout);
    view.copy_elements_from(&got);
    run(bencher, &view, &expected, Bound::cheap(1e-6, 0.0), 2 * dtype.size());
}

#[divan::bench(args = [DType::Float32, DType::Float16])]
fn every_second_element(bencher: Bencher, dtype: DType) {
    let (got, expected) = operands(dtype);
    let layout = Layout { shape: vec![ROWS, COLUMNS], strides: vec![2 * COLUMNS as isize, 2], offset: 0 };
    let mut view = Tensor::zeros(dtype, layout);
    view.copy_elements_from(&got);
    run(bencher, &view, &expected, Bound::cheap(1e-6, 0.0), 2 * dtype.size());
}

#[divan::bench(args = [DType::Float32, DType::Float16])]
fn transposed(bencher: Bencher, dtype: DType) {
    let (got, expected) = operands(dtype);
    let layout = Layout { shape: vec![ROWS, COLUMNS], strides: vec![1, ROWS as isize], offset: 0 };
    let mut view = Tensor::zeros(dtype, layout);
    view.copy_elements_from(&got);
    run(bencher, &view, &expected, Bound::cheap(1e-6, 0.0), 2 * dtype.size());
}

#[divan::bench]
fn four_elements(bencher: Bencher) {
    let got = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0]);
    let expected = got.to_array();
    bencher.bench_local(|| compare(black_box(&got), black_box(&expected), Bound::ROUNDED, &Rules::default()));
}
