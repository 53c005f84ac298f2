//! Statements of a body beside the tree that they become.

use gpuemu_ptx::parse::{
    Guard, Inlined, Label, Linkage, Location, Operand, Prototype, Space, Statement, Type, Variable,
};

use super::{body, in_entry, tree};

use Operand::{Address, Element, Indexed, List, Minus, Name, Negated, Pair, Sum, Vector, VectorPair};

const fn int(value: i64) -> Operand<'static> {
    Operand::Integer { bits: value as u64, unsigned: false }
}

const fn at(base: &str, offset: i64) -> Operand<'_> {
    Address { base: Some(base), offset }
}

#[test]
fn operands() {
    // The opcode, the operands inside others, and the instruction's own, which follow them.
    let table: &[(&str, &str, &[Operand], &[Operand])] = &[
        ("ret;", "ret", &[], &[]),
        (
            "ld /* a row */ .global\n# 7 \"k.cu\"\n.b32 %r1, x;",
            "ld /* a row */ .global\n# 7 \"k.cu\"\n.b32",
            &[],
            &[Name("%r1"), Name("x")],
        ),
        ("call/*f.g*/.uni f;", "call/*f.g*/.uni", &[], &[List(0..0), Name("f"), List(0..0)]),
        ("bra.uni $L__BB0_2;", "bra.uni", &[], &[Name("$L__BB0_2")]),
        ("mov.u32 %r1, %tid.x;", "mov.u32", &[], &[Name("%r1"), Name("%tid.x")]),
        ("add.f32 %f1, %v.x, %v.w;", "add.f32", &[], &[Name("%f1"), Name("%v.x"), Name("%v.w")]),
        ("mov.b32 %r1, -5;", "mov.b32", &[], &[Name("%r1"), int(-5)]),
        ("mov.b32 %r1, 0xFFFFFFFF;", "mov.b32", &[], &[Name("%r1"), int(0xffff_ffff)]),
        ("mov.b32 %r1, 7U;", "mov.b32", &[], &[Name("%r1"), Operand::Integer { bits: 7, unsigned: true }]),
        ("mov.f32 %f1, 0f3F800000;", "mov.f32", &[], &[Name("%f1"), Operand::Float32(0x3f80_0000)]),
        ("mov.f64 %d, 0dC000000000000000;", "mov.f64", &[], &[Name("%d"), Operand::Float64((-2.0_f64).to_bits())]),
        ("mov.f64 %d, -2.0;", "mov.f64", &[], &[Name("%d"), Operand::Float64((-2.0_f64).to_bits())]),
        (
            "ld.global.L1::no_allocate.b32 %r1, [%rd1];",
            "ld.global.L1::no_allocate.b32",
            &[],
            &[Name("%r1"), at("%rd1", 0)],
        ),
        ("ld.b32 %r1, [%rd1+4];", "ld.b32", &[], &[Name("%r1"), at("%rd1", 4)]),
        ("ld.b32 %r1, [ %rd1 + -4 ];", "ld.b32", &[], &[Name("%r1"), at("%rd1", -4)]),
        ("ld.b32 %r1, [%rd1-4];", "ld.b32", &[], &[Name("%r1"), at("%rd1", -4)]),
        ("ld.b32 %r1, [smem+4*3+(1<<4)-2];", "ld.b32", &[], &[Name("%r1"), at("smem", 26)]),
        ("ld.b32 %r1, [smem+WARP_SZ];", "ld.b32", &[], &[Name("%r1"), at("smem", 32)]),
        (
            "ld.b32 %r1, [a+4].unified, %p;",
            "ld.b32",
            &[],
            &[Name("%r1"), Operand::Unified { base: "a", offset: 4 }, Name("%p")],
        ),
        ("ld.local.b32 %r1, [64];", "ld.local.b32", &[], &[Name("%r1"), Address { base: None, offset: 64 }]),
        ("mov.u64 %rd1, smem+8;", "mov.u64", &[], &[Name("%rd1"), Sum { symbol: "smem", addend: 8 }]),
        ("mov.u64 %rd1, a[3];", "mov.u64", &[Name("a"), int(3)], &[Name("%rd1"), Element(0..2)]),
        ("ld.u32 %r1, a[%r2];", "ld.u32", &[Name("a"), Name("%r2")], &[Name("%r1"), Element(0..2)]),
        (
            "ld.u32 %r1, a[%r2+4];",
            "ld.u32",
            &[Name("a"), Sum { symbol: "%r2", addend: 4 }],
            &[Name("%r1"), Element(0..2)],
        ),
        ("shfl.sync.up.b32 %r1|%p1, %r2, 1;", "shfl.sync.up.b32", &[], &[Pair("%r1", "%p1"), Name("%r2"), int(1)]),
        ("setp.eq.s32 _ | %p2, %r1, 0;", "setp.eq.s32", &[], &[Pair("_", "%p2"), Name("%r1"), int(0)]),
        ("and.pred %p1, !%p2, ! %p3;", "and.pred", &[], &[Name("%p1"), Negated("%p2"), Negated("%p3")]),
        ("vmad.s32 %r1, -%r2.b0, %r3.h1, 1;", "vmad.s32", &[], &[Name("%r1"), Minus("%r2.b0"), Name("%r3.h1"), int(1)]),
        ("st.v2.b32 [%rd1], {%r1, 5};", "st.v2.b32", &[Name("%r1"), int(5)], &[at("%rd1", 0), Vector(0..2)]),
        (
            "mma.f16 {a, b}, {c}, {d, e, f};",
            "mma.f16",
            &[Name("a"), Name("b"), Name("c"), Name("d"), Name("e"), Name("f")],
            &[Vector(0..2), Vector(2..3), Vector(3..6)],
        ),
        (
            "tex.2d.v2.f32.f32 {a, b}|p, [t, s, {x, y}], {1, 2};",
            "tex.2d.v2.f32.f32",
            // The coordinates settle before the address that they are of.
            &[Name("a"), Name("b"), Name("x"), Name("y"), at("t", 0), Name("s"), Vector(2..4), int(1), int(2)],
            &[VectorPair(0..2, "p"), Indexed(4..7), Vector(7..9)],
        ),
        (
            "cp.async.bulk.tensor.2d [%r1], [%rd1+64, {%r2, 0}], [%r4];",
            "cp.async.bulk.tensor.2d",
            &[Name("%r2"), int(0), at("%rd1", 64), Vector(0..2)],
            &[at("%r1", 0), Indexed(2..4), at("%r4", 0)],
        ),
        ("ld.global .u32 %r1, [g];", "ld.global .u32", &[], &[Name("%r1"), at("g", 0)]),
        ("call f;", "call", &[], &[List(0..0), Name("f"), List(0..0)]),
        ("call.uni f, ();", "call.uni", &[], &[List(0..0), Name("f"), List(0..0)]),
        ("call (), f, ( );", "call", &[], &[List(0..0), Name("f"), List(0..0)]),
        ("call.uni (r), f, (a, 5);", "call.uni", &[Name("r"), Name("a"), int(5)], &[List(0..1), Name("f"), List(1..3)]),
        ("call _, f, (a);", "call", &[Name("a")], &[List(0..0), Name("f"), List(0..1)]),
        ("call %rd1, p;", "call", &[], &[List(0..0), Name("%rd1"), List(0..0), Name("p")]),
        (
            "call (_), %rd1, (a), p;",
            "call",
            &[Name("_"), Name("a")],
            &[List(0..1), Name("%rd1"), List(1..2), Name("p")],
        ),
    ];
    for &(text, opcode, inside, own) in table {
        let text = in_entry(text);
        let module = tree(&text);
        let body = body(&module);
        let [Statement::Instruction(instruction)] = &body.statements[..] else { panic!("{text}: {body:?}") };
        assert_eq!(instruction.opcode, opcode, "{text}");
        assert_eq!(instruction.guard, None, "{text}");
        assert_eq!(instruction.operands, inside.len() as u32..(inside.len() + own.len()) as u32, "{text}");
        assert_eq!(body.operands, [inside, own].concat(), "{text}");
    }
}

#[test]
fn a_long_vector() {
    let registers: Vec<String> = (0..128).map(|n| format!("%f{n}")).collect();
    let text = in_entry(&format!("wgmma.mma_async {{{}}}, %rd1, %rd2, 1;", registers.join(",")));
    let module = tree(&text);
    let operands = &body(&module).operands;
    assert_eq!(operands[127], Name("%f127"));
    assert_eq!(operands[128..], [Vector(0..128), Name("%rd1"), Name("%rd2"), int(1)]);
}

/// Statements other than instructions; instructions come down to their opcode and guard.
#[derive(Debug, PartialEq)]
enum Line<'a> {
    Opcode(Option<Guard<'a>>, &'a str),
    Other(Statement<'a>),
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let module = tree(text);
    let statements = module.items.into_iter().find_map(|item| match item {
        gpuemu_ptx::parse::Item::Function(function) => function.body.map(|body| body.statements),
        _ => None,
    });
    let line = |statement| match statement {
        Statement::Instruction(instruction) => Line::Opcode(instruction.guard, instruction.opcode),
        other => Line::Other(other),
    };
    statements.into_iter().flatten().map(line).collect()
}

fn register<'a>(space: Space, ty: Type, name: &'a str, count: Option<u32>) -> Line<'a> {
    Line::Other(Statement::Variable(Box::new(variable(space, ty, name, count))))
}

fn variable(space: Space, ty: Type, name: &str, count: Option<u32>) -> Variable<'_> {
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
        count,
        extents: Vec::new(),
        initial: None,
    }
}

#[test]
fn sequences() {
    let op = |opcode| Line::Opcode(None, opcode);
    let label = |name| Line::Other(Statement::Label(Label { offset: 0, name }));
    let open = || Line::Other(Statement::Open);
    let close = || Line::Other(Statement::Close);
    let location = |file, line, column, inlined| {
        Line::Other(Statement::Location(Box::new(Location { file, line, column, inlined })))
    };
    let table: Vec<(&str, Vec<Line>)> = vec![
        ("", vec![]),
        (";;", vec![]),
        ("{ { ret; }; }", vec![open(), open(), op("ret"), close(), close()]),
        ("a: b : c:ret;", vec![label("a"), label("b"), label("c"), op("ret")]),
        ("@p bra a;", vec![Line::Opcode(Some(Guard { register: "p", negated: false }), "bra")]),
        ("@!%p1 bra a;", vec![Line::Opcode(Some(Guard { register: "%p1", negated: true }), "bra")]),
        ("@ ! p bra a;", vec![Line::Opcode(Some(Guard { register: "p", negated: true }), "bra")]),
        ("// ret;\n/* ret; */ exit; /**/", vec![op("exit")]),
        ("exit;\n# 3 \"a.cu\"\n#line 4\n  # 5\nret;", vec![op("exit"), op("ret")]),
        (
            ".reg .b32 %r<100>, %x;\n.reg .pred p;",
            vec![
                register(Space::Register, Type::B32, "%r", Some(100)),
                register(Space::Register, Type::B32, "%x", None),
                register(Space::Register, Type::Predicate, "p", None),
            ],
        ),
        (".pragma \"nounroll\";", vec![Line::Other(Statement::Pragma(vec!["nounroll"]))]),
        (".pragma \"a\", \"b\";", vec![Line::Other(Statement::Pragma(vec!["a", "b"]))]),
        ("t: .branchtargets a, b<2>;", vec![label("t"), Line::Other(Statement::BranchTargets(vec!["a", "b<2>"]))]),
        ("t: .calltargets f, g;", vec![label("t"), Line::Other(Statement::CallTargets(vec!["f", "g"]))]),
        (
            "p: .callprototype _;",
            vec![
                label("p"),
                Line::Other(Statement::CallPrototype(Box::new(Prototype {
                    returns: vec![],
                    parameters: vec![],
                    directives: vec![],
                }))),
            ],
        ),
        (
            "p : .callprototype (.param .b32 _) _ (.param .b64 _);",
            vec![
                label("p"),
                Line::Other(Statement::CallPrototype(Box::new(Prototype {
                    returns: vec![variable(Space::Parameter, Type::B32, "_", None)],
                    parameters: vec![variable(Space::Parameter, Type::B64, "_", None)],
                    directives: vec![],
                }))),
            ],
        ),
        (".loc 1 12 0 ret;", vec![location(1, 12, 0, None), op("ret")]),
        (
            ".loc 1 23 45, function_name $L__info_string0+17, inlined_at 2 30 6\nret;",
            vec![
                location(
                    1,
                    23,
                    45,
                    Some(Inlined { function: "$L__info_string0", addend: 17, file: 2, line: 30, column: 6 }),
                ),
                op("ret"),
            ],
        ),
    ];
    for (text, right) in table {
        let whole = in_entry(text);
        assert_eq!(lines(&whole), right, "{text}");
    }
}
