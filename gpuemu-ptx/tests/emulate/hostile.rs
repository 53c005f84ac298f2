//! Modules, launches and kernels that mean ill, or know no better: each is told what is wrong and where, and the same
//! device goes on as if nothing had been.

use crate::bench::{Argument, Integer, Pointer, kernel};
use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Device, Launched, Module, Options, Shape};
use gpuemu_ptx::fault::FaultKind;

const SYSTEM: &str = "
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.func again() { call.uni again; ret; }
";

const MALLOC: &str = "{ .param .b64 n; .param .b64 p; st.param.b64 [n], %d1; call.uni (p), malloc, (n); \
                      ld.param.b64 %d2, [p]; }";
const PRINT: &str = "{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %d1; st.param.b64 [a], %d3; \
                     call.uni (r), vprintf, (f, a); }";

fn module(body: &str) -> String {
    kernel(body).replacen(".visible .entry", &format!("{SYSTEM}.visible .entry"), 1)
}

fn device() -> Device {
    Device::new(Arch::named("sm_80").unwrap(), Options { threads: 2, budget: 1 << 18, ..Options::default() }).unwrap()
}

const ONE_WARP: Shape = Shape { grid: [1; 3], block: [32, 1, 1], shared: 0 };

/// What stands where a tensor of 32 numbers is right.
fn works(device: &mut Device) {
    let module = device.load(&kernel("st.global.u32 [%out], %lane;")).unwrap();
    let out = device.memory().allocate(128, 256, "out").unwrap();
    let launched = device.launch(&module, "k", ONE_WARP, &[Pointer(out), Pointer(0)]).unwrap();
    assert_eq!(launched.fault.map(|fault| fault.to_string()), None);
    let mut bytes = [0; 128];
    device.memory_mut().read(out, &mut bytes).unwrap();
    assert!(bytes.chunks(4).zip(0u32..).all(|(bytes, lane)| bytes == lane.to_le_bytes()));
    device.memory_mut().free(out).unwrap();
}

#[test]
fn what_cannot_be_loaded_says_where() {
    let table: &[(&str, &[&str])] = &[
        ("", &["line 1"]),
        ("\u{0}\u{1}\u{2}", &["line 1"]),
        ("int main() {}", &["line 1"]),
        (&kernel("bra NOWHERE;"), &["line 18", "NOWHERE"]),
        (&kernel("add.u32 %r1, %r2;"), &["line 18", "add.u32"]),
        (&kernel("add.u32 %r1, %r2, %x9;"), &["line 18", "%x9"]),
        (&kernel("frobnicate.u32 %r1, %r2;"), &["line 18", "frobnicate"]),
        (&kernel("").replace(".target sm_80", ".target sm_20000"), &["sm_20000"]),
        (&kernel("").replace(".address_size 64", ".address_size 32"), &["64 bits"]),
        (&kernel("call.uni missing;"), &["line 18", "missing"]),
        // A variable of 4 GiB, and one of more than there is.
        (".version 8.5\n.target sm_80\n.address_size 64\n.global .b8 v[1152921504606846976];\n", &["v"]),
        (".version 8.5\n.target sm_80\n.address_size 64\n.extern .global .b32 v;\n", &["`v` is declared and nowhere"]),
    ];
    let mut device = device();
    for (text, parts) in table {
        let Err(error) = device.load(text) else { panic!("this was loaded:\n{text}") };
        let error = error.to_string();
        parts.iter().for_each(|part| assert!(error.contains(part), "{part:?} is not in {error:?}, of\n{text}"));
        works(&mut device);
    }
}

#[test]
fn launches_that_do_not_fit() {
    let table: &[(&str, Shape, Vec<Argument>, &str)] = &[
        ("k", Shape { block: [2048, 1, 1], ..ONE_WARP }, vec![Pointer(0), Pointer(0)], "2048 threads"),
        (
            "k",
            Shape { shared: u32::MAX, ..ONE_WARP },
            vec![Pointer(0), Pointer(0)],
            "4294967295 bytes of dynamic shared",
        ),
        ("k", Shape { grid: [0, 1, 1], ..ONE_WARP }, vec![Pointer(0), Pointer(0)], "a grid of 0 blocks along x"),
        (
            "k",
            Shape { grid: [u32::MAX, 1, 1], ..ONE_WARP },
            vec![Pointer(0), Pointer(0)],
            "a grid of 4294967295 blocks",
        ),
        ("k", ONE_WARP, vec![], "0 arguments: the kernel takes 2"),
        ("k", ONE_WARP, vec![Pointer(0); 3], "3 arguments: the kernel takes 2"),
        ("k", ONE_WARP, vec![Pointer(0), Argument::Float32(1.0)], "a float32 for parameter `in` of 8 bytes"),
        ("k", ONE_WARP, vec![Pointer(0), Integer(1 << 64)], "18446744073709551616 is too large for parameter `in`"),
        ("k", ONE_WARP, vec![Pointer(0), Argument::Bytes(vec![])], "0 bytes for parameter `in` of 8 bytes"),
        ("kk", ONE_WARP, vec![Pointer(0), Pointer(0)], "did you mean `k`"),
        ("", ONE_WARP, vec![Pointer(0), Pointer(0)], "no entry"),
    ];
    let mut device = device();
    let module = device.load(&kernel("")).unwrap();
    for (entry, shape, arguments, says) in table {
        let text = match device.launch(&module, entry, *shape, arguments) {
            Ok(launched) => {
                assert!(launched.refused.is_some() && launched.instructions == 0);
                launched.fault.expect("a refusal").to_string()
            }
            Err(error) => error.to_string(),
        };
        assert!(text.contains(says), "{says:?} is not in {text:?}");
        works(&mut device);
    }
}

fn launched(device: &mut Device, body: &str, arguments: &[Argument]) -> Launched {
    let module: Module = device.load(&module(body)).unwrap_or_else(|error| panic!("{error}\n{body}"));
    device.launch(&module, "k", Shape { grid: [3, 1, 1], block: [64, 1, 1], shared: 0 }, arguments).unwrap()
}

#[test]
fn kernels_that_go_wrong_for_ever() {
    let deep = format!("mov.u64 %d1, 65536; L: {MALLOC} st.u64 [%d2], %d1; bra L;");
    let leaks = format!("mov.u64 %d1, 1048576; L: {MALLOC} setp.ne.u64 %p0, %d2, 0; @%p0 bra L;");
    let leaks_for_ever = format!("mov.u64 %d1, 1; L: {MALLOC} bra L;");
    let huge = format!("mov.u64 %d1, -1; {MALLOC} st.u64 [%d2], %d1;");
    let prints = format!("mov.u64 %d1, text; mov.u64 %d3, 0; L: {PRINT} bra L;");
    let no_text = format!("mov.u64 %d1, 0; mov.u64 %d3, 0; {PRINT}");
    let table: &[(&str, Option<FaultKind>, &str)] = &[
        ("ld.global.u32 %r0, [0];", Some(FaultKind::NullPointer), "null"),
        (
            "ld.global.u32 %r0, [%in+12];",
            Some(FaultKind::UseAfterFree),
            "12 bytes into gone, of 64 bytes, which was freed",
        ),
        ("st.global.u32 [%out+1048576], 1;", Some(FaultKind::OutOfBounds), "past the end of out"),
        ("mov.u64 %d1, 20015998343868; ld.global.u8 %r0, [%d1];", Some(FaultKind::IllegalAddress), "in no region"),
        ("L: bra L;", Some(FaultKind::Endless), "kernel does not end"),
        ("L: add.u32 %r0, %r0, 1; bra L;", Some(FaultKind::Runaway), "ran 262144 instructions and has not ended"),
        ("call.uni again;", Some(FaultKind::StackOverflow), " calls are open"),
        (&leaks, None, ""),
        (&leaks_for_ever, Some(FaultKind::Runaway), "kernel does not end"),
        (
            &deep,
            Some(FaultKind::NullPointer),
            "null: it asked for 65536 bytes, and of the heap's 8388608 too few were left",
        ),
        (&huge, Some(FaultKind::NullPointer), "writes 8 bytes at 0x0"),
        (&prints, Some(FaultKind::Runaway), "kernel does not end"),
        (&no_text, Some(FaultKind::NullPointer), "null"),
    ];
    let mut device = device();
    for (body, kind, says) in table {
        let gone = device.memory().allocate(64, 256, "gone").unwrap();
        let out = device.memory().allocate(4096, 256, "out").unwrap();
        device.memory_mut().fill(out, 4096, &[0]).unwrap();
        device.memory_mut().free(gone).unwrap();
        let launched = launched(&mut device, body, &[Pointer(out), Pointer(gone)]);
        let text = launched.fault.as_ref().map_or_else(String::new, ToString::to_string);
        assert_eq!(launched.fault.map(|fault| fault.kind), *kind, "{body}: {text}");
        assert!(text.contains(says), "{says:?} is not in {text:?}");
        assert!(kind.is_none() || text.contains("line "), "{body}: no line in {text:?}");
        device.memory_mut().free(out).unwrap();
        works(&mut device);
    }
}

#[test]
fn what_is_printed_without_end_has_one() {
    // Every thread of every block prints, the first blocks fill what is kept.
    let prints = format!(
        "mov.u64 %d1, text; mov.u64 %d3, 0; mov.u32 %r1, 0; L: {PRINT} add.u32 %r1, %r1, 1;
        setp.lt.u32 %p0, %r1, 100; @%p0 bra L;"
    );
    let mut told = Vec::new();
    for threads in [1, 2] {
        let options = Options { threads, budget: 1 << 20, ..Options::default() };
        let mut device = Device::new(Arch::named("sm_80").unwrap(), options).unwrap();
        let module = device.load(&module(&prints)).unwrap();
        let shape = Shape { grid: [100, 1, 1], block: [64, 1, 1], shared: 0 };
        let launched = device.launch(&module, "k", shape, &[Pointer(0), Pointer(0)]).unwrap();
        assert_eq!(launched.fault, None);
        let bytes: usize = launched.printed.iter().map(|printed| printed.text.len()).sum();
        assert!((1 << 20..=16 << 20).contains(&bytes), "{bytes}");
        assert!(launched.printed.iter().all(|printed| printed.text == "hello"));
        assert!(launched.printed.iter().map(|printed| printed.block[0]).is_sorted());
        told.push(launched.printed);
    }
    assert!(told[0] == told[1], "{} calls are kept with one thread, {} with two", told[0].len(), told[1].len());
}

/// More than any host has: nothing is taken of it but the pages that are touched.
#[test]
fn a_tensor_larger_than_memory() {
    let mut device = device();
    let bytes = 1 << 44;
    let out = device.memory().allocate(bytes, 256, "out").unwrap();
    // The thread's number, at the thread's number times 2^39 bytes.
    let far = "cvt.u64.u32 %d1, %lane; shl.b64 %d1, %d1, 38; ld.param.u64 %d2, [out]; add.u64 %d1, %d1, %d2; \
               st.global.u32 [%d1], %lane;";
    let loaded = device.load(&module(far)).unwrap();
    let launch = |device: &mut Device, threads| {
        let shape = Shape { block: [threads, 1, 1], ..ONE_WARP };
        device.launch(&loaded, "k", shape, &[Pointer(out), Pointer(0)]).unwrap().fault
    };
    assert_eq!(launch(&mut device, 64), None);
    let mut read = [0; 4];
    device.memory_mut().read(out + (63 << 38), &mut read).unwrap();
    assert_eq!(u32::from_le_bytes(read), 63);
    let fault = launch(&mut device, 65).expect("one past the end");
    assert!(fault.to_string().contains("at the end of out, of 17592186044416 bytes"), "{fault}");
    // More than an address space.
    for bytes in [1 << 50, u64::MAX, u64::MAX / 2] {
        let error = device.memory().allocate(bytes, 256, "weights").expect_err("no host has as much").to_string();
        assert!(error.contains("weights: ") && error.contains(&format!("{bytes} bytes")), "{error}");
    }
    device.memory_mut().free(out).unwrap();
    works(&mut device);
}
