//! What a failure looks like: the diagnosis and the picture of one output.

use super::oracle::{Answer, Oracle};
use crate::case::Case;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::validate::compare::{Bound, Rules};
use crate::validate::diagnosis::{self, Scene};
use crate::validate::picture;
use crate::validate::verdict::Failure;

/// Fills in what the wrong elements of an output look like.
pub(super) fn explain(
    oracle: &Oracle<'_>,
    case: &Case,
    answer: &Answer<'_>,
    place: usize,
    got: &Tensor,
    failure: &mut Failure,
) -> Result<()> {
    let expected = &answer.expected[place];
    let name = failure.output.clone().unwrap_or_default();
    let axes = oracle.axes_of(&name, expected.shape.len());
    answer.allowed(place, |allowed, either_right| {
        let scene = Scene {
            got,
            expected,
            bound: Bound::PerElement(allowed),
            rules: Rules { either_right, ..answer.rules(place) },
            axes: &axes,
            dims: &case.spec.dims,
            inputs: &case.inputs,
            unit_roundoff: oracle.op().compute_for(oracle.dtype()).unit_roundoff(),
            unknown_algorithm: answer.has_unknown_algorithm(place).then_some(oracle.dtype()),
        };
        diagnosis::explain(failure, &scene);
    })
}

/// Draws where marked elements lie.
pub(super) fn places(oracle: &Oracle<'_>, output: &str, shape: &[usize], marks: &[bool], failure: &mut Failure) {
    let tiles: Vec<Option<usize>> = oracle.axes_of(output, shape.len()).iter().map(|axis| axis.tile).collect();
    failure.picture = picture::draw(marks, shape, &tiles);
}
