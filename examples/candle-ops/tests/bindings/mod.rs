//! candle's operators as the ops of `gpuemu.toml`: arguments have the names that the ops give them.

use candle_core::Module;
use candle_nn::{Conv2d, Conv2dConfig, ops, rotary_emb};
use candle_ops::{Scalar, answer, axis as axis_of, tensor};
use gpuemu_harness::{View, ViewMut, op};

#[op("softmax")]
#[op("softmax_f16")]
#[op("softmax_bf16")]
fn softmax<T: Scalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    answer(out, || ops::softmax(&tensor(x)?, axis_of(axis, x.rank())));
}

#[op("softmax_last_dim")]
#[op("softmax_last_dim_f16")]
#[op("softmax_last_dim_bf16")]
fn softmax_last_dim<T: Scalar>(x: View<T>, out: ViewMut<T>) {
    answer(out, || ops::softmax_last_dim(&tensor(x)?));
}

#[op("log_softmax")]
#[op("log_softmax_f16")]
#[op("log_softmax_bf16")]
fn log_softmax<T: Scalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    answer(out, || ops::log_softmax(&tensor(x)?, axis_of(axis, x.rank())));
}

#[op("layer_norm")]
fn layer_norm<T: Scalar>(x: View<T>, weight: View<T>, bias: View<T>, out: ViewMut<T>, eps: f64) {
    answer(out, || ops::layer_norm(&tensor(x)?, &tensor(weight)?, &tensor(bias)?, eps as f32));
}

#[op("layer_norm_slow")]
fn layer_norm_slow<T: Scalar>(x: View<T>, weight: View<T>, bias: View<T>, out: ViewMut<T>, eps: f64) {
    answer(out, || ops::layer_norm_slow(&tensor(x)?, &tensor(weight)?, &tensor(bias)?, eps as f32));
}

#[op("rms_norm")]
fn rms_norm<T: Scalar>(x: View<T>, weight: View<T>, out: ViewMut<T>, eps: f64) {
    answer(out, || ops::rms_norm(&tensor(x)?, &tensor(weight)?, eps as f32));
}

#[op("rms_norm_slow")]
fn rms_norm_slow<T: Scalar>(x: View<T>, weight: View<T>, out: ViewMut<T>, eps: f64) {
    answer(out, || ops::rms_norm_slow(&tensor(x)?, &tensor(weight)?, eps as f32));
}

#[op("rope")]
#[op("rope_f16")]
#[op("rope_bf16")]
fn rope<T: Scalar>(x: View<T>, cos: View<T>, sin: View<T>, out: ViewMut<T>) {
    answer(out, || rotary_emb::rope(&tensor(x)?, &tensor(cos)?, &tensor(sin)?));
}

#[op("rope_i")]
#[op("rope_i_f16")]
#[op("rope_i_bf16")]
fn rope_i<T: Scalar>(x: View<T>, cos: View<T>, sin: View<T>, out: ViewMut<T>) {
    answer(out, || rotary_emb::rope_i(&tensor(x)?, &tensor(cos)?, &tensor(sin)?));
}

#[op("rope_slow")]
#[op("rope_slow_f16")]
#[op("rope_slow_bf16")]
fn rope_slow<T: Scalar>(x: View<T>, cos: View<T>, sin: View<T>, out: ViewMut<T>) {
    answer(out, || rotary_emb::rope_slow(&tensor(x)?, &tensor(cos)?, &tensor(sin)?));
}

#[op("rope_i_slow")]
#[op("rope_i_slow_f16")]
#[op("rope_i_slow_bf16")]
fn rope_i_slow<T: Scalar>(x: View<T>, cos: View<T>, sin: View<T>, out: ViewMut<T>) {
    answer(out, || rotary_emb::rope_i_slow(&tensor(x)?, &tensor(cos)?, &tensor(sin)?));
}

#[op("silu")]
#[op("silu_f16")]
#[op("silu_bf16")]
fn silu<T: Scalar>(x: View<T>, out: ViewMut<T>) {
    answer(out, || ops::silu(&tensor(x)?));
}

#[op("gelu")]
fn gelu<T: Scalar>(x: View<T>, out: ViewMut<T>) {
    answer(out, || tensor(x)?.gelu_erf());
}

#[op("gelu_tanh")]
#[op("gelu_tanh_f16")]
#[op("gelu_tanh_bf16")]
fn gelu_tanh<T: Scalar>(x: View<T>, out: ViewMut<T>) {
    answer(out, || tensor(x)?.gelu());
}

#[op("leaky_relu")]
#[op("leaky_relu_f16")]
#[op("leaky_relu_bf16")]
fn leaky_relu<T: Scalar>(x: View<T>, out: ViewMut<T>, slope: f64) {
    answer(out, || ops::leaky_relu(&tensor(x)?, slope));
}

#[op("matmul")]
#[op("matmul_f16")]
fn matmul<T: Scalar>(a: View<T>, b: View<T>, out: ViewMut<T>) {
    answer(out, || tensor(a)?.matmul(&tensor(b)?));
}

#[op("batched_matmul")]
#[op("batched_matmul_f16")]
fn batched_matmul<T: Scalar>(a: View<T>, b: View<T>, out: ViewMut<T>) {
    answer(out, || tensor(a)?.matmul(&tensor(b)?));
}

#[op("conv2d")]
#[op("conv2d_f16")]
#[allow(clippy::too_many_arguments)] // Three tensors, an answer and the four parameters of a convolution.
fn conv2d<T: Scalar>(
    x: View<T>,
    weight: View<T>,
    bias: View<T>,
    out: ViewMut<T>,
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
) {
    let window = Conv2dConfig { padding, stride, dilation, groups, ..Conv2dConfig::default() };
    answer(out, || Conv2d::new(tensor(weight)?, Some(tensor(bias)?), window).forward(&tensor(x)?));
}

#[op("conv2d_1x1")]
#[op("conv2d_1x1_f16")]
fn conv2d_1x1<T: Scalar>(
    x: View<T>,
    weight: View<T>,
    bias: View<T>,
    out: ViewMut<T>,
    stride: usize,
    padding: usize,
    groups: usize,
) {
    let window = Conv2dConfig { padding, stride, groups, ..Conv2dConfig::default() };
    answer(out, || Conv2d::new(tensor(weight)?, Some(tensor(bias)?), window).forward(&tensor(x)?));
}
