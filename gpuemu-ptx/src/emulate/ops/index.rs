//! Whether a 32-bit index wrapped around before it became an address: exact values beside those of registers.
//!
//! An exact value is a float64 that holds an integer below 2^53. It is NaN where nothing can be said for certain: a register
//! whose highest bit is set may hold a large number or one below zero, and what comes of it is not judged.

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder};
use crate::emulate::index::{Arithmetic, Source, Step};
use crate::emulate::op::{Body, Compare, Op, Signal, Ternary};
use crate::emulate::problem::{Trouble, Wrapped};
use crate::emulate::registers::{LANES, Lane};
use crate::emulate::warp::Warp;
use crate::fault::Action;
use crate::memory::{Place, Window};
use crate::program::{Base, Opcode, Operand};

/// Integers up to here are float64 exactly.
const MOST: f64 = (1u64 << 53) as f64;

/// A register's value, where it is the same with a sign and without.
#[inline(always)]
fn certain(bits: u32) -> f64 {
    if bits >> 31 == 0 { f64::from(bits as i32) } else { f64::NAN }
}

#[inline(always)]
fn within(value: f64) -> f64 {
    if value.abs() < MOST { value } else { f64::NAN }
}

/// Whether a register holds something else than the exact value.
#[inline(always)]
fn differs(exact: f64, held: f64) -> bool {
    exact.abs() < MOST && exact != held
}

/// Looks at the widenings that an address comes from: `c` begins the list of them, each with its flag, the row of its
/// exact value, whether it has a sign and its instruction. The address is register `a` plus `imm`, of 64 bits where `b` is
/// not 0; `e` is how many bytes are accessed, negative for a write.
struct Accessed;

impl Body for Accessed {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let list = &context.code.lists[op.c as usize..];
        let flags = list[1..].chunks(4).take(list[0] as usize);
        let wrapped = flags.fold(0, |all, widening| all | warp.registers.truth(widening[0])) & mask;
        if wrapped == 0 { Signal::Next } else { told(warp, context, op, wrapped) }
    }
}

/// An index that wrapped and leads into a tensor is told now; one that leads elsewhere is remembered for the fault to come.
#[cold]
#[inline(never)]
fn told(warp: &Warp, context: &mut Context<'_>, op: &Op, lanes: u32) -> Signal {
    let code = context.code;
    let list = &code.lists[op.c as usize..];
    let bytes = op.e.unsigned_abs();
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
        let address = match op.b {
            0 => u64::from(warp.registers.lane::<u32>(op.a, lane).wrapping_add(op.imm as u32)),
            _ => warp.registers.lane::<u64>(op.a, lane).wrapping_add(op.imm),
        };
        let holds = |widening: &&[i32]| warp.registers.truth(widening[0]) >> lane & 1 != 0;
        let mut widenings = list[1..].chunks(4).take(list[0] as usize);
        let Some(&[_, row, signed, place]) = widenings.find(holds) else { continue };
        if Window::of(address) != Window::Global {
            continue;
        }
        let wrapped = Wrapped {
            lane: lane as u32,
            exact: warp.registers.lane::<f64>(row, lane) as i64,
            signed: signed != 0,
            place: place as u32,
            address,
            bytes,
            action: if op.e < 0 { Action::Write } else { Action::Read },
        };
        match context.global.place(address, bytes) {
            Place::Inside { .. } => {
                context.trouble = Some(Trouble::IndexWraps(wrapped));
                return Signal::Fault;
            }
            // The access will fail in this lane, and says why.
            _ => {
                context.wrapped = Some(wrapped);
                return Signal::Next;
            }
        }
    }
    Signal::Next
}

/// Emits what is to be done before the current instruction.
pub fn before(d: &mut Decoder<'_>) -> Decoded {
    for step in d.indices.before(d.index()).to_vec() {
        match step {
            Step::Exact(value, arithmetic) => exact(d, value, arithmetic),
            Step::Widened(number, value, register, signed) => {
                let (flag, row, register) = (d.wrap_flag(number), d.exact_row(value), d.slot(register));
                d.widened_at(number);
                match signed {
                    true => compare(d, flag, (row, register), |_, x: f64, y: i32| differs(x, f64::from(y))),
                    false => compare(d, flag, (row, register), |_, x: f64, y: u32| differs(x, f64::from(y))),
                }
            }
            Step::Accessed(widenings) => accessed(d, &widenings)?,
        }
    }
    Ok(())
}

fn compare<B: Lane, F: Fn(u64, f64, B) -> bool + Copy>(d: &mut Decoder<'_>, flag: i32, (a, b): (i32, i32), _: F) {
    d.emit(Op { d: flag, a, b, ..d.op_of::<Compare<F, f64, B>>() });
}

fn ternary<F: Fn(u64, u32, u32, u32) -> f64 + Copy>(d: &mut Decoder<'_>, to: i32, from: [i32; 3], _: F) {
    let [a, b, c] = from;
    d.emit(Op { d: to, a, b, c, ..d.op_of::<Ternary<F, f64, u32, u32, u32>>() });
}

fn exact(d: &mut Decoder<'_>, value: u32, arithmetic: Arithmetic) {
    let to = d.exact_row(value);
    // The usual case in one operation: nothing but registers.
    let registers = |d: &Decoder<'_>, sources: [Source; 3]| -> Option<[i32; 3]> {
        let mut slots = [0; 3];
        for (slot, source) in slots.iter_mut().zip(sources) {
            let Source::Register(register) = source else { return None };
            *slot = d.slot(register);
        }
        Some(slots)
    };
    match arithmetic {
        Arithmetic::Product(a, b) => {
            let sources = (operand(d, a), operand(d, b));
            d.apply2(to, sources, 0, |_, x: f64, y: f64| within(x * y));
        }
        Arithmetic::Sum(a, b) => {
            let sources = (operand(d, a), operand(d, b));
            d.apply2(to, sources, 0, |_, x: f64, y: f64| within(x + y));
        }
        Arithmetic::Difference(a, b) => {
            let sources = (operand(d, a), operand(d, b));
            d.apply2(to, sources, 0, |_, x: f64, y: f64| within(x - y));
        }
        Arithmetic::ProductSum(a, b, c) => match registers(d, [a, b, c]) {
            Some(slots) => {
                ternary(d, to, slots, |_, x: u32, y: u32, z: u32| within(within(certain(x) * certain(y)) + certain(z)));
            }
            None => {
                let sources = (operand(d, a), operand(d, b));
                d.apply2(to, sources, 0, |_, x: f64, y: f64| within(x * y));
                let third = operand(d, c);
                d.apply2(to, (to, third), 0, |_, x: f64, y: f64| within(x + y));
            }
        },
    }
}

/// The row of an exact value: of a followed one, or made of what a register holds.
fn operand(d: &mut Decoder<'_>, source: Source) -> i32 {
    match source {
        Source::Followed(value) => d.exact_row(value),
        Source::Constant(value) => d.constant::<f64>(f64::from(value).to_bits()),
        Source::Register(register) => {
            let (made, slot) = (d.temporary::<f64>(), d.slot(register));
            d.apply1(made, slot, 0, |_, x: u32| certain(x));
            made
        }
    }
}

fn accessed(d: &mut Decoder<'_>, widenings: &[u32]) -> Decoded {
    let form = d.form;
    let writes = matches!(form.opcode, Opcode::St | Opcode::Red | Opcode::Atom);
    let operand = d.operand(usize::from(!matches!(form.opcode, Opcode::St | Opcode::Red)))?;
    let (register, offset) = match operand {
        Operand::Register(register) => (*register, 0),
        Operand::Address(Base::Register(register), offset) => (*register, *offset),
        _ => return Ok(()),
    };
    let mut list = vec![widenings.len() as i32];
    for &number in widenings {
        let (value, signed, place) = d.watched(number);
        list.extend([d.wrap_flag(number), d.exact_row(value), i32::from(signed), place]);
    }
    let c = d.list(list);
    let bytes = match form.opcode {
        Opcode::Cp => 1,
        _ => (d.ty()?.bytes() * u32::from(form.vector)) as i32,
    };
    let b = i32::from(d.function.register(register).ty.bits() == 64);
    let (a, e) = (d.slot(register), if writes { -bytes } else { bytes });
    d.emit(Op { a, b, c, e, imm: offset as u64, ..d.op_of::<Accessed>() });
    Ok(())
}
