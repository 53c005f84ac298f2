//! Which tests a run is of: filters, skips, ignored tests, and what nextest and `GPUEMU_CASE` demand of them.

use super::arguments::{Arguments, RunIgnored};
use crate::environment::Environment;
use crate::suite::{Suite, TestEntry};
use std::collections::BTreeSet;

/// The selected tests, in the order of the list.
#[derive(Debug)]
pub struct Selection {
    /// What was selected.
    pub tests: Vec<Selected>,
    /// How many tests were not; `None` where counting them would mean listing them.
    pub filtered_out: Option<usize>,
}

/// A selected test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The test.
    pub entry: TestEntry,
    /// It is reported as ignored instead of being run.
    pub ignored: bool,
}

/// Selects tests. With `--exact` and names, only these are looked up, and nothing is listed.
pub fn select(suite: &dyn Suite, arguments: &Arguments, environment: &Environment) -> Result<Selection, String> {
    let by_name = arguments.exact && !arguments.filters.is_empty();
    let (entries, total) = if by_name {
        let names: BTreeSet<&String> = arguments.filters.iter().collect();
        (names.into_iter().filter_map(|name| suite.resolve(name)).collect(), None)
    } else {
        let entries = suite.tests();
        check(&entries)?;
        let total = entries.len();
        (entries, Some(total))
    };
    let tests: Vec<Selected> = entries
        .into_iter()
        .filter(|entry| selects(arguments, &entry.name))
        .map(|entry| {
            let ignored = entry.cannot_run.is_some() && !environment.require;
            Selected { entry, ignored }
        })
        .filter(|test| test.ignored || arguments.ignored != RunIgnored::Only)
        .collect();
    Ok(Selection { filtered_out: total.map(|total| total - tests.len()), tests })
}

/// A list that breaks its promises would make tools run the wrong test.
fn check(entries: &[TestEntry]) -> Result<(), String> {
    if entries.is_empty() {
        return Err("there is no test: no op of the contract has a dtype and a strategy that this run may use".into());
    }
    for pair in entries.windows(2) {
        if pair[0].name == pair[1].name {
            return Err(format!("two tests have the name {}", pair[0].name));
        }
    }
    debug_assert!(entries.is_sorted_by(|a, b| a.name < b.name), "the list of tests is not sorted");
    Ok(())
}

fn selects(arguments: &Arguments, name: &str) -> bool {
    let matches = |filter: &String| if arguments.exact { name == filter } else { name.contains(filter.as_str()) };
    (arguments.filters.is_empty() || arguments.filters.iter().any(matches)) && !arguments.skip.iter().any(matches)
}

/// Marks what is really run, or says why the selection is not fit to be run.
pub fn prepare(
    selection: &mut Selection,
    suite: &dyn Suite,
    arguments: &Arguments,
    environment: &Environment,
) -> Result<(), String> {
    if environment.nextest && selection.tests.len() != 1 {
        return Err(format!(
            "nextest runs one test a process, and {} tests match {:?}",
            selection.tests.len(),
            arguments.filters
        ));
    }
    for test in &mut selection.tests {
        // Benchmarks are asked for, and a test is none.
        test.ignored = arguments.bench || (test.ignored && arguments.ignored == RunIgnored::No);
    }
    match &environment.case {
        // Under nextest this process's selection is one test of a run; the list has been checked instead.
        Some(spec) if !environment.nextest => check_case(selection, suite, spec),
        _ => Ok(()),
    }
}

/// A case that nothing runs must not look like one that passed.
fn check_case(selection: &Selection, suite: &dyn Suite, spec: &str) -> Result<(), String> {
    let name = test_of_case(suite, spec)?;
    match selection.tests.iter().find(|test| test.entry.name == name) {
        None => Err(lacking(suite, spec, &name)),
        Some(test) if test.ignored => {
            let reason = test.entry.cannot_run.as_deref().unwrap_or("benchmarks are asked for");
            Err(format!("GPUEMU_CASE names {name}, which is ignored here: {reason}"))
        }
        Some(_) => Ok(()),
    }
}

fn test_of_case(suite: &dyn Suite, spec: &str) -> Result<String, String> {
    suite.test_of_case(spec).map_err(|error| format!("GPUEMU_CASE: {error}"))
}

/// What must hold of `GPUEMU_CASE` before nextest is told the tests: nextest's processes see only their own test.
pub fn check_case_of_list(suite: &dyn Suite, environment: &Environment) -> Result<(), String> {
    match &environment.case {
        Some(spec) if environment.nextest => {
            let name = test_of_case(suite, spec)?;
            if suite.resolve(&name).is_some() { Ok(()) } else { Err(lacking(suite, spec, &name)) }
        }
        _ => Ok(()),
    }
}

fn lacking(suite: &dyn Suite, spec: &str, name: &str) -> String {
    if suite.resolve(name).is_some() {
        format!(
            "GPUEMU_CASE names {name}, which this run does not select; run it with\n    \
             GPUEMU_CASE={} cargo test -- --exact {name}",
            quoted(spec)
        )
    } else {
        format!(
            "GPUEMU_CASE names {name}, which this test binary does not have; `cargo test -- --list` shows what there is, \
             and -p or --test select another binary"
        )
    }
}

/// `text` as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
