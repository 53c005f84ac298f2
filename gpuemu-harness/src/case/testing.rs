//! What the tests of this folder share.

use gpuemu_contract::{Contract, Op};
use std::path::Path;

/// The op of an `[[ops]]` entry, `name`, `reference` and `dtypes` left out.
pub fn op(entry: &str) -> Op {
    let text = format!(
        "[project]\nname = \"tests\"\n[[ops]]\nname = \"op\"\nreference = \"tests:op\"\n\
         dtypes = [\"float32\", \"float16\", \"int32\"]\n{entry}\n"
    );
    let contract = Contract::parse(&text, Path::new("gpuemu.toml")).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    contract.ops.into_iter().next().expect("one op")
}

/// Softmax over tiles of 128, with a parameter.
pub fn softmax() -> Op {
    op("params = { axis = [-1, 1] }\n[ops.schema]\n\
        dims = { B = [1, 2, 8], S = [1, 7, 128], H = { candidates = [1, 3, 256, 1025], tile = 128 } }\n\
        inputs = { x = [\"B\", \"S\", \"H\"] }\noutputs = { out = [\"B\", \"S\", \"H\"] }")
}
