//! The runner against libtest itself: the same tests, compiled by `rustc --test`, must give the same bytes.

use gpuemu_tests::programs::{Ran, program, ran};
use gpuemu_tests::synthetic::{FAILING, IGNORED, MANY, PASSING, PROPERTY, REPORT};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tests of the synthetic suite as source for `rustc --test`.
fn source(synthetic: &str) -> String {
    let mut ops: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut add = |name: &str, attribute: String, body: String| {
        let (op, rest) = name.split_once("::").unwrap();
        let (dtype, strategy) = rest.split_once("::").unwrap();
        let functions = ops.entry(op.to_owned()).or_default().entry(dtype.to_owned()).or_default();
        *functions += &format!("#[test] {attribute} fn {strategy}() {{ {body} }}\n");
    };
    for (index, name) in PASSING.iter().enumerate() {
        let line = format!("{}: {}", PROPERTY.0, PROPERTY.1);
        add(name, String::new(), if index == 0 { format!("println!({line:?});") } else { String::new() });
    }
    add(IGNORED.0, format!("#[ignore = {:?}]", IGNORED.1), String::new());
    if synthetic.contains("many") {
        for index in 0..MANY {
            add(&format!("many::float32::case_{index:03}"), String::new(), String::new());
        }
    }
    if synthetic.contains("failing") {
        let body = format!("println!(\"{{}}\", {REPORT:?}); std::panic::resume_unwind(Box::new(()));");
        add(FAILING, String::new(), body);
    }
    let mut source = String::new();
    for (op, dtypes) in ops {
        source += &format!("mod {op} {{\n");
        for (dtype, functions) in dtypes {
            source += &format!("mod {dtype} {{\n{functions}}}\n");
        }
        source += "}\n";
    }
    source
}

fn libtest(folder: &Path, synthetic: &str) -> PathBuf {
    let file = folder.join("suite.rs");
    std::fs::write(&file, source(synthetic)).unwrap();
    let binary = folder.join(format!("libtest{}", std::env::consts::EXE_SUFFIX));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = ran(program(rustc).args(["--edition", "2024", "--test", "-o"]).arg(&binary).arg(&file));
    assert_eq!(compiled.code, Some(0), "{}", compiled.err);
    binary
}

fn outcome(command: &mut Command, arguments: &str) -> Ran {
    // RUSTC_BOOTSTRAP lets a stable libtest show its unstable formats; ours needs no leave.
    let mut ran = ran(command.env("RUSTC_BOOTSTRAP", "1").args(arguments.split_whitespace()));
    ran.out = without_times(&ran.out);
    ran
}

/// Replaces every number that has a decimal point.
fn without_times(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[start..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len() - start);
        let number = rest[start..start + length].trim_end_matches('.');
        plain += &rest[..start];
        plain += if number.contains('.') { "TIME" } else { number };
        rest = &rest[start + number.len()..];
    }
    plain + rest
}

#[test]
fn times_are_left_out_and_other_numbers_kept() {
    assert_eq!(without_times("3 passed; in 0.02s 1. <1.250s>"), "3 passed; in TIMEs 1. <TIMEs>");
}

/// Runs both on every line of arguments and compares all that they leave behind.
fn compare(synthetic: &str, lines: &[&str], environment: &[(&str, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let theirs = libtest(folder.path(), synthetic);
    for line in lines {
        let expected = outcome(program(&theirs).envs(environment.iter().copied()), line);
        let ours = env!("CARGO_BIN_EXE_synthetic");
        let got = outcome(program(ours).env("SYNTHETIC", synthetic).envs(environment.iter().copied()), line);
        assert_eq!(got.out, expected.out, "standard output of {line}");
        assert_eq!(got.err, expected.err, "standard error of {line}");
        assert_eq!(got.code, expected.code, "exit code of {line}");
    }
}

#[test]
fn lists() {
    compare(
        "failing",
        &[
            "--list",
            "--list --format terse",
            "--list -q",
            "--list --format terse --ignored",
            "--list --include-ignored",
            "--list --exact softmax::float32::edge",
            "--list --exact softmax",
            "--list --exact softmax::float32::edge gelu::float32::boundary nothing",
            "--list softmax gelu",
            "--list --skip float32 --skip tanh",
            "--list --exact --skip softmax::float32::edge",
            "--list --bench",
            "--list --test --format pretty",
            "--list -Zunstable-options --format junit",
        ],
        &[],
    );
}

#[test]
fn runs_for_people() {
    compare(
        "failing",
        &[
            "--test-threads 1",
            "--test-threads=1 -q",
            "--test-threads 1 --quiet --format pretty",
            "--test-threads 1 --format terse",
            "--test-threads 1 --color never --show-output",
            "--test-threads 1 gelu tanh",
            "--test-threads 1 -- gelu",
            "--test-threads 1 --exact softmax::float32::edge",
            "--test-threads 1 --exact softmax::float32::edge gelu::float32::boundary",
            "--test-threads 1 --exact",
            "--test-threads 1 nothing",
            "--test-threads 1 --skip edge --skip float16",
            "--test-threads 1 --bench",
            "--test-threads 1 --bench --test",
            "--test-threads 1 -Z unstable-options --report-time",
            "--test-threads 1 -Z unstable-options --report-time -q",
            "--test-threads 1 -Z unstable-options --fail-fast",
            "--test-threads 1 -Z unstable-options --exclude-should-panic --force-run-in-process gelu",
        ],
        &[],
    );
}

#[test]
fn runs_where_all_is_well() {
    compare("", &["--test-threads 1", "--test-threads 1 -q", "--test-threads 1 --show-output"], &[]);
}

#[test]
fn a_terse_line_is_broken_where_libtest_breaks_it() {
    let lines = ["-q --test-threads 1", "-q --test-threads 1 many", "-q --test-threads 1 softmax tanh"];
    compare("failing many", &lines, &[]);
    compare("many", &lines, &[]);
}

#[test]
fn runs_for_editors() {
    compare(
        "failing",
        &[
            "--test-threads 1 -Z unstable-options --format=json",
            "--test-threads 1 -Z unstable-options --format json --report-time --show-output",
            "--test-threads 1 -Zunstable-options --format json gelu",
            "--test-threads 1 -Zunstable-options --format json nothing",
            "--test-threads 1 -Zunstable-options --format json --fail-fast",
        ],
        &[],
    );
}

#[test]
fn the_environment_is_obeyed() {
    compare("", &["gelu", "-q"], &[("RUST_TEST_THREADS", "1")]);
}

#[test]
fn command_lines_that_are_wrong() {
    compare(
        "",
        &[
            "--wat",
            "-x",
            "--exact=1",
            "--test-thread 1",
            "--format",
            "--format wat",
            "--color wat",
            "--skip",
            "--test-threads 0",
            "--test-threads x",
            "--test-threads -1",
            "-Z",
            "-Z wat",
            "-qq",
            "--ignored --ignored",
            "--ignored --include-ignored",
            "--shuffle-seed x -Z unstable-options",
            "--report-time=colored -Zunstable-options",
        ],
        &[],
    );
}

#[test]
fn the_log_file() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = libtest(folder.path(), "failing");
    let (ours, log) = (env!("CARGO_BIN_EXE_synthetic"), folder.path().join("log"));
    let arguments = format!("--test-threads 1 --logfile {}", log.display());
    let expected = outcome(&mut program(theirs), &arguments);
    let expected_log = std::fs::read_to_string(&log).unwrap();
    let got = outcome(program(ours).env("SYNTHETIC", "failing"), &arguments);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), expected_log);
    assert_eq!(got.out, expected.out);
}
