//! The inputs of the recordings, computed as `truth/record.cpp` computes them.

pub fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn low(n: u64) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

fn clamp_exponent(exp: u64, top: u64) -> u64 {
    if exp <= top {
        exp
    } else if (exp as i64) < 0 {
        0
    } else {
        top - 1
    }
}

fn floats(r: u64, e: u64, m: u64) -> u64 {
    let q = mix(r);
    let w = mix(q);
    let (bias, top) = (low(e - 1), low(e));
    let mut mant = q & low(m);
    let near = (w & 7) as i64 - 3;
    let wide = ((w >> 3) & 63) as i64 - 32;
    let t = (w >> 16) % (m + 1);
    let exp = match r & 7 {
        0 => {
            let exps = [0, 0, 1, bias, top - 1, top, top, bias - 1];
            let mants = [0, 0, 1, low(m), 1 << (m - 1), (1 << (m - 1)) | 1, mant, 2];
            mant = mants[(r >> 12) as usize & 7];
            exps[(r >> 9) as usize & 7]
        }
        1 if m == 52 => (w >> 40) & top,
        1 => (q >> 52) & top,
        2 => {
            mant &= w & mix(w);
            (w >> 40) & top
        }
        3 => bias.wrapping_add_signed(near),
        4 => {
            mant &= w & mix(w);
            bias.wrapping_add_signed(near)
        }
        5 => (bias + (w >> 3) % (2 * m + 4)).wrapping_sub(m + 2),
        6 => {
            mant &= !low(t);
            bias + (w >> 3) % (m + 20) - 2
        }
        _ => {
            let half: u64 = if t > 0 { 1 << (t - 1) } else { 0 };
            let tails = [half, half.wrapping_sub(1), half + 1, 0];
            mant = (mant & !low(t)).wrapping_add(tails[(w >> 9) as usize & 3]) & low(m);
            bias.wrapping_add_signed(wide)
        }
    };
    ((r >> 8) & 1) << (e + m) | clamp_exponent(exp, top) << m | mant
}

fn integers(r: u64, w: u64) -> u64 {
    let q = mix(r);
    let special = [0, 1, 2, low(w), low(w) - 1, 1 << (w - 1), low(w - 1), (1 << (w - 1)) + 1];
    let v = match r & 3 {
        0 => q,
        1 => special[(r >> 9) as usize & 7],
        2 => (q & low(w)) >> ((r >> 9) % w),
        _ => !((q & low(w)) >> ((r >> 9) % w)),
    };
    v & low(w)
}

/// Operands whose product, quotient or fused sum lies next to the smallest normal number, 2^least.
fn edge(op: u8, i: u64, k: u64, m: u64, least: i64) -> u64 {
    let r = mix(i * 8);
    let w = mix(r);
    let one = 1u64 << m;
    let a = one | (r & low(m));
    let bias = 1 - least;
    let near = if op == b'q' { a } else { (one << (m + 1)) / a };
    let b = near.wrapping_add_signed((w & 7) as i64 - 3).clamp(one, 2 * one - 1);
    let e = ((w >> 8) % 7) as i64 - 3;
    let sign = ((w >> 16) + if k == 1 { w >> 17 } else { 0 }) & 1;
    let width = if m == 10 { 5 } else { 8 };
    let pack = |s: u64, exp: i64, x: u64| s << (m + width) | ((exp + bias) as u64) << m | (x & low(m));
    let total = least - 1 + i64::from(op == b'g');
    match (op, k) {
        (b'q', 0) => pack(sign, least, b),
        (b'q', _) => pack(sign, 0, a),
        (_, 0) => pack(sign, e, a),
        (_, 1) => pack(sign, total - e, b),
        _ => pack(((w >> 17) & 1) ^ 1, least, one | ((w >> 20) & 3)),
    }
}

/// How many trials were recorded.
pub fn trials(kind: &str) -> u64 {
    match kind {
        "hi20" => 1 << 21,
        "e16" => 1 << 16,
        _ => 1 << 14,
    }
}

/// Operand `k` of trial `i`.
pub fn operand(kind: &str, i: u64, k: u64) -> u64 {
    let r = mix(i * 8 + k);
    let op = kind.as_bytes()[0];
    let next = mix(r.wrapping_add(1));
    match kind {
        "t32" | "g32" | "q32" => edge(op, i, k, 23, -126),
        "t16" | "g16" => edge(op, i, k, 10, -14),
        "hi20" => (0x3ff0_0000 + i) << 32,
        "f32" => floats(r, 8, 23),
        "f64" => floats(r, 11, 52),
        "f16" => floats(r, 5, 10),
        "bf16" => floats(r, 8, 7),
        "f16x2" => floats(r, 5, 10) | floats(next, 5, 10) << 16,
        "bf16x2" => floats(r, 8, 7) | floats(next, 8, 7) << 16,
        "e16" => (i * 40503) & 0xffff,
        "u16" => integers(r, 16),
        "u32" => integers(r, 32),
        "u64" => integers(r, 64),
        "r32" => mix(r) & low(32),
        "sh" => {
            if r & 1 != 0 {
                mix(r) % 80
            } else {
                integers(r >> 1, 32)
            }
        }
        "byte" => {
            if r & 3 != 0 {
                mix(r) % 70
            } else {
                mix(r) & 255
            }
        }
        "small" => ((mix(r) % 40) as i64 - 20) as u64 & low(32),
        other => panic!("unknown kind {other}"),
    }
}

fn element(r: u64, e: u64, m: u64, trial: u64) -> u64 {
    let q = mix(r);
    let (bias, top) = (low(e - 1), low(e));
    let mut mant = q & low(m);
    let kind = trial & 15;
    if kind == 15 && e > 4 {
        return floats(r, e, m);
    }
    if kind >= 14 {
        return q & low(e + m + 1);
    }
    let exp = if r & 7 == 0 {
        let zero = (r >> 9) & 3 == 0;
        if zero || (r >> 11) & 1 == 0 {
            mant = 0;
        }
        if (r >> 9) & 3 != 0 { 0 } else { bias }
    } else if kind < 6 {
        bias + (r >> 9) % 3 - 1
    } else if kind < 10 {
        (bias + (r >> 9) % 11).wrapping_sub(5)
    } else if kind < 13 {
        (r >> 9) % top
    } else {
        (r >> 9) % 3
    };
    let exp = if (exp as i64) < 0 { 0 } else { exp.min(top - 1) };
    ((r >> 8) & 1) << (e + m) | exp << m | mant
}

/// Word `index` of the operands of a matrix product.
pub fn matrix_word(kind: &str, trial: u64, index: u64) -> u64 {
    let r = mix((trial << 20) + index);
    match kind {
        "f16" => element(r, 5, 10, trial) | element(mix(r.wrapping_add(1)), 5, 10, trial) << 16,
        "bf16" => element(r, 8, 7, trial) | element(mix(r.wrapping_add(1)), 8, 7, trial) << 16,
        "f32" => element(r, 8, 23, trial),
        "f64" => element(r, 11, 52, trial),
        "e4m3" | "e5m2" => {
            let e = if kind == "e4m3" { 4 } else { 5 };
            (0..4).fold(0, |v, j| v | element(mix(r.wrapping_add(j)), e, 7 - e, trial) << (8 * j))
        }
        "ordered" => places(r, &[4, 8, 9, 12, 13, 14]),
        "any" => places(r, &[4, 8, 9, 12, 13, 14, 1, 2, 3, 6, 7, 11]),
        "single" => places(r, &[4, 14]),
        _ => {
            let v = mix(r) & low(32);
            match trial & 3 {
                1 => v & !0x8080_8080,
                3 => v | 0x8080_8080,
                _ => v,
            }
        }
    }
}

/// Eight of the ways to place the elements of a sparse matrix, four bits each.
fn places(r: u64, ways: &[u64]) -> u64 {
    let mut q = r;
    (0..8).fold(0, |v, j| {
        let way = ways[q as usize % ways.len()];
        q = mix(q);
        v | way << (4 * j)
    })
}

/// The checksum of the recordings.
pub fn fnv(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(1_469_598_103_934_665_603, |h, w| (h ^ w).wrapping_mul(1_099_511_628_211))
}
