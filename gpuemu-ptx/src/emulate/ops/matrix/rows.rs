//! Rows of 16 bytes between memory and fragments: `ldmatrix`, `stmatrix`, `movmatrix`.

use std::marker::PhantomData;

use super::fragments::registers;
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::ops::memory::{Generic, InShared, Memory, access, addresses_of_access, place};
use crate::emulate::ops::warp::assembled;
use crate::emulate::registers::{FULL, LANES};
use crate::emulate::warp::Warp;
use crate::program::{Opcode, ScalarType, Shape, Space, Word};

/// `ldmatrix`: `COUNT` matrices of 8 rows of 16 bytes, into the registers of the list that `c` begins.
pub struct LoadMatrix<M, const COUNT: usize, const TRANSPOSED: bool>(PhantomData<M>);

impl<M: Memory, const COUNT: usize, const TRANSPOSED: bool> Body for LoadMatrix<M, COUNT, TRANSPOSED> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, FULL, mask);
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
        assembled!(warp, context, FULL, mask);
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
        assembled!(warp, context, FULL, mask);
        let out = transposed(warp.registers.stored::<u32>(op.a));
        warp.registers.write::<u32>(op.d, &out, mask);
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    if d.opcode() == Opcode::Movmatrix {
        let a = d.source::<u32>(1)?;
        let to = d.destination::<u32>(0, false)?;
        d.emit(Op { d: to, a, ..d.op_of::<Transpose>() });
        return Ok(());
    }
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
