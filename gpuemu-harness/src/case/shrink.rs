//! Shrinking: from a failing spec to the smallest one that still fails.
//!
//! [`SpecTree`] is a proptest `ValueTree` over the flat record of a spec. It walks through the fields, structure first
//! (layouts, ranks, dimensions, parameters), then values (distributions, exponents), then single elements, and starts
//! over until a whole round brings nothing. Each proposal is simpler in one field and valid for the op.

use super::build::{build, check};
use super::domain::{Limits, kinds, plain};
use super::kind::{Kind, LayoutKind};
use super::schedule::tile_sizes;
use super::shape::{bindings, shape_of};
use super::spec::{Distribution, Edit, Spec};
use gpuemu_contract::{Op, TensorDecl};
use proptest::strategy::ValueTree;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// Elements up to which an input is retold as zeros and one or two edits.
const RETOLD: usize = 32;
/// Elements up to which pairs of edits are tried.
const RETOLD_IN_PAIRS: usize = 8;
/// Values below a size that are tried one by one once halving has come to an end.
const SCANNED: usize = 6;

/// How long shrinking may go on.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Cases run.
    pub runs: u32,
    /// Time taken.
    pub time: Duration,
}

impl Default for Budget {
    /// 500 runs, 20 seconds.
    fn default() -> Self {
        Budget { runs: 500, time: Duration::from_secs(20) }
    }
}

/// The smallest spec found, inside the budget, for which `still_fails` says so; `failing` itself where there is none.
pub fn shrink(op: &Op, failing: Spec, budget: Budget, still_fails: &mut dyn FnMut(&Spec) -> bool) -> Spec {
    let start = Instant::now();
    let mut smallest = failing.clone();
    let mut tree = SpecTree::new(op, failing);
    let mut going = tree.simplify();
    let mut runs = 0;
    while going && runs < budget.runs && start.elapsed() < budget.time {
        runs += 1;
        let spec = tree.current();
        going = if still_fails(&spec) {
            smallest = spec;
            tree.simplify()
        } else {
            tree.complicate()
        };
    }
    smallest
}

/// One field, or a few that shrink together.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// All layouts, all values, all sizes at once.
    Everything,
    Layout(usize),
    Rank,
    /// Dimensions of one size: constraints often tie them together.
    Dims(Vec<usize>),
    Param(usize),
    Values(usize),
    Exponent(usize),
    /// The few non-finite elements of an input, as edits.
    NonFinite(usize),
    Edits,
    /// An input as zeros or ones and single elements.
    Singles(usize),
}

/// See the module.
#[derive(Debug)]
pub struct SpecTree<'a> {
    op: &'a Op,
    /// The simplest spec known to fail.
    best: Spec,
    current: Spec,
    /// Every line proposed so far.
    tried: HashSet<String>,
    steps: Vec<Step>,
    at: usize,
    /// Sizes of the step's dimension that need no further try.
    sizes: BTreeSet<u64>,
    /// The size below which the last ones were tried one by one, and how many.
    scanned: (u64, usize),
    /// Whether this round has made the spec simpler.
    progress: bool,
}

impl<'a> SpecTree<'a> {
    /// A tree whose root is a failing spec.
    pub fn new(op: &'a Op, failing: Spec) -> SpecTree<'a> {
        let tried = HashSet::from([failing.to_string()]);
        let mut tree = SpecTree {
            op,
            current: failing.clone(),
            best: failing,
            tried,
            steps: Vec::new(),
            at: 0,
            sizes: BTreeSet::new(),
            scanned: (0, 0),
            progress: false,
        };
        tree.steps = tree.round();
        tree
    }

    /// The steps of one round.
    fn round(&self) -> Vec<Step> {
        let inputs = 0..self.best.inputs.len();
        let dims = &self.best.dims;
        let mut steps = vec![Step::Everything];
        steps.extend(inputs.clone().map(Step::Layout));
        steps.push(Step::Rank);
        let sizes: BTreeSet<u64> = dims.iter().map(|(_, size)| *size).collect();
        for size in sizes {
            let tied: Vec<usize> = (0..dims.len()).filter(|&dim| dims[dim].1 == size).collect();
            if tied.len() > 1 {
                steps.push(Step::Dims(tied));
            }
        }
        steps.extend((0..dims.len()).map(|dim| Step::Dims(vec![dim])));
        for first in 0..dims.len() {
            let pairs = (first + 1..dims.len()).filter(|&second| dims[first].1 == dims[second].1);
            steps.extend(pairs.map(|second| Step::Dims(vec![first, second])));
        }
        steps.extend((0..self.best.params.len()).map(Step::Param));
        steps.extend(inputs.clone().map(Step::NonFinite));
        steps.extend(inputs.clone().map(Step::Values));
        steps.extend(inputs.clone().map(Step::Exponent));
        steps.push(Step::Edits);
        steps.extend(inputs.map(Step::Singles));
        steps.push(Step::Edits);
        steps
    }

    /// The next proposal; false when there is none.
    fn propose(&mut self) -> bool {
        loop {
            while let Some(step) = self.steps.get(self.at).cloned() {
                if let Some(spec) = self.next_of(&step) {
                    self.current = spec;
                    return true;
                }
                self.at += 1;
                self.sizes.clear();
                self.scanned = (0, 0);
            }
            if !self.progress {
                self.current = self.best.clone();
                return false;
            }
            self.progress = false;
            self.at = 0;
            self.steps = self.round();
        }
    }

    fn next_of(&mut self, step: &Step) -> Option<Spec> {
        if let Step::Dims(dims) = step {
            return self.next_size(dims);
        }
        self.candidates(step).into_iter().find(|spec| self.is_new(spec) && self.is_valid(spec)).inspect(|spec| {
            self.tried.insert(spec.to_string());
        })
    }

    fn is_new(&self, spec: &Spec) -> bool {
        !self.tried.contains(&spec.to_string())
    }

    fn is_valid(&self, spec: &Spec) -> bool {
        check(self.op, spec).is_ok()
    }

    /// The next smaller size for dimensions of one size: the smallest and the tile edges first, then halving the
    /// distance to the last size that did not fail, then one by one.
    fn next_size(&mut self, dims: &[usize]) -> Option<Spec> {
        let (_, now) = self.best.dims[dims[0]];
        let declared: Vec<_> = dims.iter().map(|&dim| &self.op.schema.dims[dim].1).collect();
        let least = declared.iter().map(|dimension| dimension.min).max().unwrap_or(0);
        let mut targets: Vec<u64> = [least, 1, 2, 3].into();
        targets.extend(declared.iter().filter_map(|dimension| dimension.tile).flat_map(tile_sizes));
        targets.sort_unstable();
        loop {
            let target = targets
                .iter()
                .copied()
                .find(|&size| size >= least && size < now && !self.sizes.contains(&size))
                .or_else(|| self.halfway(dims, least, now))
                .or_else(|| self.one_by_one(dims, least, now))?;
            self.sizes.insert(target);
            let spec = self.resized(dims, target);
            if self.is_new(&spec) && self.is_valid(&spec) {
                self.tried.insert(spec.to_string());
                return Some(spec);
            }
        }
    }

    /// The valid size nearest to half way between the last size that did not fail and the present one.
    fn halfway(&self, dims: &[usize], least: u64, now: u64) -> Option<u64> {
        let low = self.sizes.range(least..now).next_back().copied()?;
        let middle = low + (now - low) / 2;
        if middle == low {
            return None;
        }
        let valid = |size: &u64| self.is_valid(&self.resized(dims, *size));
        let below = (low + 1..=middle).rev().take(512);
        let above = (middle + 1..now).take(512);
        below.chain(above).find(valid)
    }

    fn one_by_one(&mut self, dims: &[usize], least: u64, now: u64) -> Option<u64> {
        if self.scanned.0 != now {
            self.scanned = (now, 0);
        }
        if self.scanned.1 == SCANNED {
            return None;
        }
        self.scanned.1 += 1;
        (least..now)
            .rev()
            .take(512)
            .find(|size| !self.sizes.contains(size) && self.is_valid(&self.resized(dims, *size)))
    }

    fn resized(&self, dims: &[usize], size: u64) -> Spec {
        let mut spec = self.best.clone();
        for &dim in dims {
            spec.dims[dim].1 = size;
        }
        self.with_fitting_edits(spec)
    }

    /// Moves edits into the tensors of a spec whose sizes have changed; drops those of another rank.
    fn with_fitting_edits(&self, mut spec: Spec) -> Spec {
        if spec.edits.is_empty() {
            return spec;
        }
        let bindings = bindings(&spec.dims, &spec.params);
        let any_rank = spec.any_rank.clone();
        let shape = |name: &str| {
            let decl = self.op.schema.input(name)?;
            shape_of(decl, &bindings, any_rank.as_deref()).ok().flatten()
        };
        let mut edits: Vec<Edit> = Vec::new();
        for mut edit in std::mem::take(&mut spec.edits) {
            let Some(shape) = shape(&edit.input) else { continue };
            if shape.len() != edit.index.len() || shape.contains(&0) {
                continue;
            }
            for (index, &size) in edit.index.iter_mut().zip(&shape) {
                *index = (*index).min(size as u64 - 1);
            }
            edits.retain(|earlier| earlier.input != edit.input || earlier.index != edit.index);
            edits.push(edit);
        }
        spec.edits = edits;
        spec
    }

    fn decl(&self, input: usize) -> &TensorDecl {
        &self.op.schema.inputs[input]
    }

    fn limits(&self, input: usize) -> Option<Limits> {
        let bindings = bindings(&self.best.dims, &self.best.params);
        let dtype = self.decl(input).dtype.resolve(self.best.test.dtype);
        self.decl(input).domain.as_ref().and_then(|domain| Limits::of(domain, dtype, &bindings).ok())
    }

    /// Specs simpler than the best one in the field of a step, the simplest first.
    fn candidates(&self, step: &Step) -> Vec<Spec> {
        match step {
            Step::Everything => self.everything(),
            &Step::Layout(input) if self.best.inputs[input].layout != LayoutKind::Row => {
                vec![self.with(|spec| spec.inputs[input].layout = LayoutKind::Row)]
            }
            Step::Layout(_) | Step::Dims(_) => Vec::new(),
            Step::Rank => self.ranks(),
            &Step::Param(param) => {
                let (_, now) = &self.best.params[param];
                let earlier = self.op.params[param].candidates.iter().take_while(|value| *value != now);
                earlier.map(|value| self.with(|spec| spec.params[param].1 = value.clone())).collect()
            }
            &Step::Values(input) => self.simpler_values(input),
            &Step::Exponent(input) => {
                let now = self.best.inputs[input].values.exponent;
                let smaller = [0, now / 2, now - now / 4, now - now / 8, now - now.signum()];
                let smaller = smaller.into_iter().filter(|exponent| exponent.abs() < now.abs());
                smaller.map(|exponent| self.with(|spec| spec.inputs[input].values.exponent = exponent)).collect()
            }
            &Step::NonFinite(input) => self.non_finite_as_edits(input),
            Step::Edits => self.fewer_edits(),
            &Step::Singles(input) => self.singles(input),
        }
    }

    fn with(&self, change: impl FnOnce(&mut Spec)) -> Spec {
        let mut spec = self.best.clone();
        change(&mut spec);
        spec
    }

    fn everything(&self) -> Vec<Spec> {
        let plain_values = |spec: &mut Spec| {
            for (number, input) in spec.inputs.iter_mut().enumerate() {
                let decl = self.decl(number);
                let plain = plain(decl.dtype.resolve(self.best.test.dtype), self.limits(number).as_ref());
                if plain < input.values.kind && input.values.kind != Kind::Generated {
                    input.values = plain.into();
                }
            }
        };
        let rows = |spec: &mut Spec| spec.inputs.iter_mut().for_each(|input| input.layout = LayoutKind::Row);
        let small = |spec: &mut Spec| {
            for ((_, size), (_, dimension)) in spec.dims.iter_mut().zip(&self.op.schema.dims) {
                *size = (*size).min(dimension.min.max(1));
            }
        };
        let all = self.with(|spec| {
            plain_values(spec);
            rows(spec);
            small(spec);
        });
        vec![
            self.with_fitting_edits(all),
            self.with_fitting_edits(self.with(small)),
            self.with(rows),
            self.with(plain_values),
        ]
    }

    fn ranks(&self) -> Vec<Spec> {
        let Some(shape) = &self.best.any_rank else { return Vec::new() };
        let mut shapes: Vec<Vec<u64>> = vec![vec![1]];
        if shape.len() > 1 {
            shapes.push(vec![shape.iter().product()]);
        }
        for axis in 0..shape.len() {
            let mut fewer = shape.clone();
            fewer.remove(axis);
            if !fewer.is_empty() {
                shapes.push(fewer);
            }
        }
        for (axis, &now) in shape.iter().enumerate() {
            for size in [1, 2, 3, now / 2, now - now / 4, now - now / 8, now - now / 16, now.saturating_sub(1)] {
                if size > 0 && size < now {
                    let mut smaller = shape.clone();
                    smaller[axis] = size;
                    shapes.push(smaller);
                }
            }
        }
        let elements: u64 = shape.iter().product();
        shapes.retain(|candidate| {
            let product: u64 = candidate.iter().product();
            product < elements || product == elements && candidate.len() < shape.len()
        });
        let with_shape = |shape: Vec<u64>| self.with_fitting_edits(self.with(|spec| spec.any_rank = Some(shape)));
        shapes.into_iter().map(with_shape).collect()
    }

    fn simpler_values(&self, input: usize) -> Vec<Spec> {
        let now = self.best.inputs[input].values;
        if now.kind == Kind::Generated {
            return Vec::new();
        }
        let dtype = self.decl(input).dtype.resolve(self.best.test.dtype);
        let mut specs = Vec::new();
        for &kind in kinds(dtype, self.limits(input).as_ref()).iter().filter(|kind| **kind < now.kind) {
            let mut exponents = vec![0];
            if now.exponent != 0 {
                exponents.push(now.exponent);
            }
            for exponent in exponents {
                specs.push(self.with(|spec| spec.inputs[input].values = Distribution { kind, exponent }));
            }
        }
        specs
    }

    /// The values of an input with their indices, where it is small enough and not generated by the user.
    fn elements(&self, input: usize, most: usize) -> Vec<(Vec<u64>, f64)> {
        let name = &self.best.inputs[input].name;
        let generated = self.best.inputs.iter().any(|input| input.values.kind == Kind::Generated);
        let bindings = bindings(&self.best.dims, &self.best.params);
        let shape = shape_of(self.decl(input), &bindings, self.best.any_rank.as_deref()).ok().flatten();
        let small = shape.is_some_and(|shape| shape.iter().product::<usize>() <= most);
        if generated || !small {
            return Vec::new();
        }
        let Ok(case) = build(self.op, &self.best, None) else { return Vec::new() };
        let Some((_, tensor)) = case.inputs.into_iter().find(|(tensor, _)| tensor == name) else { return Vec::new() };
        let array = tensor.to_array();
        let index = |number| crate::tensor::Layout::index_of(&array.shape, number);
        (0..array.len())
            .map(|number| (index(number).into_iter().map(|i| i as u64).collect(), array.at(number)))
            .collect()
    }

    /// An input with these values and edits instead of its present ones.
    fn retold(&self, input: usize, kind: Kind, edits: &[(Vec<u64>, f64)]) -> Spec {
        self.with(|spec| {
            let target = &mut spec.inputs[input];
            target.values = kind.into();
            let name = target.name.clone();
            spec.edits.retain(|edit| edit.input != name);
            let edit =
                |(index, value): &(Vec<u64>, f64)| Edit { input: name.clone(), index: index.clone(), value: *value };
            spec.edits.extend(edits.iter().map(edit));
        })
    }

    fn non_finite_as_edits(&self, input: usize) -> Vec<Spec> {
        let now = self.best.inputs[input].values.kind;
        if !matches!(now, Kind::NanFew | Kind::InfFew | Kind::NegInfRows | Kind::Adversarial) {
            return Vec::new();
        }
        let mut few = self.elements(input, 1 << 16);
        few.retain(|(_, value)| !value.is_finite());
        if few.is_empty() || few.len() > 16 {
            return Vec::new();
        }
        let mut specs: Vec<Spec> =
            few.iter().map(|one| self.retold(input, Kind::Normal, std::slice::from_ref(one))).collect();
        if (2..=3).contains(&few.len()) {
            specs.push(self.retold(input, Kind::Normal, &few));
        }
        specs
    }

    fn fewer_edits(&self) -> Vec<Spec> {
        let mut specs = Vec::new();
        for number in 0..self.best.edits.len() {
            specs.push(self.with(|spec| drop(spec.edits.remove(number))));
        }
        for (number, edit) in self.best.edits.iter().enumerate() {
            // Rounder numbers: 1, the power of two below, a whole number; where the domain may have them.
            let place = self.best.inputs.iter().position(|input| input.name == edit.input);
            let limits = place.and_then(|input| self.limits(input));
            let admits = |value: f64| match limits {
                None => true,
                Some(Limits::Positive) => value > 0.0,
                Some(Limits::Probability) => (0.0..=1.0).contains(&value),
                Some(Limits::Float(low, high)) => (low..=high).contains(&value),
                Some(_) => false,
            };
            let magnitude = edit.value.abs();
            let mut rounder = vec![1.0f64.copysign(edit.value)];
            if edit.value.is_finite() && magnitude != 1.0 {
                if magnitude.is_normal() {
                    rounder.push(f64::from_bits(edit.value.to_bits() >> 52 << 52));
                }
                rounder.push(edit.value.trunc());
            }
            for value in rounder {
                let whole = |value: f64| value == value.trunc();
                let simpler = admits(value)
                    && edit.value.is_finite()
                    && value != edit.value
                    && magnitude != 1.0
                    && value != 0.0
                    && (whole(value) || !whole(edit.value));
                if simpler {
                    specs.push(self.with(|spec| spec.edits[number].value = value));
                }
            }
            for axis in 0..edit.index.len() {
                for index in [0, edit.index[axis] / 2] {
                    if index < edit.index[axis] {
                        let mut moved = self.with(|spec| spec.edits[number].index[axis] = index);
                        let place = moved.edits[number].index.clone();
                        let mut at = 0;
                        moved.edits.retain(|other| {
                            at += 1;
                            at - 1 == number || other.input != edit.input || other.index != place
                        });
                        specs.push(moved);
                    }
                }
            }
        }
        specs
    }

    fn singles(&self, input: usize) -> Vec<Spec> {
        let now = self.best.inputs[input].values.kind;
        let dtype = self.decl(input).dtype.resolve(self.best.test.dtype);
        // Edits may leave a domain of structured rows; there values stay as drawn.
        let free =
            matches!(self.limits(input), None | Some(Limits::Positive | Limits::Probability | Limits::Float(..)));
        if !free || !dtype.is_float() || now <= Kind::Ones || now == Kind::Generated {
            return Vec::new();
        }
        let elements = self.elements(input, RETOLD);
        let allowed = kinds(dtype, self.limits(input).as_ref());
        let mut specs = Vec::new();
        for base in [Kind::Zeros, Kind::Ones].into_iter().filter(|kind| allowed.contains(kind)) {
            for one in &elements {
                specs.push(self.retold(input, base, std::slice::from_ref(one)));
            }
            if elements.len() <= RETOLD_IN_PAIRS {
                for (number, first) in elements.iter().enumerate() {
                    for second in &elements[number + 1..] {
                        specs.push(self.retold(input, base, &[first.clone(), second.clone()]));
                    }
                }
            }
        }
        specs
    }
}

impl ValueTree for SpecTree<'_> {
    type Value = Spec;

    fn current(&self) -> Spec {
        self.current.clone()
    }

    /// The current spec fails: it becomes the best one, and a simpler one is proposed.
    fn simplify(&mut self) -> bool {
        if self.current != self.best {
            self.best = self.current.clone();
            self.progress = true;
        }
        self.propose()
    }

    /// The current spec does not fail: another simplification of the best one is proposed.
    fn complicate(&mut self) -> bool {
        self.propose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::testing::{op, softmax};

    fn spec(line: &str) -> Spec {
        line.parse().unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    const LARGE: &str = "op::float32::layout{B=8,S=128,H=1025;axis=1} x:padded adversarial@2^12 seed=0000000000000007";

    fn shrunk(op: &Op, line: &str, mut fails: impl FnMut(&Spec) -> bool) -> String {
        let failing = spec(line);
        assert!(fails(&failing), "the root must fail");
        let budget = Budget::default();
        let mut runs = 0;
        let smallest = shrink(op, failing, budget, &mut |spec| {
            runs += 1;
            check(op, spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
            fails(spec)
        });
        assert!(fails(&smallest), "{smallest}");
        assert!(runs <= budget.runs);
        smallest.to_string()
    }

    #[test]
    fn sizes_shrink_to_the_smallest_that_fail() {
        let h = |spec: &Spec| spec.dim("H").expect("H");
        let table: &[(&dyn Fn(&Spec) -> bool, &str)] = &[
            (&|_| true, "B=1,S=1,H=1;axis=-1} x:row zeros"),
            (&|spec| h(spec) % 128 != 0 && h(spec) > 128, "B=1,S=1,H=129;axis=-1} x:row zeros"),
            (&|spec| h(spec) > 700, "B=1,S=1,H=701;axis=-1} x:row zeros"),
            (&|spec| h(spec) * spec.dim("S").expect("S") > 1000, "B=1,S=1,H=1001;axis=-1} x:row zeros"),
            (&|spec| spec.params[0].1 == gpuemu_contract::ParamValue::Int(1), "B=1,S=1,H=1;axis=1} x:row zeros"),
            (&|spec| spec.inputs[0].layout == LayoutKind::Padded, "B=1,S=1,H=1;axis=-1} x:padded zeros"),
            (&|spec| spec.inputs[0].values.exponent >= 5, "B=1,S=1,H=1;axis=-1} x:row zeros@2^5"),
            (&|spec| spec.dim("B") == Some(8) && spec.dim("S") >= Some(5), "B=8,S=5,H=1;axis=-1} x:row zeros"),
        ];
        for (fails, expected) in table {
            let line = shrunk(&softmax(), LARGE, fails);
            assert_eq!(line, format!("op::float32::layout{{{expected} seed=0000000000000007"));
        }
    }

    #[test]
    fn constraints_tie_dimensions_together() {
        let square =
            op("[ops.schema]\ndims = { M = [64], K = [64], N = [64] }\nwhere = [\"M == K\", \"N % 16 == 0\"]\n\
            inputs = { x = [\"M\", \"K\", \"N\"] }\noutputs = { out = [\"M\"] }");
        let line = "op::float32::default{M=64,K=64,N=64} x:row normal seed=0000000000000007";
        let fails = |spec: &Spec| spec.dim("M") >= Some(5) && spec.dim("N") >= Some(20);
        assert_eq!(
            shrunk(&square, line, fails),
            "op::float32::default{M=5,K=5,N=32} x:row zeros seed=0000000000000007"
        );
    }

    #[test]
    fn values_shrink_to_single_elements() {
        let softmax = softmax();
        let values = |spec: &Spec| {
            let case = build(&softmax, spec, None).expect("a case");
            let array = case.inputs[0].1.to_array();
            (0..array.len()).map(|i| array.at(i)).collect::<Vec<f64>>()
        };
        let line = LARGE.replace("adversarial@2^12", "nan_few").replace("S=128,H=1025", "S=7,H=33");
        let table: &[(&dyn Fn(&Spec) -> bool, &str)] = &[
            (
                &|spec| values(spec).iter().any(|x| x.is_nan()),
                "H=1;axis=-1} x:row zeros seed=0000000000000007 x[0,0,0]=NaN",
            ),
            (&|spec| values(spec).iter().any(|&x| x > 1.5), "H=3;axis=-1} x:row zeros seed=0000000000000007 x[0,0,0]="),
            (
                &|spec| values(spec).iter().any(|&x| x < 0.0),
                "H=1;axis=-1} x:row zeros seed=0000000000000007 x[0,0,0]=-1.0",
            ),
        ];
        for (fails, expected) in table {
            let found = shrunk(&softmax, &line, fails);
            assert!(found.contains(&expected[expected.find("zeros").expect("zeros")..]), "{found}\n{expected}");
        }
    }

    #[test]
    fn ranks_shrink_too() {
        let relu = op("[ops.schema]\ninputs = { x = [\"...\"] }\noutputs = { out = [\"...\"] }");
        let line = "op::float32::default{...=2x3x5x7} x:row normal seed=0000000000000007 x[1,2,4,6]=NaN";
        let elements = |spec: &Spec| spec.any_rank.iter().flatten().product::<u64>();
        let found = shrunk(&relu, line, |spec| elements(spec) >= 50);
        assert_eq!(found, "op::float32::default{...=50} x:row zeros seed=0000000000000007");
    }

    #[test]
    fn the_budget_is_kept() {
        let mut runs = 0;
        let budget = Budget { runs: 3, time: Duration::from_secs(60) };
        shrink(&softmax(), spec(LARGE), budget, &mut |_| {
            runs += 1;
            false
        });
        assert_eq!(runs, 3);
        shrink(&softmax(), spec(LARGE), Budget { runs: 99, time: Duration::ZERO }, &mut |_| unreachable!());
    }
}
