//! The fast pass over one block: errors, sums and maxima of finite elements in plain loops that become vector code.
//!
//! `avx2` says the same in the instructions of most processors; this is the portable form, which a test holds it to.
//!
//! A block in which anything is unusual (not finite, outside its bound, many steps away) is handed back, and
//! `compare` judges it element by element.

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::blocks::BLOCK;
use super::grid::{EXPONENT, Grid};

/// Lanes of every accumulator: one AVX register of float64.
const LANES: usize = 4;

/// The bound of one element, as `compare` resolves it for the fast pass.
#[derive(Clone, Copy)]
pub(super) enum Allowed<'a> {
    /// `steps * step(expected) + relative * |expected| + absolute`.
    Formula { steps: f64, relative: f64, absolute: f64 },
    /// One bound an element of the block.
    Each(&'a [f64]),
}

/// Sums and maxima over the elements seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) abs: f64,
    pub(super) rel: f64,
    pub(super) ulp: f64,
    pub(super) max_abs: f64,
    pub(super) max_rel: f64,
    pub(super) max_ulp: f64,
    /// Largest error as a fraction of its bound.
    pub(super) of_bound: f64,
}

impl Sums {
    pub(super) fn add(&mut self, other: &Sums) {
        self.abs += other.abs;
        self.rel += other.rel;
        self.ulp += other.ulp;
        self.max_abs = self.max_abs.max(other.max_abs);
        self.max_rel = self.max_rel.max(other.max_rel);
        self.max_ulp = self.max_ulp.max(other.max_ulp);
        self.of_bound = self.of_bound.max(other.of_bound);
    }
}

/// Buckets of the histogram: an exponent of float32 and two fraction bits each.
pub(super) const BUCKETS: usize = 1024;

/// The bucket of an absolute error: the sign-free upper bits of the float32 nearest to it.
#[inline(always)]
pub(super) fn bucket(error: f64) -> u32 {
    (error as f32).to_bits() >> 21
}

/// A number that an answer is handed over in: float32 or float64.
#[cfg(target_arch = "x86_64")]
pub(super) trait Lane: avx2::Lane {}
#[cfg(target_arch = "x86_64")]
impl<G: avx2::Lane> Lane for G {}
/// A number that an answer is handed over in: float32 or float64.
#[cfg(not(target_arch = "x86_64"))]
pub(super) trait Lane: Copy + Into<f64> {}
#[cfg(not(target_arch = "x86_64"))]
impl<G: Copy + Into<f64>> Lane for G {}

/// Errors of one block, and the bucket of each. `None` where an element needs a closer look; `buckets` then holds
/// nothing of use.
pub(super) fn scan<G: Lane>(
    got: &[G],
    expected: &[f64],
    allowed: Allowed<'_>,
    grid: &Grid,
    buckets: &mut [u32; BLOCK],
) -> Option<Sums> {
    match allowed {
        // One division where a product of bound and value can neither overflow nor vanish.
        Allowed::Formula { steps, relative, absolute }
            if grid.fraction_bits < 52 && steps >= 0.5 && relative < 0.25 && absolute < 1e30 =>
        {
            let formula = (steps, relative, absolute);
            dispatch::<G, false, true>(got, expected, &[], formula, grid, buckets)
        }
        Allowed::Formula { steps, relative, absolute } => {
            let formula = (steps, relative, absolute);
            dispatch::<G, false, false>(got, expected, &[], formula, grid, buckets)
        }
        Allowed::Each(each) => dispatch::<G, true, false>(got, expected, each, (0.0, 0.0, 0.0), grid, buckets),
    }
}

fn dispatch<G: Lane, const EACH: bool, const ONE_DIVISION: bool>(
    got: &[G],
    expected: &[f64],
    each: &[f64],
    formula: (f64, f64, f64),
    grid: &Grid,
    buckets: &mut [u32; BLOCK],
) -> Option<Sums> {
    let mut whole = 0;
    let mut sums = Sums::default();
    #[cfg(target_arch = "x86_64")]
    if got.len() >= LANES && available() {
        whole = got.len() / LANES * LANES;
        let (got, expected, each) = (&got[..whole], &expected[..whole], if EACH { &each[..whole] } else { each });
        // SAFETY: the processor has what the function asks for.
        sums = unsafe { avx2::block::<G, EACH, ONE_DIVISION>(got, expected, each, formula, grid, buckets) }?;
    }
    let (got, expected, each) = (&got[whole..], &expected[whole..], if EACH { &each[whole..] } else { each });
    sums.add(&block::<G, EACH, ONE_DIVISION>(got, expected, each, formula, grid, &mut buckets[whole..])?);
    Some(sums)
}

/// Whether this processor has what the vector form is written in.
#[cfg(target_arch = "x86_64")]
fn available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// The sums of a block in which nothing is unusual. An error that is not finite makes its sum so; a distance beyond
/// half a binade is counted in another way.
fn usual(sums: Sums, inside: bool, grid: &Grid) -> Option<Sums> {
    let usual = inside && sums.abs.is_finite() && sums.ulp.is_finite() && sums.max_ulp < 0.5 / grid.epsilon;
    usual.then_some(sums)
}

fn block<G: Copy + Into<f64>, const EACH: bool, const ONE_DIVISION: bool>(
    got: &[G],
    expected: &[f64],
    each: &[f64],
    formula: (f64, f64, f64),
    grid: &Grid,
    buckets: &mut [u32],
) -> Option<Sums> {
    assert!(got.len() == expected.len() && got.len() <= buckets.len() && (!EACH || each.len() == got.len()));
    let whole = got.len() / LANES * LANES;
    let mut lanes = Lanes::new(formula, grid);
    for at in (0..whole).step_by(LANES) {
        let got: &[G; LANES] = got[at..at + LANES].try_into().expect("four lanes");
        let expected: &[f64; LANES] = expected[at..at + LANES].try_into().expect("four lanes");
        let each: &[f64; LANES] =
            if EACH { each[at..at + LANES].try_into().expect("four lanes") } else { &[0.0; LANES] };
        let to: &mut [u32; LANES] = (&mut buckets[at..at + LANES]).try_into().expect("four lanes");
        lanes.take::<G, EACH, ONE_DIVISION>(got, expected, each, to);
    }
    if whole < got.len() {
        // The tail, filled up with copies of its first element: maxima stay, sums count the copies and give them back.
        let rest = got.len() - whole;
        let mut tail = [got[whole]; LANES];
        tail[..rest].copy_from_slice(&got[whole..]);
        let mut tail_expected = [expected[whole]; LANES];
        tail_expected[..rest].copy_from_slice(&expected[whole..]);
        let mut tail_each = [if EACH { each[whole] } else { 0.0 }; LANES];
        if EACH {
            tail_each[..rest].copy_from_slice(&each[whole..]);
        }
        let mut to = [0; LANES];
        let before = lanes;
        lanes.take::<G, EACH, ONE_DIVISION>(&tail, &tail_expected, &tail_each, &mut to);
        for lane in rest..LANES {
            lanes.abs[lane] = before.abs[lane];
            lanes.rel[lane] = before.rel[lane];
            lanes.ulp[lane] = before.ulp[lane];
        }
        buckets[whole..whole + rest].copy_from_slice(&to[..rest]);
    }
    lanes.finish(grid)
}

/// The state of the fast pass: one of everything a lane.
#[derive(Clone, Copy)]
struct Lanes {
    abs: [f64; LANES],
    rel: [f64; LANES],
    ulp: [f64; LANES],
    max_abs: [f64; LANES],
    max_rel: [f64; LANES],
    max_ulp: [f64; LANES],
    of_bound: [f64; LANES],
    inside: [u64; LANES],
    steps: f64,
    relative: f64,
    absolute: f64,
    min_normal: f64,
    per_epsilon: f64,
}

/// The larger one; `old` where `new` is NaN. Compiles to one instruction.
#[inline(always)]
fn larger(new: f64, old: f64) -> f64 {
    if new > old { new } else { old }
}

impl Lanes {
    #[inline(always)]
    fn new((steps, relative, absolute): (f64, f64, f64), grid: &Grid) -> Lanes {
        Lanes {
            abs: [0.0; LANES],
            rel: [0.0; LANES],
            ulp: [0.0; LANES],
            max_abs: [0.0; LANES],
            max_rel: [0.0; LANES],
            max_ulp: [0.0; LANES],
            of_bound: [0.0; LANES],
            inside: [1; LANES],
            // A step is epsilon times the power of two below the value.
            steps: steps * grid.epsilon,
            relative,
            absolute,
            min_normal: grid.min_normal,
            per_epsilon: 1.0 / grid.epsilon,
        }
    }

    #[inline(always)]
    fn take<G: Copy + Into<f64>, const EACH: bool, const ONE_DIVISION: bool>(
        &mut self,
        got: &[G; LANES],
        expected: &[f64; LANES],
        each: &[f64; LANES],
        buckets: &mut [u32; LANES],
    ) {
        for lane in 0..LANES {
            let (got, expected): (f64, f64) = (got[lane].into(), expected[lane]);
            let error = (got - expected).abs();
            let magnitude = expected.abs();
            let at_least = larger(magnitude, self.min_normal);
            let power = at_least.to_bits() & EXPONENT;
            let allowed = if EACH {
                each[lane]
            } else {
                f64::from_bits(power) * self.steps + (magnitude * self.relative + self.absolute)
            };
            // 2046 is twice the exponent bias: the reciprocal of a power of two, exact.
            let ulp = error * f64::from_bits((2046u64 << 52).wrapping_sub(power)) * self.per_epsilon;
            let (rel, of_bound) = if ONE_DIVISION {
                let reciprocal = 1.0 / (allowed * at_least);
                (error * allowed * reciprocal, error * at_least * reciprocal)
            } else {
                (error / at_least, error / allowed)
            };
            let rel = if magnitude < self.min_normal { 0.0 } else { rel };
            // False for a bound that is NaN, which must not let anything pass.
            self.inside[lane] &= u64::from(error <= allowed);
            self.abs[lane] += error;
            self.rel[lane] += rel;
            self.ulp[lane] += ulp;
            self.max_abs[lane] = larger(error, self.max_abs[lane]);
            self.max_rel[lane] = larger(rel, self.max_rel[lane]);
            self.max_ulp[lane] = larger(ulp, self.max_ulp[lane]);
            self.of_bound[lane] = larger(of_bound, self.of_bound[lane]);
            buckets[lane] = bucket(error);
        }
    }

    #[inline(always)]
    fn finish(&self, grid: &Grid) -> Option<Sums> {
        let sum = |values: &[f64; LANES]| values.iter().sum::<f64>();
        let max = |values: &[f64; LANES]| values.iter().fold(0.0, |old, &new| larger(new, old));
        let sums = Sums {
            abs: sum(&self.abs),
            rel: sum(&self.rel),
            ulp: sum(&self.ulp),
            max_abs: max(&self.max_abs),
            max_rel: max(&self.max_rel),
            max_ulp: max(&self.max_ulp),
            of_bound: max(&self.of_bound),
        };
        usual(sums, self.inside == [1; LANES], grid)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use gpuemu_contract::DType;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn vector_and_portable_form_agree(
            values in prop::collection::vec((any::<f32>(), -3.0f64..3.0, 0u8..40), 1..20),
            dtype in prop::sample::select(vec![DType::Float64, DType::Float32, DType::Float16]),
            choice in 0usize..3,
        ) {
            prop_assume!(available());
            let grid = Grid::of(dtype);
            let mut got = Vec::new();
            let mut expected = Vec::new();
            for (value, error, kind) in values.iter().flat_map(|value| [*value; LANES]) {
                // Mostly moderate values, now and then any float32, NaN included.
                let value = if kind == 0 { f64::from(value) } else { f64::from(value % 4.0) };
                let value = if kind > 0 && !value.is_finite() { 1.0 } else { value };
                expected.push(value);
                got.push(value + error * grid.step(value));
            }
            let each: Vec<f64> = expected.iter().map(|value| 4.0 * grid.step(*value)).collect();
            let (mut a, mut b) = ([0; BLOCK], [0; BLOCK]);
            let formula = (4.0, 1e-6, 1e-9);
            // SAFETY: asked for above.
            let (vector, portable) = unsafe {
                match choice {
                    0 => (
                        avx2::block::<f64, true, false>(&got, &expected, &each, formula, &grid, &mut a),
                        block::<f64, true, false>(&got, &expected, &each, formula, &grid, &mut b),
                    ),
                    1 => (
                        avx2::block::<f64, false, false>(&got, &expected, &[], formula, &grid, &mut a),
                        block::<f64, false, false>(&got, &expected, &[], formula, &grid, &mut b),
                    ),
                    _ => {
                        prop_assume!(dtype != DType::Float64);
                        (
                            avx2::block::<f64, false, true>(&got, &expected, &[], formula, &grid, &mut a),
                            block::<f64, false, true>(&got, &expected, &[], formula, &grid, &mut b),
                        )
                    }
                }
            };
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs();
            match (vector, portable) {
                (Some(v), Some(p)) => {
                    let pairs = [
                        (v.abs, p.abs), (v.rel, p.rel), (v.ulp, p.ulp), (v.max_abs, p.max_abs),
                        (v.max_rel, p.max_rel), (v.max_ulp, p.max_ulp), (v.of_bound, p.of_bound),
                    ];
                    prop_assert!(pairs.iter().all(|&(v, p)| close(v, p)), "{v:?} {p:?}");
                    prop_assert_eq!(a, b);
                }
                (v, p) => prop_assert_eq!(v, p),
            }
        }
    }
}
