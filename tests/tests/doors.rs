//! Both doors into the harness, in a user's project, through real cargo and nextest.

use gpuemu_tests::programs::{Ran, ran};
use gpuemu_tests::projects::{MANIFEST, Project};
use serde_json::Value;
use std::collections::BTreeSet;

const CONTRACT: &str = r#"
[project]
name = "doors"

[validation]
dtypes = ["float32", "float16"]
strategies = ["boundary", "layout"]
cases = 5

[[ops]]
name = "silu"
reference = "silu"
[ops.schema]
dims = { B = [1, 3], N = { candidates = [1, 33], tile = 16 } }
inputs = { x = ["B", "N"] }
outputs = { out = ["B", "N"] }

[[ops]]
name = "relu"
reference = "relu"
[ops.schema]
dims = { N = [1, 7, 40] }
inputs = { x = ["N"] }
outputs = { out = ["N"] }
"#;

const RIGHT: &str = r#"
pub fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}
"#;

const BINDINGS: &str = r#"
use gpuemu_harness::{Float, View, ViewMut, op};

#[op("silu")]
fn silu<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    for b in 0..x.size(0) {
        for n in 0..x.size(1) {
            out[[b, n]] = T::from_f32(kernels::silu(x[[b, n]].to_f32()));
        }
    }
}

#[op("relu")]
fn relu<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    for n in 0..x.size(0) {
        out[[n]] = T::from_f32(kernels::relu(x[[n]].to_f32()));
    }
}
"#;

/// A project of that name: cargo tells packages in one target folder apart by their names alone.
fn project(name: &str) -> Project {
    let manifest = MANIFEST.replace("NAME", name);
    Project::new(
        env!("CARGO_TARGET_TMPDIR"),
        name,
        &[
            ("Cargo.toml", &manifest),
            ("gpuemu.toml", CONTRACT),
            ("src/lib.rs", RIGHT),
            ("tests/bindings/mod.rs", BINDINGS),
            ("tests/whole.rs", "mod bindings;\ngpuemu_harness::main!();\n"),
            ("tests/each.rs", "mod bindings;\ngpuemu_harness::tests!();\n"),
        ],
    )
}

fn cargo(project: &Project, arguments: &[&str]) -> Ran {
    ran(&mut project.cargo(arguments))
}

/// The names of a terse list.
fn names(list: &Ran) -> BTreeSet<String> {
    assert_eq!(list.code, Some(0), "{list:?}");
    list.out.lines().map(|line| line.strip_suffix(": test").expect(line).to_owned()).collect()
}

#[test]
fn both_doors_have_the_same_tests_and_all_pass() {
    let project = project("doors-right");
    let list = |door| names(&cargo(&project, &["test", "-q", "--test", door, "--", "--list", "--format", "terse"]));
    let (whole, each) = (list("whole"), list("each"));
    let mut expected = BTreeSet::new();
    for op in ["relu", "silu"] {
        for dtype in ["float16", "float32"] {
            for strategy in ["boundary", "layout"] {
                expected.insert(format!("{op}::{dtype}::{strategy}"));
            }
        }
    }
    let of_ops = |names: &BTreeSet<String>| -> BTreeSet<String> {
        names.iter().filter(|name| !name.starts_with("accuracy::")).cloned().collect()
    };
    assert_eq!(of_ops(&whole), expected);
    expected.extend(["relu::regressions".to_owned(), "silu::regressions".to_owned()]);
    assert_eq!(of_ops(&each), expected);

    let both = cargo(&project, &["test"]);
    assert_eq!(both.code, Some(0), "{}\n{}", both.out, both.err);
    assert!(!project.folder().join("gpuemu-regressions").exists(), "nothing failed, so nothing is saved");

    // Arguments go to both binaries alike.
    let several = cargo(&project, &["test", "--tests", "--", "silu::float32", "relu::float16::layout"]);
    assert_eq!(several.code, Some(0), "{several:?}");
    assert_eq!(several.out.matches("test silu::float32::boundary ... ok").count(), 2, "{several:?}");
    assert_eq!(several.out.matches("test relu::float16::layout ... ok").count(), 2, "{several:?}");
    assert!(!several.out.contains("relu::float32"), "{several:?}");

    let exact = cargo(&project, &["test", "--test", "whole", "--", "--exact", "silu::float32::layout"]);
    assert!(exact.out.contains("\nrunning 1 test\ntest silu::float32::layout ... ok\n"), "{exact:?}");

    let arguments = ["test", "-q", "--test", "whole", "--", "silu", "-Z", "unstable-options", "--format=json"];
    let json = cargo(&project, &arguments);
    let events: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let passed = events.iter().filter(|event| event["type"] == "test" && event["event"] == "ok").count();
    assert_eq!(passed, 4, "{json:?}");

    let junit = project.folder().join("junit.xml");
    let run = ran(project.cargo(&["test", "--test", "whole"]).env("GPUEMU_JUNIT", &junit));
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = std::fs::read_to_string(&junit).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    assert_eq!(document.root_element().attribute("failures"), Some("0"));
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase")).count();
    assert!(cases >= 8, "{text}");

    let nextest = cargo(&project, &["nextest", "run"]);
    assert_eq!(nextest.code, Some(0), "{nextest:?}");
    assert!(nextest.err.contains("doors-right::whole silu::float32::layout"), "{nextest:?}");
    assert!(nextest.err.contains("doors-right::each silu::float32::layout"), "{nextest:?}");
}

#[test]
fn a_fault_is_replayed_by_the_line_of_its_report_and_kept_until_it_is_mended() {
    let project = project("doors-faulty");
    project.write("src/lib.rs", &RIGHT.replace("x < 0.0 { 0.0 }", "x < 0.0 { -0.0625 }"));
    let faulty = cargo(&project, &["test", "--test", "whole"]);
    assert_eq!(faulty.code, Some(101), "{faulty:?}");
    assert!(faulty.out.contains("relu::float32::boundary failed: "), "{faulty:?}");
    assert!(!faulty.out.contains("silu::float32::boundary failed"), "{faulty:?}");
    assert!(!faulty.out.contains("panicked") && !faulty.err.contains("panicked"), "no noise: {faulty:?}");

    // The replay line does what it says: this one case, which still fails.
    let replay = faulty.out.lines().find_map(|line| line.trim_start().strip_prefix("replay ")).expect(&faulty.out);
    let replayed = ran(&mut project.shell(&replay.replace("cargo test", "cargo test --test whole")));
    assert_eq!(replayed.code, Some(101), "{replay}\n{replayed:?}");
    assert!(replayed.out.contains("running 1 test\n"), "{replay}\n{replayed:?}");

    // It is saved, and a test of its own that runs first.
    let list = names(&cargo(&project, &["test", "-q", "--test", "whole", "--", "--list", "--format", "terse"]));
    let saved: Vec<&String> = list.iter().filter(|name| name.starts_with("relu::regressions::")).collect();
    assert!(!saved.is_empty(), "{list:?}");
    let again = cargo(&project, &["test", "--test", "whole", "--", "--test-threads", "1"]);
    let first = again.out.lines().find_map(|line| line.strip_prefix("test ")).unwrap();
    assert!(first.starts_with("relu::regressions::") && first.ends_with("FAILED"), "{again:?}");

    // The other door has them together, and its report is no panic message.
    let each = cargo(&project, &["test", "--test", "each", "--", "relu"]);
    assert_eq!(each.code, Some(101), "{each:?}");
    assert!(each.out.contains("test relu::regressions ... FAILED"), "{each:?}");
    assert!(!each.out.contains("panicked") && !each.out.contains("stack backtrace"), "{each:?}");

    project.write("src/lib.rs", RIGHT);
    let mended = cargo(&project, &["test"]);
    assert_eq!(mended.code, Some(0), "{}\n{}", mended.out, mended.err);
    assert!(mended.out.contains(&format!("test {} ... ok", saved[0])), "{mended:?}");
}

#[test]
fn a_contract_that_is_wrong_stops_the_build_or_the_run_with_the_line() {
    let project = project("doors-wrong");
    project.write("gpuemu.toml", &CONTRACT.replace("reference = \"silu\"", "reference = \"sliu\""));
    let wrong = cargo(&project, &["test", "--test", "whole"]);
    assert_eq!(wrong.code, Some(101), "{wrong:?}");
    let told = format!("{}{}", wrong.out, wrong.err);
    assert!(told.contains("gpuemu.toml") && told.contains("sliu") && told.contains("silu"), "{told}");
}

#[test]
fn a_change_of_the_contract_is_seen_by_both_doors() {
    let project = project("doors-changed");
    let count =
        |door| names(&cargo(&project, &["test", "-q", "--test", door, "--", "--list", "--format", "terse"])).len();
    let before = (count("whole"), count("each"));
    project.write("gpuemu.toml", &CONTRACT.replace("\"boundary\", \"layout\"", "\"boundary\", \"layout\", \"edge\""));
    assert_eq!((count("whole"), count("each")), (before.0 + 4, before.1 + 4));
}
