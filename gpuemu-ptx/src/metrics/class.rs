//! Kinds of instructions, by the unit they keep busy.

use crate::program::{Form, Opcode, ScalarType, Space, Word};

/// What kind of unit an instruction keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Integer arithmetic: addition, multiplication, minima, bit fields, shifts, logic.
    Integer,
    /// Arithmetic in float16 and bfloat16, packed or not.
    Half,
    /// Arithmetic in float32.
    Single,
    /// Arithmetic in float64.
    Double,
    /// Approximate functions: reciprocals, roots, exponentials, logarithms, sines. Divisions of floats among them.
    Special,
    /// Comparisons, selections, logic on predicates.
    Predicate,
    /// Conversions between types.
    Conversion,
    /// Moves and permutations of bytes, addresses between spaces.
    Move,
    /// Loads from parameters and constants.
    Constant,
    /// Loads and stores of global memory, or by a generic address.
    Global,
    /// Loads and stores of shared memory, of matrices too.
    Shared,
    /// Loads and stores of local memory.
    Local,
    /// Atomics and reductions in memory.
    Atomic,
    /// Asynchronous copies, and the waits for them.
    Copy,
    /// Matrix products.
    Matrix,
    /// Exchanges within a warp: shuffles, votes, matches, reductions.
    Warp,
    /// Barriers of every kind and fences.
    Synchronisation,
    /// Branches, calls, returns.
    Control,
    /// Textures and surfaces.
    Texture,
    /// Everything else: clocks, hints, traps.
    Other,
}

impl Class {
    /// Every class, in order.
    pub const ALL: [Self; 20] = [
        Self::Integer,
        Self::Half,
        Self::Single,
        Self::Double,
        Self::Special,
        Self::Predicate,
        Self::Conversion,
        Self::Move,
        Self::Constant,
        Self::Global,
        Self::Shared,
        Self::Local,
        Self::Atomic,
        Self::Copy,
        Self::Matrix,
        Self::Warp,
        Self::Synchronisation,
        Self::Control,
        Self::Texture,
        Self::Other,
    ];

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Half => "half",
            Self::Single => "single",
            Self::Double => "double",
            Self::Special => "special",
            Self::Predicate => "predicate",
            Self::Conversion => "conversion",
            Self::Move => "move",
            Self::Constant => "constant",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Atomic => "atomic",
            Self::Copy => "copy",
            Self::Matrix => "matrix",
            Self::Warp => "warp",
            Self::Synchronisation => "synchronisation",
            Self::Control => "control",
            Self::Texture => "texture",
            Self::Other => "other",
        }
    }

    /// The class of a form.
    pub fn of(form: &Form) -> Self {
        use Opcode::*;
        match form.opcode {
            Ld | Ldu | St => match form.space {
                Some(Space::Shared) => Self::Shared,
                Some(Space::Local) => Self::Local,
                Some(Space::Parameter | Space::Constant) => Self::Constant,
                _ => Self::Global,
            },
            Multimem => Self::Global,
            Ldmatrix | Stmatrix => Self::Shared,
            Wmma if form.has(Word::Load) || form.has(Word::Store) => match form.space {
                Some(Space::Shared) => Self::Shared,
                _ => Self::Global,
            },
            Wgmma if !form.has(Word::MmaAsync) => Self::Synchronisation,
            Mma | Wmma | Wgmma | Tcgen05 => Self::Matrix,
            Atom | Red => Self::Atomic,
            Cp | Tensormap => Self::Copy,
            Bar | Barrier | Mbarrier | Fence | Membar | Griddepcontrol => Self::Synchronisation,
            Shfl | Vote | Match | Redux | Activemask | Elect | Movmatrix => Self::Warp,
            Bra | Brx | Call | Ret | Exit => Self::Control,
            Tex | Tld4 | Txq | Suld | Sust | Sured | Suq => Self::Texture,
            Cvt | Szext => Self::Conversion,
            Mov | Cvta | Prmt | Mapa | Getctarank | Stacksave | Stackrestore | Alloca => Self::Move,
            Setp | Selp | Testp | Isspacep | Istypep => Self::Predicate,
            Set | Slct => Self::Predicate,
            And | Or | Xor | Not if form.types.first() == Some(&ScalarType::Predicate) => Self::Predicate,
            Rcp | Rsqrt | Sqrt | Sin | Cos | Lg2 | Ex2 | Tanh => match form.types.first() {
                Some(ScalarType::F64) => Self::Double,
                _ => Self::Special,
            },
            Div if form.types.first().is_some_and(|ty| ty.is_float() && *ty != ScalarType::F64) => Self::Special,
            Abs | Neg | Add | Addc | Sub | Subc | Mul | Mad | Madc | Fma | Min | Max | Copysign | Div | Rem => {
                match form.types.first() {
                    Some(ScalarType::F64) => Self::Double,
                    Some(ScalarType::F32 | ScalarType::F32x2) => Self::Single,
                    Some(ty) if ty.is_float() => Self::Half,
                    _ => Self::Integer,
                }
            }
            And | Or | Xor | Not | Cnot | Lop3 | Shl | Shr | Shf | Bfe | Bfi | Bfind | Bmsk | Brev | Clz | Popc
            | Fns => Self::Integer,
            Mul24 | Mad24 | Sad | Dp2a | Dp4a => Self::Integer,
            Vabsdiff | Vabsdiff2 | Vabsdiff4 | Vadd | Vadd2 | Vadd4 | Vavrg2 | Vavrg4 | Vmad | Vmax | Vmax2 | Vmax4 => {
                Self::Integer
            }
            Vmin | Vmin2 | Vmin4 | Vset | Vset2 | Vset4 | Vshl | Vshr | Vsub | Vsub2 | Vsub4 => Self::Integer,
            Applypriority | Brkpt | Clusterlaunchcontrol | Createpolicy | Discard | Nanosleep | Pmevent | Prefetch
            | Prefetchu | Setmaxnreg | Trap => Self::Other,
        }
    }
}
