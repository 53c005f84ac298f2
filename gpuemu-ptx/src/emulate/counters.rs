//! What a launch did, counted: instructions by class, lanes, divergence, sectors of global memory, passes over the banks
//! of shared memory.

use std::collections::BTreeMap;

use super::registers::LANES;
use crate::metrics::Class;

/// Bytes of a sector: the least that a request moves between a cache and memory.
const SECTOR: u64 = 32;
/// Banks of shared memory; consecutive words of four bytes lie in consecutive banks.
const BANKS: u64 = 32;

/// Accesses of warps to global memory. One that no lane executes asks for nothing, and is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Instructions that at least one lane executed.
    pub requests: u64,
    /// Sectors of 32 bytes that they touch, each once a request.
    pub sectors: u64,
    /// Bytes that lanes asked for.
    pub bytes: u64,
}

impl Requests {
    /// Sectors that a request touches in the mean; 0 without any. A full warp that loads 4 bytes a lane needs 4.
    pub fn sectors_per_request(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.sectors as f64 / self.requests as f64 }
    }
}

/// Accesses of warps to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Instructions that at least one lane executed.
    pub requests: u64,
    /// Times that the banks were gone over: at least once a request; as a rule twice where a full warp moves 8 bytes a lane,
    /// four times where it moves 16.
    pub passes: u64,
    /// Passes beyond those that as many lanes need at least, for two of them want different words of one bank.
    pub conflicts: u64,
}

/// What a launch did.
///
/// Accesses of `wmma` are among the instructions alone: which lane touches what is not defined for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions of warps. One that no lane executes, for its predicate holds in none, is issued all the same.
    pub instructions: u64,
    /// Lanes that executed them.
    pub lanes: u64,
    /// Instructions by class.
    pub classes: BTreeMap<Class, u64>,
    /// Branches that have a condition.
    pub branches: u64,
    /// Those of them at which lanes of a warp went different ways.
    pub divergent_branches: u64,
    /// Loads from global memory, asynchronous copies among them.
    pub global_loads: Requests,
    /// Stores to global memory.
    pub global_stores: Requests,
    /// Loads from shared memory, of matrices too.
    pub shared_loads: Passes,
    /// Stores to shared memory, of matrices too.
    pub shared_stores: Passes,
    /// Barriers of the block, an arrival of a warp each.
    pub barriers: u64,
    /// Atomics on global memory, once an instruction of a warp.
    pub global_atomics: u64,
    /// Atomics on shared memory.
    pub shared_atomics: u64,
}

impl Counters {
    /// Passes over the banks of shared memory that another layout would save.
    pub fn bank_conflicts(&self) -> u64 {
        self.shared_loads.conflicts + self.shared_stores.conflicts
    }

    /// Lanes that execute an instruction in the mean, as a share of 32; 1 where nothing ran.
    pub fn occupancy(&self) -> f64 {
        let all = self.instructions * LANES as u64;
        if all == 0 { 1.0 } else { self.lanes as f64 / all as f64 }
    }
}

/// What an instruction that is counted does.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Its class.
    pub class: Class,
    /// What else is counted of it.
    pub kind: Kind,
}

/// What is counted of an instruction beside its executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// A branch under a predicate.
    Branch,
    /// A branch to one of several targets, by the register of this row.
    Indirect(i32),
    /// A barrier of the block.
    Barrier,
    /// An access to memory.
    Access(Access),
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which memory; `None` where the address says it.
    pub shared: Option<bool>,
    /// What it does.
    pub direction: Direction,
    /// Bytes of a lane.
    pub bytes: u32,
    /// The row of the register that the address is counted from; `None` for a fixed address.
    pub row: Option<i32>,
    /// Whether that register has 64 bits.
    pub wide: bool,
    /// Bytes to add.
    pub offset: u64,
    /// Lanes that access memory: of matrices, those that hold the address of a row.
    pub lanes: u32,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// Both, as one.
    Atomic,
}

/// What was counted of one instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// Times that a warp executed it.
    pub executed: u64,
    /// Lanes that did.
    pub lanes: u64,
    /// Times that lanes went different ways.
    pub divergent: u64,
    /// In global memory.
    pub global: Requests,
    /// In shared memory.
    pub shared: Passes,
}

impl Count {
    /// One access to global memory.
    pub fn add_global(&mut self, addresses: &[u64; LANES], lanes: u32, bytes: u32) {
        self.global.requests += 1;
        self.global.sectors += sectors(addresses, lanes, bytes);
        self.global.bytes += u64::from(lanes.count_ones() * bytes);
    }

    /// One access to shared memory.
    pub fn add_shared(&mut self, addresses: &[u64; LANES], lanes: u32, bytes: u32) {
        let (passes, least) = passes(addresses, lanes, bytes);
        self.shared.requests += 1;
        self.shared.passes += passes;
        self.shared.conflicts += passes - least;
    }

    fn add(&mut self, other: &Self) {
        self.executed += other.executed;
        self.lanes += other.lanes;
        self.divergent += other.divergent;
        self.global.add(&other.global);
        self.shared.add(&other.shared);
    }
}

impl Requests {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.bytes += other.bytes;
    }
}

impl Passes {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.passes += other.passes;
        self.conflicts += other.conflicts;
    }
}

/// Sums what workers counted.
pub fn merge(into: &mut Vec<Count>, other: &[Count]) {
    into.resize(into.len().max(other.len()), Count::default());
    into.iter_mut().zip(other).for_each(|(sum, part)| sum.add(part));
}

/// What a launch did, from the counts of each instruction.
pub fn summed(counted: &[Counted], counts: &[Count]) -> Counters {
    let mut all = Counters::default();
    for (counted, count) in counted.iter().zip(counts).filter(|(_, count)| count.executed > 0) {
        all.instructions += count.executed;
        all.lanes += count.lanes;
        *all.classes.entry(counted.class).or_default() += count.executed;
        match counted.kind {
            Kind::Plain => {}
            Kind::Branch | Kind::Indirect(_) => {
                all.branches += count.executed;
                all.divergent_branches += count.divergent;
            }
            Kind::Barrier => all.barriers += count.executed,
            Kind::Access(access) => {
                let (global, shared) = match access.direction {
                    Direction::Load => (&mut all.global_loads, &mut all.shared_loads),
                    Direction::Store => (&mut all.global_stores, &mut all.shared_stores),
                    Direction::Atomic => {
                        all.global_atomics += count.global.requests;
                        all.shared_atomics += count.shared.requests;
                        continue;
                    }
                };
                global.add(&count.global);
                shared.add(&count.shared);
            }
        }
    }
    all
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

/// Sectors of 32 bytes that lanes touch, each counted once.
fn sectors(addresses: &[u64; LANES], mask: u32, bytes: u32) -> u64 {
    let mut touched: Vec<u64> = lanes(mask)
        .flat_map(|lane| {
            let address = addresses[lane];
            address / SECTOR..=address.saturating_add(u64::from(bytes.max(1)) - 1) / SECTOR
        })
        .collect();
    touched.sort_unstable();
    touched.dedup();
    touched.len() as u64
}

/// Times that an access goes over the banks, and how often as many lanes have to at least.
///
/// Of one group, lanes that want the same word are served together, those that want different words of one bank one after
/// the other.
fn passes(addresses: &[u64; LANES], mask: u32, bytes: u32) -> (u64, u64) {
    let (mut total, mut least) = (0, 0);
    for members in groups(addresses, mask, bytes).into_iter().filter(|members| *members != 0) {
        let mut words: Vec<u64> = lanes(members)
            .flat_map(|lane| addresses[lane] / 4..=addresses[lane].saturating_add(u64::from(bytes.max(1)) - 1) / 4)
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut wanted = [0u64; BANKS as usize];
        words.iter().for_each(|word| wanted[(word % BANKS) as usize] += 1);
        total += wanted.into_iter().max().unwrap_or(0);
        least += 1;
    }
    (total, least)
}

/// The lanes that are served together: all where each moves 4 bytes, a half of the warp where it moves 8, a quarter where
/// it moves 16. Two halves, and two quarters of a half, are one group where each lane wants what its neighbour wants, the
/// next one or the next but one: NVIDIA does not say so, its profiler counts so.
fn groups(addresses: &[u64; LANES], mask: u32, bytes: u32) -> Vec<u32> {
    let paired = |lanes_of: u32, by: usize| {
        lanes(mask & lanes_of).all(|lane| mask >> (lane ^ by) & 1 == 0 || addresses[lane] == addresses[lane ^ by])
    };
    let merged = |lanes_of: u32| paired(lanes_of, 1) || paired(lanes_of, 2);
    let halves = [0xffff, 0xffff_0000];
    let split = match bytes {
        0..=4 => vec![u32::MAX],
        5..=8 if merged(u32::MAX) => vec![u32::MAX],
        5..=8 => halves.to_vec(),
        _ => halves
            .into_iter()
            .flat_map(|half| match merged(half) {
                true => vec![half],
                false => vec![half & 0x00ff_00ff, half & 0xff00_ff00],
            })
            .collect(),
    };
    split.into_iter().map(|members| members & mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: impl Fn(u64) -> u64) -> [u64; LANES] {
        std::array::from_fn(|lane| address(lane as u64))
    }

    /// CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory": a warp's aligned words of 4 bytes are four
    /// transactions of 32 bytes, misaligned ones five; a stride of 2 needs twice as many, one of 32 words one a lane.
    #[test]
    fn sectors_are_counted_once() {
        let full = u32::MAX;
        let table: [([u64; LANES], u32, u32, u64); 9] = [
            (at(|lane| 4 * lane), full, 4, 4),
            (at(|lane| 4 * lane + 4), full, 4, 5),
            (at(|lane| 8 * lane), full, 4, 8),
            (at(|lane| 128 * lane), full, 4, 32),
            (at(|_| 64), full, 4, 1),
            (at(|lane| 16 * lane), full, 16, 16),
            (at(|lane| 2 * lane), full, 2, 2),
            (at(|lane| 4 * lane), 0xff, 4, 1),
            (at(|lane| 4 * lane), 0, 4, 0),
        ];
        for (addresses, mask, bytes, expected) in table {
            assert_eq!(sectors(&addresses, mask, bytes), expected, "{addresses:?} {mask:x} {bytes}");
        }
    }

    /// CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x: strides of 1 and 3 words have no conflict, a
    /// stride of 2 two ways, any permutation and any broadcast none.
    #[test]
    fn words_of_one_bank_are_one_after_the_other() {
        let full = u32::MAX;
        let table: [([u64; LANES], u32, u32, (u64, u64)); 15] = [
            (at(|lane| 4 * lane), full, 4, (1, 1)),
            (at(|lane| 8 * lane), full, 4, (2, 1)),
            (at(|lane| 12 * lane), full, 4, (1, 1)),
            // A column of a tile of 32 by 32, without a column of padding and with one.
            (at(|lane| 4 * 32 * lane), full, 4, (32, 1)),
            (at(|lane| 4 * 33 * lane), full, 4, (1, 1)),
            (at(|lane| 4 * (lane * 5 % 32)), full, 4, (1, 1)),
            (at(|_| 12), full, 4, (1, 1)),
            (at(|lane| 4 * (lane / 16 * 5)), full, 4, (1, 1)),
            // Bytes of one word are one word.
            (at(|lane| lane), full, 1, (1, 1)),
            (at(|lane| 8 * lane), full, 8, (2, 2)),
            (at(|lane| 16 * lane), full, 16, (4, 4)),
            // Two words of 16 bytes, one for each half of the warp.
            (at(|lane| 16 * (lane / 16)), full, 16, (2, 2)),
            (at(|lane| 16 * (lane % 16)), full, 16, (4, 4)),
            // Rows of 8 matrices of 16-bit elements, 64 elements apart: all in the same four banks.
            (at(|lane| 128 * lane), 0xff, 16, (8, 1)),
            (at(|lane| 4 * lane), 0, 4, (0, 0)),
        ];
        for (addresses, mask, bytes, expected) in table {
            assert_eq!(passes(&addresses, mask, bytes), expected, "{addresses:?} {mask:x} {bytes}");
        }
    }
}
