//! One test: its cases, and of the first that fails the smallest that does.

use super::check::{self, Checked};
use super::oracle::Oracle;
use super::session::Session;
use crate::case::kind::LayoutKind;
use crate::case::shrink::{self, Budget};
use crate::case::spec::Spec;
use crate::case::strategy::Planner;
use crate::case::{Case, build, rng};
use crate::error::{Error, Result};
use crate::report::failure::{FailingCase, Larger, Report};
use crate::report::regressions::{self, Regression};
use crate::report::results::{self, Line, OutputLine};
use crate::subject::Subject;
use crate::validate::health::Health;
use crate::validate::statistics::Total;
use crate::validate::verdict::{Check, Failure};
use gpuemu_contract::{Op, Reference, Strategy, TestName};
use std::ops::Range;
use std::time::{Duration, Instant};

/// What became of a test.
#[derive(Debug, Default)]
pub struct Finished {
    /// The report of a failure.
    pub failure: Option<Report>,
    /// Cases that were judged.
    pub cases: u32,
    /// Statistics of each output over all cases.
    pub outputs: Vec<(String, Total)>,
    /// One line a case, for machines.
    pub lines: Vec<Line>,
}

/// Runs of the subject that shrinking may take, and the time.
const SHRINK: Budget = Budget { runs: 600, time: Duration::from_secs(20) };

/// The same for a case that takes [`SLOW`] by itself: a few dozen tries bring what many would not.
const SHRINK_SLOW: Budget = Budget { runs: 600, time: Duration::from_secs(8) };
const SLOW: Duration = Duration::from_millis(200);

/// What a failure that only a layout shows is about.
const IN_ROWS: &str =
    "the same values pass when every input is contiguous: a stride or an offset is ignored or mixed up";

/// Other orders of blocks and warps that a case runs in, where it runs in any.
const ORDERS: u32 = 2;
/// What a failure that only another order shows is about.
const REORDERED: &str =
    "another order of blocks and warps shows it, the usual one does not: something depends on who comes first";

/// Lines of diagnosis that a report shows, those of a larger case included.
const DIAGNOSIS: usize = 4;
/// Fewer elements than this can look like anything: a larger failing case tells more.
const TELLING: u64 = 16;
/// Cases after the first failing one that are looked at for a larger one, and the time in which the last of them begins.
const AHEAD: u32 = 6;
const AHEAD_TIME: Duration = Duration::from_secs(2);

/// Runs a test of the contract: the case that `only` names, or all.
pub fn run(session: &Session, test: &TestName, only: Option<&Spec>) -> Finished {
    let mut finished = Finished::default();
    if let Err(error) = run_cases(session, test, only, &mut finished) {
        finished.failure = Some(broken(&test.to_string(), &error));
    }
    finished
}

/// Runs a saved regression.
pub fn rerun(session: &Session, name: &str, saved: &Regression) -> Finished {
    let mut finished = Finished::default();
    let outcome = (|| {
        let op = session.op(&saved.op).map_err(|error| outdated(saved, error))?;
        let trial = Trial::new(session, op, &saved.spec.test)?;
        let case = saved_case(&trial, saved)?;
        let checked = trial.judge(&case, None, true, &mut finished)?;
        if let Some(failure) = checked.failure {
            finished.failure = Some(Report {
                test: name.to_owned(),
                subject: trial.subject.describe(),
                case: Some(FailingCase {
                    output: trial.output(&case, &failure),
                    spec: saved.spec.clone(),
                    shrunk_from: None,
                    larger: None,
                    number: None,
                    replay: session.replay(&saved.spec),
                    saved: None,
                }),
                failure,
                notes: std::iter::once(format!("saved in {}", saved.path.display())).chain(checked.notes).collect(),
            });
        }
        Ok(())
    })();
    if let Err(error) = outcome {
        finished.failure = Some(broken(name, &error));
    }
    finished
}

/// The error of a saved case that the contract has outgrown, with the way out.
fn outdated(saved: &Regression, error: Error) -> Error {
    let told = |message: String| {
        format!("{}: {message}; delete the file if what it tests is gone for good", saved.path.display())
    };
    match error {
        Error::OpNotFound(message) => Error::OpNotFound(told(message)),
        Error::InvalidRequest(message) => Error::InvalidRequest(told(message)),
        Error::Config(message) => Error::Config(told(message)),
        other => other,
    }
}

fn saved_case(trial: &Trial<'_>, saved: &Regression) -> Result<Case> {
    let mut case = build::build(trial.oracle.op(), &saved.spec, trial.oracle.generator())
        .map_err(|error| outdated(saved, error))?;
    for (name, tensor) in &saved.inputs {
        let Some((_, input)) = case.inputs.iter_mut().find(|(input, _)| input == name) else {
            return Err(Error::Config(format!("{}: op `{}` has no input {name}", saved.path.display(), saved.op)));
        };
        if (input.shape(), input.dtype()) != (tensor.shape(), tensor.dtype()) {
            return Err(Error::Config(format!(
                "{}: {name} was saved as {} {:?}, the op declares {} {:?} now: delete the file",
                saved.path.display(),
                tensor.dtype(),
                tensor.shape(),
                input.dtype(),
                input.shape()
            )));
        }
        input.copy_elements_from(tensor);
    }
    Ok(case)
}

/// A test that could not run at all.
fn broken(test: &str, error: &Error) -> Report {
    let check = match error {
        Error::ReferenceFailed(_) => Check::Reference,
        _ => Check::Subject,
    };
    let message = format!("{error} [{}]", error.code());
    Report {
        test: test.to_owned(),
        subject: String::new(),
        failure: check::failure(check, None, message),
        case: None,
        notes: Vec::new(),
    }
}

/// What the cases of one test share.
pub(super) struct Trial<'s> {
    session: &'s Session,
    test: &'s TestName,
    pub(super) oracle: Oracle<'s>,
    pub(super) subject: std::sync::Arc<dyn Subject>,
}

impl<'s> Trial<'s> {
    pub(super) fn new(session: &'s Session, op: &'s Op, test: &'s TestName) -> Result<Trial<'s>> {
        let subject = session.subject(op)?;
        if !subject.supports(test.dtype) {
            return Err(Error::Config(format!(
                "{} has no version for {}: bind one, or leave the dtype out of op `{}` ({}:{})",
                subject.describe(),
                test.dtype,
                op.name,
                session.contract().path.display(),
                op.line
            )));
        }
        let oracle = Oracle::new(session, op, test.dtype)?;
        Ok(Trial { session, test, oracle, subject })
    }

    pub(super) fn plan(&self, planner: &Planner<'_>, index: u32) -> Result<Spec> {
        let op = self.oracle.op();
        let mut trouble = None;
        let mut finite = |spec: &Spec| {
            let answer =
                build::build(op, spec, self.oracle.generator()).and_then(|case| self.oracle.stays_finite(&case));
            answer.unwrap_or_else(|error| {
                trouble = Some(error);
                false
            })
        };
        let spec = planner.plan(index, &mut finite);
        match trouble {
            Some(error) => Err(error),
            None => spec,
        }
    }

    /// Checks a case, where it passes and `reordered` says so in other orders too.
    fn check(&self, case: &Case, health: Option<&mut Health>, reordered: bool) -> Result<Checked> {
        let checked = check::check(&self.oracle, &*self.subject, case, health)?;
        if !reordered || checked.failure.is_some() {
            return Ok(checked);
        }
        for number in 1..=ORDERS {
            let seed = rng::derive(case.spec.seed, &format!("order {number}"));
            let Some(other) = self.subject.reordered(seed) else { break };
            let mut again = check::check(&self.oracle, &*other, case, None)?;
            if let Some(failure) = &mut again.failure {
                failure.diagnosis.insert(0, REORDERED.to_owned());
                return Ok(Checked { reordered: true, ..again });
            }
        }
        Ok(checked)
    }

    fn judge(
        &self,
        case: &Case,
        health: Option<&mut Health>,
        reordered: bool,
        finished: &mut Finished,
    ) -> Result<Checked> {
        let checked = self.check(case, health, reordered)?;
        // What an interrupted subject answered is no verdict.
        self.session.front().go_on()?;
        finished.cases += 1;
        for (name, statistics, histogram) in &checked.outputs {
            let total = match finished.outputs.iter_mut().find(|(output, _)| output == name) {
                Some((_, total)) => total,
                None => {
                    finished.outputs.push((name.clone(), Total::default()));
                    &mut finished.outputs.last_mut().expect("just pushed").1
                }
            };
            total.add(statistics, histogram);
        }
        finished.lines.push(Line {
            spec: case.spec.to_string(),
            verdict: results::verdict_word(checked.failure.as_ref().map(|failure| failure.check)),
            outputs: checked.outputs.iter().map(|(name, statistics, _)| OutputLine::new(name, statistics)).collect(),
            subject_microseconds: checked.subject_time.as_micros() as u64,
            notes: checked.notes.clone(),
        });
        Ok(checked)
    }

    /// Asks the reference the same twice: one that answers differently proves nothing.
    fn repeat_reference(&self, case: &Case, health: &mut Health) -> Result<()> {
        let (first, again) = (self.oracle.answer(case)?, self.oracle.answer(case)?);
        for (declared, (first, again)) in
            self.oracle.op().schema.results().zip(first.expected.iter().zip(&again.expected))
        {
            health.reference_repeated(&declared.name, first, again);
        }
        Ok(())
    }

    fn output(&self, case: &Case, failure: &Failure) -> Option<(String, String, Vec<usize>)> {
        let name = failure.output.as_ref()?;
        let (_, dtype, shape) = case.outputs.iter().find(|(output, ..)| output == name)?;
        Some((name.clone(), dtype.to_string(), shape.clone()?))
    }

    /// Shrinks a failing case, saves it and reports it.
    fn fail(&self, planner: &Planner<'_>, found: Case, failure: Failure, (index, cases): (u32, u32)) -> Result<Report> {
        let op = self.oracle.op();
        let number = Some((index, cases));
        let mut notes = self.oracle.notes();
        // A failure that does not come back is not the input's: it must not be shrunk to nonsense.
        let began = Instant::now();
        let again = self.check(&found, None, true)?;
        let budget = if began.elapsed() < SLOW { SHRINK } else { SHRINK_SLOW };
        let reordered = again.reordered;
        let mut said = again.notes;
        let Some(again) = again.failure else {
            let mut failure = failure;
            failure.diagnosis.insert(
                0,
                "the same case passed when it was run again: the result depends on state kept between calls, on \
                 timing, or on memory that nothing wrote"
                    .to_owned(),
            );
            return Ok(self.report(found, (None, None), failure, number, None, notes));
        };
        let mut runs = 0u32;
        let mut still_fails = |spec: &Spec| {
            runs += 1;
            if self.session.front().go_on().is_err() {
                return false;
            }
            let Ok(case) = build::build(op, spec, self.oracle.generator()) else { return false };
            let checked = self.check(&case, None, reordered);
            checked.is_ok_and(|checked| checked.failure.is_some_and(|other| alike(&other, &again)))
        };
        let small = shrink::shrink(op, found.spec.clone(), budget, &mut still_fails);
        self.session.front().go_on()?;
        let mut larger = None;
        let (spec, mut smallest) = if small == found.spec {
            (None, again)
        } else {
            let case = build::build(op, &small, self.oracle.generator())?;
            let checked = self.check(&case, None, reordered)?;
            match checked.failure {
                Some(failure) => {
                    said = checked.notes;
                    larger = Some((found.spec.clone(), again));
                    (Some(small), failure)
                }
                None => (None, again),
            }
        };
        if elements(&smallest).is_some_and(|elements| elements < TELLING) {
            let known = larger.as_ref().and_then(|(_, failure)| elements(failure)).unwrap_or(0);
            if known < TELLING
                && let Some(other) = self.look_ahead(planner, index..cases.min(index + AHEAD), known, &smallest)?
            {
                larger = Some(other);
            }
        }
        if self.passes_in_rows(spec.as_ref().unwrap_or(&found.spec)) {
            smallest.diagnosis.insert(0, IN_ROWS.to_owned());
        }
        let larger = larger.and_then(|(spec, failure)| shown_larger(spec, failure, &mut smallest));
        smallest.diagnosis.truncate(DIAGNOSIS);
        let shrunk_from = spec.as_ref().map(|_| (found.spec.clone(), runs));
        let case = match &spec {
            Some(spec) => build::build(op, spec, self.oracle.generator())?,
            None => found,
        };
        let saved = self.save(&case, &smallest, &mut notes);
        notes.extend(said);
        let mut report = self.report(case, (shrunk_from, larger), smallest, number, saved, notes);
        report.notes.dedup();
        Ok(report)
    }

    /// Whether a case with other layouts passes when the same values lie in memory row by row.
    fn passes_in_rows(&self, spec: &Spec) -> bool {
        let mut rows = spec.clone();
        rows.inputs.iter_mut().for_each(|input| input.layout = LayoutKind::Row);
        if rows.inputs == spec.inputs {
            return false;
        }
        let Ok(case) = build::build(self.oracle.op(), &rows, self.oracle.generator()) else { return false };
        self.check(&case, None, true).is_ok_and(|checked| checked.failure.is_none())
    }

    /// The first of the next cases that fails like `known` does and has more elements; the largest, if none has many.
    fn look_ahead(
        &self,
        planner: &Planner<'_>,
        cases: Range<u32>,
        least: u64,
        known: &Failure,
    ) -> Result<Option<(Spec, Failure)>> {
        let mut best: Option<(Spec, Failure)> = None;
        let mut most = least;
        let began = Instant::now();
        for index in cases {
            self.session.front().go_on()?;
            if began.elapsed() > AHEAD_TIME {
                break;
            }
            let spec = self.plan(planner, index)?;
            let case = build::build(self.oracle.op(), &spec, self.oracle.generator())?;
            let checked = self.check(&case, None, false)?;
            let Some(failure) = checked.failure.filter(|failure| alike(failure, known)) else { continue };
            let count = elements(&failure).unwrap_or(0);
            if count > most {
                most = count;
                best = Some((spec, failure));
                if count >= TELLING {
                    break;
                }
            }
        }
        Ok(best)
    }

    /// Saves and reports a failing case as it was found.
    fn unshrunk(&self, case: Case, failure: Failure, number: Option<(u32, u32)>) -> Report {
        let mut notes = self.oracle.notes();
        notes.push("not shrunk: this one case took longer than shrinking may".to_owned());
        let saved = self.save(&case, &failure, &mut notes);
        self.report(case, (None, None), failure, number, saved, notes)
    }

    fn save(&self, case: &Case, failure: &Failure, notes: &mut Vec<String>) -> Option<std::path::PathBuf> {
        if !self.session.keeps_regressions() {
            return None;
        }
        let schema = &self.oracle.op().schema;
        let generated: Vec<_> = case
            .inputs
            .iter()
            .filter(|(name, _)| schema.input(name).is_some_and(|input| input.generate.is_some()))
            .cloned()
            .collect();
        let root = self.session.contract().root();
        match regressions::save(root, &case.spec, failure.check.name(), &failure.message, &generated) {
            Ok(path) => Some(path),
            Err(error) => {
                notes.push(format!("not saved: {error}"));
                None
            }
        }
    }

    /// The report of a failure that no single case shows.
    fn report_of_all(&self, failure: Failure) -> Report {
        Report {
            test: self.test.to_string(),
            subject: self.subject.describe(),
            failure,
            case: None,
            notes: self.oracle.notes(),
        }
    }

    fn report(
        &self,
        case: Case,
        (shrunk_from, larger): (Option<(Spec, u32)>, Option<Larger>),
        failure: Failure,
        number: Option<(u32, u32)>,
        saved: Option<std::path::PathBuf>,
        notes: Vec<String>,
    ) -> Report {
        Report {
            test: self.test.to_string(),
            subject: self.subject.describe(),
            case: Some(FailingCase {
                output: self.output(&case, &failure),
                replay: self.session.replay(&case.spec),
                spec: case.spec,
                shrunk_from,
                larger,
                number,
                saved,
            }),
            failure,
            notes,
        }
    }
}

/// Elements of the output a failure is about, where it was compared.
fn elements(failure: &Failure) -> Option<u64> {
    failure.statistics.as_ref().map(|statistics| statistics.count)
}

/// What a report shows of a larger case: what the smallest case, too small to tell much, does not say itself.
fn shown_larger(spec: Spec, failure: Failure, smallest: &mut Failure) -> Option<Larger> {
    let mut diagnosis = failure.diagnosis;
    diagnosis.retain(|line| !smallest.diagnosis.contains(line));
    // The smallest case's own first line stays, whatever it is.
    let few = elements(smallest).is_some_and(|elements| elements < TELLING);
    smallest.diagnosis.truncate(if few && !diagnosis.is_empty() { 1 } else { DIAGNOSIS });
    diagnosis.truncate(DIAGNOSIS - smallest.diagnosis.len());
    let picture = if smallest.picture.is_empty() { failure.picture } else { Vec::new() };
    (!diagnosis.is_empty() || !picture.is_empty()).then_some(Larger { spec, diagnosis, picture })
}

/// Whether two failures are the same fault seen twice: shrinking must not slip from one to another.
fn alike(a: &Failure, b: &Failure) -> bool {
    let kind = |check: Check| match check {
        // The same wrong element may be a number here and NaN there.
        Check::NonFinite => Check::Values,
        check => check,
    };
    kind(a.check) == kind(b.check)
}

fn run_cases(session: &Session, test: &TestName, only: Option<&Spec>, finished: &mut Finished) -> Result<()> {
    let op = session.op(&test.op)?;
    let trial = Trial::new(session, op, test)?;
    if let Some(spec) = only {
        let case = match &spec.file {
            Some(path) => saved_case(&trial, &regressions::load(session.contract().root(), path.as_ref())?)?,
            None => build::build(op, spec, trial.oracle.generator())?,
        };
        let checked = trial.judge(&case, None, true, finished)?;
        if let Some(failure) = checked.failure {
            let notes = trial.oracle.notes().into_iter().chain(checked.notes).collect();
            finished.failure = Some(trial.report(case, (None, None), failure, None, None, notes));
        }
        return Ok(());
    }
    let (cases, until) = session.effort(op);
    let mut health = Health::new();
    let planner = Planner::new(op, test, session.contract().validation.seed)?;
    for index in 0..cases {
        if index >= op.cases && until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        session.front().progress(test, index + 1, cases);
        let spec = trial.plan(&planner, index)?;
        let case = build::build(op, &spec, trial.oracle.generator())?;
        let started = Instant::now();
        let checked = trial.judge(&case, Some(&mut health), session.reorders(index), finished)?;
        let took = started.elapsed();
        if index == 0 && !matches!(op.reference, Reference::Builtin(_)) {
            trial.repeat_reference(&case, &mut health)?;
        }
        if let Some(failure) = checked.failure {
            let number = Some((index + 1, cases));
            finished.failure = Some(match took < SHRINK.time {
                _ if checked.every_case => trial.report_of_all(failure),
                true => trial.fail(&planner, case, failure, (index + 1, cases))?,
                // Most likely a time-out: as many more of them as shrinking takes would look like a hang.
                false => trial.unshrunk(case, failure, number),
            });
            return Ok(());
        }
    }
    // Extreme magnitudes loosen the bounds, and one NaN fills the only answer of a whole reduction: whether an op's tests
    // can fail is judged by the other strategies.
    let telling = !matches!(test.strategy, Strategy::Edge | Strategy::NanInjected);
    if telling && let Some(failure) = health.verdict() {
        finished.failure = Some(trial.report_of_all(failure));
    }
    Ok(())
}
