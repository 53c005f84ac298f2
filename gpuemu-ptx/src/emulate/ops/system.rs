//! What the system gives: `printf`, `assert`, `malloc`, `free`, sleep.

use super::memory::{Access, Generic, Memory};
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::output::{Printed, formatted};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::program::{Opcode, Operand, Symbol};

/// The longest string that is read.
const LONGEST: usize = 1 << 16;

/// One byte at a generic address, for one lane.
fn byte(context: &mut Context<'_>, warp: u32, lane: usize, address: u64) -> Result<u8, Trouble> {
    let mut out = [[0u8; LANES]];
    Generic::load(
        context,
        Access { warp, cache: 0, order: 0, wanted: u32::MAX, needed: 0, alike: 0 },
        &[address; LANES],
        1 << lane,
        &mut out,
    )?;
    Ok(out[0][lane])
}

/// Instructions that a thread's call counts as, beside one for each character that it reads: a loop that prints or
/// allocates without end reaches its end as soon as another.
const CALL: u64 = 16;

/// The bytes up to a zero.
fn string(context: &mut Context<'_>, warp: u32, lane: usize, address: u64) -> Result<String, Trouble> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST {
        match byte(context, warp, lane, address.wrapping_add(bytes.len() as u64))? {
            0 => break,
            other => bytes.push(other),
        }
    }
    context.steps += bytes.len() as u64;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `d = vprintf(a, b)`.
pub struct Print;

impl Body for Print {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let format = *warp.registers.stored::<u64>(op.a);
        let arguments = *warp.registers.stored::<u64>(op.b);
        // Most often one for all lanes.
        let mut known: Option<(u64, String)> = None;
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let index = warp.index;
            let text = (|| {
                let format = match &known {
                    Some((address, text)) if *address == format[lane] => text,
                    _ => &known.insert((format[lane], string(context, index, lane, format[lane])?)).1,
                };
                formatted(format, |at| byte(context, index, lane, arguments[lane].wrapping_add(at))).and_then(|parts| {
                    let mut text = String::new();
                    for part in parts {
                        text += &part.resolve(|address| string(context, index, lane, address))?;
                    }
                    Ok(text)
                })
            })();
            match text {
                Ok(text) => {
                    context.steps += CALL;
                    let (block, thread) = (context.block.position, warp.tid.map(|row| row[lane]));
                    context.printed.push(Printed { block, thread, text });
                }
                Err(trouble) => {
                    context.trouble = Some(trouble);
                    return Signal::Fault;
                }
            }
        }
        warp.registers.write::<u32>(op.d, &[0; LANES], mask);
        Signal::Next
    }
}

/// `__assertfail(a, b, c, e, ..)`: message, file, line, function.
pub struct Assert;

impl Body for Assert {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let lane = mask.trailing_zeros() as usize % LANES;
        let index = warp.index;
        let at = |register| warp.registers.lane::<u64>(register, lane);
        let (message, file, function) = (at(op.a), at(op.b), at(op.e));
        let line = warp.registers.lane::<u32>(op.c, lane);
        let mut read = |address| string(context, index, lane, address).unwrap_or_default();
        let message = format!("{}:{line}: {}: {}", read(file), read(function), read(message));
        context.trouble = Some(Trouble::Assertion { lane: lane as u32, message });
        Signal::Fault
    }
}

/// `d = malloc(a)`.
pub struct Allocate;

impl Body for Allocate {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let sizes = *warp.registers.stored::<u64>(op.a);
        let mut out = [0u64; LANES];
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            out[lane] = context.allocate(sizes[lane]);
            context.steps += CALL;
        }
        warp.registers.write::<u64>(op.d, &out, mask);
        Signal::Next
    }
}

/// `free(a)`.
pub struct Free;

impl Body for Free {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let addresses = *warp.registers.stored::<u64>(op.a);
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let address = addresses[lane];
            context.steps += CALL;
            if address == 0 {
                continue;
            }
            if let Err(error) = context.global.release(address) {
                let reason = error.to_string();
                context.trouble = Some(Trouble::BadFree { lane: lane as u32, address, reason });
                return Signal::Fault;
            }
        }
        Signal::Next
    }
}

/// `nanosleep`: others go first.
pub struct Sleep;

impl Body for Sleep {
    fn run(_: &mut Warp, _: &mut Context<'_>, _: &Op, _: u32) -> Signal {
        Signal::Yield
    }
}

/// Decodes one that is no call.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Nanosleep => {
            d.emit(d.op_of::<Sleep>());
            Ok(())
        }
        // A performance counter's event, and waits for grids that have ended before this one begins.
        _ => Ok(()),
    }
}

/// Decodes a call of a function that the system has.
pub fn call(d: &mut Decoder<'_>, name: &str, arguments: &[Operand], returns: &[Operand]) -> Decoded {
    let value = |d: &mut Decoder<'_>, index: usize, wide: bool| -> Decoded<i32> {
        match arguments.get(index) {
            Some(Operand::Symbol(symbol @ Symbol::Local(_), 0)) => {
                let Some(row) = d.parameter_row(*symbol) else { return refuse("it passes something odd") };
                if !wide {
                    return Ok(row);
                }
                let to = d.temporary::<u64>();
                d.apply2(to, (row, row + 1), 0, |_, x: u32, y: u32| u64::from(x) | u64::from(y) << 32);
                Ok(to)
            }
            Some(operand) if wide => d.source_of::<u64>(operand),
            Some(operand) => d.source_of::<u32>(operand),
            None => refuse("it passes too little"),
        }
    };
    // Where the result goes: rows of a parameter, or a register.
    let result = |d: &Decoder<'_>| match returns.first() {
        Some(Operand::Symbol(symbol, 0)) => d.parameter_row(*symbol),
        Some(Operand::Register(register)) => Some(d.slot(*register)),
        _ => None,
    };
    match name {
        "vprintf" => {
            let (a, b) = (value(d, 0, true)?, value(d, 1, true)?);
            let to = match result(d) {
                Some(row) => row,
                None => d.temporary::<u32>(),
            };
            d.emit(Op { d: to, a, b, ..d.op_of::<Print>() });
        }
        "__assertfail" => {
            let (a, b, c, e) = (value(d, 0, true)?, value(d, 1, true)?, value(d, 2, false)?, value(d, 3, true)?);
            d.emit(Op { a, b, c, e, ..d.op_of::<Assert>() });
        }
        "malloc" => {
            d.ordered = true;
            let a = value(d, 0, true)?;
            let value = d.temporary::<u64>();
            d.emit(Op { d: value, a, ..d.op_of::<Allocate>() });
            if let Some(row) = result(d) {
                d.apply1(row, value, 0, |_, x: u64| x as u32);
                d.apply1(row + 1, value, 0, |_, x: u64| (x >> 32) as u32);
            }
        }
        "free" => {
            d.ordered = true;
            let a = value(d, 0, true)?;
            d.emit(Op { a, ..d.op_of::<Free>() });
        }
        _ => return Err(format!("the module has no body for `{name}`, and the system has none either")),
    }
    Ok(())
}
