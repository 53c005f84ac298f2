//! Softmax and its logarithm.

use super::arguments::{Arguments, Rows};
use crate::error::Result;
use crate::mirror::real::Real;
use crate::tensor::Array;
use gpuemu_contract::{EdgePolicy, EmptyPolicy, NanPolicy};

/// The pooled axes of an op that normalises over parameter `axis`.
pub fn pools_axis(arguments: &Arguments<'_>) -> Result<Vec<usize>> {
    Ok(vec![arguments.axis(&arguments.input(0).shape)?])
}

/// `softmax(x)_i = exp(x_i - m) / sum_j exp(x_j - m)` with `m = max_j x_j`, along parameter `axis`.
///
/// As PyTorch: a row with a NaN or a +inf is NaN throughout; -inf has probability 0; a row of -inf alone is NaN, unless
/// `empty = "zero"` makes it zeros. Under `nan = "ignore"` a NaN counts as -inf.
pub fn softmax<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let rows = Rows::along(&x.shape, arguments.axis(&x.shape)?);
    let edges = arguments.edges();
    let answer = rows.map_reals(x, |row: &[R], out| {
        let Some(out) = below_maximum(row, out, edges) else { return };
        R::exp_each(out);
        let sum = R::sum(out);
        for value in out.iter_mut() {
            *value = *value / sum;
        }
    });
    arguments.answer(&x.shape, answer)
}

/// `log_softmax(x)_i = (x_i - m) - ln sum_j exp(x_j - m)` with `m = max_j x_j`, along parameter `axis`.
///
/// As PyTorch: a row with a NaN or a +inf is NaN throughout; -inf stays -inf; a row of -inf alone is NaN, unless
/// `empty = "zero"` makes it zeros. Under `nan = "ignore"` a NaN counts as -inf.
pub fn log_softmax<R: Real>(arguments: &Arguments<'_>) -> Result<Vec<Array>> {
    let x = arguments.input(0);
    let rows = Rows::along(&x.shape, arguments.axis(&x.shape)?);
    let edges = arguments.edges();
    let mut powers = Vec::new();
    let answer = rows.map_reals(x, |row: &[R], out| {
        let Some(out) = below_maximum(row, out, edges) else { return };
        powers.clear();
        powers.extend_from_slice(out);
        R::exp_each(&mut powers);
        // Where one element outweighs all others, the logarithm of the sum is about the sum of those others, which
        // adding the 1 of the largest would round away.
        let largest = out.iter().position(|&value| value == R::ZERO);
        let log_sum = match largest {
            Some(largest) if R::PRECISE => {
                powers[largest] = R::ZERO;
                R::sum(&powers).ln_1p()
            }
            _ => R::sum(&powers).ln(),
        };
        for value in out.iter_mut() {
            *value = *value - log_sum;
        }
    });
    arguments.answer(&x.shape, answer)
}

/// Appends a row's distances below its maximum and returns them; `None` where the row's answer is zeros, which stand there
/// then. An ignored NaN is -inf, which has probability 0.
fn below_maximum<'o, R: Real>(row: &[R], out: &'o mut Vec<R>, edges: EdgePolicy) -> Option<&'o mut [R]> {
    let start = out.len();
    let max = if edges.nan == NanPolicy::Ignore {
        out.extend(row.iter().map(|&value| if value.is_nan() { -R::INFINITY } else { value }));
        let max = R::max(&out[start..]);
        out[start..].iter_mut().for_each(|value| *value = *value - max);
        max
    } else {
        let max = R::max(row);
        out.extend(row.iter().map(|&value| value - max));
        max
    };
    let out = &mut out[start..];
    if edges.empty == EmptyPolicy::Zero && max == -R::INFINITY {
        out.fill(R::ZERO);
        return None;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::super::arguments::ask;
    use super::*;
    use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};

    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;

    fn close(got: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(got.len(), expected.len());
        for (&got, &expected) in got.iter().zip(expected) {
            let same = got == expected || got.is_nan() && expected.is_nan();
            assert!(same || (got - expected).abs() <= tolerance * expected.abs(), "got {got:e}, expected {expected:e}");
        }
    }

    #[test]
    fn softmax_of_rows_with_known_answers() {
        let (ignore, zero) = (
            EdgePolicy { nan: NanPolicy::Ignore, ..EdgePolicy::default() },
            EdgePolicy { empty: EmptyPolicy::Zero, ..EdgePolicy::default() },
        );
        let plain = EdgePolicy::default();
        let ln = f64::ln;
        let table: &[(&[f64], EdgePolicy, &[f64])] = &[
            (&[3.0], plain, &[1.0]),
            (&[5.0, 5.0, 5.0, 5.0], plain, &[0.25; 4]),
            (&[0.0, ln(3.0)], plain, &[0.25, 0.75]),
            (&[1000.0, 1000.0 + ln(3.0)], plain, &[0.25, 0.75]),
            (&[-1e300, 1e300], plain, &[0.0, 1.0]),
            (&[-INF, 2.0], plain, &[0.0, 1.0]),
            (&[INF, 2.0], plain, &[NAN, NAN]),
            (&[NAN, 2.0], plain, &[NAN, NAN]),
            (&[-INF, -INF], plain, &[NAN, NAN]),
            (&[-INF, -INF], zero, &[0.0, 0.0]),
            (&[NAN, 2.0], ignore, &[0.0, 1.0]),
            (&[], plain, &[]),
        ];
        for &(row, edges, expected) in table {
            let x = Array::float(DType::Float64, &[1, row.len()], row.to_vec());
            for (precision, tolerance) in
                [(Compute::Float64, 2e-13), (Compute::Float32, 1e-4), (Compute::Float16, 0.3), (Compute::Tf32, 1e-4)]
            {
                let answer = ask("softmax", std::slice::from_ref(&x), &[], (DType::Float64, precision, edges)).unwrap();
                let row_fits = row.iter().all(|value| value.abs() < 6e4 || value.is_infinite() || value.is_nan());
                if precision == Compute::Float64 || row_fits {
                    close(answer[0].floats().unwrap(), expected, tolerance);
                }
            }
        }
    }

    #[test]
    fn log_softmax_of_rows_with_known_answers() {
        let plain = EdgePolicy::default();
        let ln = f64::ln;
        let table: &[(&[f64], EdgePolicy, &[f64])] = &[
            (&[3.0], plain, &[0.0]),
            (&[0.0, ln(3.0)], plain, &[-2.0 * ln(2.0), ln(0.75)]),
            (&[5.0; 4], plain, &[-ln(4.0); 4]),
            // ln(1 + e^-50) = e^-50 to 22 digits.
            (&[50.0, 0.0], plain, &[-1.9287498479639178e-22, -50.0]),
            (&[1e15 + 50.0, 1e15], plain, &[-1.9287498479639178e-22, -50.0]),
            (&[-INF, 2.0], plain, &[-INF, 0.0]),
            (&[INF, 2.0], plain, &[NAN, NAN]),
            (&[NAN, 2.0], plain, &[NAN, NAN]),
            (&[-INF, -INF], plain, &[NAN, NAN]),
            (&[NAN, 2.0], EdgePolicy { nan: NanPolicy::Ignore, ..plain }, &[-INF, 0.0]),
            (&[-INF, -INF], EdgePolicy { empty: EmptyPolicy::Zero, ..plain }, &[0.0, 0.0]),
        ];
        for &(row, edges, expected) in table {
            let x = Array::float(DType::Float64, &[row.len()], row.to_vec());
            let answer = ask("log_softmax", &[x], &[], (DType::Float64, Compute::Float64, edges)).unwrap();
            close(answer[0].floats().unwrap(), expected, 1e-15);
        }
    }

    #[test]
    fn softmax_along_another_axis() {
        let x = Array::float(DType::Float64, &[2, 2], vec![0.0, 0.0, 3f64.ln(), 0.0]);
        let setting = (DType::Float64, Compute::Float64, EdgePolicy::default());
        let answer = ask("softmax", &[x], &[("axis", ParamValue::Int(0))], setting).unwrap();
        close(answer[0].floats().unwrap(), &[0.25, 0.5, 0.75, 0.5], 1e-15);
    }
}
