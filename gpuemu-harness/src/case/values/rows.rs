//! Rows of one structure: what a distribution makes of each row, given the row's word and the elements' words.

use super::draw::{Draw, Working};
use crate::case::kind::Kind;

/// One row (or the part of one in a block).
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its number.
    pub number: u64,
    /// Its word.
    pub word: u64,
    /// Its length.
    pub length: u64,
}

/// What stands in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// Independent draws.
    Draws(Draw),
    /// Edge draws: the only rows of `adversarial` that its exponent scales.
    ScaledEdge,
    /// One constant everywhere.
    All(f32),
    /// 0, or -0 where the element's word has its top bit set: kernels that look at bits tell them apart.
    SignedZeros,
    /// A normal number of the row's word everywhere.
    Constant,
    /// 1 at the row's column, else 0.
    OneHot,
    /// Steps of 1/64 from -2 to 2.
    Ramp,
    /// `offset + normal * spread`.
    Near(f32, f32),
    /// 4096 + normal, or as far below zero where the row's word has its top bit set: a row's largest may be negative.
    Far,
    /// Magnitudes 1 + uniform/16, signs alternating.
    Alternating,
    /// Normal, 4 at the columns of equal maxima.
    EqualMaxima,
    /// Normal, -inf behind the row's column.
    Masked,
    /// Normal, one NaN at the row's column.
    OneNan,
    /// Normal, one infinity of this sign at the row's column.
    OneInf(f32),
    /// Normal, +inf at the row's column, -inf at its other column.
    BothInf,
}

/// Row structures of `structured`, in turn.
const FINITE: [Content; 10] = [
    Content::Draws(Draw::Normal),
    Content::SignedZeros,
    Content::Far,
    Content::Near(1.0, 1.0 / 1024.0),
    Content::Constant,
    Content::OneHot,
    Content::Ramp,
    Content::EqualMaxima,
    Content::Alternating,
    Content::Draws(Draw::Positive),
];

/// Rows from which `adversarial` has no further non-finite one.
const NON_FINITE_ROWS: u64 = 24;

/// What a distribution puts into a row. `turn` is where its cycle of structures starts.
pub fn content(kind: Kind, row: Row, turn: u64) -> Content {
    match kind {
        Kind::Zeros => Content::All(0.0),
        Kind::Ones => Content::All(1.0),
        Kind::Constant => Content::Constant,
        Kind::OneHot => Content::OneHot,
        Kind::Ramp => Content::Ramp,
        Kind::Uniform => Content::Draws(Draw::Uniform),
        Kind::Positive => Content::Draws(Draw::Positive),
        Kind::Probability => Content::Draws(Draw::Probability),
        Kind::Edge => Content::Draws(Draw::Edge),
        Kind::Shifted => Content::Near(100.0, 1.0),
        Kind::Alternating => Content::Alternating,
        Kind::EqualMaxima => Content::EqualMaxima,
        Kind::Structured => FINITE[((row.number + turn) % 10) as usize],
        Kind::NegInfRows => match (row.number + turn) % 4 {
            0 => Content::All(f32::NEG_INFINITY),
            1 => Content::Masked,
            _ => Content::Draws(Draw::Normal),
        },
        Kind::Adversarial => match (row.number + turn) % 12 {
            10 => Content::ScaledEdge,
            11 if row.number >= NON_FINITE_ROWS => Content::Draws(Draw::Normal),
            11 => match row.word >> 62 {
                0 => Content::OneNan,
                1 => Content::OneInf(if row.word >> 61 & 1 == 1 { f32::NEG_INFINITY } else { f32::INFINITY }),
                2 => Content::All(f32::NEG_INFINITY),
                _ => Content::BothInf,
            },
            turn => FINITE[turn as usize],
        },
        _ => Content::Draws(Draw::Normal),
    }
}

/// Fills the columns from `column` on of one row.
#[inline(always)]
pub fn fill<W: Working>(content: Content, row: Row, column: u64, words: &[u64], out: &mut [W]) {
    let first = row.word % row.length.max(1);
    let second = (row.word >> 32) % row.length.max(1);
    let normal = |word| W::draw(Draw::Normal, word);
    let columns = column..;
    let elements = out.iter_mut().zip(words).zip(columns);
    match content {
        Content::Draws(Draw::Normal) => elements.for_each(|((out, &word), _)| *out = normal(word)),
        Content::Draws(draw) => elements.for_each(|((out, &word), _)| *out = W::draw(draw, word)),
        Content::ScaledEdge => elements.for_each(|((out, &word), _)| *out = W::draw(Draw::Edge, word)),
        Content::All(value) => out.fill(W::of(value)),
        Content::SignedZeros => elements.for_each(|((out, &word), _)| {
            *out = W::of(if word >> 63 == 1 { -0.0 } else { 0.0 });
        }),
        Content::Constant => out.fill(normal(row.word)),
        Content::OneHot => elements.for_each(|((out, _), c)| *out = W::of(if c == first { 1.0 } else { 0.0 })),
        Content::Ramp => elements.for_each(|((out, _), c)| {
            let step = ((c + row.number * 7) % 257) as i32 - 128;
            *out = W::of(step as f32 * (1.0 / 64.0));
        }),
        Content::Near(offset, spread) => {
            elements.for_each(|((out, &word), _)| *out = W::of(offset) + normal(word) * W::of(spread));
        }
        Content::Far => {
            let offset = W::of(if row.word >> 63 == 1 { -4096.0 } else { 4096.0 });
            elements.for_each(|((out, &word), _)| *out = offset + normal(word));
        }
        Content::Alternating => elements.for_each(|((out, &word), c)| {
            let magnitude = W::of(1.0) + W::draw(Draw::Uniform, word) * W::of(1.0 / 16.0);
            *out = magnitude * W::of(if c % 2 == 0 { 1.0 } else { -1.0 });
        }),
        Content::EqualMaxima => elements.for_each(|((out, &word), c)| {
            let peak = c == first || c == second || c % 16 == row.word % 16;
            *out = if peak { W::of(4.0) } else { normal(word) };
        }),
        Content::Masked => elements.for_each(|((out, &word), c)| {
            *out = if c > first { W::of(f32::NEG_INFINITY) } else { normal(word) };
        }),
        Content::OneNan => elements.for_each(|((out, &word), c)| {
            *out = if c == first { W::of(f32::NAN) } else { normal(word) };
        }),
        Content::OneInf(infinity) => elements.for_each(|((out, &word), c)| {
            *out = if c == first { W::of(infinity) } else { normal(word) };
        }),
        Content::BothInf => elements.for_each(|((out, &word), c)| {
            *out = match c {
                c if c == second => W::of(f32::NEG_INFINITY),
                c if c == first => W::of(f32::INFINITY),
                _ => normal(word),
            };
        }),
    }
}
