//! Every key of `gpuemu.toml`: its type, its default and what it means.

use crate::artifact::{METRICS, RULES};
use crate::kind::{Key, Kind, Table};
use crate::{Builtin, Compute, DType, Strategy};

const fn key(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { name, kind, required: false, default, about }
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, required: true, default: "", about }
}

pub(crate) const NAMES_OF_DTYPES: [&str; DType::ALL.len()] = {
    let mut names = [""; DType::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = DType::ALL[i].name();
        i += 1;
    }
    names
};
pub(crate) const NAMES_OF_STRATEGIES: [&str; Strategy::ALL.len()] = {
    let mut names = [""; Strategy::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = Strategy::ALL[i].name();
        i += 1;
    }
    names
};
const NAMES_OF_COMPUTES: [&str; Compute::ALL.len()] = {
    let mut names = [""; Compute::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = Compute::ALL[i].name();
        i += 1;
    }
    names
};
pub(crate) const NAMES_OF_BUILTINS: [&str; Builtin::ALL.len()] = {
    let mut names = [""; Builtin::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = Builtin::ALL[i].name;
        i += 1;
    }
    names
};

/// The names of the layouts a tensor may be given in; `row` is the dense one, rows after one another.
pub const LAYOUTS: &[&str] = &["row", "transposed", "column", "padded", "sliced", "offset", "broadcast", "reversed"];

const ANY_INTEGER: Kind = Kind::Integer(i64::MIN as i128, i64::MAX as i128);
const ANY_NUMBER: Kind = Kind::Number { min: f64::NEG_INFINITY, infinite: true };
const FINITE: Kind = Kind::Number { min: f64::NEG_INFINITY, infinite: false };
const NOT_NEGATIVE: Kind = Kind::Number { min: 0.0, infinite: false };
const SIZE: Kind = Kind::Integer(0, i64::MAX as i128);
const COUNT: Kind = Kind::Integer(1, u32::MAX as i128);
const DTYPE: Kind = Kind::Choice(&NAMES_OF_DTYPES);
const DTYPES: Kind = Kind::List(&DTYPE, 1, usize::MAX);
const STRATEGIES: Kind = Kind::List(&Kind::Choice(&NAMES_OF_STRATEGIES), 1, usize::MAX);
const TEXTS: Kind = Kind::List(&Kind::Text, 0, usize::MAX);
const REFERENCE: Kind = Kind::Reference(&NAMES_OF_BUILTINS);
const TOLERANCES: Kind = Kind::MapOf(&NAMES_OF_DTYPES, &Kind::OneOf(&[NOT_NEGATIVE, Kind::Table(&TOLERANCE)]));
const SHAPE: Kind = Kind::List(&Kind::Axis, 0, usize::MAX);
const RANGE: Kind = Kind::List(&Kind::Expression, 2, 2);
const TENSOR_DTYPE: Kind = Kind::Choice(&{
    let mut names = ["same"; DType::ALL.len() + 1];
    let mut i = 0;
    while i < NAMES_OF_DTYPES.len() {
        names[i + 1] = NAMES_OF_DTYPES[i];
        i += 1;
    }
    names
});

/// The whole file.
pub(crate) static FILE: Table = Table {
    title: "the file",
    about: "The tables a file may have.",
    keys: &[
        key("project", Kind::Table(&PROJECT), "", "What the project is."),
        key("validation", Kind::Table(&VALIDATION), "", "Defaults for every op."),
        key("ops", Kind::Tables(&OP), "no ops", "The operators under test."),
        key("kernels", Kind::Tables(&KERNEL), "no kernels", "Compiled kernels."),
        key("policies", Kind::Table(&POLICIES), "", "What counts as a regression."),
        key("ci", Kind::Table(&CI), "", "What the profiles run."),
    ],
};

static PROJECT: Table = Table {
    title: "[project]",
    about: "What the project is.",
    keys: &[
        key("name", Kind::Text, "\"unnamed\"", "Used in reports and baselines."),
        key("version", Kind::Text, "none", "The project's own version."),
        key("framework", Kind::Choice(&["pytorch", "jax", "tensorflow"]), "none", "The framework it is written for."),
    ],
};

static VALIDATION: Table = Table {
    title: "[validation]",
    about: "Defaults for every op. An op may give its own `dtypes`, `cases`, `strategies`, `tolerances`, `check_nan` and `check_inf`.",
    keys: &[
        key("dtypes", DTYPES, "[\"float32\"]", "Dtypes to test."),
        key(
            "seed",
            Kind::Integer(0, u64::MAX as i128),
            "42",
            "Parent seed of every case: the same cases on every run, machine and front.",
        ),
        key("cases", COUNT, "30", "Cases per op, dtype and strategy."),
        key("strategies", STRATEGIES, "[\"boundary\", \"adversarial\", \"layout\"]", "Ways of choosing cases."),
        key("check_nan", Kind::Bool, "true", "NaN outputs must stand exactly where the mirror has them."),
        key("check_inf", Kind::Bool, "true", "Infinite outputs must stand exactly where the mirror has them."),
        key(
            "tolerances",
            TOLERANCES,
            "the calibrated envelope",
            "Explicit tolerances by dtype: an absolute one, or `{ absolute = 1e-5, relative = 1e-4 }`.",
        ),
    ],
};

static TOLERANCE: Table = Table {
    title: "a tolerance",
    about: "`|got - expected| <= absolute + relative * |expected|`, beside one rounding of the dtype.",
    keys: &[
        key("absolute", NOT_NEGATIVE, "0", "The part that does not depend on the value."),
        key("relative", NOT_NEGATIVE, "0", "The part that grows with the value."),
    ],
};

static OP: Table = Table {
    title: "[[ops]]",
    about: "One operator under test.",
    keys: &[
        required("name", Kind::Identifier, "Unique; no keyword of Rust or Python."),
        required(
            "reference",
            REFERENCE,
            "Where right answers come from: a built-in, a script that speaks the JSON protocol, or a Python function.",
        ),
        key("module", Kind::Text, "none", "A Python callable that is the subject, `package.module:function`."),
        key("op_script", Kind::Text, "none", "A script that is the subject, by the protocol of reference scripts."),
        key(
            "input_names",
            Kind::List(&Kind::Identifier, 0, usize::MAX),
            "[]",
            "Inputs of an op without a schema: all of one shape, batch {1,2,8} by sequence {1,7,128} by hidden {1,3,256}.",
        ),
        key(
            "execution_mode",
            Kind::Choice(&["client_side", "daemon_orchestrated", "script_based"]),
            "\"client_side\"",
            "Who runs the op: a bound function, the same, or `op_script`.",
        ),
        key(
            "frameworks",
            TEXTS,
            "[]",
            "Frameworks the op is meant for. Of the first that is known, pytest hands arrays to a Python function: pytorch (or triton), jax, tensorflow, cupy, numpy.",
        ),
        key(
            "compute",
            Kind::Choice(&NAMES_OF_COMPUTES),
            "float64 for float64, else float32",
            "Working precision a correct kernel may use.",
        ),
        key("schema", Kind::Table(&SCHEMA), "from `input_names` or the built-in", "Tensors and dimensions."),
        key(
            "params",
            Kind::Map(&Kind::OneOf(&[Kind::Scalar, Kind::List(&Kind::Scalar, 1, usize::MAX)])),
            "the built-in's defaults",
            "Parameters by name: a value, or a list to sample from.",
        ),
        key("invariants", Kind::Table(&INVARIANTS), "none", "What must hold of every output."),
        key("relations", Kind::Table(&RELATIONS), "`inputs_untouched` alone", "What must hold between two runs."),
        key("tolerances", TOLERANCES, "those of `[validation]`", "Explicit tolerances by dtype."),
        key("dtypes", DTYPES, "those of `[validation]`", "Dtypes to test."),
        key("cases", COUNT, "that of `[validation]`", "Cases per dtype and strategy."),
        key("strategies", STRATEGIES, "those of `[validation]`", "Ways of choosing cases."),
        key("check_nan", Kind::Bool, "that of `[validation]`", "As in `[validation]`."),
        key("check_inf", Kind::Bool, "that of `[validation]`", "As in `[validation]`."),
        key(
            "nan",
            Kind::Choice(&["propagate", "ignore"]),
            "\"propagate\"",
            "Whether a reduction answers NaN for a row with a NaN, or leaves the NaN out.",
        ),
        key(
            "empty",
            Kind::Choice(&["natural", "zero", "nan", "error"]),
            "\"natural\"",
            "What a reduction over nothing answers; with \"error\" no such case is generated.",
        ),
    ],
};

static SCHEMA: Table = Table {
    title: "[ops.schema]",
    about: "Tensors and dimensions of an op.",
    keys: &[
        key(
            "dims",
            Kind::Map(&Kind::OneOf(&[SIZE, Kind::List(&SIZE, 1, usize::MAX), Kind::Table(&DIMENSION)])),
            "none",
            "Named dimensions: a size, a list of sizes, or a table.",
        ),
        key(
            "inputs",
            Kind::Map(&Kind::OneOf(&[SHAPE, Kind::Table(&INPUT)])),
            "none",
            "Inputs by name: a shape, or a table.",
        ),
        key(
            "outputs",
            Kind::Map(&Kind::OneOf(&[SHAPE, Kind::Table(&OUTPUT)])),
            "none",
            "Outputs by name: a shape, or a table. Inputs with `inout = true` are outputs too.",
        ),
        key(
            "where",
            Kind::List(&Kind::Condition, 0, usize::MAX),
            "[]",
            "Conditions between dimensions and integer parameters that every case satisfies.",
        ),
    ],
};

static DIMENSION: Table = Table {
    title: "a dimension",
    about: "The sizes a dimension takes.",
    keys: &[
        required("candidates", Kind::List(&SIZE, 1, usize::MAX), "Sizes to choose from."),
        key(
            "tile",
            COUNT,
            "none",
            "The kernel's tile along this dimension; adds 1, tile-1, tile, tile+1, 2*tile+1 and a prime.",
        ),
        key("min", SIZE, "1", "The smallest size; 0 includes empty tensors."),
    ],
};

static INPUT: Table = Table {
    title: "an input",
    about: "One input of an op.",
    keys: &[
        required("dims", SHAPE, "Its shape: expressions over dimensions, `[]` for rank 0, `[\"...\"]` for any rank."),
        key("dtype", TENSOR_DTYPE, "\"same\"", "Its dtype; `same` is the dtype of the test."),
        key(
            "domain",
            Kind::OneOf(&[
                Kind::Choice(&["positive", "probability", "permutation", "one_hot"]),
                Kind::List(&Kind::OneOf(&[Kind::Expression, FINITE]), 2, 2),
                Kind::Table(&DOMAIN),
            ]),
            "any value",
            "Its values: `[first, last]` (both included), a word, or a table.",
        ),
        key("layouts", Kind::List(&Kind::Choice(LAYOUTS), 1, usize::MAX), "all", "Layouts the subject accepts."),
        key("generate", Kind::Function, "none", "A Python function that makes its values."),
        key("inout", Kind::Bool, "false", "The op overwrites it with an answer."),
    ],
};

static OUTPUT: Table = Table {
    title: "an output",
    about: "One output of an op.",
    keys: &[
        required("dims", SHAPE, "Its shape: expressions over dimensions, `[]` for rank 0, `[\"...\"]` for any rank."),
        key("dtype", TENSOR_DTYPE, "\"same\"", "Its dtype; `same` is the dtype of the test."),
        key("layouts", Kind::List(&Kind::Choice(LAYOUTS), 1, usize::MAX), "all", "Layouts the subject accepts."),
    ],
};

static DOMAIN: Table = Table {
    title: "a domain",
    about: "The values of an input: exactly one of `sorted`, `unique`, `offsets` and `range`.",
    keys: &[
        key("sorted", RANGE, "none", "Ascending along the last axis, from the first to the last value."),
        key("unique", RANGE, "none", "No value twice along the last axis, from the first to the last value."),
        key("offsets", Kind::Expression, "none", "Offsets of ragged rows: from 0, ascending, to this size."),
        key("range", RANGE, "none", "From the first to the last value, both included."),
        key("sentinel", ANY_INTEGER, "none", "Beside another key: a value that replaces some entries."),
    ],
};

static INVARIANTS: Table = Table {
    title: "invariants",
    about: "What must hold of every output.",
    keys: &[
        key("non_negative", Kind::Bool, "false", "No value is below zero."),
        key("shape_preserved", Kind::Bool, "false", "Every output has the shape of the first input."),
        key("no_nan", Kind::Bool, "false", "No value is NaN."),
        key("no_inf", Kind::Bool, "false", "No value is infinite."),
        key("rows_sum_to", FINITE, "none", "Every row along the last axis sums to this."),
        key("bounded", Kind::List(&ANY_NUMBER, 2, 2), "none", "Every value lies between these two."),
    ],
};

static RELATIONS: Table = Table {
    title: "[ops.relations]",
    about: "What must hold between two runs.",
    keys: &[
        key("batch", Kind::Identifier, "none", "A dimension along which a row alone equals the row in its batch."),
        key("permutes", Kind::Identifier, "none", "A dimension along which permuting inputs permutes outputs."),
        key("deterministic", Kind::Bool, "false", "The same inputs give the same bits twice."),
        key("inputs_untouched", Kind::Bool, "true", "Inputs that are not `inout` keep their bytes."),
    ],
};

static KERNEL: Table = Table {
    title: "[[kernels]]",
    about: "One compiled kernel. It names the `op` that it computes, or a `reference` of its own; with neither, its compiled form alone is tested.",
    keys: &[
        required("name", Kind::Identifier, "Unique; no keyword of Rust or Python."),
        key("op", Kind::Text, "none", "The op whose schema and reference it has."),
        key("reference", REFERENCE, "that of `op`", "Where right answers come from."),
        key(
            "source",
            Kind::Text,
            "none",
            "The `.cu` file, whose committed `<source>.<target>.ptx` beside it are tested, or a `.ptx` file, tested as it is.",
        ),
        key(
            "compile_options",
            TEXTS,
            "[]",
            "Options for nvcc beside `-ptx`, `-arch` and `-lineinfo`, when `GPUEMU_UPDATE=ptx` compiles the `.cu` file.",
        ),
        key("entry", Kind::Text, "the only one of the file", "The entry point."),
        key("dtypes", DTYPES, "those of `op`", "Dtypes it handles."),
        key("launch", Kind::Table(&LAUNCH), "none", "How it is launched."),
        key("sanitizers", Kind::Table(&SANITIZERS), "all of them", "What is watched while it is executed."),
        key("measured", Kind::Table(&MEASURED), "none", "A launch whose figures its snapshots keep."),
        key("tolerances", TOLERANCES, "those of `op`", "Explicit tolerances by dtype."),
        key("invariants", Kind::Table(&INVARIANTS), "those of `op`", "What must hold of every output."),
        key("artifact_checks", Kind::Table(&ARTIFACT_CHECKS), "the defaults below", "What its compiled form may cost."),
        key(
            "budget",
            Kind::MapOf(METRICS, &NOT_NEGATIVE),
            "`warn_threshold` of `[policies]`; 0 for barriers and atomics",
            "Relative change of a metric that its snapshot accepts.",
        ),
        key(
            "allow",
            Kind::MapOf(RULES, &Kind::Reason),
            "none",
            "Rules of the lint that it may break, each with the reason.",
        ),
    ],
};

static LAUNCH: Table = Table {
    title: "[kernels.launch]",
    about: "How a kernel is launched.",
    keys: &[
        required("grid", Kind::List(&Kind::Expression, 1, 3), "Blocks along x, y, z."),
        required("block", Kind::List(&Kind::Expression, 1, 3), "Threads along x, y, z."),
        key("shared", Kind::Expression, "0", "Bytes of dynamic shared memory."),
        key(
            "budget",
            Kind::Integer(1, i64::MAX as i128),
            "67108864",
            "Instructions that one block may run, those of each warp counted, before the kernel is said not to end.",
        ),
        required(
            "args",
            Kind::List(&Kind::OneOf(&[ANY_INTEGER, Kind::Text]), 0, usize::MAX),
            "Arguments in order: tensors by name, integers by expression, typed literals such as \"f32:0.5\" or \"f32:eps\", and \"workspace:4*N\", so many bytes of memory for the kernel alone.",
        ),
    ],
};

static SANITIZERS: Table = Table {
    title: "[kernels.sanitizers]",
    about: "What is watched while a kernel is executed, beside what a GPU itself refuses.",
    keys: &[
        key("races", Kind::Bool, "true", "Accesses to shared or global memory that nothing orders."),
        key("uninitialised_reads", Kind::Bool, "true", "Reads of memory that nothing wrote."),
        key("input_writes", Kind::Bool, "true", "Writes to inputs that are not `inout`."),
        key(
            "index_wraps",
            Kind::Bool,
            "true",
            "32-bit index arithmetic that wraps around before it becomes an address.",
        ),
    ],
};

static MEASURED: Table = Table {
    title: "[kernels.measured]",
    about: "One launch that is executed for every target, and whose figures its snapshot keeps: instructions, lanes, divergence, sectors, bank conflicts, barriers, atomics.",
    keys: &[
        required("dims", Kind::Map(&SIZE), "The size of every dimension of the op."),
        key("params", Kind::Map(&Kind::Scalar), "the first value of each", "Values of parameters of the op."),
        key("dtype", DTYPE, "the first of `dtypes`", "The dtype."),
    ],
};

static ARTIFACT_CHECKS: Table = Table {
    title: "[kernels.artifact_checks]",
    about: "What the compiled form of a kernel may cost. Patterns are substrings of instruction names.",
    keys: &[
        key("targets", TEXTS, "[]", "Targets whose artifacts are tested, such as \"sm_80\"."),
        key("max_registers", Kind::Integer(0, u32::MAX as i128), "64", "Registers a thread may use, by ptxas."),
        key(
            "max_spills",
            Kind::Integer(0, u32::MAX as i128),
            "0",
            "Spilled words of 4 bytes that may be stored and loaded, by ptxas.",
        ),
        key(
            "max_local_memory",
            SIZE,
            "0",
            "Bytes of local memory a thread may use: the stack frame by ptxas, without it what the PTX declares.",
        ),
        key("required_patterns", TEXTS, "[]", "Must occur."),
        key("forbidden_patterns", TEXTS, "[]", "Must not occur."),
    ],
};

static POLICIES: Table = Table {
    title: "[policies]",
    about: "What counts as a regression.",
    keys: &[
        key("accuracy", Kind::Bool, "false", "Keep accuracy baselines: one test `accuracy::<op>::<dtype>` each."),
        key("fail_on_regression", Kind::Bool, "true", "A metric or an accuracy that got worse fails."),
        key("warn_threshold", NOT_NEGATIVE, "0.1", "Relative change that is worth a warning."),
        key(
            "lint",
            Kind::Choice(&["error", "warning", "never"]),
            "\"error\"",
            "Findings of the lint that fail a test of a compiled kernel: errors, warnings too, or none.",
        ),
    ],
};

static CI: Table = Table {
    title: "[ci]",
    about: "What the profiles run.",
    keys: &[
        key("quick_dtypes", DTYPES, "[\"float32\"]", "Dtypes the quick profile runs."),
        key("thorough_timeout", Kind::Integer(1, u64::MAX as i128), "3600", "Seconds the thorough profile may take."),
        key("parallel_jobs", COUNT, "4", "Number of threads."),
    ],
};
