//! What a failure looks like: the diagnosis and the picture of one output.

use super::oracle::{Answer, Oracle};
use crate::case::Case;
use crate::error::Result;
use crate::tensor::Tensor;
use crate::validate::verdict::Failure;

/// Fills in what the wrong elements of an output look like.
pub(super) fn explain(
    _oracle: &Oracle<'_>,
    _case: &Case,
    _answer: &Answer<'_>,
    _place: usize,
    _got: &Tensor,
    _failure: &mut Failure,
) -> Result<()> {
    Ok(())
}

/// Fills in where marked elements lie.
pub(super) fn places(_oracle: &Oracle<'_>, _output: &str, _shape: &[usize], _marks: &[bool], _failure: &mut Failure) {}
