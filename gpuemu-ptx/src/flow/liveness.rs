//! Which registers hold a value that may still be read.

use super::blocks::{BlockId, Flow};
use super::grouped::Grouped;

/// What instructions read and write, registers and instructions as dense numbers.
pub trait Accesses {
    /// How many registers there are.
    fn registers(&self) -> usize;
    /// Calls `visit` with every register that the instruction reads.
    fn reads(&self, instruction: u32, visit: impl FnMut(u32));
    /// Calls `visit` with every register that the instruction writes.
    fn writes(&self, instruction: u32, visit: impl FnMut(u32));
    /// Whether the instruction may leave what it writes as it was: it has a guard.
    fn may_keep(&self, instruction: u32) -> bool;
}

/// The registers live between blocks.
///
/// A write under a guard leaves the old value alive, except where it is the register's only write: then there is no old
/// value to keep.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// By block, those live where it begins.
    live: Grouped,
    /// Whether only one instruction writes a register.
    written_once: Vec<bool>,
}

const NEVER: u32 = u32::MAX;

impl Liveness {
    /// Computes it. The time is that of one pass over the instructions plus the sizes of all the sets.
    pub fn new(flow: &Flow, accesses: &impl Accesses) -> Self {
        let written_once = written_once(flow, accesses);
        let (exposed, kills) = block_summaries(flow, accesses, &written_once);
        let (exposed, kills) =
            (Grouped::new(accesses.registers(), &exposed), Grouped::new(accesses.registers(), &kills));
        // For every register, walk back from the blocks that read it to the blocks that write it.
        let (mut killed_by, mut live_for) = (vec![NEVER; flow.blocks.len()], vec![NEVER; flow.blocks.len()]);
        let mut pairs = Vec::new();
        let mut pending = Vec::new();
        for register in 0..accesses.registers() as u32 {
            let readers = exposed.of(register);
            if readers.is_empty() {
                continue;
            }
            for &block in kills.of(register) {
                killed_by[block as usize] = register;
            }
            for &block in readers {
                live_for[block as usize] = register;
            }
            pending.extend_from_slice(readers);
            while let Some(block) = pending.pop() {
                pairs.push((block, register));
                for &before in flow.graph().predecessors(block) {
                    if killed_by[before as usize] != register && live_for[before as usize] != register {
                        live_for[before as usize] = register;
                        pending.push(before);
                    }
                }
            }
        }
        Self { live: Grouped::new(flow.blocks.len(), &pairs), written_once }
    }

    /// The registers live where a block begins, in order.
    pub fn live_in(&self, block: BlockId) -> &[u32] {
        self.live.of(block.0)
    }

    /// The registers live where a block ends, in order.
    pub fn live_out(&self, flow: &Flow, block: BlockId) -> Vec<u32> {
        let mut live: Vec<_> = flow.successors(block).flat_map(|next| self.live_in(next)).copied().collect();
        live.sort_unstable();
        live.dedup();
        live
    }

    /// Whether an instruction's write of a register ends what was in it before.
    pub fn replaces(&self, accesses: &impl Accesses, instruction: u32, register: u32) -> bool {
        !accesses.may_keep(instruction) || self.written_once[register as usize]
    }

    /// The registers live just before an instruction, in order.
    pub fn live_before(&self, flow: &Flow, accesses: &impl Accesses, instruction: u32) -> Vec<u32> {
        let block = flow.block_of(instruction);
        let mut live: std::collections::BTreeSet<u32> = self.live_out(flow, block).into_iter().collect();
        for below in (instruction..flow.block(block).instructions.end).rev() {
            accesses.writes(below, |register| {
                if self.replaces(accesses, below, register) {
                    live.remove(&register);
                }
            });
            accesses.reads(below, |register| {
                live.insert(register);
            });
        }
        live.into_iter().collect()
    }
}

fn written_once(flow: &Flow, accesses: &impl Accesses) -> Vec<bool> {
    // The first instruction that writes it, or one past all for several.
    let mut writer = vec![NEVER; accesses.registers()];
    let count = flow.blocks.last().map_or(0, |block| block.instructions.end);
    for instruction in 0..count {
        accesses.writes(instruction, |register| {
            let writer = &mut writer[register as usize];
            *writer = if *writer == NEVER || *writer == instruction { instruction } else { count };
        });
    }
    writer.into_iter().map(|writer| writer < count).collect()
}

/// Pairs of a register and a block that reads it before any write of its own; and of a register and a block that writes
/// it for good.
fn block_summaries(flow: &Flow, accesses: &impl Accesses, written_once: &[bool]) -> (Vec<(u32, u32)>, Vec<(u32, u32)>) {
    let (mut exposed, mut kills) = (Vec::new(), Vec::new());
    let (mut exposed_in, mut killed_in) = (vec![NEVER; accesses.registers()], vec![NEVER; accesses.registers()]);
    for (own, block) in (0..).zip(&flow.blocks) {
        for instruction in block.instructions.clone() {
            accesses.reads(instruction, |register| {
                let index = register as usize;
                if killed_in[index] != own && exposed_in[index] != own {
                    exposed_in[index] = own;
                    exposed.push((register, own));
                }
            });
            let keeps = accesses.may_keep(instruction);
            accesses.writes(instruction, |register| {
                let index = register as usize;
                if killed_in[index] != own && (!keeps || written_once[index]) {
                    killed_in[index] = own;
                    kills.push((register, own));
                }
            });
        }
    }
    (exposed, kills)
}
