//! What a bound function returns, and which outputs that stands for.

use crate::argument::{last_name, type_arguments, written};
use gpuemu_contract::Op;
use syn::{Error, Result, ReturnType, Type};

/// How many tensors a function returns.
enum Returned {
    /// That many.
    Tensors(usize),
    /// A `Vec`: known when it runs.
    Any,
}

/// The outputs that a function returns, in order: those that are no arguments.
pub fn returned_outputs(output: &ReturnType, op: &Op, arguments: &[String]) -> Result<Vec<String>> {
    let outputs = op.schema.outputs.iter().map(|tensor| &tensor.name);
    let left: Vec<String> = outputs.filter(|name| !arguments.contains(name)).cloned().collect();
    let returned = match output {
        ReturnType::Default => Returned::Tensors(0),
        ReturnType::Type(_, ty) => count(ty)?,
    };
    let names: Vec<String> = left.iter().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    match (returned, output) {
        (Returned::Any, _) => Ok(left),
        (Returned::Tensors(count), _) if count == left.len() => Ok(left),
        (Returned::Tensors(count), ReturnType::Type(_, ty)) if count > 0 => {
            let wanted = match left.len() {
                0 => "every output is an argument already: return nothing".to_owned(),
                1 => format!("one is left to return: {names}"),
                more => format!("{more} are left to return: {names}"),
            };
            Err(Error::new_spanned(
                ty,
                format!("this returns {count} of the outputs of op `{}`, but {wanted}", op.name),
            ))
        }
        // Nothing is returned and outputs are left: a missing argument, which the caller reports with the others.
        _ => Ok(Vec::new()),
    }
}

fn count(ty: &Type) -> Result<Returned> {
    match ty {
        Type::Tuple(tuple) if tuple.elems.iter().all(|element| last_name(element).as_deref() == Some("Tensor")) => {
            Ok(Returned::Tensors(tuple.elems.len()))
        }
        Type::Never(_) => Ok(Returned::Tensors(0)),
        Type::Paren(inner) => count(&inner.elem),
        _ => match (last_name(ty).as_deref(), &type_arguments(ty)[..]) {
            (Some("Tensor"), []) => Ok(Returned::Tensors(1)),
            (Some("Vec"), [element]) if last_name(element).as_deref() == Some("Tensor") => Ok(Returned::Any),
            (Some("Result"), [value, ..]) => count(value),
            (Some("Result"), []) => Ok(Returned::Any),
            _ => Err(Error::new_spanned(
                ty,
                format!(
                    "a bound function returns nothing, a Tensor, a tuple of Tensors, a Vec<Tensor>, or a Result of one \
                     of these, not {}",
                    written(ty)
                ),
            )),
        },
    }
}
