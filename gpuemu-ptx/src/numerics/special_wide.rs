//! The special-function unit's parabola for a whole warp, on x86-64 with AVX2: see `special_rows`.

use std::arch::x86_64::*;

use super::special_tables::Use;

const LANES: usize = 32;

/// `special_rows::parabolas`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn parabolas<const N: usize>(
    table: &[u64; N],
    how: &Use,
    index: &[u32; LANES],
    x: &[u32; LANES],
    whole: &[u32; LANES],
) -> [u32; LANES] {
    let by = |bits: u32| _mm_cvtsi32_si128(bits as i32);
    let all = |x: i32| _mm256_set1_epi32(x);
    // SAFETY: the caller's.
    let square = unsafe { squares(whole) };
    let mut out = [0; LANES];
    for part in 0..LANES / 8 {
        let word = |lane: usize| table[index[8 * part + lane] as usize % N] as i64;
        let first = _mm256_setr_epi64x(word(0), word(1), word(4), word(5));
        let second = _mm256_setr_epi64x(word(2), word(3), word(6), word(7));
        let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
        let constant = _mm256_castps_si256(_mm256_shuffle_ps::<0b1101_1101>(first, second));
        let rest = _mm256_castps_si256(_mm256_shuffle_ps::<0b1000_1000>(first, second));
        let slope = _mm256_srai_epi32::<12>(rest);
        let curvature = _mm256_srai_epi32::<20>(_mm256_slli_epi32::<20>(rest));
        // SAFETY: a row is four times eight words.
        let (x, square) = unsafe {
            let eight = |row: &[u32; LANES]| _mm256_loadu_si256(row.as_ptr().cast::<__m256i>().add(part));
            (eight(x), _mm256_sll_epi32(eight(&square), by(how.square_up)))
        };
        let lower = _mm256_add_epi32(
            _mm256_mullo_epi32(slope, _mm256_and_si256(x, all(127))),
            _mm256_add_epi32(_mm256_mullo_epi32(curvature, square), all(how.offset)),
        );
        let upper = _mm256_mullo_epi32(slope, _mm256_srli_epi32::<7>(x));
        let sum = _mm256_sra_epi32(_mm256_add_epi32(upper, _mm256_srai_epi32::<7>(lower)), by(how.up - 7));
        let sum = _mm256_srli_epi32::<2>(_mm256_add_epi32(constant, sum));
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast::<__m256i>().add(part), sum) };
    }
    out
}

/// `special_rows::squares`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) unsafe fn squares(x: &[u32; LANES]) -> [u32; LANES] {
    let mut out = [0; LANES];
    for half in 0..2 {
        // SAFETY: a row is four times eight words.
        let part = |part: usize| unsafe { _mm256_loadu_si256(x.as_ptr().cast::<__m256i>().add(2 * half + part)) };
        // Sixteen lanes of 16 bits, in an order that unpacking undoes.
        let y = _mm256_packus_epi32(_mm256_srli_epi32::<1>(part(0)), _mm256_srli_epi32::<1>(part(1)));
        let y = _mm256_andnot_si256(_mm256_set1_epi16(1), y);
        let mut sum = _mm256_setzero_si256();
        for bit in 1..16 {
            let taken = _mm256_and_si256(y, _mm256_set1_epi16((1u16 << bit) as i16));
            // Shifted right by 18 less the bit's place in `x`, as the upper half of a product.
            sum = _mm256_add_epi16(sum, _mm256_mulhi_epu16(y, taken));
        }
        let (sum, zero) = (_mm256_srli_epi16::<1>(sum), _mm256_setzero_si256());
        // SAFETY: as above.
        unsafe {
            let to = out.as_mut_ptr().cast::<__m256i>().add(2 * half);
            _mm256_storeu_si256(to, _mm256_unpacklo_epi16(sum, zero));
            _mm256_storeu_si256(to.add(1), _mm256_unpackhi_epi16(sum, zero));
        }
    }
    out
}
