//! What the parser stops at, before it is put into words.

use crate::error::{Error, SyntaxError};

/// The outcome of reading a part of a module.
pub(super) type Parsed<T> = Result<T, Fault>;

/// The longest part of a line that a message shows, in characters.
const EXCERPT: usize = 120;
/// The longest part of a text that a message names, in characters.
const FOUND: usize = 40;

/// Something other than what may stand at an offset.
#[derive(Debug)]
pub(super) struct Fault(Box<Details>);

#[derive(Debug)]
struct Details {
    at: usize,
    expected: String,
    /// What is open there: its offset and first byte.
    opened: Option<(usize, u8)>,
    /// Bytes at fault, where it is not the token at the offset.
    width: Option<usize>,
    /// Whether something is missing behind what stands before.
    missing: bool,
}

impl Fault {
    /// `expected` may stand at `at`, and does not.
    #[cold]
    pub(super) fn new(at: usize, expected: impl Into<String>) -> Fault {
        Fault(Box::new(Details { at, expected: expected.into(), opened: None, width: None, missing: false }))
    }

    /// Says what it is that is not closed.
    pub(super) fn opened(mut self, at: usize, byte: u8) -> Fault {
        self.0.opened = Some((at, byte));
        self
    }

    /// Says how many bytes are at fault.
    pub(super) fn wide(mut self, width: usize) -> Fault {
        self.0.width = Some(width);
        self
    }

    /// Says that what is expected is missing behind the token before: the place is there, if that is on another line.
    pub(super) fn missing(mut self) -> Fault {
        self.0.missing = true;
        self
    }

    /// In words, with its place in `text`.
    pub(super) fn explain(self, text: &str) -> Error {
        let Details { at, mut expected, opened, width, missing } = *self.0;
        let at = text.floor_boundary(at);
        let token = match width {
            Some(width) => &text[at..text.floor_boundary(at + width)],
            None => token(&text[at..]),
        };
        // The end of a text is behind its last word, and so is what a line lacks at its end.
        let before = text[..at].trim_end();
        let behind = token.is_empty() || (missing && text[before.len()..at].contains('\n'));
        let (at, width) = if behind { (before.len(), 1) } else { (at, token.chars().count()) };
        if let Some((open, byte)) = opened {
            let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..open]).count() + 1;
            let what = if byte == b'/' { "/*".to_owned() } else { (byte as char).to_string() };
            expected.push_str(&format!(" to close the `{what}` of line {line}"));
        }
        let line_start = memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |newline| newline + 1);
        let line_end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |newline| at + newline);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let column = text[line_start..at].chars().count() + 1;
        // A line of any length comes down to what fits a screen.
        let fits = line.chars().nth(EXCERPT).is_none();
        let skipped = if fits { 0 } else { (column - 1).saturating_sub(EXCERPT / 2) };
        let excerpt: String = line.chars().skip(skipped).take(EXCERPT).map(visible).collect();
        let indent = column - 1 - skipped;
        let room = excerpt.chars().count().saturating_sub(indent);
        Error::Syntax(Box::new(SyntaxError {
            line: (memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1) as u32,
            column: column as u32,
            width: width.min(room).max(1) as u32,
            expected,
            found: found(token),
            excerpt,
            indent: indent as u32,
        }))
    }
}

/// What a file that is no text is, where its first bytes say so.
pub(super) fn known_binary(bytes: &[u8]) -> Option<Error> {
    let found = match bytes {
        [0x7F, b'E', b'L', b'F', ..] => "an ELF file (of a cubin, `cuobjdump -ptx` gives the PTX)",
        [0x50, 0xED, 0x55, 0xBA, ..] => "a fat binary (`cuobjdump -ptx` gives its PTX)",
        _ => return None,
    };
    Some(not_text("", found.to_owned()))
}

/// A text that ends with a byte which is not UTF-8.
pub(super) fn not_utf8(bytes: &[u8], valid: usize) -> Error {
    let text = std::str::from_utf8(&bytes[..valid]).unwrap_or_default();
    not_text(text, format!("the byte 0x{:02x}", bytes.get(valid).copied().unwrap_or(0)))
}

fn not_text(before: &str, found: String) -> Error {
    let mut error = Fault::new(before.len(), "PTX, which is UTF-8 text").explain(before);
    if let Error::Syntax(error) = &mut error {
        error.found = found;
    }
    error
}

/// The token, or what will do as one, at the beginning of a text.
fn token(rest: &str) -> &str {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    match rest.chars().next() {
        None => "",
        Some('-') if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => &rest[..1 + token(&rest[1..]).len()],
        Some('#') => &rest[..1 + rest[1..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len() - 1)],
        Some('"') => &rest[..rest[1..].find(['"', '\n']).map_or(rest.len(), |end| end + 2)],
        Some(first) if word(first) => &rest[..rest.find(|c| !word(c)).unwrap_or(rest.len())],
        Some(first) => &rest[..first.len_utf8()],
    }
}

fn found(token: &str) -> String {
    match token.chars().next() {
        None => "the end of the text".to_owned(),
        Some(blank) if blank.is_ascii_whitespace() => format!("the blank 0x{:02x}", blank as u32),
        Some(control) if control.is_control() => format!("the byte 0x{:02x}", control as u32),
        Some(_) => {
            let mut shown: String = token.trim_end().chars().take(FOUND).map(visible).collect();
            if token.chars().count() > FOUND {
                shown.push_str("...");
            }
            format!("`{shown}`")
        }
    }
}

/// A character as a message shows it: nothing that a terminal would obey.
fn visible(c: char) -> char {
    if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }
}

/// `str::floor_char_boundary`, which is newer than the oldest compiler that builds this crate.
trait FloorBoundary {
    fn floor_boundary(&self, at: usize) -> usize;
}

impl FloorBoundary for str {
    fn floor_boundary(&self, at: usize) -> usize {
        let at = at.min(self.len());
        (0..=at).rev().find(|&at| self.is_char_boundary(at)).unwrap_or(0)
    }
}
