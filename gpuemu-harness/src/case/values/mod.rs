//! Values: from an input's seed, shape, dtype, distribution and domain to its dense tensor, the same bytes everywhere.
//!
//! No function of a mathematics library touches a value: every step is an integer operation or one exactly rounded
//! float operation, so that another implementation can regenerate every byte. Words and their seeds are those of
//! [`super::rng`]; `e` is an element's number in row-major order, `r` its row (all axes but the last), `c` its column
//! (the last axis), `n` the length of a row (1 for rank 0).
//!
//! # Draws
//!
//! Values are made in float32 for every float dtype but float64, in float64 for it. Of a 32-bit half `h` (with sign bit
//! `s`), or of a word `w` for float64:
//!
//! | draw | float32 | float64 |
//! |---|---|---|
//! | uniform | `(h as signed >> 8) * 2^-23` | `(w as signed >> 11) * 2^-52` |
//! | positive | `((h >> 8) + 1) * 2^-24` | `((w >> 11) + 1) * 2^-53` |
//! | probability | `((h >> 8) + (h >> 31)) * 2^-24` | `((w >> 11) + (w >> 63)) * 2^-53` |
//! | edge | `(-1)^s * (2^23 + (h >> 8 & (2^23 - 1))) * 2^-24` | `(-1)^s * (2^52 + (w >> 11 & (2^52 - 1))) * 2^-53` |
//! | normal | `(sum of the four 16-bit fields of w - 131070) * C` | the same |
//!
//! `C` is the float64 0x1.bb67ae8584caap-16 (sqrt(3) * 2^-16), rounded to float32 for float32. The distributions
//! `uniform`, `positive`, `probability` and `edge` take one half-word an element (float64: one word); everything else
//! takes word `e`, and where a row structure needs one of those four draws of float32 it takes the low half of the word.
//!
//! # Distributions of floats
//!
//! `R(r)` is output `r` of SplitMix64 seeded with `derive(input seed, "rows")`, `S(i)` output `i` of the one seeded with
//! `derive(input seed, "special")`; `first = R(r) % n`, `second = (R(r) >> 32) % n`; `turn = S(0) >> 32`. Every product
//! and sum is rounded once in the working float.
//!
//! | name | value |
//! |---|---|
//! | `zeros`, `ones` | 0, 1 |
//! | `constant` | normal of `R(r)` |
//! | `one_hot` | 1 at column `first`, else 0 |
//! | `ramp` | `((c + 7 r) % 257 - 128) / 64` |
//! | `uniform`, `positive`, `probability`, `edge`, `normal` | the draw |
//! | `shifted` | `100 + normal` |
//! | `alternating` | `(1 + uniform * 1/16)`, negated in odd columns |
//! | `equal_maxima` | 4 where `c` is `first` or `second` or `c % 16 == R(r) % 16`, else normal |
//! | `tiny` | normal; its exponent counts from the dtype's smallest normal number |
//! | `nan_few` | normal; then for `i` in 1 to `1 + S(0) % 3`, element `(S(i) % 2^63) % len` is NaN |
//! | `inf_few` | the same with infinities, negative where `S(i)` has its top bit set |
//! | `neg_inf_rows` | `(r + turn) % 4`: 0 all -inf; 1 normal, -inf in columns above `first`; 2 and 3 normal |
//! | `structured` | `(r + turn) % 10`: 0 normal, 1 zeros, negative where `w` has its top bit set, 2 `4096 + normal`, `-4096 + normal` where `R(r)` has its top bit set, 3 `1 + normal * 2^-10`, 4 constant, 5 one_hot, 6 ramp, 7 equal_maxima, 8 alternating, 9 positive |
//! | `adversarial` | `(r + turn) % 12`: 0 to 9 as `structured`; 10 edge; 11 in the first 24 rows by `R(r) >> 62`: 0 normal with NaN at `first`, 1 normal with an infinity at `first` (negative where bit 61 of `R(r)` is set), 2 all -inf, 3 normal with +inf at `first`, then -inf at `second`; in later rows normal |
//! | `range` | `low + (high - low) * probability` in float64, from `w`, over the domain (0 to 1 for `probability`) |
//! | `bounds` | `low` or, where the top bit of `w` is set, `high` |
//!
//! The value is then multiplied by 2^exponent in float64 (`adversarial`: only the edge rows are; exponents beyond -1074
//! and 1023 count as these), and made one of the dtype: NaN is the positive quiet NaN without payload, infinities
//! stay where the dtype has them, and everything else is clamped to the largest finite magnitude and rounded to nearest
//! even. With a domain NaN counts as 1 and infinities as the largest magnitude; `positive` and `probability` take the
//! magnitude; the rounded value is then clamped to the least and the greatest number of the dtype in the domain
//! (`positive`: from the smallest normal number on).
//!
//! # Distributions of integers
//!
//! Of integer dtypes, bool, and float dtypes with a domain of integers. `low` and `high` are the domain's (permutation: 0
//! and `n - 1`; one_hot: 0 and 1; offsets: 0 and the size), else the dtype's. `U(x; a, b)` is
//! `a + (x * (b - a + 1) >> 64)`.
//!
//! | name | value |
//! |---|---|
//! | `zeros`, `ones` | 0 and 1, clamped to the range |
//! | `constant` | `U(R(r); low, high)` |
//! | `one_hot` | 1 at column `first`, else 0, clamped to the range |
//! | `ramp` | `low + (c + 7 r) % min(high - low + 1, 257)`; permutation: `c`; unique: `low + c`; offsets: `c * size / max(n - 1, 1)` rounded down |
//! | `small` | `U(w; max(low, -100), min(high, 100))`, or the whole range where that is empty |
//! | `full_range` | `U(w; low, high)` |
//! | `extremes` | by `w % 8`: 0 low, 1 high, 2 low + 1, 3 high - 1, 4 0, 5 1, 6 -1 (each clamped), 7 `U(w; low, high)` |
//! | `sorted` | `full_range`, each row sorted |
//! | `permutation` | 0, 1, ... shuffled: for `i` from `n - 1` down to 1, exchange `i` with `U(next; 0, i)` |
//! | `unique` | the first `n` entries of low, low + 1, ... shuffled: for `i` from 0, exchange `i` with `U(next; i, high - low)` |
//! | `offsets` | 0, then `n - 2` draws `U(next; 0, size)` sorted, then the size; where `n >= 4` and `R(r)` has its top bit set, entry 2 becomes entry 1 |
//!
//! `next` is the next output of SplitMix64 seeded with `R(r)`. With a sentinel, every distribution but `zeros` and `ones`
//! then has it wherever the element's word of the stream `derive(input seed, "sentinel")` is below 2^61.

pub mod draw;
mod floats;
mod integers;
mod rows;

pub use floats::{edited, power_of_two};

use super::domain::{Limits, kinds};
use super::spec::Distribution;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use gpuemu_contract::DType;

/// What to fill a tensor with.
#[derive(Clone, Copy, Debug)]
pub struct Fill<'a> {
    /// The input's seed.
    pub seed: u64,
    /// Its dtype.
    pub dtype: DType,
    /// Its shape.
    pub shape: &'a [usize],
    /// How its values are drawn.
    pub values: Distribution,
    /// Its domain.
    pub limits: Option<&'a Limits>,
}

/// The dense tensor.
///
/// # Errors
///
/// When the domain leaves no value for the dtype and shape, or the distribution is none of theirs.
pub fn fill(fill: &Fill<'_>) -> Result<Tensor> {
    let allowed = kinds(fill.dtype, fill.limits);
    if !allowed.contains(&fill.values.kind) {
        let names: Vec<&str> = allowed.iter().map(|kind| kind.name()).collect();
        return Err(Error::InvalidRequest(format!(
            "distribution `{}` is none of those for {}{}: {}",
            fill.values.kind,
            fill.dtype,
            if fill.limits.is_some() { " with its domain" } else { "" },
            names.join(", "),
        )));
    }
    if let Some(limits) = fill.limits {
        limits.admit(fill.dtype, fill.shape).map_err(Error::Config)?;
    }
    if fill.dtype.is_float() && !fill.limits.is_some_and(Limits::is_integer) {
        floats::tensor(fill)
    } else {
        integers::tensor(fill)
    }
}
