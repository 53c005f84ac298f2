//! The memories that loads and stores go to, and what is watched there.

use super::{Access, Memory, NARROW, Rows, found, moved};
use crate::emulate::context::Context;
use crate::emulate::op::Op;
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::fault::Action;
use crate::memory::{Element, LOCAL_WINDOW, Problem, ProblemKind, SHARED_WINDOW, Window};
use crate::program::Space;

#[cold]
fn refused(space: Space, write: bool) -> impl Fn(Problem) -> Trouble {
    move |problem| Trouble::Access { problem, space, write }
}

/// `.global`, `.const`.
pub struct InGlobal;
/// `.shared`.
pub struct InShared;
/// `.local`.
pub struct InLocal;
/// No space written: as the address says.
pub struct Generic;
/// `.param` of an entry.
pub struct InParameters;

impl Memory for InGlobal {
    #[inline(always)]
    fn load_run<T: Element>(context: &Context<'_>, op: &Op, first: u64, out: &mut [T; LANES]) -> bool {
        let cache = &context.caches[op.e as usize];
        match context.shadow {
            None => context.global.load_run(cache, first, out),
            // An ordered access may make what others did be before this.
            Some(_) => op.b & (NARROW - 1) == 0 && context.global.load_settled_run(cache, first, out),
        }
    }
    #[inline(always)]
    fn load_column(context: &Context<'_>, op: &Op, first: u64, out: &mut [u32; LANES]) -> bool {
        let cache = &context.caches[op.e as usize];
        let settled = context.shadow.is_some();
        (!settled || op.b & (NARROW - 1) == 0) && context.global.load_column(cache, first, settled, out)
    }
    #[inline(always)]
    fn store_run<T: Element>(context: &mut Context<'_>, who: Access, first: u64, values: &[T; LANES]) -> bool {
        let cache = &context.caches[who.cache as usize];
        let recorded = match &mut context.shadow {
            None => true,
            Some(shadow) => who.order == 0 && shadow.store_run(cache, who.instruction(), first, size_of::<T>() as u32),
        };
        recorded && context.global.store_run(cache, first, values)
    }
    #[inline(always)]
    fn load<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Trouble> {
        let global = context.global;
        if let Some(shadow) = &mut context.shadow {
            let cache = &mut context.caches[access.cache as usize];
            if access.order == 0 && global.load_settled(cache, addresses, mask, out) {
                return Ok(());
            }
            let bytes = (size_of::<T>() * N) as u32;
            let finding =
                shadow.load(cache, access.instruction(), addresses, mask & access.wanted, bytes, access.needed);
            found(finding, Space::Global, Action::Read, context)?;
        }
        let cache = &mut context.caches[access.cache as usize];
        global.load(cache, addresses, mask, out).map_err(refused(Space::Global, false))
    }
    #[inline(always)]
    fn store<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Trouble> {
        let global = context.global;
        if let Some(shadow) = &mut context.shadow {
            let cache = &mut context.caches[access.cache as usize];
            let finding = shadow.store(cache, access.instruction(), addresses, mask, values);
            found(finding, Space::Global, Action::Write, context)?;
        }
        let cache = &mut context.caches[access.cache as usize];
        global.store(cache, addresses, mask, values).map_err(refused(Space::Global, true))
    }
}

impl Memory for InShared {
    #[inline(always)]
    unsafe fn load_fours(context: &Context<'_>, places: &[u32; LANES], offset: u32, rows: Rows) -> bool {
        // SAFETY: the caller's.
        context.shadow.is_none() && unsafe { context.block.shared.load_fours(places, offset, rows) }
    }
    #[inline(always)]
    fn load_run<T: Element>(context: &Context<'_>, _: &Op, first: u64, out: &mut [T; LANES]) -> bool {
        context.shadow.is_none() && context.block.shared.load_run(first, out)
    }
    #[inline(always)]
    fn store_run<T: Element>(context: &mut Context<'_>, _: Access, first: u64, values: &[T; LANES]) -> bool {
        context.shadow.is_none() && context.block.shared.store_run(first, values)
    }
    #[inline(always)]
    fn load<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Trouble> {
        if let Some(shadow) = &mut context.shadow {
            let bytes = (size_of::<T>() * N) as u32;
            let wanted = mask & access.wanted;
            let finding = shadow.load_shared(access.instruction(), addresses, wanted, bytes, access.needed);
            found(finding, Space::Shared, Action::Read, context)?;
        }
        context.block.shared.load(addresses, mask, out).map_err(refused(Space::Shared, false))
    }
    #[inline(always)]
    fn store<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Trouble> {
        if let Some(shadow) = &mut context.shadow {
            let memory = &context.block.shared;
            let finding = shadow.store_shared(memory, access.instruction(), addresses, mask, values);
            found(finding, Space::Shared, Action::Write, context)?;
        }
        context.block.shared.store(addresses, mask, values).map_err(refused(Space::Shared, true))
    }
}

/// An access to local memory where a thread has none.
#[cold]
pub fn no_local(addresses: &[u64; LANES], mask: u32, bytes: usize, write: bool) -> Trouble {
    let lane = mask.trailing_zeros() as usize % LANES;
    let problem =
        Problem { lane: lane as u8, kind: ProblemKind::Unmapped, address: addresses[lane], bytes: bytes as u32 };
    Trouble::Access { problem, space: Space::Local, write }
}

impl Memory for InLocal {
    #[inline(always)]
    fn load<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Trouble> {
        match &context.block.local {
            Some(local) => local.load(access.warp, addresses, mask, out).map_err(refused(Space::Local, false)),
            None => Err(no_local(addresses, mask, size_of::<T>() * N, false)),
        }
    }
    #[inline(always)]
    fn store<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Trouble> {
        match &mut context.block.local {
            Some(local) => local.store(access.warp, addresses, mask, values).map_err(refused(Space::Local, true)),
            None => Err(no_local(addresses, mask, size_of::<T>() * N, true)),
        }
    }
}

impl Memory for Generic {
    #[inline(always)]
    fn load<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Trouble> {
        let [global, shared, local] = Window::split(addresses, mask);
        if global != 0 {
            InGlobal::load(context, access, addresses, global, out)?;
        }
        if shared != 0 {
            let inside = moved(addresses, SHARED_WINDOW.wrapping_neg());
            InShared::load(context, access, &inside, shared, out)?;
        }
        if local != 0 {
            let inside = moved(addresses, LOCAL_WINDOW.wrapping_neg());
            InLocal::load(context, access, &inside, local, out)?;
        }
        Ok(())
    }
    #[inline(always)]
    fn store<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Trouble> {
        let [global, shared, local] = Window::split(addresses, mask);
        if global != 0 {
            InGlobal::store(context, access, addresses, global, values)?;
        }
        if shared != 0 {
            let inside = moved(addresses, SHARED_WINDOW.wrapping_neg());
            InShared::store(context, access, &inside, shared, values)?;
        }
        if local != 0 {
            let inside = moved(addresses, LOCAL_WINDOW.wrapping_neg());
            InLocal::store(context, access, &inside, local, values)?;
        }
        Ok(())
    }
}

impl Memory for InParameters {
    #[inline(always)]
    fn load<T: Element, const N: usize>(
        context: &mut Context<'_>,
        access: Access,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Trouble> {
        let base = context.launch.parameter_base;
        let inside = moved(addresses, base);
        let global = context.global;
        let problem = refused(Space::Parameter, false);
        global.load(&mut context.caches[access.cache as usize], &inside, mask, out).map_err(problem)
    }
    #[inline(always)]
    fn store<T: Element, const N: usize>(
        _: &mut Context<'_>,
        _: Access,
        addresses: &[u64; LANES],
        mask: u32,
        _: &[[T; LANES]; N],
    ) -> Result<(), Trouble> {
        let lane = mask.trailing_zeros() as usize % LANES;
        let bytes = (size_of::<T>() * N) as u32;
        let problem = Problem { lane: lane as u8, kind: ProblemKind::ReadOnly, address: addresses[lane], bytes };
        Err(Trouble::Access { problem, space: Space::Parameter, write: true })
    }
}
