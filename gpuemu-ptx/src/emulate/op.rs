//! One decoded instruction, and the loops over lanes that all arithmetic is made of.
//!
//! An instruction is a pointer to a function and the registers it works on. The function is one of the templates below
//! around a closure of scalars, compiled twice: for any host, and for hosts with AVX2 and FMA.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::context::Context;
use super::registers::{FULL, LANES, Lane};
use super::warp::Warp;

/// What happens after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Signal {
    /// The next one.
    Next,
    /// The lanes of the mask jump to `target`.
    Branch,
    /// The lanes of the mask jump, each to the place in [`Warp::places`].
    Indirect,
    /// The lanes of the mask call the function at `target`.
    Call,
    /// The lanes of the mask call, each the function of [`Warp::places`].
    IndirectCall,
    /// The lanes of the mask return from their function.
    Return,
    /// The lanes of the mask leave the kernel.
    Exit,
    /// The instruction needs lanes that are not here yet: [`Warp::wanted`] names them.
    Gather,
    /// The lanes wait at a barrier of the block: [`Warp::arrivals`] of their first lane.
    Barrier,
    /// Another may run first: the lanes go on with the next instruction later.
    Yield,
    /// All operations of a run were executed: `d` of the operation says how many.
    Run,
    /// Something is wrong: [`Context::problem`] says what.
    Fault,
}

/// Executes an instruction in the lanes of a mask, which has at least one.
///
/// # Safety
///
/// The host has the features the function was picked for, and the warp runs the code that the instruction is of.
pub type Run = unsafe fn(&mut Warp, &mut Context<'_>, &Op, u32) -> Signal;

/// One decoded instruction.
#[derive(Clone, Copy)]
pub struct Op {
    /// What executes it.
    pub run: Run,
    /// A number that it needs: an offset, flags.
    pub imm: u64,
    /// Where its result goes.
    pub d: i32,
    /// Its operands: registers or predicates.
    pub a: i32,
    /// The second.
    pub b: i32,
    /// The third.
    pub c: i32,
    /// The fourth, or the first of a list in [`super::code::Code::lists`].
    pub e: i32,
    /// The predicate it is executed under: 0, which always holds, for none.
    pub guard: i32,
}

/// What an instruction does, as a type.
pub trait Body {
    /// What executes it on hosts with AVX2 and its like, where that is written out for them.
    const WIDE: Option<Run> = None;

    /// Executes it in the lanes of a mask.
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal;
}

unsafe fn plain<B: Body>(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
    B::run(warp, context, op, mask)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c,popcnt,lzcnt")]
unsafe fn wide<B: Body>(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
    B::run(warp, context, op, mask)
}

/// Whether the host has what the wide functions need.
pub fn host_is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("f16c")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("lzcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The function that executes `B` on this host.
pub fn pick<B: Body>(wide_host: bool) -> Run {
    #[cfg(target_arch = "x86_64")]
    if wide_host {
        return B::WIDE.unwrap_or(wide::<B>);
    }
    let _ = wide_host;
    plain::<B>
}

/// A closure without captures, out of its type.
#[inline(always)]
pub(super) fn closure<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "an instruction's closure captures nothing") };
    // SAFETY: a type without size has one value; the decoder had a closure of this type in hand, and it can be copied.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

macro_rules! elementwise {
    ($(#[$doc:meta])* $name:ident, $($ty:ident $field:ident),*) => {
        $(#[$doc])*
        pub struct $name<F, D, $($ty),*>(PhantomData<(F, D, $($ty),*)>);

        impl<F: Fn(u64, $($ty),*) -> D + Copy, D: Lane, $($ty: Lane),*> Body for $name<F, D, $($ty),*> {
            #[inline(always)]
            fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
                let f = closure::<F>();
                $(let $field = warp.registers.stored::<$ty>(op.$field);)*
                // A loop over all lanes into memory of its own becomes vector code, whatever the closure is; the result may
                // be one of the operands.
                let mut out = MaybeUninit::<[D::Store; LANES]>::uninit();
                let lanes = out.as_mut_ptr().cast::<D::Store>();
                for lane in 0..LANES {
                    // SAFETY: there are so many lanes.
                    unsafe { lanes.add(lane).write(f(op.imm, $($ty::unpack($field[lane])),*).pack()) };
                }
                // SAFETY: written just now.
                warp.registers.write::<D>(op.d, unsafe { out.assume_init_ref() }, mask);
                Signal::Next
            }
        }
    };
}

elementwise!(
    /// `d = f(imm, a)`.
    Unary, A a
);
elementwise!(
    /// `d = f(imm, a, b)`.
    Binary, A a, B b
);
elementwise!(
    /// `d = f(imm, a, b, c)`.
    Ternary, A a, B b, C c
);
elementwise!(
    /// `d = f(imm, a, b, c, e)`.
    Quaternary, A a, B b, C c, E e
);

/// What a function of whole rows computes: a type, since closures as large as these are not inlined.
pub trait OnRows<const N: usize> {
    /// The result of every lane.
    fn apply(operands: [&[u32; LANES]; N], out: &mut [u32; LANES]);
}

/// `d = F(operands)` on all lanes at once.
#[inline(always)]
fn on_rows<F: OnRows<N>, const N: usize>(warp: &mut Warp, op: &Op, operands: [i32; N], mask: u32) -> Signal {
    if mask == FULL && !operands.contains(&op.d) {
        let out: *mut [u32; LANES] = warp.registers.row_mut::<u32>(op.d);
        let operands = operands.map(|register| warp.registers.stored::<u32>(register));
        // SAFETY: a row of the warp's own that is none of the operands: registers share a row or none.
        F::apply(operands, unsafe { &mut *out });
        return Signal::Next;
    }
    let mut out = [0; LANES];
    F::apply(operands.map(|register| warp.registers.stored::<u32>(register)), &mut out);
    warp.registers.write::<u32>(op.d, &out, mask);
    Signal::Next
}

/// `d = F(a)` on all lanes at once.
pub struct UnaryRow<F>(PhantomData<F>);

impl<F: OnRows<1>> Body for UnaryRow<F> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        on_rows::<F, 1>(warp, op, [op.a], mask)
    }
}

/// `d = F(a, b)` on all lanes at once.
pub struct BinaryRow<F>(PhantomData<F>);

impl<F: OnRows<2>> Body for BinaryRow<F> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        on_rows::<F, 2>(warp, op, [op.a, op.b], mask)
    }
}

/// The lanes whose word is all ones, not zero.
#[inline(always)]
fn lanes_of(words: &[u32; LANES]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: x86-64 has SSE2, and 32 words are eight vectors.
    return unsafe {
        use std::arch::x86_64::*;
        let at = words.as_ptr().cast::<__m128i>();
        let two = |part: usize| _mm_packs_epi32(_mm_loadu_si128(at.add(part)), _mm_loadu_si128(at.add(part + 1)));
        let low = _mm_movemask_epi8(_mm_packs_epi16(two(0), two(2))) as u32;
        let high = _mm_movemask_epi8(_mm_packs_epi16(two(4), two(6))) as u32;
        low | high << 16
    };
    #[cfg(not(target_arch = "x86_64"))]
    words.iter().enumerate().fold(0, |all, (lane, word)| all | word & 1 << lane)
}

/// `d = f(imm, a, b)` with a predicate as result, then combined with predicate `c` as `setp` does: bits 62 and 63 of
/// `imm` say how (0 and, 1 or, 2 exclusive or), and predicate `e` gets the combination with the opposite.
pub struct Compare<F, A, B>(PhantomData<(F, A, B)>);

impl<F: Fn(u64, A, B) -> bool + Copy, A: Lane, B: Lane> Body for Compare<F, A, B> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let f = closure::<F>();
        let (a, b) = (warp.registers.stored::<A>(op.a), warp.registers.stored::<B>(op.b));
        // A word of each lane first, then their bits: a loop that becomes vector code.
        let mut words = [0; LANES];
        for lane in 0..LANES {
            words[lane] = if f(op.imm, A::unpack(a[lane]), B::unpack(b[lane])) { u32::MAX } else { 0 };
        }
        let holds = lanes_of(&words);
        let with = warp.registers.truth(op.c);
        let combine = |x: u32| match op.imm >> 62 {
            0 => x & with,
            1 => x | with,
            _ => x ^ with,
        };
        warp.registers.set_truth(op.d, combine(holds), mask);
        if op.e != 0 {
            warp.registers.set_truth(op.e, combine(!holds), mask);
        }
        Signal::Next
    }
}

/// `d = f(a, b, carry)` and a new carry: `add.cc` and its like. Bit 0 of `imm`: the flag is read, else it is bit 1; bit
/// 2: the flag is written.
pub struct Carrying<F, A>(PhantomData<(F, A)>);

impl<F: Fn(A, A, bool) -> (A, bool) + Copy, A: Lane> Body for Carrying<F, A> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let f = closure::<F>();
        let carry = match op.imm & 1 {
            0 => 0u32.wrapping_sub((op.imm >> 1 & 1) as u32),
            _ => warp.carry,
        };
        let (a, b) = (warp.registers.stored::<A>(op.a), warp.registers.stored::<A>(op.b));
        let mut out = [A::Store::default(); LANES];
        let mut carries = 0;
        for lane in 0..LANES {
            let (value, carry) = f(A::unpack(a[lane]), A::unpack(b[lane]), carry >> lane & 1 != 0);
            out[lane] = value.pack();
            carries |= u32::from(carry) << lane;
        }
        warp.registers.write::<A>(op.d, &out, mask);
        if op.imm & 4 != 0 {
            warp.carry = warp.carry & !mask | carries & mask;
        }
        Signal::Next
    }
}

/// `d = c ? a : b`, with a predicate.
pub struct Select<A>(PhantomData<A>);

impl<A: Lane> Body for Select<A> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let first = warp.registers.truth(op.c);
        let (a, b) = (warp.registers.stored::<A>(op.a), warp.registers.stored::<A>(op.b));
        let mut out = MaybeUninit::<[A::Store; LANES]>::uninit();
        let lanes = out.as_mut_ptr().cast::<A::Store>();
        for lane in 0..LANES {
            let whole = (first << (31 - lane)) as i32 >> 31;
            // SAFETY: there are so many lanes.
            unsafe { lanes.add(lane).write(A::mix(whole as u32, a[lane], b[lane])) };
        }
        // SAFETY: written just now.
        warp.registers.write::<A>(op.d, unsafe { out.assume_init_ref() }, mask);
        Signal::Next
    }
}

/// `d = f(a, b)` on predicates, a word at once.
pub struct Truths<F>(PhantomData<F>);

impl<F: Fn(u32, u32) -> u32 + Copy> Body for Truths<F> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let value = closure::<F>()(warp.registers.truth(op.a), warp.registers.truth(op.b));
        warp.registers.set_truth(op.d, value, mask);
        Signal::Next
    }
}

/// `d = f(a, predicate b)`: a predicate as an operand beside a register.
pub struct FromTruth<F, D>(PhantomData<(F, D)>);

impl<F: Fn(u64, bool) -> D + Copy, D: Lane> Body for FromTruth<F, D> {
    #[inline(always)]
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let f = closure::<F>();
        let truth = warp.registers.truth(op.a);
        let mut out = [D::Store::default(); LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            *out = f(op.imm, truth >> lane & 1 != 0).pack();
        }
        warp.registers.write::<D>(op.d, &out, mask);
        Signal::Next
    }
}
