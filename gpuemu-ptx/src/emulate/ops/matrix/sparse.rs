//! `mma.sp`: products whose first matrix has a zero for every other element, which only the others are passed of.

use std::marker::PhantomData;

use super::fragments::{factor_a, factor_b};
use super::mma::{accumulate, fragments};
use super::product::{Arithmetic, Brain, Half, HalfSums, Kind, Product, Small, SmallSums, Tensor, Whole};
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::ops::warp::assembled;
use crate::emulate::registers::{FULL, LANES};
use crate::emulate::warp::Warp;
use crate::numerics::fragment;
use crate::numerics::tensor_core::{Accumulator, Element};
use crate::program::{Operand, Shape};

/// `d = a * b + c`, 16 rows: as a dense product of `H`, half of `K`, with those rows of `b` that stand against what is
/// passed of a row of `a`. The list has the registers of d, a, b and c, and that of the places.
pub struct MultiplySparse<A, const K: usize, const H: usize, const BITS: usize>(PhantomData<A>);

/// Rows of every sparse product.
const ROWS: usize = 16;

impl<A: Arithmetic<Word = u32>, const K: usize, const H: usize, const BITS: usize> Body
    for MultiplySparse<A, K, H, BITS>
{
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, FULL, mask);
        let product = Product::decoded(op.imm);
        let lane = LANES * 32;
        let in_c = ROWS * 8 * A::SUM_BITS / lane;
        let (to, list) = context.code.lists[op.e as usize..].split_at(in_c);
        let (from_a, list) = list.split_at(ROWS * H * BITS / lane);
        let (from_b, list) = list.split_at(8 * K * BITS / lane);
        let (from_c, list) = list.split_at(in_c);
        let a = factor_a::<u32, ROWS, H, BITS>(warp, from_a);
        let b = factor_b::<u32, K, BITS>(warp, from_b);
        let places = *warp.registers.stored::<u32>(list[0]);
        let selector = product.selector as usize;
        accumulate::<A, ROWS>(warp, (to, from_c), mask, |c| {
            let mut d = [[0; 8]; ROWS];
            for (row, out) in d.iter_mut().enumerate() {
                // What stands against a zero that was left out takes no part, not even an infinity.
                let chosen = std::array::from_fn(|index| {
                    b[fragment::place::<BITS>(index, |chunk| {
                        let (lane, bit) = fragment::places(row, chunk, K / fragment::chunk(BITS), BITS, selector);
                        places[lane] >> bit & 15
                    })]
                });
                *out = A::multiply::<1, H>(&product, &[a[row]], &chosen, &[c[row]])[0];
            }
            d
        });
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>, mut product: Product) -> Decoded {
    let Some(Shape { m: 16, k, .. }) = d.form.shape else { return refuse("sparse products have 16 rows") };
    let [td, ta, _, tc] = *d.form.types.as_slice() else { return refuse("it needs four types") };
    if td != tc {
        return refuse("accumulators of two types are not executed");
    }
    let Operand::Integer(selector) = *d.operand(5)? else { return refuse("its selector is not a number") };
    let (k, bits) = (usize::from(k), ta.bits() as usize);
    // Rows with 4 chunks have their places in one thread of four, with 8 in two, with 16 in all.
    let selectors = (16 / (k / fragment::chunk(bits)).max(1)) as u64;
    if selector >= selectors {
        return Err(format!("its selector is at most {}", selectors.saturating_sub(1)));
    }
    product.selector = selector as u32;
    let in_c = ROWS * 8 * td.bits() as usize / (32 * LANES);
    let of = |count: usize| count * bits / (32 * LANES);
    let mut list = fragments(d, false, [in_c, of(ROWS * k / 2), of(8 * k), in_c])?;
    list.push(d.source::<u32>(4)?);
    let e = d.list(list);
    use Accumulator as Acc;
    let op = match (k, bits, product.kind) {
        (16, 16, Kind::Float(Element::F16, _, Acc::F32)) => d.op_of::<MultiplySparse<Half, 16, 8, 16>>(),
        (32, 16, Kind::Float(Element::F16, _, Acc::F32)) => d.op_of::<MultiplySparse<Half, 32, 16, 16>>(),
        (16, 16, Kind::Float(Element::F16, _, Acc::F16)) => d.op_of::<MultiplySparse<HalfSums, 16, 8, 16>>(),
        (32, 16, Kind::Float(Element::F16, _, Acc::F16)) => d.op_of::<MultiplySparse<HalfSums, 32, 16, 16>>(),
        (16, 16, Kind::Float(Element::Bf16, _, Acc::F32)) => d.op_of::<MultiplySparse<Brain, 16, 8, 16>>(),
        (32, 16, Kind::Float(Element::Bf16, _, Acc::F32)) => d.op_of::<MultiplySparse<Brain, 32, 16, 16>>(),
        (8, 32, Kind::Float(Element::Tf32, _, Acc::F32)) => d.op_of::<MultiplySparse<Tensor, 8, 4, 32>>(),
        (16, 32, Kind::Float(Element::Tf32, _, Acc::F32)) => d.op_of::<MultiplySparse<Tensor, 16, 8, 32>>(),
        (64, 8, Kind::Float(.., Acc::F32) | Kind::Unpacked(.., Acc::F32)) => {
            d.op_of::<MultiplySparse<Small, 64, 32, 8>>()
        }
        (64, 8, Kind::Float(.., Acc::F16) | Kind::Unpacked(.., Acc::F16)) => {
            d.op_of::<MultiplySparse<SmallSums, 64, 32, 8>>()
        }
        (32, 8, Kind::Integer(..)) => d.op_of::<MultiplySparse<Whole, 32, 16, 8>>(),
        (64, 8, Kind::Integer(..)) => d.op_of::<MultiplySparse<Whole, 64, 32, 8>>(),
        (64, 4, Kind::Integer(..)) => d.op_of::<MultiplySparse<Whole, 64, 32, 4>>(),
        (128, 4, Kind::Integer(..)) => d.op_of::<MultiplySparse<Whole, 128, 64, 4>>(),
        _ => return refuse("sparse products of this shape are not executed"),
    };
    d.emit(Op { e, imm: product.encoded(), ..op });
    Ok(())
}
