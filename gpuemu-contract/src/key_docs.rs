//! What editors and people read about the keys: a JSON Schema and a page of tables, both made from the keys themselves.

use crate::artifact::{METRICS, RULES};
use crate::keys::{FILE, NAMES_OF_BUILTINS, NAMES_OF_DTYPES, NAMES_OF_STRATEGIES};
use crate::kind::{Key, Kind, Table};
use std::fmt::Write;

/// The JSON Schema (draft 7) of `gpuemu.toml`, for editors.
///
/// It is a little more lenient than reading: what needs two keys at once, a file on the disk or an expression's names
/// is checked by [`Contract::parse`](crate::Contract::parse) alone.
pub fn json_schema() -> String {
    let definitions = tables().iter().skip(1).map(|table| (slug(table), table_schema(table))).collect();
    let Json::Object(mut schema) = table_schema(&FILE) else { return String::new() };
    schema.insert(0, ("$schema".into(), Json::text("http://json-schema.org/draft-07/schema#")));
    schema.insert(1, ("title".into(), Json::text("gpuemu.toml")));
    schema.push(("definitions".into(), Json::Object(definitions)));
    let mut text = String::new();
    Json::Object(schema).write(&mut text, 0);
    text.push('\n');
    text
}

/// A page in Markdown: every table, and of every key the type, the default and the meaning.
pub fn markdown() -> String {
    let listed = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut page = format!(
        "- Dtypes: {}.\n- Strategies: {}.\n- Built-in references: {}.\n- Rules: {}.\n- Metrics: {}.\n\n",
        listed(&NAMES_OF_DTYPES),
        listed(&NAMES_OF_STRATEGIES),
        listed(&NAMES_OF_BUILTINS),
        listed(RULES),
        listed(METRICS)
    );
    for table in tables().iter().skip(1) {
        let _ = writeln!(
            page,
            "## {}\n\n{}\n\n| key | type | default | meaning |\n|---|---|---|---|",
            heading(table),
            table.about
        );
        for key in table.keys {
            let default = if key.required { "required" } else { key.default };
            let kind = words(&key.kind).replace('|', "\\|");
            let _ = writeln!(page, "| `{}` | {kind} | {default} | {} |", key.name, key.about.replace('|', "\\|"));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn heading(table: &Table) -> String {
    if table.title.starts_with('[') { format!("`{}`", table.title) } else { table.title.to_owned() }
}

fn words(kind: &Kind) -> String {
    match kind {
        Kind::Table(table) | Kind::Tables(table) => heading(table),
        Kind::Choice(choices) if **choices == NAMES_OF_DTYPES => "a dtype".to_owned(),
        Kind::Choice(choices) if **choices == NAMES_OF_STRATEGIES => "a strategy".to_owned(),
        Kind::Choice(["same", dtypes @ ..]) if *dtypes == NAMES_OF_DTYPES => "same, or a dtype".to_owned(),
        Kind::MapOf(names, of) if **names == NAMES_OF_DTYPES => format!("table: dtype to {}", words(of)),
        Kind::MapOf(names, of) if *names == RULES => format!("table: rule to {}", words(of)),
        Kind::MapOf(_, of) => format!("table: metric to {}", words(of)),
        Kind::Map(of) => format!("table: name to {}", words(of)),
        Kind::List(of, min, max) if min == max => format!("list of {min}: {}", words(of)),
        Kind::List(of, ..) => format!("list: {}", words(of)),
        Kind::OneOf(kinds) => kinds.iter().map(words).collect::<Vec<_>>().join(", or "),
        other => other.describe(),
    }
}

/// Every table, each once, the file itself first, then in the order in which keys lead to them.
fn tables() -> Vec<&'static Table> {
    fn visit(table: &'static Table, found: &mut Vec<&'static Table>) {
        if found.iter().any(|known| known.title == table.title) {
            return;
        }
        found.push(table);
        table.keys.iter().for_each(|key| visit_kind(&key.kind, found));
    }
    fn visit_kind(kind: &'static Kind, found: &mut Vec<&'static Table>) {
        match kind {
            Kind::Table(table) | Kind::Tables(table) => visit(table, found),
            Kind::List(of, ..) | Kind::Map(of) | Kind::MapOf(_, of) => visit_kind(of, found),
            Kind::OneOf(kinds) => kinds.iter().for_each(|kind| visit_kind(kind, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(&FILE, &mut found);
    found
}

fn slug(table: &Table) -> String {
    let title = table.title.trim_start_matches("an ").trim_start_matches("a ");
    title.trim_matches(['[', ']']).replace(' ', "_")
}

fn table_schema(table: &Table) -> Json {
    let property = |key: &Key| {
        let about = match key.default {
            "" => key.about.to_owned(),
            default => format!("{} Default: {default}.", key.about),
        };
        let mut members = vec![("description".to_owned(), Json::Text(about))];
        match kind_schema(&key.kind) {
            // Beside a reference, draft 7 reads nothing else.
            Json::Object(kind) if kind[0].0 == "$ref" => {
                members.push(("allOf".to_owned(), Json::List(vec![Json::Object(kind)])));
            }
            Json::Object(kind) => members.extend(kind),
            _ => {}
        }
        (key.name.to_owned(), Json::Object(members))
    };
    let required: Vec<Json> = table.keys.iter().filter(|key| key.required).map(|key| Json::text(key.name)).collect();
    let mut members = vec![
        ("type".to_owned(), Json::text("object")),
        ("description".to_owned(), Json::text(table.about)),
        ("additionalProperties".to_owned(), Json::Bare("false".into())),
        ("properties".to_owned(), Json::Object(table.keys.iter().map(property).collect())),
    ];
    if !required.is_empty() {
        members.push(("required".to_owned(), Json::List(required)));
    }
    Json::Object(members)
}

const IDENTIFIER: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
const FUNCTION: &str = "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$";

fn kind_schema(kind: &Kind) -> Json {
    let of = |members: &[(&str, Json)]| {
        Json::Object(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    };
    let text = |pattern: &str| of(&[("type", Json::text("string")), ("pattern", Json::text(pattern))]);
    let any = |schemas: Vec<Json>| of(&[("anyOf", Json::List(schemas))]);
    let words = |words: &[&str]| of(&[("enum", Json::List(words.iter().map(|word| Json::text(word)).collect()))]);
    let number = |value: String| Json::Bare(value);
    match kind {
        Kind::Bool => of(&[("type", Json::text("boolean"))]),
        Kind::Integer(min, max) => of(&[
            ("type", Json::text("integer")),
            ("minimum", number(min.to_string())),
            ("maximum", number(max.to_string())),
        ]),
        Kind::Number { min, .. } if min.is_finite() => {
            of(&[("type", Json::text("number")), ("minimum", number(min.to_string()))])
        }
        Kind::Number { .. } => of(&[("type", Json::text("number"))]),
        Kind::Scalar => {
            of(&[("type", Json::List(["boolean", "number", "string"].into_iter().map(Json::text).collect()))])
        }
        Kind::Text | Kind::Reason | Kind::Condition => text("\\S"),
        Kind::Identifier => text(IDENTIFIER),
        Kind::Choice(choices) => words(choices),
        Kind::Reference(builtins) => any(vec![words(builtins), text("[/\\\\]|\\.|:")]),
        Kind::Function => text(FUNCTION),
        Kind::Expression | Kind::Axis => any(vec![text("\\S"), of(&[("type", Json::text("integer"))])]),
        Kind::List(item, min, max) => {
            let mut members = vec![("type", Json::text("array")), ("items", kind_schema(item))];
            if *min > 0 {
                members.push(("minItems", number(min.to_string())));
            }
            if *max != usize::MAX {
                members.push(("maxItems", number(max.to_string())));
            }
            of(&members)
        }
        Kind::Map(value) => of(&[
            ("type", Json::text("object")),
            ("propertyNames", of(&[("pattern", Json::text(IDENTIFIER))])),
            ("additionalProperties", kind_schema(value)),
        ]),
        Kind::MapOf(names, value) => {
            let properties = names.iter().map(|name| ((*name).to_owned(), kind_schema(value))).collect();
            of(&[
                ("type", Json::text("object")),
                ("additionalProperties", Json::Bare("false".into())),
                ("properties", Json::Object(properties)),
            ])
        }
        Kind::Table(table) => of(&[("$ref", Json::Text(format!("#/definitions/{}", slug(table))))]),
        Kind::Tables(table) => of(&[
            ("type", Json::text("array")),
            ("items", of(&[("$ref", Json::Text(format!("#/definitions/{}", slug(table))))])),
        ]),
        Kind::OneOf(kinds) => any(kinds.iter().map(kind_schema).collect()),
    }
}

/// As much of JSON as a schema needs; members keep their order.
#[derive(Clone)]
enum Json {
    Text(String),
    /// A number or a word, as it is.
    Bare(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn text(text: &str) -> Json {
        Json::Text(text.to_owned())
    }

    fn write(&self, out: &mut String, depth: usize) {
        let mut lines = |open: char, close: char, items: Vec<(Option<&String>, &Json)>| {
            out.push(open);
            for (position, (name, item)) in items.iter().enumerate() {
                out.push_str(if position == 0 { "\n" } else { ",\n" });
                out.push_str(&"  ".repeat(depth + 1));
                if let Some(name) = name {
                    write_text(out, name);
                    out.push_str(": ");
                }
                item.write(out, depth + 1);
            }
            if !items.is_empty() {
                out.push('\n');
                out.push_str(&"  ".repeat(depth));
            }
            out.push(close);
        };
        match self {
            Json::Text(text) => write_text(out, text),
            Json::Bare(text) => out.push_str(text),
            Json::Object(members) => lines('{', '}', members.iter().map(|(name, value)| (Some(name), value)).collect()),
            // Words and numbers stay on one line.
            Json::List(items) if !items.iter().any(|item| matches!(item, Json::List(_) | Json::Object(_))) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    out.push_str(if position == 0 { "" } else { ", " });
                    item.write(out, depth);
                }
                out.push(']');
            }
            Json::List(items) => lines('[', ']', items.iter().map(|item| (None, item)).collect()),
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
