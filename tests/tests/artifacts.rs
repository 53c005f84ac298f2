//! Compiled kernels through the whole suite, in this process: what a person reads when something is wrong with one.

use gpuemu_harness::environment::{Environment, SnapshotUpdate, Update};
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::suite::{Suite, Totals};
use gpuemu_tests::ptx::SCALE;
use gpuemu_tests::sessions::{Place, assert_has, suite_report};
use std::fs;
use std::path::PathBuf;

const CONTRACT: &str = r#"
[[kernels]]
name = "scale"
source = "kernels/scale.ptx"
[kernels.artifact_checks]
targets = ["sm_80"]
"#;

const TEST: &str = "artifact::scale::sm_80";

fn place(contract: &str, ptx: &str) -> Place {
    let place = Place::new(contract);
    place.write("kernels/scale.ptx", ptx);
    place
}

/// A suite that finds none of NVIDIA's tools and accepts every snapshot, unless `change` says otherwise.
fn suite(place: &Place, change: impl FnOnce(&mut Environment)) -> ProjectSuite {
    let session = place.open_with(|environment| {
        environment.python = Some(PathBuf::from("/no/such/python"));
        environment.snapshots.update = SnapshotUpdate::InPlace;
        change(environment);
    });
    ProjectSuite::new(session.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

fn report(place: &Place, change: impl FnOnce(&mut Environment)) -> String {
    suite_report(&suite(place, change), TEST)
}

#[test]
fn a_right_artifact_passes_and_says_what_was_not_judged() {
    let place = place(CONTRACT, SCALE);
    let suite = suite(&place, |_| ());
    let names: Vec<String> = suite.tests().into_iter().map(|test| test.name).collect();
    assert_eq!(names, [TEST], "a kernel of no op has no test of its answers");
    assert_eq!(suite.resolve(TEST).unwrap().cannot_run, None);
    assert!(suite.resolve("artifact::scale::sm_90").is_none());
    // One that names a reference wants more than that.
    let wanting = CONTRACT.replace("[kernels.artifact_checks]", "reference = \"softmax\"\n[kernels.artifact_checks]");
    let place = self::place(&wanting, SCALE);
    let listed = self::suite(&place, |_| ()).tests();
    let listed: Vec<_> = listed.iter().map(|test| (test.name.as_str(), test.cannot_run.as_deref())).collect();
    let (names, reasons): (Vec<&str>, Vec<Option<&str>>) = listed.into_iter().unzip();
    assert_eq!(names, [TEST, "kernel::scale"]);
    assert_eq!(reasons[0], None);
    let why =
        "its compiled form is tested, what it computes is not: it names no `op`, so nothing says what its tensors are";
    assert_has(reasons[1].unwrap(), &[why, "write an [[ops]] with their schema, `op = ...` and a [kernels.launch]"]);
    let outcome = suite.run(TEST);
    assert_eq!(outcome.failure, None);
    let property = |name: &str| outcome.properties.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!(property("instructions"), Some("10"));
    assert_has(property("unjudged").unwrap(), &["max_registers 64 and max_spills 0 are not judged: ptxas is needed"]);
    let lines = suite.finish(&Totals::default()).unwrap();
    assert_has(&lines.join("\n"), &["figures of ptxas were not judged for 1 artifact: ptxas is needed and not there"]);

    // What cannot be judged fails where everything is required.
    let required = report(&place, |environment| environment.require = true);
    assert_has(&required, &["artifact::scale::sm_80 failed: ptxas is needed and not there", "(GPUEMU_REQUIRE=1)"]);
}

#[test]
fn bad_input_is_explained() {
    let entry = "entry = \"scale_rows\"\n[kernels.artifact_checks]";
    let table: &[(&str, &str, &str, &[&str])] = &[
        ("an empty file", CONTRACT, "", &["kernels/scale.ptx is empty"]),
        ("no PTX", CONTRACT, "int main() {}\n", &["kernels/scale.ptx: line 1, column 1: expected "]),
        (
            "an unknown opcode",
            CONTRACT,
            &SCALE.replace("add.f32 %f2", "addd.f32 %f2"),
            &["kernels/scale.ptx: line 17, column 5: unknown opcode `addd`; did you mean `add`?"],
        ),
        (
            "a register that is not declared",
            CONTRACT,
            &SCALE.replace("[%rd4]", "[%rd9]"),
            &["kernels/scale.ptx: line 16", "`%rd9` is not declared"],
        ),
        (
            "another entry",
            &CONTRACT.replace("[kernels.artifact_checks]", entry),
            SCALE,
            &["[KernelNotFound]", "kernels/scale.ptx has no entry `scale_rows`", "scale"],
        ),
        (
            "an entry spelt almost so",
            &CONTRACT.replace("[kernels.artifact_checks]", &entry.replace("scale_rows", "scales")),
            SCALE,
            &["kernels/scale.ptx has no entry `scales`; did you mean `scale`?"],
        ),
        (
            "a target that nobody knows yet",
            &CONTRACT.replace("sm_80", "sm_999"),
            SCALE,
            &["artifact::scale::sm_999 failed: ", "sm_999"],
        ),
        (
            "a target that the PTX is too new for",
            &CONTRACT.replace("sm_80", "sm_75"),
            SCALE,
            &["kernels/scale.ptx is for `.target sm_80`, which is no PTX for sm_75 [ArtifactNotFound]"],
        ),
    ];
    for (what, contract, ptx, parts) in table {
        let place = place(contract, ptx);
        let suite = suite(&place, |environment| environment.github = true);
        let name = &suite.tests()[0].name;
        let report = suite_report(&suite, name);
        assert!(report.starts_with(&format!("{name} failed: ")), "{what}: {report}");
        assert_has(&report, &["\n::error file=", "kernels/scale.ptx,line=1,title=artifact::scale for sm_"]);
        assert_has(&report, parts);
    }
}

#[test]
fn the_contract_names_the_rules_of_the_lint() {
    let mut rules = gpuemu_ptx::lint::RULES.map(|rule| rule.name);
    rules.sort_unstable();
    assert_eq!(gpuemu_contract::artifact::RULES, rules);
}

#[test]
fn findings_fail_are_told_or_are_allowed() {
    // A thread reads what another wrote before it, with no barrier between.
    let race = SCALE
        .replace("ld.param.u64 %rd1", "mov.u32 %r2, tile;\n    ld.param.u64 %rd1")
        .replace(".reg .b32 %r<3>;", ".shared .align 4 .b8 tile[4096];\n    .reg .b32 %r<8>;")
        .replace(
            "add.f32 %f2, %f1, %f1;",
            "shl.b32 %r3, %r1, 2;\n    add.s32 %r4, %r2, %r3;\n    st.shared.f32 [%r4], %f1;\n    \
             xor.b32 %r5, %r3, 4;\n    add.s32 %r6, %r2, %r5;\n    ld.shared.f32 %f2, [%r6];",
        );
    let rule = "missing-barrier-between-shared-write-and-read";
    let place = place(CONTRACT, &race);
    let found = report(&place, |_| ());
    assert_has(
        &found,
        &[&format!("artifact::scale::sm_80 failed: {rule}\n  {rule}: "), "--> kernels/scale.ptx:", "ld.shared.f32 %f2"],
    );
    for (more, fails) in [
        (format!("[kernels.allow]\n{rule} = \"one warp alone\"\n"), false),
        ("[policies]\nlint = \"never\"\n".to_owned(), false),
        ("[policies]\nlint = \"warning\"\n".to_owned(), true),
    ] {
        place.write("gpuemu.toml", &format!("{CONTRACT}{more}"));
        assert_eq!(!report(&place, |_| ()).is_empty(), fails, "{more}");
    }
    // An allowance that nothing needs is told.
    place.write("gpuemu.toml", &format!("{CONTRACT}[kernels.allow]\n{rule} = \"one warp alone\"\n"));
    place.write("kernels/scale.ptx", SCALE);
    let suite = suite(&place, |_| ());
    assert_eq!(suite.run(TEST).failure, None);
    let lines = suite.finish(&Totals::default()).unwrap().join("\n");
    assert_has(&lines, &[&format!("artifact::scale::sm_80: nothing breaks the allowed `{rule}`")]);
}

#[test]
fn figures_that_are_worse_are_annotated() {
    let place = place(CONTRACT, SCALE);
    assert_eq!(report(&place, |_| ()), "");
    place.write(
        "kernels/scale.ptx",
        &SCALE.replace("add.f32 %f2", &("add.f32 %f1, %f1, %f1;\n    ".repeat(2) + "add.f32 %f2")),
    );
    let found = report(&place, |environment| {
        environment.snapshots.update = SnapshotUpdate::Nothing;
        environment.github = true;
    });
    let said = "worse than accepted: instructions 10 -> 12";
    assert_has(&found, &[&format!("artifact::scale::sm_80 failed: {said}, weighted_instructions 10 -> 12\n")]);
    assert_has(&found, &[&format!("\n::error title=accepted-figures::scale for sm_80: {said}")]);
    // With a budget of 0.3 it is within it; where regressions do not fail, it is told.
    for (more, told) in [
        ("[policies]\nwarn_threshold = 0.3\n", ""),
        (
            "[policies]\nfail_on_regression = false\n",
            "artifact::scale::sm_80: worse than accepted: instructions 10 -> 12",
        ),
    ] {
        place.write("gpuemu.toml", &format!("{CONTRACT}{more}"));
        let suite = suite(&place, |environment| environment.snapshots.update = SnapshotUpdate::Nothing);
        assert_eq!(suite.run(TEST).failure, None, "{more}");
        let lines = suite.finish(&Totals::default()).unwrap().join("\n");
        assert_eq!(lines.contains("worse"), !told.is_empty(), "{lines}");
        assert_has(&lines, &[told]);
    }
}

#[test]
fn a_cycle_of_calls_is_told() {
    let cycle = ".version 8.0\n.target sm_80\n.address_size 64\n.func f;\n.func g { call f; ret; }\n.func f { call g; ret; }\n\
                 .visible .entry scale() { call f; ret; }\n";
    let place = place(CONTRACT, cycle);
    let suite = suite(&place, |_| ());
    assert_eq!(suite.run(TEST).failure, None);
    let lines = suite.finish(&Totals::default()).unwrap().join("\n");
    assert_has(&lines, &["artifact::scale::sm_80: its functions call each other in a cycle: the stack has no bound"]);
}

#[test]
fn a_compiler_that_is_missing_is_said() {
    let place = place(&CONTRACT.replace("scale.ptx", "scale.cu"), "");
    place.write("kernels/scale.cu", "extern \"C\" __global__ void scale(const float *x, float *y) {}\n");
    let missing = report(&place, |_| ());
    assert_has(
        &missing,
        &[
            "failed: kernels/scale.sm_80.ptx is not there",
            "\n  compile  GPUEMU_UPDATE=ptx cargo test",
            "-- --exact artifact::scale::sm_80",
        ],
    );
    let updated = report(&place, |environment| environment.update = Some(Update::Ptx));
    assert_has(
        &updated,
        &[
            "failed: kernels/scale.cu was not compiled for sm_80: nvcc is needed and not there",
            "pip install nvidia-cuda-nvcc",
        ],
    );
    assert!(!place.path().join("kernels/scale.sm_80.ptx").exists());
}

#[test]
fn a_tool_that_is_named_and_is_none_fails() {
    let named = "artifact::scale::sm_80 failed: kernels/scale.ptx for sm_80: GPUEMU_PTXAS names no ptxas: ";
    let place = place(CONTRACT, SCALE);
    place.write("notes.txt", "no program\n");
    for (path, said) in
        [("/no/such/ptxas", "/no/such/ptxas is not there"), ("notes.txt", "notes.txt is not executable")]
    {
        let path = place.path().join(path);
        let found = report(&place, |environment| environment.ptxas = Some(path.clone()));
        assert!(found.starts_with(named), "{found}");
        assert_has(&found, &[said, "name another, or unset GPUEMU_PTXAS to have one looked for [ToolFailed]"]);
    }
    let place = self::place(&CONTRACT.replace("scale.ptx", "scale.cu"), "");
    place.write("kernels/scale.cu", "extern \"C\" __global__ void scale(const float *x, float *y) {}\n");
    let updated = report(&place, |environment| {
        environment.update = Some(Update::Ptx);
        environment.nvcc = Some(PathBuf::from("/no/such/nvcc"));
    });
    assert_has(&updated, &["GPUEMU_NVCC names no nvcc: /no/such/nvcc is not there"]);
}

/// An executable of a few lines of shell.
#[cfg(unix)]
fn tool(place: &Place, name: &str, body: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    place.write(name, &format!("#!/bin/sh\n{body}\n"));
    let path = place.path().join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[cfg(unix)]
#[test]
fn an_assembler_that_fails_is_an_error_and_not_a_pass() {
    let version = "[ \"$1\" = --version ] && { echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'; echo 'Cuda compilation tools, release 13.5, V13.5.1'; exit; }";
    let table: &[(&str, &[&str])] = &[
        (
            "echo 'ptxas module.ptx, line 17; error   : Unknown symbol' >&2; exit 255",
            &["kernels/scale.ptx:17: ", "Unknown symbol"],
        ),
        ("kill -9 $$", &["ptxas 13.5", "SIGKILL"]),
        ("exit 0", &["ptxas 13.5"]),
        (
            "sleep 100",
            &[
                "kernels/scale.ptx for sm_80: ptxas 13.5 (",
                "bin/ptxas) did not finish within 1s and was ended; GPUEMU_TOOL_TIMEOUT sets another limit, in seconds",
            ],
        ),
    ];
    for (body, parts) in table {
        let place = place(CONTRACT, SCALE);
        let ptxas = tool(&place, "bin/ptxas", &format!("{version}\n{body}"));
        let start = std::time::Instant::now();
        let report = report(&place, |environment| {
            environment.ptxas = Some(ptxas);
            environment.tool_timeout = std::num::NonZeroU32::new(1);
        });
        assert!(start.elapsed() < std::time::Duration::from_secs(30), "{body}: {:?}", start.elapsed());
        assert!(report.starts_with("artifact::scale::sm_80 failed: "), "{body}: {report}");
        assert_has(&report, parts);
    }
}
