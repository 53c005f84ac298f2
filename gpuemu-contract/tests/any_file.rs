//! What holds of any file at all: reading it ends with a contract or with errors that have a place, never in a panic.

use gpuemu_contract::Contract;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects/whole/gpuemu.toml"));
static WHOLE: LazyLock<String> = LazyLock::new(|| std::fs::read_to_string(&*PATH).unwrap());

fn check(text: &str) -> Result<(), TestCaseError> {
    let Err(errors) = Contract::parse(text, &PATH) else { return Ok(()) };
    prop_assert!(errors.iter().count() > 0);
    let lines: Vec<&str> = text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').collect();
    for error in errors.iter() {
        let place = error.place.as_ref().expect("every error about a text has a place");
        prop_assert_eq!(lines[place.line - 1].trim_end_matches('\r'), place.text.as_str());
        prop_assert!(place.column <= place.text.chars().count() + 2, "{}", error);
        prop_assert!(place.width >= 1);
    }
    let _ = errors.to_string();
    Ok(())
}

/// Values of every type, right and wrong.
const VALUES: [&str; 22] = [
    "1",
    "0",
    "-1",
    "1.5",
    "nan",
    "-inf",
    "1e999",
    "true",
    "\"\"",
    "\"x\"",
    "\"H - 9\"",
    "\"...\"",
    "[]",
    "[1]",
    "[\"H\"]",
    "[[1]]",
    "{}",
    "{ a = 1 }",
    "1979-05-27",
    "99999999999999999999999999999999999999999999",
    "\"1/0\"",
    "'''\n'''",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn a_piece_cut_out(start in 0usize..4000, length in 0usize..60) {
        let start = start % WHOLE.len();
        let end = (start + length).min(WHOLE.len());
        if WHOLE.is_char_boundary(start) && WHOLE.is_char_boundary(end) {
            check(&format!("{}{}", &WHOLE[..start], &WHOLE[end..]))?;
        }
    }

    #[test]
    fn a_line_moved(from in 0usize..200, to in 0usize..200) {
        let mut lines: Vec<&str> = WHOLE.lines().collect();
        let (from, to) = (from % lines.len(), to % lines.len());
        let line = lines.remove(from);
        lines.insert(to.min(lines.len()), line);
        check(&lines.join("\n"))?;
    }

    #[test]
    fn a_value_replaced(line in 0usize..200, value in prop::sample::select(VALUES.to_vec())) {
        let mut lines: Vec<String> = WHOLE.lines().map(str::to_owned).collect();
        let line = line % lines.len();
        if let Some((key, _)) = lines[line].split_once('=') {
            lines[line] = format!("{key}= {value}");
        }
        check(&lines.join("\n"))?;
    }

    #[test]
    fn a_character_replaced(at in 0usize..4000, with in any::<char>()) {
        let at = at % WHOLE.len();
        if WHOLE.is_char_boundary(at) && WHOLE.is_char_boundary(at + 1) {
            check(&format!("{}{with}{}", &WHOLE[..at], &WHOLE[at + 1..]))?;
        }
    }
}
