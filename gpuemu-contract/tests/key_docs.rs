//! The committed schema and page of keys are those that the keys make. `tests/documents` holds files that a real
//! validator judges by the schema (`test_schema.py`) and that are judged here by reading them: both must agree.

use gpuemu_contract::{Contract, key_docs};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn committed(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap().replace("\r\n", "\n")
}

#[test]
fn the_schema_is_current() {
    assert!(
        committed(&folder().join("../gpuemu.schema.json")) == key_docs::json_schema(),
        "gpuemu.schema.json is stale: cargo run -p gpuemu-contract --example schema > gpuemu.schema.json"
    );
}

#[test]
fn the_page_of_keys_is_current() {
    assert!(
        committed(&folder().join("KEYS.md")) == key_docs::markdown(),
        "KEYS.md is stale: cargo run -p gpuemu-contract --example keys > gpuemu-contract/KEYS.md"
    );
}

#[test]
fn reading_agrees_with_the_schema_about_the_documents() {
    let mut counts = [0, 0];
    for (kind, good) in [("good", true), ("bad", false)] {
        for file in std::fs::read_dir(folder().join("tests/documents").join(kind)).unwrap() {
            let path = file.unwrap().path();
            let read = Contract::load(&path);
            assert_eq!(
                read.is_ok(),
                good,
                "{}: {}",
                path.display(),
                read.err().map_or(String::new(), |e| e.to_string())
            );
            counts[usize::from(good)] += 1;
        }
    }
    assert!(counts[0] >= 10 && counts[1] >= 2, "{counts:?} documents");
}
