//! Accuracy baselines of compiled kernels.

use crate::{CONTRACT, project, suite};
use gpuemu_harness::suite::Suite;
use gpuemu_tests::sessions::{Place, assert_has, suite_report};
use std::fs;

const NAME: &str = "accuracy::kernel::add::float32";
const ACCEPTED: &str = "gpuemu-snapshots/accuracy/kernel.add.float32.snap";

fn with(changes: &[(&str, &str)]) -> Place {
    project(&format!("{CONTRACT}[policies]\naccuracy = true\n"), changes)
}

/// What the test says where these figures are accepted.
fn judged(changes: &[(&str, &str)], accepted: &str) -> String {
    let place = with(changes);
    place.write(ACCEPTED, accepted);
    suite_report(&suite(&place), NAME)
}

#[test]
fn a_kernels_accuracy_is_measured_accepted_and_defended() {
    let place = with(&[]);
    let suite = suite(&place);
    let listed: Vec<_> = suite.tests().into_iter().filter(|test| test.name.starts_with("accuracy")).collect();
    let listed: Vec<_> = listed.iter().map(|test| (test.name.as_str(), test.cannot_run.as_deref())).collect();
    let own = "only compiled kernels compute it: kernel::add tests that";
    assert_eq!(listed, [("accuracy::add::float32", Some(own)), (NAME, None)]);
    assert!(suite.resolve("accuracy::kernel::add::float16").is_none());
    assert!(suite.resolve("accuracy::kernel::sub::float32").is_none());

    let new = suite_report(&suite, NAME);
    assert_has(&new, &[&format!("{NAME} failed: no accepted figures yet in {ACCEPTED}")]);
    let figures = fs::read_to_string(place.path().join(format!("{ACCEPTED}.new"))).unwrap();
    assert_has(&figures, &["subject: kernel add (add.ptx on an emulated sm_80)", "\n  dtype: float32\n"]);
    // One strategy of twelve cases: no launch passes strides.
    assert_has(&figures, &["\ncases = 12\n"]);
    // A sum that is rounded once is off by half a unit at most, and comes near that in 12 cases.
    let ulp: f64 = figures.lines().find_map(|line| line.strip_prefix("out.max_ulp = ")).unwrap().parse().unwrap();
    assert!((0.45..=0.5).contains(&ulp), "{figures}");

    // The same kernel keeps to them, and so does one that computes the same otherwise.
    assert_eq!(judged(&[], &figures), "");
    assert_eq!(judged(&[("add.f32 %f3, %f1, %f2;", "fma.rn.f32 %f3, %f1, 0f3F800000, %f2;")], &figures), "");
    // One unit more is right by the bound of a sum, and worse than it was.
    let off = [("add.f32 %f3, %f1, %f2;", "add.f32 %f3, %f1, %f2; mul.f32 %f3, %f3, 0f3F800001;")];
    let place = with(&off);
    assert_eq!(suite_report(&self::suite(&place), "kernel::add::float32::boundary"), "");
    let worse = judged(&off, &figures);
    assert_has(&worse, &[&format!("{NAME} failed: worse than accepted: out.max_ulp 0.")]);
    // A wrong kernel has none.
    let wrong = judged(&[("add.f32 %f3", "sub.f32 %f3")], &figures);
    assert_has(
        &wrong,
        &[
            &format!("{NAME} failed: a wrong answer has no accuracy: "),
            "\n  replay   GPUEMU_CASE='kernel::add::float32::boundary{",
            "\n  see      kernel::add::float32::boundary\n",
        ],
    );
    // Nor has one that faults.
    let faults = judged(&[("setp.ge.s32", "setp.gt.s32")], &figures);
    assert_has(&faults, &[&format!("{NAME} failed: a wrong answer has no accuracy: read out of bounds in add\n")]);
}
