//! Figures of a run beside the accepted ones.

use crate::inspect::accepted::{Accepted, number};
use crate::inspect::baseline::{Baseline, Judged, Tool};

/// How a figure compares with the accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The same, within the budget.
    Within,
    /// Better by more than the budget.
    Better,
    /// Worse by more than the budget.
    Worse,
    /// Other by more than the budget, and a person has to say whether that is right.
    Other,
    /// Only one side has it.
    OneSided,
    /// A tool's figure that the accepted one cannot be held against: no tool here, none there, or another version.
    Unjudged,
}

/// One figure on both sides.
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was accepted.
    pub accepted: Option<f64>,
    /// What it is now, as a file would keep it.
    pub now: Option<f64>,
    /// What that change means.
    pub change: Change,
    /// Where a person should look.
    pub place: Option<String>,
    /// What a person should look at.
    pub question: &'static str,
}

impl Row {
    /// `out.max_ulp 0.5 -> 3.2`
    pub fn told(&self) -> String {
        let side = |value: Option<f64>| value.map_or_else(|| "nothing".to_owned(), number);
        let told = format!("{} {} -> {}", self.name, side(self.accepted), side(self.now));
        match self.question {
            "" => told,
            question => format!("{told} ({question})"),
        }
    }

    /// Name, accepted, now and a remark.
    pub fn cells(&self) -> [String; 4] {
        let side = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let part = match (self.accepted, self.now) {
            (Some(accepted), Some(now)) if accepted != 0.0 && accepted != now => {
                let change = 100.0 * (now / accepted - 1.0);
                if change.abs() < 1000.0 { format!("{change:+.0}%") } else { format!("x {:.0}", now / accepted) }
            }
            _ => String::new(),
        };
        let word = match self.change {
            Change::Within => "",
            Change::Better => "better",
            Change::Worse => "worse",
            Change::Other => "to be looked at",
            Change::OneSided => "not on both sides",
            Change::Unjudged => "not judged",
        };
        let place = match (&self.place, self.change) {
            (Some(place), Change::Worse | Change::Better | Change::Other) => format!("at {place}"),
            _ => String::new(),
        };
        let remark =
            [part.as_str(), word, &place].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        [self.name.clone(), side(self.accepted), side(self.now), remark]
    }
}

/// All figures of both sides.
#[derive(Default)]
pub struct Comparison {
    /// Figures of either side.
    pub rows: Vec<Row>,
    /// What is told of the figures that are not judged.
    pub unjudged: Vec<String>,
}

/// Holds figures against accepted ones; `budget` is the relative change of those without one of their own.
pub fn compare(accepted: &Accepted, baseline: &Baseline<'_>, budget: f64) -> Comparison {
    let now = &baseline.metrics;
    let mut rows: Vec<Row> = now
        .iter()
        .map(|metric| {
            let old = accepted.figures.iter().find(|(name, _)| *name == metric.name).map(|(_, value)| *value);
            // As it would be read again, so that equal files are equal figures.
            let value = number(metric.value).parse().unwrap_or(metric.value);
            let neither = matches!(metric.judged, Judged::Neither { .. });
            let budget = metric.budget.unwrap_or(if neither { 0.0 } else { budget });
            let change = old.map_or(Change::OneSided, |old| change(old, value, metric.judged, budget));
            let (name, place) = (metric.name.clone(), metric.place.clone());
            let question = match metric.judged {
                Judged::Neither { fell } if change == Change::Other && old.is_some_and(|old| value < old) => fell,
                _ => "",
            };
            Row { name, accepted: old, now: Some(value), change, place, question }
        })
        .collect();
    let gone = accepted.figures.iter().filter(|(name, _)| !now.iter().any(|metric| metric.name == *name));
    rows.extend(gone.map(|(name, value)| Row {
        name: name.clone(),
        accepted: Some(*value),
        now: None,
        change: Change::OneSided,
        place: None,
        question: "",
    }));
    for row in rows.iter_mut().filter(|row| baseline.parts.iter().any(|part| row.name.starts_with(part))) {
        row.accepted.get_or_insert(0.0);
        row.now.get_or_insert(0.0);
        row.change = Change::Within;
    }
    let unjudged = baseline.tools.iter().filter_map(|tool| set_apart(&mut rows, tool, accepted)).collect();
    Comparison { rows, unjudged }
}

/// Takes a tool's figures out of the judgement where the two sides have not the same tool, and says so.
fn set_apart(rows: &mut [Row], tool: &Tool, accepted: &Accepted) -> Option<String> {
    let prefix = format!("{}_", tool.name);
    let old = accepted.info.iter().find(|(name, _)| name == tool.name).map(|(_, version)| version);
    if tool.version.as_ref().ok() == old {
        return None;
    }
    let mut changed = Vec::new();
    let mut any = false;
    for row in rows.iter_mut().filter(|row| row.name.starts_with(&prefix)) {
        any = true;
        row.question = "";
        if row.change != Change::Within {
            row.change = Change::Unjudged;
            changed.push(row.told());
        }
    }
    let changed = if changed.is_empty() { "no figure differs".to_owned() } else { changed.join(", ") };
    any.then(|| match (&tool.version, old) {
        (Err(why), _) => format!("accepted figures of {} are not compared: {why}", tool.name),
        (Ok(version), None) => {
            format!("figures of {} {version} are not accepted yet: INSTA_UPDATE=force keeps them", tool.name)
        }
        (Ok(version), Some(old)) => {
            format!("{} is {version} and was {old}, so its figures are told and not judged: {changed}", tool.name)
        }
    })
}

fn change(accepted: f64, now: f64, judged: Judged, budget: f64) -> Change {
    let (less, more, resolution) = match judged {
        Judged::LowerIsBetter { resolution } => (Change::Better, Change::Worse, resolution),
        Judged::HigherIsBetter => (Change::Worse, Change::Better, 0.0),
        Judged::Neither { .. } => (Change::Other, Change::Other, 0.0),
        Judged::Shown => return Change::Within,
    };
    if accepted == now || (accepted.is_nan() && now.is_nan()) {
        return Change::Within;
    }
    // A figure that is no number any more is worse in either direction.
    if now.is_nan() {
        return Change::Worse;
    }
    if accepted.is_nan() {
        return Change::Better;
    }
    let allowed = (1.0 + budget) * (1.0 + resolution) * (1.0 + 1e-9);
    if now.abs() > accepted.abs() * allowed {
        more
    } else if now.abs() * allowed < accepted.abs() {
        less
    } else {
        Change::Within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWER: Judged = Judged::LowerIsBetter { resolution: 0.0 };
    const NEITHER: Judged = Judged::Neither { fell: "why?" };

    #[test]
    fn changes_by_hand() {
        let stepped = Judged::LowerIsBetter { resolution: 0.25 };
        let table = [
            (1.0, 1.1, LOWER, Change::Within),
            (1.0, 1.11, LOWER, Change::Worse),
            (1.1, 1.0, LOWER, Change::Within),
            (1.2, 1.0, LOWER, Change::Better),
            (0.0, 1e-30, LOWER, Change::Worse),
            (1e-30, 0.0, LOWER, Change::Better),
            (0.0, 0.0, LOWER, Change::Within),
            (1.0, 1.37, stepped, Change::Within),
            (1.0, 1.38, stepped, Change::Worse),
            (0.5, 0.4, Judged::HigherIsBetter, Change::Worse),
            (0.4, 0.5, Judged::HigherIsBetter, Change::Better),
            (10.0, 9.0, NEITHER, Change::Other),
            (9.0, 10.0, NEITHER, Change::Other),
            (10.0, 10.0, NEITHER, Change::Within),
            (20.0, 19.0, NEITHER, Change::Within),
            (1.0, 0.0, NEITHER, Change::Other),
            (60.0, 5.0, Judged::Shown, Change::Within),
            (1.0, f64::INFINITY, LOWER, Change::Worse),
            (f64::INFINITY, f64::INFINITY, LOWER, Change::Within),
            (1.0, f64::NAN, LOWER, Change::Worse),
            (f64::NAN, 1.0, LOWER, Change::Better),
        ];
        for (accepted, now, judged, wanted) in table {
            assert_eq!(change(accepted, now, judged, 0.1), wanted, "{accepted} -> {now}, {judged:?}");
        }
    }
}
