//! Diagnosis: what the error of a failing case looks like, in words that are true of the data.

mod place;
mod value;

use super::compare::{Bound, Rules, wrong_elements};
use super::grid::Grid;
use super::picture;
use super::verdict::Failure;
use crate::tensor::{Array, Tensor};
use gpuemu_contract::DType;

/// Most sentences of a diagnosis.
const SENTENCES: usize = 5;

/// One axis of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name as the schema writes it: `H`, `2*D`.
    pub name: String,
    /// The kernel's tile along it, where the schema says.
    pub tile: Option<usize>,
}

/// A failing output of one case.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The answer.
    pub got: &'a Tensor,
    /// The expected values.
    pub expected: &'a Array,
    /// The bound that it failed.
    pub bound: Bound<'a>,
    /// The rules that it failed.
    pub rules: Rules<'a>,
    /// The output's axes, outermost first. Missing ones are called by their number.
    pub axes: &'a [Axis],
    /// Sizes that a factor may come from.
    pub dims: &'a [(String, u64)],
    /// The inputs, as the subject got them.
    pub inputs: &'a [(String, Tensor)],
    /// Unit roundoff of the precision that a right kernel computes in.
    pub unit_roundoff: f64,
    /// Where the bound is calibrated on a reference whose algorithm is not known: the dtype of the test, under which the
    /// contract may write a tolerance.
    pub unknown_algorithm: Option<DType>,
}

/// What the error looks like, the most telling sentence first: what the wrong elements are, then where they are. Empty
/// where nothing is known, or nothing is wrong.
pub fn diagnose(scene: &Scene<'_>) -> Vec<String> {
    let facts = Facts::of(scene);
    if facts.numbers.is_empty() {
        return Vec::new();
    }
    let mut sentences = value::sentences(&facts);
    sentences.extend(place::sentences(&facts));
    sentences.truncate(SENTENCES);
    sentences
}

/// Fills in diagnosis and picture of a failure.
pub fn explain(failure: &mut Failure, scene: &Scene<'_>) {
    failure.diagnosis = diagnose(scene);
    let wrong = wrong_elements(scene.got, scene.expected, scene.bound, &scene.rules);
    let tiles: Vec<Option<usize>> = scene.axes.iter().map(|axis| axis.tile).collect();
    failure.picture = picture::draw(&wrong, &scene.expected.shape, &tiles);
}

/// What the rules look at.
struct Facts<'a> {
    scene: &'a Scene<'a>,
    dtype: DType,
    shape: &'a [usize],
    got: Vec<f64>,
    expected: Vec<f64>,
    allowed: Vec<f64>,
    wrong: Vec<bool>,
    /// Row-major numbers of the wrong elements.
    numbers: Vec<usize>,
}

impl<'a> Facts<'a> {
    fn of(scene: &'a Scene<'a>) -> Facts<'a> {
        let grid = Grid::of(scene.got.dtype());
        let got = scene.got.to_array();
        let wrong = wrong_elements(scene.got, scene.expected, scene.bound, &scene.rules);
        let expected: Vec<f64> = (0..scene.expected.len()).map(|number| scene.expected.at(number)).collect();
        Facts {
            scene,
            dtype: scene.got.dtype(),
            shape: &scene.expected.shape,
            got: (0..got.len()).map(|number| got.at(number)).collect(),
            allowed: expected
                .iter()
                .enumerate()
                .map(|(number, &value)| if value.is_finite() { scene.bound.at(number, value, &grid) } else { 0.0 })
                .collect(),
            numbers: (0..wrong.len()).filter(|&number| wrong[number]).collect(),
            expected,
            wrong,
        }
    }

    /// Name of an axis in a sentence.
    fn name(&self, axis: usize) -> String {
        self.scene.axes.get(axis).map_or_else(|| format!("axis {axis}"), |axis| axis.name.clone())
    }

    fn tile(&self, axis: usize) -> Option<usize> {
        self.scene.axes.get(axis).and_then(|axis| axis.tile).filter(|&tile| tile > 1)
    }

    /// Distance in row-major numbers between neighbours along an axis.
    fn stride(&self, axis: usize) -> usize {
        self.shape[axis + 1..].iter().product()
    }

    /// Index along an axis of an element.
    fn index(&self, number: usize, axis: usize) -> usize {
        number / self.stride(axis) % self.shape[axis]
    }

    /// Whether the answer at `number` is the expected value of `source`, within what either may be off.
    fn is_value_of(&self, number: usize, source: usize) -> bool {
        same(self.got[number], self.expected[source], self.allowed[number].max(self.allowed[source]))
    }

    /// "every element", "both wrong elements", ...: the subject of a sentence about all that is wrong.
    fn wrong_ones(&self) -> String {
        if self.numbers.len() == self.got.len() && self.got.len() > 1 {
            "every element".to_string()
        } else if self.numbers.len() == 1 {
            "the wrong element".to_string()
        } else {
            "every wrong element".to_string()
        }
    }

    /// Whether the expected values at these places are more than one value, as far as the bounds can tell.
    fn varied(&self, numbers: &[usize]) -> bool {
        let finite = |number: &&usize| self.expected[**number].is_finite();
        let Some(&first) = numbers.iter().find(finite) else { return false };
        numbers.iter().filter(finite).any(|&number| {
            !same(self.expected[number], self.expected[first], 2.0 * self.allowed[number].max(self.allowed[first]))
        })
    }
}

/// Equal within a tolerance; NaN is NaN, infinities by sign.
fn same(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance || a.is_nan() && b.is_nan()
}

#[cfg(test)]
mod tests;
