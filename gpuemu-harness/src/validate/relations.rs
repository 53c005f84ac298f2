//! Relations: what must hold between two runs, and what selecting and permuting rows for them needs.

use super::compare::{Bound, Rules, compare, plain};
use super::verdict::{Check, Failure, Mismatch};
use crate::tensor::{Array, Layout, Tensor};

/// Fails where two answers differ in their bits; NaNs are equal whatever their payload, +0 and -0 are not.
/// `relation` is a phrase such as "the same inputs a second time": what the second answer is.
///
/// Panics when dtypes or shapes differ.
pub fn same_bits(output: &str, relation: &str, first: &Tensor, second: &Tensor) -> Option<Failure> {
    assert_eq!((first.dtype(), first.shape()), (second.dtype(), second.shape()), "answers of one kind");
    let size = first.dtype().size();
    let (a, b) = (first.to_contiguous(), second.to_contiguous());
    if a.bytes() == b.bytes() {
        return None;
    }
    let (left, right) = (a.to_array(), b.to_array());
    let differ = |number: &usize| {
        let at = number * size..(number + 1) * size;
        a.bytes()[at.clone()] != b.bytes()[at] && !(left.at(*number).is_nan() && right.at(*number).is_nan())
    };
    let mut numbers = (0..left.len()).filter(differ);
    let at = numbers.next()?;
    let count = 1 + numbers.count();
    let message = format!(
        "{count} of {} elements of {output} change their bits with {relation}, the first at {:?}",
        left.len(),
        Layout::index_of(&left.shape, at)
    );
    let (expected, got) = (left.at(at), right.at(at));
    let ulp = super::grid::Grid::of(first.dtype()).ulp(got, expected);
    let first = Mismatch { index: Layout::index_of(&left.shape, at), expected, got, allowed: 0.0, ulp };
    Some(Failure { first: Some(first), ..plain(Check::Relation, output, message) })
}

/// Fails where two answers are further apart than allowed: each may be off by its own bound, so `allowed` is the sum of
/// the two. Elements in `either_right` of either run, and non-finite ones in general, follow `rules`.
///
/// Panics when shapes differ or there is not one bound an element.
pub fn within_bounds(
    output: &str,
    relation: &str,
    first: &Tensor,
    second: &Tensor,
    allowed: &[f64],
    rules: &Rules<'_>,
) -> Option<Failure> {
    let expected = first.to_array();
    let comparison = compare(second, &expected, Bound::PerElement(allowed), rules);
    let failure = comparison.failure(output)?;
    let first = failure.first.as_ref().expect("a comparison that failed names an element");
    let message = format!(
        "{} of {} elements of {output} change by more than both bounds allow with {relation}, the first at {:?}",
        comparison.statistics.exceeding, comparison.statistics.count, first.index
    );
    Some(Failure { check: Check::Relation, message, ..failure })
}

/// Slices `start..end` along an axis, as a dense tensor. Panics when the range lies outside.
pub fn select(tensor: &Tensor, axis: usize, start: usize, end: usize) -> Tensor {
    assert!(start <= end && end <= tensor.shape()[axis], "slices {start}..{end} of {:?}", tensor.shape());
    gather(tensor, axis, &(start..end).collect::<Vec<_>>())
}

/// The slices along an axis in another order: slice `i` of the result is slice `order[i]`. Dense.
///
/// Panics when `order` is not a permutation of the axis.
pub fn permute(tensor: &Tensor, axis: usize, order: &[usize]) -> Tensor {
    assert_permutation(order, tensor.shape()[axis]);
    gather(tensor, axis, order)
}

/// Undoes [`permute`].
pub fn unpermute(tensor: &Tensor, axis: usize, order: &[usize]) -> Tensor {
    assert_permutation(order, tensor.shape()[axis]);
    let mut back = vec![0; order.len()];
    for (to, &from) in order.iter().enumerate() {
        back[from] = to;
    }
    gather(tensor, axis, &back)
}

/// Bounds (or any values, one an element) of slices along an axis, in the order of `order`.
pub fn gather_values<T: Copy>(values: &[T], shape: &[usize], axis: usize, order: &[usize]) -> Vec<T> {
    let inner: usize = shape[axis + 1..].iter().product();
    let slab = shape[axis] * inner;
    let mut gathered = Vec::with_capacity(values.len());
    for slab in if slab == 0 { [].chunks_exact(1) } else { values.chunks_exact(slab) } {
        for &slice in order {
            gathered.extend_from_slice(&slab[slice * inner..(slice + 1) * inner]);
        }
    }
    gathered
}

/// The expected values of slices along an axis.
pub fn select_values(array: &Array, axis: usize, start: usize, end: usize) -> Array {
    use crate::tensor::Values;
    let order: Vec<usize> = (start..end).collect();
    let mut shape = array.shape.clone();
    shape[axis] = end - start;
    let values = match &array.values {
        Values::Float(values) => Values::Float(gather_values(values, &array.shape, axis, &order)),
        Values::Integer(values) => Values::Integer(gather_values(values, &array.shape, axis, &order)),
    };
    Array { dtype: array.dtype, shape, values }
}

fn assert_permutation(order: &[usize], size: usize) {
    let mut seen = vec![false; size];
    let all = order.iter().all(|&slice| slice < size && !std::mem::replace(&mut seen[slice], true));
    assert!(all && order.len() == size, "{order:?} is no permutation of {size} slices");
}

fn gather(tensor: &Tensor, axis: usize, order: &[usize]) -> Tensor {
    let size = tensor.dtype().size();
    let mut shape = tensor.shape().to_vec();
    shape[axis] = order.len();
    let mut gathered = Tensor::zeros(tensor.dtype(), Layout::contiguous(&shape));
    // As bytes: one more axis, the bytes of an element.
    let mut in_bytes = tensor.shape().to_vec();
    in_bytes.push(size);
    let bytes = gather_values(tensor.to_contiguous().bytes(), &in_bytes, axis, order);
    gathered.bytes_mut().copy_from_slice(&bytes);
    gathered
}

/// Fails when a byte of an input, gaps in its memory included, is another one than before the subject ran. Those for
/// which `inout` is true, one entry an input, may change. A plain comparison moves the memory once, where hashes would
/// twice, and can name the element that changed.
pub fn untouched(before: &[(String, Tensor)], now: &[(String, Tensor)], inout: &[bool]) -> Option<Failure> {
    assert_eq!((before.len(), now.len()), (inout.len(), inout.len()), "one entry an input");
    let must_stay = before.iter().zip(now).zip(inout).filter(|(_, inout)| !**inout);
    for (((name, before), (_, now)), _) in must_stay {
        if now.bytes() != before.bytes() || now.layout() != before.layout() {
            return Some(changed(name, before, now));
        }
    }
    None
}

fn changed(name: &str, kept: &Tensor, now: &Tensor) -> Failure {
    let size = kept.dtype().size();
    if now.layout() != kept.layout() || now.capacity() != kept.capacity() || now.dtype() != kept.dtype() {
        let message = format!("input {name} was replaced by a tensor of another shape, dtype or layout");
        return plain(Check::InputWritten, name, message);
    }
    let same = |position: usize| {
        let at = position * size..(position + 1) * size;
        kept.bytes()[at.clone()] == now.bytes()[at]
    };
    let count = (0..kept.capacity()).filter(|&position| !same(position)).count();
    let Some((number, _)) = kept.layout().positions().enumerate().find(|&(_, position)| !same(position)) else {
        let position = (0..kept.capacity()).find(|&position| !same(position)).unwrap_or(0);
        let message = format!("the gaps of input {name} were written, the first {position} elements into its memory");
        return plain(Check::InputWritten, name, message);
    };
    let index = Layout::index_of(kept.shape(), number);
    let (expected, got) = (element(kept, &index), element(now, &index));
    let message = format!("input {name} was written: {count} elements changed, the first at {index:?}");
    let first =
        Mismatch { index, expected, got, allowed: 0.0, ulp: super::grid::Grid::of(kept.dtype()).ulp(got, expected) };
    Failure { first: Some(first), ..plain(Check::InputWritten, name, message) }
}

fn element(tensor: &Tensor, index: &[usize]) -> f64 {
    use crate::Element;
    let at = tensor.layout().position(index);
    crate::with_element!(tensor.dtype(), T => tensor.data::<T>()[at].to_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_differ_where_values_do_not() {
        let table: [(&[f32], &[f32], Option<&str>); 5] = [
            (&[1.0, 2.0], &[1.0, 2.0], None),
            (
                &[0.0, 2.0],
                &[-0.0, 2.0],
                Some("1 of 2 elements of out change their bits with a second run, the first at [0]"),
            ),
            (&[1.0, f32::NAN], &[1.0, f32::from_bits(0x7fc00001)], None),
            (&[1.0, f32::NAN], &[2.0, 3.0], Some("2 of 2 elements")),
            (&[], &[], None),
        ];
        for (first, second, message) in table {
            let of = |data: &[f32]| Tensor::from_slice(&[data.len()], data);
            let found = same_bits("out", "a second run", &of(first), &of(second)).map(|failure| failure.message);
            match message {
                None => assert_eq!(found, None),
                Some(start) => assert!(found.as_deref().is_some_and(|found| found.starts_with(start)), "{found:?}"),
            }
        }
    }

    #[test]
    fn bits_are_compared_across_layouts() {
        let dense = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let mut padded = Tensor::zeros(dense.dtype(), Layout { shape: vec![2, 2], strides: vec![3, 1], offset: 1 });
        padded.copy_elements_from(&dense);
        assert!(same_bits("out", "a padded layout", &dense, &padded).is_none());
    }

    #[test]
    fn two_answers_may_each_use_their_bound() {
        let (first, second) = (Tensor::from_slice(&[2], &[1.0f32, 2.0]), Tensor::from_slice(&[2], &[1.5f32, 2.0]));
        assert!(within_bounds("out", "a dense copy", &first, &second, &[0.5, 0.0], &Rules::default()).is_none());
        let failure = within_bounds("out", "a dense copy", &first, &second, &[0.4, 0.0], &Rules::default()).unwrap();
        assert_eq!(failure.check, Check::Relation);
        assert!(failure.message.contains("with a dense copy, the first at [0]"), "{}", failure.message);
    }

    #[test]
    fn slices_are_selected_and_permuted_along_any_axis() {
        let tensor = Tensor::from_slice(&[2, 3], &[0i16, 1, 2, 10, 11, 12]);
        let data = |tensor: Tensor| tensor.data::<i16>()[..tensor.len()].to_vec();
        assert_eq!(data(select(&tensor, 0, 1, 2)), [10, 11, 12]);
        assert_eq!(data(select(&tensor, 1, 1, 3)), [1, 2, 11, 12]);
        assert_eq!(data(select(&tensor, 1, 1, 1)), [0i16; 0]);
        assert_eq!(data(permute(&tensor, 1, &[2, 0, 1])), [2, 0, 1, 12, 10, 11]);
        assert_eq!(data(unpermute(&permute(&tensor, 1, &[2, 0, 1]), 1, &[2, 0, 1])), [0, 1, 2, 10, 11, 12]);
        assert_eq!(data(permute(&tensor, 0, &[1, 0])), [10, 11, 12, 0, 1, 2]);
        let view = tensor.clone().with_layout(Layout { shape: vec![3, 2], strides: vec![1, 3], offset: 0 });
        assert_eq!(data(select(&view, 0, 1, 3)), [1, 11, 2, 12]);
        assert_eq!(select_values(&tensor.to_array(), 1, 0, 1), Array::integer(tensor.dtype(), &[2, 1], vec![0, 10]));
    }

    #[test]
    fn a_written_input_is_named() {
        let input = |values: &[f32]| {
            let layout = Layout { shape: vec![2, 2], strides: vec![3, 1], offset: 0 };
            let mut tensor = Tensor::with_capacity(gpuemu_contract::DType::Float32, layout, 6);
            tensor.data_mut::<f32>().copy_from_slice(values);
            ("x".to_string(), tensor)
        };
        let before = [input(&[1.0, 2.0, 9.0, 3.0, 4.0, 9.0])];
        assert!(untouched(&before, &before, &[false]).is_none());
        let failure = untouched(&before, &[input(&[1.0, 2.0, 9.0, 3.0, 5.0, 9.0])], &[false]).unwrap();
        assert_eq!(failure.message, "input x was written: 1 elements changed, the first at [1, 1]");
        let failure = untouched(&before, &[input(&[1.0, 2.0, 9.0, 3.0, 4.0, 8.0])], &[false]).unwrap();
        assert_eq!(failure.message, "the gaps of input x were written, the first 5 elements into its memory");
        assert!(untouched(&before, &[input(&[0.0; 6])], &[true]).is_none());
    }
}
