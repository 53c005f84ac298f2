//! Between the lanes of a warp: `shfl`, `vote`, `match`, `redux`, `activemask`, `elect`.

use std::marker::PhantomData;

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::{FULL, LANES, Lane};
use crate::emulate::warp::{Wanted, Warp};
use crate::program::{Opcode, Operand, Operation, ScalarType, Word};

/// Whether the lanes that an instruction names are all here: `Next`, or a wish for more, or a fault.
#[inline(always)]
pub fn assemble(warp: &mut Warp, context: &mut Context<'_>, named: u32, mask: u32, anywhere: bool) -> Signal {
    if mask != FULL || named != FULL {
        let signal = assemble_some(warp, context, named, mask, anywhere);
        if signal != Signal::Next {
            return signal;
        }
    }
    if let Some(shadow) = &mut context.shadow {
        shadow.warp_sync(warp.index, named);
    }
    Signal::Next
}

#[inline(never)]
fn assemble_some(warp: &mut Warp, context: &mut Context<'_>, named: u32, mask: u32, anywhere: bool) -> Signal {
    if mask & !named != 0 {
        context.trouble = Some(Trouble::NotNamed { lane: (mask & !named).trailing_zeros(), named });
        return Signal::Fault;
    }
    // Lanes that have left are waited for no more.
    let missing = named & warp.alive & !mask;
    if missing & warp.active != 0 {
        // They are at this very instruction and do not execute it.
        context.trouble = Some(Trouble::AbsentLanes { lane: mask.trailing_zeros(), named, present: mask });
        return Signal::Fault;
    }
    if missing != 0 {
        warp.wanted = Wanted { lanes: named, anywhere };
        return Signal::Gather;
    }
    Signal::Next
}

/// All lanes of the mask `$named` are here, or the instruction ends with a wish for more or a fault.
macro_rules! assembled {
    ($warp:ident, $context:ident, $named:expr, $mask:ident) => {
        let named = $named;
        match $crate::emulate::ops::warp::assemble($warp, $context, named, $mask, false) {
            Signal::Next => {}
            other => return other,
        }
    };
}
pub(crate) use assembled;

/// The lanes that register `r` names, as the first executing lane has it.
#[inline(always)]
fn named(warp: &Warp, r: i32, mask: u32) -> u32 {
    warp.registers.lane::<u32>(r, mask.trailing_zeros() as usize % LANES)
}

/// Executes an instruction once for every mask that its lanes have in register `r`, where they come with several: groups
/// of a `match` that go on side by side. `None` where all lanes have the same.
#[inline(always)]
pub fn apart<B: Body>(
    warp: &mut Warp,
    context: &mut Context<'_>,
    op: &Op,
    r: i32,
    mask: u32,
    anywhere: bool,
) -> Option<Signal> {
    (mask & !named(warp, r, mask) != 0).then(|| in_groups::<B>(warp, context, op, r, mask, anywhere))
}

#[inline(never)]
fn in_groups<B: Body>(
    warp: &mut Warp,
    context: &mut Context<'_>,
    op: &Op,
    r: i32,
    mask: u32,
    anywhere: bool,
) -> Signal {
    let masks = *warp.registers.stored::<u32>(r);
    let here = move |mask: u32| (0..LANES).filter(move |lane| mask >> lane & 1 != 0);
    let group = |of: u32| here(mask).filter(|&lane| masks[lane] == of).fold(0u32, |all, lane| all | 1 << lane);
    let (mut wanted, mut missing) = (0, 0);
    for lane in here(mask) {
        let (named, present) = (masks[lane], group(masks[lane]));
        if named >> lane & 1 == 0 {
            context.trouble = Some(Trouble::NotNamed { lane: lane as u32, named });
            return Signal::Fault;
        }
        let absent = named & warp.alive & !present;
        if absent & warp.active != 0 {
            context.trouble = Some(Trouble::AbsentLanes { lane: lane as u32, named, present });
            return Signal::Fault;
        }
        (wanted, missing) = (wanted | named, missing | absent);
    }
    // Nothing is done before all groups are here: what is done twice might read what it wrote.
    if missing != 0 {
        warp.wanted = Wanted { lanes: wanted, anywhere };
        return Signal::Gather;
    }
    let mut left = mask;
    while left != 0 {
        let group = group(masks[left.trailing_zeros() as usize % LANES]);
        let signal = B::run(warp, context, op, group);
        if signal != Signal::Next {
            return signal;
        }
        left &= !group;
    }
    Signal::Next
}

/// `d|e = shfl a, b, c`: lanes `imm` (a register) take part; the mode is the type.
pub struct Shuffle<const MODE: u8>;

const UP: u8 = 0;
const DOWN: u8 = 1;
const BUTTERFLY: u8 = 2;
const INDEX: u8 = 3;

impl<const MODE: u8> Body for Shuffle<MODE> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        if let Some(signal) = apart::<Self>(warp, context, op, op.imm as i32, mask, false) {
            return signal;
        }
        assembled!(warp, context, named(warp, op.imm as i32, mask), mask);
        let a = *warp.registers.stored::<u32>(op.a);
        let b = warp.registers.stored::<u32>(op.b);
        let c = warp.registers.stored::<u32>(op.c);
        let mut out = [0u32; LANES];
        let mut from = [0u32; LANES];
        let mut inside = 0u32;
        for lane in 0..LANES as u32 {
            let (by, clamp) = (b[lane as usize] & 31, c[lane as usize] & 31);
            let segment = c[lane as usize] >> 8 & 31;
            let last = lane & segment | clamp & !segment;
            let first = lane & segment;
            let (source, holds) = match MODE {
                UP => (lane.wrapping_sub(by), lane as i32 - by as i32 >= last as i32),
                DOWN => (lane + by, lane + by <= last),
                BUTTERFLY => (lane ^ by, lane ^ by <= last),
                _ => (first | by & !segment, first | by & !segment <= last),
            };
            let source = if holds { source & 31 } else { lane };
            from[lane as usize] = source;
            inside |= u32::from(holds) << lane;
            out[lane as usize] = a[source as usize];
        }
        if mask != FULL {
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                if mask >> from[lane] & 1 == 0 {
                    context.trouble = Some(Trouble::ShuffleSource { lane: lane as u32, from: from[lane] });
                    return Signal::Fault;
                }
            }
        }
        warp.registers.write::<u32>(op.d, &out, mask);
        if op.e != 0 {
            warp.registers.set_truth(op.e, inside, mask);
        }
        Signal::Next
    }
}

/// `shfl` by a constant, of the whole warp where it is here, else as [`Shuffle`].
pub struct ShuffleBy<const MODE: u8, const BY: usize>;

impl<const MODE: u8, const BY: usize> Body for ShuffleBy<MODE, BY> {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        if mask != FULL {
            return some_shuffled::<MODE>(warp, context, op, mask);
        }
        if let Some(shadow) = &mut context.shadow {
            shadow.warp_sync(warp.index, FULL);
        }
        let a = *warp.registers.stored::<u32>(op.a);
        let mut out = a;
        let inside = match MODE {
            UP => {
                out[BY..].copy_from_slice(&a[..LANES - BY]);
                FULL << BY
            }
            DOWN => {
                out[..LANES - BY].copy_from_slice(&a[BY..]);
                FULL >> BY
            }
            BUTTERFLY => {
                for lane in 0..LANES {
                    out[lane] = a[lane ^ BY];
                }
                FULL
            }
            _ => {
                out = [a[BY]; LANES];
                FULL
            }
        };
        warp.registers.write::<u32>(op.d, &out, FULL);
        if op.e != 0 {
            warp.registers.set_truth(op.e, inside, FULL);
        }
        Signal::Next
    }
}

#[inline(never)]
fn some_shuffled<const MODE: u8>(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
    Shuffle::<MODE>::run(warp, context, op, mask)
}

/// The operation for a shuffle of the whole warp by a constant, where there is one.
fn shuffle_by(d: &Decoder<'_>) -> Decoded<Option<Op>> {
    let number = |index| match d.operand(index) {
        Ok(Operand::Integer(bits)) => Some(*bits as u32),
        _ => None,
    };
    let (Some(by), Some(clamp), Some(FULL)) = (number(2), number(3), number(4)) else { return Ok(None) };
    macro_rules! by {
        ($mode:ident, $($by:literal)*) => {
            match by {
                $($by => d.op_of::<ShuffleBy<$mode, $by>>(),)*
                _ => return Ok(None),
            }
        };
    }
    Ok(Some(match clamp {
        0 if d.form.has(Word::Up) => by!(UP, 1 2 4 8 16),
        31 if d.form.has(Word::Down) => by!(DOWN, 1 2 4 8 16),
        31 if d.form.has(Word::Bfly) => by!(BUTTERFLY, 1 2 4 8 16),
        31 if d.form.has(Word::Idx) => by!(INDEX, 0),
        _ => return Ok(None),
    }))
}

/// `vote`: predicate `a`, lanes `b`; `imm`: all, any, uni, ballot.
pub struct Vote<const MODE: u8>;

impl<const MODE: u8> Body for Vote<MODE> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        // Without `.sync` the lanes that are here vote.
        if op.imm == 0
            && let Some(signal) = apart::<Self>(warp, context, op, op.b, mask, false)
        {
            return signal;
        }
        let lanes = if op.imm == 0 { named(warp, op.b, mask) } else { mask };
        assembled!(warp, context, lanes, mask);
        let truths = warp.registers.truth(op.a) & mask;
        match MODE {
            0 => warp.registers.set_truth(op.d, if truths == mask { FULL } else { 0 }, mask),
            1 => warp.registers.set_truth(op.d, if truths != 0 { FULL } else { 0 }, mask),
            2 => warp.registers.set_truth(op.d, if truths == mask || truths == 0 { FULL } else { 0 }, mask),
            _ => warp.registers.write::<u32>(op.d, &[truths; LANES], mask),
        }
        Signal::Next
    }
}

/// `match.any`, `match.all`: values `a`, lanes `b`; predicate `e`.
pub struct Match<L, const ALL: bool>(PhantomData<L>);

impl<L: Lane, const ALL: bool> Body for Match<L, ALL>
where
    L::Store: PartialEq,
{
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        if let Some(signal) = apart::<Self>(warp, context, op, op.b, mask, false) {
            return signal;
        }
        assembled!(warp, context, named(warp, op.b, mask), mask);
        let a = *warp.registers.stored::<L>(op.a);
        let mut out = [0u32; LANES];
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            for other in (0..LANES).filter(|other| mask >> other & 1 != 0) {
                out[lane] |= u32::from(a[lane] == a[other]) << other;
            }
        }
        if ALL {
            let first = mask.trailing_zeros() as usize % LANES;
            let same = out[first] == mask;
            out = [if same { mask } else { 0 }; LANES];
            if op.e != 0 {
                warp.registers.set_truth(op.e, if same { FULL } else { 0 }, mask);
            }
        }
        warp.registers.write::<u32>(op.d, &out, mask);
        Signal::Next
    }
}

/// `redux`: values `a`, lanes `b`, around a closure.
pub struct Reduce<F>(PhantomData<F>);

impl<F: Fn(u32, u32) -> u32 + Copy> Body for Reduce<F> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        if let Some(signal) = apart::<Self>(warp, context, op, op.b, mask, false) {
            return signal;
        }
        assembled!(warp, context, named(warp, op.b, mask), mask);
        let f = crate::emulate::op::closure::<F>();
        let a = warp.registers.stored::<u32>(op.a);
        let mut lanes = (0..LANES).filter(|lane| mask >> lane & 1 != 0).map(|lane| a[lane]);
        let value = lanes.next().map_or(0, |first| lanes.fold(first, f));
        warp.registers.write::<u32>(op.d, &[value; LANES], mask);
        Signal::Next
    }
}

/// `activemask`.
pub struct ActiveMask;

impl Body for ActiveMask {
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        warp.registers.write::<u32>(op.d, &[mask; LANES], mask);
        Signal::Next
    }
}

/// `elect.sync d|e, b`.
pub struct Elect;

impl Body for Elect {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, named(warp, op.b, mask), mask);
        let leader = mask.trailing_zeros();
        warp.registers.write::<u32>(op.d, &[leader; LANES], mask);
        if op.e != 0 {
            warp.registers.set_truth(op.e, 1 << leader, mask);
        }
        Signal::Next
    }
}

/// A result that may be a pair: a register, and a predicate or 0.
fn pair(d: &mut Decoder<'_>) -> Decoded<(i32, i32)> {
    match d.operand(0)? {
        Operand::Pair(register, predicate) => {
            let register = match register {
                Some(register) => d.slot(*register),
                None => d.temporary::<u32>(),
            };
            Ok((register, predicate.map_or(0, |predicate| d.slot(predicate))))
        }
        _ => Ok((d.destination::<u32>(0, false)?, 0)),
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Shfl => {
            let (to, e) = pair(d)?;
            let (a, b, c) = (d.source::<u32>(1)?, d.source::<u32>(2)?, d.source::<u32>(3)?);
            if !d.form.has(Word::Sync) {
                return refuse("shuffles without `.sync` are not executed: no target of today has them");
            }
            let lanes = d.source::<u32>(4)?;
            let op = match shuffle_by(d)? {
                Some(op) => op,
                None if d.form.has(Word::Up) => d.op_of::<Shuffle<UP>>(),
                None if d.form.has(Word::Down) => d.op_of::<Shuffle<DOWN>>(),
                None if d.form.has(Word::Bfly) => d.op_of::<Shuffle<BUTTERFLY>>(),
                None => d.op_of::<Shuffle<INDEX>>(),
            };
            d.emit(Op { d: to, a, b, c, e, imm: lanes as u64, ..op });
        }
        Opcode::Vote => {
            let a = d.truth(d.operand(1)?)?;
            let sync = d.form.has(Word::Sync);
            let b = if sync { d.source::<u32>(2)? } else { 0 };
            let (to, op) = match d.form.operation {
                Some(Operation::All) => (d.truth_destination(d.operand(0)?)?, d.op_of::<Vote<0>>()),
                Some(Operation::Any) => (d.truth_destination(d.operand(0)?)?, d.op_of::<Vote<1>>()),
                Some(Operation::Uniform) => (d.truth_destination(d.operand(0)?)?, d.op_of::<Vote<2>>()),
                Some(Operation::Ballot) => (d.destination::<u32>(0, false)?, d.op_of::<Vote<3>>()),
                _ => return refuse("it votes on nothing"),
            };
            let ballot = d.form.operation == Some(Operation::Ballot);
            let to = if to == 0 && !ballot { d.temporary_predicate() } else { to };
            d.emit(Op { d: to, a, b, imm: u64::from(!sync), ..op });
        }
        Opcode::Match => {
            let (to, e) = pair(d)?;
            let wide = d.ty()?.bits() == 64;
            let a = if wide { d.source::<u64>(1)? } else { d.source::<u32>(1)? };
            let b = d.source::<u32>(2)?;
            let op = match (d.form.has(Word::All), wide) {
                (true, true) => d.op_of::<Match<u64, true>>(),
                (true, false) => d.op_of::<Match<u32, true>>(),
                (false, true) => d.op_of::<Match<u64, false>>(),
                (false, false) => d.op_of::<Match<u32, false>>(),
            };
            d.emit(Op { d: to, a, b, e, ..op });
        }
        Opcode::Redux => return redux(d),
        Opcode::Activemask => {
            let to = d.destination::<u32>(0, false)?;
            d.emit(Op { d: to, ..d.op_of::<ActiveMask>() });
        }
        Opcode::Elect => {
            let (to, e) = pair(d)?;
            let b = d.source::<u32>(1)?;
            d.emit(Op { d: to, b, e, ..d.op_of::<Elect>() });
        }
        _ => return refuse("it is not known"),
    }
    Ok(())
}

fn redux(d: &mut Decoder<'_>) -> Decoded {
    fn reduce<F: Fn(u32, u32) -> u32 + Copy>(d: &Decoder<'_>, _: F) -> Op {
        d.op_of::<Reduce<F>>()
    }
    let ty = d.ty()?;
    if ty == ScalarType::F32 {
        return refuse("reductions of floats are not executed yet");
    }
    let (a, b) = (d.source::<u32>(1)?, d.source::<u32>(2)?);
    let to = d.destination::<u32>(0, false)?;
    let op = match (d.form.operation, ty.is_signed()) {
        (Some(Operation::Add), _) => reduce(d, u32::wrapping_add),
        (Some(Operation::And), _) => reduce(d, |a, b| a & b),
        (Some(Operation::Or), _) => reduce(d, |a, b| a | b),
        (Some(Operation::Xor), _) => reduce(d, |a, b| a ^ b),
        (Some(Operation::Minimum), false) => reduce(d, |a, b| a.min(b)),
        (Some(Operation::Maximum), false) => reduce(d, |a, b| a.max(b)),
        (Some(Operation::Minimum), true) => reduce(d, |a, b| (a as i32).min(b as i32) as u32),
        (Some(Operation::Maximum), true) => reduce(d, |a, b| (a as i32).max(b as i32) as u32),
        _ => return refuse("it reduces in no known way"),
    };
    d.emit(Op { d: to, a, b, ..op });
    Ok(())
}
