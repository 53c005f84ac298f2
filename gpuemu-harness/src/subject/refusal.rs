//! Launches that are refused: what is to be mended, and whether another case would fare better.

use super::{REFUSED, SubjectError};
use gpuemu_contract::{Argument, Expression, Launch};
use gpuemu_ptx::emulate::{Refused, Shape};
use gpuemu_ptx::fault::Fault;
use gpuemu_ptx::program::{Function, Parameter, ScalarType};
use std::fmt::Display;

/// The error of a launch that a driver refuses.
pub fn refused(fault: &Fault, what: Refused, launch: &Launch, shape: Shape, entry: &Function) -> SubjectError {
    let argument = |place: usize| launch.args.get(place).map_or_else(String::new, text);
    let (depends, way_out) = match what {
        Refused::Grid => (launch.grid.iter().any(varies), sizes("grid", &launch.grid, &triple(shape.grid))),
        Refused::Block => (launch.block.iter().any(varies), sizes("block", &launch.block, &triple(shape.block))),
        Refused::Shared => (
            varies(&launch.shared),
            format!("`shared` of [kernels.launch] is \"{}\": {} bytes", launch.shared, shape.shared),
        ),
        Refused::Kernel => (false, "it is the kernel that asks for so much, whatever the launch".to_owned()),
        Refused::Arguments => {
            let parameters = entry.parameters.iter().map(taken);
            let given = launch.args.iter().map(|argument| format!("\"{}\"", text(argument)));
            (false, format!("the kernel takes {}; `args` of [kernels.launch] are {}", list(parameters), list(given)))
        }
        Refused::Kind(place) => {
            let hand = format!("`args` of [kernels.launch] hand it \"{}\"", argument(place));
            (false, format!("{hand}\n  in order, {}", handed(launch, entry)))
        }
        Refused::Value(place) => {
            let depends = launch.args.get(place).is_some_and(argument_varies);
            (depends, format!("`args` of [kernels.launch] hand it \"{}\"", argument(place)))
        }
    };
    let message = format!("{fault}\n  {way_out}");
    match depends {
        true => SubjectError { kind: fault.kind.name(), message, fault: true },
        false => every_case(message),
    }
}

/// What a parameter takes.
fn taken(parameter: &Parameter) -> String {
    match ScalarType::from(parameter.ty) {
        ty if ty.bytes() == parameter.size => ty.to_string(),
        _ => format!("{} bytes", parameter.size),
    }
}

/// What each parameter is handed: two that changed places are seen side by side.
fn handed(launch: &Launch, entry: &Function) -> String {
    let pairs = entry.parameters.iter().zip(&launch.args).map(|(parameter, argument)| {
        let kind = match argument {
            Argument::Tensor(_) => "the tensor ",
            Argument::Integer(_) => "the integer ",
            Argument::Workspace(_) | Argument::Typed(..) => "",
        };
        format!("`{}` ({}) is handed {kind}\"{}\"", parameter.name, taken(parameter), text(argument))
    });
    list(pairs)
}

/// The error of a launch that no case changes.
pub fn every_case(message: String) -> SubjectError {
    SubjectError { kind: REFUSED, message: format!("{message}\n  no case changes that"), fault: false }
}

/// Whether a case's shape or parameters have a part in it.
pub fn varies(expression: &Expression) -> bool {
    !expression.names().is_empty()
}

/// Whether an argument's value may differ from case to case.
fn argument_varies(argument: &Argument) -> bool {
    match argument {
        Argument::Integer(expression) | Argument::Workspace(expression) => varies(expression),
        // What is no literal is the name of a parameter.
        Argument::Typed(_, value) => value.parse::<f64>().is_err(),
        Argument::Tensor(_) => false,
    }
}

/// An argument as it is written.
pub fn text(argument: &Argument) -> String {
    match argument {
        Argument::Tensor(name) => name.clone(),
        Argument::Integer(expression) => expression.to_string(),
        Argument::Workspace(bytes) => format!("workspace:{bytes}"),
        Argument::Typed(kind, value) => format!("{kind}:{value}"),
    }
}

fn sizes(key: &str, axes: &[Expression], here: &str) -> String {
    let written = list(axes.iter().map(|axis| format!("\"{axis}\"")));
    format!("`{key}` of [kernels.launch] is [{written}]: {here}")
}

fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

fn list<T: Display>(items: impl Iterator<Item = T>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
