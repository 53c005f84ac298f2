//! What a rule and a finding are, and all rules at work.

use rustc_hash::FxHashMap;

use super::context::Context;
use super::*;
use crate::metrics::{Metrics, Place};
use crate::program::{FunctionId, Program};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; right kernels may well have it.
    Note,
    /// It costs time, or is wrong for some inputs or launches.
    Warning,
    /// It is wrong.
    Error,
}

impl Severity {
    /// In lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, by which it is allowed or required.
    pub name: &'static str,
    /// What it finds, in a line.
    pub summary: &'static str,
    /// How bad its findings are at worst.
    pub severity: Severity,
    /// Why it matters, when it says nothing, and what to do.
    pub explanation: &'static str,
}

/// What a rule found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad this is.
    pub severity: Severity,
    /// What is there and what to do, one sentence or two.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    /// More findings of the rule on the same line of the source, which are not listed.
    pub more: u32,
}

/// A place that has to do with a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// Where.
    pub place: Place,
}

type Check = fn(&Context<'_>, &mut Vec<Finding>);

const CHECKS: [(&Rule, Check); 10] = [
    (&fp64_in_fp32::RULE, fp64_in_fp32::check),
    (&narrow_global_access::RULE, narrow_global_access::check),
    (&index_wraps::RULE, index_wraps::check),
    (&spill_in_loop::RULE, spill_in_loop::check),
    (&missing_barrier::RULE, missing_barrier::check),
    (&divergent_barrier::RULE, divergent_barrier::check),
    (&shuffle_under_divergence::RULE, shuffle_under_divergence::check),
    (&unused_parameter::RULE, unused_parameter::check),
    (&uninitialised_register::RULE, uninitialised_register::check),
    (&float_atomic_order::RULE, float_atomic_order::check),
];

/// Every rule.
pub const RULES: [&Rule; CHECKS.len()] = {
    let mut rules = [CHECKS[0].0; CHECKS.len()];
    let mut index = 0;
    while index < CHECKS.len() {
        rules[index] = CHECKS[index].0;
        index += 1;
    }
    rules
};

/// Everything that the rules find in an entry and the functions it reaches, in the order of the text. Of findings of one
/// rule on one line of the source the first stands for all.
pub fn check(program: &Program, entry: FunctionId, metrics: &Metrics) -> Vec<Finding> {
    let mut findings = Vec::new();
    for &id in &metrics.functions {
        let context = Context::new(program, entry, id, metrics);
        for (_, check) in CHECKS {
            check(&context, &mut findings);
        }
    }
    findings.sort_by_key(|finding: &Finding| (finding.place.line, finding.place.instruction, finding.rule.name));
    let mut kept: Vec<Finding> = Vec::new();
    let mut lines = FxHashMap::default();
    for finding in findings {
        let line = match finding.place.location.map(|id| program.location(id)) {
            Some(location) => (true, location.file, location.line),
            None => (false, 0, finding.place.line),
        };
        // The worst of a line is the one to show.
        let key = (finding.rule.name, line, finding.severity);
        match lines.get(&key) {
            Some(&index) => {
                let first: &mut Finding = &mut kept[index];
                first.more += 1;
            }
            None => {
                lines.insert(key, kept.len());
                kept.push(finding);
            }
        }
    }
    kept
}
