//! Accuracy baselines: one snapshot an op and dtype of the worst and the typical error over its fixed cases.

use crate::inspect::baseline::{Baseline, FOLDER, Judged, Metric};
use crate::validate::statistics::Total;
use crate::validate::tolerance::Envelope;
use gpuemu_contract::{Compute, DType};
use std::path::Path;

/// A percentile is read from a histogram whose buckets are up to this much apart.
const BUCKET: f64 = 0.25;

/// What was measured, and of what.
#[derive(Clone, Copy, Debug)]
pub struct Measurement<'a> {
    /// The op.
    pub op: &'a str,
    /// The dtype of its tests.
    pub dtype: DType,
    /// The working precision.
    pub compute: Compute,
    /// What was measured: `function silu`.
    pub subject: &'a str,
    /// The strategies whose cases were run.
    pub strategies: &'a [&'static str],
    /// How many cases there were.
    pub cases: u32,
    /// The envelope of the bounds that errors are shares of.
    pub envelope: Envelope,
    /// Statistics of each output over all cases.
    pub outputs: &'a [(String, Total)],
}

/// The baseline of an op and dtype, in `gpuemu-snapshots/accuracy/<op>.<dtype>.snap` below `root`.
pub fn baseline<'a>(root: &'a Path, measured: &Measurement<'_>) -> Baseline<'a> {
    let Measurement { op, dtype, compute, subject, strategies, cases, envelope, outputs } = *measured;
    let shown = |name: &str, value: f64| Metric::new(name, value, Judged::Shown);
    let mut metrics = vec![
        shown("cases", f64::from(cases)),
        shown("envelope.rho", envelope.rho),
        shown("envelope.alpha", envelope.alpha),
    ];
    for (name, total) in outputs {
        let statistics = &total.statistics;
        let mut lower = |figure: &str, value: f64, resolution: f64| {
            metrics.push(Metric::new(format!("{name}.{figure}"), value, Judged::LowerIsBetter { resolution }));
        };
        lower("max_ulp", statistics.max_ulp, 0.0);
        lower("mean_ulp", statistics.mean_ulp, 0.0);
        lower("p50_abs", statistics.p50_abs, BUCKET);
        lower("p99_abs", statistics.p99_abs, BUCKET);
        lower("worst_of_bound", statistics.worst_of_bound, 0.0);
    }
    Baseline {
        root,
        file: Path::new(FOLDER).join("accuracy").join(format!("{}.{dtype}.snap", op.replace("::", "."))),
        description: format!("Errors of op {op} on {dtype} over its fixed cases, lower is better."),
        info: vec![
            ("dtype", dtype.to_string()),
            ("compute", compute.to_string()),
            ("subject", subject.to_owned()),
            ("strategies", strategies.join(", ")),
            ("cases", cases.to_string()),
            ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
        ],
        metrics,
        tools: Vec::new(),
        parts: &[],
    }
}
