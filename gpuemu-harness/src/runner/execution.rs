//! Running the selected tests: libtest-mimic calls them, we tell what happens.
//!
//! libtest-mimic's own command line takes one filter and leaves with 2 where libtest knows a flag; its output pads
//! names, drops the reason of an ignored test, wraps a failure in `Error: "..."`, announces a test in JSON only when it
//! is over, and knows no JUnit, `--fail-fast` or `--report-time`. So it is handed the tests that were selected, already in
//! order, and the number of threads; its printer writes to the null device.

use super::events::{Event, Finished, Reporter, Summary, TestResult};
use super::progress::{Progress, Standing};
use super::selection::Selected;
use crate::suite::{Outcome, Suite};
use libtest_mimic::{Completion, Failed, Trial};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A test that takes longer than this is told of, as libtest does.
const SLOW: Duration = Duration::from_secs(60);

/// How often the progress is looked at.
const TICK: Duration = Duration::from_millis(200);

/// How tests are run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Tests run at once.
    pub threads: usize,
    /// Start no test after the first failure.
    pub fail_fast: bool,
    /// The seed of the order, where it is random.
    pub shuffle_seed: Option<u64>,
    /// How many tests were not selected.
    pub filtered_out: usize,
    /// Show progress on standard error.
    pub progress: bool,
}

/// Runs the tests in the order given and tells `reporter` all but the end. The error is one of writing.
pub fn run(
    suite: &Arc<dyn Suite>,
    tests: Vec<Selected>,
    plan: Plan,
    reporter: Box<dyn Reporter>,
) -> (Summary, Box<dyn Reporter>, io::Result<()>) {
    let begin = Instant::now();
    let log = Arc::new(Mutex::new(Log {
        reporter,
        progress: plan.progress.then(Progress::new),
        begin,
        count: tests.len(),
        finished: Vec::with_capacity(tests.len()),
        running: Vec::new(),
        stop: false,
        broken: Ok(()),
    }));
    let started = Event::Started { count: tests.len(), shuffle_seed: plan.shuffle_seed };
    lock(&log).tell(&started);
    let trials = tests.into_iter().map(|test| trial(suite, &log, test, plan.fail_fast)).collect();
    let arguments = libtest_mimic::Arguments {
        test_threads: Some(plan.threads),
        logfile: Some(if cfg!(windows) { "NUL" } else { "/dev/null" }.into()),
        ..libtest_mimic::Arguments::default()
    };
    let (over, ticks) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let log = &log;
        scope.spawn(move || {
            while ticks.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                lock(log).tick();
            }
        });
        // Every failure has been told by its own trial.
        let _ = libtest_mimic::run(&arguments, trials);
        drop(over);
    });
    let log = Arc::into_inner(log).expect("every trial is over and dropped its share of the log");
    let mut log = log.into_inner().unwrap_or_else(PoisonError::into_inner);
    log.clear();
    let mut summary = Summary { finished: log.finished, time: begin.elapsed(), ..Summary::default() };
    for test in &summary.finished {
        match test.result {
            _ if test.failure().is_some() => summary.totals.failed += 1,
            TestResult::Run(_) => summary.totals.passed += 1,
            TestResult::Ignored(_) => summary.totals.ignored += 1,
        }
    }
    summary.totals.filtered_out = plan.filtered_out;
    (summary, log.reporter, log.broken)
}

/// What has happened so far.
struct Log {
    reporter: Box<dyn Reporter>,
    progress: Option<Progress>,
    begin: Instant,
    count: usize,
    finished: Vec<Finished>,
    running: Vec<Running>,
    stop: bool,
    broken: io::Result<()>,
}

struct Running {
    name: String,
    begin: Instant,
    told_slow: bool,
}

impl Log {
    /// Tells the reporter. When nobody reads any more, no further test is started.
    fn tell(&mut self, event: &Event<'_>) {
        self.clear();
        if self.broken.is_ok() {
            self.broken = self.reporter.report(event);
            self.stop |= self.broken.is_err();
        }
    }

    fn clear(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
    }

    /// Some time has passed.
    fn tick(&mut self) {
        let mut running = std::mem::take(&mut self.running);
        for test in running.iter_mut().filter(|test| !test.told_slow && test.begin.elapsed() >= SLOW) {
            self.tell(&Event::TestSlow { name: &test.name });
            test.told_slow = true;
        }
        self.running = running;
        if let Some(progress) = &mut self.progress {
            let running: Vec<_> = self.running.iter().map(|test| (&*test.name, test.begin.elapsed())).collect();
            progress.draw(&Standing {
                count: self.count,
                finished: self.finished.len(),
                failed: self.finished.iter().filter(|test| test.failure().is_some()).count(),
                running: &running,
                time: self.begin.elapsed(),
            });
        }
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trial(suite: &Arc<dyn Suite>, log: &Arc<Mutex<Log>>, test: Selected, fail_fast: bool) -> Trial {
    let (suite, log) = (Arc::clone(suite), Arc::clone(log));
    Trial::ignorable_test(test.entry.name.clone(), move || {
        let name = &test.entry.name;
        let begin = Instant::now();
        {
            let mut log = lock(&log);
            if log.stop {
                return Ok(Completion::ignored());
            }
            log.tell(&Event::TestStarted { name });
            log.running.push(Running { name: name.clone(), begin, told_slow: false });
        }
        let result = if test.ignored {
            TestResult::Ignored(test.entry.cannot_run.clone())
        } else {
            TestResult::Run(outcome(&*suite, name, test.entry.cannot_run.as_deref()))
        };
        let finished = Finished { name: name.clone(), result, time: begin.elapsed() };
        let failed = finished.failure().is_some();
        let mut log = lock(&log);
        log.running.retain(|running| running.name != *name);
        log.tell(&Event::TestFinished(&finished));
        log.stop |= failed && fail_fast;
        log.finished.push(finished);
        if failed { Err(Failed::without_message()) } else { Ok(Completion::Completed) }
    })
}

/// Runs one test; one that cannot run on this host fails.
pub fn outcome(suite: &dyn Suite, name: &str, cannot_run: Option<&str>) -> Outcome {
    let failed = |report| Outcome { failure: Some(report), properties: Vec::new() };
    if let Some(reason) = cannot_run {
        return failed(format!("{name} cannot run on this host: {reason}"));
    }
    catch_unwind(AssertUnwindSafe(|| suite.run(name)))
        .unwrap_or_else(|payload| failed(format!("{name} failed: gpuemu itself panicked: {}", text_of(&*payload))))
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("with a value that is no text")
}
