//! Reads `[[kernels]]`.

use super::schema::Scope;
use super::{file, values};
use crate::check::{join, suggestion};
use crate::document::{Entry, Report, Section};
use crate::{
    Argument, ArtifactChecks, DType, Expression, Kernel, Launch, Measured, Op, Param, ParamValue, Sanitizers,
    Validation,
};
use std::collections::BTreeMap;
use std::path::Path;

/// PTX types a typed argument may have.
const ARGUMENT_TYPES: [&str; 14] =
    ["f16", "bf16", "f32", "f64", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "b32", "b64"];
/// Threads a block may have, on every architecture so far.
const MAX_THREADS: i64 = 1024;

/// Every kernel that has a name.
pub(super) fn read_kernels(
    report: &mut Report<'_>,
    file: &Section<'_>,
    root: &Path,
    validation: &Validation,
    ops: &[Op],
) -> Vec<Kernel> {
    let mut names: Vec<(String, usize)> = Vec::new();
    let mut kernels = Vec::new();
    for section in file.get("kernels").into_iter().flat_map(|entry| entry.items()).filter_map(|item| item.section()) {
        if let Some(entry) = section.get("name") {
            file::check_name(report, &entry, "kernel", &names);
        }
        if let Some(kernel) = read_kernel(report, &section, root, validation, ops) {
            names.push((kernel.name.clone(), kernel.line));
            kernels.push(kernel);
        }
    }
    kernels
}

fn read_kernel(
    report: &mut Report<'_>,
    section: &Section<'_>,
    root: &Path,
    validation: &Validation,
    ops: &[Op],
) -> Option<Kernel> {
    let op_name = section.get("op");
    let op = op_name.and_then(|entry| find_op(report, &entry, ops));
    let reference = section.get("reference").and_then(|entry| file::reference(report, &entry, root));
    let checks = section.section("artifact_checks");
    let targets = read_targets(report, checks);
    if op_name.is_none() && section.get("reference").is_none() && targets.is_empty() {
        report.error(
            section.span(),
            "the kernel has no `op` and no `reference`",
            "write `op = ...`, the name of one of [[ops]], or `targets` in its [kernels.artifact_checks] to test its \
             compiled form alone"
                .to_owned(),
        );
    }
    let mut tolerances = op.map_or_else(|| validation.tolerances.clone(), |op| op.tolerances.clone());
    tolerances.extend(section.get("tolerances").map(|entry| values::tolerances(&entry)).unwrap_or_default());
    let dtypes = match section.get("dtypes") {
        Some(entry) => values::dtypes(&entry),
        None => op.map_or_else(|| validation.dtypes.clone(), |op| op.dtypes.clone()),
    };
    let launch = match (section.section("launch"), op_name, op) {
        (Some(launch), None, _) => {
            report.error(
                launch.span(),
                "the launch uses an op's tensors and dimensions, and the kernel names no op",
                "write `op = ...` in its [[kernels]]".to_owned(),
            );
            None
        }
        (Some(launch), _, Some(op)) => read_launch(report, &launch, op),
        _ => None,
    };
    Some(Kernel {
        name: section.text("name")?.to_owned(),
        line: report.line(&section.span()),
        op: section.text("op").map(str::to_owned),
        reference,
        source: section.get("source").and_then(|entry| read_source(report, &entry, root)),
        entry: section.text("entry").map(str::to_owned),
        dtypes,
        launch,
        sanitizers: read_sanitizers(section.section("sanitizers")),
        measured: read_measured(report, section, op),
        targets,
        artifact_checks: read_checks(checks),
        compile_options: read_options(report, section),
        budget: pairs(section, "budget", |entry| entry.number()),
        allow: pairs(section, "allow", |entry| entry.text().map(str::to_owned)),
        tolerances,
        invariants: match (section.section("invariants"), op) {
            (Some(written), _) => values::invariants(report, written),
            (None, Some(op)) => op.invariants.clone(),
            (None, None) => Default::default(),
        },
    })
}

fn find_op<'o>(report: &mut Report<'_>, entry: &Entry<'_>, ops: &'o [Op]) -> Option<&'o Op> {
    let name = entry.text()?;
    if let Some(op) = ops.iter().find(|op| op.name == name) {
        return Some(op);
    }
    let known = || ops.iter().map(|op| op.name.as_str());
    let help = suggestion(name, known()).unwrap_or_else(|| match join(known()) {
        names if names.is_empty() => "the file has no [[ops]]".to_owned(),
        names => format!("ops: {names}"),
    });
    report.error(entry.span(), format!("no op is named `{name}`"), help);
    None
}

fn read_source(report: &mut Report<'_>, entry: &Entry<'_>, root: &Path) -> Option<std::path::PathBuf> {
    let text = entry.text()?;
    if !text.trim().is_empty() && !text.ends_with(".cu") && !text.ends_with(".ptx") {
        report.error(entry.span(), format!("the source `{text}` is neither a .cu nor a .ptx file"), None);
        return None;
    }
    file::existing(report, entry, root)
}

fn read_targets(report: &mut Report<'_>, section: Option<Section<'_>>) -> Vec<String> {
    let entry = section.and_then(|section| section.get("targets"));
    for item in entry.map(|entry| entry.items()).unwrap_or_default() {
        let text = item.text().unwrap_or_default();
        let number = text.strip_prefix("sm_").unwrap_or_default().trim_end_matches(['a', 'f']);
        if !text.is_empty() && (number.is_empty() || !number.chars().all(|c| c.is_ascii_digit())) {
            report.error(
                item.span(),
                format!("`{text}` is no target"),
                "targets are written \"sm_80\" or \"sm_90a\"".to_owned(),
            );
        }
    }
    let mut targets = values::texts(entry);
    let mut seen = std::collections::BTreeSet::new();
    targets.retain(|target| seen.insert(target.clone()));
    targets
}

/// Options that say what is compiled, into what and for which target: gpuemu gives them itself.
const OWN_OPTIONS: [&str; 12] = [
    "-o",
    "--output-file",
    "-ptx",
    "--ptx",
    "-cubin",
    "--cubin",
    "-c",
    "--compile",
    "-arch",
    "--gpu-architecture",
    "-gencode",
    "--generate-code",
];

fn read_options(report: &mut Report<'_>, section: &Section<'_>) -> Vec<String> {
    let entry = section.get("compile_options");
    for item in entry.map(|entry| entry.items()).unwrap_or_default() {
        let text = item.text().unwrap_or_default();
        if OWN_OPTIONS.contains(&text.split('=').next().unwrap_or_default()) {
            let help = "it compiles the source to PTX once for each of `targets`".to_owned();
            report.error(item.span(), format!("`{text}` is an option that gpuemu gives itself"), help);
        }
    }
    values::texts(entry)
}

/// The entries of a table that read as what it holds.
fn pairs<T>(section: &Section<'_>, key: &str, value: impl Fn(&Entry<'_>) -> Option<T>) -> BTreeMap<String, T> {
    let entries = section.section(key).map(|section| section.entries()).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.to_owned(), value(entry)?))).collect()
}

fn read_sanitizers(section: Option<Section<'_>>) -> Sanitizers {
    let flag = |key| section.as_ref().and_then(|section| section.get(key)?.bool()).unwrap_or(true);
    Sanitizers {
        races: flag("races"),
        uninitialised_reads: flag("uninitialised_reads"),
        input_writes: flag("input_writes"),
        index_wraps: flag("index_wraps"),
    }
}

fn read_measured(report: &mut Report<'_>, section: &Section<'_>, op: Option<&Op>) -> Option<Measured> {
    let measured = section.section("measured")?;
    let Some(op) = op.filter(|_| section.get("launch").is_some()) else {
        let help = "write `op = ...` and [kernels.launch]".to_owned();
        report.error(measured.span(), "nothing says how the kernel is launched", help);
        return None;
    };
    let entries = |key| measured.section(key).map(|section| section.entries()).unwrap_or_default();
    let mut unknown = |entry: &Entry<'_>, what: &str, names: Vec<&str>| {
        if names.contains(&entry.key) {
            return false;
        }
        let help = suggestion(entry.key, names.iter().copied()).unwrap_or_else(|| match join(names) {
            names if names.is_empty() => format!("the op has no {what}s"),
            names => format!("declared are {names}"),
        });
        report.error(entry.key_span(), format!("op `{}` has no {what} `{}`", op.name, entry.key), help);
        true
    };
    let mut dims = Vec::new();
    for entry in entries("dims") {
        let names = op.schema.dims.iter().map(|(name, _)| name.as_str()).collect();
        if !unknown(&entry, "dimension", names)
            && let Some(size) = entry.integer().and_then(|size| size.try_into().ok())
        {
            dims.push((entry.key.to_owned(), size));
        }
    }
    let mut params = Vec::new();
    for entry in entries("params") {
        let names = op.params.iter().map(|param| param.name.as_str()).collect();
        if !unknown(&entry, "parameter", names)
            && let Some(value) = scalar(&entry)
        {
            params.push((entry.key.to_owned(), value));
        }
    }
    let missing =
        op.schema.dims.iter().map(|(name, _)| name).filter(|name| dims.iter().all(|(known, _)| known != *name));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if !missing.is_empty()
        && let Some(entry) = measured.get("dims")
    {
        report.error(entry.span(), format!("the launch that is measured has no size of {}", join(missing)), None);
    }
    let dtype = measured.text("dtype").and_then(DType::from_name);
    Some(Measured { dims, params, dtype })
}

fn scalar(entry: &Entry<'_>) -> Option<ParamValue> {
    match (entry.bool(), entry.integer(), entry.number(), entry.text()) {
        (Some(value), ..) => Some(ParamValue::Bool(value)),
        (_, Some(value), ..) => value.try_into().ok().map(ParamValue::Int),
        (_, _, Some(value), _) => Some(ParamValue::Float(value)),
        (.., value) => value.map(|value| ParamValue::Text(value.to_owned())),
    }
}

fn read_checks(section: Option<Section<'_>>) -> ArtifactChecks {
    let default = ArtifactChecks::default();
    let Some(section) = section else { return default };
    let integer = |key| section.get(key).and_then(|entry| entry.integer());
    ArtifactChecks {
        max_registers: integer("max_registers").and_then(|n| n.try_into().ok()).unwrap_or(default.max_registers),
        max_spills: integer("max_spills").and_then(|n| n.try_into().ok()).unwrap_or(default.max_spills),
        max_local_memory: integer("max_local_memory")
            .and_then(|n| n.try_into().ok())
            .unwrap_or(default.max_local_memory),
        required_patterns: values::texts(section.get("required_patterns")),
        forbidden_patterns: values::texts(section.get("forbidden_patterns")),
    }
}

/// Instructions of a block after which a kernel is said not to end, by default.
const BUDGET: u64 = 1 << 26;

fn read_launch(report: &mut Report<'_>, section: &Section<'_>, op: &Op) -> Option<Launch> {
    let scope = Scope::new(&op.schema.dims, &op.params);
    let mut list = |key: &str| -> Option<Vec<Expression>> {
        let items = section.get(key)?.items();
        Some(items.iter().filter_map(|item| scope.expression(report, item)).collect())
    };
    let (grid, block) = (list("grid"), list("block"));
    if let (Some(entry), Some(block)) = (section.get("block"), &block) {
        let threads = block.iter().try_fold(1i64, |threads, size| threads.checked_mul(size.evaluate(&[]).ok()?));
        if let Some(threads) = threads.filter(|threads| !(1..=MAX_THREADS).contains(threads)) {
            report.error(entry.span(), format!("a block has 1 to {MAX_THREADS} threads, not {threads}"), None);
        }
    }
    let shared = section.get("shared").and_then(|entry| scope.expression(report, &entry));
    let args = section.get("args").map(|entry| entry.items()).unwrap_or_default();
    let args = args.iter().filter_map(|item| read_argument(report, item, op, &scope)).collect();
    let budget = section.get("budget").and_then(|entry| entry.integer()?.try_into().ok());
    Some(Launch {
        grid: grid?,
        block: block?,
        shared: shared.unwrap_or(Expression::Literal(0)),
        budget: budget.unwrap_or(BUDGET),
        args,
    })
}

fn read_argument(report: &mut Report<'_>, entry: &Entry<'_>, op: &Op, scope: &Scope<'_>) -> Option<Argument> {
    let Some(text) = entry.text() else { return scope.expression(report, entry).map(Argument::Integer) };
    let tensors = || op.schema.inputs.iter().chain(&op.schema.outputs).map(|tensor| tensor.name.as_str());
    if tensors().any(|name| name == text) {
        return Some(Argument::Tensor(text.to_owned()));
    }
    if let Some((kind, value)) = text.split_once(':') {
        if kind.trim() == "workspace" {
            return match Expression::parse(value.trim()) {
                Ok(bytes) => Some(Argument::Workspace(scope.known(report, entry, bytes))),
                Err(error) => {
                    let at = text.len() - value.trim_start().len() + error.at;
                    report.error(entry.span_within(report.text, at), error.message, None);
                    None
                }
            };
        }
        return read_typed(report, entry, kind.trim(), value.trim(), op);
    }
    // A lone word that nothing declares is as likely a tensor as a dimension.
    let names = || {
        let sizes = op.schema.dims.iter().map(|(name, _)| name.as_str());
        tensors().chain(sizes).chain(op.params.iter().map(|param| param.name.as_str()))
    };
    match Expression::parse(text) {
        Ok(Expression::Name(name)) if !names().any(|known| known == name) => {
            let help = suggestion(&name, names()).unwrap_or_else(|| format!("declared are {}", join(names())));
            report.error(entry.span(), format!("`{name}` is no tensor, dimension or integer parameter"), help);
            None
        }
        Ok(Expression::Name(name)) if op.params.iter().any(|p| p.name == name && !super::schema::is_integer(p)) => {
            let text = op.params.iter().any(|param| param.name == name && !is_numeric(param));
            let help = (!text).then(|| format!("say its type, such as \"f32:{name}\""));
            let what = if text { "text, which no kernel takes" } else { "no integer" };
            report.error(entry.span(), format!("the parameter `{name}` is {what}"), help);
            None
        }
        Ok(_) => scope.expression(report, entry).map(Argument::Integer),
        Err(error) => {
            report.error(entry.span_within(report.text, error.at), error.message, None);
            None
        }
    }
}

fn is_numeric(param: &Param) -> bool {
    !param.candidates.iter().any(|value| matches!(value, ParamValue::Text(_)))
}

fn read_typed(report: &mut Report<'_>, entry: &Entry<'_>, kind: &str, value: &str, op: &Op) -> Option<Argument> {
    if !ARGUMENT_TYPES.contains(&kind) {
        let help = suggestion(kind, ARGUMENT_TYPES).unwrap_or_else(|| format!("types: {}", join(ARGUMENT_TYPES)));
        report.error(entry.span(), format!("`{kind}` is no type of a kernel's argument"), help);
        return None;
    }
    let params = || op.params.iter().filter(|param| is_numeric(param)).map(|param| param.name.as_str());
    let is_param = params().any(|name| name == value);
    let is_float = kind.contains('f');
    let is_number = if is_float { value.parse::<f64>().is_ok() } else { value.parse::<i128>().is_ok() };
    if !is_param && !is_number {
        let number = if is_float { "a number" } else { "an integer" };
        let help =
            suggestion(value, params()).unwrap_or_else(|| format!("expected {number} or the name of a parameter"));
        report.error(entry.span(), format!("`{value}` is no value of type {kind}"), help);
        return None;
    }
    Some(Argument::Typed(kind.to_owned(), value.to_owned()))
}
