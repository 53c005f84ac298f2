//! `mma`: products of fragments whose layout PTX fixes.

use std::marker::PhantomData;

use super::fragments::{Word as Register, addend, factor_a, factor_b, registers, result};
use super::product::{Arithmetic, Bits, Brain, Double, Half, HalfSums, Kind, Product, Small, SmallSums, Tensor, Whole};
use crate::arch::{Arch, Feature, MatrixFormat, MatrixInstruction};
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::ops::warp::assembled;
use crate::emulate::registers::{FULL, LANES};
use crate::emulate::warp::Warp;
use crate::numerics::tensor_core::{Accumulator, Element, SumRule};
use crate::program::{ScalarType, Shape, Word};

/// `d = a * b + c`: the list that `e` begins has the registers of d, a, b and c, in this order, as many of each as the
/// shape needs; elements of `BITS`, `K` of them in a row of `a`. `imm` is the product.
pub struct Multiply<A, const M: usize, const K: usize, const BITS: usize>(PhantomData<A>);

impl<A: Arithmetic, const M: usize, const K: usize, const BITS: usize> Body for Multiply<A, M, K, BITS> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, FULL, mask);
        let lane = const { LANES * <A::Word as Register>::BITS };
        let in_c = M * 8 * A::SUM_BITS / lane;
        let list = &context.code.lists[op.e as usize..];
        let (to, list) = list.split_at(in_c);
        let (from_a, list) = list.split_at(M * K * BITS / lane);
        let (from_b, list) = list.split_at(8 * K * BITS / lane);
        let a = factor_a::<_, M, K, BITS>(warp, from_a);
        let b = factor_b::<_, K, BITS>(warp, from_b);
        let product = Product::decoded(op.imm);
        accumulate::<A, M>(warp, (to, &list[..in_c]), mask, |c| A::multiply(&product, &a, &b, c));
        Signal::Next
    }
}

/// Reads `c`, and writes `d`, which it becomes.
#[inline(always)]
pub fn accumulate<A: Arithmetic, const M: usize>(
    warp: &mut Warp,
    (to, from): (&[i32], &[i32]),
    mask: u32,
    add: impl FnOnce(&[[A::Word; 8]; M]) -> [[A::Word; 8]; M],
) {
    let c = match A::SUM_BITS {
        16 => addend::<_, M, 16>(warp, from),
        32 => addend::<_, M, 32>(warp, from),
        _ => addend::<_, M, 64>(warp, from),
    };
    let d = add(&c);
    match A::SUM_BITS {
        16 => result::<_, M, 16>(warp, to, &d, mask),
        32 => result::<_, M, 32>(warp, to, &d, mask),
        _ => result::<_, M, 64>(warp, to, &d, mask),
    }
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

/// What an instruction multiplies, by its types.
pub fn product(d: &Decoder<'_>, [td, ta, tb, tc]: [ScalarType; 4]) -> Decoded<Product> {
    let has = |word| d.form.has(word);
    let arch = d.settings.arch;
    let unknown = || Err(format!("how {} adds such products is not known", arch.name));
    let none = SumRule { fraction_bits: 0, group: 1, result_bits: 23 };
    let (kind, rule) = match (float_format(ta), float_format(tb)) {
        (Some((x, format)), Some((y, _))) => {
            if td != tc && ta.bits() != 16 {
                return refuse("accumulators of two types are not executed");
            }
            let accumulator = if td == ScalarType::F16 { Accumulator::F16 } else { Accumulator::F32 };
            let of_halves = rule(arch, MatrixInstruction::Mma, MatrixFormat::F16);
            match (rule(arch, MatrixInstruction::Mma, format), of_halves) {
                (Some(rule), _) => (Kind::Float(x, y, accumulator), rule),
                (None, Some(rule)) if arch.supports(Feature::MmaFp8) => (Kind::Unpacked(x, y, accumulator), rule),
                _ => return unknown(),
            }
        }
        _ if ta == ScalarType::F64 => (Kind::Double, none),
        _ if ta == ScalarType::B1 => (Kind::Bits(has(Word::And)), none),
        _ => (Kind::Integer(ta.bits(), ta.is_signed(), tb.is_signed()), none),
    };
    Ok(Product { kind, rule, satfinite: has(Word::Satfinite), selector: 0 })
}

/// The registers of d, a, b and c in one list, as many as fragments of these shapes have.
pub fn fragments(d: &mut Decoder<'_>, wide: bool, expected: [usize; 4]) -> Decoded<Vec<i32>> {
    let mut list = Vec::new();
    let mut counts = Vec::new();
    for operand in 0..4 {
        let more = registers(d, operand, operand == 0, wide)?;
        counts.push(more.len());
        list.extend(more);
    }
    match counts == expected {
        true => Ok(list),
        false => Err(format!("its fragments have {counts:?} registers instead of {expected:?}")),
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let has = |word| d.form.has(word);
    if has(Word::BlockScale) || has(Word::KindF8f6f4) || has(Word::KindMxf8f6f4) {
        return refuse("scaled products are not executed yet");
    }
    let Some(Shape { m, n, k }) = d.form.shape else { return refuse("it has no shape") };
    let [td, ta, tb, tc] = *d.form.types.as_slice() else { return refuse("it needs four types") };
    // Only formats of eight bits and fewer may differ.
    if n != 8 || ta.bits() != tb.bits() || ta != tb && ta.bits() > 8 {
        return refuse("products of this shape are not executed");
    }
    let product = product(d, [td, ta, tb, tc])?;
    if has(Word::Sp) || has(Word::SpOrderedMetadata) {
        return super::sparse::decode(d, product);
    }
    if (m, k, ta) == (8, 4, ScalarType::F16) {
        return super::quad_pairs::decode(d, product);
    }
    if td != tc {
        return refuse("accumulators of two types are not executed");
    }
    let (m, k) = (usize::from(m), usize::from(k));
    let wide = product.kind == Kind::Double;
    let lane = if wide { 64 } else { 32 } * LANES;
    let bits = ta.bits() as usize;
    let in_c = m * 8 * td.bits() as usize / lane;
    let list = fragments(d, wide, [in_c, m * k * bits / lane, 8 * k * bits / lane, in_c])?;
    let e = d.list(list);
    use Accumulator as Acc;
    let op = match (m, k, bits, product.kind) {
        (16, 8, 16, Kind::Float(Element::F16, _, Acc::F32)) => d.op_of::<Multiply<Half, 16, 8, 16>>(),
        (16, 16, 16, Kind::Float(Element::F16, _, Acc::F32)) => d.op_of::<Multiply<Half, 16, 16, 16>>(),
        (16, 8, 16, Kind::Float(Element::F16, _, Acc::F16)) => d.op_of::<Multiply<HalfSums, 16, 8, 16>>(),
        (16, 16, 16, Kind::Float(Element::F16, _, Acc::F16)) => d.op_of::<Multiply<HalfSums, 16, 16, 16>>(),
        (16, 8, 16, Kind::Float(Element::Bf16, _, Acc::F32)) => d.op_of::<Multiply<Brain, 16, 8, 16>>(),
        (16, 16, 16, Kind::Float(Element::Bf16, _, Acc::F32)) => d.op_of::<Multiply<Brain, 16, 16, 16>>(),
        (16, 4, 32, Kind::Float(Element::Tf32, _, Acc::F32)) => d.op_of::<Multiply<Tensor, 16, 4, 32>>(),
        (16, 8, 32, Kind::Float(Element::Tf32, _, Acc::F32)) => d.op_of::<Multiply<Tensor, 16, 8, 32>>(),
        (16, 16, 8, Kind::Float(.., Acc::F32) | Kind::Unpacked(.., Acc::F32)) => {
            d.op_of::<Multiply<Small, 16, 16, 8>>()
        }
        (16, 32, 8, Kind::Float(.., Acc::F32) | Kind::Unpacked(.., Acc::F32)) => {
            d.op_of::<Multiply<Small, 16, 32, 8>>()
        }
        (16, 16, 8, Kind::Float(.., Acc::F16) | Kind::Unpacked(.., Acc::F16)) => {
            d.op_of::<Multiply<SmallSums, 16, 16, 8>>()
        }
        (16, 32, 8, Kind::Float(.., Acc::F16) | Kind::Unpacked(.., Acc::F16)) => {
            d.op_of::<Multiply<SmallSums, 16, 32, 8>>()
        }
        (8, 16, 8, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 8, 16, 8>>(),
        (16, 16, 8, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 16, 8>>(),
        (16, 32, 8, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 32, 8>>(),
        (8, 32, 4, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 8, 32, 4>>(),
        (16, 32, 4, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 32, 4>>(),
        (16, 64, 4, Kind::Integer(..)) => d.op_of::<Multiply<Whole, 16, 64, 4>>(),
        // 32 bits are one element.
        (8, 128, 1, Kind::Bits(_)) => d.op_of::<Multiply<Bits, 8, 4, 32>>(),
        (16, 128, 1, Kind::Bits(_)) => d.op_of::<Multiply<Bits, 16, 4, 32>>(),
        (16, 256, 1, Kind::Bits(_)) => d.op_of::<Multiply<Bits, 16, 8, 32>>(),
        (8, 4, 64, Kind::Double) => d.op_of::<Multiply<Double, 8, 4, 64>>(),
        (16, 4, 64, Kind::Double) => d.op_of::<Multiply<Double, 16, 4, 64>>(),
        (16, 8, 64, Kind::Double) => d.op_of::<Multiply<Double, 16, 8, 64>>(),
        (16, 16, 64, Kind::Double) => d.op_of::<Multiply<Double, 16, 16, 64>>(),
        _ => return refuse("products of this shape are not executed"),
    };
    d.emit(Op { e, imm: product.encoded(), ..op });
    Ok(())
}
