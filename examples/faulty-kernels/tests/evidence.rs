//! Every faulty kernel is caught, shrunk and explained: for each the kind of bug report it stands for, the check that
//! must fail, the sizes its smallest failing case may have (from the fault, not from what gpuemu found) and the words
//! a person looks for. `cargo test --test evidence -- --nocapture` prints what happened as a table.

use faulty_kernels as _;
use gpuemu_harness::TestName;
use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::pipeline::trial;
use gpuemu_harness::report::failure::Report;
use gpuemu_harness::validate::verdict::Check;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is known of a faulty kernel.
struct Fault {
    op: &'static str,
    /// A kind of `README.md`.
    kind: &'static str,
    /// Checks that may fail.
    checks: &'static [Check],
    /// Sizes that suffice to show the fault; dimensions that are not named are 1.
    sizes: &'static [(&'static str, u64)],
    /// In the report of at least one test of every dtype. Empty where the smallest case says all there is to say.
    says: &'static str,
}

const VALUES: &[Check] = &[Check::Values];
const ANY_VALUE: &[Check] = &[Check::Values, Check::NonFinite];
const NON_FINITE: &[Check] = &[Check::NonFinite];
const UNWRITTEN: &[Check] = &[Check::Unwritten];
const RELATION: &[Check] = &[Check::Relation];

const fn fault(
    op: &'static str,
    kind: &'static str,
    checks: &'static [Check],
    sizes: &'static [(&'static str, u64)],
    says: &'static str,
) -> Fault {
    Fault { op, kind, checks, sizes, says }
}

#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    // One element more than a tile; the sum of the row lacks it, so that each row has a factor.
    fault("softmax_tail", "tail mask, grid coverage", VALUES, &[("H", 129)], "a factor of its own"),
    // The first width that is no power of two.
    fault("softmax_other", "tail mask, grid coverage", ANY_VALUE, &[("H", 3)], "a factor of its own"),
    fault("relu_grid", "tail mask, grid coverage", UNWRITTEN, &[], "never written"),
    fault("sigmoid_capped", "tail mask, grid coverage", UNWRITTEN, &[("B", 33)], "never written"),
    // Four parts of one, and one left over.
    fault("sum_split", "split reduction", VALUES, &[("H", 5)], ""),
    // The third tile is the first that lacks a carry.
    fault("cumsum_carry", "split reduction", VALUES, &[("H", 257)], "only in the last partial tile along H"),
    fault("tanh_shifted", "other: index semantics", VALUES, &[("H", 2)], "shifted up by 1 along H"),
    // More than 65,536 elements of the sizes that the schema has.
    fault("silu_index", "int32 index overflow", VALUES, &[("B", 257), ("H", 257)], "an index of 16 bits"),
    // Rows at another distance than their length need two rows of something.
    fault("sum_contiguous", "stride, layout", ANY_VALUE, &[("B", 2), ("H", 2)], "a stride or an offset is ignored"),
    fault("add_strides", "stride, layout", ANY_VALUE, &[("B", 2), ("H", 2)], "a stride or an offset is ignored"),
    fault("rms_norm_columns", "stride, layout", ANY_VALUE, &[("B", 2), ("H", 2)], "a stride or an offset is ignored"),
    // The first size with two tiles on both sides.
    fault("transpose_tiles", "stride, layout", VALUES, &[("M", 33), ("N", 33)], "input x, copied"),
    fault("add_broadcast", "zero size, rank 0, size 1", VALUES, &[("H", 2)], "along H"),
    fault("sum_empty", "zero size, rank 0, size 1", UNWRITTEN, &[("H", 0)], "never written"),
    fault("mean_padding", "other: padding value", VALUES, &[], "times what it should be"),
    fault("exp_vector", "stride, layout", VALUES, &[("H", 2)], "the odd ones, along H"),
    fault("max_drops_nan", "NaN and infinity", NON_FINITE, &[], "where the mirror is NaN"),
    fault("argmax_skips_nan", "NaN and infinity", VALUES, &[("H", 2)], ""),
    fault("argmax_last", "other: index semantics", VALUES, &[("H", 2)], ""),
    // All lanes but one are idle.
    fault("log_softmax_lanes", "NaN and infinity", NON_FINITE, &[], "NaN where the mirror is finite"),
    fault("softmax_no_max", "overflow in an intermediate", NON_FINITE, &[], "NaN where the mirror is finite"),
    // Two elements have a sum whose logarithm is not 0; where rows differ by design it may be the third that is large.
    fault("log_softmax_offset", "overflow in an intermediate", VALUES, &[("B", 3), ("H", 3)], ""),
    fault("tanh_overflow", "overflow in an intermediate", NON_FINITE, &[], "NaN where the mirror is finite"),
    // In float32 the one input does not fit; in float16 some roundings must add up to more than the output's own.
    fault("sum_half", "low-precision accumulation", ANY_VALUE, &[("H", 16)], ""),
    fault("matmul_accumulator", "low-precision accumulation", ANY_VALUE, &[("K", 16)], ""),
    fault("matmul_tf32", "low-precision accumulation", VALUES, &[], "float16 or tf32"),
    // One step more than the tile of K.
    fault("matmul_assign", "split reduction", VALUES, &[("K", 33)], ""),
    // Of one element the answer is 1 in any precision.
    fault("softmax_double", "dtype promotion", VALUES, &[("H", 2)], "those of float32 arithmetic"),
    fault("layer_norm_one_pass", "low-precision accumulation", ANY_VALUE, &[("H", 3)], ""),
    fault("rms_norm_factor", "low-precision accumulation", VALUES, &[], "a factor of its own"),
    fault("gelu_half", "wrong constant, epsilon, base", VALUES, &[], "2 times what it should be"),
    fault("silu_beta", "wrong constant, epsilon, base", VALUES, &[], ""),
    fault("l2_norm_root", "wrong constant, epsilon, base", ANY_VALUE, &[], "a factor of its own"),
    // In float16 the change must cross a rounding boundary; one of the first few sizes has one.
    fault("rms_norm_epsilon", "wrong constant, epsilon, base", VALUES, &[("H", 4)], ""),
    // A row of one element is its own mean.
    fault("layer_norm_epsilon", "wrong constant, epsilon, base", NON_FINITE, &[], "NaN where the mirror is finite"),
    fault("quantize_scale", "quantisation scale, zero point", VALUES, &[], ""),
    fault("quantize_truncates", "quantisation scale, zero point", VALUES, &[], "off by one, towards zero"),
    fault("dequantize_zero_point", "quantisation scale, zero point", VALUES, &[], "is off by"),
    // Two keys to weigh and a depth that is not its own root.
    fault("attention_scale", "wrong constant, epsilon, base", VALUES, &[("S", 2), ("D", 2)], ""),
    fault("attention_causal", "causal mask off by one", VALUES, &[("S", 2)], ""),
    fault("attention_tile_mask", "causal mask off by one", VALUES, &[("S", 2)], ""),
    // Two shared heads with two query heads each.
    fault("attention_heads", "grouped heads", VALUES, &[("H", 2), ("G", 2)], "along H"),
    fault("attention_rescale", "split reduction", ANY_VALUE, &[("S", 2)], ""),
    // Of two elements the halves are the neighbours.
    fault("rope_pairing", "rotary pairing, position", VALUES, &[("D", 4)], ""),
    fault("rope_position", "rotary pairing, position", VALUES, &[("S", 2), ("D", 2)], ""),
    fault("scatter_add_lost", "race, lost update", VALUES, &[("N", 2)], ""),
    fault("cross_entropy_ignored", "uninitialised output", UNWRITTEN, &[("B", 9)], "never written"),
    // One row more than the full tiles hold.
    fault("embedding_table", "other: index semantics", VALUES, &[("V", 18), ("N", 8)], ""),
    // Past one chunk the last one overlaps.
    fault("bias_gradient", "backward, gradient", VALUES, &[("R", 17)], ""),
    fault("group_norm_size", "other: index semantics", ANY_VALUE, &[("C", 2)], ""),
    fault("conv2d_clamped", "tail mask, grid coverage", VALUES, &[], "only on the border of H and W"),
    fault("swiglu_scratch", "in-place aliasing, mutated input", &[Check::InputWritten], &[], "input gate was written"),
    // Sums of three are the first that depend on their order; which runs differ depends on all runs before.
    fault("sum_order", "atomics, nondeterminism", RELATION, &[("B", 3), ("H", 500)], "depends on the order"),
    // From four rows on, and as many columns as it takes until the order shows.
    fault("rms_norm_batch", "batch variance", RELATION, &[("B", 4), ("H", 500)], "depends on the number of rows (B)"),
    fault("residual_tuned", "autotune-dependent result", VALUES, &[("H", 65)], "residual: it is in there once too often"),
    fault("softmax_zeros", "reward hacking", &[Check::Values, Check::Health], &[], "zero"),
];

/// Cases within which a fault must show.
const CASES: u32 = 30;
/// A screen.
const LINES: usize = 24;
const COLUMNS: usize = 120;

/// One test that failed, as it should.
struct Caught {
    test: TestName,
    cases: u32,
    report: Report,
}

#[test]
fn every_fault_is_caught_shrunk_and_explained() {
    let session = Session::open(Path::new(env!("CARGO_MANIFEST_DIR")), Environment::default());
    let session = session.unwrap().keep_regressions(false);
    let known: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.op).collect();
    let declared: BTreeSet<&str> = session.contract().ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(known, declared, "the table and gpuemu.toml name other ops");

    let caught = run(&session);
    let mut wrong = Vec::new();
    let mut lines = vec!["| op | kind | caught by | cases | smallest | what the report says |".to_owned()];
    lines.push("|---|---|---|---|---|---|".to_owned());
    for fault in FAULTS {
        let op = session.contract().op(fault.op).unwrap();
        for dtype in &op.dtypes {
            let these: Vec<&Caught> =
                caught.iter().filter(|caught| (&*caught.test.op, caught.test.dtype) == (fault.op, *dtype)).collect();
            let Some(soonest) = these.iter().min_by_key(|caught| caught.cases) else {
                wrong.push(format!("{} passes in {dtype}", fault.op));
                continue;
            };
            for caught in &these {
                wrong.extend(
                    fault.complaints(caught).map(|what| format!("{}: {what}\n{}", caught.test, caught.report.render())),
                );
            }
            let telling = these.iter().find(|caught| caught.report.render().contains(fault.says));
            if telling.is_none() {
                let reports: Vec<String> = these.iter().map(|caught| caught.report.render()).collect();
                wrong.push(format!("{} in {dtype}: nobody says {:?}\n{}", fault.op, fault.says, reports.concat()));
            }
            if *dtype == op.dtypes[0] {
                lines.push(line(fault, &these, soonest, telling.unwrap_or(soonest)));
            }
        }
    }
    println!("{}\n", lines.join("\n"));
    println!("{} faulty kernels, {} of their tests fail", FAULTS.len(), caught.len());
    assert!(wrong.is_empty(), "{} complaints\n\n{}", wrong.len(), wrong.join("\n"));
}

impl Fault {
    /// What is not as it should be of one report.
    fn complaints(&self, caught: &Caught) -> impl Iterator<Item = String> {
        let mut wrong = Vec::new();
        let failure = &caught.report.failure;
        if !self.checks.contains(&failure.check) {
            wrong.push(format!("check `{}` failed", failure.check.name()));
        }
        if let Some(case) = &caught.report.case {
            for (dim, size) in &case.spec.dims {
                let most = self.sizes.iter().find(|(name, _)| name == dim).map_or(1, |(_, size)| *size);
                if *size > most {
                    wrong.push(format!("shrunk to {dim}={size}, {most} would do"));
                }
            }
        }
        let text = caught.report.render();
        let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(COLUMNS).max(1)).sum();
        if lines > LINES {
            wrong.push(format!("the report has {lines} lines"));
        }
        wrong.into_iter()
    }
}

/// A line of the table, of one dtype.
fn line(fault: &Fault, these: &[&Caught], soonest: &Caught, telling: &Caught) -> String {
    let strategies: Vec<&str> = these.iter().map(|caught| caught.test.strategy.name()).collect();
    let sizes = soonest.report.case.as_ref().map_or("-".to_owned(), |case| {
        case.spec.dims.iter().map(|(name, size)| format!("{name}={size}")).collect::<Vec<_>>().join(" ")
    });
    let failure = &telling.report.failure;
    let larger = telling.report.case.as_ref().and_then(|case| case.larger.as_ref());
    let said = failure.diagnosis.iter().chain(larger.iter().flat_map(|larger| &larger.diagnosis));
    let said: Vec<&String> = said.collect();
    let best = said.iter().find(|line| !fault.says.is_empty() && line.contains(fault.says)).or(said.first());
    let says = best.map_or(&failure.message, |line| line);
    format!("| `{}` | {} | {} | {} | {sizes} | {says} |", fault.op, fault.kind, strategies.join(", "), soonest.cases)
}

/// Runs every test; those that failed within [`CASES`], in the order of their names.
fn run(session: &Session) -> Vec<Caught> {
    let tests = session.contract().tests();
    let next = AtomicUsize::new(0);
    let caught = Mutex::new(Vec::new());
    let worker = || {
        while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let finished = trial::run(session, test, None);
            if let Some(report) = finished.failure
                && finished.cases <= CASES
            {
                caught.lock().unwrap().push(Caught { test: test.clone(), cases: finished.cases, report });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let mut caught = caught.into_inner().unwrap();
    caught.sort_by_key(|caught| caught.test.to_string());
    caught
}
