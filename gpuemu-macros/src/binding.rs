//! `#[op]`: a function bound to an op.

use crate::answer::returned_outputs;
use crate::argument::{Argument, declares, last_name, rust_name};
use crate::project::Project;
use gpuemu_contract::{DType, Op};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericParam, Ident, ItemFn, LitStr, Result, Type};

/// The function as written, and beside it its binding or the errors.
pub fn expand(
    attribute: TokenStream,
    item: TokenStream,
    project: impl FnOnce() -> std::result::Result<Project, String>,
) -> TokenStream {
    let binding = bind(attribute, &item, project).unwrap_or_else(|error| error.to_compile_error());
    quote!(#item #binding)
}

fn bind(
    attribute: TokenStream,
    item: &TokenStream,
    project: impl FnOnce() -> std::result::Result<Project, String>,
) -> Result<TokenStream> {
    let name: LitStr = syn::parse2(attribute).map_err(|error| {
        Error::new(error.span(), "expected the name of an op in gpuemu.toml, as in #[op(\"softmax\")]")
    })?;
    let function: ItemFn = syn::parse2(item.clone())
        .map_err(|_| Error::new(item.span(), "#[op] stands on a function that computes the op"))?;
    let project = project().map_err(|message| Error::new(Span::call_site(), message))?;
    let op = project.op(&name.value()).map_err(|message| Error::new(name.span(), message))?;
    let bound = Bound::read(&function, op, name.span())?;
    Ok(bound.tokens(&function, op, &name, &project))
}

/// A function whose signature fits its op.
struct Bound {
    /// Dtypes it is instantiated for.
    dtypes: Vec<DType>,
    /// Whether it has a type parameter.
    generic: bool,
    /// The expressions of its arguments, in order; `None` for the dynamic form.
    values: Option<Vec<TokenStream>>,
    /// Outputs it returns, in order.
    returned: Vec<String>,
}

impl Bound {
    fn read(function: &ItemFn, op: &Op, name: Span) -> Result<Bound> {
        let signature = &function.sig;
        if let Some(token) = &signature.asyncness {
            return Err(Error::new_spanned(
                token,
                "#[op] binds a function that returns when it is done, not an async one",
            ));
        }
        if let Some(token) = &signature.unsafety {
            return Err(Error::new_spanned(
                token,
                "#[op] calls the function from safe code: bind a safe wrapper of it",
            ));
        }
        let generic = type_parameter(function)?;
        if is_dynamic(function) {
            return Ok(Bound {
                dtypes: op.dtypes.clone(),
                generic: generic.is_some(),
                values: None,
                returned: returned_outputs(&signature.output, op, &[])?,
            });
        }
        let mut errors: Option<Error> = None;
        let mut note = |error: Error| match &mut errors {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        };
        let mut arguments: Vec<Argument> = Vec::new();
        for argument in &signature.inputs {
            match Argument::read(argument, op, generic) {
                Ok(argument) => arguments.push(argument),
                Err(error) => note(error),
            }
        }
        let names: Vec<String> = arguments.iter().map(|argument| argument.name.clone()).collect();
        let returned = returned_outputs(&signature.output, op, &names).unwrap_or_else(|error| {
            note(error);
            op.schema.outputs.iter().map(|tensor| tensor.name.clone()).collect()
        });
        let mut serves: Option<DType> = None;
        for (dtype, span) in arguments.iter().filter_map(|argument| argument.serves) {
            match serves {
                Some(other) if other != dtype => note(Error::new(
                    span,
                    format!(
                        "this tensor has the dtype of the test, which is {other} in the arguments before, not {dtype}"
                    ),
                )),
                _ => serves = Some(dtype),
            }
        }
        if let Some(errors) = errors {
            return Err(errors);
        }
        if let Some(message) = missing(op, &names, &returned) {
            return Err(Error::new(function.sig.ident.span(), message));
        }
        let dtypes = match serves {
            Some(dtype) if generic.is_none() => vec![dtype],
            Some(dtype) => {
                let message =
                    format!("the function is generic, but its tensors are {dtype}: use the type parameter, or drop it");
                return Err(Error::new(generic.map_or(name, Ident::span), message));
            }
            None => op.dtypes.clone(),
        };
        let values = arguments.into_iter().map(|argument| argument.value).collect();
        Ok(Bound { dtypes, generic: generic.is_some(), values: Some(values), returned })
    }

    fn tokens(&self, function: &ItemFn, op: &Op, name: &LitStr, project: &Project) -> TokenStream {
        let (ident, op_name, returned) = (&function.sig.ident, &op.name, &self.returned);
        let ident_text = ident.to_string();
        let conditions = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        let tracked = project.tracked();
        let runs = self.dtypes.iter().map(|&dtype| {
            let run = format_ident!("run_{}", dtype.name());
            // A bound that the type does not meet is reported where the op is named.
            let element = Ident::new(rust_name(dtype), name.span());
            let element = match dtype {
                DType::Float16 | DType::BFloat16 | DType::Float8E4M3 | DType::Float8E5M2 | DType::Bool => {
                    quote!(::gpuemu_harness::#element)
                }
                _ => quote!(::core::primitive::#element),
            };
            let called = if self.generic { quote_spanned!(name.span()=> #ident::<#element>) } else { quote!(#ident) };
            let generic = type_parameter(function).ok().flatten();
            let alias = generic.map(|generic| quote!(#[allow(dead_code)] type #generic = #element;));
            let answer = match &self.values {
                None => quote!(let answer = #called(&mut *call);),
                Some(values) => quote! {
                    let answer = {
                        let mut arguments = ::gpuemu_harness::expansion::Arguments::of(&mut *call);
                        #called(#(#values),*)
                    };
                },
            };
            quote! {
                #[allow(unused_mut, unused_variables, clippy::let_unit_value)]
                fn #run(
                    call: &mut ::gpuemu_harness::Call<'_>,
                ) -> ::core::result::Result<(), ::gpuemu_harness::SubjectError> {
                    #alias
                    #answer
                    ::gpuemu_harness::expansion::give(answer, call, &[#(#returned),*])
                }
            }
        });
        let implementations = self.dtypes.iter().map(|&dtype| {
            let run = format_ident!("run_{}", dtype.name());
            let variant = format_ident!("{dtype:?}");
            quote!(::gpuemu_harness::expansion::Implementation { dtype: ::gpuemu_harness::DType::#variant, run: #run })
        });
        quote! {
            #(#conditions)*
            const _: () = {
                #tracked
                #(#runs)*
                ::gpuemu_harness::expansion::inventory::submit! {
                    ::gpuemu_harness::expansion::Binding {
                        op: #op_name,
                        function: #ident_text,
                        file: ::core::file!(),
                        line: ::core::line!(),
                        implementations: &[#(#implementations),*],
                    }
                }
            };
        }
    }
}

/// What the op needs and the function lacks.
fn missing(op: &Op, arguments: &[String], returned: &[String]) -> Option<String> {
    let has = |name: &String| arguments.contains(name) || returned.contains(name);
    let mut lacking: Vec<String> = Vec::new();
    for tensor in &op.schema.inputs {
        if !has(&tensor.name) {
            lacking.push(format!("{} `{}`", if tensor.inout { "the inout tensor" } else { "the input" }, tensor.name));
        }
    }
    for tensor in &op.schema.outputs {
        if !has(&tensor.name) {
            lacking.push(format!("the output `{}` (as a ViewMut, or returned as a Tensor)", tensor.name));
        }
    }
    for param in &op.params {
        if param.candidates.len() > 1 && !has(&param.name) {
            let values: Vec<String> = param.candidates.iter().map(ToString::to_string).collect();
            lacking.push(format!("the parameter `{}`, which is sampled from {}", param.name, values.join(", ")));
        }
    }
    if lacking.is_empty() {
        return None;
    }
    Some(format!("the function lacks {}\n{}", lacking.join(" and "), declares(op)))
}

/// The function's one type parameter.
fn type_parameter(function: &ItemFn) -> Result<Option<&Ident>> {
    let mut found: Option<&Ident> = None;
    for parameter in &function.sig.generics.params {
        match parameter {
            GenericParam::Lifetime(_) => {}
            GenericParam::Const(constant) => {
                return Err(Error::new_spanned(
                    constant,
                    "#[op] cannot choose a value for this: bind a wrapper that names it",
                ));
            }
            GenericParam::Type(ty) if found.is_some() => {
                return Err(Error::new_spanned(
                    ty,
                    "#[op] binds a function with at most one type parameter, the element type of the test's dtype",
                ));
            }
            GenericParam::Type(ty) => found = Some(&ty.ident),
        }
    }
    Ok(found)
}

/// Whether the function takes the whole call.
fn is_dynamic(function: &ItemFn) -> bool {
    let mut inputs = function.sig.inputs.iter();
    let (Some(FnArg::Typed(argument)), None) = (inputs.next(), inputs.next()) else { return false };
    match &*argument.ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            last_name(&reference.elem).as_deref() == Some("Call")
        }
        _ => false,
    }
}
