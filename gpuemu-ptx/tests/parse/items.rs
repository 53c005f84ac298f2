//! Items of a module beside the tree that they become.

use gpuemu_ptx::parse::{
    Body, Directive, File, Function, Initial, Item, Linkage, Operand, Pointer, Section, Space, Type, Variable,
};

use super::{HEAD, tree};

#[test]
fn the_header() {
    for (text, version, targets, address_size) in [
        (".version 7.5\n.target sm_35\n.address_size 64\n", (7, 5), vec!["sm_35"], 64),
        (".version 9.4 .target sm_90a, debug", (9, 4), vec!["sm_90a", "debug"], 32),
        (
            "// a comment\n\n.version 10.12\n.target sm_100a,texmode_independent\n.address_size 32;",
            (10, 12),
            vec!["sm_100a", "texmode_independent"],
            32,
        ),
    ] {
        let module = tree(text);
        assert_eq!((module.version, module.targets, module.address_size), (version, targets, address_size), "{text}");
        assert!(module.items.is_empty());
    }
}

fn int<'a>(bits: u64) -> Initial<'a> {
    Initial::Value(Operand::Integer { bits, unsigned: false })
}

fn plain(space: Space, ty: Type, name: &str) -> Variable<'_> {
    Variable {
        offset: 0,
        linkage: Linkage::Local,
        space,
        bank: None,
        align: None,
        vector: 1,
        ty,
        pointer: None,
        attributes: None,
        name,
        count: None,
        extents: Vec::new(),
        initial: None,
    }
}

fn address<'a>(symbol: &'a str, addend: i64, generic: bool, mask: Option<u64>) -> Initial<'a> {
    Initial::Address { symbol, addend, generic, mask }
}

#[test]
fn variables() {
    use Space::{Constant, Global, Shared};
    let table = vec![
        (".global .b32 x;", vec![plain(Global, Type::B32, "x")]),
        (
            ".visible .global .align 4 .b8 a[4] = {1,2,3,4}, b;",
            vec![
                Variable {
                    linkage: Linkage::Visible,
                    align: Some(4),
                    extents: vec![Some(4)],
                    initial: Some(Initial::List(vec![int(1), int(2), int(3), int(4)])),
                    ..plain(Global, Type::B8, "a")
                },
                Variable { linkage: Linkage::Visible, align: Some(4), ..plain(Global, Type::B8, "b") },
            ],
        ),
        (
            ".extern .shared .align 16 .b8 smem[];",
            vec![Variable {
                linkage: Linkage::Extern,
                align: Some(16),
                extents: vec![None],
                ..plain(Shared, Type::B8, "smem")
            }],
        ),
        (
            ".const[2] .v4 .f32 c[2*3][4];",
            vec![Variable {
                bank: Some(2),
                vector: 4,
                extents: vec![Some(6), Some(4)],
                ..plain(Constant, Type::F32, "c")
            }],
        ),
        (
            ".weak .const .f32 c[2] = {0f3F800000, -1.5};",
            vec![Variable {
                linkage: Linkage::Weak,
                extents: vec![Some(2)],
                initial: Some(Initial::List(vec![
                    Initial::Value(Operand::Float32(0x3f80_0000)),
                    Initial::Value(Operand::Float64((-1.5_f64).to_bits())),
                ])),
                ..plain(Constant, Type::F32, "c")
            }],
        ),
        (
            ".common .global .s32 m[2][2] = {{1, -1}, {1+1, WARP_SZ}};",
            vec![Variable {
                linkage: Linkage::Common,
                extents: vec![Some(2), Some(2)],
                initial: Some(Initial::List(vec![
                    Initial::List(vec![int(1), int(u64::MAX)]),
                    Initial::List(vec![int(2), int(32)]),
                ])),
                ..plain(Global, Type::S32, "m")
            }],
        ),
        (
            ".global .u64 p[5] = {x, x+8, generic(x), generic(x)+8, generic(x+8)-4};",
            vec![Variable {
                extents: vec![Some(5)],
                initial: Some(Initial::List(vec![
                    address("x", 0, false, None),
                    address("x", 8, false, None),
                    address("x", 0, true, None),
                    address("x", 8, true, None),
                    address("x", 4, true, None),
                ])),
                ..plain(Global, Type::U64, "p")
            }],
        ),
        (
            ".global .u8 p[3] = {0xFF(x), 0xFF00(x+8), 0xFF0000(generic(x)+8)};",
            vec![Variable {
                extents: vec![Some(3)],
                initial: Some(Initial::List(vec![
                    address("x", 0, false, Some(0xff)),
                    address("x", 8, false, Some(0xff00)),
                    address("x", 8, true, Some(0xff_0000)),
                ])),
                ..plain(Global, Type::U8, "p")
            }],
        ),
        (
            ".global .attribute(.managed) .b32 x;",
            vec![Variable { attributes: Some(".managed"), ..plain(Global, Type::B32, "x") }],
        ),
        (
            ".attribute( .unified(1, 2) ) .align 8 .global .b32 x;",
            vec![Variable { attributes: Some(".unified(1, 2)"), align: Some(8), ..plain(Global, Type::B32, "x") }],
        ),
        (
            ".global .samplerref s = { filter_mode = nearest, width = 3 };",
            vec![Variable {
                initial: Some(Initial::List(vec![
                    Initial::Property { name: "filter_mode", value: Operand::Name("nearest") },
                    Initial::Property { name: "width", value: Operand::Integer { bits: 3, unsigned: false } },
                ])),
                ..plain(Global, Type::SamplerReference, "s")
            }],
        ),
        (".tex .u32 t;", vec![plain(Space::Texture, Type::U32, "t")]),
    ];
    for (text, right) in table {
        let whole = format!("{HEAD}{text}");
        let right: Vec<_> = right.into_iter().map(Item::Variable).collect();
        assert_eq!(tree(&whole).items, right, "{text}");
    }
}

fn function(name: &str, entry: bool) -> Function<'_> {
    Function {
        offset: 0,
        linkage: Linkage::Local,
        entry,
        name,
        returns: Vec::new(),
        parameters: Vec::new(),
        directives: Vec::new(),
        body: None,
    }
}

fn directive<'a>(name: &'a str, numbers: &[u64], text: Option<&'a str>) -> Directive<'a> {
    Directive { name, numbers: numbers.to_vec(), text }
}

#[test]
fn functions() {
    use Space::{Parameter, Register};
    let empty = || Some(Body::default());
    let table = vec![
        (".entry k;", function("k", true)),
        (".visible .entry k() {}", Function { linkage: Linkage::Visible, body: empty(), ..function("k", true) }),
        (
            ".entry k .maxntid 128, 1 .minnctapersm 2 .explicitcluster .pragma \"a\", \"b\"; .noreturn {}",
            Function {
                directives: vec![
                    directive("maxntid", &[128, 1], None),
                    directive("minnctapersm", &[2], None),
                    directive("explicitcluster", &[], None),
                    directive("pragma", &[], Some("a")),
                    directive("pragma", &[], Some("b")),
                    directive("noreturn", &[], None),
                ],
                body: empty(),
                ..function("k", true)
            },
        ),
        (
            ".extern .func (.param .b32 r) f (.param .b64 a, .param .align 8 .b8 b[16], .param .b8 rest[])\n;",
            Function {
                linkage: Linkage::Extern,
                returns: vec![plain(Parameter, Type::B32, "r")],
                parameters: vec![
                    plain(Parameter, Type::B64, "a"),
                    Variable { align: Some(8), extents: vec![Some(16)], ..plain(Parameter, Type::B8, "b") },
                    Variable { extents: vec![None], ..plain(Parameter, Type::B8, "rest") },
                ],
                ..function("f", false)
            },
        ),
        (
            ".weak .func .attribute(.unified(1, 2)) (.reg .b32 r) f (.reg .pred p) .abi_preserve 8;",
            Function {
                linkage: Linkage::Weak,
                returns: vec![plain(Register, Type::B32, "r")],
                parameters: vec![plain(Register, Type::Predicate, "p")],
                directives: vec![
                    directive("attribute", &[], Some(".unified(1, 2)")),
                    directive("abi_preserve", &[8], None),
                ],
                ..function("f", false)
            },
        ),
        (
            ".entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b, .param .align 4 .u64 .ptr.shared c){}",
            Function {
                parameters: vec![
                    Variable {
                        pointer: Some(Pointer { space: Some(Space::Global), align: Some(16) }),
                        ..plain(Parameter, Type::U64, "a")
                    },
                    Variable {
                        pointer: Some(Pointer { space: None, align: None }),
                        ..plain(Parameter, Type::U64, "b")
                    },
                    Variable {
                        align: Some(4),
                        pointer: Some(Pointer { space: Some(Space::Shared), align: None }),
                        ..plain(Parameter, Type::U64, "c")
                    },
                ],
                body: empty(),
                ..function("k", true)
            },
        ),
    ];
    for (text, right) in table {
        let whole = format!("{HEAD}{text}");
        assert_eq!(tree(&whole).items, [Item::Function(right)], "{text}");
    }
}

#[test]
fn other_items() {
    let table = vec![
        (".file 1 \"C:\\x\\\"", Item::File(File { index: 1, path: "C:\\x\\", stamp: None })),
        (".file 2 \"x.cu\", 17, 4096", Item::File(File { index: 2, path: "x.cu", stamp: Some((17, 4096)) })),
        (".pragma \"a\", \"b\";", Item::Pragma(vec!["a", "b"])),
        (".alias a, b;", Item::Alias { name: "a", target: "b" }),
        (".section .debug_loc {}", Item::Section(Section { name: ".debug_loc", body: "" })),
        (
            ".section\t.debug_str\t{ a: .b8 1 // }\n { \"}\" } /* } */ }",
            Item::Section(Section { name: ".debug_str", body: " a: .b8 1 // }\n { \"}\" } /* } */ " }),
        ),
    ];
    for (text, right) in table {
        let whole = format!("{HEAD}{text}");
        assert_eq!(tree(&whole).items, [right], "{text}");
    }
}
