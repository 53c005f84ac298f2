//! `divergent-barrier`.

use super::context::{Context, is_block_barrier};
use super::evaluate::Evaluator;
use super::rule::{Finding, Rule, Severity};
use crate::flow::BlockId;

pub(super) const RULE: Rule = Rule {
    name: "divergent-barrier",
    summary: "a barrier of the block on one side of a branch that threads take differently",
    severity: Severity::Error,
    explanation: "`__syncthreads` waits for every thread of the block. Where a condition that differs between threads \
                  decides whether a thread comes to it, the others wait for ever, or meet it at another barrier. Move the \
                  barrier out of the branch. Nothing is said where the other side leaves the kernel, since threads that \
                  left count as arrived, where both sides have a barrier, and of barriers for a given number of threads, \
                  which are meant for some. A condition counts as differing where the threads' indices make it so: what comes \
                  from memory or from exchanges between threads may well be the same for all.",
};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let flow = context.flow;
    let mut barriers = vec![None; flow.blocks.len()];
    for (index, instruction, form) in context.instructions() {
        if is_block_barrier(form, context.function.operands_of(instruction).len()) {
            barriers[flow.block_of(index).0 as usize].get_or_insert(index);
        }
    }
    if barriers.iter().all(Option::is_none) {
        return;
    }
    let mut told = vec![false; flow.blocks.len()];
    let mut evaluator = Evaluator::new(context);
    for &(branch, _) in context.variances.branches() {
        if !flow.block(branch).reachable {
            continue;
        }
        // A side that only leaves, or a meeting that is no more than the end, keeps nobody waiting.
        let Some(meeting) = context.meeting(branch) else { continue };
        let Some(severity) = context.parts(&mut evaluator, branch, usize::MAX) else { continue };
        let sides: Vec<BlockId> = flow.successors(branch).collect();
        let avoids = sides.iter().any(|&side| avoids(context, side, meeting, &barriers));
        if !avoids {
            continue;
        }
        for &side in &sides {
            if context.leaves(side) {
                continue;
            }
            let mut found: Vec<u32> = context
                .between(side, Some(meeting))
                .into_iter()
                // The branch's own block is in its region where it loops: what is before the branch all have passed.
                .filter_map(|block| {
                    barriers[block.0 as usize].filter(|_| !std::mem::replace(&mut told[block.0 as usize], true))
                })
                .collect();
            found.sort_unstable();
            for barrier in found {
                let message = format!(
                    "not every thread of the block comes to this barrier: {} differs between threads, and one side of its \
                     branch passes it by. Move the barrier out of the branch",
                    context.condition(branch)
                );
                let related = context.related(context.branch(branch), "threads part here");
                findings.push(context.finding(&RULE, barrier, message).severity(severity).with(related));
            }
        }
    }
}

/// Whether some way from `start` comes to `meeting` without a barrier.
fn avoids(context: &Context<'_>, start: BlockId, meeting: BlockId, barriers: &[Option<u32>]) -> bool {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut pending = vec![start];
    while let Some(block) = pending.pop() {
        if block == meeting {
            return true;
        }
        if barriers[block.0 as usize].is_none() && seen.insert(block) {
            pending.extend(context.flow.successors(block));
        }
    }
    false
}
