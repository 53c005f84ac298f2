//! Sessions over contracts in folders of their own: gpuemu as a library, with closures under test.

use gpuemu_contract::{DType, TestName};
use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::pipeline::trial::{self, Finished};
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::subject::function::Function;
use gpuemu_harness::suite::Suite;
use gpuemu_harness::{Call, Error, SubjectError, Tensor};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder that holds a `gpuemu.toml` and whatever else a test writes into it.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder with this contract.
    pub fn new(contract: &str) -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        place.write("gpuemu.toml", contract);
        place
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes or replaces a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A session, or why there is none. Of this process's environment it takes the interpreter alone.
    pub fn open(&self) -> Result<Session, Error> {
        self.open_with(|_| ())
    }

    /// As [`Place::open`], in another environment.
    pub fn open_with(&self, change: impl FnOnce(&mut Environment)) -> Result<Session, Error> {
        let python = std::env::var_os("GPUEMU_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from);
        let mut environment = Environment { python, ..Environment::default() };
        change(&mut environment);
        Session::open(self.path(), environment)
    }

    /// A session.
    pub fn session(&self) -> Session {
        self.open().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Paths of its regression files, relative to it.
    pub fn regressions(&self, op: &str) -> Vec<PathBuf> {
        gpuemu_harness::report::regressions::list(self.path(), op).unwrap()
    }
}

/// A session in which this closure computes the op.
pub fn with(
    session: Session,
    op: &str,
    run: impl Fn(&mut Call<'_>) -> Result<(), SubjectError> + Send + Sync + 'static,
) -> Session {
    session.bind(op, Arc::new(Function::from_closure(&DType::ALL, run)));
    session
}

/// Runs a test and returns everything there is to know.
pub fn finished(session: &Session, test: &str) -> Finished {
    trial::run(session, &TestName::parse(test).expect(test), None)
}

/// Runs a test; its report, empty when it passed.
pub fn report(session: &Session, test: &str) -> String {
    finished(session, test).failure.map(|report| report.render()).unwrap_or_default()
}

/// Runs a test of a whole suite, as a test binary does; its report, empty when it passed.
pub fn suite_report(suite: &ProjectSuite, test: &str) -> String {
    suite.run(test).failure.unwrap_or_default()
}

/// The values of input `name`, row-major.
pub fn values(call: &Call<'_>, name: &str) -> Vec<f64> {
    let (_, tensor) = call.inputs.iter().find(|(input, _)| input == name).expect(name);
    let array = tensor.to_array();
    (0..array.len()).map(|at| array.at(at)).collect()
}

/// Answers the first output with these values, rounded to the dtype of the test, in the shape of the first input.
pub fn answer(call: &mut Call<'_>, values: Vec<f64>) {
    let shape = call.inputs[0].1.shape().to_vec();
    answer_in(call, &shape, values);
}

/// As [`answer`], in another shape.
pub fn answer_in(call: &mut Call<'_>, shape: &[usize], values: Vec<f64>) {
    let array = gpuemu_harness::Array::float(call.dtype, shape, values);
    call.outputs[0].1 = Some(Tensor::from_array(&array, call.dtype));
}

/// Asserts that a text has all of these parts.
#[track_caller]
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}
