//! The envelopes that ship with the built-in references: complete, and what a calibration measures today.

#[path = "../examples/envelopes/measure.rs"]
mod measure;

use gpuemu_contract::builtin::Builtin;
use gpuemu_contract::{Compute, DType, TensorDType};
use gpuemu_harness::calibrate::standard;

/// References that sum along an axis: in half precisions they are calibrated on an op's own sizes.
const SUMS: [&str; 17] = [
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "l2_norm",
    "sum",
    "mean",
    "var",
    "cumsum",
    "matmul",
    "batched_matmul",
    "linear",
    "attention",
    "cross_entropy",
    "conv2d",
    "scatter_add",
];

/// References for which one figure would be blind on some rows: calibrated on an op's own sizes in every precision.
const OWN_SIZES: [&str; 6] = ["layer_norm", "attention", "matmul", "batched_matmul", "linear", "conv2d"];

/// References with integer answers have no envelope; the unrounded answer of a quantisation is a float.
fn is_shipped(builtin: &Builtin, compute: Compute) -> bool {
    let floats = builtin.name == "quantize" || builtin.output_dtype != TensorDType::Fixed(DType::Int64);
    let half = matches!(compute, Compute::Float16 | Compute::BFloat16);
    floats && !(half && SUMS.contains(&builtin.name)) && !OWN_SIZES.contains(&builtin.name)
}

#[test]
fn every_reference_has_an_envelope_that_tells_right_from_wrong() {
    for builtin in Builtin::ALL {
        for compute in Compute::ALL {
            let found = standard(builtin.name, compute);
            assert_eq!(found.is_some(), is_shipped(builtin, compute), "{} in {compute}", builtin.name);
            if let Some(envelope) = found {
                // What the least magnitude of an element's natural error may grow to: a third of the element is no answer.
                let part = 4.0 * envelope.rho * compute.unit_roundoff();
                assert!(part < 1.0 / 3.0, "{} in {compute}: {envelope:?}", builtin.name);
            }
        }
    }
}

#[test]
fn copies_are_exact() {
    for name in ["relu", "max", "min", "transpose", "embedding", "gather"] {
        for compute in Compute::ALL {
            let envelope = standard(name, compute).expect(name);
            assert_eq!((envelope.rho, envelope.alpha), (0.0, 0.0), "{name} in {compute}");
        }
    }
}

/// Whether a figure has moved further than another processor's exponentials and fused products move it.
fn moved(old: f64, new: f64) -> bool {
    let further = |a: f64, b: f64| a > 1.5 * b + 0.1;
    further(old, new) || further(new, old)
}

#[test]
fn the_table_is_current() {
    for (name, precisions) in measure::table(|_| true).expect("a calibration") {
        for (compute, fresh) in precisions {
            let shipped = standard(&name, Compute::from_name(&compute).unwrap()).expect(&name);
            assert!(
                !moved(shipped.rho, fresh.rho) && !moved(shipped.alpha, fresh.alpha),
                "{name} in {compute}: {shipped:?} is {fresh:?} today: run `cargo run -p gpuemu-harness --example envelopes`"
            );
        }
    }
}
