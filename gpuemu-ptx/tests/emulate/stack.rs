//! Stacks that grow while threads run, and copies that arrive at an mbarrier.

use crate::bench::{Bench, kernel};
use gpuemu_ptx::emulate::Options;
use gpuemu_ptx::fault::{Fault, FaultKind};

const THREADS: u32 = 64;

/// What each of 64 threads left in its four bytes of `out`, or the fault, where `in` holds 1000, 1001 and so on.
fn run(text: &str) -> Result<Vec<u32>, Box<Fault>> {
    let mut bench = Bench::with("sm_80", text, Options { threads: 1, budget: 1 << 20, ..Options::default() });
    let out = bench.tensor("out", &[0u32; THREADS as usize]);
    let from: Vec<u32> = (1000..1000 + THREADS).collect();
    let from = bench.tensor("in", &from);
    let launched = bench.launch("k", [1, 1, 1], [THREADS, 1, 1], 0, &[out.clone(), from]);
    match launched.fault {
        Some(fault) => Err(Box::new(fault)),
        None => Ok(bench.read(&out, THREADS as usize)),
    }
}

fn lanes(value: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..THREADS).map(value).collect()
}

#[test]
fn what_is_taken_is_each_threads_own() {
    let two = "
    alloca.u64 %d1, 16;
    st.local.u32 [%d1], %lane;
    st.local.u32 [%d1+12], 7;
    alloca.u64 %d2, 40, 32;
    st.local.u32 [%d2], 99;
    st.local.u32 [%d2+36], 98;
    and.b64 %d3, %d2, 31;
    cvt.u32.u64 %r3, %d3;
    ld.local.u32 %r1, [%d1];
    ld.local.u32 %r2, [%d1+12];
    mad.lo.u32 %r1, %r1, 10, %r2;
    mad.lo.u32 %r1, %r3, 1000, %r1;
    st.global.u32 [%out], %r1;";
    assert_eq!(run(&kernel(two)).unwrap(), lanes(|lane| lane * 10 + 7));
    // Each thread takes as much as it likes, the odd ones nothing.
    let sizes = "
    stacksave.u64 %d1;
    shl.b32 %r1, %lane, 3;
    cvt.u64.u32 %d2, %r1;
    and.b32 %r2, %lane, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 alloca.u64 %d3, %d2;
    stacksave.u64 %d4;
    sub.u64 %d5, %d1, %d4;
    cvt.u32.u64 %r3, %d5;
    st.global.u32 [%out], %r3;";
    assert_eq!(run(&kernel(sizes)).unwrap(), lanes(|lane| if lane % 2 == 0 { 8 * lane } else { 0 }));
    let narrow = "alloca.u32 %r1, 8; st.local.u32 [%r1], %lane; ld.local.u32 %r2, [%r1]; st.global.u32 [%out], %r2;";
    assert_eq!(run(&kernel(narrow)).unwrap(), lanes(|lane| lane));
}

/// A frame of one call is not what the next one left, and what nothing wrote is no number to rely on.
#[test]
fn what_a_thread_reads_where_it_wrote_nothing() {
    let body = ".local .b32 array[2]; mov.u64 %d0, array;
    and.b32 %r1, %lane, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 st.local.u32 [%d0], %lane;
    ld.local.u32 %r2, [%d0];
    st.global.u32 [%out], %r2;";
    assert_eq!(run(&kernel(body)).unwrap(), lanes(|lane| if lane % 2 == 0 { lane } else { 0x7fc0_dead }));
}

/// A thousand rounds, of which each takes a KiB.
fn rounds(round: &str) -> String {
    let body = "mov.u32 %r1, 0; L: ROUND add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1000; @%p1 bra L; st.global.u32 [%out], %r1;";
    let function = "
.func taker(.param .b32 deep)
{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>;
    ld.param.b32 %r1, [deep];
    alloca.u64 %d1, 1024;
    st.local.u32 [%d1+1020], %r1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    alloca.u64 %d2, 512;
    st.local.u32 [%d2], 5;
    ret;
}
.visible .entry";
    kernel(&body.replace("ROUND", round)).replacen(".visible .entry", function, 1)
}

#[test]
fn what_is_given_back_is_there_again() {
    let restored = rounds("stacksave.u64 %d1; alloca.u64 %d2, 1024; st.local.u32 [%d2], %r1; stackrestore.u64 %d1;");
    assert_eq!(run(&restored).unwrap(), lanes(|_| 1000));
    // A function's own ends with it, at either of its returns.
    let called = rounds("and.b32 %r2, %lane, 1; { .param .b32 a; st.param.b32 [a], %r2; call.uni taker, (a); }");
    assert_eq!(run(&called).unwrap(), lanes(|_| 1000));
    let kept = run(&rounds("alloca.u64 %d2, 1024;")).expect_err("a MiB is more than there is");
    assert_eq!(kept.kind, FaultKind::StackOverflow);
    let text = kept.to_string();
    assert!(text.contains(": alloca.u64") && text.contains("it asks for 1024 bytes, and "), "{text}");
}

#[test]
fn stacks_that_cannot_be() {
    let table = [
        ("mov.u64 %d1, -1; alloca.u64 %d2, %d1;", FaultKind::StackOverflow, "it asks for 18446744073709551615 bytes"),
        ("alloca.u64 %d2, 1048576;", FaultKind::StackOverflow, "it asks for 1048576 bytes"),
        ("mov.u64 %d1, 12345678; stackrestore.u64 %d1;", FaultKind::IllegalInstruction, "0xbc614e is no stack pointer"),
        (
            "stacksave.u64 %d1; sub.u64 %d1, %d1, 8; stackrestore.u64 %d1;",
            FaultKind::IllegalInstruction,
            "is no stack pointer",
        ),
        ("alloca.u64 %d1, 8; ld.local.u32 %r1, [%d1+4194304];", FaultKind::OutOfBounds, "local memory"),
    ];
    for (body, kind, says) in table {
        let fault = run(&kernel(body)).expect_err(body);
        assert_eq!(fault.kind, kind, "{body}: {fault}");
        assert!(fault.to_string().contains(says), "{body}: {fault}");
    }
}

/// Every thread copies its number to shared memory, `ARRIVES` and, where it `WAITS`, reads that of the other warp.
const COPIES: &str = "
    .shared .align 16 .b8 tile[256];
    .shared .align 8 .b64 bar;
    setp.ne.u32 %p1, %lane, 0;
    @!%p1 mbarrier.init.shared.b64 [bar], 64;
    bar.sync 0;
    mov.u32 %r1, tile;
    shl.b32 %r2, %lane, 2;
    add.u32 %r3, %r1, %r2;
    cvt.u64.u32 %d1, %r2;
    add.u64 %d2, %in, %d1;
    cp.async.ca.shared.global [%r3], [%d2], 4;
    ARRIVES
    WAITS
    xor.b32 %r4, %r2, 128;
    add.u32 %r4, %r1, %r4;
    ld.shared.u32 %r5, [%r4];
    st.global.u32 [%out], %r5;";

#[test]
fn copies_arrive_at_an_mbarrier() {
    let waits = "W: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;";
    let counted = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];";
    let added = "cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 %d3, [bar];";
    let generic =
        "mov.u32 %r6, bar; cvt.u64.u32 %d4, %r6; cvta.shared.u64 %d4, %d4; cp.async.mbarrier.arrive.noinc.b64 [%d4];";
    let run = |arrives: &str, waits: &str| run(&kernel(&COPIES.replace("ARRIVES", arrives).replace("WAITS", waits)));
    for arrives in [counted, added, generic] {
        assert_eq!(run(arrives, waits).unwrap(), lanes(|lane| 1000 + (lane ^ 32)), "{arrives}");
        let race = run(arrives, "").expect_err("nobody waited");
        assert_eq!(race.kind, FaultKind::SharedRace, "{arrives}: {race}");
    }
    // An arrival that was added to those expected completes nothing.
    let none = run("cp.async.mbarrier.arrive.shared.b64 [bar];", waits).expect_err("it never completes");
    assert_eq!(none.kind, FaultKind::Deadlock, "{none}");
    let outside = run("cp.async.mbarrier.arrive.noinc.shared.b64 [bar+4096];", "").expect_err("no barrier is there");
    assert_eq!(outside.kind, FaultKind::OutOfBounds, "{outside}");
}
