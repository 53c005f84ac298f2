//! Embedding, gather, scatter_add, cross entropy; and rope, which reads its angles by position.

use super::{Case, case};
use gpuemu_contract::DType;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// The table.
pub fn cases() -> Vec<Case> {
    [indexing(), losses(), rotations()].into_iter().flatten().collect()
}

fn indexing() -> Vec<Case> {
    vec![
        case("embedding").wave(&[5, 3]).integers(DType::Int64, &[2, 3], &[4, 0, 0, 2, 1, 4]),
        case("embedding").wave(&[5]).integers(DType::UInt8, &[2], &[4, 1]),
        case("embedding").floats(&[2, 2], &[1.0, NAN, INF, 0.0]).integers(DType::Int32, &[2], &[1, 0]),
        case("embedding").wave(&[5, 3]).integers(DType::Int32, &[0, 2], &[]),
        case("embedding").floats(&[0, 3], &[]).integers(DType::Int32, &[0], &[]),
        case("embedding")
            .integers(DType::Int16, &[2, 2], &[1, -2, 3, 4])
            .integers(DType::Int32, &[1], &[1])
            .output(DType::Int16),
        case("gather").wave(&[3, 4]).integers(DType::Int64, &[3, 2], &[3, 0, 1, 1, 0, 2]),
        case("gather").wave(&[3, 4]).integers(DType::Int64, &[2, 3], &[2, 0, 0, 1, 2, 2]).param("axis", 0),
        case("gather")
            .wave(&[2, 3, 2])
            .integers(DType::Int32, &[1, 5, 2], &[0, 1, 2, 0, 1, 1, 0, 0, 2, 2])
            .param("axis", 1),
        case("gather").floats(&[3], &[NAN, INF, 1.0]).integers(DType::Int32, &[4], &[0, 1, 2, 1]),
        case("gather").wave(&[3, 4]).integers(DType::Int64, &[3, 0], &[]),
        case("scatter_add")
            .wave(&[3, 2])
            .integers(DType::Int64, &[4, 2], &[0, 2, 0, 2, 0, 1, 2, 2])
            .wave(&[4, 2])
            .absolute(1e-15),
        case("scatter_add")
            .wave(&[2, 3])
            .integers(DType::Int64, &[2, 2], &[0, 2, 1, 1])
            .wave(&[3, 4])
            .param("axis", -1)
            .absolute(1e-15),
        case("scatter_add").wave(&[3]).integers(DType::Int32, &[0], &[]).wave(&[2]),
        case("scatter_add")
            .floats(&[3], &[INF, 1.0, NAN])
            .integers(DType::Int32, &[3], &[0, 1, 1])
            .floats(&[3], &[-INF, INF, 2.0]),
        case("scatter_add")
            .integers(DType::Int8, &[2], &[100, 0])
            .integers(DType::Int32, &[3], &[0, 0, 1])
            .integers(DType::Int8, &[3], &[100, 100, -128])
            .output(DType::Int8),
    ]
}

fn losses() -> Vec<Case> {
    let five = |reduction: &str| {
        case("cross_entropy")
            .wave(&[5, 7])
            .integers(DType::Int64, &[5], &[6, -100, 0, 3, 3])
            .param("reduction", reduction)
    };
    let special = |reduction: &str| {
        case("cross_entropy")
            .floats(&[4, 2], &[-INF, 1.0, -INF, -INF, INF, 0.0, NAN, 0.0])
            .integers(DType::Int32, &[4], &[0, 0, 1, 1])
            .param("reduction", reduction)
    };
    vec![
        five("none"),
        five("mean"),
        five("sum"),
        special("none"),
        special("mean"),
        case("cross_entropy").wave(&[2, 3, 4]).integers(DType::Int64, &[2, 3], &[0, 1, 2, 3, 0, 1]),
        case("cross_entropy").wave(&[3, 4]).integers(DType::Int64, &[3], &[1, 2, 1]).param("ignore_index", 1),
        // A logit far below the largest: no overflow, the loss is its distance.
        case("cross_entropy").floats(&[1, 3], &[1e5, -1e5, 0.0]).integers(DType::Int64, &[1], &[1]),
        case("cross_entropy").wave(&[2, 3]).integers(DType::Int64, &[2], &[-100, -100]).param("reduction", "mean"),
        case("cross_entropy").wave(&[2, 3]).integers(DType::Int64, &[2], &[-100, -100]).param("reduction", "sum"),
        case("cross_entropy").floats(&[0, 3], &[]).integers(DType::Int64, &[0], &[]),
    ]
}

fn rotations() -> Vec<Case> {
    let both = |interleaved: bool| {
        [
            case("rope").wave(&[2, 3, 5, 8]).wave(&[5, 4]).wave(&[5, 4]).absolute(1e-15),
            case("rope").wave(&[5, 2]).wave(&[5, 1]).wave(&[5, 1]).absolute(1e-15),
            case("rope")
                .floats(&[1, 4], &[INF, 1.0, NAN, 2.0])
                .floats(&[1, 2], &[1.0, 0.5])
                .floats(&[1, 2], &[0.0, 0.5]),
            case("rope").floats(&[0, 4], &[]).floats(&[0, 2], &[]).floats(&[0, 2], &[]),
        ]
        .map(|case| case.param("interleaved", interleaved))
    };
    [both(false), both(true)].into_iter().flatten().collect()
}
