//! `artifact::<kernel>::<target>`: one compiled kernel through policy, lint and its snapshot.

use crate::environment::Update;
use crate::error::{Error, Result};
use crate::inspect::artifact::{Artifact, Assembled};
use crate::inspect::baseline::{Baseline, FOLDER, Tool};
use crate::inspect::committed::{is_written_by_hand, path_of, source_of};
use crate::inspect::finding::{Finding, Level, Place, repository};
use crate::inspect::snapshot::{self, Budget, Judgement};
use crate::inspect::{compile, figures, lint, policy, sarif};
use crate::pipeline::measured;
use crate::pipeline::session::Session;
use crate::report::artifact::Inspected;
use crate::report::results;
use gpuemu_contract::{Kernel, LintPolicy};
use std::path::Path;

/// What became of an artifact test.
#[derive(Debug, Default)]
pub struct Finished {
    /// Why it fails: its whole report.
    pub failure: Option<String>,
    /// Its figures, in the order of the snapshot.
    pub figures: Vec<(String, String)>,
    /// What is told of it below the summary of the run, without its name: several targets may share it.
    pub told: Vec<String>,
    /// Annotations of warnings, where GitHub Actions asks for them.
    pub annotations: Vec<String>,
    /// Checks that were not judged, each with its reason.
    pub unjudged: Vec<String>,
    /// Why `ptxas` was not asked.
    pub no_ptxas: Option<String>,
}

/// Runs the test of a kernel and a target; results go to `folder`, and `is_test` says which tests the project has.
pub fn run(
    session: &Session,
    test: &str,
    kernel: &Kernel,
    target: &str,
    folder: &Path,
    is_test: impl Fn(&str) -> bool,
) -> Finished {
    let (mut finished, findings) = match inspect(session, test, kernel, target, folder) {
        Ok(finished) => finished,
        Err(error) => unreadable(session, test, kernel, target, folder, &error),
    };
    if let Err(error) = log(session, test, &findings, folder, is_test) {
        finished.told.push(format!("findings not logged: {error}"));
    }
    finished
}

/// What is told of an artifact that is missing, stale, no PTX, or has no such entry.
fn unreadable(
    session: &Session,
    test: &str,
    kernel: &Kernel,
    target: &str,
    folder: &Path,
    error: &Error,
) -> (Finished, Vec<Finding>) {
    let text = error.to_string();
    let finding = Finding {
        rule: policy::UNREADABLE,
        level: Level::Error,
        message: text.lines().next().unwrap_or_default().to_owned(),
        kernel: kernel.name.clone(),
        target: target.to_owned(),
        source: None,
        ptx: kernel.source.as_deref().map(|source| Place { file: path_of(source, target), line: 1, column: 0 }),
        related: Vec::new(),
        allowed: None,
    };
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let mut failure = format!("{test} failed: {first} [{}]\n", error.code());
    if !rest.is_empty() {
        failure.push_str(rest);
        failure.push('\n');
    }
    if session.environment().github {
        failure.push_str(&finding.annotation(&repository(session.contract().root())));
        failure.push('\n');
    }
    let findings = vec![finding];
    let line = Inspected {
        test,
        kernel: &kernel.name,
        target,
        info: &[],
        metrics: &[],
        findings: &findings,
        judgement: &Judgement::default(),
        fails_from: Some(Level::Error),
    };
    let written = results::write(folder, test, &[line.line()]);
    let told = written.err().map(|error| format!("results not written: {error}"));
    (Finished { failure: Some(failure), told: told.into_iter().collect(), ..Finished::default() }, findings)
}

fn inspect(
    session: &Session,
    test: &str,
    kernel: &Kernel,
    target: &str,
    folder: &Path,
) -> Result<(Finished, Vec<Finding>)> {
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
    let metrics = gpuemu_ptx::metrics::measure(&artifact.program, artifact.entry);
    let launched = match &kernel.measured {
        Some(measured) => Some(measured::counters(session, kernel, measured, target, &update)?),
        None => None,
    };
    let (mut findings, mut unjudged) = policy::inspect(&artifact, kernel, &assembled, &metrics);
    findings.extend(lint::findings(&artifact, kernel, &metrics));
    if let Some(Err(why)) = &launched {
        unjudged.push(format!("its launch is not measured: {why}"));
    }
    let counters = launched.as_ref().and_then(|launched| launched.as_ref().ok());
    let info = info(&artifact, kernel, assembled.as_ref().ok());
    let baseline = Baseline {
        root,
        file: Path::new(FOLDER).join("artifact").join(format!("{}.{target}.snap", kernel.name)),
        description: format!("What {} costs on {target}.", kernel.name),
        info,
        metrics: figures::measure(&artifact, kernel, &metrics, assembled.as_ref().ok(), counters),
        tools: tools(&assembled),
        parts: figures::PARTS,
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
        fails_from: match policies.lint {
            LintPolicy::Error => Some(Level::Error),
            LintPolicy::Warning => Some(Level::Warning),
            LintPolicy::Never => None,
        },
    };
    let mut finished = Finished {
        failure: inspected.failure(root, &replay, environment.github),
        figures: baseline.metrics.iter().map(|metric| (metric.name.clone(), metric.value.to_string())).collect(),
        told: inspected.told(root),
        annotations: if environment.github { inspected.annotations(root) } else { Vec::new() },
        unjudged,
        no_ptxas: assembled.as_ref().err().cloned(),
    };
    // Without ptxas there is one line for all artifacts; with it, what sets its figures apart is a fact of this one.
    match &assembled {
        Ok(_) => finished.told.extend(judgement.unjudged.iter().cloned()),
        Err(_) => finished.unjudged.extend(judgement.unjudged.iter().cloned()),
    }
    if metrics.recursive {
        let cycle = "its functions call each other in a cycle: the stack has no bound that is known, and max_local_memory \
                     was held against one turn alone";
        finished.told.push(cycle.to_owned());
    }
    finished.told.extend(unused(session, kernel, target, &findings));
    if let Err(error) = results::write(folder, test, &[inspected.line()]) {
        finished.told.push(format!("results not written: {error}"));
    }
    Ok((finished, findings))
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
    let absent = || "there is no ptxas here".to_owned();
    let ptxas = assembled.as_ref().map(version).map_err(|_| absent());
    let sass = match assembled {
        Ok(assembled) => assembled.sass.as_ref().map(|_| version(assembled)).map_err(Clone::clone),
        Err(_) => Err(absent()),
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
        let metrics = gpuemu_ptx::metrics::measure(&artifact.program, artifact.entry);
        let broken = lint::findings(&artifact, kernel, &metrics);
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
    folder: &Path,
    is_test: impl Fn(&str) -> bool,
) -> Result<()> {
    let repository = repository(session.contract().root());
    // Packages that share a target folder are told apart as their results are.
    let project = folder.file_name().unwrap_or_default().to_string_lossy();
    let found = sarif::Found { project: &project, test, repository: &repository, findings };
    sarif::record(&results::lint_log(folder), &found, is_test)
}
