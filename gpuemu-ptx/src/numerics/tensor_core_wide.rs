//! Sums of products of matrices, eight columns an instruction, on x86-64 with AVX2: the usual case, in which no factor,
//! addend or result is an infinity, a NaN or a subnormal result. The model is `tensor_core`'s.

use std::arch::x86_64::*;

use super::sum_rule::{COLUMNS, Element, SPECIAL, SumRule, ZERO};

/// The longest row of the first factor.
const MOST: usize = 32;

/// Rows at once.
const SIDE: usize = 4;

/// How the codes of a format are taken apart.
#[derive(Clone, Copy)]
struct Codes {
    /// Bits to drop.
    unused: u32,
    exponent: u32,
    mantissa: u32,
    /// No infinity, and one NaN.
    full: bool,
}

impl Codes {
    fn of(element: Element) -> Self {
        let (exponent, mantissa) = element.widths();
        let unused = if element == Element::Tf32 { 13 } else { 0 };
        Self { unused, exponent, mantissa, full: element == Element::E4m3 }
    }

    /// Numbers whose significands and exponents `split` gave, where the exponent has five bits at most.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn values(self, significand: __m256i, exponent: __m256i) -> __m256 {
        // That of zero counts for nothing.
        let exponent = _mm256_max_epi32(exponent, _mm256_set1_epi32(LEAST));
        let place = powers(_mm256_sub_epi32(exponent, _mm256_set1_epi32(self.mantissa as i32)));
        _mm256_mul_ps(_mm256_cvtepi32_ps(significand), place)
    }

    /// Signed significands and exponents of eight codes, as `tensor_core` has them.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn split(self, codes: __m256i) -> (__m256i, __m256i) {
        let by = |bits: u32| _mm_cvtsi32_si128(bits as i32);
        let all = |x: i32| _mm256_set1_epi32(x);
        let code = _mm256_srl_epi32(codes, by(self.unused));
        let (top, most) = ((1 << self.exponent) - 1, (1 << self.mantissa) - 1);
        let field = _mm256_and_si256(_mm256_srl_epi32(code, by(self.mantissa)), all(top));
        let fraction = _mm256_and_si256(code, all(most));
        let zero = _mm256_setzero_si256();
        let subnormal = _mm256_cmpeq_epi32(field, zero);
        let significand = _mm256_or_si256(fraction, _mm256_andnot_si256(subnormal, all(most + 1)));
        let bias = (1 << (self.exponent - 1)) - 1;
        let exponent = _mm256_sub_epi32(_mm256_max_epi32(field, all(1)), all(bias));
        let exponent = _mm256_blendv_epi8(exponent, all(ZERO), _mm256_cmpeq_epi32(significand, zero));
        let special = _mm256_cmpeq_epi32(field, all(top));
        let special = match self.full {
            true => _mm256_and_si256(special, _mm256_cmpeq_epi32(fraction, all(most))),
            false => special,
        };
        let exponent = _mm256_blendv_epi8(exponent, all(SPECIAL), special);
        let sign = _mm256_srai_epi32::<31>(_mm256_sll_epi32(code, by(31 - self.exponent - self.mantissa)));
        (_mm256_sub_epi32(_mm256_xor_si256(significand, sign), sign), exponent)
    }
}

/// 2 to the power of eight whole numbers from -126 to 127.
#[target_feature(enable = "avx2")]
#[inline]
fn powers(of: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(of, _mm256_set1_epi32(127))))
}

/// Below the exponent of every product of formats with five bits of exponent, and far from the ends of binary32.
const LEAST: i32 = -60;

/// The upper and the lower words of the binary64 sums of eight whole numbers: below 2^31 both, so that the sum is exact, and
/// cutting its significand cuts the sum.
#[target_feature(enable = "avx2")]
#[inline]
fn total(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let low =
        _mm256_add_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(a)), _mm256_cvtepi32_pd(_mm256_castsi256_si128(b)));
    let high = _mm256_add_pd(
        _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(a)),
        _mm256_cvtepi32_pd(_mm256_extracti128_si256::<1>(b)),
    );
    let (low, high) = (_mm256_castpd_ps(low), _mm256_castpd_ps(high));
    let upper = _mm256_castps_si256(_mm256_shuffle_ps::<0b1101_1101>(low, high));
    let lower = _mm256_castps_si256(_mm256_shuffle_ps::<0b1000_1000>(low, high));
    let ordered = |words| _mm256_permute4x64_epi64::<0b1101_1000>(words);
    (ordered(upper), ordered(lower))
}

/// `tensor_core::multiply_add` into binary32, or `None` where something unusual takes part.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn multiply_add<const M: usize, const K: usize>(
    rule: SumRule,
    formats: (Element, Element),
    a: &[[u32; K]; M],
    b: &[[u32; COLUMNS]; K],
    c: &[[u32; COLUMNS]; M],
) -> Option<[[u32; COLUMNS]; M]> {
    let fraction = formats.0.widths().1 + formats.1.widths().1;
    let group = rule.group as usize;
    // Products shifted up stay below 2^27, and sixteen of them below 2^31.
    if rule.fraction_bits < fraction
        || rule.fraction_bits > 25
        || !(1..=16).contains(&group)
        || !K.is_multiple_of(group)
        || K > MOST
    {
        return None;
    }
    let by = |bits: u32| _mm_cvtsi32_si128(bits as i32);
    let all = |x: i32| _mm256_set1_epi32(x);
    let (up, c_up) = (by(rule.fraction_bits - fraction), by(rule.fraction_bits.saturating_sub(23)));
    let c_down = all(23u32.saturating_sub(rule.fraction_bits) as i32);
    let kept = all(!((1 << (23 - rule.result_bits)) - 1));
    let (in_a, in_b) = (Codes::of(formats.0), Codes::of(formats.1));
    let in_c = Codes { unused: 0, exponent: 8, mantissa: 23, full: false };
    // SAFETY: rows of eight words.
    let load = |row: &[u32; COLUMNS]| unsafe { _mm256_loadu_si256(row.as_ptr().cast()) };
    let zero = _mm256_setzero_si256();
    let (mut b_significand, mut b_exponent) = ([zero; K], [zero; K]);
    // Numbers with short exponents are numbers of binary32, which has room for their products. Cutting one to a whole
    // number of the sum's last place is one instruction then.
    let short = in_a.exponent <= 5 && in_b.exponent <= 5;
    let mut b_value = [_mm256_setzero_ps(); K];
    for k in 0..K {
        (b_significand[k], b_exponent[k]) = in_b.split(load(&b[k]));
        if short {
            b_value[k] = in_b.values(b_significand[k], b_exponent[k]);
        }
    }
    let mut unusual = zero;
    let mut d = *c;
    // Some rows side by side: each is a chain in which every step waits for the one before.
    for (rows, out) in a.chunks(SIDE).zip(d.chunks_mut(SIDE)) {
        let (mut significand, mut exponent) = ([[0i32; MOST]; SIDE], [[0i32; MOST]; SIDE]);
        let mut value = [[0f32; MOST]; SIDE];
        let mut so_far = [zero; SIDE];
        for (r, row) in rows.iter().enumerate() {
            let mut codes = [0u32; MOST];
            codes[..K].copy_from_slice(row);
            for k in (0..K).step_by(8) {
                // SAFETY: eight words of each, since `MOST` is a multiple of eight and no less than `K`.
                unsafe {
                    let (x, e) = in_a.split(_mm256_loadu_si256(codes.as_ptr().add(k).cast()));
                    _mm256_storeu_si256(significand[r].as_mut_ptr().add(k).cast(), _mm256_sll_epi32(x, up));
                    _mm256_storeu_si256(exponent[r].as_mut_ptr().add(k).cast(), e);
                    if short {
                        _mm256_storeu_ps(value[r].as_mut_ptr().add(k), in_a.values(x, e));
                    }
                }
            }
            so_far[r] = load(&out[r]);
        }
        for first in (0..K).step_by(group) {
            let here = first..first + group;
            // No `map`: it would not be compiled for AVX2.
            let (mut addend, mut largest) = ([(zero, zero); SIDE], [zero; SIDE]);
            for r in 0..SIDE {
                addend[r] = in_c.split(so_far[r]);
                largest[r] = addend[r].1;
            }
            for (k, &y) in here.clone().zip(&b_exponent[here.clone()]) {
                for r in 0..SIDE {
                    largest[r] = _mm256_max_epi32(largest[r], _mm256_add_epi32(all(exponent[r][k]), y));
                }
            }
            let mut sum = [zero; SIDE];
            if short {
                let mut scale = [_mm256_setzero_ps(); SIDE];
                for r in 0..SIDE {
                    let largest = _mm256_max_epi32(largest[r], all(LEAST));
                    scale[r] = powers(_mm256_sub_epi32(all(rule.fraction_bits as i32), largest));
                }
                for (k, &y) in here.clone().zip(&b_value[here]) {
                    for r in 0..SIDE {
                        let product = _mm256_mul_ps(_mm256_set1_ps(value[r][k]), y);
                        sum[r] = _mm256_add_epi32(sum[r], _mm256_cvttps_epi32(_mm256_mul_ps(product, scale[r])));
                    }
                }
            } else {
                let second = b_significand[here.clone()].iter().zip(&b_exponent[here.clone()]);
                for (k, (&y, &y_exponent)) in here.zip(second) {
                    for r in 0..SIDE {
                        let product = _mm256_mullo_epi32(all(significand[r][k]), y);
                        let shift = _mm256_sub_epi32(largest[r], _mm256_add_epi32(all(exponent[r][k]), y_exponent));
                        let term = _mm256_srlv_epi32(_mm256_abs_epi32(product), shift);
                        sum[r] = _mm256_add_epi32(sum[r], _mm256_sign_epi32(term, product));
                    }
                }
            }
            for r in 0..SIDE {
                let (significand, exponent) = addend[r];
                let shift = _mm256_add_epi32(_mm256_sub_epi32(largest[r], exponent), c_down);
                let term = _mm256_srlv_epi32(_mm256_sll_epi32(_mm256_abs_epi32(significand), c_up), shift);
                let term = _mm256_sign_epi32(term, significand);
                let (upper, lower) = total(sum[r], term);
                let place = _mm256_sub_epi32(largest[r], all(rule.fraction_bits as i32 + 1023 - 127));
                let field = _mm256_add_epi32(_mm256_and_si256(_mm256_srli_epi32::<20>(upper), all(2047)), place);
                let mantissa = _mm256_or_si256(
                    _mm256_slli_epi32::<3>(_mm256_and_si256(upper, all(0xf_ffff))),
                    _mm256_srli_epi32::<29>(lower),
                );
                let sign = _mm256_and_si256(upper, all(i32::MIN));
                let bits = _mm256_or_si256(_mm256_or_si256(sign, _mm256_slli_epi32::<23>(field)), mantissa);
                let nothing = _mm256_cmpeq_epi32(_mm256_or_si256(upper, lower), zero);
                so_far[r] = _mm256_andnot_si256(nothing, _mm256_and_si256(bits, kept));
                let outside = _mm256_or_si256(_mm256_cmpgt_epi32(all(1), field), _mm256_cmpgt_epi32(field, all(254)));
                unusual = _mm256_or_si256(unusual, _mm256_andnot_si256(nothing, outside));
                unusual = _mm256_or_si256(unusual, _mm256_cmpgt_epi32(largest[r], all(SPECIAL / 2 - 1)));
            }
        }
        for (out, row) in out.iter_mut().zip(so_far) {
            // SAFETY: a row of eight words.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), row) };
        }
    }
    if _mm256_testz_si256(unusual, unusual) == 1 { Some(d) } else { None }
}
