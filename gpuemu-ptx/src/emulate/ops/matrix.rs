//! Matrices in fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `mma`, `wmma`.

use std::marker::PhantomData;

use super::memory::{Generic, InShared, Memory, access, addresses_of_access, place};
use super::warp::assemble;
use crate::arch::{Arch, MatrixFormat, MatrixInstruction};
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::registers::{FULL, LANES};
use crate::emulate::warp::Warp;
use crate::numerics::fragment;
use crate::numerics::tensor_core::{
    Accumulator, Element, SumRule, multiply_add, multiply_add_bits, multiply_add_f64, multiply_add_fp8_as_f16,
    multiply_add_int,
};
use crate::program::{Opcode, Operand, ScalarType, Shape, Space, Word};

/// All lanes take part, or those that have not left.
macro_rules! whole {
    ($warp:ident, $context:ident, $mask:ident) => {
        match assemble($warp, $context, FULL, $mask, false) {
            Signal::Next => {}
            other => return other,
        }
    };
}

/// `ldmatrix`: `COUNT` matrices of 8 rows of 16 bytes, into the registers of the list that `c` begins.
pub struct LoadMatrix<M, const COUNT: usize, const TRANSPOSED: bool>(PhantomData<M>);

impl<M: Memory, const COUNT: usize, const TRANSPOSED: bool> Body for LoadMatrix<M, COUNT, TRANSPOSED> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        whole!(warp, context, mask);
        let addresses = addresses_of_access(warp, op);
        let lanes = if COUNT == 4 { FULL } else { (1 << (8 * COUNT)) - 1 };
        let mut rows = [[0u128; LANES]];
        let who = access(warp, context, op);
        if let Err(trouble) = M::load(context, who, &addresses, lanes & mask, &mut rows) {
            context.trouble = Some(trouble);
            return Signal::Fault;
        }
        for matrix in 0..COUNT {
            // A fragment is the matrix row by row, four words each.
            let mut words = [0u32; LANES];
            for row in 0..8 {
                for word in 0..4 {
                    words[4 * row + word] = (rows[0][8 * matrix + row] >> (32 * word)) as u32;
                }
            }
            let out = if TRANSPOSED { transposed(&words) } else { words };
            warp.registers.write::<u32>(context.code.lists[op.c as usize + matrix], &out, mask);
        }
        Signal::Next
    }
}

/// The fragment of a transposed 8 by 8 matrix of 16-bit elements.
#[inline(always)]
fn transposed(words: &[u32; LANES]) -> [u32; LANES] {
    spread::<true>(&gathered::<false>(words))
}

/// The fragment of an 8 by 8 matrix of 16-bit elements.
#[inline(always)]
fn spread<const TRANSPOSED: bool>(rows: &[[u16; 8]; 8]) -> [u32; LANES] {
    let mut out = [0; LANES];
    for (lane, word) in out.iter_mut().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let (low, high) = match TRANSPOSED {
            false => (rows[row][column], rows[row][column + 1]),
            true => (rows[column][row], rows[column + 1][row]),
        };
        *word = u32::from(low) | u32::from(high) << 16;
    }
    out
}

/// The matrix of a fragment.
#[inline(always)]
fn gathered<const TRANSPOSED: bool>(registers: &[u32; LANES]) -> [[u16; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (lane, register) in registers.iter().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let (low, high) = (*register as u16, (register >> 16) as u16);
        match TRANSPOSED {
            false => (rows[row][column], rows[row][column + 1]) = (low, high),
            true => (rows[column][row], rows[column + 1][row]) = (low, high),
        }
    }
    rows
}

/// `stmatrix`.
pub struct StoreMatrix<M, const COUNT: usize, const TRANSPOSED: bool>(PhantomData<M>);

impl<M: Memory, const COUNT: usize, const TRANSPOSED: bool> Body for StoreMatrix<M, COUNT, TRANSPOSED> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        whole!(warp, context, mask);
        let addresses = addresses_of_access(warp, op);
        let mut rows = [[0u128; LANES]];
        for matrix in 0..COUNT {
            let register = context.code.lists[op.c as usize + matrix];
            for (row, values) in gathered::<TRANSPOSED>(warp.registers.stored::<u32>(register)).iter().enumerate() {
                let bytes = values.iter().rev().fold(0u128, |all, value| all << 16 | u128::from(*value));
                rows[0][8 * matrix + row] = bytes;
            }
        }
        let lanes = if COUNT == 4 { FULL } else { (1 << (8 * COUNT)) - 1 };
        let who = access(warp, context, op);
        match M::store(context, who, &addresses, lanes & mask, &rows) {
            Ok(()) => Signal::Next,
            Err(trouble) => {
                context.trouble = Some(trouble);
                Signal::Fault
            }
        }
    }
}

/// `movmatrix.trans`.
pub struct Transpose;

impl Body for Transpose {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        whole!(warp, context, mask);
        let out = transposed(warp.registers.stored::<u32>(op.a));
        warp.registers.write::<u32>(op.d, &out, mask);
        Signal::Next
    }
}

/// What kinds of numbers are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Float(Element, Element, Accumulator),
    /// fp8 where the tensor core has no such product.
    Unpacked(Element, Element),
    Double,
    /// Bits of an element, the signs of both.
    Integer(u32, bool, bool),
    /// Counts of ones, under `and` or else exclusive or.
    Bits(bool),
}

/// A matrix product of fragments: its kind and rule, found by number in `imm`.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    kind: Kind,
    rule: SumRule,
    satfinite: bool,
}

const ELEMENTS: [Element; 5] = [Element::F16, Element::Bf16, Element::Tf32, Element::E4m3, Element::E5m2];

impl Product {
    fn encoded(self) -> u64 {
        let at = |element| ELEMENTS.iter().position(|one| *one == element).unwrap_or(0) as u64;
        let kind = match self.kind {
            Kind::Float(a, b, accumulator) => {
                at(a) << 4 | at(b) << 8 | u64::from(accumulator == Accumulator::F16) << 12
            }
            Kind::Unpacked(a, b) => 1 | at(a) << 4 | at(b) << 8,
            Kind::Double => 2,
            Kind::Integer(bits, a, b) => 3 | u64::from(bits) << 4 | u64::from(a) << 8 | u64::from(b) << 9,
            Kind::Bits(and) => 4 | u64::from(and) << 4,
        };
        let rule = u64::from(self.rule.fraction_bits)
            | u64::from(self.rule.group) << 8
            | u64::from(self.rule.result_bits) << 16;
        kind | u64::from(self.satfinite) << 15 | rule << 32
    }

    fn decoded(imm: u64) -> Self {
        let element = |at: u32| ELEMENTS[(imm >> at & 15) as usize % ELEMENTS.len()];
        let bit = |at: u32| imm >> at & 1 != 0;
        let kind = match imm & 15 {
            0 => {
                let accumulator = if bit(12) { Accumulator::F16 } else { Accumulator::F32 };
                Kind::Float(element(4), element(8), accumulator)
            }
            1 => Kind::Unpacked(element(4), element(8)),
            2 => Kind::Double,
            3 => Kind::Integer((imm >> 4 & 15) as u32, bit(8), bit(9)),
            _ => Kind::Bits(bit(4)),
        };
        let byte = |at: u32| (imm >> at & 255) as u32;
        let rule = SumRule { fraction_bits: byte(32), group: byte(40), result_bits: byte(48) };
        Self { kind, rule, satfinite: bit(15) }
    }
}

/// `d = a * b + c`: the list that `e` begins has the registers of d, a, b and c, in this order, as many of each as the
/// shape needs.
pub struct Multiply<A, const M: usize, const K: usize, const BITS: usize>(PhantomData<A>);

/// The arithmetic of a product of whole matrices: a type for each kind, so that each is a loop of its own.
pub trait Arithmetic {
    /// `a * b + c`.
    fn multiply<const M: usize, const K: usize>(
        product: &Product,
        a: &[[u32; K]; M],
        b: &[[u32; 8]; K],
        c: &[[u32; 8]; M],
    ) -> [[u32; 8]; M];
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident |$product:ident, $a:ident, $b:ident, $c:ident| $multiply:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl Arithmetic for $name {
            #[inline(always)]
            fn multiply<const M: usize, const K: usize>(
                $product: &Product,
                $a: &[[u32; K]; M],
                $b: &[[u32; 8]; K],
                $c: &[[u32; 8]; M],
            ) -> [[u32; 8]; M] {
                $multiply
            }
        }
    )*};
}

arithmetic! {
    /// binary16, sums in binary32.
    Half |p, a, b, c| multiply_add(p.rule, (Element::F16, Element::F16), Accumulator::F32, a, b, c);
    /// binary16, sums in binary16.
    HalfSums |p, a, b, c| multiply_add(p.rule, (Element::F16, Element::F16), Accumulator::F16, a, b, c);
    /// bfloat16.
    Brain |p, a, b, c| multiply_add(p.rule, (Element::Bf16, Element::Bf16), Accumulator::F32, a, b, c);
    /// tf32.
    Tensor |p, a, b, c| multiply_add(p.rule, (Element::Tf32, Element::Tf32), Accumulator::F32, a, b, c);
    /// Floats of eight bits.
    Small |p, a, b, c| match p.kind {
        Kind::Float(x, y, accumulator) => multiply_add(p.rule, (x, y), accumulator, a, b, c),
        _ => *c,
    };
    /// The same where the tensor core has binary16 only.
    Unpacked |p, a, b, c| match p.kind {
        Kind::Unpacked(x, y) => {
            let a = a.map(|row| std::array::from_fn(|i| row[i % row.len()]));
            let b = std::array::from_fn(|i| b[i % b.len()]);
            multiply_add_fp8_as_f16(p.rule, (x, y), &a, &b, c)
        }
        _ => *c,
    };
    /// Integers.
    Whole |p, a, b, c| match p.kind {
        Kind::Integer(bits, x, y) => {
            let up = 32 - bits;
            let value = |code: u32, signed: bool| {
                if signed { (code << up) as i32 >> up } else { (code << up >> up) as i32 }
            };
            let a = a.map(|row| row.map(|code| value(code, x)));
            let b = b.map(|row| row.map(|code| value(code, y)));
            multiply_add_int(p.satfinite, &a, &b, c)
        }
        _ => *c,
    };
}

/// One of the elements in a register of a fragment.
#[inline(always)]
fn cut(word: u32, place: usize, bits: usize) -> u32 {
    match bits {
        32 => word,
        _ => word >> (place * bits) & ((1 << bits) - 1),
    }
}

/// The first factor, by row, from its registers.
#[inline(always)]
fn factor_a<const M: usize, const K: usize, const BITS: usize>(warp: &Warp, from: &[i32]) -> [[u32; K]; M] {
    let mut a = [[0u32; K]; M];
    let packed = 32 / BITS;
    for (register, &row) in from.iter().enumerate() {
        let words = warp.registers.stored::<u32>(row);
        if BITS == 16 {
            // Eight rows of eight neighbours in k, four words each.
            let (m, k) = (register % (M / 8) * 8, register / (M / 8) * 8);
            for row in 0..8 {
                for pair in 0..4 {
                    let word = words[4 * row + pair];
                    a[m + row][k + 2 * pair] = word & 0xffff;
                    a[m + row][k + 2 * pair + 1] = word >> 16;
                }
            }
            continue;
        }
        for (lane, &word) in words.iter().enumerate() {
            for place in 0..packed {
                let (m, k) = fragment::a(lane, register, place, packed, M);
                a[m][k] = cut(word, place, BITS);
            }
        }
    }
    a
}

/// The second factor, by k, from its registers.
#[inline(always)]
fn factor_b<const K: usize, const BITS: usize>(warp: &Warp, from: &[i32]) -> [[u32; 8]; K] {
    let mut b = [[0u32; 8]; K];
    let packed = 32 / BITS;
    for (register, &row) in from.iter().enumerate() {
        let words = warp.registers.stored::<u32>(row);
        if BITS == 16 {
            for pair in 0..4 {
                let mut column = [0; 8];
                for n in 0..8 {
                    column[n] = words[4 * n + pair];
                }
                b[8 * register + 2 * pair] = column.map(|word| word & 0xffff);
                b[8 * register + 2 * pair + 1] = column.map(|word| word >> 16);
            }
            continue;
        }
        for (lane, &word) in words.iter().enumerate() {
            for place in 0..packed {
                let (k, n) = fragment::b(lane, register, place, packed);
                b[k][n] = cut(word, place, BITS);
            }
        }
    }
    b
}

/// The addend, by row, from its registers; two to a register where it is `half`.
#[inline(always)]
fn addend<const M: usize>(warp: &Warp, from: &[i32], half: bool) -> [[u32; 8]; M] {
    let mut c = [[0u32; 8]; M];
    for (register, &row) in from.iter().enumerate() {
        let words = warp.registers.stored::<u32>(row);
        if half {
            for (lane, &word) in words.iter().enumerate() {
                let (m, n) = fragment::c(lane, 2 * register);
                (c[m][n], c[m][n + 1]) = (word & 0xffff, word >> 16);
            }
            continue;
        }
        let (to, side) = (register / 2 * 8, register % 2);
        for m in 0..8 {
            for pair in 0..4 {
                c[to + m][2 * pair + side] = words[4 * m + pair];
            }
        }
    }
    c
}

impl<A: Arithmetic, const M: usize, const K: usize, const BITS: usize> Body for Multiply<A, M, K, BITS> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        whole!(warp, context, mask);
        let product = Product::decoded(op.imm);
        let half = matches!(product.kind, Kind::Float(.., Accumulator::F16));
        let (in_a, in_b) = (M * K * BITS / 1024, 8 * K * BITS / 1024);
        let in_c = M * 8 / LANES / if half { 2 } else { 1 };
        let list = &context.code.lists[op.e as usize..op.e as usize + in_a + in_b + 2 * in_c];
        let (to, list) = list.split_at(in_c);
        let (from_a, list) = list.split_at(in_a);
        let (from_b, from_c) = list.split_at(in_b);
        let a = factor_a::<M, K, BITS>(warp, from_a);
        let b = factor_b::<K, BITS>(warp, from_b);
        let c = addend::<M>(warp, from_c, half);
        let d = A::multiply::<M, K>(&product, &a, &b, &c);
        for (register, &row) in to.iter().enumerate() {
            let mut out = [0; LANES];
            if half {
                for (lane, word) in out.iter_mut().enumerate() {
                    let (m, n) = fragment::c(lane, 2 * register);
                    *word = d[m][n] & 0xffff | d[m][n + 1] << 16;
                }
            } else {
                let (from, side) = (register / 2 * 8, register % 2);
                for m in 0..8 {
                    for pair in 0..4 {
                        out[4 * m + pair] = d[from + m][2 * pair + side];
                    }
                }
            }
            warp.registers.write::<u32>(row, &out, mask);
        }
        Signal::Next
    }
}

/// The product of single bits: `K` words of 32.
pub struct MultiplyBits<const M: usize, const K: usize>;

impl<const M: usize, const K: usize> Body for MultiplyBits<M, K> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        whole!(warp, context, mask);
        let (in_a, in_b, in_c) = (M * K / LANES, 8 * K / LANES, M * 8 / LANES);
        let list = &context.code.lists[op.e as usize..op.e as usize + in_a + in_b + 2 * in_c];
        let (to, list) = list.split_at(in_c);
        let (from_a, list) = list.split_at(in_a);
        let (from_b, from_c) = list.split_at(in_b);
        let (mut a, mut b, mut c) = ([[0u32; K]; M], [[0u32; 8]; K], [[0u32; 8]; M]);
        for (register, &row) in from_a.iter().enumerate() {
            for (lane, &word) in warp.registers.stored::<u32>(row).iter().enumerate() {
                let (m, k) = fragment::a(lane, register, 0, 1, M);
                a[m][k] = word;
            }
        }
        for (register, &row) in from_b.iter().enumerate() {
            for (lane, &word) in warp.registers.stored::<u32>(row).iter().enumerate() {
                let (k, n) = fragment::b(lane, register, 0, 1);
                b[k][n] = word;
            }
        }
        for (register, &row) in from_c.iter().enumerate() {
            for (lane, &word) in warp.registers.stored::<u32>(row).iter().enumerate() {
                let (m, n) = fragment::c(lane, register);
                c[m][n] = word;
            }
        }
        let Kind::Bits(and) = Product::decoded(op.imm).kind else { return Signal::Fault };
        let d = multiply_add_bits(and, &a, &b, &c);
        for (register, &row) in to.iter().enumerate() {
            let out = std::array::from_fn(|lane| {
                let (m, n) = fragment::c(lane, register);
                d[m][n]
            });
            warp.registers.write::<u32>(row, &out, mask);
        }
        Signal::Next
    }
}

/// The binary64 product.
pub struct MultiplyDouble<const M: usize, const K: usize>;

impl<const M: usize, const K: usize> Body for MultiplyDouble<M, K> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        whole!(warp, context, mask);
        let (in_a, in_b, in_c) = (M * K / LANES, 8 * K / LANES, M * 8 / LANES);
        let list = &context.code.lists[op.e as usize..op.e as usize + in_a + in_b + 2 * in_c];
        let (to, list) = list.split_at(in_c);
        let (from_a, list) = list.split_at(in_a);
        let (from_b, from_c) = list.split_at(in_b);
        let (mut a, mut b, mut c) = ([[0u64; K]; M], [[0u64; 8]; K], [[0u64; 8]; M]);
        for (register, &row) in from_a.iter().enumerate() {
            for (lane, &word) in warp.registers.stored::<u64>(row).iter().enumerate() {
                let (m, k) = fragment::a(lane, register, 0, 1, M);
                a[m][k] = word;
            }
        }
        for (register, &row) in from_b.iter().enumerate() {
            for (lane, &word) in warp.registers.stored::<u64>(row).iter().enumerate() {
                let (k, n) = fragment::b(lane, register, 0, 1);
                b[k][n] = word;
            }
        }
        for (register, &row) in from_c.iter().enumerate() {
            for (lane, &word) in warp.registers.stored::<u64>(row).iter().enumerate() {
                let (m, n) = fragment::c(lane, register);
                c[m][n] = word;
            }
        }
        let d = multiply_add_f64(&a, &b, &c);
        for (register, &row) in to.iter().enumerate() {
            let out = std::array::from_fn(|lane| {
                let (m, n) = fragment::c(lane, register);
                d[m][n]
            });
            warp.registers.write::<u64>(row, &out, mask);
        }
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Ldmatrix | Opcode::Stmatrix => rows(d),
        Opcode::Movmatrix => {
            let a = d.source::<u32>(1)?;
            let to = d.destination::<u32>(0, false)?;
            d.emit(Op { d: to, a, ..d.op_of::<Transpose>() });
            Ok(())
        }
        Opcode::Mma => mma(d),
        _ => super::wmma::decode(d),
    }
}

/// The registers of an operand, a vector or one.
pub fn registers(d: &mut Decoder<'_>, index: usize, written: bool, wide: bool) -> Decoded<Vec<i32>> {
    let operands = match d.operand(index)? {
        Operand::Vector(range) => d.function.inside(range).to_vec(),
        operand => vec![operand.clone()],
    };
    operands
        .iter()
        .map(|operand| match (written, wide) {
            (true, true) => d.destination_of::<u64>(operand, false),
            (true, false) => d.destination_of::<u32>(operand, false),
            (false, true) => d.source_of::<u64>(operand),
            (false, false) => d.source_of::<u32>(operand),
        })
        .collect()
}

fn rows(d: &mut Decoder<'_>) -> Decoded {
    let load = d.opcode() == Opcode::Ldmatrix;
    let shape = d.form.shape.unwrap_or(Shape { m: 8, n: 8, k: 0 });
    if (shape.m, shape.n) != (8, 8) || d.ty()? != ScalarType::B16 {
        return refuse("matrices of this shape are not executed yet");
    }
    let list = registers(d, usize::from(!load), load, false)?;
    let address = d.address(usize::from(load))?;
    let (a, imm, b) = place(d, address);
    let count = list.len();
    let c = d.list(list);
    let e = d.cache();
    let shared = match d.form.space {
        Some(Space::Shared) => true,
        None => false,
        _ => return refuse("matrices are in shared memory only"),
    };
    macro_rules! pick {
        ($what:ident, $count:literal, $transposed:literal) => {
            match shared {
                true => d.op_of::<$what<InShared, $count, $transposed>>(),
                false => d.op_of::<$what<Generic, $count, $transposed>>(),
            }
        };
    }
    let op = match (load, count, d.form.has(Word::Trans)) {
        (true, 1, false) => pick!(LoadMatrix, 1, false),
        (true, 2, false) => pick!(LoadMatrix, 2, false),
        (true, 4, false) => pick!(LoadMatrix, 4, false),
        (true, 1, true) => pick!(LoadMatrix, 1, true),
        (true, 2, true) => pick!(LoadMatrix, 2, true),
        (true, 4, true) => pick!(LoadMatrix, 4, true),
        (false, 1, false) => pick!(StoreMatrix, 1, false),
        (false, 2, false) => pick!(StoreMatrix, 2, false),
        (false, 4, false) => pick!(StoreMatrix, 4, false),
        (false, 1, true) => pick!(StoreMatrix, 1, true),
        (false, 2, true) => pick!(StoreMatrix, 2, true),
        (false, 4, true) => pick!(StoreMatrix, 4, true),
        _ => return refuse("it has 1, 2 or 4 matrices"),
    };
    d.emit(Op { a, b, imm, c, e, ..op });
    Ok(())
}

/// The rule of an architecture for a format of both factors.
pub fn rule(arch: &Arch, instruction: MatrixInstruction, format: MatrixFormat) -> Option<SumRule> {
    arch.accumulation(instruction, format).map(|found| SumRule {
        fraction_bits: found.fraction_bits,
        group: found.terms,
        result_bits: found.result_fraction_bits,
    })
}

/// A float format of `mma`, as numerics and as architectures name it.
pub fn float_format(ty: ScalarType) -> Option<(Element, MatrixFormat)> {
    Some(match ty {
        ScalarType::F16 => (Element::F16, MatrixFormat::F16),
        ScalarType::Bf16 => (Element::Bf16, MatrixFormat::Bf16),
        ScalarType::Tf32 => (Element::Tf32, MatrixFormat::Tf32),
        ScalarType::E4m3 => (Element::E4m3, MatrixFormat::E4m3),
        ScalarType::E5m2 => (Element::E5m2, MatrixFormat::E5m2),
        _ => return None,
    })
}

fn mma(d: &mut Decoder<'_>) -> Decoded {
    let has = |word| d.form.has(word);
    if has(Word::Sp) || has(Word::SpOrderedMetadata) {
        return refuse("sparse products are not executed yet");
    }
    if has(Word::BlockScale) || has(Word::KindF8f6f4) || has(Word::KindMxf8f6f4) {
        return refuse("scaled products are not executed yet");
    }
    let Some(Shape { m, n, k }) = d.form.shape else { return refuse("it has no shape") };
    let [td, ta, tb, tc] = *d.form.types.as_slice() else { return refuse("it needs four types") };
    // Only formats of eight bits and fewer may differ.
    if n != 8 || ta.bits() != tb.bits() || ta != tb && ta.bits() > 8 {
        return refuse("products of this shape are not executed");
    }
    let none = SumRule { fraction_bits: 0, group: 1, result_bits: 23 };
    let (kind, rule) = match (float_format(ta), float_format(tb)) {
        (Some((x, format)), Some((y, _))) => {
            if m == 8 {
                return refuse("products of sm_70's shape are not executed yet");
            }
            if td != tc {
                return refuse("accumulators of two types are not executed yet");
            }
            let accumulator = if td == ScalarType::F16 { Accumulator::F16 } else { Accumulator::F32 };
            let arch = d.settings.arch;
            match rule(arch, MatrixInstruction::Mma, format) {
                Some(rule) => (Kind::Float(x, y, accumulator), rule),
                None if ta.bits() == 8 && accumulator == Accumulator::F32 && k == 32 => match rule_of_halves(arch) {
                    Some(rule) => (Kind::Unpacked(x, y), rule),
                    None => return Err(format!("how {} adds such products is not known", arch.name)),
                },
                None => return Err(format!("how {} adds such products is not known", arch.name)),
            }
        }
        _ if ta == ScalarType::F64 => (Kind::Double, none),
        _ if ta == ScalarType::B1 => (Kind::Bits(has(Word::And)), none),
        _ => (Kind::Integer(ta.bits(), ta.is_signed(), tb.is_signed()), none),
    };
    let imm = Product { kind, rule, satfinite: has(Word::Satfinite) }.encoded();
    let wide = kind == Kind::Double;
    let mut list = registers(d, 0, true, wide)?;
    let mut counts = vec![list.len()];
    for operand in 1..4 {
        let more = registers(d, operand, false, wide)?;
        counts.push(more.len());
        list.extend(more);
    }
    // How many registers each fragment has.
    let bits = usize::from(m) * usize::from(k) * ta.bits() as usize;
    let lane = if wide { 64 } else { 32 } * LANES;
    let in_c = usize::from(m) * 8 * td.bits() as usize / lane;
    let expected = [in_c, bits / lane, bits / usize::from(m) * 8 / lane, in_c];
    if counts != expected {
        return Err(format!("its fragments have {counts:?} registers instead of {expected:?}"));
    }
    let e = d.list(list);
    use Accumulator as Acc;
    let op = match (m, k, ta.bits(), kind) {
        (16, 8, 16, Kind::Float(Element::F16, _, Acc::F32)) => d.op_of::<Multiply<Half, 16, 8, 16>>(),
        (16, 16, 16, Kind::Float(Element::F16, _, Acc::F32)) => d.op_of::<Multiply<Half, 16, 16, 16>>(),
        (16, 8, 16, Kind::Float(Element::F16, _, Acc::F16)) => d.op_of::<Multiply<HalfSums, 16, 8, 16>>(),
        (16, 16, 16, Kind::Float(Element::F16, _, Acc::F16)) => d.op_of::<Multiply<HalfSums, 16, 16, 16>>(),
        (16, 8, 16, Kind::Float(Element::Bf16, _, Acc::F32)) => d.op_of::<Multiply<Brain, 16, 8, 16>>(),
        (16, 16, 16, Kind::Float(Element::Bf16, _, Acc::F32)) => d.op_of::<Multiply<Brain, 16, 16, 16>>(),
        (16, 4, 32, Kind::Float(Element::Tf32, _, Acc::F32)) => d.op_of::<Multiply<Tensor, 16, 4, 32>>(),
        (16, 8, 32, Kind::Float(Element::Tf32, _, Acc::F32)) => d.op_of::<Multiply<Tensor, 16, 8, 32>>(),
        (16, 16, 8, Kind::Float(..)) => d.op_of::<Multiply<Small, 16, 16, 8>>(),
        (16, 32, 8, Kind::Float(..)) => d.op_of::<Multiply<Small, 16, 32, 8>>(),
        (16, 32, 8, Kind::Unpacked(..)) => d.op_of::<Multiply<Unpacked, 16, 32, 8>>(),
        (8, 16, 8, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 8, 16, 8>>(),
        (16, 16, 8, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 16, 8>>(),
        (16, 32, 8, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 32, 8>>(),
        (8, 32, 4, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 8, 32, 4>>(),
        (16, 32, 4, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 32, 4>>(),
        (16, 64, 4, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 64, 4>>(),
        (8, 128, 1, Kind::Bits(_)) => d.op_of::<MultiplyBits<8, 4>>(),
        (16, 128, 1, Kind::Bits(_)) => d.op_of::<MultiplyBits<16, 4>>(),
        (16, 256, 1, Kind::Bits(_)) => d.op_of::<MultiplyBits<16, 8>>(),
        (8, 4, 64, Kind::Double) => d.op_of::<MultiplyDouble<8, 4>>(),
        (16, 4, 64, Kind::Double) => d.op_of::<MultiplyDouble<16, 4>>(),
        (16, 8, 64, Kind::Double) => d.op_of::<MultiplyDouble<16, 8>>(),
        (16, 16, 64, Kind::Double) => d.op_of::<MultiplyDouble<16, 16>>(),
        _ => return refuse("products of this shape are not executed"),
    };
    d.emit(Op { e, imm, ..op });
    Ok(())
}

fn rule_of_halves(arch: &Arch) -> Option<SumRule> {
    rule(arch, MatrixInstruction::Mma, MatrixFormat::F16)
}
