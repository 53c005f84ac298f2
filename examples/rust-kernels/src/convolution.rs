//! Convolution.

use crate::scalar::{Number, Scalar};
use crate::strided::{Strided, StridedMut, grid};

/// Pixels of the output along a row that a block computes.
pub const TILE: usize = 8;

/// What a convolution is computed with, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Pixels from one place of the window to the next.
    pub stride: usize,
    /// Zeros around the image.
    pub padding: usize,
    /// Pixels from one tap of the window to the next.
    pub dilation: usize,
    /// Groups of channels that do not meet.
    pub groups: usize,
}

/// x [N, C, H, W], weight [F, C/G, KH, KW], bias [F], out [N, F, OH, OW].
pub fn conv2d<T: Scalar>(x: Strided<T>, weight: Strided<T>, bias: Strided<T>, mut out: StridedMut<T>, window: Window) {
    let &[_, _, height, width] = x.shape() else { panic!("conv2d of a tensor that is not [N, C, H, W]") };
    let &[filters, channels, taps_high, taps_wide] = weight.shape() else {
        panic!("conv2d with a weight of another rank")
    };
    let &[samples, _, rows, columns] = out.shape() else { panic!("conv2d into a tensor of another rank") };
    // A tap outside of the image reads zero.
    let pixel = |sample, channel, row: usize, column: usize| match (
        row.checked_sub(window.padding),
        column.checked_sub(window.padding),
    ) {
        (Some(row), Some(column)) if row < height && column < width => x.at([sample, channel, row, column]).load(),
        _ => T::Acc::ZERO,
    };
    for block in 0..samples * filters * rows {
        let (sample, filter, row) = (block / rows / filters, block / rows % filters, block % rows);
        let first_channel = filter / (filters / window.groups) * channels;
        for tile in grid(columns, TILE) {
            let mut sums = [T::Acc::ZERO; TILE];
            for channel in 0..channels {
                for (i, j) in (0..taps_high).flat_map(|i| (0..taps_wide).map(move |j| (i, j))) {
                    let tap = weight.at([filter, channel, i, j]).load();
                    for column in tile.clone() {
                        let (y, x) =
                            (row * window.stride + i * window.dilation, column * window.stride + j * window.dilation);
                        sums[column - tile.start] += tap * pixel(sample, first_channel + channel, y, x);
                    }
                }
            }
            for column in tile.clone() {
                let sum = sums[column - tile.start] + bias.at([filter]).load();
                out.set([sample, filter, row, column], T::store(sum));
            }
        }
    }
}
