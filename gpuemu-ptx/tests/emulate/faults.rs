//! Kernels that go wrong: the kind of fault, the error that a driver would return, the place and the thread.

use crate::bench::{Bench, Integer, Pointer, kernel};
use gpuemu_ptx::emulate::{Cancel, Options};
use gpuemu_ptx::fault::FaultKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Runs a kernel with one tensor of 32 numbers and says what went wrong.
fn fault(body: &str, threads: u32, kind: FaultKind) -> gpuemu_ptx::fault::Fault {
    let mut bench = Bench::new(&kernel(body));
    let out = bench.tensor("out", &[0u32; 32]);
    let fault = bench.fault([1, 1, 1], [threads, 1, 1], &[out.clone(), Integer(0)], kind);
    // The next launch works as if nothing had been.
    let mut next = Bench::new(&kernel("st.global.u32 [%out], 3;"));
    let out = next.tensor("out", &[0u32; 32]);
    next.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), Integer(0)]);
    assert_eq!(next.read::<u32>(&out, 2), [3, 3]);
    fault
}

#[test]
fn every_fault_has_its_kind() {
    let cases: &[(&str, u32, FaultKind)] = &[
        ("st.global.u32 [%out], 1;", 33, FaultKind::OutOfBounds),
        ("sub.u64 %out, %out, 4; st.global.u32 [%out], 1;", 32, FaultKind::OutOfBounds),
        ("ld.global.u32 %r0, [%in];", 32, FaultKind::NullPointer),
        ("mov.u64 %d0, 0x123456789abc; ld.global.u32 %r0, [%d0];", 32, FaultKind::IllegalAddress),
        ("add.u64 %out, %out, 2; ld.global.u32 %r0, [%out];", 32, FaultKind::Misaligned),
        (".shared .b32 s[8]; mov.u32 %r1, s; ld.shared.u32 %r0, [%r1+32];", 32, FaultKind::OutOfBounds),
        (".local .b32 l[4]; mov.u64 %d0, l; st.local.u32 [%d0+16], 1;", 32, FaultKind::OutOfBounds),
        ("trap;", 32, FaultKind::Trap),
        ("LOOP: bra.uni LOOP;", 32, FaultKind::Endless),
        ("LOOP: add.u32 %r0, %r0, 1; bra.uni LOOP;", 32, FaultKind::Runaway),
        (
            "setp.lt.u32 %p0, %lane, 16; @%p0 bra A; bra.uni B; A: bar.sync 0; bra.uni C; B: mov.u32 %r0, 1; C: bar.sync 1;",
            32,
            FaultKind::DivergentBarrier,
        ),
        ("setp.lt.u32 %p0, %lane, 32; @%p0 bar.sync 1, 96;", 64, FaultKind::Deadlock),
        ("bar.sync 16;", 32, FaultKind::IllegalInstruction),
        ("mov.u32 %r1, 16; shfl.sync.idx.b32 %r0, %lane, 0, 31, 0xfffe;", 32, FaultKind::InactiveLane),
        (
            "setp.lt.u32 %p0, %lane, 16; @!%p0 bra END; shfl.sync.idx.b32 %r0, %lane, 20, 31, 0xffff; END:",
            32,
            FaultKind::InactiveLane,
        ),
        ("setp.lt.u32 %p0, %lane, 16; @%p0 shfl.sync.idx.b32 %r0, %lane, 0, 31, -1;", 32, FaultKind::InactiveLane),
        ("targets: .branchtargets A, B; brx.idx %lane, targets; A: B:", 32, FaultKind::InvalidTarget),
    ];
    for (body, threads, kind) in cases {
        let mut bench =
            Bench::with("sm_80", &kernel(body), Options { threads: 1, budget: 1 << 20, ..Options::default() });
        let out = bench.tensor("out", &[0u32; 32]);
        let launched = bench.launch("k", [1, 1, 1], [*threads, 1, 1], 0, &[out, Integer(0)]);
        let fault = launched.fault.unwrap_or_else(|| panic!("no fault: {body}"));
        assert_eq!(fault.kind, *kind, "{body}: {fault}");
        assert_eq!(fault.kernel, "k");
        assert!(fault.site.as_ref().is_some_and(|site| site.line > 17), "{body}: {fault}");
    }
}

#[test]
fn a_fault_names_the_tensor_and_the_thread() {
    let fault = fault("st.global.u32 [%out], 1;", 64, FaultKind::OutOfBounds);
    let text = fault.to_string();
    assert!(text.contains("`out`") || text.contains("out"), "{text}");
    assert_eq!(fault.thread.and_then(|thread| thread.thread), Some([32, 0, 0]), "{text}");
    let site = fault.site.expect("a place");
    assert_eq!(site.instruction, "st.global.u32");
}

#[test]
fn the_first_block_that_goes_wrong_is_told_whatever_the_number_of_host_threads() {
    let text = kernel("mov.u32 %r1, %ctaid.x; setp.gt.u32 %p0, %r1, 10; @%p0 ld.global.u32 %r0, [%in];");
    for threads in [1, 3] {
        let mut bench = Bench::with("sm_80", &text, Options { threads, ..Options::default() });
        let out = bench.tensor("out", &[0u32; 32]);
        let launched = bench.launch("k", [100, 1, 1], [32, 1, 1], 0, &[out, Pointer(0)]);
        let fault = launched.fault.expect("a fault");
        assert_eq!(fault.thread.map(|thread| thread.block), Some([11, 0, 0]));
    }
}

#[test]
fn a_launch_ends_once_that_is_asked_for() {
    // One block without end; many, of which the thread that asks runs none after its own; very many that end at once; blocks
    // that run in turn, since they wait for each other.
    // All of them count: a loop that does nothing else would be told at once.
    let forever = "LOOP: add.u32 %r3, %r3, 1; bra.uni LOOP;";
    let rest_forever = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; @%p0 bra END; LOOP: add.u32 %r3, %r3, 1; bra.uni LOOP; END: ret;";
    let waiting =
        "WAIT: ld.acquire.gpu.global.u32 %r0, [%out]; add.u32 %r3, %r3, 1; setp.eq.u32 %p0, %r0, 0; @%p0 bra WAIT;";
    let cases = [(forever, 1), (forever, 8), (rest_forever, 2), ("mov.u32 %r1, 1;", u32::MAX >> 1), (waiting, 3)];
    for (body, blocks) in cases {
        for threads in [1, 2] {
            let asked = Arc::new(AtomicU32::new(0));
            let count = Arc::clone(&asked);
            let cancel = Some(Cancel::when(move || count.fetch_add(1, Relaxed) >= 1));
            let options = Options { threads, cancel, budget: u64::MAX, ..Options::default() };
            let mut bench = Bench::with("sm_80", &kernel(body), options);
            let out = bench.tensor("out", &[0u32; 32]);
            let launched = bench.launch("k", [blocks, 1, 1], [32, 1, 1], 0, &[out, Integer(0)]);
            let fault = launched.fault.unwrap_or_else(|| panic!("{body}: no fault"));
            assert_eq!(fault.kind, FaultKind::Cancelled, "{body}: {fault}");
            assert_eq!(asked.load(Relaxed), 2, "{body}");
        }
    }
    // Nothing is lost where the answer is no.
    let options = Options { cancel: Some(Cancel::when(|| false)), ..Options::default() };
    let mut bench = Bench::with("sm_80", &kernel("st.global.u32 [%out], 3;"), options);
    let out = bench.tensor("out", &[0u32; 32]);
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), Integer(0)]);
    assert_eq!(bench.read::<u32>(&out, 2), [3, 3]);
}

#[test]
fn recursion_without_end_is_a_fault() {
    let text = ".version 8.5
.target sm_80
.address_size 64
.func f()
{
    call.uni f;
    ret;
}
.visible .entry k()
{
    call.uni f;
    ret;
}
";
    let mut bench = Bench::new(text);
    bench.fault([1, 1, 1], [32, 1, 1], &[], FaultKind::StackOverflow);
    bench.fault([1, 1, 1], [1, 1, 1], &[], FaultKind::StackOverflow);
}

#[test]
fn a_failed_assertion_says_what_it_says() {
    let text = ".version 8.5
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s) .noreturn;
.global .align 1 .b8 message[8] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[8] = {97, 46, 99, 117, 0};
.global .align 1 .b8 function[8] = {102, 0};
.visible .entry k()
{
    .reg .b64 %d<4>;
    mov.u64 %d0, message;
    mov.u64 %d1, file;
    mov.u64 %d2, function;
    {
        .param .b64 m;
        .param .b64 f;
        .param .b32 l;
        .param .b64 n;
        .param .b64 s;
        st.param.b64 [m], %d0;
        st.param.b64 [f], %d1;
        st.param.b32 [l], 12;
        st.param.b64 [n], %d2;
        st.param.b64 [s], 1;
        call.uni __assertfail, (m, f, l, n, s);
    }
    trap;
}
";
    let mut bench = Bench::new(text);
    let fault = bench.fault([1, 1, 1], [32, 1, 1], &[], FaultKind::Assert);
    assert_eq!(fault.detail, "a.cu:12: f: x > 0");
}
