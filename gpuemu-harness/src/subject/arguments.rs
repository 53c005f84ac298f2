//! The bridge from a call to a typed function: its tensors and parameters by name, and what it returns.

use super::{Call, SubjectError};
use crate::tensor::{Element, Tensor, View, ViewMut};
use gpuemu_contract::ParamValue;
use std::fmt::Display;

/// The tensors and parameters of a call, handed out by name, each tensor once.
#[derive(Debug)]
pub struct Arguments<'c> {
    inputs: Vec<(&'c str, Option<&'c mut Tensor>)>,
    outputs: Vec<(&'c str, Option<&'c mut Tensor>)>,
    params: &'c [(String, ParamValue)],
}

impl<'c> Arguments<'c> {
    /// All of a call.
    pub fn of(call: &'c mut Call<'_>) -> Arguments<'c> {
        Arguments {
            inputs: call.inputs.iter_mut().map(|(name, tensor)| (name.as_str(), Some(tensor))).collect(),
            outputs: call.outputs.iter_mut().map(|(name, tensor)| (name.as_str(), tensor.as_mut())).collect(),
            params: call.params,
        }
    }

    /// An input to read.
    pub fn input(&mut self, name: &str) -> Result<&'c Tensor, SubjectError> {
        self.inout(name).map(|tensor| &*tensor)
    }

    /// An `inout` tensor.
    pub fn inout(&mut self, name: &str) -> Result<&'c mut Tensor, SubjectError> {
        take(&mut self.inputs, name).ok_or_else(|| mismatch(format!("the case has no input `{name}`")))
    }

    /// An output to write.
    pub fn output(&mut self, name: &str) -> Result<&'c mut Tensor, SubjectError> {
        take(&mut self.outputs, name).ok_or_else(|| {
            let known = self.outputs.iter().any(|(own, _)| *own == name);
            mismatch(if known {
                format!(
                    "output `{name}` declares no shape, so there is nothing to write into; give it one under \
                     [ops.schema] outputs, or return a Tensor"
                )
            } else {
                format!("the case has no output `{name}`")
            })
        })
    }

    /// An input, typed.
    pub fn view<T: Element>(&mut self, name: &str) -> Result<View<'c, T>, SubjectError> {
        let tensor = self.input(name)?;
        check_dtype::<T>(tensor, name)?;
        Ok(tensor.view())
    }

    /// An `inout` tensor, typed.
    pub fn view_inout<T: Element>(&mut self, name: &str) -> Result<ViewMut<'c, T>, SubjectError> {
        let tensor = self.inout(name)?;
        check_dtype::<T>(tensor, name)?;
        Ok(tensor.view_mut())
    }

    /// An output, typed.
    pub fn view_output<T: Element>(&mut self, name: &str) -> Result<ViewMut<'c, T>, SubjectError> {
        let tensor = self.output(name)?;
        check_dtype::<T>(tensor, name)?;
        Ok(tensor.view_mut())
    }

    /// A parameter, as the type the function takes.
    pub fn param<P: FromParam<'c>>(&self, name: &str) -> Result<P, SubjectError> {
        let value = self.params.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        let value = value.ok_or_else(|| mismatch(format!("the case has no parameter `{name}`")))?;
        P::from_param(value).ok_or_else(|| {
            mismatch(format!("parameter `{name}` is {value}, which is no {}", std::any::type_name::<P>()))
        })
    }
}

fn take<'c>(tensors: &mut [(&'c str, Option<&'c mut Tensor>)], name: &str) -> Option<&'c mut Tensor> {
    tensors.iter_mut().find(|(own, _)| *own == name).and_then(|(_, tensor)| tensor.take())
}

fn check_dtype<T: Element>(tensor: &Tensor, name: &str) -> Result<(), SubjectError> {
    if tensor.dtype() == T::DTYPE {
        return Ok(());
    }
    Err(mismatch(format!("tensor `{name}` is {}, the function takes {}", tensor.dtype(), T::DTYPE)))
}

/// The function and the case do not fit: the contract at run time is not the one the function was compiled against.
fn mismatch(message: String) -> SubjectError {
    SubjectError { kind: "mismatch", message, fault: false }
}

/// A type a parameter can be handed over as.
pub trait FromParam<'c>: Sized {
    /// The value, if the type holds it.
    fn from_param(value: &'c ParamValue) -> Option<Self>;
}

macro_rules! integers {
    ($($T:ty),*) => {$(
        impl FromParam<'_> for $T {
            fn from_param(value: &ParamValue) -> Option<Self> {
                match value {
                    ParamValue::Int(value) => Self::try_from(*value).ok(),
                    _ => None,
                }
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl FromParam<'_> for f64 {
    fn from_param(value: &ParamValue) -> Option<Self> {
        match value {
            ParamValue::Float(value) => Some(*value),
            ParamValue::Int(value) => Some(*value as f64),
            _ => None,
        }
    }
}

impl FromParam<'_> for f32 {
    /// The nearest float32.
    fn from_param(value: &ParamValue) -> Option<Self> {
        f64::from_param(value).map(|value| value as f32)
    }
}

impl FromParam<'_> for bool {
    fn from_param(value: &ParamValue) -> Option<Self> {
        match value {
            ParamValue::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

impl<'c> FromParam<'c> for &'c str {
    fn from_param(value: &'c ParamValue) -> Option<Self> {
        match value {
            ParamValue::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// What a bound function may return.
pub trait Answer {
    /// The tensors it returned, for the outputs that it does not write through arguments; or why it could not answer.
    fn tensors(self) -> Result<Vec<Tensor>, SubjectError>;
}

impl Answer for () {
    fn tensors(self) -> Result<Vec<Tensor>, SubjectError> {
        Ok(Vec::new())
    }
}

impl Answer for Tensor {
    fn tensors(self) -> Result<Vec<Tensor>, SubjectError> {
        Ok(vec![self])
    }
}

impl Answer for Vec<Tensor> {
    fn tensors(self) -> Result<Vec<Tensor>, SubjectError> {
        Ok(self)
    }
}

impl<A: Answer, E: Display> Answer for Result<A, E> {
    fn tensors(self) -> Result<Vec<Tensor>, SubjectError> {
        match self {
            Ok(answer) => answer.tensors(),
            Err(error) => {
                Err(SubjectError { kind: "error", message: format!("returned an error: {error}"), fault: false })
            }
        }
    }
}

macro_rules! tuples {
    ($(($($place:tt)*))*) => {$(
        impl Answer for ($(tuples!(@tensor $place),)*) {
            fn tensors(self) -> Result<Vec<Tensor>, SubjectError> {
                Ok(vec![$(self.$place),*])
            }
        }
    )*};
    (@tensor $place:tt) => { Tensor };
}
tuples!((0) (0 1) (0 1 2) (0 1 2 3) (0 1 2 3 4) (0 1 2 3 4 5));

/// Leaves what a function returned where the call wants it: `names` are the outputs it returns, in order.
pub fn give(answer: impl Answer, call: &mut Call<'_>, names: &[&str]) -> Result<(), SubjectError> {
    let tensors = answer.tensors()?;
    if tensors.len() != names.len() {
        let (count, plural) = (tensors.len(), if tensors.len() == 1 { "" } else { "s" });
        let message = format!("returned {count} tensor{plural}, the op has {}: {}", names.len(), names.join(", "));
        return Err(SubjectError { kind: "mismatch", message, fault: false });
    }
    for (name, tensor) in names.iter().zip(tensors) {
        let place = call.outputs.iter_mut().find(|(own, _)| own == name);
        let (_, place) = place.ok_or_else(|| mismatch(format!("the case has no output `{name}`")))?;
        *place = Some(tensor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_contract::DType;

    fn with_call<R>(outputs: &mut [(String, Option<Tensor>)], body: impl FnOnce(&mut Call<'_>) -> R) -> R {
        let mut inputs = [("x".to_owned(), Tensor::from_slice(&[2], &[1.0f32, 2.0]))];
        let params = [
            ("axis".to_owned(), ParamValue::Int(-1)),
            ("eps".to_owned(), ParamValue::Float(0.5)),
            ("causal".to_owned(), ParamValue::Bool(true)),
            ("mode".to_owned(), ParamValue::Text("tanh".to_owned())),
        ];
        body(&mut Call {
            dtype: DType::Float32,
            inputs: &mut inputs,
            outputs,
            dims: &[],
            params: &params,
            notes: Vec::new(),
        })
    }

    #[test]
    fn parameters_take_the_type_that_is_asked_for() {
        with_call(&mut [], |call| {
            let arguments = Arguments::of(call);
            assert_eq!(arguments.param::<i64>("axis"), Ok(-1));
            assert_eq!(arguments.param::<f32>("axis"), Ok(-1.0));
            assert_eq!(arguments.param::<f64>("eps"), Ok(0.5));
            assert_eq!(arguments.param::<bool>("causal"), Ok(true));
            assert_eq!(arguments.param::<&str>("mode"), Ok("tanh"));
            let wrong = arguments.param::<usize>("axis").unwrap_err();
            assert_eq!(wrong.message, "parameter `axis` is -1, which is no usize");
            assert_eq!(arguments.param::<i64>("k").unwrap_err().message, "the case has no parameter `k`");
        });
    }

    #[test]
    fn tensors_that_do_not_fit_are_named() {
        let mut outputs = [("out".to_owned(), Some(Tensor::from_slice(&[1], &[0.0f32]))), ("free".to_owned(), None)];
        with_call(&mut outputs, |call| {
            let mut arguments = Arguments::of(call);
            assert!(arguments.view_output::<f32>("out").is_ok());
            let message = arguments.view::<f64>("x").unwrap_err().message;
            assert_eq!(message, "tensor `x` is float32, the function takes float64");
            assert!(arguments.output("free").unwrap_err().message.starts_with("output `free` declares no shape"));
            assert_eq!(arguments.output("y").unwrap_err().message, "the case has no output `y`");
        });
    }

    #[test]
    fn answers_go_where_they_belong() {
        let (one, two) = (Tensor::from_slice(&[1], &[1i32]), Tensor::from_slice(&[1], &[2i32]));
        let mut outputs = [("first".to_owned(), None), ("second".to_owned(), None)];
        with_call(&mut outputs, |call| {
            assert_eq!(give((), call, &[]), Ok(()));
            let pair = Ok::<_, String>((one.clone(), two.clone()));
            assert_eq!(give(pair, call, &["second", "first"]), Ok(()));
            let error = give(vec![one.clone()], call, &["first", "second"]).unwrap_err();
            assert_eq!(error.message, "returned 1 tensor, the op has 2: first, second");
            let error = give(Err::<(), _>("out of tiles"), call, &[]).unwrap_err();
            assert_eq!((error.kind, error.message.as_str()), ("error", "returned an error: out of tiles"));
        });
        assert_eq!((&outputs[0].1, &outputs[1].1), (&Some(two), &Some(one)));
    }
}
