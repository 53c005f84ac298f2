//! Exponentials of whole slices: plain loops that the compiler turns into vector code.
//!
//! Most of a softmax's time is exponentials. The algorithm is the usual one (Cody and Waite's reduction, e.g. W. J. Cody
//! and W. Waite, Software Manual for the Elementary Functions, 1980, chapter 6): `x = n ln 2 + r` with `|r| <= ln(2)/2`,
//! a Taylor polynomial for `e^r`, and a scaling by `2^n` in two steps, so that denormal results are rounded once.

/// `a * b + c`, rounded once where `FUSED` (the processor has the instruction), else twice.
macro_rules! multiply_add {
    ($a:expr, $b:expr, $c:expr) => {
        if FUSED { $a.mul_add($b, $c) } else { $a * $b + $c }
    };
}

macro_rules! exponential {
    (
        $(#[$doc:meta])* $each:ident, $one:ident, $T:ty, $U:ty,
        exponent: $fraction_bits:literal, $bias:literal,
        low: $low:literal, high: $high:literal,
        log2_e: $log2_e:expr, ln2: $ln2_high:literal, $ln2_low:literal,
        coefficients: [$($coefficient:expr),*]
    ) => {
        #[inline(always)]
        fn $one<const FUSED: bool>(x: $T) -> $T {
            // Adding 1.5 * 2^fraction_bits rounds to an integer, which then stands in the lowest bits of the sum.
            const ROUND: $T = 1.5 * (1 as $U << $fraction_bits) as $T;
            // Beyond these the result is 0 or infinity all the same. Written so that NaN passes.
            let x = if x < $low { $low } else { x };
            let x = if x > $high { $high } else { x };
            let n = multiply_add!(x, $log2_e, ROUND) - ROUND;
            let r = multiply_add!(n, -$ln2_high, x);
            let r = multiply_add!(n, -$ln2_low, r);
            let mut tail: $T = 0.0;
            $(tail = multiply_add!(tail, r, $coefficient);)*
            // 1 + (r + r^2 tail): the largest terms last.
            let power = 1.0 + multiply_add!(r * r, tail, r);
            let half = multiply_add!(n, 0.5, ROUND) - ROUND;
            let two_to = |n: $T| <$T>::from_bits(((n + ROUND).to_bits().wrapping_add($bias)) << $fraction_bits);
            power * two_to(half) * two_to(n - half)
        }

        $(#[$doc])*
        pub fn $each(values: &mut [$T]) {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                #[target_feature(enable = "avx2,fma")]
                fn wide(values: &mut [$T]) {
                    for value in values {
                        *value = $one::<true>(*value);
                    }
                }
                // SAFETY: the processor has both features, as was just asked.
                return unsafe { wide(values) };
            }
            for value in values {
                *value = $one::<{ cfg!(target_arch = "aarch64") }>(*value);
            }
        }
    };
}

exponential!(
    /// e to the power of each, in place; within 1.1 units in the last place.
    exp_f64, exp_one_f64, f64, u64,
    exponent: 52, 1023,
    low: -746.0, high: 710.0,
    log2_e: std::f64::consts::LOG2_E, ln2: 0.6931471803691238, 1.9082149292705877e-10,
    coefficients: [
        1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
        1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5
    ]
);
exponential!(
    /// e to the power of each, in place; within 1.1 units in the last place.
    exp_f32, exp_one_f32, f32, u32,
    exponent: 23, 127,
    low: -104.0, high: 89.0,
    log2_e: std::f32::consts::LOG2_E, ln2: 0.693_145_75, 1.428_606_8e-6,
    coefficients: [1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5]
);

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units in the last place, counted in representable numbers.
    fn apart_f64(a: f64, b: f64) -> u64 {
        if a.is_nan() && b.is_nan() { 0 } else { (a.to_bits() as i64).abs_diff(b.to_bits() as i64) }
    }

    #[test]
    fn exponentials_at_the_ends() {
        // The smallest denormal is 2^-1074; e^x rounds to it down to x = -1075 ln 2 = -745.133...
        let table = [
            (0.0, 1.0),
            (-0.0, 1.0),
            (1.0, std::f64::consts::E),
            (-746.0, 0.0),
            (-745.2, 0.0),
            (-745.1, 5e-324),
            (709.0, 8.218407461554972e307),
            (709.79, f64::INFINITY),
            (1e300, f64::INFINITY),
            (f64::INFINITY, f64::INFINITY),
            (f64::NEG_INFINITY, 0.0),
            (f64::NAN, f64::NAN),
            (5e-324, 1.0),
        ];
        for (x, expected) in table {
            let mut got = [x];
            exp_f64(&mut got);
            assert!(apart_f64(got[0], expected) <= 1, "{x}: {:e}", got[0]);
            for got in [exp_one_f64::<true>(x), exp_one_f64::<false>(x)] {
                assert!(apart_f64(got, libm::exp(x)) <= 1, "{x}: {got:e}");
            }
        }
        for x in [f32::NEG_INFINITY, -104.0, -103.2, 0.0, 88.7, 88.8, f32::INFINITY, f32::NAN] {
            let mut got = [x];
            exp_f32(&mut got);
            let expected = libm::exp(f64::from(x)) as f32;
            assert!(got[0].to_bits().abs_diff(expected.to_bits()) <= 1 || x.is_nan() && got[0].is_nan(), "{x}");
        }
    }

    #[test]
    fn exponentials_agree_with_libm_everywhere() {
        let steps = 400_000;
        let mut wide: Vec<f64> =
            (0..=steps).map(|step| -746.5 + f64::from(step) * (1457.0 / f64::from(steps))).collect();
        wide.extend((0..=steps).map(|step| -0.4 + f64::from(step) * (0.8 / f64::from(steps))));
        wide.extend((1..1074).flat_map(|n| [2f64.powi(-n), -(2f64.powi(-n))]));
        for fused in [true, false] {
            let worst = wide
                .iter()
                .map(|&x| {
                    let got = if fused { exp_one_f64::<true>(x) } else { exp_one_f64::<false>(x) };
                    apart_f64(got, libm::exp(x))
                })
                .max();
            assert!(worst <= Some(1), "float64, fused {fused}: {worst:?}");
        }
        let mut through_slice = wide.clone();
        exp_f64(&mut through_slice);
        assert!(wide.iter().zip(&through_slice).all(|(&x, &got)| apart_f64(got, libm::exp(x)) <= 1));
        // float32 against float64: the error itself, in units of the last place of the right answer.
        for x in (0..=4_000_000).map(|step| -104.5f32 + step as f32 * (194.0 / 4e6)) {
            let exact = libm::exp(f64::from(x));
            let unit = (f64::from((exact as f32).next_up()) - f64::from(exact as f32)).min(2f64.powi(104));
            for got in [exp_one_f32::<true>(x), exp_one_f32::<false>(x)] {
                let same = got == exact as f32;
                assert!(same || (f64::from(got) - exact).abs() < 1.1 * unit, "{x}: {got:e}, {exact:e}");
            }
        }
    }
}
