//! Errors about a file as a whole, and nearest spellings.

use gpuemu_contract::{Contract, nearest};
use std::path::Path;

#[test]
fn a_file_that_cannot_be_read() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let missing = folder.join("missing.toml");
    let errors = Contract::load(&missing).unwrap_err();
    assert_eq!(errors.iter().count(), 1);
    assert!(errors.iter().all(|error| error.place.is_none()));
    assert!(errors.to_string().starts_with(&format!("{}: cannot be read: ", missing.display())), "{errors}");

    let binary = folder.join("binary.toml");
    std::fs::write(&binary, b"[project]\nname = \"\xff\"\n").unwrap();
    let errors = Contract::load(&binary).unwrap_err();
    assert_eq!(errors.to_string(), format!("{}: is not UTF-8 text, line 2", binary.display()));

    let errors = Contract::load(folder).unwrap_err();
    assert!(errors.to_string().contains("cannot be read"), "{errors}");
}

#[test]
fn nearest_spellings() {
    let names = ["softmax", "log_softmax", "layer_norm", "max", "min", "H", "max_registers"];
    for (wanted, found) in [
        ("sofmax", Some("softmax")),
        ("sotfmax", Some("softmax")),
        ("Softmax", Some("softmax")),
        (" softmax ", Some("softmax")),
        ("logsoftmax", Some("log_softmax")),
        ("LayerNorm", Some("layer_norm")),
        ("max_regs", Some("max_registers")),
        ("mox", Some("max")),
        ("h", Some("H")),
        ("K", None),
        ("", None),
        ("fourier", None),
        ("attention", None),
    ] {
        assert_eq!(nearest(wanted, names), found, "{wanted:?}");
    }
    assert_eq!(nearest("x", []), None);
}
