//! Filling tensors: bytes a second on one core.

use divan::Bencher;
use divan::counter::BytesCount;
use gpuemu_contract::DType;
use gpuemu_harness::case::rng::{BLOCK, block_seed, derive};
use gpuemu_harness::case::spec::Kind;
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
