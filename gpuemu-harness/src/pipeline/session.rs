//! A session: the contract, the environment, and what is made once and shared by the tests of a run.

use crate::calibrate::Envelopes;
use crate::case::{Generate, Request, spec::Spec};
use crate::environment::{Device, Environment, Profile};
use crate::error::{Error, Result};
use crate::front::{Cargo, Front};
use crate::mirror::worker::Workers;
use crate::mirror::{self, Mirror};
use crate::process;
use crate::python::Python;
use crate::subject::Subject;
use crate::subject::function::Function;
use crate::subject::kernel::{KernelSubject, Watch};
use crate::subject::script::ScriptSubject;
use crate::tensor::Array;
use gpuemu_contract::{Contract, DType, Op, Strategy, TestName};
use gpuemu_ptx::emulate::Cancel;
use gpuemu_ptx::vendor::{self, Toolbox};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Made once, by whichever thread asks first; the others wait for it.
type Slot<T> = Arc<OnceLock<Result<Arc<T>>>>;

/// Everything the tests of one run share.
pub struct Session {
    contract: Contract,
    /// The ops of kernels, as each computes its own.
    kernel_ops: Vec<Op>,
    /// The contract as it is in the file.
    declared: Contract,
    environment: Environment,
    front: Arc<dyn Front>,
    envelopes: Envelopes,
    workers: Arc<Workers>,
    mirrors: Mutex<HashMap<String, Slot<dyn Mirror>>>,
    subjects: Mutex<HashMap<String, Slot<dyn Subject>>>,
    /// Kernels by name, or why one is not executed here.
    kernels: Mutex<HashMap<String, Slot<std::result::Result<Arc<KernelSubject>, String>>>>,
    toolbox: Toolbox,
    /// Committed PTX that this process has compiled again.
    updated: Mutex<HashMap<PathBuf, Arc<OnceLock<Result<()>>>>>,
    started: Instant,
    keeps_regressions: bool,
}

/// Cases the quick profile runs of a test, at most.
const QUICK_CASES: u32 = 10;
/// How many times the cases of a test the thorough profile runs, time allowing.
const THOROUGH_FACTOR: u32 = 20;

impl Session {
    /// A session over a contract that was already read. `GPUEMU_SEED`, `_CASES` and `_STRATEGIES` override it.
    pub fn new(contract: Contract, environment: Environment) -> Result<Session> {
        Session::of_front(contract, environment, Arc::new(Cargo))
    }

    /// As [`Session::new`], for a run that another tool than cargo has started.
    pub fn of_front(mut contract: Contract, environment: Environment, front: Arc<dyn Front>) -> Result<Session> {
        let declared = contract.clone();
        if let Some(seed) = environment.seed {
            contract.validation.seed = seed;
        }
        let selected: Vec<DType> =
            environment.strategies.iter().flatten().filter_map(|strategy| strategy.selects()).collect();
        if !selected.is_empty() {
            contract.kernels.iter_mut().for_each(|kernel| kernel.dtypes.retain(|dtype| selected.contains(dtype)));
        }
        for op in &mut contract.ops {
            if let Some(cases) = environment.cases {
                op.cases = cases.get();
            }
            if let Some(strategies) = &environment.strategies {
                if !selected.is_empty() {
                    op.dtypes.retain(|dtype| selected.contains(dtype));
                }
                op.strategies = strategies.iter().copied().filter(|strategy| strategy.selects().is_none()).collect();
                if op.strategies.is_empty() {
                    op.strategies = vec![Strategy::Default];
                }
            }
        }
        let kernel_ops = contract.kernels.iter().filter_map(|kernel| contract.op_of(kernel)).collect();
        let envelopes = Envelopes::load(contract.root(), environment.calibrate)?;
        let python = Python::new(environment.python.as_deref());
        let toolbox = Toolbox::new(tools(&environment, &front.folder(contract.root())));
        let workers = Arc::new(Workers::new(contract.root(), python, process::TIMEOUT));
        Ok(Session {
            contract,
            kernel_ops,
            declared,
            environment,
            front,
            envelopes,
            workers,
            mirrors: Mutex::default(),
            subjects: Mutex::default(),
            kernels: Mutex::default(),
            toolbox,
            updated: Mutex::default(),
            started: Instant::now(),
            keeps_regressions: true,
        })
    }

    /// Whether failing cases are saved as regressions beside the contract; they are, unless this says otherwise.
    #[must_use]
    pub fn keep_regressions(mut self, keep: bool) -> Session {
        self.keeps_regressions = keep;
        self
    }

    /// Whether failing cases are saved as regressions.
    pub fn keeps_regressions(&self) -> bool {
        self.keeps_regressions
    }

    /// Reads the contract that `GPUEMU_CONFIG` names, or the nearest one from `start` upwards.
    pub fn open(start: &Path, environment: Environment) -> Result<Session> {
        let path = match &environment.config {
            Some(path) => path.clone(),
            None => Contract::find(start).map_err(|error| Error::Config(error.to_string()))?,
        };
        let contract = Contract::load(&path).map_err(|errors| Error::Config(errors.to_string()))?;
        Session::new(contract, environment)
    }

    /// The contract, with the environment's overrides applied.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// The contract as it is in its file: baselines are of its cases, whatever the environment asks for.
    pub fn declared(&self) -> &Contract {
        &self.declared
    }

    /// The environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The front that this run belongs to.
    pub fn front(&self) -> &dyn Front {
        &*self.front
    }

    /// Calibrated envelopes.
    pub fn envelopes(&self) -> &Envelopes {
        &self.envelopes
    }

    /// What fills inputs that have a generator of their own.
    pub fn generator(&self) -> &dyn Generate {
        self
    }

    /// The command that runs one case in its test.
    pub fn replay(&self, spec: &Spec) -> String {
        self.front.replay(spec, self.declared.test(&spec.test.to_string()).is_some())
    }

    /// The command that runs one test alone.
    pub fn rerun(&self, test: &str) -> String {
        self.front.rerun(test)
    }

    /// NVIDIA's tools, where they are here.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Compiles a file once in this process, however many kernels and tests share it.
    pub fn update_once(&self, file: PathBuf, compile: impl FnOnce() -> Result<()>) -> Result<()> {
        let slot = {
            let mut updated = self.updated.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            updated.entry(file).or_default().clone()
        };
        slot.get_or_init(compile).clone()
    }

    /// The op of a test.
    pub fn op(&self, name: &str) -> Result<&Op> {
        if let Some(op) = self.kernel_ops.iter().find(|op| op.tested_as() == name) {
            return Ok(op);
        }
        self.contract.op(name).ok_or_else(|| {
            let names = self.contract.ops.iter().map(|op| op.name.as_str());
            let hint = match gpuemu_contract::nearest(name, names) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            Error::OpNotFound(format!("no op `{name}` in {}{hint}", self.contract.path.display()))
        })
    }

    /// How many cases a test runs at most, and until when it may start another beyond the declared number.
    pub fn effort(&self, op: &Op) -> (u32, Option<Instant>) {
        match self.environment.profile {
            None => (op.cases, None),
            Some(Profile::Quick) => (op.cases.min(QUICK_CASES), None),
            Some(Profile::Thorough) => {
                let until = self.started + Duration::from_secs(self.contract.ci.thorough_timeout);
                (op.cases.saturating_mul(THOROUGH_FACTOR), Some(until))
            }
        }
    }

    /// Whether a case runs in other orders of blocks and warps too, where its subject has any: one in eight, of the quick
    /// profile the first alone, of the thorough one every second.
    pub fn reorders(&self, index: u32) -> bool {
        match self.environment.profile {
            None => index.is_multiple_of(8),
            Some(Profile::Quick) => index == 0,
            Some(Profile::Thorough) => index.is_multiple_of(2),
        }
    }

    /// Whether the profile leaves tests of this dtype out, and why.
    pub fn left_out(&self, dtype: DType) -> Option<String> {
        let quick = &self.contract.ci.quick_dtypes;
        if self.environment.profile != Some(Profile::Quick) || quick.contains(&dtype) {
            return None;
        }
        let names: Vec<&str> = quick.iter().map(|dtype| dtype.name()).collect();
        Some(format!("the quick profile runs {} only", names.join(", ")))
    }

    /// The op's mirror; made on first use.
    pub fn mirror(&self, op: &Op) -> Result<Arc<dyn Mirror>> {
        let slot = slot(&self.mirrors, &op.name);
        slot.get_or_init(|| mirror::open(op, &self.workers).map(Arc::from)).clone()
    }

    /// The op's subject: its bound functions, else its `op_script`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when nothing computes the op: a test without a subject never passes.
    pub fn subject(&self, op: &Op) -> Result<Arc<dyn Subject>> {
        let slot = slot(&self.subjects, &op.tested_as());
        slot.get_or_init(|| self.find_subject(op)).clone()
    }

    fn find_subject(&self, op: &Op) -> Result<Arc<dyn Subject>> {
        if let Some(name) = &op.kernel {
            return match &*self.kernel(name, op)? {
                Ok(kernel) => Ok(kernel.clone()),
                Err(why) => Err(Error::Config(format!("kernel `{name}` is not executed here: {why}"))),
            };
        }
        if let Some(function) = Function::bound(&op.name)? {
            return Ok(Arc::new(function));
        }
        if let Some(script) = &op.op_script {
            return Ok(Arc::new(ScriptSubject::of(op, script, &self.workers)));
        }
        Err(Error::Config(format!(
            "nothing computes op `{}` ({}:{}): {}",
            op.name,
            self.contract.path.display(),
            op.line,
            self.front.way_to_bind(&op.name)
        )))
    }

    /// A kernel, loaded once; inside, why it is not executed here.
    fn kernel(&self, name: &str, op: &Op) -> Result<Arc<std::result::Result<Arc<KernelSubject>, String>>> {
        let slot = slot(&self.kernels, name);
        let open = || {
            let kernel = self.contract.kernel(name).ok_or_else(|| Error::NotFound(format!("no kernel {name}")))?;
            let target = kernel.targets.first().map_or("", String::as_str);
            let update = format!("GPUEMU_UPDATE=ptx {}", self.rerun(&format!("artifact::{name}::{target}")));
            let opened = KernelSubject::open(kernel, op, self.contract.root(), &update, self.watch())?;
            Ok(Arc::new(opened.map(Arc::new)))
        };
        slot.get_or_init(open).clone()
    }

    /// What the environment asks of launches, and the front's user while they run.
    fn watch(&self) -> Watch {
        let front = Arc::clone(&self.front);
        Watch {
            sanitizers: self.environment.sanitizers,
            budget: self.environment.budget,
            counters: self.environment.counters,
            cancel: Some(Cancel::when(move || front.go_on().is_err())),
        }
    }

    /// Why a kernel's test cannot run on this host, if so. What is wrong with its PTX is for the test to say.
    pub fn not_executed(&self, test: &TestName) -> Option<String> {
        if self.environment.device == Device::Cuda {
            let why = "GPUEMU_DEVICE=cuda: compiled kernels of a contract are executed by the emulator alone";
            return Some(why.to_owned());
        }
        let op = self.op(&test.op).ok()?;
        match self.kernel(test.kernel()?, op).ok()?.as_ref() {
            Ok(_) => None,
            Err(why) => Some(why.clone()),
        }
    }

    /// Why an op cannot be tested by itself here: nothing is bound to it but a compiled kernel.
    pub fn computed_by_kernel(&self, op: &str) -> Option<String> {
        let kernel = self.contract.kernels.iter().find(|kernel| kernel.op.as_deref() == Some(op))?;
        let bound = self.subjects.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).contains_key(op);
        let scripted = self.contract.op(op).is_some_and(|op| op.op_script.is_some());
        let nothing = !bound && !scripted && matches!(Function::bound(op), Ok(None));
        nothing.then(|| format!("only compiled kernels compute it: kernel::{} tests that", kernel.name))
    }

    /// Puts a mirror in place of the op's reference: a front whose language the reference is written in evaluates it
    /// itself.
    pub fn bind_mirror(&self, op: &str, mirror: Arc<dyn Mirror>) {
        let slot: Slot<dyn Mirror> = Arc::default();
        let _ = slot.set(Ok(mirror));
        self.mirrors.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(op.to_owned(), slot);
    }

    /// Puts a subject in place of whatever the op has: for callers that use gpuemu as a library.
    pub fn bind(&self, op: &str, subject: Arc<dyn Subject>) {
        let slot: Slot<dyn Subject> = Arc::default();
        let _ = slot.set(Ok(subject));
        self.subjects.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(op.to_owned(), slot);
    }
}

/// Where NVIDIA's tools are looked for. Their answers are kept in `folder`.
fn tools(environment: &Environment, folder: &Path) -> vendor::Settings {
    let usual = || PathBuf::from(if cfg!(windows) { "python" } else { "python3" });
    let defaults = vendor::Settings::default();
    let timeout = environment.tool_timeout.map(|seconds| Duration::from_secs(seconds.get().into()));
    vendor::Settings {
        ptxas: environment.ptxas.clone(),
        nvdisasm: environment.nvdisasm.clone(),
        cuobjdump: environment.cuobjdump.clone(),
        nvcc: environment.nvcc.clone(),
        path: environment.search_path.clone(),
        python: Some(environment.python.clone().unwrap_or_else(usual)),
        cache: Some(folder.join("tools")),
        timeout: timeout.unwrap_or(defaults.timeout),
    }
}

impl Generate for Session {
    fn generate(&self, request: &Request<'_>) -> Result<Array> {
        let Request { target, seed, dtype, shape, dims, params } = *request;
        self.workers.generate(target, seed, shape, dtype, dims, params)
    }
}

fn slot<T: ?Sized>(map: &Mutex<HashMap<String, Slot<T>>>, key: &str) -> Slot<T> {
    let mut map = map.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    map.entry(key.to_owned()).or_default().clone()
}
