//! The envelopes that ship with the built-in references: complete, and what a calibration measures today.

#[path = "../examples/envelopes/measure.rs"]
mod measure;

use gpuemu_contract::builtin::Builtin;
use gpuemu_contract::{Compute, DType, TensorDType};
use gpuemu_harness::calibrate::{MARGIN, exceeded, standard};

/// References with integer answers have no envelope; the unrounded answer of a quantisation is a float.
fn answers_floats(builtin: &Builtin) -> bool {
    builtin.name == "quantize" || builtin.output_dtype != TensorDType::Fixed(DType::Int64)
}

#[test]
fn every_reference_has_an_envelope_in_every_precision() {
    for builtin in Builtin::ALL {
        for compute in Compute::ALL {
            let found = standard(builtin.name, compute);
            assert_eq!(found.is_some(), answers_floats(builtin), "{} in {compute}", builtin.name);
            if let Some(envelope) = found {
                // A table that lets anything pass would be no table: no right kernel is a hundred roundings off.
                assert!(
                    envelope.rho <= 100.0 && envelope.alpha <= 100.0,
                    "{} in {compute}: {envelope:?}",
                    builtin.name
                );
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

#[test]
fn the_table_is_current() {
    for (name, precisions) in measure::table(|_| true).expect("a calibration") {
        for (compute, fresh) in precisions {
            let shipped = standard(&name, Compute::from_name(&compute).unwrap()).expect(&name);
            let moved = exceeded(&shipped, &fresh).or_else(|| exceeded(&fresh, &shipped));
            assert_eq!(
                moved, None,
                "{name} in {compute} moved by more than {MARGIN}: run `cargo run -p gpuemu-harness --example envelopes`"
            );
        }
    }
}
