//! What a kernel is handed: a base pointer, sizes and strides.

use std::ops::Range;

/// A tensor to read: memory, and where the elements lie in it. Strides count elements; they may be 0 or negative.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a, T> {
    data: &'a [T],
    shape: &'a [usize],
    strides: &'a [isize],
    offset: usize,
}

/// A tensor to write.
#[derive(Debug)]
pub struct StridedMut<'a, T> {
    data: &'a mut [T],
    shape: &'a [usize],
    strides: &'a [isize],
    offset: usize,
}

/// The elements along one axis.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a, T> {
    data: &'a [T],
    start: isize,
    stride: isize,
    len: usize,
}

/// The elements along one axis, to write.
#[derive(Debug)]
pub struct LineMut<'a, T> {
    data: &'a mut [T],
    start: isize,
    stride: isize,
}

macro_rules! common {
    ($Strided:ident) => {
        impl<T> $Strided<'_, T> {
            /// Sizes, outermost first.
            pub fn shape(&self) -> &[usize] {
                self.shape
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                self.shape.iter().product()
            }

            /// Whether there is no element.
            pub fn is_empty(&self) -> bool {
                self.shape.contains(&0)
            }

            /// How many lines along `axis` there are.
            pub fn lines(&self, axis: usize) -> usize {
                self.shape.iter().enumerate().filter(|(other, _)| *other != axis).map(|(_, size)| size).product()
            }

            fn position<const N: usize>(&self, index: [usize; N]) -> usize {
                debug_assert!(N == self.shape.len() && index.iter().zip(self.shape).all(|(i, size)| i < size));
                let steps = index.iter().zip(self.strides).map(|(&i, &stride)| i as isize * stride);
                (self.offset as isize + steps.sum::<isize>()) as usize
            }

            /// Where the line along `axis` starts that has this row-major number among its like.
            fn line_start(&self, axis: usize, mut number: usize) -> isize {
                let mut start = self.offset as isize;
                for other in (0..self.shape.len()).rev().filter(|&other| other != axis) {
                    start += (number % self.shape[other]) as isize * self.strides[other];
                    number /= self.shape[other];
                }
                start
            }
        }
    };
}
common!(Strided);
common!(StridedMut);

impl<'a, T: Copy> Strided<'a, T> {
    /// A tensor in `data`, its first element at `offset`.
    pub fn new(data: &'a [T], shape: &'a [usize], strides: &'a [isize], offset: usize) -> Self {
        Strided { data, shape, strides, offset }
    }

    /// One element.
    #[inline]
    pub fn at<const N: usize>(&self, index: [usize; N]) -> T {
        self.data[self.position(index)]
    }

    /// The element of that row-major number.
    #[inline]
    pub fn element(&self, number: usize) -> T {
        self.data[self.line_start(usize::MAX, number) as usize]
    }

    /// The element that stands at place `number` (row-major) of the larger `shape` this tensor is broadcast to.
    pub fn broadcast(&self, shape: &[usize], mut number: usize) -> T {
        let mut at = self.offset as isize;
        let missing = shape.len() - self.shape.len();
        for axis in (0..shape.len()).rev() {
            let index = number % shape[axis];
            number /= shape[axis];
            if axis >= missing && self.shape[axis - missing] != 1 {
                at += index as isize * self.strides[axis - missing];
            }
        }
        self.data[at as usize]
    }

    /// The line along `axis` that has this number.
    pub fn line(&self, axis: usize, number: usize) -> Line<'a, T> {
        let start = self.line_start(axis, number);
        Line { data: self.data, start, stride: self.strides[axis], len: self.shape[axis] }
    }
}

impl<'a, T: Copy> StridedMut<'a, T> {
    /// A tensor in `data`, its first element at `offset`.
    pub fn new(data: &'a mut [T], shape: &'a [usize], strides: &'a [isize], offset: usize) -> Self {
        StridedMut { data, shape, strides, offset }
    }

    /// Writes one element.
    #[inline]
    pub fn set<const N: usize>(&mut self, index: [usize; N], value: T) {
        let at = self.position(index);
        self.data[at] = value;
    }

    /// The element of that row-major number.
    #[inline]
    pub fn element(&mut self, number: usize) -> &mut T {
        let at = self.line_start(usize::MAX, number) as usize;
        &mut self.data[at]
    }

    /// The line along `axis` that has this number.
    pub fn line(&mut self, axis: usize, number: usize) -> LineMut<'_, T> {
        let start = self.line_start(axis, number);
        LineMut { start, stride: self.strides[axis], data: self.data }
    }
}

impl<T: Copy> Line<'_, T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One element.
    #[inline]
    pub fn at(&self, index: usize) -> T {
        debug_assert!(index < self.len);
        self.data[(self.start + index as isize * self.stride) as usize]
    }
}

impl<T: Copy> LineMut<'_, T> {
    /// Writes one element.
    #[inline]
    pub fn set(&mut self, index: usize, value: T) {
        self.data[(self.start + index as isize * self.stride) as usize] = value;
    }
}

/// The axis that a number names, which counts from the back when it is negative.
pub fn resolve_axis(axis: i64, rank: usize) -> usize {
    let resolved = if axis < 0 { axis + rank as i64 } else { axis };
    assert!((0..rank as i64).contains(&resolved), "axis {axis} of a tensor of rank {rank}");
    resolved as usize
}

/// The grid of a kernel over `len` elements: what each block covers, the last one less when `tile` does not divide them.
pub fn grid(len: usize, tile: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len.div_ceil(tile)).map(move |block| block * tile..len.min((block + 1) * tile))
}
