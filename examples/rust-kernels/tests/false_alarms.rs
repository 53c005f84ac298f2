//! No false alarm: every op, every dtype it declares and every strategy, the ones `gpuemu.toml` leaves out included.
//! The kernels are right, so that any report is a defect of gpuemu, or of a kernel after all.

mod bindings;

use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::pipeline::trial;
use gpuemu_harness::{Strategy, TestName};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tests that cannot prove anything, which gpuemu rightly says.
const PROVE_NOTHING: [(&str, Strategy, &str); 1] =
    [("cross_entropy_mean", Strategy::NanInjected, "one NaN makes the one answer NaN")];

/// Cases a test; with some thousand tests, more than 10,000 in all.
const CASES: u32 = 12;

#[test]
fn right_kernels_raise_no_alarm() {
    let cases = run(None, CASES);
    assert!(cases >= 10_000, "only {cases} cases");
}

/// Other cases than those of every run: `cargo test --test false_alarms -- --ignored --nocapture`.
#[test]
#[ignore = "takes many minutes"]
fn right_kernels_raise_no_alarm_under_other_seeds() {
    let cases: u32 = (1..=5).map(|seed| run(Some(seed), 2 * CASES)).sum();
    assert!(cases >= 100_000, "only {cases} cases");
}

/// Runs every test; the number of cases.
fn run(seed: Option<u64>, cases: u32) -> u32 {
    let strategies = Strategy::ALL.into_iter().filter(|strategy| strategy.selects().is_none());
    let environment = Environment {
        seed,
        cases: NonZeroU32::new(cases),
        strategies: Some(strategies.collect()),
        ..Environment::default()
    };
    let session = Session::open(Path::new(env!("CARGO_MANIFEST_DIR")), environment).unwrap().keep_regressions(false);
    let mut tests: Vec<TestName> = session.contract().tests();
    tests.retain(|test| !PROVE_NOTHING.iter().any(|(op, strategy, _)| (*op, *strategy) == (&test.op, test.strategy)));
    let next = AtomicUsize::new(0);
    let done = Mutex::new((0u32, Vec::new()));
    let worker = || {
        while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let finished = trial::run(&session, test, None);
            let mut done = done.lock().unwrap();
            done.0 += finished.cases;
            done.1.extend(finished.failure);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let (cases, alarms) = done.into_inner().unwrap();
    // The replay line is part of a report.
    let reports: Vec<String> = alarms.iter().map(|report| report.render()).collect();
    let kernels = session.contract().ops.len();
    let alarm = if alarms.is_empty() { "no false alarm".to_owned() } else { format!("{} false alarms", alarms.len()) };
    println!("{cases} cases of {kernels} right kernels, {} tests: {alarm}", tests.len());
    assert!(alarms.is_empty(), "{}", reports.join("\n"));
    cases
}
