//! Bits: `and`, `or`, `xor`, `not`, `lop3`, shifts, `prmt`.

use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Op, Truths};
use crate::numerics::integer::{self as int, Permute};
use crate::program::{Opcode, Operand, Operation, ScalarType, Word};

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let ty = d.ty()?;
    let bits = ty.bits();
    macro_rules! sized {
        ($how:ident, $imm:expr, |$k:ident, $($x:ident),*| $e:expr) => {
            match bits {
                16 => d.$how($imm, |$k: u64, $($x: u16),*| $e),
                32 => d.$how($imm, |$k: u64, $($x: u32),*| $e),
                64 => d.$how($imm, |$k: u64, $($x: u64),*| $e),
                _ => refuse("it has no such type"),
            }
        };
    }
    match d.opcode() {
        Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Not if ty == ScalarType::Predicate => truths(d),
        Opcode::And => sized!(binary, 0, |_k, a, b| a & b),
        Opcode::Or => sized!(binary, 0, |_k, a, b| a | b),
        Opcode::Xor => sized!(binary, 0, |_k, a, b| a ^ b),
        Opcode::Not => sized!(unary, 0, |_k, a| !a),
        Opcode::Shl => match bits {
            16 => d.binary(0, |_, a: u16, b: u32| int::shl_b16(a, b)),
            32 => d.binary(0, |_, a: u32, b: u32| int::shl_b32(a, b)),
            64 => d.binary(0, |_, a: u64, b: u32| int::shl_b64(a, b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Shr => match (bits, ty.is_signed()) {
            (16, false) => d.binary(0, |_, a: u16, b: u32| int::shr_u16(a, b)),
            (32, false) => d.binary(0, |_, a: u32, b: u32| int::shr_u32(a, b)),
            (64, false) => d.binary(0, |_, a: u64, b: u32| int::shr_u64(a, b)),
            (16, true) => d.binary(0, |_, a: u16, b: u32| int::shr_s16(a, b)),
            (32, true) => d.binary(0, |_, a: u32, b: u32| int::shr_s32(a, b)),
            (64, true) => d.binary(0, |_, a: u64, b: u32| int::shr_s64(a, b)),
            _ => refuse("it has no such type"),
        },
        Opcode::Shf => {
            let clamp = u64::from(d.form.has(Word::Clamp));
            match d.form.has(Word::L) {
                true => d.ternary(clamp, |k, a: u32, b: u32, c: u32| int::shf_l(a, b, c, k != 0)),
                false => d.ternary(clamp, |k, a: u32, b: u32, c: u32| int::shf_r(a, b, c, k != 0)),
            }
        }
        Opcode::Prmt => {
            let mode =
                [(Word::F4e, 1), (Word::B4e, 2), (Word::Rc8, 3), (Word::Ecl, 4), (Word::Ecr, 5), (Word::Rc16, 6)];
            match mode.into_iter().find(|(word, _)| d.form.has(*word)) {
                None => d.ternary(0, |_, a: u32, b: u32, c: u32| int::prmt(a, b, c, Permute::Generic)),
                Some((_, mode)) => d.ternary(mode, |k, a: u32, b: u32, c: u32| {
                    let modes = [
                        Permute::Generic,
                        Permute::Forward,
                        Permute::Backward,
                        Permute::Replicate8,
                        Permute::EdgeLeft,
                        Permute::EdgeRight,
                        Permute::Replicate16,
                    ];
                    int::prmt(a, b, c, modes[(k % 7) as usize])
                }),
            }
        }
        Opcode::Lop3 => lop3(d),
        _ => refuse("it is not known"),
    }
}

fn truths(d: &mut Decoder<'_>) -> Decoded {
    let to = d.truth_destination(d.operand(0)?)?;
    let a = d.truth(d.operand(1)?)?;
    if to == 0 {
        return Ok(());
    }
    let (b, op) = match d.opcode() {
        Opcode::Not => (0, pick_truths(d, |a, _| !a)),
        Opcode::And => (d.truth(d.operand(2)?)?, pick_truths(d, |a, b| a & b)),
        Opcode::Or => (d.truth(d.operand(2)?)?, pick_truths(d, |a, b| a | b)),
        _ => (d.truth(d.operand(2)?)?, pick_truths(d, |a, b| a ^ b)),
    };
    d.emit(Op { d: to, a, b, ..op });
    Ok(())
}

/// An operation that tells where one of two predicates holds.
pub fn either(d: &Decoder<'_>) -> Op {
    pick_truths(d, |a, b| a | b)
}

fn pick_truths<F: Fn(u32, u32) -> u32 + Copy>(d: &Decoder<'_>, _: F) -> Op {
    d.op_of::<Truths<F>>()
}

fn lop3(d: &mut Decoder<'_>) -> Decoded {
    let Operand::Integer(table) = *d.operand(4)? else { return refuse("its table is not a number") };
    if !d.has_operand(5) {
        return match table {
            // The tables that compilers write most.
            0x96 => d.ternary(0, |_, a: u32, b: u32, c: u32| a ^ b ^ c),
            0xfe => d.ternary(0, |_, a: u32, b: u32, c: u32| a | b | c),
            0x80 => d.ternary(0, |_, a: u32, b: u32, c: u32| a & b & c),
            0xf8 => d.ternary(0, |_, a: u32, b: u32, c: u32| a | b & c),
            0xea => d.ternary(0, |_, a: u32, b: u32, c: u32| a & b | c),
            table => d.ternary(table & 255, |k, a: u32, b: u32, c: u32| int::lop3(a, b, c, k as u8)),
        };
    }
    // `lop3.or.b32 d|p, a, b, c, table, q`: p = (d != 0) or q.
    let (row, predicate) = match d.operand(0)? {
        Operand::Pair(row, predicate) => (*row, *predicate),
        _ => return refuse("its result is not a pair"),
    };
    let (a, b, c) = (d.source::<u32>(1)?, d.source::<u32>(2)?, d.source::<u32>(3)?);
    let with = d.truth(d.operand(5)?)?;
    let value = d.temporary::<u32>();
    let run = super::moves::ternary_op(d, |k, a: u32, b: u32, c: u32| int::lop3(a, b, c, k as u8));
    d.emit(Op { d: value, a, b, c, imm: table & 255, ..run });
    if let Some(predicate) = predicate {
        let how = match d.form.operation {
            Some(Operation::Or) => 1,
            Some(Operation::Xor) => 2,
            _ => 0,
        };
        let zero = d.constant::<u32>(0);
        let to = d.slot(predicate);
        super::compare::emit(d, (to, 0), (value, zero), (with, how), 0, |_, a: u32, b: u32| a != b);
    }
    if let Some(row) = row {
        let to = d.slot(row);
        d.copy::<u32>(to, value);
    }
    Ok(())
}
