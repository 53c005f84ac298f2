//! Any text that is loaded ends: in answers, or in a fault with words.
//!
//! In the folder of `gpuemu-ptx`: `cargo +nightly fuzz run launch fuzz/corpus/launch ../examples/cuda-kernels/kernels
//! ../examples/cuda-kernels/faulty/kernels -- -max_len=16384 -timeout=20`.

#![no_main]

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Shape};
use gpuemu_ptx::program::Program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(program) = Program::read(text) else { return };
    let Some(name) = program.entries().map(|(_, entry)| entry.name.to_string()).next() else { return };
    let options = Options { threads: 1, budget: 20_000, ..Options::default() };
    let mut device = Device::new(Arch::named("sm_80").expect("it is there"), options).expect("a device");
    let Ok(module) = device.load_entry(program, &name) else { return };
    let id = module.program().entry(&name).expect("it was loaded");
    let parameters = &module.program().function(id).parameters;
    let argument = |size: u32, name: &str| match size {
        8 => Argument::Pointer(device.memory().allocate(4096, 256, name).expect("4 KiB")),
        4 => Argument::Integer(64),
        bytes => Argument::Bytes(vec![1; bytes as usize]),
    };
    let arguments: Vec<Argument> = parameters.iter().map(|one| argument(one.size, &one.name)).collect();
    let shape = Shape { grid: [2, 1, 1], block: [64, 1, 1], shared: 1024 };
    let launched = device.launch(&module, &name, shape, &arguments).expect("it was loaded");
    if let Some(fault) = launched.fault {
        assert!(!fault.to_string().is_empty());
    }
});
