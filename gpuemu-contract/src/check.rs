//! Checks a document against the tables of keys: unknown and missing keys, types, ranges, words, expressions.
//!
//! Reading comes after and takes what is right here for granted; what is wrong here it passes over in silence.

use crate::document::{Entry, Report, Section};
use crate::error::nearest;
use crate::kind::{Kind, Table, TomlType};
use crate::{Condition, Expression};

/// Reports everything in a table that its keys do not allow.
pub(crate) fn check_table(report: &mut Report<'_>, section: &Section<'_>, table: &Table) {
    let entries = section.entries();
    for entry in &entries {
        match table.keys.iter().find(|key| key.name == entry.key) {
            Some(key) => check_value(report, entry, &key.kind),
            None => {
                let names = table.keys.iter().map(|key| key.name);
                let help = suggestion(entry.key, names).unwrap_or_else(|| {
                    format!("keys of {}: {}", table.title, join(table.keys.iter().map(|key| key.name)))
                });
                report.error(entry.key_span(), format!("unknown key `{}` in {}", entry.key, table.title), help);
            }
        }
    }
    for key in table.keys.iter().filter(|key| key.required) {
        if !entries.iter().any(|entry| entry.key == key.name) {
            report.error(
                section.span(),
                format!("{} has no `{}`", table.title, key.name),
                format!("write `{} = ...`: {}", key.name, key.kind.describe()),
            );
        }
    }
}

fn check_value(report: &mut Report<'_>, entry: &Entry<'_>, kind: &Kind) {
    let found = entry.toml_type();
    if !kind.has_type(found) {
        let message = format!("{} must be {}, not {}", entry.label(), kind.describe(), found.name());
        return report.error(entry.span(), message, None);
    }
    match kind {
        Kind::Bool => {}
        Kind::Integer(min, max) => {
            let message = match entry.integer() {
                Some(value) if (*min..=*max).contains(&value) => return,
                Some(value) if value < *min => format!("{} must be {}", entry.label(), kind.describe()),
                _ => format!("{} must be at most {max}", entry.label()),
            };
            report.error(entry.span(), message, None);
        }
        Kind::Number { min, infinite } => {
            let value = entry.number().unwrap_or(f64::NAN);
            if value.is_nan() || value < *min || (value.is_infinite() && !infinite) {
                let finite = if *infinite { "" } else { "finite " };
                let wanted = kind.describe().replacen("a number", &format!("a {finite}number"), 1);
                let wanted = if value.is_nan() { format!("{wanted}, and NaN is none") } else { wanted };
                report.error(entry.span(), format!("{} must be {wanted}", entry.label()), None);
            }
        }
        Kind::Scalar => {
            if found == TomlType::Float {
                check_value(report, entry, &Kind::Number { min: f64::NEG_INFINITY, infinite: true });
            } else if found == TomlType::Integer {
                check_value(report, entry, &Kind::Integer(i64::MIN.into(), i64::MAX.into()));
            }
        }
        Kind::Text | Kind::Reference(_) => {
            if entry.text().is_some_and(|text| text.trim().is_empty()) {
                report.error(entry.span(), format!("{} is empty", entry.label()), None);
            }
        }
        Kind::Reason => {
            if entry.text().is_some_and(|text| text.trim().is_empty()) {
                let help = format!("say why it is right here: `{} = \"...\"`", entry.key);
                report.error(entry.span(), format!("{} is allowed without a reason", entry.label()), help);
            }
        }
        Kind::Identifier => check_identifier(report, entry),
        Kind::Choice(words) => {
            let text = entry.text().unwrap_or_default();
            if !words.contains(&text) {
                let help = suggestion_of_choice(text, words);
                let word = if text.is_empty() { "an empty text".to_owned() } else { format!("`{text}`") };
                report.error(entry.span(), format!("{word} is no value of `{}`", entry.key), help);
            }
        }
        Kind::Function => {
            let text = entry.text().unwrap_or_default();
            if !is_function(text) {
                let message = format!("`{text}` names no function");
                report.error(entry.span(), message, "expected `package.module:function`".to_owned());
            }
        }
        Kind::Expression => check_expression(report, entry),
        Kind::Axis => match entry.integer() {
            Some(value) if value < 0 => {
                report.error(entry.span(), format!("an axis of `{}` cannot have size {value}", entry.key), None);
            }
            _ if entry.text() == Some("...") => {}
            _ => check_expression(report, entry),
        },
        Kind::Condition => {
            if let Some(Err(error)) = entry.text().map(Condition::parse) {
                report.error(entry.span_within(report.text, error.at), error.message, None);
            }
        }
        Kind::List(of, min, max) => {
            let items = entry.items();
            if items.is_empty() && *min > 0 {
                report.error(entry.span(), format!("`{}` is an empty list", entry.key), None);
            } else if items.len() < *min || items.len() > *max {
                let entries = if items.len() == 1 { "entry" } else { "entries" };
                let message = format!("`{}` has {} {entries}, expected {}", entry.key, items.len(), kind.describe());
                report.error(entry.span(), message, None);
            }
            for item in &items {
                check_value(report, item, of);
            }
        }
        Kind::Map(of) => {
            for entry in entries(entry) {
                check_key(report, &entry);
                check_value(report, &entry, of);
            }
        }
        Kind::MapOf(words, of) => {
            let table = entry.key;
            for entry in entries(entry) {
                if !words.contains(&entry.key) {
                    let help = suggestion_of_choice(entry.key, words);
                    report.error(entry.key_span(), format!("unknown key `{}` in `{table}`", entry.key), help);
                }
                check_value(report, &entry, of);
            }
        }
        Kind::Table(table) => {
            if let Some(section) = entry.section() {
                check_table(report, &section, table);
            }
        }
        Kind::Tables(table) => {
            for item in entry.items() {
                match item.section() {
                    Some(section) => check_table(report, &section, table),
                    None => {
                        let found = item.toml_type().name();
                        report.error(
                            item.span(),
                            format!("`{}` must be {}, not {found}", entry.key, kind.describe()),
                            None,
                        );
                    }
                }
            }
        }
        Kind::OneOf(kinds) => {
            if let Some(kind) = kinds.iter().find(|kind| kind.has_type(found)) {
                check_value(report, entry, kind);
            }
        }
    }
}

fn entries<'a>(entry: &Entry<'a>) -> Vec<Entry<'a>> {
    entry.section().map(|section| section.entries()).unwrap_or_default()
}

fn check_expression(report: &mut Report<'_>, entry: &Entry<'_>) {
    match entry.text().map(Expression::parse) {
        Some(Err(error)) => report.error(entry.span_within(report.text, error.at), error.message, None),
        None if entry.integer().is_none_or(|value| i64::try_from(value).is_err()) => {
            report.error(entry.span(), format!("{} must be an integer of 64 bits", entry.label()), None);
        }
        _ => {}
    }
}

fn check_identifier(report: &mut Report<'_>, entry: &Entry<'_>) {
    let text = entry.text().unwrap_or_default();
    if !is_identifier(text) {
        report.error(entry.span(), format!("`{text}` is no identifier"), identifier_help(text));
    }
}

fn check_key(report: &mut Report<'_>, entry: &Entry<'_>) {
    if !is_identifier(entry.key) {
        report.error(entry.key_span(), format!("`{}` is no identifier", entry.key), identifier_help(entry.key));
    }
}

/// Whether a text is an identifier of both Rust and Python, ASCII only.
pub(crate) fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && text != "_"
}

/// Whether a text is `package.module:function`.
pub(crate) fn is_function(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(module, function)| module.split('.').all(is_identifier) && is_identifier(function))
}

fn identifier_help(text: &str) -> String {
    let mut repaired: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if repaired.starts_with(|c: char| c.is_ascii_digit()) {
        repaired.insert(0, '_');
    }
    let rule = "letters, digits and underscores, no digit first";
    if is_identifier(&repaired) { format!("{rule}, such as `{repaired}`") } else { rule.to_owned() }
}

/// "did you mean `x`?", if a candidate is near enough.
pub(crate) fn suggestion<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wanted, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// A suggestion where one is near, else all the words.
fn suggestion_of_choice(wanted: &str, words: &[&str]) -> String {
    let near =
        dtype_alias(wanted).filter(|name| words.contains(name)).or_else(|| nearest(wanted, words.iter().copied()));
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected {}", join(words.iter().copied())),
    }
}

/// Other libraries' short names for dtypes.
fn dtype_alias(text: &str) -> Option<&'static str> {
    Some(match text.to_lowercase().as_str() {
        "f64" | "fp64" | "double" => "float64",
        "f32" | "fp32" | "float" | "single" => "float32",
        "f16" | "fp16" | "half" => "float16",
        "bf16" => "bfloat16",
        "fp8" | "f8e4m3" | "fp8_e4m3" | "float8" | "float8_e4m3" | "e4m3" => "float8_e4m3fn",
        "f8e5m2" | "fp8_e5m2" | "e5m2" => "float8_e5m2",
        "i8" => "int8",
        "i16" => "int16",
        "i32" | "int" => "int32",
        "i64" | "long" => "int64",
        "u8" | "byte" => "uint8",
        "u16" => "uint16",
        "u32" => "uint32",
        "u64" => "uint64",
        "boolean" => "bool",
        _ => return None,
    })
}

/// Words in a row, separated by commas.
pub(crate) fn join<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}
