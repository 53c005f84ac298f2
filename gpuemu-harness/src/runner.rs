//! The runner: the main of a test binary, and what cargo, nextest, editors and continuous integration demand of it.

pub mod arguments;
mod console;
pub mod events;
mod execution;
mod json;
mod junit;
mod listing;
pub mod selection;

use crate::environment::Environment;
use crate::suite::Suite;
use arguments::{Arguments, Color, Format, RunIgnored};
use console::{Console, Style};
use events::{Event, Reporter};
use execution::Plan;
use selection::Selected;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

/// What a test binary leaves with when a test failed or the run could not be made, as libtest does.
const FAILED: u8 = 101;

/// Runs a suite as a command line asks. `arguments` begins with the name of the program.
///
/// Leaves with 0 when no test failed, else with 101. What is wrong with the run itself goes to standard error.
pub fn main_with(
    suite: impl Suite,
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> ExitCode {
    match run(Arc::new(suite), arguments, environment) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(FAILED)
        }
    }
}

/// Runs one test of a suite inside of a `#[test]` function: unwinds when it fails, with the report on standard error,
/// where libtest captures it.
///
/// # Panics
///
/// When the test fails, cannot run on this host or does not exist.
pub fn run_named(suite: &dyn Suite, name: &str) {
    let failure = match suite.resolve(name) {
        Some(entry) => execution::outcome(suite, name, entry.cannot_run.as_deref()).failure,
        None => Some(format!("{name} is no test of the contract any more: touch the file that holds `tests!()`")),
    };
    if let Some(report) = failure {
        eprintln!("{}", report.trim_end());
        // The report says all there is to say: no panic message, no stack trace.
        std::panic::resume_unwind(Box::new(report));
    }
}

/// Whether all went well, or why there was no run.
fn run(
    suite: Arc<dyn Suite>,
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<bool, String> {
    let mut arguments = arguments.into_iter();
    let program = arguments.next().unwrap_or_default();
    let arguments = arguments::parse(arguments, environment)?;
    let mut stdout = io::stdout();
    let unwritable = |error: io::Error| format!("cannot write to standard output: {error}");
    if arguments.help {
        writeln!(stdout, "{}", arguments::usage(&program.to_string_lossy())).map_err(unwritable)?;
        return Ok(true);
    }
    let mut selection = selection::select(&*suite, &arguments, environment)?;
    if arguments.list {
        selection::check_case_of_list(&*suite, environment)?;
        let mut out = BufWriter::new(stdout.lock());
        let runs_ignored = arguments.ignored != RunIgnored::No;
        listing::write(&mut out, &selection, arguments.format, runs_ignored).map_err(unwritable)?;
        out.flush().map_err(unwritable)?;
        return Ok(true);
    }
    selection::prepare(&mut selection, &*suite, &arguments, environment)?;
    let mut tests = selection.tests;
    // A saved regression is the likeliest to fail.
    tests.sort_by_key(|test| !test.entry.regression);
    let shuffle_seed = arguments.shuffle_seed.or_else(|| arguments.shuffle.then(seed_of_the_clock));
    if let Some(seed) = shuffle_seed {
        shuffle(&mut tests, seed);
    }
    // How many were not selected is not worth listing them in each of nextest's processes.
    let filtered_out = match selection.filtered_out {
        Some(count) => count,
        None if environment.nextest => 0,
        None => suite.count().saturating_sub(tests.len()),
    };
    let threads = arguments
        .test_threads
        .or_else(|| suite.threads())
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get);
    let plan = Plan { threads, fail_fast: arguments.fail_fast, shuffle_seed, filtered_out };
    let reporter = reporter(&arguments, suite.name(), threads);
    let (summary, mut reporter, written) = execution::run(&suite, tests, plan, reporter);
    written.and_then(|()| reporter.report(&Event::Ended(&summary))).map_err(unwritable)?;
    Ok(summary.totals.failed == 0)
}

fn reporter(arguments: &Arguments, suite: &str, threads: usize) -> Box<dyn Reporter> {
    let out = BufWriter::new(io::stdout());
    let color = match arguments.color {
        Color::Auto => io::stdout().is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    match arguments.format {
        Format::Pretty | Format::Terse => {
            let style = Style {
                terse: arguments.format == Format::Terse,
                color,
                serial: threads == 1,
                times: arguments.report_time,
                show_output: arguments.show_output,
            };
            Box::new(Console::new(out, style))
        }
        Format::Json => Box::new(json::Json::new(out, arguments.report_time, arguments.show_output)),
        Format::Junit => Box::new(junit::Junit::new(out, suite)),
    }
}

fn seed_of_the_clock() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_secs().wrapping_mul(1_000_000_000).wrapping_add(now.subsec_nanos().into())
}

/// Fisher and Yates's shuffle, drawing from SplitMix64.
fn shuffle(tests: &mut [Selected], seed: u64) {
    let mut state = seed;
    for last in (1..tests.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        tests.swap(last, (word % (last as u64 + 1)) as usize);
    }
}
