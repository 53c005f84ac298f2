//! Instructions in small kernels. The values beside them are worked out by hand from the PTX ISA.

use crate::bench::{Bench, Integer, kernel};
use gpuemu_ptx::emulate::{Options, Sanitizers};

/// Runs 32 threads that each store one number of 32 bits; gives those of the first lanes.
fn lanes(body: &str, count: usize) -> Vec<u32> {
    let mut bench = Bench::new(&kernel(body));
    let out = bench.tensor("out", &[0xdead_beef_u32; 32]);
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), Integer(0)]);
    bench.read::<u32>(&out, count)
}

#[test]
fn values_of_the_first_lanes() {
    let cases: &[(&str, &[u32])] = &[
        ("add.u32 %r0, %lane, 5;", &[5, 6, 7]),
        ("sub.s32 %r0, 1, %lane;", &[1, 0, u32::MAX]),
        ("mad.lo.s32 %r0, %lane, %lane, 3;", &[3, 4, 7, 12]),
        ("mul.hi.u32 %r0, 0x80000000, 6;", &[3]),
        ("mul.wide.u16 %r0, 0xffff, 0xffff;", &[0xfffe_0001]),
        ("mov.u32 %r1, 0x12345678; bfe.u32 %r0, %r1, 8, 12;", &[0x456]),
        ("mov.u32 %r1, 0xf0; bfe.s32 %r0, %r1, 4, 4;", &[u32::MAX]),
        ("mov.u32 %r1, 0xff; bfi.b32 %r0, %r1, 0, 4, 8;", &[0xff0]),
        ("mov.u32 %r1, 0x04030201; mov.u32 %r2, 0x08070605; prmt.b32 %r0, %r1, %r2, 0x7531;", &[0x0806_0402]),
        ("prmt.b32 %r0, 0x80, 0, 0x8888;", &[u32::MAX]),
        ("mov.u32 %r1, 0xf0; mov.u32 %r2, 0xcc; lop3.b32 %r0, %r1, %r2, 0xaa, 0xe8;", &[0xe8]),
        ("shf.l.wrap.b32 %r0, 0x80000000, 1, 33;", &[3]),
        ("shl.b32 %r0, 1, %lane; shr.u32 %r0, %r0, 1;", &[0, 1, 2, 4]),
        ("shl.b32 %r0, 1, 32;", &[0]),
        ("shr.s32 %r0, -8, 40;", &[u32::MAX]),
        ("popc.b32 %r0, 0xf0f0; clz.b32 %r1, 1; add.u32 %r0, %r0, %r1;", &[39]),
        ("brev.b32 %r0, 1;", &[0x8000_0000]),
        ("div.s32 %r0, -7, 2; rem.s32 %r1, -7, 2; mad.lo.s32 %r0, %r0, 100, %r1;", &[(-301i32) as u32]),
        ("setp.lt.u32 %p0, %lane, 2; selp.u32 %r0, 10, 20, %p0;", &[10, 10, 20, 20]),
        ("setp.lt.s32 %p1, %lane, 2; setp.eq.or.s32 %p0|%p2, %lane, 3, %p1; selp.u32 %r0, 1, 0, %p0;", &[1, 1, 0, 1]),
        ("mov.u32 %r0, 7; setp.eq.u32 %p0, %lane, 1; @%p0 mov.u32 %r0, 8; @!%p0 add.u32 %r0, %r0, 1;", &[8, 8, 8]),
        ("mov.u32 %r0, %laneid; mov.u32 %r1, %ntid.x; add.u32 %r0, %r0, %r1;", &[32, 33]),
        ("mov.u32 %r0, %lanemask_lt;", &[0, 1, 3, 7]),
        // Carries: 0xffffffff + 1 carries into the next word.
        ("add.cc.u32 %r1, 0xffffffff, 1; addc.u32 %r0, 0, 0;", &[1]),
        ("sub.cc.u32 %r1, 0, 1; subc.u32 %r0, 5, 0;", &[4]),
        ("mad.lo.cc.u32 %r1, 0xffffffff, 2, 2; madc.hi.u32 %r0, 0xffffffff, 2, 0;", &[2]),
        // The least of two, 16 bits each.
        ("mov.b32 %r1, 0x0001ffff; mov.b32 %r2, 0x00020003; min.s16x2 %r0, %r1, %r2;", &[0x0001_ffff]),
        ("mov.b32 {%h0, %h1}, 0x00050003; mov.b32 %r0, {%h1, %h0};", &[0x0003_0005]),
        ("mov.b64 %d0, {%lane, 9}; mov.b64 {%r1, %r2}, %d0; mad.lo.u32 %r0, %r2, 100, %r1;", &[900, 901]),
        ("cvt.u32.u64 %r0, 0x100000007;", &[7]),
        ("cvt.s64.s32 %d0, -1; shr.u64 %d0, %d0, 32; cvt.u32.u64 %r0, %d0;", &[u32::MAX]),
        ("cvt.s8.s32 %h0, 200; cvt.s32.s16 %r0, %h0;", &[(-56i32) as u32]),
        ("cvt.sat.u8.s32 %r0, 300;", &[255]),
        // 1.5 is 0x3fc00000; 2.5 rounds to the even 2.
        ("add.f32 %f0, 0f3f800000, 0f3f000000; mov.b32 %r0, %f0;", &[0x3fc0_0000]),
        ("cvt.rni.s32.f32 %r0, 0f40200000;", &[2]),
        ("cvt.rzi.s32.f32 %r0, 0fc0200000;", &[(-2i32) as u32]),
        ("cvt.rn.f32.s32 %f0, %lane; mov.b32 %r0, %f0;", &[0, 0x3f80_0000, 0x4000_0000]),
        ("cvt.rn.f16.f32 %h0, 0f3f800000; mov.b32 %r0, {%h0, %h0};", &[0x3c00_3c00]),
        ("cvt.rn.bf16x2.f32 %r0, 0f3f800000, 0f40000000;", &[0x3f80_4000]),
        ("mov.b32 %r1, 0x3c003c00; fma.rn.f16x2 %r0, %r1, %r1, %r1;", &[0x4000_4000]),
        ("max.f32 %f0, 0f7fc00000, 0f3f800000; mov.b32 %r0, %f0;", &[0x3f80_0000]),
        ("max.NaN.f32 %f0, 0f7fc00000, 0f3f800000; mov.b32 %r0, %f0;", &[0x7fff_ffff]),
        ("ex2.approx.ftz.f32 %f0, 0f40400000; mov.b32 %r0, %f0;", &[0x4100_0000]),
        ("testp.subnormal.f32 %p0, 0f00000001; selp.u32 %r0, 1, 0, %p0;", &[1]),
        ("set.lt.u32.s32 %r0, %lane, 1;", &[u32::MAX, 0]),
        ("slct.s32.s32 %r0, 4, 5, -1;", &[5]),
        ("dp4a.s32.s32 %r0, 0x01ff0203, 0x01010101, 10;", &[15]),
        ("fns.b32 %r0, 0x30, 0, 2;", &[5]),
        // Between lanes.
        ("shfl.sync.bfly.b32 %r0|%p0, %lane, 1, 31, -1;", &[1, 0, 3, 2]),
        ("shfl.sync.up.b32 %r0|%p0, %lane, 2, 0, -1;", &[0, 1, 0, 1, 2]),
        ("shfl.sync.down.b32 %r0|%p0, %lane, 1, 0x1c03, -1;", &[1, 2, 3, 3, 5, 6, 7, 7]),
        ("shfl.sync.idx.b32 %r0, %lane, 5, 31, -1;", &[5, 5, 5]),
        ("setp.lt.u32 %p0, %lane, 3; vote.sync.ballot.b32 %r0, %p0, -1;", &[7, 7]),
        ("setp.lt.u32 %p0, %lane, 40; vote.sync.all.pred %p1, %p0, -1; selp.u32 %r0, 1, 0, %p1;", &[1]),
        ("and.b32 %r1, %lane, 1; match.any.sync.b32 %r0, %r1, -1;", &[0x5555_5555, 0xaaaa_aaaa]),
        ("redux.sync.add.s32 %r0, %lane, -1;", &[496, 496]),
        // Groups of a match side by side, each with a mask of its own: even lanes and odd ones.
        ("and.b32 %r1, %lane, 1; match.any.sync.b32 %r2, %r1, -1; redux.sync.add.s32 %r0, %lane, %r2;", &[240, 256]),
        (
            "and.b32 %r1, %lane, 1; match.any.sync.b32 %r2, %r1, -1; shfl.sync.idx.b32 %r0, %lane, %r1, 31, %r2;",
            &[0, 1, 0],
        ),
        (
            "and.b32 %r1, %lane, 1; match.any.sync.b32 %r2, %r1, -1; bar.warp.sync %r2; setp.lt.u32 %p0, %lane, 3;
             vote.sync.ballot.b32 %r0, %p0, %r2;",
            &[5, 2, 5],
        ),
        ("activemask.b32 %r0;", &[u32::MAX]),
        // Eight rows of 32 ones times columns of 32 minus ones, added to 5; four bits an element.
        (
            "mov.b32 %r1, 0x11111111; mov.b32 %r2, 0xffffffff; mov.b32 %r3, 5;
             wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r0, %r4}, {%r1}, {%r2}, {%r3, %r3};",
            &[(-27i32) as u32, (-27i32) as u32],
        ),
        // 128 bits, of which every second and every fourth is set: 32 in both, 32 in one only.
        (
            "mov.b32 %r1, 0x55555555; mov.b32 %r2, 0x11111111; mov.b32 %r3, 1;
             wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r0, %r4}, {%r1}, {%r2}, {%r3, %r3};
             wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {%r5, %r4}, {%r1}, {%r2}, {%r3, %r3};
             mad.lo.u32 %r0, %r5, 1000, %r0;",
            &[33_033],
        ),
        // Where a comparison holds in the low halves and in the high ones: 1 < 2, but not 3 < 2.
        (
            "mov.b32 %r1, 0x42003c00; mov.b32 %r2, 0x40004000; setp.lt.f16x2 %p0|%p1, %r1, %r2;
             selp.u32 %r0, 1, 0, %p0; selp.u32 %r3, 10, 0, %p1; add.u32 %r0, %r0, %r3;",
            &[1],
        ),
        // The predicate says whether the bits, or the other predicate, are not zero.
        (
            "setp.eq.u32 %p1, %lane, 1; lop3.or.b32 %r1|%p0, %lane, 2, 0, 0xc0, %p1; selp.u32 %r0, 1, 0, %p0;",
            &[0, 1, 1, 1],
        ),
    ];
    for (body, expected) in cases {
        let got = lanes(&format!("{body}\n    st.global.b32 [%out], %r0;"), expected.len());
        assert_eq!(got, *expected, "{body}");
    }
}

#[test]
fn memory_of_every_space() {
    let cases: &[(&str, &[u32])] = &[
        (
            ".shared .align 4 .b8 s[128]; mov.u32 %r1, s; shl.b32 %r2, %lane, 2; add.u32 %r1, %r1, %r2;
             st.shared.u32 [%r1], %lane; bar.sync 0; xor.b32 %r2, %r2, 4; mov.u32 %r1, s; add.u32 %r1, %r1, %r2;
             ld.shared.u32 %r0, [%r1];",
            &[1, 0, 3, 2],
        ),
        // The same through a generic address.
        (
            ".shared .align 4 .b8 s[128]; mov.u64 %d0, s; cvta.shared.u64 %d0, %d0; mad.wide.u32 %d0, %lane, 4, %d0;
             st.u32 [%d0], %lane; ld.u32 %r0, [%d0]; add.u32 %r0, %r0, 1;",
            &[1, 2, 3],
        ),
        (
            ".local .align 8 .b8 l[16]; mov.u64 %d0, l; st.local.u32 [%d0+4], %lane; cvta.local.u64 %d1, %d0;
             ld.u32 %r0, [%d1+4];",
            &[0, 1, 2],
        ),
        (
            ".shared .align 16 .b8 s[16]; mov.u32 %r1, s; st.shared.v2.u32 [s], {7, 8}; bar.warp.sync -1; ld.shared.v2.u32 {%r2, %r3}, [%r1];
             mad.lo.u32 %r0, %r3, 10, %r2;",
            &[87],
        ),
        (".shared .align 4 .b8 s[4]; st.shared.u8 [s], 200; bar.warp.sync -1; ld.shared.s8 %r0, [s];", &[(-56i32) as u32]),
        (".shared .align 4 .b8 s[4]; st.shared.u16 [s], 65535; bar.warp.sync -1; ld.shared.s16 %d0, [s]; cvt.u32.u64 %r0, %d0;", &[u32::MAX]),
        (
            ".shared .align 4 .b8 s[4]; st.shared.u32 [s], 5; bar.sync 0; atom.shared.add.u32 %r1, [s], 2; bar.sync 0;
             ld.shared.u32 %r0, [s];",
            &[69, 69],
        ),
        (
            ".shared .align 4 .b8 s[4]; st.shared.u32 [s], 3; bar.sync 0; setp.eq.u32 %p0, %lane, 4;
             mov.u32 %r1, 9; @%p0 atom.shared.cas.b32 %r1, [s], 3, 11; bar.sync 0; ld.shared.u32 %r0, [s];",
            &[11],
        ),
    ];
    for (body, expected) in cases {
        let got = lanes(&format!("{body}\n    st.global.b32 [%out], %r0;"), expected.len());
        assert_eq!(got, *expected, "{body}");
    }
}

#[test]
fn numbers_of_sixty_four_bits() {
    let cases: &[(&str, &[u64])] = &[
        ("mul.wide.u32 %d0, 0xffffffff, 0xffffffff;", &[0xffff_fffe_0000_0001]),
        ("mul.hi.u64 %d0, 0x8000000000000000, 4;", &[2]),
        ("cvt.s64.s32 %d0, %lane; neg.s64 %d0, %d0;", &[0, u64::MAX]),
        ("cvt.rn.f64.s32 %d0, %lane;", &[0, 0x3ff0_0000_0000_0000, 0x4000_0000_0000_0000]),
        ("fma.rn.f64 %d0, 0d4000000000000000, 0d4008000000000000, 0d3ff0000000000000;", &[7f64.to_bits()]),
        ("cvt.f64.f32 %d0, 0f3fc00000;", &[1.5f64.to_bits()]),
        ("bfi.b64 %d0, 3, 0, 60, 4;", &[3 << 60]),
        ("mov.u64 %d0, %clock64; sub.u64 %d0, %d0, %d0;", &[0]),
    ];
    for (body, expected) in cases {
        let mut bench = Bench::new(&kernel(&format!("{body}\n    st.global.b64 [%wide], %d0;")));
        let out = bench.tensor("out", &[0u64; 32]);
        bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), Integer(0)]);
        assert_eq!(bench.read::<u64>(&out, expected.len()), *expected, "{body}");
    }
}

#[test]
fn variables_of_the_module_hold_their_values_and_addresses() {
    let text = ".version 8.5
.target sm_80
.address_size 64
.const .align 4 .u32 table[4] = {10, 20, 30, 40};
.global .align 4 .u32 counter = 5;
.global .align 8 .u64 pointer = counter;
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 3;
    mov.u64 %d0, table;
    mad.wide.u32 %d0, %r1, 4, %d0;
    ld.const.u32 %r2, [%d0];
    mov.u64 %d1, pointer;
    ld.global.u64 %d2, [%d1];
    ld.global.u32 %r3, [%d2];
    add.u32 %r2, %r2, %r3;
    ld.param.u64 %d3, [out];
    mad.wide.u32 %d3, %r0, 4, %d3;
    st.global.u32 [%d3], %r2;
    ret;
}
";
    let mut bench = Bench::new(text);
    let out = bench.tensor("out", &[0u32; 32]);
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, std::slice::from_ref(&out));
    assert_eq!(bench.read::<u32>(&out, 5), [15, 25, 35, 45, 15]);
    assert!(bench.module.variable("counter").is_some_and(|(_, bytes)| bytes == 4));
}

#[test]
fn asynchronous_copies_land_when_they_are_waited_for() {
    // What is read before the wait is what was there; after it, what was copied.
    let body = ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; shl.b32 %r2, %lane, 4; add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], 77; mad.wide.u32 %d0, %lane, 16, %in;
    cp.async.cg.shared.global [%r1], [%d0], 16; cp.async.commit_group;
    ld.shared.u32 %r3, [%r1]; cp.async.wait_group 0; ld.shared.u32 %r4, [%r1];
    mad.lo.u32 %r0, %r4, 1000, %r3; st.global.b32 [%out], %r0;";
    // Reading too early is a fault that sanitizers would tell.
    let options = Options { sanitizers: Sanitizers::NONE, ..Options::default() };
    let mut bench = Bench::with("sm_80", &kernel(body), options);
    let values: Vec<u32> = (0..128).collect();
    let (input, out) = (bench.tensor("in", &values), bench.tensor("out", &[0u32; 32]));
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), input]);
    assert_eq!(bench.read::<u32>(&out, 3), [77, 4077, 8077]);
}

#[test]
fn a_part_of_a_copy_leaves_zeros() {
    let body = ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; shl.b32 %r2, %lane, 4; add.u32 %r1, %r1, %r2;
    mad.wide.u32 %d0, %lane, 16, %in; mov.u32 %r5, 4;
    cp.async.ca.shared.global [%r1], [%d0], 16, %r5; cp.async.wait_all;
    ld.shared.v2.u32 {%r3, %r4}, [%r1]; mad.lo.u32 %r0, %r4, 1000, %r3; st.global.b32 [%out], %r0;";
    let mut bench = Bench::new(&kernel(body));
    let values: Vec<u32> = (1..129).collect();
    let (input, out) = (bench.tensor("in", &values), bench.tensor("out", &[0u32; 32]));
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), input]);
    assert_eq!(bench.read::<u32>(&out, 3), [1, 5, 9]);
}

#[test]
fn fragments_of_less_than_a_byte_come_from_rows_and_columns() {
    // Row i of a is i + 1 in its first element and 1 in its last, column j of b has -j in both places (signed nibbles);
    // c is 100. A row has 64 elements in memory, a column 32.
    let body = "mov.u32 %r9, 64;
    wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1}, [%in], %r9;
    add.u64 %d0, %in, 256;
    wmma.load.b.sync.aligned.col.m8n8k32.global.s4 {%r2}, [%d0];
    mov.u32 %r3, 100;
    wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r4, %r5}, {%r1}, {%r2}, {%r3, %r3};
    ld.param.u64 %d1, [out];
    wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%d1], {%r4, %r5};";
    let mut bench = Bench::new(&kernel(body));
    let mut words = vec![0u32; 64 + 32];
    for i in 0..8 {
        words[8 * i] = (i as u32 + 1) & 7;
        words[8 * i + 3] = 1 << 28;
        let j = (i as u32).wrapping_neg() & 15;
        words[64 + 4 * i] = j;
        words[64 + 4 * i + 3] = j << 28;
    }
    let (input, out) = (bench.tensor("in", &words), bench.tensor("out", &[0i32; 64]));
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), input]);
    let got = bench.read::<i32>(&out, 64);
    for (i, row) in got.chunks(8).enumerate() {
        // 8 does not fit in three bits and was cut to 0.
        let first = (i as i32 + 1) & 7;
        let expected: Vec<i32> = (0..8).map(|j| 100 - j * (first + 1)).collect();
        assert_eq!(row, expected, "row {i}");
    }
}

#[test]
fn products_of_small_matrices_are_exact() {
    // a is all ones but for lane 0's first element, b all twos: every sum is 16 * 2, or 32 + 2 in the row of that
    // element.
    let body = "mov.b32 %r1, 0x3c003c00; setp.eq.u32 %p0, %lane, 0; @%p0 mov.b32 %r1, 0x3c004000;
    mov.b32 %r2, 0x3c003c00; mov.b32 %r3, 0x40004000; mov.f32 %f0, 0f00000000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r2, %r2}, {%r3, %r3},
        {%f0, %f0, %f0, %f0};
    st.global.f32 [%out], %f1;";
    let mut bench = Bench::new(&kernel(body));
    let out = bench.tensor("out", &[0f32; 32]);
    bench.run("k", [1, 1, 1], [32, 1, 1], 0, &[out.clone(), Integer(0)]);
    let got = bench.read::<f32>(&out, 32);
    assert_eq!(got[..5], [34.0, 34.0, 34.0, 34.0, 32.0]);
}
