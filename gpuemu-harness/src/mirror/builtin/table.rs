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
    /// Whether slices before the pooled axes stand alone, see [`Mirror::separable_axes`].
    separable: bool,
}

/// The built-in reference of that exact name.
pub fn find(name: &str) -> Option<Operator> {
    let (answer, pools, separable) = functions(name)?;
    Some(Operator { declaration: Builtin::find(name)?, answer, pools, separable })
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

    fn separable_axes(&self, question: &Question<'_>, output: usize) -> usize {
        let pooled = if self.separable { self.pooled_axes(question, output) } else { Vec::new() };
        pooled.into_iter().min().unwrap_or(0)
    }
}

/// One line an operator: `"name" => module::function;`, where `fn function<R: Real>(&Arguments) -> Result<Vec<Array>>`
/// evaluates in the number type `R`. `, pools module::function` names the `fn(&Arguments) -> Result<Vec<usize>>` that
/// answers [`Mirror::pooled_axes`]; without it every element stands alone. `by row` instead of `pools`: the axes before
/// those are separable.
macro_rules! operators {
    ($($name:literal => $($answer:ident)::+ $(, pools $pools:path)? $(, by row $rows:path)?;)*) => {
        type Functions = (fn(&Arguments<'_>) -> Result<Vec<Array>>, fn(&Arguments<'_>) -> Result<Vec<usize>>, bool);

        fn functions(name: &str) -> Option<Functions> {
            Some(match name {
                $($name => (
                    |arguments| with_real!(arguments.precision(), R => $($answer)::+::<R>(arguments)),
                    operators!(@pools $($pools)? $($rows)?),
                    operators!(@separable $($rows)?),
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
    (@separable) => { false };
    (@separable $rows:path) => { true };
}

operators! {
    "softmax" => normalize::softmax, by row normalize::pools_axis;
    "log_softmax" => normalize::log_softmax, by row normalize::pools_axis;
    "layer_norm" => norm::layer_norm, by row norm::pools_last;
    "rms_norm" => norm::rms_norm, by row norm::pools_last;
    "group_norm" => norm::group_norm, pools norm::pools_all_but_first;
    "l2_norm" => norm::l2_norm, by row normalize::pools_axis;

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
    "cumsum" => reduction::cumsum, by row normalize::pools_axis;

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
    use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};

    #[test]
    fn a_separable_slice_answered_alone_is_the_slice_of_the_whole_answer() {
        let mut separable = 0;
        for name in NAMES {
            let operator = find(name).expect("a name of the table");
            if !operator.separable {
                continue;
            }
            separable += 1;
            let values =
                |count: usize| (0..count).map(|at| ((at * 37 + 11) % 64) as f64 / 8.0 - 3.5).collect::<Vec<_>>();
            let ask = |shape: &[usize], values: Vec<f64>, precision| {
                let mut inputs = vec![("x".to_owned(), Array::float(DType::Float32, shape, values))];
                if name.ends_with("_norm") && *name != "l2_norm" {
                    let weight = (0..shape[3]).map(|at| 1.0 + at as f64 / 4.0).collect();
                    inputs.push(("weight".to_owned(), Array::float(DType::Float32, &shape[3..], weight)));
                }
                let params = match operator.declaration.params.iter().any(|param| param.name == "axis") {
                    true => vec![("axis".to_owned(), ParamValue::Int(2))],
                    false => Vec::new(),
                };
                let question = Question {
                    inputs: &inputs,
                    params: &params,
                    outputs: &[("out".to_owned(), DType::Float32)],
                    precision,
                    edges: EdgePolicy::default(),
                };
                let axes = operator.separable_axes(&question, 0);
                (operator.answer(&question).expect("an answer").remove(0).floats().expect("floats").to_vec(), axes)
            };
            for precision in [Compute::Float64, Compute::Float32, Compute::Float16] {
                let (whole, axes) = ask(&[2, 3, 5, 4], values(120), precision);
                let expected_axes =
                    if operator.declaration.params.iter().any(|param| param.name == "axis") { 2 } else { 3 };
                assert_eq!(axes, expected_axes, "{name}");
                // Slices 2..5 of the two leading axes; of three, as many elements are slices 10..25.
                let slice = values(120)[40..100].to_vec();
                let shape = if axes == 2 { [1, 3, 5, 4] } else { [1, 1, 15, 4] };
                let (part, _) = ask(&shape, slice, precision);
                assert_eq!(part, whole[40..100], "{name} in {precision:?}");
            }
        }
        assert_eq!(separable, 6);
    }

    #[test]
    fn every_name_of_the_table_is_declared() {
        for name in NAMES {
            assert!(Builtin::find(name).is_some(), "{name} is computed but not declared");
            assert_eq!(find(name).expect("a name of the table").declaration().name, *name);
        }
    }
}
