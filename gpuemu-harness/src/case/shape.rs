//! Shapes of one case: the expressions of the schema evaluated with the case's dimensions and parameters.

use super::spec::Spec;
use crate::error::{Error, Result};
use gpuemu_contract::{Op, OutputShape, ParamValue, Shape, TensorDecl};

/// Elements a tensor of a case may have: 2^30. Larger ones exhaust memory before they show anything.
pub const ELEMENT_LIMIT: u64 = 1 << 30;

/// What expressions may name: dimensions, then integer parameters, then boolean ones as 0 and 1.
pub fn bindings(dims: &[(String, u64)], params: &[(String, ParamValue)]) -> Vec<(String, i64)> {
    let dims = dims.iter().map(|(name, size)| (name.clone(), i64::try_from(*size).unwrap_or(i64::MAX)));
    let params = params.iter().filter_map(|(name, value)| match value {
        ParamValue::Int(value) => Some((name.clone(), *value)),
        ParamValue::Bool(value) => Some((name.clone(), i64::from(*value))),
        ParamValue::Float(_) | ParamValue::Text(_) => None,
    });
    dims.chain(params).collect()
}

/// The shape of a tensor; `None` where only the reference knows it.
///
/// # Errors
///
/// When an expression cannot be evaluated or is negative, or when the tensor has more than [`ELEMENT_LIMIT`] elements.
pub fn shape_of(
    tensor: &TensorDecl,
    bindings: &[(String, i64)],
    any_rank: Option<&[u64]>,
) -> Result<Option<Vec<usize>>> {
    let (leading, axes) = match &tensor.shape {
        OutputShape::FromReference => return Ok(None),
        OutputShape::Declared(Shape::Fixed(axes)) => (&[][..], axes),
        OutputShape::Declared(Shape::AnyRank(axes)) => {
            let leading = any_rank.ok_or_else(|| {
                Error::InvalidRequest(format!(
                    "tensor `{}` has the dims `...`: the spec must say `...=2x3`",
                    tensor.name
                ))
            })?;
            (leading, axes)
        }
    };
    let name = &tensor.name;
    let mut shape = leading.to_vec();
    for axis in axes {
        let size = axis
            .evaluate(bindings)
            .map_err(|error| Error::Config(format!("tensor `{name}`: {error} (with {})", list(bindings))))?;
        shape.push(u64::try_from(size).map_err(|_| {
            Error::Config(format!("tensor `{name}`: its size `{axis}` is {size} (with {})", list(bindings)))
        })?);
    }
    // Zero sizes do not excuse the others: strides are products of them.
    let product = shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size.max(1)));
    if product.is_none_or(|product| product > ELEMENT_LIMIT) {
        return Err(Error::InvalidRequest(format!(
            "tensor `{name}` of shape {shape:?} is too large: more than 2^30 elements (with {})",
            list(bindings)
        )));
    }
    Ok(Some(shape.into_iter().map(|size| size as usize).collect()))
}

fn list(bindings: &[(String, i64)]) -> String {
    let list: Vec<String> = bindings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    list.join(", ")
}

/// Elements of the largest input of a case.
///
/// # Errors
///
/// As [`shape_of`].
pub fn largest_input(op: &Op, spec: &Spec) -> Result<usize> {
    let bindings = bindings(&spec.dims, &spec.params);
    let mut largest = 0;
    for input in &op.schema.inputs {
        if let Some(shape) = shape_of(input, &bindings, spec.any_rank.as_deref())? {
            largest = largest.max(shape.iter().product());
        }
    }
    Ok(largest)
}

/// Whether any tensor of the op is of any rank.
pub fn has_any_rank(op: &Op) -> bool {
    let schema = &op.schema;
    schema
        .inputs
        .iter()
        .chain(&schema.outputs)
        .any(|tensor| matches!(tensor.shape, OutputShape::Declared(Shape::AnyRank(_))))
}
