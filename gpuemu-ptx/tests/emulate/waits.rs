//! Threads that wait: those that wait for ever are told at once, and none that would go on.

use crate::bench::{Argument, Bench, kernel};
use gpuemu_ptx::emulate::Options;
use gpuemu_ptx::fault::{Fault, FaultKind};

/// Many more instructions than it takes to find out: a launch that runs so long is a failure, not a test that hangs.
const ENOUGH: u64 = 1 << 24;

fn bench(body: &str, threads: usize, seed: Option<u64>) -> (Bench, [Argument; 2]) {
    let body = format!(".shared .align 8 .b32 s[64];\n{body}");
    let options = Options { threads, seed, budget: ENOUGH, ..Options::default() };
    let mut bench = Bench::with("sm_80", &kernel(&body), options);
    let out = bench.tensor("out", &[0u32; 1 << 16]);
    let flags = bench.tensor("flags", &[1u32, 0, 0, 0]);
    (bench, [out, flags])
}

/// A lock that is taken from the beginning.
const TAKEN: &str = "L: atom.global.cas.b32 %r0, [%in], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra L;";
/// Each thread takes the lock, and gives it back never.
const KEPT: &str = "L: atom.global.cas.b32 %r0, [%in+4], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra L;";
/// A flag that nobody sets, and a sleep that gets longer.
const SLEEPS: &str = "mov.u32 %r1, 8; L: ld.volatile.global.u32 %r0, [%in+8]; setp.ne.u32 %p0, %r0, 0; @%p0 bra E;
    nanosleep.u32 %r1; add.u32 %r1, %r1, %r1; min.u32 %r1, %r1, 256; bra L; E:";
/// The first thread waits for a flag, the others at a barrier.
const FIRST: &str = "setp.ne.u32 %p1, %lane, 0; @%p1 bra B;
    L: ld.acquire.gpu.global.u32 %r0, [%in+8]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; B: bar.sync 0;";
/// Each of two blocks waits for the other's flag before it sets its own.
const CROSSED: &str = "mov.u32 %r2, %ctaid.x; mul.wide.u32 %d0, %r2, 4; add.u64 %d1, %in, %d0; xor.b32 %r3, %r2, 1;
    mul.wide.u32 %d2, %r3, 4; add.u64 %d2, %in, %d2;
    L: ld.acquire.gpu.global.u32 %r0, [%d2+8]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; st.release.gpu.global.u32 [%d1+8], 1;";
/// As compilers of tiles write it: one thread asks, all learn the answer through shared memory.
const TOGETHER: &str = "mov.u32 %r5, s; setp.eq.u32 %p1, %lane, 0;
    L: @%p1 atom.acq_rel.gpu.global.cas.b32 %r0, [%in], 0, 1; @%p1 st.shared.u32 [%r5], %r0; bar.sync 0;
    ld.shared.u32 %r1, [%r5]; bar.sync 0; setp.ne.u32 %p0, %r1, 0; @%p0 bra L;";
/// A flag in shared memory.
const SHARED: &str = "mov.u32 %r5, s; setp.eq.u32 %p1, %lane, 0; @%p1 st.shared.u32 [%r5], 3; bar.sync 0;
    L: ld.volatile.shared.u32 %r0, [%r5]; setp.ne.u32 %p0, %r0, 4; @%p0 bra L;";
/// A flag read by a plain load.
const PLAIN: &str = "L: ld.global.u32 %r0, [%in+4]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;";
/// A flag that is read now and then.
const SELDOM: &str = "L: ld.volatile.global.u32 %r0, [%in+8]; mov.u32 %r2, 0;
    M: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra M; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;";
/// An mbarrier for one arrival more than there are.
const ARRIVALS: &str = "mov.u32 %r5, s; setp.eq.u32 %p1, %lane, 0; @%p1 mbarrier.init.shared.b64 [%r5], 65; bar.sync 0;
    mbarrier.arrive.shared.b64 %d0, [%r5]; L: mbarrier.try_wait.shared.b64 %p0, [%r5], %d0; @!%p0 bra L;";
/// Every block waits until all have come.
const GRID: &str =
    "mov.u32 %r9, %nctaid.x; setp.ne.u32 %p1, %lane, 0; @%p1 bra B; atom.add.acq_rel.gpu.global.u32 %r0, [%in+8], 1;
    L: ld.acquire.gpu.global.u32 %r0, [%in+8]; setp.lt.u32 %p0, %r0, %r9; @%p0 bra L; B: bar.sync 0;";

#[test]
fn threads_that_wait_for_ever_are_told() {
    let deadlock = FaultKind::Deadlock;
    let table: &[(&str, u32, u32, FaultKind, &[&str])] = &[
        (
            TAKEN,
            1,
            1,
            deadlock,
            &[
                "deadlock in k\n  at PTX line 19: atom.global.cas.b32",
                "thread (0, 0, 0) of block (0, 0, 0) atomically updates 4 bytes",
                "0 bytes into flags, of 16 bytes",
                "it waits for another value than 1, and no thread is left that could write one",
                "cudaErrorLaunchTimeout (702)",
            ],
        ),
        (TAKEN, 3, 64, deadlock, &["192 threads wait for another value than 1"]),
        (
            KEPT,
            1,
            64,
            deadlock,
            &["thread (1, 0, 0)", "4 bytes into flags", "63 threads wait for another value than 1"],
        ),
        (KEPT, 2, 64, deadlock, &["127 threads wait"]),
        (
            SLEEPS,
            2,
            32,
            deadlock,
            &["ld.volatile.global.u32", "8 bytes into flags", "64 threads wait for another value than 0"],
        ),
        (
            FIRST,
            2,
            64,
            deadlock,
            &[
                "PTX line 20: ld.acquire.gpu.global.u32",
                "2 threads wait for another value than 0",
                "126 threads, the first thread (1, 0, 0) of block (0, 0, 0), wait at the barrier at PTX line 20",
            ],
        ),
        (
            CROSSED,
            2,
            1,
            deadlock,
            &[
                "thread (0, 0, 0) of block (0, 0, 0) reads 4 bytes",
                "12 bytes into flags",
                "thread (0, 0, 0) of block (1, 0, 0) waits",
            ],
        ),
        (
            TOGETHER,
            1,
            128,
            deadlock,
            &["atom.acq_rel.gpu.global.cas.b32", "0 bytes into flags", "waits for another value than 1"],
        ),
        (TOGETHER, 4, 128, deadlock, &["atom.acq_rel.gpu.global.cas.b32", "4 threads wait for another value than 1"]),
        (SHARED, 1, 64, deadlock, &["ld.volatile.shared.u32", "into shared memory", "another value than 3"]),
        (PLAIN, 1, 32, deadlock, &["ld.global.u32", "4 bytes into flags", "another value than 0"]),
        (PLAIN, 40, 32, deadlock, &["1280 threads wait for another value than 0"]),
        (SELDOM, 2, 64, deadlock, &["ld.volatile.global.u32", "128 threads wait for another value than 0"]),
        (ARRIVALS, 1, 64, deadlock, &["mbarrier.try_wait.shared.b64", "into shared memory", "64 threads wait"]),
        (
            GRID,
            4000,
            32,
            deadlock,
            &["for another value than 3456", "544 blocks have not begun: 3456 are on the device at once"],
        ),
        ("L: bra L;", 3, 64, FaultKind::Endless, &["kernel does not end in k", "comes back here for ever"]),
        ("L: bar.sync 0; bra L;", 1, 64, FaultKind::Endless, &["comes back here for ever"]),
        ("L: nanosleep.u32 1000000; bra L;", 2, 64, FaultKind::Endless, &["comes back here for ever"]),
        (
            "setp.ge.u32 %p0, %lane, 32; @%p0 bra B; L: bra L; B: bar.sync 0;",
            1,
            64,
            FaultKind::Endless,
            &[
                "comes back here for ever",
                "32 threads, the first thread (32, 0, 0) of block (0, 0, 0), wait at the barrier",
            ],
        ),
    ];
    for (body, blocks, threads, kind, parts) in table {
        for (host, seed) in [(1, None), (2, Some(5))] {
            let (mut bench, arguments) = bench(body, host, seed);
            let launched = bench.launch("k", [*blocks, 1, 1], [*threads, 1, 1], 0, &arguments);
            let fault: Fault = launched.fault.unwrap_or_else(|| panic!("it ends: {body}"));
            let text = fault.to_string();
            assert_eq!(fault.kind, *kind, "{text}\n{body}");
            // Who comes first hangs on the order.
            for part in parts.iter().filter(|_| seed.is_none()) {
                assert!(text.contains(part), "{part:?} is not in {text}\n{body}");
            }
        }
    }
}

/// Waits for the flag as long as a counter lasts.
const COUNTS: &str =
    "mov.u32 %r1, 0; L: ld.volatile.global.u32 %r0, [%in+8]; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 300000;
    @%p0 bra L; st.global.u32 [%out], 5;";
/// Waits for it until a clock says that it took too long.
const CLOCK: &str =
    "mov.u64 %d0, %clock64; L: ld.volatile.global.u32 %r0, [%in+8]; mov.u64 %d1, %clock64; sub.u64 %d1, %d1, %d0;
    setp.lt.u64 %p0, %d1, 300000; @%p0 bra L; st.global.u32 [%out], 5;";
/// Counts in memory, and nowhere else.
const COUNTER: &str = "setp.ne.u32 %p1, %lane, 0; @%p1 bra E; L: atom.global.add.u32 %r0, [%in+8], 1;
    ld.volatile.global.u32 %r0, [%in+8]; setp.lt.u32 %p0, %r0, 50000; @%p0 bra L; E: st.global.u32 [%out], 5;";
/// Counts in shared memory, with a barrier in each round.
const ROUNDS: &str = "mov.u32 %r5, s; setp.eq.u32 %p1, %lane, 0; @%p1 st.shared.u32 [%r5], 0; bar.sync 0;
    L: ld.shared.u32 %r0, [%r5]; bar.sync 0; @%p1 add.u32 %r1, %r0, 1; @%p1 st.shared.u32 [%r5], %r1; bar.sync 0;
    setp.lt.u32 %p0, %r0, 20000; @%p0 bra L; st.global.u32 [%out], 5;";
/// The first block waits for a flag that the last one sets, by a plain store to a plain load, as nobody should.
const LAST: &str =
    "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; sub.u32 %r3, %r3, 1; setp.eq.u32 %p1, %r2, %r3; @%p1 bra S;
    setp.ne.u32 %p2, %r2, 0; @%p2 bra E; L: ld.global.u32 %r0, [%in+4]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L;
    st.global.u32 [%out], 5; bra E; S: setp.eq.u32 %p3, %lane, 0; @%p3 st.global.u32 [%in+4], 1; E:";
/// Each block waits for the one after it, which begins later.
const CHAIN: &str = "setp.ne.u32 %p1, %lane, 0; @%p1 bra E; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; sub.u32 %r3, %r3, 1;
    mul.wide.u32 %d0, %r2, 4; ld.param.u64 %d1, [out]; add.u64 %d1, %d1, %d0; setp.eq.u32 %p2, %r2, %r3; @%p2 bra S;
    L: ld.acquire.gpu.global.u32 %r0, [%d1+4]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; S: st.release.gpu.global.u32 [%d1], 5; E:";
/// A lane waits for another of its warp.
const LANES: &str = "mov.u32 %r5, s; st.shared.u32 [%r5], 0; bar.sync 0; setp.eq.u32 %p1, %lane, 31; @%p1 bra S; setp.ne.u32 %p2, %lane, 0;
    @%p2 bra E; L: ld.volatile.shared.u32 %r0, [%r5]; setp.eq.u32 %p0, %r0, 0; @%p0 bra L; st.global.u32 [%out], 5; bra E;
    S: st.volatile.shared.u32 [%r5], 1; E:";
/// Every thread for itself takes a lock, counts and gives it back.
const LOCK: &str = "L: atom.acquire.gpu.global.cas.b32 %r0, [%in+4], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra L;
    ld.param.u64 %d1, [out]; ld.relaxed.gpu.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.relaxed.gpu.global.u32 [%d1], %r1;
    atom.release.gpu.global.exch.b32 %r0, [%in+4], 0;";
/// Counts in a loop whose every round has a loop in it that waits.
const DELAY: &str = "mov.u32 %r1, 0; L: ld.volatile.global.u32 %r0, [%in+8]; mov.u32 %r2, 0;
    M: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra M; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 3000; @%p0 bra L;
    st.global.u32 [%out], 5;";
/// Two words that take turns: what is read is now the one, now the other.
const TURNS: &str = "setp.ne.u32 %p1, %lane, 0; @%p1 bra E; mov.u32 %r1, 0; L: xor.b32 %r2, %r1, 1; cvt.u64.u32 %d0, %r1; shl.b64 %d0, %d0, 2;
    add.u64 %d0, %d0, %in; atom.global.add.u32 %r0, [%d0+8], 1; mov.u32 %r1, %r2; setp.lt.u32 %p0, %r0, 3000; @%p0 bra L;
    E: st.global.u32 [%out], 5;";

#[test]
fn threads_that_go_on_are_not_told() {
    let table: &[(&str, u32, u32, u32)] = &[
        (COUNTS, 1, 32, 5),
        (CLOCK, 1, 32, 5),
        (COUNTER, 1, 32, 5),
        (ROUNDS, 1, 64, 5),
        (CHAIN, 60, 32, 5),
        (LANES, 1, 32, 5),
        (LOCK, 2, 96, 192),
        (TURNS, 1, 32, 5),
        (GRID, 3000, 32, 0),
        (BLOCKS, 200, 128, 200),
        (DELAY, 1, 32, 5),
    ];
    for (body, blocks, threads, expected) in table {
        for (host, seed) in [(1, None), (2, Some(3))] {
            let (mut bench, arguments) = bench(body, host, seed);
            let launched = bench.launch("k", [*blocks, 1, 1], [*threads, 1, 1], 0, &arguments);
            if let Some(fault) = launched.fault {
                panic!("{fault}\n{body}");
            }
            assert_eq!(bench.read::<u32>(&arguments[0], 1), [*expected], "{body}");
        }
    }
}

/// A lock of whole blocks, as compilers of tiles write it: one thread asks, and all go on with the answer.
const BLOCKS: &str = "mov.u32 %r5, s; setp.eq.u32 %p1, %lane, 0;
    L: @%p1 atom.acq_rel.gpu.global.cas.b32 %r0, [%in+4], 0, 1; @%p1 st.shared.u32 [%r5], %r0; bar.sync 0;
    ld.shared.u32 %r1, [%r5]; bar.sync 0; setp.ne.u32 %p0, %r1, 0; @%p0 bra L;
    ld.param.u64 %d1, [out]; @%p1 ld.global.u32 %r2, [%d1]; bar.sync 0; mov.u32 %r3, 0;
    M: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 1000; @%p2 bra M;
    @%p1 add.u32 %r2, %r2, 1; @%p1 st.global.u32 [%d1], %r2; bar.sync 0;
    @%p1 atom.acq_rel.gpu.global.exch.b32 %r0, [%in+4], 0;";

#[test]
fn a_block_that_waits_for_a_later_one_goes_on_after_it() {
    for host in [1, 2] {
        let options = Options { threads: host, budget: ENOUGH, ..Options::default() };
        let unwatched = gpuemu_ptx::emulate::Sanitizers { races: false, ..options.sanitizers };
        let mut bench = Bench::with("sm_80", &kernel(LAST), Options { sanitizers: unwatched, ..options });
        let out = bench.tensor("out", &[0u32; 64]);
        let flags = bench.tensor("flags", &[0u32; 4]);
        let arguments = [out, flags];
        let launched = bench.launch("k", [300, 1, 1], [32, 1, 1], 0, &arguments);
        assert_eq!(launched.fault.map(|fault| fault.to_string()), None);
        assert_eq!(bench.read::<u32>(&arguments[0], 1), [5]);
    }
}

/// A lock of every thread for itself hands over in a few instructions, not in the thousands that a loop is given.
#[test]
fn a_lock_is_handed_over_soon() {
    let (mut bench, arguments) = bench(LOCK, 1, None);
    let launched = bench.launch("k", [4, 1, 1], [256, 1, 1], 0, &arguments);
    assert_eq!(launched.fault.map(|fault| fault.to_string()), None);
    assert_eq!(bench.read::<u32>(&arguments[0], 1), [1024]);
    assert!(launched.instructions < 1024 * 1000, "{} instructions", launched.instructions);
}
