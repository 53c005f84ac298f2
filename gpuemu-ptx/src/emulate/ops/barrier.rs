//! Barriers of a block, fences, `mbarrier`.

use crate::emulate::context::{BARRIERS, Context};
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::effects::Touch;
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::emulate::warp::{Arrival, Reduction, Warp};
use crate::fault::Action;
use crate::memory::shadow::{self, Meeting};
use crate::memory::{SHARED_WINDOW, Window};
use crate::program::{Opcode, Operand, Operation, Scope, Space, Word};

const ALIGNED: u64 = 1;
const ARRIVE: u64 = 2;
const COUNTED: u64 = 4;

/// `bar`, `barrier`: number `a`, count `b`, predicate `c`, result `d`; the reduction in bits 8 and 9 of `imm`.
pub struct Barrier;

impl Body for Barrier {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let lane = mask.trailing_zeros() as usize % LANES;
        let barrier = warp.registers.lane::<u32>(op.a, lane);
        let count = if op.imm & COUNTED != 0 { warp.registers.lane::<u32>(op.b, lane) } else { 0 };
        let mut bad = |reason| {
            context.trouble = Some(Trouble::BadBarrier { lane: lane as u32, reason });
            Signal::Fault
        };
        if barrier as usize >= BARRIERS {
            return bad("its number is not below 16");
        }
        if op.imm & COUNTED != 0 && (count == 0 || count % 32 != 0) {
            return bad("its count is not a multiple of the warp's size");
        }
        let reduction = match op.imm >> 8 & 3 {
            0 => Reduction::None,
            1 => Reduction::Count,
            2 => Reduction::All,
            _ => Reduction::Any,
        };
        let truths = warp.registers.truth(op.c) & mask;
        warp.arrivals[lane] = Arrival {
            barrier,
            count,
            waits: op.imm & ARRIVE == 0,
            aligned: op.imm & ALIGNED != 0,
            reduction,
            truths,
            result: op.d,
            place: 0,
        };
        Signal::Barrier
    }
}

/// `membar`, `fence`: of the device's scope where `imm` is 1.
pub struct Fence;

impl Body for Fence {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, _: u32) -> Signal {
        if let Some(shadow) = &mut context.shadow {
            shadow.fence(warp.index, if op.imm == 0 { shadow::Scope::Block } else { shadow::Scope::Device });
        }
        Signal::Next
    }
}

/// `bar.warp.sync`: lanes `a`.
pub struct WarpBarrier;

impl Body for WarpBarrier {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        if let Some(signal) = super::warp::apart::<Self>(warp, context, op, op.a, mask, true) {
            return signal;
        }
        let lane = mask.trailing_zeros() as usize % LANES;
        let named = warp.registers.lane::<u32>(op.a, lane);
        super::warp::assemble(warp, context, named, mask, true)
    }
}

/// `mbarrier` in shared memory, as a word of 64 bits: arrivals pending in bits 0 to 19, expected in 20 to 39, the phase
/// in bit 63.
pub struct Mbarrier;

const INIT: u64 = 0;
const INVALIDATE: u64 = 1;
const ARRIVE_MBARRIER: u64 = 2;
const TEST: u64 = 3;
const TEST_PARITY: u64 = 4;
const DROP: u64 = 5;
const FIELD: u64 = (1 << 20) - 1;

impl Body for Mbarrier {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let base = *warp.registers.stored::<u64>(op.a);
        let mut addresses = base.map(|address| address.wrapping_add(op.imm >> 16));
        if op.imm & 1 << 8 != 0 {
            // A generic address.
            addresses = addresses.map(|address| match Window::of(address) {
                Window::Shared => address.wrapping_sub(SHARED_WINDOW),
                _ => u64::MAX,
            });
        }
        let operation = op.imm & 15;
        let argument = match operation {
            TEST => *warp.registers.stored::<u64>(op.b),
            INIT | TEST_PARITY | ARRIVE_MBARRIER | DROP => warp.registers.stored::<u32>(op.b).map(u64::from),
            _ => [0; LANES],
        };
        let mut results = [0u64; LANES];
        let mut truths = 0u32;
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let mut word = [[0u64; LANES]];
            let refused = |problem| Trouble::Access { problem, space: Space::Shared, write: true };
            if let Err(problem) = context.block.shared.load(&addresses, 1 << lane, &mut word) {
                context.trouble = Some(refused(problem));
                return Signal::Fault;
            }
            let old = word[0][lane];
            let meeting = Meeting::Mbarrier(addresses[lane] as u32);
            let (mut pending, mut expected, mut phase) = (old & FIELD, old >> 20 & FIELD, old >> 63);
            results[lane] = old;
            match operation {
                INIT => (pending, expected, phase) = (argument[lane] & FIELD, argument[lane] & FIELD, 0),
                ARRIVE_MBARRIER | DROP => {
                    let count = argument[lane].min(pending);
                    pending -= count;
                    if operation == DROP {
                        expected = expected.saturating_sub(count);
                    }
                    if pending == 0 {
                        (pending, phase) = (expected, phase ^ 1);
                    }
                }
                TEST => truths |= u32::from(argument[lane] >> 63 != phase) << lane,
                TEST_PARITY => truths |= u32::from(argument[lane] & 1 != phase) << lane,
                _ => (pending, expected, phase) = (0, 0, 0),
            }
            word[0][lane] = pending | expected << 20 | phase << 63;
            if let Some(shadow) = &mut context.shadow {
                match operation {
                    INIT | INVALIDATE => shadow.forget(meeting),
                    ARRIVE_MBARRIER | DROP => {
                        shadow.arrive(warp.index, meeting);
                        if phase != old >> 63 {
                            shadow.complete(meeting);
                        }
                    }
                    _ if truths >> lane & 1 != 0 => shadow.wait(warp.index, meeting),
                    _ => {}
                }
            }
            if matches!(operation, INIT | INVALIDATE | ARRIVE_MBARRIER | DROP)
                && let Err(problem) = context.block.shared.store(&addresses, 1 << lane, &word)
            {
                context.trouble = Some(refused(problem));
                return Signal::Fault;
            }
        }
        match operation {
            TEST | TEST_PARITY => {
                warp.registers.set_truth(op.d, truths, mask);
                // A wait that may suspend the thread lets others run.
                if op.imm & 1 << 9 != 0 && truths != mask {
                    return Signal::Yield;
                }
            }
            ARRIVE_MBARRIER | DROP if op.c != 0 => warp.registers.write::<u64>(op.d, &results, mask),
            _ => {}
        }
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Membar | Opcode::Fence if d.form.has(Word::Proxy) || d.form.has(Word::MbarrierInit) => Ok(()),
        Opcode::Membar | Opcode::Fence => {
            // The host's accesses are in order already; it is the sanitizers that want to know.
            let imm = u64::from(d.form.scope != Some(Scope::Block));
            d.emit(Op { imm, ..d.op_of::<Fence>() });
            Ok(())
        }
        Opcode::Mbarrier => mbarrier(d),
        _ if d.form.has(Word::Cluster) => refuse("clusters are not executed yet"),
        _ if d.form.has(Word::Warp) => {
            let a = d.source::<u32>(0)?;
            d.emit(Op { a, ..d.op_of::<WarpBarrier>() });
            Ok(())
        }
        _ => barrier(d),
    }
}

fn barrier(d: &mut Decoder<'_>) -> Decoded {
    let aligned = d.opcode() == Opcode::Bar || d.form.has(Word::Aligned);
    let mut imm = if aligned { ALIGNED } else { 0 };
    if d.form.has(Word::Arrive) {
        imm |= ARRIVE;
    }
    if !d.form.has(Word::Red) {
        let a = d.source::<u32>(0)?;
        let b = match d.has_operand(1) {
            true => {
                imm |= COUNTED;
                d.source::<u32>(1)?
            }
            false => a,
        };
        d.emit(Op { a, b, imm, ..d.op_of::<Barrier>() });
        return Ok(());
    }
    let a = d.source::<u32>(1)?;
    let counted = d.has_operand(3);
    let b = if counted { d.source::<u32>(2)? } else { a };
    let c = d.truth(d.operand(if counted { 3 } else { 2 })?)?;
    if counted {
        imm |= COUNTED;
    }
    let to = match d.form.operation {
        Some(Operation::PopulationCount) => {
            imm |= 1 << 8;
            // Registers count from 1 here, so that 0 is none.
            d.destination::<u32>(0, false)? + 1
        }
        Some(Operation::And) => {
            imm |= 2 << 8;
            d.truth_destination(d.operand(0)?)?
        }
        Some(Operation::Or) => {
            imm |= 3 << 8;
            d.truth_destination(d.operand(0)?)?
        }
        _ => return refuse("it reduces in no known way"),
    };
    d.emit(Op { d: to, a, b, c, imm, ..d.op_of::<Barrier>() });
    Ok(())
}

/// `cp.async.mbarrier.arrive`: with `.noinc` an arrival, else one that was added before, so that nothing is left to count.
pub fn arrive_for_copies(d: &mut Decoder<'_>) -> Decoded {
    let b = d.constant::<u32>(u64::from(d.form.has(Word::NoInc)));
    emit_mbarrier(d, 0, 0, b, 0, ARRIVE_MBARRIER)
}

fn emit_mbarrier(d: &mut Decoder<'_>, at: usize, to: i32, b: i32, c: i32, operation: u64) -> Decoded {
    let generic = u64::from(d.form.space.is_none()) << 8;
    let address = d.address(at)?;
    let (a, offset) = d.wide_address(address);
    if offset >> 47 != 0 {
        return refuse("its address is too far from its register");
    }
    let op = Op { d: to, a, b, c, imm: operation | generic | offset << 16, ..d.op_of::<Mbarrier>() };
    if matches!(operation & 15, TEST | TEST_PARITY) {
        let space = d.form.space.map(|_| Space::Shared);
        let touch = Touch { space, bytes: 8, narrow: false, offset, action: Action::Read, ordered: true };
        d.emit_access(op, touch);
        return Ok(());
    }
    d.emit(op);
    Ok(())
}

fn mbarrier(d: &mut Decoder<'_>) -> Decoded {
    let has = |word| d.form.has(word);
    if has(Word::ExpectTx) || has(Word::CompleteTx) || has(Word::SharedCluster) {
        return refuse("mbarriers that count bytes are not executed yet");
    }
    if has(Word::PendingCount) {
        return d.unary(0, |_, state: u64| (state & FIELD) as u32);
    }
    if has(Word::Init) {
        let b = d.source::<u32>(1)?;
        return emit_mbarrier(d, 0, 0, b, 0, INIT);
    }
    if has(Word::Inval) {
        return emit_mbarrier(d, 0, 0, 0, 0, INVALIDATE);
    }
    if has(Word::TestWait) || has(Word::TryWait) {
        let to = d.truth_destination(d.operand(0)?)?;
        let parity = has(Word::Parity);
        let b = if parity { d.source::<u32>(2)? } else { d.source::<u64>(2)? };
        let suspends = u64::from(has(Word::TryWait)) << 9;
        return emit_mbarrier(d, 1, to, b, 0, if parity { TEST_PARITY } else { TEST } | suspends);
    }
    if has(Word::Arrive) || has(Word::ArriveDrop) {
        let discards = matches!(d.operand(0)?, Operand::Discard);
        let to = d.destination::<u64>(0, false)?;
        let b = if d.has_operand(2) { d.source::<u32>(2)? } else { d.constant::<u32>(1) };
        let operation = if has(Word::ArriveDrop) { DROP } else { ARRIVE_MBARRIER };
        return emit_mbarrier(d, 1, to, b, i32::from(!discards), operation);
    }
    refuse("it is not known")
}
