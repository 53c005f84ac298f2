//! The special-function unit for a whole warp in vectors of the host, on x86-64 with AVX2: see `special_rows`.
//!
//! `ex2`, `rcp` and quotients have a road of their own for rows in which nothing is special: no operand and no result is
//! subnormal, infinite or a NaN. Such a row needs no question about any of its lanes.

use std::arch::x86_64::*;

use super::float::{NAN32, SCALE, SCALED_LEAST};
use super::special_rows::{self as rows, EX2_USE, PACKED_EX2, PACKED_RCP, RCP_USE, Row};
use super::special_tables::Use;

const LANES: usize = 32;

/// Vectors of eight lanes that a row is.
const PARTS: usize = LANES / 8;

type Parts = [__m256i; PARTS];

/// A row aligned to vectors.
#[repr(align(32))]
struct Places(Row);

// The functions that are always inlined are parts of those with AVX2 and must not be called from others: the compiler
// inlines no function that names a feature into another one for certain.

#[inline(always)]
unsafe fn all(x: u32) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_set1_epi32(x as i32) }
}

#[inline(always)]
unsafe fn parts(row: &Row) -> Parts {
    let at = row.as_ptr().cast::<__m256i>();
    // SAFETY: the caller has AVX2; a row is four times eight words.
    unsafe {
        [
            _mm256_loadu_si256(at),
            _mm256_loadu_si256(at.add(1)),
            _mm256_loadu_si256(at.add(2)),
            _mm256_loadu_si256(at.add(3)),
        ]
    }
}

#[inline(always)]
unsafe fn store(parts: Parts, out: &mut Row) {
    for (part, value) in parts.into_iter().enumerate() {
        // SAFETY: the caller has AVX2; a row is four times eight words.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast::<__m256i>().add(part), value) };
    }
}

/// `special_rows::parabolas`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn parabolas<const N: usize>(table: &[u64; N], how: &Use, index: &Row, x: &Row, whole: &Row) -> Row {
    let mut out = [0; LANES];
    // SAFETY: AVX2 is here.
    unsafe { store(sums(table, how, parts(index), parts(x), parts(whole)), &mut out) };
    out
}

/// The parabolas at `x`, with the squares of `whole`.
#[inline(always)]
unsafe fn sums<const N: usize>(table: &[u64; N], how: &Use, index: Parts, x: Parts, whole: Parts) -> Parts {
    const { assert!(N.is_power_of_two()) };
    // SAFETY: the caller has AVX2.
    unsafe {
        let by = |bits: u32| _mm_cvtsi32_si128(bits as i32);
        // Through memory, and not a lane at a time out of a vector, which takes longer: hence volatile.
        let mut places = Places([0; LANES]);
        for (part, index) in index.into_iter().enumerate() {
            let to = places.0.as_mut_ptr().cast::<__m256i>().add(part);
            to.write_volatile(_mm256_and_si256(index, all(N as u32 - 1)));
        }
        let squares = squared(whole);
        let mut out = x;
        for part in 0..PARTS {
            macro_rules! words {
                ($first:literal, $second:literal) => {{
                    // Every place was cut to below `N`, a power of two.
                    let at = |lane: usize| table.as_ptr().cast::<f64>().add(places.0[8 * part + lane] as usize);
                    _mm_loadh_pd(_mm_load_sd(at($first)), at($second))
                }};
            }
            let first = _mm256_castpd_ps(_mm256_set_m128d(words!(4, 5), words!(0, 1)));
            let second = _mm256_castpd_ps(_mm256_set_m128d(words!(6, 7), words!(2, 3)));
            let constant = _mm256_castps_si256(_mm256_shuffle_ps::<0b1101_1101>(first, second));
            let rest = _mm256_castps_si256(_mm256_shuffle_ps::<0b1000_1000>(first, second));
            let slope = _mm256_srai_epi32::<12>(rest);
            let curvature = _mm256_srai_epi32::<20>(_mm256_slli_epi32::<20>(rest));
            let (x, square) = (x[part], _mm256_sll_epi32(squares[part], by(how.square_up)));
            let lower = _mm256_add_epi32(
                _mm256_mullo_epi32(slope, _mm256_and_si256(x, all(127))),
                _mm256_add_epi32(_mm256_mullo_epi32(curvature, square), all(how.offset as u32)),
            );
            let upper = _mm256_mullo_epi32(slope, _mm256_srli_epi32::<7>(x));
            let sum = _mm256_sra_epi32(_mm256_add_epi32(upper, _mm256_srai_epi32::<7>(lower)), by(how.up - 7));
            out[part] = _mm256_srli_epi32::<2>(_mm256_add_epi32(constant, sum));
        }
        out
    }
}

/// `special_rows::squares`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn squares(x: &Row) -> Row {
    let mut out = [0; LANES];
    // SAFETY: AVX2 is here.
    unsafe { store(squared(parts(x)), &mut out) };
    out
}

/// `special_rows::squares`. Of `y`, the upper 16 of the 17 bits, let `h` be the upper eight and `l` the others. What is
/// cut of a partial product lies below its bit 16: of `h * h` nothing is, of `l * l` everything. Each bit `i` of `l`
/// meets `h` twice and adds `h >> (8 - i)`, so that half the sum is `h * h / 2` and those once: all in bytes.
#[inline(always)]
unsafe fn squared(x: Parts) -> Parts {
    // SAFETY: the caller has AVX2.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (mut high, mut low) = (x, x);
        for part in 0..PARTS {
            high[part] = _mm256_and_si256(_mm256_srli_epi32::<9>(x[part]), all(255));
            low[part] = _mm256_and_si256(_mm256_srli_epi32::<1>(x[part]), all(255));
        }
        // Bytes of four vectors in one, in an order that unpacking undoes.
        macro_rules! packed {
            ($parts:ident) => {
                _mm256_packus_epi16(
                    _mm256_packus_epi32($parts[0], $parts[1]),
                    _mm256_packus_epi32($parts[2], $parts[3]),
                )
            };
        }
        let (high, mut low) = (packed!(high), packed!(low));
        let (mut shifted, mut crossed) = (high, zero);
        for left in [127, 63, 31, 15, 7, 3, 1] {
            shifted = _mm256_and_si256(_mm256_srli_epi16::<1>(shifted), _mm256_set1_epi8(left));
            // The highest bit of `low` chooses.
            crossed = _mm256_add_epi8(crossed, _mm256_blendv_epi8(zero, shifted, low));
            low = _mm256_add_epi8(low, low);
        }
        macro_rules! half {
            ($unpack:ident) => {{
                let high = $unpack(high, zero);
                let square = _mm256_srli_epi16::<1>(_mm256_mullo_epi16(high, high));
                _mm256_add_epi16(square, $unpack(crossed, zero))
            }};
        }
        let (first, second) = (half!(_mm256_unpacklo_epi8), half!(_mm256_unpackhi_epi8));
        [
            _mm256_unpacklo_epi16(first, zero),
            _mm256_unpackhi_epi16(first, zero),
            _mm256_unpacklo_epi16(second, zero),
            _mm256_unpackhi_epi16(second, zero),
        ]
    }
}

/// `special_rows::ex2`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn ex2(a: &Row, ftz: bool, out: &mut Row) {
    // SAFETY: AVX2 is here.
    unsafe {
        let a_parts = parts(a);
        let mut inside = all(u32::MAX);
        for a in a_parts {
            let a = _mm256_castsi256_ps(a);
            let above = _mm256_cmp_ps::<_CMP_GE_OQ>(a, _mm256_set1_ps(-126.0));
            let below = _mm256_cmp_ps::<_CMP_LT_OQ>(a, _mm256_set1_ps(128.0));
            inside = _mm256_and_si256(inside, _mm256_castps_si256(_mm256_and_ps(above, below)));
        }
        if _mm256_movemask_epi8(inside) != -1 {
            return any_ex2(a, ftz, out);
        }
        // 23 bits behind the point, cut; a negative number is complemented, not negated, unless it is whole.
        let (mut fixed, mut x, mut index) = (a_parts, a_parts, a_parts);
        for part in 0..PARTS {
            let scaled = _mm256_mul_ps(_mm256_castsi256_ps(a_parts[part]), _mm256_set1_ps(8_388_608.0));
            let cut = _mm256_cvttps_epi32(scaled);
            let whole = _mm256_cmpeq_epi32(_mm256_and_si256(cut, all(0x7f_ffff)), _mm256_setzero_si256());
            let less = _mm256_andnot_si256(whole, _mm256_srai_epi32::<31>(a_parts[part]));
            fixed[part] = _mm256_add_epi32(cut, less);
            x[part] = _mm256_and_si256(fixed[part], all(0x1_ffff));
            index[part] = _mm256_srli_epi32::<17>(fixed[part]);
        }
        let mut results = sums(&PACKED_EX2, &EX2_USE, index, x, x);
        for part in 0..PARTS {
            // The significand's first bit, or its carry, counts in the exponent.
            let exponent = _mm256_and_si256(fixed[part], all(0xff80_0000));
            results[part] = _mm256_add_epi32(_mm256_add_epi32(exponent, all(126 << 23)), results[part]);
        }
        store(results, out);
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline(never)]
unsafe fn any_ex2(a: &Row, ftz: bool, out: &mut Row) {
    *out = rows::any_ex2(a, ftz);
}

/// Whether every lane's exponent has a field from 1 to 252: no scale is needed, and `1 / a` is normal.
#[inline(always)]
unsafe fn is_usual(a: Parts) -> bool {
    // SAFETY: the caller has AVX2.
    unsafe {
        let mut inside = all(u32::MAX);
        for a in a {
            let above = _mm256_sub_epi32(_mm256_and_si256(a, all(0x7fff_ffff)), all(1 << 23));
            let last = all((252 << 23) - 1);
            inside = _mm256_and_si256(inside, _mm256_cmpeq_epi32(_mm256_min_epu32(above, last), above));
        }
        _mm256_movemask_epi8(inside) == -1
    }
}

/// `1 / a` of one lane where `is_usual`.
#[inline(always)]
fn reciprocal(a: u32) -> u32 {
    let x = a & 0xffff;
    // As in `squared`, of `2 * x`.
    let (high, low) = (x >> 8, x & 255);
    let crossed = (1..8).fold(0, |crossed, by| crossed + (high >> by) * (low >> (8 - by) & 1));
    let square = (high * high / 2 + crossed) as i32;
    let segment = PACKED_RCP[(a >> 16) as usize % PACKED_RCP.len()];
    let (constant, rest) = ((segment >> 32) as i64, segment as i32);
    let (slope, curvature) = (i64::from(rest >> 12), i64::from((rest << 20 >> 20) * square));
    let sum = (constant << RCP_USE.up) + slope * i64::from(x) + curvature + i64::from(RCP_USE.offset);
    let exponent = (252 << 23) - (a & 0x7f80_0000);
    a & 0x8000_0000 | (exponent + (sum >> (RCP_USE.up + 2)) as u32)
}

/// `1 / a` where `is_usual`.
#[inline(always)]
unsafe fn reciprocals(a: Parts) -> Parts {
    // SAFETY: the caller has AVX2.
    unsafe {
        let (mut x, mut twice, mut index) = (a, a, a);
        for part in 0..PARTS {
            x[part] = _mm256_and_si256(a[part], all(0xffff));
            twice[part] = _mm256_add_epi32(x[part], x[part]);
            index[part] = _mm256_srli_epi32::<16>(a[part]);
        }
        let mut results = sums(&PACKED_RCP, &RCP_USE, index, x, twice);
        for part in 0..PARTS {
            let exponent = _mm256_sub_epi32(all(252 << 23), _mm256_and_si256(a[part], all(0x7f80_0000)));
            let magnitude = _mm256_add_epi32(exponent, results[part]);
            results[part] = _mm256_or_si256(magnitude, _mm256_and_si256(a[part], all(0x8000_0000)));
        }
        results
    }
}

/// `special_rows::rcp`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn rcp(a: &Row, ftz: bool, out: &mut Row) {
    // SAFETY: AVX2 is here.
    unsafe {
        let parts = parts(a);
        if !is_usual(parts) {
            return any_rcp(a, ftz, out);
        }
        store(reciprocals(parts), out);
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline(never)]
unsafe fn any_rcp(a: &Row, ftz: bool, out: &mut Row) {
    *out = rows::any_rcp(a, ftz);
}

/// `special_rows::div_full`, or with `APPROX` `div_approx`: both are `a * (1 / b)` where `b` is usual.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn div<const APPROX: bool>(a: &Row, b: &Row, ftz: bool, out: &mut Row) {
    // SAFETY: AVX2 is here.
    unsafe {
        let by = parts(b);
        // Rows are often divided by one number: their sum, their count.
        let first = all(b[0]);
        let mut apart = _mm256_setzero_si256();
        for by in by {
            apart = _mm256_or_si256(apart, _mm256_xor_si256(by, first));
        }
        let by = match _mm256_testz_si256(apart, apart) {
            1 if (1 << 23..253 << 23).contains(&(b[0] & 0x7fff_ffff)) => [all(reciprocal(b[0])); PARTS],
            0 if is_usual(by) => reciprocals(by),
            _ => return any_div::<APPROX>(a, b, ftz, out),
        };
        let a = parts(a);
        match ftz {
            true => store(products::<true>(a, by), out),
            false => store(products::<false>(a, by), out),
        }
    }
}

#[target_feature(enable = "avx2,fma")]
#[inline(never)]
unsafe fn any_div<const APPROX: bool>(a: &Row, b: &Row, ftz: bool, out: &mut Row) {
    *out = if APPROX { rows::any_div_approx(a, b, ftz) } else { rows::any_div_full(a, b, ftz) };
}

/// `mul32`, or `mul32_ftz`, by normal numbers.
#[inline(always)]
unsafe fn products<const FTZ: bool>(a: Parts, by: Parts) -> Parts {
    // SAFETY: the caller has AVX2.
    unsafe {
        let sign = _mm256_castsi256_ps(all(0x8000_0000));
        let mut products = a;
        for part in 0..PARTS {
            let by = _mm256_castsi256_ps(by[part]);
            let mut a = _mm256_castsi256_ps(a[part]);
            if FTZ {
                let exponent = _mm256_and_si256(_mm256_castps_si256(a), all(0x7f80_0000));
                let tiny = _mm256_castsi256_ps(_mm256_cmpeq_epi32(exponent, _mm256_setzero_si256()));
                a = _mm256_blendv_ps(a, _mm256_and_ps(a, sign), tiny);
            }
            let mut product = _mm256_mul_ps(a, by);
            let nan = _mm256_castsi256_ps(all(NAN32));
            product = _mm256_blendv_ps(product, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(product, product));
            if FTZ {
                // As `mul32_ftz`: what is tiny before it is rounded.
                let scaled = _mm256_mul_ps(_mm256_mul_ps(a, _mm256_set1_ps(SCALE)), by);
                let magnitude = _mm256_andnot_ps(sign, scaled);
                let tiny = _mm256_cmp_ps::<_CMP_LT_OQ>(magnitude, _mm256_set1_ps(SCALED_LEAST));
                product = _mm256_blendv_ps(product, _mm256_and_ps(product, sign), tiny);
            }
            products[part] = _mm256_castps_si256(product);
        }
        products
    }
}
