//! What text becomes which tree, and what is refused with which words.

mod any_text;
mod constants;
mod errors;
mod items;
mod lines;
mod round_trip;
mod statements;

use gpuemu_ptx::parse::{Body, Item, Module, parse};

/// A module that uses the whole syntax.
const EVERYTHING: &str = include_str!("everything.ptx");

/// What stands before the items of a module.
const HEAD: &str = ".version 8.7\n.target sm_90\n.address_size 64\n";

/// The module of a text, without offsets.
fn tree(text: &str) -> Module<'_> {
    parse(text).unwrap_or_else(|error| panic!("{text}\n{error}")).without_offsets()
}

/// A text that holds `statements` as the body of an entry.
fn in_entry(statements: &str) -> String {
    format!("{HEAD}.entry k()\n{{\n{statements}\n}}\n")
}

/// The body of the only function of a text.
fn body<'a>(module: &'a Module<'a>) -> &'a Body<'a> {
    match &module.items[..] {
        [Item::Function(function)] => function.body.as_ref().expect("a body"),
        items => panic!("{items:?}"),
    }
}
