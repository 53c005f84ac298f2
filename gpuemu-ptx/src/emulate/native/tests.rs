//! Encodings as GNU `as` writes them, and machine code against the operations that it stands for.

use super::assembler::{Assembler, Base, Index, Memory, Operand, Vex, Word, Ymm};
use crate::arch::Arch;
use crate::emulate::code::Origin;
use crate::emulate::op::host_is_wide;
use crate::emulate::vector::tests::NUMBERS;
use crate::emulate::{Argument, Device, Options, Shape};
use crate::program::Opcode;

fn memory(base: Base, index: Index, offset: i32) -> Operand {
    Operand::Memory(place(base, index, offset))
}

fn place(base: Base, index: Index, offset: i32) -> Memory {
    Memory { base, index, offset }
}

/// Writes an instruction, and what it is in bytes.
type Written = (fn(&mut Assembler), &'static [u8]);

#[test]
fn encodings() {
    use Base::{Constants, Frame, Truths};
    use Index::{Bytes, None, Once, Twice};
    let cases: &[Written] = &[
        // vmovups ymm3, [rdi+rax+0x100]
        (
            |code| code.one(Vex::LOAD, Ymm(3), memory(Frame, Once, 0x100)),
            &[0xc5, 0xfc, 0x10, 0x9c, 0x07, 0x00, 0x01, 0x00, 0x00],
        ),
        // vmovups ymm12, [rdi+rax*2+0x120]
        (
            |code| code.one(Vex::LOAD, Ymm(12), memory(Frame, Twice, 0x120)),
            &[0xc5, 0x7c, 0x10, 0xa4, 0x47, 0x20, 0x01, 0x00, 0x00],
        ),
        // vmovups [rdi+0x20], ymm9
        (|code| code.one(Vex::STORE, Ymm(9), memory(Frame, None, 0x20)), &[0xc5, 0x7c, 0x11, 0x4f, 0x20]),
        // vmovups ymm1, [rsi-0x80]
        (|code| code.one(Vex::LOAD, Ymm(1), memory(Constants, None, -0x80)), &[0xc5, 0xfc, 0x10, 0x4e, 0x80]),
        // vaddps ymm1, ymm12, ymm15
        (|code| code.two(Vex::ADD_FLOAT, Ymm(1), Ymm(12), Ymm(15)), &[0xc4, 0xc1, 0x1c, 0x58, 0xcf]),
        // vcmpunordps ymm13, ymm12, ymm12
        (|code| code.two_by(Vex::COMPARE_FLOAT, Ymm(13), Ymm(12), Ymm(12), 3), &[0xc4, 0x41, 0x1c, 0xc2, 0xec, 0x03]),
        // vblendvps ymm4, ymm12, ymm15, ymm13
        (|code| code.blend(Ymm(4), Ymm(12), Ymm(15), Ymm(13)), &[0xc4, 0xc3, 0x1d, 0x4a, 0xe7, 0xd0]),
        // vblendvps ymm4, ymm9, [rsi-0x200], ymm12
        (
            |code| code.blend(Ymm(4), Ymm(9), memory(Constants, None, -0x200), Ymm(12)),
            &[0xc4, 0xe3, 0x35, 0x4a, 0xa6, 0x00, 0xfe, 0xff, 0xff, 0xc0],
        ),
        // vfmadd213ps ymm12, ymm2, [rdi+rax+0x80]
        (
            |code| code.two(Vex::FMA, Ymm(12), Ymm(2), memory(Frame, Once, 0x80)),
            &[0xc4, 0x62, 0x6d, 0xa8, 0xa4, 0x07, 0x80, 0x00, 0x00, 0x00],
        ),
        // vpmulld ymm12, ymm9, ymm8
        (|code| code.two(Vex::MULTIPLY, Ymm(12), Ymm(9), Ymm(8)), &[0xc4, 0x42, 0x35, 0x40, 0xe0]),
        // vpsllvq ymm0, ymm1, ymm12
        (|code| code.two(Vex::SHIFT_LEFT_WIDE, Ymm(0), Ymm(1), Ymm(12)), &[0xc4, 0xc2, 0xf5, 0x47, 0xc4]),
        // vpmovzxdq ymm12, xmm9
        (|code| code.one(Vex::EXTEND_UNSIGNED, Ymm(12), Ymm(9)), &[0xc4, 0x42, 0x7d, 0x35, 0xe1]),
        // vextracti128 xmm13, ymm12, 1
        (|code| code.one_by(Vex::HALF, Ymm(12), Ymm(13), 1), &[0xc4, 0x43, 0x7d, 0x39, 0xe5, 0x01]),
        // vpermq ymm2, ymm12, 0xd8
        (|code| code.one_by(Vex::PERMUTE_WIDE, Ymm(2), Ymm(12), 0xd8), &[0xc4, 0xc3, 0xfd, 0x00, 0xd4, 0xd8]),
        // vpermilps ymm1, [rdi+0xa0], 0xb1
        (
            |code| code.one_by(Vex::PERMUTE_INSIDE, Ymm(1), memory(Frame, None, 0xa0), 0xb1),
            &[0xc4, 0xe3, 0x7d, 0x04, 0x8f, 0xa0, 0x00, 0x00, 0x00, 0xb1],
        ),
        // vshufps ymm12, ymm1, [rdi+rax*2+0x20], 0x88
        (
            |code| code.two_by(Vex::SHUFFLE_FLOAT, Ymm(12), Ymm(1), memory(Frame, Twice, 0x20), 0x88),
            &[0xc5, 0x74, 0xc6, 0x64, 0x47, 0x20, 0x88],
        ),
        // vpbroadcastb ymm12, [rdx+r8+0x10]
        (
            |code| code.one(Vex::BROADCAST_BYTE, Ymm(12), memory(Truths, Bytes, 0x10)),
            &[0xc4, 0x22, 0x7d, 0x78, 0x64, 0x02, 0x10],
        ),
        // vmovmskps ecx, ymm12; not ecx; mov [rdx+r8+0x200], cl
        (
            |code| {
                code.signs(Ymm(12), true);
                code.store_byte(place(Truths, Bytes, 0x200));
            },
            &[0xc4, 0xc1, 0x7c, 0x50, 0xcc, 0xf7, 0xd1, 0x42, 0x88, 0x8c, 0x02, 0x00, 0x02, 0x00, 0x00],
        ),
        // vmovmskps ecx, ymm12; mov [rdx+7], cl
        (
            |code| {
                code.signs(Ymm(12), false);
                code.store_byte(place(Truths, None, 7));
            },
            &[0xc4, 0xc1, 0x7c, 0x50, 0xcc, 0x88, 0x4a, 0x07],
        ),
        // shr r10d, 8; shl ecx, 24; or r10d, ecx; mov [rdx+0x10], r10d
        (
            |code| {
                code.push_byte(Word(10));
                code.store_bytes(Word(10), place(Truths, None, 0x10));
            },
            &[0x41, 0xc1, 0xea, 0x08, 0xc1, 0xe1, 0x18, 0x41, 0x09, 0xca, 0x44, 0x89, 0x52, 0x10],
        ),
        // mov eax, [rdx+0x40]; not eax
        (|code| code.load_word(false, place(Truths, None, 0x40), true), &[0x8b, 0x42, 0x40, 0xf7, 0xd0]),
        // mov ecx, [rdx+0x400]
        (|code| code.load_word(true, place(Truths, None, 0x400), false), &[0x8b, 0x8a, 0x00, 0x04, 0x00, 0x00]),
        // xor eax, ecx; mov [rdx+8], eax
        (
            |code| {
                code.combine_words(0x31);
                code.store_word(place(Truths, None, 8));
            },
            &[0x31, 0xc8, 0x89, 0x42, 0x08],
        ),
    ];
    for (write, bytes) in cases {
        let mut code = Assembler::new(&[]);
        write(&mut code);
        assert_eq!(code.finish(), *bytes, "{bytes:x?}");
    }
    // vpermilps ymm1, [rip-0x12], 1 where the instruction begins 8 bytes behind what it names.
    let mut code = Assembler::new(&[[0; 8]]);
    code.one_by(Vex::PERMUTE_INSIDE, Ymm(1), Operand::Pool(24), 1);
    assert_eq!(code.finish()[32..], [0xc4, 0xe3, 0x7d, 0x04, 0x0d, 0xee, 0xff, 0xff, 0xff, 0x01]);
}

/// Instructions that become machine code: `R`, `D` and `P` stand for registers of 32 and 64 bits and predicates.
const COMPILED: &[&str] = &[
    "add.f32 R, R, R",
    "sub.f32 R, R, R",
    "sub.rn.f32 R, R, 0f3f800001",
    "mul.f32 R, R, R",
    "fma.rn.f32 R, R, R, R",
    "min.f32 R, R, R",
    "max.f32 R, R, R",
    "neg.f32 R, R",
    "abs.f32 R, R",
    "cvt.rn.f32.s32 R, R",
    "add.s32 R, R, R",
    "add.u32 R, R, -7",
    "sub.s32 R, R, R",
    "mul.lo.s32 R, R, R",
    "mad.lo.s32 R, R, R, R",
    "and.b32 R, R, R",
    "or.b32 R, R, R",
    "xor.b32 R, R, 0x55555555",
    "not.b32 R, R",
    "shl.b32 R, R, R",
    "shl.b32 R, R, 3",
    "shr.u32 R, R, R",
    "shr.b32 R, R, 33",
    "shr.s32 R, R, R",
    "min.s32 R, R, R",
    "max.s32 R, R, R",
    "min.u32 R, R, R",
    "max.u32 R, R, R",
    "mov.b32 R, R",
    "mov.u32 R, 12345",
    "add.s64 D, D, D",
    "sub.u64 D, D, D",
    "and.b64 D, D, D",
    "or.b64 D, D, D",
    "xor.b64 D, D, D",
    "mov.b64 D, D",
    "mov.u64 D, 0x123456789abcdef",
    "cvta.to.global.u64 D, D",
    "shl.b64 D, D, R",
    "shl.b64 D, D, 2",
    "shr.u64 D, D, R",
    "mul.wide.s32 D, R, R",
    "mul.wide.u32 D, R, 4",
    "mad.wide.s32 D, R, R, D",
    "mad.wide.u32 D, R, R, D",
    "cvt.s64.s32 D, R",
    "cvt.u64.u32 D, R",
    "cvt.u32.u64 R, D",
    "selp.b32 R, R, R, P",
    "selp.f32 R, 0f3f800000, R, P",
    "selp.b64 D, D, D, P",
    "and.pred P, P, P",
    "or.pred P, P, P",
    "xor.pred P, P, P",
    "not.pred P, P",
    "mov.pred P, P",
    "shfl.sync.bfly.b32 R, R, 1, 31, -1",
    "shfl.sync.bfly.b32 R, R, 2, 31, -1",
    "shfl.sync.bfly.b32 R, R, 4, 31, -1",
    "shfl.sync.bfly.b32 R, R, 8, 31, -1",
    "shfl.sync.bfly.b32 R, R, 16, 31, -1",
];

/// Instructions like them that do not: what stands in the way is written in a modifier.
const OTHERS: &[&str] = &[
    "add.ftz.f32 R, R, R",
    "add.sat.f32 R, R, R",
    "add.rz.f32 R, R, R",
    "max.NaN.f32 R, R, R",
    "add.sat.s32 R, R, R",
    "mul.hi.s32 R, R, R",
    "setp.lt.ftz.f32 P, R, R",
    "setp.lt.and.s32 P, R, R, P",
    "cvt.rz.f32.s32 R, R",
    "shfl.sync.up.b32 R, R, 1, 0, -1",
    "shfl.sync.bfly.b32 R, R, 1, 15, -1",
];

fn comparisons() -> Vec<String> {
    let floats =
        "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split(' ').map(|how| format!("setp.{how}.f32 P, R, R"));
    let signed = "eq ne lt le gt ge".split(' ').map(|how| format!("setp.{how}.s32 P, R, R"));
    let unsigned = "eq ne lt le gt ge lo ls hi hs".split(' ').map(|how| format!("setp.{how}.u32 P, R, R"));
    floats.chain(signed).chain(unsigned).collect()
}

fn compiled() -> Vec<String> {
    COMPILED.iter().map(|text| (*text).to_owned()).chain(comparisons()).collect()
}

const NARROW: usize = 10;
const WIDE: usize = 5;
const TRUTHS: usize = 4;

/// A kernel that loads its registers, does what the body says and stores them.
fn kernel(body: &str) -> String {
    let mut text = String::from(
        ".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in)\n{\n\
         .reg .b32 %r<10>, %lane, %x;\n.reg .b64 %d<5>, %out, %in, %at;\n.reg .pred %p<5>;\n\
         mov.u32 %lane, %tid.x;\nld.param.u64 %out, [out];\nld.param.u64 %in, [in];\n\
         mad.wide.u32 %in, %lane, 4, %in;\nmad.wide.u32 %out, %lane, 128, %out;\n",
    );
    for register in 0..NARROW {
        text += &format!("ld.global.b32 %r{register}, [%in+{}];\n", 256 * register);
    }
    for register in 0..WIDE {
        let (low, high) = (256 * (2 * register + 3), 256 * (2 * register + 1));
        text += &format!("ld.global.b32 %lane, [%in+{low}];\nld.global.b32 %x, [%in+{high}];\n");
        text += &format!("mov.b64 %d{register}, {{%lane, %x}};\n");
    }
    for register in 1..=TRUTHS {
        text += &format!("and.b32 %x, %r{register}, {register};\nsetp.ne.u32 %p{register}, %x, 0;\n");
    }
    text += body;
    for register in 0..NARROW {
        text += &format!("st.global.b32 [%out+{}], %r{register};\n", 4 * register);
    }
    for register in 0..WIDE {
        text += &format!("st.global.b64 [%out+{}], %d{register};\n", 40 + 8 * register);
    }
    for register in 1..=TRUTHS {
        text += &format!("selp.b32 %x, 1, 0, %p{register};\nst.global.b32 [%out+{}], %x;\n", 76 + 4 * register);
    }
    text + "ret;\n}\n"
}

/// Numbers as a linear congruence has them.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    /// An instruction with registers for the letters.
    fn filled(&mut self, template: &str) -> String {
        let mut text = String::new();
        let (opcode, operands) = template.split_once(' ').unwrap();
        text += opcode;
        for (index, operand) in operands.split(", ").enumerate() {
            text += if index == 0 { " " } else { ", " };
            text += &match operand {
                "R" => format!("%r{}", self.below(NARROW)),
                "D" => format!("%d{}", self.below(WIDE)),
                "P" => {
                    // What is read may be a negation.
                    let may = index != 0 && self.below(3) == 0 && opcode != "not.pred" && opcode != "mov.pred";
                    format!("{}%p{}", if may { "!" } else { "" }, 1 + self.below(TRUTHS))
                }
                other => other.to_owned(),
            };
        }
        text + ";\n"
    }
}

/// Numbers that integers and shifts tell apart, beside those of [`NUMBERS`].
const MORE: [u32; 8] = [0xffff_ffff, 2, 31, 32, 33, 63, 64, 0xffff];

/// One of both lists, over and over.
fn number(at: usize) -> u32 {
    let at = at % (NUMBERS.len() + MORE.len());
    *NUMBERS.get(at).unwrap_or_else(|| &MORE[at - NUMBERS.len()])
}

/// What a kernel stores of 64 threads or fewer.
fn stored(text: &str, native: bool, threads: u32) -> Vec<u8> {
    let options = Options { threads: 1, native, ..Options::default() };
    let mut device = Device::new(Arch::named("sm_80").unwrap(), options).unwrap();
    let module = device.load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let words: Vec<u8> = (0..14 * 64).flat_map(|at| number(at * (at / 64 + 1)).to_le_bytes()).collect();
    let input = device.memory().allocate(words.len() as u64, 256, "in").unwrap();
    device.memory_mut().write(input, &words).unwrap();
    let output = device.memory().allocate(128 * 64, 256, "out").unwrap();
    device.memory_mut().write(output, &[0; 128 * 64]).unwrap();
    let shape = Shape { grid: [1, 1, 1], block: [threads, 1, 1], shared: 0 };
    let launched = device.launch(&module, "k", shape, &[Argument::Pointer(output), Argument::Pointer(input)]).unwrap();
    assert!(launched.fault.is_none(), "{:?}\n{text}", launched.fault);
    let mut bytes = vec![0; 128 * 64];
    device.memory_mut().read(output, &mut bytes).unwrap();
    bytes
}

/// The longest run that a body is compiled to.
fn longest_run(body: &str) -> i32 {
    let mut device = Device::new(Arch::named("sm_80").unwrap(), Options::default()).unwrap();
    let text = kernel(&format!("bar.warp.sync -1;\n{body}bar.warp.sync -1;\n"));
    let module = device.load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let entry = module.program().entry("k").unwrap();
    let code = module.code(entry).unwrap();
    let instructions = &module.program().function(entry).instructions;
    let begins = |origin: &Origin| instructions[origin.instruction as usize].opcode == Opcode::Bar;
    let begin = code.origins.iter().position(begins).unwrap();
    let runs = code
        .native
        .ops
        .iter()
        .zip(&code.ops)
        .skip(begin)
        .filter(|(native, op)| !std::ptr::fn_addr_eq(native.run, op.run));
    runs.map(|(native, _)| native.d).max().unwrap_or(0)
}

#[test]
fn what_is_compiled_and_what_is_not() {
    if !host_is_wide() {
        return;
    }
    let mut numbers = Numbers(1);
    for template in compiled() {
        let body: String = (0..5).map(|_| numbers.filled(&template)).collect();
        assert_eq!(longest_run(&body), 5, "{template}");
    }
    for template in OTHERS {
        let body: String = (0..5).map(|_| numbers.filled(template)).collect();
        assert_eq!(longest_run(&body), 0, "{template}");
    }
}

#[test]
fn each_instruction_alone_computes_what_it_did() {
    let mut numbers = Numbers(2);
    for template in compiled() {
        // Of two, each is written out; of five, they are a loop.
        for count in [2, 5] {
            for _ in 0..4 {
                let body: String = (0..count).map(|_| numbers.filled(&template)).collect();
                let text = kernel(&body);
                assert!(stored(&text, true, 64) == stored(&text, false, 64), "{body}");
            }
        }
    }
}

#[test]
fn runs_compute_what_they_did() {
    let compiled = compiled();
    for seed in 0..300 {
        let mut numbers = Numbers(seed);
        let mut body = String::new();
        for _ in 0..[3, 10, 40, 120][seed as usize % 4] {
            let template = match numbers.below(20) {
                0 => OTHERS[numbers.below(OTHERS.len())],
                1 => "ld.global.b32 R, [%in+4]",
                _ => &compiled[numbers.below(compiled.len())],
            };
            let text = numbers.filled(template);
            // Lanes part in some.
            body += &match numbers.below(40) {
                0 if !text.contains("shfl") => format!("@%p{} {text}", 1 + numbers.below(TRUTHS)),
                _ => text,
            };
        }
        let text = kernel(&body);
        for threads in [64, 32] {
            assert!(stored(&text, true, threads) == stored(&text, false, threads), "seed {seed}\n{body}");
        }
    }
}

#[test]
fn some_lanes_of_a_warp_compute_what_they_did() {
    let compiled = compiled();
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        // The lanes of one predicate skip a part of it, which no shuffle is in.
        let mut part = |count| -> String {
            let texts = std::iter::repeat_with(|| {
                let template = &compiled[numbers.below(compiled.len())];
                numbers.filled(template)
            });
            texts.filter(|text| !text.contains("shfl")).take(count).collect()
        };
        let body = format!("{}@%p1 bra BEHIND;\n{}BEHIND:\n{}", part(10), part(20), part(10));
        let text = kernel(&body);
        for threads in [64, 40, 1] {
            assert!(stored(&text, true, threads) == stored(&text, false, threads), "seed {seed}\n{body}");
        }
    }
}
