//! Elements of 4 bytes to and from the places of a whole warp, by instructions of x86-64 with AVX2: loads that end in
//! one store for eight lanes, so that what reads the row next does not wait for eight stores of one lane each.

use std::arch::asm;
use std::arch::x86_64::*;

use super::LANES;
use super::access::Element;

/// Whether the host has the instructions.
#[inline(always)]
pub(super) fn is_there() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Whether lane `i` is at the first address plus `i * width`.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn consecutive(addresses: &[u64; LANES], width: u64) -> bool {
    let width = width as i64;
    let mut expected =
        _mm256_add_epi64(_mm256_set1_epi64x(addresses[0] as i64), _mm256_setr_epi64x(0, width, 2 * width, 3 * width));
    let mut apart = _mm256_setzero_si256();
    for part in 0..LANES / 4 {
        // SAFETY: there are so many parts of four.
        let here = unsafe { _mm256_loadu_si256(addresses.as_ptr().cast::<__m256i>().add(part)) };
        apart = _mm256_or_si256(apart, _mm256_xor_si256(here, expected));
        expected = _mm256_add_epi64(expected, _mm256_set1_epi64x(4 * width));
    }
    _mm256_testz_si256(apart, apart) == 1
}

/// Whether all lanes lie within `bytes` bytes from `base` on, aligned to `width` bytes, a power of two.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fit(base: u64, bytes: u64, addresses: &[u64; LANES], width: u64) -> bool {
    // A negative limit makes every lane fall outside.
    let limit = bytes.wrapping_sub(width);
    let (first, last) = (_mm256_set1_epi64x(base as i64), _mm256_set1_epi64x(limit as i64));
    let (mut outside, mut low) = (last, _mm256_setzero_si256());
    for part in 0..LANES / 4 {
        // SAFETY: there are so many parts of four.
        let here = unsafe { _mm256_loadu_si256(addresses.as_ptr().cast::<__m256i>().add(part)) };
        let offset = _mm256_sub_epi64(here, first);
        outside = _mm256_or_si256(outside, _mm256_or_si256(offset, _mm256_sub_epi64(last, offset)));
        low = _mm256_or_si256(low, here);
    }
    let inside = _mm256_movemask_pd(_mm256_castsi256_pd(outside)) == 0;
    inside && _mm256_testz_si256(low, _mm256_set1_epi64x(width as i64 - 1)) == 1
}

/// The addresses of a mask, which has some lane; that of its first lane in place of all others.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn filled(addresses: &[u64; LANES], mask: u32) -> [u64; LANES] {
    let first = _mm256_set1_epi64x(addresses[mask.trailing_zeros() as usize % LANES] as i64);
    let bits = _mm256_setr_epi64x(1, 2, 4, 8);
    let mut filled = *addresses;
    for part in 0..LANES / 4 {
        let here = _mm256_and_si256(_mm256_set1_epi64x(i64::from(mask >> (4 * part))), bits);
        // SAFETY: there are so many parts of four.
        unsafe {
            let at = filled.as_mut_ptr().cast::<__m256i>().add(part);
            _mm256_storeu_si256(at, _mm256_blendv_epi8(first, _mm256_loadu_si256(at), _mm256_cmpeq_epi64(here, bits)));
        }
    }
    filled
}

/// Where lane 0 would be, if the lanes of a mask follow each other by 4 bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn start_of_some(addresses: &[u64; LANES], mask: u32) -> Option<u64> {
    let first = mask.trailing_zeros() as usize % LANES;
    let start = addresses[first].wrapping_sub(4 * first as u64);
    let bits = _mm256_setr_epi64x(1, 2, 4, 8);
    let mut expected = _mm256_add_epi64(_mm256_set1_epi64x(start as i64), _mm256_setr_epi64x(0, 4, 8, 12));
    let mut apart = _mm256_setzero_si256();
    for part in 0..LANES / 4 {
        // SAFETY: there are so many parts of four.
        let here = unsafe { _mm256_loadu_si256(addresses.as_ptr().cast::<__m256i>().add(part)) };
        let taken = _mm256_and_si256(_mm256_set1_epi64x(i64::from(mask >> (4 * part))), bits);
        let wrong = _mm256_and_si256(_mm256_xor_si256(here, expected), _mm256_cmpeq_epi64(taken, bits));
        apart = _mm256_or_si256(apart, wrong);
        expected = _mm256_add_epi64(expected, _mm256_set1_epi64x(16));
    }
    (_mm256_testz_si256(apart, apart) == 1).then_some(start)
}

/// The lanes of a part of eight, as words of ones or zeros.
#[target_feature(enable = "avx2")]
#[inline]
fn part_of_mask(mask: u32, part: usize) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((mask >> (8 * part)) as i32), bits), bits)
}

/// Loads 4 bytes of the lanes of a mask, which has some, where they follow each other; `false` elsewhere, with nothing
/// done.
///
/// # Safety
///
/// As for [`gather`], of those lanes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn load_some(
    host: *const u8,
    base: u64,
    addresses: &[u64; LANES],
    mask: u32,
    out: &mut [u32; LANES],
) -> bool {
    let Some(start) = start_of_some(addresses, mask) else { return false };
    let from = host.wrapping_add(start.wrapping_sub(base) as usize);
    let mut values = [0; LANES];
    for part in 0..LANES / 8 {
        let (at, taken) = (from.wrapping_add(32 * part), part_of_mask(mask, part));
        let value: __m256i;
        // SAFETY: the caller's: nothing but the words of those lanes is accessed. As in `load16`.
        unsafe {
            asm!("vpmaskmovd {value}, {taken}, [{at}]", value = out(ymm_reg) value, taken = in(ymm_reg) taken,
                at = in(reg) at, options(nostack, preserves_flags, readonly, pure));
            _mm256_storeu_si256(values.as_mut_ptr().cast::<__m256i>().add(part), value);
        }
    }
    // SAFETY: AVX2 is here.
    unsafe { copy_some(&values, out, mask) };
    true
}

/// As [`load_some`], a store.
///
/// # Safety
///
/// The host has AVX2; the places of those lanes are valid for writes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store_some(
    host: *mut u8,
    base: u64,
    addresses: &[u64; LANES],
    mask: u32,
    values: &[u32; LANES],
) -> bool {
    let Some(start) = start_of_some(addresses, mask) else { return false };
    let to = host.wrapping_add(start.wrapping_sub(base) as usize);
    for part in 0..LANES / 8 {
        let (at, taken) = (to.wrapping_add(32 * part), part_of_mask(mask, part));
        // SAFETY: the caller's: nothing but the words of those lanes is accessed. As in `load16`.
        unsafe {
            let value = _mm256_loadu_si256(values.as_ptr().cast::<__m256i>().add(part));
            asm!("vpmaskmovd [{at}], {taken}, {value}", value = in(ymm_reg) value, taken = in(ymm_reg) taken,
                at = in(reg) at, options(nostack, preserves_flags));
        }
    }
    true
}

/// Copies the words of a mask's lanes.
///
/// # Safety
///
/// The host has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy_some(from: &[u32; LANES], to: &mut [u32; LANES], mask: u32) {
    for part in 0..LANES / 8 {
        // SAFETY: there are so many parts of eight.
        unsafe {
            let to = to.as_mut_ptr().cast::<__m256i>().add(part);
            let new = _mm256_loadu_si256(from.as_ptr().cast::<__m256i>().add(part));
            _mm256_storeu_si256(to, _mm256_blendv_epi8(_mm256_loadu_si256(to), new, part_of_mask(mask, part)));
        }
    }
}

/// Loads 4 bytes of every lane.
///
/// # Safety
///
/// The host has AVX2; every lane's place, `host` plus its address less `base`, is valid for reads and aligned to 4.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn gather(host: *const u8, base: u64, addresses: &[u64; LANES], out: *mut [u32; LANES]) {
    // SAFETY: the caller's.
    let load = |lane: usize| unsafe {
        let at = host.add(addresses[lane].wrapping_sub(base) as usize);
        u32::read_relaxed(at) as i32
    };
    for part in 0..LANES / 8 {
        let first = 8 * part;
        let values = _mm256_setr_epi32(
            load(first),
            load(first + 1),
            load(first + 2),
            load(first + 3),
            load(first + 4),
            load(first + 5),
            load(first + 6),
            load(first + 7),
        );
        // SAFETY: `out` has room for four parts.
        unsafe { _mm256_storeu_si256(out.cast::<__m256i>().add(part), values) };
    }
}

/// Loads 4 of every 16 bytes, from the first on.
///
/// # Safety
///
/// The host has AVX2; 512 bytes from the place on are valid for reads, and it is aligned to 4.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn every_fourth(from: *const u8, out: *mut [u32; LANES]) {
    let pair = |part: usize, first: usize| {
        // SAFETY: the caller's.
        let (a, b) =
            unsafe { (load32(from.add(128 * part + 32 * first)), load32(from.add(128 * part + 32 * first + 32))) };
        _mm256_shuffle_ps::<0>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b))
    };
    // The even lanes in the lower half, the odd ones in the upper.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for part in 0..LANES / 8 {
        let halves = _mm256_shuffle_ps::<0b10_00_10_00>(pair(part, 0), pair(part, 2));
        let values = _mm256_permutevar8x32_epi32(_mm256_castps_si256(halves), order);
        // SAFETY: `out` has room for four parts.
        unsafe { _mm256_storeu_si256(out.cast::<__m256i>().add(part), values) };
    }
}

/// 32 bytes that other threads of the host may write meanwhile.
///
/// # Safety
///
/// The place is valid for reads; the host has AVX.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load32(at: *const u8) -> __m256i {
    let value: __m256i;
    // SAFETY: as in `load16`.
    unsafe {
        asm!("vmovdqu {value}, [{at}]", value = out(ymm_reg) value, at = in(reg) at,
            options(nostack, preserves_flags, readonly, pure));
    }
    value
}

/// 16 bytes that other threads of the host may write meanwhile.
///
/// # Safety
///
/// The place is valid for reads.
#[inline(always)]
unsafe fn load16(at: *const u8) -> __m128i {
    let value: __m128i;
    // SAFETY: the caller's. An instruction of the host's own knows nothing of data races.
    unsafe {
        asm!("vmovdqu {value}, [{at}]", value = out(xmm_reg) value, at = in(reg) at,
            options(nostack, preserves_flags, readonly, pure));
    }
    value
}

/// Loads four times 4 bytes of every lane.
///
/// # Safety
///
/// As for [`gather`], for 16 bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn gather4(host: *const u8, base: u64, addresses: &[u64; LANES], out: *mut [[u32; LANES]; 4]) {
    // SAFETY: the caller's.
    let load = |lane: usize| unsafe { load16(host.add(addresses[lane].wrapping_sub(base) as usize)) };
    for part in 0..LANES / 8 {
        let pair = |lane: usize| _mm256_set_m128i(load(8 * part + lane + 4), load(8 * part + lane));
        let rows = transposed([pair(0), pair(1), pair(2), pair(3)]);
        for (element, row) in rows.into_iter().enumerate() {
            // SAFETY: `out` has four rows of four parts each.
            unsafe { _mm256_storeu_si256(out.cast::<__m256i>().add(4 * element + part), row) };
        }
    }
}

/// Loads 16 bytes of every lane.
///
/// # Safety
///
/// As for [`gather`], for 16 bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn gather16(host: *const u8, base: u64, addresses: &[u64; LANES], out: *mut [u128; LANES]) {
    for (lane, &address) in addresses.iter().enumerate() {
        // SAFETY: the caller's; `out` has room for so many.
        unsafe {
            let value = load16(host.add(address.wrapping_sub(base) as usize));
            _mm_storeu_si128(out.cast::<__m128i>().add(lane), value);
        }
    }
}

/// Loads four times 4 bytes of every lane from its place in 32 bits, counted from the first byte of a memory, into rows.
/// `false` where some lane does not fit, with nothing done.
///
/// # Safety
///
/// The host has AVX2; so many bytes are valid for reads, and the rows for writes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn fours(
    host: *const u8,
    bytes: u64,
    places: &[u32; LANES],
    offset: u32,
    rows: [*mut [u32; LANES]; 4],
) -> bool {
    let Some(last) = bytes.checked_sub(16) else { return false };
    let last = _mm256_set1_epi32(last.min(u32::MAX.into()) as u32 as i32);
    let mut at = [0u32; LANES];
    let (mut inside, mut low) = (_mm256_set1_epi32(-1), _mm256_setzero_si256());
    for part in 0..LANES / 8 {
        // SAFETY: there are so many parts of eight.
        unsafe {
            let place = _mm256_loadu_si256(places.as_ptr().cast::<__m256i>().add(part));
            let place = _mm256_add_epi32(place, _mm256_set1_epi32(offset as i32));
            inside = _mm256_and_si256(inside, _mm256_cmpeq_epi32(_mm256_min_epu32(place, last), place));
            low = _mm256_or_si256(low, place);
            _mm256_storeu_si256(at.as_mut_ptr().cast::<__m256i>().add(part), place);
        }
    }
    if _mm256_movemask_epi8(inside) != -1 || _mm256_testz_si256(low, _mm256_set1_epi32(15)) == 0 {
        return false;
    }
    // SAFETY: every place was found to be within the memory.
    let load = |lane: usize| unsafe { load16(host.add(at[lane] as usize)) };
    for part in 0..LANES / 8 {
        let pair = |lane: usize| _mm256_set_m128i(load(8 * part + lane + 4), load(8 * part + lane));
        let values = transposed([pair(0), pair(1), pair(2), pair(3)]);
        for (row, value) in rows.into_iter().zip(values) {
            // SAFETY: the caller's: a row has four parts.
            unsafe { _mm256_storeu_si256(row.cast::<__m256i>().add(part), value) };
        }
    }
    true
}

/// Both halves of four registers, transposed as matrices of four by four.
#[target_feature(enable = "avx2")]
#[inline]
fn transposed([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Stores four times 4 bytes of every lane, lanes in order.
///
/// # Safety
///
/// The host has AVX2; every lane's place is valid for writes of 16 bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn scatter4(host: *mut u8, base: u64, addresses: &[u64; LANES], values: *const [[u32; LANES]; 4]) {
    let store = |lane: usize, value: __m128i| {
        // SAFETY: the caller's. An instruction of the host's own knows nothing of data races.
        unsafe {
            let at = host.add(addresses[lane].wrapping_sub(base) as usize);
            asm!("vmovdqu [{at}], {value}", value = in(xmm_reg) value, at = in(reg) at,
                options(nostack, preserves_flags));
        }
    };
    for part in 0..LANES / 8 {
        // SAFETY: `values` has four rows of four parts each.
        let row = |element: usize| unsafe { _mm256_loadu_si256(values.cast::<__m256i>().add(4 * element + part)) };
        let lanes = transposed([row(0), row(1), row(2), row(3)]);
        for (lane, value) in lanes.into_iter().enumerate() {
            store(8 * part + lane, _mm256_castsi256_si128(value));
        }
        for (lane, value) in lanes.into_iter().enumerate() {
            store(8 * part + lane + 4, _mm256_extracti128_si256::<1>(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lane_out_of_place_is_seen() {
        if !is_there() {
            return;
        }
        let right: [u64; LANES] = std::array::from_fn(|lane| 4096 + 8 * lane as u64);
        // SAFETY: the host has AVX2.
        let (run, fits) = unsafe { (consecutive(&right, 8), fit(4096, 256, &right, 8)) };
        assert!(run && fits);
        for lane in 0..LANES {
            for by in [1, 4, 8, 1 << 33, 1 << 63, u64::MAX, u64::MAX << 12] {
                let mut wrong = right;
                wrong[lane] = wrong[lane].wrapping_add(by);
                let expected = wrong[lane].wrapping_sub(4096) <= 248 && wrong[lane].is_multiple_of(8);
                // SAFETY: as above.
                let (run, fits) = unsafe { (consecutive(&wrong, 8), fit(4096, 256, &wrong, 8)) };
                assert!(!run, "{lane} {by}");
                assert_eq!(fits, expected, "{lane} {by}");
            }
        }
        for mask in [1, 1 << 31, 0x00ff_f0f0, 0xaaaa_aaaa, u32::MAX] {
            let (mut copied, values) = ([7; LANES], std::array::from_fn(|lane| 100 + lane as u32));
            // SAFETY: as above.
            let filled = unsafe {
                copy_some(&values, &mut copied, mask);
                filled(&right, mask)
            };
            for lane in 0..LANES {
                let (taken, first) = (mask >> lane & 1 != 0, mask.trailing_zeros() as usize);
                assert_eq!(filled[lane], right[if taken { lane } else { first }], "{lane} of {mask:x}");
                assert_eq!(copied[lane], if taken { 100 + lane as u32 } else { 7 }, "{lane} of {mask:x}");
            }
        }
        for bytes in [0, 4, 8, 255] {
            // SAFETY: as above.
            assert!(!unsafe { fit(4096, bytes, &right, 8) }, "{bytes}");
        }
    }

    #[test]
    fn lanes_of_a_mask_are_copied_and_no_others() {
        if !is_there() {
            return;
        }
        for mask in [1u32, 1 << 31, 0x01ff_ffff, 0xffff_fe00, 0x8000_0001, 0x5555_0ff0] {
            let first = mask.trailing_zeros() as usize;
            let last = 31 - mask.leading_zeros() as usize;
            // Room for the lanes from the first to the last alone: what lies around it belongs to others.
            let mut memory: Vec<u32> = (0..=(last - first) as u32).collect();
            let base = 1000 + 4 * first as u64;
            // Lanes that take no part are anywhere.
            let addresses: [u64; LANES] =
                std::array::from_fn(|lane| if mask >> lane & 1 != 0 { 1000 + 4 * lane as u64 } else { lane as u64 });
            let host = memory.as_mut_ptr().cast::<u8>();
            let (mut loaded, values) = ([7; LANES], std::array::from_fn(|lane| 100 + lane as u32));
            let mut wrong = addresses;
            wrong[last] = wrong[last].wrapping_add(4);
            // SAFETY: the lanes of the mask lie in the vector.
            unsafe {
                assert!(load_some(host, base, &addresses, mask, &mut loaded), "{mask:x}");
                assert!(store_some(host, base, &addresses, mask, &values), "{mask:x}");
                assert!(first == last || !load_some(host, base, &wrong, mask, &mut [0; LANES]), "{mask:x}");
            }
            for lane in 0..LANES {
                let taken = mask >> lane & 1 != 0;
                assert_eq!(loaded[lane], if taken { (lane - first) as u32 } else { 7 }, "{lane} of {mask:x}");
                if (first..=last).contains(&lane) {
                    let right = if taken { 100 + lane as u32 } else { (lane - first) as u32 };
                    assert_eq!(memory[lane - first], right, "{lane} of {mask:x}");
                }
            }
        }
    }

    #[test]
    fn every_lane_gets_what_lies_at_its_place() {
        if !is_there() {
            return;
        }
        let memory: Vec<u32> = (0..512).collect();
        let addresses: [u64; LANES] = std::array::from_fn(|lane| 1000 + 16 * (lane as u64 * 7 % 32));
        let host = memory.as_ptr().cast::<u8>();
        let mut one = [0; LANES];
        let mut four = [[0; LANES]; 4];
        // SAFETY: every place is within the vector.
        unsafe {
            gather(host, 1000, &addresses, &mut one);
            gather4(host, 1000, &addresses, &mut four);
        }
        for lane in 0..LANES {
            let word = 4 * (lane as u32 * 7 % 32);
            assert_eq!(one[lane], word);
            assert_eq!([0, 1, 2, 3].map(|element: usize| four[element][lane]), [word, word + 1, word + 2, word + 3]);
        }
        let places = addresses.map(|address| address as u32 - 40);
        let mut rows = [[7; LANES]; 4];
        let [a, b, c, d] = &mut rows;
        let rows_at = [a, b, c, d].map(std::ptr::from_mut);
        let mut wholes = [0; LANES];
        // SAFETY: every place is within the vector.
        unsafe {
            assert!(fours(host, 496 + 16, &places, 40u32.wrapping_sub(1000), rows_at));
            gather16(host, 1000, &addresses, &mut wholes);
            // One byte too few, a place before the first, and one between two elements.
            assert!(!fours(host, 496 + 15, &places, 40u32.wrapping_sub(1000), rows_at));
            assert!(!fours(host, 2048, &places, 40u32.wrapping_sub(1016), rows_at));
            assert!(!fours(host, 2048, &places, 44u32.wrapping_sub(1000), rows_at));
            assert!(!fours(host, 15, &[0; LANES], 0, rows_at));
        }
        assert_eq!(rows, four);
        for lane in 0..LANES {
            let words = [0, 1, 2, 3].map(|word| (wholes[lane] >> (32 * word)) as u32);
            assert_eq!(words, [0, 1, 2, 3].map(|element: usize| four[element][lane]));
        }
        // SAFETY: 512 bytes from there on are within the vector.
        unsafe { every_fourth(host.add(20), &mut one) };
        assert_eq!(one, std::array::from_fn(|lane| 5 + 4 * lane as u32));
        // Two lanes at one place: the later one wins.
        let mut stored = vec![0u32; 512];
        let to: [u64; LANES] = std::array::from_fn(|lane| 16 * (lane as u64 / 2));
        let values = [0, 1, 2, 3].map(|element| std::array::from_fn(|lane| 100 * lane as u32 + element));
        // SAFETY: as above.
        unsafe { scatter4(stored.as_mut_ptr().cast(), 0, &to, &values) };
        for place in 0..16u32 {
            let later = 100 * (2 * place + 1);
            let first = 4 * place as usize;
            assert_eq!(stored[first..first + 4], [later, later + 1, later + 2, later + 3]);
        }
    }
}
