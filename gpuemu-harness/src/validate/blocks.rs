//! A tensor's elements in row-major order, a block at a time, whatever its layout.

use crate::tensor::Layout;

/// Elements of a block: small enough that everything about one stays in the first-level cache.
pub(super) const BLOCK: usize = 1024;

/// Walks the elements of one tensor.
pub(super) struct Blocks<'a, T> {
    data: &'a [T],
    /// Axes from the outside, neighbours that continue one another merged; the last one is the inner loop.
    axes: Vec<(usize, isize)>,
    index: Vec<usize>,
    /// Position of the element `index` stands on.
    at: isize,
    left: usize,
    buffer: Vec<T>,
}

impl<'a, T: Copy + Default> Blocks<'a, T> {
    /// Over the elements that `layout` names in `data`.
    pub(super) fn new(data: &'a [T], layout: &Layout) -> Self {
        assert!(layout.span() <= data.len(), "layout reaches outside the data");
        let mut axes: Vec<(usize, isize)> = Vec::with_capacity(layout.rank().max(1));
        for (&size, &stride) in layout.shape.iter().zip(&layout.strides) {
            match axes.last_mut() {
                _ if size == 1 => {}
                Some((outer, outer_stride)) if *outer_stride == stride * size as isize => {
                    *outer *= size;
                    *outer_stride = stride;
                }
                _ => axes.push((size, stride)),
            }
        }
        if axes.is_empty() {
            axes.push((1, 1));
        }
        let dense = axes.len() == 1 && axes[0].1 == 1;
        let buffer = vec![T::default(); if dense { 0 } else { BLOCK.min(layout.len()) }];
        Blocks { data, index: vec![0; axes.len()], axes, at: layout.offset as isize, left: layout.len(), buffer }
    }

    /// The next block: `BLOCK` elements, fewer at the end, none behind it.
    pub(super) fn next(&mut self) -> &[T] {
        let length = self.left.min(BLOCK);
        self.left -= length;
        if length == 0 {
            return &[];
        }
        if self.buffer.is_empty() {
            let from = self.at as usize;
            self.at += length as isize;
            return &self.data[from..from + length];
        }
        let inner = self.axes.len() - 1;
        let (size, stride) = self.axes[inner];
        let mut filled = 0;
        while filled < length {
            let run = (size - self.index[inner]).min(length - filled);
            let to = &mut self.buffer[filled..filled + run];
            if stride == 1 {
                to.copy_from_slice(&self.data[self.at as usize..self.at as usize + run]);
            } else {
                let mut at = self.at;
                for element in to {
                    *element = self.data[at as usize];
                    at += stride;
                }
            }
            filled += run;
            self.at += stride * run as isize;
            self.index[inner] += run;
            for axis in (0..=inner).rev() {
                let (size, stride) = self.axes[axis];
                if self.index[axis] < size || axis == 0 {
                    break;
                }
                self.index[axis] = 0;
                self.at += self.axes[axis - 1].1 - stride * size as isize;
                self.index[axis - 1] += 1;
            }
        }
        &self.buffer[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_follow_row_major_order(
            axes in prop::collection::vec((0usize..40, 0usize..3, any::<bool>()), 0..4),
            order in any::<u64>(),
            offset in 0usize..5,
        ) {
            // Strides of some dense order with gaps; a stride of zero now and then; some axes reversed.
            let rank = axes.len();
            let mut places: Vec<usize> = (0..rank).collect();
            for i in (1..rank).rev() {
                places.swap(i, (order >> (8 * i)) as usize % (i + 1));
            }
            let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
            let (mut strides, mut step, mut start) = (vec![0isize; rank], 1isize, offset as isize);
            for &axis in &places {
                let (size, gap, reversed) = axes[axis];
                if order >> (40 + axis) & 7 == 0 {
                    continue;
                }
                strides[axis] = if reversed { -step } else { step };
                if reversed { start += step * (size.max(1) as isize - 1) }
                step *= (size.max(1) + gap) as isize;
            }
            let layout = Layout { shape, strides, offset: start as usize };
            let data: Vec<u32> = (0..layout.span() as u32).collect();
            let mut blocks = Blocks::new(&data, &layout);
            let mut seen = Vec::new();
            loop {
                let block = blocks.next();
                if block.is_empty() { break }
                seen.extend(block.iter().map(|&at| at as usize));
            }
            prop_assert_eq!(seen, layout.positions().collect::<Vec<_>>());
        }
    }
}
