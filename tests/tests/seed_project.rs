//! A project that has only a `gpuemu.toml` and scripts: they run unchanged.
//!
//! Needs Python 3 with NumPy (`python3`, or what GPUEMU_PYTHON names).

use gpuemu_tests::programs::{Ran, ran};
use gpuemu_tests::projects::Project;
use gpuemu_tests::sessions::assert_has;

const OPERATOR: &str = include_str!("../../examples/seed-scripts/scripts/softmax_op.py");

fn cargo(project: &Project, arguments: &[&str]) -> Ran {
    ran(project.cargo(arguments).env("GPUEMU_CASES", "2").envs(interpreter()))
}

/// The variable that the test's own environment may have; projects get a clean one.
fn interpreter() -> Option<(&'static str, std::ffi::OsString)> {
    std::env::var_os("GPUEMU_PYTHON").map(|python| ("GPUEMU_PYTHON", python))
}

#[test]
fn scripts_alone_are_tested_and_a_fault_is_shrunk() {
    // Of this workspace it has the profile, whose builds it then shares.
    let (manifest, _) = include_str!("../../examples/seed-scripts/Cargo.toml").split_once("[profile.dev]").unwrap();
    let manifest = manifest.replace("[workspace]\n", "").replace("../../gpuemu-harness", "../gpuemu-harness");
    assert_eq!(
        include_str!("../../examples/seed-scripts/gpuemu.toml"),
        include_str!("../../gpuemu-contract/tests/projects/seed/gpuemu.toml"),
        "the example's contract is one that was there before"
    );
    let project = Project::new(
        env!("CARGO_TARGET_TMPDIR"),
        "seed-scripts",
        &[
            ("Cargo.toml", &manifest),
            ("gpuemu.toml", include_str!("../../examples/seed-scripts/gpuemu.toml")),
            ("tests/gpuemu.rs", include_str!("../../examples/seed-scripts/tests/gpuemu.rs")),
            ("scripts/softmax_ref.py", include_str!("../../examples/seed-scripts/scripts/softmax_ref.py")),
            ("scripts/softmax_op.py", OPERATOR),
            ("kernels/fused_softmax.cu", include_str!("../../examples/seed-scripts/kernels/fused_softmax.cu")),
        ],
    );

    // What its kernel lacks is told; the float16 tests take the example's own run.
    let right = cargo(&project, &["test", "--", "float32"]);
    assert_eq!(right.code, Some(0), "{}\n{}", right.out, right.err);
    for strategy in ["adversarial", "boundary", "layout"] {
        assert_has(&right.out, &[&format!("test softmax::float32::{strategy} ... ok")]);
    }
    let untested = ran(&mut project.cargo(&["test", "--", "fused_softmax"]));
    let why = "test kernel::fused_softmax ... ignored, it is not tested: it names no `op`";
    assert_has(&untested.out, &[why, "test artifact::fused_softmax ... ignored, no `targets`"]);
    assert!(!project.folder().join("gpuemu-regressions").exists());

    // The last column is left out of the sum, where there is more than one.
    let faulty = OPERATOR.replace("weights.sum(", "weights[..., : max(1, weights.shape[-1] - 1)].sum(");
    assert_ne!(faulty, OPERATOR);
    project.write("scripts/softmax_op.py", &faulty);
    let caught = ran(project
        .cargo(&["test", "--", "--exact", "softmax::float32::boundary"])
        .env("GPUEMU_CASES", "10")
        .envs(interpreter()));
    assert_eq!(caught.code, Some(101), "{caught:?}");
    assert_has(
        &caught.out,
        &[
            "softmax::float32::boundary failed: ",
            "replay   GPUEMU_CASE='softmax::float32::boundary{batch=1,sequence=1,hidden=",
            "shrunk from batch=",
            "subject  script scripts/softmax_op.py",
            "saved    gpuemu-regressions/softmax/",
        ],
    );
    let hidden = caught.out.split("{batch=1,sequence=1,hidden=").nth(1).unwrap();
    let hidden: u32 = hidden.split('}').next().unwrap().parse().unwrap();
    assert!((2..=3).contains(&hidden), "{}", caught.out);
}
