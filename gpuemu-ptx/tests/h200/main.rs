//! The arithmetic held against what an H200 answered (`truth/README.md`).

mod inputs;
mod kernels;

use gpuemu_ptx::numerics::exact::Rounding;
use gpuemu_ptx::numerics::{float, half, special};
use inputs::{fnv, mix, trials};
use kernels::{Instruction, Product};

const ANSWERS: &[u8] = include_bytes!("../../truth/instructions.bin");
const SAMPLES: usize = 16;
/// What is not modelled bit for bit.
const INEXACT: [&str; 5] =
    ["tanh.approx.f32", "tanh.approx.f16", "tanh.approx.bf16", "tanh.approx.f16x2", "tanh.approx.bf16x2"];

fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().unwrap())
}

#[test]
fn every_instruction_answers_as_the_h200() {
    let mut report = Vec::new();
    for (index, row) in Instruction::rows().enumerate().filter(|(_, row)| !INEXACT.contains(&row.name)) {
        let answers = match row.answers(trials(row.kinds[0])) {
            Ok(answers) => answers,
            Err(reason) => {
                report.push(format!("{}: {reason}", row.name));
                continue;
            }
        };
        let at = index * (SAMPLES + 1);
        if fnv(answers.iter().copied()) == word(ANSWERS, at) {
            continue;
        }
        let wrong: Vec<_> = (0..SAMPLES)
            .filter_map(|i| {
                let (ours, hardware) = (answers[i], word(ANSWERS, at + 1 + i));
                (ours != hardware).then(|| format!("{:x?}: {ours:x}, H200 {hardware:x}", row.operands(i as u64)))
            })
            .collect();
        let first = wrong.first().map_or("beyond the samples", String::as_str);
        report.push(format!("{}: {} of the first {SAMPLES} differ: {first}", row.name, wrong.len()));
    }
    assert!(report.is_empty(), "{} instructions differ:\n{}", report.len(), report.join("\n"));
}

#[test]
fn every_matrix_product_answers_as_the_h200() {
    const ANSWERS: &[u8] = include_bytes!("../../truth/matrix.bin");
    let mut at = 0;
    let mut report = Vec::new();
    for row in Product::rows() {
        let recorded = word(&ANSWERS[at..], 0);
        let samples = ANSWERS[at + 8..].chunks(row.bytes()).take(2 * 32 * row.outputs());
        at += 8 + 2 * 32 * row.outputs() * row.bytes();
        let answers = match row.answers(1024) {
            Ok(answers) => answers,
            Err(reason) => {
                report.push(format!("{}: {reason}", row.name));
                continue;
            }
        };
        if fnv(answers.iter().copied()) == recorded {
            continue;
        }
        let first = samples.zip(&answers).enumerate().find_map(|(i, (sample, ours))| {
            let hardware = sample.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            (hardware != *ours).then(|| format!("word {i}: {ours:x}, H200 {hardware:x}"))
        });
        report.push(format!("{}: {}", row.name, first.unwrap_or_default()));
    }
    assert!(report.is_empty(), "{} products differ:\n{}", report.len(), report.join("\n"));
}

/// A function of one binary32 operand.
type Swept = (&'static str, fn(u32) -> u32);

/// The functions of `sweep.bin`, in its order.
const SWEPT: [Swept; 17] = [
    ("ex2.approx.f32", |x| special::ex2(x, false)),
    ("ex2.approx.ftz.f32", |x| special::ex2(x, true)),
    ("lg2.approx.f32", |x| special::lg2(x, false)),
    ("lg2.approx.ftz.f32", |x| special::lg2(x, true)),
    ("rcp.approx.f32", |x| special::rcp(x, false)),
    ("rcp.approx.ftz.f32", |x| special::rcp(x, true)),
    ("rsqrt.approx.f32", |x| special::rsqrt(x, false)),
    ("rsqrt.approx.ftz.f32", |x| special::rsqrt(x, true)),
    ("sqrt.approx.f32", |x| special::sqrt(x, false)),
    ("sqrt.approx.ftz.f32", |x| special::sqrt(x, true)),
    ("sin.approx.f32", |x| special::sin(x, false)),
    ("sin.approx.ftz.f32", |x| special::sin(x, true)),
    ("cos.approx.f32", |x| special::cos(x, false)),
    ("cos.approx.ftz.f32", |x| special::cos(x, true)),
    ("tanh.approx.f32", special::tanh),
    ("rcp.rn.f32", |x| float::rcp32(x, Rounding::Nearest)),
    ("sqrt.rn.f32", |x| float::sqrt32(x, Rounding::Nearest)),
];

/// The runs of 2^23 patterns, of those asked for, in which some answer differs.
fn sweep(runs: impl Fn(usize) -> bool) -> Vec<String> {
    const SUMS: &[u8] = include_bytes!("../../truth/sweep.bin");
    let mut report = Vec::new();
    for (index, (name, answer)) in SWEPT.iter().enumerate().filter(|(_, (name, _))| !INEXACT.contains(name)) {
        for run in (0..512).filter(|&run| runs(run)) {
            let sum = (0..1u32 << 23).fold(0u64, |sum, low| {
                let operand = (run as u32) << 23 | low;
                sum.wrapping_add(mix(u64::from(operand) << 32 | u64::from(answer(operand))))
            });
            if sum != word(SUMS, index * 512 + run) {
                report.push(format!("{name}: patterns from {:#x}", run << 23));
            }
        }
    }
    report
}

/// The binade of 1, one of large negative numbers, and the positive subnormals.
#[test]
fn whole_binades_answer_as_the_h200() {
    let report = sweep(|run| matches!(run, 0 | 127 | 386));
    assert!(report.is_empty(), "{}", report.join("\n"));
}

#[test]
#[ignore = "two thirds of an hour: every one of 2^32 operands of 16 functions"]
fn every_operand_answers_as_the_h200() {
    let report = sweep(|_| true);
    assert!(report.is_empty(), "{}", report.join("\n"));
}

/// `tanh` is not modelled: PTX's bounds hold, and the distance from the hardware is known.
#[test]
fn tanh_stays_near_the_h200() {
    let single = |bits: u32| f64::from(f32::from_bits(bits));
    for (index, row) in Instruction::rows().enumerate().filter(|(_, row)| INEXACT.contains(&row.name)) {
        let answers = row.answers(128).unwrap();
        for (i, &ours) in answers.iter().take(SAMPLES).enumerate() {
            let hardware = word(ANSWERS, index * (SAMPLES + 1) + 1 + i);
            // Both halves of a packed number.
            for shift in if row.name.ends_with("x2") { 0..2 } else { 0..1 } {
                let value = |bits: u64| match row.kinds[0] {
                    "f32" => single(bits as u32),
                    "bf16" | "bf16x2" => single((bits >> (16 * shift) << 16) as u32),
                    _ => single(half::f16_to_f32((bits >> (16 * shift)) as u16)),
                };
                let (ours, hardware) = (value(ours), value(hardware));
                let bound = match row.kinds[0] {
                    "f32" => hardware.abs() * 2f64.powi(-11),
                    "bf16" | "bf16x2" => hardware.abs() * 2f64.powi(-7),
                    _ => 2f64.powf(-10.987),
                };
                let both = ours.is_nan() && hardware.is_nan();
                assert!((ours - hardware).abs() <= bound || both, "{}: {ours} and {hardware}", row.name);
            }
        }
    }
}
