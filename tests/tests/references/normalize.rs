//! Softmax, norms.

use super::{Case, case};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// The table.
pub fn cases() -> Vec<Case> {
    vec![
        case("softmax").wave(&[2, 3, 17]),
        case("softmax").wave(&[2, 3, 17]).param("axis", 1),
        case("softmax").wave(&[4, 3]).param("axis", -2),
        case("softmax").floats(&[5], &[-1000.0, 0.0, 3.0, 1e3, -INF]),
        case("softmax").floats(&[2, 2], &[-INF, -INF, 1.0, 2.0]),
        case("softmax").floats(&[2, 2], &[INF, 0.0, NAN, 2.0]),
        case("softmax").floats(&[0, 2], &[]),
        case("softmax").floats(&[1], &[1e308]),
    ]
}
