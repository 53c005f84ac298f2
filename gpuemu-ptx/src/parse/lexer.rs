//! A cursor over the bytes of a module, always at the beginning of a token.

use super::fault::{Fault, Parsed};

/// A byte that a name goes on with.
const NAME: u8 = 1;
/// A byte that a name begins with.
const START: u8 = 2;
/// A decimal digit.
const DIGIT: u8 = 4;
/// A byte between tokens, or one that may begin a comment or a line marker.
const SKIP: u8 = 8;
/// A byte between tokens.
const BLANK: u8 = 16;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => NAME | START,
            b'0'..=b'9' => NAME | DIGIT,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C => SKIP | BLANK,
            b'/' | b'#' => SKIP,
            _ => 0,
        };
        byte += 1;
    }
    class
};

pub(super) fn begins_name(byte: u8) -> bool {
    CLASS[byte as usize] & START != 0
}

pub(super) fn continues_name(byte: u8) -> bool {
    CLASS[byte as usize] & NAME != 0
}

pub(super) fn is_digit(byte: u8) -> bool {
    CLASS[byte as usize] & DIGIT != 0
}

fn is_blank(byte: u8) -> bool {
    CLASS[byte as usize] & BLANK != 0
}

/// The cursor. Every method that takes a token leaves it at the beginning of the next.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Where the text begins, behind a byte order mark.
    begin: usize,
    at: usize,
    /// Whether the cursor is between LLVM's comments around what was written as assembly.
    assembly: bool,
}

impl<'a> Lexer<'a> {
    /// At the first token, behind a byte order mark.
    pub(super) fn new(text: &'a str) -> Parsed<Lexer<'a>> {
        let begin = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        let mut lexer = Lexer { text, bytes: text.as_bytes(), begin, at: begin, assembly: false };
        lexer.skip_blank()?;
        Ok(lexer)
    }

    /// Where the next token begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Whether the next token was written as assembly inside another language: `// begin inline asm` came, and its end
    /// did not.
    pub(super) fn in_assembly(&self) -> bool {
        self.assembly
    }

    /// Where the next token begins, as the tree keeps it.
    pub(super) fn offset(&self) -> u32 {
        self.at as u32
    }

    /// The next byte, 0 at the end.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// The byte `ahead` of the next, 0 past the end.
    #[inline]
    pub(super) fn peek_at(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// What stands between two offsets.
    #[inline]
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a str {
        &self.text[from..to]
    }

    /// "expected ..., found what is here".
    #[cold]
    pub(super) fn expected<T>(&self, expected: impl Into<String>) -> Parsed<T> {
        Err(Fault::new(self.at, expected))
    }

    /// Takes `count` bytes, and what stands between them and the next token.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) -> Parsed<()> {
        self.at += count;
        self.skip_blank()
    }

    /// Takes `byte` if it is next.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> Parsed<bool> {
        if self.peek() != byte {
            return Ok(false);
        }
        self.advance(1)?;
        Ok(true)
    }

    /// Takes `byte`, which must be next.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, expected: &str) -> Parsed<()> {
        if self.peek() != byte {
            return self.expected(expected);
        }
        self.advance(1)
    }

    /// How many bytes the next one takes, with the blanks and comments behind it.
    pub(super) fn width_with_blanks(&self) -> usize {
        self.behind_blanks(1)
    }

    /// What follows `ahead` bytes, behind blanks and comments.
    #[inline]
    fn behind_blanks(&self, mut ahead: usize) -> usize {
        loop {
            while is_blank(self.peek_at(ahead)) {
                ahead += 1;
            }
            // A comment without an end is complained of where it is next.
            match self.peek_at(ahead) == b'/' {
                true => match self.comment_end(self.at + ahead) {
                    Ok(Some(end)) => ahead = end - self.at,
                    _ => return ahead,
                },
                false => return ahead,
            }
        }
    }

    /// Where the run of name bytes from `from` ends.
    #[inline]
    fn name_end(&self, from: usize) -> usize {
        let mut end = from;
        while end < self.bytes.len() && continues_name(self.bytes[end]) {
            end += 1;
        }
        end
    }

    /// The bytes of a name that is next, without taking it; empty where none is.
    #[inline]
    pub(super) fn peek_name(&self) -> &'a str {
        self.name_ahead(0)
    }

    /// The bytes of a name that begins `ahead` of the next token; empty where none does.
    #[inline]
    pub(super) fn name_ahead(&self, ahead: usize) -> &'a str {
        let start = self.at + ahead;
        if begins_name(self.peek_at(ahead)) { self.slice(start, self.name_end(start)) } else { "" }
    }

    /// Takes a name.
    #[inline]
    pub(super) fn name(&mut self, expected: &str) -> Parsed<&'a str> {
        let name = self.peek_name();
        if name.is_empty() {
            return self.expected(expected);
        }
        self.advance(name.len())?;
        Ok(name)
    }

    /// Takes a name with the components behind it: `%tid.x`.
    #[inline]
    pub(super) fn dotted_name(&mut self, expected: &str) -> Parsed<&'a str> {
        if !begins_name(self.peek()) {
            return self.expected(expected);
        }
        let start = self.at;
        let mut end = self.name_end(start);
        while end + 1 < self.bytes.len() && self.bytes[end] == b'.' && begins_name(self.bytes[end + 1]) {
            end = self.name_end(end + 1);
        }
        self.at = end;
        self.skip_blank()?;
        Ok(self.slice(start, end))
    }

    /// The word of a directive that is next, without its dot and without taking it; empty where none is.
    pub(super) fn peek_directive(&self) -> &'a str {
        if self.peek() == b'.' && continues_name(self.peek_at(1)) {
            self.slice(self.at + 1, self.name_end(self.at + 1))
        } else {
            ""
        }
    }

    /// Takes a word that [`Self::peek_directive`] or [`Self::peek_name`] gave, and its dot.
    pub(super) fn take_directive(&mut self, word: &str) -> Parsed<()> {
        self.advance(word.len() + 1)
    }

    /// Takes the directive `.word` if it is next.
    pub(super) fn eat_directive(&mut self, word: &str) -> Parsed<bool> {
        if self.peek_directive() != word {
            return Ok(false);
        }
        self.take_directive(word)?;
        Ok(true)
    }

    /// The first word of a statement, not taken, and the offset behind it.
    #[inline]
    pub(super) fn peek_word(&self) -> (&'a str, usize) {
        let end = self.name_end(self.at);
        (self.slice(self.at, end), end)
    }

    /// How many bytes a label of `name` bytes takes, its colon included; `None` where none is next.
    #[inline]
    pub(super) fn label_length(&self, name: usize) -> Option<usize> {
        if self.peek_at(name) == b'.' {
            return None;
        }
        let length = self.behind_blanks(name);
        (self.peek_at(length) == b':' && self.peek_at(length + 1) != b':').then_some(length + 1)
    }

    /// Takes an opcode with its modifiers, the first word of which ends at `end`. Between them may stand what may stand
    /// between any tokens.
    #[inline]
    pub(super) fn opcode(&mut self, mut end: usize) -> Parsed<&'a str> {
        let start = self.at;
        loop {
            loop {
                // Both `.global` and `::cta`; a colon alone is no modifier.
                match self.bytes.get(end) {
                    Some(&b'.') => end += 1,
                    Some(&b':') if self.bytes.get(end + 1) == Some(&b':') => end += 2,
                    _ => break,
                }
                let begin = end;
                end = self.name_end(begin);
                if end == begin {
                    return Err(Fault::new(end, "a modifier of an opcode"));
                }
            }
            self.at = end;
            self.skip_blank()?;
            if self.peek() != b'.' || !begins_name(self.peek_at(1)) {
                return Ok(self.slice(start, end));
            }
            end = self.at;
        }
    }

    /// Takes a string; without its quotes.
    pub(super) fn string(&mut self, expected: &str) -> Parsed<&'a str> {
        if self.peek() != b'"' {
            return self.expected(expected);
        }
        let start = self.at + 1;
        let end = self.string_end(start)?;
        self.at = end + 1;
        self.skip_blank()?;
        Ok(self.slice(start, end))
    }

    /// The closing quote of a string whose contents begin at `start`. A backslash is a character like any other, as it is
    /// to ptxas.
    fn string_end(&self, start: usize) -> Parsed<usize> {
        match memchr::memchr2(b'"', b'\n', &self.bytes[start..]) {
            Some(end) if self.bytes[start + end] == b'"' => Ok(start + end),
            _ => Err(Fault::new(start - 1, "a string that ends on its line")),
        }
    }

    /// Takes what stands between `open`, which is next, and the `close` that matches it, as written.
    pub(super) fn enclosed(&mut self, open: u8, close: u8, expected: &str) -> Parsed<&'a str> {
        if self.peek() != open {
            return self.expected(expected);
        }
        let start = self.at + 1;
        let mut depth = 1_usize;
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    self.at = at + 1;
                    self.skip_blank()?;
                    return Ok(self.slice(start, at));
                }
                at += 1;
            } else if byte == open {
                depth += 1;
                at += 1;
            } else if byte == b'"' {
                at = self.string_end(at + 1)? + 1;
            } else if byte == b'/' {
                at = self.comment_end(at)?.unwrap_or(at + 1);
            } else {
                at += 1;
            }
        }
        Err(Fault::new(self.bytes.len(), format!("`{}`", close as char)).opened(start - 1, open))
    }

    /// Where the comment that begins at `at` ends; `None` where none begins there.
    fn comment_end(&self, at: usize) -> Parsed<Option<usize>> {
        let rest = &self.bytes[at..];
        if rest.starts_with(b"//") {
            return Ok(Some(memchr::memchr(b'\n', rest).map_or(self.bytes.len(), |newline| at + newline)));
        }
        if rest.starts_with(b"/*") {
            return match memchr::memmem::find(&rest[2..], b"*/") {
                Some(end) => Ok(Some(at + 2 + end + 2)),
                None => Err(Fault::new(self.bytes.len(), "`*/`").opened(at, b'/')),
            };
        }
        Ok(None)
    }

    /// Goes on to the next token.
    #[inline]
    fn skip_blank(&mut self) -> Parsed<()> {
        if CLASS[self.peek() as usize] & SKIP == 0 { Ok(()) } else { self.skip_more() }
    }

    fn skip_more(&mut self) -> Parsed<()> {
        loop {
            while self.at < self.bytes.len() && is_blank(self.bytes[self.at]) {
                self.at += 1;
            }
            match self.peek() {
                b'/' => match self.comment_end(self.at)? {
                    Some(end) => {
                        match self.bytes[self.at..end].trim_ascii_end() {
                            b"// begin inline asm" => self.assembly = true,
                            b"// end inline asm" => self.assembly = false,
                            _ => {}
                        }
                        self.at = end;
                    }
                    None => return Ok(()),
                },
                b'#' if self.is_first_of_line() => {
                    let end = memchr::memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |n| self.at + n);
                    if !is_line_marker(&self.bytes[self.at + 1..end]) {
                        return self.expected("a text that has been through the C preprocessor");
                    }
                    self.at = end;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Whether only blanks stand before the cursor on its line.
    fn is_first_of_line(&self) -> bool {
        let before = self.bytes[self.begin..self.at].iter().rev().find(|&&byte| byte == b'\n' || !is_blank(byte));
        before.is_none_or(|&byte| byte == b'\n')
    }
}

/// Whether a line that begins with `#` is one that the C preprocessor leaves behind: `# 12 "file"`, `#line 12`.
fn is_line_marker(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    rest.is_empty()
        || rest.first().is_some_and(u8::is_ascii_digit)
        || rest.strip_prefix(b"line").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}
