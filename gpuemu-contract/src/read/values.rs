//! Values that several tables share: lists of dtypes and strategies, tolerances, invariants.

use crate::document::{Entry, Report, Section};
use crate::{DType, Invariants, Strategy, Tolerance};
use std::collections::BTreeMap;

/// The dtypes of a list, each once. Entries that are none are passed over.
pub(super) fn dtypes(entry: &Entry<'_>) -> Vec<DType> {
    unique(entry.items().iter().filter_map(|item| DType::from_name(item.text()?)))
}

/// The strategies of a list, each once. Entries that are none are passed over.
pub(super) fn strategies(entry: &Entry<'_>) -> Vec<Strategy> {
    unique(entry.items().iter().filter_map(|item| Strategy::from_name(item.text()?)))
}

fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The texts of a list.
pub(super) fn texts(entry: Option<Entry<'_>>) -> Vec<String> {
    let items = entry.map(|entry| entry.items()).unwrap_or_default();
    items.iter().filter_map(|item| item.text()).map(str::to_owned).collect()
}

/// Tolerances by dtype: a number is an absolute one.
pub(super) fn tolerances(entry: &Entry<'_>) -> BTreeMap<DType, Tolerance> {
    let entries = entry.section().map(|section| section.entries()).unwrap_or_default();
    let tolerance = |entry: &Entry<'_>| match (entry.number(), entry.section()) {
        (Some(absolute), _) => Some(Tolerance { absolute, relative: 0.0 }),
        (None, Some(section)) => {
            let part = |key| section.get(key).and_then(|entry| entry.number()).unwrap_or(0.0);
            Some(Tolerance { absolute: part("absolute"), relative: part("relative") })
        }
        (None, None) => None,
    };
    entries.iter().filter_map(|entry| Some((DType::from_name(entry.key)?, tolerance(entry)?))).collect()
}

/// `invariants` of an op or a kernel.
pub(super) fn invariants(report: &mut Report<'_>, section: Section<'_>) -> Invariants {
    let flag = |key| section.get(key).and_then(|entry| entry.bool()).unwrap_or(false);
    let mut bounded = None;
    if let Some(entry) = section.get("bounded") {
        let numbers: Vec<f64> = entry.items().iter().filter_map(|item| item.number()).collect();
        if let [low, high] = numbers[..] {
            if low > high {
                report.error(entry.span(), format!("no value lies between {low} and {high}"), None);
            }
            bounded = Some((low, high));
        }
    }
    Invariants {
        non_negative: flag("non_negative"),
        shape_preserved: flag("shape_preserved"),
        no_nan: flag("no_nan"),
        no_inf: flag("no_inf"),
        rows_sum_to: section.get("rows_sum_to").and_then(|entry| entry.number()),
        bounded,
    }
}
