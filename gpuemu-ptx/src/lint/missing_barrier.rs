//! `missing-barrier-between-shared-write-and-read`.

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::evaluate::{Evaluator, Value, Values, blocks};
use super::rule::{Finding, Rule, Severity};
use crate::flow::BlockId;
use crate::program::{
    Base, Compare, Form, Instruction, Opcode, Operand, Order, RegisterId, ScalarType, Space, Symbol, Variance, Word,
};

pub(super) const RULE: Rule = Rule {
    name: "missing-barrier-between-shared-write-and-read",
    summary: "a thread reads shared memory that another writes, and nothing orders the two",
    severity: Severity::Error,
    explanation: "Threads run in no order that a program may count on, those of one warp included. Between a write of shared \
                  memory and the read of it by another thread there has to be a barrier (`__syncthreads`, `__syncwarp` \
                  within a warp), and another before the next write, as in a loop over tiles, which would otherwise overtake \
                  a slow reader. The rule computes both addresses for every thread of a small block and speaks where the \
                  bytes of two threads meet on a way without any synchronisation. It says nothing of addresses \
                  that depend on more than the thread's index, and of accesses under conditions that it cannot follow.",
};

/// Pairs of a write and a read that are compared in one function.
const PAIRS: usize = 2_000;

/// Conditions inside each other, `(a && b) && c`, that are followed.
const NESTED: u32 = 4;

/// An access to shared memory whose addresses are known.
struct Shared {
    symbol: Option<Symbol>,
    /// For every thread the first byte; `None` where it does not come here.
    bytes: Vec<Option<u64>>,
    width: u64,
}

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    let mut stores = FxHashSet::default();
    let mut loads = FxHashSet::default();
    for (index, _, form) in context.instructions() {
        let volatile = matches!(form.order, Some(order) if order != Order::Weak);
        if volatile || form.space != Some(Space::Shared) {
            continue;
        }
        match form.opcode {
            Opcode::St if !form.has(Word::Async) && !form.has(Word::Bulk) => drop(stores.insert(index)),
            Opcode::Ld | Opcode::Ldmatrix => drop(loads.insert(index)),
            _ => {}
        }
    }
    if stores.is_empty() || loads.is_empty() {
        return;
    }
    let controllers = controllers(context);
    let all: Vec<u32> = stores.iter().chain(&loads).copied().collect();
    let known = addresses(context, &controllers, &all);
    let mut search = Search { context, known, pairs: PAIRS, told: FxHashSet::default(), findings };
    search.pairs(&stores, &loads, |reader, writer| {
        let message = format!(
            "this reads shared memory that another thread wrote with no barrier since: thread {reader} reads what thread \
             {writer} wrote. Put a barrier between the two"
        );
        (message, "it is written here")
    });
    search.pairs(&loads, &stores, |writer, reader| {
        let message = format!(
            "this writes shared memory that another thread reads with no barrier since: thread {writer} may write before \
             thread {reader} has read. Put a barrier between the two"
        );
        (message, "it is read here")
    });
}

/// The search for accesses of two threads that nothing orders.
struct Search<'s, 'p> {
    context: &'s Context<'p>,
    known: FxHashMap<u32, Shared>,
    /// Pairs that may still be compared.
    pairs: usize,
    /// Instructions with a finding.
    told: FxHashSet<u32>,
    findings: &'s mut Vec<Finding>,
}

impl Search<'_, '_> {
    /// Looks at every access of `second` that a way without synchronisation leads to from one of `first`. `words` makes
    /// the message and that of the other place from the threads of the second access and of the first.
    fn pairs(
        &mut self,
        first: &FxHashSet<u32>,
        second: &FxHashSet<u32>,
        words: impl Fn(usize, usize) -> (String, &'static str),
    ) {
        let mut earlier: Vec<u32> = first.iter().copied().filter(|index| self.known.contains_key(index)).collect();
        earlier.sort_unstable();
        for earlier in earlier {
            for later in unordered(self.context, earlier, second) {
                let (Some(before), Some(after)) = (self.known.get(&earlier), self.known.get(&later)) else { continue };
                if self.pairs == 0 {
                    return;
                }
                self.pairs -= 1;
                let Some((one, other)) = conflict(before, after) else { continue };
                // One finding for two instructions, whichever comes first.
                if self.told.contains(&earlier) || !self.told.insert(later) {
                    continue;
                }
                let (message, there) = words(other, one);
                let related = self.context.related(earlier, there);
                self.findings.push(self.context.finding(&RULE, later, message).with(related));
            }
        }
    }
}

/// The addresses of these accesses, as far as they are known, for the largest block that stays within the arrays.
fn addresses(context: &Context<'_>, controllers: &Controllers, all: &[u32]) -> FxHashMap<u32, Shared> {
    let blocks = blocks(context);
    for (number, &block) in blocks.iter().enumerate() {
        let mut evaluator = Evaluator::of_block(context, block);
        let known: FxHashMap<u32, Shared> = all
            .iter()
            .filter_map(|&index| Some((index, access(context, &mut evaluator, controllers, index)?)))
            .collect();
        if number + 1 == blocks.len() || known.values().all(|shared| shared.fits(context)) {
            return known;
        }
    }
    FxHashMap::default()
}

impl Shared {
    /// Whether all of it lies within its variable. One whose size the launch gives is no bound to hold on to.
    fn fits(&self, context: &Context<'_>) -> bool {
        let size = match self.symbol {
            Some(Symbol::Variable(id)) => context.program.variable(id).size,
            Some(Symbol::Local(id)) => context.function.variables[id.0 as usize].size,
            _ => 0,
        };
        let inside = |first: u64| first.checked_add(self.width).is_some_and(|end| end <= size);
        self.bytes.iter().flatten().all(|&first| inside(first))
    }
}

/// The accesses of `wanted` that a way without synchronisation leads to from `access`, in order.
fn unordered(context: &Context<'_>, access: u32, wanted: &FxHashSet<u32>) -> Vec<u32> {
    let flow = context.flow;
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut pending: Vec<(BlockId, u32)> = vec![(flow.block_of(access), access + 1)];
    let mut steps = 200_000_u32;
    while let Some((block, begin)) = pending.pop() {
        let mut ordered = false;
        for index in begin..flow.block(block).instructions.end {
            steps = steps.saturating_sub(1);
            if orders(context.at(index), context.form(index)) || steps == 0 {
                ordered = true;
                break;
            }
            if wanted.contains(&index) {
                found.push(index);
            }
        }
        if !ordered {
            for next in flow.successors(block) {
                if seen.insert(next) {
                    pending.push((next, flow.block(next).instructions.start));
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether an instruction may order the accesses of different threads. Everything that ever does counts, exchanges
/// within a warp included, under a guard or not.
fn orders(instruction: &Instruction, form: &Form) -> bool {
    use Opcode::*;
    match instruction.opcode {
        Bar | Barrier | Fence | Membar | Mbarrier | Call | Wgmma | Tcgen05 | Griddepcontrol => true,
        Shfl | Vote | Match | Redux | Mma | Wmma | Movmatrix | Stmatrix => true,
        Atom | Red | Cp => true,
        Ld | St => matches!(form.order, Some(order) if order != Order::Weak),
        _ => false,
    }
}

/// The blocks whose branch decides whether each block is executed, with the number of the side.
type Controllers = FxHashMap<BlockId, Vec<(BlockId, usize)>>;

fn controllers(context: &Context<'_>) -> Controllers {
    let flow = context.flow;
    let mut controllers = Controllers::default();
    for (number, block) in (0..).map(BlockId).zip(&flow.blocks) {
        if !block.reachable {
            continue;
        }
        for (side, next) in flow.successors(number).enumerate() {
            let mut walk = Some(next);
            let mut steps = 64;
            while let Some(controlled) = walk.filter(|_| walk != block.post_dominator && steps > 0) {
                steps -= 1;
                controllers.entry(controlled).or_default().push((number, side));
                walk = flow.block(controlled).post_dominator;
            }
        }
    }
    controllers
}

/// The addresses of an access, one a thread; `None` where they, or the condition under which it is executed, are not
/// known.
fn access(
    context: &Context<'_>,
    evaluator: &mut Evaluator<'_, '_>,
    controllers: &Controllers,
    index: u32,
) -> Option<Shared> {
    let (instruction, form) = (context.at(index), context.form(index));
    let (base, offset) = context.function.operands_of(instruction).iter().find_map(|operand| match operand {
        Operand::Address(base, offset) => Some((*base, *offset)),
        _ => None,
    })?;
    let threads = evaluator.threads();
    let mut active = vec![true; threads];
    if let Some(guard) = instruction.guard {
        restrict(context, evaluator, (index, guard.register), !guard.negated, &mut active, NESTED)?;
    }
    // Conditions around the block, and around those.
    let mut pending = vec![context.flow.block_of(index)];
    let mut seen = FxHashSet::default();
    while let Some(block) = pending.pop() {
        for &(branch, side) in controllers.get(&block).map_or(&[][..], Vec::as_slice) {
            if !seen.insert(branch) {
                continue;
            }
            pending.push(branch);
            let last = context.at(context.branch(branch));
            let guard = last.guard.filter(|_| last.opcode == Opcode::Bra)?;
            let [Operand::Label(target)] = context.function.operands_of(last) else { return None };
            // A target at the very end is no block.
            let inside = (*target as usize) < context.function.instructions.len();
            let taken = inside && context.flow.successors(branch).nth(side) == Some(context.flow.block_of(*target));
            let at = context.branch(branch);
            restrict(context, evaluator, (at, guard.register), taken != guard.negated, &mut active, NESTED)?;
        }
        if seen.len() > 32 {
            return None;
        }
    }
    let (symbol, first): (Option<Symbol>, Values) = match base {
        Base::Register(register) => {
            let values = evaluator.register(index, register)?;
            (values.first()?.symbol, values)
        }
        // One address for all threads: what they write there is one value, or a race of another kind.
        Base::Symbol(symbol) if form.opcode != Opcode::St => {
            let value = Value { symbol: Some(symbol), bits: 0 };
            (Some(symbol), vec![value; threads].into())
        }
        _ => return None,
    };
    if first.iter().any(|value| value.symbol != symbol) {
        return None;
    }
    let width = match form.opcode {
        Opcode::Ldmatrix => 16,
        _ => u64::from(form.types.first()?.bytes()) * u64::from(form.vector),
    };
    // Lanes beyond those that give addresses of rows.
    let rows = match form.opcode {
        Opcode::Ldmatrix if form.has(Word::X1) => 8,
        Opcode::Ldmatrix if form.has(Word::X2) => 16,
        _ => 32,
    };
    let bytes = first
        .iter()
        .zip(active)
        .enumerate()
        .map(|(thread, (value, active))| (active && thread % 32 < rows).then(|| value.bits.wrapping_add(offset as u64)))
        .collect();
    Some(Shared { symbol, bytes, width })
}

/// Leaves the threads for which a condition holds. `None` where it may hold for one thread only and which is not known.
fn restrict(
    context: &Context<'_>,
    evaluator: &mut Evaluator<'_, '_>,
    (reader, condition): (u32, RegisterId),
    wanted: bool,
    active: &mut [bool],
    nested: u32,
) -> Option<()> {
    if let Some(values) = evaluator.register(reader, condition) {
        for (active, value) in active.iter_mut().zip(values.iter()) {
            *active &= (value.bits & 1 == 1) == wanted;
        }
        return Some(());
    }
    // A condition that is one for the block holds for all threads where it holds at all.
    if context.variances.at(reader, condition) == Variance::Block {
        return Some(());
    }
    let comparison = context.writer_at(reader, condition)?;
    let form = context.form(comparison);
    // A tail of two dimensions: both bounds hold, or neither is passed.
    if form.types.first() == Some(&ScalarType::Predicate) && context.at(comparison).guard.is_none() {
        let operands = context.function.operands_of(context.at(comparison));
        let parts = match (form.opcode, wanted, operands) {
            (Opcode::And, true, [_, parts @ ..]) | (Opcode::Or, false, [_, parts @ ..]) if parts.len() == 2 => parts,
            (Opcode::Mov, _, [_, parts @ ..]) | (Opcode::Not, _, [_, parts @ ..]) if parts.len() == 1 => parts,
            _ => return None,
        };
        for part in parts {
            let (register, negated) = match part {
                Operand::Register(register) => (*register, form.opcode == Opcode::Not),
                Operand::Negated(register) => (*register, true),
                _ => return None,
            };
            restrict(context, evaluator, (comparison, register), wanted != negated, active, nested.checked_sub(1)?)?;
        }
        return Some(());
    }
    // A bound that is one for the block may be larger than all indices, or smaller.
    let bounds = matches!(
        form.compare?,
        Compare::Less
            | Compare::LessEqual
            | Compare::Greater
            | Compare::GreaterEqual
            | Compare::Lower
            | Compare::LowerSame
            | Compare::Higher
            | Compare::HigherSame
    );
    let uniform = context.function.operands_of(context.at(comparison)).iter().skip(1).any(|operand| match operand {
        Operand::Register(register) => context.variances.at(comparison, *register) == Variance::Block,
        Operand::Integer(_) => true,
        _ => false,
    });
    let integers = form.types.first().is_some_and(|ty| !ty.is_float());
    (bounds && uniform && integers && context.by_index(reader, condition)).then_some(())
}

/// Two threads of which the second comes to a byte that the first came to before.
fn conflict(before: &Shared, after: &Shared) -> Option<(usize, usize)> {
    if before.symbol != after.symbol || before.symbol.is_none() {
        return None;
    }
    // The same thread's own access comes first: what several write, itself among them, is no sure conflict.
    let overlaps = |a: u64, b: u64| a < b + after.width && b < a + before.width;
    for (second, from) in after.bytes.iter().enumerate() {
        let Some(from) = *from else { continue };
        if before.bytes.get(second).copied().flatten().is_some_and(|own| overlaps(own, from)) {
            continue;
        }
        for (first, to) in before.bytes.iter().enumerate() {
            if first != second && to.is_some_and(|to| overlaps(to, from)) {
                return Some((first, second));
            }
        }
    }
    None
}
