//! The arithmetic against independent ones: the host's, the `half` crate's, exact integers, and PTX's own statements.

use gpuemu_ptx::numerics::convert::{self, E2M1, E2M3, E3M2, E4M3, E5M2, Integer};
use gpuemu_ptx::numerics::exact::{BF16, F16, F32, F64, Rounding};
use gpuemu_ptx::numerics::float::{self, Extremum};
use gpuemu_ptx::numerics::half as ours;
use gpuemu_ptx::numerics::tensor_core::{Accumulator, Element, SumRule, multiply_add};
use gpuemu_ptx::numerics::{integer, special};
use half::{bf16, f16};

const DIRECTIONS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

/// A plain generator; the seed is the test's.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    /// A binary32 of any kind: near 1, sparse, or any bits.
    fn float(&mut self) -> u32 {
        let (bits, kind) = (self.next() >> 16, self.next() >> 40);
        match kind & 3 {
            0 => bits as u32,
            1 => bits as u32 & 0x80ff_ffff | 0x3f00_0000,
            2 => (bits & bits >> 7 & bits >> 13) as u32,
            _ => (bits as u32 & 0x8000_0fff) | 0x3f80_0000,
        }
    }
}

fn same(a: f32, bits: u32) -> bool {
    a.to_bits() == bits || (a.is_nan() && bits == float::NAN32)
}

#[test]
fn every_half_widens_and_narrows_as_in_the_half_crate() {
    for h in 0..=u16::MAX {
        assert!(same(f16::from_bits(h).to_f32(), ours::f16_to_f32(h)), "f16 {h:x}");
        if !bf16::from_bits(h).is_nan() {
            assert_eq!(bf16::from_bits(h).to_f32().to_bits(), ours::bf16_to_f32(h), "bf16 {h:x}");
        }
        // The number itself, its neighbours in binary32, and the tie above it.
        for step in [0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001] {
            for base in [ours::f16_to_f32(h), u32::from(h) << 16] {
                let x = base.wrapping_add(step);
                let value = f32::from_bits(x);
                if value.is_nan() {
                    assert_eq!((ours::f32_to_f16(x), ours::f32_to_bf16(x)), (0x7fff, 0x7fff));
                } else {
                    assert_eq!(ours::f32_to_f16(x), f16::from_f32(value).to_bits(), "{x:x}");
                    assert_eq!(ours::f32_to_bf16(x), bf16::from_f32(value).to_bits(), "{x:x}");
                }
            }
        }
    }
}

#[test]
fn one_half_operation_rounds_once() {
    let mut random = Random(1);
    for _ in 0..400_000 {
        let (r, s) = (random.next(), random.next());
        let [a, b, c] = [r as u16, (r >> 16) as u16, (s >> 8) as u16];
        let [x, y, z] = [a, b, c].map(u64::from);
        let n = Rounding::Nearest;
        assert_eq!(u64::from(ours::add_f16(a, b)), F16.add(x, y, n), "{a:x} + {b:x}");
        assert_eq!(u64::from(ours::mul_f16(a, b)), F16.mul(x, y, n), "{a:x} * {b:x}");
        assert_eq!(u64::from(ours::fma_f16(a, b, c)), F16.fma(x, y, z, n), "{a:x} * {b:x} + {c:x}");
        assert_eq!(u64::from(ours::add_bf16(a, b)), BF16.add(x, y, n), "{a:x} + {b:x}");
        assert_eq!(u64::from(ours::mul_bf16(a, b)), BF16.mul(x, y, n), "{a:x} * {b:x}");
        assert_eq!(u64::from(ours::fma_bf16(a, b, c)), BF16.fma(x, y, z, n), "{a:x} * {b:x} + {c:x}");
    }
}

#[test]
fn integer_and_floating_roads_round_alike() {
    let mut random = Random(2);
    for _ in 0..100_000 {
        let [a, b, c] = [random.float(), random.float(), random.float()];
        let [x, y, z] = [a, b, c].map(u64::from);
        for r in DIRECTIONS {
            assert_eq!(u64::from(float::add32(a, b, r)), F32.add(x, y, r), "{a:x} + {b:x} {r:?}");
            assert_eq!(u64::from(float::mul32(a, b, r)), F32.mul(x, y, r), "{a:x} * {b:x} {r:?}");
            assert_eq!(u64::from(float::fma32(a, b, c, r)), F32.fma(x, y, z, r), "{a:x} * {b:x} + {c:x} {r:?}");
            assert_eq!(float::fma32(a, b, c, r), float::fma32_through_f64(a, b, c, r), "{a:x} * {b:x} + {c:x} {r:?}");
            assert_eq!(u64::from(float::div32(a, b, r)), F32.div(x, y, r), "{a:x} / {b:x} {r:?}");
            assert_eq!(u64::from(float::sqrt32(a, r)), F32.sqrt(x, r), "sqrt {a:x} {r:?}");
        }
        // To nearest, the integer road against the host's binary64.
        let [p, q, s] = [random.next(), random.next(), random.next()].map(f64::from_bits);
        for (host, exact) in [
            (p + q, F64.add(p.to_bits(), q.to_bits(), Rounding::Nearest)),
            (p * q, F64.mul(p.to_bits(), q.to_bits(), Rounding::Nearest)),
            (p / q, F64.div(p.to_bits(), q.to_bits(), Rounding::Nearest)),
            (p.mul_add(q, s), F64.fma(p.to_bits(), q.to_bits(), s.to_bits(), Rounding::Nearest)),
            (p.sqrt(), F64.sqrt(p.to_bits(), Rounding::Nearest)),
        ] {
            assert!(host.to_bits() == exact || (host.is_nan() && exact == F64.nan()), "{p:e} {q:e} {s:e}");
        }
    }
}

#[test]
fn directed_results_enclose_the_exact_one() {
    // value, Zero, Down, Up of 1/3, 2/3, -1/3 by hand: 1/3 = 0x3eaaaaaa.aaa...
    for (a, b, zero, down, up) in [
        (1.0f32, 3.0f32, 0x3eaa_aaaau32, 0x3eaa_aaaa, 0x3eaa_aaab),
        (2.0, 3.0, 0x3f2a_aaaa, 0x3f2a_aaaa, 0x3f2a_aaab),
        (-1.0, 3.0, 0xbeaa_aaaa, 0xbeaa_aaab, 0xbeaa_aaaa),
    ] {
        let found = [Rounding::Zero, Rounding::Down, Rounding::Up].map(|r| float::div32(a.to_bits(), b.to_bits(), r));
        assert_eq!(found, [zero, down, up], "{a} / {b}");
    }
    let (large, least) = (0x7f7f_ffff, 1);
    assert_eq!(float::add32(large, large, Rounding::Zero), large);
    assert_eq!(float::add32(large, large, Rounding::Up), 0x7f80_0000);
    assert_eq!(float::mul32(least, least, Rounding::Up), 1);
    assert_eq!(float::mul32(least, least, Rounding::Down), 0);
    assert_eq!(float::add32(0x3f80_0000, 0xbf80_0000, Rounding::Down), 0x8000_0000);
    assert_eq!(float::add32(0x3f80_0000, 0xbf80_0000, Rounding::Nearest), 0);
}

#[test]
fn small_floats_hold_what_the_formats_say() {
    // Code and value, from the OCP 8-bit and microscaling format definitions.
    for (format, code, value) in [
        (E4M3, 0x7e, 448.0),
        (E4M3, 0x08, 2f32.powi(-6)),
        (E4M3, 0x01, 2f32.powi(-9)),
        (E5M2, 0x7b, 57344.0),
        (E5M2, 0x04, 2f32.powi(-14)),
        (E5M2, 0x01, 2f32.powi(-16)),
        (E2M1, 0x7, 6.0),
        (E2M1, 0x1, 0.5),
        (E2M3, 0x1f, 7.5),
        (E2M3, 0x01, 0.125),
        (E3M2, 0x1f, 28.0),
        (E3M2, 0x01, 0.0625),
    ] {
        assert_eq!(f16::from_bits(convert::small_to_f16(code, format)).to_f32(), value, "{format:?} {code:x}");
        assert_eq!(convert::f32_to_small(value.to_bits(), format, false), code, "{format:?} {value}");
        assert_eq!(
            convert::f32_to_small(f32::INFINITY.to_bits(), format, false),
            convert::f32_to_small(1e9f32.to_bits(), format, false)
        );
    }
    // Every code comes back, ties go to even: halfway between two neighbours the even code is chosen.
    for (format, last) in [(E4M3, 0x7eu8), (E5M2, 0x7b), (E2M1, 7), (E2M3, 31), (E3M2, 31)] {
        for code in 0..last {
            let [low, high] = [code, code + 1].map(|c| f16::from_bits(convert::small_to_f16(c, format)).to_f32());
            assert_eq!(convert::f32_to_small(low.to_bits(), format, false), code);
            let even = if code & 1 == 0 { code } else { code + 1 };
            assert_eq!(
                convert::f32_to_small(((low + high) / 2.0).to_bits(), format, false),
                even,
                "{format:?} {code:x}"
            );
        }
    }
    assert_eq!(
        [0u32, 0x3f80_0000, 0x3fc0_0000, 0x7f80_0000, 0x7fc0_0000].map(|x| convert::f32_to_ue8m0(x, true)),
        [0, 127, 128, 254, 255]
    );
}

#[test]
fn ptx_says_so() {
    let (nan, one, minus_zero) = (0x7fc0_1234, 0x3f80_0000, 0x8000_0000);
    // "If one of the operands is NaN, the result is the other"; with .NaN it is canonical NaN; "+0.0 > -0.0".
    assert_eq!(float::min32(nan, one, Extremum::default()), one);
    assert_eq!(float::min32(nan, one, Extremum { nan: true, ..Default::default() }), float::NAN32);
    assert_eq!(float::max32(minus_zero, 0, Extremum::default()), 0);
    assert_eq!(float::min32(0, minus_zero, Extremum::default()), minus_zero);
    // ".sat clamps the result to [0.0, 1.0]. NaN results are flushed to +0.0f."
    assert_eq!([nan, minus_zero, 0x4000_0000, 0xbf80_0000].map(float::saturate32), [0, 0, one, 0]);
    // cvt: NaN to integer is 0 from f32 to 32 bits, the most negative value where 64 bits take part.
    let s32 = Integer { bits: 32, signed: true };
    assert_eq!(convert::f32_to_int(nan, s32, Rounding::Zero), 0);
    assert_eq!(convert::f64_to_int(f64::NAN.to_bits(), s32, Rounding::Zero) as u32, 0x8000_0000);
    assert_eq!(convert::f32_to_int(1e20f32.to_bits(), s32, Rounding::Zero) as u32, 0x7fff_ffff);
    // ex2, lg2, rcp, sqrt of the values in their tables.
    for ftz in [false, true] {
        assert_eq!([0, 0xff80_0000, 0x7f80_0000].map(|x| special::ex2(x, ftz)), [one, 0, 0x7f80_0000]);
        assert_eq!(
            [0, one, 0x7f80_0000, 0xbf80_0000].map(|x| special::lg2(x, ftz)),
            [0xff80_0000, 0, 0x7f80_0000, float::NAN32]
        );
        assert_eq!([0, minus_zero, 0xff80_0000].map(|x| special::rcp(x, ftz)), [0x7f80_0000, 0xff80_0000, minus_zero]);
        assert_eq!(
            [minus_zero, 0x7f80_0000, 0xbf80_0000].map(|x| special::sqrt(x, ftz)),
            [minus_zero, 0x7f80_0000, float::NAN32]
        );
    }
    assert_eq!((integer::shl_b32(1, 32), integer::shr_s32(minus_zero, 99)), (0, u32::MAX));
    assert_eq!(integer::bfind_u32(0, false), u32::MAX);
}

#[test]
fn architectures_differ_in_what_a_sum_keeps() {
    // 1 + 2^-24 + 2^-24, c = 0, then 2^25 beside them: 24 fraction bits keep a 2^-24 beside 1, 23 drop it, and a group of
    // four adds the last product in a sum of its own.
    let half = |x: f32| u32::from(f16::from_f32(x).to_bits());
    let tiny = 2f32.powi(-12);
    let mut a = [[0u32; 8]; 1];
    let mut b = [[0u32; 8]; 8];
    a[0][0] = half(1.0);
    b[0][0] = half(1.0);
    for k in [1, 2] {
        a[0][k] = half(tiny);
        b[k][0] = half(tiny);
    }
    let sum = |fraction_bits, group| {
        let rule = SumRule { fraction_bits, group, result_bits: 23 };
        multiply_add::<1, 8>(rule, (Element::F16, Element::F16), Accumulator::F32, &a, &b, &[[0; 8]; 1])[0][0]
    };
    assert_eq!([sum(23, 8), sum(24, 8), sum(25, 8)], [0x3f80_0000, 0x3f80_0001, 0x3f80_0001]);
    assert_eq!(sum(25, 2), 0x3f80_0000);
}
