//! Elementwise operators, transpose and quantisation.

use super::{Case, INF, NAN, case};
use gpuemu_contract::DType::{Float8E4M3, Int8, Int32, Int64};

/// The table.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let special = [0.0, -0.0, 1e-300, -1e-9, 0.5, -0.5, 3.0, -3.0, 20.0, -20.0, INF, NAN];
    for op in ["relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "exp"] {
        cases.extend([
            case(op).wave(&[3, 41]),
            case(op).floats(&[3, 4], &special),
            case(op).floats(&[1], &[-INF]),
            case(op).floats(&[2], &[-700.0, 700.0]),
            case(op).floats(&[], &[0.75]),
            case(op).floats(&[2, 0], &[]),
        ]);
    }
    cases.extend([
        case("relu").integers(Int32, &[3], &[-7, 0, 7]).output(Int32),
        case("leaky_relu").floats(&[3, 4], &special).param("slope", 0.25),
        case("elu").floats(&[3, 4], &special).param("alpha", -2.5),
        case("gelu").wave(&[3, 41]).param("approximate", "tanh"),
        case("gelu").floats(&[3, 4], &special).param("approximate", "tanh"),
        case("gelu").floats(&[5], &[-13.0, -12.0, -6.0, 6.0, 12.0]).param("approximate", "none"),
        case("swiglu").wave(&[3, 7]).wave(&[3, 7]),
        case("swiglu").wave(&[3, 1]).wave(&[7]),
        case("swiglu").floats(&[3, 4], &special).wave(&[3, 4]),
    ]);
    for op in ["add", "sub", "mul", "div"] {
        cases.extend([
            case(op).wave(&[2, 3, 4]).wave(&[2, 3, 4]),
            case(op).wave(&[2, 1, 4]).wave(&[3, 1]),
            case(op).wave(&[]).wave(&[2]),
            case(op).floats(&[5], &[INF, -INF, NAN, 1e308, 0.0]).floats(&[5], &[INF, INF, 0.0, 1e308, 0.0]),
            case(op).integers(Int64, &[4], &[7, -7, i64::MAX, 9]).integers(Int64, &[4], &[2, 2, 3, -4]).output(Int64),
            case(op).integers(Int8, &[2, 1], &[100, -100]).integers(Int8, &[2], &[100, 3]).output(Int8),
        ]);
    }
    cases.extend([
        case("fma").wave(&[2, 3]).wave(&[3]).wave(&[2, 1]).absolute(1e-15),
        case("fma").floats(&[2], &[INF, 2.0]).floats(&[2], &[0.0, 3.0]).floats(&[2], &[1.0, -6.0]),
        case("fma")
            .integers(Int8, &[2], &[100, 5])
            .integers(Int8, &[2], &[3, 5])
            .integers(Int8, &[], &[1])
            .output(Int8),
        case("transpose").wave(&[2, 3, 4]),
        case("transpose").wave(&[2, 3, 4]).param("permutation", "2,0,1"),
        case("transpose").wave(&[3]).param("permutation", "0"),
        case("transpose").integers(Int32, &[2, 3], &[1, 2, 3, 4, 5, 6]).output(Int32),
        case("quantize").wave(&[3, 4]).floats(&[4], &[0.1, 0.01, 1.0, 0.25]).output(Int8),
        case("quantize").wave(&[3, 4]).floats(&[3, 1], &[0.1, 0.01, 1.0]).param("zero_point", 5).output(Int8),
        case("quantize").floats(&[4], &[INF, -INF, NAN, 0.5]).floats(&[1], &[0.5]).output(Int8),
        case("quantize")
            .floats(&[3], &[1e9, -1e9, 1.0 / 3.0])
            .floats(&[], &[0.5])
            .output(Float8E4M3)
            .reference_only(&[("low", -448.0), ("high", 448.0)]),
        case("dequantize").integers(Int8, &[2, 2], &[-128, 127, 0, 3]).floats(&[2], &[0.5, 0.1]),
        case("dequantize")
            .integers(Int8, &[2, 2], &[-128, 127, 0, 3])
            .floats(&[2, 1], &[0.5, 0.1])
            .param("zero_point", 3),
        case("dequantize").wave(&[2, 2]).floats(&[1], &[0.5]),
    ]);
    cases
}
