//! The schema of an op that writes none: from `input_names`, or from its built-in's own inputs.

use super::values;
use crate::builtin::{Role, RoleKind, default_dimension};
use crate::document::{Report, Section};
use crate::{Builtin, Dimension, Domain, Expression, OutputShape, Param, Schema, Shape, TensorDType, TensorDecl};

/// The dimensions of every input that only `input_names` declares.
const ROWS: &[&str] = &["batch", "sequence", "hidden"];
/// Parameters that change which shapes fit a built-in, so that an op which sets one has to write its shapes.
const SHAPING: [(&str, &[&str]); 4] = [
    ("matmul", &["transpose_a", "transpose_b"]),
    ("batched_matmul", &["transpose_a", "transpose_b"]),
    ("transpose", &["permutation"]),
    ("conv2d", &["dilation", "groups"]),
];

/// The schema of the op whose table is `section`.
pub(super) fn schema(
    report: &mut Report<'_>,
    section: &Section<'_>,
    builtin: Option<&Builtin>,
    params: &[Param],
) -> Schema {
    let names = values::texts(section.get("input_names"));
    if let Some(entry) = section.get("input_names") {
        for (position, item) in entry.items().iter().enumerate() {
            if let Some(name) = item.text().filter(|name| names[..position.min(names.len())].iter().any(|n| n == name))
            {
                report.error(item.span(), format!("two inputs are named `{name}`"), None);
            }
        }
    }
    let (inputs, dtype) = match builtin {
        Some(builtin) => {
            check_shaping(report, section, builtin);
            (inputs_of_builtin(builtin, &names), builtin.output_dtype)
        }
        None if names.is_empty() => (vec![input("x", ROWS, RoleKind::Values)], TensorDType::Same),
        None => (names.iter().map(|name| input(name, ROWS, RoleKind::Values)).collect(), TensorDType::Same),
    };
    Schema { dims: dims(&inputs, params), inputs, outputs: vec![output(dtype)], constraints: Vec::new() }
}

fn check_shaping(report: &mut Report<'_>, section: &Section<'_>, builtin: &Builtin) {
    let shaping = SHAPING.iter().find(|(name, _)| *name == builtin.name).map_or(&[][..], |(_, params)| params);
    let entries = section.section("params").map(|params| params.entries()).unwrap_or_default();
    for entry in entries.iter().filter(|entry| shaping.contains(&entry.key)) {
        report.error(
            entry.key_span(),
            format!("`{}` decides which shapes fit, and the op has no schema", entry.key),
            "write the shapes under [ops.schema]".to_owned(),
        );
    }
}

/// The built-in's inputs under the op's names; surplus names are reported where inputs are counted.
fn inputs_of_builtin(builtin: &Builtin, names: &[String]) -> Vec<TensorDecl> {
    let role = |role: &Role| input(role.name, role.shape, role.kind);
    if names.is_empty() {
        return builtin.inputs.iter().map(role).collect();
    }
    let named = |(position, name): (usize, &String)| match builtin.inputs.get(position) {
        Some(known) => TensorDecl { name: name.clone(), ..role(known) },
        None => input(name, ROWS, RoleKind::Values),
    };
    names.iter().enumerate().map(named).collect()
}

fn input(name: &str, shape: &[&str], kind: RoleKind) -> TensorDecl {
    let expression = |text: &str| Expression::parse(text).ok();
    TensorDecl {
        name: name.to_owned(),
        shape: OutputShape::Declared(Shape::Fixed(shape.iter().filter_map(|axis| expression(axis)).collect())),
        dtype: kind.dtype(),
        domain: match kind {
            RoleKind::Values | RoleKind::Finite | RoleKind::Quantized => None,
            RoleKind::Positive => Some(Domain::Positive),
            RoleKind::Index(last) => expression(last).map(|last| Domain::IntegerRange(Expression::Literal(0), last)),
        },
        layouts: None,
        generate: None,
        inout: false,
    }
}

fn output(dtype: TensorDType) -> TensorDecl {
    TensorDecl {
        name: "out".to_owned(),
        shape: OutputShape::FromReference,
        dtype,
        domain: None,
        layouts: None,
        generate: None,
        inout: false,
    }
}

/// The dimensions that shapes use, in the order in which they appear.
fn dims(inputs: &[TensorDecl], params: &[Param]) -> Vec<(String, Dimension)> {
    let mut dims: Vec<(String, Dimension)> = Vec::new();
    for tensor in inputs {
        let OutputShape::Declared(Shape::Fixed(axes)) = &tensor.shape else { continue };
        for name in axes.iter().flat_map(|axis| axis.names()) {
            let known = dims.iter().any(|(known, _)| known == name) || params.iter().any(|param| param.name == name);
            if let (false, Some(sizes)) = (known, default_dimension(name)) {
                dims.push((name.to_owned(), Dimension { candidates: sizes.to_vec(), tile: None, min: 1 }));
            }
        }
    }
    dims
}
