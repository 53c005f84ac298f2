//! Filling tensors: bytes a second on one core; and the fixed cost of planning a case.

use divan::Bencher;
use divan::counter::BytesCount;
use gpuemu_contract::{Contract, DType, Op, TestName};
use gpuemu_harness::case::rng::{BLOCK, block_seed, derive};
use gpuemu_harness::case::spec::Kind;
use gpuemu_harness::case::strategy::{Planner, plan};
use gpuemu_harness::case::values::draw::{Draw, block};
use gpuemu_harness::case::values::{Fill, fill};

fn main() {
    divan::main();
}

/// 4 MiB of float32: larger than the caches nearest to the core, allocated once.
const ELEMENTS: usize = 1 << 20;

/// What a tensor costs once its memory is there; NumPy's twin is `rng.random(out=array, dtype=float32)`.
#[divan::bench(args = [Draw::Uniform, Draw::Normal, Draw::Positive])]
fn blocks_of_float32(bencher: Bencher, draw: Draw) {
    let mut out = vec![0.0f32; ELEMENTS];
    let seed = derive(42, "x");
    bencher.counter(BytesCount::new(ELEMENTS * 4)).bench_local(move || {
        for (number, out) in out.chunks_mut(BLOCK).enumerate() {
            block(draw, block_seed(seed, number), out);
        }
        divan::black_box(&mut out);
    });
}

/// A whole tensor, its allocation included.
#[divan::bench(args = [
    (DType::Float32, Kind::Uniform),
    (DType::Float32, Kind::Normal),
    (DType::Float32, Kind::Structured),
    (DType::Float16, Kind::Uniform),
    (DType::Float16, Kind::Normal),
    (DType::BFloat16, Kind::Normal),
    (DType::Float8E4M3, Kind::Normal),
    (DType::Float64, Kind::Normal),
    (DType::Int32, Kind::Small),
])]
fn tensors(bencher: Bencher, (dtype, kind): (DType, Kind)) {
    // Below the size at which several threads fill.
    let shape = [255, 1024];
    bencher.counter(BytesCount::new(shape[0] * shape[1] * dtype.size())).bench_local(|| {
        fill(&Fill { seed: 7, dtype, shape: &shape, values: kind.into(), limits: None }).expect("a tensor")
    });
}

/// A tensor of a few elements: the fixed cost.
#[divan::bench]
fn small(bencher: Bencher) {
    bencher.bench_local(|| {
        fill(&Fill { seed: 7, dtype: DType::Float32, shape: &[2, 3], values: Kind::Normal.into(), limits: None })
            .expect("a tensor")
    });
}

fn softmax() -> (Op, TestName) {
    let text = "[project]\nname = \"bench\"\n[[ops]]\nname = \"softmax\"\nreference = \"softmax\"\nparams = { axis = -1 }\n\
        [ops.schema]\ndims = { B = [1, 2, 8], S = [1, 7, 128], H = { candidates = [1, 3, 256, 1025], tile = 128 } }\n\
        inputs = { x = [\"B\", \"S\", \"H\"] }\noutputs = { out = [\"B\", \"S\", \"H\"] }\n";
    let contract = Contract::parse(text, std::path::Path::new("gpuemu.toml")).expect("a contract");
    (contract.ops.into_iter().next().expect("one op"), TestName::parse("softmax::float32::boundary").expect("a name"))
}

/// One case alone, and one of a test that is planned whole.
#[divan::bench(args = [0, 5, 29])]
fn plan_alone(bencher: Bencher, index: u32) {
    let (op, test) = softmax();
    bencher.bench_local(|| plan(&op, &test, 42, index, &mut |_| true).expect("a spec"));
}

#[divan::bench(args = [0, 5, 29])]
fn plan_of_a_test(bencher: Bencher, index: u32) {
    let (op, test) = softmax();
    let planner = Planner::new(&op, &test, 42).expect("a plan");
    bencher.bench_local(|| planner.plan(index, &mut |_| true).expect("a spec"));
}
