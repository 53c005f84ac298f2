//! `cp.async`: copies from global to shared memory that are in flight until a thread waits for them.

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::ops::memory::{Access, InGlobal, Memory};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::fault::Action;
use crate::memory::shadow::{Instruction, Order};
use crate::memory::{Element, SHARED_WINDOW};
use crate::program::{Operand, Space, Word};

/// Copies `N` bytes a lane to `a + imm` (shared) from `b + the offset in the list that e begins` (global): the list has
/// the cache, both halves of the offset, whether a size limits the source (register `c`), whether the destination is a
/// generic address, and a predicate that stands for a size of zero.
pub struct Asynchronous<const N: usize>;

impl<const N: usize> Body for Asynchronous<N> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let code = context.code;
        let [cache, low, high, limited, generic, ignored] = code.lists[op.e as usize..op.e as usize + 6] else {
            return Signal::Fault;
        };
        let offset = u64::from(low as u32) | u64::from(high as u32) << 32;
        let to = super::memory::addresses(warp, op);
        let from = warp.registers.stored::<u64>(op.b).map(|address| address.wrapping_add(offset));
        let sizes = match limited {
            0 => [N as u32; LANES],
            _ => warp.registers.stored::<u32>(op.c).map(|size| size.min(N as u32)),
        };
        let ignore = if ignored == 0 { 0 } else { warp.registers.truth(ignored) };
        let to = match generic {
            0 => to,
            _ => to.map(|address| address.wrapping_sub(SHARED_WINDOW)),
        };
        let size_of = |lane: usize| if ignore >> lane & 1 != 0 { 0 } else { sizes[lane] as usize };
        let whole = (0..LANES).filter(|&lane| size_of(lane) == N).fold(0, |all, lane| all | 1 << lane) & mask;
        let who = Access::of(warp.index, cache, 0);
        let mut data = [0u128; LANES];
        if whole != 0
            && let Err(trouble) = load::<N>(context, who, &from, whole, &mut data)
        {
            context.trouble = Some(trouble);
            return Signal::Fault;
        }
        for lane in (0..LANES).filter(|lane| (mask & !whole) >> lane & 1 != 0) {
            for byte in 0..size_of(lane) {
                let at = from.map(|address| address.wrapping_add(byte as u64));
                let mut out = [[0u8; LANES]];
                if let Err(trouble) = InGlobal::load(context, who, &at, 1 << lane, &mut out) {
                    context.trouble = Some(trouble);
                    return Signal::Fault;
                }
                data[lane] |= u128::from(out[0][lane]) << (8 * byte);
            }
        }
        // What the copy will write must be there now.
        if let Err(problem) = reachable::<N>(context, &to, mask) {
            context.trouble = Some(Trouble::Access { problem, space: Space::Shared, write: true });
            return Signal::Fault;
        }
        if let Some(shadow) = &mut context.shadow {
            let instruction =
                Instruction { warp: warp.index, site: cache as u32, order: Order::Weak, observed: true, alike: 0 };
            let finding = shadow.copy_shared(instruction, &to, mask, N as u32);
            if let Err(trouble) = super::memory::found(finding, Space::Shared, Action::AsyncWrite, context) {
                context.trouble = Some(trouble);
                return Signal::Fault;
            }
        }
        warp.copies.begin(mask, to.map(|address| address as u32), N as u32, data);
        Signal::Next
    }
}

fn load<const N: usize>(
    context: &mut Context<'_>,
    who: Access,
    from: &[u64; LANES],
    mask: u32,
    data: &mut [u128; LANES],
) -> Result<(), Trouble> {
    fn widened<T: Element + Into<u128>>(
        context: &mut Context<'_>,
        who: Access,
        from: &[u64; LANES],
        mask: u32,
        data: &mut [u128; LANES],
    ) -> Result<(), Trouble> {
        let mut out = [[T::default(); LANES]];
        InGlobal::load(context, who, from, mask, &mut out)?;
        *data = out[0].map(Into::into);
        Ok(())
    }
    match N {
        4 => widened::<u32>(context, who, from, mask, data),
        8 => widened::<u64>(context, who, from, mask, data),
        _ => widened::<u128>(context, who, from, mask, data),
    }
}

fn reachable<const N: usize>(
    context: &Context<'_>,
    to: &[u64; LANES],
    mask: u32,
) -> Result<(), crate::memory::Problem> {
    let shared = &context.block.shared;
    match N {
        4 => shared.load(to, mask, &mut [[0u32; LANES]]),
        8 => shared.load(to, mask, &mut [[0u64; LANES]]),
        _ => shared.load(to, mask, &mut [[0u128; LANES]]),
    }
}

/// `cp.async.commit_group`.
pub struct Commit;

impl Body for Commit {
    fn run(warp: &mut Warp, context: &mut Context<'_>, _: &Op, mask: u32) -> Signal {
        if let Some(shadow) = &mut context.shadow {
            shadow.commit_copies(warp.index);
        }
        warp.copies.commit(mask);
        Signal::Next
    }
}

/// `cp.async.wait_group imm`, or `wait_all` where it is all ones.
pub struct Wait;

impl Body for Wait {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        if let Some(shadow) = &mut context.shadow {
            match u32::try_from(op.imm) {
                Ok(pending) => shadow.wait_copies(warp.index, pending),
                Err(_) => shadow.wait_all_copies(warp.index),
            }
        }
        let memory = context.block.shared.contents_mut();
        warp.copies.land(mask, u32::try_from(op.imm).ok(), |flight, landing| {
            let bytes = flight.bytes as usize;
            for lane in (0..LANES).filter(|lane| landing >> lane & 1 != 0) {
                let start = flight.to[lane] as usize;
                if let Some(to) = memory.get_mut(start..start + bytes) {
                    to.copy_from_slice(&flight.data[lane].to_le_bytes()[..bytes]);
                }
            }
        });
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let has = |word| d.form.has(word);
    if !has(Word::Async) || has(Word::Bulk) || has(Word::Tensor) || has(Word::Reduce) {
        return refuse("bulk copies are not executed yet");
    }
    if has(Word::Mbarrier) {
        // They land where the thread says who waits for them: who reads them without that wait is a race all the same.
        d.emit(Op { imm: u64::MAX, ..d.op_of::<Wait>() });
        return super::barrier::arrive_for_copies(d);
    }
    if has(Word::CommitGroup) {
        d.emit(d.op_of::<Commit>());
        return Ok(());
    }
    if has(Word::WaitAll) {
        d.emit(Op { imm: u64::MAX, ..d.op_of::<Wait>() });
        return Ok(());
    }
    if has(Word::WaitGroup) {
        let Operand::Integer(pending) = *d.operand(0)? else { return refuse("it waits for no number") };
        d.emit(Op { imm: pending.min(u64::from(u32::MAX)), ..d.op_of::<Wait>() });
        return Ok(());
    }
    let Operand::Integer(bytes) = *d.operand(2)? else { return refuse("its size is not a number") };
    let to = d.address(0)?;
    let (a, imm) = d.wide_address(to);
    let from = d.address(1)?;
    let (b, offset) = d.wide_address(from);
    // A number or register limits the source; a predicate ignores it; a cache policy is a register of 64 bits.
    let (mut limited, mut c, mut ignored) = (0, 0, 0);
    if let Some(operand) = d.operands.get(3) {
        match operand {
            Operand::Register(register) if d.function.register(*register).ty.bits() == 1 => {
                ignored = d.truth(operand)?
            }
            Operand::Negated(_) => ignored = d.truth(operand)?,
            Operand::Register(register) if d.function.register(*register).ty.bits() == 64 => {}
            operand => {
                limited = 1;
                c = d.source_of::<u32>(operand)?;
            }
        }
    }
    let generic = i32::from(!has(Word::Shared) && !has(Word::SharedCta));
    let cache = d.cache();
    let e = d.list([cache, offset as u32 as i32, (offset >> 32) as u32 as i32, limited, generic, ignored]);
    let op = match bytes {
        4 => d.op_of::<Asynchronous<4>>(),
        8 => d.op_of::<Asynchronous<8>>(),
        16 => d.op_of::<Asynchronous<16>>(),
        _ => return refuse("it copies 4, 8 or 16 bytes"),
    };
    d.emit(Op { a, b, c, e, imm, ..op });
    Ok(())
}
