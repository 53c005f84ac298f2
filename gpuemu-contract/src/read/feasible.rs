//! Tries the declared sizes: every shape must come out, fit in memory's addresses, and satisfy what the file says.

use super::schema::{Places, TensorPlace, is_integer};
use crate::document::Report;
use crate::{
    Bindings, Dimension, Domain, Expression, OutputShape, Param, ParamValue, Schema, Shape, TensorDType, TensorDecl,
};
use std::ops::Range;

/// Up to so many combinations of sizes are tried one by one; of more, those of the smallest and largest sizes.
const MAX_COMBINATIONS: usize = 2_000;

/// Reports shapes, domains and constraints that the declared sizes make impossible.
pub(super) fn check(report: &mut Report<'_>, schema: &Schema, params: &[Param], places: &Places) {
    if places.inputs.is_empty() && places.outputs.is_empty() && places.constraint.is_empty() {
        return;
    }
    let mut axes: Vec<(String, Vec<i64>)> =
        schema.dims.iter().map(|(name, dimension)| (name.clone(), sizes(dimension))).collect();
    axes.extend(params.iter().filter(|param| is_integer(param)).map(|param| (param.name.clone(), integers(param))));
    let complete = product(&axes) <= MAX_COMBINATIONS;
    if !complete {
        for (_, sizes) in &mut axes {
            let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
            *sizes = least.into_iter().chain(most.filter(|_| most != least)).collect();
        }
    }
    let mut tensors: Vec<(&TensorDecl, &TensorPlace)> =
        schema.inputs.iter().zip(&places.inputs).chain(schema.outputs.iter().zip(&places.outputs)).collect();
    // One error a place is enough.
    let mut wrong: Vec<Range<usize>> = Vec::new();
    let mut bindings: Vec<(String, i64)> = axes.iter().map(|(name, _)| (name.clone(), 0)).collect();
    if schema.constraints.is_empty() {
        // Most shapes only grow with their dimensions: the largest sizes tell all.
        for ((_, value), (_, sizes)) in bindings.iter_mut().zip(&axes) {
            *value = sizes.iter().max().copied().unwrap_or(0);
        }
        tensors.retain(|(tensor, place)| {
            let plain = is_plain(tensor, schema);
            if let (true, Err((span, message, help))) = (plain, tensor_fits(tensor, place, &bindings)) {
                report.error(span, message, help);
            }
            !plain
        });
        if tensors.is_empty() {
            return;
        }
    }
    let mut satisfied = false;
    let total = product(&axes).min(MAX_COMBINATIONS);
    for index in 0..total {
        choose(&mut bindings, &axes, index);
        match constraints_hold(schema, &bindings, places) {
            Ok(true) => satisfied = true,
            Ok(false) => continue,
            Err((span, message)) => {
                // Names that nothing declares are reported already.
                if !wrong.contains(&span) && names_bound(schema, &bindings) {
                    report.error(span.clone(), format!("{message}{}", at(&bindings)), None);
                }
                wrong.push(span);
                satisfied = true;
                continue;
            }
        }
        for (tensor, place) in &tensors {
            if let Err((span, message, help)) = tensor_fits(tensor, place, &bindings)
                && !wrong.contains(&span)
            {
                report.error(span.clone(), message, help);
                wrong.push(span);
            }
        }
    }
    if let (false, true, Some(span)) = (satisfied, complete, &places.constraints)
        && names_bound(schema, &bindings)
    {
        report.error(
            span.clone(),
            "no combination of the declared sizes satisfies all conditions",
            "add sizes to `dims`, or drop a condition".to_owned(),
        );
    }
}

fn names_bound(schema: &Schema, bindings: &Bindings) -> bool {
    let bound = |name: &&str| bindings.iter().any(|(known, _)| known == name);
    schema.constraints.iter().all(|condition| condition.names().iter().all(bound))
}

/// The sizes a dimension may take, those around its tile included.
fn sizes(dimension: &Dimension) -> Vec<i64> {
    let around =
        |tile: u64| [1, tile.saturating_sub(1), tile, tile.saturating_add(1), tile.saturating_mul(2).saturating_add(1)];
    let mut sizes = dimension.candidates.clone();
    sizes.extend(dimension.tile.into_iter().flat_map(around).filter(|size| *size >= dimension.min));
    if dimension.min == 0 {
        sizes.push(0);
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(|size| i64::try_from(size).unwrap_or(i64::MAX)).collect()
}

fn integers(param: &Param) -> Vec<i64> {
    let integer = |value: &ParamValue| match value {
        ParamValue::Int(value) => Some(*value),
        ParamValue::Bool(value) => Some(i64::from(*value)),
        ParamValue::Float(_) | ParamValue::Text(_) => None,
    };
    param.candidates.iter().filter_map(integer).collect()
}

fn product(axes: &[(String, Vec<i64>)]) -> usize {
    axes.iter().fold(1, |product, (_, sizes)| product.saturating_mul(sizes.len()))
}

/// Binds the combination of that number.
fn choose(bindings: &mut [(String, i64)], axes: &[(String, Vec<i64>)], mut index: usize) {
    for ((_, value), (_, sizes)) in bindings.iter_mut().zip(axes) {
        *value = sizes[index % sizes.len()];
        index /= sizes.len();
    }
}

/// Whether every axis is a dimension or a number, and the values are free.
fn is_plain(tensor: &TensorDecl, schema: &Schema) -> bool {
    let OutputShape::Declared(Shape::Fixed(axes) | Shape::AnyRank(axes)) = &tensor.shape else { return true };
    tensor.domain.is_none()
        && axes.iter().all(|axis| match axis {
            Expression::Literal(size) => *size >= 0,
            Expression::Name(name) => schema.dims.iter().any(|(known, _)| known == name),
            _ => false,
        })
}

fn constraints_hold(schema: &Schema, bindings: &Bindings, places: &Places) -> Result<bool, (Range<usize>, String)> {
    for (condition, span) in schema.constraints.iter().zip(&places.constraint) {
        match condition.holds(bindings) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => return Err((span.clone(), error.message)),
        }
    }
    Ok(true)
}

type Misfit = (Range<usize>, String, Option<String>);

fn tensor_fits(tensor: &TensorDecl, place: &TensorPlace, bindings: &Bindings) -> Result<(), Misfit> {
    let OutputShape::Declared(Shape::Fixed(axes) | Shape::AnyRank(axes)) = &tensor.shape else { return Ok(()) };
    let bound = |name: &&str| bindings.iter().any(|(known, _)| known == name);
    let mut shape = Vec::with_capacity(axes.len());
    for (position, axis) in axes.iter().enumerate() {
        if !axis.names().iter().all(bound) {
            return Ok(());
        }
        if matches!(axis, Expression::Literal(..0)) {
            return Ok(()); // reported where it is read
        }
        let span = place.axes.get(position).cloned().unwrap_or(place.dims.clone());
        match axis.evaluate(bindings) {
            Ok(size) if size >= 0 => shape.push(size),
            Ok(size) => {
                let help = format!("`where = [\"{axis} >= 0\"]` leaves such sizes out");
                return Err((span, format!("`{axis}` is {size}{}", at_names(bindings, &axis.names())), Some(help)));
            }
            Err(error) => return Err((span, format!("{}{}", error.message, at_names(bindings, &axis.names())), None)),
        }
    }
    let size = match tensor.dtype {
        TensorDType::Fixed(dtype) => dtype.size(),
        TensorDType::Same => 8,
    };
    // A size of 0 makes the tensor empty, but its strides still have to be numbers.
    let bytes = shape.iter().try_fold(size as i64, |bytes, &size| bytes.checked_mul(size.max(1)));
    if bytes.is_none() {
        let names: Vec<&str> = axes.iter().flat_map(|axis| axis.names()).collect();
        let message = format!("`{}` has more bytes than 64 bits count{}", tensor.name, at_names(bindings, &names));
        return Err((place.dims.clone(), message, None));
    }
    match &tensor.domain {
        Some(domain) if shape.iter().all(|size| *size > 0) => domain_fits(tensor, domain, place, &shape, bindings),
        _ => Ok(()),
    }
}

fn domain_fits(
    tensor: &TensorDecl,
    domain: &Domain,
    place: &TensorPlace,
    shape: &[i64],
    bindings: &Bindings,
) -> Result<(), Misfit> {
    let span = place.domain.clone().unwrap_or(place.dims.clone());
    let last = shape.last().copied().unwrap_or(1);
    let limits = match tensor.dtype {
        TensorDType::Fixed(dtype) => dtype.integer_range(),
        TensorDType::Same => None,
    };
    let within = |value: i64| limits.is_none_or(|(low, high)| (low..=high).contains(&i128::from(value)));
    let unfit = |value: i64, names: &[&str]| {
        let message =
            format!("the value {value} does not fit the dtype of `{}`{}", tensor.name, at_names(bindings, names));
        Err((span.clone(), message, None))
    };
    match domain {
        Domain::IntegerRange(low, high) | Domain::Sorted(low, high) | Domain::Unique(low, high) => {
            let names: Vec<&str> = low.names().into_iter().chain(high.names()).collect();
            let bound = |name: &&str| bindings.iter().any(|(known, _)| known == name);
            if !names.iter().all(bound) {
                return Ok(());
            }
            let here = at_names(bindings, &names);
            let (low, high) = match (low.evaluate(bindings), high.evaluate(bindings)) {
                (Ok(low), Ok(high)) => (low, high),
                (Err(error), _) | (_, Err(error)) => return Err((span, format!("{}{here}", error.message), None)),
            };
            if low > high {
                return Err((span, format!("`{}` has no value from {low} to {high}{here}", tensor.name), None));
            }
            if let Some(value) = [low, high].into_iter().find(|value| !within(*value)) {
                return unfit(value, &names);
            }
            if matches!(domain, Domain::Unique(..)) && i128::from(high) - i128::from(low) + 1 < i128::from(last) {
                let message = format!(
                    "{last} values of a row of `{}` cannot all differ from {low} to {high}{}",
                    tensor.name,
                    at(bindings)
                );
                return Err((span, message, None));
            }
            Ok(())
        }
        Domain::Sentinel(inner, sentinel) => {
            if !within(*sentinel) {
                return unfit(*sentinel, &[]);
            }
            domain_fits(tensor, inner, place, shape, bindings)
        }
        _ => Ok(()),
    }
}

/// " at B=1, H=3", or nothing.
fn at(bindings: &Bindings) -> String {
    let names: Vec<&str> = bindings.iter().map(|(name, _)| name.as_str()).collect();
    at_names(bindings, &names)
}

fn at_names(bindings: &Bindings, names: &[&str]) -> String {
    let pairs: Vec<String> = bindings
        .iter()
        .filter(|(name, _)| names.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if pairs.is_empty() { String::new() } else { format!(" at {}", pairs.join(", ")) }
}
