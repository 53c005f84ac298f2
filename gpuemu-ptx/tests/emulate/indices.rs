//! 32-bit indices that wrap around before they become an address.

use crate::bench::{Argument, Bench};
use gpuemu_ptx::emulate::{Options, Sanitizers};
use gpuemu_ptx::fault::{Fault, FaultKind};

/// `out[row * stride + tid]`, with `row` and `stride` as parameters and `body` between them and the address in `%d2`.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 row, .param .u32 stride)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [row];
    ld.param.u32 %r1, [stride];
    mov.u32 %r2, %tid.x;
{body}
    ret;
}}
"
    )
}

fn launch(body: &str, bytes: u64, row: u32, stride: u32) -> Option<Fault> {
    let options = Options { threads: 1, ..Options::default() };
    let mut bench = Bench::with("sm_80", &kernel(body), options);
    let out = bench.device.memory().allocate(bytes, 256, "out").unwrap();
    let number = |value: u32| Argument::Integer(value.into());
    bench.launch("k", [1, 1, 1], [32, 1, 1], 0, &[Argument::Pointer(out), number(row), number(stride)]).fault
}

const SIGNED: &str = "mad.lo.s32 %r3, %r0, %r1, %r2;
    mul.wide.s32 %d1, %r3, 4;
    add.s64 %d2, %d0, %d1;
    st.global.u32 [%d2], %r2;";
const UNSIGNED: &str = "mul.lo.s32 %r3, %r0, %r1;
    add.s32 %r4, %r3, %r2;
    cvt.u64.u32 %d1, %r4;
    shl.b64 %d3, %d1, 2;
    add.s64 %d2, %d0, %d3;
    st.global.u32 [%d2+16], %r2;";
/// Room for 2^33 elements, of which nothing is ever there.
const HUGE: u64 = 1 << 35;

#[test]
fn what_wraps_is_told() {
    // Below 2^31 in all; above it, before the tensor; above 2^32, inside it.
    let table = [
        (SIGNED, 100, 1000, None),
        (SIGNED, 1 << 20, 4096, Some((FaultKind::IndexWraps, "4294967296 wraps around to 0"))),
        (SIGNED, 1 << 19, 4096, Some((FaultKind::OutOfBounds, "2147483648 wraps around to -2147483648"))),
        (SIGNED, (1 << 20) + 1, 4096, Some((FaultKind::IndexWraps, "4294971392 wraps around to 4096"))),
        // Without a sign, there is room up to 2^32.
        (UNSIGNED, 1 << 19, 4096, None),
        (UNSIGNED, (1 << 20) + 1, 4096, Some((FaultKind::IndexWraps, "4294971392 wraps around to 4096"))),
    ];
    for (body, row, stride, expected) in table {
        let fault = launch(body, HUGE, row, stride);
        match (expected, fault) {
            (None, None) => {}
            (Some((kind, says)), Some(fault)) => {
                assert_eq!(fault.kind, kind, "{fault}");
                assert!(fault.to_string().contains(says), "{fault}");
                assert!(fault.to_string().contains("its index is computed in 32 bits, at PTX line"), "{fault}");
            }
            (expected, fault) => panic!("{body} {row} {stride}: {expected:?}, {fault:?}"),
        }
    }
}

#[test]
fn what_is_meant_is_not() {
    let table = [
        // A hash: what wraps is masked, shifted or taken modulo.
        ("mul.lo.s32 %r3, %r0, -1640531535; shr.u32 %r4, %r3, 20; mul.wide.u32 %d1, %r4, 4;", 12_345, 1),
        ("mul.lo.s32 %r3, %r0, -1640531535; and.b32 %r4, %r3, 1023; mul.wide.u32 %d1, %r4, 4;", 12_345, 1),
        ("mad.lo.s32 %r3, %r0, 1664525, 1013904223; rem.u32 %r4, %r3, %r1; mul.wide.u32 %d1, %r4, 4;", 12_345, 1000),
        // One less than zero in between, without a sign; a bound of 2^32 and an offset below zero.
        ("add.s32 %r3, %r0, -1; add.s32 %r4, %r3, 1; mul.wide.u32 %d1, %r4, 4;", 0, 1),
        ("mad.lo.s32 %r3, %r0, %r1, -5; add.s32 %r4, %r3, 7; cvt.s64.s32 %d1, %r4;", 0, 9),
        ("sub.s32 %r3, %r0, %r1; add.s32 %r4, %r3, %r1; mul.wide.u32 %d1, %r4, 4;", 3, 9),
        // Below zero with a sign: `row` is -3.
        ("mad.lo.s32 %r3, %r0, %r1, 40; mul.wide.s32 %d1, %r3, 4;", u32::MAX - 2, 9),
        // The product wraps in lanes that do not access anything.
        (
            "mul.lo.s32 %r3, %r0, %r1; setp.lt.u32 %p1, %r3, 1; selp.b32 %r4, %r3, 0, %p1; mul.wide.s32 %d1, %r4, 4;",
            1 << 20,
            4097,
        ),
        // In 64 bits.
        ("mul.wide.u32 %d3, %r0, %r1; shl.b64 %d1, %d3, 2;", 1 << 20, 4096),
    ];
    for (body, row, stride) in table {
        let body = format!("{body}\nadd.s64 %d2, %d0, %d1; setp.eq.u32 %p2, %r2, 0; @%p2 st.global.u8 [%d2], %r2;");
        let fault = launch(&body, HUGE, row, stride);
        assert!(fault.is_none(), "{body}: {}", fault.unwrap());
    }
    // Lanes that are masked may hold what they like.
    let masked = "mad.lo.s32 %r3, %r0, %r1, %r2; mul.wide.s32 %d1, %r3, 4; add.s64 %d2, %d0, %d1;
    setp.gt.u32 %p1, %r2, 99; @%p1 st.global.u32 [%d2], %r2;";
    assert!(launch(masked, HUGE, (1 << 20) + 1, 4096).is_none());
}

#[test]
fn without_the_sanitizer_nothing_is_told() {
    let options = Options { threads: 1, sanitizers: Sanitizers::NONE, ..Options::default() };
    let mut bench = Bench::with("sm_80", &kernel(SIGNED), options);
    let out = bench.device.memory().allocate(HUGE, 256, "out").unwrap();
    let arguments = [Argument::Pointer(out), Argument::Integer((1 << 20) + 1), Argument::Integer(4096)];
    assert!(bench.launch("k", [1, 1, 1], [32, 1, 1], 0, &arguments).fault.is_none());
}
