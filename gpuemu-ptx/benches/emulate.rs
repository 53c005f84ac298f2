//! Execution: the example kernels, with sanitizers off and on. Items are lane-instructions: 32 for every instruction that
//! a warp executed.
//!
//! `cargo bench -p gpuemu-ptx --bench emulate`

use divan::Bencher;
use divan::counter::ItemsCount;
use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Module, Options, Sanitizers, Shape};

fn main() {
    divan::main();
}

struct Launch {
    device: Device,
    module: Module,
    entry: &'static str,
    shape: Shape,
    arguments: Vec<Argument>,
}

/// A tensor of so many floats, or a number.
enum Given {
    Tensor(usize),
    Number(i32),
    Float(f32),
}

use Given::{Float, Number, Tensor};

impl Launch {
    fn new(text: &str, entry: &'static str, shape: Shape, given: &[Given], sanitizers: Sanitizers) -> Self {
        let options = Options { threads: 1, sanitizers, ..Options::default() };
        let mut device = Device::new(Arch::named("sm_80").unwrap(), options).unwrap();
        let module = device.load(text).unwrap();
        let arguments = given
            .iter()
            .map(|given| match *given {
                Number(value) => Argument::Integer(value.into()),
                Float(value) => Argument::Float32(value),
                Tensor(count) => {
                    let values = (0..count).flat_map(|i| ((i * 7919 % 1000) as f32 / 500.0 - 1.0).to_le_bytes());
                    let address = device.memory().allocate(4 * count as u64, 256, "tensor").unwrap();
                    device.memory_mut().write(address, &values.collect::<Vec<u8>>()).unwrap();
                    Argument::Pointer(address)
                }
            })
            .collect();
        Self { device, module, entry, shape, arguments }
    }

    fn run(&mut self) -> u64 {
        let launched = self.device.launch(&self.module, self.entry, self.shape, &self.arguments).unwrap();
        if let Some(fault) = launched.fault {
            panic!("{fault}");
        }
        launched.instructions
    }

    fn bench(mut self, bencher: Bencher<'_, '_>) {
        let lanes = 32 * self.run();
        bencher.counter(ItemsCount::new(lanes)).bench_local(|| self.run());
    }
}

macro_rules! source {
    ($name:literal) => {
        include_str!(concat!("../../examples/cuda-kernels/kernels/", $name, ".sm_80.ptx"))
    };
}

const WATCHED: [bool; 2] = [false, true];

fn sanitizers(on: bool) -> Sanitizers {
    if on { Sanitizers::ALL } else { Sanitizers::NONE }
}

fn shape(grid: [u32; 3], block: [u32; 3]) -> Shape {
    Shape { grid, block, shared: 0 }
}

#[divan::bench(args = WATCHED)]
fn saxpy_million(bencher: Bencher<'_, '_>, on: bool) {
    let n = 1 << 20;
    let given = [Tensor(n), Tensor(n), Float(0.5), Number(n as i32)];
    let shape = shape([1024, 1, 1], [256, 1, 1]);
    Launch::new(source!("saxpy"), "saxpy", shape, &given, sanitizers(on)).bench(bencher);
}

#[divan::bench(args = WATCHED)]
fn row_softmax_1024_1000(bencher: Bencher<'_, '_>, on: bool) {
    let given = [Tensor(1 << 20), Tensor(1 << 20), Number(1000)];
    let shape = shape([1024, 1, 1], [128, 1, 1]);
    Launch::new(source!("row_softmax"), "row_softmax", shape, &given, sanitizers(on)).bench(bencher);
}

#[divan::bench(args = WATCHED)]
fn layer_norm_1024_1000(bencher: Bencher<'_, '_>, on: bool) {
    let given = [Tensor(1 << 20), Tensor(1000), Tensor(1000), Tensor(1 << 20), Number(1000), Float(1e-5)];
    let shape = shape([1024, 1, 1], [128, 1, 1]);
    Launch::new(source!("layer_norm"), "layer_norm", shape, &given, sanitizers(on)).bench(bencher);
}

#[divan::bench(args = WATCHED)]
fn row_sum_1024_1000(bencher: Bencher<'_, '_>, on: bool) {
    let given = [Tensor(1 << 20), Tensor(1024), Number(1000)];
    let shape = shape([1024, 1, 1], [256, 1, 1]);
    Launch::new(source!("row_sum"), "row_sum", shape, &given, sanitizers(on)).bench(bencher);
}

#[divan::bench(args = WATCHED)]
fn matmul_tiled_256(bencher: Bencher<'_, '_>, on: bool) {
    let given = [Tensor(1 << 16), Tensor(1 << 16), Tensor(1 << 16), Number(256), Number(256), Number(256)];
    let shape = shape([4, 4, 1], [16, 16, 1]);
    Launch::new(source!("matmul_tiled"), "matmul_tiled", shape, &given, sanitizers(on)).bench(bencher);
}

#[divan::bench(args = WATCHED)]
fn matmul_tensor_256(bencher: Bencher<'_, '_>, on: bool) {
    let given = [Tensor(1 << 16), Tensor(1 << 16), Tensor(1 << 16), Number(256), Number(256), Number(256)];
    let shape = shape([16, 16, 1], [32, 1, 1]);
    Launch::new(source!("matmul_tensor"), "matmul_tensor", shape, &given, sanitizers(on)).bench(bencher);
}
