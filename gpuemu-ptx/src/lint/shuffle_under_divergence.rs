//! `shuffle-under-divergence`.

use super::context::Context;
use super::evaluate::Evaluator;
use super::rule::{Finding, Rule, Severity};
use crate::program::{Opcode, Operand, Variance, Word};

pub(super) const RULE: Rule = Rule {
    name: "shuffle-under-divergence",
    summary: "a shuffle that names all lanes where some may have gone another way",
    severity: Severity::Warning,
    explanation: "`__shfl_sync(0xffffffff, ...)` needs every lane of the warp to come to it: what a lane that does not come \
                  would give is undefined, and on newer GPUs the others may wait for it. Move the shuffle out of the branch, \
                  or compute the mask of the lanes that come with a ballot before it.",
};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let flow = context.flow;
    let mut shuffles: Vec<Vec<u32>> = vec![Vec::new(); flow.blocks.len()];
    let mut any = false;
    let mut evaluator = Evaluator::new(context);
    for (index, instruction, form) in context.instructions() {
        let all = match context.function.operands_of(instruction).get(4) {
            Some(Operand::Integer(mask)) => *mask as u32 == u32::MAX,
            // A constant in a register.
            Some(Operand::Register(mask)) => evaluator
                .register(index, *mask)
                .is_some_and(|values| values.iter().all(|value| value.bits as u32 == u32::MAX)),
            _ => false,
        };
        if instruction.opcode == Opcode::Shfl && form.has(Word::Sync) && all {
            shuffles[flow.block_of(index).0 as usize].push(index);
            any = true;
        }
    }
    if !any {
        return;
    }
    let branches = context.variances.branches().iter().filter(|(_, variance)| *variance == Variance::Thread);
    for &(branch, _) in branches {
        if !flow.block(branch).reachable {
            continue;
        }
        let sides: Vec<_> = flow.successors(branch).collect();
        // Lanes that left are missing too, but a launch may be such that whole warps leave.
        if sides.iter().any(|&side| context.returns(side)) {
            continue;
        }
        if context.parts(&mut evaluator, branch, 32).is_none() {
            continue;
        }
        let meeting = flow.block(branch).post_dominator;
        let mut counts = vec![];
        for &side in &sides {
            let mut found: Vec<u32> = context
                .between(side, meeting)
                .into_iter()
                .flat_map(|block| std::mem::take(&mut shuffles[block.0 as usize]))
                .collect();
            found.sort_unstable();
            counts.push(found);
        }
        for shuffle in counts.into_iter().flatten() {
            let message = format!(
                "this shuffle names all lanes, and {} may keep some from coming: move it out of the branch, or name the lanes \
                 that come",
                context.condition(branch)
            );
            let related = context.related(context.branch(branch), "lanes part here");
            findings.push(context.finding(&RULE, shuffle, message).with(related));
        }
    }
}
