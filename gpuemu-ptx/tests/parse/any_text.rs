//! Any text whatever gives a module or an error: no panic, no stack that overflows, no end that does not come.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use gpuemu_ptx::Error;
use gpuemu_ptx::parse::{Operand, Statement, parse, parse_bytes};
use proptest::prelude::*;

use super::{EVERYTHING, HEAD};

/// The parser's stack must not grow with the text: a fraction of what a thread of a test has is enough.
const STACK: usize = 256 * 1024;

/// Reads `bytes`; a module must come back from its own print, an error must have words.
fn survive(bytes: &[u8]) -> Result<(), Error> {
    match parse_bytes(bytes) {
        Ok(module) => {
            let text = module.to_string();
            let again = parse(&text).unwrap_or_else(|error| panic!("{error}"));
            assert!(again.same_but_for_offsets(&module), "{text}");
            Ok(())
        }
        Err(error) => {
            let words = error.to_string();
            assert!(words.len() < 4096, "a message of {} bytes", words.len());
            assert!(!words.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{words:?}");
            Err(error)
        }
    }
}

/// What bounds the memory of a tree: a text has at most one statement and one operand for each of its bytes.
#[test]
fn statements_and_operands_are_small() {
    assert!(size_of::<Statement>() <= 64, "{}", size_of::<Statement>());
    assert!(size_of::<Operand>() <= 40, "{}", size_of::<Operand>());
}

/// Texts whose trees are far larger than themselves are refused, and a tree that fits is not.
#[test]
fn a_tree_has_bounds() {
    let head = ".version 8.0\n.target sm_80\n.entry k() {\n";
    let many = 10_000_000;
    // A module of this size is too long to be printed when the test fails.
    let refused = |text: &str| match parse(text) {
        Ok(_) => "a module".to_owned(),
        Err(error) => error.to_string(),
    };
    let said = "expected fewer parts before this: the tree of the text passes";
    for (first, next, close) in [("", "{}", "}"), ("", "a:", "}"), ("", "{", "}"), (".reg .b32 a", ",a", ";}")] {
        let words = refused(&format!("{head}{first}{}{close}", next.repeat(many)));
        assert!(words.starts_with("line 4, column ") && words.contains(said), "{first}{next}: {words}");
    }
    let words = refused(&format!(".version 8.0\n.target sm_80\n.global .b8 a[] = {{0{}}};", ",0".repeat(many)));
    assert!(words.contains(said), "{words}");
    assert_eq!(refused(&format!("{head}{}}}", ";".repeat(many))), "a module", "empty statements take no room");
}

#[test]
fn cut_anywhere() {
    for end in 0..EVERYTHING.len() {
        let _ = survive(&EVERYTHING.as_bytes()[..end]);
    }
}

#[test]
fn each_byte_replaced() {
    let mut bytes = EVERYTHING.as_bytes().to_vec();
    for at in 0..bytes.len() {
        let byte = bytes[at];
        for other in *b"\0{}(;\xFF" {
            bytes[at] = other;
            let _ = survive(&bytes);
        }
        bytes[at] = byte;
    }
}

#[test]
fn nesting_without_end() {
    let deep = 1_000_000;
    let run = |text: String| {
        thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || survive(text.as_bytes()).map_err(|error| error.to_string()))
            .unwrap()
            .join()
            .unwrap()
    };
    let entry = |inside: &str| format!("{HEAD}.entry k() {{\n{inside}");
    assert!(run(entry(&"{".repeat(deep))).is_err());
    assert!(run(entry(&("{".repeat(deep) + &"}".repeat(deep + 1)))).is_ok(), "blocks lie as deep as they like");
    for (what, text) in [
        ("parentheses", entry(&format!("mov.b32 %r1, {}", "(".repeat(deep)))),
        ("signs", entry(&format!("mov.b32 %r1, {}1;", "- ".repeat(deep)))),
        ("casts", entry(&format!("mov.b32 %r1, {}1;", "(.s64)".repeat(deep)))),
        ("conditions", entry(&format!("mov.b32 %r1, {}1;", "1?1:".repeat(deep)))),
        ("conditions", entry(&format!("mov.b32 %r1, {}1;", "1?".repeat(deep)))),
        ("vectors", entry(&format!("mov.b32 %r1, {}", "{".repeat(deep)))),
        ("addresses", entry(&format!("mov.b32 %r1, {}", "[a,".repeat(deep)))),
        ("addresses", entry(&format!("mov.b32 %r1, {}", "[".repeat(deep)))),
        ("calls", entry(&format!("call {}", "(".repeat(deep)))),
        ("lists", format!("{HEAD}.global .b32 x[] = {}", "{".repeat(deep))),
        ("masks", format!("{HEAD}.global .b32 x[] = {}", "1(".repeat(deep))),
        ("attributes", format!("{HEAD}.global .attribute{}", "(".repeat(deep))),
        ("sections", format!("{HEAD}.section .x {}", "{".repeat(deep))),
        ("comments", "/*".repeat(deep)),
        ("templates", format!("{HEAD}.reg .b32 x{}", "<1".repeat(deep))),
    ] {
        assert!(run(text).is_err(), "{what}");
    }
    // What is long and not deep is fine.
    for text in [
        entry(&format!("mov.b32 %r1, 1{};}}", " + 1".repeat(deep))),
        entry(&format!("mov.b32 %r1{};}}", ", 1".repeat(deep))),
        entry(&format!("{}}}", "a:".repeat(deep))),
        format!("{HEAD}.global .b32 x{};", "[1]".repeat(deep)),
        format!("{HEAD}.global .b32 x[] = {{1{}}};", ",1".repeat(deep)),
    ] {
        run(text).unwrap();
    }
}

#[test]
fn long_tokens_make_short_messages() {
    let long = "x".repeat(1_000_000);
    for text in [
        long.clone(),
        format!("{HEAD}{long}"),
        format!("{HEAD}.entry {long}"),
        format!("{HEAD}.entry k() {{ {long} {long}"),
        format!("{HEAD}.entry k() {{ mov.b32 {long} {long}"),
        format!("{HEAD}.entry k() {{ @{long}"),
        format!("{HEAD}.entry k() {{ mov.b32 a, 1{long}"),
        format!("{HEAD}.file 1 \"{long}"),
        format!("{HEAD}.file 1 \"{long}\" \"{long}\""),
        format!(".version {}", "1".repeat(1_000_000)),
        format!("{HEAD}.global .b32 x[{}];", "1".repeat(1_000_000)),
        "\u{1F600}".repeat(1_000_000),
        "\0\0\0\u{1}".repeat(1_000_000),
    ] {
        survive(text.as_bytes()).unwrap_err();
    }
}

#[test]
fn a_hundred_megabytes() {
    let Err(Error::Syntax(error)) = survive(&vec![b'x'; 100_000_000]) else { panic!("a name is no module") };
    assert_eq!((error.line, error.column), (1, 1));
    let lines = 9_000_000;
    let text = HEAD.to_owned() + &"// comment\n".repeat(lines) + ".entry k() { ret }";
    let Err(Error::Syntax(error)) = survive(text.as_bytes()) else { panic!("a semicolon is missing") };
    assert_eq!((error.line, error.column), (lines as u32 + 4, 18));
}

/// Pieces of PTX, so that random texts get somewhere.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "=",
    "*",
    "/",
    "%",
    "?",
    "~",
    "&&",
    "0",
    "1",
    "42U",
    "0x1F",
    "017",
    "1.5",
    "0f3F800000",
    "0d3FF0000000000000",
    "99999999999999999999",
    "_",
    "%r1",
    "%p1",
    "%tid.x",
    "a",
    "$L1",
    "WARP_SZ",
    "generic",
    ".b32",
    ".f32",
    ".pred",
    ".reg",
    ".global",
    ".shared",
    ".param",
    ".const",
    ".align",
    ".v4",
    ".ptr",
    ".entry",
    ".func",
    ".visible",
    ".extern",
    ".target",
    ".version",
    ".file",
    ".section",
    ".pragma",
    ".loc",
    "function_name",
    "inlined_at",
    ".callprototype",
    ".calltargets",
    ".branchtargets",
    ".attribute",
    ".maxntid",
    ".noreturn",
    ".alias",
    "\"text\"",
    "\"",
    "//",
    "/*",
    "*/",
    "\n",
    "# 1\n",
    "mov.b32",
    "ld.global.b32",
    "call",
    "call.uni",
    "ret",
    "ret;",
    "bra",
    "a:",
    "(.s64)",
    "\u{e9}",
    "\0",
    "::",
];

fn tokens(count: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec((prop::sample::select(TOKENS), prop::sample::select(&["", " ", " ", "\n"][..])), count)
        .prop_map(|tokens| tokens.into_iter().flat_map(|(token, blank)| [token, blank]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = survive(&bytes);
    }

    #[test]
    fn tokens_of_a_module(text in tokens(0..40)) {
        let _ = survive(format!("{HEAD}{text}").as_bytes());
    }

    #[test]
    fn tokens_of_a_body(text in tokens(0..40)) {
        let _ = survive(format!("{HEAD}.entry k() {{ {text} }}").as_bytes());
    }

    #[test]
    fn tokens_of_an_instruction(text in tokens(0..12)) {
        let _ = survive(format!("{HEAD}.entry k() {{ mov.b32 {text}; }}").as_bytes());
    }

    /// Tokens put in, and pieces taken out or said twice, in a text that was right.
    #[test]
    fn mutations(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, tokens(0..3), any::<bool>()), 1..5),
    ) {
        let mut text = EVERYTHING.as_bytes().to_vec();
        for (at, length, new, twice) in edits {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            let piece = if twice { [&text[start..end], new.as_bytes(), &text[start..end]].concat() } else { new.into_bytes() };
            text.splice(start..end, piece);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| survive(&text)));
        prop_assert!(outcome.is_ok(), "{}", String::from_utf8_lossy(&text));
    }
}
