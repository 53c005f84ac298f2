//! The fast pass in AVX2: what the portable loop says, in the order of its lines, four elements at a time.

use super::{LANES, Sums};
use crate::validate::grid::{EXPONENT, Grid};
use half::{bf16, f16};
use std::arch::x86_64::*;

/// A number that four lanes of float64 are loaded from.
pub(in crate::validate) trait Lane: Copy + Into<f64> {
    /// Four of them as float64.
    fn load(from: &[Self; LANES]) -> __m256d;
}

impl Lane for f32 {
    #[inline(always)]
    fn load(from: &[f32; LANES]) -> __m256d {
        // SAFETY: sixteen bytes behind the reference are readable; only functions with AVX2 call this.
        unsafe { _mm256_cvtps_pd(_mm_loadu_ps(from.as_ptr())) }
    }
}

impl Lane for f64 {
    #[inline(always)]
    fn load(from: &[f64; LANES]) -> __m256d {
        // SAFETY: thirty-two bytes behind the reference are readable; only functions with AVX2 call this.
        unsafe { _mm256_loadu_pd(from.as_ptr()) }
    }
}

impl Lane for f16 {
    #[inline(always)]
    fn load(from: &[f16; LANES]) -> __m256d {
        // SAFETY: eight bytes behind the reference are readable; only functions with AVX2 and F16C call this.
        unsafe { _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(from.as_ptr().cast()))) }
    }
}

impl Lane for bf16 {
    #[inline(always)]
    fn load(from: &[bf16; LANES]) -> __m256d {
        // The upper half of a float32.
        // SAFETY: eight bytes behind the reference are readable; only functions with AVX2 call this.
        unsafe {
            let words = _mm_cvtepu16_epi32(_mm_loadl_epi64(from.as_ptr().cast()));
            _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32::<16>(words)))
        }
    }
}

/// How many expected values ahead memory is asked for.
const AHEAD: usize = 512;

/// See `super::block`; lengths are a multiple of `LANES` and equal, `Err` hands the block back.
///
/// Distances in units of the last place are summed as multiples of the power of two below the expected value, and
/// scaled at the end.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn block<G: Lane, const EACH: bool, const ONE_DIVISION: bool>(
    got: &[G],
    expected: &[f64],
    each: &[f64],
    (steps, relative, absolute): (f64, f64, f64),
    grid: &Grid,
    buckets: &mut [u32],
) -> Option<Sums> {
    let count = got.len();
    assert!(
        count.is_multiple_of(LANES)
            && count <= buckets.len()
            && expected.len() == count
            && (!EACH || each.len() == count)
    );
    let no_sign = _mm256_castsi256_pd(_mm256_set1_epi64x(i64::MAX));
    let exponent = _mm256_castsi256_pd(_mm256_set1_epi64x(EXPONENT as i64));
    let twice_bias = _mm256_set1_epi64x(2046i64 << 52);
    let min_normal = _mm256_set1_pd(grid.min_normal);
    let one = _mm256_set1_pd(1.0);
    let steps = _mm256_set1_pd(steps * grid.epsilon);
    let relative = _mm256_set1_pd(relative);
    let absolute = _mm256_set1_pd(absolute);
    let zero = _mm256_setzero_pd();
    let (mut abs, mut rel, mut ulp) = (zero, zero, zero);
    let (mut max_abs, mut max_rel, mut max_ulp, mut of_bound) = (zero, zero, zero, zero);
    let mut inside = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
    let quads = got.as_chunks::<LANES>().0.iter().zip(expected.as_chunks::<LANES>().0);
    for (at, ((got, expected), to)) in quads.zip(buckets.as_chunks_mut::<LANES>().0).enumerate() {
        // The expected values are most of what is read: ask for them early. A prefetch of nothing is harmless.
        _mm_prefetch::<_MM_HINT_T0>(expected.as_ptr().wrapping_add(AHEAD).cast());
        let expected = <f64 as Lane>::load(expected);
        let error = _mm256_and_pd(_mm256_sub_pd(G::load(got), expected), no_sign);
        let magnitude = _mm256_and_pd(expected, no_sign);
        let at_least = _mm256_max_pd(magnitude, min_normal);
        let power = _mm256_and_pd(at_least, exponent);
        let allowed = if EACH {
            <f64 as Lane>::load(each[at * LANES..(at + 1) * LANES].try_into().expect("four lanes"))
        } else {
            _mm256_fmadd_pd(power, steps, _mm256_fmadd_pd(magnitude, relative, absolute))
        };
        let reciprocal = _mm256_castsi256_pd(_mm256_sub_epi64(twice_bias, _mm256_castpd_si256(power)));
        let ulps = _mm256_mul_pd(error, reciprocal);
        let (rels, of_bounds) = if ONE_DIVISION {
            let part = _mm256_mul_pd(error, _mm256_div_pd(one, _mm256_mul_pd(allowed, at_least)));
            (_mm256_mul_pd(part, allowed), _mm256_mul_pd(part, at_least))
        } else {
            (_mm256_div_pd(error, at_least), _mm256_div_pd(error, allowed))
        };
        let small = _mm256_cmp_pd::<_CMP_LT_OQ>(magnitude, min_normal);
        let rels = _mm256_andnot_pd(small, rels);
        // False for a bound that is NaN, which must not let anything pass.
        inside = _mm256_and_pd(inside, _mm256_cmp_pd::<_CMP_LE_OQ>(error, allowed));
        abs = _mm256_add_pd(abs, error);
        rel = _mm256_add_pd(rel, rels);
        ulp = _mm256_add_pd(ulp, ulps);
        // The second operand is kept where the first is NaN.
        max_abs = _mm256_max_pd(error, max_abs);
        max_rel = _mm256_max_pd(rels, max_rel);
        max_ulp = _mm256_max_pd(ulps, max_ulp);
        of_bound = _mm256_max_pd(of_bounds, of_bound);
        let indices = _mm_srli_epi32::<21>(_mm_castps_si128(_mm256_cvtpd_ps(error)));
        // SAFETY: `to` is sixteen bytes to write.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), indices) };
    }
    let lanes = |values: __m256d| -> [f64; LANES] {
        let mut lanes = [0.0; LANES];
        // SAFETY: `lanes` is thirty-two bytes to write.
        unsafe { _mm256_storeu_pd(lanes.as_mut_ptr(), values) };
        lanes
    };
    let sum = |values: __m256d| lanes(values).iter().sum::<f64>();
    let max = |values: __m256d| lanes(values).into_iter().fold(0.0, f64::max);
    let per_epsilon = 1.0 / grid.epsilon;
    let sums = Sums {
        abs: sum(abs),
        rel: sum(rel),
        ulp: sum(ulp) * per_epsilon,
        max_abs: max(max_abs),
        max_rel: max(max_rel),
        max_ulp: max(max_ulp) * per_epsilon,
        of_bound: max(of_bound),
    };
    super::usual(sums, _mm256_movemask_pd(inside) == 0b1111, grid)
}
