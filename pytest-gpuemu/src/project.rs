//! A contract and the tests it declares.

use crate::case::{Case, Planned};
use crate::errors::{guarded, raised};
use crate::front::{Caller, Interrupt, PythonFront};
use crate::mirror::PythonMirror;
use crate::subject::PythonSubject;
use crate::verdict;
use gpuemu_contract::{Contract, Op, Reference};
use gpuemu_harness::case::spec::Spec;
use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::pipeline::trial;
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::suite::{Outcome, Suite, Totals};
use gpuemu_harness::{Error, Result, TestName};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The tests of one `gpuemu.toml`. Everything that takes long is done without the interpreter lock.
#[pyclass(frozen, module = "pytest_gpuemu._core")]
pub struct Project {
    pub(crate) suite: Arc<ProjectSuite>,
    pub(crate) interrupt: Arc<Interrupt>,
}

/// A test as it is listed: its name, why it cannot run here, whether it is a saved failure, and its line in the file.
type Listed = (String, Option<String>, bool, usize);

/// An op, as Python needs to know it to call something.
#[pyclass(frozen, get_all, module = "pytest_gpuemu._core")]
pub struct OpInfo {
    name: String,
    line: usize,
    module: Option<String>,
    frameworks: Vec<String>,
    /// `package.module:function`, where the reference is one.
    reference: Option<String>,
    dtypes: Vec<String>,
    strategies: Vec<String>,
    inputs: Vec<String>,
    inouts: Vec<String>,
    outputs: Vec<String>,
    params: Vec<String>,
}

impl OpInfo {
    fn new(op: &Op, framework: Option<&String>) -> OpInfo {
        let mut frameworks = op.frameworks.clone();
        if frameworks.is_empty() {
            frameworks.extend(framework.cloned());
        }
        OpInfo {
            name: op.name.clone(),
            line: op.line,
            module: op.module.clone(),
            frameworks,
            reference: match &op.reference {
                Reference::Function { .. } => Some(op.reference.to_string()),
                _ => None,
            },
            dtypes: op.dtypes.iter().map(|dtype| dtype.name().to_owned()).collect(),
            strategies: op.strategies.iter().map(|strategy| strategy.name().to_owned()).collect(),
            inputs: op.schema.inputs.iter().map(|input| input.name.clone()).collect(),
            inouts: op.schema.inputs.iter().filter(|input| input.inout).map(|input| input.name.clone()).collect(),
            outputs: op.schema.outputs.iter().map(|output| output.name.clone()).collect(),
            params: op.params.iter().map(|param| param.name.clone()).collect(),
        }
    }
}

fn read(path: &Path, text: Option<&str>) -> Result<Contract> {
    let contract = match text {
        Some(text) => Contract::parse(text, path),
        None => Contract::load(path),
    };
    contract.map_err(|errors| Error::Config(errors.to_string()))
}

/// The process's environment, with `settings` over it.
fn environment(settings: &HashMap<String, String>) -> Result<Environment> {
    Environment::from_lookup(|name| match settings.get(name) {
        Some(value) => Some(OsString::from(value)),
        None => std::env::var_os(name),
    })
}

impl Project {
    /// Runs something of the suite. What ends the run rather than a test is raised again.
    fn within<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&ProjectSuite) -> Result<T> + Send) -> PyResult<T> {
        let done = guarded(py, || work(&self.suite));
        match self.interrupt.take() {
            Some(error) => Err(error),
            None => done,
        }
    }

    fn line_of(&self, test: &str) -> usize {
        let contract = self.suite.session().contract();
        let mut parts = test.split("::");
        let line = match (parts.next(), parts.next()) {
            (Some("kernel" | "artifact"), Some(kernel)) => contract.kernel(kernel).map(|kernel| kernel.line),
            (Some("accuracy"), Some(op)) => contract.op(op).map(|op| op.line),
            (Some(op), _) => contract.op(op).map(|op| op.line),
            (None, _) => None,
        };
        line.unwrap_or(1)
    }
}

#[pymethods]
impl Project {
    /// The contract in the file `path`, or in `text`, which would stand there. `settings` are environment variables that
    /// take the place of the process's own. `place` is how a command line of pytest names the file; without one the
    /// caller is `gpuemu.check`. `keep`: failing cases are saved beside the contract.
    #[new]
    #[pyo3(signature = (path, settings, *, place=None, text=None, keep=true, progress=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        settings: HashMap<String, String>,
        place: Option<String>,
        text: Option<String>,
        keep: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Project> {
        let interrupt = Arc::new(Interrupt::default());
        let caller = place.map_or(Caller::Check, |place| Caller::Pytest { place });
        let front = Arc::new(PythonFront::new(caller, Arc::clone(&interrupt), progress));
        let suite = guarded(py, || {
            let environment = environment(&settings)?;
            let contract = read(&std::path::absolute(&path).unwrap_or(path), text.as_deref())?;
            let session = Session::of_front(contract, environment, front)?.keep_regressions(keep);
            ProjectSuite::new(session)
        })?;
        Ok(Project { suite: Arc::new(suite), interrupt })
    }

    /// The nearest `gpuemu.toml`, from a folder upwards.
    #[staticmethod]
    fn find(py: Python<'_>, start: PathBuf) -> PyResult<PathBuf> {
        Contract::find(&start).map_err(|errors| raised(py, &Error::Config(errors.to_string())))
    }

    /// Says what is wrong with settings.
    #[staticmethod]
    fn check_settings(py: Python<'_>, settings: HashMap<String, String>) -> PyResult<()> {
        guarded(py, || environment(&settings).map(|_| ()))
    }

    #[getter]
    fn name(&self) -> String {
        self.suite.name().to_owned()
    }

    #[getter]
    fn root(&self) -> PathBuf {
        self.suite.session().contract().root().to_owned()
    }

    #[getter]
    fn ops(&self) -> Vec<OpInfo> {
        let contract = self.suite.session().contract();
        contract.ops.iter().map(|op| OpInfo::new(op, contract.project.framework.as_ref())).collect()
    }

    /// Every test, sorted by name.
    fn tests(&self, py: Python<'_>) -> PyResult<Vec<Listed>> {
        let listed = guarded(py, || Ok(self.suite.tests()))?;
        let entries = listed.into_iter().map(|entry| {
            let line = self.line_of(&entry.name);
            (entry.name, entry.cannot_run, entry.regression, line)
        });
        Ok(entries.collect())
    }

    /// Why a test cannot run on this host, as things stand now.
    fn cannot_run(&self, py: Python<'_>, test: &str) -> PyResult<Option<String>> {
        guarded(py, || match self.suite.resolve(test) {
            Some(entry) => Ok(entry.cannot_run),
            None => Err(Error::NotFound(format!("no test {test}"))),
        })
    }

    /// Whether a test that cannot run here fails.
    #[getter]
    fn requires(&self) -> bool {
        self.suite.session().environment().require
    }

    /// What executes kernels: `emulate`, `cuda` or `auto`.
    #[getter]
    fn device(&self) -> &'static str {
        self.suite.session().environment().device.name()
    }

    /// The name of the test that a case belongs to.
    fn test_of_case(&self, py: Python<'_>, spec: &str) -> PyResult<String> {
        guarded(py, || self.suite.test_of_case(spec))
    }

    /// Puts a `pytest_gpuemu.calling.Subject` in place of whatever computes the op.
    fn bind(&self, op: &str, subject: &Bound<'_, PyAny>) -> PyResult<()> {
        let subject = PythonSubject::new(subject, Arc::clone(&self.interrupt))?;
        self.suite.session().bind(op, Arc::new(subject));
        Ok(())
    }

    /// Puts a `pytest_gpuemu.calling.Reference` in place of the op's reference.
    fn bind_reference(&self, op: &str, reference: &Bound<'_, PyAny>) -> PyResult<()> {
        let mirror = PythonMirror::new(reference, Arc::clone(&self.interrupt))?;
        self.suite.session().bind_mirror(op, Arc::new(mirror));
        Ok(())
    }

    /// Runs a test: its report if it failed, and facts for machines.
    fn run(&self, py: Python<'_>, test: &str) -> PyResult<(Option<String>, Vec<(String, String)>)> {
        let Outcome { failure, properties } = self.within(py, |suite| Ok(suite.run(test)))?;
        Ok((failure, properties))
    }

    /// Runs the cases of a test, or the one of `spec`, and tells what became of them.
    #[pyo3(signature = (test, spec=None))]
    fn validate<'py>(&self, py: Python<'py>, test: &str, spec: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let finished = self.within(py, |suite| {
            let session = suite.session();
            let known = session.contract().test(test).or_else(|| TestName::parse(test));
            let test = known.ok_or_else(|| Error::InvalidRequest(format!("`{test}` is no name of a test")))?;
            let only: Option<Spec> = spec.map(str::parse).transpose()?;
            Ok(trial::run(session, &test, only.as_ref()))
        })?;
        verdict::dict(py, test, finished)
    }

    /// How many cases a test has.
    fn case_count(&self, py: Python<'_>, test: &str) -> PyResult<u32> {
        guarded(py, || Ok(Planned::of(self.suite.session(), test)?.count()))
    }

    /// The spec of one case of a test.
    fn spec(&self, py: Python<'_>, test: &str, index: u32) -> PyResult<String> {
        self.within(py, |suite| Planned::of(suite.session(), test)?.spec(index))
    }

    /// One case by its spec, with inputs to hand to a function and outputs to be judged.
    fn case(&self, py: Python<'_>, spec: &str) -> PyResult<Case> {
        let suite = Arc::clone(&self.suite);
        let built = self.within(py, |_| Case::build(suite, spec))?;
        Case::new(py, built, Arc::clone(&self.interrupt))
    }

    /// Ends the run: writes its reports, and says what a person should read below the summary.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        guarded(py, || self.suite.finish(&Totals::default()))
    }
}

/// Adds what lives here to the extension module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Project>()?;
    module.add_class::<OpInfo>()
}
