//! What orders blocks: releases and acquires of addresses in global memory.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::clocks::{ACTORS, Cover, joined};
use super::log::{Log, PENDING};
use crate::memory::global::Global;

/// Addresses that are followed, and releases of all of them. Beyond, everything counts as ordered that a release might
/// order: no race between blocks is told, nor one between warps that acquire.
const FOLLOWED: usize = 1 << 16;
const RELEASES: usize = 1 << 21;

/// What all blocks of a launch share.
#[derive(Debug)]
pub struct Grid {
    pub(super) log: Log,
    released: AtomicBool,
    alone: AtomicBool,
    variables: Mutex<Variables>,
}

#[derive(Debug, Default)]
struct Variables {
    by_address: FxHashMap<u64, Variable>,
    releases: usize,
    crowded: bool,
}

/// An address that was released.
#[derive(Debug, Default)]
struct Variable {
    /// Releases so far.
    releases: u32,
    by_block: FxHashMap<u32, Vec<Release>>,
    /// What its releasers had acquired: other addresses, up to which of their releases.
    imports: FxHashMap<u64, u32>,
}

/// A release of a block, with what all of its earlier ones at the address cover: the last that counts says everything,
/// however often a loop that waits releases.
#[derive(Debug)]
struct Release {
    position: u32,
    /// What threads of other blocks see with it.
    device: Option<Arc<Cover>>,
    /// What threads of the same block see with it.
    block: Arc<Cover>,
}

/// What either covers, in memory that is there already where one covers the other.
fn united(new: &Arc<Cover>, before: Option<&Arc<Cover>>) -> Arc<Cover> {
    let Some(before) = before else { return new.clone() };
    match joined(**new, before) {
        both if both == **new => new.clone(),
        both if both == **before => before.clone(),
        both => Arc::new(both),
    }
}

/// What a block has acquired: addresses, up to which of their releases.
pub(super) type Acquired = FxHashMap<u64, u32>;

impl Grid {
    /// For a launch: nothing has happened, and what came before is over. `None` where the host has no room.
    pub fn new(global: &mut Global) -> Option<Self> {
        let next = global.begin_launch();
        Some(Self {
            log: Log::new(next)?,
            released: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            variables: Mutex::default(),
        })
    }

    /// Blocks need not take turns at what they share, from now on.
    ///
    /// # Safety
    ///
    /// One thread of the host runs all blocks.
    pub unsafe fn assume_alone(&self) {
        self.alone.store(true, Relaxed);
    }

    /// Whether one thread of the host runs all blocks.
    #[inline(always)]
    pub(super) fn is_alone(&self) -> bool {
        self.alone.load(Relaxed)
    }

    /// Whether so much happened that races may have gone unseen since.
    pub fn is_exhausted(&self) -> bool {
        self.log.is_full() || self.variables().crowded
    }

    fn variables(&self) -> MutexGuard<'_, Variables> {
        self.variables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything was released at all.
    #[inline(always)]
    pub(super) fn has_releases(&self) -> bool {
        self.released.load(Relaxed)
    }

    /// A write that covers what its block saw.
    pub(super) fn release(
        &self,
        address: u64,
        block: u32,
        own: &Arc<Cover>,
        device: Option<&Arc<Cover>>,
        acquired: &Acquired,
    ) {
        self.released.store(true, Relaxed);
        let mut variables = self.variables();
        let known = variables.by_address.len() < FOLLOWED || variables.by_address.contains_key(&address);
        if !known || variables.releases >= RELEASES {
            *variables = Variables { crowded: true, ..Variables::default() };
        }
        if variables.crowded {
            return;
        }
        variables.releases += 1;
        let variable = variables.by_address.entry(address).or_default();
        variable.releases += 1;
        let releases = variable.by_block.entry(block).or_default();
        let before = releases.last();
        let seen = before.and_then(|before| before.device.as_ref());
        let release = Release {
            position: variable.releases,
            device: device.map(|device| united(device, seen)).or_else(|| seen.cloned()),
            block: united(own, before.map(|before| &before.block)),
        };
        releases.push(release);
        if device.is_some() {
            for (&address, &position) in acquired {
                let import = variable.imports.entry(address).or_default();
                *import = (*import).max(position);
            }
        }
    }

    /// A read that sees the last write: what the block itself released there, and the block's acquisitions extended.
    /// `None` where nothing was released.
    pub(super) fn acquire(&self, address: u64, block: u32, device: bool, acquired: &mut Acquired) -> Option<Cover> {
        let variables = self.variables();
        if variables.crowded {
            // The latest clock but that of what is not over.
            return Some([PENDING - 1; ACTORS]);
        }
        let variable = variables.by_address.get(&address)?;
        if device {
            acquired.insert(address, variable.releases);
            for (&address, &position) in &variable.imports {
                let known = acquired.entry(address).or_default();
                *known = (*known).max(position);
            }
        }
        let own = variable.by_block.get(&block).and_then(|releases| releases.last());
        Some(own.map_or([0; ACTORS], |release| *release.block))
    }

    /// How far a block that has acquired so much sees another. `None`: no end to it.
    pub(super) fn sees(&self, acquired: &Acquired, other: u32) -> Option<Cover> {
        let variables = self.variables();
        if variables.crowded {
            return None;
        }
        let mut cover = [0; ACTORS];
        for (address, &position) in acquired {
            let releases = variables.by_address.get(address).and_then(|variable| variable.by_block.get(&other));
            let releases = releases.map(Vec::as_slice).unwrap_or_default();
            let seen = releases.partition_point(|release| release.position <= position);
            if let Some(device) = seen.checked_sub(1).and_then(|last| releases[last].device.as_ref()) {
                cover = joined(cover, device);
            }
        }
        Some(cover)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_what_is_followed_all_is_ordered() {
        let grid = Grid::new(&mut Global::default()).unwrap();
        let (cover, mut acquired) = (Arc::new([1; ACTORS]), Acquired::default());
        for address in 0..FOLLOWED as u64 {
            grid.release(address, 0, &cover, Some(&cover), &acquired);
        }
        assert!(!grid.is_exhausted());
        assert_eq!(grid.acquire(7, 1, true, &mut acquired), Some([0; ACTORS]));
        assert_eq!(grid.sees(&acquired, 0), Some([1; ACTORS]));
        assert_eq!(grid.sees(&acquired, 2), Some([0; ACTORS]));
        grid.release(FOLLOWED as u64, 0, &cover, Some(&cover), &acquired);
        assert!(grid.is_exhausted());
        assert_eq!(grid.acquire(8, 1, true, &mut acquired), Some([PENDING - 1; ACTORS]));
        assert_eq!(grid.sees(&acquired, 2), None);
    }
}
