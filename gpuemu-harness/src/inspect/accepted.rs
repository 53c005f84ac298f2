//! The file of accepted figures, in insta's format.
//!
//! insta's own assertion prints to standard output, which belongs to the runner's events, and panics; so its files are
//! read and written by insta, and compared here.

use crate::error::{Error, Result};
use crate::inspect::baseline::Baseline;
use std::fmt::Write;
use std::path::Path;

/// What an accepted file holds.
pub struct Accepted {
    /// Its figures, in order.
    pub figures: Vec<(String, f64)>,
    /// Facts beside them.
    pub info: Vec<(String, String)>,
}

/// An accepted file, `None` where there is none.
pub fn read(path: &Path) -> std::result::Result<Option<Accepted>, String> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
        // insta takes other texts for an old format of its own and says so on standard error.
        Ok(bytes) if !bytes.starts_with(b"---") => return Err("is no snapshot of insta".to_owned()),
        Ok(_) => {}
    }
    let snapshot = insta::Snapshot::from_file(path).map_err(|error| format!("is no snapshot of insta: {error}"))?;
    let insta::internals::SnapshotContents::Text(contents) = snapshot.contents() else {
        return Err("is a binary snapshot".to_owned());
    };
    let mut figures = Vec::new();
    for line in contents.to_string().lines().filter(|line| !line.trim().is_empty()) {
        let figure = line.split_once('=').map(|(name, value)| (name.trim(), value.trim().parse::<f64>()));
        match figure {
            Some((name, Ok(value))) => figures.push((name.to_owned(), value)),
            _ => return Err(format!("`{line}` is no `name = number`")),
        }
    }
    let info = match snapshot.metadata().private_info() {
        Some(insta::internals::Content::Map(entries)) => entries
            .iter()
            .filter_map(|(name, value)| Some((name.as_str()?.to_owned(), value.as_str()?.to_owned())))
            .collect(),
        _ => Vec::new(),
    };
    Ok(Some(Accepted { figures, info }))
}

/// A snapshot file as insta writes it: metadata in YAML, then one figure a line.
///
/// # Errors
///
/// When no temporary file can be had.
pub fn text(baseline: &Baseline<'_>) -> Result<String> {
    // insta writes what it has read, and `cargo insta accept` does just that: files that are accepted there and files
    // that are written here are the same to the byte.
    let failed = |error: &dyn std::fmt::Display| Error::File(format!("cannot prepare a snapshot: {error}"));
    let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
    let (draft, file) = (folder.path().join("draft.snap"), folder.path().join("file.snap"));
    std::fs::write(&draft, self::draft(baseline)).map_err(|error| failed(&error))?;
    let snapshot = insta::Snapshot::from_file(&draft).map_err(|error| failed(&error))?;
    snapshot.save(&file).map_err(|error| failed(&error))?;
    std::fs::read_to_string(&file).map_err(|error| failed(&error))
}

/// The same, with strings in double quotes, which JSON shares with YAML.
fn draft(baseline: &Baseline<'_>) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!("---\nsource: gpuemu.toml\ndescription: {}\n", quoted(&baseline.description));
    if !baseline.info.is_empty() {
        text.push_str("info:\n");
    }
    for (name, value) in &baseline.info {
        let _ = writeln!(text, "  {name}: {}", quoted(value));
    }
    text.push_str("---\n");
    for metric in &baseline.metrics {
        let _ = writeln!(text, "{} = {}", metric.name, number(metric.value));
    }
    text
}

/// Four significant digits; whole numbers up to a million in full.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || (value.fract() == 0.0 && magnitude < 1e6) {
        return format!("{value}");
    }
    if (1e-3..1e6).contains(&magnitude) {
        let digits = (3 - magnitude.log10().floor() as i32).max(0) as usize;
        let text = format!("{value:.digits$}");
        return if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    }
    format!("{value:.3e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_read_back() {
        let table = [
            (0.0, "0"),
            (60.0, "60"),
            (123456.0, "123456"),
            (0.5, "0.5"),
            (1.23456, "1.235"),
            (99999.6, "100000"),
            (0.00123456, "0.001235"),
            (1.23456e-7, "1.235e-7"),
            (6.4e12, "6.400e12"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in table {
            assert_eq!(number(value), text);
            let back: f64 = text.parse().unwrap();
            assert!(back == value || (back / value - 1.0).abs() < 6e-4, "{text}");
        }
    }
}
