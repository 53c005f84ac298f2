//! The runner's own part of the contract with cargo, nextest, editors and continuous integration: what libtest does not
//! have, or has otherwise. (What it has alike is compared in `runner_libtest.rs`.)

use gpuemu_tests::programs::{Ran, program, ran};
use gpuemu_tests::synthetic::{FAILING, IGNORED, PASSING, PROPERTY, REPORT};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

/// The synthetic suite, holding what `holds` says, with arguments and variables.
fn synthetic(holds: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_synthetic"));
    command.env("SYNTHETIC", holds).args(arguments).envs(variables.iter().copied());
    command
}

fn suite(holds: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    ran(&mut synthetic(holds, arguments, variables))
}

/// Names in the order in which the pretty format tells results.
fn order(out: &str) -> Vec<&str> {
    out.lines().filter_map(|line| line.strip_prefix("test ")?.split_once(" ... ")).map(|(name, _)| name).collect()
}

fn events(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn nextest_asks_for_one_test_a_process() {
    for (arguments, message) in [
        (&["--exact", PASSING[1], "--nocapture"][..], None),
        (
            &["--exact", FAILING],
            Some("error: nextest runs one test a process, and 0 tests match [\"softmax::float32::edge\"]\n"),
        ),
        (&["--exact", PASSING[0], PASSING[1]], Some("error: nextest runs one test a process, and 2 tests match")),
        (&[], Some("error: nextest runs one test a process, and 5 tests match []")),
        (&["--exact", PASSING[1], "--ignored"], Some("error: nextest runs one test a process, and 0 tests match")),
    ] {
        let ran = suite("", arguments, &[("NEXTEST", "1")]);
        assert_eq!(ran.code, Some(if message.is_some() { 101 } else { 0 }), "{arguments:?}: {ran:?}");
        assert!(ran.err.starts_with(message.unwrap_or_default()), "{arguments:?}: {ran:?}");
        assert_eq!(ran.err.is_empty(), message.is_none(), "{arguments:?}: {ran:?}");
    }
    let list = suite("", &["--list", "--format", "terse"], &[("NEXTEST", "1")]);
    assert_eq!((list.code, list.out.lines().count()), (Some(0), 5), "listing is not a run: {list:?}");
}

#[test]
fn a_test_that_cannot_run_fails_when_it_is_asked_for_and_never_passes() {
    let reason = format!("{} cannot run on this host: {}", IGNORED.0, IGNORED.1);
    for (arguments, variables) in [
        (&["--exact", IGNORED.0, "--nocapture", "--ignored"][..], &[("NEXTEST", "1")][..]),
        (&["--ignored"], &[]),
        (&["--include-ignored"], &[]),
        (&[], &[("GPUEMU_REQUIRE", "1")]),
        (&["--exact", IGNORED.0, "--nocapture"], &[("NEXTEST", "1"), ("GPUEMU_REQUIRE", "1")]),
    ] {
        let ran = suite("", arguments, variables);
        assert_eq!(ran.code, Some(101), "{arguments:?} {variables:?}: {ran:?}");
        assert!(ran.out.contains(&reason), "{arguments:?} {variables:?}: {ran:?}");
    }
    let list = suite("", &["--list", "--format", "terse", "--ignored"], &[("GPUEMU_REQUIRE", "1")]);
    assert_eq!(list.out, "", "what is required is not ignored");
}

#[test]
fn the_case_must_be_one_that_runs() {
    let here = "softmax::float32::boundary{B=1;axis=-1} x:row normal seed=7";
    for (case, arguments, message) in [
        (here, &[][..], None),
        (here, &["softmax::float32"], None),
        (
            here,
            &["gelu"],
            Some(
                "error: GPUEMU_CASE names softmax::float32::boundary, which this run does not select; run it with\n    \
                 GPUEMU_CASE='softmax::float32::boundary{B=1;axis=-1} x:row normal seed=7' cargo test -- --exact \
                 softmax::float32::boundary\n",
            ),
        ),
        (
            here,
            &["--skip", "boundary"],
            Some("error: GPUEMU_CASE names softmax::float32::boundary, which this run does"),
        ),
        (
            "relu::float32::edge{B=1}",
            &[],
            Some("error: GPUEMU_CASE names relu::float32::edge, which this test binary does"),
        ),
        (
            "tanh::float32::boundary{B=1}",
            &[],
            Some("error: GPUEMU_CASE names tanh::float32::boundary, which is ignored here: no ptxas on this host\n"),
        ),
        ("softmax", &[], Some("error: GPUEMU_CASE: `softmax` is no spec\n")),
    ] {
        let ran = suite("", arguments, &[("GPUEMU_CASE", case)]);
        match message {
            None => {
                assert_eq!((ran.code, &*ran.err), (Some(0), ""), "{case} {arguments:?}");
                let others = if arguments.is_empty() { 5 } else { 2 };
                assert_eq!(order(&ran.out).len(), others, "other tests run as usual: {ran:?}");
            }
            Some(message) => {
                assert_eq!((ran.code, &*ran.out), (Some(101), ""), "{case} {arguments:?}");
                assert!(ran.err.starts_with(message), "{case} {arguments:?}: {ran:?}");
            }
        }
    }
}

#[test]
fn under_nextest_the_case_is_checked_when_tests_are_listed() {
    let list = &["--list", "--format", "terse"][..];
    let one = &["--exact", PASSING[0], "--nocapture"];
    for (case, arguments, code) in [
        ("softmax::float32::boundary{B=1}", list, 0),
        ("relu::float32::edge{B=1}", list, 101),
        ("softmax", list, 101),
        // The process of another test than the one named.
        ("softmax::float32::boundary{B=1}", one, 0),
    ] {
        let ran = suite("", arguments, &[("GPUEMU_CASE", case), ("NEXTEST", "1")]);
        assert_eq!(ran.code, Some(code), "{case} {arguments:?}: {ran:?}");
    }
}

#[test]
fn a_variable_with_an_invalid_value_is_refused_by_name() {
    let ran = suite("", &["--list"], &[("GPUEMU_DEVICE", "gpu"), ("RUST_TEST_THREADS", "0")]);
    assert_eq!((ran.code, &*ran.out), (Some(101), ""));
    assert_eq!(
        ran.err,
        "error: GPUEMU_DEVICE is `gpu` and must be one of `emulate`, `cuda` or `auto`; RUST_TEST_THREADS is `0` and must \
         be a number of threads, 1 or more\n"
    );
}

#[test]
fn a_suite_that_is_empty_or_ambiguous_is_refused() {
    for (holds, message) in [
        ("empty", "error: there is no test: no op of the contract has a dtype and a strategy that this run may use\n"),
        ("twice", "error: two tests have the name gelu::float32::boundary\n"),
    ] {
        for arguments in [&[][..], &["--list", "--format", "terse"]] {
            let ran = suite(holds, arguments, &[]);
            assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(101), "", message), "{holds} {arguments:?}");
        }
    }
}

#[test]
fn each_line_of_json_is_an_event_whatever_a_subject_prints() {
    for arguments in [
        &["--format", "json", "--test-threads", "4"][..],
        &["-Z", "unstable-options", "--format=json", "--show-output", "--nocapture", "--test-threads", "1"],
    ] {
        let ran = suite("failing panicking printing regression", arguments, &[]);
        assert_eq!(ran.code, Some(101));
        assert!(ran.err.contains("{ \"type\": \"noise"), "what a subject prints is not lost: {ran:?}");
        let events = events(&ran.out);
        assert_eq!((&events[0]["type"], &events[0]["event"]), (&"suite".into(), &"started".into()));
        assert_eq!(events[0]["test_count"], 9);
        let mut running = BTreeSet::new();
        let mut over = BTreeSet::new();
        for event in &events[1..events.len() - 1] {
            assert_eq!(event["type"], "test");
            let name = event["name"].as_str().unwrap();
            match event["event"].as_str().unwrap() {
                "started" => assert!(running.insert(name), "{name} starts twice"),
                "ok" | "failed" | "ignored" => assert!(running.contains(name) && over.insert(name), "{event}"),
                other => panic!("unknown event {other}"),
            }
            if name == FAILING && event["event"] != "started" {
                assert_eq!(event["stdout"], format!("{REPORT}\n"));
            }
            if name == IGNORED.0 && event["event"] != "started" {
                assert_eq!((&event["event"], &event["message"]), (&"ignored".into(), &IGNORED.1.into()));
            }
        }
        assert_eq!(over.len(), 9);
        let end = events.last().unwrap();
        assert_eq!((&end["type"], &end["event"]), (&"suite".into(), &"failed".into()));
        let counts = ["passed", "failed", "ignored", "measured", "filtered_out"].map(|key| end[key].as_u64().unwrap());
        assert_eq!(counts, [6, 2, 1, 0, 0]);
    }
}

#[test]
fn a_list_in_json_says_what_is_ignored_and_why() {
    let ran = suite("", &["--list", "--format", "json", "tanh", "gelu"], &[]);
    let events = events(&ran.out);
    assert_eq!(events.len(), 4, "{ran:?}");
    assert_eq!((&events[0]["type"], &events[0]["event"]), (&"suite".into(), &"discovery".into()));
    for (event, name, ignore, message) in
        [(&events[1], PASSING[0], false, ""), (&events[2], IGNORED.0, true, IGNORED.1)]
    {
        assert_eq!((&event["type"], &event["event"]), (&"test".into(), &"discovered".into()));
        assert_eq!((&event["name"], &event["ignore"]), (&name.into(), &ignore.into()));
        assert_eq!(event["ignore_message"], message);
        for key in ["source_path", "start_line", "start_col", "end_line", "end_col"] {
            assert!(event.get(key).is_some(), "readers expect {key}");
        }
    }
    let end = ["tests", "benchmarks", "total", "ignored"].map(|key| events[3][key].as_u64().unwrap());
    assert_eq!(end, [2, 0, 2, 1]);
}

#[test]
fn what_a_subject_prints_goes_to_standard_error_unless_it_is_asked_for() {
    let quiet = suite("printing", &["noisy"], &[]);
    assert!(!quiet.out.contains("noise") && quiet.err.contains("noise"), "{quiet:?}");
    for (arguments, variables) in [
        (&["noisy", "--nocapture"][..], &[][..]),
        (&["noisy", "--no-capture"], &[]),
        (&["noisy"], &[("RUST_TEST_NOCAPTURE", "1")]),
    ] {
        let loud = suite("printing", arguments, variables);
        assert!(loud.out.contains("noise") && !loud.err.contains("noise"), "{loud:?}");
    }
}

#[test]
fn regressions_are_listed_in_place_and_run_first() {
    let name = "softmax::regressions::r9f3c5a";
    let run = suite("regression", &["--test-threads", "1"], &[]);
    let run = order(&run.out);
    assert_eq!((run.len(), run[0]), (6, name));
    assert!(run[1..].is_sorted());
    let list = suite("regression", &["--list", "--format", "terse"], &[]);
    assert!(list.out.lines().is_sorted() && list.out.contains(name));
}

#[test]
fn a_shuffled_order_is_that_of_its_seed() {
    let run = |seed: &str| suite("regression", &["--test-threads=1", "--shuffle-seed", seed], &[]).out;
    let orders: BTreeSet<Vec<String>> =
        (0..20).map(|seed| order(&run(&seed.to_string())).into_iter().map(str::to_owned).collect()).collect();
    assert!(orders.len() > 10, "twenty seeds of six tests gave only {} orders", orders.len());
    assert!(orders.iter().all(|order| order.iter().collect::<BTreeSet<_>>().len() == 6));
    let seven = run("7");
    assert!(seven.starts_with("\nrunning 6 tests (shuffle seed: 7)\n"), "{seven}");
    assert_eq!(order(&seven), order(&run("7")));
    let variable = suite("regression", &["--test-threads=1"], &[("RUST_TEST_SHUFFLE_SEED", "7")]);
    assert_eq!(order(&variable.out), order(&seven));
    let own = suite("regression", &["--test-threads=1", "--shuffle"], &[]).out;
    let seed =
        own.lines().nth(1).unwrap().strip_prefix("running 6 tests (shuffle seed: ").unwrap().trim_end_matches(')');
    assert_eq!(order(&own), order(&run(seed)), "the seed that is told gives the same order again");
}

#[test]
fn the_end_of_a_run_may_add_lines_and_may_fail() {
    let whole = suite("regression", &[], &[]);
    assert!(whole.out.ends_with("s\n\n1 regression was not used\n"), "{whole:?}");
    let json = suite("regression", &["--format", "json"], &[]);
    assert_eq!(json.err, "1 regression was not used\n");
    for arguments in [&["softmax"][..], &["--exact", PASSING[0]], &["--skip", "gelu"]] {
        let part = suite("regression", arguments, &[]);
        assert!(!part.out.contains("not used"), "only a whole run can know: {part:?}");
    }
    let stopped = suite("regression failing", &["--fail-fast", "--test-threads=1"], &[]);
    assert!(!stopped.out.contains("not used"), "nor can a run that was stopped: {stopped:?}");
    let broken = suite("unfinished", &[], &[]);
    assert_eq!((broken.code, &*broken.err), (Some(101), "error: failed: cannot write results: disk full\n"));
    assert!(broken.out.contains("test result: ok. 4 passed"), "{broken:?}");
}

#[test]
fn a_panic_of_ours_is_a_failure_and_the_others_run_on() {
    let ran = suite("panicking", &[], &[]);
    assert_eq!(ran.code, Some(101));
    assert!(
        ran.out.contains("swish::float32::boundary failed: gpuemu itself panicked: index out of bounds"),
        "{ran:?}"
    );
    assert!(ran.out.contains("4 passed; 1 failed; 1 ignored"), "{ran:?}");
}

#[test]
fn the_help_names_every_flag_and_variable() {
    let ran = suite("", &["--help", "whatever"], &[]);
    assert_eq!(ran.code, Some(0));
    for word in [
        "--include-ignored",
        "--ignored",
        "--test",
        "--bench",
        "--list",
        "--fail-fast",
        "--help",
        "--logfile",
        "--no-capture",
        "--nocapture",
        "--test-threads",
        "--skip",
        "--quiet",
        "--exact",
        "--color",
        "--format",
        "--show-output",
        "unstable-options",
        "--report-time",
        "--shuffle",
        "--shuffle-seed",
        "GPUEMU_CASE",
        "GPUEMU_REQUIRE",
        "GPUEMU_JUNIT",
    ] {
        assert!(ran.out.contains(word), "{word} is missing in\n{}", ran.out);
    }
}

#[cfg(unix)]
#[test]
fn nobody_reading_ends_the_run_without_a_panic() {
    let mut command = synthetic("failing", &["--test-threads", "1"], &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(101), "{err}");
    assert!(err.starts_with("error: cannot write to standard output: "), "{err}");
}

/// Runs a command with its standard error on a terminal, and returns what appeared there.
#[cfg(target_os = "linux")]
fn on_terminal(command: &mut Command) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read;
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let end = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut child = command.stdout(Stdio::null()).stderr(end).spawn().unwrap();
    // The command holds the other end, too, until it is dropped or given something else.
    command.stderr(Stdio::null());
    let mut shown = Vec::new();
    // Once nobody holds the other end any more, reading is an error on Linux.
    let _ = std::fs::File::from(terminal).read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_run_shows_its_progress_on_a_terminal_and_takes_it_away() {
    let shown = on_terminal(&mut synthetic("slow failing", &["--test-threads", "2"], &[]));
    assert!(shown.contains("\r\u{1b}[K[6/7, 1 failed] attention::float32::boundary 1s"), "{shown:?}");
    assert!(shown.ends_with("\r\u{1b}[K"), "{shown:?}");
    for (arguments, variables) in [(&[][..], &[("CI", "true")][..]), (&["--nocapture"], &[])] {
        let shown = on_terminal(&mut synthetic("slow", arguments, variables));
        assert_eq!(shown, "", "{arguments:?} {variables:?}");
    }
}

/// Reads a JUnit document and checks it against what the format's readers rely on.
fn check_junit(text: &str) {
    let document = roxmltree::Document::parse(text).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let suites: Vec<_> = root.children().filter(roxmltree::Node::is_element).collect();
    assert_eq!(suites.len(), 1);
    assert_eq!((suites[0].tag_name().name(), suites[0].attribute("name")), ("testsuite", Some("synthetic kernels")));
    for node in [root, suites[0]] {
        let counts = ["tests", "skipped", "failures", "errors"].map(|name| node.attribute(name).unwrap());
        assert_eq!(counts, ["6", "1", "1", "0"]);
        assert!(node.attribute("time").unwrap().parse::<f64>().unwrap() >= 0.0);
    }
    let cases: Vec<_> = suites[0].children().filter(roxmltree::Node::is_element).collect();
    let names: Vec<_> = cases.iter().map(|case| case.attribute("name").unwrap()).collect();
    assert_eq!(names, [PASSING[0], PASSING[1], PASSING[2], PASSING[3], FAILING, IGNORED.0]);
    for case in &cases {
        assert_eq!((case.tag_name().name(), case.attribute("classname")), ("testcase", Some("synthetic kernels")));
        assert!(case.attribute("time").unwrap().parse::<f64>().unwrap() >= 0.0);
        let child = |name| case.children().find(|child| child.has_tag_name(name));
        let name = case.attribute("name").unwrap();
        assert_eq!(child("failure").is_some(), name == FAILING);
        assert_eq!(child("skipped").is_some(), name == IGNORED.0);
        if let Some(failure) = child("failure") {
            // XML cannot say the control character, and keeps no tab in an attribute.
            let report = REPORT.replace('\u{1}', "").replace('\t', "    ");
            assert_eq!(failure.text(), Some(&*report));
            assert_eq!(failure.attribute("message"), report.lines().next());
        }
        if let Some(skipped) = child("skipped") {
            assert_eq!(skipped.attribute("message"), Some(IGNORED.1));
        }
        if name == PASSING[0] {
            let property = child("properties").unwrap().first_element_child().unwrap();
            assert_eq!((property.attribute("name"), property.attribute("value")), (Some(PROPERTY.0), Some(PROPERTY.1)));
        }
    }
}

#[test]
fn junit_on_standard_output_and_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let printed = suite("failing", &["--format", "junit"], &[]);
    assert_eq!(printed.code, Some(101));
    check_junit(&printed.out);

    let path = folder.path().join("reports/junit.xml");
    let variables = [("GPUEMU_JUNIT", path.to_str().unwrap())];
    for _ in 0..2 {
        let ran = suite("failing", &[], &variables);
        assert_eq!((ran.code, &*ran.err), (Some(101), ""));
        assert!(ran.out.contains("test result: FAILED."), "{ran:?}");
        check_junit(&std::fs::read_to_string(&path).unwrap());
    }
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing else is left behind");

    // A folder takes the reports of several binaries.
    suite("failing", &[], &[("GPUEMU_JUNIT", folder.path().to_str().unwrap())]);
    check_junit(&std::fs::read_to_string(folder.path().join("synthetic-kernels.xml")).unwrap());
}

#[test]
fn junit_is_left_to_nextest_and_a_place_that_takes_no_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("junit.xml");
    let variables = [("GPUEMU_JUNIT", path.to_str().unwrap()), ("NEXTEST", "1")];
    assert_eq!(suite("", &["--exact", PASSING[0]], &variables).code, Some(0));
    assert!(!path.exists());

    std::fs::write(&path, "a file").unwrap();
    let below = path.join("junit.xml");
    let ran = suite("", &[], &[("GPUEMU_JUNIT", below.to_str().unwrap())]);
    assert_eq!(ran.code, Some(101), "{ran:?}");
    assert!(ran.err.starts_with(&format!("error: failed: cannot write {}: ", below.display())), "{ran:?}");
    assert!(ran.out.contains("test result: ok."), "the tests ran: {ran:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
}

/// cargo on this workspace, which has the synthetic suite as a test target.
fn cargo(arguments: &[&str], after: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    command.current_dir(root).env("CARGO_TERM_COLOR", "never").envs(variables.iter().copied()).args(arguments);
    // The packages are those of a plain run of all tests, so that nothing is compiled anew.
    ran(command.args(["--workspace", "--test", "synthetic", "--offline"]).args(after))
}

#[test]
fn cargo_test_hands_arguments_on() {
    let two =
        cargo(&["test"], &["--", "softmax::float32", "gelu", "--skip", "adversarial", "--test-threads", "1"], &[]);
    assert_eq!(two.code, Some(0), "{two:?}");
    assert_eq!(order(&two.out), [PASSING[0], PASSING[3]]);

    let exact = cargo(&["test"], &["--", "--exact", PASSING[2]], &[]);
    assert!(exact.out.contains("1 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out"), "{exact:?}");

    let json = cargo(&["test", "-q"], &["--", "-Z", "unstable-options", "--format=json"], &[("SYNTHETIC", "failing")]);
    assert_eq!(json.code, Some(101), "{json:?}");
    assert_eq!(events(&json.out).len(), 2 + 2 * 6);
}

#[test]
fn nextest_lists_and_runs() {
    let version =
        ran(program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(["nextest", "--version"]));
    assert_eq!(
        version.code,
        Some(0),
        "cargo-nextest is missing: run `cargo install cargo-nextest --locked`, or tests/run"
    );

    let list = cargo(&["nextest", "list"], &["--message-format", "json"], &[]);
    assert_eq!(list.code, Some(0), "{list:?}");
    let list: Value = serde_json::from_str(&list.out).unwrap();
    let suites = list["rust-suites"].as_object().unwrap();
    let tests = suites["gpuemu-tests::synthetic"]["testcases"].as_object().unwrap();
    let ignored: Vec<_> = tests.iter().map(|(name, test)| (&**name, test["ignored"].as_bool().unwrap())).collect();
    let expected = PASSING.map(|name| (name, false)).into_iter().chain([(IGNORED.0, true)]);
    assert_eq!(ignored, expected.collect::<Vec<_>>());

    let run = cargo(&["nextest", "run"], &["--no-fail-fast"], &[("SYNTHETIC", "failing printing")]);
    assert_eq!(run.code, Some(100), "{run:?}");
    assert!(run.err.contains("6 tests run: 5 passed, 1 failed, 1 skipped"), "{run:?}");
    assert!(run.err.contains(REPORT.lines().next().unwrap()), "the report is shown: {run:?}");

    let required = cargo(&["nextest", "run"], &["--no-fail-fast"], &[("GPUEMU_REQUIRE", "1")]);
    assert!(required.err.contains("5 tests run: 4 passed, 1 failed, 0 skipped"), "{required:?}");

    let unknown = cargo(&["nextest", "run"], &[], &[("GPUEMU_CASE", "relu::float32::edge{B=1}")]);
    assert_ne!(unknown.code, Some(0));
    assert!(unknown.err.contains("GPUEMU_CASE names relu::float32::edge"), "{unknown:?}");

    // One half of the names, whatever they hash to, and the other make the whole.
    let halves = ["hash:1/2", "hash:2/2"].map(|half| {
        let run = cargo(&["nextest", "run"], &["--partition", half, "--no-tests", "pass"], &[]);
        assert_eq!(run.code, Some(0), "{run:?}");
        PASSING.iter().filter(|name| run.err.contains(**name)).count()
    });
    assert_eq!(halves.iter().sum::<usize>(), PASSING.len());
}
