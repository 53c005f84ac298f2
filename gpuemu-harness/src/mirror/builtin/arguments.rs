//! What a built-in is asked, read by role and by parameter name, and the loops that built-ins share.

use crate::error::{Error, Result};
use crate::mirror::Question;
use crate::mirror::real::Real;
use crate::tensor::{Array, Layout, Values};
use gpuemu_contract::builtin::{Builtin, ParamDefault};
use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};
use std::borrow::Cow;

/// The inputs of a question by role (position), its parameters by name with the built-in's defaults.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    builtin: &'static Builtin,
    question: &'a Question<'a>,
}

impl<'a> Arguments<'a> {
    /// Checks the number of inputs and the names and types of parameters.
    pub fn new(builtin: &'static Builtin, question: &'a Question<'a>) -> Result<Self> {
        let (least, most, got) = (builtin.min_inputs(), builtin.inputs.len(), question.inputs.len());
        if got < least || got > most {
            let roles: Vec<&str> = builtin.inputs.iter().map(|role| role.name).collect();
            let optional = if least < most { format!(" (the last {} optional)", most - least) } else { String::new() };
            return Err(Error::Config(format!(
                "{} takes {}{optional}, the op has {got} input(s)",
                builtin.name,
                roles.join(", ")
            )));
        }
        for (name, value) in question.params {
            let Some(param) = builtin.param(name) else { continue };
            if !param.default.accepts(value) {
                return Err(Error::Config(format!(
                    "parameter {name} of {} is {}, got {value}",
                    builtin.name,
                    param.default.type_name()
                )));
            }
            if let ParamValue::Text(text) = value
                && !param.choices.is_empty()
                && !param.choices.contains(&text.as_str())
            {
                return Err(Error::Config(format!(
                    "parameter {name} of {} is one of {}, got {text:?}",
                    builtin.name,
                    param.choices.join(", ")
                )));
            }
        }
        Ok(Arguments { builtin, question })
    }

    /// The built-in's name, for messages.
    pub fn name(&self) -> &'static str {
        self.builtin.name
    }

    /// The arithmetic to use.
    pub fn precision(&self) -> Compute {
        self.question.precision
    }

    /// Written edge semantics.
    pub fn edges(&self) -> EdgePolicy {
        self.question.edges
    }

    /// The dtype of the first output.
    pub fn output_dtype(&self) -> DType {
        self.question.outputs.first().map_or(DType::Float64, |&(_, dtype)| dtype)
    }

    /// A required input, by the number of its role. Panics when the role is not required.
    pub fn input(&self, role: usize) -> &'a Array {
        &self.question.inputs[role].1
    }

    /// An input that may be left out, by the number of its role.
    pub fn optional(&self, role: usize) -> Option<&'a Array> {
        self.question.inputs.get(role).map(|(_, array)| array)
    }

    /// The name an input has in the op, for messages.
    pub fn input_name(&self, role: usize) -> &'a str {
        &self.question.inputs[role].0
    }

    /// A parameter as given, else its default; `None` where the default depends on the shapes. Panics when the
    /// built-in has no such parameter.
    fn param(&self, name: &str) -> Result<Option<ParamValue>> {
        let declared = self.builtin.param(name).expect("a parameter of the table");
        if let Some((_, value)) = self.question.params.iter().find(|(given, _)| given == name) {
            return Ok(Some(value.clone()));
        }
        match declared.default {
            ParamDefault::RequiredInt => {
                Err(Error::Config(format!("{} needs parameter {name}, an integer", self.builtin.name)))
            }
            default => Ok(default.value()),
        }
    }

    /// An integer parameter.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.param(name)? {
            Some(ParamValue::Int(value)) => Ok(value),
            other => unreachable!("{name} was checked to be an integer, is {other:?}"),
        }
    }

    /// An integer parameter that counts something: at least `least`.
    pub fn count(&self, name: &str, least: usize) -> Result<usize> {
        let value = self.int(name)?;
        usize::try_from(value).ok().filter(|&value| value >= least).ok_or_else(|| {
            Error::Config(format!("parameter {name} of {} is at least {least}, got {value}", self.builtin.name))
        })
    }

    /// A float parameter; an integer is taken for one.
    pub fn float(&self, name: &str) -> Result<f64> {
        Ok(self.derived_float(name)?.expect("a parameter with a default"))
    }

    /// A float parameter whose default depends on the shapes: `None` where the op gives none.
    pub fn derived_float(&self, name: &str) -> Result<Option<f64>> {
        Ok(match self.param(name)? {
            None => None,
            Some(ParamValue::Float(value)) => Some(value),
            Some(ParamValue::Int(value)) => Some(value as f64),
            other => unreachable!("{name} was checked to be a number, is {other:?}"),
        })
    }

    /// A boolean parameter.
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.param(name)? {
            Some(ParamValue::Bool(value)) => Ok(value),
            other => unreachable!("{name} was checked to be true or false, is {other:?}"),
        }
    }

    /// A text parameter; `None` where it depends on the shapes and the op gives none.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        match self.param(name)? {
            None => Ok(None),
            Some(ParamValue::Text(value)) => Ok(Some(value)),
            other => unreachable!("{name} was checked to be text, is {other:?}"),
        }
    }

    /// Parameter `axis`, counted from the front. A negative one counts from the back.
    pub fn axis(&self, shape: &[usize]) -> Result<usize> {
        let (axis, rank) = (self.int("axis")?, shape.len() as i64);
        let from_front = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&from_front) {
            return Ok(from_front as usize);
        }
        Err(Error::Config(format!("axis {axis} of {} is outside of shape {shape:?}", self.builtin.name)))
    }

    /// An error about the shape of an input.
    pub fn shape_error(&self, role: usize, expected: &str) -> Error {
        Error::Config(format!(
            "{} of {} must have {expected}, its shape is {:?}",
            self.input_name(role),
            self.builtin.name,
            self.input(role).shape
        ))
    }

    /// An answer for the first output: floats for a float dtype. For an integer dtype they are truncated toward zero
    /// and saturate, as a cast does.
    pub fn answer<R: Real>(&self, shape: &[usize], values: Vec<R>) -> Result<Vec<Array>> {
        let (dtype, values) = (self.output_dtype(), R::into_f64s(values));
        Ok(vec![if dtype.is_float() {
            Array::float(dtype, shape, values)
        } else {
            let (low, high) = dtype.integer_range().expect("an integer dtype");
            let cast = |value: f64| (value as i128).clamp(low, high) as i64;
            Array::integer(dtype, shape, values.into_iter().map(cast).collect())
        }])
    }
}

/// The values of an array in a working precision, each rounded to it.
pub fn reals<R: Real>(array: &Array) -> Cow<'_, [R]> {
    match &array.values {
        Values::Float(values) => R::from_f64s(values),
        Values::Integer(_) => (0..array.len()).map(|number| R::from_f64(array.at(number))).collect(),
    }
}

/// A dense shape seen along one axis: `outer` times `inner` rows of `length` elements, neighbours `inner` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Product of the sizes before the axis.
    pub outer: usize,
    /// Size of the axis.
    pub length: usize,
    /// Product of the sizes after the axis: the distance between neighbours of a row.
    pub inner: usize,
}

impl Rows {
    /// Rows along `axis`. Panics when there is no such axis.
    pub fn along(shape: &[usize], axis: usize) -> Rows {
        Rows { outer: shape[..axis].iter().product(), length: shape[axis], inner: shape[axis + 1..].iter().product() }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.outer * self.inner
    }

    /// Calls `each` with every row, in row-major order of the other axes.
    pub fn for_each<T: Copy>(&self, values: &[T], mut each: impl FnMut(&[T])) {
        if self.length == 0 {
            (0..self.count()).for_each(|_| each(&[]));
        } else if self.inner == 1 {
            values.chunks_exact(self.length).for_each(each);
        } else {
            self.tiles(values, |tile, _| tile.chunks_exact(self.length).for_each(&mut each));
        }
    }

    /// One value a row, in row-major order of the other axes.
    pub fn reduce<T: Copy, U>(&self, values: &[T], mut reduce: impl FnMut(&[T]) -> U) -> Vec<U> {
        let mut reduced = Vec::with_capacity(self.count());
        self.for_each(values, |row| reduced.push(reduce(row)));
        reduced
    }

    /// A row for every row: `map` is given a row to read and appends as many values.
    pub fn map<T: Copy + Default>(&self, values: &[T], mut map: impl FnMut(&[T], &mut Vec<T>)) -> Vec<T> {
        let mut mapped = Vec::with_capacity(values.len());
        if self.inner == 1 || values.is_empty() {
            self.for_each(values, |row| map(row, &mut mapped));
            return mapped;
        }
        mapped.resize(values.len(), T::default());
        let mut rows = Vec::new();
        self.tiles(values, |tile, first| {
            rows.clear();
            tile.chunks_exact(self.length).for_each(|row| map(row, &mut rows));
            for (lane, row) in rows.chunks_exact(self.length).enumerate() {
                for (at, &value) in row.iter().enumerate() {
                    mapped[first + at * self.inner + lane] = value;
                }
            }
        });
        mapped
    }

    /// [`Rows::map`] in a working precision: row by row, so that nothing but the answer is held as a whole.
    pub fn map_reals<R: Real>(&self, array: &Array, mut map: impl FnMut(&[R], &mut Vec<R>)) -> Vec<f64> {
        let mut scratch = [Vec::new(), Vec::new()];
        self.map(&reals::<f64>(array), |row, out| R::map_row(row, out, &mut scratch, &mut map))
    }

    /// [`Rows::reduce`] in a working precision.
    pub fn reduce_reals<R: Real, U>(&self, array: &Array, mut reduce: impl FnMut(&[R]) -> U) -> Vec<U> {
        self.reduce(&reals::<f64>(array), |row| reduce(&R::from_f64s(row)))
    }

    /// Gathers rows that are not contiguous, a few neighbours at once, so that memory is read in runs. Calls `each` with
    /// these rows one after the other and the place of the first element of the first.
    fn tiles<T: Copy>(&self, values: &[T], mut each: impl FnMut(&[T], usize)) {
        const WIDTH: usize = 16;
        let mut tile = Vec::new();
        for outer in 0..self.outer {
            for lane in (0..self.inner).step_by(WIDTH) {
                let (first, width) = (outer * self.length * self.inner + lane, WIDTH.min(self.inner - lane));
                tile.resize(width * self.length, values[first]);
                for at in 0..self.length {
                    let run = &values[first + at * self.inner..][..width];
                    for (lane, &value) in run.iter().enumerate() {
                        tile[lane * self.length + at] = value;
                    }
                }
                each(&tile, first);
            }
        }
    }
}

/// The shape two shapes broadcast to, as in NumPy: aligned at the last axis, a size of 1 stretches.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank)
        .map(|axis| match (size(a, axis), size(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, size) | (size, 1) => Ok(size),
            _ => Err(Error::Config(format!("shapes {a:?} and {b:?} do not broadcast"))),
        })
        .collect()
}

/// Where each element of the broadcast shape `to` stands in a dense array of shape `from`. `from` must broadcast to it.
pub fn broadcast_layout(from: &[usize], to: &[usize]) -> Layout {
    let dense = Layout::contiguous(from);
    let stretched = to.len() - from.len();
    let strides = (0..to.len())
        .map(|axis| match axis.checked_sub(stretched) {
            Some(axis) if from[axis] != 1 => dense.strides[axis],
            _ => 0,
        })
        .collect();
    Layout { shape: to.to_vec(), strides, offset: 0 }
}

/// An array's values stretched to the broadcast shape `to`; borrowed where nothing stretches.
pub fn stretch<'a, T: Copy>(values: &'a [T], from: &[usize], to: &[usize]) -> Cow<'a, [T]> {
    if from == to || values.len() == to.iter().product::<usize>() {
        return Cow::Borrowed(values);
    }
    Cow::Owned(broadcast_layout(from, to).positions().map(|at| values[at]).collect())
}

/// Asks a built-in in a test: unnamed inputs, parameters, the output's dtype, the precision, edge semantics.
#[cfg(test)]
pub(super) fn ask(
    name: &str,
    inputs: &[Array],
    params: &[(&str, ParamValue)],
    (dtype, precision, edges): (DType, Compute, EdgePolicy),
) -> Result<Vec<Array>> {
    use crate::mirror::Mirror;
    let inputs: Vec<_> = inputs.iter().enumerate().map(|(role, array)| (format!("in{role}"), array.clone())).collect();
    let params: Vec<_> = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let outputs = [("out".to_owned(), dtype)];
    let question = Question { inputs: &inputs, params: &params, outputs: &outputs, precision, edges };
    super::find(name).expect("a built-in").answer(&question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_as_in_numpy() {
        type Row = (&'static [usize], &'static [usize], Option<&'static [usize]>);
        let table: &[Row] = &[
            (&[], &[], Some(&[])),
            (&[2, 3], &[], Some(&[2, 3])),
            (&[2, 3], &[3], Some(&[2, 3])),
            (&[2, 1], &[3], Some(&[2, 3])),
            (&[2, 1], &[1, 3], Some(&[2, 3])),
            (&[0, 3], &[1, 3], Some(&[0, 3])),
            (&[1], &[0], Some(&[0])),
            (&[2], &[3], None),
            (&[2, 3], &[2], None),
        ];
        for &(a, b, expected) in table {
            assert_eq!(broadcast(a, b).ok().as_deref(), expected, "{a:?} {b:?}");
            assert_eq!(broadcast(b, a).ok().as_deref(), expected, "{b:?} {a:?}");
        }
        assert_eq!(*stretch(&[1, 2], &[2, 1], &[2, 3]), [1, 1, 1, 2, 2, 2]);
        assert_eq!(*stretch(&[1, 2], &[2], &[2, 2]), [1, 2, 1, 2]);
    }

    #[test]
    fn rows_along_each_axis() {
        let values: Vec<usize> = (0..24).collect();
        let wide: Vec<usize> = (0..3 * 5 * 35).collect();
        let rows = Rows::along(&[3, 5, 35], 1);
        rows.for_each(&wide, |row| assert!(row.windows(2).all(|pair| pair[1] == pair[0] + 35), "{row:?}"));
        assert_eq!(rows.map(&wide, |row, out| out.extend(row)), wide);
        for axis in 0..3 {
            let rows = Rows::along(&[2, 3, 4], axis);
            let step = [12, 4, 1][axis];
            rows.for_each(&values, |row| {
                assert!(row.windows(2).all(|pair| pair[1] == pair[0] + step), "{axis} {row:?}")
            });
            assert_eq!(rows.map(&values, |row, out| out.extend(row)), values);
        }
        assert_eq!(Rows::along(&[2, 3], 0).reduce(&[1, 2, 3, 4, 5, 6], |row| row.iter().sum::<i32>()), [5, 7, 9]);
        assert_eq!(Rows::along(&[2, 0], 1).reduce(&[0; 0], <[i32]>::len), [0, 0]);
    }

    #[test]
    fn wrong_questions_say_what_is_wrong() {
        let x = Array::float(DType::Float32, &[2], vec![0.0, 0.0]);
        let table: &[(&[(&str, ParamValue)], usize, &str)] = &[
            (&[("axis", ParamValue::Int(1))], 1, "axis 1 of softmax is outside of shape [2]"),
            (&[("axis", ParamValue::Int(-2))], 1, "axis -2 of softmax is outside of shape [2]"),
            (&[("axis", ParamValue::Bool(true))], 1, "parameter axis of softmax is an integer, got true"),
            (&[], 2, "softmax takes x, the op has 2 input(s)"),
            (&[], 0, "softmax takes x, the op has 0 input(s)"),
        ];
        for (params, inputs, expected) in table {
            let edges = (DType::Float32, Compute::Float64, EdgePolicy::default());
            let error = ask("softmax", &vec![x.clone(); *inputs], params, edges).unwrap_err();
            assert_eq!(error.to_string(), *expected);
        }
    }
}
