//! What editors read: libtest's JSON events, a line each, with its keys in its order and its spaces.

use super::events::{Event, Finished, Reporter, Summary, TestResult};
use std::io::{self, Write};

/// Writes events as lines of JSON.
pub struct Json<W> {
    out: W,
    times: bool,
    show_output: bool,
}

impl<W: Write + Send> Json<W> {
    /// Writes to `out`: with the time that each test took, and with what there is to say about tests that passed.
    pub fn new(out: W, times: bool, show_output: bool) -> Json<W> {
        Json { out, times, show_output }
    }

    fn finished(&mut self, test: &Finished) -> io::Result<()> {
        let event = match &test.result {
            _ if test.failure().is_some() => "failed",
            TestResult::Run(_) => "ok",
            TestResult::Ignored(_) => "ignored",
        };
        write!(self.out, r#"{{ "type": "test", "name": {}, "event": "{event}""#, string(&test.name))?;
        if self.times && !matches!(test.result, TestResult::Ignored(_)) {
            write!(self.out, r#", "exec_time": {}"#, seconds(test.time))?;
        }
        let output = test.output();
        if !output.is_empty() && (self.show_output || !test.passed()) {
            write!(self.out, r#", "stdout": {}"#, string(&output))?;
        }
        if let TestResult::Ignored(Some(reason)) = &test.result {
            write!(self.out, r#", "message": {}"#, string(reason))?;
        }
        writeln!(self.out, " }}")
    }

    fn ended(&mut self, summary: &Summary) -> io::Result<()> {
        let totals = &summary.totals;
        writeln!(
            self.out,
            "{{ \"type\": \"suite\", \"event\": \"{}\", \"passed\": {}, \"failed\": {}, \"ignored\": {}, \
             \"measured\": 0, \"filtered_out\": {}, \"exec_time\": {} }}",
            if totals.failed == 0 { "ok" } else { "failed" },
            totals.passed,
            totals.failed,
            totals.ignored,
            totals.filtered_out,
            seconds(summary.time)
        )
    }
}

impl<W: Write + Send> Reporter for Json<W> {
    fn report(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Started { count, shuffle_seed } => {
                let seed = shuffle_seed.map(|seed| format!(r#", "shuffle_seed": {seed}"#)).unwrap_or_default();
                writeln!(self.out, r#"{{ "type": "suite", "event": "started", "test_count": {count}{seed} }}"#)?;
            }
            Event::TestStarted { name } => {
                writeln!(self.out, r#"{{ "type": "test", "event": "started", "name": {} }}"#, string(name))?;
            }
            Event::TestSlow { name } => {
                writeln!(self.out, r#"{{ "type": "test", "event": "timeout", "name": {} }}"#, string(name))?;
            }
            Event::TestFinished(test) => self.finished(test)?,
            Event::Ended(summary) => self.ended(summary)?,
        }
        self.out.flush()
    }
}

/// A duration as a JSON number of seconds, never in the exponent notation that some readers of these events lack.
fn seconds(time: std::time::Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

/// A JSON string.
pub fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
