//! A test's memory as a candle tensor, and candle's answer as the test's output.
//!
//! Inputs are not copied into row order: the whole memory, gaps included, becomes one flat tensor, which is then viewed
//! through the layout of the case with candle's own `narrow`, `reshape`, `permute`, `squeeze` and `broadcast_as`, so
//! that candle's strided code runs.

use candle_core::{Device, Result, Tensor, WithDType, bail};
use gpuemu_harness::{Element, Layout, View, ViewMut};

/// What both libraries have: the type of one element.
pub trait Scalar: Element + WithDType {}

impl<T: Element + WithDType> Scalar for T {}

/// The tensor that the test hands over, with the strides it has there.
pub fn tensor<T: Scalar>(view: View<T>) -> Result<Tensor> {
    let (memory, layout) = view.into_parts();
    strided(memory, layout)
}

/// Runs an operator and copies its answer to where the test wants it. Panics, which fails the case, where candle
/// returns an error or a shape other than the output's.
pub fn answer<T: Scalar>(mut out: ViewMut<T>, operator: impl FnOnce() -> Result<Tensor>) {
    let tensor = operator().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tensor.dims(), out.shape(), "shape of the answer");
    let values = tensor.flatten_all().and_then(|flat| flat.to_vec1::<T>()).unwrap_or_else(|error| panic!("{error}"));
    let positions: Vec<usize> = out.layout().positions().collect();
    let memory = out.data_mut();
    for (position, value) in positions.into_iter().zip(values) {
        memory[position] = value;
    }
}

/// The axis that `axis` means in a tensor of that rank, counted from the end where it is negative.
pub fn axis(axis: i64, rank: usize) -> usize {
    axis.rem_euclid(rank as i64) as usize
}

/// A view of `memory` through `layout`, as candle can make it: strides that divide one another, none negative.
fn strided<T: WithDType>(memory: &[T], layout: &Layout) -> Result<Tensor> {
    if layout.is_empty() {
        return Tensor::from_slice::<_, T>(&[], layout.shape.as_slice(), &Device::Cpu);
    }
    if let Some(stride) = layout.strides.iter().find(|stride| **stride < 0) {
        bail!("candle has no negative stride: {stride}");
    }
    // The axes that move through memory, the longest stride first.
    let mut moving: Vec<usize> =
        (0..layout.rank()).filter(|&axis| layout.shape[axis] > 1 && layout.strides[axis] > 0).collect();
    moving.sort_by_key(|&axis| -layout.strides[axis]);
    // Memory as a grid, one axis for each of these and one for what lies between the elements of the last.
    let mut grid = Vec::new();
    let mut outer = None;
    for &axis in &moving {
        let stride = layout.strides[axis] as usize;
        if let Some(outer) = outer.replace(stride) {
            if outer % stride != 0 {
                bail!("candle cannot view strides {:?}", layout.strides);
            }
            grid.push(outer / stride);
        } else {
            grid.push(layout.shape[axis]);
        }
    }
    let step = outer.unwrap_or(1);
    grid.push(step);
    let size: usize = grid.iter().product();
    let mut data = memory.to_vec();
    data.resize(data.len().max(layout.offset + size), T::zero());
    let length = data.len();
    let mut view =
        Tensor::from_vec(data, length, &Device::Cpu)?.narrow(0, layout.offset, size)?.reshape(grid.as_slice())?;
    view = view.narrow(moving.len(), 0, 1)?.squeeze(moving.len())?;
    for (place, &axis) in moving.iter().enumerate() {
        view = view.narrow(place, 0, layout.shape[axis])?;
    }
    // Into the order of the axes, then the axes that do not move.
    let mut order: Vec<usize> = (0..moving.len()).collect();
    order.sort_by_key(|&place| moving[place]);
    view = view.permute(order)?;
    for axis in 0..layout.rank() {
        if !moving.contains(&axis) {
            view = view.unsqueeze(axis)?;
        }
    }
    view.broadcast_as(layout.shape.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_has_the_elements_and_strides_of_the_layout() {
        // shape, strides, offset -> elements of the memory 0, 1, 2, ...
        let table: &[(&[usize], &[isize], usize, &[f32])] = &[
            (&[], &[], 2, &[2.]),
            (&[2, 3], &[3, 1], 3, &[3., 4., 5., 6., 7., 8.]),
            (&[2, 3], &[1, 2], 0, &[0., 2., 4., 1., 3., 5.]),
            (&[2, 2], &[5, 1], 0, &[0., 1., 5., 6.]),
            (&[2, 2], &[4, 2], 0, &[0., 2., 4., 6.]),
            (&[2, 3], &[0, 1], 0, &[0., 1., 2., 0., 1., 2.]),
            (&[2, 1, 2], &[1, 9, 2], 0, &[0., 2., 1., 3.]),
        ];
        let memory: Vec<f32> = (0u8..12).map(f32::from).collect();
        for &(shape, strides, offset, elements) in table {
            let layout = Layout { shape: shape.to_vec(), strides: strides.to_vec(), offset };
            let view = strided(&memory, &layout).unwrap();
            assert_eq!(view.dims(), shape);
            assert_eq!(view.flatten_all().unwrap().to_vec1::<f32>().unwrap(), elements, "{layout:?}");
            for axis in (0..shape.len()).filter(|&axis| shape[axis] > 1) {
                assert_eq!(view.stride()[axis] as isize, strides[axis], "{layout:?}");
            }
        }
    }

    #[test]
    fn negative_strides_are_refused() {
        let layout = Layout { shape: vec![3], strides: vec![-1], offset: 2 };
        assert!(strided(&[0f32, 1., 2.], &layout).is_err());
    }
}
