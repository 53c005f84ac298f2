//! Matrix products, attention, convolution.

use super::{Case, case};
use gpuemu_contract::DType;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Sums of products of values in (-2, 2) cancel: what the two orders of adding may differ by.
const CANCELLED: f64 = 1e-13;

/// The table.
pub fn cases() -> Vec<Case> {
    [products(), attentions(), convolutions()].into_iter().flatten().collect()
}

fn products() -> Vec<Case> {
    vec![
        case("matmul").wave(&[7, 33]).wave(&[33, 19]).absolute(CANCELLED),
        case("matmul").wave(&[33, 7]).wave(&[33, 19]).param("transpose_a", true).absolute(CANCELLED),
        case("matmul").wave(&[7, 33]).wave(&[19, 33]).param("transpose_b", true).absolute(CANCELLED),
        case("matmul")
            .wave(&[5, 4])
            .wave(&[3, 5])
            .param("transpose_a", true)
            .param("transpose_b", true)
            .absolute(CANCELLED),
        case("matmul").wave(&[1, 100]).wave(&[100, 1]).absolute(CANCELLED),
        case("matmul").floats(&[2, 0], &[]).floats(&[0, 3], &[]),
        case("matmul").floats(&[0, 2], &[]).wave(&[2, 3]),
        case("matmul").floats(&[2, 2], &[0.0, 1.0, 1.0, -1.0]).floats(&[2, 2], &[INF, 1.0, 2.0, NAN]),
        case("matmul").floats(&[1, 2], &[INF, 1.0]).floats(&[2, 2], &[1.0, -1.0, -INF, 3.0]),
        case("matmul")
            .integers(DType::Int64, &[2, 2], &[1, -2, i64::MAX, 4])
            .integers(DType::Int64, &[2, 2], &[5, 6, 2, -8])
            .output(DType::Int64),
        // NumPy, too, sums int8 in int8: 100 * 2 + 100 * 3 wraps to -12.
        case("matmul")
            .integers(DType::Int8, &[1, 2], &[100, 100])
            .integers(DType::Int8, &[2, 1], &[2, 3])
            .output(DType::Int8),
        case("batched_matmul").wave(&[3, 5, 9]).wave(&[3, 9, 8]).absolute(CANCELLED),
        case("batched_matmul")
            .wave(&[3, 9, 5])
            .wave(&[1, 8, 9])
            .param("transpose_a", true)
            .param("transpose_b", true)
            .absolute(CANCELLED),
        case("batched_matmul").wave(&[2, 1, 5, 9]).wave(&[3, 9, 8]).absolute(CANCELLED),
        case("batched_matmul").floats(&[0, 5, 9], &[]).wave(&[1, 9, 8]),
        case("batched_matmul").floats(&[2, 3, 0], &[]).floats(&[2, 0, 1], &[]),
        case("linear").wave(&[4, 2, 17]).wave(&[9, 17]).absolute(CANCELLED),
        case("linear").wave(&[4, 2, 17]).wave(&[9, 17]).wave(&[9]).absolute(CANCELLED),
        case("linear").wave(&[17]).wave(&[9, 17]).wave(&[9]).absolute(CANCELLED),
        case("linear").floats(&[2, 0], &[]).floats(&[3, 0], &[]).wave(&[3]),
        case("linear").floats(&[0, 2], &[]).wave(&[3, 2]).wave(&[3]),
        case("linear").floats(&[1, 2], &[0.0, 1.0]).floats(&[2, 2], &[INF, 1.0, 2.0, 3.0]).floats(&[2], &[1.0, -INF]),
    ]
}

fn attentions() -> Vec<Case> {
    let heads = |queries: &[usize; 4], keys: &[usize; 4], values: &[usize; 4]| {
        case("attention").wave(queries).wave(keys).wave(values).absolute(CANCELLED)
    };
    vec![
        heads(&[2, 3, 9, 8], &[2, 3, 9, 8], &[2, 3, 9, 8]),
        heads(&[2, 3, 9, 8], &[2, 3, 9, 8], &[2, 3, 9, 8]).param("causal", true),
        heads(&[1, 2, 5, 4], &[1, 2, 9, 4], &[1, 2, 9, 3]).param("causal", true),
        heads(&[1, 2, 9, 4], &[1, 2, 5, 4], &[1, 2, 5, 3]).param("causal", true),
        heads(&[2, 6, 5, 4], &[2, 2, 7, 4], &[2, 2, 7, 4]).param("scale", 3.5),
        heads(&[1, 4, 5, 4], &[1, 1, 7, 4], &[1, 1, 7, 4]).param("scale", 0.0),
        heads(&[1, 1, 1, 1], &[1, 1, 1, 1], &[1, 1, 1, 1]),
        heads(&[0, 1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3]),
        heads(&[1, 1, 0, 3], &[1, 1, 2, 3], &[1, 1, 2, 3]),
        // No keys.
        heads(&[1, 1, 2, 3], &[1, 1, 0, 3], &[1, 1, 0, 2]),
        // Row 0 sees only the first key: the NaN and the infinity past it show only in row 1.
        case("attention")
            .floats(&[1, 1, 2, 1], &[1.0, 1.0])
            .floats(&[1, 1, 2, 1], &[1.0, NAN])
            .floats(&[1, 1, 2, 1], &[5.0, 6.0])
            .param("causal", true),
        case("attention")
            .floats(&[1, 1, 2, 1], &[1.0, 1.0])
            .floats(&[1, 1, 2, 1], &[1.0, 2.0])
            .floats(&[1, 1, 2, 1], &[5.0, INF])
            .param("causal", true),
        // Scores of -inf alone, of +inf, and a probability of 0 times infinity.
        case("attention")
            .floats(&[1, 1, 3, 1], &[-INF, INF, -1e6])
            .floats(&[1, 1, 2, 1], &[1.0, 2.0])
            .floats(&[1, 1, 2, 2], &[5.0, 1.0, 7.0, INF]),
    ]
}

fn convolutions() -> Vec<Case> {
    let images = |image: &[usize; 4], weight: &[usize; 4]| case("conv2d").wave(image).wave(weight).absolute(CANCELLED);
    vec![
        images(&[2, 3, 8, 7], &[4, 3, 3, 3]),
        images(&[2, 3, 8, 7], &[4, 3, 3, 2]).wave(&[4]).param("padding", 2),
        images(&[1, 2, 9, 11], &[3, 2, 2, 3]).param("stride", 2).param("padding", 1),
        images(&[1, 2, 9, 11], &[3, 2, 3, 3]).param("dilation", 3).param("padding", 3).param("stride", 2),
        images(&[2, 6, 5, 5], &[4, 3, 3, 3]).wave(&[4]).param("groups", 2).param("padding", 1),
        images(&[2, 4, 5, 5], &[4, 1, 3, 3]).param("groups", 4),
        images(&[1, 3, 4, 4], &[2, 3, 1, 1]),
        images(&[0, 3, 4, 4], &[2, 3, 1, 1]),
        images(&[1, 0, 4, 4], &[2, 0, 1, 1]).wave(&[2]),
        // Padding is zeros: 0 * inf.
        case("conv2d")
            .floats(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])
            .floats(&[1, 1, 1, 2], &[INF, 1.0])
            .param("padding", 1),
        case("conv2d").floats(&[1, 1, 2, 2], &[1.0, NAN, INF, 4.0]).floats(&[1, 1, 1, 1], &[2.0]),
        case("conv2d")
            .integers(DType::Int32, &[1, 1, 2, 3], &[1, 2, 3, 4, 5, 6])
            .integers(DType::Int32, &[1, 1, 2, 2], &[1, -1, 2, i64::from(i32::MAX)])
            .output(DType::Int32),
    ]
}
