//! What an inspection finds, at the user's source line, as text, as JSON and as annotations of GitHub Actions.

use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Probably slower than it need be: told, and never a reason to fail.
    Warning,
    /// Wrong, or more than the contract allows: the test fails.
    Error,
}

impl Level {
    /// `note`, `warning` or `error`, as SARIF calls them.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// One-based line.
    pub line: u32,
    /// One-based column; 0 where it is not known.
    pub column: u32,
}

/// A place that has to do with a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// Where: in the user's source where it is known, else in the PTX.
    pub place: Place,
}

/// One thing that an inspection found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What is the matter, in lower case.
    pub message: String,
    /// The kernel's name in the contract.
    pub kernel: String,
    /// What it was compiled for.
    pub target: String,
    /// Where in the user's source, as far as the PTX says.
    pub source: Option<Place>,
    /// Where in the PTX.
    pub ptx: Option<Place>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    /// Why the contract allows it, where it does.
    pub allowed: Option<String>,
}

impl Finding {
    /// The place a person should look at: in the source where it is known, else in the PTX.
    pub fn place(&self) -> Option<&Place> {
        self.source.as_ref().or(self.ptx.as_ref())
    }

    /// The finding with the line it is about, as a person reads it; each line indented by two spaces. Paths are shown
    /// from `root`.
    pub fn text(&self, root: &Path) -> String {
        let mut text = format!("  {}: {}\n", self.rule, self.message);
        if let Some(place) = self.place() {
            let margin = place.line.to_string().len();
            let _ = writeln!(text, "  {:margin$}--> {}", "", shown(place, root));
            if let Some(line) = line_of(place) {
                let _ = writeln!(text, "  {:margin$} |\n  {} | {line}", "", place.line);
                if place.column > 0 {
                    let before: String = line
                        .chars()
                        .take(place.column as usize - 1)
                        .map(|c| if c == '\t' { '\t' } else { ' ' })
                        .collect();
                    let _ = writeln!(text, "  {:margin$} | {before}^", "");
                }
            }
        }
        for related in &self.related {
            let _ = writeln!(text, "    {}: {}", shown(&related.place, root), related.message);
        }
        if let (Some(_), Some(ptx)) = (&self.source, &self.ptx) {
            let _ = writeln!(text, "    in {}", shown(ptx, root));
        }
        text
    }

    /// The finding in one line.
    pub fn line(&self, root: &Path) -> String {
        let at = self.place().map_or_else(String::new, |place| format!(" at {}", shown(place, root)));
        format!("{}{at}: {}", self.rule, self.message)
    }

    /// The workflow command that makes GitHub Actions show the finding beside the line; paths start at `repository`.
    pub fn annotation(&self, repository: &Path) -> String {
        let level = if self.level == Level::Note { "notice" } else { self.level.name() };
        let mut properties = Vec::new();
        if let Some(place) = self.place() {
            let file = place.file.strip_prefix(repository).unwrap_or(&place.file).to_string_lossy().replace('\\', "/");
            properties.push(format!("file={}", escaped(&file, true)));
            properties.push(format!("line={}", place.line));
            if place.column > 0 {
                properties.push(format!("col={}", place.column));
            }
        }
        properties.push(format!("title={}", escaped(self.rule, true)));
        let message = format!("{} for {}: {}", self.kernel, self.target, self.message);
        format!("::{level} {}::{}", properties.join(","), escaped(&message, false))
    }
}

/// `file:line:column`, from `root`.
pub fn shown(place: &Place, root: &Path) -> String {
    let file = place.file.strip_prefix(root).unwrap_or(&place.file).display();
    match place.column {
        0 => format!("{file}:{}", place.line),
        column => format!("{file}:{}:{column}", place.line),
    }
}

/// The text of a place's line, where the file is there.
fn line_of(place: &Place) -> Option<String> {
    let bytes = std::fs::read(&place.file).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().nth(place.line.checked_sub(1)? as usize)?;
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}

/// Escapes of workflow commands, from `@actions/core` (`escapeData`, `escapeProperty`).
fn escaped(text: &str, property: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            ':' if property => out.push_str("%3A"),
            ',' if property => out.push_str("%2C"),
            c => out.push(c),
        }
    }
    out
}

/// The folder of the repository that holds `root`: the nearest with a `.git`, else `root` itself.
pub fn repository(root: &Path) -> PathBuf {
    root.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(root).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn finding(file: &Path, line: u32, column: u32) -> Finding {
        Finding {
            rule: "spill-in-loop",
            level: Level::Error,
            message: "2 loads in a loop".into(),
            kernel: "softmax".into(),
            target: "sm_80".into(),
            source: Some(Place { file: file.to_owned(), line, column }),
            ptx: Some(Place { file: file.with_extension("sm_80.ptx"), line: 112, column: 5 }),
            related: Vec::new(),
            allowed: None,
        }
    }

    #[test]
    fn the_line_is_shown_under_the_message() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("k.cu");
        std::fs::write(&file, "int a;\r\n\tx[i] += \u{e9} * y;\r\n\n").unwrap();
        let table = [
            (2, 2, "   --> k.cu:2:2\n    |\n  2 | \tx[i] += \u{e9} * y;\n    | \t^\n"),
            (2, 12, "   --> k.cu:2:12\n    |\n  2 | \tx[i] += \u{e9} * y;\n    | \t          ^\n"),
            (1, 0, "   --> k.cu:1\n    |\n  1 | int a;\n"),
            (3, 1, "   --> k.cu:3:1\n"),
            (4000000000, 7, "            --> k.cu:4000000000:7\n"),
        ];
        for (line, column, shown) in table {
            let text = finding(&file, line, column).text(folder.path());
            assert_eq!(text, format!("  spill-in-loop: 2 loads in a loop\n{shown}    in k.sm_80.ptx:112:5\n"));
        }
        let nowhere = Finding { source: None, ptx: None, ..finding(&file, 1, 1) };
        assert_eq!(nowhere.text(folder.path()), "  spill-in-loop: 2 loads in a loop\n");
    }

    #[test]
    fn annotations_are_escaped_as_github_reads_them() {
        let root = Path::new("/repository");
        let odd = Finding { message: "100%\nsure: a, b".into(), ..finding(Path::new("/repository/a,b:c%.cu"), 3, 4) };
        assert_eq!(
            odd.annotation(root),
            "::error file=a%2Cb%3Ac%25.cu,line=3,col=4,title=spill-in-loop::softmax for sm_80: 100%25%0Asure: a, b"
        );
        let told = Finding { level: Level::Note, source: None, ptx: None, ..odd };
        assert_eq!(told.annotation(root), "::notice title=spill-in-loop::softmax for sm_80: 100%25%0Asure: a, b");
    }
}
