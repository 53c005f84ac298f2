//! The words of an opcode, however a hand has spread them out.

use std::borrow::Cow;

/// An opcode without the blanks, comments and line markers that may stand before its modifiers: `ld.global.u32` of
/// `ld.global /* a row */ .u32`.
pub fn plain_opcode(opcode: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'$' | b'%');
    if opcode.bytes().all(plain) {
        return Cow::Borrowed(opcode);
    }
    let mut words = String::with_capacity(opcode.len());
    let mut rest = opcode;
    while let Some(next) = rest.chars().next() {
        let skipped = match next {
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| 2 + end + 2),
            '/' | '#' => rest.find('\n').unwrap_or(rest.len()),
            _ if next.is_ascii_whitespace() || next == '\x0B' => 1,
            _ => {
                words.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[skipped..];
    }
    Cow::Owned(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_comments_are_no_part_of_an_opcode() {
        for (written, plain) in [
            ("ret", "ret"),
            ("ld.global.L1::no_allocate.v4.b32", "ld.global.L1::no_allocate.v4.b32"),
            ("ld.global .u32", "ld.global.u32"),
            ("ld/*a.b*/.global// c.d\n\t.u32", "ld.global.u32"),
            ("ld /**/ /* * / */.u32", "ld.u32"),
            ("ld\n# 3 \"k.cu\"\n.u32", "ld.u32"),
        ] {
            assert_eq!(plain_opcode(written), plain, "{written}");
        }
    }
}
