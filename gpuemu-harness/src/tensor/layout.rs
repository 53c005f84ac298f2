//! Where the elements of a tensor lie in its memory.

/// Shape, strides and offset, all in elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Sizes, outermost first. Empty for rank 0 (one element).
    pub shape: Vec<usize>,
    /// Distance between neighbours along each axis; may be 0 (broadcast) or negative (reversed).
    pub strides: Vec<isize>,
    /// Position of element `[0, 0, ...]` in the memory.
    pub offset: usize,
}

impl Layout {
    /// Row-major, no gaps, at the start of the memory.
    pub fn contiguous(shape: &[usize]) -> Layout {
        let mut strides = vec![0; shape.len()];
        let mut step = 1isize;
        for (stride, &size) in strides.iter_mut().zip(shape).rev() {
            *stride = step;
            step = step.saturating_mul(size.max(1) as isize);
        }
        Layout { shape: shape.to_vec(), strides, offset: 0 }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements; 1 for rank 0.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements lie in row-major order without gaps (wherever they start).
    pub fn is_contiguous(&self) -> bool {
        let mut step = 1isize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 && stride != step {
                return self.is_empty();
            }
            step *= size as isize;
        }
        true
    }

    /// Elements of memory needed: one past the furthest element; 0 when empty. Panics when an element lies before the
    /// start of the memory.
    pub fn span(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let (mut low, mut high) = (self.offset as isize, self.offset as isize);
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (size as isize - 1) * stride;
            if reach < 0 { low += reach } else { high += reach }
        }
        assert!(low >= 0, "layout reaches {} elements before the start of its memory", -low);
        high as usize + 1
    }

    /// Position in memory of one element.
    pub fn position(&self, index: &[usize]) -> usize {
        debug_assert_eq!(index.len(), self.rank());
        let steps: isize = index.iter().zip(&self.strides).map(|(&i, &stride)| i as isize * stride).sum();
        (self.offset as isize + steps) as usize
    }

    /// Positions in memory of all elements, in row-major order.
    pub fn positions(&self) -> Positions<'_> {
        Positions { layout: self, index: vec![0; self.rank()], at: self.offset as isize, left: self.len() }
    }

    /// The multi-index of the element with that row-major number.
    pub fn index_of(shape: &[usize], mut number: usize) -> Vec<usize> {
        let mut index = vec![0; shape.len()];
        for (place, &size) in index.iter_mut().zip(shape).rev() {
            *place = number % size;
            number /= size;
        }
        index
    }

    /// The same elements with two axes exchanged.
    pub fn swapped(mut self, a: usize, b: usize) -> Layout {
        self.shape.swap(a, b);
        self.strides.swap(a, b);
        self
    }
}

/// See [`Layout::positions`].
pub struct Positions<'a> {
    layout: &'a Layout,
    index: Vec<usize>,
    at: isize,
    left: usize,
}

impl Iterator for Positions<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let here = self.at as usize;
        for axis in (0..self.index.len()).rev() {
            self.index[axis] += 1;
            self.at += self.layout.strides[axis];
            if self.index[axis] < self.layout.shape[axis] {
                break;
            }
            self.at -= self.layout.strides[axis] * self.index[axis] as isize;
            self.index[axis] = 0;
        }
        Some(here)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Positions<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_and_contiguity() {
        // shape, strides, offset -> span, contiguous
        let table: &[(&[usize], &[isize], usize, usize, bool)] = &[
            (&[], &[], 0, 1, true),
            (&[], &[], 5, 6, true),
            (&[0], &[1], 3, 0, true),
            (&[2, 3], &[3, 1], 0, 6, true),
            (&[2, 3], &[3, 1], 4, 10, true),
            (&[2, 3], &[4, 1], 0, 7, false),
            (&[2, 3], &[1, 2], 0, 6, false),
            (&[2, 3], &[0, 1], 0, 3, false),
            (&[3], &[-2], 4, 5, false),
            (&[1, 3], &[77, 1], 0, 3, true),
        ];
        for &(shape, strides, offset, span, contiguous) in table {
            let layout = Layout { shape: shape.to_vec(), strides: strides.to_vec(), offset };
            assert_eq!((layout.span(), layout.is_contiguous()), (span, contiguous), "{layout:?}");
        }
    }

    #[test]
    fn positions_follow_row_major_order() {
        let table: &[(&[usize], &[isize], usize, &[usize])] = &[
            (&[], &[], 2, &[2]),
            (&[2, 2], &[1, 2], 0, &[0, 2, 1, 3]),
            (&[3], &[-1], 2, &[2, 1, 0]),
            (&[2, 2], &[0, 3], 1, &[1, 4, 1, 4]),
            (&[2, 0], &[1, 1], 0, &[]),
        ];
        for &(shape, strides, offset, expected) in table {
            let layout = Layout { shape: shape.to_vec(), strides: strides.to_vec(), offset };
            assert_eq!(layout.positions().collect::<Vec<_>>(), expected, "{layout:?}");
        }
        assert_eq!(Layout::index_of(&[2, 3, 4], 23), [1, 2, 3]);
    }
}
