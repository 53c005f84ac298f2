//! From a spec to the case it names, byte for byte.

use super::domain::Limits;
use super::layout::{filled_shape, lay_out};
use super::rng::derive;
use super::shape::{bindings, has_any_rank, shape_of};
use super::spec::{Edit, InputSpec, Kind, LayoutKind, Spec};
use super::values::{Fill, edited, fill};
use super::{Case, Generate, Request};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::with_element;
use gpuemu_contract::{EmptyPolicy, Op, TensorDecl, nearest};

/// The case that a spec names. A regression file beside the spec is not read here.
///
/// # Errors
///
/// When the spec does not fit the op: another op, a dimension or input that is missing or unknown, a broken constraint,
/// a tensor that is too large, a distribution that the dtype or domain has not, an edit outside its tensor.
pub fn build(op: &Op, spec: &Spec, generator: Option<&dyn Generate>) -> Result<Case> {
    check(op, spec)?;
    let bindings = bindings(&spec.dims, &spec.params);
    let any_rank = spec.any_rank.as_deref();
    let mut inputs = Vec::with_capacity(op.schema.inputs.len());
    for ((decl, input), (_, shape)) in op.schema.inputs.iter().zip(&spec.inputs).zip(input_shapes(op, spec)?) {
        let mut tensor = input_tensor(op, spec, decl, input, &shape, &bindings, generator)
            .map_err(|error| located(error, &decl.name))?;
        for edit in spec.edits.iter().filter(|edit| edit.input == decl.name) {
            apply(edit, &mut tensor)?;
        }
        inputs.push((decl.name.clone(), tensor));
    }
    let mut outputs = Vec::with_capacity(op.schema.outputs.len());
    for decl in &op.schema.outputs {
        let shape = shape_of(decl, &bindings, any_rank)?;
        outputs.push((decl.name.clone(), decl.dtype.resolve(spec.test.dtype), shape));
    }
    Ok(Case { spec: spec.clone(), inputs, outputs, params: spec.params.clone() })
}

/// The shape of every input of a spec, in the order of the schema.
///
/// # Errors
///
/// Those of [`shape_of`].
pub fn input_shapes(op: &Op, spec: &Spec) -> Result<Vec<(String, Vec<usize>)>> {
    let bindings = bindings(&spec.dims, &spec.params);
    let shape = |decl: &TensorDecl| {
        let shape = shape_of(decl, &bindings, spec.any_rank.as_deref())?;
        let shape = shape.ok_or_else(|| Error::Config(format!("input `{}` has no shape", decl.name)))?;
        Ok((decl.name.clone(), shape))
    };
    op.schema.inputs.iter().map(shape).collect()
}

fn located(error: Error, input: &str) -> Error {
    match error {
        Error::Config(message) => Error::Config(format!("input `{input}`: {message}")),
        Error::InvalidRequest(message) => Error::InvalidRequest(format!("input `{input}`: {message}")),
        other => other,
    }
}

fn input_tensor(
    op: &Op,
    spec: &Spec,
    decl: &TensorDecl,
    input: &InputSpec,
    shape: &[usize],
    bindings: &[(String, i64)],
    generator: Option<&dyn Generate>,
) -> Result<Tensor> {
    if let Some(allowed) = &decl.layouts
        && !allowed.iter().any(|name| name == input.layout.name())
        && input.layout != LayoutKind::Row
    {
        return Err(Error::InvalidRequest(format!(
            "layout `{}` is none of those that op `{}` accepts: {}",
            input.layout,
            op.name,
            allowed.join(", ")
        )));
    }
    let dtype = decl.dtype.resolve(spec.test.dtype);
    let filled = filled_shape(input.layout, shape, decl.inout);
    let seed = derive(spec.seed, &decl.name);
    let dense = match (&decl.generate, input.values.kind) {
        (Some(target), Kind::Generated) => {
            let generator = generator.ok_or_else(|| {
                Error::InvalidRequest(format!("its generator `{target}` needs Python, and no worker runs"))
            })?;
            let request = Request { target, seed, dtype, shape: &filled, dims: &spec.dims, params: &spec.params };
            let array = generator.generate(&request)?;
            if array.shape != filled {
                return Err(Error::ReferenceFailed(format!(
                    "generator `{target}` answered the shape {:?} where {filled:?} was asked for",
                    array.shape
                )));
            }
            Tensor::from_array(&array, dtype)
        }
        (None, Kind::Generated) => {
            return Err(Error::InvalidRequest("distribution `generated` needs a `generate` in its declaration".into()));
        }
        _ => {
            let limits = decl.domain.as_ref().map(|domain| Limits::of(domain, dtype, bindings)).transpose()?;
            fill(&Fill { seed, dtype, shape: &filled, values: input.values, limits: limits.as_ref() })?
        }
    };
    Ok(lay_out(dense, input.layout, shape, decl.inout))
}

/// Writes one value; in a broadcast tensor all elements that share the memory change with it.
fn apply(edit: &Edit, tensor: &mut Tensor) -> Result<()> {
    let shape = tensor.shape();
    let inside = edit.index.len() == shape.len() && edit.index.iter().zip(shape).all(|(&i, &size)| i < size as u64);
    if !inside {
        return Err(Error::InvalidRequest(format!("edit `{edit}` is outside of its tensor, whose shape is {shape:?}")));
    }
    let index: Vec<usize> = edit.index.iter().map(|&i| i as usize).collect();
    let at = tensor.layout().position(&index);
    with_element!(tensor.dtype(), T => tensor.data_mut::<T>()[at] = edited::<T>(edit.value));
    Ok(())
}

/// Whether the spec fits the op, its sizes and constraints included; everything but the values.
pub fn check(op: &Op, spec: &Spec) -> Result<()> {
    let invalid = |message: String| Err(Error::InvalidRequest(message));
    if spec.test.op != op.tested_as() {
        return invalid(format!("the spec is of op `{}`, not of `{}`", spec.test.op, op.tested_as()));
    }
    if !op.dtypes.is_empty() && !op.dtypes.contains(&spec.test.dtype) {
        return invalid(format!("op `{}` is not declared for {}", op.name, spec.test.dtype));
    }
    names("dimension", op, op.schema.dims.iter().map(|(name, _)| name), spec.dims.iter().map(|(name, _)| name))?;
    names("parameter", op, op.params.iter().map(|param| &param.name), spec.params.iter().map(|(name, _)| name))?;
    names("input", op, op.schema.inputs.iter().map(|decl| &decl.name), spec.inputs.iter().map(|input| &input.name))?;
    if spec.any_rank.is_some() != has_any_rank(op) {
        return invalid(match spec.any_rank {
            Some(_) => format!("no tensor of op `{}` has the dims `...`", op.name),
            None => format!("op `{}` has tensors of the dims `...`: the spec must say `...=2x3`", op.name),
        });
    }
    for ((name, size), (_, dimension)) in spec.dims.iter().zip(&op.schema.dims) {
        if *size < dimension.min {
            return invalid(format!("dimension {name}={size} is below its `min`, {}", dimension.min));
        }
    }
    let bindings = bindings(&spec.dims, &spec.params);
    for condition in &op.schema.constraints {
        match condition.holds(&bindings) {
            Ok(true) => {}
            Ok(false) => {
                let sizes: Vec<String> = bindings.iter().map(|(name, value)| format!("{name}={value}")).collect();
                return invalid(format!("{} does not satisfy `where = [\"{condition}\"]`", sizes.join(", ")));
            }
            Err(error) => return Err(Error::Config(format!("op `{}`, where `{condition}`: {error}", op.name))),
        }
    }
    for decl in op.schema.inputs.iter().chain(&op.schema.outputs) {
        let Some(shape) = shape_of(decl, &bindings, spec.any_rank.as_deref())? else { continue };
        if op.edges.empty == EmptyPolicy::Error && shape.contains(&0) {
            return invalid(format!("tensor `{}` is empty, and op `{}` says `empty = \"error\"`", decl.name, op.name));
        }
        if let Some(domain) = decl.domain.as_ref().filter(|_| decl.generate.is_none()) {
            let dtype = decl.dtype.resolve(spec.test.dtype);
            let limits = Limits::of(domain, dtype, &bindings).map_err(|error| located(error, &decl.name))?;
            limits.admit(dtype, &shape).map_err(|message| located(Error::InvalidRequest(message), &decl.name))?;
        }
    }
    Ok(())
}

/// Whether the spec names exactly what the op declares, in its order.
fn names<'a>(
    what: &str,
    op: &Op,
    declared: impl Iterator<Item = &'a String>,
    given: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let declared: Vec<&str> = declared.map(String::as_str).collect();
    let given: Vec<&str> = given.map(String::as_str).collect();
    if declared == given {
        return Ok(());
    }
    let op = &op.name;
    if let Some(unknown) = given.iter().find(|name| !declared.contains(name)) {
        let hint = nearest(unknown, declared.iter().copied()).map(|near| format!(" (did you mean `{near}`?)"));
        return Err(Error::InvalidRequest(format!("op `{op}` has no {what} `{unknown}`{}", hint.unwrap_or_default())));
    }
    if let Some(missing) = declared.iter().find(|name| !given.contains(name)) {
        return Err(Error::InvalidRequest(format!("the spec lacks {what} `{missing}` of op `{op}`")));
    }
    Err(Error::InvalidRequest(format!(
        "op `{op}` has the {what}s {}, in this order and each once; the spec has {}",
        declared.join(", "),
        given.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::{op, softmax};
    use crate::tensor::Array;

    fn spec(line: &str) -> Spec {
        line.parse().unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn a_case_has_what_its_spec_says() {
        let line = "op::float16::layout{B=2,S=3,H=5;axis=-1} x:padded normal seed=0000000000000007 x[1,2,4]=inf";
        let case = build(&softmax(), &spec(line), None).expect("a case");
        let (name, x) = &case.inputs[0];
        assert_eq!((name.as_str(), x.shape(), x.layout().strides.as_slice()), ("x", &[2, 3, 5][..], &[24, 8, 1][..]));
        assert_eq!(x.to_array().at(29), f64::INFINITY);
        assert_eq!(case.outputs, [("out".to_owned(), gpuemu_contract::DType::Float16, Some(vec![2, 3, 5]))]);
        // The same values, whatever the layout.
        let row = build(&softmax(), &spec(&line.replace("padded", "row")), None).expect("a case");
        assert_eq!(row.inputs[0].1, x.to_contiguous());
        // The same bytes again.
        assert_eq!(build(&softmax(), &spec(line), None).expect("a case").inputs[0].1, *x);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let line = "op::float32::layout{B=2,S=3,H=5;axis=-1} x:row normal seed=0000000000000007";
        let table = [
            (line.replace("op::", "oq::"), "the spec is of op `oq`, not of `op`"),
            (line.replace("float32", "int8"), "op `op` is not declared for int8"),
            (line.replace("S=3", "T=3"), "op `op` has no dimension `T`"),
            (line.replace("S=3,", ""), "the spec lacks dimension `S` of op `op`"),
            (line.replace("axis", "axes"), "op `op` has no parameter `axes` (did you mean `axis`?)"),
            (line.replace("x:", "y:"), "op `op` has no input `y`"),
            (
                line.replace("B=2,S=3", "S=3,B=2"),
                "op `op` has the dimensions B, S, H, in this order and each once; the spec has S, B, H",
            ),
            (line.replace("B=2", "B=0"), "dimension B=0 is below its `min`, 1"),
            (line.replace("{B", "{...=2,B"), "no tensor of op `op` has the dims `...`"),
            (
                line.replace("B=2,S=3,H=5", "B=1000000,S=1000000,H=1000000"),
                "tensor `x` of shape [1000000, 1000000, 1000000] is too large: more than 2^30 elements (with B=1000000, S=1000000, H=1000000, axis=-1)",
            ),
            (
                line.replace("B=2,S=3,H=5", "B=18446744073709551615,S=3,H=5"),
                "tensor `x` of shape [9223372036854775807, 3, 5] is too large: more than 2^30 elements (with B=9223372036854775807, S=3, H=5, axis=-1)",
            ),
            (
                line.replace("normal", "offsets"),
                "input `x`: distribution `offsets` is none of those for float32: zeros, ones, constant, one_hot, ramp, uniform, normal, \
                 positive, probability, shifted, alternating, equal_maxima, tiny, edge, structured, neg_inf_rows, nan_few, inf_few, adversarial",
            ),
            (format!("{line} x[2,0,0]=1"), "edit `x[2,0,0]=1.0` is outside of its tensor, whose shape is [2, 3, 5]"),
        ];
        for (line, message) in table {
            assert_eq!(build(&softmax(), &spec(&line), None).expect_err(&line).to_string(), message);
        }
    }

    #[test]
    fn constraints_and_empty_tensors_are_refused_where_the_op_says_so() {
        let even = op(
            "[ops.schema]\ndims = { H = [2, 4] }\nwhere = [\"H % 2 == 0\"]\ninputs = { x = [\"H\"] }\noutputs = { out = [\"H\"] }",
        );
        let error = build(&even, &spec("op::float32::default{H=3} x:row normal seed=0000000000000007"), None);
        assert_eq!(error.expect_err("odd").to_string(), "H=3 does not satisfy `where = [\"H % 2 == 0\"]`");
    }

    #[test]
    fn an_inout_tensor_is_never_broadcast() {
        let inplace = op(
            "[ops.schema]\ndims = { B = [4], H = [2, 4] }\ninputs = { x = { dims = [\"B\", \"H\"], inout = true }, y = [\"B\", \"H\"] }",
        );
        let line = "op::float32::default{B=4,H=2} x:broadcast normal y:broadcast normal seed=0000000000000007";
        let case = build(&inplace, &spec(line), None).expect("a case");
        assert_eq!(case.inputs[0].1.layout().strides, [2, 1]);
        assert_eq!(case.inputs[1].1.layout().strides, [0, 1]);
    }

    #[test]
    fn a_generator_is_given_the_stream_of_its_input() {
        struct Ramp;
        impl Generate for Ramp {
            fn generate(&self, request: &Request<'_>) -> Result<Array> {
                assert_eq!((request.target, request.seed), ("pkg.mod:make", derive(7, "x")));
                let count = request.shape.iter().product::<usize>();
                Ok(Array::float(request.dtype, request.shape, (0..count).map(|i| i as f64).collect()))
            }
        }
        let own = op(
            "[ops.schema]\ndims = { H = [2, 4] }\ninputs = { x = { dims = [\"H\"], generate = \"pkg.mod:make\" } }\noutputs = { out = [\"H\"] }",
        );
        let spec = spec("op::float32::default{H=4} x:reversed generated seed=0000000000000007");
        let case = build(&own, &spec, Some(&Ramp)).expect("a case");
        assert_eq!(case.inputs[0].1.data::<f32>(), [3.0, 2.0, 1.0, 0.0]);
        assert_eq!(
            build(&own, &spec, None).expect_err("no worker").to_string(),
            "input `x`: its generator `pkg.mod:make` needs Python, and no worker runs"
        );
    }
}
