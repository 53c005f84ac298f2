//! What a person reads: libtest's `pretty` and `terse` formats, to the byte.

use super::events::{Event, Finished, Reporter, Summary, TestResult};
use std::io::{self, Write};

/// Column at which the terse format breaks a line.
const TERSE_COLUMNS: usize = 88;

/// How results are laid out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// A character a test instead of a line.
    pub terse: bool,
    /// Coloured.
    pub color: bool,
    /// Tests run one at a time, so that a line can begin before its test is over.
    pub serial: bool,
    /// With the time that each test took.
    pub times: bool,
    /// With what there is to say about tests that passed.
    pub show_output: bool,
}

/// Writes the pretty or the terse format.
pub struct Console<W> {
    out: W,
    style: Style,
    count: usize,
    finished: usize,
    column: usize,
}

impl<W: Write + Send> Console<W> {
    /// A console that writes to `out`.
    pub fn new(out: W, style: Style) -> Console<W> {
        Console { out, style, count: 0, finished: 0, column: 0 }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.style.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn word(&self, test: &Finished) -> String {
        match &test.result {
            _ if test.failure().is_some() => self.paint("31", "FAILED"),
            TestResult::Run(_) => self.paint("32", "ok"),
            TestResult::Ignored(None) => self.paint("33", "ignored"),
            TestResult::Ignored(Some(reason)) => self.paint("33", &format!("ignored, {}", one_line(reason))),
        }
    }

    fn finished(&mut self, test: &Finished) -> io::Result<()> {
        self.finished += 1;
        if self.style.terse {
            return self.finished_terse(test);
        }
        if !self.style.serial {
            write!(self.out, "test {} ... ", test.name)?;
        }
        let word = self.word(test);
        match (&test.result, self.style.times) {
            (TestResult::Run(_), true) => writeln!(self.out, "{word} <{:.3}s>", test.time.as_secs_f64()),
            _ => writeln!(self.out, "{word}"),
        }
    }

    fn finished_terse(&mut self, test: &Finished) -> io::Result<()> {
        if test.failure().is_some() {
            if self.column > 0 {
                self.progress(self.finished - 1)?;
            }
            let word = self.word(test);
            return writeln!(self.out, "{} --- {word}", test.name);
        }
        let mark = if test.passed() { self.paint("32", ".") } else { self.paint("33", "i") };
        write!(self.out, "{mark}")?;
        self.column += 1;
        if self.column == TERSE_COLUMNS - 1 {
            self.progress(self.finished)?;
        }
        Ok(())
    }

    fn progress(&mut self, finished: usize) -> io::Result<()> {
        self.column = 0;
        writeln!(self.out, " {finished}/{}", self.count)
    }

    fn ended(&mut self, summary: &Summary) -> io::Result<()> {
        if self.style.show_output {
            let mut passed: Vec<&Finished> = summary.finished.iter().filter(|test| test.passed()).collect();
            passed.sort_by(|a, b| a.name.cmp(&b.name));
            self.outputs("successes", &passed)?;
        }
        let mut failed: Vec<&Finished> = summary.finished.iter().filter(|test| test.failure().is_some()).collect();
        if !failed.is_empty() {
            failed.sort_by(|a, b| a.name.cmp(&b.name));
            self.outputs("failures", &failed)?;
        }
        let totals = &summary.totals;
        let verdict = if totals.failed == 0 { self.paint("32", "ok") } else { self.paint("31", "FAILED") };
        writeln!(
            self.out,
            "\ntest result: {verdict}. {} passed; {} failed; {} ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
            totals.passed,
            totals.failed,
            totals.ignored,
            totals.filtered_out,
            summary.time.as_secs_f64()
        )
    }

    fn outputs(&mut self, title: &str, tests: &[&Finished]) -> io::Result<()> {
        writeln!(self.out, "\n{title}:")?;
        let mut any = false;
        for test in tests {
            let output = test.output();
            if !output.is_empty() {
                if !any {
                    writeln!(self.out)?;
                }
                any = true;
                writeln!(self.out, "---- {} stdout ----\n{output}", test.name)?;
            }
        }
        writeln!(self.out, "\n{title}:")?;
        for test in tests {
            writeln!(self.out, "    {}", test.name)?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Reporter for Console<W> {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Started { count, shuffle_seed } => {
                self.count = *count;
                let tests = if *count == 1 { "test" } else { "tests" };
                match shuffle_seed {
                    Some(seed) => writeln!(self.out, "\nrunning {count} {tests} (shuffle seed: {seed})")?,
                    None => writeln!(self.out, "\nrunning {count} {tests}")?,
                }
            }
            Event::TestStarted { name } if self.style.serial && !self.style.terse => {
                write!(self.out, "test {name} ... ")?;
            }
            Event::TestStarted { .. } => {}
            // In the middle of a line there is no place for another.
            Event::TestSlow { .. } if self.style.serial || self.style.terse => {}
            Event::TestSlow { name } => writeln!(self.out, "test {name} has been running for over 60 seconds")?,
            Event::TestFinished(test) => self.finished(test)?,
            Event::Ended(summary) => self.ended(summary)?,
        }
        self.out.flush()
    }
}

/// Tools read line by line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Outcome, Totals};
    use std::time::Duration;

    fn finished(name: &str, result: TestResult) -> Finished {
        Finished { name: name.to_owned(), result, time: Duration::from_millis(1500) }
    }

    fn written(style: Style, events: &[Event<'_>]) -> String {
        let mut out = Vec::new();
        let mut console = Console::new(&mut out, style);
        events.iter().for_each(|event| console.report(event).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn results_have_their_colours() {
        let passed = finished("a", TestResult::Run(Outcome::default()));
        let failed =
            finished("b", TestResult::Run(Outcome { failure: Some("b failed".into()), properties: Vec::new() }));
        let ignored = finished("c", TestResult::Ignored(Some("no\n  GPU".into())));
        let plain = finished("d", TestResult::Ignored(None));
        let events = [&passed, &failed, &ignored, &plain].map(Event::TestFinished);
        let style = Style { color: true, times: true, ..Style::default() };
        assert_eq!(
            written(style, &events),
            "test a ... \x1b[32mok\x1b[0m <1.500s>\n\
             test b ... \x1b[31mFAILED\x1b[0m <1.500s>\n\
             test c ... \x1b[33mignored, no GPU\x1b[0m\n\
             test d ... \x1b[33mignored\x1b[0m\n"
        );
        let style = Style { color: true, terse: true, ..Style::default() };
        let started = [Event::Started { count: 4, shuffle_seed: None }];
        assert_eq!(
            written(style, &started.into_iter().chain(events).collect::<Vec<_>>()),
            "\nrunning 4 tests\n\
             \x1b[32m.\x1b[0m 1/4\n\
             b --- \x1b[31mFAILED\x1b[0m\n\
             \x1b[33mi\x1b[0m\x1b[33mi\x1b[0m"
        );
        let summary = Summary { totals: Totals { passed: 1, ..Totals::default() }, ..Summary::default() };
        let end = written(Style { color: true, ..Style::default() }, &[Event::Ended(&summary)]);
        assert!(end.starts_with("\ntest result: \x1b[32mok\x1b[0m. 1 passed; 0 failed;"), "{end}");
    }

    #[test]
    fn a_slow_test_is_told_where_a_line_is_free() {
        let slow = [Event::TestSlow { name: "a" }];
        assert_eq!(written(Style::default(), &slow), "test a has been running for over 60 seconds\n");
        assert_eq!(written(Style { serial: true, ..Style::default() }, &slow), "");
    }
}
