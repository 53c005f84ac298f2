//! Answers worked out by hand, one line a question: every operator, its edges and its policies.

use super::arguments::ask;
use crate::tensor::{Array, Values};
use gpuemu_contract::{Compute, DType, EdgePolicy, EmptyPolicy, NanPolicy, ParamValue};

use DType::{Int8, Int32, Int64, UInt8, UInt64};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PLAIN: EdgePolicy = EdgePolicy { nan: NanPolicy::Propagate, empty: EmptyPolicy::Natural };
const IGNORE: EdgePolicy = EdgePolicy { nan: NanPolicy::Ignore, empty: EmptyPolicy::Natural };
const ZERO: EdgePolicy = EdgePolicy { nan: NanPolicy::Propagate, empty: EmptyPolicy::Zero };
const EMPTY_NAN: EdgePolicy = EdgePolicy { nan: NanPolicy::Propagate, empty: EmptyPolicy::Nan };

fn floats(shape: &[usize], values: &[f64]) -> Array {
    Array::float(DType::Float64, shape, values.to_vec())
}

fn integers(dtype: DType, shape: &[usize], values: &[i64]) -> Array {
    Array::integer(dtype, shape, values.to_vec())
}

fn row(values: &[f64]) -> Array {
    floats(&[values.len()], values)
}

fn int(value: i64) -> ParamValue {
    ParamValue::Int(value)
}

fn same(got: f64, expected: f64, tolerance: f64) -> bool {
    got == expected || got.is_nan() && expected.is_nan() || (got - expected).abs() <= tolerance * expected.abs()
}

#[track_caller]
fn check(op: &str, inputs: &[Array], params: &[(&str, ParamValue)], edges: EdgePolicy, shape: &[usize], right: &[f64]) {
    // float32: what a kernel may show, so within a few of its roundings; float64: a few of its own.
    for (precision, tolerance) in [(Compute::Float64, 1e-15), (Compute::Float32, 1e-6), (Compute::Tf32, 1e-6)] {
        let answer = ask(op, inputs, params, (DType::Float64, precision, edges)).unwrap().remove(0);
        assert_eq!(answer.shape, shape, "{op}");
        let got = answer.floats().unwrap();
        let near = got.iter().zip(right).all(|(&got, &right)| same(got, right, tolerance));
        assert!(near && got.len() == right.len(), "{op} {params:?} in {precision}: {got:?}, right is {right:?}");
    }
}

#[test]
fn norms() {
    let half = 0.5f64;
    // (1, 3): mean 2, variance 1.
    check("layer_norm", &[row(&[1.0, 3.0])], &[("eps", int(0))], PLAIN, &[2], &[-1.0, 1.0]);
    check("layer_norm", &[row(&[1.0, 3.0])], &[("eps", int(3))], PLAIN, &[2], &[-half, half]);
    let (weight, bias) = (row(&[2.0, 4.0]), row(&[0.0, 5.0]));
    check("layer_norm", &[row(&[1.0, 3.0]), weight.clone(), bias], &[("eps", int(0))], PLAIN, &[2], &[-2.0, 9.0]);
    check("layer_norm", &[row(&[7.0])], &[], PLAIN, &[1], &[0.0]);
    check("layer_norm", &[row(&[7.0, INF])], &[], PLAIN, &[2], &[NAN, NAN]);
    check(
        "layer_norm",
        &[floats(&[2, 2], &[1.0, 3.0, NAN, 1.0])],
        &[("eps", int(0))],
        PLAIN,
        &[2, 2],
        &[-1.0, 1.0, NAN, NAN],
    );
    // (1, 7): the mean of squares is 25.
    check("rms_norm", &[row(&[1.0, 7.0]), weight], &[("eps", int(0))], PLAIN, &[2], &[0.4, 5.6]);
    check("rms_norm", &[row(&[1.0, INF])], &[], PLAIN, &[2], &[0.0, NAN]);
    check("rms_norm", &[row(&[0.0, 0.0])], &[], PLAIN, &[2], &[0.0, 0.0]);
    check("l2_norm", &[row(&[3.0, -4.0])], &[], PLAIN, &[2], &[0.6, -0.8]);
    check("l2_norm", &[row(&[0.0, 0.0])], &[], PLAIN, &[2], &[0.0, 0.0]);
    check("l2_norm", &[floats(&[2, 1], &[3.0, 4.0])], &[("axis", int(0))], PLAIN, &[2, 1], &[0.6, 0.8]);
    // Two groups of two channels: (1, 3) and (10, 30).
    let params = [("groups", int(2)), ("eps", int(0))];
    let (x, weight) = (floats(&[1, 4, 1], &[1.0, 3.0, 10.0, 30.0]), row(&[1.0, 2.0, 3.0, 4.0]));
    check("group_norm", &[x, weight], &params, PLAIN, &[1, 4, 1], &[-1.0, 2.0, -3.0, 4.0]);
}

#[test]
fn activations() {
    let third = 1.0 / 3.0;
    let ln3 = 3f64.ln();
    check("relu", &[row(&[-1.0, -0.0, 2.0, NAN, INF, -INF])], &[], PLAIN, &[6], &[0.0, 0.0, 2.0, NAN, INF, 0.0]);
    check(
        "leaky_relu",
        &[row(&[-4.0, 4.0, NAN])],
        &[("slope", ParamValue::Float(0.25))],
        PLAIN,
        &[3],
        &[-1.0, 4.0, NAN],
    );
    check("elu", &[row(&[-ln3, 2.0, -INF])], &[("alpha", int(3))], PLAIN, &[3], &[-2.0, 2.0, -3.0]);
    check("sigmoid", &[row(&[0.0, ln3, -ln3, INF, -INF, NAN])], &[], PLAIN, &[6], &[0.5, 0.75, 0.25, 1.0, 0.0, NAN]);
    check("silu", &[row(&[0.0, ln3, INF, -INF])], &[], PLAIN, &[4], &[0.0, 0.75 * ln3, INF, NAN]);
    // tanh(ln(3) / 2) = (3 - 1) / (3 + 1)
    check("tanh", &[row(&[0.0, ln3 / 2.0, -ln3 / 2.0, INF, -INF])], &[], PLAIN, &[5], &[0.0, 0.5, -0.5, 1.0, -1.0]);
    check("exp", &[row(&[0.0, -ln3, INF, -INF, NAN])], &[], PLAIN, &[5], &[1.0, third, INF, 0.0, NAN]);
    check("swiglu", &[row(&[ln3, ln3]), row(&[4.0, -8.0])], &[], PLAIN, &[2], &[3.0 * ln3, -6.0 * ln3]);
    // The normal distribution at 1 and -1 (Abramowitz and Stegun, table 26.1).
    let at_one = [0.841344746068543, -0.158655253931457, 0.0, INF, NAN];
    for (&x, right) in [1.0, -1.0, 0.0, INF, -INF].iter().zip(at_one) {
        let answer = ask("gelu", &[row(&[x])], &[], (DType::Float64, Compute::Float64, PLAIN)).unwrap();
        assert!(same(answer[0].at(0), right, 1e-14), "gelu {x}: {}", answer[0].at(0));
    }
    // Far below zero nothing cancels: -10 times the normal distribution at -10, 7.619853024160527e-24.
    let answer = ask("gelu", &[row(&[-10.0])], &[], (DType::Float64, Compute::Float64, PLAIN)).unwrap();
    assert!(same(answer[0].at(0), -7.619853024160527e-23, 1e-14), "{:e}", answer[0].at(0));
}

#[test]
fn arithmetic() {
    check("add", &[floats(&[2, 1], &[1.0, 2.0]), row(&[10.0, INF])], &[], PLAIN, &[2, 2], &[11.0, INF, 12.0, INF]);
    check("sub", &[row(&[1.0, INF]), row(&[3.0, INF])], &[], PLAIN, &[2], &[-2.0, NAN]);
    check("mul", &[row(&[3.0, 0.0]), floats(&[], &[INF])], &[], PLAIN, &[2], &[INF, NAN]);
    check("div", &[row(&[3.0, 0.0, -1.0]), row(&[2.0, 0.0, 0.0])], &[], PLAIN, &[3], &[1.5, NAN, -INF]);
    check("fma", &[row(&[3.0]), row(&[4.0]), row(&[-2.0])], &[], PLAIN, &[1], &[10.0]);
    // 7 / 2 between integers, for a float output.
    check("div", &[integers(Int32, &[1], &[7]), integers(Int32, &[1], &[2])], &[], PLAIN, &[1], &[3.5]);

    let table: &[(&str, DType, &[i64], &[i64], &[i64])] = &[
        ("add", Int8, &[100, -100], &[100, -100], &[-56, 56]),
        ("sub", UInt8, &[3], &[5], &[254]),
        ("mul", Int32, &[65536, 46341], &[65536, 46341], &[0, -2147479015]),
        ("add", Int64, &[i64::MAX], &[1], &[i64::MIN]),
        ("div", Int32, &[7, -7, 7, -7], &[2, 2, -2, -2], &[3, -3, -3, 3]),
        // -2 stands for 2^64 - 2.
        ("div", UInt64, &[-2], &[2], &[i64::MAX]),
    ];
    for &(op, dtype, a, b, right) in table {
        let operands = [integers(dtype, &[a.len()], a), integers(dtype, &[b.len()], b)];
        for precision in Compute::ALL {
            let answer = ask(op, &operands, &[], (dtype, precision, PLAIN)).unwrap();
            assert_eq!(answer[0].integers(), Some(right), "{op} {dtype} {a:?} {b:?}");
        }
    }
    let operands = [integers(Int32, &[2], &[1, 2]), integers(Int32, &[2], &[1, 0])];
    let error = ask("div", &operands, &[], (Int32, Compute::Float64, PLAIN)).unwrap_err();
    assert_eq!(error.to_string(), "div: an integer division by zero has no answer; give in1 a domain without 0");
    let error = ask("add", &[row(&[1.0; 2]), row(&[1.0; 3])], &[], (DType::Float64, Compute::Float64, PLAIN));
    assert_eq!(error.unwrap_err().to_string(), "shapes [2] and [3] do not broadcast");
}

#[test]
fn reductions() {
    let (nothing, all_nan) = (floats(&[1, 0], &[]), row(&[NAN, NAN]));
    let table: &[(&str, &[f64], EdgePolicy, f64)] = &[
        ("sum", &[1.0, 2.0, 4.0], PLAIN, 7.0),
        ("sum", &[1.0, NAN, 4.0], PLAIN, NAN),
        ("sum", &[1.0, NAN, 4.0], IGNORE, 5.0),
        ("sum", &[INF, -INF], PLAIN, NAN),
        ("mean", &[1.0, 2.0, 6.0], PLAIN, 3.0),
        ("mean", &[1.0, NAN, 6.0], IGNORE, 3.5),
        ("var", &[1.0, 3.0, 5.0, 7.0], PLAIN, 5.0),
        ("var", &[1.0, NAN, 3.0], IGNORE, 1.0),
        ("var", &[4.0], PLAIN, 0.0),
        ("max", &[1.0, 5.0, -2.0], PLAIN, 5.0),
        ("max", &[1.0, NAN, -2.0], PLAIN, NAN),
        ("max", &[1.0, NAN, -2.0], IGNORE, 1.0),
        ("max", &[-INF, -INF], PLAIN, -INF),
        ("min", &[1.0, 5.0, -2.0], PLAIN, -2.0),
        ("min", &[NAN, 5.0, -INF], PLAIN, NAN),
        ("min", &[NAN, 5.0, 7.0], IGNORE, 5.0),
    ];
    for &(op, values, edges, right) in table {
        check(op, &[row(values)], &[], edges, &[], &[right]);
    }
    let empty: &[(&str, [f64; 3])] = &[
        ("sum", [0.0, 0.0, NAN]),
        ("mean", [NAN, 0.0, NAN]),
        ("var", [NAN, 0.0, NAN]),
        ("max", [-INF, 0.0, NAN]),
        ("min", [INF, 0.0, NAN]),
    ];
    for &(op, [natural, zero, nan]) in empty {
        check(op, std::slice::from_ref(&nothing), &[], PLAIN, &[1], &[natural]);
        check(op, std::slice::from_ref(&nothing), &[], ZERO, &[1], &[zero]);
        check(op, std::slice::from_ref(&nothing), &[], EMPTY_NAN, &[1], &[nan]);
        check(op, std::slice::from_ref(&all_nan), &[], IGNORE, &[], &[natural]);
    }
    for (correction, right) in [(1, 20.0 / 3.0), (3, 20.0), (4, INF), (5, INF)] {
        check("var", &[row(&[1.0, 3.0, 5.0, 7.0])], &[("correction", int(correction))], PLAIN, &[], &[right]);
    }
    let x = floats(&[2, 2], &[1.0, 2.0, 30.0, 40.0]);
    let keep = [("axis", int(0)), ("keepdims", ParamValue::Bool(true))];
    check("sum", std::slice::from_ref(&x), &keep, PLAIN, &[1, 2], &[31.0, 42.0]);
    check("cumsum", &[x], &[("axis", int(0))], PLAIN, &[2, 2], &[1.0, 2.0, 31.0, 42.0]);
    check("cumsum", &[row(&[1.0, INF, 2.0, -INF])], &[], PLAIN, &[4], &[1.0, INF, INF, NAN]);
    check("cumsum", &[row(&[1.0, NAN, 2.0])], &[], PLAIN, &[3], &[1.0, NAN, NAN]);
    check("cumsum", &[row(&[1.0, NAN, 2.0])], &[], IGNORE, &[3], &[1.0, 1.0, 3.0]);
}

#[test]
fn float64_sums_do_not_lose_small_addends() {
    // 1 and a million times 2^-53: one after the other every addition would round back to 1.
    let small = 2f64.powi(-53);
    let mut values = vec![small; 1 << 20];
    values[0] = 1.0;
    let right = 1.0 + small * ((1 << 20) - 1) as f64;
    for op in ["sum", "cumsum"] {
        let answer = ask(op, &[row(&values)], &[], (DType::Float64, Compute::Float64, PLAIN)).unwrap();
        let got = answer[0].at(answer[0].len() - 1);
        assert!((got - right).abs() <= 16.0 * f64::EPSILON, "{op}: {got:e}, right is {right:e}");
    }
}

#[test]
fn integer_reductions() {
    let table: &[(&str, DType, DType, &[i64], EdgePolicy, i64)] = &[
        ("sum", Int32, Int32, &[i32::MAX as i64, 1], PLAIN, i32::MIN as i64),
        ("sum", Int8, Int64, &[100, 100, 100], PLAIN, 300),
        ("max", Int8, Int8, &[-3, -1, -2], PLAIN, -1),
        // As unsigned, -1 is the largest.
        ("max", UInt64, UInt64, &[5, -1, 7], PLAIN, -1),
        ("min", UInt64, UInt64, &[5, -1, 7], PLAIN, 5),
        ("max", Int8, Int8, &[], PLAIN, -128),
        ("min", Int8, Int8, &[], PLAIN, 127),
        ("min", Int8, Int8, &[], ZERO, 0),
        ("argmax", UInt64, Int64, &[5, -1, 7], PLAIN, 1),
        ("argmax", Int32, Int64, &[5, -1, 5], PLAIN, 0),
    ];
    for &(op, from, to, values, edges, right) in table {
        let answer = ask(op, &[integers(from, &[values.len()], values)], &[], (to, Compute::Float32, edges)).unwrap();
        assert_eq!(
            (answer[0].integers(), answer[0].shape.as_slice()),
            (Some(&[right][..]), &[][..]),
            "{op} {values:?}"
        );
    }
    let nothing = [integers(Int8, &[2, 0], &[])];
    assert!(ask("max", &nothing, &[], (Int8, Compute::Float64, EMPTY_NAN)).is_err());
}

#[test]
fn places_of_the_largest() {
    let table: &[(&[f64], EdgePolicy, i64)] = &[
        (&[1.0, 3.0, 3.0], PLAIN, 1),
        (&[1.0, NAN, 3.0, NAN], PLAIN, 1),
        (&[1.0, NAN, 3.0], IGNORE, 2),
        (&[NAN, NAN], IGNORE, 0),
        (&[-INF, -INF], PLAIN, 0),
        (&[], ZERO, 0),
    ];
    for &(values, edges, right) in table {
        let answer = ask("argmax", &[row(values)], &[], (Int64, Compute::Float64, edges)).unwrap();
        assert_eq!(answer[0].integers(), Some(&[right][..]), "{values:?}");
    }
    let error = ask("argmax", &[row(&[])], &[], (Int64, Compute::Float64, PLAIN)).unwrap_err();
    assert!(error.to_string().starts_with("argmax: an axis of size 0 has no largest element"));
    // No row at all: nothing to answer.
    let answer = ask("argmax", &[floats(&[0, 0], &[])], &[], (Int64, Compute::Float64, PLAIN)).unwrap();
    assert!(answer[0].is_empty());
}

#[test]
fn moved_and_quantised() {
    let x = floats(&[1, 2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let turned = [("permutation", ParamValue::Text("2,0,1".into()))];
    check("transpose", std::slice::from_ref(&x), &[], PLAIN, &[1, 3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    check("transpose", std::slice::from_ref(&x), &turned, PLAIN, &[3, 1, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    for wrong in ["", "0,1", "0,1,1", "a,b,c", "0,1,2,3"] {
        let params = [("permutation", ParamValue::Text(wrong.into()))];
        let answer = ask("transpose", std::slice::from_ref(&x), &params, (DType::Float64, Compute::Float64, PLAIN));
        assert!(answer.is_err(), "{wrong:?}");
    }
    // Not rounded, saturated.
    let x = floats(&[2, 3], &[1.0, -100.0, 0.3, NAN, INF, -0.5]);
    let scale = row(&[0.5, 0.5, 0.25]);
    for (dtype, params, right) in [
        (Int8, vec![], [2.0, -128.0, 1.2, NAN, 127.0, -2.0]),
        (Int8, vec![("zero_point", int(-1))], [1.0, -128.0, 0.2, NAN, 127.0, -3.0]),
        (UInt8, vec![("zero_point", int(3))], [5.0, 0.0, 4.2, NAN, 255.0, 1.0]),
        (DType::Float8E4M3, vec![], [2.0, -200.0, 1.2, NAN, 448.0, -2.0]),
    ] {
        let setting = (dtype, Compute::Float64, PLAIN);
        let answer = ask("quantize", &[x.clone(), scale.clone()], &params, setting).unwrap();
        let Values::Float(got) = &answer[0].values else { panic!("a quantised answer is not rounded") };
        assert!(got.iter().zip(right).all(|(&got, right)| same(got, right, 1e-15)), "{dtype}: {got:?}");
    }
    let (codes, scale) = (integers(Int8, &[2, 2], &[-128, 127, 0, 5]), floats(&[2, 1], &[0.5, 2.0]));
    check("dequantize", &[codes.clone(), scale.clone()], &[], PLAIN, &[2, 2], &[-64.0, 63.5, 0.0, 10.0]);
    check("dequantize", &[codes, scale], &[("zero_point", int(5))], PLAIN, &[2, 2], &[-66.5, 61.0, -10.0, 0.0]);
}
