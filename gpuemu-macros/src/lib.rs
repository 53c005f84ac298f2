//! `#[op]`, `tests!` and `main!` of gpuemu-harness, which re-exports them: use them through it.
//!
//! All three read `gpuemu.toml` while the crate compiles, so that a wrong name is a compile error and a change of the
//! file rebuilds. `GPUEMU_CONFIG` names another file; otherwise it is looked for from the package's folder upwards.

mod answer;
mod argument;
mod binding;
mod doors;
mod project;

use proc_macro::TokenStream;

/// Binds a function to an op of `gpuemu.toml`: it becomes the subject of the op's tests. The function itself stays as
/// it is written.
///
/// ```ignore
/// #[gpuemu_harness::op("softmax")]
/// fn softmax<T: Float>(x: View<T>, out: ViewMut<T>, axis: i64) { ... }
/// ```
///
/// Arguments are matched **by name** with the op's inputs, outputs and parameters, in any order:
///
/// - an input is a `View<T>` (or a `&Tensor`), an output and an `inout` input a `ViewMut<T>` (or a `&mut Tensor`);
/// - `T` is the function's one type parameter, or a type such as `f32` for a function that serves one dtype, or the
///   type of a tensor whose dtype the schema fixes (`View<i32>`);
/// - a parameter is an integer type, `f64`, `f32`, `bool` or `&str`. One that has a single value may be left out;
/// - `Option<View<T>>` takes an input that the schema may leave out.
///
/// A generic function is instantiated for each dtype the op lists. Several functions may each serve one dtype.
///
/// Outputs that are no arguments are returned: a `Tensor`, a tuple of them, a `Vec<Tensor>`. Any function may return a
/// `Result` of what it returns, with an error that can be displayed.
///
/// The dynamic form takes the whole call: `fn softmax(call: &mut Call<'_>)`.
#[proc_macro_attribute]
pub fn op(attribute: TokenStream, item: TokenStream) -> TokenStream {
    binding::expand(attribute.into(), item.into(), project::Project::of_package).into()
}

/// Expands to one `#[test]` for each test of `gpuemu.toml`, named `op::dtype::strategy`, and one `op::regressions` for
/// each op; with `accuracy = true` in `[policies]`, one `accuracy::op::dtype` for each accuracy baseline too. It stands at
/// the top of a test file (`tests/gpuemu.rs`), beside the bindings or alone.
///
/// Bindings in the package's library are linked in; `tests!(my_kernels)` names other crates that hold bindings.
#[proc_macro]
pub fn tests(input: TokenStream) -> TokenStream {
    doors::tests(input.into(), project::Project::of_package).into()
}

/// Expands to the `main` of a test target with `harness = false`, which runs every test of `gpuemu.toml` and accepts
/// the arguments of a standard test binary.
///
/// Bindings in the package's library are linked in; `main!(my_kernels)` names other crates that hold bindings.
#[proc_macro]
pub fn main(input: TokenStream) -> TokenStream {
    doors::main(input.into(), project::Project::of_package).into()
}
