//! Sizes and parameters of the cases of a test: every value of every one of them early, then random combinations.

use super::rng::{SplitMix64, derive};
use super::shape::{bindings, shape_of};
use crate::error::{Error, Result};
use gpuemu_contract::{Dimension, EmptyPolicy, Op, ParamValue, Strategy};

/// Elements of all tensors of one case together that planning stays below where it can: 2^20.
pub const ELEMENTS_OF_A_CASE: u64 = 1 << 20;
/// Random combinations tried before all of them are gone through.
const TRIES: usize = 64;
/// Combinations gone through before giving up.
const ENUMERATED: usize = 20_000;

/// What may vary between the cases of a test, each as a list of values, the smallest or first first.
#[derive(Clone, Debug)]
pub struct Factors {
    any_rank: Option<Vec<Vec<u64>>>,
    dims: Vec<(String, Vec<u64>)>,
    params: Vec<(String, Vec<ParamValue>)>,
}

/// Whether the domains can be filled at these sizes; why not.
type Admit<'a> = dyn Fn(&Sizes) -> std::result::Result<(), String> + 'a;

/// One combination, as positions in the lists of [`Factors`].
type Choice = Vec<usize>;

/// The sizes and parameters of one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// The shape behind `...`.
    pub any_rank: Option<Vec<u64>>,
    /// Named dimensions.
    pub dims: Vec<(String, u64)>,
    /// Parameters.
    pub params: Vec<(String, ParamValue)>,
}

/// Sizes at and around a tile: 1, tile - 1, tile, tile + 1, the first prime above 1.5 tiles, 2 tiles + 1.
pub fn tile_sizes(tile: u64) -> Vec<u64> {
    let prime = (tile + tile / 2 + 1..).find(|&n| (2..).take_while(|d| d * d <= n).all(|d| n % d != 0));
    let sizes = [1, tile.saturating_sub(1), tile, tile + 1, prime.unwrap_or(tile), 2 * tile + 1];
    sizes.into_iter().filter(|&size| size > 0).collect()
}

/// The sizes a strategy gives a dimension, ascending.
fn sizes_of(dimension: &Dimension, strategy: Strategy) -> Vec<u64> {
    let declared = dimension.candidates.clone();
    let tiles = dimension.tile.map(tile_sizes).unwrap_or_default();
    let mut sizes = match strategy {
        Strategy::Default | Strategy::SingleDtypeF32 | Strategy::SingleDtypeF16 if !declared.is_empty() => declared,
        Strategy::Regular => {
            let regular = |size: &u64| *size > 1 && !tiles.contains(size);
            let kept: Vec<u64> = declared.iter().copied().filter(regular).collect();
            if !kept.is_empty() {
                kept
            } else if !declared.is_empty() {
                declared
            } else {
                tiles
            }
        }
        Strategy::Boundary => {
            let zero = (dimension.min == 0).then_some(0);
            declared.into_iter().chain(tiles).chain(zero).collect()
        }
        Strategy::Layout => {
            // A size of 1 has no layout to speak of.
            let all: Vec<u64> = declared.into_iter().chain(tiles).collect();
            let wide: Vec<u64> = all.iter().copied().filter(|&size| size > 1).collect();
            if wide.is_empty() { all } else { wide }
        }
        Strategy::Default | Strategy::SingleDtypeF32 | Strategy::SingleDtypeF16 => tiles,
        _ => {
            let all: Vec<u64> = declared.into_iter().chain(tiles).collect();
            let some: Vec<u64> = all.iter().copied().filter(|&size| size > 0).collect();
            if some.is_empty() { all } else { some }
        }
    };
    sizes.retain(|&size| size >= dimension.min);
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() {
        sizes.push(dimension.min.max(1));
    }
    sizes
}

/// Leading shapes for tensors of any rank: around the sizes that blocks of threads and vectors have.
fn any_rank_shapes(strategy: Strategy) -> Vec<Vec<u64>> {
    let shapes: &[&[u64]] = match strategy {
        Strategy::Layout => &[&[2, 3], &[5], &[3, 4, 5], &[7, 129], &[33, 65], &[2, 3, 5, 7], &[257], &[64, 128]],
        Strategy::Default | Strategy::Regular | Strategy::SingleDtypeF16 | Strategy::SingleDtypeF32 => {
            &[&[3, 4], &[17], &[2, 3, 4], &[100], &[64, 128], &[7, 129], &[2000]]
        }
        _ => &[
            &[1],
            &[],
            &[3],
            &[2, 3],
            &[1, 1, 1],
            &[7, 129],
            &[255],
            &[256],
            &[257],
            &[2, 3, 5, 7],
            &[1023],
            &[1025],
            &[33, 65],
            &[4099],
        ],
    };
    shapes.iter().map(|shape| shape.to_vec()).collect()
}

/// How a combination fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Fits,
    /// Allowed, but larger than a case should be.
    Large,
    Forbidden,
}

impl Factors {
    /// The factors of an op under a strategy.
    pub fn of(op: &Op, strategy: Strategy) -> Factors {
        Factors {
            any_rank: super::shape::has_any_rank(op).then(|| any_rank_shapes(strategy)),
            dims: op.schema.dims.iter().map(|(name, dim)| (name.clone(), sizes_of(dim, strategy))).collect(),
            params: op.params.iter().map(|param| (param.name.clone(), param.candidates.clone())).collect(),
        }
    }

    fn lengths(&self) -> Vec<usize> {
        let shapes = self.any_rank.iter().map(Vec::len);
        shapes
            .chain(self.dims.iter().map(|(_, sizes)| sizes.len()))
            .chain(self.params.iter().map(|(_, v)| v.len()))
            .collect()
    }

    fn sizes(&self, choice: &[usize]) -> Sizes {
        let mut choice = choice.iter().copied();
        let mut next = || choice.next().expect("a choice for every factor");
        Sizes {
            any_rank: self.any_rank.as_ref().map(|shapes| shapes[next()].clone()),
            dims: self.dims.iter().map(|(name, sizes)| (name.clone(), sizes[next()])).collect(),
            params: self.params.iter().map(|(name, values)| (name.clone(), values[next()].clone())).collect(),
        }
    }

    /// Combinations in which dimensions that can be equal are: a kernel that tells its axes apart by their sizes is wrong
    /// nowhere else. For every pair with a common size above 1 that `covering` never makes equal, one combination; the
    /// other dimensions have that size too where they can.
    fn equal_sizes(&self, covering: &[Choice], random: &mut SplitMix64, fit: &dyn Fn(&[usize]) -> Fit) -> Vec<Choice> {
        let first = usize::from(self.any_rank.is_some());
        let lengths = self.lengths();
        let equal = |choice: &Choice, a: usize, b: usize| {
            let size = self.dims[a].1[choice[first + a]];
            size > 1 && size == self.dims[b].1[choice[first + b]]
        };
        let mut added: Vec<Choice> = Vec::new();
        for b in 1..self.dims.len() {
            for a in 0..b {
                if covering.iter().chain(&added).any(|choice| equal(choice, a, b)) {
                    continue;
                }
                let common = self.dims[a].1.iter().filter(|&&size| size > 1 && self.dims[b].1.contains(&size));
                let found = common.take(TRIES).find_map(|size| {
                    let place = |dim: usize| self.dims[dim].1.iter().position(|other| other == size);
                    // All equal, then only the two, beside a few choices of everything else.
                    [true, false].into_iter().cycle().take(8).find_map(|all| {
                        let mut choice: Choice =
                            lengths.iter().map(|&length| random.below(length as u64) as usize).collect();
                        for dim in (0..self.dims.len()).filter(|&dim| all || dim == a || dim == b) {
                            choice[first + dim] = place(dim).unwrap_or(choice[first + dim]);
                        }
                        (fit(&choice) == Fit::Fits).then_some(choice)
                    })
                });
                added.extend(found);
            }
        }
        added
    }

    fn fit(&self, op: &Op, choice: &[usize], admit: &Admit<'_>) -> Fit {
        let sizes = self.sizes(choice);
        let bindings = bindings(&sizes.dims, &sizes.params);
        if !op.schema.constraints.iter().all(|condition| condition.holds(&bindings) == Ok(true)) {
            return Fit::Forbidden;
        }
        let mut elements = 0u64;
        for decl in op.schema.inputs.iter().chain(&op.schema.outputs) {
            match shape_of(decl, &bindings, sizes.any_rank.as_deref()) {
                Ok(Some(shape)) if op.edges.empty == EmptyPolicy::Error && shape.contains(&0) => return Fit::Forbidden,
                Ok(Some(shape)) => elements += shape.iter().map(|&size| size as u64).product::<u64>(),
                Ok(None) => {}
                Err(_) => return Fit::Forbidden,
            }
        }
        if admit(&sizes).is_err() {
            return Fit::Forbidden;
        }
        if elements > ELEMENTS_OF_A_CASE { Fit::Large } else { Fit::Fits }
    }
}

/// The combinations of a test, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    factors: Factors,
    seed: u64,
    /// Combinations that together have every value of every factor.
    covering: Vec<Choice>,
}

impl Schedule {
    /// The schedule of an op. `admit` says whether domains can be filled.
    ///
    /// # Errors
    ///
    /// When no combination is allowed.
    pub fn new(op: &Op, factors: Factors, seed: u64, admit: &Admit<'_>) -> Result<Schedule> {
        let mut schedule = Schedule { factors, seed, covering: Vec::new() };
        let lengths = schedule.factors.lengths();
        let mut random = SplitMix64::new(derive(seed, "schedule"));
        let fit = |choice: &[usize]| schedule.factors.fit(op, choice, admit);
        let mut covering: Vec<Choice> = Vec::new();
        let mut open: Vec<Vec<bool>> = lengths.iter().map(|&length| vec![true; length]).collect();
        let smallest = vec![0; lengths.len()];
        if fit(&smallest) == Fit::Fits {
            cover(&mut open, &smallest);
            covering.push(smallest);
        }
        // The smallest value that no combination has yet, with others that are missing too where that is allowed.
        while let Some((factor, value)) = first_open(&open) {
            match complete(&lengths, &open, (factor, value), &mut random, &fit) {
                Some(choice) => {
                    cover(&mut open, &choice);
                    covering.push(choice);
                }
                None => open[factor][value] = false,
            }
        }
        covering.extend(schedule.factors.equal_sizes(&covering, &mut random, &fit));
        if covering.is_empty() && lengths.is_empty() && fit(&[]) != Fit::Forbidden {
            covering.push(Vec::new());
        }
        if covering.is_empty() {
            return Err(schedule.hopeless(op, admit));
        }
        schedule.covering = covering;
        Ok(schedule)
    }

    /// The sizes and parameters of one case.
    pub fn sizes(&self, op: &Op, index: u32, admit: &Admit<'_>) -> Sizes {
        let index = index as usize;
        if let Some(choice) = self.covering.get(index) {
            return self.factors.sizes(choice);
        }
        let lengths = self.factors.lengths();
        let mut random = SplitMix64::new(derive(self.seed, &format!("sizes {index}")));
        for _ in 0..TRIES {
            let choice: Choice = lengths.iter().map(|&length| random.below(length as u64) as usize).collect();
            if self.factors.fit(op, &choice, admit) == Fit::Fits {
                return self.factors.sizes(&choice);
            }
        }
        self.factors.sizes(&self.covering[index % self.covering.len()])
    }

    fn hopeless(&self, op: &Op, admit: &Admit<'_>) -> Error {
        let smallest = self.factors.sizes(&vec![0; self.factors.lengths().len()]);
        let reason = admit(&smallest).err().map(|reason| format!(" ({reason})"));
        let lists: Vec<String> =
            self.factors.dims.iter().map(|(name, sizes)| format!("{name} from {sizes:?}")).collect();
        let conditions: Vec<String> = op.schema.constraints.iter().map(|condition| format!("`{condition}`")).collect();
        Error::Config(format!(
            "op `{}` has no case: no choice of {} satisfies {}{}",
            op.name,
            if lists.is_empty() { "parameters".to_owned() } else { lists.join(", ") },
            if conditions.is_empty() {
                "its shapes and domains".to_owned()
            } else {
                format!("its shapes, its domains and `where` {}", conditions.join(", "))
            },
            reason.unwrap_or_default(),
        ))
    }
}

fn cover(open: &mut [Vec<bool>], choice: &[usize]) {
    for (values, &value) in open.iter_mut().zip(choice) {
        values[value] = false;
    }
}

/// The open value that stands earliest in its list.
fn first_open(open: &[Vec<bool>]) -> Option<(usize, usize)> {
    let firsts = open.iter().enumerate().filter_map(|(factor, values)| Some((factor, values.iter().position(|&v| v)?)));
    firsts.min_by_key(|&(_, value)| value)
}

/// An allowed combination with the given value, with as many open values as a few tries find.
fn complete(
    lengths: &[usize],
    open: &[Vec<bool>],
    (factor, value): (usize, usize),
    random: &mut SplitMix64,
    fit: &dyn Fn(&[usize]) -> Fit,
) -> Option<Choice> {
    let wanted = open.iter().filter(|values| values.contains(&true)).count();
    let mut best: Option<(usize, Choice)> = None;
    let mut found = 0;
    for _ in 0..TRIES {
        let mut choice: Choice = Vec::with_capacity(lengths.len());
        for (&length, values) in lengths.iter().zip(open) {
            let missing: Vec<usize> = (0..length).filter(|&value| values[value]).collect();
            choice.push(match missing.len() {
                0 => random.below(length as u64) as usize,
                count if random.below(4) != 0 => missing[random.below(count as u64) as usize],
                _ => random.below(length as u64) as usize,
            });
        }
        choice[factor] = value;
        if fit(&choice) != Fit::Fits {
            continue;
        }
        found += 1;
        let covered = choice.iter().zip(open).filter(|&(&value, values)| values[value]).count();
        if best.as_ref().is_none_or(|(most, _)| covered > *most) {
            best = Some((covered, choice));
        }
        if covered == wanted || found == 8 {
            break;
        }
    }
    if let Some((_, choice)) = best {
        return Some(choice);
    }
    // All combinations with this value in turn, the smallest first; one that is merely large will do.
    let mut large = None;
    let mut choice = vec![0; lengths.len()];
    choice[factor] = value;
    for _ in 0..ENUMERATED {
        match fit(&choice) {
            Fit::Fits => return Some(choice),
            Fit::Large if large.is_none() => large = Some(choice.clone()),
            _ => {}
        }
        let mut place = 0;
        loop {
            if place == lengths.len() {
                return large;
            }
            if place != factor {
                choice[place] += 1;
                if choice[place] < lengths[place] {
                    break;
                }
                choice[place] = 0;
            }
            place += 1;
        }
    }
    large
}
