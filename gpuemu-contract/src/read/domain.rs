//! Reads `domain` of an input.

use super::schema::Scope;
use crate::document::{Entry, Report};
use crate::kind::TomlType;
use crate::{Domain, Expression};

/// The values an input may take; `None` when the entry is wrong, which is then reported.
pub(super) fn read_domain(report: &mut Report<'_>, entry: &Entry<'_>, scope: &Scope<'_>) -> Option<Domain> {
    if let Some(word) = entry.text() {
        return match word {
            "positive" => Some(Domain::Positive),
            "probability" => Some(Domain::Probability),
            "permutation" => Some(Domain::Permutation),
            "one_hot" => Some(Domain::OneHot),
            _ => None,
        };
    }
    let Some(section) = entry.section() else { return read_range(report, entry, scope) };
    let kinds: Vec<Entry<'_>> = section.entries().into_iter().filter(|entry| entry.key != "sentinel").collect();
    let domain = match &kinds[..] {
        [one] => match one.key {
            "sorted" => range(report, one, scope).map(|(low, high)| Domain::Sorted(low, high)),
            "unique" => range(report, one, scope).map(|(low, high)| Domain::Unique(low, high)),
            "range" => range(report, one, scope).map(|(low, high)| Domain::IntegerRange(low, high)),
            "offsets" => scope.expression(report, one).map(Domain::Offsets),
            _ => None,
        },
        _ => {
            let found = if kinds.is_empty() { "none" } else { "several" };
            report.error(
                entry.span(),
                format!("a domain has exactly one of `sorted`, `unique`, `offsets` and `range`, this has {found}"),
                None,
            );
            None
        }
    }?;
    match section.get("sentinel") {
        Some(sentinel) => {
            let value = sentinel.integer()?.try_into().ok()?;
            Some(Domain::Sentinel(Box::new(domain), value))
        }
        None => Some(domain),
    }
}

/// `[first, last]`: floats where one is a float, else integers.
fn read_range(report: &mut Report<'_>, entry: &Entry<'_>, scope: &Scope<'_>) -> Option<Domain> {
    let items = entry.items();
    if !items.iter().any(|item| item.toml_type() == TomlType::Float) {
        return range(report, entry, scope).map(|(low, high)| Domain::IntegerRange(low, high));
    }
    if let Some(text) = items.iter().find(|item| item.text().is_some()) {
        report.error(
            text.span(),
            "a range of floats has no expressions",
            "write two numbers, or two integer expressions".to_owned(),
        );
        return None;
    }
    match items.iter().filter_map(|item| item.number()).collect::<Vec<f64>>()[..] {
        [low, high] if low <= high => Some(Domain::FloatRange(low, high)),
        [low, high] => {
            report.error(entry.span(), format!("no value lies between {low} and {high}"), None);
            None
        }
        _ => None,
    }
}

fn range(report: &mut Report<'_>, entry: &Entry<'_>, scope: &Scope<'_>) -> Option<(Expression, Expression)> {
    let bounds: Vec<Option<Expression>> = entry.items().iter().map(|item| scope.expression(report, item)).collect();
    match &bounds[..] {
        [Some(low), Some(high)] => Some((low.clone(), high.clone())),
        _ => None,
    }
}
