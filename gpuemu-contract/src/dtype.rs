//! Element types a tensor may have, and the working precisions a kernel may compute in.

use std::fmt;

/// The element type of a tensor. Names are those of NumPy, `ml_dtypes` and PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE binary64.
    Float64,
    /// IEEE binary32.
    Float32,
    /// IEEE binary16.
    Float16,
    /// The upper half of a binary32: 8 exponent bits, 7 fraction bits.
    BFloat16,
    /// fp8 e4m3fn (OCP 8-bit floating point): no infinities, largest magnitude 448, one NaN pattern per sign.
    Float8E4M3,
    /// fp8 e5m2 (OCP 8-bit floating point): infinities and NaNs as in IEEE, largest magnitude 57344.
    Float8E5M2,
    /// Signed, 8 bits.
    Int8,
    /// Signed, 16 bits.
    Int16,
    /// Signed, 32 bits.
    Int32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 8 bits.
    UInt8,
    /// Unsigned, 16 bits.
    UInt16,
    /// Unsigned, 32 bits.
    UInt32,
    /// Unsigned, 64 bits.
    UInt64,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every dtype, in the order in which documentation lists them.
    pub const ALL: [DType; 15] = [
        DType::Float64,
        DType::Float32,
        DType::Float16,
        DType::BFloat16,
        DType::Float8E4M3,
        DType::Float8E5M2,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Bool,
    ];

    /// The name used in `gpuemu.toml`, in test names and in specs.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Float64 => "float64",
            DType::Float32 => "float32",
            DType::Float16 => "float16",
            DType::BFloat16 => "bfloat16",
            DType::Float8E4M3 => "float8_e4m3fn",
            DType::Float8E5M2 => "float8_e5m2",
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::UInt8 => "uint8",
            DType::UInt16 => "uint16",
            DType::UInt32 => "uint32",
            DType::UInt64 => "uint64",
            DType::Bool => "bool",
        }
    }

    /// The dtype of that exact name, if there is one.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Float64 | DType::Int64 | DType::UInt64 => 8,
            DType::Float32 | DType::Int32 | DType::UInt32 => 4,
            DType::Float16 | DType::BFloat16 | DType::Int16 | DType::UInt16 => 2,
            DType::Float8E4M3 | DType::Float8E5M2 | DType::Int8 | DType::UInt8 | DType::Bool => 1,
        }
    }

    /// Whether values are floating point.
    pub const fn is_float(self) -> bool {
        self.fraction_bits().is_some()
    }

    /// Stored fraction bits of a floating-point dtype (without the hidden bit): 52, 23, 10, 7, 3 or 2.
    pub const fn fraction_bits(self) -> Option<u32> {
        match self {
            DType::Float64 => Some(52),
            DType::Float32 => Some(23),
            DType::Float16 => Some(10),
            DType::BFloat16 => Some(7),
            DType::Float8E4M3 => Some(3),
            DType::Float8E5M2 => Some(2),
            _ => None,
        }
    }

    /// Exponent of the smallest normal number (a power of two) of a floating-point dtype.
    pub const fn min_exponent(self) -> Option<i32> {
        match self {
            DType::Float64 => Some(-1022),
            DType::Float32 | DType::BFloat16 => Some(-126),
            DType::Float16 | DType::Float8E5M2 => Some(-14),
            DType::Float8E4M3 => Some(-6),
            _ => None,
        }
    }

    /// The largest finite magnitude of a floating-point dtype.
    pub const fn max_finite(self) -> Option<f64> {
        match self {
            DType::Float64 => Some(f64::MAX),
            DType::Float32 => Some(f32::MAX as f64),
            DType::Float16 => Some(65504.0),
            // 0x7f7f: (2 - 2^-7) * 2^127
            DType::BFloat16 => Some(3.3895313892515355e38),
            DType::Float8E4M3 => Some(448.0),
            DType::Float8E5M2 => Some(57344.0),
            _ => None,
        }
    }

    /// Whether the dtype has infinities (fp8 e4m3fn has none).
    pub const fn has_infinity(self) -> bool {
        self.is_float() && !matches!(self, DType::Float8E4M3)
    }

    /// Smallest and largest value of an integer or bool dtype.
    pub const fn integer_range(self) -> Option<(i128, i128)> {
        match self {
            DType::Int8 => Some((i8::MIN as i128, i8::MAX as i128)),
            DType::Int16 => Some((i16::MIN as i128, i16::MAX as i128)),
            DType::Int32 => Some((i32::MIN as i128, i32::MAX as i128)),
            DType::Int64 => Some((i64::MIN as i128, i64::MAX as i128)),
            DType::UInt8 => Some((0, u8::MAX as i128)),
            DType::UInt16 => Some((0, u16::MAX as i128)),
            DType::UInt32 => Some((0, u32::MAX as i128)),
            DType::UInt64 => Some((0, u64::MAX as i128)),
            DType::Bool => Some((0, 1)),
            _ => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The precision a correct kernel may compute in, whatever its tensors are stored as (`compute` of an op).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Compute {
    /// binary64 arithmetic.
    Float64,
    /// binary32 arithmetic; the default for every dtype but float64.
    Float32,
    /// binary32 accumulation of products whose factors keep 10 fraction bits.
    Tf32,
    /// binary16 arithmetic.
    Float16,
    /// bfloat16 arithmetic.
    BFloat16,
    /// Factors of products in fp8 (3 fraction bits), binary32 accumulation.
    Float8,
}

impl Compute {
    /// Every working precision.
    pub const ALL: [Compute; 6] =
        [Compute::Float64, Compute::Float32, Compute::Tf32, Compute::Float16, Compute::BFloat16, Compute::Float8];

    /// The name used in `gpuemu.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Compute::Float64 => "float64",
            Compute::Float32 => "float32",
            Compute::Tf32 => "tf32",
            Compute::Float16 => "float16",
            Compute::BFloat16 => "bfloat16",
            Compute::Float8 => "float8",
        }
    }

    /// The working precision of that exact name, if there is one.
    pub fn from_name(name: &str) -> Option<Compute> {
        Compute::ALL.into_iter().find(|compute| compute.name() == name)
    }

    /// Unit roundoff: half the distance from 1 to the next larger number of this precision.
    pub const fn unit_roundoff(self) -> f64 {
        match self {
            Compute::Float64 => 1.1102230246251565e-16,       // 2^-53
            Compute::Float32 => 5.960464477539063e-8,         // 2^-24
            Compute::Tf32 | Compute::Float16 => 4.8828125e-4, // 2^-11
            Compute::BFloat16 => 3.90625e-3,                  // 2^-8
            Compute::Float8 => 6.25e-2,                       // 2^-4
        }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
