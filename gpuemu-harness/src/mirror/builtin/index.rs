//! Reading and adding by index: embedding, gather and scatter_add.

use super::arguments::{Arguments, reals};
use super::operands::{coordinates, indices, integer_answer, picked, place, propagates_nan};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::{Array, Values};
use std::num::Wrapping;

/// `out[..., :] = table[ids[...], :]`: table [V, ...], ids of any shape, out the shape of ids followed by the table's
/// other axes. An id outside of 0..V, -1 included, is an error. Values are copied, NaN and infinities too.
pub fn embedding<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let table = arguments.input(0);
    let ids = indices(arguments, 1)?;
    let Some((&rows, row_shape)) = table.shape.split_first() else {
        return Err(arguments.shape_error(0, "at least one axis"));
    };
    let width: usize = row_shape.iter().product();
    let mut places = Vec::with_capacity(ids.len() * width);
    for number in 0..ids.len() {
        let row = place(arguments, 1, number, rows)?;
        places.extend(row * width..(row + 1) * width);
    }
    let shape = [&arguments.input(1).shape[..], row_shape].concat();
    read::<R>(arguments, &shape, table, &places)
}

/// `out[i][j] = x[index[i][j]][j]` for axis 0, and so on for the others, as `torch.gather`: x and index of the same
/// rank, index no larger than x along every axis but `axis`, out in the shape of index. An index outside of the axis is
/// an error, a negative one too. Values are copied, NaN and infinities too.
pub fn gather<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let places = places_along_axis(arguments, 0, 1)?;
    read::<R>(arguments, &arguments.input(1).shape, x, &places)
}

fn read<R: Real>(arguments: &Arguments<'_>, shape: &[usize], from: &Array, places: &[usize]) -> Result<Vec<Array>> {
    match picked::<R>(from, places) {
        Values::Float(values) => arguments.answer(shape, values),
        Values::Integer(values) => integer_answer(arguments, shape, values.into_iter().map(Wrapping).collect()),
    }
}

/// `out = base`, then `out[index[i][j]][j] += src[i][j]` in row-major order for axis 0, and so on for the others, as
/// `torch.scatter_add`: base, index and src of the same rank, index no larger than src, and no larger than base along
/// every axis but `axis`; elements of src beyond index are not read. An index outside of the axis is an error, a
/// negative one too. Indices may repeat. Floats add in the working precision, integers wrap to the output's dtype.
pub fn scatter_add<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    propagates_nan(arguments)?;
    let (base, index, src) = (arguments.input(0), arguments.input(1), arguments.input(2));
    if src.shape.len() != index.shape.len() || index.shape.iter().zip(&src.shape).any(|(own, most)| own > most) {
        return Err(
            arguments.shape_error(2, &format!("at least the shape {:?} of {}", index.shape, arguments.input_name(1)))
        );
    }
    let places = places_along_axis(arguments, 0, 1)?;
    let sources: Vec<usize> =
        (0..places.len()).map(|number| position(&coordinates(number, &index.shape), &src.shape)).collect();
    if let (Values::Integer(base_values), Values::Integer(src_values)) = (&base.values, &src.values) {
        let mut out: Vec<Wrapping<i64>> = base_values.iter().copied().map(Wrapping).collect();
        for (&to, &from) in places.iter().zip(&sources) {
            out[to] += src_values[from];
        }
        return integer_answer(arguments, &base.shape, out);
    }
    let mut out = reals::<R>(base).into_owned();
    let added = reals::<R>(src);
    for (&to, &from) in places.iter().zip(&sources) {
        out[to] += added[from];
    }
    arguments.answer(&base.shape, out)
}

/// For every element of an index, the row-major place it names in another input of the same rank: its own coordinates,
/// with the one along parameter `axis` replaced.
fn places_along_axis(arguments: &Arguments<'_>, named: usize, index: usize) -> Result<Vec<usize>> {
    let shape = &arguments.input(named).shape;
    let own = &arguments.input(index).shape;
    let count = indices(arguments, index)?.len();
    let axis = arguments.axis(shape)?;
    let fits = own.len() == shape.len()
        && own.iter().zip(shape).enumerate().all(|(at, (own, most))| at == axis || own <= most);
    if !fits {
        let expected = format!("the rank of shape {shape:?} and at most its sizes along every axis but {axis}");
        return Err(arguments.shape_error(index, &expected));
    }
    (0..count)
        .map(|number| {
            let mut coordinates = coordinates(number, own);
            coordinates[axis] = place(arguments, index, number, shape[axis])?;
            Ok(position(&coordinates, shape))
        })
        .collect()
}

/// The row-major number of an element.
fn position(coordinates: &[usize], shape: &[usize]) -> usize {
    coordinates.iter().zip(shape).fold(0, |position, (&coordinate, &size)| position * size + coordinate)
}
