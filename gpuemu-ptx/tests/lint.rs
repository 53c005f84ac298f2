//! What the rules find, and what they leave alone.

use gpuemu_ptx::lint::{Finding, RULES, Severity, check};
use gpuemu_ptx::metrics::measure;
use gpuemu_ptx::program::Program;

const HEAD: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";
const PRINT: &str = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);";

/// What the rules find in a kernel of 64 threads a block with this body, which begins on line 8.
fn findings(directive: &str, body: &str) -> Vec<Finding> {
    let text = format!(
        "{HEAD}{PRINT} .shared .align 16 .b8 smem[4096];
.entry k(.param .u64 .ptr .align 1 p, .param .u32 n) {directive} {{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .f32 %f<9>; .reg .b64 %d<20>; .reg .f64 %e<9>; .local .align 8 .b8 depot[64];
ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
{body}\nst.global.u32 [%d0], %r0; ret; }}\n"
    );
    let program = Program::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let entry = program.entry("k").unwrap();
    check(&program, entry, &measure(&program, entry))
}

/// The lines of what one rule finds; line 1 is the first of the body.
fn lines(rule: &str, body: &str) -> Vec<u32> {
    let found = findings(".reqntid 64", body);
    found.iter().filter(|finding| finding.rule.name == rule).map(|finding| finding.place.line - 7).collect()
}

fn table(rule: &str, cases: &[(&str, &[u32])]) {
    for (body, expected) in cases {
        assert_eq!(lines(rule, body), *expected, "{rule}:\n{body}");
    }
}

#[test]
fn rules_are_told_apart_by_name_and_explained() {
    let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 10);
    for rule in RULES {
        assert!(rule.summary.len() > 20 && rule.explanation.len() > 100, "{}", rule.name);
        assert!(rule.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    }
}

#[test]
fn fp64_in_fp32() {
    table(
        "fp64-in-fp32",
        &[
            (
                "ld.global.f32 %f1, [%d0];\ncvt.f64.f32 %e1, %f1;\nmul.f64 %e1, %e1, 0d3FE0000000000000;\ncvt.rn.f32.f64 %f1, \
             %e1;\nadd.f32 %f1, %f1, %f1;",
                &[3],
            ),
            // The data is double.
            ("ld.global.f64 %e1, [%d0];\nmul.f64 %e1, %e1, %e1;\nadd.f32 %f1, %f1, %f1;", &[]),
            // For a print.
            ("add.f32 %f1, %f1, %f1;\ncvt.f64.f32 %e1, %f1;\nst.local.f64 [depot], %e1;", &[]),
            // As `sinf` has it.
            ("add.f32 %f1, %f1, %f1;\nmul.f64 %e1, %e2, 0d3BF921FB54442D19;", &[]),
        ],
    );
}

#[test]
fn narrow_global_access() {
    let quad = |offsets: [u32; 4]| -> String {
        offsets.iter().map(|offset| format!("ld.global.f32 %f{}, [%d2+{offset}];\n", offset / 4)).collect()
    };
    let strided = |stride: u32, rest: &str| {
        format!("mad.lo.s32 %r4, %r2, %r3, %r1;\nmul.wide.s32 %d1, %r4, {stride};\nadd.s64 %d2, %d0, %d1;\n{rest}")
    };
    let aligned = strided(16, &quad([0, 4, 8, 12]));
    let misaligned = strided(16, &quad([4, 8, 12, 16]));
    // A stencil: neighbours of one element a thread.
    let stencil = strided(4, &quad([0, 4, 8, 12]));
    let apart = strided(16, &quad([0, 8, 16, 24]));
    let bytes = "L: ld.global.u8 %r5, [%d0];\nld.global.u8 %r6, [%d0+64];\nld.global.u8 %r7, [%d0+128];\nld.global.u8 %r8, \
                 [%d0+192];\n@%p1 bra L;";
    let remainder = "L: ld.global.u8 %r5, [%d0];\n@%p1 bra L;";
    table(
        "narrow-global-access",
        &[
            (&aligned, &[4]),
            (&misaligned, &[]),
            (&stencil, &[]),
            (&apart, &[]),
            (bytes, &[1, 2, 3, 4]),
            (remainder, &[]),
        ],
    );
}

#[test]
fn index_wraps() {
    let use_it = "mul.wide.s32 %d1, %r5, 4;\nadd.s64 %d2, %d0, %d1;\nst.global.u32 [%d2], %r0;";
    let case = |product: &str| format!("{product}\n{use_it}");
    table(
        "index-wraps",
        &[
            // A row times its length.
            (&case("mul.lo.s32 %r5, %r2, %r0;"), &[1]),
            // The number of a thread among all.
            (&case("mad.lo.s32 %r5, %r2, %r3, %r1;"), &[]),
            // Both factors bounded: 1023 * 65535.
            (&case("and.b32 %r4, %r0, 65535; mul.lo.s32 %r5, %r1, %r4;"), &[]),
            (&case("and.b32 %r4, %r0, 16777215; mul.lo.s32 %r5, %r1, %r4;"), &[1]),
            // Never an address.
            ("mul.lo.s32 %r5, %r2, %r0;\nst.global.u32 [%d0], %r5;", &[]),
            // Three of them are one finding.
            (&case("mul.lo.s32 %r4, %r2, %r0;\nmad.lo.s32 %r4, %r1, %r0, %r4;\nmad.lo.s32 %r5, %r0, %r0, %r4;"), &[1]),
            // What is made of a product is no better than the product.
            (&case("mul.lo.s32 %r4, %r2, %r0;\nshr.s32 %r5, %r4, 2;"), &[1]),
        ],
    );
    let three = "mul.lo.s32 %r4, %r2, %r0;\nmad.lo.s32 %r4, %r1, %r0, %r4;\nmad.lo.s32 %r5, %r0, %r0, %r4;";
    let found = findings(".reqntid 64", &case(three));
    let found: Vec<_> = found.iter().filter(|finding| finding.rule.name == "index-wraps").collect();
    let [finding] = found[..] else { panic!("{found:?}") };
    assert!(finding.message.ends_with("2 more products of this kernel are like it"), "{}", finding.message);
    assert_eq!(finding.related.iter().map(|related| related.place.line - 7).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn spill_in_loop() {
    table(
        "spill-in-loop",
        &[
            ("L: ld.local.u32 %r5, [depot];\nst.local.u32 [depot+4], %r5;\n@%p1 bra L;", &[1, 2]),
            ("ld.local.u32 %r5, [depot];\nst.local.u32 [depot+4], %r5;", &[]),
        ],
    );
    let found = findings("", "mov.u64 %d1, depot;\nL: add.u64 %d1, %d1, 4;\nld.local.u32 %r5, [%d1];\n@%p1 bra L;");
    let severities: Vec<_> = found.iter().filter(|f| f.rule.name == "spill-in-loop").map(|f| f.severity).collect();
    assert_eq!(severities, [Severity::Note]);
}

/// A thread's own element of shared memory in `%r4`, and a read of its neighbour's, with `between` in between.
fn neighbour(between: &str) -> String {
    format!(
        "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nst.shared.u32 [%r4], %r1;\n{between}\n\
         ld.shared.u32 %r5, [%r4+4];"
    )
}

#[test]
fn missing_barrier_between_shared_write_and_read() {
    let rule = "missing-barrier-between-shared-write-and-read";
    for ordered in [
        "bar.sync 0;",
        "barrier.sync 1, 64;",
        "membar.cta;",
        "cp.async.wait_all;",
        "L: mbarrier.try_wait.parity.shared::cta.b64 %p1, [smem], %r6; @!%p1 bra L;",
        "atom.global.add.u32 %r6, [%d0], 1; add.s32 %r7, %r6, 1;",
    ] {
        assert_eq!(lines(rule, &neighbour(ordered)), [] as [u32; 0], "{ordered}");
    }
    // What orders a warp is not enough for two, of 64 threads.
    for exchange in ["bar.warp.sync -1;", "shfl.sync.idx.b32 %r6, %r1, 0, 31, -1;"] {
        assert_eq!(lines(rule, &neighbour(exchange)), [4], "{exchange}");
        let one_warp = findings(".reqntid 32", &neighbour(exchange));
        assert!(one_warp.iter().all(|finding| finding.rule.name != rule), "{exchange}: {one_warp:?}");
        // Neither is a block of one warp excluded, nor is there anything that only several need.
        let unknown = findings("", &neighbour(exchange));
        assert!(unknown.iter().all(|finding| finding.rule.name != rule), "{exchange}: {unknown:?}");
    }
    // An update that nobody looks at tells no thread of another.
    assert_eq!(lines(rule, &neighbour("atom.global.add.u32 %r6, [%d0], 1;")), [4]);
    assert_eq!(lines(rule, &neighbour("add.s32 %r6, %r1, 1;")), [4]);
    // Synchronised on one way only.
    assert_eq!(lines(rule, &neighbour("@%p1 bra L; bar.sync 0; L:")), [4]);
    let own = "mov.u32 %r20, smem; shl.b32 %r21, %r1, 4; add.s32 %r4, %r20, %r21;\nst.shared.v4.u32 [%r4], {%r1, %r1, %r1, %r1};\n";
    table(
        rule,
        &[
            // Its own element, or another part of its own.
            (&format!("{own}ld.shared.u32 %r5, [%r4+8];"), &[]),
            (&format!("{own}ld.shared.u32 %r5, [%r4+16];"), &[3]),
            // Reversed: thread t reads what thread 63 - t wrote.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; st.shared.u32 [%r4], %r1;\nmov.u32 %r22, 63; \
             sub.s32 %r23, %r22, %r1; shl.b32 %r24, %r23, 2; add.s32 %r5, %r20, %r24;\nld.shared.u32 %r6, [%r5];",
                &[3],
            ),
            // A loop that reads a neighbour's element after its own write of the turn before.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nL: ld.shared.u32 %r5, [%r4+4];\nst.shared.u32 \
             [%r4], %r5;\n@%p1 bra L;",
                &[2],
            ),
            // Tiles of a loop: a fast thread writes the next one while a slow one still reads. A second barrier mends it.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nL: st.shared.u32 [%r4], %r1;\nbar.sync 0;\nld.shared.u32 \
             %r5, [%r4+4];\n@%p1 bra L;",
                &[2],
            ),
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nL: st.shared.u32 [%r4], %r1;\nbar.sync 0;\nld.shared.u32 \
             %r5, [%r4+4];\nbar.sync 0; @%p1 bra L;",
                &[],
            ),
            // A compiler has used the index's register again, for a loop behind.
            (
                "mov.u32 %r20, smem; mov.u32 %r22, %tid.x; shl.b32 %r21, %r22, 2; add.s32 %r4, %r20, %r21;\nst.shared.u32 [%r4], %r1;\n\
             ld.shared.u32 %r5, [%r4+4];\nL: add.s32 %r22, %r22, 64; setp.lt.u32 %p1, %r22, %r0; @%p1 bra L;",
                &[3],
            ),
            // In that loop, in its first turn.
            (
                "mov.u32 %r20, smem; mov.u32 %r22, %tid.x;\nL: shl.b32 %r21, %r22, 2; add.s32 %r4, %r20, %r21;\nst.shared.u32 [%r4], %r1;\n\
             ld.shared.u32 %r5, [%r4+4];\nadd.s32 %r22, %r22, 64; setp.lt.u32 %p1, %r22, %r0; @%p1 bra L;",
                &[4],
            ),
            // Shifted in place.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nld.shared.u32 %r5, [%r4+4];\nst.shared.u32 [%r4], %r5;",
                &[3],
            ),
            // One thread writes and reads.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r4], \
             %r1;\n@%p1 ld.shared.u32 %r5, [smem];",
                &[],
            ),
            // One thread writes, all read.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p1 bra L;\nst.shared.u32 \
             [%r4], %r1;\nL: ld.shared.u32 %r5, [smem];",
                &[5],
            ),
            // The threads below a bound, which may be all of them.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nsetp.ge.u32 %p1, %r1, %r0;\n@%p1 bra L;\nst.shared.u32 \
             [%r4], %r1;\nld.shared.u32 %r5, [%r4+4];\nL:",
                &[5],
            ),
            // A tail in two dimensions, as nvcc has it, and both halves of a transposition under it.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; setp.ge.s32 %p1, %r1, %r0; setp.ge.s32 %p2, %r2, %r0;\n\
             or.pred %p3, %p1, %p2; @%p3 bra A;\nst.shared.u32 [%r4], %r1;\nA: not.pred %p4, %p3; and.pred %p5, %p4, %p4; @!%p5 bra L;\n\
             ld.shared.u32 %r5, [%r4+4];\nL:",
                &[5],
            ),
            // Threads that what they loaded chooses: it may be one.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nmul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; \
             ld.global.u32 %r6, [%d1]; setp.eq.u32 %p1, %r6, 0;\n@%p1 bra L;\nst.shared.u32 [%r4], %r1;\nld.shared.u32 %r5, \
             [%r4+4];\nL:",
                &[],
            ),
            // Two buffers, of which the loop chooses, each written and read in one turn.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; mov.u32 %r6, 0;\nL: xor.b32 %r6, %r6, 1024; add.s32 \
             %r7, %r4, %r6;\nst.shared.u32 [%r7], %r1;\nld.shared.u32 %r5, [%r7+4];\n@%p1 bra L;",
                &[4],
            ),
            // Two buffers, one written while the other is read, with a barrier a turn.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; mov.u32 %r6, 0; mov.u32 %r8, 0;\nL: xor.b32 %r6, %r6, \
                 1024; add.s32 %r7, %r4, %r6; st.shared.u32 [%r7], %r1; bar.sync 0;\nld.shared.u32 %r5, [%r7+4];\nadd.s32 %r8, %r8, 1; \
                 setp.lt.s32 %p1, %r8, %r0; @%p1 bra L;",
                &[],
            ),
            // A tree, its last step within a warp.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; st.shared.u32 [%r4], %r1; bar.sync 0; mov.u32 %r6, 32;\n\
                 L: setp.ge.u32 %p1, %r1, %r6; @%p1 bra N; shl.b32 %r7, %r6, 2; add.s32 %r8, %r4, %r7;\nld.shared.u32 %r5, [%r8]; \
                 st.shared.u32 [%r4], %r5;\nN: shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra L;",
                &[3],
            ),
            // The same value tested twice is true twice, be it loaded.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; ld.global.u32 %r6, [%d0]; setp.eq.s32 %p1, %r6, 0;\n@%p1 \
                 bra A; st.shared.u32 [%r4], %r1;\nA: setp.eq.s32 %p2, %r6, 0; @%p2 bra B; bar.sync 0;\nB: @%p2 bra C; ld.shared.u32 \
                 %r5, [%r4+4];\nC:",
                &[],
            ),
            // Counts of what was loaded: cleared before, read after.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; ld.global.u32 %r6, [%d0]; shl.b32 %r7, %r6, 2; add.s32 \
                 %r8, %r20, %r7;\nst.shared.u32 [%r4], 0;\nred.shared.add.u32 [%r8], 1;\nbar.sync 0;\nld.shared.u32 %r5, [%r4];",
                &[3],
            ),
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21; ld.global.u32 %r6, [%d0]; shl.b32 %r7, %r6, 2; add.s32 \
                 %r8, %r20, %r7;\nst.shared.u32 [%r4], 0;\nbar.sync 0;\nred.shared.add.u32 [%r8], 1;\nld.shared.u32 %r5, [%r4];",
                &[5],
            ),
            // Counts of each thread's own.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 5; add.s32 %r4, %r20, %r21; ld.global.u32 %r6, [%d0]; and.b32 %r6, %r6, 7; shl.b32 \
                 %r7, %r6, 2; add.s32 %r8, %r4, %r7;\nst.shared.u32 [%r4], 0;\nred.shared.add.u32 [%r8], 1;",
                &[],
            ),
            // Past the end of the array: no launch that the kernel is for.
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 7; add.s32 %r4, %r20, %r21;\nst.shared.u32 [%r4], %r1;\nld.shared.u32 %r5, [%r4+128];",
                &[],
            ),
            (
                "mov.u32 %r20, smem; shl.b32 %r21, %r1, 2; add.s32 %r4, %r20, %r21;\nst.volatile.shared.u32 [%r4], %r1;\nld.volatile.shared.u32 %r5, [%r4+4];",
                &[],
            ),
        ],
    );
}

#[test]
fn divergent_barrier() {
    let after = "st.global.u32 [%d0], %r0; mov.u32 %r9, 1; bar.sync 1;";
    let under = |condition: &str| format!("{condition}\n@%p1 bra L;\nbar.sync 0;\nL: {after}");
    table(
        "divergent-barrier",
        &[
            (&under("setp.lt.u32 %p1, %r1, 16;"), &[3]),
            // Whole warps that pass it by are missing too.
            (&under("setp.lt.u32 %p1, %r1, 32;"), &[3]),
            // True for all 64 threads.
            (&under("setp.lt.u32 %p1, %r1, 64;"), &[]),
            (&under("setp.lt.u32 %p1, %r2, 16;"), &[]),
            (&under("mad.lo.s32 %r5, %r2, %r3, %r1; setp.ge.s32 %p1, %r5, %r0;"), &[3]),
            // What was loaded may be the same for all.
            (
                &under(
                    "mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %d0, %d1; ld.global.u32 %r5, [%d1]; setp.eq.u32 %p1, %r5, 0;",
                ),
                &[],
            ),
            // Threads that left are waited for by nobody.
            ("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nbar.sync 0;\nst.global.u32 [%d0], %r0;\nL: ret;", &[]),
            ("setp.lt.u32 %p1, %r1, 16;\n@%p1 ret;\nbar.sync 0;", &[]),
            // Both sides come to one.
            (&format!("setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nbar.sync 0;\nbra M;\nL: bar.sync 0;\nM: {after}"), &[]),
            // For a given number of threads.
            (&format!("setp.lt.u32 %p1, %r1, 32;\n@%p1 bra L;\nbar.sync 1, 32;\nL: {after}"), &[]),
        ],
    );
}

#[test]
fn shuffle_under_divergence() {
    let after = "st.global.u32 [%d0], %r0; mov.u32 %r9, 1; bar.sync 1;";
    let under = |condition: &str, mask: &str| {
        format!("{condition}\n@%p1 bra L;\nshfl.sync.down.b32 %r6, %r1, 1, 31, {mask};\nL: {after}")
    };
    table(
        "shuffle-under-divergence",
        &[
            (&under("setp.lt.u32 %p1, %r1, 16;", "-1"), &[3]),
            // Whole warps.
            (&under("setp.lt.u32 %p1, %r1, 32;", "-1"), &[]),
            (&under("shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r5, 0;", "-1"), &[]),
            // Lanes that are named.
            (&under("setp.lt.u32 %p1, %r1, 16;", "0x0000ffff"), &[]),
            (&under("setp.lt.u32 %p1, %r1, 16; vote.sync.ballot.b32 %r7, %p1, -1;", "%r7"), &[]),
        ],
    );
}

#[test]
fn unused_parameter() {
    let text = |parameters: &str| {
        format!(
            "{HEAD}.entry k({parameters}) {{ .reg .b32 %r<2>; ld.param.u32 %r0, [a]; st.global.u32 [16], %r0; ret; }}\n"
        )
    };
    let cases = [
        (".param .u32 a", 0),
        (".param .u32 a, .param .u32 b", 1),
        // As Triton has them.
        (".param .u32 a, .param .u64 .ptr .global .align 1 s, .param .u64 .ptr .global .align 1 t", 0),
        (".param .u32 a, .param .u32 b, .param .u64 .ptr .global .align 1 s, .param .u64 .ptr .global .align 1 t", 1),
    ];
    for (parameters, expected) in cases {
        let program = Program::read(&text(parameters)).unwrap();
        let entry = program.entry("k").unwrap();
        let found = check(&program, entry, &measure(&program, entry));
        let found = found.iter().filter(|finding| finding.rule.name == "unused-parameter").count();
        assert_eq!(found, expected, "{parameters}");
    }
}

#[test]
fn uninitialised_register() {
    let rule = "uninitialised-register";
    let severities = |body: &str| -> Vec<(u32, Severity)> {
        let found = findings("", body);
        found.iter().filter(|f| f.rule.name == rule).map(|f| (f.place.line - 7, f.severity)).collect()
    };
    let cases: [(&str, &[(u32, Severity)]); 6] = [
        ("add.s32 %r5, %r6, 1;", &[(1, Severity::Error)]),
        ("setp.eq.u32 %p1, %r0, 0;\n@%p1 bra L;\nmov.u32 %r6, 1;\nL: add.s32 %r5, %r6, 1;", &[(4, Severity::Note)]),
        ("setp.eq.u32 %p1, %r0, 0;\nmov.u32 %r6, 0;\n@%p1 bra L;\nmov.u32 %r6, 1;\nL: add.s32 %r5, %r6, 1;", &[]),
        // Under a guard.
        ("setp.eq.u32 %p1, %r0, 0;\n@%p1 mov.u32 %r6, 1;\n@!%p1 mov.u32 %r6, 2;\nadd.s32 %r5, %r6, 1;", &[]),
        // Carried, and looked at by nobody.
        ("mov.u32 %r5, %r6;\nmov.b32 %r7, {%h1, %h2};", &[]),
        // Written further down in a loop: the first turn reads nothing.
        ("L: add.s32 %r5, %r6, 1;\nmov.u32 %r6, 1;\nsetp.eq.u32 %p1, %r5, 0;\n@%p1 bra L;", &[(1, Severity::Note)]),
    ];
    for (body, expected) in cases {
        assert_eq!(severities(body), expected, "{body}");
    }
}

#[test]
fn float_atomic_order() {
    table(
        "float-atomic-order",
        &[
            ("atom.global.add.f32 %f1, [%d0], %f2;", &[1]),
            ("red.global.add.noftz.f16x2 [%d0], %r1;", &[1]),
            ("red.shared.add.f32 [smem], %f1;", &[1]),
            ("atom.global.add.u32 %r5, [%d0], %r1;", &[]),
            ("atom.global.max.s32 %r5, [%d0], %r1;", &[]),
        ],
    );
}

#[test]
fn findings_on_one_line_of_the_source_are_one() {
    let text = format!(
        "{HEAD}.file 1 \"a.cu\"\n.entry k() {{ .reg .f32 %f<3>;\n.loc 1 7 1\nred.global.add.f32 [16], %f0;\nred.global.add.f32 \
         [20], %f0;\n.loc 1 8 1\nred.global.add.f32 [24], %f0; ret; }}\n"
    );
    let program = Program::read(&text).unwrap();
    let entry = program.entry("k").unwrap();
    let found = check(&program, entry, &measure(&program, entry));
    let found: Vec<_> = found.iter().filter(|finding| finding.rule.name == "float-atomic-order").collect();
    let places: Vec<_> = found.iter().map(|f| (program.place(f.place.location.unwrap()), f.more)).collect();
    assert_eq!(places, [("a.cu:7:1".to_owned(), 1), ("a.cu:8:1".to_owned(), 0)]);
}
