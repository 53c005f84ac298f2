//! The suite of a package: the tests that its `gpuemu.toml` declares, saved regressions, accuracy baselines.

use crate::case::spec::Spec;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::inspect::snapshot::{self, Budget};
use crate::memory;
use crate::origin::Origin;
use crate::pipeline::session::Session;
use crate::pipeline::trial::{self, Finished};
use crate::pipeline::{accuracy, artifact, calibration};
use crate::report::{accuracy as baselines, regressions, results};
use crate::runner;
use crate::suite::{Outcome, Suite, TestEntry, Totals};
use gpuemu_contract::{Contract, DType, KERNEL, Strategy, TestName};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, OnceLock};

/// What a name of the list stands for.
enum Entry {
    /// `softmax::float32::boundary`, `kernel::row_softmax::float32::boundary`
    Test(TestName),
    /// `softmax::regressions`: all of an op, for the door whose tests are fixed when it is compiled.
    Regressions(String),
    /// `softmax::regressions::9f3c5a`
    Regression(PathBuf),
    /// `accuracy::softmax::float32`
    Accuracy(String, DType),
    /// `artifact::softmax_rows::sm_80`
    Artifact(String, String),
}

/// The suite over one contract.
pub struct ProjectSuite {
    session: Session,
    results: PathBuf,
    case: Option<Spec>,
    /// Worst error as a share of what was allowed, of every test that passed.
    worst: Mutex<Vec<(String, f64)>>,
    /// What baselines say of tests that passed.
    notes: Mutex<Vec<String>>,
    /// What is told of kernels that passed, and for which targets.
    told: Mutex<BTreeMap<(String, String), Vec<String>>>,
    /// Annotations of what is told.
    annotations: Mutex<Vec<String>>,
    /// Why registers and spills of artifacts were not judged, and of how many.
    unjudged: Mutex<BTreeMap<String, usize>>,
    /// Why results of passing tests could not be written; failing ones say so in their reports.
    unwritten: Mutex<Vec<String>>,
}

impl ProjectSuite {
    /// The suite of a session.
    pub fn new(session: Session) -> Result<ProjectSuite> {
        let case = match &session.environment().case {
            None => None,
            Some(text) => Some({
                let source = session.front().case_source();
                read_case(session.contract().root(), text).map_err(|error| in_case(error, source))?
            }),
        };
        let contract = session.contract();
        let folder = session.front().folder(contract.root());
        let results = results::folder_in(&folder, contract.root(), &contract.project.name);
        Ok(ProjectSuite {
            session,
            results,
            case,
            worst: Mutex::default(),
            notes: Mutex::default(),
            told: Mutex::default(),
            annotations: Mutex::default(),
            unjudged: Mutex::default(),
            unwritten: Mutex::default(),
        })
    }

    /// The session it runs in.
    pub fn session(&self) -> &Session {
        &self.session
    }

    fn open(origin: Origin) -> Result<ProjectSuite> {
        let environment = Environment::read()?;
        let path = environment.config.clone().unwrap_or_else(|| PathBuf::from(origin.contract));
        let contract = Contract::load(&path).map_err(|errors| Error::Config(errors.to_string()))?;
        ProjectSuite::new(Session::new(contract, environment)?)
    }

    fn entry(&self, name: &str) -> Option<Entry> {
        let contract = self.session.contract();
        if let Some(test) = contract.test(name) {
            return Some(Entry::Test(test));
        }
        let mut parts = name.split("::");
        match (parts.next()?, parts.next()?, parts.next(), parts.next()) {
            ("accuracy", op, Some(dtype), None) if contract.policies.accuracy => {
                let dtype = *contract.op(op)?.dtypes.iter().find(|known| known.name() == dtype)?;
                Some(Entry::Accuracy(op.to_owned(), dtype))
            }
            ("artifact", kernel, Some(target), None) => {
                let target = contract.kernel(kernel)?.targets.iter().find(|known| *known == target)?;
                Some(Entry::Artifact(kernel.to_owned(), target.clone()))
            }
            _ => {
                let (op, id) = name.split_once("::regressions")?;
                match id.strip_prefix("::") {
                    None if id.is_empty() => Some(Entry::Regressions(op.to_owned()))
                        .filter(|_| self.session.op(op).is_ok() || regressions::list(contract.root(), op).is_err()),
                    None => None,
                    Some(id) => {
                        let path = regressions::folder(op).join(format!("{id}.toml"));
                        contract.root().join(&path).is_file().then_some(Entry::Regression(path))
                    }
                }
            }
        }
    }

    fn listed(&self, name: String, entry: &Entry) -> TestEntry {
        let cannot_run = match entry {
            Entry::Test(test) => self.session.left_out(test.dtype).or_else(|| match test.kernel() {
                None => self.session.computed_by_kernel(&test.op),
                Some(_) => self.session.not_executed(test),
            }),
            Entry::Accuracy(op, dtype) => self.session.left_out(*dtype).or_else(|| self.session.computed_by_kernel(op)),
            Entry::Regressions(_) | Entry::Regression(_) | Entry::Artifact(..) => None,
        };
        TestEntry { name, cannot_run, regression: matches!(entry, Entry::Regression(_) | Entry::Regressions(_)) }
    }

    /// Saved failures, those of ops that are gone too: a file that no test reads would be lost without a word. What
    /// cannot be listed is a test that fails with the reason.
    fn regressions(&self) -> Vec<TestEntry> {
        let root = self.session.contract().root();
        let mut entries = Vec::new();
        let unlisted = |op: &str| self.listed(format!("{op}::regressions"), &Entry::Regressions(op.to_owned()));
        let Ok(ops) = regressions::ops(root) else {
            return self.session.contract().ops.iter().map(|op| unlisted(&op.name)).collect();
        };
        for op in ops {
            let Ok(paths) = regressions::list(root, &op) else {
                entries.push(unlisted(&op));
                continue;
            };
            for path in paths {
                let id = path.file_stem().unwrap_or_default().to_string_lossy();
                entries.push(self.listed(format!("{op}::regressions::{id}"), &Entry::Regression(path.clone())));
            }
        }
        entries
    }

    /// Tests of compiled kernels. What a kernel leaves open is a test that is ignored with the reason.
    fn kernels(&self) -> Vec<TestEntry> {
        let contract = self.session.contract();
        let mut entries = Vec::new();
        for kernel in &contract.kernels {
            for target in &kernel.targets {
                let entry = Entry::Artifact(kernel.name.clone(), target.clone());
                entries.push(self.listed(format!("artifact::{}::{target}", kernel.name), &entry));
            }
            if kernel.targets.is_empty() && kernel.source.is_some() {
                entries.push(TestEntry {
                    name: format!("artifact::{}", kernel.name),
                    cannot_run: Some("no `targets` in its [kernels.artifact_checks]".to_owned()),
                    regression: false,
                });
            }
            if kernel.op.is_some() || kernel.reference.is_none() {
                continue;
            }
            for dtype in &kernel.dtypes {
                for strategy in &contract.validation.strategies {
                    if strategy.selects().is_none() {
                        entries.push(TestEntry {
                            name: format!("kernel::{}::{dtype}::{strategy}", kernel.name),
                            cannot_run: Some("it names no `op`, so its tensors are not known".to_owned()),
                            regression: false,
                        });
                    }
                }
            }
        }
        for test in contract.kernel_tests() {
            entries.push(self.listed(test.to_string(), &Entry::Test(test)));
        }
        for kernel in &contract.kernels {
            let Some(op) = kernel.op.as_deref().and_then(|op| contract.op(op)) else { continue };
            let takes_views = contract.op_of(kernel).is_some_and(|own| own.strategies.contains(&Strategy::Layout));
            if op.strategies.contains(&Strategy::Layout) && !takes_views {
                entries.extend(kernel.dtypes.iter().map(|dtype| {
                    TestEntry {
                        name: format!("{KERNEL}::{}::{dtype}::{}", kernel.name, Strategy::Layout),
                        cannot_run: Some(
                            "no launch passes strides: inputs lie in row order where they declare no other `layouts`"
                                .to_owned(),
                        ),
                        regression: false,
                    }
                }));
            }
        }
        entries
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
                None => self.unwritten.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(note),
            }
        }
        match &failure {
            None => self.worst.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((name.to_owned(), worst)),
            Some(report) => {
                if let Some(case) = &report.case {
                    properties.push(("replay".to_owned(), case.replay.clone()));
                }
                properties.push(("check".to_owned(), report.failure.check.name().to_owned()));
            }
        }
        Outcome { failure: failure.map(|report| report.render()), properties }
    }

    fn run_entry(&self, name: &str, entry: Entry) -> Outcome {
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
        for note in finished.told {
            properties.push(("note".to_owned(), note.clone()));
            let mut told = self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            told.entry((kernel.name.clone(), note)).or_default().push(target.to_owned());
        }
        self.annotations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(finished.annotations);
        properties.extend(finished.unjudged.into_iter().map(|check| ("unjudged".to_owned(), check)));
        if let Some(why) = finished.no_ptxas {
            *self.unjudged.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).entry(why).or_default() += 1;
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
        let judgement = snapshot::judge(&baseline, budget, &self.session.environment().snapshots)?;
        let mut notes = self.notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        notes.extend(judgement.notes.iter().map(|note| format!("{name}: {note}")));
        let properties = baseline.metrics.iter().map(|metric| (metric.name.clone(), metric.value.to_string()));
        Ok(Outcome {
            failure: judgement.failure.map(|text| format!("{name} failed: {text}")),
            properties: properties.chain(judgement.notes.into_iter().map(|note| ("note".to_owned(), note))).collect(),
        })
    }
}

fn failed(name: &str, error: &Error) -> Outcome {
    Outcome { failure: Some(format!("{name} failed: {error} [{}]\n", error.code())), properties: Vec::new() }
}

/// An error in the value of `GPUEMU_CASE`, or whatever else gave it, named as such.
fn in_case(error: Error, source: &str) -> Error {
    match error {
        Error::InvalidRequest(message) => Error::InvalidRequest(format!(
            "{source}: {message}; it is a line such as `softmax::float32::boundary{{B=1,H=129}} x:row normal seed=42`, \
             as the replay line of a failure gives it"
        )),
        error => error,
    }
}

/// A spec from `GPUEMU_CASE`: the line itself, or `@` and a saved regression.
fn read_case(root: &Path, text: &str) -> Result<Spec> {
    match text.trim().strip_prefix('@') {
        Some(path) => {
            let mut spec = regressions::load(root, Path::new(path))?.spec;
            spec.file = Some(path.to_owned());
            Ok(spec)
        }
        None => text.trim().parse(),
    }
}

impl Suite for ProjectSuite {
    fn name(&self) -> &str {
        &self.session.contract().project.name
    }

    fn tests(&self) -> Vec<TestEntry> {
        let contract = self.session.contract();
        let mut tests: Vec<TestEntry> =
            contract.tests().into_iter().map(|test| self.listed(test.to_string(), &Entry::Test(test))).collect();
        tests.extend(self.regressions());
        for op in &contract.ops {
            if contract.policies.accuracy {
                for dtype in &op.dtypes {
                    let name = format!("accuracy::{}::{dtype}", op.name);
                    tests.push(self.listed(name, &Entry::Accuracy(op.name.clone(), *dtype)));
                }
            }
        }
        tests.extend(self.kernels());
        tests.sort_by(|a, b| a.name.cmp(&b.name));
        tests
    }

    fn count(&self) -> usize {
        self.tests().len()
    }

    fn resolve(&self, name: &str) -> Option<TestEntry> {
        match self.entry(name) {
            Some(entry) => Some(self.listed(name.to_owned(), &entry)),
            None if name.starts_with("kernel::") || name.starts_with("artifact::") => {
                self.kernels().into_iter().find(|kernel| kernel.name == name)
            }
            None => None,
        }
    }

    fn test_of_case(&self, spec: &str) -> Result<String> {
        let test = read_case(self.session.contract().root(), spec)?.test;
        self.session.op(&test.op)?;
        Ok(test.to_string())
    }

    fn threads(&self) -> Option<NonZeroUsize> {
        let jobs = NonZeroUsize::new(self.session.contract().ci.parallel_jobs as usize)?;
        // More threads than cores would only make the cases wait for one another.
        Some(std::thread::available_parallelism().map_or(jobs, |cores| cores.min(jobs)))
    }

    fn run(&self, name: &str) -> Outcome {
        match self.entry(name) {
            Some(entry) => self.run_entry(name, entry),
            None => failed(name, &Error::NotFound(format!("no test {name}"))),
        }
    }

    fn finish(&self, _: &Totals) -> Result<Vec<String>> {
        let worst = self.worst.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut lines = Vec::new();
        if let Some((name, share)) = worst.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
            lines.push(format!(
                "largest error of a passing test: {:.0}% of what is allowed, in {name}; figures of every case in {}",
                share * 100.0,
                self.results.display()
            ));
        }
        let mut notes = self.notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        notes.sort();
        lines.append(&mut notes);
        for ((kernel, note), targets) in self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter_mut() {
            targets.sort();
            lines.push(format!("artifact::{kernel}::{}: {note}", targets.join(", ")));
        }
        for (why, count) in self.unjudged.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            let artifacts = if *count == 1 { "artifact" } else { "artifacts" };
            lines.push(format!(
                "registers, spills and accepted figures of ptxas were not judged for {count} {artifacts}: {why}"
            ));
        }
        lines.extend(self.annotations.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).iter().cloned());
        let unwritten = self.unwritten.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(first) = unwritten.first() {
            let more = match unwritten.len() {
                1 => String::new(),
                count => format!(" (and so for {} more tests)", count - 1),
            };
            lines.push(format!("warning: {first}{more}"));
        }
        Ok(lines)
    }
}

/// The main of a test binary.
pub fn run_main(origin: Origin) -> ExitCode {
    memory::keep_freed();
    let opened =
        Environment::read().and_then(|environment| ProjectSuite::open(origin).map(|suite| (suite, environment)));
    match opened {
        Ok((suite, environment)) => runner::main_with(suite, std::env::args_os(), &environment),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(101)
        }
    }
}

/// One test inside of a `#[test]` function; panics with the report when it fails.
pub fn run_test(name: &str, origin: Origin) {
    static SUITE: OnceLock<Result<ProjectSuite>> = OnceLock::new();
    match SUITE.get_or_init(|| ProjectSuite::open(origin)) {
        Ok(suite) => runner::run_named(suite, name),
        Err(error) => panic!("{error}"),
    }
}
