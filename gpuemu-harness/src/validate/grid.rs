//! The grid of numbers a dtype can hold: steps between neighbours, and distances counted in them.

use gpuemu_contract::DType;

/// The grid of a floating-point dtype. Integers and bool: steps of one, no overflow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    dtype: DType,
    /// Stored fraction bits; 0 for integers.
    pub(super) fraction_bits: u32,
    /// The smallest normal number; below it the step stays what it is there. 1 for integers.
    pub(super) min_normal: f64,
    /// 2^-fraction_bits.
    pub(super) epsilon: f64,
}

/// The exponent field of a float64.
pub(super) const EXPONENT: u64 = 0x7ff0_0000_0000_0000;

impl Grid {
    /// The grid of `dtype`.
    pub fn of(dtype: DType) -> Grid {
        match (dtype.fraction_bits(), dtype.min_exponent()) {
            (Some(fraction_bits), Some(exponent)) => Grid {
                dtype,
                fraction_bits,
                min_normal: 2f64.powi(exponent),
                epsilon: 2f64.powi(-(fraction_bits as i32)),
            },
            _ => Grid { dtype, fraction_bits: 0, min_normal: 1.0, epsilon: 1.0 },
        }
    }

    /// Distance between neighbouring numbers of the dtype around `value` (subnormal spacing included). Values beyond
    /// the largest finite number have the step that they would have if the exponent went on.
    pub fn step(&self, value: f64) -> f64 {
        if !self.dtype.is_float() {
            return 1.0;
        }
        let magnitude = value.abs();
        let magnitude = if magnitude > self.min_normal { magnitude } else { self.min_normal };
        f64::from_bits(magnitude.to_bits() & EXPONENT) * self.epsilon
    }

    /// The magnitude from which on rounding to nearest leaves the finite numbers: half a step beyond the largest.
    /// Infinite for float64 and integers.
    pub fn overflow(&self) -> f64 {
        match self.dtype {
            DType::Float64 => f64::INFINITY,
            dtype => match dtype.max_finite() {
                Some(largest) => largest + self.step(largest) / 2.0,
                None => f64::INFINITY,
            },
        }
    }

    /// The largest finite magnitude; infinite for integers.
    pub fn largest(&self) -> f64 {
        self.dtype.max_finite().unwrap_or(f64::INFINITY)
    }

    /// A finite number of the dtype between two values, both included: the one nearest to their middle. `None` where the
    /// dtype has none there, as between 0.5 and 0.5 for integers.
    pub fn number_between(&self, low: f64, high: f64) -> Option<f64> {
        let (least, most) = match self.dtype.integer_range() {
            Some((least, most)) => (least as f64, most as f64),
            None => (-self.largest(), self.largest()),
        };
        let (low, high) = (low.max(least), high.min(most));
        if low > high {
            return None;
        }
        if self.dtype == DType::Float64 {
            return Some((low / 2.0 + high / 2.0).clamp(low, high));
        }
        let middle = low / 2.0 + high / 2.0;
        let step = self.step(middle);
        Some((middle / step).round_ties_even() * step).filter(|nearest| (low..=high).contains(nearest))
    }

    /// Distance between two values in units of the last place.
    ///
    /// Below 2^(fraction_bits - 1) steps (half a binade) it is `|got - expected| / step(expected)`, a fraction where `expected`
    /// is not a number of the dtype. A larger error is counted in the dtype's own ordering: how many of its numbers lie
    /// between the two, fractions interpolated. Infinite where exactly one side is not finite, or where infinities
    /// differ; 0 for equal values and for two NaNs.
    pub fn ulp(&self, got: f64, expected: f64) -> f64 {
        if got == expected || got.is_nan() && expected.is_nan() {
            return 0.0;
        }
        if !got.is_finite() || !expected.is_finite() {
            return f64::INFINITY;
        }
        let steps = (got - expected).abs() / self.step(expected);
        if !self.dtype.is_float() || steps < 0.5 / self.epsilon {
            return steps;
        }
        (self.place(got) - self.place(expected)).abs()
    }

    /// Where a value stands in the dtype's ordering, zero at 0, one number after the other, fractions in between.
    fn place(&self, value: f64) -> f64 {
        let magnitude = value.abs();
        let place = if magnitude < self.min_normal {
            magnitude / (self.min_normal * self.epsilon)
        } else {
            let exponent = ((magnitude.to_bits() >> 52) as f64) - ((self.min_normal.to_bits() >> 52) as f64);
            let fraction = f64::from_bits((magnitude.to_bits() & !EXPONENT) | 1f64.to_bits());
            (exponent + fraction) / self.epsilon
        };
        place.copysign(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, F8E4M3, f16};

    #[test]
    fn steps_are_those_of_the_formats() {
        let table = [
            (DType::Float32, 1.0, 2f64.powi(-23)),
            (DType::Float32, 1.9999, 2f64.powi(-23)),
            (DType::Float32, -2.0, 2f64.powi(-22)),
            (DType::Float32, 0.0, 2f64.powi(-149)),
            (DType::Float32, 1e-40, 2f64.powi(-149)),
            (DType::Float16, 1.0, 2f64.powi(-10)),
            (DType::Float16, 6e-5, 2f64.powi(-24)),
            (DType::Float16, 65504.0, 32.0),
            (DType::BFloat16, 1.0, 2f64.powi(-7)),
            (DType::Float8E4M3, 448.0, 32.0),
            (DType::Float8E4M3, 0.001, 2f64.powi(-9)),
            (DType::Float8E5M2, 1.0, 0.25),
            (DType::Float64, 0.0, f64::from_bits(1)),
            (DType::Int32, 7.0, 1.0),
        ];
        for (dtype, value, step) in table {
            assert_eq!(Grid::of(dtype).step(value), step, "{dtype} at {value}");
        }
    }

    #[test]
    fn overflow_starts_half_a_step_beyond_the_largest_number() {
        let table = [(DType::Float16, 65520.0), (DType::Float8E4M3, 464.0), (DType::Float8E5M2, 61440.0)];
        for (dtype, overflow) in table {
            assert_eq!(Grid::of(dtype).overflow(), overflow, "{dtype}");
        }
    }

    #[test]
    fn numbers_of_the_dtype_between_two_values() {
        let table = [
            (DType::Int32, 0.5, 0.5, None),
            (DType::Int32, 0.4, 0.6, None),
            (DType::Int32, 0.5, 1.5, Some(1.0)),
            (DType::Int32, -3.0, -3.0, Some(-3.0)),
            (DType::Int32, -2.6, -2.4, None),
            (DType::Bool, 1.5, 9.0, None),
            (DType::Bool, 0.5, 1.5, Some(1.0)),
            (DType::UInt8, -5.5, -0.5, None),
            (DType::UInt8, 254.6, 300.0, Some(255.0)),
            (DType::Int64, f64::NEG_INFINITY, f64::INFINITY, Some(0.0)),
            // float16 has 1 and 1 + 2^-10; bfloat16 1 and 1 + 2^-7; e4m3 1 and 1.125; e5m2 1 and 1.25.
            (DType::Float16, 1.0 + 2f64.powi(-12), 1.0 + 2f64.powi(-11), None),
            (DType::Float16, 1.0 + 2f64.powi(-12), 1.0 + 2f64.powi(-10), Some(1.0 + 2f64.powi(-10))),
            (DType::BFloat16, 1.001, 1.007, None),
            (DType::BFloat16, 0.999, 1.007, Some(1.0)),
            (DType::Float8E4M3, 1.01, 1.12, None),
            (DType::Float8E4M3, -1.13, -1.12, Some(-1.125)),
            (DType::Float8E5M2, 1.01, 1.24, None),
            (DType::Float8E4M3, 449.0, 900.0, None),
            // Just below a power of two, which the rounding reaches.
            (DType::Float16, 2.0 - 2f64.powi(-13), 2.0, Some(2.0)),
            (DType::Float32, 1e-46, 1e-46, None),
            (DType::Float32, f64::NEG_INFINITY, f64::INFINITY, Some(0.0)),
            (DType::Float64, 1e-310, 1e-310, Some(1e-310)),
            (DType::Float64, 2.0, 1.0, None),
        ];
        for (dtype, low, high, number) in table {
            assert_eq!(Grid::of(dtype).number_between(low, high), number, "{dtype} from {low} to {high}");
        }
    }

    #[test]
    fn places_count_every_number_of_small_formats() {
        let grid = Grid::of(DType::Float8E4M3);
        for byte in 0..=0x7eu8 {
            assert_eq!(grid.place(F8E4M3(byte).to_f64()), f64::from(byte));
            assert_eq!(grid.place(F8E4M3(byte | 0x80).to_f64()), -f64::from(byte));
        }
        let grid = Grid::of(DType::Float16);
        for bits in (0..0x7c00u16).step_by(7) {
            assert_eq!(grid.place(f16::from_bits(bits).to_f64()), f64::from(bits));
        }
    }

    #[test]
    fn ulp_distances() {
        let tiny = f64::from(f32::from_bits(1));
        let table = [
            (DType::Float32, 1.0 + 2f64.powi(-23), 1.0, 1.0),
            (DType::Float32, 1.0, 1.0 + 2f64.powi(-25), 0.25),
            (DType::Float32, 0.0, -0.0, 0.0),
            (DType::Float32, tiny, -tiny, 2.0),
            (DType::Float32, 0.0, 1.0, f64::from(1f32.to_bits())),
            (DType::Float32, -1.0, 1.0, 2.0 * f64::from(1f32.to_bits())),
            (DType::Float32, f64::NAN, 1.0, f64::INFINITY),
            (DType::Float32, f64::NAN, f64::NAN, 0.0),
            (DType::Float32, f64::INFINITY, f64::INFINITY, 0.0),
            (DType::Float16, 65504.0, 65472.0, 1.0),
            (DType::Int8, 3.0, -2.0, 5.0),
        ];
        for (dtype, got, expected, ulp) in table {
            assert_eq!(Grid::of(dtype).ulp(got, expected), ulp, "{dtype} {got} {expected}");
        }
    }
}
