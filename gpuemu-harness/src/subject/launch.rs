//! A `[kernels.launch]` with the numbers of one case: how many threads, and what the kernel is handed.

use super::placement::{ALIGN, refused};
use super::{Call, SubjectError};
use crate::case::shape::bindings;
use gpuemu_contract::{Argument as Declared, Expression, Launch, ParamValue};
use gpuemu_ptx::emulate::{Argument, Shape};
use gpuemu_ptx::memory::Global;
use gpuemu_ptx::program::{Function, Parameter, ScalarType};

/// The grid, the block and the dynamic shared memory of a case.
///
/// # Errors
///
/// An expression without a value, or one that is no size.
pub fn shape(launch: &Launch, call: &Call<'_>) -> Result<Shape, SubjectError> {
    let bindings = bindings(call.dims, call.params);
    let size = |what: &str, expression: &Expression| {
        let value = value_of(what, expression, &bindings)?;
        u32::try_from(value)
            .map_err(|_| wrong(format!("the launch's {what} `{expression}` is {value}, which is no size")))
    };
    let extents = |what: &str, axes: &[Expression]| {
        let mut extents = [1; 3];
        for (extent, axis) in extents.iter_mut().zip(axes) {
            *extent = size(what, axis)?;
        }
        Ok(extents)
    };
    Ok(Shape {
        grid: extents("grid", &launch.grid)?,
        block: extents("block", &launch.block)?,
        shared: size("shared memory", &launch.shared)?,
    })
}

/// The arguments of a case, tensors at the addresses that `address` gives, and what the kernel has for itself in `memory`.
///
/// # Errors
///
/// A value that the kernel's parameter does not take, and a workspace that the device has no room for. Whether there are
/// as many as parameters, the device says.
pub fn arguments(
    launch: &Launch,
    call: &Call<'_>,
    entry: &Function,
    address: impl Fn(&str) -> Option<u64>,
    memory: &Global,
) -> Result<Vec<Argument>, SubjectError> {
    let bindings = bindings(call.dims, call.params);
    let parameters = entry.parameters.iter().map(Some).chain(std::iter::repeat(None));
    let one = |(declared, parameter): (&Declared, Option<&Parameter>)| match declared {
        Declared::Tensor(name) => address(name)
            .map(Argument::Pointer)
            .ok_or_else(|| wrong(format!("the case has no tensor `{name}` to hand to the kernel"))),
        Declared::Integer(expression) => {
            let value = value_of("argument", expression, &bindings)?;
            match parameter.map(|parameter| (&parameter.name, ScalarType::from(parameter.ty))) {
                // The bits of an integer would pass for a number there.
                Some((name, ty)) if ty.is_float() => Err(wrong(format!(
                    "the launch's argument `{expression}` is an integer, and the kernel's parameter `{name}` is {ty}: \
                     say so, as in \"{ty}:{value}\""
                ))),
                _ => Ok(Argument::Integer(i128::from(value))),
            }
        }
        Declared::Workspace(expression) => {
            let value = value_of("workspace", expression, &bindings)?;
            let bytes = u64::try_from(value)
                .map_err(|_| wrong(format!("the launch's workspace `{expression}` has {value} bytes")))?;
            memory.allocate(bytes, ALIGN, "the workspace").map(Argument::Pointer).map_err(refused)
        }
        Declared::Typed(kind, text) => {
            // Of a float the bits would pass for an integer, and the other way round.
            let taken = parameter.map(|parameter| (&parameter.name, ScalarType::from(parameter.ty)));
            if let Some((name, ty)) = taken
                && (ty.is_float() && kind.starts_with(['s', 'u']) || is_integer(ty) && kind.contains('f'))
            {
                return Err(wrong(format!(
                    "the launch's argument `{kind}:{text}` is {kind}, and the kernel's parameter `{name}` is {ty}"
                )));
            }
            let param = call.params.iter().find(|(name, _)| name == text).map(|(_, value)| value);
            typed(kind, text, param).ok_or_else(|| {
                let value = param.map_or_else(String::new, |value| format!(" (here {value})"));
                wrong(format!("the launch's argument `{kind}:{text}`{value} is no value of type {kind}"))
            })
        }
    };
    launch.args.iter().zip(parameters).map(one).collect()
}

/// Whether a parameter is declared as an integer, and not as bits.
fn is_integer(ty: ScalarType) -> bool {
    use ScalarType::*;
    matches!(ty, S8 | S16 | S32 | S64 | U8 | U16 | U32 | U64)
}

fn value_of(what: &str, expression: &Expression, bindings: &[(String, i64)]) -> Result<i64, SubjectError> {
    expression
        .evaluate(bindings)
        .map_err(|error| wrong(format!("the launch's {what} `{expression}` has no value: {error}")))
}

/// An argument of a PTX type: a literal, or a parameter's value.
fn typed(kind: &str, text: &str, param: Option<&ParamValue>) -> Option<Argument> {
    let number = || match param {
        Some(ParamValue::Float(value)) => Some(*value),
        Some(ParamValue::Int(value)) => Some(*value as f64),
        Some(ParamValue::Bool(value)) => Some(f64::from(u8::from(*value))),
        Some(ParamValue::Text(_)) => None,
        None => text.parse().ok(),
    };
    let integer = || match param {
        Some(ParamValue::Int(value)) => Some(i128::from(*value)),
        Some(ParamValue::Bool(value)) => Some(i128::from(*value)),
        Some(ParamValue::Float(_) | ParamValue::Text(_)) => None,
        None => text.parse().ok(),
    };
    let bytes = match kind {
        // A literal is rounded once, from its decimal digits.
        "f32" if param.is_none() => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        "f32" => (number()? as f32).to_le_bytes().to_vec(),
        "f64" => number()?.to_le_bytes().to_vec(),
        "f16" => half::f16::from_f64(number()?).to_le_bytes().to_vec(),
        "bf16" => half::bf16::from_f64(number()?).to_le_bytes().to_vec(),
        _ => {
            let (sign, bits) = kind.split_at_checked(1)?;
            let bits: u32 = bits.parse().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64))?;
            let (least, most) = match sign {
                "s" => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                "u" => (0, (1i128 << bits) - 1),
                // Bits have no sign.
                _ => (-(1i128 << (bits - 1)), (1i128 << bits) - 1),
            };
            let value = integer().filter(|value| (least..=most).contains(value))?;
            value.to_le_bytes()[..bits as usize / 8].to_vec()
        }
    };
    Some(Argument::Bytes(bytes))
}

fn wrong(message: String) -> SubjectError {
    SubjectError { kind: "launch", message, fault: false }
}
