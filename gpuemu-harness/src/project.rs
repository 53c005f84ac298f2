//! The suite of a package: the tests that its `gpuemu.toml` declares, saved regressions, accuracy baselines.

mod list;
mod run;
mod summary;

use self::list::Entry;
use self::run::failed;
use self::summary::Summary;
use crate::case::spec::Spec;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::memory;
use crate::origin::Origin;
use crate::pipeline::session::Session;
use crate::report::{regressions, results};
use crate::runner;
use crate::suite::{Outcome, Suite, TestEntry, Totals};
use gpuemu_contract::Contract;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock};

/// The suite over one contract.
pub struct ProjectSuite {
    session: Session,
    results: PathBuf,
    case: Option<Spec>,
    summary: Mutex<Summary>,
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
        Ok(ProjectSuite { session, results, case, summary: Mutex::default() })
    }

    fn summary(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The session it runs in.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Why a test of an op is none of this suite's, where another stands for it: only compiled kernels compute the op. It
    /// is listed as ignored.
    pub fn tested_elsewhere(&self, name: &str) -> Option<String> {
        let op = match self.entry(name)? {
            Entry::Test(test) => test.op,
            Entry::Accuracy(op, _) => op,
            _ => return None,
        };
        self.session.computed_by_kernel(&op)
    }

    fn open(origin: Origin) -> Result<ProjectSuite> {
        let environment = Environment::read()?;
        let path = environment.config.clone().unwrap_or_else(|| PathBuf::from(origin.contract));
        let contract = Contract::load(&path).map_err(|errors| Error::Config(errors.to_string()))?;
        ProjectSuite::new(Session::new(contract, environment)?)
    }
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
        self.list()
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
        Ok(self.summary().lines(&self.results))
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
        Ok(suite) => match suite.tested_elsewhere(name) {
            // A `#[test]` cannot say that it is ignored once it runs.
            Some(reason) => runner::leave_out(name, &reason),
            None => runner::run_named(suite, name),
        },
        Err(error) => panic!("{error}"),
    }
}
