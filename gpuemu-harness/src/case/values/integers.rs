//! Integer tensors, and float tensors whose domain is one of integers.

use super::Fill;
use super::draw;
use crate::case::domain::Limits;
use crate::case::kind::Kind;
use crate::case::rng::{BLOCK, SplitMix64, block_seed, derive, scale, splitmix};
use crate::error::{Error, Result};
use crate::tensor::{Element, Layout, Tensor};
use crate::with_element;
use gpuemu_contract::DType;
use std::collections::HashMap;

/// A dense tensor of whole numbers.
pub fn tensor(fill: &Fill<'_>) -> Result<Tensor> {
    let (limits, sentinel) = match fill.limits {
        Some(Limits::Sentinel(inner, sentinel)) => (Some(&**inner), Some(*sentinel)),
        limits => (limits, None),
    };
    let row = fill.shape.last().copied().unwrap_or(1);
    let whole = fill.dtype.integer_range().unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
    let (low, high) = match limits {
        Some(&(Limits::Integer(low, high) | Limits::Sorted(low, high) | Limits::Unique(low, high))) => (low, high),
        Some(Limits::Permutation) => (0, row as i128 - 1),
        Some(Limits::OneHot) => (0, 1),
        Some(&Limits::Offsets(size)) => (0, size),
        _ => whole,
    };
    let mut numbers = vec![0i128; fill.shape.iter().product()];
    if !numbers.is_empty() {
        let rows = Rows { seed: fill.seed, kind: fill.values.kind, low, high, limits };
        rows.fill(row, &mut numbers)?;
        if let Some(sentinel) = sentinel
            && !matches!(fill.values.kind, Kind::Zeros | Kind::Ones)
        {
            let stream = derive(fill.seed, "sentinel");
            each_word(stream, numbers.len(), |number, word| {
                if word >> 61 == 0 {
                    numbers[number] = i128::from(sentinel);
                }
            });
        }
    }
    Ok(store(fill.dtype, fill.shape, &numbers))
}

struct Rows<'a> {
    seed: u64,
    kind: Kind,
    low: i128,
    high: i128,
    limits: Option<&'a Limits>,
}

impl Rows<'_> {
    fn fill(&self, row_length: usize, numbers: &mut [i128]) -> Result<()> {
        let rows = derive(self.seed, "rows");
        let word = |number: usize| splitmix(rows, number as u64);
        let (low, high) = (self.low, self.high);
        let width = (high - low + 1) as u128; // at most 2^64
        let clamped = |value: i128| value.clamp(low, high);
        let by_column = |numbers: &mut [i128], value: &dyn Fn(u64, usize) -> i128| {
            for (number, row) in numbers.chunks_mut(row_length).enumerate() {
                for (column, place) in row.iter_mut().enumerate() {
                    *place = value(number as u64, column);
                }
            }
        };
        match self.kind {
            Kind::Zeros => numbers.fill(clamped(0)),
            Kind::Ones => numbers.fill(clamped(1)),
            Kind::Constant => by_column(numbers, &|row, _| uniform(splitmix(rows, row), low, width)),
            Kind::OneHot => by_column(numbers, &|row, column| {
                clamped(i128::from(column as u64 == splitmix(rows, row) % row_length as u64))
            }),
            Kind::Ramp => match self.limits {
                Some(Limits::Permutation) => by_column(numbers, &|_, column| column as i128),
                Some(Limits::Unique(..)) => by_column(numbers, &|_, column| low + column as i128),
                Some(Limits::Offsets(_)) => {
                    let last = (row_length as i128 - 1).max(1);
                    by_column(numbers, &|_, column| column as i128 * high / last);
                }
                _ => {
                    let period = width.min(257) as u64;
                    by_column(numbers, &|row, column| low + i128::from((column as u64 + row * 7) % period));
                }
            },
            Kind::Small => {
                let (least, most) = if high < -100 || low > 100 { (low, high) } else { (low.max(-100), high.min(100)) };
                each_word(self.seed, numbers.len(), |number, word| {
                    numbers[number] = uniform(word, least, (most - least + 1) as u128);
                });
            }
            Kind::FullRange => {
                each_word(self.seed, numbers.len(), |number, word| numbers[number] = uniform(word, low, width));
            }
            Kind::Extremes => each_word(self.seed, numbers.len(), |number, word| {
                numbers[number] = match word % 8 {
                    0 => low,
                    1 => high,
                    2 => clamped(low + 1),
                    3 => clamped(high - 1),
                    4 => clamped(0),
                    5 => clamped(1),
                    6 => clamped(-1),
                    _ => uniform(word, low, width),
                };
            }),
            Kind::Sorted => {
                each_word(self.seed, numbers.len(), |number, word| numbers[number] = uniform(word, low, width));
                numbers.chunks_mut(row_length).for_each(<[i128]>::sort_unstable);
            }
            Kind::Permutation => {
                for (number, row) in numbers.chunks_mut(row_length).enumerate() {
                    let mut stream = SplitMix64::new(word(number));
                    row.iter_mut().enumerate().for_each(|(column, place)| *place = column as i128);
                    for i in (1..row.len()).rev() {
                        row.swap(i, stream.below(i as u64 + 1) as usize);
                    }
                }
            }
            Kind::Unique => {
                for (number, row) in numbers.chunks_mut(row_length).enumerate() {
                    unique(&mut SplitMix64::new(word(number)), low, width, row);
                }
            }
            Kind::Offsets => {
                for (number, row) in numbers.chunks_mut(row_length).enumerate() {
                    offsets(&mut SplitMix64::new(word(number)), high, row);
                    if row.len() >= 4 && word(number) >> 63 == 1 {
                        row[2] = row[1];
                    }
                }
            }
            other => return Err(Error::Internal(format!("{other} is no distribution of integers"))),
        }
        Ok(())
    }
}

/// A number of `low..low + width`, `width` at most 2^64.
fn uniform(word: u64, low: i128, width: u128) -> i128 {
    let step = match u64::try_from(width) {
        Ok(width) => scale(word, width),
        Err(_) => word,
    };
    low + i128::from(step)
}

/// Calls `f` with every element's number and word.
fn each_word(seed: u64, count: usize, mut f: impl FnMut(usize, u64)) {
    let mut words = [0; BLOCK];
    for (block, start) in (0..count).step_by(BLOCK).enumerate() {
        let length = BLOCK.min(count - start);
        draw::words(block_seed(seed, block), &mut words[..length]);
        for (at, &word) in words[..length].iter().enumerate() {
            f(start + at, word);
        }
    }
}

/// The first `row.len()` entries of a shuffle of the range, without making the range.
fn unique(stream: &mut SplitMix64, low: i128, width: u128, row: &mut [i128]) {
    let mut moved: HashMap<u128, u128> = HashMap::new();
    for (i, place) in row.iter_mut().enumerate() {
        let i = i as u128;
        let left = width - i;
        let j = i + match u64::try_from(left) {
            Ok(left) => u128::from(stream.below(left)),
            Err(_) => u128::from(stream.next_word()),
        };
        let chosen = moved.get(&j).copied().unwrap_or(j);
        let displaced = moved.get(&i).copied().unwrap_or(i);
        moved.insert(j, displaced);
        *place = low + chosen as i128;
    }
}

/// 0, then ascending draws, then `size`.
fn offsets(stream: &mut SplitMix64, size: i128, row: &mut [i128]) {
    let last = row.len() - 1;
    row[0] = 0;
    row[last] = size;
    if last > 1 {
        for place in &mut row[1..last] {
            *place = i128::from(stream.below(size as u64 + 1));
        }
        row[1..last].sort_unstable();
    }
}

fn store(dtype: DType, shape: &[usize], numbers: &[i128]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, Layout::contiguous(shape));
    match dtype {
        DType::Int64 => {
            tensor.data_mut::<i64>().iter_mut().zip(numbers).for_each(|(to, &number)| *to = number as i64);
        }
        DType::UInt64 => {
            tensor.data_mut::<u64>().iter_mut().zip(numbers).for_each(|(to, &number)| *to = number as u64);
        }
        _ => with_element!(dtype, T => {
            for (to, &number) in tensor.data_mut::<T>().iter_mut().zip(numbers) {
                *to = T::from_f64(number as f64);
            }
        }),
    }
    tensor
}
