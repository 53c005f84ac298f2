//! Wrong files, and the whole text that a user reads about each: `tests/errors/*.txt`.
//!
//! A file holds examples: a line `== title`, the contract, a line `--`, the message. Contracts stand in the folder
//! `tests/projects/seed`, whose path is left out of the messages.

use gpuemu_contract::Contract;
use std::path::Path;

struct Example<'a> {
    title: &'a str,
    contract: &'a str,
    message: &'a str,
}

fn examples(text: &str) -> Vec<Example<'_>> {
    let example = |part| {
        let (title, rest) = str::split_once(part, '\n')?;
        let (contract, message) = rest.split_once("\n--\n")?;
        Some(Example { title, contract, message: message.trim_end() })
    };
    let text = text.strip_prefix("== ").unwrap();
    text.split("\n== ").map(|part| example(part).unwrap_or_else(|| panic!("no example: {part}"))).collect()
}

#[test]
fn messages_are_what_a_user_should_read() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let path = tests.join("projects/seed/gpuemu.toml");
    let folder = format!("{}/", path.parent().unwrap().display());
    let mut wrong = String::new();
    let mut count = 0;
    for name in ["syntax", "keys", "names", "shapes", "builtins", "kernels"] {
        let text = std::fs::read_to_string(tests.join("errors").join(name).with_extension("txt")).unwrap();
        for Example { title, contract, message } in examples(&text) {
            let found = match Contract::parse(contract, &path) {
                Ok(_) => "(no error)".to_owned(),
                Err(errors) => errors.to_string().replace(&folder, ""),
            };
            if found != message {
                wrong += &format!("== {title}\n{contract}\n--\n{found}\n\n");
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "these differ; what was found:\n\n{wrong}");
    assert!(count > 60, "only {count} examples were read");
}
