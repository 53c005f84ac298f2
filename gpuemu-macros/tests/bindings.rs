//! Every form a bound function may have, called through its binding as the runner calls it.

use gpuemu_harness::subject::function::{Binding, Function};
use gpuemu_harness::{Call, DType, Element, Float, ParamValue, Subject, SubjectError, Tensor, View, ViewMut, f16, op};

/// Answers its input times the axis, which tells the bindings of the tests apart.
#[op("softmax")]
fn generic<T: Float>(x: View<T>, mut out: ViewMut<'_, T>, axis: i64) {
    for (to, from) in out.as_mut_slice().unwrap().iter_mut().zip(x.as_slice().unwrap()) {
        *to = T::from_f32(from.to_f32() * axis as f32);
    }
}

/// In another order, with lifetimes, a clause, `Option`, a parameter left out, an error.
#[op("layer_norm")]
pub(crate) fn in_any_order<'a, T>(
    mut out: ViewMut<'a, T>,
    bias: Option<View<'a, T>>,
    weight: Option<View<'a, T>>,
    x: View<'a, T>,
) -> Result<(), String>
where
    T: Element,
{
    assert!(bias.is_none(), "the schema has none");
    let weight = weight.ok_or("the schema has a weight")?;
    if x.size(0) == 2 {
        return Err("two rows are too many".to_owned());
    }
    for column in 0..x.size(1) {
        out[[0, column]] = T::from_f64(x[[0, column]].to_f64() * weight[[column]].to_f64());
    }
    Ok(())
}

mod one_function_a_dtype {
    use super::*;

    #[op("embedding")]
    fn embedding_f32(table: View<f32>, ids: View<i32>, out: &mut Tensor) {
        let mut out = out.view_mut::<f32>();
        for row in 0..ids.size(0) {
            out[[row, 0]] = table[[ids[[row]] as usize, 0]];
        }
    }

    #[op("embedding")]
    fn embedding_f16(table: View<f16>, ids: &Tensor) -> Tensor {
        let picked: Vec<f16> = ids.data::<i32>().iter().map(|&id| table[[id as usize, 0]]).collect();
        Tensor::from_slice(&[picked.len(), 1], &picked)
    }
}

#[op("accumulate")]
fn dynamic(call: &mut Call<'_>) -> Result<(), SubjectError> {
    let [(_, total), (_, x)] = &mut *call.inputs else { panic!("two inputs") };
    *total = x.clone();
    Ok(())
}

fn tensors<const N: usize>(tensors: [(&str, Tensor); N]) -> Vec<(String, Tensor)> {
    tensors.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect()
}

fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values)
}

/// Runs the functions bound to an op with an output `out` of poison.
fn run(op: &str, inputs: &mut [(String, Tensor)], out: Tensor, axis: i64) -> Result<Tensor, SubjectError> {
    let function = Function::bound(op).unwrap().unwrap();
    let mut outputs = [("out".to_owned(), Some(out))];
    let params = [("axis".to_owned(), ParamValue::Int(axis))];
    let dtype = inputs[0].1.dtype();
    function.run(&mut Call { dtype, inputs, outputs: &mut outputs, dims: &[], params: &params, notes: Vec::new() })?;
    let [(_, out)] = outputs;
    Ok(out.expect("an output"))
}

#[test]
fn a_generic_function_serves_every_dtype_of_the_op() {
    let function = Function::bound("softmax").unwrap().unwrap();
    assert_eq!(function.dtypes().collect::<Vec<_>>(), [DType::Float32, DType::Float16]);
    assert_eq!(function.describe(), "function generic");
    let out = run("softmax", &mut tensors([("x", f32s(&[1, 2], &[1.0, 2.0]))]), f32s(&[1, 2], &[9.0; 2]), -1);
    assert_eq!(out, Ok(f32s(&[1, 2], &[-1.0, -2.0])));
    let half = |value| Tensor::from_slice(&[1, 1], &[f16::from_f32(value)]);
    assert_eq!(run("softmax", &mut tensors([("x", half(3.0))]), half(9.0), 2), Ok(half(6.0)));
}

#[test]
fn arguments_are_matched_by_name_and_errors_passed_on() {
    let case = |rows: usize| {
        let x = f32s(&[rows, 2], &[1.0, 2.0].repeat(rows));
        let mut inputs = tensors([("x", x.clone()), ("weight", f32s(&[2], &[3.0, 4.0]))]);
        run("layer_norm", &mut inputs, x, 0)
    };
    assert_eq!(case(1), Ok(f32s(&[1, 2], &[3.0, 8.0])));
    let error = case(2).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), ("error", "returned an error: two rows are too many"));
}

#[test]
fn two_functions_share_an_op() {
    let function = Function::bound("embedding").unwrap().unwrap();
    assert_eq!(function.describe(), "functions embedding_f32, embedding_f16");
    let ids = || Tensor::from_slice(&[2], &[1i32, 0]);
    let mut inputs = tensors([("table", f32s(&[2, 1], &[5.0, 6.0])), ("ids", ids())]);
    assert_eq!(run("embedding", &mut inputs, f32s(&[2, 1], &[9.0; 2]), 0), Ok(f32s(&[2, 1], &[6.0, 5.0])));
    let halves = |values: [f32; 2]| Tensor::from_slice(&[2, 1], &values.map(f16::from_f32));
    let mut inputs = tensors([("table", halves([5.0, 6.0])), ("ids", ids())]);
    assert_eq!(run("embedding", &mut inputs, halves([9.0; 2]), 0), Ok(halves([6.0, 5.0])));
}

#[test]
fn the_dynamic_form_takes_the_whole_call() {
    let mut inputs = tensors([("total", f32s(&[1], &[1.0])), ("x", f32s(&[1], &[2.0]))]);
    run("accumulate", &mut inputs, f32s(&[0], &[]), 0).unwrap();
    assert_eq!(inputs[0].1, f32s(&[1], &[2.0]));
}

#[test]
fn bindings_know_where_they_stand() {
    let bindings = Binding::all();
    let places: Vec<(&str, &str)> = bindings.iter().map(|binding| (binding.op, binding.function)).collect();
    let expected = [
        ("accumulate", "dynamic"),
        ("embedding", "embedding_f32"),
        ("embedding", "embedding_f16"),
        ("layer_norm", "in_any_order"),
        ("softmax", "generic"),
    ];
    assert_eq!(places, expected);
    assert!(bindings.iter().all(|binding| binding.file.ends_with("bindings.rs")));
    assert_eq!(bindings[4].line, 7, "the line of the attribute");
    assert!(Function::bound("nothing").unwrap().is_none());
}

#[test]
fn a_bound_function_stays_callable() {
    let (x, mut out) = (f32s(&[1, 1], &[2.0]), f32s(&[1, 1], &[0.0]));
    generic::<f32>(x.view(), out.view_mut(), 3);
    assert_eq!(out, f32s(&[1, 1], &[6.0]));
}
