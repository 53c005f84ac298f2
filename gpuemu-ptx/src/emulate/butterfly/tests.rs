//! Stores after exchanges between lanes, and in which bits of the number of a lane they store one value.

use super::Butterflies;
use crate::program::{Opcode, Program};

/// A sum over lanes so many apart, each stage with registers of its own: from `%f0` to the last even register.
fn sum(strides: &[u32]) -> String {
    let stage = |(stage, stride): (usize, &u32)| {
        let (from, other, to) = (2 * stage, 2 * stage + 1, 2 * stage + 2);
        format!("shfl.sync.bfly.b32 %f{other}, %f{from}, {stride}, 31, -1; add.f32 %f{to}, %f{from}, %f{other};\n")
    };
    strides.iter().enumerate().map(stage).collect()
}

/// Four stages of a sum, in `%f8`, and what the fifth makes of it and of the partner's, `%f20`.
fn fifth(combine: &str) -> String {
    sum(&[16, 8, 4, 2]) + "shfl.sync.bfly.b32 %f20, %f8, 1, 31, -1;" + combine + "st.shared.f32 [s], %f22;"
}

/// A mean `%f0` of `%f2` elements and the partner's: both the numbers of elements together, and the partner's share.
const SHARE: &str =
    "shfl.sync.bfly.b32 %f1, %f0, 1, 31, -1; shfl.sync.bfly.b32 %f3, %f2, 1, 31, -1; add.f32 %f4, %f2, %f3;
    setp.eq.f32 %p1, %f4, 0f00000000; div.full.f32 %f5, %f3, %f4; selp.f32 %f6, 0f00000000, %f5, %p1;";

#[test]
fn lanes_that_store_one_value() {
    let whole = sum(&[16, 8, 4, 2, 1]);
    let shared = "and.b32 %r2, %lane, 24; add.u32 %r3, %r2, %r9;";
    let table: &[(&str, String, u8)] = &[
        ("a whole sum", format!("{whole} st.shared.f32 [s], %f10;"), 0x1f),
        ("one stride is missing", sum(&[16, 8, 4, 2]) + "st.shared.f32 [s], %f8;", 0x1e),
        ("in halves of a warp", sum(&[8, 4, 2, 1]) + "st.shared.f32 [s], %f8;", 0x0f),
        ("what is made of a sum", format!("{whole} sqrt.rn.f32 %f11, %f10; st.shared.f32 [s], %f11;"), 0x1f),
        ("the sum of two", fifth("add.f32 %f22, %f8, %f20;"), 0x1f),
        ("their difference", fifth("sub.f32 %f22, %f8, %f20;"), 0x1e),
        ("its size", fifth("sub.f32 %f21, %f8, %f20; abs.f32 %f22, %f21;"), 0x1f),
        ("their mean", fifth("sub.f32 %f21, %f20, %f8; fma.rn.f32 %f22, %f21, 0f3F000000, %f8;"), 0x1f),
        ("a third of the way", fifth("sub.f32 %f21, %f20, %f8; fma.rn.f32 %f22, %f21, 0f3EAAAAAB, %f8;"), 0x1e),
        ("the partner's alone", fifth("mov.f32 %f22, %f20;"), 0x1e),
        ("the larger", fifth("setp.gt.f32 %p1, %f8, %f20; selp.f32 %f22, %f8, %f20, %p1;"), 0x1f),
        ("that of the even lane", fifth("selp.f32 %f22, %f8, %f20, %p0;"), 0x1e),
        ("with the lane's own", fifth("add.f32 %f21, %f8, %f20; add.f32 %f22, %f21, %f0;"), 0),
        (
            "a weighted mean",
            format!("{SHARE} sub.f32 %f7, %f1, %f0; fma.rn.f32 %f8, %f7, %f6, %f0; st.shared.f32 [s], %f8;"),
            1,
        ),
        (
            "weighted the wrong way",
            format!("{SHARE} sub.f32 %f7, %f0, %f1; fma.rn.f32 %f8, %f7, %f6, %f0; st.shared.f32 [s], %f8;"),
            0,
        ),
        (
            "down, not across",
            "shfl.sync.down.b32 %f1, %f0, 1, 31, -1; add.f32 %f3, %f0, %f1; st.shared.f32 [s], %f3;".into(),
            0,
        ),
        (
            "some lanes only",
            "shfl.sync.bfly.b32 %f1, %f0, 1, 31, 3; add.f32 %f3, %f0, %f1; st.shared.f32 [s], %f3;".into(),
            0,
        ),
        (
            "where a predicate says",
            "@%p0 shfl.sync.bfly.b32 %f1, %f0, 1, 31, -1; add.f32 %f3, %f0, %f1; st.shared.f32 [s], %f3;".into(),
            0,
        ),
        ("one address, one value", format!("{shared} ld.shared.f32 %f1, [%r3]; st.shared.f32 [s], %f1;"), 0x07),
        (
            "its own local memory",
            ".local .b8 l[4]; st.local.f32 [l], %f0; ld.local.f32 %f1, [l]; st.shared.f32 [s], %f1;".into(),
            0,
        ),
        (
            "and a sum of such",
            "and.b32 %r2, %lane, 3; shl.b32 %r3, %r2, 2; add.u32 %r4, %r3, %r9; ld.shared.f32 %f1, [%r4];
             shfl.sync.bfly.b32 %f3, %f1, 2, 31, -1; add.f32 %f4, %f1, %f3; shfl.sync.bfly.b32 %f5, %f4, 1, 31, -1;
             add.f32 %f6, %f4, %f5; st.shared.f32 [s], %f6;"
                .into(),
            0x1f,
        ),
        (
            "loaded where a predicate says",
            format!(
                "{shared} setp.lt.u32 %p1, %r2, 9; mov.f32 %f1, 0f00000000; @%p1 ld.shared.f32 %f1, [%r3]; st.shared.f32 [s], %f1;"
            ),
            0x07,
        ),
        ("a value of the turn before", "L: st.shared.f32 [s], %f1; mov.f32 %f1, 0f00000000; @%p0 bra L;".into(), 0),
        (
            "lanes that left a loop at different turns",
            "L: ld.shared.f32 %f1, [s]; @%p0 bra L; st.shared.f32 [s], %f1;".into(),
            0,
        ),
        ("a vector", sum(&[2, 1]) + "st.shared.v2.f32 [s], {%f4, 0f00000000};", 0x03),
        ("a vector of one's own", sum(&[2, 1]) + "st.shared.v2.f32 [s], {%f4, %f0};", 0),
    ];
    for (name, body, alike) in table {
        let text = format!(
            ".version 8.0 .target sm_80 .address_size 64 .entry k() .reqntid 128 {{ .reg .pred %p<4>; .reg .b32 %r<10>;
            .reg .f32 %f<32>; .reg .b32 %lane; .shared .align 8 .b8 s[128]; mov.u32 %lane, %tid.x; mov.u32 %r9, s;
            and.b32 %r1, %lane, 1; setp.eq.u32 %p0, %r1, 0; cvt.rn.f32.u32 %f0, %lane;
            shfl.sync.idx.b32 %f31, %f0, 0, 31, -1; {} {body} ret; }}",
            if body.contains(SHARE) { "cvt.rn.f32.u32 %f2, %r1;" } else { "" },
        );
        let program = Program::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let function = &program.functions[0];
        let butterflies = Butterflies::new(&program, function);
        let shared = |instruction: &u32| {
            let instruction = &function.instructions[*instruction as usize];
            instruction.opcode == Opcode::St
                && program.form(instruction.form).space == Some(crate::program::Space::Shared)
        };
        let found: Vec<u8> =
            (0..function.instructions.len() as u32).filter(shared).map(|at| butterflies.alike(at)).collect();
        assert_eq!(found, [*alike], "{name}");
    }
}
