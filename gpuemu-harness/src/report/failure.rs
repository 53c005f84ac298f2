//! The text of a failure: at most a screen, the replay line first, no stack trace.

use crate::case::spec::Spec;
use crate::validate::verdict::{Failure, Statistics};
use std::fmt::Write;
use std::path::PathBuf;

/// Everything a report on one failing test says.
#[derive(Clone, Debug)]
pub struct Report {
    /// The test's name, as its runner was given it.
    pub test: String,
    /// What was under test: `function softmax`, `script scripts/softmax_op.py`.
    pub subject: String,
    /// What is wrong.
    pub failure: Failure,
    /// The smallest case that shows it; `None` where no single case does (health checks, refused launches).
    pub case: Option<FailingCase>,
    /// Files written while failing, and what could not be written.
    pub notes: Vec<String>,
}

/// The case of a [`Report`].
#[derive(Clone, Debug)]
pub struct FailingCase {
    /// The smallest failing case.
    pub spec: Spec,
    /// The case it was shrunk from, and in how many runs of the subject.
    pub shrunk_from: Option<(Spec, u32)>,
    /// What the same fault looks like where there is more to see.
    pub larger: Option<Larger>,
    /// Which case of how many it was.
    pub number: Option<(u32, u32)>,
    /// Name, dtype and shape of the output the failure is about.
    pub output: Option<(String, String, Vec<usize>)>,
    /// The command that runs this one case.
    pub replay: String,
    /// Where it was saved.
    pub saved: Option<PathBuf>,
}

/// A larger case that fails like the smallest one: the one it was shrunk from, or one of the next.
#[derive(Clone, Debug)]
pub struct Larger {
    /// The case.
    pub spec: Spec,
    /// What the error looks like there, without what is said of the smallest case already.
    pub diagnosis: Vec<String>,
    /// Where it is there, if the smallest case is too small for a picture.
    pub picture: Vec<String>,
}

/// Characters of one line of a report; longer lines are wrapped by words, specs are not touched.
const WIDTH: usize = 118;

impl Report {
    /// The report as text, ending in a line break.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{} failed: {}", self.test, self.failure.message);
        if let Some(case) = &self.case {
            row(&mut text, "replay", &case.replay, false);
            match (&case.shrunk_from, case.number) {
                (Some((from, runs)), Some((number, of))) => {
                    let found = format!("case {number} of {of}, shrunk from {} in {runs} runs", brief(from));
                    row(&mut text, "found", &found, true);
                }
                (None, Some((number, of))) => row(&mut text, "found", &format!("case {number} of {of}"), true),
                _ => {}
            }
            let layouts: Vec<String> =
                case.spec.inputs.iter().map(|input| format!("{} {}", input.name, input.layout)).collect();
            row(&mut text, "shape", &format!("{}; {}", brief(&case.spec), layouts.join(", ")), true);
        }
        row(&mut text, "subject", &self.subject, true);
        if let Some(first) = &self.failure.first {
            let name = self.failure.output.as_deref().unwrap_or("output");
            let index: Vec<String> = first.index.iter().map(usize::to_string).collect();
            let line = format!(
                "{name}[{}]: expected {}, got {}, allowed \u{b1}{}, {} ulp",
                index.join(","),
                number(first.expected),
                number(first.got),
                number_short(first.allowed),
                number_short(first.ulp)
            );
            row(&mut text, "first", &line, true);
        }
        if let Some(statistics) = &self.failure.statistics {
            row(&mut text, "errors", &describe(statistics), true);
        }
        for (place, line) in self.failure.diagnosis.iter().enumerate() {
            row(&mut text, if place == 0 { "looks" } else { "" }, line, true);
        }
        let larger = self.case.as_ref().and_then(|case| case.larger.as_ref());
        if let Some(larger) = larger.filter(|larger| !larger.diagnosis.is_empty()) {
            let label = if self.failure.diagnosis.is_empty() { "looks" } else { "" };
            row(&mut text, label, &format!("in a larger case ({}):", brief(&larger.spec)), true);
            larger.diagnosis.iter().for_each(|line| row(&mut text, "", &format!("- {line}"), true));
        }
        for (place, line) in self.failure.picture.iter().enumerate() {
            row(&mut text, if place == 0 { "where" } else { "" }, line, false);
        }
        if let Some(larger) = larger.filter(|larger| !larger.picture.is_empty()) {
            row(&mut text, "where", &format!("in a larger case ({}):", brief(&larger.spec)), true);
            larger.picture.iter().for_each(|line| row(&mut text, "", line, false));
        }
        if let Some(saved) = self.case.as_ref().and_then(|case| case.saved.as_ref()) {
            row(&mut text, "saved", &format!("{} (commit it: it runs first from now on)", saved.display()), false);
        }
        for note in &self.notes {
            row(&mut text, "note", note, true);
        }
        text
    }
}

fn row(text: &mut String, label: &str, line: &str, wrap: bool) {
    const MARGIN: usize = 11;
    let mut first = true;
    let mut put = |piece: &str| {
        let label = if first { label } else { "" };
        let _ = writeln!(text, "  {label:<8} {piece}");
        first = false;
    };
    if !wrap {
        line.lines().for_each(&mut put);
        return;
    }
    for part in line.lines() {
        let mut piece = String::new();
        for word in part.split(' ') {
            if !piece.is_empty() && piece.chars().count() + 1 + word.chars().count() > WIDTH - MARGIN {
                put(&piece);
                piece.clear();
            }
            if !piece.is_empty() {
                piece.push(' ');
            }
            piece.push_str(word);
        }
        put(&piece);
    }
}

/// Dimensions and parameters of a spec, as a person reads them: `B=1, S=7, H=129, axis=-1`.
fn brief(spec: &Spec) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(shape) = &spec.any_rank {
        let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
        parts.push(format!("...=[{}]", sizes.join(", ")));
    }
    parts.extend(spec.dims.iter().map(|(name, size)| format!("{name}={size}")));
    parts.extend(spec.params.iter().map(|(name, value)| format!("{name}={value}")));
    if parts.is_empty() { "no dimensions".to_owned() } else { parts.join(", ") }
}

fn describe(statistics: &Statistics) -> String {
    let Statistics { count, exceeding, max_abs, p50_abs, p99_abs, max_rel, max_ulp, .. } = statistics;
    format!(
        "{exceeding} of {count} differ; absolute: max {}, median {}, p99 {}; relative: max {}; ulp: max {}",
        number_short(*max_abs),
        number_short(*p50_abs),
        number_short(*p99_abs),
        number_short(*max_rel),
        number_short(*max_ulp)
    )
}

/// A value in full: the shortest text that reads back as the same float64.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || (1e-4..1e15).contains(&value.abs()) {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

/// A value to three significant digits.
pub fn number_short(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}");
    }
    let magnitude = value.abs();
    if (1e-3..1e4).contains(&magnitude) {
        let digits = (2 - magnitude.log10().floor() as i32).clamp(0, 6) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let table = [
            (0.0, "0", "0"),
            (1.0, "1", "1"),
            (-0.125, "-0.125", "-0.125"),
            (123.456, "123.456", "123"),
            (6.4e7, "64000000", "6.40e7"),
            (2.1e-9, "2.1e-9", "2.10e-9"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NAN, "NaN", "NaN"),
        ];
        for (value, full, short) in table {
            assert_eq!((number(value).as_str(), number_short(value).as_str()), (full, short));
        }
    }
}
