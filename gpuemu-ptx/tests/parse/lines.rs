//! Offsets as lines and columns.

use gpuemu_ptx::parse::{LineIndex, Position};

#[test]
fn offsets_have_places() {
    let text = "ab\n\ncé\u{1F600}d\r\nlast";
    let lines = LineIndex::new(text);
    let place = |needle: &str| lines.position(text.find(needle).unwrap() as u32);
    let at = |line, column| Position { line, column };
    assert_eq!(lines.position(0), at(1, 1));
    assert_eq!(place("b"), at(1, 2));
    assert_eq!(lines.position(2), at(1, 3), "the end of a line belongs to it");
    assert_eq!(lines.position(3), at(2, 1));
    assert_eq!(place("c"), at(3, 1));
    assert_eq!(place("é"), at(3, 2));
    assert_eq!(place("\u{1F600}"), at(3, 3));
    assert_eq!(place("d"), at(3, 4));
    assert_eq!(place("last"), at(4, 1));
    assert_eq!(lines.position(text.len() as u32), at(4, 5));
    assert_eq!(lines.position(u32::MAX), at(4, 5), "past the end is the end");
    assert_eq!(at(4, 5).to_string(), "4:5");
    assert_eq!(LineIndex::new("").position(0), at(1, 1));
    assert_eq!(LineIndex::new("a\n").position(2), at(2, 1));
}

#[test]
fn lines_have_texts() {
    let lines = LineIndex::new("ab\n\ncd\r\nlast");
    let texts: Vec<_> = (0..6).map(|line| lines.line(line)).collect();
    assert_eq!(texts, [None, Some("ab"), Some(""), Some("cd"), Some("last"), None]);
}
