//! Kernels and launches that mean ill: the test says what and where, and the next kernel of the same run is tested as if
//! nothing had been.

use crate::{ADD, CONTRACT, suite};
use gpuemu_harness::suite::Suite;
use gpuemu_tests::sessions::{Place, assert_has, suite_report};
use std::time::{Duration, Instant};

/// The kernel `add` of the contract, and `bad` beside it, whose source is `bad.ptx`.
fn contract(launch: &str) -> String {
    let kernels = CONTRACT.find("[[kernels]]").unwrap();
    let bad = CONTRACT[kernels..].replace("\"add\"\nop", "\"bad\"\nop").replace("add.ptx", "bad.ptx");
    let (_, default) = bad.split_once("[kernels.launch]").unwrap();
    let launch = if launch.is_empty() { default } else { launch };
    let (bad, _) = bad.split_once("[kernels.launch]").unwrap();
    let strategies =
        CONTRACT.replace("[\"boundary\", \"layout\"]", "[\"boundary\"]").replace("cases = 12", "cases = 3");
    format!("{strategies}{bad}[kernels.launch]{launch}")
}

/// `add` with functions of the system before it, and instead of its last instruction.
fn kernel(instead: &str) -> String {
    let system = "
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.func again() { call.uni again; ret; }
.visible .entry";
    ADD.replacen(".visible .entry", system, 1).replacen("\tret;", &format!("{instead}\n\tret;"), 1)
}

const TEST: &str = "kernel::bad::float32::boundary";
const GRID: &str = "\ngrid = [\"ceil_div(N, 64)\"]\nblock = [64]\n";

#[test]
fn each_is_told_and_the_next_kernel_works() {
    let malloc =
        "{ .param .b64 n; .param .b64 p; st.param.b64 [n], 4096; call.uni (p), malloc, (n); ld.param.b64 %rd1, [p]; }";
    let free = "{ .param .b64 p; st.param.b64 [p], %rd1; call.uni free, (p); }";
    let print = "mov.u64 %rd1, text; mov.u64 %rd2, 0; L: { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd1; \
                 st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); } bra L;";
    let args = |args: &str| format!("{GRID}args = [{args}]\n");
    let entry = contract("").replace("source = \"bad.ptx\"", "source = \"bad.ptx\"\nentry = \"ad\"");
    let table: &[(String, String, &[&str])] = &[
        (contract(""), "int main() {}".to_owned(), &["bad.ptx: line 1", "[PtxParseError]"]),
        (contract(""), kernel("frobnicate;"), &["bad.ptx: line 37", "unknown opcode `frobnicate`"]),
        (entry, kernel(""), &["bad.ptx has no entry `ad`; did you mean `add`?"]),
        (
            contract(&args("\"a\", \"b\", \"out\"")),
            kernel(""),
            &["launch refused in add", "3 arguments: the kernel takes 4"],
        ),
        (
            contract(&args("0, \"b\", \"out\", \"N\"")),
            kernel(""),
            &[
                "read through a null pointer in add",
                "PTX line 32",
                "reads 4 bytes at 0x0",
                "hand \"0\" to `a`, which the kernel uses as an address (PTX line 32)",
                "cudaErrorIllegalAddress (700)",
            ],
        ),
        (
            contract(&args("1000000000000, \"b\", \"out\", \"N\"")),
            kernel(""),
            &["read at an illegal address in add", "at 0xe8d4a51000:", "in no region, nor near one"],
        ),
        (
            contract(""),
            kernel(&format!("{malloc} {free} ld.global.u32 %r1, [%rd1+8];")),
            &["read after free in add", "8 bytes into the heap, of 4096 bytes, which was freed"],
        ),
        (contract(""), kernel("L: bra L;"), &["kernel does not end in add", "comes back here for ever"]),
        (
            contract(&format!("{GRID}budget = 5000\nargs = [\"a\", \"b\", \"out\", \"N\"]\n")),
            kernel("L: add.u32 %r1, %r1, 1; bra L;"),
            &[
                "kernel does not end in add",
                "the block ran 5000 instructions and has not ended",
                "`budget` of [kernels.launch], or GPUEMU_BUDGET, lets it run for longer",
            ],
        ),
        (contract(""), kernel(print), &["kernel does not end in add", "printed by thread", ": hello"]),
        (
            contract(""),
            kernel("call.uni again;"),
            &["stack overflow in add", " calls are open", "cudaErrorHardwareStackError (714)"],
        ),
        // As long as there is any: then it is null.
        (
            contract(""),
            kernel(&format!("L: {malloc} st.u64 [%rd1], %rd1; bra L;")),
            &[
                "write through a null pointer in add",
                "`malloc` has given this thread null: it asked for 4096 bytes, and of the heap's 8388608 too few were left",
            ],
        ),
        (contract(""), kernel(&format!("L: {malloc} bra L;")), &["kernel does not end in add"]),
        (
            contract(&args("\"a\", \"b\", \"out\", \"N\", \"workspace:1000000*1000000000*N\"")),
            kernel("").replace(".param .u32 n)", ".param .u32 n, .param .u64 own)"),
            &["the workspace: out of memory: no room for ", "000000000000000 bytes"],
        ),
    ];
    for (contract, ptx, parts) in table {
        let place = Place::new(contract);
        place.write("add.ptx", ADD);
        place.write("bad.ptx", ptx);
        let suite = suite(&place);
        assert_eq!(suite.resolve(TEST).and_then(|test| test.cannot_run), None, "{ptx}");
        assert_has(&suite_report(&suite, TEST), parts);
        assert_eq!(suite_report(&suite, "kernel::add::float32::boundary"), "", "{ptx}");
    }
}

#[test]
fn a_million_blocks_of_nothing_and_far_more_memory_than_there_is() {
    // Each block but the first finds that it has nothing to do.
    let million = contract("\ngrid = [1000, 1000]\nblock = [64]\nargs = [\"a\", \"b\", \"out\", \"N\"]\n");
    let million =
        million.replace("dims = { N = { candidates = [1, 5, 300], tile = 64 } }", "dims = { N = [1, 5, 60] }");
    let busy = ADD.replace(
        "mov.u32 %r2, %ctaid.x;",
        "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mad.lo.s32 %r2, %r3, 1000, %r2;",
    );
    // 16 TiB of which one page is touched for each element.
    let workspace = format!("{GRID}args = [\"a\", \"b\", \"out\", \"N\", \"workspace:16*1024*1024*1024*1024\"]\n");
    let far = ADD.replace(".param .u32 n)", ".param .u32 n, .param .u64 own)").replace(
        "\tst.global.f32 [%rd7], %f3;",
        "ld.param.u64 %rd1, [own]; cvt.s64.s32 %rd2, %r5; shl.b64 %rd2, %rd2, 34; add.s64 %rd1, %rd1, %rd2; \
         st.global.f32 [%rd1], %f3; ld.global.f32 %f3, [%rd1]; st.global.f32 [%rd7], %f3;",
    );
    for (contract, ptx) in [(million, busy), (contract(&workspace), far)] {
        let place = Place::new(&contract);
        place.write("add.ptx", ADD);
        place.write("bad.ptx", &ptx);
        let started = Instant::now();
        assert_eq!(suite_report(&suite(&place), TEST), "");
        // Seconds where a machine is busy, and not minutes.
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}
