//! The sums of products of matrix instructions, bit for bit.
//!
//! The model (Fasi, Higham, Mikaitis, Pranesh 2021; Khattak and Mikaitis 2025): products are exact and not normalised;
//! products and accumulator are aligned to the largest exponent among them, cut toward zero to a number of fraction
//! bits, and added as integers; the sum is normalised and cut to binary32, or rounded to nearest even for a binary16
//! result. A long k is several such sums, one after the other. What differs between architectures is a `SumRule`.

use super::convert::{E4M3, E5M2, small_to_f16};
use super::exact::{F16, F32, Rounding};
use super::float::{NAN32, add32, fma32, fma64, mul32};
use super::half::{add_f16, f16_to_f32, f32_to_f16};
pub use super::sum_rule::{Accumulator, Element, SumRule};
use super::sum_rule::{COLUMNS, SPECIAL, ZERO};
#[cfg(target_arch = "x86_64")]
use super::tensor_core_wide;

/// An operand taken apart: `significand / 2^fraction * 2^exponent`. A zero has an exponent below all others, an infinity
/// or NaN one above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    significand: i32,
    exponent: i32,
}

#[inline(always)]
fn split_element(element: Element, code: u32) -> Part {
    let (exponent, mantissa) = element.widths();
    let code = if element == Element::Tf32 { code >> 13 } else { code };
    split(code, exponent, mantissa, element == Element::E4m3)
}

/// Takes a code apart; `full` formats have no infinity and one NaN.
#[inline(always)]
fn split(code: u32, exponent: u32, mantissa: u32, full: bool) -> Part {
    let top = (1 << exponent) - 1;
    let (field, fraction) = (code >> mantissa & top, code & ((1 << mantissa) - 1));
    let negative = code >> (exponent + mantissa) & 1 != 0;
    let special = field == top && (!full || fraction == (1 << mantissa) - 1);
    let bias = (1 << (exponent - 1)) - 1;
    let significand = if field == 0 { fraction } else { fraction | 1 << mantissa } as i32;
    let signed = |x: i32| if negative { -x } else { x };
    if special {
        Part { significand: if fraction == 0 { signed(1) } else { 0 }, exponent: SPECIAL }
    } else if significand == 0 {
        Part { significand: 0, exponent: ZERO }
    } else {
        Part { significand: signed(significand), exponent: field.max(1) as i32 - bias }
    }
}

/// Columns of eight values.
type Lanes = [i32; COLUMNS];

/// `d = a * b + c` for `M` rows, eight columns and `K` products: `a` by row, `b` by k, codes in the low bits. A wider
/// matrix is several calls.
#[inline(always)]
pub fn multiply_add<const M: usize, const K: usize>(
    rule: SumRule,
    formats: (Element, Element),
    accumulator: Accumulator,
    a: &[[u32; K]; M],
    b: &[[u32; COLUMNS]; K],
    c: &[[u32; COLUMNS]; M],
) -> [[u32; COLUMNS]; M] {
    #[cfg(target_arch = "x86_64")]
    if accumulator == Accumulator::F32 && std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the host has AVX2.
        if let Some(d) = unsafe { tensor_core_wide::multiply_add(rule, formats, a, b, c) } {
            return d;
        }
    }
    any(rule, formats, accumulator, a, b, c)
}

/// `multiply_add` of anything, on any host.
#[inline(never)]
fn any<const M: usize, const K: usize>(
    rule: SumRule,
    formats: (Element, Element),
    accumulator: Accumulator,
    a: &[[u32; K]; M],
    b: &[[u32; COLUMNS]; K],
    c: &[[u32; COLUMNS]; M],
) -> [[u32; COLUMNS]; M] {
    let mut b_significand = [[0; COLUMNS]; K];
    let mut b_exponent = [[ZERO; COLUMNS]; K];
    for k in 0..K {
        for n in 0..COLUMNS {
            let part = split_element(formats.1, b[k][n]);
            b_significand[k][n] = part.significand;
            b_exponent[k][n] = part.exponent;
        }
    }
    let fraction = formats.0.widths().1 + formats.1.widths().1;
    let group = rule.group as usize;
    let mut d = *c;
    for (row, out) in a.iter().zip(d.iter_mut()) {
        let mut parts = [Part { significand: 0, exponent: ZERO }; K];
        for (part, &code) in parts.iter_mut().zip(row) {
            *part = split_element(formats.0, code);
        }
        let mut from = 0;
        while from < K {
            let to = (from + group).min(K);
            let range = from..to;
            *out = group_sum(
                rule,
                fraction,
                accumulator,
                &parts[range.clone()],
                &b_significand[range.clone()],
                &b_exponent[range],
                out,
            );
            from = to;
        }
    }
    d
}

/// fp8 where the hardware has no such product (`mma.sync` on sm_90): the operands are unpacked to binary16, where their
/// subnormals are normal, and go in pairs: first the lower two of each four k, then the upper two, a chain that starts
/// from zero and is added to `c` at the end, to nearest even. `rule` is that of binary16.
#[inline]
pub fn multiply_add_fp8_as_f16<const M: usize, const K: usize>(
    rule: SumRule,
    formats: (Element, Element),
    accumulator: Accumulator,
    a: &[[u32; K]; M],
    b: &[[u32; COLUMNS]; K],
    c: &[[u32; COLUMNS]; M],
) -> [[u32; COLUMNS]; M] {
    let half =
        |format, code: u32| u32::from(small_to_f16(code as u8, if format == Element::E4m3 { E4M3 } else { E5M2 }));
    let order = |k: usize| k % (K / 2) / 2 * 4 + k % 2 + k / (K / 2) * 2;
    let a = a.map(|row| std::array::from_fn(|k| half(formats.0, row[order(k)])));
    let b = std::array::from_fn(|k| b[order(k)].map(|code| half(formats.1, code)));
    let zero = [[0; COLUMNS]; M];
    // Two products, of half the terms each.
    let rule = SumRule { group: rule.group.min(K as u32 / 2), ..rule };
    let mut d = multiply_add::<M, K>(rule, (Element::F16, Element::F16), accumulator, &a, &b, &zero);
    for (row, c) in d.iter_mut().zip(c) {
        for (x, &c) in row.iter_mut().zip(c) {
            *x = match accumulator {
                Accumulator::F32 => add32(*x, c, Rounding::Nearest),
                Accumulator::F16 => u32::from(add_f16(*x as u16, c as u16)),
            };
        }
    }
    d
}

/// One sum for each column.
#[inline(always)]
fn group_sum(
    rule: SumRule,
    fraction: u32,
    accumulator: Accumulator,
    a: &[Part],
    b_significand: &[Lanes],
    b_exponent: &[Lanes],
    c: &[u32; COLUMNS],
) -> [u32; COLUMNS] {
    let c = c.map(|code| match accumulator {
        Accumulator::F32 => split(code, 8, 23, false),
        Accumulator::F16 => split(code, 5, 10, false),
    });
    let mut largest = c.map(|part| part.exponent);
    for (x, e) in a.iter().zip(b_exponent) {
        for n in 0..COLUMNS {
            largest[n] = largest[n].max(x.exponent + e[n]);
        }
    }
    // Left by `up` when positive: a product has `fraction` bits behind the point, a term `fraction_bits`.
    let up = rule.fraction_bits as i32 - fraction as i32;
    let mut total = [0i64; COLUMNS];
    // Sixteen terms below 4 * 2^25 stay within 32 bits.
    for first in (0..a.len()).step_by(16) {
        let mut sum = [0i32; COLUMNS];
        for k in first..(first + 16).min(a.len()) {
            for n in 0..COLUMNS {
                let product = a[k].significand * b_significand[k][n];
                let shift = (largest[n] - a[k].exponent - b_exponent[k][n]).min(31) as u32;
                let magnitude = if up >= 0 { product.unsigned_abs() << up } else { product.unsigned_abs() >> -up };
                let term = (magnitude >> shift) as i32;
                sum[n] += if product < 0 { -term } else { term };
            }
        }
        for n in 0..COLUMNS {
            total[n] += i64::from(sum[n]);
        }
    }
    let c_fraction = if accumulator == Accumulator::F32 { 23 } else { 10 };
    let mut d = [0; COLUMNS];
    for n in 0..COLUMNS {
        let down = (c_fraction + largest[n] - c[n].exponent).min(63);
        let term = (i64::from(c[n].significand.unsigned_abs()) << rule.fraction_bits) >> down;
        let sum = total[n] + if c[n].significand < 0 { -term } else { term };
        d[n] = if largest[n] >= SPECIAL / 2 {
            special(accumulator, a, |k| Part { significand: b_significand[k][n], exponent: b_exponent[k][n] }, c[n])
        } else {
            finish(rule, accumulator, sum, largest[n] - rule.fraction_bits as i32)
        };
    }
    d
}

/// `sum * 2^exponent` in the result's format.
#[inline(always)]
fn finish(rule: SumRule, accumulator: Accumulator, sum: i64, exponent: i32) -> u32 {
    let (negative, magnitude) = (sum < 0, sum.unsigned_abs());
    // A sum that comes to nothing is +0, whatever its sign was.
    if accumulator == Accumulator::F16 {
        let bits = F16.pack(negative, exponent, u128::from(magnitude), Rounding::Nearest) as u32;
        return if bits == 0x8000 { 0 } else { bits };
    }
    if magnitude == 0 {
        return 0;
    }
    let length = 64 - magnitude.leading_zeros() as i32;
    let field = exponent + length - 1 + 127;
    let sign = u32::from(negative) << 31;
    let bits = if field > 254 {
        return sign | 0x7f80_0000;
    } else if field > 0 {
        let significand = if length > 24 { magnitude >> (length - 24) } else { magnitude << (24 - length) } as u32;
        (field as u32) << 23 | significand & 0x7f_ffff
    } else {
        F32.pack(false, exponent, u128::from(magnitude), Rounding::Zero) as u32
    };
    let bits = bits & !((1 << (23 - rule.result_bits)) - 1);
    if bits == 0 { 0 } else { sign | bits }
}

/// A sum in which an infinity or a NaN takes part.
#[cold]
fn special(accumulator: Accumulator, a: &[Part], b: impl Fn(usize) -> Part, c: Part) -> u32 {
    let (nan, infinity, top) = match accumulator {
        Accumulator::F32 => (NAN32, 0x7f80_0000, 31),
        Accumulator::F16 => (0x7fff, 0x7c00, 15),
    };
    let mut signs = [false; 2];
    let mut note = |part: Part| {
        signs[usize::from(part.significand < 0)] = true;
        part.significand != 0
    };
    for (k, &x) in a.iter().enumerate() {
        let y = b(k);
        if x.exponent < SPECIAL && y.exponent < SPECIAL {
            continue;
        }
        // Zero times infinity and any NaN have a zero significand here.
        if !note(Part { significand: x.significand.signum() * y.significand.signum(), exponent: SPECIAL }) {
            return nan;
        }
    }
    if c.exponent == SPECIAL && !note(c) {
        return nan;
    }
    match signs {
        [true, true] => nan,
        [_, negative] => infinity | u32::from(negative) << top,
    }
}

/// m8n8k4 of binary16 where the tensor core has no such product (sm_80 and later), as the routine has it that compilers
/// write: in binary32, `c` too. For a result in binary32 a chain of fused multiply-adds, to which `c` is added; for one
/// in binary16 the sums of the lower and of the upper two products, added to `c` in this order.
#[inline]
pub fn multiply_add_chain<const M: usize>(
    accumulator: Accumulator,
    a: &[[u32; 4]; M],
    b: &[[u32; COLUMNS]; 4],
    c: &[[u32; COLUMNS]; M],
) -> [[u32; COLUMNS]; M] {
    const NEAREST: Rounding = Rounding::Nearest;
    let wide = |code: u32| f16_to_f32(code as u16);
    let mut d = *c;
    for (m, row) in d.iter_mut().enumerate() {
        for (n, x) in row.iter_mut().enumerate() {
            let a = a[m].map(wide);
            let b = b.map(|row| wide(row[n]));
            *x = match accumulator {
                Accumulator::F32 => {
                    let sum = (0..4).fold(0, |sum, k| fma32(a[k], b[k], sum, NEAREST));
                    add32(sum, *x, NEAREST)
                }
                Accumulator::F16 => {
                    let pair = |k: usize| fma32(a[k + 1], b[k + 1], mul32(a[k], b[k], NEAREST), NEAREST);
                    f32_to_f16(add32(add32(*x, pair(0), NEAREST), pair(2), NEAREST)).into()
                }
            };
        }
    }
    d
}

/// The binary64 product: fused multiply-adds in order of k.
#[inline]
pub fn multiply_add_f64<const M: usize, const K: usize>(
    a: &[[u64; K]; M],
    b: &[[u64; COLUMNS]; K],
    c: &[[u64; COLUMNS]; M],
) -> [[u64; COLUMNS]; M] {
    let mut d = *c;
    for m in 0..M {
        for k in 0..K {
            for n in 0..COLUMNS {
                d[m][n] = fma64(a[m][k], b[k][n], d[m][n], Rounding::Nearest);
            }
        }
    }
    d
}

/// The integer product of bytes or nibbles, already widened: exact, then wrapped to 32 bits or clamped (`.satfinite`).
#[inline]
pub fn multiply_add_int<const M: usize, const K: usize>(
    satfinite: bool,
    a: &[[i32; K]; M],
    b: &[[i32; COLUMNS]; K],
    c: &[[u32; COLUMNS]; M],
) -> [[u32; COLUMNS]; M] {
    let mut d = *c;
    for m in 0..M {
        // At most 64 products of 2^16.
        let mut sum = [0i32; COLUMNS];
        for k in 0..K {
            for n in 0..COLUMNS {
                sum[n] += a[m][k] * b[k][n];
            }
        }
        for n in 0..COLUMNS {
            let x = d[m][n] as i32;
            d[m][n] = if satfinite { x.saturating_add(sum[n]) } else { x.wrapping_add(sum[n]) } as u32;
        }
    }
    d
}

/// The product of single bits, `W` words of 32 of them: counts of ones under `and`, or else exclusive or.
#[inline]
pub fn multiply_add_bits<const M: usize, const W: usize>(
    and: bool,
    a: &[[u32; W]; M],
    b: &[[u32; COLUMNS]; W],
    c: &[[u32; COLUMNS]; M],
) -> [[u32; COLUMNS]; M] {
    let mut d = *c;
    for m in 0..M {
        for w in 0..W {
            for n in 0..COLUMNS {
                let hits = if and { a[m][w] & b[w][n] } else { a[m][w] ^ b[w][n] };
                d[m][n] = d[m][n].wrapping_add(hits.count_ones());
            }
        }
    }
    d
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Codes of every kind: mostly in the middle of their range, some at its ends, some that are no numbers.
    fn codes(element: Element, state: &mut u32) -> u32 {
        let mut next = || {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *state >> 8
        };
        let (exponent, mantissa) = element.widths();
        let bits = exponent + mantissa + 1;
        let code = match next() % 64 {
            0 => (next() << 8) ^ next(),
            1 => 0,
            _ => {
                let bias = (1 << (exponent - 1)) - 1;
                let field = bias - 3 + next() % 6;
                ((next() % 2) << (bits - 1)) | (field << mantissa) | (next() & ((1 << mantissa) - 1))
            }
        };
        let unused = if element == Element::Tf32 { 13 } else { 0 };
        (code & ((1u64 << bits) - 1) as u32) << unused
    }

    fn agrees<const K: usize>(rule: SumRule, formats: (Element, Element)) {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let (mut usual, mut state) = (0, K as u32);
        for round in 0..400u32 {
            let a: [[u32; K]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| codes(formats.0, &mut state)));
            let b: [[u32; COLUMNS]; K] = std::array::from_fn(|_| std::array::from_fn(|_| codes(formats.1, &mut state)));
            let c: [[u32; COLUMNS]; 16] = std::array::from_fn(|m| {
                std::array::from_fn(|n| match (round, m, n) {
                    (0..8, _, _) => 0,
                    (8..16, 3, 5) => 0x7f80_0000,
                    (16..24, 7, 1) => 0x0000_1234,
                    _ => codes(Element::Tf32, &mut state) | state & 0x1fff,
                })
            });
            // SAFETY: the host has AVX2.
            if let Some(d) = unsafe { tensor_core_wide::multiply_add(rule, formats, &a, &b, &c) } {
                usual += 1;
                assert_eq!(d, any(rule, formats, Accumulator::F32, &a, &b, &c), "{formats:?} {rule:?} {round}");
            }
        }
        assert!(usual > 20, "{formats:?}: {usual} of 400");
    }

    #[test]
    fn usual_sums_are_the_sums_of_the_model() {
        let rule = |fraction_bits, group, result_bits| SumRule { fraction_bits, group, result_bits };
        for format in [Element::F16, Element::Bf16] {
            for rule in [rule(23, 4, 23), rule(24, 8, 23), rule(25, 16, 23)] {
                agrees::<16>(rule, (format, format));
            }
        }
        agrees::<8>(rule(24, 4, 23), (Element::Tf32, Element::Tf32));
        agrees::<4>(rule(24, 4, 23), (Element::Tf32, Element::Tf32));
        for formats in [(Element::E4m3, Element::E5m2), (Element::E5m2, Element::E4m3)] {
            agrees::<32>(rule(13, 16, 13), formats);
        }
    }
}
