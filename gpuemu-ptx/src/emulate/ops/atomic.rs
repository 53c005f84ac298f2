//! `atom` and `red`.

use std::marker::PhantomData;

use super::memory::{Access, addresses, found, order_number, order_of_atomic};
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::effects::Touch;
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::{LANES, Lane};
use crate::emulate::warp::Warp;
use crate::fault::Action;
use crate::memory::{Number, Rule, SHARED_WINDOW, Update, Window};
use crate::program::{Opcode, Operand, Operation, Order, ScalarType, Space};

/// `d = atomic [a + imm], b, c`: the list that `e` begins has the cache, the operation, the type and the space.
pub struct Atomic<L>(PhantomData<L>);

/// The numbers in the list of an atomic.
const UPDATES: [Update; 10] = [
    Update::And,
    Update::Or,
    Update::Xor,
    Update::Exchange,
    Update::CompareAndSwap,
    Update::Add,
    Update::Increment,
    Update::Decrement,
    Update::Minimum,
    Update::Maximum,
];
const NUMBERS: [Number; 11] = [
    Number::U16,
    Number::U32,
    Number::S32,
    Number::U64,
    Number::S64,
    Number::F16,
    Number::F16x2,
    Number::Bf16,
    Number::Bf16x2,
    Number::F32,
    Number::F64,
];

impl<L: Lane> Body for Atomic<L>
where
    L::Store: Into<u64>,
{
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let addresses = addresses(warp, op);
        let code = context.code;
        let [cache, update, number, space, result, order] = code.lists[op.e as usize..op.e as usize + 6] else {
            return Signal::Fault;
        };
        let (update, number) = (UPDATES[update as usize], NUMBERS[number as usize]);
        let operands: [u64; LANES] = warp.registers.stored::<L>(op.b).map(Into::into);
        let second: [u64; LANES] = warp.registers.stored::<L>(op.c).map(Into::into);
        let mut old = [0u64; LANES];
        let [global, shared, local] = match space {
            0 => [mask, 0, 0],
            1 => [0, mask, 0],
            _ => Window::split(&addresses, mask),
        };
        let refused = |space| move |problem| Trouble::Access { problem, space, write: true };
        let done = (|| {
            let who = Access { observed: result != 0, ..Access::of(warp.index, cache, order) };
            let reads = update != Update::Exchange;
            if global != 0 {
                let Some(rule) = Rule::new(update, number, false) else { return Ok(()) };
                watch_global(context, who, &addresses, global, rule.bytes(), reads)?;
                let memory = context.global;
                let cache = &mut context.caches[cache as usize];
                memory
                    .atomic(cache, &rule, &addresses, global, &operands, &second, &mut old)
                    .map_err(refused(Space::Global))?;
            }
            if shared != 0 {
                let Some(rule) = Rule::new(update, number, true) else { return Ok(()) };
                let inside = match space {
                    1 => addresses,
                    _ => addresses.map(|address| address.wrapping_sub(SHARED_WINDOW)),
                };
                watch_shared(context, who, &inside, shared, rule.bytes(), reads)?;
                let memory = &mut context.block.shared;
                memory.atomic(&rule, &inside, shared, &operands, &second, &mut old).map_err(refused(Space::Shared))?;
            }
            if local != 0 {
                return Err(super::memory::no_local(&addresses, local, 4, true));
            }
            Ok(())
        })();
        if let Err(trouble) = done {
            context.trouble = Some(trouble);
            return Signal::Fault;
        }
        if result != 0 {
            let values = old.map(|value| L::stored(u128::from(value)));
            warp.registers.write::<L>(op.d, &values, mask);
        }
        context.told()
    }
}

/// `atom.exch.b128`, `atom.cas.b128`: as `Atomic`.
pub struct Atomic128;

impl Body for Atomic128 {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let addresses = addresses(warp, op);
        let code = context.code;
        let [cache, update, _, space, result, order] = code.lists[op.e as usize..op.e as usize + 6] else {
            return Signal::Fault;
        };
        let first = *warp.registers.stored::<u128>(op.b);
        let second = *warp.registers.stored::<u128>(op.c);
        let mut old = [0; LANES];
        let (expected, new) = match UPDATES[update as usize] {
            Update::CompareAndSwap => (Some(&first), &second),
            _ => (None, &first),
        };
        let shared = space == 1 || space == 2 && Window::split(&addresses, mask)[1] == mask;
        let who = Access { observed: result != 0, ..Access::of(warp.index, cache, order) };
        let reads = expected.is_some();
        let done = match shared {
            true => {
                let inside = match space {
                    1 => addresses,
                    _ => addresses.map(|address| address.wrapping_sub(SHARED_WINDOW)),
                };
                if let Err(trouble) = watch_shared(context, who, &inside, mask, 16, reads) {
                    context.trouble = Some(trouble);
                    return Signal::Fault;
                }
                let problem = |problem| Trouble::Access { problem, space: Space::Shared, write: true };
                context.block.shared.atomic128(&inside, mask, expected, new, &mut old).map_err(problem)
            }
            false => {
                if let Err(trouble) = watch_global(context, who, &addresses, mask, 16, reads) {
                    context.trouble = Some(trouble);
                    return Signal::Fault;
                }
                let problem = |problem| Trouble::Access { problem, space: Space::Global, write: true };
                let memory = context.global;
                let cache = &mut context.caches[cache as usize];
                memory.atomic128(cache, &addresses, mask, expected, new, &mut old).map_err(problem)
            }
        };
        if let Err(trouble) = done {
            context.trouble = Some(trouble);
            return Signal::Fault;
        }
        warp.registers.write::<u128>(op.d, &old, mask);
        Signal::Next
    }
}

/// Tells the sanitizers of an atomic on global memory.
fn watch_global(
    context: &mut Context<'_>,
    who: Access,
    addresses: &[u64; LANES],
    mask: u32,
    bytes: u32,
    reads: bool,
) -> Result<(), Trouble> {
    let Some(shadow) = &mut context.shadow else { return Ok(()) };
    let cache = &mut context.caches[who.cache as usize];
    let finding = shadow.atomic(cache, who.instruction(), addresses, mask, bytes, reads);
    found(finding, Space::Global, Action::Atomic, context)
}

/// The same on shared memory.
fn watch_shared(
    context: &mut Context<'_>,
    who: Access,
    addresses: &[u64; LANES],
    mask: u32,
    bytes: u32,
    reads: bool,
) -> Result<(), Trouble> {
    let Some(shadow) = &mut context.shadow else { return Ok(()) };
    let finding = shadow.atomic_shared(who.instruction(), addresses, mask, bytes, reads);
    found(finding, Space::Shared, Action::Atomic, context)
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let atom = d.opcode() == Opcode::Atom;
    let Some(operation) = d.form.operation else { return refuse("it does nothing") };
    let update = match operation {
        Operation::And => 0,
        Operation::Or => 1,
        Operation::Xor => 2,
        Operation::Exchange => 3,
        Operation::CompareAndSwap => 4,
        Operation::Add => 5,
        Operation::Increment => 6,
        Operation::Decrement => 7,
        Operation::Minimum => 8,
        Operation::Maximum => 9,
        _ => return refuse("there is no such atomic"),
    };
    use ScalarType as T;
    let ty = d.ty()?;
    let number = match ty {
        T::B16 | T::U16 => 0,
        T::B32 | T::U32 => 1,
        T::S32 => 2,
        T::B64 | T::U64 => 3,
        T::S64 => 4,
        T::F16 => 5,
        T::F16x2 => 6,
        T::Bf16 => 7,
        T::Bf16x2 => 8,
        T::F32 => 9,
        T::F64 => 10,
        T::B128 => 3,
        _ => return refuse("it has no such type"),
    };
    let space = match d.form.space {
        Some(Space::Global) => 0,
        Some(Space::Shared) => 1,
        None => 2,
        _ => return refuse("there are no atomics in this memory"),
    };
    if Rule::new(UPDATES[update as usize], NUMBERS[number as usize], space == 1).is_none() {
        return refuse("there is no such atomic");
    }
    if space != 1 {
        d.ordered = true;
    }
    let order = match d.form.order {
        None => order_of_atomic(d.form.scope),
        Some(Order::Relaxed) if spells_relaxed(d) => order_of_atomic(d.form.scope),
        order => order_number(order, d.form.scope),
    };
    let address = d.address(usize::from(atom))?;
    let first = usize::from(atom) + 1;
    // A vector is so many atomics, one after the other, each on its own element.
    let (values, results) = (elements(d, first)?, if atom { elements(d, 0)? } else { Vec::new() });
    let bytes = u64::from(ty.bytes());
    for (index, value) in values.iter().enumerate() {
        let (a, imm) = d.wide_address(address);
        let imm = imm.wrapping_add(index as u64 * bytes);
        let cache = d.cache();
        let to = results.get(index);
        let discards = to.is_none_or(|to| !d.is_read(to));
        let e = d.list([cache, update, number, space, i32::from(!discards), order]);
        let with_second = update == 4;
        macro_rules! emit {
            ($l:ty, $body:ty) => {{
                let b = d.source_of::<$l>(value)?;
                let c = if with_second { d.source::<$l>(first + 1)? } else { b };
                let to = match to {
                    Some(to) => d.destination_of::<$l>(to, false)?,
                    None => d.temporary::<$l>(),
                };
                let touch = Touch {
                    space: d.form.space,
                    bytes: ty.bytes(),
                    narrow: false,
                    offset: imm,
                    action: Action::Atomic,
                    ordered: true,
                };
                d.emit_access(Op { d: to, a, b, c, e, imm, ..d.op_of::<$body>() }, touch);
            }};
        }
        match ty.bits() {
            16 => emit!(u16, Atomic<u16>),
            32 => emit!(u32, Atomic<u32>),
            64 => emit!(u64, Atomic<u64>),
            _ => emit!(u128, Atomic128),
        }
    }
    Ok(())
}

/// Whether atomics that name no order have one in the text: so NVIDIA's compilers have it for sm_100 and later.
fn spells_relaxed(d: &Decoder<'_>) -> bool {
    let target = d.program.targets.first().map_or("", |target| target);
    let digits: String = target.chars().filter(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|number: u32| number >= 100)
}

fn elements(d: &Decoder<'_>, index: usize) -> Decoded<Vec<Operand>> {
    Ok(match d.operand(index)? {
        Operand::Vector(range) => d.function.inside(range).to_vec(),
        operand => vec![operand.clone()],
    })
}
