gpuemu_harness::tests!("my_kernels");

gpuemu_harness::main!(my_kernels, 3);
