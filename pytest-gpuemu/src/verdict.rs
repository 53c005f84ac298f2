//! What became of a test, in parts, for programs.

use gpuemu_harness::pipeline::trial::Finished;
use gpuemu_harness::report::failure::Report;
use gpuemu_harness::validate::verdict::{Mismatch, Statistics};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A finished test as a dictionary; `pytest_gpuemu.library` makes its classes of it.
pub fn dict<'py>(py: Python<'py>, test: &str, finished: Finished) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("test", test)?;
    all.set_item("cases", finished.cases)?;
    let outputs = PyDict::new(py);
    for (name, total) in &finished.outputs {
        outputs.set_item(name, statistics(py, &total.statistics)?)?;
    }
    all.set_item("outputs", outputs)?;
    let seconds: f64 = finished.lines.iter().map(|line| line.subject_microseconds as f64 * 1e-6).sum();
    all.set_item("seconds", seconds)?;
    all.set_item("failure", finished.failure.as_ref().map(|report| failure(py, report)).transpose()?)?;
    Ok(all)
}

fn failure<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let failure = &report.failure;
    all.set_item("check", failure.check.name())?;
    all.set_item("message", &failure.message)?;
    all.set_item("output", failure.output.as_deref())?;
    all.set_item("spec", report.case.as_ref().map(|case| case.spec.to_string()))?;
    all.set_item("first", failure.first.as_ref().map(|first| mismatch(py, first)).transpose()?)?;
    let errors = failure.statistics.as_ref().map(|errors| statistics(py, errors)).transpose()?;
    all.set_item("statistics", errors)?;
    let larger = report.case.as_ref().and_then(|case| case.larger.as_ref());
    let looks = failure.diagnosis.iter().chain(larger.iter().flat_map(|larger| &larger.diagnosis));
    all.set_item("diagnosis", PyList::new(py, looks.collect::<Vec<_>>())?)?;
    all.set_item("report", report.render())?;
    Ok(all)
}

fn mismatch<'py>(py: Python<'py>, first: &Mismatch) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("index", first.index.clone())?;
    all.set_item("expected", first.expected)?;
    all.set_item("got", first.got)?;
    all.set_item("allowed", first.allowed)?;
    all.set_item("ulp", first.ulp)?;
    Ok(all)
}

/// Error statistics by the names they have in Rust.
fn statistics<'py>(py: Python<'py>, errors: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("count", errors.count)?;
    all.set_item("exceeding", errors.exceeding)?;
    for (name, value) in [
        ("max_abs", errors.max_abs),
        ("mean_abs", errors.mean_abs),
        ("p50_abs", errors.p50_abs),
        ("p90_abs", errors.p90_abs),
        ("p99_abs", errors.p99_abs),
        ("max_rel", errors.max_rel),
        ("mean_rel", errors.mean_rel),
        ("max_ulp", errors.max_ulp),
        ("mean_ulp", errors.mean_ulp),
        ("worst_of_bound", errors.worst_of_bound),
    ] {
        all.set_item(name, value)?;
    }
    Ok(all)
}

/// The report of one case outside of a test, if it failed.
pub fn report_of(checked: gpuemu_harness::pipeline::check::Checked, test: &str, subject: &str) -> Option<String> {
    let failure = checked.failure?;
    let report = Report { test: test.to_owned(), subject: subject.to_owned(), failure, case: None, notes: Vec::new() };
    Some(report.render())
}
