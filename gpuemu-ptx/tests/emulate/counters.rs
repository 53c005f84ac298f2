//! What launches are counted as: kernels whose sectors, passes and lanes are known beforehand.

use crate::bench::{Bench, Integer, kernel};
use gpuemu_ptx::emulate::{Counters, Options, Passes, Requests, Sanitizers};
use gpuemu_ptx::metrics::Class;

fn counting(threads: usize) -> Options {
    Options { threads, counters: true, sanitizers: Sanitizers::NONE, ..Options::default() }
}

/// One launch of `k` in blocks of one warp, counted.
fn counted(body: &str, grid: u32) -> Counters {
    let mut bench = Bench::with("sm_80", &kernel(body), counting(1));
    let (out, values) = (bench.tensor("out", &[0u32; 4096]), bench.tensor("in", &[1u32; 4096]));
    let launched = bench.launch("k", [grid, 1, 1], [32, 1, 1], 0, &[out, values]);
    assert!(launched.fault.is_none(), "{body}: {}", launched.fault.unwrap());
    let counters = launched.counters.expect("they were asked for");
    assert_eq!(counters.instructions, counters.classes.values().sum::<u64>());
    assert_eq!(launched.instructions, counters.instructions);
    counters
}

/// An address of so many bytes a lane after `%in`, in `%d1`.
fn strided(bytes: u32) -> String {
    format!("mul.wide.u32 %d0, %lane, {bytes}; add.s64 %d1, %in, %d0;\n")
}

#[test]
fn sectors() {
    // Bytes from lane to lane, the load, sectors and bytes of a request.
    let table = [
        (4, "ld.global.u32 %r1, [%d1];", 4, 128),
        (8, "ld.global.u32 %r1, [%d1];", 8, 128),
        (128, "ld.global.u32 %r1, [%d1];", 32, 128),
        (4, "ld.global.u32 %r1, [%d1+4];", 5, 128),
        (0, "ld.global.u32 %r1, [%d1];", 1, 128),
        (1, "ld.global.u8 %r1, [%d1];", 1, 32),
        (8, "ld.global.v2.u32 {%r1, %r2}, [%d1];", 8, 256),
        (16, "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d1];", 16, 512),
        // By a generic address.
        (4, "ld.u32 %r1, [%d1];", 4, 128),
    ];
    for (stride, load, sectors, bytes) in table {
        let counters = counted(&format!("{}{load}", strided(stride)), 3);
        assert_eq!(counters.global_loads, Requests { requests: 3, sectors: 3 * sectors, bytes: 3 * bytes }, "{load}");
        assert_eq!(counters.global_loads.sectors_per_request(), sectors as f64);
        assert_eq!(counters.global_stores, Requests::default());
    }
    let store = counted("st.global.u32 [%out], %lane;", 1);
    assert_eq!(store.global_stores, Requests { requests: 1, sectors: 4, bytes: 128 });
    // Under a predicate that holds in eight lanes, and in none: that one is issued, and asks for nothing.
    let few = counted("setp.lt.u32 %p1, %lane, 8; @%p1 st.global.u32 [%out], %lane;", 1);
    assert_eq!(few.global_stores, Requests { requests: 1, sectors: 1, bytes: 32 });
    let none = counted("setp.gt.u32 %p1, %lane, 99; @%p1 st.global.u32 [%out], %lane;", 1);
    assert_eq!(none.global_stores, Requests::default());
    assert_eq!(none.instructions, few.instructions);
    assert_eq!(few.lanes - none.lanes, 8);
}

#[test]
fn passes() {
    // Bytes from lane to lane, the access, passes and how many of them are conflicts.
    let table = [
        (4, "st.shared.u32 [%r9], %lane;", 1, 0),
        (8, "st.shared.u32 [%r9], %lane;", 2, 1),
        (12, "st.shared.u32 [%r9], %lane;", 1, 0),
        // A column of a tile of 32 by 32 floats, and of one with a column of padding.
        (128, "st.shared.u32 [%r9], %lane;", 32, 31),
        (132, "st.shared.u32 [%r9], %lane;", 1, 0),
        (0, "st.shared.u32 [%r9], 5;", 1, 0),
        (8, "st.shared.v2.u32 [%r9], {%lane, %lane};", 2, 0),
        (16, "st.shared.v4.u32 [%r9], {%lane, %lane, %lane, %lane};", 4, 0),
        (32, "st.shared.v4.u32 [%r9], {%lane, %lane, %lane, %lane};", 8, 4),
    ];
    for (stride, access, passes, conflicts) in table {
        let tile = ".shared .align 16 .b8 tile[8192];\n";
        let address = format!("mov.u32 %r8, tile; mad.lo.u32 %r9, %lane, {stride}, %r8;\n");
        let counters = counted(&format!("{tile}{address}{access}"), 1);
        assert_eq!(counters.shared_stores, Passes { requests: 1, passes, conflicts }, "{access} {stride}");
        assert_eq!(counters.shared_loads, Passes::default());
    }
}

#[test]
fn lanes_branches_and_classes() {
    // Half of the lanes add, then all store: 16 lanes of one instruction are lost, and the branch diverges once a warp.
    let body = "setp.lt.u32 %p1, %lane, 16;
    @%p1 bra THERE;
    add.u32 %lane, %lane, 1;
THERE:
    st.global.u32 [%out], %lane;";
    let counters = counted(body, 2);
    // Nine before and behind, `setp`, `bra`, `add`, `st`.
    assert_eq!((counters.branches, counters.divergent_branches), (2, 2));
    assert_eq!(counters.classes[&Class::Global], 2);
    assert_eq!(counters.classes[&Class::Predicate], 2);
    // A branch under a predicate is executed by the lanes in which it holds.
    let lost = 2 * (16 + 16);
    assert_eq!(counters.lanes, 32 * counters.instructions - lost);
    assert!(counters.occupancy() < 1.0);
    let whole = counted("setp.lt.u32 %p1, %lane, 99;\n@%p1 bra THERE;\nadd.u32 %lane, %lane, 1;\nTHERE:\n", 2);
    assert_eq!((whole.branches, whole.divergent_branches, whole.occupancy()), (2, 0, 1.0));
}

#[test]
fn barriers_and_atomics() {
    let body = ".shared .align 4 .b8 count[4];
    mov.u32 %r1, count;
    st.shared.u32 [%r1], 0;
    bar.sync 0;
    atom.shared.add.u32 %r2, [%r1], 1;
    bar.sync 0;
    bar.warp.sync 0xffffffff;
    red.global.add.u32 [%out], 1;";
    let counters = counted(body, 4);
    assert_eq!((counters.barriers, counters.shared_atomics, counters.global_atomics), (8, 4, 4));
}

#[test]
fn matrices_and_copies() {
    // Eight rows of 16 bytes one behind the other, and 128 bytes apart, where all lie in the same four banks.
    for (stride, passes, conflicts) in [(16, 1, 0), (128, 8, 7), (144, 1, 0)] {
        let body = format!(
            ".shared .align 16 .b8 tile[8192];
    mov.u32 %r8, tile;
    and.b32 %r1, %lane, 7;
    mad.lo.u32 %r9, %r1, {stride}, %r8;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r2}}, [%r9];"
        );
        assert_eq!(counted(&body, 1).shared_loads, Passes { requests: 1, passes, conflicts }, "{stride}");
    }
    let copy = ".shared .align 16 .b8 tile[8192];
    mov.u32 %r8, tile;
    mad.lo.u32 %r9, %lane, 16, %r8;
    mad.wide.u32 %d1, %lane, 16, %in;
    cp.async.cg.shared.global [%r9], [%d1], 16;
    cp.async.wait_all;";
    assert_eq!(counted(copy, 1).global_loads, Requests { requests: 1, sectors: 16, bytes: 512 });
}

#[test]
fn counts_do_not_depend_on_the_order() {
    let text = include_str!("../../../examples/cuda-kernels/kernels/transpose.sm_80.ptx");
    let run = |threads, seed| {
        let mut bench = Bench::with("sm_80", text, Options { seed, ..counting(threads) });
        let (x, out) = (bench.tensor("x", &[1f32; 96 * 64]), bench.tensor("out", &[0f32; 96 * 64]));
        let launched = bench.launch("transpose", [2, 3, 1], [32, 8, 1], 0, &[x, out, Integer(96), Integer(64)]);
        assert!(launched.fault.is_none());
        launched.counters.unwrap()
    };
    let first = run(1, None);
    // Six tiles of 32 rows, each a coalesced request of four sectors in and one out; the padded tile has no conflict.
    assert_eq!(first.global_loads, Requests { requests: 192, sectors: 768, bytes: 192 * 128 });
    assert_eq!(first.global_stores, first.global_loads);
    assert_eq!((first.shared_loads.conflicts, first.shared_stores.conflicts), (0, 0));
    assert_eq!(first.shared_loads.requests, 192);
    for (threads, seed) in [(3, None), (1, Some(5)), (4, Some(5))] {
        assert_eq!(run(threads, seed), first);
    }
}

/// What Nsight Compute 2025.3 counts on an H200 for the PTX of the examples, there with `.version 8.7`: sectors of global loads
/// and stores, instructions and passes of shared loads and stores, conflicts of both.
struct Measured {
    kernel: &'static str,
    text: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    sectors: [u64; 2],
    loads: Passes,
    stores: Passes,
}

macro_rules! measured {
    ($kernel:literal, $grid:expr, $block:expr, $sectors:expr, $loads:expr, $stores:expr) => {
        Measured {
            kernel: $kernel,
            text: include_str!(concat!("../../../examples/cuda-kernels/kernels/", $kernel, ".sm_90.ptx")),
            grid: $grid,
            block: $block,
            sectors: $sectors,
            loads: Passes { requests: $loads.0, passes: $loads.1, conflicts: $loads.2 },
            stores: Passes { requests: $stores.0, passes: $stores.1, conflicts: $stores.2 },
        }
    };
}

const H200: [Measured; 6] = [
    measured!("transpose", [2, 3, 1], [32, 8, 1], [768, 768], (192, 192, 0), (192, 192, 0)),
    measured!("matmul_tiled", [1, 1, 1], [16, 16, 1], [2048, 2048], (2048, 6144, 0), (512, 768, 256)),
    measured!("row_sum", [4, 1, 1], [256, 1, 1], [500, 4], (100, 100, 0), (80, 80, 0)),
    measured!("row_softmax", [4, 1, 1], [128, 1, 1], [1536, 512], (32, 32, 0), (32, 32, 0)),
    measured!("stencil", [2, 8, 1], [32, 8, 1], [2088, 512], (1152, 1152, 0), (176, 176, 0)),
    measured!("histogram", [4, 1, 1], [256, 1, 1], [625, 0], (4, 4, 0), (4, 4, 0)),
];

#[test]
fn counts_are_those_of_an_h200() {
    for measured in H200 {
        let mut bench = Bench::with("sm_90", measured.text, counting(1));
        let floats = |bench: &mut Bench, name, count: usize| bench.tensor(name, &vec![0.5f32; count]);
        let (arguments, shared) = match measured.kernel {
            "transpose" => {
                let (x, out) = (floats(&mut bench, "x", 96 * 64), floats(&mut bench, "out", 96 * 64));
                (vec![x, out, Integer(96), Integer(64)], 0)
            }
            "matmul_tiled" => {
                let (a, b) = (floats(&mut bench, "a", 64 * 128), floats(&mut bench, "b", 128 * 64));
                let out = floats(&mut bench, "out", 64 * 64);
                (vec![a, b, out, Integer(64), Integer(64), Integer(128)], 0)
            }
            "row_sum" => (vec![floats(&mut bench, "x", 4 * 1000), floats(&mut bench, "out", 4), Integer(1000)], 0),
            "row_softmax" => (vec![floats(&mut bench, "x", 4096), floats(&mut bench, "out", 4096), Integer(1024)], 0),
            "stencil" => {
                let (x, weight) = (floats(&mut bench, "x", 4096), floats(&mut bench, "weight", 9));
                (vec![x, weight, floats(&mut bench, "out", 4096), Integer(64), Integer(64)], 0)
            }
            _ => {
                let x: Vec<i32> = (0..5000).map(|at| at % 10).collect();
                let (x, counts) = (bench.tensor("x", &x), bench.tensor("counts", &[0i32; 10]));
                (vec![x, counts, Integer(5000), Integer(10)], 40)
            }
        };
        let launched = bench.launch(measured.kernel, measured.grid, measured.block, shared, &arguments);
        assert!(launched.fault.is_none(), "{}", launched.fault.unwrap());
        let counters = launched.counters.unwrap();
        let sectors = [counters.global_loads.sectors, counters.global_stores.sectors];
        let got = (sectors, counters.shared_loads, counters.shared_stores);
        assert_eq!(got, (measured.sectors, measured.loads, measured.stores), "{}", measured.kernel);
    }
}
