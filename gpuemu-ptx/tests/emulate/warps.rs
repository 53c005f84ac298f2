//! Lanes that part and meet, calls, barriers, blocks that wait for each other.

use crate::bench::{Bench, Integer, Pointer, kernel};

fn lanes(body: &str, threads: u32, count: usize) -> Vec<u32> {
    let mut bench = Bench::new(&kernel(body));
    let out = bench.tensor("out", &vec![0u32; threads as usize]);
    bench.run("k", [1, 1, 1], [threads, 1, 1], 0, &[out.clone(), Integer(0)]);
    bench.read::<u32>(&out, count)
}

#[test]
fn lanes_that_part_meet_again() {
    // Odd lanes take another way; all of them vote afterwards, together.
    let body = "and.b32 %r1, %lane, 1; setp.eq.u32 %p0, %r1, 1; mov.u32 %r2, 10;
    @%p0 bra ODD; add.u32 %r2, %r2, 1; bra.uni MEET;
ODD: add.u32 %r2, %r2, 2;
MEET: activemask.b32 %r3; setp.eq.u32 %p1, %r3, 0xffffffff; selp.u32 %r4, 100, 0, %p1; add.u32 %r0, %r2, %r4;
    st.global.b32 [%out], %r0;";
    assert_eq!(lanes(body, 32, 4), [111, 112, 111, 112]);
}

#[test]
fn loops_of_different_length() {
    let body = "mov.u32 %r0, 0; mov.u32 %r1, 0;
LOOP: setp.ge.u32 %p0, %r1, %lane; @%p0 bra DONE; add.u32 %r0, %r0, %r1; add.u32 %r1, %r1, 1; bra.uni LOOP;
DONE: activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r0, %r2, 1000, %r0; st.global.b32 [%out], %r0;";
    assert_eq!(lanes(body, 32, 5), [32000, 32000, 32001, 32003, 32006]);
}

#[test]
fn early_exits_leave_the_others_whole() {
    let body = "setp.ge.u32 %p0, %lane, 20; @%p0 exit; mov.u32 %r1, 0xfffff;
    shfl.sync.down.b32 %r0, %lane, 1, 31, %r1; setp.eq.u32 %p1, %lane, 19; @%p1 mov.u32 %r0, 99;
    st.global.b32 [%out], %r0;";
    // Lane 19 would read lane 20, which is gone: the mask of this kernel leaves it out by ending one lane earlier.
    let body = body.replace("mov.u32 %r1, 0xfffff;", "mov.u32 %r1, 0xfffff; setp.eq.u32 %p2, %lane, 19;").replace(
        "shfl.sync.down.b32 %r0, %lane, 1, 31, %r1;",
        "selp.u32 %r2, 0, 1, %p2; shfl.sync.down.b32 %r0, %lane, %r2, 31, %r1;",
    );
    let got = lanes(&body, 32, 21);
    assert_eq!(got[..3], [1, 2, 3]);
    assert_eq!(got[18..], [19, 99, 0]);
}

#[test]
fn barriers_order_warps() {
    // Every warp sums what all threads wrote.
    let body = ".shared .align 4 .b8 s[512]; mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], %lane;
    bar.sync 0; sub.u32 %r3, 127, %lane; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.u32 %r0, [%r3];
    st.global.b32 [%out], %r0;";
    assert_eq!(lanes(body, 128, 3), [127, 126, 125]);
}

#[test]
fn an_early_return_waits_for_no_barrier() {
    // The last lanes leave: by a jump to the end, to a jump there, or past all that is left. The others count on.
    let ends = [
        ("@%p0 bra END;", "END: ret;"),
        ("@%p0 bra NEAR;", "bra.uni END; NEAR: bra.uni END; END: ret;"),
        ("@!%p0 bra ON; bra.uni END; ON:", "END:"),
    ];
    for (leaves, end) in ends {
        let body = format!(
            ".shared .align 4 .b8 s[256]; setp.ge.u32 %p0, %lane, 40; {leaves}
            mov.u32 %r1, s; mad.lo.u32 %r2, %lane, 4, %r1; st.shared.u32 [%r2], %lane; bar.sync 0;
            sub.u32 %r3, 39, %lane; mad.lo.u32 %r3, %r3, 4, %r1; ld.shared.u32 %r0, [%r3]; st.global.b32 [%out], %r0;
            {end}"
        );
        assert_eq!(lanes(&body, 64, 3), [39, 38, 37], "{leaves}");
    }
}

#[test]
fn barriers_that_reduce() {
    let body = "setp.lt.u32 %p0, %lane, 50; bar.red.popc.u32 %r0, 0, %p0; bar.red.or.pred %p1, 0, %p0;
    bar.red.and.pred %p2, 0, %p0; selp.u32 %r1, 1000, 0, %p1; selp.u32 %r2, 10000, 0, %p2;
    add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2; st.global.b32 [%out], %r0;";
    assert_eq!(lanes(body, 128, 2), [1050, 1050]);
}

#[test]
fn some_warps_arrive_and_others_wait() {
    // The first warp fills, and arrives at barrier 1; the second waits for it.
    let body = ".shared .align 4 .b8 s[4]; setp.ge.u32 %p0, %lane, 32; @%p0 bra WAIT; st.shared.u32 [s], 42;
    bar.arrive 1, 64; mov.u32 %r0, 1; bra.uni END;
WAIT: bar.sync 1, 64; ld.shared.u32 %r0, [s];
END: st.global.b32 [%out], %r0;";
    let got = lanes(body, 64, 64);
    assert_eq!([got[0], got[31], got[32], got[63]], [1, 1, 42, 42]);
}

#[test]
fn a_lock_between_lanes_of_one_warp_is_handed_on() {
    let body = ".shared .align 4 .b8 s[8]; st.shared.u32 [s], 0; st.shared.u32 [s+4], 0; bar.sync 0;
TRY: atom.shared.cas.b32 %r1, [s], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra TRY;
    ld.volatile.shared.u32 %r2, [s+4]; add.u32 %r2, %r2, 1; st.volatile.shared.u32 [s+4], %r2;
    atom.shared.exch.b32 %r3, [s], 0; bar.sync 0; ld.shared.u32 %r0, [s+4]; st.global.b32 [%out], %r0;";
    assert_eq!(lanes(body, 32, 2), [32, 32]);
}

#[test]
fn blocks_that_wait_for_later_blocks() {
    // Block 0 waits until all others have counted.
    let body = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r1, 0; setp.ne.or.u32 %p1, %lane, 0, %p0;
    setp.ne.u32 %p2, %lane, 0; @%p2 bra END; @%p0 atom.global.add.u32 %r2, [%in], 1; @%p0 bra END;
SPIN: ld.acquire.gpu.global.u32 %r3, [%in]; setp.lt.u32 %p3, %r3, 9; @%p3 bra SPIN;
    st.global.b32 [%out], %r3;
END:";
    let mut bench = Bench::new(&kernel(body));
    let (out, count) = (bench.tensor("out", &[0u32]), bench.tensor("count", &[0u32]));
    bench.run("k", [10, 1, 1], [32, 1, 1], 0, &[out.clone(), count]);
    assert_eq!(bench.read::<u32>(&out, 1), [9]);
}

const CALLS: &str = ".version 8.5
.target sm_80
.address_size 64
.func (.param .b32 result) factorial(.param .b32 n)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    ld.param.u32 %r0, [n];
    setp.gt.u32 %p, %r0, 1;
    @%p bra MORE;
    st.param.b32 [result], 1;
    ret;
MORE:
    sub.u32 %r1, %r0, 1;
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r1;
        call.uni (answer), factorial, (argument);
        ld.param.b32 %r2, [answer];
    }
    mul.lo.u32 %r3, %r2, %r0;
    st.param.b32 [result], %r3;
    ret;
}
.func (.param .b32 result) twice(.param .b32 n)
{
    .reg .b32 %r<2>;
    ld.param.u32 %r0, [n];
    shl.b32 %r1, %r0, 1;
    st.param.b32 [result], %r1;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 7;
    and.b32 %r4, %r0, 1;
    setp.eq.u32 %p0, %r4, 0;
    mov.u64 %d1, factorial;
    @%p0 mov.u64 %d1, twice;
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r1;
        prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
        call (answer), %d1, (argument), prototype;
        ld.param.b32 %r2, [answer];
    }
    activemask.b32 %r5;
    popc.b32 %r5, %r5;
    mad.lo.u32 %r2, %r5, 100000, %r2;
    ld.param.u64 %d0, [out];
    mad.wide.u32 %d0, %r0, 4, %d0;
    st.global.u32 [%d0], %r2;
    ret;
}
";

#[test]
fn calls_by_address_and_recursion() {
    let mut bench = Bench::new(CALLS);
    let out = bench.tensor("out", &[0u32; 32]);
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, std::slice::from_ref(&out));
    let all = 3_200_000;
    let expected = [0, 1, 4, 6, 8, 120, 12, 5040].map(|x| x + all);
    assert_eq!(bench.read::<u32>(&out, 8), expected);
}

#[test]
fn an_indexed_branch_takes_each_lane_to_its_own_place() {
    let body = "and.b32 %r1, %lane, 3;
targets: .branchtargets A, B, C, D;
    brx.idx %r1, targets;
A: mov.u32 %r0, 1; bra.uni END;
B: mov.u32 %r0, 20; bra.uni END;
C: mov.u32 %r0, 300; bra.uni END;
D: mov.u32 %r0, 4000;
END: activemask.b32 %r2; popc.b32 %r2, %r2; mad.lo.u32 %r0, %r2, 10000, %r0; st.global.b32 [%out], %r0;";
    assert_eq!(lanes(body, 32, 4), [320_001, 320_020, 320_300, 324_000]);
}

#[test]
fn what_kernels_print() {
    let text = ".version 8.5
.target sm_80
.address_size 64
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 format[32] = {37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 115, 32, 37, 120, 10, 0};
.global .align 1 .b8 word[4] = {104, 105, 0, 0};
.visible .entry k()
{
    .local .align 8 .b8 depot[32];
    .reg .b32 %r<4>;
    .reg .b64 %d<8>;
    mov.u32 %r0, %tid.x;
    mov.u64 %d0, depot;
    cvta.local.u64 %d1, %d0;
    st.local.u32 [%d0], %r0;
    st.local.f64 [%d0+8], 0d3FF8000000000000;
    mov.u64 %d2, word;
    cvta.global.u64 %d3, %d2;
    st.local.u64 [%d0+16], %d3;
    st.local.u32 [%d0+24], 255;
    mov.u64 %d4, format;
    cvta.global.u64 %d5, %d4;
    {
        .param .b64 a;
        .param .b64 b;
        .param .b32 status;
        st.param.b64 [a], %d5;
        st.param.b64 [b], %d1;
        call.uni (status), vprintf, (a, b);
    }
    ret;
}
";
    let mut bench = Bench::new(text);
    let launched = bench.launch("k", [2, 1, 1], [2, 1, 1], 0, &[]);
    assert!(launched.fault.is_none());
    let got: Vec<_> = launched.printed.iter().map(|one| (one.block[0], one.thread[0], one.text.as_str())).collect();
    let expected =
        [(0, 0, "0  1.50 hi ff\n"), (0, 1, "1  1.50 hi ff\n"), (1, 0, "0  1.50 hi ff\n"), (1, 1, "1  1.50 hi ff\n")];
    assert_eq!(got, expected);
    assert!(!matches!(bench.tensor("x", &[0u32]), Pointer(0)));
}
