//! Strategies: which cases a test has, in which order.
//!
//! The first cases have, between them, every size of every dimension (tile-derived ones included) and every value of
//! every sampled parameter; then combinations are random. The values rotate through the distributions of the strategy.
//! Only one input at a time has non-finite or extreme values, the others are moderate: with NaN on both sides of a matrix
//! product everything is NaN and nothing is tested.

use super::domain::{Limits, kinds, plain};
use super::kind::{Kind, LayoutKind};
use super::layout::applies;
use super::rng::derive;
use super::schedule::{Factors, Schedule, Sizes};
use super::shape::{bindings, shape_of};
use super::spec::{Distribution, InputSpec, Spec};
use crate::error::{Error, Result};
use gpuemu_contract::builtin::{Builtin, RoleKind};
use gpuemu_contract::{DType, Op, Reference, Strategy, TensorDecl, TestName};

/// Case `index` of a test. Many cases of one test are cheaper through a [`Planner`].
pub fn plan(
    op: &Op,
    test: &TestName,
    parent_seed: u64,
    index: u32,
    finite: &mut dyn FnMut(&Spec) -> bool,
) -> Result<Spec> {
    Planner::new(op, test, parent_seed)?.plan(index, finite)
}

/// Plans the cases of one test.
#[derive(Debug)]
pub struct Planner<'a> {
    op: &'a Op,
    test: TestName,
    parent_seed: u64,
    schedule: Schedule,
}

/// What a strategy does with the float inputs of a case.
#[derive(Clone, Copy, Debug)]
enum Flavour {
    /// Every float input has it.
    All(Kind),
    /// One input has it, the others are moderate.
    One(Kind),
    /// As `One`, with the largest exponent up to this at which the mirror is finite.
    Scaled(Kind, i32),
}

use Flavour::{All, One, Scaled};

impl Flavour {
    fn kind(self) -> Kind {
        match self {
            All(kind) | One(kind) | Scaled(kind, _) => kind,
        }
    }
}

/// What the built-in reference of an op says of its input with that number.
fn role(op: &Op, number: usize) -> Option<RoleKind> {
    let Reference::Builtin(name) = &op.reference else { return None };
    Some(Builtin::find(name)?.inputs.get(number)?.kind)
}

/// Magnitudes of 1e4 to 6e4: where float16 intermediates overflow.
const HALF_OVERFLOWS: i32 = 16;

fn flavours(strategy: Strategy) -> &'static [Flavour] {
    match strategy {
        Strategy::Default | Strategy::Regular | Strategy::SingleDtypeF32 | Strategy::SingleDtypeF16 => {
            &[All(Kind::Normal), All(Kind::Uniform), One(Kind::Positive), One(Kind::Shifted)]
        }
        Strategy::Boundary => &[
            All(Kind::Normal),
            One(Kind::Structured),
            All(Kind::Uniform),
            One(Kind::Ramp),
            All(Kind::Normal),
            One(Kind::Positive),
            One(Kind::EqualMaxima),
            All(Kind::Structured),
            One(Kind::Shifted),
            One(Kind::Alternating),
        ],
        Strategy::NanInjected => &[One(Kind::NanFew)],
        Strategy::Adversarial => &[
            All(Kind::Structured),
            Scaled(Kind::Adversarial, HALF_OVERFLOWS),
            One(Kind::NanFew),
            Scaled(Kind::Edge, HALF_OVERFLOWS),
            One(Kind::NegInfRows),
            One(Kind::Shifted),
            One(Kind::Tiny),
            One(Kind::InfFew),
            All(Kind::Positive),
            One(Kind::EqualMaxima),
            One(Kind::Zeros),
        ],
        Strategy::Edge => &[Scaled(Kind::Edge, i32::MAX)],
        Strategy::Structured => &[
            One(Kind::Constant),
            One(Kind::OneHot),
            One(Kind::Ramp),
            One(Kind::Alternating),
            One(Kind::EqualMaxima),
            One(Kind::NegInfRows),
            All(Kind::Structured),
            One(Kind::Zeros),
        ],
        Strategy::Layout => &[All(Kind::Normal), All(Kind::Uniform), All(Kind::Ramp)],
    }
}

impl<'a> Planner<'a> {
    /// Plans a test of an op.
    ///
    /// # Errors
    ///
    /// When no choice of sizes and parameters is allowed by the op's constraints, shapes and domains.
    pub fn new(op: &'a Op, test: &TestName, parent_seed: u64) -> Result<Planner<'a>> {
        if let Some(unshaped) =
            op.schema.inputs.iter().find(|decl| matches!(decl.shape, gpuemu_contract::OutputShape::FromReference))
        {
            return Err(Error::Config(format!("op `{}`: input `{}` has no shape", op.name, unshaped.name)));
        }
        let seed = derive(parent_seed, &format!("{}/{}/{}", op.name, test.dtype, test.strategy));
        let factors = Factors::of(op, test.strategy);
        let dtype = test.dtype;
        let schedule = Schedule::new(op, factors, seed, &|sizes| admit(op, dtype, sizes))?;
        Ok(Planner { op, test: test.clone(), parent_seed, schedule })
    }

    /// Case `index`. `finite` says whether the working-precision mirror of a spec is finite throughout; it is asked by
    /// the strategies that look for the largest magnitudes.
    pub fn plan(&self, index: u32, finite: &mut dyn FnMut(&Spec) -> bool) -> Result<Spec> {
        let (op, test) = (self.op, &self.test);
        let sizes = self.schedule.sizes(op, index, &|sizes| admit(op, test.dtype, sizes));
        let bindings = bindings(&sizes.dims, &sizes.params);
        let mut slots = Vec::with_capacity(op.schema.inputs.len());
        for decl in &op.schema.inputs {
            let shape = shape_of(decl, &bindings, sizes.any_rank.as_deref())?.unwrap_or_default();
            let dtype = decl.dtype.resolve(test.dtype);
            let limits = decl.domain.as_ref().map(|domain| Limits::of(domain, dtype, &bindings)).transpose()?;
            let finite_only = matches!(role(op, slots.len()), Some(RoleKind::Finite));
            slots.push(Slot { decl, dtype, shape, limits, finite_only });
        }
        let list = flavours(test.strategy);
        let turn = index as usize / list.len();
        let flavour = list[index as usize % list.len()];
        // Inputs that can have a flavour of floats take turns, shifted by one every round: each has each after so many
        // rounds as there are inputs.
        let fits = |slot: &Slot<'_>| slot.is_free_float() && !(slot.finite_only && flavour.kind().has_non_finite());
        let floats: Vec<usize> = (0..slots.len()).filter(|&slot| fits(&slots[slot])).collect();
        let focus = floats.get((index as usize % list.len() + turn) % floats.len().max(1)).copied();
        let inputs = slots
            .iter()
            .enumerate()
            .map(|(number, slot)| InputSpec {
                name: slot.decl.name.clone(),
                layout: slot.layout(test.strategy, index as usize, number),
                values: slot.values(test.strategy, flavour, index as usize, number, focus == Some(number)).into(),
            })
            .collect();
        let seed = derive(self.parent_seed, &format!("{}/{}/{}/{index}", op.name, test.dtype, test.strategy));
        let mut spec = Spec {
            test: test.clone(),
            dims: sizes.dims,
            any_rank: sizes.any_rank,
            params: sizes.params,
            inputs,
            seed,
            edits: Vec::new(),
            file: None,
        };
        if let (Scaled(kind, most), Some(focus)) = (flavour, focus) {
            let slot = &slots[focus];
            if spec.inputs[focus].values.kind == kind {
                match largest_exponent(&spec, focus, slot.dtype, most, finite) {
                    Some(exponent) => spec.inputs[focus].values = Distribution { kind, exponent },
                    None => spec.inputs[focus].values = plain(slot.dtype, slot.limits.as_ref()).into(),
                }
            }
        }
        Ok(spec)
    }
}

/// Whether every input's domain can be filled; says which cannot.
fn admit(op: &Op, dtype: DType, sizes: &Sizes) -> std::result::Result<(), String> {
    let bindings = bindings(&sizes.dims, &sizes.params);
    for decl in op.schema.inputs.iter().filter(|decl| decl.generate.is_none()) {
        let Some(domain) = &decl.domain else { continue };
        let dtype = decl.dtype.resolve(dtype);
        let limits = Limits::of(domain, dtype, &bindings).map_err(|error| error.to_string());
        let shape = shape_of(decl, &bindings, sizes.any_rank.as_deref()).map_err(|error| error.to_string())?;
        limits
            .and_then(|limits| limits.admit(dtype, &shape.unwrap_or_default()))
            .map_err(|reason| format!("input `{}`: {reason}", decl.name))?;
    }
    Ok(())
}

/// The largest exponent, up to `most` and the dtype's own, at which the mirror is finite for edge magnitudes of both
/// signs and for equal ones of one sign (the largest sums in any order); less one, since kernels sum in other orders.
fn largest_exponent(
    spec: &Spec,
    focus: usize,
    dtype: DType,
    most: i32,
    finite: &mut dyn FnMut(&Spec) -> bool,
) -> Option<i32> {
    let mut trial = spec.clone();
    let mut holds = |exponent: i32| {
        [Kind::Edge, Kind::Ones].iter().all(|&kind| {
            trial.inputs[focus].values = Distribution { kind, exponent };
            finite(&trial)
        })
    };
    let highest = most.min(match dtype {
        // No precision lies above float64 in which an overflowing square of the mirror would show: squares stay finite.
        DType::Float64 => 505,
        DType::Float32 | DType::BFloat16 => 128,
        DType::Float8E4M3 => 9,
        _ => 16,
    });
    let lowest = dtype.min_exponent().unwrap_or(0);
    let (mut low, mut high) = match holds(0) {
        true if holds(highest) => return Some(highest),
        true => (0, highest),
        false if holds(lowest) => (lowest, 0),
        false => return None,
    };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    Some(low - 1)
}

/// One input of a case being planned.
struct Slot<'a> {
    decl: &'a TensorDecl,
    dtype: DType,
    shape: Vec<usize>,
    limits: Option<Limits>,
    /// Values that are not finite would show differences between right kernels.
    finite_only: bool,
}

impl Slot<'_> {
    /// Whether it is a float input whose values a flavour may choose.
    fn is_free_float(&self) -> bool {
        let bound = matches!(self.limits, Some(Limits::Float(..) | Limits::Probability));
        self.dtype.is_float()
            && self.decl.generate.is_none()
            && !bound
            && !self.limits.as_ref().is_some_and(Limits::is_integer)
    }

    fn values(&self, strategy: Strategy, flavour: Flavour, index: usize, number: usize, focused: bool) -> Kind {
        if self.decl.generate.is_some() {
            return Kind::Generated;
        }
        let limits = self.limits.as_ref();
        let plain = plain(self.dtype, limits);
        if !self.is_free_float() {
            return self.bound_values(strategy, plain, index + number);
        }
        let kind = match flavour {
            All(kind) => kind,
            One(kind) | Scaled(kind, _) if focused => kind,
            // Moderate companions, not always of one kind.
            _ if (index + number) % 3 == 2 => Kind::Uniform,
            _ => plain,
        };
        let finite = !(self.finite_only && kind.has_non_finite());
        if finite && kinds(self.dtype, limits).contains(&kind) { kind } else { plain }
    }

    /// Inputs whose dtype or domain prescribes the values.
    fn bound_values(&self, strategy: Strategy, plain: Kind, turn: usize) -> Kind {
        let varied = matches!(strategy, Strategy::Boundary | Strategy::Adversarial | Strategy::Structured);
        if !varied {
            return plain;
        }
        let allowed = kinds(self.dtype, self.limits.as_ref());
        let wide = strategy == Strategy::Adversarial || self.dtype.size() <= 2 || self.limits.is_some();
        let list: Vec<Kind> =
            [plain, Kind::FullRange, Kind::Bounds, Kind::Extremes, Kind::Ramp, Kind::Constant, Kind::Zeros]
                .into_iter()
                .enumerate()
                .filter(|(place, kind)| {
                    (*place == 0 || *kind != plain)
                        && allowed.contains(kind)
                        && (wide || !matches!(kind, Kind::FullRange | Kind::Extremes))
                })
                .map(|(_, kind)| kind)
                .collect();
        list[turn % list.len()]
    }

    fn layout(&self, strategy: Strategy, index: usize, number: usize) -> LayoutKind {
        let accepted = |kind: LayoutKind| {
            self.decl.layouts.as_ref().is_none_or(|names| names.iter().any(|name| name == kind.name()))
                && applies(kind, &self.shape, self.decl.inout)
        };
        let others = &LayoutKind::ALL[1..];
        let mut turns = (0..others.len()).map(|step| others[(index + 3 * number + step) % others.len()]);
        // Every fourth case leaves all but one input in row order.
        let alone = index % 4 == 3 && index / 4 % 2 == 1 && number != 0;
        if strategy == Strategy::Layout
            && !alone
            && let Some(kind) = turns.find(|&kind| accepted(kind))
        {
            return kind;
        }
        if accepted(LayoutKind::Row) {
            return LayoutKind::Row;
        }
        others.iter().copied().find(|&kind| accepted(kind)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::build::build;
    use crate::case::testing::{op, softmax};
    use gpuemu_contract::ParamValue;
    use std::collections::BTreeSet;

    fn specs(op: &Op, strategy: Strategy, count: u32) -> Vec<Spec> {
        let test = TestName { op: "op".to_owned(), dtype: DType::Float32, strategy };
        let planner = Planner::new(op, &test, 42).expect("a plan");
        (0..count).map(|index| planner.plan(index, &mut |_| true).expect("a spec")).collect()
    }

    fn sizes(specs: &[Spec], dim: &str) -> BTreeSet<u64> {
        specs.iter().map(|spec| spec.dim(dim).expect("a dimension")).collect()
    }

    #[test]
    fn ten_cases_have_every_boundary_size_and_parameter() {
        let specs = specs(&softmax(), Strategy::Boundary, 10);
        assert_eq!(sizes(&specs, "B"), BTreeSet::from([1, 2, 8]));
        assert_eq!(sizes(&specs, "S"), BTreeSet::from([1, 7, 128]));
        // Declared: 1, 3, 256, 1025. Of the tile: 1, 127, 128, 129, 193 (the first prime above 192), 257.
        assert_eq!(sizes(&specs, "H"), BTreeSet::from([1, 3, 127, 128, 129, 193, 256, 257, 1025]));
        let axes: Vec<&ParamValue> = specs.iter().map(|spec| &spec.params[0].1).collect();
        assert!(axes.contains(&&ParamValue::Int(-1)) && axes.contains(&&ParamValue::Int(1)));
        assert_eq!((specs[0].dim("B"), specs[0].dim("S"), specs[0].dim("H")), (Some(1), Some(1), Some(1)));
    }

    #[test]
    fn dimensions_that_can_be_equal_are_in_some_case() {
        let pairs = op("[ops.schema]\ndims = { M = [2, 5, 40], N = [1, 5, 9], K = [3, 9, 40], L = [1, 6] }\n\
            inputs = { x = [\"M\", \"N\", \"K\", \"L\"] }\noutputs = { out = [\"M\"] }");
        for strategy in [Strategy::Default, Strategy::Boundary, Strategy::Adversarial, Strategy::Layout] {
            let found = specs(&pairs, strategy, 12);
            let together =
                |a: &str, b: &str| found.iter().any(|spec| spec.dim(a) == spec.dim(b) && spec.dim(a) > Some(1));
            assert!(together("M", "N") && together("N", "K") && together("M", "K"), "{strategy:?}");
        }
    }

    #[test]
    fn every_strategy_of_every_dtype_gives_buildable_and_repeatable_cases() {
        let matmul = op("params = { causal = [true, false] }\n[ops.schema]\n\
            dims = { M = { candidates = [40], tile = 16, min = 0 }, K = [1, 7, 64], V = [5, 9] }\nwhere = [\"M != 16 or K == 7\"]\n\
            inputs = { a = [\"M\", \"K\"], b = { dims = [\"K\", \"M\"], inout = true, layouts = [\"row\", \"transposed\"] },\n\
            s = { dims = [\"M\"], domain = \"positive\" }, t = { dims = [], domain = [-1.0, 2.0] },\n\
            p = { dims = [\"M\", \"V\"], domain = \"probability\" },\n\
            i = { dims = [\"M\"], dtype = \"int64\", domain = { range = [0, \"V-1\"], sentinel = -1 } },\n\
            u = { dims = [\"M\", \"V\"], dtype = \"int32\", domain = { unique = [0, 99] } },\n\
            o = { dims = [\"V\"], dtype = \"int32\", domain = { offsets = \"M\" } },\n\
            m = { dims = [\"M\", \"K\"], dtype = \"bool\" } }\noutputs = { out = [\"M\", \"M\"] }");
        for dtype in [DType::Float32, DType::Float16, DType::Int32] {
            for strategy in Strategy::ALL {
                let test = TestName { op: "op".to_owned(), dtype, strategy };
                let planner = Planner::new(&matmul, &test, 42).expect("a plan");
                for index in 0..40 {
                    let spec = planner.plan(index, &mut |_| true).expect("a spec");
                    assert_eq!(plan(&matmul, &test, 42, index, &mut |_| true).expect("a spec"), spec);
                    assert_eq!(spec.to_string().parse::<Spec>().expect("a line"), spec);
                    let case = build(&matmul, &spec, None).unwrap_or_else(|error| panic!("{spec}: {error}"));
                    within_domains(&case, &spec);
                }
            }
        }
    }

    fn within_domains(case: &crate::case::Case, spec: &Spec) {
        let values = |name: &str| {
            let (_, tensor) = case.inputs.iter().find(|(input, _)| input == name).expect("an input");
            let array = tensor.to_array();
            (0..array.len()).map(|i| array.at(i)).collect::<Vec<f64>>()
        };
        let v = spec.dim("V").expect("V") as f64;
        // Float domains bind in float tests; an int32 test has integers there only where the domain allows them.
        if case.spec.test.dtype.is_float() {
            assert!(values("s").iter().all(|&x| x > 0.0 && x.is_finite()), "{spec}");
            assert!(values("t").iter().all(|&x| (-1.0..=2.0).contains(&x)), "{spec}");
            assert!(values("p").iter().all(|&x| (0.0..=1.0).contains(&x)), "{spec}");
        }
        assert!(values("i").iter().all(|&x| (-1.0..v).contains(&x)), "{spec}");
        assert!(values("m").iter().all(|&x| x == 0.0 || x == 1.0), "{spec}");
        for row in values("u").chunks(v as usize) {
            let mut sorted = row.to_vec();
            sorted.sort_by(f64::total_cmp);
            assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]) && sorted[0] >= 0.0, "{spec}");
        }
        let offsets = values("o");
        assert!(offsets[0] == 0.0 && offsets.windows(2).all(|pair| pair[0] <= pair[1]), "{spec}");
        assert_eq!(offsets.last(), Some(&(spec.dim("M").expect("M") as f64)), "{spec}");
    }

    #[test]
    fn constraints_hold_and_zero_comes_where_it_is_allowed() {
        let square = op(
            "[ops.schema]\ndims = { M = { candidates = [64], tile = 32, min = 0 }, K = { candidates = [64], tile = 32 } }\n\
            where = [\"M == K or M == 0\"]\ninputs = { x = [\"M\", \"K\"] }\noutputs = { out = [\"M\"] }",
        );
        let found = specs(&square, Strategy::Boundary, 30);
        assert!(found.iter().all(|spec| spec.dim("M") == spec.dim("K") || spec.dim("M") == Some(0)));
        assert_eq!(sizes(&found, "M"), BTreeSet::from([0, 1, 31, 32, 33, 53, 64, 65]));
        assert!(!sizes(&specs(&square, Strategy::Adversarial, 30), "M").contains(&0));
    }

    #[test]
    fn impossible_constraints_are_a_clear_error() {
        let none = op(
            "[ops.schema]\ndims = { H = [2, 4] }\nwhere = [\"H % 2 == 0\"]\ninputs = { x = [\"H\"] }\noutputs = { out = [\"H\"] }",
        );
        let mut none = none;
        none.schema.dims[0].1.candidates = vec![3, 5];
        let test = TestName { op: "op".to_owned(), dtype: DType::Float32, strategy: Strategy::Boundary };
        assert_eq!(
            Planner::new(&none, &test, 42).map(|_| ()).expect_err("no case").to_string(),
            "op `op` has no case: no choice of H from [3, 5] satisfies its shapes, its domains and `where` `H % 2 == 0`"
        );
    }

    #[test]
    fn layout_has_every_kind_and_only_layout_has_them() {
        let found = specs(&softmax(), Strategy::Layout, 14);
        let layouts: BTreeSet<LayoutKind> = found.iter().map(|spec| spec.inputs[0].layout).collect();
        assert_eq!(layouts, LayoutKind::ALL[1..].iter().copied().collect());
        assert!(
            specs(&softmax(), Strategy::Adversarial, 30).iter().all(|spec| spec.inputs[0].layout == LayoutKind::Row)
        );
    }

    #[test]
    fn the_largest_finite_exponent_is_searched_and_written() {
        let test = TestName { op: "op".to_owned(), dtype: DType::Float32, strategy: Strategy::Edge };
        let softmax = softmax();
        // A mirror that squares: finite up to 2^63.
        let mut asked = 0;
        let spec = plan(&softmax, &test, 42, 3, &mut |spec| {
            asked += 1;
            spec.inputs[0].values.exponent <= 63
        });
        let values = spec.expect("a spec").inputs[0].values;
        assert_eq!(values, Distribution { kind: Kind::Edge, exponent: 62 });
        assert!(asked <= 20, "{asked} questions");
        let spec = plan(&softmax, &test, 42, 3, &mut |_| false).expect("a spec");
        assert_eq!(spec.inputs[0].values, Kind::Normal.into());
    }
}
