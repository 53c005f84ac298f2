//! The usual accesses of a warp, all lanes at once: lanes side by side, all lanes at one place, or each anywhere but with
//! nothing between it and what came before. What is not so easy goes the long way, lane by lane.
//!
//! Everything here is compiled twice: for any host, and for hosts with AVX2.

use super::bits::Bits;
use super::block::{Actor, BLOCKS, Block, PROPERTIES, WARPS, hold};
use super::cells::{ASYNC, Cells, PAGE, Page, SEVERAL, SPREAD, is_spread, lane_of, record_of, stamp};
use super::instructions::Instruction;
use super::log::{COPY, WRITE};
use super::order::Of;
use crate::memory::LANES;
use crate::memory::region::{Region, Role};

/// How far the quick roads led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quick {
    /// The access is recorded, and there is nothing to find.
    Done,
    /// So it is but for these lanes.
    Left(u32),
    /// Nothing is known and nothing done.
    Not,
}

/// Whether the host has what the wide functions need.
pub(super) fn host_is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("lzcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Cells of a row at most: 32 lanes of 32 bytes.
const ROW: usize = 256;

/// The lanes of the cells of a row, as parts of stamps, for lanes of 1, 2, 4, 8, 16 and 32 bytes.
static LANES_OF: [[u32; ROW]; 6] = {
    let mut tables = [[0; ROW]; 6];
    let mut width = 0;
    while width < 6 {
        let mut cell = 0;
        while cell < ROW {
            tables[width][cell] = match width {
                0 => (cell as u32 * 4) & 31 | SPREAD,
                1 => (cell as u32 * 2) & 31 | SPREAD,
                _ => (cell >> (width - 2)) as u32 & 31,
            };
            cell += 1;
        }
        width += 1;
    }
    tables
};

/// How the places of the lanes of an access lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Side by side: the lanes from one on, so many.
    Row(u32, u32),
    /// All at one place.
    One,
    /// So many lanes side by side, and the others as they do, over and over.
    Repeated(u32),
    /// The lower 16 lanes at one place, the upper ones at another.
    Halves,
    Anyhow,
}

/// All ones where the lane takes part, else zero.
#[inline(always)]
fn taking_part(mask: u32, lane: usize) -> u64 {
    (u64::from(mask >> lane) & 1).wrapping_neg()
}

/// How the lanes lie, or `None` where some is outside `bytes` bytes from `base` on, or not aligned to `width`.
#[inline(always)]
fn lie(base: u64, bytes: u64, addresses: &[u64; LANES], mask: u32, width: u64) -> Option<Lie> {
    let first = mask.trailing_zeros();
    let count = mask.count_ones();
    let start = addresses[first as usize & 31];
    let limit = bytes.checked_sub(width)?;
    let aligned = start & (width - 1) == 0;
    if count == 1 {
        return (aligned && start.wrapping_sub(base) <= limit).then_some(Lie::Row(first, 1));
    }
    if mask == u32::MAX {
        let mut row = 0;
        for (lane, &address) in addresses.iter().enumerate() {
            row |= address ^ start.wrapping_add(lane as u64 * width);
        }
        if row == 0 {
            let room = bytes.checked_sub(width * LANES as u64)?;
            return (aligned && start.wrapping_sub(base) <= room).then_some(Lie::Row(0, LANES as u32));
        }
    }
    let together = (u64::from(mask >> first) + 1).is_power_of_two();
    if together && mask != u32::MAX {
        let mut row = 0;
        let mut expected = start;
        for &address in &addresses[first as usize..(first + count) as usize] {
            row |= address ^ expected;
            expected = expected.wrapping_add(width);
        }
        if row == 0 {
            let room = bytes.checked_sub(width * u64::from(count))?;
            return (aligned && start.wrapping_sub(base) <= room).then_some(Lie::Row(first, count));
        }
    }
    let (mut one, mut outside, mut low) = (0, 0, 0);
    for (lane, &address) in addresses.iter().enumerate() {
        let part = taking_part(mask, lane);
        let offset = address.wrapping_sub(base);
        outside |= (offset | limit.wrapping_sub(offset)) & part;
        low |= address & part;
        one |= (address ^ start) & part;
    }
    if outside >> 63 != 0 || low & (width - 1) != 0 {
        return None;
    }
    if one == 0 {
        return Some(Lie::One);
    }
    if mask == u32::MAX {
        if let Some(count @ (2 | 4 | 8 | 16)) =
            addresses[1..].iter().position(|&address| address == start).map(|at| at + 1)
        {
            let mut apart = 0;
            for (lane, &address) in addresses.iter().enumerate() {
                apart |= address ^ start.wrapping_add((lane & (count - 1)) as u64 * width);
            }
            if apart == 0 {
                return Some(Lie::Repeated(count as u32));
            }
        }
        let mut halves = 0;
        for lane in 0..LANES / 2 {
            halves |= addresses[lane] ^ addresses[0] | addresses[lane + 16] ^ addresses[16];
        }
        if halves == 0 {
            return Some(Lie::Halves);
        }
    }
    Some(Lie::Anyhow)
}

/// Cells from a place on to the end of its page.
#[inline(always)]
fn room_of_page(from: u64) -> usize {
    (((((from >> PAGE) + 1) << PAGE) - from) / 4) as usize
}

/// Records that are ordered before now, remembered during one instruction: whatever the lane, or for the lane itself.
#[derive(Clone, Copy, Default)]
struct Known {
    any: u32,
    own: u32,
    none: u32,
}

/// One memory, and who accesses it.
#[derive(Clone, Copy)]
struct Scene<'a> {
    in_shared: bool,
    alone: bool,
    cells: &'a Cells,
    written: Option<&'a Bits>,
    actor: Actor,
    settled: u32,
    /// Stamps of writes below are none.
    floor: u32,
    /// Readers that one more changes nothing about, where their stamps have these properties.
    crowd: Option<u32>,
    /// Whether all lanes write the same.
    alike: bool,
}

impl Scene<'_> {
    /// Records an access to `N` cells of one lane, all of whose last accesses are settled; else `false`, and nothing done.
    #[inline(always)]
    fn settle<const N: usize>(&self, writes: &mut [u32], reads: &mut [u32], mine: u32) -> bool {
        let (Ok(writes), Ok(reads)) = (<&mut [u32; N]>::try_from(writes), <&mut [u32; N]>::try_from(reads)) else {
            return false;
        };
        let write = self.actor.flags & WRITE != 0;
        let (mut live, mut missing, mut read) = (0, 0, 0);
        for cell in 0..N {
            live |= u32::from(writes[cell] >= self.settled) | u32::from(reads[cell] >= self.settled);
            missing |= u32::from(writes[cell] & !ASYNC < self.floor);
            read |= reads[cell];
        }
        if live != 0 || missing != 0 && !write {
            return false;
        }
        if !write {
            *reads = [mine; N];
            return true;
        }
        *writes = [mine; N];
        // Stamps that were never written cost no memory.
        if read != 0 {
            *reads = [0; N];
        }
        true
    }
}

impl Block<'_> {
    /// Cells side by side, of lanes as `pattern` says, each beside `extra` properties. Where the last accesses are settled,
    /// or those of another row, lane for lane. `false`, with nothing done, where it is not so easy.
    #[inline(always)]
    fn row(&mut self, scene: &Scene<'_>, held: &mut Page<'_>, from: u64, pattern: &[u32], extra: u32) -> bool {
        let (was_written, was_read) = (held.is_written(), held.is_read());
        let write = scene.actor.flags & WRITE != 0;
        let Some((writes, reads)) = held.coarse(from, pattern.len()) else { return false };
        let count = pattern.len();
        let (writes, reads) = (&mut writes[..count], &mut reads[..count]);
        if count == 0 {
            return true;
        }
        let base = scene.actor.record << 7 | if scene.actor.flags & COPY != 0 { ASYNC } else { 0 };
        let (first, lane) = (pattern[0], lane_of(pattern[0]));
        let of = if is_spread(first) { Of::Spread } else { Of::Row };
        // Lanes that share a cell agree with nothing but what is settled or any lane's.
        let of = if extra & SEVERAL != 0 { Of::Any } else { of };
        if was_written || scene.floor != 0 {
            let (mut live, mut missing, mut odd) = (0, 0, 0);
            let step = writes[0].wrapping_sub(first);
            for at in 0..count {
                let old = writes[at];
                live |= u32::from(old >= scene.settled);
                missing |= u32::from(old & !ASYNC < scene.floor);
                odd |= old ^ step.wrapping_add(pattern[at]);
            }
            if missing != 0 && !write {
                return false;
            }
            if live != 0 && (odd != 0 || !self.ordered(scene.in_shared, writes[0], &scene.actor, lane, of)) {
                return false;
            }
        }
        let (mut live, mut odd, mut all) = (0, 0, u32::MAX);
        if was_read {
            let step = reads[0].wrapping_sub(first);
            for at in 0..count {
                let old = reads[at];
                let lives = u32::from(old >= scene.settled);
                live |= lives;
                odd |= old ^ step.wrapping_add(pattern[at]);
                all &= old & lives.wrapping_neg();
            }
        }
        if write {
            if live != 0 && (odd != 0 || !self.ordered(scene.in_shared, reads[0], &scene.actor, lane, of)) {
                return false;
            }
            for at in 0..count {
                writes[at] = base | pattern[at];
            }
            if was_read {
                reads.fill(0);
            }
            held.mark(true);
            return true;
        }
        if live != 0 && scene.crowd.is_some_and(|crowd| all & crowd == crowd) {
            return true;
        }
        let mine = base | if extra & SEVERAL != 0 { lane as u32 | extra } else { first };
        let mut new = mine;
        if live != 0 {
            if odd != 0 {
                return false;
            }
            let old = reads[0];
            if old & !PROPERTIES == mine & !PROPERTIES {
                new = if old & SEVERAL == 0 { mine } else { old };
            } else if !self.ordered(scene.in_shared, old, &scene.actor, lane, of) {
                new = self.readers(scene.in_shared, old, mine, &scene.actor);
            }
            if new == old {
                return true;
            }
            if new & !PROPERTIES != mine & !PROPERTIES {
                for read in reads {
                    *read |= new & PROPERTIES;
                }
                return true;
            }
        }
        let properties = new & PROPERTIES;
        for at in 0..count {
            reads[at] = base | pattern[at] & !PROPERTIES | properties;
        }
        held.mark(false);
        true
    }

    /// As [`Block::row`], of cells that may lie in two pages.
    #[inline(always)]
    fn rows(&mut self, scene: &Scene<'_>, from: u64, pattern: &[u32], extra: u32) -> bool {
        let split = room_of_page(from).min(pattern.len());
        let mut done = true;
        for (from, pattern) in [(from, &pattern[..split]), (from + 4 * split as u64, &pattern[split..])] {
            if pattern.is_empty() {
                break;
            }
            let mut held = hold(scene.cells, from >> PAGE, scene.alone);
            let recorded = self.row(scene, &mut held, from, pattern, extra);
            done &= recorded;
            if recorded
                && scene.actor.flags & WRITE != 0
                && let Some(written) = scene.written
            {
                written.insert_held(from, 4 * pattern.len() as u64);
            }
        }
        done
    }

    /// Lanes anywhere, each with cells of four bytes: those that are left.
    #[inline(always)]
    fn lanes(&mut self, scene: &Scene<'_>, addresses: &[u64; LANES], base: u64, mask: u32, width: u64) -> u32 {
        let each = width as usize / 4;
        let write = scene.actor.flags & WRITE != 0;
        let mut left = 0;
        let mut held: Option<Page<'_>> = None;
        let (mut last_write, mut last_read) = (Known::default(), Known::default());
        let mut rest = mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let from = addresses[lane].wrapping_sub(base);
            let number = from >> PAGE;
            if held.as_ref().is_none_or(|page| page.number() != number) {
                // The one before is let go first: two at a time might wait for each other.
                drop(held.take());
                let mut page = hold(scene.cells, number, scene.alone);
                page.mark(write);
                held = Some(page);
            }
            let Some(page) = held.as_mut() else { return mask };
            let Some((writes, reads)) = page.coarse(from, each) else {
                left |= 1 << lane;
                continue;
            };
            let mine = stamp(scene.actor.record, lane) | if scene.actor.flags & COPY != 0 { ASYNC } else { 0 };
            let settled = match each {
                4 => scene.settle::<4>(writes, reads, mine),
                2 => scene.settle::<2>(writes, reads, mine),
                1 => scene.settle::<1>(writes, reads, mine),
                _ => false,
            };
            if settled {
                if write && let Some(written) = scene.written {
                    written.insert_held(from, width);
                }
                continue;
            }
            let mut easy = true;
            for (&mut old_write, &mut old_read) in writes.iter_mut().zip(reads.iter_mut()) {
                let fine = old_write < scene.settled || old_write == mine;
                easy &= fine || self.known(&mut last_write, scene, old_write, lane);
                easy &= write || old_write & !ASYNC >= scene.floor;
                if write {
                    let fine = old_read < scene.settled || old_read == mine;
                    easy &= fine || self.known(&mut last_read, scene, old_read, lane);
                }
            }
            if !easy {
                left |= 1 << lane;
                continue;
            }
            if write {
                writes.fill(mine);
                // Stamps that were never written cost no memory.
                reads.iter_mut().filter(|read| **read != 0).for_each(|read| *read = 0);
                if let Some(written) = scene.written {
                    written.insert_held(from, width);
                }
                continue;
            }
            for read in reads {
                let old = *read;
                if old < scene.settled || old == mine {
                    *read = mine;
                } else if scene.crowd.is_some_and(|crowd| old & crowd == crowd) {
                    continue;
                } else if record_of(old) == scene.actor.record {
                    *read |= SEVERAL;
                } else if self.known(&mut last_read, scene, old, lane) {
                    *read = mine;
                } else {
                    *read = self.next_reader(scene, old, mine, lane);
                }
            }
        }
        left
    }

    #[inline(never)]
    fn next_reader(&mut self, scene: &Scene<'_>, old: u32, mine: u32, lane: usize) -> u32 {
        match self.ordered(scene.in_shared, old, &scene.actor, lane, Of::Lane) {
            true => mine,
            false => self.readers(scene.in_shared, old, mine, &scene.actor),
        }
    }

    /// Whether what a stamp names is ordered before now, as its record tells: whatever the lane, or because it is this one.
    #[inline(always)]
    fn known(&mut self, last: &mut Known, scene: &Scene<'_>, stamp: u32, lane: usize) -> bool {
        let record = record_of(stamp);
        if stamp & WARPS == WARPS || !scene.in_shared && stamp & BLOCKS != 0 {
            return false;
        }
        if record != last.any && record != last.own && record != last.none {
            self.ask(last, scene, stamp);
        }
        record == last.any || record == last.own && lane_of(stamp) == lane && stamp & WARPS == 0
    }

    #[inline(never)]
    fn ask(&mut self, last: &mut Known, scene: &Scene<'_>, stamp: u32) {
        let plain = stamp & !WARPS;
        if self.ordered(scene.in_shared, plain, &scene.actor, 0, Of::Any) {
            last.any = record_of(stamp);
        } else if self.ordered(scene.in_shared, plain, &scene.actor, lane_of(stamp), Of::Row) {
            last.own = record_of(stamp);
        } else {
            last.none = record_of(stamp);
        }
    }

    /// All lanes of an access whose lie is known.
    #[inline(always)]
    fn all(
        &mut self,
        scene: &Scene<'_>,
        lie: Lie,
        addresses: &[u64; LANES],
        base: u64,
        mask: u32,
        width: u64,
    ) -> Quick {
        let write = scene.actor.flags & WRITE != 0;
        let table = &LANES_OF[width.trailing_zeros() as usize % 6];
        let (first, count, extra) = match lie {
            Lie::Row(first, count) => (first, count, 0),
            // The reader that is remembered is the second: see `Block::readers`.
            Lie::Repeated(count) if !write && width >= 4 => (count, count, SEVERAL),
            Lie::One if !write && width >= 4 => ((mask & (mask - 1)).trailing_zeros(), 1, SEVERAL),
            // The writer that is remembered is the last.
            Lie::One if scene.alike && width >= 4 => (31 - mask.leading_zeros(), 1, SEVERAL),
            _ if width < 4 => return Quick::Not,
            // Where several lanes write one place, each is held against what was there before all of them.
            Lie::One | Lie::Repeated(_) | Lie::Halves if write => return Quick::Not,
            Lie::Halves if !write => {
                let one = |this: &mut Self, lane: usize| {
                    let from = addresses[lane].wrapping_sub(base);
                    let mut held = hold(scene.cells, from >> PAGE, scene.alone);
                    let start = lane * width as usize / 4;
                    this.row(scene, &mut held, from, &table[start..start + width as usize / 4], SEVERAL)
                };
                if one(self, 1) && one(self, 17) {
                    return Quick::Done;
                }
                return match self.lanes(scene, addresses, base, mask, width) {
                    0 => Quick::Done,
                    left => Quick::Left(left),
                };
            }
            _ => {
                return match self.lanes(scene, addresses, base, mask, width) {
                    0 => Quick::Done,
                    left => Quick::Left(left),
                };
            }
        };
        let from = addresses[first as usize & 31].wrapping_sub(base);
        let bytes = u64::from(count) * width;
        if (from | bytes) & 3 != 0 {
            return Quick::Not;
        }
        let start = (u64::from(first) * width / 4) as usize;
        if width < 4 && !(u64::from(first) * width).is_multiple_of(4) {
            return Quick::Not;
        }
        let pattern = &table[start..start + (bytes / 4) as usize];
        let copy = scene.actor.flags & COPY != 0;
        if copy && room_of_page(from) < pattern.len() {
            // Half a copy would meet itself on the long way.
            return Quick::Not;
        }
        if self.rows(scene, from, pattern, extra) {
            return Quick::Done;
        }
        if width < 4 || copy {
            // The long way for all: it finds its own part done.
            return Quick::Not;
        }
        if write && matches!(lie, Lie::One) {
            return Quick::Not;
        }
        match self.lanes(scene, addresses, base, mask, width) {
            0 => Quick::Done,
            left => Quick::Left(left),
        }
    }

    /// An access to a region, or `None` where the log is full.
    #[inline(always)]
    fn global_scene<'r>(
        &mut self,
        cells: &'r Cells,
        written: Option<&'r Bits>,
        instruction: Instruction,
        kind: u8,
        width: u32,
        alike: bool,
    ) -> Option<Scene<'r>> {
        let actor = self.actor(instruction.warp, instruction.order, kind, instruction.site, false, width);
        (actor.record != 0).then(|| Scene {
            in_shared: false,
            alone: self.grid.is_alone(),
            cells,
            written,
            actor,
            settled: self.settled(false),
            floor: 0,
            crowd: self.acquired.is_empty().then_some(BLOCKS),
            alike,
        })
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn global_body(
        &mut self,
        region: &Region,
        instruction: Instruction,
        kind: u8,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        alike: bool,
    ) -> Quick {
        let view = region.readable();
        if mask == 0 || kind & WRITE != 0 && region.role() == Role::Input {
            return Quick::Not;
        }
        let Some(lie) = lie(view.base, view.bytes, addresses, mask, width.into()) else { return Quick::Not };
        let written = region.written().filter(|written| !written.is_whole());
        if let Some(written) = written
            && kind & WRITE == 0
            && !there(written, lie, addresses, view.base, mask, width)
        {
            return Quick::Not;
        }
        let Some(cells) = region.cells() else {
            return if kind & WRITE == 0 { Quick::Done } else { Quick::Not };
        };
        let Some(scene) = self.global_scene(cells, written, instruction, kind, width, alike) else {
            return Quick::Not;
        };
        self.all(&scene, lie, addresses, view.base, mask, width.into())
    }

    #[inline(always)]
    fn run_body(&mut self, region: &Region, instruction: Instruction, first: u64, width: u32) -> Quick {
        let view = region.readable();
        let (from, bytes) = (first.wrapping_sub(view.base), u64::from(width) * LANES as u64);
        let fits = view.bytes >= bytes && from <= view.bytes - bytes && first.is_multiple_of(width.into());
        if !fits || region.role() == Role::Input {
            return Quick::Not;
        }
        let Some(cells) = region.cells() else { return Quick::Not };
        let written = region.written().filter(|written| !written.is_whole());
        let Some(scene) = self.global_scene(cells, written, instruction, WRITE, width, false) else {
            return Quick::Not;
        };
        let pattern = &LANES_OF[width.trailing_zeros() as usize % 6][..(bytes / 4) as usize];
        if self.rows(&scene, from, pattern, 0) { Quick::Done } else { Quick::Not }
    }

    #[inline(always)]
    fn shared_body(&mut self, actor: Actor, addresses: &[u64; LANES], mask: u32, width: u32, alike: bool) -> Quick {
        if mask == 0 || actor.record == 0 || self.shared.lost {
            return Quick::Not;
        }
        let Some(lie) = lie(0, self.shared.bytes, addresses, mask, width.into()) else { return Quick::Not };
        let Some(cells) = self.shared.cells.take() else { return Quick::Not };
        let scene = Scene {
            in_shared: true,
            alone: true,
            cells: &cells,
            written: None,
            actor,
            settled: self.shared.settled,
            floor: self.shared.first << 7,
            crowd: Some(WARPS),
            alike,
        };
        let quick = self.all(&scene, lie, addresses, 0, mask, width.into());
        self.shared.cells = Some(cells);
        quick
    }
}

/// Whether something wrote all that the lanes read.
#[inline(always)]
fn there(written: &Bits, lie: Lie, addresses: &[u64; LANES], base: u64, mask: u32, width: u32) -> bool {
    let all = ((1_u64 << width) - 1) as u32;
    let at = |lane: u32| addresses[lane as usize & 31].wrapping_sub(base);
    match lie {
        Lie::Row(first, count) => written.contains(at(first), u64::from(count) * u64::from(width)),
        Lie::One => written.among(at(mask.trailing_zeros()), width) == all,
        Lie::Repeated(count) => written.contains(at(0), u64::from(count) * u64::from(width)),
        Lie::Halves => [0, 16].into_iter().all(|lane| written.among(at(lane), width) == all),
        Lie::Anyhow => (0..32).all(|lane| mask >> lane & 1 == 0 || written.among(at(lane), width) == all),
    }
}

/// Compiles a body twice, and calls what the host has.
macro_rules! twice {
    ($(#[$doc:meta])* $name:ident, $wide:ident, $plain:ident, $body:ident, ($($argument:ident: $ty:ty),*)) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $wide(&mut self, $($argument: $ty),*) -> Quick {
            self.$body($($argument),*)
        }

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        fn $plain(&mut self, $($argument: $ty),*) -> Quick {
            self.$body($($argument),*)
        }

        $(#[$doc])*
        #[inline(always)]
        #[allow(clippy::too_many_arguments)]
        pub(super) fn $name(&mut self, $($argument: $ty),*) -> Quick {
            #[cfg(target_arch = "x86_64")]
            if self.wide {
                // SAFETY: the host has the features.
                return unsafe { self.$wide($($argument),*) };
            }
            self.$plain($($argument),*)
        }
    };
}

impl Block<'_> {
    twice!(
        /// A weak access to one region: `kind` is 0 or [`WRITE`]; `alike` says that all lanes write the same.
        quick_global, global_wide, global_plain, global_body,
        (region: &Region, instruction: Instruction, kind: u8, addresses: &[u64; LANES], mask: u32, width: u32, alike: bool)
    );
    twice!(
        /// Weak stores of 4 or 8 bytes a lane, side by side from `first` on.
        quick_run, run_wide, run_plain, run_body,
        (region: &Region, instruction: Instruction, first: u64, width: u32)
    );
    twice!(
        quick_actor, shared_wide, shared_plain, shared_body,
        (actor: Actor, addresses: &[u64; LANES], mask: u32, width: u32, alike: bool)
    );

    /// A weak access to shared memory: `kind` is 0 or [`WRITE`]; `alike` says that all lanes write the same.
    #[inline(always)]
    pub(super) fn quick_shared(
        &mut self,
        instruction: Instruction,
        kind: u8,
        addresses: &[u64; LANES],
        mask: u32,
        width: u32,
        alike: bool,
    ) -> Quick {
        if instruction.order.scope().is_some() {
            return Quick::Not;
        }
        let actor = self.actor(instruction.warp, instruction.order, kind, instruction.site, true, width);
        self.quick_actor(actor, addresses, mask, width, alike)
    }

    /// The writes of an asynchronous copy to shared memory.
    #[inline(always)]
    pub(super) fn quick_copy(&mut self, actor: &Actor, addresses: &[u64; LANES], mask: u32, width: u32) -> Quick {
        self.quick_actor(*actor, addresses, mask, width, false)
    }
}
