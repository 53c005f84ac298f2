//! Softmax and the norms.

use super::{Case, INF, NAN, case};

/// The table.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["softmax", "log_softmax"] {
        cases.extend([
            case(op).wave(&[2, 3, 17]),
            case(op).wave(&[2, 3, 17]).param("axis", 1),
            case(op).wave(&[4, 3]).param("axis", -2),
            case(op).floats(&[5], &[-1000.0, 0.0, 3.0, 1e3, -INF]),
            case(op).floats(&[2, 3], &[1e15, 1e15 + 40.0, 1e15 - 3.0, 7.0, 7.0, 7.0]),
            case(op).floats(&[2, 2], &[-INF, -INF, 1.0, 2.0]),
            case(op).floats(&[2, 2], &[INF, 0.0, NAN, 2.0]),
            case(op).floats(&[0, 2], &[]),
            case(op).floats(&[2, 0], &[]),
            case(op).floats(&[1], &[1e308]),
        ]);
    }
    for op in ["layer_norm", "rms_norm"] {
        cases.extend([
            case(op).wave(&[2, 3, 17]),
            case(op).wave(&[3, 17]).wave(&[17]),
            case(op).wave(&[17]).wave(&[17]).param("eps", 0.25),
            case(op).floats(&[2, 2], &[0.0, 0.0, 3.0, 5.0]),
            case(op).floats(&[3, 2], &[INF, 0.0, NAN, 2.0, 1.0, 2.0]),
            case(op).floats(&[2, 0], &[]),
        ]);
    }
    cases.extend([
        case("layer_norm").wave(&[3, 17]).wave(&[17]).wave(&[17]),
        // The mean is a million deviations away.
        case("layer_norm").floats(&[4], &[1e6 + 1.0, 1e6 + 2.0, 1e6 + 4.0, 1e6 + 8.0]).param("eps", 0.0),
        case("group_norm").wave(&[2, 6, 5]).param("groups", 3),
        case("group_norm").wave(&[2, 6, 5, 2]).wave(&[6]).param("groups", 1),
        case("group_norm").wave(&[2, 6]).wave(&[6]).wave(&[6]).param("groups", 2).param("eps", 0.5),
        case("group_norm").wave(&[0, 6, 5]).param("groups", 6),
        case("l2_norm").wave(&[2, 3, 17]),
        case("l2_norm").wave(&[2, 3, 17]).param("axis", 0),
        case("l2_norm").floats(&[4, 2], &[0.0, 0.0, 3.0, 4.0, NAN, 1.0, INF, 1.0]),
        case("l2_norm").floats(&[2], &[3.0, 4.0]).param("eps", 10.0),
    ]);
    cases
}
