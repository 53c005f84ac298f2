//! The outcome of one case.

/// The outcome of one case.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Everything agreed.
    Pass(Vec<Statistics>),
    /// Something did not; the first failed check in the order of checks.
    Fail(Box<Failure>),
}

/// Which check failed, in the order of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// The subject itself failed: it panicked, exited, was refused.
    Subject,
    /// The launch of a compiled kernel is refused, whatever the case.
    Launch,
    /// A compiled kernel faulted; the kind of fault, `out-of-bounds`.
    Fault(&'static str),
    /// An output has another shape.
    Shape,
    /// An output has another dtype.
    DType,
    /// Elements still hold the poison they arrived with.
    Unwritten,
    /// Memory of an output outside its view was written.
    GapWritten,
    /// NaN or infinity where the mirror is finite, or the other way round.
    NonFinite,
    /// Values outside their bound.
    Values,
    /// An invariant does not hold.
    Invariant,
    /// A relation between two runs does not hold.
    Relation,
    /// An input that is not `inout` was written.
    InputWritten,
    /// A health check over all cases of a test.
    Health,
    /// The reference could not answer.
    Reference,
}

impl Check {
    /// One word for tables and machine-readable results.
    pub const fn name(self) -> &'static str {
        match self {
            Check::Subject => "subject",
            Check::Launch => "invalid-launch",
            Check::Fault(kind) => kind,
            Check::Shape => "shape",
            Check::DType => "dtype",
            Check::Unwritten => "unwritten",
            Check::GapWritten => "gap-written",
            Check::NonFinite => "non-finite",
            Check::Values => "values",
            Check::Invariant => "invariant",
            Check::Relation => "relation",
            Check::InputWritten => "input-written",
            Check::Health => "health",
            Check::Reference => "reference",
        }
    }
}

/// Error statistics of one output of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Elements compared.
    pub count: u64,
    /// Elements of them that are finite on both sides: those that the errors below are about.
    pub finite: u64,
    /// Elements outside their bound, non-finite mismatches included.
    pub exceeding: u64,
    /// Largest absolute error over finite elements.
    pub max_abs: f64,
    /// Mean absolute error.
    pub mean_abs: f64,
    /// Median absolute error, from a histogram.
    pub p50_abs: f64,
    /// 90th percentile of the absolute error, from a histogram.
    pub p90_abs: f64,
    /// 99th percentile of the absolute error, from a histogram.
    pub p99_abs: f64,
    /// Largest relative error, over elements whose expected magnitude is at least the dtype's smallest normal number.
    pub max_rel: f64,
    /// Mean relative error; elements below the smallest normal number count as zero.
    pub mean_rel: f64,
    /// Largest distance in units of the last place, see [`super::grid::Grid::ulp`].
    pub max_ulp: f64,
    /// Mean distance in units of the last place.
    pub mean_ulp: f64,
    /// Largest error as a fraction of its bound.
    pub worst_of_bound: f64,
}

/// The first element that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Its multi-index.
    pub index: Vec<usize>,
    /// The mirror's value.
    pub expected: f64,
    /// The subject's value.
    pub got: f64,
    /// Largest allowed absolute difference.
    pub allowed: f64,
    /// Distance in units of the last place of the output's dtype, see [`super::grid::Grid::ulp`].
    pub ulp: f64,
}

/// Why a case failed, in parts that a report lays out.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The check that failed.
    pub check: Check,
    /// The output it is about, if one.
    pub output: Option<String>,
    /// One sentence that says what is wrong, fit to follow "failed: ".
    pub message: String,
    /// The first element that differs (in row-major order).
    pub first: Option<Mismatch>,
    /// Statistics of that output.
    pub statistics: Option<Statistics>,
    /// What the error looks like, the most telling first: `only the last partial tile along H`.
    pub diagnosis: Vec<String>,
    /// A small picture of where, one line a row of characters.
    pub picture: Vec<String>,
}
