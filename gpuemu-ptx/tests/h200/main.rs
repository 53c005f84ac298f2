//! The arithmetic held against what an H200 answered (`truth/README.md`).

mod dispatch;
mod inputs;
mod matrix;

const INSTRUCTIONS: &str = include_str!("../../truth/instructions.txt");
const ANSWERS: &[u8] = include_bytes!("../../truth/instructions.bin");
const SAMPLES: usize = 64;
/// What is not modelled bit for bit.
const INEXACT: [&str; 3] = ["tanh.approx.f32", "tanh.approx.f16", "tanh.approx.bf16"];

struct Row<'a> {
    name: &'a str,
    kinds: Vec<&'a str>,
    mask: u64,
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    INSTRUCTIONS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let name = columns.next().unwrap();
        let kinds = columns.next().unwrap().split_whitespace().collect();
        let mask = match columns.next().unwrap() {
            "h" => 0xffff,
            "w" => 0xffff_ffff,
            _ => u64::MAX,
        };
        Row { name, kinds, mask }
    })
}

fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * index..8 * index + 8].try_into().unwrap())
}

#[test]
fn every_instruction_answers_as_the_h200() {
    let mut report = Vec::new();
    for (index, row) in rows().enumerate().filter(|(_, row)| !INEXACT.contains(&row.name)) {
        let Some(answer) = dispatch::answer(row.name) else {
            report.push(format!("{}: no function", row.name));
            continue;
        };
        let trials = inputs::trials(row.kinds[0]);
        let operands = |i: u64| {
            let mut x = [0; 4];
            for (k, kind) in row.kinds.iter().enumerate() {
                x[k] = inputs::operand(kind, i, k as u64);
            }
            x
        };
        let sum = inputs::fnv((0..trials).map(|i| answer(&operands(i)) & row.mask));
        let at = index * (SAMPLES + 1);
        if sum == word(ANSWERS, at) {
            continue;
        }
        let wrong: Vec<_> = (0..SAMPLES)
            .filter_map(|i| {
                let (x, hardware) = (operands(i as u64), word(ANSWERS, at + 1 + i));
                let ours = answer(&x) & row.mask;
                (ours != hardware).then(|| format!("{:x?}: {ours:x}, H200 {hardware:x}", &x[..row.kinds.len()]))
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
    for row in matrix::rows() {
        let bytes = if row.operands[2].0 == "f64" { 8 } else { 4 };
        let recorded = word(&ANSWERS[at..], 0);
        at += 8;
        let sum = inputs::fnv((0..1024).flat_map(|trial| matrix::answer(&row, trial)));
        let mut first = None;
        for trial in 0..8 {
            for (i, ours) in matrix::answer(&row, trial).into_iter().enumerate() {
                let mut raw = [0; 8];
                raw[..bytes].copy_from_slice(&ANSWERS[at..at + bytes]);
                at += bytes;
                let hardware = u64::from_le_bytes(raw);
                if ours != hardware && first.is_none() {
                    first = Some(format!("trial {trial} word {i}: {ours:x}, H200 {hardware:x}"));
                }
            }
        }
        if sum != recorded {
            report.push(format!("{}: {}", row.name, first.unwrap_or_default()));
        }
    }
    assert!(report.is_empty(), "{} products differ:\n{}", report.len(), report.join("\n"));
}

/// The functions of `sweep.bin`, in its order.
const SWEPT: [&str; 17] = [
    "ex2.approx.f32",
    "ex2.approx.ftz.f32",
    "lg2.approx.f32",
    "lg2.approx.ftz.f32",
    "rcp.approx.f32",
    "rcp.approx.ftz.f32",
    "rsqrt.approx.f32",
    "rsqrt.approx.ftz.f32",
    "sqrt.approx.f32",
    "sqrt.approx.ftz.f32",
    "sin.approx.f32",
    "sin.approx.ftz.f32",
    "cos.approx.f32",
    "cos.approx.ftz.f32",
    "tanh.approx.f32",
    "rcp.rn.f32",
    "sqrt.rn.f32",
];

/// The runs of 2^23 patterns, of those asked for, in which some answer differs.
fn sweep(runs: impl Fn(usize) -> bool) -> Vec<String> {
    const SUMS: &[u8] = include_bytes!("../../truth/sweep.bin");
    let mut report = Vec::new();
    for (index, name) in SWEPT.iter().enumerate().filter(|(_, name)| !INEXACT.contains(name)) {
        let answer = dispatch::answer(name).unwrap();
        for run in (0..512).filter(|&run| runs(run)) {
            let sum = (0..1 << 23).fold(0u64, |sum, low| {
                let operand = (run as u64) << 23 | low;
                sum.wrapping_add(inputs::mix(operand << 32 | answer(&[operand, 0, 0, 0])))
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
    let value = |bits: u64, kind: &str| match kind {
        "tanh.approx.f32" => f64::from(f32::from_bits(bits as u32)),
        "tanh.approx.f16" => f64::from(f32::from_bits(gpuemu_ptx::numerics::half::f16_to_f32(bits as u16))),
        _ => f64::from(f32::from_bits((bits as u32) << 16)),
    };
    for (index, row) in rows().enumerate().filter(|(_, row)| INEXACT.contains(&row.name)) {
        let answer = dispatch::answer(row.name).unwrap();
        for i in 0..SAMPLES {
            let operand = inputs::operand(row.kinds[0], i as u64, 0);
            let hardware = value(word(ANSWERS, index * (SAMPLES + 1) + 1 + i), row.name);
            let ours = value(answer(&[operand, 0, 0, 0]), row.name);
            let bound = match row.name {
                "tanh.approx.f32" => hardware.abs() * 2f64.powi(-11),
                "tanh.approx.f16" => 2f64.powf(-10.987),
                _ => hardware.abs() * 2f64.powi(-7),
            };
            assert!(
                (ours - hardware).abs() <= bound || (ours.is_nan() && hardware.is_nan()),
                "{} {operand:x}",
                row.name
            );
        }
    }
}
