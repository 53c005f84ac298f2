//! What `--list` prints: what nextest, editors and people read.

use super::arguments::Format;
use super::json::string;
use super::selection::Selection;
use std::io::{self, Write};

/// Writes the list. In the terse format there is nothing in it but lines that end in `: test`.
pub fn write(out: &mut dyn Write, selection: &Selection, format: Format, runs_ignored: bool) -> io::Result<()> {
    if format == Format::Json {
        return write_json(out, selection, runs_ignored);
    }
    for test in &selection.tests {
        writeln!(out, "{}: test", test.entry.name)?;
    }
    if format != Format::Terse {
        let count = selection.tests.len();
        if count > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{count} {}, 0 benchmarks", if count == 1 { "test" } else { "tests" })?;
    }
    Ok(())
}

fn write_json(out: &mut dyn Write, selection: &Selection, runs_ignored: bool) -> io::Result<()> {
    let mut ignored = 0;
    writeln!(out, r#"{{ "type": "suite", "event": "discovery" }}"#)?;
    for test in &selection.tests {
        let ignore = test.ignored && !runs_ignored;
        ignored += usize::from(ignore);
        // A test of a contract has no place in a source file; libtest says so with an empty path and zeros.
        writeln!(
            out,
            "{{ \"type\": \"test\", \"event\": \"discovered\", \"name\": {}, \"ignore\": {ignore}, \
             \"ignore_message\": {}, \"source_path\": \"\", \"start_line\": 0, \"start_col\": 0, \"end_line\": 0, \
             \"end_col\": 0 }}",
            string(&test.entry.name),
            string(test.entry.cannot_run.as_deref().unwrap_or_default()),
        )?;
    }
    let count = selection.tests.len();
    writeln!(
        out,
        r#"{{ "type": "suite", "event": "completed", "tests": {count}, "benchmarks": 0, "total": {count}, "ignored": {ignored} }}"#
    )
}
