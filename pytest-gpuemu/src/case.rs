//! One case in the hands of a test function: its inputs as arrays, and a judge for what the function answers.

use crate::arrays::{self, Memory};
use crate::errors::guarded;
use crate::front::Interrupt;
use crate::subject::{parameters, place, read};
use crate::verdict;
use gpuemu_contract::{Op, Relations};
use gpuemu_harness::case::spec::Spec;
use gpuemu_harness::case::strategy::Planner;
use gpuemu_harness::case::{self, build};
use gpuemu_harness::pipeline::check;
use gpuemu_harness::pipeline::oracle::Oracle;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::validate::honesty::Poison;
use gpuemu_harness::{Call, DType, Error, Layout, Result, Subject, SubjectError, Tensor, TestName};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// The cases of a test, planned.
pub struct Planned<'s> {
    session: &'s Session,
    op: &'s Op,
    test: TestName,
}

impl<'s> Planned<'s> {
    /// Those of a test of the contract.
    pub fn of(session: &'s Session, test: &str) -> Result<Planned<'s>> {
        let known = session.contract().test(test);
        let test = known.ok_or_else(|| Error::NotFound(format!("no test {test}")))?;
        Ok(Planned { session, op: session.op(&test.op)?, test })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.session.effort(self.op).0.min(self.op.cases)
    }

    /// The spec of one.
    pub fn spec(&self, index: u32) -> Result<String> {
        let oracle = Oracle::new(self.session, self.op, self.test.dtype)?;
        let planner = Planner::new(self.op, &self.test, self.session.contract().validation.seed)?;
        let mut trouble = None;
        let mut finite = |spec: &Spec| {
            let answer = build::build(self.op, spec, oracle.generator()).and_then(|case| oracle.stays_finite(&case));
            answer.unwrap_or_else(|error| {
                trouble = Some(error);
                false
            })
        };
        let spec = planner.plan(index, &mut finite)?;
        trouble.map_or(Ok(spec.to_string()), Err)
    }
}

/// What answers a case that is judged once: a test function has already run, so nothing can be asked of it again.
struct Given {
    inputs: Vec<(String, Tensor)>,
    outputs: Vec<(String, Option<Tensor>)>,
    returned: Vec<(String, Option<Tensor>)>,
}

impl Subject for Given {
    fn run(&self, call: &mut Call<'_>) -> std::result::Result<(), SubjectError> {
        for ((_, tensor), (_, now)) in call.inputs.iter_mut().zip(&self.inputs) {
            tensor.clone_from(now);
        }
        for ((_, tensor), (_, now)) in call.outputs.iter_mut().zip(&self.outputs) {
            tensor.clone_from(now);
        }
        place(call, self.returned.clone())
    }

    fn supports(&self, _: DType) -> bool {
        true
    }

    fn describe(&self) -> String {
        "the test function".to_owned()
    }
}

/// One case, built.
pub struct Built {
    suite: Arc<ProjectSuite>,
    /// The op without what only a second run could show.
    op: Op,
    case: case::Case,
}

type Named = Vec<(String, Py<Memory>, DType)>;

/// One case: arrays to compute with, and a judge.
#[pyclass(frozen, module = "pytest_gpuemu._core")]
pub struct Case {
    built: Built,
    interrupt: Arc<Interrupt>,
    inputs: Named,
    outputs: Vec<(String, Option<Py<Memory>>, DType)>,
}

/// Elements behind an output that must keep their poison.
const GUARD: usize = 64;

impl Case {
    /// Builds the case of a spec.
    pub fn build(suite: Arc<ProjectSuite>, spec: &str) -> Result<Built> {
        let spec: Spec = spec.parse()?;
        let session = suite.session();
        let mut op = session.op(&spec.test.op)?.clone();
        let case = build::build(&op, &spec, Some(session.generator()))?;
        op.relations = Relations {
            batch: None,
            permutes: None,
            deterministic: false,
            inputs_untouched: op.relations.inputs_untouched,
        };
        Ok(Built { suite, op, case })
    }

    /// A case whose tensors Python may have.
    pub fn new(py: Python<'_>, built: Built, interrupt: Arc<Interrupt>) -> PyResult<Case> {
        let mut inputs = Vec::new();
        for (name, tensor) in &built.case.inputs {
            inputs.push((name.clone(), Py::new(py, Memory::new(tensor.clone()))?, tensor.dtype()));
        }
        let mut outputs = Vec::new();
        for (name, dtype, shape) in &built.case.outputs {
            let memory = match shape {
                None => None,
                Some(shape) => {
                    let layout = Layout::contiguous(shape);
                    let capacity = layout.span() + GUARD;
                    let mut tensor = Tensor::with_capacity(*dtype, layout, capacity);
                    Poison::First.fill(&mut tensor);
                    Some(Py::new(py, Memory::new(tensor))?)
                }
            };
            outputs.push((name.clone(), memory, *dtype));
        }
        Ok(Case { built, interrupt, inputs, outputs })
    }
}

#[pymethods]
impl Case {
    /// The line that names it.
    #[getter]
    fn spec(&self) -> String {
        self.built.case.spec.to_string()
    }

    /// The dtype of the test.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.built.case.spec.test.dtype.name()
    }

    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, size) in &self.built.case.spec.dims {
            all.set_item(name, size)?;
        }
        Ok(all)
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parameters(py, &self.built.case.params)
    }

    /// The inputs: arrays by name. `bits`: bfloat16 and fp8 as unsigned integers.
    #[pyo3(signature = (bits=false))]
    fn inputs<'py>(&self, py: Python<'py>, bits: bool) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, memory, dtype) in &self.inputs {
            all.set_item(name, arrays::array(py, memory, *dtype, bits)?)?;
        }
        Ok(all)
    }

    /// The outputs to write into, full of poison; `None` where no shape is declared.
    #[pyo3(signature = (bits=false))]
    fn outputs<'py>(&self, py: Python<'py>, bits: bool) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, memory, dtype) in &self.outputs {
            let array = memory.as_ref().map(|memory| arrays::array(py, memory, *dtype, bits)).transpose()?;
            all.set_item(name, array)?;
        }
        Ok(all)
    }

    /// The dtype of each tensor by name.
    #[getter]
    fn dtypes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, _, dtype) in &self.inputs {
            all.set_item(name, dtype.name())?;
        }
        for (name, _, dtype) in &self.outputs {
            all.set_item(name, dtype.name())?;
        }
        Ok(all)
    }

    /// The right answers by name, `inout` tensors included: float64, or the output's own dtype where that is none of
    /// floats.
    fn expected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Built { suite, op, case } = &self.built;
        let answers = guarded(py, || {
            let oracle = Oracle::new(suite.session(), op, case.spec.test.dtype)?;
            Ok(oracle.answer(case)?.expected)
        });
        if let Some(error) = self.interrupt.take() {
            return Err(error);
        }
        let all = PyDict::new(py);
        for (declared, answer) in op.schema.results().zip(answers?) {
            let dtype = if answer.floats().is_some() { DType::Float64 } else { answer.dtype };
            let memory = Py::new(py, Memory::new(Tensor::from_array(&answer, dtype)))?;
            all.set_item(&declared.name, arrays::array(py, &memory, dtype, false)?)?;
        }
        Ok(all)
    }

    /// Judges `(name, dtype, array)` answers, and what was written in place: the report of a failure, if it is one.
    fn judge(&self, py: Python<'_>, answers: &Bound<'_, PyList>) -> PyResult<Option<String>> {
        let returned = read(answers)?;
        let now = |memory: &Py<Memory>| Memory::take(memory.clone_ref(py), py);
        let given = Given {
            inputs: self.inputs.iter().map(|(name, memory, _)| (name.clone(), now(memory))).collect(),
            outputs: self.outputs.iter().map(|(name, memory, _)| (name.clone(), memory.as_ref().map(now))).collect(),
            returned,
        };
        let Built { suite, op, case } = &self.built;
        let checked = guarded(py, || {
            let oracle = Oracle::new(suite.session(), op, case.spec.test.dtype)?;
            check::check(&oracle, &given, case, None)
        });
        match self.interrupt.take() {
            Some(error) => Err(error),
            None => Ok(verdict::report_of(checked?, &case.spec.to_string(), &given.describe())),
        }
    }
}

/// Adds what lives here to the extension module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Case>()
}
