//! Baselines: figures held against accepted ones within a budget, in insta's files, reviewed with `cargo insta review`.

use crate::environment::{SnapshotUpdate, Snapshots};
use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::front::Front;
use crate::inspect::accepted::{number, read, text};
use crate::inspect::baseline::Baseline;
use crate::inspect::comparison::{Change, Comparison, Row, compare};
use std::fmt::Write;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// So many figures are shown whether they changed or not.
const MANY: usize = 12;

/// When a change is too large, and what follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Relative change that is accepted silently.
    pub relative: f64,
    /// Whether a worse figure fails; else it is only told.
    pub fails: bool,
}

/// What became of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why the test fails: the first line says what is wrong, the others hold the difference. `None`: it passes.
    pub failure: Option<String>,
    /// What a person should know of a test that passes, one line each.
    pub notes: Vec<String>,
    /// What was not judged and why, one line a tool.
    pub unjudged: Vec<String>,
}

/// Compares figures with the accepted ones and writes what is to be reviewed.
///
/// - No accepted file, or another set of figures: a failure until it is reviewed, as in insta.
/// - A figure worse by more than the budget, or one of which neither way is better: a failure, or a note where the policy
///   says so; either way it can be reviewed.
/// - Figures of a tool that is not here, was not there, or has another version: never a failure, and told.
/// - Otherwise it passes and the accepted file stays as it is, so that many changes within the budget cannot add up to a
///   large one. Figures that are better by more than the budget are told: `INSTA_UPDATE=force` accepts them.
///
/// # Errors
///
/// When a file cannot be written.
pub fn judge(baseline: &Baseline<'_>, budget: Budget, settings: &Snapshots, front: &dyn Front) -> Result<Judgement> {
    let path = baseline.root.join(&baseline.file);
    let unmatched = |path: &Path, pending: &Path, said: String, compared: &Comparison| {
        unmatched(baseline, path, pending, settings, front, said, compared)
    };
    let pending = pending_of(&path, baseline.root, settings);
    remember(&path, settings)?;
    let accepted = match read(&path) {
        Ok(accepted) => accepted,
        Err(message) => {
            let said = format!("{}: {message}", baseline.file.display());
            return unmatched(&path, &pending, said, &Comparison::default());
        }
    };
    let Some(accepted) = accepted else {
        let said = format!("no accepted figures yet in {}", baseline.file.display());
        return unmatched(&path, &pending, said, &Comparison::default());
    };
    let compared = compare(&accepted, baseline, budget.relative);
    let rows = &compared.rows;
    let named = |change: Change| rows.iter().filter(move |row| row.change == change).map(Row::told);
    if rows.iter().any(|row| row.change == Change::OneSided) {
        let said = format!("other figures than the accepted ones: {}", joined(named(Change::OneSided)));
        return unmatched(&path, &pending, said, &compared);
    }
    let parts = [("worse than accepted", Change::Worse), ("to be looked at", Change::Other)];
    let parts = parts.map(|(what, change)| (what, joined(named(change))));
    let parts = parts.iter().filter(|(_, rows)| !rows.is_empty()).map(|(what, rows)| format!("{what}: {rows}"));
    let said = parts.collect::<Vec<_>>().join("; ");
    if !said.is_empty() {
        if budget.fails {
            return unmatched(&path, &pending, said, &compared);
        }
        store(baseline, &path, &pending, settings)?;
        return Ok(Judgement { failure: None, notes: vec![said], unjudged: compared.unjudged });
    }
    let _ = std::fs::remove_file(&pending);
    if settings.update == SnapshotUpdate::Force {
        write_atomically(&path, text(baseline)?.as_bytes())?;
        return Ok(Judgement { unjudged: compared.unjudged, ..Judgement::default() });
    }
    let better = joined(named(Change::Better));
    let note = (!better.is_empty()).then(|| format!("better than accepted: {better}; INSTA_UPDATE=force keeps that"));
    Ok(Judgement { failure: None, notes: note.into_iter().collect(), unjudged: compared.unjudged })
}

fn joined(names: impl Iterator<Item = String>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The figures do not match: writes them where the environment wants them, and fails unless that accepts them.
fn unmatched(
    baseline: &Baseline<'_>,
    path: &Path,
    pending: &Path,
    settings: &Snapshots,
    front: &dyn Front,
    said: String,
    compared: &Comparison,
) -> Result<Judgement> {
    let written = store(baseline, path, pending, settings)?;
    if written.as_deref() == Some(path) || settings.force_pass {
        return Ok(Judgement { failure: None, notes: vec![said], unjudged: compared.unjudged.clone() });
    }
    let mut failure = format!("{said}\n");
    let rows = &compared.rows;
    let table: Vec<[String; 4]> = match rows[..] {
        [] => baseline
            .metrics
            .iter()
            .map(|metric| [metric.name.clone(), number(metric.value), String::new(), String::new()])
            .collect(),
        // Of many figures, those that are as they were would only hide the others.
        _ if rows.len() > MANY => rows.iter().filter(|row| row.accepted != row.now).map(Row::cells).collect(),
        _ => rows.iter().map(Row::cells).collect(),
    };
    let head = if rows.is_empty() { ["figure", "now", "", ""] } else { ["figure", "accepted", "now", ""] };
    let width =
        |column: usize| table.iter().map(|row| row[column].len()).chain([head[column].len()]).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for row in std::iter::once(head.map(str::to_owned)).chain(table.iter().cloned()) {
        let [name, old, new, remark] = row;
        let line = format!("  {name:<0$}  {old:>1$}  {new:>2$}  {remark}", widths[0], widths[1], widths[2]);
        let _ = writeln!(failure, "{}", line.trim_end());
    }
    match rows.iter().filter(|row| row.accepted == row.now).count() {
        equal if rows.len() > MANY && equal > 0 => {
            let _ = writeln!(failure, "  and {equal} as accepted");
        }
        _ => {}
    }
    for note in &compared.unjudged {
        let _ = writeln!(failure, "  {note}");
    }
    let _ = match written {
        Some(pending) => writeln!(
            failure,
            "  review   cargo insta review, or rename {} to {}, or {}",
            shown(&pending, baseline.root),
            baseline.file.file_name().unwrap_or_default().to_string_lossy(),
            front.accept_snapshots()
        ),
        None => writeln!(
            failure,
            "  review   run it again with {}, which leaves a .snap.new, or {}, which accepts (this run writes none)",
            front.review_snapshots(),
            front.accept_snapshots()
        ),
    };
    Ok(Judgement { failure: Some(failure), notes: Vec::new(), unjudged: compared.unjudged.clone() })
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Writes the figures where the environment wants them; returns where.
fn store(baseline: &Baseline<'_>, path: &Path, pending: &Path, settings: &Snapshots) -> Result<Option<PathBuf>> {
    let to = match settings.update {
        SnapshotUpdate::Nothing => return Ok(None),
        SnapshotUpdate::Pending => pending,
        SnapshotUpdate::Unseen if path.exists() => pending,
        SnapshotUpdate::Unseen | SnapshotUpdate::InPlace | SnapshotUpdate::Force => path,
    };
    write_atomically(to, text(baseline)?.as_bytes())?;
    if to == path {
        let _ = std::fs::remove_file(pending);
    }
    Ok(Some(to.to_owned()))
}

/// Where a snapshot waits to be reviewed.
fn pending_of(path: &Path, root: &Path, settings: &Snapshots) -> PathBuf {
    let place = match &settings.pending {
        None => path.to_owned(),
        Some(folder) => folder.join(path.strip_prefix(settings.workspace.as_deref().unwrap_or(root)).unwrap_or(path)),
    };
    place.with_extension("snap.new")
}

/// Tells `cargo insta test --unreferenced` that a snapshot is in use.
fn remember(path: &Path, settings: &Snapshots) -> Result<()> {
    let Some(list) = &settings.references else { return Ok(()) };
    let line = format!("{}\n", path.display());
    let appended = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(list)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    appended.map_err(|error| Error::File(format!("cannot write {}: {error}", list.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::Cargo;
    use crate::inspect::baseline::{FOLDER, Judged, Metric, Tool};

    const LOWER: Judged = Judged::LowerIsBetter { resolution: 0.0 };
    const BUDGET: Budget = Budget { relative: 0.1, fails: true };

    fn judge(baseline: &Baseline<'_>, budget: Budget, settings: &Snapshots) -> Result<Judgement> {
        super::judge(baseline, budget, settings, &Cargo)
    }

    fn baseline<'a>(root: &'a Path, metrics: &[(&str, f64, Judged)]) -> Baseline<'a> {
        Baseline {
            root,
            file: Path::new(FOLDER).join("accuracy").join("silu.float32.snap"),
            description: "errors of `silu`: a \"test\"".to_owned(),
            info: vec![("dtype", "float32".to_owned()), ("cases", "60".to_owned())],
            metrics: metrics.iter().map(|&(name, value, judged)| Metric::new(name, value, judged)).collect(),
            tools: Vec::new(),
            parts: &["mix_"],
        }
    }

    fn settings(update: SnapshotUpdate) -> Snapshots {
        Snapshots { update, ..Snapshots::default() }
    }

    #[test]
    fn the_file_is_one_that_insta_reads_with_its_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let new = baseline(folder.path(), &[("cases", 60.0, Judged::Shown), ("out.max_ulp", 1.25e-9, LOWER)]);
        let judgement = judge(&new, BUDGET, &settings(SnapshotUpdate::Pending)).unwrap();
        let pending = folder.path().join("gpuemu-snapshots/accuracy/silu.float32.snap.new");
        let failure = judgement.failure.expect("nothing accepted yet");
        assert!(failure.starts_with("no accepted figures yet"), "{failure}");
        assert!(failure.contains("silu.float32.snap.new"), "{failure}");
        let snapshot = insta::Snapshot::from_file(&pending).unwrap();
        let insta::internals::SnapshotContents::Text(contents) = snapshot.contents() else { panic!("text") };
        assert_eq!(contents.to_string(), "cases = 60\nout.max_ulp = 1.250e-9");
        assert_eq!(snapshot.metadata().description(), Some("errors of `silu`: a \"test\""));
        assert_eq!(snapshot.metadata().source(), Some("gpuemu.toml"));
        let info = format!("{:?}", snapshot.metadata().private_info().expect("info"));
        assert!(info.contains("\"dtype\"") && info.contains("\"float32\"") && info.contains("\"60\""), "{info}");
        // What `cargo insta accept` does: insta writes the file again, with the ending `.snap`. It changes no byte.
        snapshot.save(&folder.path().join(&new.file)).unwrap();
        assert_eq!(std::fs::read(folder.path().join(&new.file)).unwrap(), std::fs::read(&pending).unwrap());
        assert_eq!(judge(&new, BUDGET, &settings(SnapshotUpdate::Pending)).unwrap(), Judgement::default());
        assert!(!pending.exists(), "a test that passes leaves nothing to review");
    }

    #[test]
    fn what_is_written_and_what_fails() {
        let figures = |ulp: f64| [("out.max_ulp", ulp, LOWER)];
        let file = Path::new("gpuemu-snapshots/accuracy/silu.float32.snap");
        let accept =
            |root: &Path| judge(&baseline(root, &figures(1.0)), BUDGET, &settings(SnapshotUpdate::InPlace)).unwrap();
        // (accepted first, update, figure now) -> (fails, `.snap` is new, `.snap.new` is there)
        let table = [
            (false, SnapshotUpdate::Pending, 1.0, (true, false, true)),
            (false, SnapshotUpdate::Nothing, 1.0, (true, false, false)),
            (false, SnapshotUpdate::InPlace, 1.0, (false, true, false)),
            (false, SnapshotUpdate::Unseen, 1.0, (false, true, false)),
            (true, SnapshotUpdate::Pending, 2.0, (true, false, true)),
            (true, SnapshotUpdate::Nothing, 2.0, (true, false, false)),
            (true, SnapshotUpdate::InPlace, 2.0, (false, true, false)),
            (true, SnapshotUpdate::Unseen, 2.0, (true, false, true)),
            (true, SnapshotUpdate::Force, 2.0, (false, true, false)),
            (true, SnapshotUpdate::Pending, 1.05, (false, false, false)),
            (true, SnapshotUpdate::Force, 1.05, (false, true, false)),
            (true, SnapshotUpdate::Pending, 0.5, (false, false, false)),
        ];
        for (accepted, update, now, wanted) in table {
            let folder = tempfile::tempdir().unwrap();
            if accepted {
                assert_eq!(accept(folder.path()).failure, None);
            }
            let judgement = judge(&baseline(folder.path(), &figures(now)), BUDGET, &settings(update)).unwrap();
            let written = std::fs::read_to_string(folder.path().join(file)).unwrap_or_default();
            let is_new = written.ends_with(&format!("out.max_ulp = {}\n", number(now)));
            let pending = folder.path().join(file).with_extension("snap.new").exists();
            assert_eq!((judgement.failure.is_some(), is_new, pending), wanted, "{accepted} {update:?} {now}");
        }
    }

    #[test]
    fn a_worse_figure_is_shown_with_both_sides_or_only_told() {
        let folder = tempfile::tempdir().unwrap();
        let old = [("out.max_ulp", 0.5, LOWER), ("out.mean_ulp", 0.25, LOWER)];
        judge(&baseline(folder.path(), &old), BUDGET, &settings(SnapshotUpdate::InPlace)).unwrap();
        let worse = baseline(folder.path(), &[("out.max_ulp", 3.25, LOWER), ("out.mean_ulp", 0.25, LOWER)]);
        let failure = judge(&worse, BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap().failure.unwrap();
        let lines: Vec<&str> = failure.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "worse than accepted: out.max_ulp 0.5 -> 3.25",
                "  figure        accepted   now",
                "  out.max_ulp        0.5  3.25  +550% worse",
                "  out.mean_ulp      0.25  0.25",
            ]
        );
        let lenient = Budget { fails: false, ..BUDGET };
        let told = judge(&worse, lenient, &settings(SnapshotUpdate::Nothing)).unwrap();
        assert_eq!(told, Judgement { notes: vec![lines[0].to_owned()], ..Judgement::default() });
        let forced = Snapshots { force_pass: true, ..settings(SnapshotUpdate::Pending) };
        assert_eq!(judge(&worse, BUDGET, &forced).unwrap().failure, None);
    }

    #[test]
    fn other_figures_or_a_broken_file_are_a_failure_to_be_reviewed() {
        let folder = tempfile::tempdir().unwrap();
        let new = baseline(folder.path(), &[("y.max_ulp", 0.5, LOWER)]);
        let path = folder.path().join(&new.file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for (text, said) in [
            (
                "---\nsource: x\n---\nout.max_ulp = 0.5\n",
                "other figures than the accepted ones: y.max_ulp nothing -> 0.5, out.max_ulp 0.5 -> nothing",
            ),
            ("---\nsource: x\n---\n<<<<<<< ours\n", "`<<<<<<< ours` is no `name = number`"),
            ("<<<<<<< ours\n", "is no snapshot of insta"),
            ("---\n\tx: [\n---\n", "is no snapshot of insta"),
        ] {
            std::fs::write(&path, text).unwrap();
            let failure = judge(&new, BUDGET, &settings(SnapshotUpdate::Pending)).unwrap().failure.expect(text);
            assert!(failure.contains(said), "{text}: {failure}");
            assert!(path.with_extension("snap.new").exists(), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "never overwritten unasked");
        }
    }

    #[test]
    fn a_figure_may_have_a_budget_of_its_own_and_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let write = settings(SnapshotUpdate::InPlace);
        let make = |wide: f64, spills: f64| {
            let mut new = baseline(folder.path(), &[("wide", wide, Judged::HigherIsBetter), ("spills", spills, LOWER)]);
            new.metrics[0].budget = Some(0.5);
            new.metrics[1].place = Some("k.cu:7".to_owned());
            new
        };
        judge(&make(16.0, 0.0), BUDGET, &write).unwrap();
        assert_eq!(judge(&make(11.0, 0.0), BUDGET, &write).unwrap(), Judgement::default());
        let failure = judge(&make(10.0, 4.0), BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap().failure.unwrap();
        let lines: Vec<&str> = failure.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "worse than accepted: wide 16 -> 10, spills 0 -> 4",
                "  figure  accepted  now",
                "  wide          16   10  -38% worse",
                "  spills         0    4  worse at k.cu:7",
            ]
        );
    }

    #[test]
    fn a_barrier_that_went_is_no_improvement() {
        let folder = tempfile::tempdir().unwrap();
        let neither = Judged::Neither { fell: "a barrier went" };
        let make = |barriers: f64, spills: f64| {
            baseline(folder.path(), &[("barriers", barriers, neither), ("spills", spills, LOWER)])
        };
        let first = |barriers: f64, spills: f64| {
            let judgement = judge(&make(barriers, spills), BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap();
            judgement.failure.map(|failure| failure.lines().next().unwrap().to_owned())
        };
        judge(&make(20.0, 8.0), BUDGET, &settings(SnapshotUpdate::InPlace)).unwrap();
        let table = [
            (20.0, 8.0, None),
            // Less than the budget of the others.
            (19.0, 8.0, Some("to be looked at: barriers 20 -> 19 (a barrier went)")),
            (21.0, 8.0, Some("to be looked at: barriers 20 -> 21")),
            (0.0, 4.0, Some("to be looked at: barriers 20 -> 0 (a barrier went)")),
            (0.0, 9.0, Some("worse than accepted: spills 8 -> 9; to be looked at: barriers 20 -> 0 (a barrier went)")),
        ];
        for (barriers, spills, wanted) in table {
            assert_eq!(first(barriers, spills).as_deref(), wanted);
        }
        // A budget of its own allows what it says, and whoever looked accepts it.
        let mut lenient = make(19.0, 8.0);
        lenient.metrics[0].budget = Some(0.1);
        assert_eq!(judge(&lenient, BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap(), Judgement::default());
        assert_eq!(judge(&make(0.0, 8.0), BUDGET, &settings(SnapshotUpdate::InPlace)).unwrap().failure, None);
        assert_eq!(first(0.0, 8.0), None);
        let told =
            judge(&make(1.0, 8.0), Budget { fails: false, ..BUDGET }, &settings(SnapshotUpdate::Nothing)).unwrap();
        assert_eq!(told.notes, ["to be looked at: barriers 0 -> 1"]);
    }

    #[test]
    fn parts_of_a_whole_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let shown = Judged::Shown;
        let old = [("instructions", 10.0, LOWER), ("mix_move", 4.0, shown), ("mix_half", 6.0, shown)];
        judge(&baseline(folder.path(), &old), BUDGET, &settings(SnapshotUpdate::InPlace)).unwrap();
        let new = [("instructions", 10.0, LOWER), ("mix_move", 8.0, shown), ("mix_single", 2.0, shown)];
        let judgement = judge(&baseline(folder.path(), &new), BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap();
        assert_eq!(judgement, Judgement::default());
    }

    #[test]
    fn figures_of_a_tool_are_judged_by_the_version_that_was_accepted() {
        // The versions accepted and here, the registers accepted and here; what is told, and whether it fails.
        let absent = Err("no ptxas here");
        let table: [(std::result::Result<&str, &str>, f64, std::result::Result<&str, &str>, f64, &str, bool); 7] = [
            (Ok("12.9"), 32.0, Ok("12.9"), 32.0, "", false),
            (Ok("12.9"), 32.0, Ok("12.9"), 40.0, "", true),
            (
                Ok("12.9"),
                32.0,
                Ok("13.4"),
                40.0,
                "ptxas is 13.4 and was 12.9, so its figures are told and not judged: ptxas_registers 32 -> 40",
                false,
            ),
            (
                Ok("12.9"),
                32.0,
                Ok("13.4"),
                32.0,
                "ptxas is 13.4 and was 12.9, so its figures are told and not judged: no figure differs",
                false,
            ),
            (Ok("12.9"), 32.0, absent, 0.0, "accepted figures of ptxas are not compared: no ptxas here", false),
            (
                absent,
                0.0,
                Ok("12.9"),
                32.0,
                "figures of ptxas 12.9 are not accepted yet: INSTA_UPDATE=force keeps them",
                false,
            ),
            (absent, 0.0, absent, 0.0, "", false),
        ];
        for (old, old_registers, new, new_registers, told, fails) in table {
            let folder = tempfile::tempdir().unwrap();
            let make = |version: std::result::Result<&str, &str>, registers: f64, instructions: f64| {
                let mut made = baseline(folder.path(), &[("instructions", instructions, LOWER)]);
                if let Ok(version) = version {
                    made.metrics.push(Metric::new("ptxas_registers", registers, LOWER));
                    made.info.push(("ptxas", version.to_owned()));
                }
                let version = version.map(str::to_owned).map_err(str::to_owned);
                made.tools = vec![Tool { name: "ptxas", version }];
                made
            };
            judge(&make(old, old_registers, 100.0), BUDGET, &settings(SnapshotUpdate::InPlace)).unwrap();
            let judgement =
                judge(&make(new, new_registers, 100.0), BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap();
            let notes: Vec<&str> = judgement.unjudged.iter().map(String::as_str).collect();
            assert_eq!(judgement.failure.is_some(), fails, "{told}");
            assert_eq!(notes, Vec::from_iter(Some(told).filter(|told| !told.is_empty())));
            // The other figures are judged all the same, and what is not judged is told there too.
            let other = judge(&make(new, new_registers, 200.0), BUDGET, &settings(SnapshotUpdate::Nothing)).unwrap();
            let failure = other.failure.unwrap();
            assert!(failure.starts_with("worse than accepted: instructions 100 -> 200"), "{failure}");
            assert!(failure.contains(told), "{failure}");
        }
    }

    #[test]
    fn references_and_the_pending_folder_are_insta_s() {
        let folder = tempfile::tempdir().unwrap();
        let (root, away) = (folder.path().join("root/pkg"), folder.path().join("away"));
        let settings = Snapshots {
            pending: Some(away.clone()),
            workspace: Some(folder.path().join("root")),
            references: Some(folder.path().join("used.txt")),
            ..settings(SnapshotUpdate::Pending)
        };
        let new = baseline(&root, &[("out.max_ulp", 0.5, LOWER)]);
        assert!(judge(&new, BUDGET, &settings).unwrap().failure.is_some());
        assert!(away.join("pkg/gpuemu-snapshots/accuracy/silu.float32.snap.new").is_file());
        let used = std::fs::read_to_string(folder.path().join("used.txt")).unwrap();
        assert_eq!(used, format!("{}\n", root.join(&new.file).display()));
    }
}
