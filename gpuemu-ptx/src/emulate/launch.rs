//! One launch: how many threads, and what they are given.

use super::options::Sanitizers;

/// A launch that was found fit to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub dynamic_shared: u32,
    /// Shared memory of a block, static and dynamic.
    pub shared: u32,
    /// Local memory of a thread.
    pub local: u32,
    /// Calls that may be open at once.
    pub depth: u32,
    /// Instructions that one block may run, those of each warp counted.
    pub budget: u64,
    /// Bytes that `malloc` may give out.
    pub heap: u64,
    /// The entry's parameters, as memory.
    pub parameters: Vec<u8>,
    /// The generic address of the first parameter.
    pub parameter_base: u64,
    /// Its number on the device: `%gridid`.
    pub number: u64,
    /// Multiprocessors that the device has: `%nsmid`.
    pub multiprocessors: u32,
    /// Blocks that the device holds at once: others begin when these have ended.
    pub resident: u64,
    /// What is watched.
    pub sanitizers: Sanitizers,
    /// The order of blocks and warps, where it is not the usual one.
    pub seed: Option<u64>,
}

/// In which order blocks are taken up.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Blocks of the grid.
    blocks: u64,
    /// From one block to the next: has no factor in common with their number.
    step: u64,
    /// The first block.
    first: u64,
}

impl Order {
    /// The usual one, by number, or one of the others.
    fn new(blocks: u64, seed: Option<u64>) -> Self {
        let Some(seed) = seed.filter(|_| blocks > 1) else { return Self { blocks, step: 1, first: 0 } };
        let (mut step, first) = (mixed(seed) % blocks, mixed(!seed) % blocks);
        while common_divisor(step, blocks) != 1 {
            step = (step + 1) % blocks;
        }
        Self { blocks, step, first }
    }

    /// The block that is taken up after so many others.
    pub fn block(self, turn: u64) -> u64 {
        let (turn, step) = (u128::from(turn), u128::from(self.step));
        ((turn * step + u128::from(self.first)) % u128::from(self.blocks.max(1))) as u64
    }
}

/// SplitMix64's finaliser.
pub fn mixed(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Launch {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a block.
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&extent| u64::from(extent)).product()
    }

    /// In which order its blocks are taken up.
    pub fn order(&self) -> Order {
        Order::new(self.blocks(), self.seed)
    }

    /// The same where blocks may tell each other something. By number, the first of them would have initialised what the
    /// others take for granted before they begin: where the device holds all of them, it is the turn of the upper half first.
    pub fn order_in_turn(&self) -> Order {
        match self.order() {
            usual if self.seed.is_none() && self.blocks() <= self.resident => {
                Order { first: self.blocks() / 2, ..usual }
            }
            order => order,
        }
    }

    /// Where a block is in the grid.
    pub fn position(&self, block: u64) -> [u32; 3] {
        let (x, y) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        [(block % x) as u32, (block / x % y) as u32, (block / (x * y)) as u32]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_its_turn() {
        for blocks in (1..40).chain([96, 97, 128, 1000, 1001]) {
            for seed in [None, Some(0), Some(1), Some(99), Some(u64::MAX)] {
                let order = Order::new(blocks, seed);
                let mut taken: Vec<u64> = (0..blocks).map(|turn| order.block(turn)).collect();
                let usual = taken.iter().zip(0..).all(|(&block, turn)| block == turn);
                assert!(usual || seed.is_some(), "{blocks}");
                taken.sort_unstable();
                assert!(taken.iter().zip(0..).all(|(&block, turn)| block == turn), "{blocks} {seed:?}");
            }
        }
        // The largest grid: 2^31 - 1 blocks by 65,535 by 65,535.
        let most = 0x7fff_ffff * 65_535 * 65_535;
        let order = Order::new(most, Some(7));
        assert!(order.block(most - 1) < most);
        assert_ne!(Order::new(1000, Some(1)).block(1), Order::new(1000, Some(2)).block(1));
    }
}
