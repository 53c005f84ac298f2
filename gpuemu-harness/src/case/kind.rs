//! The names of layouts and value distributions, as a spec writes them.

use std::fmt;

/// How a tensor lies in memory. Gaps hold poison; what each does exactly is in [`super::layout`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayoutKind {
    /// Row-major without gaps, at the start of its memory.
    #[default]
    Row,
    /// The last two axes exchanged in memory.
    Transposed,
    /// Every axis reversed in memory (column-major).
    Column,
    /// Rows longer in memory than the tensor: gaps behind each.
    Padded,
    /// Every second element of a larger row-major tensor along the last axis.
    Sliced,
    /// Row-major, starting behind a gap.
    Offset,
    /// Stride 0 along the first axis: all its slices are one.
    Broadcast,
    /// Negative stride along the last axis.
    Reversed,
}

impl LayoutKind {
    /// Every kind.
    pub const ALL: [LayoutKind; 8] = [
        LayoutKind::Row,
        LayoutKind::Transposed,
        LayoutKind::Column,
        LayoutKind::Padded,
        LayoutKind::Sliced,
        LayoutKind::Offset,
        LayoutKind::Broadcast,
        LayoutKind::Reversed,
    ];

    /// The name used in specs and in `layouts`.
    pub const fn name(self) -> &'static str {
        match self {
            LayoutKind::Row => "row",
            LayoutKind::Transposed => "transposed",
            LayoutKind::Column => "column",
            LayoutKind::Padded => "padded",
            LayoutKind::Sliced => "sliced",
            LayoutKind::Offset => "offset",
            LayoutKind::Broadcast => "broadcast",
            LayoutKind::Reversed => "reversed",
        }
    }

    /// The kind of that exact name, if there is one.
    pub fn from_name(name: &str) -> Option<LayoutKind> {
        LayoutKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for LayoutKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $Kind:ident = $name:literal,)*) => {
        /// How values are drawn. Formulas are in [`super::values`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[doc = $doc])+ $Kind,)*
        }

        impl Kind {
            /// Every kind, the simplest first.
            pub const ALL: &'static [Kind] = &[$(Kind::$Kind,)*];

            /// The name used in specs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Kind::$Kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// All zero.
    Zeros = "zeros",
    /// All one.
    Ones = "ones",
    /// One value a row.
    Constant = "constant",
    /// One 1 a row, zeros beside it.
    OneHot = "one_hot",
    /// Equal steps along the row, every row shifted against the one before.
    Ramp = "ramp",
    /// Floats in [-1, 1).
    Uniform = "uniform",
    /// Floats about 0 with deviation 1, none beyond 3.5.
    Normal = "normal",
    /// Floats in (0, 1].
    Positive = "positive",
    /// Floats in [0, 1].
    Probability = "probability",
    /// Floats about 100 with deviation 1.
    Shifted = "shifted",
    /// Signs that alternate along the row, magnitudes near 1: sums nearly cancel.
    Alternating = "alternating",
    /// A row's maximum stands at several places.
    EqualMaxima = "equal_maxima",
    /// Normal values scaled to the smallest normal number of the dtype: many are subnormal.
    Tiny = "tiny",
    /// Both signs, magnitudes in [1/2, 1) before scaling.
    Edge = "edge",
    /// Uniform over the domain.
    Range = "range",
    /// The two ends of the domain, nothing between.
    Bounds = "bounds",
    /// Rows of different finite structure: zeros, large offset, tiny variance, one-hot, ramp, ...
    Structured = "structured",
    /// Some rows all -inf, some -inf from a column on.
    NegInfRows = "neg_inf_rows",
    /// One to three NaNs.
    NanFew = "nan_few",
    /// One to three infinities.
    InfFew = "inf_few",
    /// The structured rows, and among them rows of edge magnitudes and few non-finite rows.
    Adversarial = "adversarial",
    /// Integers in [-100, 100].
    Small = "small",
    /// Integers over the whole range of dtype and domain.
    FullRange = "full_range",
    /// Integers at the ends of the range, 0 and its neighbours.
    Extremes = "extremes",
    /// Each of 0..n once along the row.
    Permutation = "permutation",
    /// Ascending along the row.
    Sorted = "sorted",
    /// No value twice along the row.
    Unique = "unique",
    /// Offsets of ragged rows.
    Offsets = "offsets",
    /// What the user's generator answers.
    Generated = "generated",
}

impl Kind {
    /// Whether it draws NaNs or infinities.
    pub const fn has_non_finite(self) -> bool {
        matches!(self, Kind::NegInfRows | Kind::NanFew | Kind::InfFew | Kind::Adversarial)
    }

    /// The kind of that exact name, if there is one.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_has_the_same_layouts() {
        assert_eq!(LayoutKind::ALL.map(LayoutKind::name), *gpuemu_contract::keys::LAYOUTS);
    }
}
