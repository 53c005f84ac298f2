//! Calibrates the built-in references.

use gpuemu_contract::{Compute, Contract, DType, Reference};
use gpuemu_harness::Error;
use gpuemu_harness::calibrate::{calibrate, joined};
use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::oracle::Oracle;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::validate::tolerance::Envelope;
use std::collections::BTreeMap;
use std::path::Path;

/// The working precisions of the table, each with the dtype that tensors are stored in: one that holds what the
/// precision holds, so that the rounding of inputs is not part of an op's error. tf32 and fp8 round the factors of
/// products alone. float64 shares float32's figures. An op that has not the dtype has not the precision.
const PRECISIONS: [(Compute, DType); 5] = [
    (Compute::Float32, DType::Float32),
    (Compute::Tf32, DType::Float32),
    (Compute::Float16, DType::Float16),
    (Compute::BFloat16, DType::BFloat16),
    (Compute::Float8, DType::Float32),
];

/// The envelopes of the references that `wanted` accepts, by name and working precision: the largest figures of all ops
/// of the contract that have the reference.
pub fn table(wanted: impl Fn(&str) -> bool) -> Result<BTreeMap<String, BTreeMap<String, Envelope>>, Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/envelopes/gpuemu.toml");
    let contract = Contract::load(&path).map_err(|errors| Error::Config(errors.to_string()))?;
    let session = Session::new(contract, Environment::default())?;
    let mut table: BTreeMap<String, BTreeMap<String, Envelope>> = BTreeMap::new();
    for op in &session.contract().ops {
        let Reference::Builtin(name) = &op.reference else { continue };
        if !wanted(name) {
            continue;
        }
        for (compute, dtype) in PRECISIONS.into_iter().filter(|(_, dtype)| op.dtypes.contains(dtype)) {
            let mut op = op.clone();
            op.compute = Some(compute);
            let envelope = calibrate(&op, dtype, &Oracle::new(&session, &op, dtype)?)?;
            let entry = table.entry(name.clone()).or_default();
            let known = entry.get(compute.name()).map_or(envelope, |known| joined(known, &envelope));
            entry.insert(compute.name().to_owned(), known);
        }
    }
    Ok(table)
}
