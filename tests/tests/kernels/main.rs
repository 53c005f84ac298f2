//! Compiled kernels under test: hand-written PTX, right and with one fault each.

mod accuracy;
mod hostile;
mod launches;

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
    let place = project(CONTRACT, &[]);
    let tests = suite(&place).tests();
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
    // Where tests are functions of their own, which cannot be ignored once they run, these are left out.
    let elsewhere = |name: &str| suite(&place).tested_elsewhere(name);
    let reason = Some("only compiled kernels compute it: kernel::add tests that".to_owned());
    assert_eq!((elsewhere("add::float32::boundary"), elsewhere(TEST)), (reason, None));
    // Where all has to run, what no host could run is not there.
    let required = place.open_with(|environment| environment.require = true).unwrap();
    let names: Vec<_> = ProjectSuite::new(required).unwrap().tests().into_iter().map(|test| test.name).collect();
    assert_eq!(names, [TEST]);
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
fn the_environment_says_what_is_watched() {
    use gpuemu_ptx::emulate::Sanitizers;
    let change = ("add.s64 %rd7, %rd3, %rd4;", "add.s64 %rd7, %rd1, %rd4;");
    let off = format!("{CONTRACT}[kernels.sanitizers]\ninput_writes = false\n");
    let inputs = Sanitizers { inputs: true, ..Sanitizers::NONE };
    let table = [
        (CONTRACT, Some(Sanitizers::NONE), "unwritten"),
        (CONTRACT, Some(Sanitizers { inputs: false, ..Sanitizers::ALL }), "unwritten"),
        (&off, None, "unwritten"),
        (&off, Some(inputs), "input-written"),
        (&off, Some(Sanitizers::ALL), "input-written"),
    ];
    for (contract, sanitizers, check) in table {
        let place = project(contract, &[change]);
        let session = place.open_with(|environment| environment.sanitizers = sanitizers).unwrap();
        let failure = gpuemu_tests::sessions::finished(&session, TEST).failure.expect("wrong all the same");
        assert_eq!(failure.failure.check.name(), check, "{}", failure.render());
    }
}

#[test]
fn the_environment_says_how_long_a_kernel_may_run() {
    let place = project(CONTRACT, &[("DONE:\n", "DONE:\n\tadd.s32 %r1, %r1, 1;\n\tbra DONE;\n")]);
    let session = place.open_with(|environment| environment.budget = std::num::NonZeroU64::new(3000)).unwrap();
    assert_has(&report(&session, TEST), &["the block ran 3000 instructions and has not ended", "GPUEMU_BUDGET"]);
}

/// Every thread takes a number, and is wrong by one where it is not its own: right where all come in the usual order, those
/// of the upper half of the blocks first.
const NUMBERED: (&str, &str) = (
    "\tadd.f32 %f3, %f1, %f2;",
    "\t.reg .b32 %q<5>; mov.u32 %q0, %nctaid.x; shr.u32 %q0, %q0, 1; shl.b32 %q0, %q0, 6; ld.param.u32 %q1, [n];
\tsub.s32 %q2, %r5, %q0; add.s32 %q3, %q2, %q1; setp.lt.s32 %p0, %q2, 0; selp.b32 %q4, %q3, %q2, %p0;
\tld.param.u64 %rd1, [seen]; atom.global.add.u32 %r4, [%rd1], 1; setp.ne.u32 %p0, %r4, %q4;
\tadd.f32 %f3, %f1, %f2; @%p0 add.f32 %f3, %f3, 0f3F800000;",
);

#[test]
fn a_kernel_that_hangs_on_the_order_of_blocks_is_found() {
    let contract = CONTRACT
        .replace("\"out\", \"N\"]", "\"out\", \"N\", \"seen\"]")
        .replace(
            "inputs = { a",
            "inputs = { seen = { dims = [1], dtype = \"int32\", domain = [0, 0], inout = true }, a",
        )
        .replace("reference = \"add\"", "reference = \"references:counted\"");
    let place = project(&contract, &[NUMBERED, (".param .u32 n)", ".param .u32 n, .param .u64 seen)")]);
    place.write("references.py", "import numpy as np\n\n\ndef counted(seen, a, b):\n    return seen + a.size, a + b\n");
    let session = place.session();
    let failure = gpuemu_tests::sessions::finished(&session, TEST).failure.expect("another order of blocks shows it");
    let text = failure.render();
    assert_has(&text, &["another order of blocks and warps shows it", "out["]);
    // The replay finds it again, and so does the saved case.
    let case = failure.case.unwrap().spec;
    let again = gpuemu_harness::pipeline::trial::run(&session, &case.test, Some(&case));
    assert_has(&again.failure.expect("it fails again").render(), &["another order of blocks and warps shows it"]);
    let suite = suite(&place);
    let saved = suite.tests().into_iter().find(|test| test.regression).expect("it was saved").name;
    assert_has(&suite_report(&suite, &saved), &["another order of blocks and warps shows it"]);
}

#[test]
fn what_a_launch_executes_is_told_where_it_is_asked_for() {
    let place = project(CONTRACT, &[("add.f32 %f3", "sub.f32 %f3")]);
    assert!(!report(&place.session(), TEST).contains("sectors"));
    let session = place.open_with(|environment| environment.counters = true).unwrap();
    let finished = gpuemu_tests::sessions::finished(&session, TEST);
    // One element: one lane of each instruction past the branch asks for one sector.
    let said = "1.0 sectors a load and 1.0";
    assert_has(&finished.failure.expect("it subtracts").render(), &["executed ", said]);
    assert!(finished.lines.iter().all(|line| line.notes.iter().any(|note| note.contains("sectors"))));
}

#[test]
fn a_workspace_is_memory_that_nothing_wrote() {
    let contract = CONTRACT.replace("\"out\", \"N\"]", "\"out\", \"N\", \"workspace:4*N\"]");
    let parameter = (".param .u32 n)", ".param .u32 n, .param .u64 own)");
    let through =
        "ld.param.u64 %rd1, [own]; add.s64 %rd1, %rd1, %rd4; st.global.f32 [%rd1], %f3; ld.global.f32 %f3, [%rd1];";
    let place = project(
        &contract,
        &[parameter, ("\tst.global.f32 [%rd7], %f3;", &format!("{through} st.global.f32 [%rd7], %f3;"))],
    );
    assert_eq!(report(&place.session(), TEST), "");
    let read = through.replacen("st.global.f32 [%rd1], %f3;", "", 1);
    let place = project(
        &contract,
        &[parameter, ("\tst.global.f32 [%rd7], %f3;", &format!("{read} st.global.f32 [%rd7], %f3;"))],
    );
    assert_has(
        &report(&place.session(), TEST),
        &["read of memory that nothing wrote in add", "into the workspace, of 4 bytes"],
    );
}

#[test]
fn a_measured_launch_is_in_the_snapshot() {
    let contract = format!(
        "{CONTRACT}[kernels.measured]\ndims = {{ N = 130 }}\n[kernels.artifact_checks]\ntargets = [\"sm_80\"]\n"
    );
    let place = project(&contract, &[]);
    let session = place.session();
    let suite = ProjectSuite::new(session).unwrap();
    let text = suite_report(&suite, "artifact::add::sm_80");
    let pending = std::fs::read_to_string(place.path().join("gpuemu-snapshots/artifact/add.sm_80.snap.new"));
    let figures = pending.unwrap_or_else(|error| panic!("{error}\n{text}"));
    // Four warps of 32 elements ask for four sectors, one of two for one, and one has none.
    assert_has(
        &figures,
        &[
            "launch_instructions = ",
            "launch_divergent_branches = 1\n",
            "launch_load_sectors = 3.4\n",
            "launch_store_sectors = 3.4\n",
            "launch_bank_conflicts = 0\n",
            "launch_barriers = 0\n",
            "launch_mix_global = 15\n",
        ],
    );
}

#[test]
fn kernels_that_are_not_executed_are_ignored_with_the_reason() {
    let reason = |contract: &str, changes: &[(&str, &str)]| {
        let place = project(contract, changes);
        let suite = suite(&place);
        let listed = suite.resolve(TEST).expect("it is listed");
        listed.cannot_run.unwrap_or_default()
    };
    assert_has(
        &reason(CONTRACT, &[("\tmov.u32 %r2, %ctaid.x;", "\tmov.u32 %r2, %pm0;")]),
        &["add.ptx: line 16: `mov.u32` cannot be executed: %pm0 is a performance counter"],
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
