//! What hardware does not tell: races, reads of memory that nothing wrote, writes to inputs. And that kernels which are
//! right raise nothing.

use crate::bench::{Bench, Pointer, kernel};
use gpuemu_ptx::emulate::{Options, Sanitizers};
use gpuemu_ptx::fault::{Action, Fault, FaultKind};
use gpuemu_ptx::memory::Role;

fn launch(body: &str, grid: u32, threads: u32, sanitizers: Sanitizers) -> Option<Fault> {
    let options = Options { threads: 1, sanitizers, ..Options::default() };
    let mut bench = Bench::with("sm_80", &kernel(body), options);
    let (out, input) = (bench.tensor("out", &[0u32; 256]), bench.tensor("in", &[1u32; 256]));
    let Pointer(address) = input else { unreachable!() };
    bench.device.memory_mut().declare(address, Role::Input, 4).unwrap();
    bench.launch("k", [grid, 1, 1], [threads, 1, 1], 0, &[out, input]).fault
}

/// Neighbours through shared memory, with or without a barrier between.
fn exchange(between: &str) -> String {
    format!(
        ".shared .align 4 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], 0; bar.sync 0;
    st.shared.u32 [%r2], %lane; {between}
    sub.u32 %r3, 127, %lane; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.u32 %r0, [%r3]; st.global.u32 [%out], %r0;"
    )
}

/// As `exchange`, with nothing in shared memory before: the first warp reads before the last has written.
fn first_exchange(between: &str) -> String {
    format!(
        ".shared .align 4 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], %lane; {between}
    sub.u32 %r3, 127, %lane; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.u32 %r0, [%r3]; st.global.u32 [%out], %r0;"
    )
}

/// Each lane of a warp writes, tiles of so many lanes synchronise, each lane reads what the lane so far away wrote.
fn tiles(lanes: u32, distance: u32) -> String {
    let mask = (1_u32 << lanes) - 1;
    format!(
        ".shared .align 4 .b8 s[256]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], %lane;
         and.b32 %r4, %lane, {}; mov.u32 %r5, {mask}; shl.b32 %r5, %r5, %r4; bar.warp.sync %r5;
         xor.b32 %r3, %lane, {distance}; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.u32 %r0, [%r3];
         st.global.u32 [%out], %r0;",
        32 - lanes
    )
}

/// A sum over tiles of sixteen lanes in shared memory, halved at every step.
fn tile_sum() -> String {
    let step = |apart: u32| {
        format!(
            "bar.warp.sync %r5; setp.lt.u32 %p0, %r6, {apart}; @%p0 ld.shared.u32 %r3, [%r2+{}];
             @%p0 ld.shared.u32 %r0, [%r2]; @%p0 add.u32 %r0, %r0, %r3; @%p0 st.shared.u32 [%r2], %r0;",
            4 * apart
        )
    };
    let steps: String = [8, 4, 2, 1].map(step).concat();
    format!(
        ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], %lane;
         and.b32 %r4, %lane, 16; mov.u32 %r5, 0xffff; shl.b32 %r5, %r5, %r4; and.b32 %r6, %lane, 15; {steps}
         bar.warp.sync %r5; mad.lo.u32 %r3, %r4, 4, %r1; ld.shared.u32 %r0, [%r3]; st.global.u32 [%out], %r0;"
    )
}

/// A matrix that the warp stores to shared memory, or loads from there, and each lane's access to what is `%lane` elements
/// behind its beginning.
fn matrix(between: &str, store: bool) -> String {
    let (all, fragment) = ([0, 128, 256, 384, 512, 640, 768, 896], "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}");
    let each: String = match store {
        true => (0..8).map(|index| format!("mov.f32 %f{index}, 0f3F800000;")).collect(),
        false => all.map(|offset| format!("st.shared.u32 [%r2+{offset}], 0;")).concat(),
    };
    let (of_the_warp, of_each) = match store {
        true => ("store.d", "ld.shared.u32 %r0, [%r2]; st.global.u32 [%out], %r0;"),
        false => ("load.c", "st.shared.u32 [%r2], %lane;"),
    };
    let operands = if store { format!("[%r1], {fragment}") } else { format!("{fragment}, [%r1]") };
    format!(
        ".shared .align 32 .b8 s[1024]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; {each} bar.warp.sync -1;
         wmma.{of_the_warp}.sync.aligned.row.m16n16k16.shared.f32 {operands}; {between} {of_each}"
    )
}

/// A vector of which two elements are written, and a use of one of its elements.
fn half_a_vector(used: &str) -> String {
    format!(
        ".shared .align 16 .b8 s[16]; mov.u32 %r1, s; st.shared.v2.u32 [%r1], {{%lane, %lane}};
    ld.shared.v4.u32 {{%r2, %r3, %r4, %r5}}, [%r1]; st.global.u32 [%out], {used};"
    )
}

/// A mean over lanes so many apart, whose terms all but cancel, stored to one place by all lanes and by all warps, which do
/// the same: where both lanes of a pair combine, each has its own rounding and nothing else.
fn mean(strides: &[u32]) -> String {
    let terms = ".reg .f32 %mean<6>, %other<6>, %apart<6>; .shared .f32 s; and.b32 %r1, %lane, 31; and.b32 %r2, %r1, 1;
        setp.eq.u32 %p0, %r2, 0; sub.u32 %r3, 31, %r1; selp.b32 %r4, %r1, %r3, %p0; shr.u32 %r5, %r4, 1;
        mul.lo.u32 %r6, %r5, 0x9e3779b1; cvt.rn.f32.s32 %f1, %r6; neg.f32 %f2, %f1; selp.f32 %mean0, %f1, %f2, %p0;";
    let stage = |(from, stride): (usize, &u32)| {
        let to = from + 1;
        format!(
            "shfl.sync.bfly.b32 %other{to}, %mean{from}, {stride}, 31, -1; sub.f32 %apart{to}, %other{to}, %mean{from};
             fma.rn.f32 %mean{to}, %apart{to}, 0f3F000000, %mean{from};"
        )
    };
    let stages: String = strides.iter().enumerate().map(stage).collect();
    format!("{terms} {stages} mov.u32 %r7, s; st.shared.f32 [%r7], %mean{};", strides.len())
}

/// Two elements, loaded by every pair of lanes and stored in place by the first one, then exchanged with the lane so far away.
fn in_place(stride: u32) -> String {
    format!(
        "ld.param.u64 %d1, [out]; and.b32 %r1, %lane, 1; mad.wide.u32 %d1, %r1, 4, %d1; setp.lt.u32 %p0, %lane, 2;
         ld.global.u32 %r2, [%d1]; add.u32 %r3, %r2, 1; @%p0 st.global.u32 [%d1], %r3;
         shfl.sync.bfly.b32 %r4, %r2, {stride}, 31, -1; @%p0 st.global.u32 [%d1+16], %r4;"
    )
}

/// A number that one block sets and all of them count up, with orders that would hand it over.
fn counted(which: &str) -> String {
    format!(
        "ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %lane, 0; @%p1 exit; setp.{which};
         @%p0 st.global.u32 [%d1], 0; atom.acq_rel.gpu.global.add.u32 %r0, [%d1], 1;"
    )
}

/// Warps that part at a barrier of the block.
const PASSED: [&str; 4] = [
    "setp.lt.u32 %p0, %lane, 32; @!%p0 bra B; bar.sync 0; B: st.global.u32 [%out], %lane;",
    // The last turn of a loop, which only the first warp takes.
    "setp.lt.u32 %p0, %lane, 32; selp.u32 %r0, 3, 2, %p0; L: bar.sync 0; sub.u32 %r0, %r0, 1; setp.ne.u32 %p1, %r0, 0;
     @%p1 bra L; st.global.u32 [%out], %lane;",
    // The other warp waits at the next barrier.
    "setp.lt.u32 %p0, %lane, 32; @!%p0 bra B; bar.sync 0; B: st.global.u32 [%out], %lane; bar.sync 0;
     st.global.u32 [%out], 0;",
    "setp.lt.u32 %p0, %lane, 32; @!%p0 bra B; barrier.sync.aligned 0; B: st.global.u32 [%out], %lane; @%p0 bra C; C: ret;",
];

/// And warps that do not: they left before, or each waits at a barrier of its own.
const MET: [&str; 5] = [
    "setp.ge.u32 %p0, %lane, 32; @%p0 bra END; bar.sync 0; st.global.u32 [%out], %lane; END:",
    "setp.ge.u32 %p0, %lane, 32; @%p0 exit; bar.sync 0; st.global.u32 [%out], %lane; bar.sync 0;",
    "setp.lt.u32 %p0, %lane, 32; @!%p0 bra B; bar.sync 0; bra.uni C; B: bar.sync 0; C: st.global.u32 [%out], %lane;",
    // One that leaves in the middle of a loop.
    "setp.lt.u32 %p0, %lane, 32; selp.u32 %r0, 3, 2, %p0; L: st.global.u32 [%out], %r0; sub.u32 %r0, %r0, 1;
     setp.eq.u32 %p1, %r0, 0; @%p1 exit; bar.sync 0; bra.uni L;",
    // A barrier of so many threads is nobody else's.
    "setp.lt.u32 %p0, %lane, 32; @!%p0 bra B; bar.sync 1, 32; B: st.global.u32 [%out], %lane;",
];

#[test]
fn barriers_that_warps_pass_by() {
    for body in PASSED {
        let fault = launch(body, 1, 64, Sanitizers::ALL).unwrap_or_else(|| panic!("nothing found: {body}"));
        assert_eq!(fault.kind, FaultKind::BarrierPassed, "{body}: {fault}");
        assert!(fault.site.as_ref().is_some_and(|site| site.instruction.starts_with("bar")), "{fault}");
        assert_eq!(fault.thread.and_then(|thread| thread.thread), Some([0, 0, 0]), "{fault}");
        assert!(fault.detail.contains("threads 32 to 63"), "{fault}");
        assert_eq!(launch(body, 1, 64, Sanitizers::NONE), None, "hardware goes on: {body}");
    }
    for body in MET {
        assert_eq!(launch(body, 1, 64, Sanitizers::ALL), None, "{body}");
    }
}

#[test]
fn a_reader_that_comes_before_the_writer_races_with_it() {
    let fault = launch(&first_exchange(""), 1, 128, Sanitizers::ALL).expect("a fault");
    assert_eq!(fault.kind, FaultKind::SharedRace, "{fault}");
    let accessed = fault.accessed.as_ref().expect("an access");
    assert_eq!((accessed.action, accessed.bytes), (Action::Write, 4), "{fault}");
    let other = fault.other.as_ref().expect("the reader");
    assert_eq!(other.action, Action::Read, "{fault}");
    assert!(other.site.instruction.starts_with("ld.shared"), "{fault}");
    assert_eq!(launch(&first_exchange("bar.sync 0;"), 1, 128, Sanitizers::ALL), None);
    // What nobody writes stays what it is.
    let nobody = first_exchange("").replace("st.shared.u32 [%r2], %lane;", "");
    assert_eq!(launch(&nobody, 1, 128, Sanitizers::ALL).expect("a fault").kind, FaultKind::UninitialisedRead);
}

#[test]
fn every_finding_has_its_kind() {
    let cases: &[(&str, u32, u32, FaultKind)] = &[
        (&exchange(""), 1, 128, FaultKind::SharedRace),
        // A barrier of one warp does not order two.
        (&exchange("bar.warp.sync -1;"), 1, 128, FaultKind::SharedRace),
        // Nor do the barriers of two tiles order one with the other.
        (&tiles(16, 16), 1, 32, FaultKind::SharedRace),
        (&tiles(8, 8), 1, 32, FaultKind::SharedRace),
        // Which lane has which element of a matrix is not for kernels to know.
        (&matrix("", true), 1, 32, FaultKind::SharedRace),
        (&matrix("", false), 1, 32, FaultKind::SharedRace),
        (".shared .b32 s[32]; mov.u32 %r1, s; ld.shared.u32 %r0, [%r1];", 1, 32, FaultKind::UninitialisedRead),
        (&half_a_vector("%r4"), 1, 1, FaultKind::UninitialisedRead),
        // Every block adds to one number, unordered.
        (
            "setp.ne.u32 %p0, %lane, 0; @%p0 exit; ld.global.u32 %r0, [%out]; add.u32 %r0, %r0, 1;
             st.global.u32 [%out], %r0;",
            8,
            32,
            FaultKind::GlobalRace,
        ),
        // The first block, or the last one, initialises what all count up.
        (&counted("eq.u32 %p0, %r1, 0"), 2, 32, FaultKind::GlobalRace),
        (&counted("eq.u32 %p0, %r1, 0"), 5, 32, FaultKind::GlobalRace),
        (&counted("eq.u32 %p0, %r1, 4"), 5, 32, FaultKind::GlobalRace),
        // Read through the cache for constants after it was written.
        (
            "st.global.u32 [%out], %lane; bar.sync 0; ld.global.nc.u32 %r0, [%out]; st.global.u32 [%wide+512], %r0;",
            1,
            32,
            FaultKind::StaleRead,
        ),
        ("st.global.u32 [%in], 1;", 1, 1, FaultKind::InputWritten),
        // A scalar that all threads load and one of them stores: the others use what they loaded, whichever it was.
        (
            "ld.param.u64 %d1, [out]; ld.global.u32 %r0, [%d1]; add.u32 %r1, %r0, 1; setp.eq.u32 %p0, %lane, 0;
             @%p0 st.global.u32 [%d1], %r1; add.u64 %out, %out, 256; st.global.u32 [%out], %r0;",
            1,
            64,
            FaultKind::GlobalRace,
        ),
        // The first pair takes over what the second has loaded: from where, nothing orders.
        (&in_place(2), 1, 32, FaultKind::GlobalRace),
        // Two lanes have what they did not combine.
        (&mean(&[16, 8, 4, 2]), 1, 32, FaultKind::SharedRace),
        // The copy is read before it is waited for.
        (
            ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; shl.b32 %r2, %lane, 4; add.u32 %r1, %r1, %r2;
             mad.wide.u32 %d0, %lane, 16, %in; cp.async.cg.shared.global [%r1], [%d0], 16; cp.async.commit_group;
             ld.shared.u32 %r3, [%r1];",
            1,
            32,
            FaultKind::SharedRace,
        ),
    ];
    for (body, grid, threads, kind) in cases {
        let fault = launch(body, *grid, *threads, Sanitizers::ALL).unwrap_or_else(|| panic!("nothing found: {body}"));
        assert_eq!(fault.kind, *kind, "{body}: {fault}");
        assert!(fault.site.as_ref().is_some_and(|site| site.line > 17), "{fault}");
        if matches!(kind, FaultKind::SharedRace | FaultKind::GlobalRace) {
            let other = fault.other.as_ref().expect("the other side");
            assert!(other.site.line > 17, "{fault}");
        }
        // Hardware would go on.
        let off = launch(body, *grid, *threads, Sanitizers::NONE);
        assert!(off.is_none(), "{body}: {off:?}");
    }
}

#[test]
fn what_is_ordered_raises_nothing() {
    let cases: &[(&str, u32, u32)] = &[
        (&exchange("bar.sync 0;"), 1, 128),
        // Elements that nothing uses may be whatever they are.
        (&half_a_vector("%r3"), 1, 1),
        // Two blocks, each its own part.
        ("mov.u32 %r1, %ctaid.x; mad.wide.u32 %out, %r1, 128, %out; st.global.u32 [%out], %lane;", 2, 32),
        // All write the same value, which is no race that matters.
        ("ld.param.u64 %out, [out]; st.global.u32 [%out], 7;", 1, 32),
        // A lane reads what another of its warp wrote, after they met.
        (
            ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], %lane;
             bar.warp.sync -1; xor.b32 %r3, %lane, 1; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.u32 %r0, [%r3];
             st.global.u32 [%out], %r0;",
            1,
            32,
        ),
        // And after their tile met.
        (&tiles(16, 1), 1, 32),
        (&tiles(16, 8), 1, 64),
        (&tiles(8, 4), 1, 32),
        // A sum over tiles of sixteen in shared memory, halved at every step.
        (&tile_sum(), 1, 32),
        // A matrix and its elements, with a barrier of the warp between.
        (&matrix("bar.warp.sync -1;", true), 1, 32),
        (&matrix("bar.warp.sync -1;", false), 1, 32),
        // A scalar that all threads load and only the one that stores it uses.
        (
            "ld.param.u64 %d1, [out]; setp.eq.u32 %p0, %lane, 0; ld.global.u32 %r0, [%d1]; add.u32 %r1, %r0, 1;
             @%p0 st.global.u32 [%d1], %r1;",
            1,
            64,
        ),
        // The same, where it is worked out after the load who stores, and from what: Triton's order.
        (
            "ld.param.u64 %d1, [out]; and.b32 %r2, %lane, 15; mad.wide.u32 %d1, %r2, 4, %d1; ld.global.u32 %r0, [%d1];
             add.u32 %r1, %r0, 1; and.b32 %r3, %lane, 48; setp.eq.u32 %p0, %r3, 0; @%p0 st.global.u32 [%d1], %r1;",
            1,
            64,
        ),
        // And where lanes exchange what they loaded: both warps sum the same, one stores it.
        (
            "ld.param.u64 %d1, [out]; and.b32 %r2, %lane, 31; mad.wide.u32 %d1, %r2, 4, %d1; ld.global.u32 %r0, [%d1];
             shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1; add.u32 %r1, %r0, %r1;
             setp.lt.u32 %p0, %lane, 32; @%p0 st.global.u32 [%d1], %r1;",
            1,
            64,
        ),
        // Pairs of lanes do what the first pair does, which exchanges what it loaded and stores in place.
        (&in_place(1), 1, 64),
        // A mean that every lane has rounded in its own order.
        (&mean(&[16, 8, 4, 2, 1]), 1, 32),
        (&mean(&[16, 8, 4, 2, 1]), 1, 128),
        // Read through the cache for constants, then written.
        ("ld.global.nc.u32 %r0, [%out]; add.u32 %r0, %r0, 1; st.global.u32 [%out], %r0;", 1, 32),
        // Counted up by all blocks.
        ("ld.param.u64 %out, [out]; red.global.add.u32 [%out], 1;", 8, 32),
        // The copy is waited for.
        (
            ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; shl.b32 %r2, %lane, 4; add.u32 %r1, %r1, %r2;
             mad.wide.u32 %d0, %lane, 16, %in; and.b64 %d0, %d0, -512; cp.async.cg.shared.global [%r1], [%d0], 16;
             cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %r3, [%r1]; st.global.u32 [%out], %r3;",
            1,
            32,
        ),
    ];
    for (body, grid, threads) in cases {
        let fault = launch(body, *grid, *threads, Sanitizers::ALL);
        assert!(fault.is_none(), "{body}: {}", fault.map(|fault| fault.to_string()).unwrap_or_default());
    }
}

/// Two warps that load the same elements, of which the first stores what became of them in place; `USE` stands where the
/// second may use its copies, too. `%r9` is 1.
const COPIES: [(&str, &str); 11] = [
    // Loaded in a branch.
    (
        "setp.eq.u32 %p0, %r9, 0; mov.u32 %r3, 7; @%p0 bra B; ld.global.u32 %r4, [%d1]; add.u32 %r3, %r4, 1;
         B: and.b32 %r5, %lane, 96; setp.eq.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d1], %r3; USE",
        "st.global.u32 [%out+512], %r3;",
    ),
    // A loop between, which adds to what was loaded.
    (
        "ld.global.u32 %r3, [%d1]; mov.u32 %r6, 0; L: add.u32 %r3, %r3, %r6; add.u32 %r6, %r6, 1;
         setp.lt.u32 %p0, %r6, 3; @%p0 bra L; and.b32 %r5, %lane, 96; setp.eq.u32 %p1, %r5, 0;
         @%p1 st.global.u32 [%d1], %r3; USE",
        "setp.eq.u32 %p2, %r5, 32; @%p2 st.global.u32 [%out+512], %r3;",
    ),
    // Stored in a branch.
    (
        "ld.global.u32 %r3, [%d1]; setp.eq.u32 %p0, %r9, 0; @%p0 bra B; add.u32 %r3, %r3, 1; and.b32 %r5, %lane, 96;
         setp.eq.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d1], %r3; USE B:",
        "add.u32 %r4, %r3, %r3; st.global.u32 [%out+512], %r4;",
    ),
    // Two stores under two conditions.
    (
        "ld.global.u32 %r3, [%d1]; setp.lt.u32 %p1, %lane, 32; @%p1 st.global.u32 [%d1], %r3;
         setp.eq.u32 %p2, %lane, 0; @%p2 st.global.u32 [%out+512], %r3; USE",
        "setp.eq.u32 %p3, %lane, 40; @%p3 st.global.u32 [%out+512], %r3;",
    ),
    // The sum, which the first thread stores.
    (
        "ld.global.u32 %r3, [%d1]; setp.ge.u32 %p1, %lane, 32; @!%p1 st.global.u32 [%d1], %r3;
         shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1; add.u32 %r4, %r3, %r4; shfl.sync.bfly.b32 %r5, %r4, 8, 31, -1;
         add.u32 %r4, %r4, %r5; setp.eq.u32 %p2, %lane, 0; @%p2 st.global.u32 [%out+512], %r4; USE",
        "setp.eq.u32 %p3, %lane, 63; @%p3 st.global.u32 [%out+512], %r4;",
    ),
    // One of two conditions is known early.
    (
        "ld.global.u32 %r3, [%d1]; bra.uni B; B: setp.lt.u32 %p1, %lane, 32; setp.ne.u32 %p2, %r9, 0;
         and.pred %p3, %p2, %p1; @%p3 st.global.u32 [%d1], %r3; USE",
        "or.pred %p4, %p2, %p1; @%p4 st.global.u32 [%out+512], %r3;",
    ),
    // Of its negation, too.
    (
        "ld.global.u32 %r3, [%d1]; bra.uni B; B: setp.ge.u32 %p1, %lane, 32; setp.eq.u32 %p2, %r9, 0;
         or.pred %p3, %p2, %p1; @!%p3 st.global.u32 [%d1], %r3; USE",
        "@%p3 st.global.u32 [%out+512], %r3;",
    ),
    // A branch decides who stores.
    (
        "ld.global.u32 %r3, [%d1]; setp.ge.u32 %p1, %lane, 32; @%p1 bra B; st.global.u32 [%d1], %r3; B: USE",
        "st.global.u32 [%out+512], %r3;",
    ),
    // Its other side uses the value.
    (
        "ld.global.u32 %r3, [%d1]; setp.lt.u32 %p1, %lane, 32; @%p1 bra A; USE bra.uni B; A: st.global.u32 [%d1], %r3; B:",
        "st.global.u32 [%out+512], %r3;",
    ),
    // A tile each turn of a loop, as far as there are any.
    (
        "mov.u32 %r6, 0; L: ld.global.u32 %r3, [%d1]; setp.eq.u32 %p0, %r9, 0; @%p0 bra B; add.u32 %r3, %r3, 1;
         B: setp.lt.u32 %p1, %lane, 32; setp.lt.and.u32 %p2, %r6, 2, %p1; @%p2 st.global.u32 [%d1], %r3; USE
         add.u64 %d1, %d1, 128; add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 3; @%p3 bra L;",
        "setp.eq.or.u32 %p4, %r6, 1, %p1; @%p4 st.global.u32 [%out+512], %r3;",
    ),
    // Half a warp loads, and hands it to the half that stores.
    (
        "and.b32 %r5, %lane, 31; setp.ge.u32 %p0, %r5, 16; mov.u32 %r3, 0; @%p0 bra B; ld.global.u32 %r3, [%d1];
         B: shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1; and.b32 %r6, %lane, 48; setp.eq.u32 %p1, %r6, 16;
         @%p1 st.global.u32 [%d1-64], %r4; USE",
        "setp.eq.u32 %p2, %r6, 48; @%p2 st.global.u32 [%out+512], %r4;",
    ),
];

const COPIED: &str = "ld.param.u64 %d1, [out]; and.b32 %r2, %lane, 31; mad.wide.u32 %d1, %r2, 4, %d1;
    ld.param.u64 %d0, [in]; ld.global.u32 %r9, [%d0];";

#[test]
fn copies_race_where_they_are_used() {
    for (body, used) in COPIES {
        let right = format!("{COPIED} {}", body.replace("USE", ""));
        let fault = launch(&right, 1, 64, Sanitizers::ALL);
        assert!(fault.is_none(), "{right}: {}", fault.map(|fault| fault.to_string()).unwrap_or_default());
        let wrong = format!("{COPIED} {}", body.replace("USE", used));
        let fault = launch(&wrong, 1, 64, Sanitizers::ALL).unwrap_or_else(|| panic!("nothing found: {wrong}"));
        assert_eq!(fault.kind, FaultKind::GlobalRace, "{wrong}: {fault}");
    }
}

#[test]
fn what_another_turn_of_a_loop_uses_races() {
    let cases = [
        // What the second warp loads in the first turn it uses in the second one, when the condition holds for it.
        "mov.u32 %r3, 0; mov.u32 %r6, 0; shr.u32 %r7, %lane, 5; mov.u64 %d3, %d1; L: setp.eq.u32 %p1, %r7, %r6;
         @%p1 st.global.u32 [%out+512], %r3; ld.global.u32 %r3, [%d3]; add.u64 %d3, %d3, 128; add.u32 %r6, %r6, 1;
         setp.lt.u32 %p0, %r6, 2; @%p0 bra L; setp.eq.u32 %p2, %r7, 0; @%p2 st.global.u32 [%d1], 5;",
        // The same with a load that leaves in place what the turn before loaded.
        "mov.u32 %r3, 0; mov.u32 %r6, 0; shr.u32 %r7, %lane, 5; L: setp.eq.u32 %p1, %r7, %r6; setp.eq.u32 %p3, %r6, 0;
         @%p3 ld.global.u32 %r3, [%d1]; @%p1 st.global.u32 [%out+512], %r3; add.u32 %r6, %r6, 1;
         setp.lt.u32 %p0, %r6, 2; @%p0 bra L; setp.eq.u32 %p2, %r7, 0; @%p2 st.global.u32 [%d1], 5;",
    ];
    for body in cases {
        let body = format!("{COPIED} {body}");
        let fault = launch(&body, 1, 64, Sanitizers::ALL).unwrap_or_else(|| panic!("nothing found: {body}"));
        assert_eq!(fault.kind, FaultKind::GlobalRace, "{body}: {fault}");
    }
}
