//! What happens in a run, told one event at a time to whatever writes it down.

use crate::suite::{Outcome, Totals};
use std::io;
use std::time::Duration;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The run begins.
    Started {
        /// Tests selected.
        count: usize,
        /// The seed of the order, where it is random.
        shuffle_seed: Option<u64>,
    },
    /// A test begins.
    TestStarted {
        /// Its name.
        name: &'a str,
    },
    /// A test is still running after a minute.
    TestSlow {
        /// Its name.
        name: &'a str,
    },
    /// A test is over.
    TestFinished(&'a Finished),
    /// The run is over.
    Ended(&'a Summary),
}

/// A test that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub result: TestResult,
    /// How long it took.
    pub time: Duration,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TestResult {
    /// It was run.
    Run(Outcome),
    /// It was not run, for this reason if one is known.
    Ignored(Option<String>),
}

impl Finished {
    /// The report of its failure.
    pub fn failure(&self) -> Option<&str> {
        match &self.result {
            TestResult::Run(outcome) => outcome.failure.as_deref(),
            TestResult::Ignored(_) => None,
        }
    }

    /// It was run and did not fail.
    pub fn passed(&self) -> bool {
        matches!(&self.result, TestResult::Run(outcome) if outcome.failure.is_none())
    }

    /// What there is to say about it: the report of its failure, or its properties. Ends with a newline if not empty.
    pub fn output(&self) -> String {
        match &self.result {
            TestResult::Run(Outcome { failure: Some(report), .. }) => format!("{}\n", report.trim_end()),
            TestResult::Run(Outcome { properties, .. }) => {
                properties.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
            }
            TestResult::Ignored(_) => String::new(),
        }
    }
}

/// A run that is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Every test that is over, in the order they ended.
    pub finished: Vec<Finished>,
    /// How many ended how.
    pub totals: Totals,
    /// How long the whole run took.
    pub time: Duration,
}

/// Writes events down.
pub trait Reporter: Send {
    /// Writes one event down.
    fn report(&mut self, event: &Event<'_>) -> io::Result<()>;
}
