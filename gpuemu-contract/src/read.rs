//! Finds and reads `gpuemu.toml`.

mod builtin_check;
mod default_schema;
mod domain;
mod feasible;
mod file;
mod kernel;
mod op;
mod schema;
mod values;

use crate::check::check_table;
use crate::document::{Report, Section};
use crate::error::ContractErrors;
use crate::keys::FILE;
use crate::{Ci, Contract, DType, LintPolicy, Policies, Project, Strategy, Validation};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// The name of the file.
pub const FILE_NAME: &str = "gpuemu.toml";

impl Contract {
    /// The `gpuemu.toml` of a folder: the one in it, or else in the nearest folder above it.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn find(start: &Path) -> Result<PathBuf, ContractErrors> {
        let folder = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
        folder.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file()).ok_or_else(|| {
            let message = format!("no {FILE_NAME} here or in any folder above");
            let help = format!("write a {FILE_NAME} beside Cargo.toml or pyproject.toml, or set GPUEMU_CONFIG to one");
            ContractErrors::whole(&folder, message, Some(help))
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or those of [`Contract::parse`].
    pub fn load(path: &Path) -> Result<Contract, ContractErrors> {
        let bytes = std::fs::read(path)
            .map_err(|error| ContractErrors::whole(path, format!("cannot be read: {error}"), None))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            ContractErrors::whole(path, format!("is not UTF-8 text, line {line}"), None)
        })?;
        Contract::parse(&text, path)
    }

    /// Reads a text that stands (or would stand) in the file `path`: paths in it start at that file's folder, and the
    /// files it names must be there.
    ///
    /// # Errors
    ///
    /// Everything wrong with it, each with its place.
    pub fn parse(text: &str, path: &Path) -> Result<Contract, ContractErrors> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut report = Report::new(text, path);
        let (document, syntax) = DeTable::parse_recoverable(text);
        let mut line = 0;
        for error in &syntax {
            let span = error.span().unwrap_or(0..0);
            // Recovery often trips over the same line again, which would only bury the cause.
            if report.line(&span) > line {
                line = report.line(&span);
                let message = error.message().trim_end_matches(", expected nothing");
                report.error(span, format!("not valid TOML: {message}"), None);
            }
        }
        // What recovery makes of a broken text need not be what was meant: its keys are judged once it reads.
        if let Some(errors) = report.finish() {
            return Err(errors);
        }
        let mut report = Report::new(text, path);
        let file = Section::new(document.get_ref(), 0..0);
        check_table(&mut report, &file, &FILE);
        let contract = read(&mut report, &file);
        match report.finish() {
            Some(errors) => Err(errors),
            None => Ok(contract),
        }
    }
}

fn read(report: &mut Report<'_>, file: &Section<'_>) -> Contract {
    let path = std::path::absolute(report.path).unwrap_or_else(|_| report.path.to_owned());
    let root = path.parent().unwrap_or(Path::new(".")).to_owned();
    let validation = read_validation(file.section("validation"));
    let ops = op::read_ops(report, file, &root, &validation);
    let kernels = kernel::read_kernels(report, file, &root, &validation, &ops);
    Contract {
        project: read_project(file.section("project")),
        policies: read_policies(file.section("policies")),
        ci: read_ci(file.section("ci")),
        path,
        validation,
        ops,
        kernels,
    }
}

fn read_project(section: Option<Section<'_>>) -> Project {
    let text = |key| section.and_then(|section| section.text(key)).map(str::to_owned);
    Project {
        name: text("name").unwrap_or_else(|| "unnamed".to_owned()),
        version: text("version"),
        framework: text("framework"),
    }
}

fn read_validation(section: Option<Section<'_>>) -> Validation {
    let get = |key| section.and_then(|section| section.get(key));
    let flag = |key| get(key).and_then(|entry| entry.bool()).unwrap_or(true);
    let integer = |key| get(key).and_then(|entry| entry.integer());
    Validation {
        dtypes: get("dtypes").map_or_else(|| vec![DType::Float32], |entry| values::dtypes(&entry)),
        seed: integer("seed").and_then(|seed| seed.try_into().ok()).unwrap_or(42),
        cases: integer("cases").and_then(|cases| cases.try_into().ok()).unwrap_or(30),
        strategies: get("strategies").map_or_else(
            || vec![Strategy::Boundary, Strategy::Adversarial, Strategy::Layout],
            |entry| values::strategies(&entry),
        ),
        check_nan: flag("check_nan"),
        check_inf: flag("check_inf"),
        tolerances: get("tolerances").map_or_else(BTreeMap::new, |entry| values::tolerances(&entry)),
    }
}

fn read_policies(section: Option<Section<'_>>) -> Policies {
    let get = |key| section.and_then(|section| section.get(key));
    let default = Policies::default();
    Policies {
        accuracy: get("accuracy").and_then(|entry| entry.bool()).unwrap_or(default.accuracy),
        fail_on_regression: get("fail_on_regression")
            .and_then(|entry| entry.bool())
            .unwrap_or(default.fail_on_regression),
        lint: match get("lint").and_then(|entry| entry.text()) {
            Some("warning") => LintPolicy::Warning,
            Some("never") => LintPolicy::Never,
            _ => LintPolicy::Error,
        },
        warn_threshold: get("warn_threshold").and_then(|entry| entry.number()).unwrap_or(default.warn_threshold),
    }
}

fn read_ci(section: Option<Section<'_>>) -> Ci {
    let get = |key| section.and_then(|section| section.get(key));
    let integer = |key| get(key).and_then(|entry| entry.integer());
    let default = Ci::default();
    Ci {
        quick_dtypes: get("quick_dtypes").map_or(default.quick_dtypes, |entry| values::dtypes(&entry)),
        thorough_timeout: integer("thorough_timeout")
            .and_then(|seconds| seconds.try_into().ok())
            .unwrap_or(default.thorough_timeout),
        parallel_jobs: integer("parallel_jobs").and_then(|jobs| jobs.try_into().ok()).unwrap_or(default.parallel_jobs),
    }
}
