//! Whatever parses is resolved, weighed and judged, or refused: nothing panics, and nothing takes for ever.

use gpuemu_ptx::lint::check;
use gpuemu_ptx::metrics::measure;
use gpuemu_ptx::program::Program;
use proptest::prelude::*;

/// A module with something of everything.
const SEED: &str = r#".version 8.8
.target sm_90a
.address_size 64
.file 1 "a.cu"
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .shared .align 16 .b8 smem[];
.shared .f32 tile[64];
.global .align 8 .u64 table[3] = {text, generic(text)+1, 5};
.const .align 1 .b8 text[4] = {72, 105, 0};
.func (.param .f32 out) f(.param .f32 x) { .reg .f32 %f<3>; ld.param.f32 %f1, [x]; mul.f32 %f2, %f1, %f1;
st.param.f32 [out], %f2; ret; }
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .u32 n)
.reqntid 64, 1, 1
{
.reg .pred %p<5>;
.reg .b16 %h<3>;
.reg .b32 %r<20>;
.reg .f32 %f<9>;
.reg .f64 %e<3>;
.reg .b64 %d<9>;
.reg .v4 .f32 v;
.local .align 8 .b8 depot[64];
.loc 1 3 2
ld.param.u64 %d0, [p];
ld.param.u32 %r0, [n];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.lo.s32 %r3, %r2, %r0;
mul.wide.s32 %d1, %r3, 4;
add.s64 %d2, %d0, %d1;
mov.u32 %r4, tile;
shl.b32 %r5, %r1, 2;
add.s32 %r6, %r4, %r5;
setp.ge.s32 %p1, %r1, %r0;
@%p1 bra END;
mov.u32 %r7, 0;
LOOP:
.loc 1 4 2, function_name LABEL, inlined_at 1 3 2
ld.global.v4.f32 v, [%d2+16];
ld.global.u16 %h1, [%d2];
cvt.f64.f32 %e1, v.x;
mul.f64 %e2, %e1, 0d3FE0000000000000;
cvt.rn.f32.f64 %f1, %e2;
st.shared.f32 [%r6], %f1;
st.local.f32 [depot+4], %f1;
bar.sync 0;
ld.shared.f32 %f2, [%r6+4];
{ .reg .b32 t; mov.u32 t, %r7; add.s32 %r7, t, 1; }
shfl.sync.bfly.b32 %r8|%p2, %r7, 1, 31, -1;
setp.lt.and.s32 %p3|%p4, %r7, %r0, !%p2;
@%p3 bra LOOP;
{ .param .f32 a; .param .f32 b; st.param.f32 [a], %f2; call.uni (b), f, (a); ld.param.f32 %f3, [b]; }
red.global.add.f32 [%d2], %f3;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f4,%f5,%f6,%f7}, {%r8,%r9,%r10,%r11}, {%r12,%r13}, {%f4,%f5,%f6,%f7};
cp.async.cg.shared.global [%r6], [%d2], 16;
cp.async.wait_group 0;
B: .branchtargets LOOP, END;
brx.idx %r7, B;
END:
ret;
}
"#;

/// Goes the whole way with whatever parses.
fn go(text: &str) -> bool {
    let Ok(program) = Program::read(text) else { return false };
    for (id, _) in program.entries() {
        let metrics = measure(&program, id);
        for finding in check(&program, id, &metrics) {
            assert!(!finding.message.is_empty());
        }
    }
    true
}

#[derive(Clone, Debug)]
enum Change {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    /// The word at one place takes that of another.
    Word(usize, usize),
    Byte(usize, u8),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || 0..10_000_usize;
    let change = prop_oneof![
        at().prop_map(Change::Drop),
        at().prop_map(Change::Double),
        (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        (at(), at()).prop_map(|(a, b)| Change::Word(a, b)),
        (at(), b' '..b'~').prop_map(|(at, byte)| Change::Byte(at, byte)),
    ];
    prop::collection::vec(change, 1..5)
}

fn changed(changes: &[Change]) -> String {
    let mut lines: Vec<String> = SEED.lines().map(str::to_owned).collect();
    for change in changes {
        let count = lines.len();
        match *change {
            Change::Drop(at) => drop(lines.remove(at % count)),
            Change::Double(at) => lines.insert(at % count, lines[at % count].clone()),
            Change::Swap(a, b) => lines.swap(a % count, b % count),
            Change::Word(a, b) => {
                let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
                let (mut to, from) = (words(&lines[a % count]), words(&lines[b % count]));
                let (at, with) = (a / 7 % to.len(), b / 7 % from.len());
                to[at].clone_from(&from[with]);
                lines[a % count] = to.join(" ");
            }
            Change::Byte(at, byte) => {
                let line = &mut lines[at % count];
                let place = at / 11 % (line.len() + 1);
                line.insert(place, byte as char);
            }
        }
    }
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]
    #[test]
    fn changed_modules_never_panic(changes in changes()) {
        go(&changed(&changes));
    }
}

#[test]
fn the_seed_itself_goes_all_the_way() {
    assert!(go(SEED), "{}", Program::read(SEED).unwrap_err());
}

#[test]
fn long_and_deep_functions_are_no_trouble() {
    let wrap = |body: &str| {
        format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.entry k(.param .u64 p) {{ .reg .b32 %r<9>; .reg .b64 %d<3>; .reg \
             .pred %p<3>;\nmov.u32 %r1, %tid.x;\n{body}\nret; }}\n"
        )
    };
    let scopes = "{\n".repeat(50_000) + &"}\n".repeat(50_000);
    let chain: String = (0..300_000).map(|_| "add.s32 %r1, %r1, %r2;\n").collect();
    let ladder: String = (0..60_000).map(|_| "setp.eq.s32 %p1, %r1, 3;\n@%p1 bra E;\n").collect::<String>() + "E: ret;";
    let nests: String =
        (0..500).map(|n| format!("L{n}: add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 5;\n")).collect::<String>()
            + &(0..500).rev().map(|n| format!("@%p1 bra L{n};\n")).collect::<String>();
    let diamonds: String = (0..20_000)
        .map(|n| format!("setp.eq.s32 %p1, %r1, {n};\n@%p1 bra L{n};\nadd.s32 %r1, %r1, 1;\nL{n}:\n"))
        .collect();
    let stores: String = "mov.u32 %r3, smem; shl.b32 %r4, %r1, 2; add.s32 %r5, %r3, %r4;\n".to_owned()
        + &"st.shared.u32 [%r5], %r1;\nld.shared.u32 %r6, [%r5];\n".repeat(2_000);
    for body in [scopes, chain, ladder, nests, diamonds] {
        assert!(go(&wrap(&body)), "{}", &body[..100]);
    }
    let text = wrap(&stores).replace(".entry", ".shared .align 4 .b8 smem[4096];\n.entry");
    assert!(go(&text), "{}", Program::read(&text).unwrap_err());
}
