//! What a test binary of ten thousand tests costs before it runs anything, as a whole process: `--list` on all of them,
//! and `--exact` on one. (500 ops, 4 dtypes, 5 strategies; the contract is read and checked each time.)

use gpuemu_tests::programs::{program, ran};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    divan::main();
}

fn contract() -> PathBuf {
    let mut text = String::from(
        "[validation]\ndtypes = [\"float64\", \"float32\", \"float16\", \"bfloat16\"]\n\
         strategies = [\"boundary\", \"adversarial\", \"layout\", \"edge\", \"default\"]\n",
    );
    for op in 0..500 {
        write!(
            text,
            "\n[[ops]]\nname = \"softmax_{op:03}\"\nreference = \"softmax\"\n[ops.schema]\n\
             dims = {{ B = [1, 2, 8], S = [1, 7, 128], H = {{ candidates = [1, 3, 256, 1025], tile = 128 }} }}\n\
             inputs = {{ x = [\"B\", \"S\", \"H\"] }}\noutputs = {{ out = [\"B\", \"S\", \"H\"] }}\n\
             [ops.params]\naxis = -1\n"
        )
        .unwrap();
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ten_thousand/gpuemu.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn binary(arguments: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_project"));
    command.env("GPUEMU_CONFIG", contract()).args(arguments);
    command
}

#[divan::bench]
fn list(bencher: divan::Bencher<'_, '_>) {
    let mut command = binary(&["--list", "--format", "terse"]);
    let listed = ran(&mut command);
    assert!(listed.code == Some(0) && listed.out.lines().count() >= 10_000, "{}", listed.err);
    bencher.bench_local(|| command.output().unwrap());
}

#[divan::bench]
fn exact(bencher: divan::Bencher<'_, '_>) {
    // Listed, so that no case is run: what is measured is the way to the one test.
    let mut command = binary(&["--list", "--format", "terse", "--exact", "softmax_321::float32::layout"]);
    let listed = ran(&mut command);
    assert_eq!((listed.code, &*listed.out), (Some(0), "softmax_321::float32::layout: test\n"), "{}", listed.err);
    bencher.bench_local(|| command.output().unwrap());
}
