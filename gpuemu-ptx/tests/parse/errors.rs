//! Wrong texts beside the whole message that they get.

use gpuemu_ptx::Error;
use gpuemu_ptx::parse::parse_bytes;

fn message_of(text: impl AsRef<[u8]>) -> String {
    format!("\n{}", parse_bytes(text.as_ref()).unwrap_err())
}

#[test]
fn whole_texts() {
    for (text, message) in [
        (
            "",
            r#"
line 1, column 1: expected `.version`, with which a PTX module begins, found the end of the text
  |
1 | 
  | ^"#,
        ),
        (
            "hello",
            r#"
line 1, column 1: expected `.version`, with which a PTX module begins, found `hello`
  |
1 | hello
  | ^^^^^"#,
        ),
        (
            "// nothing\n",
            r#"
line 1, column 11: expected `.version`, with which a PTX module begins, found the end of the text
  |
1 | // nothing
  |           ^"#,
        ),
        (
            ".version 8",
            r#"
line 1, column 10: expected a version of PTX, such as `8.7`, found `8`
  |
1 | .version 8
  |          ^"#,
        ),
        (
            ".version x.y\n",
            r#"
line 1, column 10: expected a version of PTX, such as `8.7`, found `x.y`
  |
1 | .version x.y
  |          ^^^"#,
        ),
        (
            ".version 8.7\n.address_size 64",
            r#"
line 2, column 1: expected `.target` after `.version`, found `.address_size`
  |
2 | .address_size 64
  | ^^^^^^^^^^^^^"#,
        ),
        (
            ".version 8.7\n.target\n.entry k() {}",
            r#"
line 3, column 1: expected an architecture, such as `sm_90`, found `.entry`
  |
3 | .entry k() {}
  | ^^^^^^"#,
        ),
        (
            "#include \"x.h\"\n",
            r#"
line 1, column 1: expected a text that has been through the C preprocessor, found `#include`
  |
1 | #include "x.h"
  | ^^^^^^^^"#,
        ),
    ] {
        assert_eq!(message_of(text), message, "{text}");
    }
}

#[test]
fn items() {
    for (text, message) in [
        (
            ".address_size 48",
            r#"
line 3, column 15: expected 32 or 64, found `48`
  |
3 | .address_size 48
  |               ^^"#,
        ),
        (
            ".entry k(\n",
            r#"
line 3, column 10: expected a state space (`.reg`, `.param`, `.global`, `.shared`, ...), found the end of the text
  |
3 | .entry k(
  |          ^"#,
        ),
        (
            ".entry k()\n",
            r#"
line 3, column 11: expected `{` and the body of a function, `;`, or a directive such as `.maxntid`, found the end of the text
  |
3 | .entry k()
  |           ^"#,
        ),
        (
            ".entr k()\n",
            r#"
line 3, column 1: expected a directive of a module (`.entry`, `.func`, `.global`, `.file`, ...), found `.entr`
  |
3 | .entr k()
  | ^^^^^"#,
        ),
        (
            ".visible k()\n",
            r#"
line 3, column 10: expected `.entry`, `.func` or a state space, found `k`
  |
3 | .visible k()
  |          ^"#,
        ),
        (
            ".entry k() {\n\tret;\n",
            r#"
line 4, column 6: expected `}` to close the `{` of line 3, found the end of the text
  |
4 | 	ret;
  | 	    ^"#,
        ),
        (
            ".entry k() .reqtid 3 {}",
            r#"
line 3, column 12: expected a directive of a function (`.maxntid`, `.reqntid`, `.noreturn`, ...), found `.reqtid`
  |
3 | .entry k() .reqtid 3 {}
  |            ^^^^^^^"#,
        ),
        (
            ".entry k() .maxntid {}",
            r#"
line 3, column 21: expected a number, found `{`
  |
3 | .entry k() .maxntid {}
  |                     ^"#,
        ),
        (
            ".entry k(.u64 a) {}",
            r#"
line 3, column 10: expected a state space (`.reg`, `.param`, `.global`, `.shared`, ...), found `.u64`
  |
3 | .entry k(.u64 a) {}
  |          ^^^^"#,
        ),
        (
            ".entry k(.param u64 a) {}",
            r#"
line 3, column 17: expected a type (`.b32`, `.f32`, `.pred`, ...), found `u64`
  |
3 | .entry k(.param u64 a) {}
  |                 ^^^"#,
        ),
        (
            ".entry k(.param .u64 a .param .u64 b) {}",
            r#"
line 3, column 24: expected `,` or `)` after a parameter, found `.param`
  |
3 | .entry k(.param .u64 a .param .u64 b) {}
  |                        ^^^^^^"#,
        ),
        (
            ".entry k(.param .u65 a) {}",
            r#"
line 3, column 17: expected a type (`.b32`, `.f32`, `.pred`, ...), found `.u65`
  |
3 | .entry k(.param .u65 a) {}
  |                 ^^^^"#,
        ),
        (
            ".global .b8 a[x];",
            r#"
line 3, column 15: expected the number of elements, or `]`, found `x`
  |
3 | .global .b8 a[x];
  |               ^"#,
        ),
        (
            ".global .b8 a[-1];",
            r#"
line 3, column 15: expected the number of elements, or `]`, found `-1`
  |
3 | .global .b8 a[-1];
  |               ^^"#,
        ),
        (
            ".global .b8 a = ;",
            r#"
line 3, column 17: expected an initial value, found `;`
  |
3 | .global .b8 a = ;
  |                 ^"#,
        ),
        (
            ".global .b8 a = {1, 2",
            r#"
line 3, column 22: expected `,` or `}` of an initial value, found the end of the text
  |
3 | .global .b8 a = {1, 2
  |                      ^"#,
        ),
        (
            ".global .b32 a\n.global .b32 b;",
            r#"
line 3, column 15: expected `,` or `;` after a variable, found `.global`
  |
3 | .global .b32 a
  |               ^"#,
        ),
        (
            ".file 1 \"a.cu\n",
            r#"
line 3, column 9: expected a string that ends on its line, found `"a.cu`
  |
3 | .file 1 "a.cu
  |         ^^^^^"#,
        ),
        (
            ".file one \"a.cu\"\n",
            r#"
line 3, column 7: expected the number of a file, found `one`
  |
3 | .file one "a.cu"
  |       ^^^"#,
        ),
        (
            ".section .debug_str { .b8 1\n",
            r#"
line 3, column 28: expected `}` to close the `{` of line 3, found the end of the text
  |
3 | .section .debug_str { .b8 1
  |                            ^"#,
        ),
        (
            ".global .align x .b8 a;",
            r#"
line 3, column 16: expected an alignment in bytes, found `x`
  |
3 | .global .align x .b8 a;
  |                ^"#,
        ),
        (
            ".reg .b32 %r<-1>;",
            r#"
line 3, column 14: expected how many variables there are, found `-1`
  |
3 | .reg .b32 %r<-1>;
  |              ^^"#,
        ),
        (
            ".reg .b32 %r<5;",
            r#"
line 3, column 15: expected `>` after the number of variables, found `;`
  |
3 | .reg .b32 %r<5;
  |               ^"#,
        ),
        (
            "/* open\n",
            r#"
line 3, column 8: expected `*/` to close the `/*` of line 3, found the end of the text
  |
3 | /* open
  |        ^"#,
        ),
        (
            "}",
            r#"
line 3, column 1: expected a directive of a module (`.entry`, `.func`, `.global`, `.file`, ...), found `}`
  |
3 | }
  | ^"#,
        ),
    ] {
        assert_eq!(message_of(format!(".version 8.7\n.target sm_90\n{text}")), message, "{text}");
    }
}

#[test]
fn statements() {
    for (text, message) in [
        (
            "add.s32 %r1, %r2, %r3\nret;",
            r#"
line 5, column 22: expected `,` or `;` after an operand, found `ret`
  |
5 | add.s32 %r1, %r2, %r3
  |                      ^"#,
        ),
        (
            "add.s32 %r1, , %r3;",
            r#"
line 5, column 14: expected an operand, found `,`
  |
5 | add.s32 %r1, , %r3;
  |              ^"#,
        ),
        (
            "add.s32 %r1 %r2;",
            r#"
line 5, column 13: expected `,` or `;` after an operand, found `%r2`
  |
5 | add.s32 %r1 %r2;
  |             ^^^"#,
        ),
        (
            "ret",
            r#"
line 5, column 4: expected `;` or an operand, found `}`
  |
5 | ret
  |    ^"#,
        ),
        (
            "%r1 = 3;",
            r#"
line 5, column 1: expected an instruction, a label, a directive or `}`, found `%r1`
  |
5 | %r1 = 3;
  | ^^^"#,
        ),
        (
            "Ret;",
            r#"
line 5, column 1: expected an instruction, a label, a directive or `}`, found `Ret`
  |
5 | Ret;
  | ^^^"#,
        ),
        (
            "@ret;",
            r#"
line 5, column 5: expected an instruction after its predicate, found `;`
  |
5 | @ret;
  |     ^"#,
        ),
        (
            "@%p1 ;",
            r#"
line 5, column 6: expected an instruction after its predicate, found `;`
  |
5 | @%p1 ;
  |      ^"#,
        ),
        (
            "@%p1 {",
            r#"
line 5, column 6: expected an instruction after its predicate, found `{`
  |
5 | @%p1 {
  |      ^"#,
        ),
        (
            "ld.b32 %r1, [%rd1;",
            r#"
line 5, column 18: expected `]`, `+` or `,` after the base of an address, found `;`
  |
5 | ld.b32 %r1, [%rd1;
  |                  ^"#,
        ),
        (
            "ld.b32 %r1, [%rd1+%rd2];",
            r#"
line 5, column 19: expected a number, found `%rd2`
  |
5 | ld.b32 %r1, [%rd1+%rd2];
  |                   ^^^^"#,
        ),
        (
            "ld.b32 %r1, [%rd1*4];",
            r#"
line 5, column 18: expected `]`, `+` or `,` after the base of an address, found `*`
  |
5 | ld.b32 %r1, [%rd1*4];
  |                  ^"#,
        ),
        (
            "ld.b32 %r1, [];",
            r#"
line 5, column 14: expected an address, found `]`
  |
5 | ld.b32 %r1, [];
  |              ^"#,
        ),
        (
            "ld.b32 %r1, [1.5];",
            r#"
line 5, column 14: expected an integer as an address, found `1.5`
  |
5 | ld.b32 %r1, [1.5];
  |              ^^^"#,
        ),
        (
            "ld. b32 %r1, [%rd1];",
            r#"
line 5, column 4: expected a modifier of an opcode, found the blank 0x20
  |
5 | ld. b32 %r1, [%rd1];
  |    ^"#,
        ),
        (
            "add.s32 %r1, 5 %r2;",
            r#"
line 5, column 16: expected `,` or `;` after an operand, found `%r2`
  |
5 | add.s32 %r1, 5 %r2;
  |                ^^^"#,
        ),
        (
            "call (), _, (a);",
            r#"
line 5, column 10: expected the function to call, found `_`
  |
5 | call (), _, (a);
  |          ^"#,
        ),
        (
            "st.v2.b32 [%rd1], {%r1, %r2;",
            r#"
line 5, column 28: expected `,` or `}` of a vector, found `;`
  |
5 | st.v2.b32 [%rd1], {%r1, %r2;
  |                            ^"#,
        ),
        (
            "st.v2.b32 [%rd1], {};",
            r#"
line 5, column 20: expected an operand, found `}`
  |
5 | st.v2.b32 [%rd1], {};
  |                    ^"#,
        ),
        (
            "mov.b32 %r1, 99999999999999999999;",
            r#"
line 5, column 14: expected an integer of at most 64 bits, found `99999999999999999999`
  |
5 | mov.b32 %r1, 99999999999999999999;
  |              ^^^^^^^^^^^^^^^^^^^^"#,
        ),
        (
            "mov.b32 %r1, 0x;",
            r#"
line 5, column 14: expected a number, found `0x`
  |
5 | mov.b32 %r1, 0x;
  |              ^^"#,
        ),
        (
            "mov.b32 %r1, 09;",
            r#"
line 5, column 14: expected a number, found `09`
  |
5 | mov.b32 %r1, 09;
  |              ^^"#,
        ),
        (
            "mov.b32 %r1, 12ab;",
            r#"
line 5, column 14: expected a number, found `12ab`
  |
5 | mov.b32 %r1, 12ab;
  |              ^^^^"#,
        ),
        (
            "mov.f32 %f1, 0f3F8;",
            r#"
line 5, column 14: expected 8 hexadecimal digits of a float32 after `0f`, found `0f3F8`
  |
5 | mov.f32 %f1, 0f3F8;
  |              ^^^^^"#,
        ),
        (
            "mov.f64 %f1, 0d3F8;",
            r#"
line 5, column 14: expected 16 hexadecimal digits of a float64 after `0d`, found `0d3F8`
  |
5 | mov.f64 %f1, 0d3F8;
  |              ^^^^^"#,
        ),
        (
            "mov.f32 %f1, 1e;",
            r#"
line 5, column 14: expected the digits of an exponent, found `1e`
  |
5 | mov.f32 %f1, 1e;
  |              ^^"#,
        ),
        (
            "mov.f64 %f1, 1e999;",
            r#"
line 5, column 14: expected a number within the range of float64, found `1e999`
  |
5 | mov.f64 %f1, 1e999;
  |              ^^^^^"#,
        ),
        (
            "mov.b32 %r1, 1/0;",
            r#"
line 5, column 15: expected a divisor that is not zero, found `/`
  |
5 | mov.b32 %r1, 1/0;
  |               ^"#,
        ),
        (
            "mov.b32 %r1, 1 % (2-2);",
            r#"
line 5, column 16: expected a divisor that is not zero, found `%`
  |
5 | mov.b32 %r1, 1 % (2-2);
  |                ^"#,
        ),
        (
            "mov.b32 %r1, 1.5 + 1;",
            r#"
line 5, column 18: expected two integers or two floats around an operator, found `+`
  |
5 | mov.b32 %r1, 1.5 + 1;
  |                  ^"#,
        ),
        (
            "mov.b32 %r1, 1.5 & 1.5;",
            r#"
line 5, column 18: expected an operator for floats, found `&`
  |
5 | mov.b32 %r1, 1.5 & 1.5;
  |                  ^"#,
        ),
        (
            "mov.b32 %r1, ~1.5;",
            r#"
line 5, column 14: expected an operator for floats, found `~`
  |
5 | mov.b32 %r1, ~1.5;
  |              ^"#,
        ),
        (
            "mov.f32 %f1, -0f3F800000;",
            r#"
line 5, column 14: expected no operator (a float32 `0f...` takes none), found `-`
  |
5 | mov.f32 %f1, -0f3F800000;
  |              ^"#,
        ),
        (
            "mov.b32 %r1, (1;",
            r#"
line 5, column 16: expected `)`, found `;`
  |
5 | mov.b32 %r1, (1;
  |                ^"#,
        ),
        (
            "mov.b32 %r1, 1 ? 2;",
            r#"
line 5, column 19: expected `:` and the other value, found `;`
  |
5 | mov.b32 %r1, 1 ? 2;
  |                   ^"#,
        ),
        (
            "mov.b32 %r1, 1 +;",
            r#"
line 5, column 17: expected a number, found `;`
  |
5 | mov.b32 %r1, 1 +;
  |                 ^"#,
        ),
        (
            "call (r) f;",
            r#"
line 5, column 10: expected `,` and the function to call, found `f`
  |
5 | call (r) f;
  |          ^"#,
        ),
        (
            "call (r), ;",
            r#"
line 5, column 11: expected the function to call, found `;`
  |
5 | call (r), ;
  |           ^"#,
        ),
        (
            "call f, (a;",
            r#"
line 5, column 11: expected `,` or `)` of a call, found `;`
  |
5 | call f, (a;
  |           ^"#,
        ),
        (
            "call f, (a), ;",
            r#"
line 5, column 14: expected the arguments, or the prototype or targets of the call, found `;`
  |
5 | call f, (a), ;
  |              ^"#,
        ),
        (
            "shfl.b32 %r1|, %r2;",
            r#"
line 5, column 14: expected a register after `|`, found `,`
  |
5 | shfl.b32 %r1|, %r2;
  |              ^"#,
        ),
        (
            "and.pred %p1, !, %p2;",
            r#"
line 5, column 16: expected a number, found `,`
  |
5 | and.pred %p1, !, %p2;
  |                ^"#,
        ),
        (
            "mov.b32 %r1, \"x\";",
            r#"
line 5, column 14: expected an operand, found `"x"`
  |
5 | mov.b32 %r1, "x";
  |              ^^^"#,
        ),
        (
            "ld/*x*/.global. b32 %r1, [a];",
            r#"
line 5, column 16: expected a modifier of an opcode, found the blank 0x20
  |
5 | ld/*x*/.global. b32 %r1, [a];
  |                ^"#,
        ),
        (
            "ld /* and no end .b32 %r1, [a];",
            r#"
line 6, column 2: expected `*/` to close the `/*` of line 5, found the end of the text
  |
6 | }
  |  ^"#,
        ),
        (
            ".loc 1 2",
            r#"
line 5, column 9: expected a column, found `}`
  |
5 | .loc 1 2
  |         ^"#,
        ),
        (
            ".loc 1 2 3, function_name x",
            r#"
line 5, column 28: expected `,` and `inlined_at`, found `}`
  |
5 | .loc 1 2 3, function_name x
  |                            ^"#,
        ),
        (
            ".loc 4294967296 1 1",
            r#"
line 5, column 6: expected the number of a file, a number of at most 32 bits, found `4294967296`
  |
5 | .loc 4294967296 1 1
  |      ^^^^^^^^^^"#,
        ),
        (
            ".entry",
            r#"
line 5, column 1: expected a directive of a function's body (`.reg`, `.shared`, `.loc`, ...), found `.entry`
  |
5 | .entry
  | ^^^^^^"#,
        ),
        (
            ".reg .b32;",
            r#"
line 5, column 10: expected the name of a variable, found `;`
  |
5 | .reg .b32;
  |          ^"#,
        ),
        (
            ".reg %r1;",
            r#"
line 5, column 6: expected a type (`.b32`, `.f32`, `.pred`, ...), found `%r1`
  |
5 | .reg %r1;
  |      ^^^"#,
        ),
        (
            "t: .branchtargets ;",
            r#"
line 5, column 19: expected a label, found `;`
  |
5 | t: .branchtargets ;
  |                   ^"#,
        ),
        (
            "p: .callprototype (.param .b32 _);",
            r#"
line 5, column 34: expected `_`, the place of a name in a prototype, found `;`
  |
5 | p: .callprototype (.param .b32 _);
  |                                  ^"#,
        ),
        (
            "mov.b32 %r1, é;",
            r#"
line 5, column 14: expected an operand, found `é`
  |
5 | mov.b32 %r1, é;
  |              ^"#,
        ),
        (
            "mov.b32 %r1, \u{1}%r2;",
            r#"
line 5, column 14: expected an operand, found the byte 0x01
  |
5 | mov.b32 %r1, �%r2;
  |              ^"#,
        ),
        (
            "mov.u64 %rd1, a[;",
            r#"
line 5, column 17: expected the index of an element, found `;`
  |
5 | mov.u64 %rd1, a[;
  |                 ^"#,
        ),
        (
            "mov.u64 %rd1, a[1.5];",
            r#"
line 5, column 17: expected an integer, found `1.5`
  |
5 | mov.u64 %rd1, a[1.5];
  |                 ^^^"#,
        ),
    ] {
        assert_eq!(message_of(format!(".version 8.7\n.target sm_90\n.entry k()\n{{\n{text}\n}}\n")), message, "{text}");
    }
}

#[test]
fn long_lines_are_cut() {
    let (before, after) = ("ret;".repeat(30), "ret;".repeat(40));
    assert_eq!(
        message_of(format!(".version 8.7\n.target sm_90\n.entry k() {{ {before} add.s32 %r1 %r2; {after} }}")),
        r#"
line 3, column 147: expected `,` or `;` after an operand, found `%r2`
  |
3 | et;ret;ret;ret;ret;ret;ret;ret;ret;ret;ret;ret; add.s32 %r1 %r2; ret;ret;ret;ret;ret;ret;ret;ret;ret;ret;ret;ret;ret;ret
  |                                                             ^^^"#
    );
}

#[test]
fn deep_nesting_is_refused() {
    let braces = "{".repeat(65);
    assert_eq!(
        message_of(format!(".version 8.7\n.target sm_90\n.global .b32 x = {braces};")),
        format!(
            r#"
line 3, column 82: expected at most 64 of these inside each other, found `{{`
  |
3 | .global .b32 x = {braces};
  | {}^"#,
            " ".repeat(81),
        )
    );
}

#[test]
fn files_that_are_no_text() {
    for (bytes, message) in [
        (
            &b"\x7FELF\x02\x01\x01\x33\0\0\xFF"[..],
            r#"
line 1, column 1: expected PTX, which is UTF-8 text, found an ELF file (of a cubin, `cuobjdump -ptx` gives the PTX)
  |
1 | 
  | ^"#,
        ),
        (
            b"\x50\xED\x55\xBA\x01",
            r#"
line 1, column 1: expected PTX, which is UTF-8 text, found a fat binary (`cuobjdump -ptx` gives its PTX)
  |
1 | 
  | ^"#,
        ),
        (
            b".version 8.7\n// caf\xE9\n",
            r#"
line 2, column 7: expected PTX, which is UTF-8 text, found the byte 0xe9
  |
2 | // caf
  |       ^"#,
        ),
        (
            b"\0\0",
            r#"
line 1, column 1: expected `.version`, with which a PTX module begins, found the end of the text
  |
1 | 
  | ^"#,
        ),
    ] {
        assert_eq!(message_of(bytes), message);
    }
}

#[test]
fn files_of_four_gigabytes_are_refused() {
    // No page of it is touched.
    let bytes = vec![0; 1 << 32];
    let error = parse_bytes(&bytes).unwrap_err();
    assert_eq!(error, Error::TooLong { bytes: 1 << 32 });
    assert_eq!(error.to_string(), "the text is 4294967296 bytes long: a module has less than 4294967296 (4 GiB)");
}
