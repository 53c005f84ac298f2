//! Compiled kernels under test: hand-written PTX, right and with one fault each.

use gpuemu_harness::Error;
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::suite::Suite;
use gpuemu_tests::sessions::{Place, assert_has, report, suite_report};

/// Adds vectors, a thread an element.
const ADD: &str = r#".version 8.0
.target sm_80
.address_size 64

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<9>;

	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u64 %rd3, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.s32 %p1, %r5, %r1;
	@%p1 bra DONE;
	mul.wide.s32 %rd4, %r5, 4;
	add.s64 %rd5, %rd1, %rd4;
	add.s64 %rd6, %rd2, %rd4;
	add.s64 %rd7, %rd3, %rd4;
	ld.global.f32 %f1, [%rd5];
	ld.global.f32 %f2, [%rd6];
	add.f32 %f3, %f1, %f2;
	st.global.f32 [%rd7], %f3;
DONE:
	ret;
}
"#;

const CONTRACT: &str = r#"
[project]
name = "kernels"
[validation]
dtypes = ["float32"]
strategies = ["boundary", "layout"]
cases = 12
[[ops]]
name = "add"
reference = "add"
[ops.schema]
dims = { N = { candidates = [1, 5, 300], tile = 64 } }
inputs = { a = ["N"], b = ["N"] }
outputs = { out = ["N"] }
[[kernels]]
name = "add"
op = "add"
source = "add.ptx"
[kernels.launch]
grid = ["ceil_div(N, 64)"]
block = [64]
args = ["a", "b", "out", "N"]
"#;

const TEST: &str = "kernel::add::float32::boundary";

/// A project whose kernel has each of `changes` done to it: what stood there, and what stands there now.
fn project(contract: &str, changes: &[(&str, &str)]) -> Place {
    let place = Place::new(contract);
    let changed = changes.iter().fold(ADD.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replacen(old, new, 1)
    });
    place.write("add.ptx", &changed);
    place
}

fn suite(place: &Place) -> ProjectSuite {
    ProjectSuite::new(place.session()).unwrap()
}

#[test]
fn a_right_kernel_passes_and_says_what_it_is() {
    let place = project(CONTRACT, &[]);
    let session = place.session();
    assert_eq!(report(&session, TEST), "");
    let op = session.op("kernel::add").unwrap();
    assert_eq!(session.subject(op).unwrap().describe(), "kernel add (add.ptx on an emulated sm_80)");
}

#[test]
fn a_kernel_without_strides_has_no_views() {
    let tests = suite(&project(CONTRACT, &[])).tests();
    let listed: Vec<_> = tests.iter().map(|test| (test.name.as_str(), test.cannot_run.as_deref())).collect();
    assert_eq!(
        listed,
        [
            ("add::float32::boundary", Some("only compiled kernels compute it: kernel::add tests that")),
            ("add::float32::layout", Some("only compiled kernels compute it: kernel::add tests that")),
            ("artifact::add", Some("no `targets` in its [kernels.artifact_checks]")),
            ("kernel::add::float32::boundary", None),
            (
                "kernel::add::float32::layout",
                Some("no launch passes strides: inputs lie in row order where they declare no other `layouts`")
            ),
        ]
    );
    // An input that says so lies elsewhere, and the kernel finds it there.
    let offset = CONTRACT.replace("b = [\"N\"]", "b = { dims = [\"N\"], layouts = [\"offset\"] }");
    let place = project(&offset, &[]);
    assert_eq!(report(&place.session(), "kernel::add::float32::layout"), "");
}

/// What a fault is called, and what its report says.
type Fault<'t> = (&'t [(&'t str, &'t str)], &'t str, &'t [&'t str]);

#[test]
fn faults_are_named_placed_and_shrunk() {
    let table: &[Fault<'_>] = &[
        // No mask at all: the smallest case is one element, and the second thread reads behind it.
        (
            &[("\t@%p1 bra DONE;\n", "")],
            "out-of-bounds",
            &[
                "failed: read out of bounds in add\n",
                "at PTX line 25: ld.global.f32",
                "thread (1, 0, 0) of block (0, 0, 0) reads 4 bytes",
                "at the end of a, of 4 bytes (1 element)",
                "a GPU answers cudaErrorIllegalAddress (700)",
                "kernel::add::float32::boundary{N=1}",
                "GPUEMU_CASE='kernel::add::float32::boundary{N=1}",
            ],
        ),
        // One thread too many.
        (
            &[("setp.ge.s32", "setp.gt.s32")],
            "out-of-bounds",
            &["read out of bounds in add", "thread (1, 0, 0) of block (0, 0, 0)", "at the end of a, of 4 bytes"],
        ),
        // The store alone is not masked.
        (
            &[
                ("\t@%p1 bra DONE;\n", ""),
                ("\tld.global.f32 %f1", "\t@!%p1 ld.global.f32 %f1"),
                ("\tld.global.f32 %f2", "\t@!%p1 ld.global.f32 %f2"),
            ],
            "out-of-bounds",
            &["write out of bounds in add", "PTX line 28", "at the end of out, of 4 bytes"],
        ),
        // Every address two bytes off.
        (
            &[("[%rd6]", "[%rd6+2]")],
            "misaligned",
            &[
                "misaligned read in add",
                "2 bytes into b, of 4 bytes (1 element)",
                "a GPU answers cudaErrorMisalignedAddress (716)",
            ],
        ),
        // The sum goes into an input.
        (
            &[("add.s64 %rd7, %rd3, %rd4;", "add.s64 %rd7, %rd1, %rd4;")],
            "input-written",
            &["write to an input in add", "into a, of 4 bytes", "a GPU says nothing"],
        ),
        // All threads write the first element.
        (
            &[("add.s64 %rd7, %rd3, %rd4;", "mov.u64 %rd7, %rd3;")],
            "global-race",
            &["race in global memory in add", "into out, of 8 bytes (2 elements)", "and nothing orders the two"],
        ),
        // What the output held is added.
        (
            &[("add.f32 %f3, %f1, %f2;", "ld.global.f32 %f3, [%rd7]; add.f32 %f3, %f3, %f1;")],
            "uninitialised-read",
            &["read of memory that nothing wrote in add", "into out, of 4 bytes (1 element)"],
        ),
        (&[("\tret;", "\ttrap;")], "trap", &["trap in add", "a GPU answers cudaErrorLaunchFailure (719)"]),
        (&[("DONE:\n", "DONE:\n\tbra DONE;\n")], "runaway", &["kernel does not end in add"]),
    ];
    for (changes, kind, parts) in table {
        let place = project(CONTRACT, changes);
        let session = place.session();
        let finished = gpuemu_tests::sessions::finished(&session, TEST);
        let failure = finished.failure.unwrap_or_else(|| panic!("{kind} passes"));
        let text = failure.render();
        assert_eq!(failure.failure.check.name(), *kind, "{text}");
        assert_has(&text, parts);
    }
}

#[test]
fn a_wrong_value_is_a_wrong_value() {
    let place = project(CONTRACT, &[("add.f32 %f3", "sub.f32 %f3")]);
    assert_has(&report(&place.session(), TEST), &["out[0]: expected", "subject  kernel add (add.ptx"]);
    // The last partial tile alone.
    let place =
        project(CONTRACT, &[("setp.ge.s32 %p1, %r5, %r1;", "add.s32 %r1, %r1, -1; setp.ge.s32 %p1, %r5, %r1;")]);
    assert_has(&report(&place.session(), TEST), &["out", "written"]);
}

#[test]
fn a_failure_is_saved_and_runs_again() {
    let place = project(CONTRACT, &[("setp.ge.s32", "setp.gt.s32")]);
    let text = report(&place.session(), TEST);
    assert_has(&text, &["saved    gpuemu-regressions/kernel/add/"]);
    let suite = suite(&place);
    let saved: Vec<_> = suite.tests().into_iter().filter(|test| test.regression).map(|test| test.name).collect();
    assert_eq!(saved.len(), 1);
    assert!(saved[0].starts_with("kernel::add::regressions::"), "{saved:?}");
    assert_has(
        &suite_report(&suite, &saved[0]),
        &["read out of bounds in add", "saved in gpuemu-regressions/kernel/add/"],
    );
    assert_has(&suite_report(&suite, "kernel::add::regressions"), &["read out of bounds in add"]);
    place.write("add.ptx", ADD);
    let suite = ProjectSuite::new(place.session()).unwrap();
    assert_eq!(suite_report(&suite, &saved[0]), "");
}

#[test]
fn sanitizers_can_be_switched_off() {
    let own = "add.s64 %rd7, %rd3, %rd4;";
    let table = [
        ("input_writes", (own, "add.s64 %rd7, %rd1, %rd4;"), "unwritten"),
        ("races", (own, "mov.u64 %rd7, %rd3;"), "unwritten"),
        (
            "uninitialised_reads",
            ("add.f32 %f3, %f1, %f2;", "ld.global.f32 %f3, [%rd7]; add.f32 %f3, %f3, %f1;"),
            "non-finite",
        ),
    ];
    for (switch, change, check) in table {
        let place = project(&format!("{CONTRACT}[kernels.sanitizers]\n{switch} = false\n"), &[change]);
        let failure = gpuemu_tests::sessions::finished(&place.session(), TEST).failure.expect("wrong all the same");
        assert_eq!(failure.failure.check.name(), check, "{}", failure.render());
    }
}

#[test]
fn launches_that_do_not_fit_the_kernel() {
    let table: &[(&str, &str, &[&str])] = &[
        (
            "\"a\", \"b\", \"out\", \"N\"",
            "\"a\", \"b\", \"out\"",
            &["launch refused in add", "3 arguments: the kernel takes 4"],
        ),
        ("\"N\"]\n", "\"u64:1\"]\n", &["launch refused in add", "8 bytes for parameter `n` of 4 bytes"]),
        ("\"a\", \"b\"", "3, \"b\"", &["null plus 3 bytes"]),
        ("ceil_div(N, 64)", "N - N", &["launch refused in add", "a grid of 0 blocks along x"]),
        ("ceil_div(N, 64)", "0 - N", &["the launch's grid `0 - N` is -"]),
        (
            "block = [64]",
            "block = [64]\nshared = \"1000*1000\"",
            &["launch refused in add", "1000000 bytes of dynamic shared memory"],
        ),
    ];
    for (old, new, parts) in table {
        assert!(CONTRACT.contains(old), "{old}");
        let place = project(&CONTRACT.replacen(old, new, 1), &[]);
        let text = report(&place.session(), TEST);
        assert_has(&text, parts);
    }
}

#[test]
fn kernels_that_are_not_executed_are_ignored_with_the_reason() {
    let reason = |contract: &str, changes: &[(&str, &str)]| {
        let suite = suite(&project(contract, changes));
        let listed = suite.resolve(TEST).expect("it is listed");
        listed.cannot_run.unwrap_or_default()
    };
    assert_has(
        &reason(CONTRACT, &[("\tmov.u32 %r2, %ctaid.x;", "\tvadd.s32.s32.s32 %r2, %r1, %r1;")]),
        &["add.ptx: line 19: `vadd.s32.s32.s32` cannot be executed: "],
    );
    let launch = CONTRACT.find("[kernels.launch]").unwrap();
    assert_eq!(reason(&CONTRACT[..launch], &[]), "no [kernels.launch] says how it is started");
}

#[test]
fn what_is_no_ptx_fails() {
    let place = Place::new(CONTRACT);
    place.write("add.ptx", "int main() {}\n");
    let suite = suite(&place);
    assert_eq!(suite.resolve(TEST).unwrap().cannot_run, None);
    assert_has(&suite_report(&suite, TEST), &["add.ptx: line 1", "[PtxParseError]"]);
    let place = project(CONTRACT, &[(".target sm_80", ".target sm_1234")]);
    assert!(matches!(place.open(), Ok(_) | Err(Error::Config(_))));
}
