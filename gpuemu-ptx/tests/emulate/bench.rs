//! What the tests build on: a device with tensors.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Device, Launched, Module, Options, Shape};
use gpuemu_ptx::fault::{Fault, FaultKind};

/// A device and what is on it.
pub struct Bench {
    pub device: Device,
    pub module: Module,
}

/// Arguments by tensor or number.
pub use gpuemu_ptx::emulate::Argument::{self, Float32, Integer, Pointer};

impl Bench {
    pub fn with(target: &str, text: &str, options: Options) -> Self {
        let mut device = Device::new(Arch::named(target).unwrap(), options).unwrap();
        let module = device.load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Self { device, module }
    }

    pub fn new(text: &str) -> Self {
        Self::with("sm_80", text, Options { threads: 1, ..Options::default() })
    }

    pub fn tensor<T: Number>(&mut self, name: &str, values: &[T]) -> Argument {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.bytes()).collect();
        let address = self.device.memory().allocate(bytes.len() as u64, 256, name).unwrap();
        self.device.memory_mut().write(address, &bytes).unwrap();
        Pointer(address)
    }

    pub fn read<T: Number>(&mut self, tensor: &Argument, count: usize) -> Vec<T> {
        let Pointer(address) = *tensor else { panic!("no tensor") };
        let mut bytes = vec![0; count * T::BYTES];
        self.device.memory_mut().read(address, &mut bytes).unwrap();
        bytes.chunks(T::BYTES).map(T::of).collect()
    }

    pub fn launch(
        &mut self,
        entry: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        arguments: &[Argument],
    ) -> Launched {
        self.device.launch(&self.module, entry, Shape { grid, block, shared }, arguments).unwrap()
    }

    /// A launch that ends well.
    pub fn run(&mut self, entry: &str, grid: [u32; 3], block: [u32; 3], shared: u32, arguments: &[Argument]) {
        let launched = self.launch(entry, grid, block, shared, arguments);
        if let Some(fault) = launched.fault {
            panic!("{entry}: {fault}");
        }
    }

    /// A launch that does not.
    pub fn fault(&mut self, grid: [u32; 3], block: [u32; 3], arguments: &[Argument], kind: FaultKind) -> Fault {
        let fault = self.launch("k", grid, block, 0, arguments).fault.expect("a fault");
        assert_eq!(fault.kind, kind, "{fault}");
        fault
    }
}

/// A number of a tensor.
pub trait Number: Copy {
    const BYTES: usize;
    fn bytes(&self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            const BYTES: usize = size_of::<$ty>();
            fn bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

number! { u8 u16 u32 u64 i32 i64 f32 f64 }

/// A module of one entry `k` with one pointer parameter `out`, registers of every kind, and a body in which `%lane` is
/// `%tid.x` and `%out` the address of four bytes for each thread (`%wide` of eight).
pub fn kernel(body: &str) -> String {
    format!(
        ".version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in)
{{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<32>;
    .reg .f32 %f<16>;
    .reg .b64 %d<16>;
    .reg .b32 %lane;
    .reg .b64 %out, %wide, %in;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %out, [out];
    ld.param.u64 %in, [in];
    mad.wide.u32 %wide, %lane, 8, %out;
    mad.wide.u32 %out, %lane, 4, %out;
{body}
    ret;
}}
"
    )
}

/// Numbers that look random and are the same everywhere, between -1 and 1.
pub fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}
