//! One test of a project: from its name to its outcome.

use super::ProjectSuite;
use super::list::Entry;
use crate::error::{Error, Result};
use crate::inspect::snapshot::{self, Budget};
use crate::pipeline::trial::{self, Finished};
use crate::pipeline::{accuracy, artifact, calibration};
use crate::report::{accuracy as baselines, regressions, results};
use crate::suite::Outcome;
use gpuemu_contract::DType;

impl ProjectSuite {
    /// Runs a test.
    pub(super) fn run_entry(&self, name: &str, entry: Entry) -> Outcome {
        match entry {
            Entry::Test(test) => {
                if let Err(error) = self.calibrated(&test.op, test.dtype) {
                    return failed(name, &error);
                }
                let only = self.case.as_ref().filter(|spec| spec.test == test);
                let finished = trial::run(&self.session, &test, only);
                self.outcome(name, finished)
            }
            Entry::Regression(path) => match regressions::load(self.session.contract().root(), &path) {
                Ok(saved) => self.outcome(name, trial::rerun(&self.session, name, &saved)),
                Err(error) => failed(name, &error),
            },
            Entry::Regressions(op) => {
                let mut together = Outcome::default();
                let paths = match regressions::list(self.session.contract().root(), &op) {
                    Ok(paths) => paths,
                    Err(error) => return failed(name, &error),
                };
                let mut reports = String::new();
                for path in paths {
                    let outcome = self.run_entry(name, Entry::Regression(path));
                    if let Some(report) = outcome.failure {
                        reports.push_str(&report);
                    }
                }
                together.failure = (!reports.is_empty()).then_some(reports);
                together
            }
            Entry::Artifact(kernel, target) => match self.artifact(name, &kernel, &target) {
                Ok(outcome) => outcome,
                Err(error) => failed(name, &error),
            },
            Entry::Accuracy(op, dtype) => match self.accuracy(name, &op, dtype) {
                Ok(outcome) => outcome,
                Err(error) => failed(name, &error),
            },
        }
    }

    fn outcome(&self, name: &str, finished: Finished) -> Outcome {
        let mut properties = vec![("cases".to_owned(), finished.cases.to_string())];
        let mut worst = 0.0f64;
        for (output, total) in &finished.outputs {
            let statistics = &total.statistics;
            worst = worst.max(statistics.worst_of_bound);
            properties.push((format!("{output}.max_ulp"), format!("{:.3}", statistics.max_ulp)));
            properties.push((format!("{output}.max_abs"), format!("{:e}", statistics.max_abs)));
            properties.push((format!("{output}.worst_of_bound"), format!("{:.4}", statistics.worst_of_bound)));
        }
        let mut failure = finished.failure;
        if let Err(error) = results::write(&self.results, name, &finished.lines) {
            let note = format!("results not written: {error}");
            match &mut failure {
                Some(report) => report.notes.push(note),
                None => self.summary().unwritten.push(note),
            }
        }
        match &failure {
            None => self.summary().passed(name, worst),
            Some(report) => {
                if let Some(case) = &report.case {
                    properties.push(("replay".to_owned(), case.replay.clone()));
                }
                properties.push(("check".to_owned(), report.failure.check.name().to_owned()));
            }
        }
        Outcome { failure: failure.map(|report| report.render()), properties }
    }

    /// What `GPUEMU_CALIBRATE` asks for, before a test of an op runs.
    fn calibrated(&self, op: &str, dtype: DType) -> Result<()> {
        calibration::prepare(&self.session, self.session.op(op)?, dtype)
    }

    /// Inspects a compiled kernel.
    fn artifact(&self, name: &str, kernel: &str, target: &str) -> Result<Outcome> {
        let contract = self.session.contract();
        let kernel = contract.kernel(kernel).ok_or_else(|| Error::NotFound(format!("no kernel {kernel}")))?;
        let is_test = |test: &str| self.entry(test).is_some();
        let finished = artifact::run(&self.session, name, kernel, target, &self.results, is_test);
        let mut properties = finished.figures;
        let mut summary = self.summary();
        for note in finished.told {
            properties.push(("note".to_owned(), note.clone()));
            summary.told.entry((kernel.name.clone(), note)).or_default().push(target.to_owned());
        }
        summary.annotations.extend(finished.annotations);
        properties.extend(finished.unjudged.into_iter().map(|check| ("unjudged".to_owned(), check)));
        if let Some(why) = finished.no_ptxas {
            *summary.unjudged.entry(why).or_default() += 1;
        }
        Ok(Outcome { failure: finished.failure, properties })
    }

    /// Measures the accuracy of an op and compares with the accepted one.
    fn accuracy(&self, name: &str, op: &str, dtype: DType) -> Result<Outcome> {
        self.calibrated(op, dtype)?;
        let measured = match accuracy::measure(&self.session, op, dtype)? {
            Ok(measured) => measured,
            Err(wrong) => {
                let replay = self.session.replay(&wrong.spec);
                let failure = format!(
                    "{name} failed: a wrong answer has no accuracy: {}\n  replay   {replay}\n  see      {}\n",
                    wrong.message, wrong.spec.test
                );
                return Ok(Outcome { failure: Some(failure), properties: vec![("replay".to_owned(), replay)] });
            }
        };
        let declared = self.session.op(op)?;
        let contract = self.session.contract();
        let baseline = baselines::baseline(
            contract.root(),
            &baselines::Measurement {
                op,
                dtype,
                compute: declared.compute_for(dtype),
                subject: &self.session.subject(declared)?.describe(),
                strategies: &measured.strategies,
                cases: measured.cases,
                envelope: measured.envelope,
                outputs: &measured.outputs,
            },
        );
        let budget = Budget { relative: contract.policies.warn_threshold, fails: contract.policies.fail_on_regression };
        let judgement =
            snapshot::judge(&baseline, budget, &self.session.environment().snapshots, self.session.front())?;
        self.summary().notes.extend(judgement.notes.iter().map(|note| format!("{name}: {note}")));
        let properties = baseline.metrics.iter().map(|metric| (metric.name.clone(), metric.value.to_string()));
        Ok(Outcome {
            failure: judgement.failure.map(|text| format!("{name} failed: {text}")),
            properties: properties.chain(judgement.notes.into_iter().map(|note| ("note".to_owned(), note))).collect(),
        })
    }
}

/// A test that could not be run.
pub(super) fn failed(name: &str, error: &Error) -> Outcome {
    Outcome { failure: Some(format!("{name} failed: {error} [{}]\n", error.code())), properties: Vec::new() }
}
