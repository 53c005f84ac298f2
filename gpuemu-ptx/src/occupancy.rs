//! How many blocks of a kernel an SM holds at once.
//!
//! The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h` of CUDA 13.5), for the largest part of the
//! L1 cache given to shared memory; an H200's driver answers the same.

use crate::arch::Arch;

/// What one block of a kernel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Registers of a thread, as ptxas reports them.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic.
    pub shared: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Named barriers of a block; they count from sm_90 on.
    pub barriers: u32,
}

/// How full an SM gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    /// Blocks resident on an SM; 0 for a block that no SM of the architecture can hold.
    pub blocks: u32,
    /// Warps resident on an SM.
    pub warps: u32,
    /// Those warps as part of the warps an SM holds at most, 0 to 1.
    pub fraction: f64,
    /// What keeps another block out: of one sort, or of several that run out together.
    pub limited_by: Vec<Resource>,
}

/// What an SM can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Places for warps; also the number of threads a block may have.
    Warps,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Places for blocks.
    Blocks,
    /// Named barriers.
    Barriers,
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Resource::Warps => "warps",
            Resource::Registers => "registers",
            Resource::SharedMemory => "shared memory",
            Resource::Blocks => "blocks",
            Resource::Barriers => "barriers",
        })
    }
}

impl Arch {
    /// How many blocks of this footprint an SM holds. A footprint without threads counts as one of a single warp.
    pub fn occupancy(&self, kernel: Footprint) -> Occupancy {
        let limits = &self.limits;
        let warps = kernel.threads.max(1).div_ceil(limits.warp_size);

        let by_warps = if kernel.threads > limits.threads_per_block { 0 } else { limits.warps_per_sm / warps };
        let by_registers = self.blocks_by_registers(kernel.registers, warps);
        let by_shared = self.blocks_by_shared(kernel.shared);
        let by_barriers = match limits.barriers_per_sm {
            Some(barriers) if kernel.barriers > 0 => barriers / kernel.barriers,
            _ => u32::MAX,
        };

        let each = [
            (Resource::Warps, by_warps),
            (Resource::Registers, by_registers),
            (Resource::SharedMemory, by_shared),
            (Resource::Blocks, limits.blocks_per_sm),
            (Resource::Barriers, by_barriers),
        ];
        let blocks = each.iter().map(|(_, blocks)| *blocks).min().unwrap_or(0);
        let limited_by = each.iter().filter(|(_, limit)| *limit == blocks).map(|(resource, _)| *resource).collect();
        let resident = blocks * warps;
        Occupancy {
            blocks,
            warps: resident,
            fraction: f64::from(resident) / f64::from(limits.warps_per_sm),
            limited_by,
        }
    }

    /// Registers are given out by warp, and every partition of an SM has its own.
    fn blocks_by_registers(&self, registers: u32, warps: u32) -> u32 {
        let limits = &self.limits;
        if registers > limits.registers_per_thread {
            return 0;
        }
        let per_warp = (registers * limits.warp_size).next_multiple_of(limits.register_granularity);
        // The hardware's check of one block assumes that its warps are dealt out to all partitions evenly.
        let assumed = per_warp * warps.next_multiple_of(limits.partitions_per_sm);
        if assumed > limits.registers_per_block {
            return 0;
        }
        if per_warp == 0 {
            return u32::MAX;
        }
        let warps_per_partition = limits.registers_per_sm / limits.partitions_per_sm / per_warp;
        warps_per_partition * limits.partitions_per_sm / warps
    }

    fn blocks_by_shared(&self, shared: u32) -> u32 {
        let limits = &self.limits;
        if shared > limits.shared_per_block_optin {
            return 0;
        }
        let taken = (shared + limits.shared_reserved_per_block).next_multiple_of(limits.shared_granularity);
        limits.shared_per_sm.checked_div(taken).unwrap_or(u32::MAX)
    }
}
