//! Reads `[[ops]]`.

use super::{builtin_check, default_schema, feasible, file, schema, values};
use crate::check::{is_function, is_identifier, join, suggestion};
use crate::document::{Entry, Report, Section};
use crate::expression_parser::is_reserved;
use crate::{
    Builtin, Compute, DType, EdgePolicy, EmptyPolicy, ExecutionMode, Invariants, NanPolicy, Op, Param, ParamValue,
    Reference, Relations, Schema, Strategy, Validation,
};
use std::path::Path;

/// Every op. One with errors is there too, as far as it reads, so that kernels can be held against it.
pub(super) fn read_ops(report: &mut Report<'_>, file: &Section<'_>, root: &Path, validation: &Validation) -> Vec<Op> {
    let mut names: Vec<(String, usize)> = Vec::new();
    let mut ops = Vec::new();
    for section in file.get("ops").into_iter().flat_map(|entry| entry.items()).filter_map(|item| item.section()) {
        if let Some(entry) = section.get("name") {
            file::check_name(report, &entry, "op", &names);
        }
        let op = read_op(report, &section, root, validation);
        names.push((op.name.clone(), op.line));
        ops.push(op);
    }
    ops
}

fn read_op(report: &mut Report<'_>, section: &Section<'_>, root: &Path, validation: &Validation) -> Op {
    let reference = section.get("reference").and_then(|entry| file::reference(report, &entry, root));
    let builtin = match &reference {
        Some(Reference::Builtin(name)) => Builtin::find(name),
        _ => None,
    };
    let op_script = section.get("op_script").and_then(|entry| file::existing(report, &entry, root));
    let module = section.get("module").and_then(|entry| read_module(report, &entry));
    let (dtypes, strategies) = read_selection(report, section, validation);
    let mut params = read_params(report, section);
    if let Some(builtin) = builtin {
        builtin_check::check_params(report, section, builtin, &mut params);
    }
    let (schema, places) = match section.section("schema") {
        Some(written) => schema::read_schema(report, section, &written, &params),
        None => (default_schema::schema(report, section, builtin, &params), schema::Places::default()),
    };
    if let Some(builtin) = builtin {
        builtin_check::check_tensors(report, section, builtin, &schema, &params, &dtypes, &places);
    }
    feasible::check(report, &schema, &params, &places);
    let flag = |key, default| section.get(key).and_then(|entry| entry.bool()).unwrap_or(default);
    let mut tolerances = validation.tolerances.clone();
    tolerances.extend(section.get("tolerances").map(|entry| values::tolerances(&entry)).unwrap_or_default());
    let invariants = match section.section("invariants") {
        Some(section) => values::invariants(report, section),
        None => Invariants::default(),
    };
    Op {
        kernel: None,
        name: section.text("name").unwrap_or_default().to_owned(),
        line: report.line(&section.span()),
        module,
        op_script,
        execution_mode: match section.text("execution_mode") {
            Some("daemon_orchestrated") => ExecutionMode::DaemonOrchestrated,
            Some("script_based") => ExecutionMode::ScriptBased,
            _ => ExecutionMode::ClientSide,
        },
        frameworks: values::texts(section.get("frameworks")),
        compute: section.text("compute").and_then(Compute::from_name),
        relations: read_relations(report, section.section("relations"), &schema),
        schema,
        params,
        invariants,
        tolerances,
        dtypes,
        cases: section.get("cases").and_then(|entry| entry.integer()?.try_into().ok()).unwrap_or(validation.cases),
        strategies,
        edges: EdgePolicy {
            nan: match section.text("nan") {
                Some("ignore") => NanPolicy::Ignore,
                _ => NanPolicy::Propagate,
            },
            empty: match section.text("empty") {
                Some("zero") => EmptyPolicy::Zero,
                Some("nan") => EmptyPolicy::Nan,
                Some("error") => EmptyPolicy::Error,
                _ => EmptyPolicy::Natural,
            },
        },
        check_nan: flag("check_nan", validation.check_nan),
        check_inf: flag("check_inf", validation.check_inf),
        // A wrong or missing one is reported already, and nobody gets to see this op.
        reference: reference.unwrap_or(Reference::Builtin(String::new())),
    }
}

/// A module, with or without `:function`.
fn read_module(report: &mut Report<'_>, entry: &Entry<'_>) -> Option<String> {
    let text = entry.text().filter(|text| !text.trim().is_empty())?;
    if !is_function(text) && !text.split('.').all(is_identifier) {
        let message = format!("`{text}` names no Python callable");
        report.error(entry.span(), message, "expected `package.module:function`".to_owned());
    }
    Some(text.to_owned())
}

/// Dtypes and strategies that are tests: `single_dtype_*` select dtypes and go.
fn read_selection(
    report: &mut Report<'_>,
    section: &Section<'_>,
    validation: &Validation,
) -> (Vec<DType>, Vec<Strategy>) {
    let written = section.get("strategies");
    let mut strategies = written.as_ref().map_or_else(|| validation.strategies.clone(), values::strategies);
    let dtypes = section.get("dtypes").map_or_else(|| validation.dtypes.clone(), |entry| values::dtypes(&entry));
    let selected: Vec<DType> = strategies.iter().filter_map(|strategy| strategy.selects()).collect();
    if selected.is_empty() {
        return (dtypes, strategies);
    }
    let kept: Vec<DType> = dtypes.iter().copied().filter(|dtype| selected.contains(dtype)).collect();
    if kept.is_empty() && !dtypes.is_empty() {
        let span = written.or(section.get("dtypes")).map_or(section.span(), |entry| entry.span());
        report.error(
            span,
            format!("the strategies keep {} of the dtypes {}, which leaves none", names(&selected), names(&dtypes)),
            "`single_dtype_f32` keeps float32 alone, `single_dtype_f16` float16".to_owned(),
        );
    }
    strategies.retain(|strategy| strategy.selects().is_none());
    if strategies.is_empty() {
        strategies.push(Strategy::Default);
    }
    (kept, strategies)
}

fn names(dtypes: &[DType]) -> String {
    join(dtypes.iter().map(|dtype| dtype.name()))
}

fn read_params(report: &mut Report<'_>, section: &Section<'_>) -> Vec<Param> {
    let entries = section.section("params").map(|params| params.entries()).unwrap_or_default();
    for entry in entries.iter().filter(|entry| is_reserved(entry.key)) {
        let message = format!("`{}` means something else in expressions", entry.key);
        report.error(entry.key_span(), message, "rename the parameter".to_owned());
    }
    let value = |entry: &Entry<'_>| {
        let integer = || entry.integer().and_then(|value| value.try_into().ok()).map(ParamValue::Int);
        let float = || entry.number().filter(|value| !value.is_nan()).map(ParamValue::Float);
        let text = || entry.text().map(|text| ParamValue::Text(text.to_owned()));
        entry.bool().map(ParamValue::Bool).or_else(integer).or_else(float).or_else(text)
    };
    entries
        .iter()
        .map(|entry| Param {
            name: entry.key.to_owned(),
            candidates: match value(entry) {
                Some(value) => vec![value],
                None => entry.items().iter().filter_map(value).collect(),
            },
        })
        .filter(|param| !param.candidates.is_empty())
        .collect()
}

fn read_relations(report: &mut Report<'_>, section: Option<Section<'_>>, schema: &Schema) -> Relations {
    let Some(section) = section else { return Relations::default() };
    let mut dimension = |key| {
        let entry = section.get(key)?;
        let name = entry.text()?;
        if !schema.dims.iter().any(|(known, _)| known == name) {
            let known = || schema.dims.iter().map(|(known, _)| known.as_str());
            let help = suggestion(name, known()).unwrap_or_else(|| match join(known()) {
                names if names.is_empty() => "the op has no dimensions".to_owned(),
                names => format!("dimensions: {names}"),
            });
            report.error(entry.span(), format!("`{name}` is no dimension of the op"), help);
        }
        Some(name.to_owned())
    };
    let (batch, permutes) = (dimension("batch"), dimension("permutes"));
    let flag = |key, default| section.get(key).and_then(|entry| entry.bool()).unwrap_or(default);
    Relations {
        batch,
        permutes,
        deterministic: flag("deterministic", false),
        inputs_untouched: flag("inputs_untouched", true),
    }
}
