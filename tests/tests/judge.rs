//! Values against the judge: an independent implementation in pure Python regenerates whole tensors, bit for bit.

use gpuemu_contract::{Contract, DType, Op, TestName};
use gpuemu_harness::case::build::build;
use gpuemu_harness::case::domain::{Limits, kinds};
use gpuemu_harness::case::rng::derive;
use gpuemu_harness::case::spec::{Distribution, Edit, InputSpec, Kind, LayoutKind, Spec};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// A domain as `gpuemu.toml` writes it, as the judge reads it, and as the harness has it.
fn domains() -> Vec<(&'static str, &'static str, Limits)> {
    let sentinel = |limits| Limits::Sentinel(Box::new(limits), -1);
    vec![
        ("[0, \"N + 4\"]", "integer 0 N+4", Limits::Integer(0, 0)),
        ("[-3, 100]", "integer -3 100", Limits::Integer(-3, 100)),
        ("{ sorted = [0, 100] }", "sorted 0 100", Limits::Sorted(0, 100)),
        ("{ unique = [0, 1500] }", "unique 0 1500", Limits::Unique(0, 1500)),
        ("\"permutation\"", "permutation", Limits::Permutation),
        ("\"one_hot\"", "one_hot", Limits::OneHot),
        ("{ offsets = 50 }", "offsets 50", Limits::Offsets(50)),
        ("{ range = [0, 60], sentinel = -1 }", "sentinel -1 integer 0 60", sentinel(Limits::Integer(0, 60))),
        ("\"positive\"", "positive", Limits::Positive),
        ("\"probability\"", "probability", Limits::Probability),
        ("[-0.1, 2.7]", "float -0.1 2.7", Limits::Float(-0.1, 2.7)),
    ]
}

struct Job {
    question: String,
    /// Offset, strides and memory of the tensor.
    answer: String,
}

fn op(shape: &[usize], dtype: DType, domain: Option<&str>) -> Op {
    let axes: Vec<String> = shape.iter().map(|size| format!("\"{size}\"")).collect();
    let domain = domain.map(|domain| format!(", domain = {domain}")).unwrap_or_default();
    let text = format!(
        "[project]\nname = \"judge\"\n[[ops]]\nname = \"copy\"\nreference = \"judge:copy\"\ndtypes = [\"{dtype}\"]\n\
         [ops.schema]\ndims = {{ N = [9] }}\ninputs = {{ x = {{ dims = [{axes}]{domain} }} }}\n\
         outputs = {{ out = [{axes}] }}\n",
        axes = axes.join(", ")
    );
    let contract = Contract::parse(&text, Path::new("gpuemu.toml")).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    contract.ops.into_iter().next().expect("one op")
}

fn job(
    op: &Op,
    shape: &[usize],
    dtype: DType,
    domain: &str,
    layout: LayoutKind,
    values: Distribution,
    edits: &[Edit],
) -> Job {
    let spec = Spec {
        test: TestName::parse(&format!("copy::{dtype}::boundary")).expect("a test name"),
        dims: vec![("N".into(), 9)],
        any_rank: None,
        params: Vec::new(),
        inputs: vec![InputSpec { name: "x".into(), layout, values }],
        seed: derive(42, &format!("{dtype} {layout} {values} {shape:?} {domain}")),
        edits: edits.to_vec(),
        file: None,
    };
    let case = build(op, &spec, None).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let tensor = &case.inputs[0].1;
    let list = |numbers: Vec<String>| numbers.join(",");
    let strides = list(tensor.layout().strides.iter().map(isize::to_string).collect());
    let mut answer = format!("{};{strides};", tensor.layout().offset);
    for byte in tensor.bytes() {
        write!(answer, "{byte:02x}").expect("a string");
    }
    let sizes = list(shape.iter().map(usize::to_string).collect());
    let domain = domain.replace("N+4", "13");
    Job { question: format!("{spec} | {dtype} | {sizes} | {domain}"), answer }
}

fn ask(jobs: &[Job]) {
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("judge/judge.py");
    let mut python = Command::new("python3")
        .arg(judge)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the judge needs python3 on the PATH");
    let mut input = python.stdin.take().expect("a pipe");
    let questions: String = jobs.iter().map(|job| format!("{}\n", job.question)).collect();
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = python.wait_with_output().expect("the judge answers");
    writer.join().expect("a writer").expect("the judge reads every job");
    assert!(output.status.success(), "the judge failed");
    let answers = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), jobs.len());
    let wrong: Vec<&str> = jobs
        .iter()
        .zip(&answers)
        .filter(|(job, answer)| job.answer != **answer)
        .map(|(job, _)| job.question.as_str())
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
}

/// Shapes that cross a block's edge, and small ones of every rank.
const LONG: &[usize] = &[3, 1400];
const SHAPES: &[&[usize]] = &[&[], &[1], &[7], &[2, 3], &[5, 1], &[2, 3, 5], &[0, 4], &[4, 0]];

#[test]
fn every_distribution_of_every_dtype() {
    let mut jobs = Vec::new();
    for dtype in DType::ALL {
        for shape in [LONG, &[30, 5], &[]] {
            let op = op(shape, dtype, None);
            for &kind in kinds(dtype, None) {
                for exponent in [0, 5, -130] {
                    if exponent != 0 && (shape.len() != 2 || shape == LONG || !dtype.is_float()) {
                        continue;
                    }
                    jobs.push(job(&op, shape, dtype, "none", LayoutKind::Row, Distribution { kind, exponent }, &[]));
                }
            }
        }
    }
    ask(&jobs);
}

#[test]
fn every_domain_of_every_dtype() {
    let mut jobs = Vec::new();
    for dtype in DType::ALL {
        for (toml, judge, limits) in domains() {
            for shape in [LONG, &[4, 6], &[9]] {
                let integer = !matches!(limits, Limits::Positive | Limits::Probability | Limits::Float(..));
                let (low, high) = dtype.integer_range().unwrap_or_else(|| {
                    let whole = 1 << (dtype.fraction_bits().expect("a float dtype") + 1);
                    (-whole, whole)
                });
                let room = low <= -3 && high >= 1500;
                if integer && !room || !integer && !dtype.is_float() {
                    continue;
                }
                let op = op(shape, dtype, Some(toml));
                for &kind in kinds(dtype, Some(&limits)) {
                    jobs.push(job(&op, shape, dtype, judge, LayoutKind::Row, kind.into(), &[]));
                }
            }
        }
    }
    ask(&jobs);
}

#[test]
fn every_layout_of_every_dtype() {
    let mut jobs = Vec::new();
    for dtype in DType::ALL {
        for shape in SHAPES {
            let op = op(shape, dtype, None);
            for layout in LayoutKind::ALL {
                let kind = if dtype.is_float() { Kind::Adversarial } else { Kind::FullRange };
                let mut edits = Vec::new();
                if !shape.contains(&0) {
                    let index = shape.iter().map(|&size| size as u64 - 1).collect();
                    let value = if dtype.is_float() { f64::NAN } else { 1.0 };
                    edits.push(Edit { input: "x".into(), index, value });
                    edits.push(Edit { input: "x".into(), index: vec![0; shape.len()], value: 1.0 });
                }
                jobs.push(job(&op, shape, dtype, "none", layout, kind.into(), &edits));
            }
        }
    }
    ask(&jobs);
}

#[test]
fn seeds_of_cases() {
    let jobs: Vec<Job> = [(42, "softmax/float32/boundary/0"), (0, "x"), (u64::MAX, "block 17")]
        .into_iter()
        .map(|(parent, name)| Job {
            question: format!("seed {parent} {name}"),
            answer: format!("{:016x}", derive(parent, name)),
        })
        .collect();
    ask(&jobs);
}
