//! Holds an op against its built-in: how many inputs and outputs, what they hold, which parameters.

use super::schema::{Places, TensorPlace};
use crate::builtin::{Builtin, ParamDefault, RoleKind};
use crate::check::{join, suggestion};
use crate::document::{Entry, Report, Section};
use crate::{DType, OutputShape, Param, ParamValue, Schema, Shape, TensorDType, TensorDecl};
use std::ops::Range;

/// Checks parameters, and makes floats of integers where the built-in wants floats.
pub(super) fn check_params(report: &mut Report<'_>, op: &Section<'_>, builtin: &Builtin, params: &mut [Param]) {
    let entries = op.section("params").map(|params| params.entries()).unwrap_or_default();
    for entry in &entries {
        let Some(known) = builtin.param(entry.key) else {
            let names = || builtin.params.iter().map(|param| param.name);
            let help = suggestion(entry.key, names()).unwrap_or_else(|| match join(names()) {
                names if names.is_empty() => format!("{} has no parameters", builtin.name),
                names => format!("parameters of {}: {names}", builtin.name),
            });
            report.error(
                entry.key_span(),
                format!("the built-in {} has no parameter `{}`", builtin.name, entry.key),
                help,
            );
            continue;
        };
        let Some(param) = params.iter_mut().find(|param| param.name == entry.key) else { continue };
        check_values(report, entry, known.default, known.choices, param);
    }
    for known in builtin.params.iter().filter(|known| known.default == ParamDefault::RequiredInt) {
        if !entries.iter().any(|entry| entry.key == known.name) {
            report.error(
                op.span(),
                format!("the built-in {} needs the parameter `{}`", builtin.name, known.name),
                format!("write `{} = ...` under [ops.params]: {}", known.name, known.default.type_name()),
            );
        }
    }
}

fn check_values(
    report: &mut Report<'_>,
    entry: &Entry<'_>,
    default: ParamDefault,
    choices: &[&str],
    param: &mut Param,
) {
    let items = entry.items();
    for (position, value) in param.candidates.iter_mut().enumerate() {
        let span = items.get(position).map_or(entry.span(), |item| item.span());
        if !default.accepts(value) {
            let message = format!("`{}` must be {}, not `{value}`", entry.key, default.type_name());
            report.error(span, message, None);
            continue;
        }
        match value {
            ParamValue::Int(integer) if matches!(default, ParamDefault::Float(_) | ParamDefault::DerivedFloat(_)) => {
                *value = ParamValue::Float(*integer as f64);
            }
            ParamValue::Text(text) if !choices.is_empty() && !choices.contains(&text.as_str()) => {
                let help = suggestion(text, choices.iter().copied())
                    .unwrap_or_else(|| format!("expected {}", join(choices.iter().copied())));
                report.error(span, format!("`{text}` is no value of `{}`", entry.key), help);
            }
            _ => {}
        }
    }
}

/// Checks inputs and outputs.
pub(super) fn check_tensors(
    report: &mut Report<'_>,
    op: &Section<'_>,
    builtin: &Builtin,
    schema: &Schema,
    params: &[Param],
    dtypes: &[DType],
    places: &Places,
) {
    let inputs_span =
        || places.inputs_key.clone().or_else(|| op.get("input_names").map(|entry| entry.span())).unwrap_or(op.span());
    let (given, least, most) = (schema.inputs.len(), builtin.min_inputs(), builtin.inputs.len());
    if given < least || given > most {
        let count = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let plural = if most == 1 { "" } else { "s" };
        let roles: Vec<String> = builtin
            .inputs
            .iter()
            .map(|role| if role.optional { format!("{}?", role.name) } else { role.name.to_owned() })
            .collect();
        report.error(
            inputs_span(),
            format!("the built-in {} has {count} input{plural}, the op {given}", builtin.name),
            format!("in this order: {}", roles.join(", ")),
        );
    }
    let results = schema.results().count();
    // No outputs at all is reported where the schema is read.
    if results != builtin.outputs.len() && results > 0 {
        let plural = if builtin.outputs.len() == 1 { "" } else { "s" };
        report.error(
            places.outputs_key.clone().unwrap_or_else(inputs_span),
            format!("the built-in {} has {} output{plural}, the op {results}", builtin.name, builtin.outputs.len()),
            "an input with `inout = true` is an output too".to_owned(),
        );
    }
    for ((tensor, place), role) in schema.inputs.iter().zip(&places.inputs).zip(builtin.inputs) {
        if let RoleKind::Index(_) = role.kind {
            check_index(report, builtin, tensor, place, dtypes);
        }
    }
    if let TensorDType::Fixed(DType::Int64) = builtin.output_dtype {
        for (tensor, place) in
            schema.outputs.iter().zip(&places.outputs).filter(|(tensor, _)| !is_integer(tensor, dtypes))
        {
            let message = format!("{} answers with integers, and `{}` is a float", builtin.name, tensor.name);
            let help = format!("write `{} = {{ dims = [...], dtype = \"int64\" }}`", tensor.name);
            report.error(place.dtype.clone().unwrap_or(place.dims.clone()), message, help);
        }
    }
    check_axis(report, op, schema, params, places);
}

fn is_integer(tensor: &TensorDecl, dtypes: &[DType]) -> bool {
    match tensor.dtype {
        TensorDType::Fixed(dtype) => !dtype.is_float(),
        TensorDType::Same => dtypes.iter().all(|dtype| !dtype.is_float()),
    }
}

/// An index that is no integer, or that may point anywhere, makes a wrong test of a right kernel.
fn check_index(report: &mut Report<'_>, builtin: &Builtin, tensor: &TensorDecl, place: &TensorPlace, dtypes: &[DType]) {
    let name = &tensor.name;
    let help = format!(
        "write `{name} = {{ dims = [...], dtype = \"int64\", domain = [0, \"N-1\"] }}`, N being the size indexed"
    );
    if !is_integer(tensor, dtypes) {
        let span = place.dtype.clone().unwrap_or(place.dims.clone());
        report.error(span, format!("`{name}` indexes in {}, so it must be of an integer dtype", builtin.name), help);
    } else if tensor.domain.is_none() && tensor.generate.is_none() {
        let message = format!("`{name}` indexes in {}, so it needs a domain", builtin.name);
        report.error(place.key.clone(), message, help);
    }
}

/// `axis` must be one of the first input's.
fn check_axis(report: &mut Report<'_>, op: &Section<'_>, schema: &Schema, params: &[Param], places: &Places) {
    let Some(entry) = op.section("params").and_then(|params| params.get("axis")) else { return };
    let (Some(first), false) = (schema.inputs.first(), places.inputs.is_empty()) else { return };
    let OutputShape::Declared(Shape::Fixed(axes)) = &first.shape else { return };
    let rank = axes.len() as i64;
    let items = entry.items();
    let candidates = params.iter().find(|param| param.name == "axis").map_or(&[][..], |param| &param.candidates);
    for (position, value) in candidates.iter().enumerate() {
        let span: Range<usize> = items.get(position).map_or(entry.span(), |item| item.span());
        if let ParamValue::Int(axis) = value
            && !(-rank..rank).contains(axis)
        {
            let help = (rank > 0).then(|| format!("from {} to {}", -rank, rank - 1));
            report.error(span, format!("`{}` has no axis {axis}, its rank is {rank}", first.name), help);
        }
    }
}
