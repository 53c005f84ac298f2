//! What a run tells below its tests.

use std::collections::BTreeMap;
use std::path::Path;

/// What the tests of a run leave behind for its last lines.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// The passing test that used most of what it was allowed, and that share.
    worst: Option<(String, f64)>,
    /// What baselines say of tests that passed.
    pub notes: Vec<String>,
    /// What is told of kernels that passed, and for which targets.
    pub told: BTreeMap<(String, String), Vec<String>>,
    /// Annotations of what is told.
    pub annotations: Vec<String>,
    /// Why registers and spills of artifacts were not judged, and of how many.
    pub unjudged: BTreeMap<String, usize>,
    /// Why results of passing tests could not be written; failing ones say so in their reports.
    pub unwritten: Vec<String>,
}

impl Summary {
    /// Notes a test that passed with an error of this share of what was allowed.
    pub fn passed(&mut self, name: &str, share: f64) {
        // Of equals the first by name, in whatever order they ran.
        let worse = self
            .worst
            .as_ref()
            .is_none_or(|(other, most)| share.total_cmp(most).then_with(|| other.as_str().cmp(name)).is_gt());
        if worse {
            self.worst = Some((name.to_owned(), share));
        }
    }

    /// The last lines of a run; figures of every case are in the folder `results`.
    pub fn lines(&self, results: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((name, share)) = &self.worst {
            lines.push(format!(
                "largest error of a passing test: {:.0}% of what is allowed, in {name}; figures of every case in {}",
                share * 100.0,
                results.display()
            ));
        }
        let mut notes = self.notes.clone();
        notes.sort();
        lines.append(&mut notes);
        for ((kernel, note), targets) in &self.told {
            let mut targets = targets.clone();
            targets.sort();
            lines.push(format!("artifact::{kernel}::{}: {note}", targets.join(", ")));
        }
        for (why, count) in &self.unjudged {
            let artifacts = if *count == 1 { "artifact" } else { "artifacts" };
            lines.push(format!(
                "registers, spills and accepted figures of ptxas were not judged for {count} {artifacts}: {why}"
            ));
        }
        lines.extend(self.annotations.iter().cloned());
        if let Some(first) = self.unwritten.first() {
            let more = match self.unwritten.len() {
                1 => String::new(),
                count => format!(" (and so for {} more tests)", count - 1),
            };
            lines.push(format!("warning: {first}{more}"));
        }
        lines
    }
}
