//! Axes in another order.

use super::arguments::Arguments;
use super::operands::picked;
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::{Array, Layout};

/// The elements with axes in the order of parameter `permutation` (`"1,0,2"`: output axis 0 is input axis 1), by default
/// with the last two exchanged. Values are moved, not computed with.
pub fn transpose<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let axes = permutation(arguments, x.shape.len())?;
    let dense = Layout::contiguous(&x.shape);
    let layout = Layout {
        shape: axes.iter().map(|&axis| x.shape[axis]).collect(),
        strides: axes.iter().map(|&axis| dense.strides[axis]).collect(),
        offset: 0,
    };
    let places: Vec<usize> = layout.positions().collect();
    let values = picked::<R>(x, &places);
    Ok(vec![Array { dtype: arguments.output_dtype(), shape: layout.shape, values }])
}

fn permutation(arguments: &Arguments<'_>, rank: usize) -> Result<Vec<usize>> {
    let Some(text) = arguments.text("permutation")? else {
        if rank < 2 {
            return Err(arguments.shape_error(0, "at least two axes where no permutation is given"));
        }
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        return Ok(axes);
    };
    let axes: Option<Vec<usize>> = text.split(',').map(|axis| axis.trim().parse().ok()).collect();
    let mut sorted = axes.clone().unwrap_or_default();
    sorted.sort_unstable();
    match axes {
        Some(axes) if sorted.iter().copied().eq(0..rank) => Ok(axes),
        _ => Err(Error::Config(format!(
            "permutation {text:?} of transpose must hold each of 0 to {} once",
            rank.saturating_sub(1)
        ))),
    }
}
