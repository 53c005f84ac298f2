//! `mma` m8n8k4: four products at once, of eight lanes each.

use super::fragments::Word as _;
use super::mma::fragments;
use super::product::{Kind, Product};
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::ops::warp::assembled;
use crate::emulate::registers::{FULL, LANES};
use crate::emulate::warp::Warp;
use crate::numerics::fragment::{quad_pair_a, quad_pair_b, quad_pair_c};
use crate::numerics::half::{f16_to_f32, f32_to_f16};
use crate::numerics::tensor_core::{multiply_add, multiply_add_chain};
use crate::program::{Modifier, ScalarType, Word};

/// `d = a * b + c` of binary16: the list that `e` begins has the registers of d, a, b and c; bits of `c` say whether `a`
/// and `b` lie by row (1, 2) and whether `c` and `d` are binary16 (4, 8),
/// and whether products are added one after the other (16).
pub struct MultiplyQuadPairs;

const A_BY_ROW: i32 = 1;
const B_BY_ROW: i32 = 2;
const C_HALF: i32 = 4;
const D_HALF: i32 = 8;
const CHAIN: i32 = 16;

impl Body for MultiplyQuadPairs {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, FULL, mask);
        let product = Product::decoded(op.imm);
        let Kind::Float(x, y, accumulator) = product.kind else { return Signal::Fault };
        let is = |flag: i32| op.c & flag != 0;
        let bits_of = |flag: i32| if is(flag) { 16 } else { 32 };
        let (in_d, in_c) = (bits_of(D_HALF) / 4, bits_of(C_HALF) / 4);
        let (to, list) = context.code.lists[op.e as usize..].split_at(in_d);
        let (from_a, list) = list.split_at(2);
        let (from_b, from_c) = list.split_at(2);
        let mut out = [[0u32; LANES]; 8];
        for first in (0..16).step_by(4) {
            let lanes = || (first..first + 4).chain(first + 16..first + 20);
            let (mut a, mut b, mut c) = ([[0u32; 4]; 8], [[0u32; 8]; 4], [[0u32; 8]; 8]);
            for lane in lanes() {
                let word = |row| warp.registers.lane::<u32>(row, lane);
                for index in 0..4 {
                    let (m, k) = quad_pair_a(lane, index, is(A_BY_ROW));
                    a[m][k] = word(from_a[index / 2]).cut(index % 2, 16);
                    let (k, n) = quad_pair_b(lane, index, is(B_BY_ROW));
                    b[k][n] = word(from_b[index / 2]).cut(index % 2, 16);
                }
                for index in 0..8 {
                    let (m, n) = quad_pair_c(lane, index, bits_of(C_HALF));
                    let code = if in_c == 4 { word(from_c[index / 2]).cut(index % 2, 16) } else { word(from_c[index]) };
                    // In the result's format, or wide for the routine.
                    c[m][n] = match (is(C_HALF), is(D_HALF) && !is(CHAIN)) {
                        (true, false) => f16_to_f32(code as u16),
                        (false, true) => f32_to_f16(code).into(),
                        _ => code,
                    };
                }
            }
            let d = match is(CHAIN) {
                false => multiply_add(product.rule, (x, y), accumulator, &a, &b, &c),
                true => multiply_add_chain(accumulator, &a, &b, &c),
            };
            for lane in lanes() {
                for index in 0..8 {
                    let (m, n) = quad_pair_c(lane, index, bits_of(D_HALF));
                    match is(D_HALF) {
                        true => out[index / 2][lane] |= d[m][n].laid(index % 2, 16),
                        false => out[index][lane] = d[m][n],
                    }
                }
            }
        }
        for (&row, values) in to.iter().zip(&out) {
            warp.registers.write::<u32>(row, values, mask);
        }
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>, product: Product) -> Decoded {
    let half = |index: usize| d.form.types.get(index) == Some(&ScalarType::F16);
    let registers = |half: bool| if half { 4 } else { 8 };
    let (d_half, c_half) = (half(0), half(3));
    // `row` and `col`: for a, then for b.
    let rows = d.form.modifiers.iter().filter_map(|modifier| match modifier {
        Modifier::Word(word @ (Word::Row | Word::Col)) => Some(*word == Word::Row),
        _ => None,
    });
    let layouts: Vec<bool> = rows.collect();
    let by_row = |index: usize| layouts.get(index) == Some(&true);
    let flag = |is: bool, flag: i32| if is { flag } else { 0 };
    let c = flag(by_row(0), A_BY_ROW) | flag(by_row(1), B_BY_ROW) | flag(c_half, C_HALF) | flag(d_half, D_HALF);
    // sm_80 and later have no tensor core for it: compilers write a routine.
    let c = c | flag(d.settings.arch.number() >= Some(80), CHAIN);
    let list = fragments(d, false, [registers(d_half), 2, 2, registers(c_half)])?;
    let e = d.list(list);
    d.emit(Op { c, e, imm: product.encoded(), ..d.op_of::<MultiplyQuadPairs>() });
    Ok(())
}
