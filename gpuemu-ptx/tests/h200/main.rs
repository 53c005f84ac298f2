//! The arithmetic held against what an H200 answered (`truth/README.md`).

mod dispatch;
mod inputs;
mod matrix;

const INSTRUCTIONS: &str = include_str!("../../truth/instructions.txt");
const ANSWERS: &[u8] = include_bytes!("../../truth/instructions.bin");
const SAMPLES: usize = 64;

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
    for (index, row) in rows().enumerate() {
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
