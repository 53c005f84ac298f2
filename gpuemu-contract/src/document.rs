//! A parsed TOML document with its places, and the report of what is wrong with it.

use crate::error::{ContractError, ContractErrors, Place};
use crate::kind::TomlType;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Collects errors about one file.
pub(crate) struct Report<'t> {
    pub text: &'t str,
    pub path: &'t Path,
    errors: Vec<ContractError>,
    /// Where lines end, for files of many thousand lines.
    newlines: Vec<usize>,
}

impl<'t> Report<'t> {
    pub fn new(text: &'t str, path: &'t Path) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        Report { text, path, errors: Vec::new(), newlines }
    }

    /// Notes an error at a place.
    pub fn error(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<Option<String>>) {
        self.errors.push(ContractError {
            path: self.path.to_owned(),
            place: Some(Place::of(self.text, span)),
            message: message.into(),
            help: help.into(),
        });
    }

    /// All errors, if there is one.
    pub fn finish(self) -> Option<ContractErrors> {
        ContractErrors::new(self.errors)
    }

    /// The one-based line of a place.
    pub fn line(&self, span: &Range<usize>) -> usize {
        self.newlines.partition_point(|newline| *newline < span.start) + 1
    }
}

/// A value with its place, and with its key and the key's place where it has one.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub key: &'a str,
    key_span: (usize, usize),
    value: &'a DeValue<'a>,
    span: (usize, usize),
    is_item: bool,
}

/// A table with its place.
#[derive(Clone, Copy)]
pub(crate) struct Section<'a> {
    table: &'a DeTable<'a>,
    span: (usize, usize),
}

impl<'a> Section<'a> {
    pub fn new(table: &'a DeTable<'a>, span: Range<usize>) -> Self {
        Section { table, span: (span.start, span.end) }
    }

    pub fn span(&self) -> Range<usize> {
        self.span.0..self.span.1
    }

    /// The entries in the order of the file.
    pub fn entries(&self) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = self.unordered().collect();
        entries.sort_by_key(|entry| entry.key_span);
        entries
    }

    pub fn get(&self, key: &str) -> Option<Entry<'a>> {
        self.unordered().find(|entry| entry.key == key)
    }

    fn unordered(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        self.table.iter().map(|(key, value)| Entry {
            key: key.get_ref(),
            key_span: (key.span().start, key.span().end),
            value: value.get_ref(),
            span: (value.span().start, value.span().end),
            is_item: false,
        })
    }

    /// The table under a key; `None` when there is none or it is something else.
    pub fn section(&self, key: &str) -> Option<Section<'a>> {
        self.get(key)?.section()
    }

    /// The text under a key; `None` when there is none or it is something else.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.text()
    }
}

impl<'a> Entry<'a> {
    pub fn span(&self) -> Range<usize> {
        self.span.0..self.span.1
    }

    pub fn key_span(&self) -> Range<usize> {
        self.key_span.0..self.key_span.1
    }

    /// How a message calls it: its key, or an entry of the list under that key.
    pub fn label(&self) -> String {
        if self.is_item { format!("an entry of `{}`", self.key) } else { format!("`{}`", self.key) }
    }

    pub fn toml_type(&self) -> TomlType {
        match self.value {
            DeValue::String(_) => TomlType::Text,
            DeValue::Integer(_) => TomlType::Integer,
            DeValue::Float(_) => TomlType::Float,
            DeValue::Boolean(_) => TomlType::Bool,
            DeValue::Datetime(_) => TomlType::Datetime,
            DeValue::Array(_) => TomlType::List,
            DeValue::Table(_) => TomlType::Table,
        }
    }

    pub fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub fn bool(&self) -> Option<bool> {
        self.value.as_bool()
    }

    /// `None` for another type and for an integer of more than 128 bits.
    pub fn integer(&self) -> Option<i128> {
        let integer = self.value.as_integer()?;
        i128::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    /// An integer or a float.
    pub fn number(&self) -> Option<f64> {
        match self.value {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(_) => self.integer().map(|value| value as f64),
            _ => None,
        }
    }

    pub fn section(&self) -> Option<Section<'a>> {
        Some(Section { table: self.value.as_table()?, span: self.span })
    }

    /// The entries of a list, under the list's own key; empty for another type.
    pub fn items(&self) -> Vec<Entry<'a>> {
        let items = self.value.as_array().into_iter().flat_map(|array| array.iter());
        items
            .map(|item| Entry {
                value: item.get_ref(),
                span: (item.span().start, item.span().end),
                is_item: true,
                ..*self
            })
            .collect()
    }

    /// The place of one byte of a text's content: inside the quotes where the text is written as it is, else the whole.
    pub fn span_within(&self, source: &str, at: usize) -> Range<usize> {
        let written = source.get(self.span()).unwrap_or_default();
        match self.text() {
            Some(content) if written.get(1..written.len().saturating_sub(1)) == Some(content) => {
                let start = (self.span.0 + 1 + at).min(self.span.1.saturating_sub(1));
                let length = content.get(at..).map_or(0, |rest| {
                    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    word.max(rest.chars().next().map_or(0, char::len_utf8))
                });
                start..start + length
            }
            _ => self.span(),
        }
    }
}
