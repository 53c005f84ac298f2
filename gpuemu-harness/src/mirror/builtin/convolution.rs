//! Convolution over images.

use super::arguments::{Arguments, reals};
use super::gemm::{Term, multiply};
use super::operands::{all_integers, empty_sum, factors, integer_answer, propagates_nan};
use crate::error::{Error, Result};
use crate::mirror::real::Real;
use crate::tensor::Array;
use std::num::Wrapping;

/// `out[n, f, y, x] = bias[f] + sum_{c, i, j} weight[f, c, i, j] * image[n, g * C/G + c, y * s + i * d - p, x * s + j * d - p]`
/// with `s` = `stride`, `p` = `padding`, `d` = `dilation`, `G` = `groups` and `g` = f / (F/G) the group of filter f.
///
/// The image is [N, C, H, W], weight [F, C/G, KH, KW], bias [F] or none, out [N, F, OH, OW] with
/// `OH = (H + 2p - d (KH - 1) - 1) / s + 1`, rounded down. Nothing is flipped (what PyTorch calls a convolution).
/// Products are summed in the order of c, i, j; the bias is added last. Outside of the image stand zeros that are
/// multiplied like any other element, so that an infinite or NaN weight there gives NaN. With no channel or an empty
/// filter every sum is 0, under `empty = "nan"` NaN. Integers give exact sums, wrapped to the output's dtype.
pub fn conv2d<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    propagates_nan(arguments)?;
    let sizes = Sizes::new(arguments)?;
    let shape = [sizes.batch, sizes.filters, sizes.out[0], sizes.out[1]];
    if let Some(integers) = all_integers(arguments, 3) {
        let zero = Wrapping(0);
        let out = sizes.run(zero, zero, &integers[0], &integers[1], integers.get(2).map(Vec::as_slice));
        return integer_answer(arguments, &shape, out);
    }
    let bias = arguments.optional(2).map(|bias| reals::<R>(bias));
    let start = if sizes.taps() == 0 { empty_sum(arguments) } else { R::ZERO };
    let (image, weight) = (factors::<R>(arguments.input(0)), factors::<R>(arguments.input(1)));
    arguments.answer(&shape, sizes.run(R::ZERO, start, &image, &weight, bias.as_deref()))
}

struct Sizes {
    batch: usize,
    channels: usize,
    image: [usize; 2],
    filters: usize,
    filter: [usize; 2],
    out: [usize; 2],
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
}

impl Sizes {
    fn new(arguments: &Arguments<'_>) -> Result<Sizes> {
        let [stride, dilation, groups] =
            [arguments.count("stride", 1)?, arguments.count("dilation", 1)?, arguments.count("groups", 1)?];
        let padding = arguments.count("padding", 0)?;
        let [batch, channels, height, width] = arguments.input(0).shape[..] else {
            return Err(arguments.shape_error(0, "shape [N, C, H, W]"));
        };
        if channels % groups != 0 {
            return Err(arguments.shape_error(0, &format!("channels that {groups} groups divide")));
        }
        let own_channels = channels / groups;
        let (filters, filter) = match arguments.input(1).shape[..] {
            [filters, own, rows, columns] if own == own_channels && filters % groups == 0 => (filters, [rows, columns]),
            _ => {
                let expected = format!("shape [F, {own_channels}, KH, KW] with F a multiple of {groups}");
                return Err(arguments.shape_error(1, &expected));
            }
        };
        if arguments.optional(2).is_some_and(|bias| bias.shape != [filters]) {
            return Err(arguments.shape_error(2, &format!("shape [{filters}]")));
        }
        let image = [height, width];
        let mut out = [0; 2];
        for axis in 0..2 {
            let reach = dilation * filter[axis].saturating_sub(1) + 1;
            let padded = image[axis] + 2 * padding;
            let Some(room) = padded.checked_sub(reach) else {
                return Err(Error::Config(format!(
                    "a filter of {} reaches over {reach} with dilation {dilation}, more than the {padded} of {} {:?} \
                     with padding {padding}",
                    filter[axis],
                    arguments.input_name(0),
                    arguments.input(0).shape
                )));
            };
            out[axis] = room / stride + 1;
        }
        Ok(Sizes { batch, channels, image, filters, filter, out, stride, padding, dilation, groups })
    }

    /// Products in one sum.
    fn taps(&self) -> usize {
        self.channels / self.groups * self.filter[0] * self.filter[1]
    }

    /// `padding` is what stands outside of the image, `start` what every sum starts at.
    fn run<T: Term>(&self, padding: T, start: T, image: &[T], weight: &[T], bias: Option<&[T]>) -> Vec<T> {
        let (taps, places) = (self.taps(), self.out[0] * self.out[1]);
        let (own_filters, own_channels) = (self.filters / self.groups, self.channels / self.groups);
        let pixels = self.image[0] * self.image[1];
        let mut out = Vec::with_capacity(self.batch * self.filters * places);
        for number in 0..self.batch * self.groups {
            let group = number % self.groups;
            let channels = &image[number * own_channels * pixels..][..own_channels * pixels];
            let columns = self.columns(padding, channels, own_channels);
            let weight = &weight[group * own_filters * taps..][..own_filters * taps];
            out.extend(multiply(start, weight, &columns, [own_filters, taps, places]));
        }
        if let Some(bias) = bias
            && places > 0
        {
            for (number, plane) in out.chunks_exact_mut(places).enumerate() {
                for value in plane {
                    *value = *value + bias[number % self.filters];
                }
            }
        }
        out
    }

    /// What each tap of the filter sees: dense [channels * KH * KW, OH * OW].
    fn columns<T: Term>(&self, padding: T, channels: &[T], count: usize) -> Vec<T> {
        let [height, width] = self.image;
        let mut columns = Vec::with_capacity(count * self.filter[0] * self.filter[1] * self.out[0] * self.out[1]);
        let inside = |out: usize, tap: usize, size: usize| {
            (out * self.stride + tap * self.dilation).checked_sub(self.padding).filter(|&at| at < size)
        };
        for channel in 0..count {
            for (i, j) in (0..self.filter[0]).flat_map(|i| (0..self.filter[1]).map(move |j| (i, j))) {
                for y in 0..self.out[0] {
                    let row = inside(y, i, height).map(|y| &channels[(channel * height + y) * width..][..width]);
                    columns.extend((0..self.out[1]).map(|x| match (row, inside(x, j, width)) {
                        (Some(row), Some(x)) => row[x],
                        _ => padding,
                    }));
                }
            }
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::super::operands::asking::*;
    use crate::tensor::Array;
    use gpuemu_contract::ParamValue::Int;
    use gpuemu_contract::{Compute, EmptyPolicy};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    /// 1 2 3 / 4 5 6 / 7 8 9
    fn nine() -> Array {
        floats(&[1, 1, 3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    }

    #[test]
    fn nine_pixels_by_hand() {
        let corners = floats(&[1, 1, 2, 2], &[1.0, 10.0, 100.0, 1000.0]);
        let ones = floats(&[1, 1, 2, 2], &[1.0; 4]);
        let table: &[(&Array, &[(&str, i64)], &[usize], &[f64])] = &[
            (&ones, &[], &[1, 1, 2, 2], &[12.0, 16.0, 24.0, 28.0]),
            // Not flipped: the first weight meets the first pixel.
            (&corners, &[], &[1, 1, 2, 2], &[5421.0, 6532.0, 8754.0, 9865.0]),
            (&corners, &[("dilation", 2)], &[1, 1, 1, 1], &[9731.0]),
            (&ones, &[("stride", 2)], &[1, 1, 1, 1], &[12.0]),
            (&ones, &[("padding", 1), ("stride", 2)], &[1, 1, 2, 2], &[1.0, 5.0, 11.0, 28.0]),
            (&ones, &[("padding", 1), ("stride", 3)], &[1, 1, 2, 2], &[1.0, 3.0, 7.0, 9.0]),
            (&ones, &[("padding", 1), ("dilation", 4)], &[1, 1, 1, 1], &[0.0]),
            (&ones, &[("padding", 1), ("dilation", 2), ("stride", 2)], &[1, 1, 2, 2], &[5.0, 5.0, 5.0, 5.0]),
        ];
        for &(weight, params, shape, right) in table {
            let params: Vec<_> = params.iter().map(|&(name, value)| (name, Int(value))).collect();
            assert_values(&ask("conv2d", &[nine(), weight.clone()], &params), shape, right);
        }
    }

    #[test]
    fn rows_and_columns_are_not_exchanged() {
        let image = floats(&[1, 1, 2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let across = floats(&[1, 1, 1, 3], &[1.0, 0.0, -1.0]);
        assert_values(&ask("conv2d", &[image.clone(), across], &[]), &[1, 1, 2, 2], &[-2.0; 4]);
        let down = floats(&[1, 1, 2, 1], &[1.0, -1.0]);
        assert_values(&ask("conv2d", &[image, down], &[]), &[1, 1, 1, 4], &[-4.0; 4]);
    }

    #[test]
    fn a_filter_sees_the_channels_of_its_group() {
        // Two images of two channels of one pixel.
        let image = floats(&[2, 2, 1, 1], &[3.0, 5.0, 7.0, 9.0]);
        let bias = floats(&[4], &[0.0, 100.0, 200.0, 300.0]);
        let weight = floats(&[4, 1, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
        let out = ask("conv2d", &[image.clone(), weight, bias], &[("groups", Int(2))]);
        assert_values(&out, &[2, 4, 1, 1], &[3.0, 106.0, 215.0, 320.0, 7.0, 114.0, 227.0, 336.0]);
        let weight = floats(&[1, 2, 1, 1], &[1.0, 10.0]);
        assert_values(&ask("conv2d", &[image, weight], &[]), &[2, 1, 1, 1], &[53.0, 97.0]);
    }

    #[test]
    fn nothing_to_sum_and_what_is_not_finite() {
        let inputs = [floats(&[1, 0, 1, 1], &[]), floats(&[2, 0, 1, 1], &[]), floats(&[2], &[3.0, 4.0])];
        assert_values(&ask("conv2d", &inputs, &[]), &[1, 2, 1, 1], &[3.0, 4.0]);
        let out = ask_in("conv2d", &inputs, &[], Compute::Float32, empty(EmptyPolicy::Nan)).expect("an answer");
        assert_values(&out, &[1, 2, 1, 1], &[NAN, NAN]);
        assert_values(
            &ask("conv2d", &[floats(&[0, 1, 2, 2], &[]), floats(&[1, 1, 1, 1], &[1.0])], &[]),
            &[0, 1, 2, 2],
            &[],
        );
        // The padding is zeros, and 0 * inf is NaN.
        let (image, weight) = (floats(&[1, 1, 1, 2], &[1.0, -2.0]), floats(&[1, 1, 1, 1], &[INF]));
        assert_values(&ask("conv2d", &[image.clone(), weight.clone()], &[]), &[1, 1, 1, 2], &[INF, -INF]);
        let out = ask("conv2d", &[image, weight], &[("padding", Int(1))]);
        assert_values(&out, &[1, 1, 3, 4], &[NAN, NAN, NAN, NAN, NAN, INF, -INF, NAN, NAN, NAN, NAN, NAN]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let square = |filters, channels, size: usize| {
            floats(&[filters, channels, size, size], &vec![0.0; filters * channels * size * size])
        };
        let table: &[(Array, Array, &[(&str, i64)], &str)] = &[
            (nine(), square(1, 1, 4), &[], "a filter of 4 reaches over 4 with dilation 1, more than the 3 of in0"),
            (nine(), square(1, 1, 2), &[("dilation", 3)], "a filter of 2 reaches over 4 with dilation 3"),
            (nine(), square(1, 2, 1), &[], "in1 of conv2d must have shape [F, 1, KH, KW]"),
            (nine(), square(1, 1, 1), &[("groups", 2)], "in0 of conv2d must have channels that 2 groups divide"),
            (nine(), square(1, 1, 1), &[("stride", 0)], "parameter stride of conv2d is at least 1, got 0"),
        ];
        for (image, weight, params, says) in table {
            let params: Vec<_> = params.iter().map(|&(name, value)| (name, Int(value))).collect();
            let text = message("conv2d", &[image.clone(), weight.clone()], &params);
            assert!(text.contains(says), "{text}");
        }
    }
}
