//! The library's kernels as the ops of `gpuemu.toml`: arguments have the names that the ops give them.

use gpuemu_harness::{Element, View, ViewMut, op};
use rust_kernels::convolution::Window;
use rust_kernels::strided::resolve_axis;
use rust_kernels::*;

/// What a test hands over, as the kernels take it.
fn read<T: Element>(view: View<T>) -> Strided<T> {
    let (data, layout) = view.into_parts();
    Strided::new(data, &layout.shape, &layout.strides, layout.offset)
}

fn write<T: Element>(view: ViewMut<T>) -> StridedMut<T> {
    let (data, layout) = view.into_parts();
    StridedMut::new(data, &layout.shape, &layout.strides, layout.offset)
}

#[op("softmax")]
fn softmax<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    softmax::softmax(read(x), write(out), axis);
}

#[op("softmax_online")]
fn softmax_online<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    softmax::softmax_online(read(x), write(out), axis);
}

#[op("log_softmax")]
fn log_softmax<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    softmax::log_softmax(read(x), write(out), axis);
}

#[op("layer_norm")]
fn layer_norm<T: Element + RealScalar>(x: View<T>, weight: View<T>, bias: View<T>, out: ViewMut<T>, eps: f64) {
    norm::layer_norm(read(x), Some(read(weight)), Some(read(bias)), write(out), eps);
}

#[op("layer_norm_plain")]
fn layer_norm_plain<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, eps: f64) {
    norm::layer_norm(read(x), None, None, write(out), eps);
}

#[op("rms_norm")]
fn rms_norm<T: Element + RealScalar>(x: View<T>, weight: View<T>, out: ViewMut<T>, eps: f64) {
    norm::rms_norm(read(x), Some(read(weight)), write(out), eps);
}

#[op("group_norm")]
fn group_norm<T: Element + RealScalar>(
    x: View<T>,
    weight: View<T>,
    bias: View<T>,
    out: ViewMut<T>,
    groups: usize,
    eps: f64,
) {
    norm::group_norm(read(x), read(weight), read(bias), write(out), groups, eps);
}

#[op("l2_norm")]
fn l2_norm<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, axis: i64, eps: f64) {
    let axis = resolve_axis(axis, x.rank());
    norm::l2_norm(read(x), write(out), axis, eps);
}

#[op("gelu")]
fn gelu<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>) {
    activation::gelu(read(x), write(out));
}

#[op("gelu_tanh")]
fn gelu_tanh<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>) {
    activation::gelu_tanh(read(x), write(out));
}

#[op("silu")]
fn silu<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>) {
    activation::silu(read(x), write(out));
}

#[op("swiglu")]
fn swiglu<T: Element + RealScalar>(gate: View<T>, up: View<T>, out: ViewMut<T>) {
    activation::swiglu(read(gate), read(up), write(out));
}

#[op("leaky_relu")]
fn leaky_relu<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, slope: f64) {
    activation::leaky_relu(read(x), write(out), slope);
}

#[op("elu")]
fn elu<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, alpha: f64) {
    activation::elu(read(x), write(out), alpha);
}

#[op("add")]
fn add<T: Element + Scalar>(a: View<T>, b: View<T>, out: ViewMut<T>) {
    arithmetic::add(read(a), read(b), write(out));
}

#[op("fma")]
fn fma<T: Element + RealScalar>(a: View<T>, b: View<T>, c: View<T>, out: ViewMut<T>) {
    arithmetic::fma(read(a), read(b), read(c), write(out));
}

#[op("add_residual")]
fn add_residual<T: Element + Scalar>(x: ViewMut<T>, residual: View<T>) {
    arithmetic::add_residual(write(x), read(residual));
}

#[op("sum")]
fn sum<T: Element + Scalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    reduce::sum(read(x), write(out), axis);
}

#[op("sum_columns")]
fn sum_columns<T: Element + Scalar>(x: View<T>, out: ViewMut<T>, axis: usize) {
    reduce::sum(read(x), write(out), axis);
}

#[op("mean")]
fn mean<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    reduce::mean(read(x), write(out), axis);
}

#[op("var")]
fn var<T: Element + RealScalar>(x: View<T>, out: ViewMut<T>, axis: i64, correction: usize) {
    let axis = resolve_axis(axis, x.rank());
    reduce::var(read(x), write(out), axis, correction);
}

#[op("max")]
fn max<T: Element + Scalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    reduce::max(read(x), write(out), axis);
}

#[op("argmax")]
fn argmax<T: Element + Scalar>(x: View<T>, out: ViewMut<i64>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    reduce::argmax(read(x), write(out), axis);
}

#[op("cumsum")]
fn cumsum<T: Element + Scalar>(x: View<T>, out: ViewMut<T>, axis: i64) {
    let axis = resolve_axis(axis, x.rank());
    reduce::cumsum(read(x), write(out), axis);
}

#[op("matmul")]
fn matmul<T: Element + Scalar>(a: View<T>, b: View<T>, out: ViewMut<T>) {
    product::matmul(read(a), read(b), write(out));
}

#[op("batched_matmul")]
fn batched_matmul<T: Element + Scalar>(a: View<T>, b: View<T>, out: ViewMut<T>) {
    product::batched_matmul(read(a), read(b), write(out));
}

#[op("linear")]
fn linear<T: Element + Scalar>(x: View<T>, weight: View<T>, bias: View<T>, out: ViewMut<T>) {
    product::linear(read(x), read(weight), Some(read(bias)), write(out));
}

#[op("attention")]
fn attention<T: Element + RealScalar>(q: View<T>, k: View<T>, v: View<T>, out: ViewMut<T>, causal: bool) {
    attention::attention(read(q), read(k), read(v), write(out), causal);
}

#[op("flash_attention")]
fn flash_attention<T: Element + RealScalar>(q: View<T>, k: View<T>, v: View<T>, out: ViewMut<T>, causal: bool) {
    attention::flash_attention(read(q), read(k), read(v), write(out), causal);
}

#[op("cross_entropy")]
fn cross_entropy<T: Element + RealScalar>(logits: View<T>, targets: View<i64>, out: ViewMut<T>, ignore_index: i64) {
    loss::cross_entropy(read(logits), read(targets), write(out), ignore_index);
}

#[op("cross_entropy_mean")]
fn cross_entropy_mean<T: Element + RealScalar>(
    logits: View<T>,
    targets: View<i64>,
    out: ViewMut<T>,
    ignore_index: i64,
) {
    loss::cross_entropy_mean(read(logits), read(targets), write(out), ignore_index);
}

#[op("rope")]
fn rope<T: Element + RealScalar>(x: View<T>, cos: View<T>, sin: View<T>, out: ViewMut<T>, interleaved: bool) {
    rope::rope(read(x), read(cos), read(sin), write(out), interleaved);
}

#[op("embedding")]
fn embedding<T: Element>(table: View<T>, ids: View<i64>, out: ViewMut<T>) {
    index::embedding(read(table), read(ids), write(out));
}

#[op("gather")]
fn gather<T: Element>(x: View<T>, index: View<i64>, out: ViewMut<T>) {
    index::gather(read(x), read(index), write(out));
}

#[op("scatter_add")]
fn scatter_add<T: Element + Scalar>(base: View<T>, index: View<i64>, src: View<T>, out: ViewMut<T>) {
    index::scatter_add(read(base), read(index), read(src), write(out));
}

#[op("transpose")]
fn transpose<T: Element>(x: View<T>, out: ViewMut<T>) {
    transpose::transpose(read(x), write(out));
}

#[op("quantize")]
fn quantize<T: Element + RealScalar>(x: View<T>, scale: View<f32>, out: ViewMut<i8>, zero_point: i64) {
    quantize::quantize(read(x), read(scale), write(out), zero_point);
}

#[op("dequantize")]
fn dequantize<T: Element + RealScalar>(x: View<i8>, scale: View<f32>, out: ViewMut<T>, zero_point: i64) {
    quantize::dequantize(read(x), read(scale), write(out), zero_point);
}

#[op("conv2d")]
#[allow(clippy::too_many_arguments)] // Three tensors, an answer and the four parameters of a convolution.
fn conv2d<T: Element + Scalar>(
    x: View<T>,
    weight: View<T>,
    bias: View<T>,
    out: ViewMut<T>,
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
) {
    let window = Window { stride, padding, dilation, groups };
    convolution::conv2d(read(x), read(weight), read(bias), write(out), window);
}
