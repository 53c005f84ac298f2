//! `[kernels.artifact_checks]`: what the compiled form of a kernel may cost.
//!
//! Registers and spills are the assembler's decision: only what `ptxas` reports is judged. Virtual registers of PTX say
//! nothing about them (a compiler names every value anew), so without `ptxas` a limit is told to be unjudged.

use crate::inspect::artifact::{self, Artifact};
use crate::inspect::finding::{Finding, Level};
use gpuemu_contract::{ArtifactChecks, Kernel};
use gpuemu_ptx::metrics::Metrics;
use gpuemu_ptx::program::Instruction;

/// The rule of artifacts that cannot be inspected at all.
pub const UNREADABLE: &str = "artifact";

/// The rules of this file, beside those of the lint, and what each finds.
pub const RULES: [(&str, &str); 6] = [
    (UNREADABLE, "the artifact is missing, older than its source, no PTX, or has no such entry"),
    ("max-registers", "more registers than artifact_checks allow"),
    ("max-spills", "more spilled words than artifact_checks allow"),
    ("max-local-memory", "more local memory than artifact_checks allow"),
    ("required-pattern", "no instruction has a name that artifact_checks require"),
    ("forbidden-pattern", "an instruction has a name that artifact_checks forbid"),
];

/// What `ptxas` reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assembled {
    /// Registers a thread has.
    pub registers: u32,
    /// Bytes of spilled registers that are stored, each instruction counted once.
    pub spill_stores: u64,
    /// Bytes of spilled registers that are loaded, each instruction counted once.
    pub spill_loads: u64,
    /// Bytes of a thread's stack frame.
    pub stack: u64,
}

/// What is judged.
#[derive(Clone, Debug)]
pub struct Cost<'a> {
    /// What `ptxas` reports, or why there is no report.
    pub assembled: Result<Assembled, &'a str>,
    /// 32-bit registers live at the widest point of the PTX, an estimate.
    pub live_registers: u32,
    /// Bytes of local memory that the PTX declares.
    pub declared_local: u64,
    /// Names of the instructions with their modifiers, in order.
    pub instructions: &'a [&'a str],
}

/// A check that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its rule, one of [`RULES`].
    pub rule: &'static str,
    /// What is the matter.
    pub message: String,
    /// Index of the instruction it is about.
    pub instruction: Option<usize>,
}

/// What became of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Checks that do not hold.
    pub violations: Vec<Violation>,
    /// Checks that could not be judged here, each with its reason.
    pub unjudged: Vec<String>,
}

/// Judges the checks of a kernel over an artifact.
pub fn inspect(
    artifact: &Artifact<'_>,
    kernel: &Kernel,
    assembled: &Result<artifact::Assembled, String>,
    metrics: &Metrics,
) -> (Vec<Finding>, Vec<String>) {
    let (instructions, names): (Vec<&Instruction>, Vec<&str>) =
        artifact.instructions(metrics).map(|(_, instruction, form)| (instruction, &*form.text)).unzip();
    let cost = Cost {
        assembled: assembled.as_ref().map_err(String::as_str).map(|assembled| Assembled {
            registers: assembled.report.registers,
            spill_stores: assembled.report.spill_stores.into(),
            spill_loads: assembled.report.spill_loads.into(),
            stack: assembled.report.stack_frame.into(),
        }),
        live_registers: metrics.pressure.registers,
        declared_local: metrics.local_bytes,
        instructions: &names,
    };
    let policy = judge(&kernel.artifact_checks, &cost);
    let function = artifact.function();
    let findings = policy.violations.into_iter().map(|violation| {
        let instruction = violation.instruction.map(|at| instructions[at]);
        // What is about the whole kernel stands at its beginning.
        let first = function.instructions.first().and_then(|first| first.location);
        let (offset, location) = instruction.map_or((function.offset, first), |i| (i.offset, i.location));
        Finding {
            rule: violation.rule,
            level: Level::Error,
            message: violation.message,
            kernel: kernel.name.clone(),
            target: artifact.arch.name.clone(),
            source: artifact.place_in_source(location),
            ptx: Some(artifact.place_in_ptx(offset)),
            related: Vec::new(),
            allowed: None,
        }
    });
    (findings.collect(), policy.unjudged)
}

/// Judges the checks.
pub fn judge(checks: &ArtifactChecks, cost: &Cost<'_>) -> Policy {
    let mut policy = Policy::default();
    let mut violation = |rule, message, instruction| {
        policy.violations.push(Violation { rule, message, instruction });
    };
    let local = match cost.assembled {
        Ok(Assembled { registers, spill_stores, spill_loads, stack }) => {
            if registers > checks.max_registers {
                violation(
                    "max-registers",
                    format!("{registers} registers a thread, {} allowed", checks.max_registers),
                    None,
                );
            }
            let spilled = (spill_stores + spill_loads).div_ceil(4);
            if spilled > u64::from(checks.max_spills) {
                let message = format!(
                    "{spilled} spilled words, {} allowed ({spill_stores} bytes stored, {spill_loads} loaded)",
                    checks.max_spills
                );
                violation("max-spills", message, None);
            }
            (stack, "bytes of stack frame")
        }
        Err(_) => (cost.declared_local, "bytes of local memory declared in the PTX"),
    };
    if local.0 > checks.max_local_memory {
        violation("max-local-memory", format!("{} {}, {} allowed", local.0, local.1, checks.max_local_memory), None);
    }
    for pattern in &checks.required_patterns {
        if !cost.instructions.iter().any(|name| name.contains(pattern.as_str())) {
            violation("required-pattern", format!("no instruction has `{pattern}` in its name"), None);
        }
    }
    for pattern in &checks.forbidden_patterns {
        let mut having =
            cost.instructions.iter().enumerate().filter(|(_, name)| name.contains(pattern.as_str())).peekable();
        if let Some(&(first, name)) = having.peek() {
            let message = match having.count() {
                1 => format!("`{name}` has `{pattern}` in its name"),
                count => format!("`{name}` and {} more have `{pattern}` in their names", count - 1),
            };
            violation("forbidden-pattern", message, Some(first));
        }
    }
    if let Err(why) = cost.assembled {
        let estimate = cost.live_registers;
        policy.unjudged.push(format!(
            "max_registers {} and max_spills {} are not judged: {why} (the PTX has {estimate} words of registers live at \
             its widest point, an estimate)",
            checks.max_registers, checks.max_spills
        ));
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["ld.global.v4.f32", "ld.local.f32", "mma.sync.aligned.m16n8k8", "ld.local.u32", "ret"];

    fn rules(checks: &ArtifactChecks, cost: &Cost<'_>) -> Vec<(&'static str, String, Option<usize>)> {
        let policy = judge(checks, cost);
        policy.violations.into_iter().map(|v| (v.rule, v.message, v.instruction)).collect()
    }

    fn cost(registers: u32, spill_stores: u64, spill_loads: u64, stack: u64) -> Cost<'static> {
        Cost {
            assembled: Ok(Assembled { registers, spill_stores, spill_loads, stack }),
            live_registers: 500,
            declared_local: 1000,
            instructions: &NAMES,
        }
    }

    #[test]
    fn what_ptxas_reports_is_judged_and_the_ptx_is_not() {
        let checks = ArtifactChecks::default();
        assert_eq!(rules(&checks, &cost(64, 0, 0, 0)), []);
        assert_eq!(
            rules(&checks, &cost(65, 0, 0, 0)),
            [("max-registers", "65 registers a thread, 64 allowed".to_owned(), None)]
        );
        assert_eq!(
            rules(&checks, &cost(64, 8, 12, 8)),
            [
                ("max-spills", "5 spilled words, 0 allowed (8 bytes stored, 12 loaded)".to_owned(), None),
                ("max-local-memory", "8 bytes of stack frame, 0 allowed".to_owned(), None),
            ]
        );
        let lenient = ArtifactChecks { max_registers: 255, max_spills: 5, max_local_memory: 8, ..checks };
        assert_eq!(rules(&lenient, &cost(255, 8, 12, 8)), []);
        assert_eq!(judge(&lenient, &cost(255, 8, 12, 8)).unjudged, Vec::<String>::new());
    }

    #[test]
    fn without_ptxas_registers_and_spills_are_told_to_be_unjudged() {
        let none = Cost { assembled: Err("there is no ptxas here"), declared_local: 0, ..cost(0, 0, 0, 0) };
        let policy = judge(&ArtifactChecks::default(), &none);
        assert_eq!(policy.violations, []);
        assert_eq!(
            policy.unjudged,
            [
                "max_registers 64 and max_spills 0 are not judged: there is no ptxas here (the PTX has 500 words of registers \
              live at its widest point, an estimate)"
            ]
        );
        let local = Cost { declared_local: 40, ..none };
        assert_eq!(
            rules(&ArtifactChecks::default(), &local),
            [("max-local-memory", "40 bytes of local memory declared in the PTX, 0 allowed".to_owned(), None)]
        );
    }

    #[test]
    fn patterns_are_substrings_of_instruction_names() {
        let checks = |required: &[&str], forbidden: &[&str]| ArtifactChecks {
            required_patterns: required.iter().map(|p| (*p).to_owned()).collect(),
            forbidden_patterns: forbidden.iter().map(|p| (*p).to_owned()).collect(),
            ..ArtifactChecks::default()
        };
        let cost = cost(1, 0, 0, 0);
        assert_eq!(rules(&checks(&["mma", ".v4.f32"], &["st.local", "f64"]), &cost), []);
        assert_eq!(
            rules(&checks(&["wgmma"], &["ld.local", "global"]), &cost),
            [
                ("required-pattern", "no instruction has `wgmma` in its name".to_owned(), None),
                ("forbidden-pattern", "`ld.local.f32` and 1 more have `ld.local` in their names".to_owned(), Some(1)),
                ("forbidden-pattern", "`ld.global.v4.f32` has `global` in its name".to_owned(), Some(0)),
            ]
        );
    }
}
