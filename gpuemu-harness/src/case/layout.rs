//! Physical layouts: where the elements of each [`LayoutKind`] lie, and the poison between them.
//!
//! For a tensor of shape `d[0] .. d[n-1]` whose dense row-major strides are `s` (sizes of 0 count as 1 there):
//!
//! | kind | makes sense for | strides and offset | memory, in elements |
//! |---|---|---|---|
//! | `row` | every shape | `s`, offset 0 | as many as the tensor |
//! | `transposed` | the last two sizes at least 2 | those of the shape with its last two axes exchanged | as many |
//! | `column` | two sizes at least 2 | 1, d0, d0*d1, ... (column-major) | as many |
//! | `padded` | rank at least 2 | rows of `d[n-1] + 3` elements | every row with its gap |
//! | `sliced` | `d[n-1]` at least 2 | rows of `2 * d[n-1]` elements, stride 2 along the last axis | every row |
//! | `offset` | every shape | `s`, offset 3 | the tensor and 3 elements before and behind it |
//! | `broadcast` | rank at least 2, `d[0]` at least 2, not `inout` | `s` with 0 for the first axis | one slice `[1, d1, ..]` |
//! | `reversed` | `d[n-1]` at least 2 | `s` with -1 for the last axis, offset `d[n-1] - 1` | as many |
//!
//! None but `row` and `offset` makes sense for a tensor without elements or of rank 0. Where a kind makes no sense the
//! tensor lies in row order.
//!
//! Gaps hold **poison**: every bit set for floats (a NaN in each dtype), the lowest value for signed integers, the
//! highest for unsigned ones, and the byte 0xff for bool.

use super::kind::LayoutKind;
use crate::tensor::{Layout, Tensor};
use gpuemu_contract::DType;

/// Elements of the gaps that `padded` and `offset` leave.
pub const GAP: usize = 3;

/// Whether a kind makes sense for a tensor of this shape.
pub fn applies(kind: LayoutKind, shape: &[usize], inout: bool) -> bool {
    let rank = shape.len();
    let empty = shape.contains(&0);
    let last = shape.last().copied().unwrap_or(1);
    match kind {
        LayoutKind::Row | LayoutKind::Offset => true,
        _ if empty || rank == 0 => false,
        LayoutKind::Transposed => rank >= 2 && last >= 2 && shape[rank - 2] >= 2,
        LayoutKind::Column => shape.iter().filter(|&&size| size >= 2).count() >= 2,
        LayoutKind::Padded => rank >= 2,
        LayoutKind::Sliced | LayoutKind::Reversed => last >= 2,
        LayoutKind::Broadcast => rank >= 2 && shape[0] >= 2 && !inout,
    }
}

/// Layout and memory (in elements) of a kind that makes sense for the shape; row order otherwise.
pub fn place(kind: LayoutKind, shape: &[usize], inout: bool) -> (Layout, usize) {
    let mut layout = Layout::contiguous(shape);
    let length = layout.len();
    let rank = shape.len();
    if !applies(kind, shape, inout) {
        return (layout, length);
    }
    match kind {
        LayoutKind::Row => (layout, length),
        LayoutKind::Transposed => {
            let mut exchanged = shape.to_vec();
            exchanged.swap(rank - 2, rank - 1);
            (Layout::contiguous(&exchanged).swapped(rank - 2, rank - 1), length)
        }
        LayoutKind::Column => {
            let mut step = 1;
            for (stride, &size) in layout.strides.iter_mut().zip(shape) {
                *stride = step;
                step *= size as isize;
            }
            (layout, length)
        }
        LayoutKind::Padded => {
            let pitch = shape[rank - 1] + GAP;
            let (layout, memory) = pitched(shape, pitch);
            (layout, memory)
        }
        LayoutKind::Sliced => {
            let (mut layout, memory) = pitched(shape, 2 * shape[rank - 1]);
            layout.strides[rank - 1] = 2;
            (layout, memory)
        }
        LayoutKind::Offset => {
            layout.offset = GAP;
            (layout, length + 2 * GAP)
        }
        LayoutKind::Broadcast => {
            layout.strides[0] = 0;
            (layout, length / shape[0])
        }
        LayoutKind::Reversed => {
            layout.strides[rank - 1] = -1;
            layout.offset = shape[rank - 1] - 1;
            (layout, length)
        }
    }
}

/// Row-major with rows of `pitch` elements.
fn pitched(shape: &[usize], pitch: usize) -> (Layout, usize) {
    let mut rows = shape.to_vec();
    rows[shape.len() - 1] = pitch;
    let mut layout = Layout::contiguous(&rows);
    let memory = layout.len();
    layout.shape = shape.to_vec();
    (layout, memory)
}

/// The shape that is filled for a tensor of this kind: a broadcast tensor has one slice.
pub fn filled_shape(kind: LayoutKind, shape: &[usize], inout: bool) -> Vec<usize> {
    let mut filled = shape.to_vec();
    if kind == LayoutKind::Broadcast && applies(kind, shape, inout) {
        filled[0] = 1;
    }
    filled
}

/// A dense tensor of [`filled_shape`] laid out as `kind` says, gaps poisoned.
pub fn lay_out(dense: Tensor, kind: LayoutKind, shape: &[usize], inout: bool) -> Tensor {
    if kind == LayoutKind::Row || !applies(kind, shape, inout) {
        return dense;
    }
    let (layout, memory) = place(kind, shape, inout);
    if kind == LayoutKind::Broadcast {
        return dense.with_layout(layout);
    }
    let mut tensor = Tensor::with_capacity(dense.dtype(), layout, memory);
    if memory > dense.len() {
        poison(&mut tensor);
    }
    tensor.copy_elements_from(&dense);
    tensor
}

/// Fills the whole memory with poison.
pub fn poison(tensor: &mut Tensor) {
    let dtype = tensor.dtype();
    let element: &[u8] = match dtype {
        DType::Int8 => &i8::MIN.to_le_bytes(),
        DType::Int16 => &i16::MIN.to_le_bytes(),
        DType::Int32 => &i32::MIN.to_le_bytes(),
        DType::Int64 => &i64::MIN.to_le_bytes(),
        _ => &[0xff],
    };
    for chunk in tensor.bytes_mut().chunks_exact_mut(element.len()) {
        chunk.copy_from_slice(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_where_the_table_says() {
        // kind -> memory of the 2 x 3 tensor 1..6, poison written as -128
        const P: i8 = i8::MIN;
        let table: &[(LayoutKind, &[i8], &[isize], usize)] = &[
            (LayoutKind::Row, &[1, 2, 3, 4, 5, 6], &[3, 1], 0),
            (LayoutKind::Transposed, &[1, 4, 2, 5, 3, 6], &[1, 2], 0),
            (LayoutKind::Column, &[1, 4, 2, 5, 3, 6], &[1, 2], 0),
            (LayoutKind::Padded, &[1, 2, 3, P, P, P, 4, 5, 6, P, P, P], &[6, 1], 0),
            (LayoutKind::Sliced, &[1, P, 2, P, 3, P, 4, P, 5, P, 6, P], &[6, 2], 0),
            (LayoutKind::Offset, &[P, P, P, 1, 2, 3, 4, 5, 6, P, P, P], &[3, 1], 3),
            (LayoutKind::Reversed, &[3, 2, 1, 6, 5, 4], &[3, -1], 2),
        ];
        let dense = Tensor::from_slice::<i8>(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        for &(kind, memory, strides, offset) in table {
            let tensor = lay_out(dense.clone(), kind, &[2, 3], false);
            assert_eq!(tensor.data::<i8>(), memory, "{kind}");
            assert_eq!((tensor.layout().strides.as_slice(), tensor.layout().offset), (strides, offset), "{kind}");
            assert_eq!(tensor.to_contiguous(), dense, "{kind}");
        }
    }

    #[test]
    fn axes_beyond_two() {
        let (layout, memory) = place(LayoutKind::Column, &[2, 3, 4], false);
        assert_eq!((layout.strides, memory), (vec![1, 2, 6], 24));
        let (layout, memory) = place(LayoutKind::Transposed, &[2, 3, 4], false);
        assert_eq!((layout.shape, layout.strides, memory), (vec![2, 3, 4], vec![12, 1, 3], 24));
        let (layout, memory) = place(LayoutKind::Padded, &[2, 3, 4], false);
        assert_eq!((layout.strides, memory), (vec![21, 7, 1], 42));
    }

    #[test]
    fn broadcast_repeats_one_slice_and_never_an_output() {
        let slice = Tensor::from_slice::<i8>(&[1, 3], &[1, 2, 3]);
        let tensor = lay_out(slice, LayoutKind::Broadcast, &[2, 3], false);
        assert_eq!(tensor.to_contiguous(), Tensor::from_slice::<i8>(&[2, 3], &[1, 2, 3, 1, 2, 3]));
        assert_eq!(tensor.capacity(), 3);
        assert!(!applies(LayoutKind::Broadcast, &[2, 3], true));
    }

    #[test]
    fn poison_is_nan_or_extreme() {
        for dtype in DType::ALL {
            let dense = Tensor::zeros(dtype, Layout::contiguous(&[1]));
            let gap =
                lay_out(dense, LayoutKind::Offset, &[1], false).with_layout(Layout::contiguous(&[1])).to_array().at(0);
            match dtype.integer_range() {
                None => assert!(gap.is_nan(), "{dtype}"),
                Some((low, high)) => assert!(gap == low as f64 || gap == high as f64, "{dtype}: {gap}"),
            }
        }
    }

    #[test]
    fn shapes_without_room_for_a_kind_lie_in_row_order() {
        for (kind, shape) in [
            (LayoutKind::Transposed, &[1usize, 5][..]),
            (LayoutKind::Column, &[5]),
            (LayoutKind::Sliced, &[4, 1]),
            (LayoutKind::Padded, &[2, 0]),
            (LayoutKind::Broadcast, &[7]),
            (LayoutKind::Reversed, &[]),
        ] {
            assert!(!applies(kind, shape, false), "{kind} {shape:?}");
            assert_eq!(place(kind, shape, false).0, Layout::contiguous(shape));
        }
    }
}
