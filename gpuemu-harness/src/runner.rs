//! The runner: the main of a test binary, and what cargo, nextest, editors and continuous integration demand of it.

pub mod arguments;
mod console;
pub mod events;
mod execution;
mod json;
mod junit;
mod listing;
mod logfile;
mod output;
mod progress;
pub mod selection;

use crate::environment::Environment;
use crate::error::Error;
use crate::report::junit::write as write_junit;
use crate::suite::Suite;
use arguments::{Arguments, Color, Format, RunIgnored};
use console::{Console, Style};
use events::{Event, Reporter};
use execution::Plan;
use output::Output;
use selection::Selected;
use std::ffi::OsString;
use std::fmt;
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
        Err(message) => refuse(&message),
    }
}

/// Says why there is no run and leaves as a failed one does, so that no tool takes it for a success.
pub fn refuse(message: &impl fmt::Display) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(FAILED)
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

/// Says, inside of a `#[test]` function, why there is nothing to run.
pub fn leave_out(name: &str, reason: &str) {
    println!("{name} is left out: {reason}");
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
    let selected = tests.len();
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
    // Prints that nobody asked to see stay out of what tools read.
    let machine = matches!(arguments.format, Format::Json | Format::Junit);
    let output = if arguments.no_capture && !machine { Output::shared() } else { Output::own() };
    let plan = Plan {
        threads,
        fail_fast: arguments.fail_fast,
        shuffle_seed,
        filtered_out,
        progress: shows_progress(&arguments, environment, threads, &output),
    };
    let reporter = reporter(&arguments, suite.name(), threads, &output)?;
    let (mut summary, mut reporter, written) = execution::run(&suite, tests, plan, reporter);
    summary.totals.complete = selection.filtered_out == Some(0) && summary.finished.len() == selected;
    written.and_then(|()| reporter.report(&Event::Ended(&summary))).map_err(unwritable)?;

    let wrong = |error: Error| format!("failed: {error}");
    if let Some(path) = environment.junit.as_deref().filter(|_| !environment.nextest) {
        write_junit(path, suite.name(), summary.time, &junit::cases(&summary)).map_err(wrong)?;
    }
    let notes = suite.finish(&summary.totals).map_err(wrong)?;
    if !notes.is_empty() {
        let text = notes.iter().map(|note| format!("{note}\n")).collect::<String>();
        if machine {
            eprint!("{text}");
        } else {
            let mut out = output.writer().map_err(unwritable)?;
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(unwritable)?;
        }
    }
    Ok(summary.totals.failed == 0)
}

/// Whether a line of progress helps somebody and disturbs nothing.
fn shows_progress(arguments: &Arguments, environment: &Environment, threads: usize, output: &Output) -> bool {
    let watched = io::stderr().is_terminal() && !environment.ci && !environment.nextest;
    // On a terminal, a line of standard output that is only begun would be overwritten.
    let begun = output.is_terminal()
        && match arguments.format {
            Format::Pretty => threads == 1,
            Format::Terse => true,
            Format::Json | Format::Junit => false,
        };
    watched && !arguments.no_capture && !begun
}

fn reporter(arguments: &Arguments, suite: &str, threads: usize, output: &Output) -> Result<Box<dyn Reporter>, String> {
    let out = BufWriter::new(output.writer().map_err(unwritable)?);
    let color = match arguments.color {
        Color::Auto => output.is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    let reporter: Box<dyn Reporter> = match arguments.format {
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
    };
    match &arguments.logfile {
        None => Ok(reporter),
        Some(path) => {
            eprintln!("warning: `--logfile` is deprecated");
            Ok(Box::new(logfile::Logfile::create(path, reporter)?))
        }
    }
}

fn unwritable(error: io::Error) -> String {
    format!("cannot write to standard output: {error}")
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
