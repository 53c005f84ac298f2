//! The whole file: project, validation defaults, operators, kernels, policies.

use crate::{DType, Expression, Invariants, Op, ParamValue, Strategy, TensorDecl, TestName, Tolerance};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A `gpuemu.toml`, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// The file it was read from, absolute.
    pub path: PathBuf,
    /// `[project]`.
    pub project: Project,
    /// `[validation]`.
    pub validation: Validation,
    /// `[[ops]]`, in the order of the file.
    pub ops: Vec<Op>,
    /// `[[kernels]]`, in the order of the file.
    pub kernels: Vec<Kernel>,
    /// `[policies]`.
    pub policies: Policies,
    /// `[ci]`.
    pub ci: Ci,
}

impl Contract {
    /// The folder of the file: relative paths in it start there.
    pub fn root(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    /// The op of that name.
    pub fn op(&self, name: &str) -> Option<&Op> {
        self.ops.iter().find(|op| op.name == name)
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The op as a kernel computes it: its tensors, cases and reference, with the dtypes, tolerances and invariants of the
    /// kernel. No launch passes strides, so an input that names no layouts takes rows alone; where all do, `layout` is no
    /// strategy. `None` for a kernel that names no op.
    pub fn op_of(&self, kernel: &Kernel) -> Option<Op> {
        let mut op = self.op(kernel.op.as_deref()?)?.clone();
        op.kernel = Some(kernel.name.clone());
        op.dtypes = kernel.dtypes.clone();
        op.tolerances = kernel.tolerances.clone();
        op.invariants = kernel.invariants.clone();
        for input in &mut op.schema.inputs {
            input.layouts.get_or_insert_with(|| vec!["row".to_owned()]);
        }
        let rows = |input: &TensorDecl| input.layouts.as_ref().is_some_and(|layouts| layouts == &["row"]);
        if op.schema.inputs.iter().all(rows) {
            op.strategies.retain(|strategy| *strategy != Strategy::Layout);
        }
        Some(op)
    }

    /// The test of that name, if it is one of [`Contract::tests`] or of [`Contract::kernel_tests`]; the others are not
    /// listed.
    pub fn test(&self, name: &str) -> Option<TestName> {
        let test = TestName::parse(name)?;
        let own;
        let op = match test.kernel() {
            None => self.op(&test.op)?,
            Some(kernel) => {
                own = self.op_of(self.kernel(kernel)?)?;
                &own
            }
        };
        let known = op.dtypes.contains(&test.dtype) && op.strategies.contains(&test.strategy);
        known.then_some(test)
    }

    /// Every test of a kernel with an op, in the order of the file.
    pub fn kernel_tests(&self) -> Vec<TestName> {
        let mut tests = Vec::new();
        for kernel in &self.kernels {
            let Some(op) = self.op_of(kernel) else { continue };
            for &dtype in &op.dtypes {
                for &strategy in &op.strategies {
                    tests.push(TestName { op: op.tested_as(), dtype, strategy });
                }
            }
        }
        tests
    }

    /// Every test of an op, sorted by name.
    pub fn tests(&self) -> Vec<TestName> {
        let mut tests = Vec::new();
        for op in &self.ops {
            for &dtype in &op.dtypes {
                for &strategy in &op.strategies {
                    tests.push(TestName { op: op.name.clone(), dtype, strategy });
                }
            }
        }
        tests.sort_by_cached_key(TestName::to_string);
        tests.dedup();
        tests
    }
}

/// `[project]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Used in reports and baselines; "unnamed" by default.
    pub name: String,
    /// The project's own version.
    pub version: Option<String>,
    /// pytorch, jax or tensorflow.
    pub framework: Option<String>,
}

/// `[validation]`: defaults for every op.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Dtypes of the ops that name none.
    pub dtypes: Vec<DType>,
    /// Parent seed of every case; 42 by default, so that every run, machine and front has the same cases.
    pub seed: u64,
    /// Cases per op, dtype and strategy; 30 by default.
    pub cases: u32,
    /// Strategies of the ops that name none: boundary, adversarial and layout by default.
    pub strategies: Vec<Strategy>,
    /// NaN outputs must stand exactly where the mirror has them.
    pub check_nan: bool,
    /// Infinite outputs must stand exactly where the mirror has them.
    pub check_inf: bool,
    /// Explicit tolerances for ops that give none.
    pub tolerances: BTreeMap<DType, Tolerance>,
}

/// A `[[kernels]]` entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its name: an identifier, unique in the file.
    pub name: String,
    /// One-based line of its header.
    pub line: usize,
    /// The op whose schema and reference it has.
    pub op: Option<String>,
    /// Its own reference (the seed's form).
    pub reference: Option<crate::Reference>,
    /// The `.cu` or `.ptx` file, absolute.
    pub source: Option<PathBuf>,
    /// The entry point; the only one of the file by default.
    pub entry: Option<String>,
    /// Dtypes it handles.
    pub dtypes: Vec<DType>,
    /// How it is launched.
    pub launch: Option<Launch>,
    /// What is watched while it is executed.
    pub sanitizers: Sanitizers,
    /// The launch that is measured.
    pub measured: Option<Measured>,
    /// Targets whose artifacts are tested.
    pub targets: Vec<String>,
    /// `[kernels.artifact_checks]`.
    pub artifact_checks: ArtifactChecks,
    /// Options for nvcc beside those that gpuemu gives itself.
    pub compile_options: Vec<String>,
    /// Relative change that a metric's snapshot accepts, by metric; the others have `[policies] warn_threshold`.
    pub budget: BTreeMap<String, f64>,
    /// Rules of the lint that it may break, each with the reason.
    pub allow: BTreeMap<String, String>,
    /// Explicit tolerances.
    pub tolerances: BTreeMap<DType, Tolerance>,
    /// What must hold of every output.
    pub invariants: Invariants,
}

/// `[kernels.launch]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Blocks along x, y, z (one to three entries).
    pub grid: Vec<Expression>,
    /// Threads along x, y, z (one to three entries).
    pub block: Vec<Expression>,
    /// Bytes of dynamic shared memory.
    pub shared: Expression,
    /// Instructions that one block may run, those of each warp counted; 2^26 by default.
    pub budget: u64,
    /// Arguments in order.
    pub args: Vec<Argument>,
}

/// One argument of a launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A tensor's address.
    Tensor(String),
    /// An integer.
    Integer(Expression),
    /// The address of so many bytes that nothing has written and no tensor is: `workspace:4*N`.
    Workspace(Expression),
    /// A typed literal such as `f32:0.5`: PTX type, then the number or a parameter's name.
    Typed(String, String),
}

/// `[kernels.sanitizers]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sanitizers {
    /// Accesses to shared or global memory that nothing orders.
    pub races: bool,
    /// Reads of memory that nothing wrote.
    pub uninitialised_reads: bool,
    /// Writes to inputs that are not `inout`.
    pub input_writes: bool,
    /// 32-bit index arithmetic that wraps around before it becomes an address.
    pub index_wraps: bool,
}

/// `[kernels.measured]`: a launch whose figures the kernel's snapshots keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The size of every dimension of the op.
    pub dims: Vec<(String, u64)>,
    /// Values of parameters; the others have their first.
    pub params: Vec<(String, ParamValue)>,
    /// The dtype, where it is not the first of the kernel's.
    pub dtype: Option<DType>,
}

/// `[kernels.artifact_checks]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactChecks {
    /// Registers a thread may use; 64 by default.
    pub max_registers: u32,
    /// Spilled words of 4 bytes that may be stored and loaded; 0 by default.
    pub max_spills: u32,
    /// Bytes of local memory a thread may use; 0 by default.
    pub max_local_memory: u64,
    /// Substrings of instruction names that must occur.
    pub required_patterns: Vec<String>,
    /// Substrings of instruction names that must not occur.
    pub forbidden_patterns: Vec<String>,
}

impl Default for ArtifactChecks {
    fn default() -> Self {
        ArtifactChecks {
            max_registers: 64,
            max_spills: 0,
            max_local_memory: 0,
            required_patterns: Vec::new(),
            forbidden_patterns: Vec::new(),
        }
    }
}

/// `[policies]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    /// A metric or an accuracy that got worse fails.
    pub fail_on_regression: bool,
    /// Keep accuracy baselines: one test `accuracy::<op>::<dtype>` each.
    pub accuracy: bool,
    /// Relative change that is worth a warning.
    pub warn_threshold: f64,
    /// Which findings of the lint fail a test.
    pub lint: LintPolicy,
}

/// Which findings of the lint fail a test, unless the kernel allows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LintPolicy {
    /// What is wrong.
    #[default]
    Error,
    /// What costs time, or is wrong for some inputs or launches, too.
    Warning,
    /// Nothing: findings are told.
    Never,
}

impl Default for Policies {
    fn default() -> Self {
        Policies { fail_on_regression: true, accuracy: false, warn_threshold: 0.1, lint: LintPolicy::Error }
    }
}

/// `[ci]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ci {
    /// Dtypes the quick profile runs.
    pub quick_dtypes: Vec<DType>,
    /// Seconds the thorough profile may take.
    pub thorough_timeout: u64,
    /// Default number of threads.
    pub parallel_jobs: u32,
}

impl Default for Ci {
    fn default() -> Self {
        Ci { quick_dtypes: vec![DType::Float32], thorough_timeout: 3600, parallel_jobs: 4 }
    }
}
