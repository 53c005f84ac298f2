//! Reads `[ops.schema]`: dimensions, tensors, constraints.

use super::{domain, values};
use crate::check::{join, suggestion};
use crate::document::{Entry, Report, Section};
use crate::expression_parser::is_reserved;
use crate::{
    Condition, DType, Dimension, Expression, OutputShape, Param, ParamValue, Schema, Shape, TensorDType, TensorDecl,
};
use std::ops::Range;

/// Where the parts of a schema stand; empty for an op that writes none.
#[derive(Default)]
pub(super) struct Places {
    /// The key `inputs`.
    pub inputs_key: Option<Range<usize>>,
    /// The key `outputs`.
    pub outputs_key: Option<Range<usize>>,
    /// In the order of the schema's inputs.
    pub inputs: Vec<TensorPlace>,
    /// In the order of the schema's outputs.
    pub outputs: Vec<TensorPlace>,
    /// The whole of `where`.
    pub constraints: Option<Range<usize>>,
    /// Its entries.
    pub constraint: Vec<Range<usize>>,
}

/// Where the parts of a tensor stand.
#[derive(Clone)]
pub(super) struct TensorPlace {
    pub key: Range<usize>,
    pub dims: Range<usize>,
    pub axes: Vec<Range<usize>>,
    pub dtype: Option<Range<usize>>,
    pub domain: Option<Range<usize>>,
}

/// The names an expression may use.
pub(super) struct Scope<'s> {
    dims: Vec<&'s str>,
    params: &'s [Param],
}

impl<'s> Scope<'s> {
    pub fn new(dims: &'s [(String, Dimension)], params: &'s [Param]) -> Self {
        Scope { dims: dims.iter().map(|(name, _)| name.as_str()).collect(), params }
    }

    /// The dimensions, then the integer and boolean parameters.
    fn names(&self) -> Vec<&'s str> {
        let integers = self.params.iter().filter(|param| is_integer(param)).map(|param| param.name.as_str());
        self.dims.iter().copied().chain(integers).collect()
    }

    /// Reads an expression and reports names that nothing declares. `None` when the entry is no expression.
    pub fn expression(&self, report: &mut Report<'_>, entry: &Entry<'_>) -> Option<Expression> {
        let expression = match entry.text() {
            Some(text) => Expression::parse(text).ok()?,
            None => Expression::Literal(entry.integer()?.try_into().ok()?),
        };
        Some(self.known(report, entry, expression))
    }

    /// An expression that an entry has a part of; names that are unknown are told.
    pub fn known(&self, report: &mut Report<'_>, entry: &Entry<'_>, expression: Expression) -> Expression {
        self.check_names(report, entry, &expression.names());
        expression
    }

    fn check_names(&self, report: &mut Report<'_>, entry: &Entry<'_>, used: &[&str]) {
        let known = self.names();
        for name in used.iter().filter(|name| !known.contains(name)) {
            let span = entry.span_within(report.text, find_word(entry.text().unwrap_or_default(), name));
            if self.params.iter().any(|param| param.name == **name) {
                report.error(span, format!("the parameter `{name}` is no integer, so no size can depend on it"), None);
                continue;
            }
            let help = suggestion(name, known.iter().copied()).unwrap_or_else(|| match join(known.iter().copied()) {
                names if names.is_empty() => "declare it under `dims`".to_owned(),
                names => format!("declare it under `dims`; declared are {names}"),
            });
            report.error(span, format!("`{name}` is no dimension and no integer parameter"), help);
        }
    }
}

pub(super) fn is_integer(param: &Param) -> bool {
    param.candidates.iter().all(|value| matches!(value, ParamValue::Int(_) | ParamValue::Bool(_)))
}

/// The byte where a word stands on its own in a text; 0 if it does not.
fn find_word(text: &str, word: &str) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .find(|&at| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
        .unwrap_or(0)
}

/// Reads a written schema.
pub(super) fn read_schema(
    report: &mut Report<'_>,
    op: &Section<'_>,
    section: &Section<'_>,
    params: &[Param],
) -> (Schema, Places) {
    let entries = |key| section.section(key).map(|section| section.entries()).unwrap_or_default();
    let mut schema = Schema::default();
    let mut places = Places {
        inputs_key: section.get("inputs").map(|entry| entry.key_span()),
        outputs_key: section.get("outputs").map(|entry| entry.key_span()),
        ..Places::default()
    };
    for entry in entries("dims") {
        check_dimension_name(report, &entry, params);
        let mut dimension = read_dimension(report, &entry).unwrap_or_default();
        if dimension.candidates.is_empty() {
            // Reported already; the name is declared all the same.
            dimension.candidates.push(1);
        }
        schema.dims.push((entry.key.to_owned(), dimension));
    }
    let scope = Scope::new(&schema.dims, params);
    for (entry, output) in entries("inputs")
        .into_iter()
        .map(|entry| (entry, false))
        .chain(entries("outputs").into_iter().map(|entry| (entry, true)))
    {
        if output && schema.inputs.iter().any(|input| input.name == entry.key) {
            report.error(
                entry.key_span(),
                format!("`{}` is an input and an output", entry.key),
                "an input that the op overwrites says `inout = true` and is no output besides".to_owned(),
            );
        }
        let (tensor, place) = read_tensor(report, &entry, &scope);
        let (tensors, known) = match output {
            true => (&mut schema.outputs, &mut places.outputs),
            false => (&mut schema.inputs, &mut places.inputs),
        };
        tensors.push(tensor);
        known.push(place);
    }
    if let Some(entry) = section.get("where") {
        places.constraints = Some(entry.span());
        for item in entry.items() {
            if let Some(Ok(condition)) = item.text().map(Condition::parse) {
                scope.check_names(report, &item, &condition.names());
                schema.constraints.push(condition);
                places.constraint.push(item.span());
            }
        }
    }
    if entries("outputs").is_empty() && !schema.inputs.iter().any(|input| input.inout) {
        let span = places.outputs_key.clone().unwrap_or(section.span());
        report.error(
            span,
            "the op has no output",
            "write `outputs = { out = [...] }`, or `inout = true` on an input".to_owned(),
        );
    }
    check_input_names(report, op, &schema);
    check_any_rank(report, &schema, &places);
    (schema, places)
}

fn check_dimension_name(report: &mut Report<'_>, entry: &Entry<'_>, params: &[Param]) {
    let name = entry.key;
    if is_reserved(name) {
        report.error(
            entry.key_span(),
            format!("`{name}` means something else in expressions"),
            "rename the dimension".to_owned(),
        );
    }
    if params.iter().any(|param| param.name == name) {
        report.error(
            entry.key_span(),
            format!("`{name}` is a dimension and a parameter"),
            "rename one of them".to_owned(),
        );
    }
}

fn read_dimension(report: &mut Report<'_>, entry: &Entry<'_>) -> Option<Dimension> {
    let size = |entry: &Entry<'_>| entry.integer().and_then(|size| u64::try_from(size).ok());
    let sizes = |entry: &Entry<'_>| entry.items().iter().filter_map(size).collect::<Vec<u64>>();
    let (dimension, listed) = match entry.section() {
        Some(section) => {
            let candidates = section.get("candidates")?;
            let dimension = Dimension {
                candidates: sizes(&candidates),
                tile: section.get("tile").as_ref().and_then(size),
                min: section.get("min").as_ref().and_then(size).unwrap_or(1),
            };
            (dimension, candidates.items())
        }
        None => {
            let listed = if entry.integer().is_some() { vec![*entry] } else { entry.items() };
            (Dimension { candidates: listed.iter().filter_map(size).collect(), tile: None, min: 1 }, listed)
        }
    };
    for item in &listed {
        if let Some(size) = size(item).filter(|size| *size < dimension.min) {
            let help = match size {
                0 => format!("empty tensors are asked for by `{} = {{ candidates = [...], min = 0 }}`", entry.key),
                _ => format!("lower `min`, or take {size} out"),
            };
            report.error(
                item.span(),
                format!("size {size} of `{}` is below its smallest, {}", entry.key, dimension.min),
                help,
            );
        }
    }
    Some(dimension)
}

fn read_tensor(report: &mut Report<'_>, entry: &Entry<'_>, scope: &Scope<'_>) -> (TensorDecl, TensorPlace) {
    let section = entry.section();
    let get = |key| section.and_then(|section| section.get(key));
    let dims = if section.is_some() { get("dims").unwrap_or(*entry) } else { *entry };
    let axes = dims.items();
    let any_rank = axes.first().is_some_and(|axis| axis.text() == Some("..."));
    let fixed = &axes[usize::from(any_rank)..];
    for axis in fixed.iter().filter(|axis| axis.text() == Some("...")) {
        report.error(axis.span(), "`...` stands for the leading axes and comes first", None);
    }
    let sizes: Vec<Expression> = fixed.iter().filter_map(|axis| scope.expression(report, axis)).collect();
    let place = TensorPlace {
        key: entry.key_span(),
        dims: dims.span(),
        axes: fixed.iter().map(|axis| axis.span()).collect(),
        dtype: get("dtype").map(|entry| entry.span()),
        domain: get("domain").map(|entry| entry.span()),
    };
    let shape = if any_rank { Shape::AnyRank(sizes) } else { Shape::Fixed(sizes) };
    let tensor = TensorDecl {
        name: entry.key.to_owned(),
        shape: OutputShape::Declared(shape),
        dtype: get("dtype")
            .and_then(|entry| DType::from_name(entry.text()?))
            .map_or(TensorDType::Same, TensorDType::Fixed),
        domain: get("domain").and_then(|entry| domain::read_domain(report, &entry, scope)),
        layouts: get("layouts").map(|entry| values::texts(Some(entry))),
        generate: get("generate").and_then(|entry| entry.text()).map(str::to_owned),
        inout: get("inout").and_then(|entry| entry.bool()).unwrap_or(false),
    };
    (tensor, place)
}

/// `input_names` beside a schema says the same again, or it is wrong.
fn check_input_names(report: &mut Report<'_>, op: &Section<'_>, schema: &Schema) {
    let Some(entry) = op.get("input_names") else { return };
    let written = values::texts(Some(entry));
    let declared: Vec<&str> = schema.inputs.iter().map(|input| input.name.as_str()).collect();
    if !written.is_empty() && written != declared {
        let help = format!("the schema's inputs are {}; leave `input_names` out", join(declared.iter().copied()));
        report.error(entry.span(), "`input_names` differ from the inputs of the schema", help);
    }
}

/// An output of any rank takes its leading axes from an input of any rank.
fn check_any_rank(report: &mut Report<'_>, schema: &Schema, places: &Places) {
    let any_rank = |tensor: &TensorDecl| matches!(tensor.shape, OutputShape::Declared(Shape::AnyRank(_)));
    if schema.inputs.iter().any(any_rank) {
        return;
    }
    for (tensor, place) in schema.outputs.iter().zip(&places.outputs).filter(|(tensor, _)| any_rank(tensor)) {
        report.error(
            place.dims.clone(),
            format!("`{}` has any rank, but no input has", tensor.name),
            "`...` stands for the leading axes that an input with `...` has".to_owned(),
        );
    }
}
