//! What a module that parses means, and what it cannot mean.

use gpuemu_ptx::Error;
use gpuemu_ptx::program::{
    Base, Callee, Compare, Function, Operand, Operation, Order, Program, RegisterId, Relocation, Rounding, ScalarType,
    Scope, Space, Special, Symbol, VariableId, Word,
};

const HEAD: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

/// An entry with registers of every width and this body, which begins on line 8.
fn entry(body: &str) -> String {
    let registers = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .f32 %f<5>; .reg .b64 %d<5>;";
    format!("{HEAD}.visible .entry k(.param .u64 p, .param .u32 n)\n{{\n{registers}\n\n{body}\n}}\n")
}

fn read(text: &str) -> Program {
    Program::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn only(program: &Program) -> &Function {
    program.entries().next().unwrap().1
}

fn operands(function: &Function, index: usize) -> &[Operand] {
    function.operands_of(&function.instructions[index])
}

/// The names of the registers of an operand.
fn names(function: &Function, operand: &Operand) -> Vec<String> {
    match operand {
        Operand::Register(register) => vec![function.register_name(*register)],
        Operand::Vector(range) => function.inside(range).iter().flat_map(|inner| names(function, inner)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_fault_is_named_with_its_place() {
    // Body, line, a part of the message.
    let cases = [
        ("ad.u32 %r0, %r1, %r2;", 8, "unknown opcode `ad`; did you mean `add`?"),
        ("add.f31 %r0, %r1, %r2;", 8, "unknown modifier `.f31` of `add`; did you mean `f32`?"),
        ("add.row.s32 %r0, %r1, %r2;", 8, "`add` takes no `.row`"),
        ("add %r0, %r1, %r2;", 8, "`add` needs a type"),
        (
            "ret;\nadd.s32 %r0, %r1, %r9;",
            9,
            "`%r9` is not declared before this line in this scope; did you mean `%r0`?",
        ),
        ("add.s32 %r0, %r1, x;\n.reg .b32 x;", 8, "`x` is not declared"),
        (".reg .b32 x;\n.reg .b32 x;", 9, "`x` is declared twice in this scope: line 8 has it"),
        (".reg .b32 %r4;", 8, "`%r4` is declared twice in this scope: line 6 has it"),
        ("a: ret;\na: ret;", 9, "`a` is declared twice in this scope: line 8 has it"),
        ("bra LOOP_END;\nLOOP_ENB: ret;", 8, "there is no label `LOOP_END` in this scope; did you mean `LOOP_ENB`?"),
        ("{ inner: ret; }\nbra inner;", 9, "there is no label `inner`"),
        ("add.s32 %r0, %r1;", 8, "`add` takes 3 operands, and has 2"),
        ("ret %r0;", 8, "`ret` takes no operands, and has 1"),
        ("setp.lt.s32 %p0, %r1, %r2, %p1, %p2;", 8, "`setp` takes 3 to 4 operands, and has 5"),
        ("add.s64 %r0, %d0, %d1;", 8, "`%r0` is a `.b32` of 32 bits, where `add` takes 64"),
        ("mul.wide.s32 %r0, %r1, %r2;", 8, "`%r0` is a `.b32` of 32 bits, where `mul` takes 64"),
        ("add.s32 %r0, %p1, %r2;", 8, "`%p1` is a `.pred` of 1 bits, where `add` takes 32"),
        ("setp.eq.s32 %r0, %r1, %r2;", 8, "`%r0` is a `.b32`, not a predicate"),
        ("@%r0 ret;", 8, "`%r0` is a `.b32`, not a predicate"),
        ("ld.global.u64 %r0, [%d0];", 8, "`%r0` is a `.b32` of 32 bits, where `ld` takes 64"),
        ("ld.global.v4.u32 {%r0, %r1}, [%d0];", 8, "`ld` takes 4 elements, and has 2"),
        ("mov.b64 %d0, {%r0, %h1};", 8, "the elements have 48 bits together, where `mov` takes 64"),
        ("add.s32 5, %r0, %r1;", 8, "operand 1 of `add` should be a register"),
        ("bra 5;", 8, "operand 1 of `bra` should be a label"),
        ("call nothing, ();", 8, "`nothing` is not declared"),
        ("call k, (p, n);", 8, "names an entry, which only a host can start"),
        ("call %d0, ();", 8, "is indirect, and has neither a prototype nor a list of targets"),
        (".reg .b32 %x<4294967295>;", 8, "makes more than 4194304 registers"),
        (".shared .b8 big[4294967296][4294967296];", 8, "`big` is larger than any memory"),
    ];
    for (body, line, message) in cases {
        let text = entry(body);
        match Program::read(&text) {
            Err(Error::Program(error)) => {
                assert_eq!(error.line, line, "{body}: {error}");
                assert!(error.to_string().contains(message), "{body}: {error}");
                assert!(!error.excerpt.is_empty() && !error.excerpt.contains('\n'), "{body}: {error}");
            }
            Err(error) => panic!("{body}: {error}"),
            Ok(_) => panic!("{body}: accepted"),
        }
    }
}

#[test]
fn a_fault_shows_its_statement() {
    let error = Program::read(&entry("ret;  @%p1 add.s32 %r0,\t%r1; ret;")).unwrap_err();
    let expected = "line 8, column 7: `add` takes 3 operands, and has 2\n  |\n8 | @%p1 add.s32 %r0, %r1;";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn faults_of_a_module_are_named() {
    let cases = [
        (".global .u32 a;\n.global .u32 a;", "`a` is declared twice in this scope: line 4 has it"),
        (".global .u32 a[2] = {1, 2, 3};", "the initial value of `a` has more elements than the variable"),
        (".global .u64 a = b;", "`b` is not declared"),
        (".global .b8 b[2][1000000000] = {{1}, {2}};", "reaches further than 256 MiB"),
        (".func f() { ret; }\n.func f() { ret; }", "`f` is declared twice in this scope: line 4 has it"),
        (
            ".func f(.param .u32 a);\n.entry k() { .param .u32 x; call f, (x, x); ret; }",
            "`f` takes 1 arguments, and gets 2",
        ),
    ];
    for (items, message) in cases {
        let error = Program::read(&format!("{HEAD}{items}\n")).unwrap_err().to_string();
        assert!(error.contains(message), "{items}: {error}");
    }
}

#[test]
fn an_entry_that_is_not_there_gets_the_nearest_name() {
    let program = read(&format!("{HEAD}.entry softmax() {{ ret; }}\n.func sofmax() {{ ret; }}\n.entry other();\n"));
    assert_eq!(program.function(program.entry("softmax").unwrap()).line, 4);
    let error = program.entry("sofmax").unwrap_err().to_string();
    assert_eq!(error, "the module has no entry `sofmax`; did you mean `softmax`?");
    // The only one is offered however it is spelt, one of several is not.
    let error = program.entry("other").unwrap_err().to_string();
    assert_eq!(error, "the module has no entry `other`; did you mean `softmax`?");
    let two = read(&format!("{HEAD}.entry softmax() {{ ret; }}\n.entry layer_norm() {{ ret; }}\n"));
    assert_eq!(two.entry("other").unwrap_err().to_string(), "the module has no entry `other` among its 2");
}

#[test]
fn forms_are_decoded() {
    let text = entry(
        "atom.global.gpu.acq_rel.add.u32 %r0, [%d0], %r1;\natom.add.acq_rel.gpu.global.u32 %r0, [%d0], %r1;
         ld.global.nc.L1::no_allocate.v4.f32 {%f0, %f1, %f2, %f3}, [%d0+16];\ncvt.rzi.ftz.s64.f32 %d0, %f0;
         setp.geu.and.f32 %p0|%p1, %f0, 0f3F800000, !%p2;\nst.shared::cta.volatile.u8 [%r0], %r1;
         mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5},
         {%f0,%f1,%f2,%f3};",
    );
    let program = read(&text);
    let function = only(&program);
    let form = |index: usize| program.form(function.instructions[index].form);
    for index in [0, 1] {
        let atomic = form(index);
        assert_eq!((atomic.operation, atomic.scope), (Some(Operation::Add), Some(Scope::Device)));
        assert_eq!((atomic.order, atomic.space), (Some(Order::AcquireRelease), Some(Space::Global)));
        assert_eq!(atomic.ty(), ScalarType::U32);
    }
    assert_eq!((form(2).vector, form(2).ty(), form(2).space), (4, ScalarType::F32, Some(Space::Global)));
    assert!(form(2).has(Word::L1NoAllocate) && form(2).has(Word::Nc) && !form(2).has(Word::Ftz));
    assert_eq!(form(3).types, [ScalarType::S64, ScalarType::F32]);
    assert_eq!(form(3).rounding, Some(Rounding::IntegerZero));
    assert_eq!((form(4).compare, form(4).operation), (Some(Compare::GreaterEqualUnordered), Some(Operation::And)));
    assert_eq!((form(5).space, form(5).order, form(5).compare), (Some(Space::Shared), Some(Order::Volatile), None));
    let shape = form(6).shape.unwrap();
    assert_eq!((shape.m, shape.n, shape.k), (16, 8, 16));
    assert_eq!(form(6).types, [ScalarType::F32, ScalarType::F16, ScalarType::F16, ScalarType::F32]);
}

#[test]
fn operands_are_resolved() {
    let text = format!(
        "{HEAD}.extern .shared .align 16 .b8 smem[];\n.global .u32 g;\n.entry k(.param .u64 p) {{
        .reg .b32 %r<8>;\n.reg .b64 %d<2>;\n.reg .v4 .f32 v;\n.reg .v2 .b32 w<2>;\n.local .b32 stack[4];
        mov.u32 %r1, %tid.x;
        mov.v4.u32 {{%r0, %r1, %r2, %r3}}, %ctaid;
        ld.global.v4.f32 v, [%d1-8];
        mov.f32 v.z, 0f00000000;
        mov.b64 %d0, w1;
        mov.u64 %d0, stack+4;
        ld.param.u64 %d1, [p];
        mov.u32 %r0, smem;
        st.global.u32 [g+4], -1;
        vadd.u32.u32.u32 %r0, %r1.b3, %r2.h1;
        mov.u32 %r0, %envreg3;
        mov.u32 %r4, WARP_SZ;
        ret; }}\n"
    );
    let program = read(&text);
    let function = only(&program);
    let operands = |index: usize| operands(function, index);
    assert_eq!(operands(0)[1], Operand::Special(Special::TidX));
    let Operand::Vector(ctaid) = &operands(1)[1] else { panic!("{:?}", operands(1)) };
    let elements = [Special::CtaidX, Special::CtaidY, Special::CtaidZ, Special::CtaidW];
    assert_eq!(function.inside(ctaid), elements.map(Operand::Special));
    assert_eq!(names(function, &operands(2)[0]), ["v.x", "v.y", "v.z", "v.w"]);
    assert!(matches!(operands(2)[1], Operand::Address(Base::Register(_), -8)));
    assert_eq!(names(function, &operands(3)[0]), ["v.z"]);
    assert_eq!(names(function, &operands(4)[1]), ["w1.x", "w1.y"]);
    assert!(matches!(operands(5)[1], Operand::Symbol(Symbol::Local(_), 4)));
    assert_eq!(operands(6)[1], Operand::Address(Base::Symbol(Symbol::Parameter(0)), 0));
    assert_eq!(operands(7)[1], Operand::Symbol(Symbol::Variable(VariableId(0)), 0));
    assert_eq!(operands(8)[0], Operand::Address(Base::Symbol(Symbol::Variable(VariableId(1))), 4));
    assert_eq!(operands(8)[1], Operand::Integer(u64::MAX));
    assert!(matches!(operands(9)[1], Operand::Part(..)));
    assert_eq!(operands(10)[1], Operand::Environment(3));
    assert_eq!(operands(11)[1], Operand::Integer(32));
    let accesses = |index: usize| {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        function.reads(&function.instructions[index], |register| reads.push(function.register_name(register)));
        function.writes(&function.instructions[index], |register| writes.push(function.register_name(register)));
        (reads.join(" "), writes.join(" "))
    };
    assert_eq!(accesses(2), ("%d1".to_owned(), "v.x v.y v.z v.w".to_owned()));
    assert_eq!(accesses(4), ("w1.x w1.y".to_owned(), "%d0".to_owned()));
    assert_eq!(accesses(8), (String::new(), String::new()));
}

#[test]
fn names_of_an_inner_scope_hide_those_around_it() {
    let text = entry(
        "mov.u32 %r0, 1;\n{ .reg .b32 %r<2>; .reg .b32 t; mov.u32 %r0, %r5; mov.u32 t, %r1; bra L; L: ret; }
         { .reg .b64 t; L: mov.u64 t, 0; @%p0 bra L; }\nmov.u32 %r0, 2;\nret;",
    );
    let program = read(&text);
    let function = only(&program);
    let first = |index: usize| -> RegisterId {
        match operands(function, index)[0] {
            Operand::Register(register) => register,
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(first(0), first(7));
    assert_ne!(first(0), first(1));
    assert_eq!(function.register_name(first(1)), "%r0");
    assert_eq!(operands(function, 3)[0], Operand::Label(4));
    assert_eq!(operands(function, 6)[0], Operand::Label(5));
}

#[test]
fn calls_and_targets_are_resolved() {
    let text = format!(
        "{HEAD}.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
        .func f(.param .b32 x) {{ ret; }}
        .func g(.param .b32 x) {{ .param .b32 y; call f, (y); ret; }}
        .entry k() {{\n.reg .b64 %d<4>; .reg .b32 %r<2>;\n.param .b64 a; .param .b64 b; .param .b32 x; .param .b32 r;
        call.uni (r), vprintf, (a, b);
        P: .callprototype _ (.param .b32 _);
        call %d1, (x), P;
        T: .calltargets f, g;
        call %d2, (x), T;
        B: .branchtargets one, two;
        brx.idx %r1, B;
        one: ret;
        two: bra one;\n}}\n"
    );
    let program = read(&text);
    let function = only(&program);
    let call = |index: usize| function.call(&function.instructions[index]).unwrap();
    assert!(matches!(call(0).callee, Callee::Direct(id) if &*program.function(id).name == "vprintf"));
    assert_eq!((call(0).returns.len(), call(0).arguments.len()), (1, 2));
    assert!(matches!(call(1).callee, Callee::Any(_, id) if function.prototypes[id.0 as usize].parameters.len() == 1));
    let Callee::OneOf(_, targets) = call(2).callee else { panic!("{:?}", call(2)) };
    let names: Vec<_> = targets.iter().map(|id| &*program.function(*id).name).collect();
    assert_eq!(names, ["f", "g"]);
    let Operand::BranchTargets(list) = &operands(function, 3)[1] else { panic!() };
    assert_eq!(function.branch_targets[list.0 as usize], [4, 5]);
    let flow = &function.flow;
    let next: Vec<_> = flow.successors(flow.block_of(3)).collect();
    assert_eq!(next, [flow.block_of(4), flow.block_of(5)]);
}

#[test]
fn parameters_are_laid_out_as_the_driver_does() {
    let text = format!(
        "{HEAD}.entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 4 .b8 c[6], .param .u16 d,
        .param .align 8 .b8 e[8])\n.reqntid 128, 2\n.minnctapersm 3\n{{ ret; }}\n"
    );
    let program = read(&text);
    let function = only(&program);
    let places: Vec<_> = function.parameters.iter().map(|p| (&*p.name, p.offset, p.size, p.align)).collect();
    assert_eq!(places, [("a", 0, 1, 1), ("b", 8, 8, 8), ("c", 16, 6, 4), ("d", 22, 2, 2), ("e", 24, 8, 8)]);
    assert_eq!(function.parameter_bytes, 32);
    assert_eq!(function.required_threads, Some([128, 2, 1]));
    assert_eq!(function.minimum_blocks, Some(3));
    assert_eq!(function.parameters[1].pointer.unwrap().align, Some(16));
}

#[test]
fn initial_values_are_bytes_and_relocations() {
    let text = format!(
        "{HEAD}.global .align 4 .b8 s[4] = {{72, 105, 0}};\n.const .f32 f[2] = {{0f3F800000, 2.0}};
        .global .s16 m[2][3] = {{{{1, -2}}, {{3}}}};\n.global .u64 p[3] = {{s, generic(s)+8, 7}};
        .global .u32 open[] = {{1, 2, 3}};\n"
    );
    let program = read(&text);
    let initial = |index: usize| (program.variables[index].size, &program.variables[index].initial[..]);
    assert_eq!(initial(0), (4, &b"Hi\0"[..]));
    assert_eq!(initial(1), (8, &[0, 0, 0x80, 0x3F, 0, 0, 0, 0x40][..]));
    assert_eq!(initial(2), (12, &[1, 0, 0xFE, 0xFF, 0, 0, 3, 0][..]));
    assert_eq!(initial(3).1[16..], [7, 0, 0, 0, 0, 0, 0, 0]);
    let symbol = Symbol::Variable(VariableId(0));
    let expected = [(0, 0, false), (8, 8, true)].map(|(offset, addend, generic)| Relocation {
        offset,
        width: 8,
        symbol,
        addend,
        generic,
        mask: None,
    });
    assert_eq!(program.variables[3].relocations, expected);
    assert_eq!(program.variables[4].size, 12);
}

/// As LLVM prints two loads of a Triton kernel: within assembly it counts lines of the assembly.
#[test]
fn assembly_stands_where_its_statement_does() {
    let text = format!(
        "{HEAD}.file 1 \"k.py\"\n.entry k() {{\n.reg .b32 %r<3>;
        .loc 1 15 9
        // begin inline asm
        .loc 1 15 9
        mov.u32 %r0, 0;
        .loc 1 16 9
        mov.u32 %r1, 1;
        // end inline asm
        mov.u32 %r2, 2;
        .loc 1 16 5
        ret;\n}}\n"
    );
    let program = read(&text);
    let place = |at: &gpuemu_ptx::program::Instruction| at.location.map(|location| program.place(location));
    let places: Vec<_> = only(&program).instructions.iter().map(place).collect();
    assert_eq!(places, ["k.py:15:9", "k.py:15:9", "k.py:15:9", "k.py:16:5"].map(|at| Some(at.to_owned())));
}

#[test]
fn places_follow_loc_and_its_inlining() {
    let text = format!(
        "{HEAD}.file 1 \"a.cu\"\n.file 2 \"b.h\"\n.entry k() {{\n.reg .b32 %r<3>;
        mov.u32 %r0, 0;
        .loc 1 10 3
        mov.u32 %r0, 1;
        .loc 2 5 1, function_name $L__s, inlined_at 1 10 3
        mov.u32 %r0, 2;
        .loc 2 7 2, function_name $L__s+4, inlined_at 2 5 1
        mov.u32 %r0, 3;
        .loc 1 0 0
        ret;\n}}
        .section .debug_str {{\n$L__s:\n.b8 97\n.b8 98\n.b8 99\n.b8 0\n.b8 100,0\n}}\n"
    );
    let program = read(&text);
    let function = only(&program);
    let places: Vec<_> = function.instructions.iter().map(|at| (at.line, at.column)).collect();
    assert_eq!(places, [8, 10, 12, 14, 16].map(|line| (line, 9)));
    let chain = |index: usize| -> Vec<String> {
        let Some(location) = function.instructions[index].location else { return vec![] };
        program.chain(location).map(|id| program.place(id)).collect()
    };
    assert_eq!(chain(0), Vec::<String>::new());
    assert_eq!(chain(1), ["a.cu:10:3"]);
    assert_eq!(chain(2), ["b.h:5:1", "a.cu:10:3"]);
    assert_eq!(chain(3), ["b.h:7:2", "b.h:5:1", "a.cu:10:3"]);
    assert_eq!(chain(4), Vec::<String>::new());
    let inlined = |index: usize| program.location(function.instructions[index].location.unwrap()).function.clone();
    assert_eq!((inlined(2).as_deref(), inlined(3).as_deref()), (Some("abc"), Some("d")));
}
