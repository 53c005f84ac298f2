//! The door whose tests are real `#[test]` functions: one test by name, failing by unwinding.

use gpuemu_harness::runner::run_named;
use gpuemu_tests::synthetic::{FAILING, IGNORED, PASSING, REPORT, Synthetic};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_test_passes_or_unwinds_with_its_report_and_no_panic_message() {
    static MESSAGES: AtomicUsize = AtomicUsize::new(0);
    std::panic::set_hook(Box::new(|_| {
        MESSAGES.fetch_add(1, Ordering::Relaxed);
    }));
    let suite = Synthetic::holding("failing");
    let cannot_run = format!("{} cannot run on this host: {}", IGNORED.0, IGNORED.1);
    let unknown = "relu::float32::edge is no test of the contract any more";
    let results = [PASSING[0], FAILING, IGNORED.0, "relu::float32::edge"]
        .map(|name| catch_unwind(AssertUnwindSafe(|| run_named(&suite, name))));
    let _ = std::panic::take_hook();
    for (result, report) in results.iter().zip([None, Some(REPORT), Some(&*cannot_run), Some(unknown)]) {
        match (result, report) {
            (Ok(()), None) => {}
            (Err(payload), Some(report)) => {
                let text = payload.downcast_ref::<String>().expect("the report is the payload");
                assert!(text.starts_with(report), "{text}");
            }
            (result, report) => panic!("{report:?} was to be the end, and not {result:?}"),
        }
    }
    assert_eq!(MESSAGES.load(Ordering::Relaxed), 0, "the report says all there is to say");
}
