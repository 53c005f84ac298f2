//! `tests!` and `main!`: the two ways into the runner.

use crate::project::Project;
use gpuemu_contract::TestName;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use std::collections::BTreeMap;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, Result, Token};

/// Crates named by the user, whose bindings are linked in beside those of the package's library.
struct Crates(Vec<Ident>);

impl Parse for Crates {
    fn parse(input: ParseStream<'_>) -> Result<Crates> {
        Ok(Crates(Punctuated::<Ident, Token![,]>::parse_terminated(input)?.into_iter().collect()))
    }
}

impl Crates {
    fn read(input: TokenStream) -> Result<Crates> {
        syn::parse2(input)
            .map_err(|error| Error::new(error.span(), "expected the names of crates that hold bindings, or nothing"))
    }

    /// Declarations that make the linker keep the crates.
    fn linked(&self, project: &Project) -> TokenStream {
        let own = project.library.as_ref().map(|name| Ident::new(name, Span::call_site()));
        let own = own.filter(|own| !self.0.contains(own));
        let crates = own.iter().chain(&self.0);
        quote!(#(extern crate #crates as _;)*)
    }
}

type Load = fn() -> std::result::Result<Project, String>;

fn expand(input: TokenStream, load: Load, door: impl FnOnce(&Project) -> TokenStream) -> Result<TokenStream> {
    let crates = Crates::read(input)?;
    let project = load().map_err(|message| Error::new(Span::call_site(), message))?;
    let (linked, tracked, door) = (crates.linked(&project), project.tracked(), door(&project));
    Ok(quote!(#linked #tracked #door))
}

/// One `#[test]` a test, in modules named as the test's name says.
pub fn tests(input: TokenStream, load: Load) -> TokenStream {
    let expanded = expand(input, load, |project| {
        let mut ops: BTreeMap<String, BTreeMap<&str, Vec<TestName>>> = BTreeMap::new();
        for op in &project.contract.ops {
            ops.entry(op.name.clone()).or_default();
        }
        for test in project.contract.tests() {
            ops.entry(test.op.clone()).or_default().entry(test.dtype.name()).or_default().push(test);
        }
        let origin = project.origin();
        let run = |name: &str, function: Ident| {
            quote! {
                #[test]
                fn #function() {
                    ::gpuemu_harness::expansion::run_test(#name, #origin)
                }
            }
        };
        let module = |op: &str, dtypes: &BTreeMap<&str, Vec<TestName>>| {
            let op_module = format_ident!("{}", op.rsplit("::").next().unwrap_or(op));
            let dtypes = dtypes.iter().map(|(dtype, tests)| {
                let dtype_module = format_ident!("{dtype}");
                let tests = tests.iter().map(|test| run(&test.to_string(), format_ident!("{}", test.strategy.name())));
                quote!(mod #dtype_module { #(#tests)* })
            });
            let regressions = run(&format!("{op}::regressions"), format_ident!("regressions"));
            quote! {
                mod #op_module {
                    #(#dtypes)*
                    #regressions
                }
            }
        };
        let modules = ops.iter().map(|(op, dtypes)| module(op, dtypes));
        // Kernels that are not executed have no test here: they cannot be ignored with a reason.
        let executed = |name: &str| {
            project.contract.kernel(name).is_some_and(|kernel| kernel.launch.is_some() && kernel.source.is_some())
        };
        let mut kernels: BTreeMap<String, BTreeMap<&str, Vec<TestName>>> = BTreeMap::new();
        for test in project.contract.kernel_tests() {
            if test.kernel().is_some_and(executed) {
                kernels.entry(test.op.clone()).or_default().entry(test.dtype.name()).or_default().push(test);
            }
        }
        let kernels: Vec<TokenStream> = kernels.iter().map(|(kernel, dtypes)| module(kernel, dtypes)).collect();
        let executions = (!kernels.is_empty()).then(|| quote!(mod kernel { #(#kernels)* }));
        let baselines = project.contract.policies.accuracy.then(|| {
            let ops = project.contract.ops.iter().map(|op| {
                let op_module = format_ident!("{}", op.name);
                let dtypes = op
                    .dtypes
                    .iter()
                    .map(|dtype| run(&format!("accuracy::{}::{dtype}", op.name), format_ident!("{}", dtype.name())));
                quote!(mod #op_module { #(#dtypes)* })
            });
            quote!(mod accuracy { #(#ops)* })
        });
        let kernels = project.contract.kernels.iter().filter(|kernel| !kernel.targets.is_empty());
        let artifacts: Vec<TokenStream> = kernels
            .map(|kernel| {
                let kernel_module = format_ident!("{}", kernel.name);
                let targets = kernel
                    .targets
                    .iter()
                    .map(|target| run(&format!("artifact::{}::{target}", kernel.name), format_ident!("{target}")));
                quote!(mod #kernel_module { #(#targets)* })
            })
            .collect();
        let artifacts = (!artifacts.is_empty()).then(|| quote!(mod artifact { #(#artifacts)* }));
        quote!(#(#modules)* #baselines #executions #artifacts)
    });
    expanded.unwrap_or_else(|error| error.to_compile_error())
}

/// The `main` of a test target with `harness = false`.
pub fn main(input: TokenStream, load: Load) -> TokenStream {
    let expanded = expand(input, load, |project| {
        let origin = project.origin();
        quote! {
            fn main() -> ::std::process::ExitCode {
                ::gpuemu_harness::expansion::run_main(#origin)
            }
        }
    });
    expanded.unwrap_or_else(|error| {
        // A main that is missing would be an error of its own, and say less.
        let error = error.to_compile_error();
        quote!(#error fn main() {})
    })
}
