//! The types, spaces and small vocabularies of instructions.

pub use crate::parse::{Linkage, Space, Type};

/// An enum whose variants are words of PTX.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident $text:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names are PTX's own")]
        pub enum $name { $($(#[$inner])* $variant),* }

        impl $name {
            /// Every one of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As PTX writes it, without the dot.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The one that PTX writes so.
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What an instruction makes of the bits of its operands.
    ScalarType {
        Predicate "pred",
        B1 "b1", B8 "b8", B16 "b16", B32 "b32", B64 "b64", B128 "b128",
        U2 "u2", U4 "u4", U8 "u8", U16 "u16", U32 "u32", U64 "u64", U128 "u128",
        S2 "s2", S4 "s4", S8 "s8", S16 "s16", S32 "s32", S64 "s64", S128 "s128",
        U16x2 "u16x2", S16x2 "s16x2", U8x4 "u8x4", S8x4 "s8x4",
        F16 "f16", F16x2 "f16x2", Bf16 "bf16", Bf16x2 "bf16x2", Tf32 "tf32",
        F32 "f32", F32x2 "f32x2", F64 "f64",
        E4m3 "e4m3", E5m2 "e5m2", E3m2 "e3m2", E2m3 "e2m3", E2m1 "e2m1", Ue8m0 "ue8m0", Ue4m3 "ue4m3",
        E4m3x2 "e4m3x2", E5m2x2 "e5m2x2", E3m2x2 "e3m2x2", E2m3x2 "e2m3x2", E2m1x2 "e2m1x2", Ue8m0x2 "ue8m0x2",
        S2f6x2 "s2f6x2",
        E4m3x4 "e4m3x4", E5m2x4 "e5m2x4", E3m2x4 "e3m2x4", E2m3x4 "e2m3x4", E2m1x4 "e2m1x4",
        B8x16 "b8x16", B6x16P32 "b6x16_p32", B4x16P64 "b4x16_p64", B6p2x16 "b6p2x16", B4x16 "b4x16",
        TextureReference "texref", SamplerReference "samplerref", SurfaceReference "surfref",
    }
}

impl ScalarType {
    /// Its width in bits; 1 for a predicate, 64 for the opaque ones.
    pub fn bits(self) -> u32 {
        use ScalarType::*;
        match self {
            Predicate | B1 => 1,
            U2 | S2 => 2,
            U4 | S4 | E2m1 => 4,
            E3m2 | E2m3 => 6,
            B8 | U8 | S8 | E4m3 | E5m2 | Ue8m0 | Ue4m3 | E2m1x2 => 8,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 | E3m2x2 | E2m3x2 | Ue8m0x2 | S2f6x2 | E2m1x4 => 16,
            B32 | U32 | S32 | F32 | Tf32 | F16x2 | Bf16x2 | U16x2 | S16x2 | U8x4 | S8x4 => 32,
            E4m3x4 | E5m2x4 | E3m2x4 | E2m3x4 => 32,
            B64 | U64 | S64 | F64 | F32x2 | TextureReference | SamplerReference | SurfaceReference => 64,
            B128 | U128 | S128 | B8x16 | B6x16P32 | B4x16P64 | B6p2x16 => 128,
            B4x16 => 64,
        }
    }

    /// Its width in bytes, rounded up.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether arithmetic in it is floating-point, packed forms included.
    pub fn is_float(self) -> bool {
        use ScalarType::*;
        matches!(
            self,
            F16 | F16x2 | Bf16 | Bf16x2 | Tf32 | F32 | F32x2 | F64 | E4m3 | E5m2 | E3m2 | E2m3 | E2m1 | Ue8m0 | Ue4m3
        ) || matches!(self, E4m3x2 | E5m2x2 | E3m2x2 | E2m3x2 | E2m1x2 | Ue8m0x2)
            || matches!(self, E4m3x4 | E5m2x4 | E3m2x4 | E2m3x4 | E2m1x4)
    }

    /// Whether it is a signed integer, packed forms included.
    pub fn is_signed(self) -> bool {
        use ScalarType::*;
        matches!(self, S2 | S4 | S8 | S16 | S32 | S64 | S128 | S16x2 | S8x4)
    }

    /// How many values lie side by side in it.
    pub fn lanes(self) -> u32 {
        use ScalarType::*;
        match self {
            U16x2 | S16x2 | F16x2 | Bf16x2 | F32x2 | E4m3x2 | E5m2x2 | E3m2x2 | E2m3x2 | E2m1x2 | Ue8m0x2 | S2f6x2 => 2,
            U8x4 | S8x4 | E4m3x4 | E5m2x4 | E3m2x4 | E2m3x4 | E2m1x4 => 4,
            B8x16 | B6x16P32 | B4x16P64 | B6p2x16 | B4x16 => 16,
            _ => 1,
        }
    }
}

impl From<Type> for ScalarType {
    fn from(declared: Type) -> Self {
        match declared {
            Type::B8 => Self::B8,
            Type::B16 => Self::B16,
            Type::B32 => Self::B32,
            Type::B64 => Self::B64,
            Type::B128 => Self::B128,
            Type::U8 => Self::U8,
            Type::U16 => Self::U16,
            Type::U32 => Self::U32,
            Type::U64 => Self::U64,
            Type::S8 => Self::S8,
            Type::S16 => Self::S16,
            Type::S32 => Self::S32,
            Type::S64 => Self::S64,
            Type::F16 => Self::F16,
            Type::F16x2 => Self::F16x2,
            Type::Bf16 => Self::Bf16,
            Type::Bf16x2 => Self::Bf16x2,
            Type::F32 => Self::F32,
            Type::F64 => Self::F64,
            Type::Predicate => Self::Predicate,
            Type::TextureReference => Self::TextureReference,
            Type::SamplerReference => Self::SamplerReference,
            Type::SurfaceReference => Self::SurfaceReference,
        }
    }
}

words! {
    /// How an inexact result is rounded: to a float (`rn` to `rs`) or to an integral value (`rni` to `rpi`).
    Rounding {
        /// To nearest, ties to even.
        Nearest "rn",
        /// Toward zero.
        Zero "rz",
        /// Toward minus infinity.
        Down "rm",
        /// Toward plus infinity.
        Up "rp",
        /// To nearest, ties away from zero.
        NearestAway "rna",
        /// Stochastic.
        Stochastic "rs",
        IntegerNearest "rni", IntegerZero "rzi", IntegerDown "rmi", IntegerUp "rpi",
    }
}

words! {
    /// A comparison of `set` and `setp`.
    Compare {
        Equal "eq", NotEqual "ne", Less "lt", LessEqual "le", Greater "gt", GreaterEqual "ge",
        Lower "lo", LowerSame "ls", Higher "hi", HigherSame "hs",
        EqualUnordered "equ", NotEqualUnordered "neu", LessUnordered "ltu", LessEqualUnordered "leu",
        GreaterUnordered "gtu", GreaterEqualUnordered "geu", Ordered "num", Unordered "nan",
    }
}

words! {
    /// The threads that a memory operation is seen by, in order of size.
    Scope { Block "cta", Cluster "cluster", Device "gpu", System "sys" }
}

words! {
    /// The memory order of a load, store, atomic or fence.
    Order {
        Weak "weak", Volatile "volatile", Relaxed "relaxed", Acquire "acquire", Release "release",
        AcquireRelease "acq_rel", Sequential "sc", Mmio "mmio",
    }
}

words! {
    /// What an atomic, a reduction, a vote or a video instruction does to its values.
    Operation {
        And "and", Or "or", Xor "xor", Not "not", Add "add", Increment "inc", Decrement "dec", Minimum "min",
        Maximum "max", Exchange "exch", CompareAndSwap "cas", PopulationCount "popc", All "all", Any "any",
        Uniform "uni", Ballot "ballot",
    }
}

/// `m16n8k16`: the extents of a matrix operation, 0 for one not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of the result.
    pub m: u16,
    /// Columns of the result.
    pub n: u16,
    /// Terms of each sum.
    pub k: u16,
}

impl Shape {
    /// `m16n8k16`, `m8n8`.
    pub fn from_text(text: &str) -> Option<Self> {
        let (m, rest) = text.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k').unwrap_or((rest, "0"));
        let number = |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        Some(Self { m: number(m)?, n: number(n)?, k: number(k)? })
    }
}
