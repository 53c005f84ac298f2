//! From words to numbers: the formulas of one draw, and whole blocks of them in vector code.

use crate::case::rng::{BLOCK, LANES, Lanes};
use std::ops::{Add, Mul};

/// sqrt(3) * 2^-16, rounded to float64 (0x1.bb67ae8584caap-16): makes the deviation of a sum of four 16-bit fields
/// 1 - 2^-33 (their variance is (2^32 - 1) / 3).
const NORMAL_SCALE: f64 = f64::from_bits(0x3efb_b67a_e858_4caa);
/// The mean of a sum of four 16-bit fields.
const NORMAL_CENTRE: i32 = 131_070;

/// A draw that looks at its own bits alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// [-1, 1).
    Uniform,
    /// (0, 1].
    Positive,
    /// [0, 1], both ends included.
    Probability,
    /// Both signs, magnitudes in [1/2, 1).
    Edge,
    /// Deviation 1; always a whole word.
    Normal,
}

/// The arithmetic that values are made in: float64 for float64 tensors, float32 for all others.
pub trait Working: Copy + Add<Output = Self> + Mul<Output = Self> + PartialEq + Send + Sync {
    /// A small constant, exact in float32.
    fn of(value: f32) -> Self;
    /// The value, exact.
    fn to_f64(self) -> f64;
    /// The number of a word: narrow draws of float32 look at its low half.
    fn draw(draw: Draw, word: u64) -> Self;
}

/// The sum of the four 16-bit fields, centred: from -131070 to 131070.
#[inline(always)]
fn centred(word: u64) -> i32 {
    let pairs = (word & 0x0000_ffff_0000_ffff) + ((word >> 16) & 0x0000_ffff_0000_ffff);
    (pairs as u32).wrapping_add((pairs >> 32) as u32) as i32 - NORMAL_CENTRE
}

#[inline(always)]
fn normal32(word: u64) -> f32 {
    centred(word) as f32 * (NORMAL_SCALE as f32)
}

/// A draw of 32 bits.
#[inline(always)]
fn narrow(draw: Draw, half: u32) -> f32 {
    const UNIT_23: f32 = 1.0 / (1u32 << 23) as f32;
    const UNIT_24: f32 = 1.0 / (1u32 << 24) as f32;
    match draw {
        Draw::Uniform => (half as i32 >> 8) as f32 * UNIT_23,
        Draw::Positive => ((half >> 8) + 1) as i32 as f32 * UNIT_24,
        Draw::Probability => ((half >> 8) + (half >> 31)) as i32 as f32 * UNIT_24,
        Draw::Edge => {
            // Sign, the exponent of [1/2, 1), then 23 fraction bits.
            f32::from_bits((half & 0x8000_0000) | 0x3f00_0000 | ((half >> 8) & 0x7f_ffff))
        }
        Draw::Normal => unreachable!("normals draw a whole word"),
    }
}

impl Working for f32 {
    #[inline(always)]
    fn of(value: f32) -> f32 {
        value
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn draw(draw: Draw, word: u64) -> f32 {
        if draw == Draw::Normal { normal32(word) } else { narrow(draw, word as u32) }
    }
}

impl Working for f64 {
    #[inline(always)]
    fn of(value: f32) -> f64 {
        f64::from(value)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn draw(draw: Draw, word: u64) -> f64 {
        const UNIT_52: f64 = 1.0 / (1u64 << 52) as f64;
        const UNIT_53: f64 = 1.0 / (1u64 << 53) as f64;
        match draw {
            Draw::Uniform => (word as i64 >> 11) as f64 * UNIT_52,
            Draw::Positive => ((word >> 11) + 1) as f64 * UNIT_53,
            Draw::Probability => ((word >> 11) + (word >> 63)) as f64 * UNIT_53,
            Draw::Edge => {
                f64::from_bits((word & (1 << 63)) | 0x3fe0_0000_0000_0000 | ((word >> 11) & 0x000f_ffff_ffff_ffff))
            }
            Draw::Normal => f64::from(centred(word)) * NORMAL_SCALE,
        }
    }
}

/// Calls `f` through a copy compiled for AVX2 where the processor has it. The results are the same bits: nothing but
/// integer operations and single, exactly rounded float operations is vectorised, and Rust never fuses a product and a sum.
#[inline(always)]
fn vectorised(f: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2(f: impl FnOnce()) {
            f();
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { with_avx2(f) };
        }
    }
    f();
}

/// The words of a block, or of its beginning.
pub fn words(block_seed: u64, out: &mut [u64]) {
    debug_assert!(out.len() <= BLOCK);
    let mut lanes = Lanes::new(block_seed);
    vectorised(
        #[inline(always)]
        || {
            let mut steps = out.chunks_exact_mut(LANES);
            for step in &mut steps {
                step.copy_from_slice(&lanes.next_words());
            }
            let rest = steps.into_remainder();
            let words = lanes.next_words();
            rest.copy_from_slice(&words[..rest.len()]);
        },
    );
}

/// A block of float32 draws, or its beginning.
pub fn block(draw: Draw, block_seed: u64, out: &mut [f32]) {
    debug_assert!(out.len() <= BLOCK);
    match draw {
        Draw::Uniform => halves(block_seed, out, |half| narrow(Draw::Uniform, half)),
        Draw::Positive => halves(block_seed, out, |half| narrow(Draw::Positive, half)),
        Draw::Probability => halves(block_seed, out, |half| narrow(Draw::Probability, half)),
        Draw::Edge => halves(block_seed, out, |half| narrow(Draw::Edge, half)),
        Draw::Normal => normals(block_seed, out),
    }
}

#[inline(always)]
fn halves(block_seed: u64, out: &mut [f32], number: impl Fn(u32) -> f32) {
    let mut lanes = Lanes::new(block_seed);
    vectorised(
        #[inline(always)]
        || {
            let step = |lanes: &mut Lanes, out: &mut [f32; 2 * LANES]| {
                let words = lanes.next_words();
                for lane in 0..LANES {
                    out[2 * lane] = number(words[lane] as u32);
                    out[2 * lane + 1] = number((words[lane] >> 32) as u32);
                }
            };
            let mut steps = out.chunks_exact_mut(2 * LANES);
            for chunk in &mut steps {
                step(&mut lanes, chunk.try_into().expect("a whole step"));
            }
            let rest = steps.into_remainder();
            let mut last = [0.0; 2 * LANES];
            step(&mut lanes, &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        },
    );
}

fn normals(block_seed: u64, out: &mut [f32]) {
    let mut lanes = Lanes::new(block_seed);
    vectorised(
        #[inline(always)]
        || {
            let mut steps = out.chunks_exact_mut(LANES);
            for chunk in &mut steps {
                let words = lanes.next_words();
                for lane in 0..LANES {
                    chunk[lane] = normal32(words[lane]);
                }
            }
            let rest = steps.into_remainder();
            let words = lanes.next_words();
            for (number, &word) in rest.iter_mut().zip(&words) {
                *number = normal32(word);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_reach_their_ends_exactly() {
        // half or word, draw -> value
        let table = [
            (Draw::Uniform, 0x8000_0000, -1.0),
            (Draw::Uniform, 0x7fff_ffff, 1.0 - 2f32.powi(-23)),
            (Draw::Uniform, 0, 0.0),
            (Draw::Positive, 0, 2f32.powi(-24)),
            (Draw::Positive, u32::MAX, 1.0),
            (Draw::Probability, 0xff, 0.0),
            (Draw::Probability, u32::MAX, 1.0),
            (Draw::Probability, 0x8000_0000, 0.5 + 2f32.powi(-24)),
            (Draw::Edge, 0, 0.5),
            (Draw::Edge, 0x8000_0000, -0.5),
            (Draw::Edge, u32::MAX, -(1.0 - 2f32.powi(-24))),
        ];
        for (draw, half, value) in table {
            assert_eq!(narrow(draw, half), value, "{draw:?} {half:#x}");
            let wide = f64::draw(draw, u64::from(half) << 32 | u64::from(half));
            assert!((wide - f64::from(value)).abs() < 1e-6, "{draw:?} {half:#x}: {wide}");
        }
    }

    #[test]
    fn normals_are_centred_sums_of_fields() {
        // Fields 1, 2, 3, 4: 10 - 131070 = -131060, times sqrt(3) / 65536.
        assert_eq!(centred(0x0004_0003_0002_0001), -131_060);
        assert_eq!(centred(u64::MAX), 131_070);
        let expected = -131_060.0 * 3f64.sqrt() / 65536.0;
        assert_eq!(f64::draw(Draw::Normal, 0x0004_0003_0002_0001), expected);
        assert_eq!(normal32(0x0004_0003_0002_0001), expected as f32);
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        // draw -> mean, variance; 2^20 draws: the mean of a variance-1 draw has deviation 1e-3.
        let table = [
            (Draw::Uniform, 0.0, 1.0 / 3.0),
            (Draw::Positive, 0.5, 1.0 / 12.0),
            (Draw::Probability, 0.5, 1.0 / 12.0),
            (Draw::Edge, 0.0, 7.0 / 12.0),
            (Draw::Normal, 0.0, 1.0),
        ];
        for (draw, mean, variance) in table {
            let (mut sum, mut squares) = (0.0, 0.0);
            let mut out = [0.0; BLOCK];
            for seed in 0..256 {
                block(draw, seed, &mut out);
                sum += out.iter().map(|&x| f64::from(x)).sum::<f64>();
                squares += out.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
            }
            let count = 256.0 * BLOCK as f64;
            let found = (sum / count, squares / count - (sum / count).powi(2));
            assert!((found.0 - mean).abs() < 5e-3 && (found.1 - variance).abs() < 5e-3, "{draw:?}: {found:?}");
        }
    }

    #[test]
    fn a_beginning_is_the_beginning_of_the_whole() {
        for draw in [Draw::Uniform, Draw::Normal] {
            let mut whole = [0.0; BLOCK];
            block(draw, 3, &mut whole);
            for length in [0, 1, 7, 8, 9, 16, 17, 4095] {
                let mut part = vec![0.0; length];
                block(draw, 3, &mut part);
                assert_eq!(part, whole[..length], "{draw:?} {length}");
            }
        }
    }
}
