//! Reading and adding by index: embedding, gather and scatter_add.

use super::arguments::{Arguments, reals};
use super::operands::{indices, integer_answer, picked, place, propagates_nan};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::{Array, Layout, Values};
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
        (0..places.len()).map(|number| position(&Layout::index_of(&index.shape, number), &src.shape)).collect();
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
            let mut coordinates = Layout::index_of(own, number);
            coordinates[axis] = place(arguments, index, number, shape[axis])?;
            Ok(position(&coordinates, shape))
        })
        .collect()
}

/// The row-major number of an element.
fn position(coordinates: &[usize], shape: &[usize]) -> usize {
    coordinates.iter().zip(shape).fold(0, |position, (&coordinate, &size)| position * size + coordinate)
}

#[cfg(test)]
mod tests {
    use super::super::operands::asking::*;
    use gpuemu_contract::ParamValue::Int;

    #[test]
    fn embedding_copies_rows() {
        let table = floats(&[3, 2], &[1.0, 2.0, f64::NAN, 4.0, 5.0, f64::INFINITY]);
        let out = ask("embedding", &[table.clone(), integers(&[2, 2], &[2, 0, 0, 1])], &[]);
        assert_values(&out, &[2, 2, 2], &[5.0, f64::INFINITY, 1.0, 2.0, 1.0, 2.0, f64::NAN, 4.0]);
        assert_values(&ask("embedding", &[table.clone(), integers(&[], &[0])], &[]), &[2], &[1.0, 2.0]);
        assert_values(&ask("embedding", &[table, integers(&[0], &[])], &[]), &[0, 2], &[]);
        let whole = ask("embedding", &[integers(&[2, 1], &[7, i64::MAX]), integers(&[1], &[1])], &[]);
        assert_eq!(whole.integers(), Some(&[i64::MAX][..]));
    }

    #[test]
    fn an_index_outside_is_named() {
        let table = floats(&[3, 2], &[0.0; 6]);
        let of = |name: &str, index| message(name, &[table.clone(), index], &[]);
        for (text, says) in [
            (of("embedding", integers(&[2, 2], &[0, 1, 3, 2])), "in1[1, 0] is 3, outside of 0..3"),
            (of("embedding", integers(&[1], &[-1])), "in1[0] is -1, outside of 0..3"),
            (of("gather", integers(&[3, 1], &[0, 1, 2])), "in1[2, 0] is 2, outside of 0..2"),
            (of("gather", integers(&[1, 1], &[-1])), "in1[0, 0] is -1, outside of 0..2"),
            (of("embedding", floats(&[1], &[0.0])), "in1 of embedding must hold integers"),
            (of("gather", integers(&[4, 1], &[0; 4])), "at most its sizes along every axis but 1"),
        ] {
            assert!(text.contains(says), "{text}");
        }
        let src = floats(&[1, 2], &[1.0, 1.0]);
        let text = message("scatter_add", &[table, integers(&[1, 2], &[0, 3]), src], &[]);
        assert!(text.contains("in1[0, 1] is 3, outside of 0..3"), "{text}");
    }

    #[test]
    fn gather_along_each_axis() {
        // The example of torch.gather's documentation, for both axes.
        let x = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let index = integers(&[2, 2], &[0, 0, 1, 0]);
        assert_values(&ask("gather", &[x.clone(), index.clone()], &[]), &[2, 2], &[1.0, 1.0, 4.0, 3.0]);
        assert_values(&ask("gather", &[x.clone(), index], &[("axis", Int(0))]), &[2, 2], &[1.0, 2.0, 3.0, 2.0]);
        // An index smaller along the other axis, and longer along its own.
        let index = integers(&[1, 3], &[1, 1, 0]);
        assert_values(&ask("gather", &[x, index], &[("axis", Int(-1))]), &[1, 3], &[2.0, 2.0, 1.0]);
    }

    #[test]
    fn scatter_add_counts_every_duplicate() {
        let base = floats(&[3], &[100.0, 200.0, 300.0]);
        let out =
            ask("scatter_add", &[base, integers(&[4], &[2, 0, 2, 2]), floats(&[5], &[1.0, 2.0, 3.0, 4.0, 50.0])], &[]);
        assert_values(&out, &[3], &[102.0, 200.0, 308.0]);
        // Along the last axis of two rows.
        let base = floats(&[2, 2], &[0.0; 4]);
        let inputs = [base, integers(&[2, 3], &[0, 0, 1, 1, 1, 1]), floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
        assert_values(&ask("scatter_add", &inputs, &[("axis", Int(1))]), &[2, 2], &[3.0, 3.0, 0.0, 15.0]);
        // Integers wrap.
        let out =
            ask("scatter_add", &[integers(&[1], &[i64::MAX]), integers(&[2], &[0, 0]), integers(&[2], &[1, 1])], &[]);
        assert_eq!(out.integers(), Some(&[i64::MIN + 1][..]));
    }
}
