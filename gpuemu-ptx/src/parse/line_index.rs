//! From a byte offset to its line and column.

use std::fmt;
use std::sync::OnceLock;

use super::Offset;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// One-based line.
    pub line: u32,
    /// One-based column, in characters.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The lines of a text. Making one costs nothing; the first question costs one pass over the text.
#[derive(Debug)]
pub struct LineIndex<'a> {
    text: &'a str,
    /// Where each line begins.
    starts: OnceLock<Vec<Offset>>,
}

impl<'a> LineIndex<'a> {
    /// The lines of `text`, which is less than 4 GiB long.
    pub fn new(text: &'a str) -> LineIndex<'a> {
        LineIndex { text, starts: OnceLock::new() }
    }

    /// The line and column of an offset. One past the end, or within a character, gives the place before it.
    pub fn position(&self, offset: Offset) -> Position {
        let starts = self.starts();
        let line = starts.partition_point(|&start| start <= offset).max(1);
        let start = starts[line - 1] as usize;
        let before = &self.text.as_bytes()[start..(offset as usize).clamp(start, self.text.len())];
        // A byte that continues a character is no column of its own.
        let column = before.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        let whole = self.text.is_char_boundary(start + before.len());
        Position { line: line as u32, column: (column + usize::from(whole)) as u32 }
    }

    /// The text of a one-based line, without its end.
    pub fn line(&self, line: u32) -> Option<&'a str> {
        let starts = self.starts();
        let start = *starts.get((line as usize).checked_sub(1)?)? as usize;
        let end = starts.get(line as usize).map_or(self.text.len(), |&next| next as usize - 1);
        Some(self.text[start..end].trim_end_matches('\r'))
    }

    fn starts(&self) -> &[Offset] {
        self.starts.get_or_init(|| {
            let ends = memchr::memchr_iter(b'\n', self.text.as_bytes());
            std::iter::once(0).chain(ends.map(|end| end as Offset + 1)).collect()
        })
    }
}
