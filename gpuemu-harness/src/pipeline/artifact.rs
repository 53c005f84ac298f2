//! `artifact::<kernel>::<target>`: one compiled kernel through policy, lint and its snapshot.

use crate::environment::Update;
use crate::error::{Error, Result};
use crate::inspect::artifact::{Artifact, Assembled};
use crate::inspect::committed::{is_written_by_hand, path_of, source_of};
use crate::inspect::finding::Finding;
use crate::inspect::snapshot::{self, Baseline, Budget, FOLDER, Tool};
use crate::inspect::{compile, figures, lint, policy, sarif};
use crate::pipeline::session::Session;
use crate::report::artifact::Inspected;
use crate::report::results;
use gpuemu_contract::Kernel;
use std::path::Path;

/// What became of an artifact test.
#[derive(Debug, Default)]
pub struct Finished {
    /// Why it fails: its whole report.
    pub failure: Option<String>,
    /// Its figures, in the order of the snapshot.
    pub figures: Vec<(String, String)>,
    /// What is told of it below the summary of the run.
    pub notes: Vec<String>,
    /// Checks that were not judged, each with its reason.
    pub unjudged: Vec<String>,
    /// Why `ptxas` was not asked.
    pub no_ptxas: Option<String>,
}

/// Runs the test of a kernel and a target; results go to `results`, and `is_test` says which tests the project has.
///
/// # Errors
///
/// When the artifact cannot be inspected at all: it is missing, stale, no PTX, or has no such entry.
pub fn run(
    session: &Session,
    test: &str,
    kernel: &Kernel,
    target: &str,
    results_folder: &Path,
    is_test: impl Fn(&str) -> bool,
) -> Result<Finished> {
    let (contract, environment) = (session.contract(), session.environment());
    let root = contract.root();
    let replay = session.rerun(test);
    let update = format!("GPUEMU_UPDATE=ptx {replay}");
    if environment.update == Some(Update::Ptx) {
        let source = source_of(kernel)?;
        if !is_written_by_hand(source) {
            let compile = || compile::update(kernel, target, root, session.toolbox()).map(|_| ());
            session.update_once(path_of(source, target), compile)?;
        }
    }
    let artifact = Artifact::open(kernel, target, root, &update)?;
    let assembled = artifact.assemble(session.toolbox())?;
    if let (Err(why), true) = (&assembled, environment.require) {
        return Err(Error::Tool(format!("{why} (GPUEMU_REQUIRE=1)")));
    }
    let measured = figures::measure(&artifact, kernel, assembled.as_ref().ok());
    let (mut findings, unjudged) = policy::inspect(&artifact, kernel, &assembled, &measured);
    findings.extend(lint::findings(&artifact, kernel, target));
    let info = info(&artifact, kernel, assembled.as_ref().ok());
    let baseline = Baseline {
        root,
        file: Path::new(FOLDER).join("artifact").join(format!("{}.{target}.snap", kernel.name)),
        description: format!("What {} costs on {target}.", kernel.name),
        info,
        metrics: measured.metrics,
        tools: tools(&assembled),
    };
    let policies = &contract.policies;
    let budget = Budget { relative: policies.warn_threshold, fails: policies.fail_on_regression };
    let judgement = snapshot::judge(&baseline, budget, &environment.snapshots)?;
    let inspected = Inspected {
        test,
        kernel: &kernel.name,
        target,
        info: &baseline.info,
        metrics: &baseline.metrics,
        findings: &findings,
        judgement: &judgement,
    };
    let mut finished = Finished {
        failure: inspected.failure(root, &replay, environment.github),
        figures: baseline.metrics.iter().map(|metric| (metric.name.clone(), metric.value.to_string())).collect(),
        notes: inspected.notes(root, environment.github),
        unjudged,
        no_ptxas: assembled.as_ref().err().cloned(),
    };
    finished.notes.extend(unused(session, kernel, target, &findings).map(|note| format!("{test}: {note}")));
    results::write(results_folder, test, &[inspected.line()])?;
    log(session, test, &findings, results_folder, is_test)?;
    Ok(finished)
}

/// Facts beside the figures.
fn info(artifact: &Artifact<'_>, kernel: &Kernel, assembled: Option<&Assembled>) -> Vec<(&'static str, String)> {
    let (major, minor) = artifact.program.version;
    let compiler = artifact.committed.record.as_ref().map(|record| record.compiler.clone());
    let mut info = vec![
        ("target", artifact.arch.name.clone()),
        ("entry", artifact.function().name.to_string()),
        ("compiler", compiler.unwrap_or_else(|| "none".to_owned())),
        ("ptx", format!("{major}.{minor}")),
    ];
    if !kernel.compile_options.is_empty() {
        info.push(("options", kernel.compile_options.join(" ")));
    }
    if let Some(assembled) = assembled {
        info.push(("ptxas", assembled.ptxas.clone()));
        if assembled.sass.is_ok() {
            info.push(("sass", assembled.ptxas.clone()));
        }
    }
    info
}

fn tools(assembled: &std::result::Result<Assembled, String>) -> Vec<Tool> {
    let version = |assembled: &Assembled| assembled.ptxas.clone();
    let ptxas = assembled.as_ref().map(version).map_err(Clone::clone);
    let sass = match assembled {
        Ok(assembled) => assembled.sass.as_ref().map(|_| version(assembled)).map_err(Clone::clone),
        Err(why) => Err(why.clone()),
    };
    vec![Tool { name: "ptxas", version: ptxas }, Tool { name: "sass", version: sass }]
}

/// Says which rules a kernel is allowed to break and breaks for none of its targets; once, with its first target.
fn unused(session: &Session, kernel: &Kernel, target: &str, findings: &[Finding]) -> Option<String> {
    if kernel.targets.first().is_none_or(|first| first != target) {
        return None;
    }
    let mut unused: Vec<&str> = kernel.allow.keys().map(String::as_str).collect();
    unused.retain(|rule| !findings.iter().any(|finding| finding.rule == *rule));
    for other in kernel.targets.iter().skip(1) {
        if unused.is_empty() {
            return None;
        }
        // One that cannot be read fails in its own test, and may well break the rule.
        let artifact = Artifact::open(kernel, other, session.contract().root(), "").ok()?;
        let broken = lint::findings(&artifact, kernel, other);
        unused.retain(|rule| !broken.iter().any(|finding| finding.rule == *rule));
    }
    let rules = unused.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ");
    (!unused.is_empty())
        .then(|| format!("nothing breaks the allowed {rules}: [kernels.allow] need not name it any more"))
}

fn log(
    session: &Session,
    test: &str,
    findings: &[Finding],
    results_folder: &Path,
    is_test: impl Fn(&str) -> bool,
) -> Result<()> {
    let repository = crate::inspect::finding::repository(session.contract().root());
    // Packages that share a target folder are told apart as their results are.
    let project = results_folder.file_name().unwrap_or_default().to_string_lossy();
    let found = sarif::Found { project: &project, test, repository: &repository, findings };
    sarif::record(&results::lint_log(results_folder), &found, is_test)
}
