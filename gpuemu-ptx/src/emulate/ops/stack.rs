//! A stack that grows while a thread runs: `alloca`, `stacksave`, `stackrestore`.
//!
//! The frames of functions lie at the beginning of a thread's local memory, what `alloca` gives at its end. What a function
//! took is given back when it returns.

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::program::{Opcode, Operand};

/// `d = alloca a`, aligned to `imm` bytes, where the frame has `c` bytes of its own.
pub struct Allocate;

impl Body for Allocate {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let sizes = *warp.registers.stored::<u64>(op.a);
        let frames = warp.registers.frame().local.saturating_add(op.c as u32);
        let mut out = [0u64; LANES];
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let top = u64::from(warp.stack[lane]);
            let place = top.checked_sub(sizes[lane]).map(|place| place & !(op.imm - 1));
            match place.filter(|&place| place >= u64::from(frames)) {
                Some(place) => {
                    warp.stack[lane] = place as u32;
                    out[lane] = place;
                }
                None => {
                    let (bytes, left) = (sizes[lane], top.saturating_sub(frames.into()));
                    context.trouble = Some(Trouble::StackUsedUp { lane: lane as u32, bytes, left });
                    return Signal::Fault;
                }
            }
        }
        warp.registers.write::<u64>(op.d, &out, mask);
        Signal::Next
    }
}

/// `d = stacksave`.
pub struct Save;

impl Body for Save {
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let top = warp.stack.map(u64::from);
        warp.registers.write::<u64>(op.d, &top, mask);
        Signal::Next
    }
}

/// `stackrestore a`.
pub struct Restore;

impl Body for Restore {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let saved = *warp.registers.stored::<u64>(op.a);
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            // What was saved lies above all that was taken since.
            if !(u64::from(warp.stack[lane])..=u64::from(context.launch.local)).contains(&saved[lane]) {
                context.trouble = Some(Trouble::BadStack { lane: lane as u32, address: saved[lane] });
                return Signal::Fault;
            }
            warp.stack[lane] = saved[lane] as u32;
        }
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    d.grows = true;
    let wide = match d.ty()?.bits() {
        64 => true,
        32 => false,
        _ => return refuse("addresses have 32 or 64 bits"),
    };
    let source = |d: &mut Decoder<'_>, index: usize| -> Decoded<i32> {
        if wide {
            return d.source::<u64>(index);
        }
        let narrow = d.source::<u32>(index)?;
        let to = d.temporary::<u64>();
        d.apply1(to, narrow, 0, |_, x: u32| u64::from(x));
        Ok(to)
    };
    if d.opcode() == Opcode::Stackrestore {
        let a = source(d, 0)?;
        d.emit(Op { a, ..d.op_of::<Restore>() });
        return Ok(());
    }
    let value = d.temporary::<u64>();
    match d.opcode() {
        Opcode::Alloca => {
            let align = match d.has_operand(2) {
                true => match *d.operand(2)? {
                    Operand::Integer(align) if align.is_power_of_two() && align <= 1 << 16 => align,
                    _ => return refuse("its alignment is no power of two"),
                },
                false => 8,
            };
            let a = source(d, 1)?;
            let c = d.frame_bytes() as i32;
            d.emit(Op { d: value, a, c, imm: align, ..d.op_of::<Allocate>() });
        }
        _ => drop(d.emit(Op { d: value, ..d.op_of::<Save>() })),
    }
    if wide {
        let to = d.destination::<u64>(0, false)?;
        d.copy::<u64>(to, value);
    } else {
        let to = d.destination::<u32>(0, false)?;
        d.apply1(to, value, 0, |_, x: u64| x as u32);
    }
    Ok(())
}
