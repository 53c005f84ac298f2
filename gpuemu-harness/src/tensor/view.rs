//! Typed views: what a bound Rust function takes, with shape and element strides as a kernel sees them.

use super::{Element, Layout};
use std::ops::{Index, IndexMut};

/// A read-only view of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    layout: &'a Layout,
}

/// A view of a tensor to write through. Outputs arrive poisoned: every element must be written.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    layout: &'a Layout,
}

macro_rules! common {
    ($View:ident) => {
        impl<T: Element> $View<'_, T> {
            /// Sizes, outermost first.
            #[inline]
            pub fn shape(&self) -> &[usize] {
                &self.layout.shape
            }

            /// Size of one axis. Panics when there is no such axis.
            #[inline]
            pub fn size(&self, axis: usize) -> usize {
                self.layout.shape[axis]
            }

            /// Distances between neighbours along each axis, in elements; may be 0 or negative.
            #[inline]
            pub fn strides(&self) -> &[isize] {
                &self.layout.strides
            }

            /// Distance between neighbours along one axis, in elements.
            #[inline]
            pub fn stride(&self, axis: usize) -> isize {
                self.layout.strides[axis]
            }

            /// Position of the first element in [`Self::data`].
            #[inline]
            pub fn offset(&self) -> usize {
                self.layout.offset
            }

            /// Number of axes.
            #[inline]
            pub fn rank(&self) -> usize {
                self.layout.rank()
            }

            /// Number of elements.
            #[inline]
            pub fn len(&self) -> usize {
                self.layout.len()
            }

            /// Whether there is no element.
            #[inline]
            pub fn is_empty(&self) -> bool {
                self.layout.is_empty()
            }

            /// Whether the elements lie in row-major order without gaps.
            #[inline]
            pub fn is_contiguous(&self) -> bool {
                self.layout.is_contiguous()
            }

            /// Shape, strides and offset together.
            #[inline]
            pub fn layout(&self) -> &Layout {
                self.layout
            }

            /// The whole memory, gaps included, as a kernel's base pointer would reach it.
            #[inline]
            pub fn data(&self) -> &[T] {
                self.data
            }

            /// The elements as one slice, when they lie in row-major order without gaps.
            #[inline]
            pub fn as_slice(&self) -> Option<&[T]> {
                self.is_contiguous()
                    .then(|| if self.is_empty() { &[] } else { &self.data[self.offset()..self.offset() + self.len()] })
            }
        }

        impl<T: Element, const N: usize> Index<[usize; N]> for $View<'_, T> {
            type Output = T;

            /// One element. Panics when the rank differs or an index is out of bounds.
            #[inline]
            #[track_caller]
            fn index(&self, index: [usize; N]) -> &T {
                &self.data[position(self.layout, &index)]
            }
        }
    };
}

common!(View);
common!(ViewMut);

#[inline]
#[track_caller]
fn position<const N: usize>(layout: &Layout, index: &[usize; N]) -> usize {
    assert_eq!(N, layout.rank(), "index of rank {N} into a tensor of rank {}", layout.rank());
    let mut at = layout.offset as isize;
    for axis in 0..N {
        assert!(index[axis] < layout.shape[axis], "index {index:?} is out of bounds for shape {:?}", layout.shape);
        at += index[axis] as isize * layout.strides[axis];
    }
    at as usize
}

impl<'a, T: Element> View<'a, T> {
    /// A view of `data` through `layout`. Panics when the layout reaches outside the data.
    pub fn new(data: &'a [T], layout: &'a Layout) -> Self {
        assert!(layout.span() <= data.len(), "layout reaches outside the data");
        View { data, layout }
    }

    /// The whole memory and the layout, for a tensor type of one's own.
    pub fn into_parts(self) -> (&'a [T], &'a Layout) {
        (self.data, self.layout)
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// A view of `data` through `layout`. Panics when the layout reaches outside the data.
    pub fn new(data: &'a mut [T], layout: &'a Layout) -> Self {
        assert!(layout.span() <= data.len(), "layout reaches outside the data");
        ViewMut { data, layout }
    }

    /// The whole memory and the layout, for a tensor type of one's own.
    pub fn into_parts(self) -> (&'a mut [T], &'a Layout) {
        (self.data, self.layout)
    }

    /// The whole memory, gaps included, as a kernel's base pointer would reach it.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The elements as one slice, when they lie in row-major order without gaps.
    #[inline]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        if !self.layout.is_contiguous() {
            return None;
        }
        let (offset, length) = (self.layout.offset, self.layout.len());
        Some(if length == 0 { &mut [] } else { &mut self.data[offset..offset + length] })
    }
}

impl<T: Element, const N: usize> IndexMut<[usize; N]> for ViewMut<'_, T> {
    #[inline]
    #[track_caller]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        let at = position(self.layout, &index);
        &mut self.data[at]
    }
}
