//! Accuracy baselines and the envelope file, in a user's project, through real cargo and nextest.

use gpuemu_tests::programs::{Ran, ran};
use gpuemu_tests::projects::{MANIFEST, Project};
use gpuemu_tests::ptx::SCALE;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const CONTRACT: &str = r#"
[project]
name = "baselines"

[validation]
dtypes = ["float32", "float16"]
strategies = ["default", "layout"]
cases = 5

[policies]
accuracy = true

[[ops]]
name = "silu"
reference = "silu"
[ops.schema]
dims = { B = [1, 3], N = [1, 33, 200] }
inputs = { x = ["B", "N"] }
outputs = { out = ["B", "N"] }

[[ops]]
name = "relu"
reference = "relu"
[ops.schema]
dims = { N = [1, 7, 40] }
inputs = { x = ["N"] }
outputs = { out = ["N"] }

[[kernels]]
name = "scale"
source = "kernels/scale.ptx"
[kernels.artifact_checks]
targets = ["sm_80"]
"#;

/// Kernels with a relative error that the environment chooses, so that one build can be exact and less so.
const KERNELS: &str = r#"
fn error() -> f64 {
    std::env::var("KERNEL_ERROR").map_or(0.0, |error| error.parse().unwrap())
}
pub fn silu(x: f32) -> f64 {
    let x = f64::from(x);
    x / (1.0 + (-x).exp()) * (1.0 + error())
}
"#;

const BINDINGS: &str = r#"
use gpuemu_harness::{Float, View, ViewMut, op};

#[op("silu")]
fn silu<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    for b in 0..x.size(0) {
        for n in 0..x.size(1) {
            out[[b, n]] = T::from_f32(kernels::silu(x[[b, n]].to_f32()) as f32);
        }
    }
}

#[op("relu")]
fn relu<T: Float>(x: View<T>, mut out: ViewMut<T>) {
    for n in 0..x.size(0) {
        let x = x[[n]].to_f32();
        out[[n]] = T::from_f32(if x < 0.0 { 0.0 } else { x });
    }
}
"#;

fn project(name: &str) -> Project {
    let manifest = MANIFEST.replace("NAME", name);
    Project::new(
        env!("CARGO_TARGET_TMPDIR"),
        name,
        &[
            ("Cargo.toml", &manifest),
            ("gpuemu.toml", CONTRACT),
            ("src/lib.rs", KERNELS),
            ("kernels/scale.ptx", SCALE),
            ("tests/bindings/mod.rs", BINDINGS),
            ("tests/whole.rs", "mod bindings;\ngpuemu_harness::main!();\n"),
            ("tests/each.rs", "mod bindings;\ngpuemu_harness::tests!();\n"),
        ],
    )
}

/// The tests of the whole-file door whose names hold `filter`.
fn whole(project: &Project, filter: &str, variables: &[(&str, &str)]) -> Ran {
    let mut cargo = project.cargo(&["test", "-q", "--test", "whole", "--", filter]);
    ran(cargo.envs(variables.iter().copied()))
}

#[test]
fn a_baseline_is_made_accepted_kept_and_defended() {
    let project = project("baselines-accuracy");
    let name = "accuracy::silu::float32";
    let accepted = project.folder().join("gpuemu-snapshots/accuracy/silu.float32.snap");
    let pending = accepted.with_extension("snap.new");
    let run = |variables: &[(&str, &str)]| whole(&project, name, variables);

    // Nothing accepted: in continuous integration nothing is written, elsewhere it waits to be reviewed.
    let unseen = run(&[("CI", "true")]);
    assert_eq!(unseen.code, Some(101), "{unseen:?}");
    assert!(!pending.exists() && !accepted.exists());
    let new = run(&[]);
    assert_eq!(new.code, Some(101), "{new:?}");
    assert!(
        new.out.contains("accuracy::silu::float32 failed: no accepted figures yet in gpuemu-snapshots/"),
        "{new:?}"
    );
    assert!(!new.out.contains("panicked") && !new.err.contains("panicked"), "{new:?}");
    assert!(!accepted.exists());
    let text = fs::read_to_string(&pending).unwrap();
    assert!(text.starts_with("---\nsource: gpuemu.toml\n") && text.contains("\n  dtype: float32\n"), "{text}");
    // Two strategies of five cases.
    assert!(text.contains("\ncases = 10\n"), "{text}");
    // A kernel in float64 is wrong by the rounding of its output alone.
    let figure = |text: &str, name: &str| -> f64 {
        let start = format!("out.{name} = ");
        text.lines().find_map(|line| line.strip_prefix(&start)).expect(name).parse().unwrap()
    };
    assert!((0.45..=0.5001).contains(&figure(&text, "max_ulp")), "{text}");
    assert!((0.0..1.0).contains(&figure(&text, "worst_of_bound")), "{text}");

    // Accepted, as `cargo insta accept` would.
    fs::rename(&pending, &accepted).unwrap();
    let passes = run(&[]);
    assert_eq!(passes.code, Some(0), "{passes:?}");

    // A billionth is within the budget of a tenth, and leaves the accepted figures.
    let within = run(&[("KERNEL_ERROR", "1e-9")]);
    assert_eq!(within.code, Some(0), "{within:?}");
    assert_eq!(fs::read_to_string(&accepted).unwrap(), text);

    // Three roundings more are right by the op's envelope, and a regression.
    let error = ("KERNEL_ERROR", "1.8e-7");
    let others = whole(&project, "silu::float32::", &[error]);
    assert!(others.code == Some(0) && others.out.contains("2 passed"), "{others:?}");
    let worse = run(&[error]);
    assert_eq!(worse.code, Some(101), "{worse:?}");
    assert!(worse.out.contains("accuracy::silu::float32 failed: worse than accepted: out.max_ulp 0."), "{worse:?}");
    let row = worse.out.lines().find(|line| line.trim_start().starts_with("out.mean_ulp")).expect(&worse.out);
    assert!(row.ends_with("worse") && row.split_whitespace().count() == 5, "{row}");
    assert!(pending.exists() && fs::read_to_string(&accepted).unwrap() == text);
    let back = run(&[]);
    assert!(back.code == Some(0) && !pending.exists(), "{back:?}");
    let unwritten = run(&[error, ("CI", "true")]);
    assert!(unwritten.code == Some(101) && !pending.exists(), "{unwritten:?}");

    // Tools read standard output: only events are there.
    let arguments = ["test", "-q", "--test", "whole", "--", name, "-Z", "unstable-options", "--format=json"];
    let json = ran(project.cargo(&arguments).envs([error]));
    let events: Vec<Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert!(events.iter().any(|event| event["event"] == "failed" && event["name"] == name), "{json:?}");

    // Accepted on purpose, and told when it could be better again.
    let updated = run(&[error, ("INSTA_UPDATE", "always")]);
    assert_eq!(updated.code, Some(0), "{updated:?}");
    assert_ne!(fs::read_to_string(&accepted).unwrap(), text);
    let better = run(&[]);
    assert_eq!(better.code, Some(0), "{better:?}");
    assert!(better.out.contains("accuracy::silu::float32: better than accepted: out.max_ulp"), "{better:?}");
    let kept = run(&[("INSTA_UPDATE", "force")]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert_eq!(fs::read_to_string(&accepted).unwrap(), text);

    // The fixed cases stay what they are, whatever the environment asks of the other tests.
    let asked =
        [("GPUEMU_SEED", "7"), ("GPUEMU_CASES", "1"), ("GPUEMU_STRATEGIES", "edge"), ("GPUEMU_PROFILE", "quick")];
    let fixed = run(&asked);
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    let forced = run(&[&asked[..], &[("INSTA_UPDATE", "force")]].concat());
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert_eq!(fs::read_to_string(&accepted).unwrap(), text);

    // A wrong kernel has no accuracy, and the report says how to see it.
    let wrong = run(&[("KERNEL_ERROR", "0.5")]);
    assert_eq!(wrong.code, Some(101), "{wrong:?}");
    assert!(wrong.out.contains("failed: a wrong answer has no accuracy"), "{wrong:?}");
    let replay = wrong.out.lines().find_map(|line| line.trim_start().strip_prefix("replay ")).expect(&wrong.out);
    let replayed = ran(project.shell(replay).env("KERNEL_ERROR", "0.5"));
    assert!(replayed.code == Some(101) && replayed.out.contains("silu::float32::default failed"), "{replayed:?}");

    // The other door has the same test.
    let each = ran(&mut project.cargo(&["test", "-q", "--test", "each", "--", name]));
    assert_eq!(each.code, Some(0), "{each:?}");
    assert!(each.out.contains("1 passed"), "{each:?}");

    // Compiled kernels have theirs too, through both doors.
    let name = "artifact::scale::sm_80";
    let new = whole(&project, name, &[]);
    assert_eq!(new.code, Some(101), "{new:?}");
    let said = "artifact::scale::sm_80 failed: no accepted figures yet in gpuemu-snapshots/artifact/scale.sm_80.snap";
    assert!(new.out.contains(said), "{new:?}");
    let accepted = project.folder().join("gpuemu-snapshots/artifact/scale.sm_80.snap");
    fs::rename(accepted.with_extension("snap.new"), &accepted).unwrap();
    let passes = whole(&project, name, &[("CI", "true")]);
    assert_eq!(passes.code, Some(0), "{passes:?}");
    let longer = SCALE.replace("add.f32 %f2, %f1, %f1;", "add.f32 %f2, %f1, %f1;\n    mul.f32 %f2, %f2, %f1;");
    project.write("kernels/scale.ptx", &longer.replace("ld.global.f32", "ld.global.nc.f32"));
    let each = ran(project.cargo(&["test", "-q", "--test", "each", "--", name]).env("CI", "true"));
    assert_eq!(each.code, Some(0), "a tenth more instructions is within the budget: {each:?}");
    project.write("kernels/scale.ptx", &longer.replace("ret;", "bar.sync 0;\n    ret;"));
    let each = ran(project.cargo(&["test", "-q", "--test", "each", "--", name]).env("CI", "true"));
    assert!(each.code == Some(101) && each.out.contains("barriers 0 -> 1"), "{each:?}");
}

#[test]
fn envelopes_are_written_by_processes_at_once_and_checked() {
    let project = project("baselines-envelopes");
    let file: PathBuf = project.folder().join("gpuemu-envelopes.toml");
    let check = || whole(&project, "default", &[("GPUEMU_CALIBRATE", "check")]);
    let missing = check();
    assert_eq!(missing.code, Some(101), "{missing:?}");
    assert!(missing.out.contains("gpuemu-envelopes.toml has no entry [silu] float32"), "{missing:?}");
    assert!(!file.exists());

    // Ops that are not selected, or not of this package, keep what they have.
    fs::write(&file, "version = 1\n[other]\nfloat32 = { rho = 7.5, alpha = 0 }\n").unwrap();
    let arguments = ["nextest", "run", "--test", "whole", "--test-threads", "4", "default"];
    let written = ran(project.cargo(&arguments).env("GPUEMU_CALIBRATE", "write"));
    assert_eq!(written.code, Some(0), "{written:?}");
    let text = fs::read_to_string(&file).unwrap();
    for op in ["[other]", "[relu]", "[silu]"] {
        assert_eq!(text.matches(op).count(), 1, "{text}");
    }
    assert!(text.contains("[other]\nfloat32 = { rho = 7.5, alpha = 0.0 }\n"), "{text}");
    // A comparison is exact; silu is not.
    let relu = "[relu]\nfloat16 = { rho = 0.0, alpha = 0.0 }\nfloat32 = { rho = 0.0, alpha = 0.0 }\n";
    assert!(text.contains(relu), "{text}");
    assert_eq!(text.matches("float16 = ").count(), 2, "{text}");

    let current = check();
    assert_eq!(current.code, Some(0), "{current:?}");
    let again = ran(project.cargo(&arguments).env("GPUEMU_CALIBRATE", "write"));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "calibration is deterministic");

    let silu = text.find("[silu]").unwrap();
    let rho = text[silu..].split("float32 = { rho = ").nth(1).unwrap().split(',').next().unwrap();
    let old = format!("float32 = {{ rho = {rho},");
    let smaller = format!("{}{}", &text[..silu], text[silu..].replace(&old, "float32 = { rho = 0.5,"));
    fs::write(&file, &smaller).unwrap();
    let moved = check();
    assert_eq!(moved.code, Some(101), "{moved:?}");
    let said =
        "silu::float32::default failed: the envelope of silu for float32 is larger than gpuemu-envelopes.toml has";
    assert!(moved.out.contains(said), "{moved:?}");
    assert!(moved.out.contains(&format!("rho 0.5 -> {}", rho.trim_end_matches(".0"))), "{moved:?}");
    assert!(!moved.out.contains("silu::float16::default failed"), "{moved:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), smaller, "a check writes nothing");
}
