//! What is wrong with a contract: each error with its place, the line, what was expected and the nearest right spelling.

use std::fmt;
use std::path::{Path, PathBuf};

/// Everything found wrong with one `gpuemu.toml`, in the order of the file; never empty.
///
/// Displayed, every error is a block of a few lines, with the file, line and column first, so that terminals and
/// editors can jump there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractErrors {
    errors: Vec<ContractError>,
}

/// One thing wrong with a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractError {
    /// The file, as it was given.
    pub path: PathBuf,
    /// Where in the file; `None` when the whole file is at fault (it is missing, or no text).
    pub place: Option<Place>,
    /// What is wrong, in lower case.
    pub message: String,
    /// The way out, where there is one: the nearest spelling, the valid values, what to write instead.
    pub help: Option<String>,
}

/// A place in a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// One-based line.
    pub line: usize,
    /// One-based column, in characters.
    pub column: usize,
    /// How many characters of the line are at fault, at least 1.
    pub width: usize,
    /// The line's text.
    pub text: String,
}

impl Place {
    /// The place of a byte range of a text. A range over several lines is cut at the end of its first.
    pub fn of(text: &str, span: std::ops::Range<usize>) -> Place {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end.max(start));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let end = end.min(line_start + line.len());
        Place {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text.get(start..end).map_or(0, |marked| marked.chars().count()).max(1),
            text: line.to_owned(),
        }
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

impl ContractErrors {
    /// Sorts by place; `None` when there is nothing wrong.
    pub(crate) fn new(mut errors: Vec<ContractError>) -> Option<ContractErrors> {
        errors.sort_by_key(|error| error.place.as_ref().map(|place| (place.line, place.column)));
        errors.dedup();
        if errors.is_empty() { None } else { Some(ContractErrors { errors }) }
    }

    /// One error about a file as a whole.
    pub(crate) fn whole(path: &Path, message: String, help: Option<String>) -> ContractErrors {
        ContractErrors { errors: vec![ContractError { path: path.to_owned(), place: None, message, help }] }
    }

    /// The errors, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &ContractError> {
        self.errors.iter()
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let Some(place) = &self.place else {
            write!(f, "{path}: {}", self.message)?;
            return self.help.iter().try_for_each(|help| write!(f, "\n  = {help}"));
        };
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        // A tab keeps its width above and below, whatever the terminal makes of it.
        let before: String =
            place.text.chars().take(place.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "{path}:{number}:{}: {}", place.column, self.message)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", place.text)?;
        write!(f, "{gutter} | {before}{}", "^".repeat(place.width))?;
        self.help.iter().try_for_each(|help| write!(f, "\n{gutter} = {help}"))
    }
}

impl fmt::Display for ContractErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.errors.iter().enumerate() {
            write!(f, "{}{error}", if position == 0 { "" } else { "\n\n" })?;
        }
        match self.errors.len() {
            1 => Ok(()),
            count => write!(f, "\n\n{count} errors"),
        }
    }
}

impl std::error::Error for ContractErrors {}
impl std::error::Error for ContractError {}

/// The candidate spelt most like `wanted`, if one is near enough to be what was meant.
///
/// Near means the same word in another case, at most one edit in three characters (insertion, deletion, replacement,
/// or two neighbours swapped), or the same beginning for three quarters of `wanted`.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.trim().to_lowercase();
    let length = wanted.chars().count();
    let near = |edits: usize, candidate: &str| {
        let longest = length.max(candidate.chars().count());
        let common = wanted.chars().zip(candidate.chars()).take_while(|(a, b)| a == b).count();
        edits < longest && (edits <= longest.div_ceil(3).min(4) || common >= 3 && common * 4 >= length * 3)
    };
    candidates
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| near(*edits, &candidate.to_lowercase()))
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words: the optimal string alignment distance, in which a swap of neighbours counts once.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[from.len()][to.len()]
}
