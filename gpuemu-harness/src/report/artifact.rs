//! What is told of an inspected artifact: the text of a failure, one JSON line, annotations.

use crate::inspect::baseline::Metric;
use crate::inspect::finding::{Finding, Level, repository};
use crate::inspect::policy::RULES;
use crate::inspect::snapshot::Judgement;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// One artifact, inspected and judged.
#[derive(Debug)]
pub struct Inspected<'a> {
    /// The test's name.
    pub test: &'a str,
    /// The kernel's name in the contract.
    pub kernel: &'a str,
    /// What it was compiled for.
    pub target: &'a str,
    /// Facts that stand in the snapshot beside the figures: entry, compiler, ptxas.
    pub info: &'a [(&'static str, String)],
    /// Its figures.
    pub metrics: &'a [Metric],
    /// What was found, allowed findings among it.
    pub findings: &'a [Finding],
    /// How the figures compare with the accepted ones.
    pub judgement: &'a Judgement,
    /// From which level on findings of the lint fail the test; `None`: never.
    pub fails_from: Option<Level>,
}

/// One line of a results file.
#[derive(Debug, Serialize)]
pub struct Line<'a> {
    verdict: &'static str,
    kernel: &'a str,
    target: &'a str,
    info: BTreeMap<&'a str, &'a str>,
    metrics: BTreeMap<&'a str, f64>,
    findings: &'a [Finding],
}

impl<'a> Inspected<'a> {
    /// Findings for which the test fails.
    pub fn errors(&self) -> impl Iterator<Item = &'a Finding> {
        self.findings.iter().filter(|finding| self.fails(finding))
    }

    /// Findings that are told and no reason to fail.
    pub fn warnings(&self) -> impl Iterator<Item = &'a Finding> {
        let told = |finding: &&Finding| finding.level >= Level::Warning && finding.allowed.is_none();
        self.findings.iter().filter(told).filter(|finding| !self.fails(finding))
    }

    fn fails(&self, finding: &Finding) -> bool {
        let is_check = RULES.iter().any(|(rule, _)| *rule == finding.rule);
        finding.allowed.is_none() && (is_check || self.fails_from.is_some_and(|level| finding.level >= level))
    }

    /// Its line in the results.
    pub fn line(&self) -> Line<'a> {
        let failed = self.errors().next().is_some() || self.judgement.failure.is_some();
        // Figures that JSON cannot say are none here.
        let finite = |metric: &&Metric| metric.value.is_finite();
        Line {
            verdict: if failed { "fail" } else { "pass" },
            kernel: self.kernel,
            target: self.target,
            info: self.info.iter().map(|(name, value)| (*name, value.as_str())).collect(),
            metrics: self.metrics.iter().filter(finite).map(|metric| (metric.name.as_str(), metric.value)).collect(),
            findings: self.findings,
        }
    }

    /// Why the test fails; its first line says what is wrong. `None`: it passes. Paths are shown from `root`, `replay` is
    /// the command that runs the test alone.
    pub fn failure(&self, root: &Path, replay: &str, annotate: bool) -> Option<String> {
        let mut rules: Vec<&str> = self.errors().map(|finding| finding.rule).collect();
        rules.dedup();
        let compared = self.judgement.failure.as_deref().map(|text| text.split_once('\n').unwrap_or((text, "")));
        let said = match (rules.len(), compared) {
            (0, None) => return None,
            (0, Some((said, _))) => said.to_owned(),
            (_, None) => rules.join(", "),
            (_, Some((said, _))) => format!("{}; {said}", rules.join(", ")),
        };
        let mut text = format!("{} failed: {said}\n", self.test);
        for finding in self.errors() {
            text.push_str(&finding.text(root));
        }
        if let Some((_, rest)) = compared {
            text.push_str(rest);
        }
        let _ = writeln!(text, "  replay   {replay}");
        if annotate {
            let repository = repository(root);
            let figures = compared.map(|(said, _)| Finding {
                rule: "accepted-figures",
                level: Level::Error,
                message: said.to_owned(),
                kernel: self.kernel.to_owned(),
                target: self.target.to_owned(),
                source: None,
                ptx: None,
                related: Vec::new(),
                allowed: None,
            });
            for finding in self.errors().chain(&figures) {
                let _ = writeln!(text, "{}", finding.annotation(&repository));
            }
        }
        Some(text)
    }

    /// What is told below the summary of a run, one line each, that several targets may share.
    pub fn told(&self, root: &Path) -> Vec<String> {
        self.warnings().map(|finding| finding.line(root)).chain(self.judgement.notes.iter().cloned()).collect()
    }

    /// Annotations of what is told.
    pub fn annotations(&self, root: &Path) -> Vec<String> {
        let repository = repository(root);
        self.warnings().map(|finding| finding.annotation(&repository)).collect()
    }
}
