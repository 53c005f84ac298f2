//! Names of ops and kernels, and the files and functions that a contract names.

use crate::check::{is_function, is_identifier, join, suggestion};
use crate::document::{Entry, Report};
use crate::error::nearest;
use crate::{Builtin, Reference};
use std::path::{Path, PathBuf};

const RUST_KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self Self static struct \
    super trait true try type typeof unsafe unsized use virtual where while yield";
const PYTHON_KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else except \
    finally for from global if import in is lambda nonlocal not or pass raise return try while with yield";
/// Names of tests that are not an op's.
const TAKEN: [&str; 4] = ["artifact", "kernel", "accuracy", "regressions"];

/// Checks the name of an op or a kernel; `what` is "op" or "kernel", `earlier` the names so far with their lines.
pub(super) fn check_name(report: &mut Report<'_>, entry: &Entry<'_>, what: &str, earlier: &[(String, usize)]) {
    let name = entry.text().unwrap_or_default();
    let why = if TAKEN.contains(&name) {
        format!("`{name}` is taken by gpuemu's own tests")
    } else if RUST_KEYWORDS.split_whitespace().any(|word| word == name) {
        format!("`{name}` is a keyword of Rust")
    } else if PYTHON_KEYWORDS.split_whitespace().any(|word| word == name) {
        format!("`{name}` is a keyword of Python")
    } else if let Some((_, line)) = earlier.iter().find(|(known, _)| known == name) {
        return report.error(
            entry.span(),
            format!("two {what}s are named `{name}`, the first on line {line}"),
            "give each a name of its own".to_owned(),
        );
    } else {
        return;
    };
    report.error(entry.span(), why, format!("choose another name, such as `{name}_{what}`"));
}

/// The absolute path of a file that must be there.
pub(super) fn existing(report: &mut Report<'_>, entry: &Entry<'_>, root: &Path) -> Option<PathBuf> {
    let text = entry.text().filter(|text| !text.trim().is_empty())?;
    let path = root.join(text);
    if path.is_file() {
        return Some(path);
    }
    let message = if path.is_dir() {
        format!("`{text}` is a folder, expected a file")
    } else {
        format!("the file `{text}` does not exist")
    };
    let help =
        neighbour(&path, text).unwrap_or_else(|| format!("paths start at the folder of {}", report.path.display()));
    report.error(entry.span(), message, help);
    None
}

/// A file in the same folder that is spelt much alike.
fn neighbour(path: &Path, text: &str) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let names: Vec<String> = std::fs::read_dir(path.parent()?)
        .ok()?
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|name| name != wanted)
        .collect();
    let near = nearest(wanted, names.iter().map(String::as_str))?;
    Some(format!("did you mean `{}{near}`?", text.strip_suffix(wanted)?))
}

/// Where right answers come from.
pub(super) fn reference(report: &mut Report<'_>, entry: &Entry<'_>, root: &Path) -> Option<Reference> {
    let text = entry.text().filter(|text| !text.trim().is_empty())?;
    if Builtin::find(text).is_some() {
        return Some(Reference::Builtin(text.to_owned()));
    }
    if is_function(text) {
        let (module, function) = text.split_once(':')?;
        return Some(Reference::Function { module: module.to_owned(), function: function.to_owned() });
    }
    if text.contains(['/', '\\']) || text.ends_with(".py") || root.join(text).is_file() {
        return existing(report, entry, root).map(Reference::Script);
    }
    let dotted = text.contains('.') && text.split('.').all(is_identifier);
    let (message, help) = if let (true, Some((module, function))) = (dotted, text.rsplit_once('.')) {
        (format!("`{text}` names no function"), format!("write `{module}:{function}`"))
    } else {
        let names = || Builtin::ALL.iter().map(|builtin| builtin.name);
        let help = suggestion(text, names()).unwrap_or_else(|| {
            format!("a script is a path such as `scripts/{text}.py`, a function is `package.module:function`, and the built-ins are {}", join(names()))
        });
        (format!("no built-in reference is named `{text}`"), help)
    };
    report.error(entry.span(), message, help);
    None
}
