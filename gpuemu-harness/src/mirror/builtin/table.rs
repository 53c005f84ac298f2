//! The table of built-in references: a name, how it is computed, what it pools along.

use super::arguments::Arguments;
use super::{activation, arithmetic, attention, convolution, cross_entropy, index, norm, normalize, product, quantize};
use super::{reduction, rope, transpose};
use crate::error::{Error, Result};
use crate::mirror::{Mirror, Question};
use crate::tensor::Array;
use crate::with_real;
use gpuemu_contract::builtin::Builtin;

/// A built-in reference.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    declaration: &'static Builtin,
    answer: fn(&Arguments<'_>) -> Result<Vec<Array>>,
    pools: fn(&Arguments<'_>) -> Result<Vec<usize>>,
}

/// The built-in reference of that exact name.
pub fn find(name: &str) -> Option<Operator> {
    let (answer, pools) = functions(name)?;
    Some(Operator { declaration: Builtin::find(name)?, answer, pools })
}

impl Operator {
    /// Its inputs, outputs and parameters.
    pub fn declaration(&self) -> &'static Builtin {
        self.declaration
    }
}

impl Mirror for Operator {
    fn answer(&self, question: &Question<'_>) -> Result<Vec<Array>> {
        let answers = (self.answer)(&Arguments::new(self.declaration, question)?)?;
        if answers.len() != question.outputs.len() {
            return Err(Error::Config(format!(
                "{} has {} output(s), the op declares {}",
                self.declaration.name,
                answers.len(),
                question.outputs.len()
            )));
        }
        Ok(answers)
    }

    fn pooled_axes(&self, question: &Question<'_>, _output: usize) -> Vec<usize> {
        // A question that cannot be answered has nothing to pool; `answer` says what is wrong with it.
        Arguments::new(self.declaration, question).and_then(|arguments| (self.pools)(&arguments)).unwrap_or_default()
    }
}

/// One line an operator: `"name" => module::function;`, where `fn function<R: Real>(&Arguments) -> Result<Vec<Array>>`
/// evaluates in the number type `R`. `, pools module::function` names the `fn(&Arguments) -> Result<Vec<usize>>` that
/// answers [`Mirror::pooled_axes`]; without it every element stands alone.
macro_rules! operators {
    ($($name:literal => $($answer:ident)::+ $(, pools $pools:path)?;)*) => {
        type Functions = (fn(&Arguments<'_>) -> Result<Vec<Array>>, fn(&Arguments<'_>) -> Result<Vec<usize>>);

        fn functions(name: &str) -> Option<Functions> {
            Some(match name {
                $($name => (
                    |arguments| with_real!(arguments.precision(), R => $($answer)::+::<R>(arguments)),
                    operators!(@pools $($pools)?),
                ),)*
                _ => return None,
            })
        }

        /// The names the table has.
        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];
    };
    (@pools) => { |_| Ok(Vec::new()) };
    (@pools $pools:path) => { $pools };
}

operators! {
    "softmax" => normalize::softmax, pools normalize::pools_axis;
    "log_softmax" => normalize::log_softmax, pools normalize::pools_axis;
    "layer_norm" => norm::layer_norm, pools norm::pools_last;
    "rms_norm" => norm::rms_norm, pools norm::pools_last;
    "group_norm" => norm::group_norm, pools norm::pools_all_but_first;
    "l2_norm" => norm::l2_norm, pools normalize::pools_axis;

    "relu" => activation::relu;
    "leaky_relu" => activation::leaky_relu;
    "elu" => activation::elu;
    "gelu" => activation::gelu;
    "silu" => activation::silu;
    "sigmoid" => activation::sigmoid;
    "tanh" => activation::tanh;
    "exp" => activation::exp;
    "swiglu" => activation::swiglu;

    "add" => arithmetic::add;
    "sub" => arithmetic::sub;
    "mul" => arithmetic::mul;
    "div" => arithmetic::div;
    "fma" => arithmetic::fma;

    "sum" => reduction::sum;
    "mean" => reduction::mean;
    "var" => reduction::var;
    "max" => reduction::max;
    "min" => reduction::min;
    "argmax" => reduction::argmax;
    "cumsum" => reduction::cumsum, pools normalize::pools_axis;

    "transpose" => transpose::transpose;
    "quantize" => quantize::quantize;
    "dequantize" => quantize::dequantize;

    "matmul" => product::matmul;
    "batched_matmul" => product::batched_matmul;
    "linear" => product::linear;
    "attention" => attention::attention;
    "cross_entropy" => cross_entropy::cross_entropy;
    "rope" => rope::rope;
    "embedding" => index::embedding;
    "gather" => index::gather;
    "scatter_add" => index::scatter_add;
    "conv2d" => convolution::conv2d;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_is_declared() {
        for name in NAMES {
            assert!(Builtin::find(name).is_some(), "{name} is computed but not declared");
            assert_eq!(find(name).expect("a name of the table").declaration().name, *name);
        }
    }
}
