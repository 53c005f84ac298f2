//! One argument of a bound function: what it is declared as in the function, and what the op declares under its name.

use gpuemu_contract::{DType, Op, OutputShape, Param, ParamValue, TensorDType, TensorDecl};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{Error, FnArg, GenericArgument, Ident, Pat, PathArguments, Result, Type};

/// What an argument's type says.
enum Form<'f> {
    /// `View<T>`, with the element type.
    View(&'f Type),
    /// `ViewMut<T>`, with the element type.
    ViewMut(&'f Type),
    /// `&Tensor`.
    Tensor,
    /// `&mut Tensor`.
    TensorMut,
    /// A type a parameter may have.
    Value(ParamType),
    /// Anything else.
    Unknown,
}

#[derive(Clone, Copy, PartialEq)]
enum ParamType {
    Integer,
    Float,
    Bool,
    Text,
}

/// An element type as it is written.
enum ElementType {
    /// The function's type parameter.
    Generic,
    /// A type whose dtype is known by its name.
    Known(DType),
    /// Another type, checked when the tests run.
    Unknown,
}

/// One argument, matched with what the op declares.
pub struct Argument {
    /// The name the op declares.
    pub name: String,
    /// The expression that hands it over, given `arguments`.
    pub value: TokenStream,
    /// The dtype its element type gives to the tensors of the test's dtype, and where that is written.
    pub serves: Option<(DType, Span)>,
}

/// What the op declares under a name.
enum Declared<'o> {
    Input(&'o TensorDecl),
    Output(&'o TensorDecl),
    Param(&'o Param),
}

impl Argument {
    /// Matches one argument with the op. `generic` is the function's type parameter.
    pub fn read(argument: &FnArg, op: &Op, generic: Option<&Ident>) -> Result<Argument> {
        let typed = match argument {
            FnArg::Typed(typed) => typed,
            FnArg::Receiver(receiver) => {
                return Err(Error::new_spanned(receiver, "#[op] binds a free function, not a method"));
            }
        };
        let Pat::Ident(pattern) = &*typed.pat else {
            return Err(Error::new_spanned(
                &typed.pat,
                "an argument of a bound function is a plain name: that of an input, output or parameter of the op",
            ));
        };
        let (optional, ty) = match option_of(&typed.ty) {
            Some(inner) => (true, inner),
            None => (false, &*typed.ty),
        };
        let form = Form::of(ty);
        let written = pattern.ident.to_string();
        let written = written.strip_prefix("r#").unwrap_or(&written);
        let found = find(op, written).or_else(|| find(op, written.strip_prefix('_')?));
        let Some((name, declared)) = found else {
            if optional && !matches!(form, Form::Unknown | Form::Value(_)) {
                return Ok(Argument {
                    name: written.to_owned(),
                    value: quote!(::core::option::Option::None),
                    serves: None,
                });
            }
            return Err(Error::new(pattern.ident.span(), unknown_name(op, written)));
        };
        let of_op = format!("of op `{}`", op.name);
        let (value, serves) = match declared {
            Declared::Param(param) => {
                if optional {
                    let message = format!("`{name}` is a parameter {of_op} and always has a value: drop the Option");
                    return Err(Error::new_spanned(&typed.ty, message));
                }
                (param_value(param, ty, &form, &of_op)?, None)
            }
            Declared::Input(tensor) if tensor.inout => {
                let role = format!("`{name}` is an inout tensor {of_op}, which the function overwrites");
                written_tensor(tensor, &role, ty, &form, generic, op, quote!(inout), quote!(view_inout))?
            }
            Declared::Input(tensor) => {
                read_tensor(tensor, &format!("`{name}` is an input {of_op}"), ty, &form, generic, op)?
            }
            Declared::Output(tensor) => {
                if tensor.shape == OutputShape::FromReference {
                    let message = format!(
                        "output `{name}` {of_op} declares no shape, so there is no memory to write it into: declare it \
                         ([ops.schema] outputs), or return a Tensor"
                    );
                    return Err(Error::new(pattern.ident.span(), message));
                }
                let role = format!("`{name}` is an output {of_op}");
                written_tensor(tensor, &role, ty, &form, generic, op, quote!(output), quote!(view_output))?
            }
        };
        let value = if optional { quote!(::core::option::Option::Some(#value)) } else { value };
        Ok(Argument { name: name.to_owned(), value, serves })
    }
}

fn find<'o>(op: &'o Op, name: &str) -> Option<(&'o str, Declared<'o>)> {
    let schema = &op.schema;
    let input = schema.inputs.iter().find(|tensor| tensor.name == name);
    let output = || schema.outputs.iter().find(|tensor| tensor.name == name);
    let param = || op.params.iter().find(|param| param.name == name);
    if let Some(tensor) = input {
        Some((&tensor.name, Declared::Input(tensor)))
    } else if let Some(tensor) = output() {
        Some((&tensor.name, Declared::Output(tensor)))
    } else {
        param().map(|param| (param.name.as_str(), Declared::Param(param)))
    }
}

/// Everything an op declares, in one line.
pub fn declares(op: &Op) -> String {
    let list = |what: &str, names: Vec<String>| {
        let plural = if names.len() == 1 { "" } else { "s" };
        (!names.is_empty()).then(|| format!("{what}{plural} {}", names.join(", ")))
    };
    let tensor = |tensor: &TensorDecl| {
        let mut name = format!("`{}`", tensor.name);
        if tensor.inout {
            name += " (inout)";
        }
        if let TensorDType::Fixed(dtype) = tensor.dtype {
            name += &format!(" ({dtype})");
        }
        name
    };
    let parts = [
        list("input", op.schema.inputs.iter().map(tensor).collect()),
        list("output", op.schema.outputs.iter().map(tensor).collect()),
        list("parameter", op.params.iter().map(|param| format!("`{}`", param.name)).collect()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("op `{}` declares {}", op.name, if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") })
}

fn unknown_name(op: &Op, written: &str) -> String {
    let tensors = op.schema.inputs.iter().chain(&op.schema.outputs).map(|tensor| tensor.name.as_str());
    let names = tensors.chain(op.params.iter().map(|param| param.name.as_str()));
    let hint = match gpuemu_contract::nearest(written, names) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => String::new(),
    };
    format!("op `{}` has no tensor or parameter `{written}`{hint}\n{}", op.name, declares(op))
}

fn read_tensor(
    tensor: &TensorDecl,
    role: &str,
    ty: &Type,
    form: &Form<'_>,
    generic: Option<&Ident>,
    op: &Op,
) -> Result<(TokenStream, Option<(DType, Span)>)> {
    let name = &tensor.name;
    match form {
        Form::View(element) => {
            let serves = served_dtype(tensor, role, element, generic, op)?;
            Ok((quote!(arguments.view::<#element>(#name)?), serves))
        }
        Form::Tensor => Ok((quote!(arguments.input(#name)?), None)),
        Form::ViewMut(_) | Form::TensorMut => Err(Error::new_spanned(
            ty,
            format!(
                "{role}, which the function only reads: take it as {}; an input that is overwritten is declared with \
                 `inout = true`",
                suggested("View", tensor, generic)
            ),
        )),
        Form::Value(_) | Form::Unknown => {
            Err(Error::new_spanned(ty, format!("{role}: take it as {}", suggested("View", tensor, generic))))
        }
    }
}

#[allow(clippy::too_many_arguments)] // One call for each kind of written tensor.
fn written_tensor(
    tensor: &TensorDecl,
    role: &str,
    ty: &Type,
    form: &Form<'_>,
    generic: Option<&Ident>,
    op: &Op,
    whole: TokenStream,
    view: TokenStream,
) -> Result<(TokenStream, Option<(DType, Span)>)> {
    let name = &tensor.name;
    match form {
        Form::ViewMut(element) => {
            let serves = served_dtype(tensor, role, element, generic, op)?;
            Ok((quote!(arguments.#view::<#element>(#name)?), serves))
        }
        Form::TensorMut => Ok((quote!(arguments.#whole(#name)?), None)),
        Form::View(_) | Form::Tensor | Form::Value(_) | Form::Unknown => {
            Err(Error::new_spanned(ty, format!("{role}: take it as {}", suggested("ViewMut", tensor, generic))))
        }
    }
}

fn suggested(view: &str, tensor: &TensorDecl, generic: Option<&Ident>) -> String {
    match (tensor.dtype, generic) {
        (TensorDType::Fixed(dtype), _) => format!("{view}<{}>", rust_name(dtype)),
        (TensorDType::Same, Some(generic)) => format!("{view}<{generic}>"),
        (TensorDType::Same, None) => format!("{view}<f32>, or {view}<T> with `T: Float`"),
    }
}

/// Checks an element type against the tensor's dtype. The dtype it serves, when the tensor has that of the test.
fn served_dtype(
    tensor: &TensorDecl,
    role: &str,
    element: &Type,
    generic: Option<&Ident>,
    op: &Op,
) -> Result<Option<(DType, Span)>> {
    let span = || quote!(#element).into_iter().next().map_or_else(Span::call_site, |token| token.span());
    match (tensor.dtype, ElementType::of(element, generic)) {
        (TensorDType::Same, ElementType::Generic) | (TensorDType::Fixed(_), ElementType::Unknown) => Ok(None),
        (TensorDType::Fixed(dtype), ElementType::Known(known)) if dtype == known => Ok(None),
        (TensorDType::Fixed(dtype), _) => Err(Error::new_spanned(
            element,
            format!("{role} and always {dtype}: write its element type as {}", rust_name(dtype)),
        )),
        (TensorDType::Same, ElementType::Known(dtype)) if op.dtypes.contains(&dtype) => Ok(Some((dtype, span()))),
        (TensorDType::Same, ElementType::Known(dtype)) => {
            let dtypes: Vec<&str> = op.dtypes.iter().map(|dtype| dtype.name()).collect();
            let message = format!("op `{}` is not tested in {dtype}, only in {}", op.name, dtypes.join(", "));
            Err(Error::new_spanned(element, message))
        }
        (TensorDType::Same, ElementType::Unknown) => Err(Error::new_spanned(
            element,
            "which dtype is this? write the element type by its name (f32, f16, bf16, ...), or make the function \
             generic over it",
        )),
    }
}

fn param_value(param: &Param, ty: &Type, form: &Form<'_>, of_op: &str) -> Result<TokenStream> {
    let (name, first) = (&param.name, &param.candidates[0]);
    let wanted = if param.candidates.iter().any(|value| matches!(value, ParamValue::Float(_))) {
        ParamType::Float
    } else {
        match first {
            ParamValue::Int(_) => ParamType::Integer,
            ParamValue::Float(_) => ParamType::Float,
            ParamValue::Bool(_) => ParamType::Bool,
            ParamValue::Text(_) => ParamType::Text,
        }
    };
    let (what, types) = match wanted {
        ParamType::Integer => ("an integer", "i64, usize or another integer type"),
        ParamType::Float => ("a float", "f64 or f32"),
        ParamType::Bool => ("a boolean", "bool"),
        ParamType::Text => ("text", "&str"),
    };
    match form {
        // An integer is handed to a function that takes a float.
        Form::Value(given) if *given == wanted || (*given, wanted) == (ParamType::Float, ParamType::Integer) => {
            Ok(quote!(arguments.param::<#ty>(#name)?))
        }
        _ => Err(Error::new_spanned(
            ty,
            format!("`{name}` is a parameter {of_op}, {what} such as {first}: take it as {types}"),
        )),
    }
}

impl<'f> Form<'f> {
    fn of(ty: &'f Type) -> Form<'f> {
        match ty {
            Type::Paren(inner) => Form::of(&inner.elem),
            Type::Group(inner) => Form::of(&inner.elem),
            Type::Reference(reference) => match (last_name(&reference.elem).as_deref(), reference.mutability) {
                (Some("Tensor"), Some(_)) => Form::TensorMut,
                (Some("Tensor"), None) => Form::Tensor,
                (Some("str"), None) => Form::Value(ParamType::Text),
                _ => Form::Unknown,
            },
            _ => match last_name(ty).as_deref() {
                Some("View") => last_type_argument(ty).map_or(Form::Unknown, Form::View),
                Some("ViewMut") => last_type_argument(ty).map_or(Form::Unknown, Form::ViewMut),
                Some("f32" | "f64") => Form::Value(ParamType::Float),
                Some("bool") => Form::Value(ParamType::Bool),
                Some("i8" | "i16" | "i32" | "i64" | "isize" | "u8" | "u16" | "u32" | "u64" | "usize") => {
                    Form::Value(ParamType::Integer)
                }
                _ => Form::Unknown,
            },
        }
    }
}

impl ElementType {
    fn of(ty: &Type, generic: Option<&Ident>) -> ElementType {
        if let (Type::Path(path), Some(generic)) = (ty, generic)
            && path.path.is_ident(generic)
        {
            return ElementType::Generic;
        }
        let name = last_name(ty);
        let known = DType::ALL.into_iter().find(|&dtype| Some(rust_name(dtype)) == name.as_deref());
        known.map_or(ElementType::Unknown, ElementType::Known)
    }
}

/// The Rust type of a dtype, as the harness exports it.
pub fn rust_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Float64 => "f64",
        DType::Float32 => "f32",
        DType::Float16 => "f16",
        DType::BFloat16 => "bf16",
        DType::Float8E4M3 => "F8E4M3",
        DType::Float8E5M2 => "F8E5M2",
        DType::Int8 => "i8",
        DType::Int16 => "i16",
        DType::Int32 => "i32",
        DType::Int64 => "i64",
        DType::UInt8 => "u8",
        DType::UInt16 => "u16",
        DType::UInt32 => "u32",
        DType::UInt64 => "u64",
        DType::Bool => "Bool",
    }
}

/// The last name of a path type.
pub fn last_name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// The type arguments of the last name of a path type.
pub fn type_arguments(ty: &Type) -> Vec<&Type> {
    let Type::Path(path) = ty else { return Vec::new() };
    let Some(PathArguments::AngleBracketed(arguments)) = path.path.segments.last().map(|segment| &segment.arguments)
    else {
        return Vec::new();
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.collect()
}

fn last_type_argument(ty: &Type) -> Option<&Type> {
    type_arguments(ty).pop()
}

fn option_of(ty: &Type) -> Option<&Type> {
    (last_name(ty).as_deref() == Some("Option")).then(|| last_type_argument(ty)).flatten()
}

/// Tokens of a type for a message, without the spaces that tokens are joined with.
pub fn written(ty: &Type) -> String {
    ty.to_token_stream().to_string().replace(" < ", "<").replace(" >", ">").replace(" ,", ",").replace("< ", "<")
}
