//! Loads and stores.

mod parameters;
mod spaces;

use std::marker::PhantomData;

use crate::emulate::context::Context;
use crate::emulate::decode::{Address, Decoded, Decoder, refuse};
use crate::emulate::demand::{self, Demand};
use crate::emulate::effects::Touch;
use crate::emulate::op::{Body, Op, Run, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::{FULL, LANES, Lane};
use crate::emulate::warp::Warp;
use crate::fault::Action;
use crate::memory::Element;
use crate::memory::access::consecutive;
use crate::memory::shadow::{self, Finding, Instruction};
use crate::program::{Opcode, Operand, Order, ScalarType, Scope, Space, Word};

use parameters::parameters;
pub use spaces::{Generic, InGlobal, InLocal, InParameters, InShared, no_local};

/// Who accesses memory, and how.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The warp.
    pub warp: u32,
    /// Where the region that the instruction accessed last is remembered; the instruction's number for sanitizers, too.
    pub cache: i32,
    /// Its memory order, by number.
    pub order: i32,
    /// The lanes that want what is loaded.
    pub wanted: u32,
    /// The bytes of each lane that something must have written before, as bits from the lowest; 0 for any of them.
    pub needed: u32,
    /// The bits of the lane number in which lanes that differ store one value.
    pub alike: u8,
    /// Whether anything makes use of the value that an atomic gives.
    pub observed: bool,
}

impl Access {
    /// Of all lanes, with nothing known of the values.
    pub fn of(warp: u32, cache: i32, order: i32) -> Self {
        Self { warp, cache, order, wanted: u32::MAX, needed: 0, alike: 0, observed: true }
    }

    /// An instruction as the shadow knows it.
    #[inline]
    pub fn instruction(self) -> Instruction {
        let (site, order) = (self.cache as u32, order_of(self.order));
        Instruction { warp: self.warp, site, order, observed: self.observed, alike: self.alike }
    }
}

/// The number of a load that takes memory to be constant, in the place of an order.
const CONSTANT: i32 = 127;

/// The number of the order of an atomic that names none.
pub fn order_of_atomic(scope: Option<Scope>) -> i32 {
    1 + i32::from(scope == Some(Scope::Block))
}

/// The number of a memory order; see [`order_of`].
pub fn order_number(order: Option<Order>, scope: Option<Scope>) -> i32 {
    let block = scope == Some(Scope::Block);
    let kind = match order {
        None | Some(Order::Weak) => return 0,
        Some(Order::Volatile | Order::Mmio) => return 1,
        Some(Order::Relaxed) => 1,
        Some(Order::Acquire) => 2,
        Some(Order::Release) => 3,
        Some(Order::AcquireRelease | Order::Sequential) => 4,
    };
    1 + 2 * kind + i32::from(block)
}

fn order_of(number: i32) -> shadow::Order {
    let scope = if number % 2 == 0 { shadow::Scope::Block } else { shadow::Scope::Device };
    match number {
        0 => shadow::Order::Weak,
        CONSTANT => shadow::Order::Constant,
        1 | 2 => shadow::Order::Relaxed(scope),
        3 | 4 => shadow::Order::Unordered(scope),
        5 | 6 => shadow::Order::Acquire(scope),
        7 | 8 => shadow::Order::Release(scope),
        _ => shadow::Order::AcquireRelease(scope),
    }
}

/// What a sanitizer found, or nothing.
#[inline(always)]
pub fn found(finding: Option<Finding>, space: Space, action: Action, context: &Context<'_>) -> Result<(), Trouble> {
    match finding {
        None => Ok(()),
        Some(finding) => told(finding, space, action, context),
    }
}

#[cold]
#[inline(never)]
fn told(finding: Finding, space: Space, action: Action, context: &Context<'_>) -> Result<(), Trouble> {
    let wanted = context.launch.sanitizers;
    let told = match finding {
        Finding::Race(_) => wanted.races,
        Finding::Uninitialised { .. } => wanted.initialisation,
        Finding::InputWritten { .. } => wanted.inputs,
    };
    if told { Err(Trouble::Found { finding, space, action }) } else { Ok(()) }
}

/// Rows that four words of every lane go to.
pub type Rows = [*mut [u32; LANES]; 4];

/// A memory that an instruction accesses.
pub trait Memory {
    /// Loads an element of 4 or 8 bytes for every lane from places that follow each other, where that is quickly done and
    /// nothing need be watched.
    #[inline(always)]
    fn load_run<T: Element>(_: &Context<'_>, _op: &Op, _first: u64, _out: &mut [T; LANES]) -> bool {
        false
    }

    /// As `load_run`, a store.
    #[inline(always)]
    fn store_run<T: Element>(_: &mut Context<'_>, _who: Access, _first: u64, _values: &[T; LANES]) -> bool {
        false
    }

    /// Loads a word of every lane from places 16 bytes apart, as `load_run` does.
    #[inline(always)]
    fn load_column(_: &Context<'_>, _op: &Op, _first: u64, _out: &mut [u32; LANES]) -> bool {
        false
    }

    /// Loads four words of every lane from its place in 32 bits plus an offset, as `load_run` does.
    ///
    /// # Safety
    ///
    /// The rows are valid for writes.
    #[inline(always)]
    unsafe fn load_fours(_: &Context<'_>, _places: &[u32; LANES], _offset: u32, _: Rows) -> bool {
        false
    }

    /// Loads `N` elements a lane.
    fn load<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Trouble>;

    /// Stores `N` elements a lane.
    fn store<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Trouble>;
}

/// All addresses, so many bytes further.
#[inline(always)]
pub fn moved(addresses: &[u64; LANES], by: u64) -> [u64; LANES] {
    let mut moved = [0; LANES];
    for lane in 0..LANES {
        moved[lane] = addresses[lane].wrapping_add(by);
    }
    moved
}

/// In `b` of an access: its address register has 32 bits, in which the sum wraps.
pub const NARROW: i32 = 1 << 8;

/// The addresses of an instruction: register `a` plus `imm`.
#[inline(always)]
pub fn addresses(warp: &Warp, op: &Op) -> [u64; LANES] {
    moved(warp.registers.stored::<u64>(op.a), op.imm)
}

/// The addresses of an access whose `b` says how wide they are.
#[inline(always)]
pub fn addresses_of_access(warp: &Warp, op: &Op) -> [u64; LANES] {
    if op.b & NARROW != 0 {
        let base = warp.registers.stored::<u32>(op.a);
        let mut addresses = [0; LANES];
        for lane in 0..LANES {
            addresses[lane] = u64::from(base[lane].wrapping_add(op.imm as u32));
        }
        return addresses;
    }
    addresses(warp, op)
}

/// The first address of an access whose lanes follow each other by so many bytes.
#[inline(always)]
fn first_of_run(warp: &Warp, op: &Op, size: usize) -> Option<u64> {
    if op.b & NARROW != 0 {
        let base = warp.registers.stored::<u32>(op.a);
        let mut apart = [0; LANES];
        for lane in 0..LANES {
            apart[lane] = base[lane].wrapping_sub(base[0]) ^ (lane * size) as u32;
        }
        let apart = apart.iter().fold(0, |all, one| all | one);
        return (apart == 0).then(|| u64::from(base[0].wrapping_add(op.imm as u32)));
    }
    let base = warp.registers.stored::<u64>(op.a);
    consecutive(base, size as u64).then(|| base[0].wrapping_add(op.imm))
}

/// `a`, `imm` and `b` of an access, for [`addresses_of_access`].
pub fn place(d: &mut Decoder<'_>, address: Address) -> (i32, u64, i32) {
    match address.register {
        Some((register, 32)) => (register, address.offset, NARROW),
        _ => {
            let (a, imm) = d.wide_address(address);
            (a, imm, 0)
        }
    }
}

/// The access of an instruction: `e` is its cache, `b` its order.
#[inline(always)]
pub fn access(warp: &Warp, context: &Context<'_>, op: &Op) -> Access {
    let demand = match context.shadow {
        Some(_) => context.code.demands[op.e as usize],
        None => Demand::default(),
    };
    let wanted = demand::reached(warp.registers.truth(demand.lanes), demand.across);
    let who = Access::of(warp.index, op.e, op.b & (NARROW - 1));
    Access { wanted, needed: demand.bytes, alike: demand.alike, ..who }
}

/// How a register keeps an element that was loaded.
pub trait Widen<T>: Lane {
    /// The element, extended.
    fn widen(element: T) -> Self::Store;
    /// The element in the low bits.
    fn narrow(stored: Self::Store) -> T;
}

macro_rules! widen {
    ($($lane:ty, $element:ty, $x:ident, $to:expr, $from:expr;)*) => {$(
        impl Widen<$element> for $lane {
            #[inline(always)]
            fn widen($x: $element) -> Self::Store {
                $to
            }
            #[inline(always)]
            fn narrow($x: Self::Store) -> $element {
                $from
            }
        }
    )*};
}

/// A signed byte: extended to the 16 bits of its register.
#[derive(Clone, Copy, Default)]
pub struct SignedByte;

impl Lane for SignedByte {
    type Store = u32;
    fn unpack(_: u32) -> Self {
        Self
    }
    fn pack(self) -> u32 {
        0
    }
    fn stored(bits: u128) -> u32 {
        bits as u32
    }
    #[inline(always)]
    fn mix(whole: u32, new: u32, old: u32) -> u32 {
        u32::mix(whole, new, old)
    }
}

widen! {
    u8, u8, x, u32::from(x), x as u8;
    SignedByte, u8, x, u32::from(i16::from(x as i8) as u16), x as u8;
    u16, u16, x, u32::from(x), x as u16;
    u32, u32, x, x, x;
    u64, u64, x, x, x;
    u128, u128, x, x, x;
}

/// The quick road in a function of its own, which needs no more of the host's stack than it uses itself.
macro_rules! quick_then_any {
    () => {
        #[cfg(target_arch = "x86_64")]
        const WIDE: Option<Run> = match N {
            1 | 4 => Some(Self::run_quick_then_any),
            _ => None,
        };

        #[inline(always)]
        fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
            match Self::run_quick(warp, context, op, mask) {
                true => Signal::Next,
                false => Self::run_any(warp, context, op, mask),
            }
        }
    };
}

macro_rules! quick_then_any_wide {
    ($name:ident) => {
        #[cfg(target_arch = "x86_64")]
        impl<M: Memory, T: Element, L: Widen<T>, const N: usize> $name<M, T, L, N> {
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,popcnt,lzcnt")]
            unsafe fn run_quick_then_any(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
                match Self::run_quick(warp, context, op, mask) {
                    true => Signal::Next,
                    // SAFETY: the same features.
                    false => unsafe { Self::run_any_wide(warp, context, op, mask) },
                }
            }

            #[inline(never)]
            #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,popcnt,lzcnt")]
            unsafe fn run_any_wide(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
                Self::run_any(warp, context, op, mask)
            }
        }
    };
}

quick_then_any_wide!(Load);
quick_then_any_wide!(Store);

/// `{list} = [a + imm]`: `e` is the cache; the first register is `d`, the others follow in the list that `c` begins.
pub struct Load<M, T, L, const N: usize>(PhantomData<(M, T, L)>);

impl<M: Memory, T: Element, L: Widen<T>, const N: usize> Load<M, T, L, N> {
    /// Whether registers hold the elements as they are.
    const WHOLE: bool = size_of::<T>() == size_of::<L::Store>();

    /// Loads for a whole warp from places that follow each other.
    #[inline(always)]
    fn run_quick(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> bool {
        if !Self::WHOLE || mask != FULL || !matches!((size_of::<T>(), N), (4 | 8, 1) | (4, 4)) {
            return false;
        }
        if N == 4 {
            return op.b & NARROW != 0 && Self::run_fours(warp, context, op);
        }
        let Some(first) = first_of_run(warp, op, size_of::<T>()) else {
            return size_of::<T>() == 4 && Self::run_column(warp, context, op);
        };
        // SAFETY: a register holds an element of its own size as it is, and nothing else sees it meanwhile.
        let row = unsafe { &mut *std::ptr::from_mut(warp.registers.row_mut::<L>(op.d)).cast::<[T; LANES]>() };
        M::load_run(context, op, first, row)
    }

    /// Loads one of four words of every lane, as where each thread takes four elements side by side.
    #[inline(always)]
    fn run_column(warp: &mut Warp, context: &Context<'_>, op: &Op) -> bool {
        if op.b & NARROW != 0 {
            return false;
        }
        let base = warp.registers.stored::<u64>(op.a);
        if !consecutive(base, 16) {
            return false;
        }
        let first = base[0].wrapping_add(op.imm);
        M::load_column(context, op, first, warp.registers.row_mut::<u32>(op.d))
    }

    #[inline(always)]
    fn run_fours(warp: &mut Warp, context: &Context<'_>, op: &Op) -> bool {
        let list = &context.code.lists[op.c as usize..][..4];
        // A copy: what is loaded may go to the register of the places.
        let places = *warp.registers.stored::<u32>(op.a);
        let rows = [0, 1, 2, 3].map(|element| std::ptr::from_mut(warp.registers.row_mut::<u32>(list[element])));
        // SAFETY: rows of the warp's own.
        unsafe { M::load_fours(context, &places, op.imm as u32, rows) }
    }

    #[inline(always)]
    fn run_any(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let addresses = addresses_of_access(warp, op);
        let who = access(warp, context, op);
        if Self::WHOLE && N == 1 && mask == FULL {
            // SAFETY: as in `run_quick`.
            let row = unsafe { &mut *std::ptr::from_mut(warp.registers.row_mut::<L>(op.d)).cast::<[[T; LANES]; N]>() };
            return match M::load(context, who, &addresses, mask, row) {
                Ok(()) => Signal::Next,
                Err(trouble) => {
                    context.trouble = Some(trouble);
                    Signal::Fault
                }
            };
        }
        let mut out = [[T::default(); LANES]; N];
        if let Err(trouble) = M::load(context, who, &addresses, mask, &mut out) {
            context.trouble = Some(trouble);
            return Signal::Fault;
        }
        for (element, values) in out.iter().enumerate() {
            let d = if N == 1 { op.d } else { context.code.lists[op.c as usize + element] };
            if Self::WHOLE {
                // SAFETY: an element as the register holds it.
                let stored = unsafe { &*std::ptr::from_ref(values).cast::<[L::Store; LANES]>() };
                warp.registers.write::<L>(d, stored, mask);
                continue;
            }
            let mut stored = [L::Store::default(); LANES];
            for lane in 0..LANES {
                stored[lane] = L::widen(values[lane]);
            }
            warp.registers.write::<L>(d, &stored, mask);
        }
        Signal::Next
    }
}

impl<M: Memory, T: Element, L: Widen<T>, const N: usize> Body for Load<M, T, L, N> {
    quick_then_any!();
}

/// `[a + imm] = {list}`: as `Load`, with `d` the value.
pub struct Store<M, T, L, const N: usize>(PhantomData<(M, T, L)>);

impl<M: Memory, T: Element, L: Widen<T>, const N: usize> Store<M, T, L, N> {
    /// Stores for a whole warp to places that follow each other.
    #[inline(always)]
    fn run_quick(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> bool {
        let whole = size_of::<T>() == size_of::<L::Store>();
        let strong = op.b & (NARROW - 1) != 0;
        if !whole || strong || N != 1 || mask != FULL || !matches!(size_of::<T>(), 4 | 8) {
            return false;
        }
        let Some(first) = first_of_run(warp, op, size_of::<T>()) else { return false };
        // SAFETY: a register holds an element of its own size as it is.
        let row = unsafe { &*std::ptr::from_ref(warp.registers.stored::<L>(op.d)).cast::<[T; LANES]>() };
        M::store_run(context, Access::of(warp.index, op.e, 0), first, row)
    }

    #[inline(always)]
    fn run_any(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let addresses = addresses_of_access(warp, op);
        let mut values = [[T::default(); LANES]; N];
        for (element, row) in values.iter_mut().enumerate() {
            let d = if N == 1 { op.d } else { context.code.lists[op.c as usize + element] };
            let stored = warp.registers.stored::<L>(d);
            for lane in 0..LANES {
                row[lane] = L::narrow(stored[lane]);
            }
        }
        let who = access(warp, context, op);
        match M::store(context, who, &addresses, mask, &values) {
            Ok(()) if who.order != 0 => context.told(),
            Ok(()) => Signal::Next,
            Err(trouble) => {
                context.trouble = Some(trouble);
                Signal::Fault
            }
        }
    }
}

impl<M: Memory, T: Element, L: Widen<T>, const N: usize> Body for Store<M, T, L, N> {
    quick_then_any!();
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Ld | Opcode::Ldu | Opcode::St => load_or_store(d),
        // Hints: the addresses are not touched.
        Opcode::Prefetch | Opcode::Prefetchu | Opcode::Applypriority | Opcode::Discard => Ok(()),
        Opcode::Createpolicy => {
            let to = d.destination::<u64>(0, false)?;
            let zero = d.constant::<u64>(0);
            d.copy::<u64>(to, zero);
            Ok(())
        }
        _ => refuse("it is not known"),
    }
}

/// The parts of an operand that may be a vector.
fn parts(d: &Decoder<'_>, index: usize) -> Decoded<Vec<Operand>> {
    Ok(match d.operand(index)? {
        Operand::Vector(range) => d.function.inside(range).to_vec(),
        operand => vec![operand.clone()],
    })
}

fn load_or_store(d: &mut Decoder<'_>) -> Decoded {
    let load = d.opcode() != Opcode::St;
    if d.form.has(Word::Bulk) || d.form.has(Word::Async) {
        return refuse("asynchronous stores are not executed yet");
    }
    if d.form.has(Word::SharedCluster) && d.form.has(Word::Async) {
        return refuse("memory of other blocks is not executed yet");
    }
    let ty = d.ty()?;
    let ordered = !matches!(d.form.order, None | Some(Order::Weak));
    let space = d.form.space;
    if ordered && !matches!(space, Some(Space::Shared | Space::Local)) {
        d.ordered = true;
    }
    let address = d.address(usize::from(load))?;
    let values = parts(d, usize::from(!load))?;
    if space == Some(Space::Parameter) {
        return parameters(d, ty, load, address, &values);
    }
    let (a, imm, narrow) = place(d, address);
    let e = if load { d.load_cache(ty.bytes())? } else { d.store_cache() };
    // `ld.volatile` and its like are relaxed at least.
    let b = match load && d.form.has(Word::Nc) {
        true => CONSTANT | narrow,
        false => order_number(d.form.order, d.form.scope) | narrow,
    };
    let base = Op { a, b, imm, e, ..d.op_of::<crate::emulate::ops::control::Branch>() };
    match space {
        Some(Space::Global | Space::Constant) => sized::<InGlobal>(d, ty, load, base, &values),
        Some(Space::Shared) => sized::<InShared>(d, ty, load, base, &values),
        Some(Space::Local) => sized::<InLocal>(d, ty, load, base, &values),
        None => sized::<Generic>(d, ty, load, base, &values),
        _ => refuse("there is no such memory"),
    }
}

fn sized<M: Memory>(d: &mut Decoder<'_>, ty: ScalarType, load: bool, op: Op, values: &[Operand]) -> Decoded {
    // No access is wider than 32 bytes a lane.
    match (ty.bits(), ty.is_signed(), values.len()) {
        (8, true, 1) => counted::<M, u8, SignedByte, 1>(d, ty, load, op, values),
        (8, true, 2) => counted::<M, u8, SignedByte, 2>(d, ty, load, op, values),
        (8, true, 4) => counted::<M, u8, SignedByte, 4>(d, ty, load, op, values),
        (8, false, 1) => counted::<M, u8, u8, 1>(d, ty, load, op, values),
        (8, false, 2) => counted::<M, u8, u8, 2>(d, ty, load, op, values),
        (8, false, 4) => counted::<M, u8, u8, 4>(d, ty, load, op, values),
        (16, _, 1) => counted::<M, u16, u16, 1>(d, ty, load, op, values),
        (16, _, 2) => counted::<M, u16, u16, 2>(d, ty, load, op, values),
        (16, _, 4) => counted::<M, u16, u16, 4>(d, ty, load, op, values),
        (32, _, 1) => counted::<M, u32, u32, 1>(d, ty, load, op, values),
        (32, _, 2) => counted::<M, u32, u32, 2>(d, ty, load, op, values),
        (32, _, 4) => counted::<M, u32, u32, 4>(d, ty, load, op, values),
        (32, _, 8) => counted::<M, u32, u32, 8>(d, ty, load, op, values),
        (64, _, 1) => counted::<M, u64, u64, 1>(d, ty, load, op, values),
        (64, _, 2) => counted::<M, u64, u64, 2>(d, ty, load, op, values),
        (64, _, 4) => counted::<M, u64, u64, 4>(d, ty, load, op, values),
        (128, _, 1) => counted::<M, u128, u128, 1>(d, ty, load, op, values),
        _ => refuse("it has no such type"),
    }
}

fn counted<M: Memory, T: Element, L: Widen<T>, const N: usize>(
    d: &mut Decoder<'_>,
    ty: ScalarType,
    load: bool,
    op: Op,
    values: &[Operand],
) -> Decoded {
    let registers = values
        .iter()
        .map(|value| match load {
            true => destination::<L>(d, ty, value),
            false => d.source_of::<L>(value),
        })
        .collect::<Decoded<Vec<_>>>()?;
    let c = if N > 1 { d.list(registers.iter().copied()) } else { 0 };
    let run = match load {
        true => d.op_of::<Load<M, T, L, N>>().run,
        false => d.op_of::<Store<M, T, L, N>>().run,
    };
    let touch = Touch {
        space: d.form.space,
        bytes: (size_of::<T>() * N) as u32,
        narrow: op.b & NARROW != 0,
        offset: op.imm,
        action: if load { Action::Read } else { Action::Write },
        ordered: op.b & (NARROW - 1) != 0,
    };
    d.emit_access(Op { run, d: registers[0], c, ..op }, touch);
    Ok(())
}

/// Where a loaded value goes. A register wider than the type gets it extended by the type's sign.
fn destination<L: Lane>(d: &mut Decoder<'_>, ty: ScalarType, operand: &Operand) -> Decoded<i32> {
    let wider = match operand {
        Operand::Register(register) => d.function.register(*register).ty.bits() == 32,
        _ => false,
    };
    if wider && ty.is_signed() && ty.bits() < 32 {
        let to = d.destination_of::<u32>(operand, true)?;
        let narrow = d.temporary::<u32>();
        let op = super::moves::unary_op(d, |_, x: i16| i32::from(x));
        d.emit_after(Op { d: to, a: narrow, ..op });
        return Ok(narrow);
    }
    if !wider && ty.is_signed() && ty.bits() < 32 && L::ROWS == 1 {
        // A register of 64 bits is extended from the 16 bits that hold the value.
        if let Operand::Register(register) = operand
            && d.function.register(*register).ty.bits() == 64
        {
            let to = d.slot(*register);
            let narrow = d.temporary::<u32>();
            let op = super::moves::unary_op(d, |_, x: i16| i64::from(x));
            d.emit_after(Op { d: to, a: narrow, ..op });
            return Ok(narrow);
        }
    }
    d.destination_of::<L>(operand, ty.is_signed())
}
