//! Float tensors: draws and row structures, scaled, fitted into the domain and rounded to the dtype.

use super::Fill;
use super::draw::{self, Draw, Working};
use super::rows::{self, Content, Row};
use crate::case::domain::Limits;
use crate::case::kind::Kind;
use crate::case::rng::{BLOCK, block_seed, derive, splitmix};
use crate::error::{Error, Result};
use crate::tensor::{Element, F8E4M3, F8E5M2, Layout, Tensor};
use gpuemu_contract::DType;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rayon::prelude::*;

/// Blocks from which a tensor is filled by several threads.
const PARALLEL_BLOCKS: usize = 64;

/// A dense tensor of a float dtype whose domain is one of floats.
pub fn tensor(fill: &Fill<'_>) -> Result<Tensor> {
    match fill.dtype {
        DType::Float64 => typed::<f64, f64>(fill),
        DType::Float32 => typed::<f32, f32>(fill),
        DType::Float16 => typed::<f16, f32>(fill),
        DType::BFloat16 => typed::<bf16, f32>(fill),
        DType::Float8E4M3 => typed::<F8E4M3, f32>(fill),
        DType::Float8E5M2 => typed::<F8E5M2, f32>(fill),
        other => Err(Error::Internal(format!("{other} is no float dtype"))),
    }
}

fn typed<T: Element, W: Working>(fill: &Fill<'_>) -> Result<Tensor> {
    let mut tensor = Tensor::zeros(T::DTYPE, Layout::contiguous(fill.shape));
    let filler = Filler::<T>::new(fill)?;
    let out = tensor.data_mut::<T>();
    if out.len() >= PARALLEL_BLOCKS * BLOCK {
        out.par_chunks_mut(BLOCK).enumerate().for_each(|(number, out)| filler.block::<W>(number, out));
    } else {
        out.chunks_mut(BLOCK).enumerate().for_each(|(number, out)| filler.block::<W>(number, out));
    }
    filler.specials(out);
    Ok(tensor)
}

struct Filler<T> {
    seed: u64,
    kind: Kind,
    scale: f64,
    row_length: usize,
    /// Seed of the row words.
    rows: u64,
    /// Seed of the special words.
    special: u64,
    range: (f64, f64),
    fit: Fit<T>,
}

/// Makes a value one of the dtype and the domain.
struct Fit<T> {
    max: f64,
    infinity: bool,
    domain: Option<FitDomain<T>>,
}

struct FitDomain<T> {
    magnitude: bool,
    low: T,
    high: T,
}

impl<T: Element> Fit<T> {
    fn new(limits: Option<&Limits>) -> Result<Fit<T>> {
        let dtype = T::DTYPE;
        let max = dtype.max_finite().expect("a float dtype");
        let domain = match limits {
            None => None,
            Some(Limits::Positive) => {
                let smallest = power_of_two(dtype.min_exponent().expect("a float dtype"));
                Some(FitDomain { magnitude: true, low: T::from_f64(smallest), high: T::from_f64(max) })
            }
            Some(Limits::Probability) => {
                Some(FitDomain { magnitude: true, low: T::from_f64(0.0), high: T::from_f64(1.0) })
            }
            Some(Limits::Float(low, high)) => {
                let mut least = T::from_f64(low.clamp(-max, max));
                if least.to_f64() < *low {
                    least = neighbour(least, true);
                }
                let mut most = T::from_f64(high.clamp(-max, max));
                if most.to_f64() > *high {
                    most = neighbour(most, false);
                }
                // A NaN is the neighbour of the largest number.
                let (first, last) = (least.to_f64(), most.to_f64());
                if first.is_nan() || last.is_nan() || first > last {
                    return Err(Error::Config(format!("its domain, {low:?} to {high:?}, holds no number of {dtype}")));
                }
                Some(FitDomain { magnitude: false, low: least, high: most })
            }
            Some(other) => return Err(Error::Internal(format!("{other:?} is no domain of floats"))),
        };
        Ok(Fit { max, infinity: dtype.has_infinity(), domain })
    }

    #[inline(always)]
    fn apply(&self, value: f64) -> T {
        match &self.domain {
            None => {
                if value.is_nan() {
                    return nan();
                }
                if value.is_infinite() && self.infinity {
                    return T::from_f64(value);
                }
                T::from_f64(value.clamp(-self.max, self.max))
            }
            Some(domain) => {
                let value = if value.is_nan() { 1.0 } else { value.clamp(-self.max, self.max) };
                let rounded = T::from_f64(if domain.magnitude { value.abs() } else { value });
                let exact = rounded.to_f64();
                if exact < domain.low.to_f64() {
                    domain.low
                } else if exact > domain.high.to_f64() {
                    domain.high
                } else {
                    rounded
                }
            }
        }
    }
}

impl<T: Element> Filler<T> {
    fn new(fill: &Fill<'_>) -> Result<Filler<T>> {
        let kind = fill.values.kind;
        let shift = if kind == Kind::Tiny { T::DTYPE.min_exponent().unwrap_or(0) } else { 0 };
        Ok(Filler {
            seed: fill.seed,
            kind,
            scale: power_of_two(fill.values.exponent + shift),
            row_length: fill.shape.last().copied().unwrap_or(1).max(1),
            rows: derive(fill.seed, "rows"),
            special: derive(fill.seed, "special"),
            range: match fill.limits {
                Some(&Limits::Float(low, high)) => (low, high),
                _ => (0.0, 1.0),
            },
            fit: Fit::new(fill.limits)?,
        })
    }

    fn block<W: Working>(&self, number: usize, out: &mut [T]) {
        let seed = block_seed(self.seed, number);
        let draw = match self.kind {
            Kind::Uniform => Some(Draw::Uniform),
            Kind::Positive => Some(Draw::Positive),
            Kind::Probability => Some(Draw::Probability),
            Kind::Edge => Some(Draw::Edge),
            Kind::Normal | Kind::Tiny | Kind::NanFew | Kind::InfFew => Some(Draw::Normal),
            _ => None,
        };
        match draw {
            Some(draw) if T::DTYPE != DType::Float64 => self.narrow_draws(draw, seed, out),
            _ if matches!(self.kind, Kind::Range | Kind::Bounds) => self.range(seed, out),
            _ => self.rows::<W>(number, seed, out),
        }
    }

    /// Blocks of float32 draws, by far the most common.
    fn narrow_draws(&self, draw: Draw, seed: u64, out: &mut [T]) {
        let as_drawn = self.scale == 1.0 && self.fit.domain.is_none();
        if as_drawn && T::DTYPE == DType::Float32 {
            return draw::block(draw, seed, bytemuck::cast_slice_mut(out));
        }
        let mut buffer = [0.0f32; BLOCK];
        let drawn = &mut buffer[..out.len()];
        draw::block(draw, seed, drawn);
        match T::DTYPE {
            DType::Float16 if as_drawn => bytemuck::cast_slice_mut::<T, f16>(out).convert_from_f32_slice(drawn),
            DType::BFloat16 if as_drawn => bytemuck::cast_slice_mut::<T, bf16>(out).convert_from_f32_slice(drawn),
            _ => self.finish(self.scale, drawn, out),
        }
    }

    fn finish<W: Working>(&self, scale: f64, values: &[W], out: &mut [T]) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = self.fit.apply(value.to_f64() * scale);
        }
    }

    /// `range` and `bounds`: float64 arithmetic whatever the dtype, so that every number of the domain can come up.
    fn range(&self, seed: u64, out: &mut [T]) {
        let (low, high) = self.range;
        let mut words = [0; BLOCK];
        draw::words(seed, &mut words[..out.len()]);
        for (out, &word) in out.iter_mut().zip(&words) {
            let value = match self.kind {
                Kind::Bounds => [low, high][(word >> 63) as usize],
                _ => low + (high - low) * f64::draw(Draw::Probability, word),
            };
            *out = self.fit.apply(value * self.scale);
        }
    }

    /// Row by row.
    fn rows<W: Working>(&self, block: usize, seed: u64, out: &mut [T]) {
        let mut words = [0; BLOCK];
        draw::words(seed, &mut words[..out.len()]);
        let mut values = [W::of(0.0); BLOCK];
        let turn = splitmix(self.special, 0) >> 32;
        let mut done = 0;
        while done < out.len() {
            let element = block * BLOCK + done;
            let (number, column) = (element / self.row_length, element % self.row_length);
            let end = out.len().min(done + self.row_length - column);
            let row =
                Row { number: number as u64, word: splitmix(self.rows, number as u64), length: self.row_length as u64 };
            let content = rows::content(self.kind, row, turn);
            let part = &mut values[done..end];
            rows::fill(content, row, column as u64, &words[done..end], part);
            let scale = match self.kind {
                Kind::Adversarial if content != Content::ScaledEdge => 1.0,
                _ => self.scale,
            };
            self.finish(scale, part, &mut out[done..end]);
            done = end;
        }
    }

    /// The one to three NaNs or infinities of `nan_few` and `inf_few`.
    fn specials(&self, out: &mut [T]) {
        if out.is_empty() || !matches!(self.kind, Kind::NanFew | Kind::InfFew) {
            return;
        }
        let count = 1 + splitmix(self.special, 0) % 3;
        for i in 1..=count {
            let word = splitmix(self.special, i);
            let value = match self.kind {
                Kind::NanFew => f64::NAN,
                _ if word >> 63 == 1 => f64::NEG_INFINITY,
                _ => f64::INFINITY,
            };
            out[((word & (u64::MAX >> 1)) % out.len() as u64) as usize] = self.fit.apply(value);
        }
    }
}

/// 2^exponent, exactly; exponents beyond the powers of two of float64 count as the nearest.
pub fn power_of_two(exponent: i32) -> f64 {
    match exponent.clamp(-1074, 1023) {
        exponent @ -1022.. => f64::from_bits(((exponent + 1023) as u64) << 52),
        exponent => f64::from_bits(1 << (exponent + 1074)),
    }
}

/// The positive quiet NaN without a payload (fp8 e4m3fn: 0x7f, its only positive one; e5m2: 0x7e).
fn nan<T: Element>() -> T {
    let bits: u64 = match T::DTYPE {
        DType::Float64 => 0x7ff8_0000_0000_0000,
        DType::Float32 => 0x7fc0_0000,
        DType::Float16 => 0x7e00,
        DType::BFloat16 => 0x7fc0,
        DType::Float8E4M3 => 0x7f,
        _ => 0x7e,
    };
    from_bits(bits)
}

fn from_bits<T: Element>(bits: u64) -> T {
    bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<T>()])
}

/// The next larger or smaller number of the dtype.
fn neighbour<T: Element>(value: T, up: bool) -> T {
    let mut bytes = [0; 8];
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    let bits = u64::from_le_bytes(bytes);
    let sign = 1u64 << (8 * size_of::<T>() - 1);
    let (negative, magnitude) = (bits & sign != 0, bits & !sign);
    from_bits(match (magnitude, negative == up) {
        (0, _) if up => 1,
        (0, _) => sign | 1,
        (_, true) => bits - 1,
        (_, false) => bits + 1,
    })
}

/// A canonical value of the dtype for an edit: NaN without a payload, everything else rounded to nearest even.
pub fn edited<T: Element>(value: f64) -> T {
    if value.is_nan() && T::DTYPE.is_float() { nan() } else { T::from_f64(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in [-1074, -1073, -1023, -1022, -1, 0, 1, 1023] {
            assert_eq!(power_of_two(exponent), 2f64.powi(exponent), "{exponent}");
        }
    }

    #[test]
    fn neighbours_cross_zero() {
        assert_eq!(neighbour(0f32, true), f32::from_bits(1));
        assert_eq!(neighbour(0f32, false), -f32::from_bits(1));
        assert_eq!(neighbour(-1f32, true), -1.0 + 2f32.powi(-24));
        assert_eq!(neighbour(-1f32, false), -1.0 - 2f32.powi(-23));
        assert_eq!(neighbour(f16::from_f32(1.0), true).to_f64(), 1.0 + 2f64.powi(-10));
    }

    #[test]
    fn values_are_fitted_into_dtype_and_domain() {
        let free = Fit::<F8E4M3>::new(None).expect("no domain");
        assert_eq!([1e9, f64::NEG_INFINITY, 0.3].map(|value| free.apply(value).to_f64()), [448.0, -448.0, 0.3125]);
        // The nearest float32 to 0.1 is above it.
        let range = Fit::<f32>::new(Some(&Limits::Float(-0.1, 0.1))).expect("a domain");
        assert!(f64::from(range.apply(0.1)) < 0.1 && f64::from(range.apply(-7.0)) > -0.1);
        assert_eq!(range.apply(f64::NAN), range.apply(1.0));
        let positive = Fit::<f16>::new(Some(&Limits::Positive)).expect("a domain");
        assert_eq!(
            [0.0, -2.0, 1e-30].map(|value| positive.apply(value).to_f64()),
            [2f64.powi(-14), 2.0, 2f64.powi(-14)]
        );
        assert!(Fit::<F8E5M2>::new(Some(&Limits::Float(1.01, 1.02))).is_err());
    }
}
