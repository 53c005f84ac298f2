//! The rules of `gpuemu_ptx::lint` over one artifact, as findings at the user's lines.

use crate::inspect::artifact::Artifact;
use crate::inspect::finding::{Finding, Level, Related};
use gpuemu_contract::Kernel;
use gpuemu_ptx::lint::{self, Severity};
use gpuemu_ptx::metrics::Metrics;

/// What the rules find, allowed findings among it.
pub fn findings(artifact: &Artifact<'_>, kernel: &Kernel, metrics: &Metrics) -> Vec<Finding> {
    let found = lint::check(&artifact.program, artifact.entry, metrics).into_iter();
    let findings = found.map(|found| {
        let function = artifact.program.function(found.place.function);
        let offset = function.instructions[found.place.instruction as usize].offset;
        let more = match found.more {
            0 => String::new(),
            more => format!(" ({more} more of these on this line)"),
        };
        Finding {
            rule: found.rule.name,
            level: match found.severity {
                Severity::Note => Level::Note,
                Severity::Warning => Level::Warning,
                Severity::Error => Level::Error,
            },
            message: format!("{}{more}", found.message),
            kernel: kernel.name.clone(),
            target: artifact.arch.name.clone(),
            source: artifact.place_in_source(found.place.location),
            ptx: Some(artifact.place_in_ptx(offset)),
            related: found
                .related
                .into_iter()
                .map(|related| Related { message: related.message, place: artifact.place(related.place) })
                .collect(),
            allowed: kernel.allow.get(found.rule.name).cloned(),
        }
    });
    findings.collect()
}

/// What a rule finds, in a line, and why that matters.
pub fn about(rule: &str) -> Option<(&'static str, &'static str)> {
    let rule = lint::RULES.iter().find(|known| known.name == rule)?;
    Some((rule.summary, rule.explanation))
}
