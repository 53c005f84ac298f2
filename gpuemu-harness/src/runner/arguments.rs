//! The command line of a test binary: every flag of libtest, read by the parser that libtest uses.

use crate::environment::Environment;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Print the usage and stop.
    pub help: bool,
    /// List the selected tests and stop.
    pub list: bool,
    /// A test is selected when its name contains one of these, or there are none.
    pub filters: Vec<String>,
    /// A test is not selected when its name contains one of these.
    pub skip: Vec<String>,
    /// Filters and skips are whole names.
    pub exact: bool,
    /// Which of the tests that are ignored to run.
    pub ignored: RunIgnored,
    /// Benchmarks are asked for: there are none, so every test is ignored.
    pub bench: bool,
    /// How results are written.
    pub format: Format,
    /// When output is coloured.
    pub color: Color,
    /// Tests run at once, where given.
    pub test_threads: Option<NonZeroUsize>,
    /// What tests print goes where it would outside of a test.
    pub no_capture: bool,
    /// Show what there is to say about tests that passed.
    pub show_output: bool,
    /// Show how long each test took.
    pub report_time: bool,
    /// Stop after the first failure.
    pub fail_fast: bool,
    /// Run in random order.
    pub shuffle: bool,
    /// Run in the random order of this seed.
    pub shuffle_seed: Option<u64>,
    /// A file that gets one line a test.
    pub logfile: Option<PathBuf>,
}

/// Which of the tests that are ignored to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunIgnored {
    /// None of them.
    #[default]
    No,
    /// Only them.
    Only,
    /// Them as well.
    Also,
}

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line a test.
    #[default]
    Pretty,
    /// A character a test.
    Terse,
    /// A line of JSON an event.
    Json,
    /// A JUnit document.
    Junit,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Reads a command line without the name of the program. Errors are those of libtest, fit to follow "error: ".
pub fn parse(arguments: impl IntoIterator<Item = OsString>, environment: &Environment) -> Result<Arguments, String> {
    let matches = options().parse(arguments).map_err(|error| error.to_string())?;
    if matches.opt_present("help") {
        return Ok(Arguments { help: true, ..Arguments::default() });
    }
    if matches.opt_strs("Z").iter().any(|value| value != "unstable-options") {
        return Err("Unrecognized option to `Z`".into());
    }
    let ignored = match (matches.opt_present("ignored"), matches.opt_present("include-ignored")) {
        (true, true) => return Err("the options --include-ignored and --ignored are mutually exclusive".into()),
        (true, false) => RunIgnored::Only,
        (false, true) => RunIgnored::Also,
        (false, false) => RunIgnored::No,
    };
    let format = match matches.opt_str("format").as_deref() {
        None if matches.opt_present("quiet") => Format::Terse,
        None | Some("pretty") => Format::Pretty,
        Some("terse") => Format::Terse,
        Some("json") => Format::Json,
        Some("junit") => Format::Junit,
        Some(other) => {
            return Err(format!("argument for --format must be pretty, terse, json or junit (was {other})"));
        }
    };
    let color = match matches.opt_str("color").as_deref() {
        None | Some("auto") => Color::Auto,
        Some("always") => Color::Always,
        Some("never") => Color::Never,
        Some(other) => return Err(format!("argument for --color must be auto, always, or never (was {other})")),
    };
    let test_threads = match matches.opt_str("test-threads") {
        None => environment.test_threads,
        Some(text) => {
            let threads: usize = text
                .parse()
                .map_err(|error| format!("argument for --test-threads must be a number > 0 (error: {error})"))?;
            let threads = NonZeroUsize::new(threads);
            Some(threads.ok_or("argument for --test-threads must not be 0")?)
        }
    };
    let shuffle_seed = match matches.opt_str("shuffle-seed") {
        None => environment.shuffle_seed,
        Some(text) => Some(
            text.parse().map_err(|error| format!("argument for --shuffle-seed must be a number (error: {error})"))?,
        ),
    };
    Ok(Arguments {
        help: false,
        list: matches.opt_present("list"),
        skip: matches.opt_strs("skip"),
        exact: matches.opt_present("exact"),
        ignored,
        bench: matches.opt_present("bench") && !matches.opt_present("test"),
        format,
        color,
        test_threads,
        no_capture: environment.no_capture || matches.opt_present("no-capture") || matches.opt_present("nocapture"),
        show_output: matches.opt_present("show-output"),
        report_time: matches.opt_present("report-time") || matches.opt_present("ensure-time"),
        fail_fast: matches.opt_present("fail-fast"),
        shuffle: environment.shuffle || matches.opt_present("shuffle"),
        shuffle_seed,
        logfile: matches.opt_str("logfile").map(PathBuf::from),
        filters: matches.free,
    })
}

/// The text of `--help`.
pub fn usage(program: &str) -> String {
    let brief = format!("Usage: {program} [OPTIONS] [FILTERS...]");
    format!(
        "{}\n\
         A test is run when its name contains one of the FILTERS, or when there are none.\n\
         \n\
         Environment:\n\
         \x20   GPUEMU_CASE=SPEC       run this one case in the test that SPEC names\n\
         \x20   GPUEMU_PROFILE=quick|thorough\n\
         \x20   GPUEMU_CASES=N         cases a test\n\
         \x20   GPUEMU_SEED=N          other cases\n\
         \x20   GPUEMU_STRATEGIES=A,B  other ways of choosing cases\n\
         \x20   GPUEMU_SANITIZERS=A,B  what is watched while compiled kernels run: all, none, or some\n\
         \x20   GPUEMU_COUNTERS=1      say what launches of compiled kernels executed\n\
         \x20   GPUEMU_REQUIRE=1       a test that cannot run on this host fails instead of being ignored\n\
         \x20   GPUEMU_JUNIT=PATH      leave a JUnit report there\n\
         \x20   RUST_TEST_THREADS, RUST_TEST_NOCAPTURE, RUST_TEST_SHUFFLE, RUST_TEST_SHUFFLE_SEED as for any test",
        options().usage(&brief)
    )
}

fn options() -> getopts::Options {
    let mut options = getopts::Options::new();
    options
        .optflag("", "include-ignored", "Run ignored and not ignored tests")
        .optflag("", "ignored", "Run only ignored tests")
        .optflag("", "force-run-in-process", "Accepted and without effect: tests always run in this process")
        .optflag("", "exclude-should-panic", "Accepted and without effect: no test is marked as should_panic")
        .optflag("", "test", "Run tests and not benchmarks")
        .optflag("", "bench", "Run benchmarks instead of tests: there are none")
        .optflag("", "list", "List all tests")
        .optflag("", "fail-fast", "Don't start new tests after the first failure")
        .optflag("h", "help", "Display this message")
        .optopt("", "logfile", "Write one line a test to the specified file (deprecated)", "PATH")
        .optflag("", "no-capture", "leave what tests print on standard output there, instead of on standard error")
        .optflag("", "nocapture", "the older spelling of --no-capture")
        .optopt("", "test-threads", "Number of tests run in parallel", "n_threads")
        .optmulti("", "skip", "Skip tests whose names contain FILTER (may be given several times)", "FILTER")
        .optflag("q", "quiet", "Display one character per test instead of one line. Alias to --format=terse")
        .optflag("", "exact", "Exactly match filters rather than by substring")
        .optopt("", "color", "Colour the output: on a terminal (auto, default), always or never", "auto|always|never")
        .optopt(
            "",
            "format",
            "pretty = a line per test; terse = a character per test; json = a JSON document per event; \
             junit = one JUnit document",
            "pretty|terse|json|junit",
        )
        .optflag("", "show-output", "Show what there is to say about tests that passed")
        .optmulti("Z", "", "Accepted and not needed: every option here is available", "unstable-options")
        .optflag("", "report-time", "Show execution time of each test")
        .optflag("", "ensure-time", "Accepted as --report-time: a case has no time limit here")
        .optflag("", "shuffle", "Run tests in random order")
        .optopt("", "shuffle-seed", "Run tests in random order, the one that SEED gives", "SEED");
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &[&str]) -> Result<Arguments, String> {
        parse(line.iter().map(OsString::from), &Environment::default())
    }

    #[test]
    fn every_flag_reaches_its_field() {
        let default = Arguments::default;
        let path = || Some(PathBuf::from("log"));
        let four = NonZeroUsize::new(4);
        for (line, expected) in [
            (&[][..], default()),
            (&["a", "b::c", ""], Arguments { filters: vec!["a".into(), "b::c".into(), "".into()], ..default() }),
            (&["a", "--exact", "b"], Arguments { filters: vec!["a".into(), "b".into()], exact: true, ..default() }),
            (&["--", "--list"], Arguments { filters: vec!["--list".into()], ..default() }),
            (&["--skip", "a", "--skip=b"], Arguments { skip: vec!["a".into(), "b".into()], ..default() }),
            (&["--list", "--format", "terse"], Arguments { list: true, format: Format::Terse, ..default() }),
            (&["-q"], Arguments { format: Format::Terse, ..default() }),
            (&["-q", "--format=json"], Arguments { format: Format::Json, ..default() }),
            (&["-Zunstable-options", "--format=junit"], Arguments { format: Format::Junit, ..default() }),
            (&["-Z", "unstable-options", "-Z", "unstable-options"], default()),
            (&["--ignored"], Arguments { ignored: RunIgnored::Only, ..default() }),
            (&["--include-ignored"], Arguments { ignored: RunIgnored::Also, ..default() }),
            (&["--bench"], Arguments { bench: true, ..default() }),
            (&["--bench", "--test"], default()),
            (&["--test"], default()),
            (&["--color", "always"], Arguments { color: Color::Always, ..default() }),
            (&["--color=never"], Arguments { color: Color::Never, ..default() }),
            (&["--test-threads", "4"], Arguments { test_threads: four, ..default() }),
            (&["--test-threads=4"], Arguments { test_threads: four, ..default() }),
            (&["--nocapture", "--no-capture"], Arguments { no_capture: true, ..default() }),
            (&["--show-output"], Arguments { show_output: true, ..default() }),
            (&["--report-time"], Arguments { report_time: true, ..default() }),
            (&["--ensure-time"], Arguments { report_time: true, ..default() }),
            (&["--fail-fast"], Arguments { fail_fast: true, ..default() }),
            (&["--shuffle"], Arguments { shuffle: true, ..default() }),
            (&["--shuffle-seed", "7"], Arguments { shuffle_seed: Some(7), ..default() }),
            (&["--logfile", "log"], Arguments { logfile: path(), ..default() }),
            (&["--force-run-in-process", "--exclude-should-panic"], default()),
            (&["-h", "--format", "wat"], Arguments { help: true, ..default() }),
        ] {
            assert_eq!(parsed(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let environment = Environment {
            test_threads: NonZeroUsize::new(3),
            shuffle_seed: Some(5),
            shuffle: true,
            no_capture: true,
            ..Environment::default()
        };
        let read = |line: &[&str]| parse(line.iter().map(OsString::from), &environment).unwrap();
        let variables = Arguments {
            test_threads: NonZeroUsize::new(3),
            shuffle_seed: Some(5),
            shuffle: true,
            no_capture: true,
            ..Arguments::default()
        };
        assert_eq!(read(&[]), variables);
        let line = read(&["--test-threads=1", "--shuffle-seed=9"]);
        assert_eq!((line.test_threads, line.shuffle_seed), (NonZeroUsize::new(1), Some(9)));
    }

    proptest! {
        #[test]
        fn no_command_line_panics(line in prop::collection::vec("-{0,2}[a-zA-Z:=,0-9 \\PC]{0,16}", 0..6)) {
            let _ = parse(line.iter().map(OsString::from), &Environment::default());
        }

        #[test]
        fn filters_arrive_as_they_are(filters in prop::collection::vec("[^-]\\PC{0,20}", 0..6)) {
            let line = filters.iter().map(OsString::from);
            prop_assert_eq!(parse(line, &Environment::default()), Ok(Arguments { filters, ..Arguments::default() }));
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_argument_that_is_no_utf8_is_an_error() {
        use std::os::unix::ffi::OsStringExt;
        let error = parse([OsString::from_vec(vec![b'a', 0xff])], &Environment::default()).unwrap_err();
        assert!(error.starts_with("Unrecognized option: "), "{error}");
    }
}
