//! Reductions and scans.

use super::{Case, INF, NAN, case};
use gpuemu_contract::DType::{Int32, Int64};

/// The table.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for op in ["sum", "mean", "var", "max", "min", "argmax"] {
        let of = |case: Case| if op == "argmax" { case.output(Int64) } else { case.absolute(1e-15) };
        cases.extend([
            of(case(op).wave(&[2, 3, 1000])),
            of(case(op).wave(&[2, 3, 17]).param("axis", 0).param("keepdims", true)),
            of(case(op).wave(&[2, 3, 17]).param("axis", -2)),
            of(case(op).floats(&[5], &[2.0, 3.0, 3.0, -1.0, 0.0])),
            of(case(op).floats(&[3, 3], &[1.0, NAN, INF, -INF, 2.0, -3.0, INF, INF, 0.0])),
            of(case(op).floats(&[2, 1], &[4.0, -5.0])),
            of(case(op).floats(&[0, 3], &[])),
        ]);
        if op != "argmax" {
            cases.push(case(op).floats(&[3, 0], &[]));
        }
    }
    cases.extend([
        case("sum").integers(Int64, &[2, 3], &[1, 2, 3, i64::MAX, 1, 0]).output(Int64),
        case("max").integers(Int32, &[2, 3], &[1, 5, 3, -9, -1, -4]).output(Int32),
        case("min").integers(Int32, &[2, 3], &[1, 5, 3, -9, -1, -4]).output(Int32).param("axis", 0),
        case("argmax").integers(Int32, &[2, 3], &[1, 5, 5, -9, -1, -1]).output(Int64),
        case("var").floats(&[2, 2], &[1.0, 3.0, 5.0, 5.0]).param("correction", 1),
        case("var").floats(&[2, 2], &[1.0, 3.0, 5.0, 5.0]).param("correction", 2),
        case("var").floats(&[4], &[1e8 + 4.0, 1e8 + 7.0, 1e8 + 13.0, 1e8 + 16.0]).param("correction", 1),
        case("cumsum").wave(&[2, 3, 100]).absolute(1e-13),
        case("cumsum").wave(&[4, 3]).param("axis", 0).absolute(1e-15),
        case("cumsum").floats(&[2, 4], &[1.0, INF, 2.0, -INF, 1.0, NAN, 2.0, 3.0]),
        case("cumsum").floats(&[2, 0], &[]),
        case("cumsum").integers(Int64, &[4], &[1, -2, i64::MAX, 5]).output(Int64),
    ]);
    cases
}
