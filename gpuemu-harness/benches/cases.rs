//! Whole cases with a built-in mirror: planned shapes, filled inputs, a kernel, the mirror, the comparison.
//!
//! `softmax` runs every shape of {1,2,8}x{1,7,128}x{1,3,256,1025} once an iteration, in float32 and float16; `small` is
//! one case of three elements: the fixed cost.

use divan::counter::ItemsCount;
use gpuemu_contract::{Contract, TestName};
use gpuemu_harness::case::build;
use gpuemu_harness::case::kind::Kind;
use gpuemu_harness::case::spec::{InputSpec, Spec};
use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::check::check;
use gpuemu_harness::pipeline::oracle::Oracle;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::subject::function::Function;
use gpuemu_harness::{DType, Float, f16};
use rayon::prelude::*;
use std::path::Path;

fn main() {
    gpuemu_harness::memory::keep_freed();
    divan::main();
}

const CONTRACT: &str = r#"
[validation]
dtypes = ["float32", "float16"]
[[ops]]
name = "softmax"
reference = "softmax"
[ops.schema]
dims = { B = [1, 2, 8], S = [1, 7, 128], H = [1, 3, 256, 1025] }
inputs = { x = ["B", "S", "H"] }
outputs = { out = ["B", "S", "H"] }
"#;

fn session() -> Session {
    let contract = Contract::parse(CONTRACT, Path::new("gpuemu.toml")).expect("a contract");
    Session::new(contract, Environment::default()).expect("a session")
}

/// A row softmax as a plain kernel computes it, in float32.
fn softmax<T: Float>(x: &[T], out: &mut [T], width: usize) {
    let mut exponentials = Vec::with_capacity(width);
    for (row, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let max = row.iter().map(|value| value.to_f32()).fold(f32::NEG_INFINITY, f32::max);
        exponentials.clear();
        exponentials.extend(row.iter().map(|value| (value.to_f32() - max).exp()));
        let sum: f32 = exponentials.iter().sum();
        for (out, value) in out.iter_mut().zip(&exponentials) {
            *out = T::from_f32(value / sum);
        }
    }
}

fn subject() -> Function {
    Function::from_closure(&[DType::Float32, DType::Float16], |call| {
        let width = *call.inputs[0].1.shape().last().expect("rank 3");
        let x = &call.inputs[0].1;
        let out = call.outputs[0].1.as_mut().expect("a declared shape");
        match call.dtype {
            DType::Float32 => {
                let length = x.len();
                softmax::<f32>(&x.data()[..length], &mut out.data_mut()[..length], width);
            }
            _ => {
                let length = x.len();
                softmax::<f16>(&x.data()[..length], &mut out.data_mut()[..length], width);
            }
        }
        Ok(())
    })
}

fn specs() -> Vec<Spec> {
    let mut specs = Vec::new();
    for dtype in [DType::Float32, DType::Float16] {
        for b in [1, 2, 8] {
            for s in [1, 7, 128] {
                for h in [1, 3, 256, 1025] {
                    specs.push(spec(dtype, [b, s, h]));
                }
            }
        }
    }
    specs
}

fn spec(dtype: DType, [b, s, h]: [u64; 3]) -> Spec {
    let strategy = gpuemu_contract::Strategy::Default;
    Spec {
        test: TestName { op: "softmax".to_owned(), dtype, strategy },
        dims: vec![("B".to_owned(), b), ("S".to_owned(), s), ("H".to_owned(), h)],
        any_rank: None,
        params: Vec::new(),
        inputs: vec![InputSpec { name: "x".to_owned(), layout: Default::default(), values: Kind::Normal.into() }],
        seed: 1000 * b + 10 * s + h,
        edits: Vec::new(),
        file: None,
    }
}

fn run(session: &Session, subject: &Function, spec: &Spec) {
    let op = session.op("softmax").expect("the op");
    let oracle = Oracle::new(session, op, spec.test.dtype).expect("an oracle");
    let case = build::build(op, spec, None).expect("a case");
    let checked = check(&oracle, subject, &case, None).expect("an answer");
    assert!(checked.failure.is_none(), "{:?}", checked.failure);
}

#[divan::bench]
fn softmax_one_core(bencher: divan::Bencher) {
    let (session, subject, specs) = (session(), subject(), specs());
    bencher
        .counter(ItemsCount::new(specs.len()))
        .bench_local(|| specs.iter().for_each(|spec| run(&session, &subject, spec)));
}

/// All shapes four times over, handed out one by one: two of the 72 cases are half of the work, and a single pass measures
/// who of the two cores waits for the other at its end.
#[divan::bench]
fn softmax_two_cores(bencher: divan::Bencher) {
    let (session, subject, specs) = (session(), subject(), [specs(), specs(), specs(), specs()].concat());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    bencher.counter(ItemsCount::new(specs.len())).bench_local(|| {
        pool.install(|| specs.par_iter().with_max_len(1).for_each(|spec| run(&session, &subject, spec)))
    });
}

#[divan::bench]
fn small(bencher: divan::Bencher) {
    let (session, subject, spec) = (session(), subject(), spec(DType::Float32, [1, 1, 3]));
    bencher.bench_local(|| run(&session, &subject, &spec));
}
