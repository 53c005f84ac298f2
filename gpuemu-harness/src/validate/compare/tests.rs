//! Answers against expected values: small tables, and the fast pass against the plain one.

use super::*;
use crate::tensor::round_to_dtype;
use gpuemu_contract::Tolerance;
use proptest::prelude::*;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn one(dtype: DType, got: f64, expected: f64, bound: Bound<'_>, rules: &Rules<'_>) -> Comparison {
    let got = Tensor::from_array(&Array::float(dtype, &[1], vec![got]), dtype);
    compare(&got, &Array::float(dtype, &[1], vec![expected]), bound, rules)
}

#[test]
fn values_against_their_bound() {
    let loose = Bound::cheap(1e-3, 0.0);
    let table = [
        // dtype, got, expected, bound, right
        (DType::Float32, 0.1f32 as f64, 0.1, Bound::ROUNDED, true),
        (DType::Float32, f64::from(0.1f32.next_up()), 0.1, Bound::ROUNDED, false),
        (
            DType::Float32,
            1e8 + 8.0,
            1e8,
            Bound::tolerance(&Tolerance { absolute: 0.0, relative: 0.0 }, DType::Float32),
            true,
        ),
        (
            DType::Float32,
            1e8 + 16.0,
            1e8,
            Bound::tolerance(&Tolerance { absolute: 0.0, relative: 0.0 }, DType::Float32),
            false,
        ),
        (DType::Float32, 90e-7, 1e-7, loose, false),
        (DType::Float32, 0.0, -0.0, Bound::ROUNDED, true),
        (DType::Float16, 2049.0, 2049.0, Bound::ROUNDED, true), // both neighbours of the tie
        (DType::Float16, 2050.0, 2049.0, Bound::ROUNDED, true),
        (DType::Float16, 2048.0, 2049.0, Bound::ROUNDED, true),
        (DType::Float16, 2048.0, 2049.1, Bound::ROUNDED, false),
        (DType::Float16, 5.960464477539063e-8, 3e-8, Bound::ROUNDED, true), // smallest subnormal
        (DType::Float16, 1.1920928955078125e-7, 3e-8, Bound::ROUNDED, false),
        (DType::BFloat16, 1.0078125, 1.00391, Bound::ROUNDED, true),
        (DType::Float64, 1.0, 1.0, Bound::ROUNDED, true),
        (DType::Float64, 1.0 + 2.3e-16, 1.0, Bound::ROUNDED, false),
        (DType::Float32, 1.0, 1.0, Bound::cheap(NAN, 0.0), false),
        (DType::Float32, 1.0, 2.0, Bound::PerElement(&[1.0]), true),
        (DType::Float32, 1.0, 2.0, Bound::PerElement(&[0.99]), false),
        (DType::Float32, 1.0, 1.0, Bound::PerElement(&[NAN]), false),
        (DType::Float32, 1.0, 1.0, Bound::PerElement(&[0.0]), true),
    ];
    for (dtype, got, expected, bound, right) in table {
        let comparison = one(dtype, got, expected, bound, &Rules::default());
        assert_eq!(comparison.agrees(), right, "{dtype} {got} {expected} {bound:?}");
        assert_eq!(comparison.statistics.exceeding, u64::from(!right));
        assert_eq!((comparison.statistics.count, comparison.statistics.finite), (1, 1));
    }
}

#[test]
fn values_that_are_not_finite() {
    use NonFiniteKind::*;
    let table = [
        (DType::Float32, NAN, NAN, None),
        (DType::Float32, INF, INF, None),
        (DType::Float32, -INF, INF, Some(OtherInfinity)),
        (DType::Float32, NAN, 1.0, Some(NanWhereFinite)),
        (DType::Float32, 1.0, NAN, Some(FiniteWhereNan)),
        (DType::Float32, INF, 1.0, Some(InfinityWhereFinite)),
        (DType::Float32, 1.0, -INF, Some(FiniteWhereInfinity)),
        (DType::Float32, f64::from(f32::MAX), INF, Some(FiniteWhereInfinity)),
        (DType::Float32, NAN, INF, Some(NanWhereInfinity)),
        (DType::Float32, INF, NAN, Some(InfinityWhereNan)),
        (DType::Float32, INF, 1e39, None),
        (DType::Float32, -INF, 1e39, Some(InfinityWhereFinite)),
        (DType::Float16, INF, 65520.0, None),
        (DType::Float16, INF, 65519.0, None), // the tie is within the bound
        (DType::Float16, INF, 65000.0, Some(InfinityWhereFinite)),
        (DType::Float16, NAN, 1e9, Some(NanWhereFinite)),
        (DType::Float8E5M2, INF, 61440.0, None),
        (DType::Float8E4M3, NAN, 465.0, None), // no infinity: NaN is the overflow
        (DType::Float8E4M3, NAN, -1e9, None),
        (DType::Float8E4M3, NAN, INF, None),
        (DType::Float8E4M3, NAN, 440.0, Some(NanWhereFinite)),
        (DType::Float8E4M3, 448.0, INF, None), // saturated
        (DType::Float8E4M3, 448.0, -INF, Some(FiniteWhereInfinity)),
        (DType::Float8E5M2, -57344.0, -INF, None),
    ];
    for (dtype, got, expected, kind) in table {
        // 1.6e-5 of 65519 reaches the tie at 65520, 1.6e-5 of 65000 does not.
        let comparison = one(dtype, got, expected, Bound::cheap(1.6e-5, 0.0), &Rules::default());
        let found = comparison.non_finite.as_ref().map(|wrong| wrong.kind);
        assert_eq!(found, kind, "{dtype} {got} {expected}");
        assert_eq!(comparison.statistics.exceeding, u64::from(kind.is_some()));
        assert_eq!(comparison.statistics.count, 1);
    }
    // Without an envelope the tie is out of reach.
    let comparison = one(DType::Float16, INF, 65519.0, Bound::ROUNDED, &Rules::default());
    assert!(!comparison.agrees());
}

#[test]
fn saturation_is_right_for_fp8_alone() {
    let table = [
        (DType::Float8E4M3, 448.0, 1e6, true),
        (DType::Float8E4M3, -448.0, 1e6, false),
        (DType::Float8E4M3, 416.0, 1e6, false),
        (DType::Float8E5M2, 57344.0, 1e6, true),
        (DType::Float16, 65504.0, 1e6, false),
        (DType::Float32, f64::from(f32::MAX), 1e39, false),
    ];
    for (dtype, got, expected, right) in table {
        let comparison = one(dtype, got, expected, Bound::ROUNDED, &Rules::default());
        assert_eq!(comparison.agrees(), right, "{dtype} {got} {expected}");
    }
}

#[test]
fn checks_that_are_switched_off() {
    let no_nan = Rules { check_nan: false, ..Rules::default() };
    let no_inf = Rules { check_inf: false, ..Rules::default() };
    let table = [
        (1.0, NAN, no_nan, true, 0),
        (NAN, 1.0, no_nan, false, 1),
        (1.0, INF, no_nan, false, 1),
        (1.0, INF, no_inf, true, 0),
        (NAN, INF, no_inf, true, 0),
        (INF, 1.0, no_inf, false, 1),
    ];
    for (got, expected, rules, right, count) in table {
        let comparison = one(DType::Float32, got, expected, Bound::ROUNDED, &rules);
        assert_eq!((comparison.agrees(), comparison.statistics.count), (right, count), "{got} {expected}");
    }
}

#[test]
fn integers_are_exact() {
    let big = (1i64 << 53) + 1;
    let table: &[(Tensor, Vec<i64>, u64)] = &[
        (Tensor::from_slice(&[2], &[big, i64::MIN]), vec![big, i64::MIN], 0),
        (Tensor::from_slice(&[2], &[big, i64::MIN]), vec![big - 1, i64::MAX], 2),
        (Tensor::from_slice(&[1], &[u64::MAX]), vec![-1], 0),
        (Tensor::from_slice(&[1], &[u64::MAX]), vec![-2], 1),
        (Tensor::from_slice(&[2], &[-1i8, 127]), vec![-1, 127], 0),
        (Tensor::from_slice(&[2], &[Bool(1), Bool(7)]), vec![1, 1], 0),
        (Tensor::from_slice(&[2], &[Bool(0), Bool(7)]), vec![1, 0], 2),
    ];
    for (got, expected, exceeding) in table {
        let expected = Array::integer(got.dtype(), got.shape(), expected.clone());
        let comparison = compare(got, &expected, Bound::ROUNDED, &Rules::default());
        assert_eq!(comparison.statistics.exceeding, *exceeding, "{got:?}");
        assert_eq!(comparison.agrees(), *exceeding == 0);
    }
}

#[test]
fn a_quantised_answer_may_be_compared_with_the_unrounded_mirror() {
    let got = Tensor::from_slice(&[3], &[2i8, 3, 4]);
    for (expected, exceeding) in [([2.5, 2.5, 4.4], 0), ([2.6, 2.5, 4.4], 1), ([NAN, 2.5, 4.4], 0)] {
        let expected = Array::float(DType::Int8, &[3], expected.to_vec());
        assert_eq!(compare(&got, &expected, Bound::ROUNDED, &Rules::default()).statistics.exceeding, exceeding);
    }
}

#[test]
fn empty_answers_and_single_elements() {
    for shape in [&[0][..], &[2, 0, 3]] {
        let got =
            Tensor::zeros(DType::Float16, Layout { shape: shape.to_vec(), strides: vec![1; shape.len()], offset: 9 });
        let comparison = compare(&got, &Array::float(DType::Float16, shape, vec![]), Bound::ROUNDED, &Rules::default());
        assert!(comparison.agrees());
        assert_eq!(comparison.statistics, Statistics::default());
    }
    let got = Tensor::from_slice(&[], &[2.0f32]);
    let comparison = compare(&got, &Array::float(DType::Float32, &[], vec![1.0]), Bound::ROUNDED, &Rules::default());
    let first = comparison.first.expect("it differs");
    assert_eq!((first.index, first.got, first.expected, first.ulp), (vec![], 2.0, 1.0, 8388608.0));
}

#[test]
fn messages_name_the_thing_and_the_place() {
    let got = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 9.0]);
    let expected = Array::float(DType::Float32, &[2, 2], vec![1.0, 2.0, 3.0, 4.0]);
    let failure = compare(&got, &expected, Bound::ROUNDED, &Rules::default()).failure("out").unwrap();
    assert_eq!(failure.message, "1 of 4 elements of out differ by more than allowed, the first at [1, 1]");
    let expected = Array::float(DType::Float32, &[2, 2], vec![1.0, NAN, 3.0, 4.0]);
    let failure = compare(&got, &expected, Bound::ROUNDED, &Rules::default()).failure("out").unwrap();
    assert_eq!(failure.check, Check::NonFinite);
    assert!(failure.message.starts_with("out has a number where the mirror is NaN at [0, 1]"), "{}", failure.message);
    assert_eq!(check_shape("out", &[2], &[2, 1]).unwrap().message, "out has shape [2], the mirror [2, 1]");
    assert!(check_dtype("out", DType::Int8, DType::Int8).is_none());
}

/// A value near the interesting places of a dtype.
fn values() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -4.0f64..4.0,
        2 => (-160i32..140, -2.0f64..2.0).prop_map(|(exponent, value)| value * 2f64.powi(exponent)),
        1 => prop::sample::select(vec![0.0, -0.0, NAN, INF, -INF, 448.0, 464.0, 65504.0, 65520.0, 3.4e38, 3.5e38, 1e300]),
    ]
}

proptest! {
    /// Against one that looks at an element at a time and keeps everything.
    #[test]
    fn one_pass_finds_what_a_slow_one_finds(
        dtype in prop::sample::select(vec![
            DType::Float64, DType::Float32, DType::Float16, DType::BFloat16, DType::Float8E4M3, DType::Float8E5M2,
        ]),
        rows in 1usize..5,
        columns in prop_oneof![1usize..12, 300usize..1100],
        seeds in prop::collection::vec((values(), prop_oneof![6 => Just(0.0), 3 => -1e-3f64..1e-3, 1 => -3.0f64..3.0]), 1..40),
        stride in prop::sample::select(vec![1usize, 2]),
        swap in any::<bool>(),
        per_element in any::<bool>(),
    ) {
        let count = rows * columns;
        // Mostly tame values, so that fast blocks occur: the drawn ones stand at scattered places.
        let mut expected = vec![1.5; count];
        let mut answers = vec![1.5; count];
        for (number, (value, error)) in seeds.iter().enumerate() {
            let at = (number * 7919) % count;
            expected[at] = *value;
            answers[at] = value * (1.0 + error);
        }
        let shape = [rows, columns];
        let layout = if swap {
            Layout { shape: shape.to_vec(), strides: vec![stride as isize, (rows * stride) as isize], offset: 3 }
        } else {
            Layout { shape: shape.to_vec(), strides: vec![(columns * stride + 1) as isize, stride as isize], offset: 1 }
        };
        let mut got = Tensor::zeros(dtype, layout);
        got.copy_elements_from(&Tensor::from_array(&Array::float(dtype, &shape, answers), dtype));
        let expected = Array::float(dtype, &shape, expected);
        let grid = Grid::of(dtype);
        let allowed: Vec<f64> = expected.floats().unwrap().iter()
            .map(|value| 0.5 * grid.step(*value) + (1e-4 * value.abs() + 1e-7)).collect();
        let bound = if per_element { Bound::PerElement(&allowed) } else { Bound::cheap(1e-4, 1e-7) };
        let rules = Rules::default();
        let fast = compare(&got, &expected, bound, &rules);
        let marks = wrong_elements(&got, &expected, bound, &rules);

        let answers = got.to_array();
        let (mut exceeding, mut errors, mut max_ulp, mut sum_ulp, mut max_rel) = (0, Vec::new(), 0.0f64, 0.0, 0.0f64);
        for number in 0..count {
            let (g, e) = (answers.at(number), expected.at(number));
            prop_assert!(g.is_nan() || round_to_dtype(g, dtype) == g);
            let slack = 1e-4 * e.abs() + 1e-7;
            let limit = dtype.max_finite().unwrap();
            let wrong = if e.is_nan() {
                !g.is_nan()
            } else if g.is_finite() && e.is_finite() {
                let ulp = grid.ulp(g, e);
                max_ulp = max_ulp.max(ulp);
                sum_ulp += ulp;
                if e.abs() >= grid.min_normal { max_rel = max_rel.max((g - e).abs() / e.abs()) }
                let fp8_max = dtype.size() == 1 && g == limit.copysign(e) && e.abs() + slack >= limit;
                let beyond = (g - e).abs() > allowed[number];
                // A right answer at the end of the range has no error to speak of.
                if !(beyond && fp8_max) { errors.push((g - e).abs()) }
                beyond && !fp8_max
            } else if g.is_finite() {
                !(dtype.size() == 1 && g == limit.copysign(e))
            } else if dtype == DType::Float8E4M3 {
                e.is_finite() && e.abs() + slack < 464.0
            } else {
                !(g == e || (g.is_infinite() && e.signum() == g.signum() && e.abs() + slack >= grid.overflow()))
            };
            prop_assert_eq!(marks[number], wrong, "{} {} at {}", g, e, number);
            exceeding += u64::from(wrong);
        }
        let s = &fast.statistics;
        prop_assert_eq!((s.count, s.exceeding, s.finite), (count as u64, exceeding, errors.len() as u64));
        let first = marks.iter().position(|&wrong| wrong);
        let found = [fast.first.as_ref(), fast.non_finite.as_ref().map(|wrong| &wrong.first)];
        let found = found.into_iter().flatten().map(|m| m.index[0] * columns + m.index[1]).min();
        prop_assert_eq!(found, first);
        let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-9 * b.abs();
        // Saturated fp8 elements have no error to speak of; everything else must agree.
        if dtype.size() > 1 {
            errors.sort_by(f64::total_cmp);
            let max = errors.last().copied().unwrap_or(0.0);
            prop_assert!(close(s.max_abs, max) && close(s.max_ulp, max_ulp) && close(s.max_rel, max_rel), "{s:?}");
            if !errors.is_empty() {
                let n = errors.len();
                prop_assert!(close(s.mean_abs, errors.iter().sum::<f64>() / n as f64), "{s:?}");
                prop_assert!(close(s.mean_ulp, sum_ulp / n as f64), "{s:?} {}", sum_ulp / n as f64);
                for (got, fraction) in [(s.p50_abs, 0.5), (s.p90_abs, 0.9), (s.p99_abs, 0.99)] {
                    let right = errors[((fraction * n as f64).ceil() as usize).clamp(1, n) - 1];
                    let right = right.min(f64::from(f32::MAX));
                    prop_assert!((got - right).abs() <= 0.13 * right + 2f64.powi(-128), "{got} {right}");
                }
            }
        }
    }
}
