//! Time of built-in mirrors, as elements a second: 51 rows of 1,025, about the mean of the softmax cases of the
//! performance table.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};
use gpuemu_harness::Array;
use gpuemu_harness::mirror::{Mirror, Question, builtin};

fn main() {
    divan::main();
}

const SHAPE: [usize; 2] = [51, 1025];

/// Values between -4 and 4 from a multiplicative sequence.
fn values(mut state: u64) -> Array {
    let values = (0..SHAPE[0] * SHAPE[1]).map(|_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        f64::from(((state >> 11) as f64 / (1u64 << 50) as f64 - 4.0) as f32)
    });
    Array::float(DType::Float32, &SHAPE, values.collect())
}

fn run(bencher: Bencher, op: &str, operands: u64, params: &[(&str, ParamValue)], precision: Compute) {
    let inputs: Vec<_> = (0..operands).map(|role| (format!("in{role}"), values(role + 1))).collect();
    let params: Vec<_> = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let outputs = [("out".to_owned(), DType::Float32)];
    let edges = EdgePolicy::default();
    let question = Question { inputs: &inputs, params: &params, outputs: &outputs, precision, edges };
    let mirror = builtin::find(op).expect("a built-in");
    bencher
        .counter(ItemsCount::new(SHAPE[0] * SHAPE[1]))
        .bench_local(|| mirror.answer(black_box(&question)).expect("an answer"));
}

const ONE_OPERAND: &[&str] = &[
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "l2_norm",
    "gelu",
    "silu",
    "sigmoid",
    "tanh",
    "exp",
    "relu",
    "sum",
    "var",
    "max",
    "argmax",
    "cumsum",
    "transpose",
];

#[divan::bench(args = ONE_OPERAND)]
fn float64(bencher: Bencher, op: &str) {
    run(bencher, op, 1, &[], Compute::Float64);
}

#[divan::bench(args = ONE_OPERAND)]
fn float32(bencher: Bencher, op: &str) {
    run(bencher, op, 1, &[], Compute::Float32);
}

#[divan::bench(args = ["add", "swiglu"])]
fn float64_two_operands(bencher: Bencher, op: &str) {
    run(bencher, op, 2, &[], Compute::Float64);
}

#[divan::bench(args = [Compute::Float64, Compute::Float32])]
fn softmax_over_the_first_axis(bencher: Bencher, precision: Compute) {
    run(bencher, "softmax", 1, &[("axis", ParamValue::Int(0))], precision);
}

#[divan::bench(args = [Compute::Float64, Compute::Float32])]
fn gelu_by_tanh(bencher: Bencher, precision: Compute) {
    run(bencher, "gelu", 1, &[("approximate", ParamValue::Text("tanh".to_owned()))], precision);
}
