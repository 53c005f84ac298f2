//! Matrix products on recorded fragments.

use crate::inputs::matrix_word;
use gpuemu_ptx::numerics::fragment;
use gpuemu_ptx::numerics::tensor_core::{
    Accumulator, Element, SumRule, multiply_add, multiply_add_bits, multiply_add_f64, multiply_add_fp8_as_f16,
    multiply_add_int,
};

/// What sm_90's `mma.sync` does.
const HOPPER: SumRule = SumRule { fraction_bits: 25, group: 16, result_bits: 23 };
const HOPPER_TF32: SumRule = SumRule { fraction_bits: 25, group: 8, result_bits: 23 };

pub struct Row<'a> {
    pub name: &'a str,
    /// Element kind and registers of a, b, c.
    pub operands: [(&'a str, usize); 3],
}

pub fn rows() -> impl Iterator<Item = Row<'static>> {
    include_str!("../../truth/matrix.txt").lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('|').map(str::trim);
        let name = columns.next().unwrap();
        let operands = std::array::from_fn(|_| {
            let mut words = columns.next().unwrap().split_whitespace();
            (words.next().unwrap(), words.next().unwrap().parse().unwrap())
        });
        Row { name, operands }
    })
}

/// Every lane's registers of `d` of one trial, in the order of the recording.
pub fn answer(row: &Row, trial: u64) -> Vec<u64> {
    let total: usize = row.operands.iter().map(|o| o.1).sum();
    let word = |lane: usize, operand: usize, register: usize| {
        let before: usize = row.operands[..operand].iter().map(|o| o.1).sum();
        matrix_word(row.operands[operand].0, trial, (lane * total + before + register) as u64)
    };
    let shape = row.name.split('.').find(|p| p.starts_with('m') && p.contains('n')).unwrap();
    match shape {
        "m16n8k4" => product::<16, 4>(row, &word),
        "m8n8k4" => product::<8, 4>(row, &word),
        "m16n8k8" => product::<16, 8>(row, &word),
        "m16n8k16" => product::<16, 16>(row, &word),
        "m8n8k16" => product::<8, 16>(row, &word),
        "m16n8k32" => product::<16, 32>(row, &word),
        "m8n8k32" => product::<8, 32>(row, &word),
        "m16n8k64" => product::<16, 64>(row, &word),
        "m16n8k256" => product::<16, 256>(row, &word),
        other => panic!("unknown shape {other}"),
    }
}

fn product<const M: usize, const K: usize>(row: &Row, word: &dyn Fn(usize, usize, usize) -> u64) -> Vec<u64> {
    let parts: Vec<&str> = row.name.split('.').collect();
    let types: Vec<&str> =
        parts.iter().copied().filter(|p| matches!(&p[..1], "f" | "s" | "u" | "b" | "t" | "e") && p.len() < 5).collect();
    let types: Vec<&str> = types.into_iter().filter(|t| t.ends_with(|c: char| c.is_ascii_digit())).collect();
    let (ta, tb, tc) = (types[1], types[2], types[3]);
    let width = match ta {
        "f64" => 64,
        "tf32" => 32,
        "f16" | "bf16" => 16,
        "s4" | "u4" => 4,
        "b1" => 1,
        _ => 8,
    };
    let packed = (32 / width).max(1);
    let mut a = [[0u64; K]; M];
    let mut b = [[0u64; 8]; K];
    let mut c = [[0u64; 8]; M];
    let half = tc == "f16";
    for lane in 0..32 {
        for place in 0..packed {
            let cut = |w: u64| if width == 64 { w } else { w >> (place * width) & ((1 << width) - 1) };
            for register in 0..row.operands[0].1 {
                let (m, k) = fragment::a(lane, register, place, packed, M);
                a[m][k] = cut(word(lane, 0, register));
            }
            for register in 0..row.operands[1].1 {
                let (k, n) = fragment::b(lane, register, place, packed);
                b[k][n] = cut(word(lane, 1, register));
            }
        }
        for register in 0..row.operands[2].1 {
            let w = word(lane, 2, register);
            for i in 0..if half { 2 } else { 1 } {
                let (m, n) = fragment::c(lane, if half { 2 * register + i } else { register });
                c[m][n] = if half { w >> (16 * i) & 0xffff } else { w };
            }
        }
    }
    let narrow = |x: &[[u64; 8]; M]| x.map(|row| row.map(|v| v as u32));
    let a32 = a.map(|row| row.map(|v| v as u32));
    let b32 = b.map(|row| row.map(|v| v as u32));
    let wide = |x: [[u32; 8]; M]| x.map(|row| row.map(u64::from));
    let element = |t: &str| match t {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "tf32" => Element::Tf32,
        "e4m3" => Element::E4m3,
        _ => Element::E5m2,
    };
    let d = match ta {
        "f64" => multiply_add_f64(&a, &b, &c),
        "e4m3" | "e5m2" => {
            let a = a32.map(|row| std::array::from_fn(|k| row[k % K]));
            let b = std::array::from_fn(|k| b32[k % K]);
            wide(multiply_add_fp8_as_f16(HOPPER, (element(ta), element(tb)), &a, &b, &narrow(&c)))
        }
        "f16" | "bf16" | "tf32" => {
            let accumulator = if half { Accumulator::F16 } else { Accumulator::F32 };
            let rule = if ta == "tf32" { HOPPER_TF32 } else { HOPPER };
            wide(multiply_add(rule, (element(ta), element(tb)), accumulator, &a32, &b32, &narrow(&c)))
        }
        "b1" => {
            let words = |bits: &mut dyn Iterator<Item = u32>| bits.enumerate().fold(0, |w, (i, b)| w | b << i);
            let aw =
                a32.map(|row| std::array::from_fn::<u32, 8, _>(|w| words(&mut row[32 * w..][..32].iter().copied())));
            let bw: [[u32; 8]; 8] = std::array::from_fn(|w| {
                std::array::from_fn(|n| words(&mut b32[32 * w..][..32].iter().map(|row| row[n])))
            });
            wide(multiply_add_bits(parts.contains(&"and"), &aw, &bw, &narrow(&c)))
        }
        _ => {
            let value = |v: u32, t: &str| {
                if t.starts_with('s') { (v << (32 - width)) as i32 >> (32 - width) } else { v as i32 }
            };
            let ai = a32.map(|row| row.map(|v| value(v, ta)));
            let bi = b32.map(|row| row.map(|v| value(v, tb)));
            wide(multiply_add_int(parts.contains(&"satfinite"), &ai, &bi, &narrow(&c)))
        }
    };
    let mut out = Vec::new();
    for lane in 0..32 {
        for register in 0..row.operands[2].1 {
            let at = |i| {
                let (m, n) = fragment::c(lane, i);
                d[m][n]
            };
            out.push(if half { at(2 * register) | at(2 * register + 1) << 16 } else { at(register) });
        }
    }
    out
}
