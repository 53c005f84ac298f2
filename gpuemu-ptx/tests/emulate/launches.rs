//! Launches and modules that are refused, as a driver would.

use crate::bench::{Bench, Float32, Integer, Pointer, kernel};
use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options};
use gpuemu_ptx::fault::{CudaError, FaultKind};

#[test]
fn refused_launches() {
    let invalid = CudaError::InvalidValue;
    let two = || vec![Pointer(0), Pointer(0)];
    let cases: Vec<([u32; 3], [u32; 3], u32, Vec<Argument>, CudaError)> = vec![
        ([0, 1, 1], [32, 1, 1], 0, two(), invalid),
        ([1, 65536, 1], [32, 1, 1], 0, two(), invalid),
        ([1, 1, 1], [0, 1, 1], 0, two(), invalid),
        ([1, 1, 1], [1025, 1, 1], 0, two(), invalid),
        ([1, 1, 1], [32, 32, 2], 0, two(), invalid),
        ([1, 1, 1], [1, 1, 65], 0, two(), invalid),
        ([1, 1, 1], [32, 1, 1], 200_000, two(), invalid),
        ([1, 1, 1], [32, 1, 1], 0, vec![Pointer(0)], invalid),
        ([1, 1, 1], [32, 1, 1], 0, vec![Pointer(0), Float32(1.0)], invalid),
        ([1, 1, 1], [32, 1, 1], 0, vec![Pointer(0), Argument::Bytes(vec![0; 4])], invalid),
        ([1, 1, 1], [32, 1, 1], 0, vec![Pointer(0), Integer(1 << 64)], invalid),
    ];
    for (grid, block, shared, arguments, error) in cases {
        let mut bench = Bench::new(&kernel(""));
        let launched = bench.launch("k", grid, block, shared, &arguments);
        let fault = launched.fault.expect("a refusal");
        assert_eq!(fault.kind, FaultKind::InvalidLaunch(error), "{grid:?} {block:?} {shared}: {fault}");
        assert!(!fault.detail.is_empty());
        // The device works on.
        bench.run("k", [1, 1, 1], [32, 1, 1], 0, &two());
    }
}

#[test]
fn an_entry_that_is_not_there_names_the_nearest() {
    let mut bench = Bench::new(&kernel("").replace("entry k(", "entry softmax("));
    let shape = gpuemu_ptx::emulate::Shape { grid: [1; 3], block: [1; 3], shared: 0 };
    let error = bench.device.launch(&bench.module, "sofmax", shape, &[]).unwrap_err();
    assert!(error.to_string().contains("softmax"), "{error}");
}

#[test]
fn what_cannot_be_executed_is_refused_with_its_line() {
    let cases = [
        ("tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r0, %r1}];", "textures"),
        ("mapa.u64 %d0, %d1, %r0;", "clusters"),
    ];
    for (body, why) in cases {
        let mut device = Device::new(Arch::named("sm_80").unwrap(), Options::default()).unwrap();
        let Err(error) = device.load(&kernel(body)) else { panic!("{body} was loaded") };
        let text = error.to_string();
        assert!(text.contains("line 18") && text.contains(why), "{text}");
    }
}

#[test]
fn code_for_a_newer_target_is_refused() {
    let mut device = Device::new(Arch::named("sm_80").unwrap(), Options::default()).unwrap();
    let text = kernel("").replace("sm_80", "sm_90");
    let Err(error) = device.load(&text) else { panic!("it was loaded") };
    assert!(error.to_string().contains("sm_90"), "{error}");
}

#[test]
fn a_million_blocks_of_nothing() {
    let mut bench = Bench::new(&kernel(""));
    let mut launched = bench.launch("k", [1000, 1000, 1], [1, 1, 1], 0, &[Pointer(0), Pointer(0)]);
    assert!(launched.fault.take().is_none());
    assert!(launched.instructions >= 1_000_000);
}
