//! Every conversion from and to sixteen bits, of every one of their 65,536 patterns, against tables of the formats'
//! values and the `half` crate.

use gpuemu_ptx::numerics::convert::{self as cv, E4M3, E5M2, Finish, Integer};
use gpuemu_ptx::numerics::exact::Rounding;
use gpuemu_ptx::numerics::half as ours;
use half::{bf16, f16};

const ROUNDINGS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

/// A format as the list of its values that are finite and not negative, smallest first: the index is the code.
struct Format {
    values: Vec<f64>,
    sign: u16,
}

impl Format {
    fn f16() -> Self {
        Self { values: (0..0x7c00).map(|code| f16::from_bits(code).to_f64()).collect(), sign: 0x8000 }
    }

    fn bf16() -> Self {
        Self { values: (0..0x7f80).map(|code| bf16::from_bits(code).to_f64()).collect(), sign: 0x8000 }
    }

    /// e4m3 has a NaN where others have an infinity, and the numbers of the largest exponent below it.
    fn e4m3() -> Self {
        let value = |code: i32| match (code >> 3, f64::from(code & 7)) {
            (0, mantissa) => mantissa * 2f64.powi(-9),
            (exponent, mantissa) => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
        };
        Self { values: (0..0x7f).map(value).collect(), sign: 0x80 }
    }

    fn e5m2() -> Self {
        Self { values: (0..0x7c).map(|code| f16::from_bits(code << 8).to_f64()).collect(), sign: 0x80 }
    }

    /// The code that a number rounds to; past the last, the code after it.
    fn round(&self, x: f64, rounding: Rounding) -> u16 {
        let sign = if x.is_sign_negative() { self.sign } else { 0 };
        let magnitude = x.abs();
        let above = self.values.partition_point(|&value| value <= magnitude);
        let below = above - 1;
        let low = self.values[below];
        // What would follow the last: as far from it as its neighbour is.
        let high = self.values.get(above).copied().unwrap_or_else(|| 2.0 * low - self.values[below - 1]);
        let up = match rounding {
            _ if low == magnitude => false,
            Rounding::Zero => false,
            Rounding::Down => sign != 0,
            Rounding::Up => sign == 0,
            Rounding::Nearest => {
                let (from_low, to_high) = (magnitude - low, high - magnitude);
                from_low > to_high || from_low == to_high && below % 2 == 1
            }
        };
        sign | (below + usize::from(up)) as u16
    }
}

fn single(x: u16, brain: bool) -> f32 {
    if brain { bf16::from_bits(x).to_f32() } else { f16::from_bits(x).to_f32() }
}

#[test]
fn to_integers() {
    for bits in [8, 16, 32, 64] {
        for signed in [false, true] {
            let to = Integer { bits, signed };
            let (low, high): (i128, i128) = match signed {
                true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                false => (0, (1 << bits) - 1),
            };
            // PTX ISA, `cvt`: a NaN is zero, or the top bit alone in 64 bits.
            let nan: i128 = if bits == 64 { 1 << 63 } else { 0 };
            for (rounding, x) in ROUNDINGS.iter().flat_map(|rounding| (0..=u16::MAX).map(move |x| (*rounding, x))) {
                for brain in [false, true] {
                    let value = f64::from(single(x, brain));
                    let whole = match rounding {
                        Rounding::Nearest => value.round_ties_even(),
                        Rounding::Zero => value.trunc(),
                        Rounding::Down => value.floor(),
                        Rounding::Up => value.ceil(),
                    };
                    let expected = if value.is_nan() { nan } else { (whole as i128).clamp(low, high) };
                    let got = if brain { cv::bf16_to_int(x, to, rounding) } else { cv::f16_to_int(x, to, rounding) };
                    assert_eq!(got, expected as u64, "{x:x}, bf16 {brain}, {to:?} {rounding:?}");
                }
            }
        }
    }
}

#[test]
fn from_integers_of_sixteen_bits() {
    let (halves, brains) = (Format::f16(), Format::bf16());
    for x in 0..=u16::MAX {
        for signed in [false, true] {
            let value = if signed { f64::from(x as i16) } else { f64::from(x) };
            let from = Integer { bits: 16, signed };
            for rounding in ROUNDINGS {
                assert_eq!(
                    cv::int_to_f16(x.into(), from, rounding),
                    halves.round(value, rounding),
                    "{x:x} {rounding:?}"
                );
                assert_eq!(
                    cv::int_to_bf16(x.into(), from, rounding),
                    brains.round(value, rounding),
                    "{x:x} {rounding:?}"
                );
                assert_eq!(cv::int_to_f32(x.into(), from, rounding), (value as f32).to_bits());
                assert_eq!(cv::int_to_f64(x.into(), from, rounding), value.to_bits());
            }
            for bits in [8, 16, 32, 64] {
                for to_signed in [false, true] {
                    let to = Integer { bits, signed: to_signed };
                    let whole = value as i128;
                    let (low, high): (i128, i128) = match to_signed {
                        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                        false => (0, (1 << bits) - 1),
                    };
                    assert_eq!(cv::int_to_int(x.into(), from, to, true), whole.clamp(low, high) as u64, "{x:x} {to:?}");
                    let wrapped = whole.rem_euclid(1 << bits);
                    let wrapped = if wrapped > high { wrapped - (1 << bits) } else { wrapped };
                    assert_eq!(cv::int_to_int(x.into(), from, to, false), wrapped as u64, "{x:x} {to:?}");
                }
            }
        }
    }
}

#[test]
fn from_one_half_to_the_other() {
    let (halves, brains) = (Format::f16(), Format::bf16());
    for x in 0..=u16::MAX {
        for rounding in ROUNDINGS {
            let (half, brain) = (f16::from_bits(x).to_f64(), bf16::from_bits(x).to_f64());
            if half.is_finite() {
                assert_eq!(cv::f16_to_bf16(x, rounding), brains.round(half, rounding), "{x:x} {rounding:?}");
            }
            if brain.is_finite() {
                let expected = match halves.round(brain, rounding) {
                    // Toward zero or away from infinity, whatever lies past the last is the last.
                    code if code & 0x7fff == 0x7c00 && rounding == Rounding::Zero => code - 1,
                    code => code,
                };
                assert_eq!(cv::bf16_to_f16(x, rounding), expected, "{x:x} {rounding:?}");
            }
        }
        let same = |got: u64, value: f64| got == value.to_bits() || value.is_nan() && f64::from_bits(got).is_nan();
        assert!(same(cv::f16_to_f64(x), f16::from_bits(x).to_f64()), "{x:x}");
        assert!(same(cv::bf16_to_f64(x), bf16::from_bits(x).to_f64()), "{x:x}");
    }
}

#[test]
fn to_whole_numbers_of_their_own_format() {
    for x in 0..=u16::MAX {
        for rounding in ROUNDINGS {
            let whole = |value: f32| match rounding {
                Rounding::Nearest => value.round_ties_even(),
                Rounding::Zero => value.trunc(),
                Rounding::Down => value.floor(),
                Rounding::Up => value.ceil(),
            };
            let half = f16::from_bits(x).to_f32();
            let expected = if half.is_nan() { 0x7fff } else { f16::from_f32(whole(half)).to_bits() };
            assert_eq!(cv::f16_to_integral(x, rounding), expected, "{x:x} {rounding:?}");
            let brain = bf16::from_bits(x).to_f32();
            let expected = if brain.is_nan() { 0x7fff } else { bf16::from_f32(whole(brain)).to_bits() };
            assert_eq!(cv::bf16_to_integral(x, rounding), expected, "{x:x} {rounding:?}");
        }
    }
}

#[test]
fn signs_flushing_and_clamping() {
    for x in 0..=u16::MAX {
        let (half, brain) = (f16::from_bits(x), bf16::from_bits(x));
        let nan_or = |nan: bool, code: u16| if nan { 0x7fff } else { code };
        assert_eq!(ours::neg_f16(x), nan_or(half.is_nan(), (-half).to_bits()), "{x:x}");
        assert_eq!(ours::neg_bf16(x), nan_or(brain.is_nan(), (-brain).to_bits()), "{x:x}");
        assert_eq!(ours::abs_f16(x), nan_or(half.is_nan(), f16::from_f32(half.to_f32().abs()).to_bits()), "{x:x}");
        assert_eq!(ours::abs_bf16(x), nan_or(brain.is_nan(), bf16::from_f32(brain.to_f32().abs()).to_bits()), "{x:x}");
        let tiny = half.to_f32().abs() < f16::MIN_POSITIVE.to_f32();
        assert_eq!(ours::flush_f16(x), if tiny { x & 0x8000 } else { x }, "{x:x}");
        // A NaN and -0 become +0.
        let clamped = if half.is_nan() { 0.0 } else { half.to_f32().clamp(0.0, 1.0) + 0.0 };
        assert_eq!(ours::saturate_f16(x), f16::from_f32(clamped).to_bits(), "{x:x}");
        let positive = |value: f32| if value.is_sign_negative() { 0.0 } else { value };
        assert_eq!(ours::relu_f16(x), nan_or(half.is_nan(), f16::from_f32(positive(half.to_f32())).to_bits()), "{x:x}");
        assert_eq!(
            ours::relu_bf16(x),
            nan_or(brain.is_nan(), bf16::from_f32(positive(brain.to_f32())).to_bits()),
            "{x:x}"
        );
    }
}

#[test]
fn to_and_from_floats_of_eight_bits() {
    let formats = [(E4M3, Format::e4m3()), (E5M2, Format::e5m2())];
    for (small, format) in &formats {
        let last = format.values.len() as u16 - 1;
        for x in 0..=u16::MAX {
            let half = f16::from_bits(x);
            for relu in [false, true] {
                let expected = match half.to_f64() {
                    value if value.is_nan() => 0x7f,
                    value if relu && value.is_sign_negative() => 0,
                    value => {
                        let finite = value.clamp(-1e6, 1e6);
                        let code = format.round(finite, Rounding::Nearest);
                        // `.satfinite`: the last at most.
                        code & 0x80 | (code & 0x7f).min(last)
                    }
                };
                // Both bytes of a pair, each with another number beside it.
                let packed = u32::from(x) << 16 | u32::from(x);
                let got = cv::f16x2_to_small_x2(packed, *small, relu);
                assert_eq!(got, expected << 8 | expected, "{x:x} {small:?}");
                let bits = half.to_f32().to_bits();
                assert_eq!(cv::f32_to_small_x2(bits, 0, *small, relu), expected << 8, "{x:x} {small:?}");
            }
            // Any two codes.
            let back = cv::small_x2_to_f16x2(x, *small, false);
            for (byte, half) in [(x >> 8, back >> 16), (x & 0xff, back & 0xffff)] {
                let got = f16::from_bits(half as u16);
                let code = usize::from(byte & 0x7f);
                match format.values.get(code) {
                    Some(value) => {
                        let value = if byte & 0x80 != 0 { -value } else { *value };
                        assert_eq!(got.to_f64().to_bits(), value.to_bits(), "{byte:x} {small:?}");
                    }
                    None if *small == E5M2 && code == 0x7c => assert!(got.is_infinite()),
                    None => assert!(got.is_nan(), "{byte:x} {small:?}"),
                }
            }
        }
    }
}

#[test]
fn from_binary32_with_every_finish() {
    let (halves, brains) = (Format::f16(), Format::bf16());
    for x in 0..=u16::MAX {
        // The numbers of the upper half, with a tie, just below and just above it in the lower.
        for low in [0, 0x1000, 0x0fff, 0x1001, 0x8000, 0x7fff, 0x8001] {
            for bits in [u32::from(x) << 16 | low, f16::from_bits(x).to_f32().to_bits() ^ low] {
                let value = f64::from(f32::from_bits(bits));
                if !value.is_finite() {
                    continue;
                }
                for rounding in [Rounding::Nearest, Rounding::Zero] {
                    for (relu, satfinite) in [(false, false), (false, true), (true, false), (true, true)] {
                        let finish = Finish { relu, satfinite };
                        let finished = |code: u16, infinity: u16| match code {
                            code if relu && code & 0x8000 != 0 => 0,
                            code if code & 0x7fff == infinity && (satfinite || rounding == Rounding::Zero) => code - 1,
                            code => code,
                        };
                        let expected = finished(halves.round(value, rounding), 0x7c00);
                        assert_eq!(cv::f32_to_f16_finish(bits, rounding, finish), expected, "{bits:x} {finish:?}");
                        let expected = finished(brains.round(value, rounding), 0x7f80);
                        assert_eq!(cv::f32_to_bf16_finish(bits, rounding, finish), expected, "{bits:x} {finish:?}");
                    }
                }
            }
        }
    }
}
