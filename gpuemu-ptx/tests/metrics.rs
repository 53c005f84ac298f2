//! What kernels cost, against counts by hand.

use gpuemu_ptx::metrics::{Access, Class, Count, Direction, Metrics, measure};
use gpuemu_ptx::program::Program;

const HEAD: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

/// The metrics of an entry of this body, which begins on line 6.
fn weigh(body: &str) -> Metrics {
    weigh_module(&format!(
        ".entry k(.param .u64 p, .param .u32 n) {{
        .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %d<20>; .reg .f64 %e<9>;
{body}\nret; }}\n"
    ))
}

fn weigh_module(items: &str) -> Metrics {
    let text = format!("{HEAD}{items}");
    let program = Program::read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    measure(&program, program.entry("k").unwrap())
}

fn count(instructions: u64, weighted: u64) -> Count {
    Count { instructions, weighted }
}

fn lines(places: &[gpuemu_ptx::metrics::Place]) -> Vec<u32> {
    places.iter().map(|place| place.line).collect()
}

#[test]
fn the_widest_point_is_where_most_is_needed() {
    // Body; registers, predicates, values of 16, 32 and 64 bits; line.
    let cases = [
        // Dead values: each needs its register for one instruction.
        ("mov.u32 %r0, 1;\nmov.u32 %r1, 2;", (1, 0, 0, 1, 0), 6),
        // Two numbers until the addition, which needs them and may reuse one.
        ("mov.u32 %r0, 1;\nmov.u32 %r1, 2;\nadd.u32 %r2, %r0, %r1;\nst.global.u32 [%d0], %r2;", (4, 0, 0, 2, 1), 7),
        // A double word is two registers, a half one; of equal points the first.
        (
            "ld.global.u64 %d1, [%d0];\nld.global.u16 %h1, [%d0];\nsetp.eq.u64 %p1, %d1, 0;\n@%p1 st.global.u16 [%d0], \
             %h1;\nst.global.u64 [%d0], %d1;",
            (5, 0, 1, 0, 2),
            7,
        ),
        // What is kept over a loop counts in it.
        (
            "mov.u32 %r0, 9;\nmov.u32 %r1, 0;\nmov.u32 %r2, 7;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p0, %r1, %r0;\n@%p0 \
             bra L;\nst.global.u32 [%d0], %r2;",
            (5, 0, 0, 3, 1),
            8,
        ),
        // A write under a guard that is the only one starts a value; one of several keeps the old.
        ("@%p0 mov.u32 %r0, 1;\n@%p0 st.global.u32 [%d0], %r0;", (3, 1, 0, 1, 1), 6),
    ];
    for (body, expected, line) in cases {
        let pressure = weigh(body).pressure;
        let found = (pressure.registers, pressure.predicates, pressure.bits16, pressure.bits32, pressure.bits64);
        assert_eq!((found, pressure.place.unwrap().line), (expected, line), "{body}");
    }
}

#[test]
fn values_alive_over_a_call_stay_beside_those_of_the_callee() {
    let metrics = weigh_module(
        ".func f() { .reg .b32 %a<4>; mov.u32 %a0, 0; mov.u32 %a1, 1; mov.u32 %a2, 2; add.u32 %a3, %a0, %a1;
        add.u32 %a3, %a3, %a2; st.global.u32 [16], %a3; ret; }
        .entry k() { .reg .b32 %r<2>; mov.u32 %r0, 1; call f, (); st.global.u32 [16], %r0; ret; }\n",
    );
    assert_eq!(metrics.pressure.registers, 4);
    assert_eq!(metrics.functions.len(), 2);
    assert_eq!(metrics.instructions.instructions, 11);
}

#[test]
fn loops_weigh_ten_times() {
    let metrics = weigh(
        "A: mov.u32 %r0, 0;\nB: ld.local.v2.u32 {%r1, %r2}, [%r0];\nsetp.lt.u32 %p0, %r1, %r2;\n@%p0 bra B;\nbar.sync 0;\n\
         @%p1 bra A;\nst.local.u16 [%r0], %h0;",
    );
    assert_eq!((metrics.loops, metrics.loop_depth), (2, 2));
    assert_eq!(metrics.instructions, count(8, 10 + 3 * 100 + 2 * 10 + 2));
    assert_eq!((metrics.local_loads, metrics.local_load_bytes), (count(1, 100), count(8, 800)));
    assert_eq!((metrics.local_stores, metrics.local_store_bytes), (count(1, 1), count(2, 2)));
    assert_eq!((metrics.branches, metrics.barriers), (count(2, 110), count(1, 10)));
    assert_eq!(metrics.mix[&Class::Local], count(2, 101));
    assert_eq!(metrics.mix[&Class::Control], count(3, 111));
}

#[test]
fn accesses_have_their_width() {
    let metrics = weigh(
        "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0];\nld.global.nc.u8 %r1, [%d0+1];\nst.global.v2.f64 [%d0], {%e0, %e1};\n\
         atom.global.add.f32 %f0, [%d0], %f1;\ncp.async.cg.shared.global [%r0], [%d0], 16;\ncp.async.wait_all;\nld.u32 \
         %r0, [%d1];\nld.shared.u32 %r0, [%r1];\nld.param.u32 %r0, [n];\nbra over;\nst.global.u8 [%d0], %r0;\nover:",
    );
    let found: Vec<_> = metrics
        .accesses
        .iter()
        .map(|Access { place, direction, bytes, generic, depth }| (place.line, *direction, *bytes, *generic, *depth))
        .collect();
    let expected = [
        (6, Direction::Load, 16, false, 0),
        (7, Direction::Load, 1, false, 0),
        (8, Direction::Store, 16, false, 0),
        (9, Direction::Atomic, 4, false, 0),
        (10, Direction::Copy, 16, false, 0),
        (12, Direction::Load, 4, true, 0),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        metrics.access_bytes.into_iter().collect::<Vec<_>>(),
        [(1, count(1, 1)), (4, count(2, 2)), (16, count(3, 3))]
    );
    assert_eq!((metrics.global_atomics, metrics.asynchronous_copies), (count(1, 1), count(1, 1)));
}

#[test]
fn memory_that_is_declared() {
    let metrics = weigh_module(
        ".extern .shared .align 16 .b8 dynamic[];\n.shared .f32 tile[64];\n.shared .f32 unused[1000];
        .entry k() { .local .align 8 .b8 depot[40]; .shared .u64 own[2]; .reg .b32 %r<4>; mov.u32 %r1, tile;
        ld.shared.u32 %r2, [dynamic+4]; ret; }\n",
    );
    assert_eq!((metrics.local_bytes, metrics.shared_bytes, metrics.dynamic_shared), (40, 272, true));
}

#[test]
fn doubles_are_told_from_data_of_doubles() {
    // Body; double-precision instructions; whether memory holds doubles.
    let cases = [
        (
            "ld.global.f32 %f0, [%d0];\ncvt.f64.f32 %e0, %f0;\nmul.f64 %e0, %e0, 0d3FE0000000000000;\ncvt.rn.f32.f64 %f0, %e0;",
            3,
            false,
        ),
        ("ld.global.f64 %e0, [%d0];\nadd.f64 %e0, %e0, %e0;", 1, true),
        ("ld.global.b64 %d1, [%d0];\nadd.f64 %d1, %d1, %d1;", 1, true),
        ("ld.global.b64 %d1, [%d0];\nadd.s64 %d1, %d1, %d1;", 0, false),
        ("ld.param.f64 %e0, [p];\ncvt.rn.f32.f64 %f0, %e0;", 1, false),
        ("add.f64 %d2, %e0, %e1;\nst.global.v2.b64 [%d0], {%d1, %d2};", 1, true),
        ("setp.lt.f64 %p0, %e0, %e1;\nrcp.approx.ftz.f64 %e1, %e0;", 2, false),
    ];
    for (body, doubles, data) in cases {
        let metrics = weigh(body);
        assert_eq!((metrics.doubles.instructions, metrics.double_data), (doubles, data), "{body}");
    }
}

#[test]
fn branches_that_part_a_warp() {
    // Body, lines of the branches that may part a warp.
    let cases: [(&str, &[u32]); 14] = [
        // Some leave, and others do not.
        ("mov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 16;\n@%p0 ret;\nL:", &[8]),
        ("mov.u32 %r0, %ctaid.x;\nsetp.lt.u32 %p0, %r0, 16;\n@%p0 exit;\nL:", &[]),
        ("mov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 16;\n@%p0 bra L;\nL:", &[8]),
        // Whole warps.
        ("mov.u32 %r0, %tid.x;\nsetp.lt.u32 %p0, %r0, 64;\n@%p0 bra L;\nL:", &[]),
        ("mov.u32 %r0, %tid.x;\nshr.u32 %r1, %r0, 5;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;\nL:", &[]),
        // Whole blocks.
        ("mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 bra L;\nL:", &[]),
        ("ld.param.u32 %r0, [n];\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 bra L;\nL:", &[]),
        // What a thread loads from its own address is its own.
        (
            "mov.u32 %r0, %tid.x;\nmul.wide.u32 %d0, %r0, 4;\nld.global.u32 %r1, [%d0];\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;\nL:",
            &[10],
        ),
        ("ld.global.u32 %r1, [%d0];\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;\nL:", &[]),
        // One lane's value, given to all.
        (
            "mov.u32 %r0, %tid.x;\nshfl.sync.idx.b32 %r1, %r0, 0, 31, -1;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;\nL:",
            &[],
        ),
        (
            "mov.u32 %r0, %tid.x;\nshfl.sync.down.b32 %r1, %r0, 1, 31, -1;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;\nL:",
            &[9],
        ),
        ("atom.global.add.u32 %r1, [%d0], 1;\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra L;\nL:", &[8]),
        // A number that depends on the way a thread came.
        (
            "mov.u32 %r0, %laneid;\nsetp.eq.u32 %p0, %r0, 0;\nmov.u32 %r1, 1;\n@%p0 bra L;\nmov.u32 %r1, 2;\nL: setp.eq.u32 %p1, %r1, 2;\n@%p1 bra M;\nM:",
            &[9, 12],
        ),
        // Threads that left are no threads: the rest count alike.
        (
            "mov.u32 %r0, %laneid;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 bra E;\nmov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nE:",
            &[8],
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(lines(&weigh(body).divergent), expected, "{body}");
    }
}

#[test]
fn products_that_become_addresses() {
    let cases: [(&str, &[u32]); 7] = [
        (
            "mul.lo.s32 %r0, %r1, %r2;\nmul.wide.s32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.u32 %r3, [%d2];",
            &[6],
        ),
        (
            "mad.lo.s32 %r0, %r1, %r2, %r3;\ncvt.s64.s32 %d1, %r0;\nshl.b64 %d1, %d1, 2;\nadd.s64 %d2, %d0, %d1;\nst.global.u32 [%d2], %r3;",
            &[6],
        ),
        // Widened as it is made.
        ("mul.wide.s32 %d1, %r1, %r2;\nadd.s64 %d2, %d0, %d1;\nld.global.u32 %r3, [%d2];", &[]),
        // A constant factor.
        ("mul.lo.s32 %r0, %r1, 12;\nmul.wide.s32 %d1, %r0, 4;\nadd.s64 %d2, %d0, %d1;\nld.global.u32 %r3, [%d2];", &[]),
        // Shared memory is small.
        ("mul.lo.s32 %r0, %r1, %r2;\nld.shared.u32 %r3, [%r0];", &[]),
        // It is the value that is stored, not its address.
        ("mul.lo.s32 %r0, %r1, %r2;\nst.global.u32 [%d0], %r0;", &[]),
        ("mul.lo.s32 %r0, %r1, %r2;\ncvt.s64.s32 %d1, %r0;\ncp.async.cg.shared.global [%r3], [%d1], 16;", &[6]),
    ];
    for (body, expected) in cases {
        assert_eq!(lines(&weigh(body).wrapping), expected, "{body}");
    }
}

#[test]
fn what_cannot_be_reached_costs_nothing() {
    let metrics = weigh_module(
        ".extern .func vprintf(.param .b64 a, .param .b64 b);\n.func unused() { trap; }
        .func g(); .func f() { call g, (); ret; } .func g() { call f, (); ret; }
        .entry k() { .param .b64 a; bra E; call unused, (); E: call f, (); call vprintf, (a, a); ret; }\n",
    );
    assert!(metrics.recursive);
    assert_eq!(metrics.external, ["vprintf"]);
    assert_eq!(metrics.instructions, count(8, 8));
    assert_eq!(metrics.functions.len(), 3);
}

#[test]
fn classes_are_in_order_and_have_names() {
    for (index, class) in Class::ALL.into_iter().enumerate() {
        assert_eq!(class as usize, index);
        assert!(Class::ALL.iter().all(|other| (other.name() == class.name()) == (*other == class)));
    }
}
