//! Whole files, and what is read from them.
use gpuemu_contract::*;
use std::path::Path;
#[test]
fn a() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seed");
    for f in ["gpuemu.toml", "own.toml"] {
        match Contract::load(&folder.join(f)) {
            Ok(c) => println!("{c:#?}"),
            Err(e) => panic!("{e}"),
        }
    }
}
