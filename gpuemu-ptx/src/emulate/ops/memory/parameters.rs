//! Parameters: those of the entry, which are the same in all lanes, and those of a call, which lie in registers.

use std::marker::PhantomData;

use super::{InParameters, SignedByte, Widen, destination, sized};
use crate::emulate::context::Context;
use crate::emulate::decode::{Address, Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::memory::{Element, Problem, ProblemKind};
use crate::program::{Operand, ScalarType, Space, Symbol};

/// `d = parameter at imm`, the same in all lanes.
pub struct Parameter<T, L>(PhantomData<(T, L)>);

impl<T: Element, L: Widen<T>> Body for Parameter<T, L> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let start = op.imm as usize;
        let mut value = T::default();
        let bytes = context.launch.parameters.get(start..start + size_of::<T>());
        let Some(bytes) = bytes else {
            let problem = Problem {
                lane: mask.trailing_zeros() as u8,
                kind: ProblemKind::Unmapped,
                address: op.imm,
                bytes: size_of::<T>() as u32,
            };
            context.trouble = Some(Trouble::Access { problem, space: Space::Parameter, write: false });
            return Signal::Fault;
        };
        // SAFETY: an element has as many bytes, and every pattern of them is one.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut value).cast::<u8>(), size_of::<T>()) };
        warp.registers.write::<L>(op.d, &[L::widen(value); LANES], mask);
        Signal::Next
    }
}

/// Parameters: those of an entry are memory, those of functions are rows.
pub(super) fn parameters(
    d: &mut Decoder<'_>,
    ty: ScalarType,
    load: bool,
    address: Address,
    values: &[Operand],
) -> Decoded {
    let bytes = ty.bytes();
    let row = address.symbol.and_then(|symbol| d.parameter_row(symbol));
    match (row, address.register) {
        (Some(row), None) => {
            let size = size_of_parameter(d, address.symbol);
            for (value, at) in values.iter().zip((address.offset..).step_by(bytes as usize)) {
                if at + u64::from(bytes) > size {
                    return refuse("it reaches past the end of a parameter");
                }
                match load {
                    true => load_row(d, ty, row, at as u32, value)?,
                    false => store_row(d, ty, row, at as u32, value)?,
                }
            }
            Ok(())
        }
        (None, None) if load => {
            for (value, at) in values.iter().zip((address.offset..).step_by(bytes as usize)) {
                load_parameter(d, ty, at, value)?;
            }
            Ok(())
        }
        (None, Some(_)) if load => {
            let (a, imm) = d.wide_address(address);
            let e = d.cache();
            let base = Op { a, imm, e, ..d.op_of::<crate::emulate::ops::control::Branch>() };
            sized::<InParameters>(d, ty, load, base, values)
        }
        _ => refuse("it writes a parameter of the kernel"),
    }
}

fn size_of_parameter(d: &Decoder<'_>, symbol: Option<Symbol>) -> u64 {
    match symbol {
        Some(Symbol::Parameter(index)) => d.function.parameters[index as usize].size.into(),
        Some(Symbol::Return(index)) => d.function.returns[index as usize].size.into(),
        Some(Symbol::Local(id)) => d.function.variables[id.0 as usize].size,
        _ => 0,
    }
}

fn load_parameter(d: &mut Decoder<'_>, ty: ScalarType, at: u64, value: &Operand) -> Decoded {
    fn emit<T: Element, L: Widen<T>>(d: &mut Decoder<'_>, ty: ScalarType, at: u64, value: &Operand) -> Decoded {
        let to = destination::<L>(d, ty, value)?;
        d.emit(Op { d: to, imm: at, ..d.op_of::<Parameter<T, L>>() });
        Ok(())
    }
    match (ty.bits(), ty.is_signed()) {
        (8, true) => emit::<u8, SignedByte>(d, ty, at, value),
        (8, false) => emit::<u8, u8>(d, ty, at, value),
        (16, _) => emit::<u16, u16>(d, ty, at, value),
        (32, _) => emit::<u32, u32>(d, ty, at, value),
        (64, _) => emit::<u64, u64>(d, ty, at, value),
        (128, _) => emit::<u128, u128>(d, ty, at, value),
        _ => refuse("it has no such type"),
    }
}

/// A value out of rows of four bytes.
fn load_row(d: &mut Decoder<'_>, ty: ScalarType, row: i32, at: u32, value: &Operand) -> Decoded {
    let (row, shift) = (row + (at / 4) as i32, u64::from(at % 4 * 8));
    match ty.bits() {
        8 | 16 => {
            let to = destination::<u16>(d, ty, value)?;
            let signed = u64::from(ty.is_signed()) << 32 | shift;
            match ty.bits() {
                8 => d.apply1(to, row, signed, |k, x: u32| {
                    let byte = (x >> (k as u32 & 31)) as u8;
                    if k >> 32 != 0 { i16::from(byte as i8) as u16 } else { u16::from(byte) }
                }),
                _ => d.apply1(to, row, shift, |k, x: u32| (x >> (k as u32 & 31)) as u16),
            }
        }
        32 => {
            let to = d.destination_of::<u32>(value, ty.is_signed())?;
            d.copy::<u32>(to, row);
        }
        64 => {
            let to = d.destination_of::<u64>(value, false)?;
            d.apply2(to, (row, row + 1), 0, |_, x: u32, y: u32| u64::from(x) | u64::from(y) << 32);
        }
        128 => {
            let (low, high) = (d.temporary::<u64>(), d.temporary::<u64>());
            d.apply2(low, (row, row + 1), 0, |_, x: u32, y: u32| u64::from(x) | u64::from(y) << 32);
            d.apply2(high, (row + 2, row + 3), 0, |_, x: u32, y: u32| u64::from(x) | u64::from(y) << 32);
            let to = d.destination_of::<u128>(value, false)?;
            d.apply2(to, (low, high), 0, |_, x: u64, y: u64| u128::from(x) | u128::from(y) << 64);
        }
        _ => return refuse("it has no such type"),
    }
    Ok(())
}

/// A value into rows of four bytes.
fn store_row(d: &mut Decoder<'_>, ty: ScalarType, row: i32, at: u32, value: &Operand) -> Decoded {
    let (row, shift) = (row + (at / 4) as i32, u64::from(at % 4 * 8));
    match ty.bits() {
        8 => {
            let a = d.source_of::<u8>(value)?;
            d.apply2(row, (row, a), shift, |k, old: u32, x: u8| old & !(0xff << k) | u32::from(x) << k);
        }
        16 => {
            let a = d.source_of::<u16>(value)?;
            d.apply2(row, (row, a), shift, |k, old: u32, x: u16| old & !(0xffff << k) | u32::from(x) << k);
        }
        32 => {
            let a = d.source_of::<u32>(value)?;
            d.copy::<u32>(row, a);
        }
        64 => {
            let a = d.source_of::<u64>(value)?;
            d.apply1(row, a, 0, |_, x: u64| x as u32);
            d.apply1(row + 1, a, 0, |_, x: u64| (x >> 32) as u32);
        }
        128 => {
            let a = d.source_of::<u128>(value)?;
            for part in 0..4 {
                d.apply1(row + part, a, 32 * part as u64, |k, x: u128| (x >> k) as u32);
            }
        }
        _ => return refuse("it has no such type"),
    }
    Ok(())
}
