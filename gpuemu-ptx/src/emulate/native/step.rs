//! Operations that machine code is made of: what the commonest instructions do to rows of lanes.

use crate::emulate::op::Op;
use crate::emulate::registers::FULL;
use crate::program::{
    Compare, Form, Function, Instruction, Opcode, Operand, Program, Rounding, ScalarType, Space, Word,
};

/// What an operation computes. Of 32 bits a lane where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `d = a op b`, as binary32.
    Float(Float),
    /// `fma.rn.f32`.
    Fma,
    /// `neg.f32`.
    NegateFloat,
    /// `abs.f32`.
    AbsoluteFloat,
    /// `cvt.rn.f32.s32`.
    ToFloat,
    /// `d = a op b`.
    Integer(Integer),
    /// `mad.lo`.
    MultiplyAdd,
    /// `not`.
    Not,
    /// A copy.
    Copy,
    /// As `Integer`, of 64 bits: sums and bits only.
    Wide(Integer),
    /// A copy of 64 bits.
    CopyWide,
    /// `shl.b64` and `shr.u64`, by 32 bits.
    ShiftWide {
        /// To the left.
        left: bool,
    },
    /// `mul.wide`: 32 bits by 32 to 64; with a third operand of 64 bits, `mad.wide`.
    Product {
        /// Of numbers with a sign.
        signed: bool,
        /// Whether the third operand is added.
        sum: bool,
    },
    /// 32 bits to 64.
    Extend {
        /// By the sign.
        signed: bool,
    },
    /// 64 bits to 32.
    Cut,
    /// A predicate from a comparison of floats, by the predicate of `vcmpps`.
    CompareFloat(u8),
    /// A predicate from a comparison.
    Compare {
        /// Which.
        how: Relation,
        /// Of numbers with a sign.
        signed: bool,
    },
    /// `selp`.
    Select,
    /// `selp` of 64 bits.
    SelectWide,
    /// `d = a op b` on predicates.
    Truths(Logic),
    /// `shfl.sync.bfly` of the whole warp.
    Butterfly(u32),
}

/// An operation of binary32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Float {
    Add,
    Subtract,
    Multiply,
    Min,
    Max,
}

/// An operation of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Integer {
    Add,
    Subtract,
    Multiply,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftSigned,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
}

/// How integers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// An operation of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Logic {
    And,
    Or,
    Xor,
    Not,
    Copy,
}

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Nothing, or no row.
    None,
    /// A row.
    Narrow,
    /// Two rows.
    Wide,
}

impl Kind {
    /// How the result and the operands `a`, `b` and `c` lie.
    pub fn widths(self) -> [Width; 4] {
        use Width::{Narrow, None, Wide};
        match self {
            Self::Float(_) | Self::Integer(_) => [Narrow, Narrow, Narrow, None],
            Self::Fma | Self::MultiplyAdd => [Narrow; 4],
            Self::NegateFloat | Self::AbsoluteFloat | Self::ToFloat | Self::Not | Self::Copy | Self::Butterfly(_) => {
                [Narrow, Narrow, None, None]
            }
            Self::Wide(_) => [Wide, Wide, Wide, None],
            Self::CopyWide => [Wide, Wide, None, None],
            Self::ShiftWide { .. } => [Wide, Wide, Narrow, None],
            Self::Product { sum: false, .. } => [Wide, Narrow, Narrow, None],
            Self::Product { sum: true, .. } => [Wide, Narrow, Narrow, Wide],
            Self::Extend { .. } => [Wide, Narrow, None, None],
            Self::Cut => [Narrow, Wide, None, None],
            Self::CompareFloat(_) | Self::Compare { .. } => [None, Narrow, Narrow, None],
            Self::Select => [Narrow, Narrow, Narrow, None],
            Self::SelectWide => [Wide, Wide, Wide, None],
            Self::Truths(_) => [None; 4],
        }
    }
}

/// The predicate of `vcmpps` for a comparison of PTX; none of them signals.
fn compare_float(compare: Compare) -> Option<u8> {
    Some(match compare {
        Compare::Equal => 0x00,
        Compare::NotEqual => 0x0c,
        Compare::Less => 0x11,
        Compare::LessEqual => 0x12,
        Compare::Greater => 0x1e,
        Compare::GreaterEqual => 0x1d,
        Compare::EqualUnordered => 0x08,
        Compare::NotEqualUnordered => 0x04,
        Compare::LessUnordered => 0x19,
        Compare::LessEqualUnordered => 0x1a,
        Compare::GreaterUnordered => 0x16,
        Compare::GreaterEqualUnordered => 0x15,
        Compare::Ordered => 0x07,
        Compare::Unordered => 0x03,
        _ => return None,
    })
}

fn relation(compare: Compare) -> Option<Relation> {
    Some(match compare {
        Compare::Equal => Relation::Equal,
        Compare::NotEqual => Relation::NotEqual,
        Compare::Less | Compare::Lower => Relation::Less,
        Compare::LessEqual | Compare::LowerSame => Relation::LessEqual,
        Compare::Greater | Compare::Higher => Relation::Greater,
        Compare::GreaterEqual | Compare::HigherSame => Relation::GreaterEqual,
        _ => return None,
    })
}

/// What the only operation of an instruction computes; `None` where machine code does not know it.
pub fn kind(program: &Program, function: &Function, instruction: &Instruction, op: &Op) -> Option<Kind> {
    use ScalarType::{B32, B64, F32, Predicate, S32, S64, U32, U64};
    if op.guard != 0 {
        return None;
    }
    let form = program.form(instruction.form);
    let types = form.types.as_slice();
    let has = |word| form.has(word);
    let integer = |kind| match types {
        [U32 | S32 | B32] => Some(Kind::Integer(kind)),
        [U64 | S64 | B64] => Some(Kind::Wide(kind)),
        _ => None,
    };
    let narrow = |kind| matches!(types, [U32 | S32 | B32]).then_some(Kind::Integer(kind));
    // Whatever changes what it computes stands in a modifier beside the type.
    let plain = form.modifiers.len() == types.len();
    let signed = types.first().is_some_and(|ty| ty.is_signed());
    let operands = function.operands_of(instruction);
    match form.opcode {
        Opcode::Add
        | Opcode::Sub
        | Opcode::Mul
        | Opcode::Fma
        | Opcode::Min
        | Opcode::Max
        | Opcode::Neg
        | Opcode::Abs
            if types == [F32] =>
        {
            let nearest = form.rounding == Some(Rounding::Nearest) && form.modifiers.len() == 2;
            let rounds_so = nearest || plain && form.opcode != Opcode::Fma;
            if !rounds_so || operands.len() > 4 {
                return None;
            }
            Some(match form.opcode {
                Opcode::Add => Kind::Float(Float::Add),
                Opcode::Sub => Kind::Float(Float::Subtract),
                Opcode::Mul => Kind::Float(Float::Multiply),
                Opcode::Min if operands.len() == 3 => Kind::Float(Float::Min),
                Opcode::Max if operands.len() == 3 => Kind::Float(Float::Max),
                Opcode::Fma => Kind::Fma,
                Opcode::Neg => Kind::NegateFloat,
                Opcode::Abs => Kind::AbsoluteFloat,
                _ => return None,
            })
        }
        Opcode::Add if plain => integer(Integer::Add),
        Opcode::Sub if plain => integer(Integer::Subtract),
        Opcode::Mul | Opcode::Mad if has(Word::Wide) && form.modifiers.len() == 2 && matches!(types, [U32 | S32]) => {
            Some(Kind::Product { signed, sum: form.opcode == Opcode::Mad })
        }
        Opcode::Mul if has(Word::Lo) && form.modifiers.len() == 2 => narrow(Integer::Multiply),
        Opcode::Mad if has(Word::Lo) && form.modifiers.len() == 2 => {
            narrow(Integer::Multiply).map(|_| Kind::MultiplyAdd)
        }
        Opcode::Min | Opcode::Max if plain && matches!(types, [U32 | S32]) => {
            Some(Kind::Integer(match (form.opcode, signed) {
                (Opcode::Min, true) => Integer::MinSigned,
                (Opcode::Min, false) => Integer::MinUnsigned,
                (_, true) => Integer::MaxSigned,
                (_, false) => Integer::MaxUnsigned,
            }))
        }
        // A result that nobody wants has no place.
        Opcode::And | Opcode::Or | Opcode::Xor | Opcode::Not | Opcode::Mov if types == [Predicate] && op.d <= 0 => None,
        Opcode::And | Opcode::Or | Opcode::Xor if types == [Predicate] => Some(Kind::Truths(match form.opcode {
            Opcode::And => Logic::And,
            Opcode::Or => Logic::Or,
            _ => Logic::Xor,
        })),
        Opcode::Not if types == [Predicate] => Some(Kind::Truths(Logic::Not)),
        Opcode::Mov if types == [Predicate] => Some(Kind::Truths(Logic::Copy)),
        Opcode::And => integer(Integer::And),
        Opcode::Or => integer(Integer::Or),
        Opcode::Xor => integer(Integer::Xor),
        Opcode::Not if types == [B32] => Some(Kind::Not),
        Opcode::Shl if plain && types == [B32] => narrow(Integer::ShiftLeft),
        Opcode::Shl if plain && types == [B64] => Some(Kind::ShiftWide { left: true }),
        Opcode::Shr if plain && matches!(types, [B32 | U32]) => narrow(Integer::ShiftRight),
        Opcode::Shr if plain && types == [S32] => narrow(Integer::ShiftSigned),
        Opcode::Shr if plain && matches!(types, [B64 | U64]) => Some(Kind::ShiftWide { left: false }),
        Opcode::Mov if plain && form.vector == 1 && !packs(operands) => match types {
            [U32 | S32 | B32 | F32] => Some(Kind::Copy),
            [ty] if ty.bits() == 64 => Some(Kind::CopyWide),
            _ => None,
        },
        Opcode::Cvt => convert(form),
        // To and from global memory.
        Opcode::Cvta if op.imm == 0 && form.space != Some(Space::Parameter) => Some(Kind::CopyWide),
        Opcode::Setp if op.c == 0 && op.e == 0 && op.d > 0 && operands.len() == 3 => {
            let plain = form.modifiers.len() == 2;
            match types {
                [F32] if plain => compare_float(form.compare?).map(Kind::CompareFloat),
                [U32 | S32 | B32] if plain => Some(Kind::Compare { how: relation(form.compare?)?, signed }),
                _ => None,
            }
        }
        Opcode::Selp => match types {
            [ty] if ty.bits() == 32 => Some(Kind::Select),
            [ty] if ty.bits() == 64 => Some(Kind::SelectWide),
            _ => None,
        },
        Opcode::Shfl => butterfly(form, operands, op),
        _ => None,
    }
}

/// Whether a `mov` puts a value together or takes it apart.
fn packs(operands: &[Operand]) -> bool {
    operands.iter().any(|operand| matches!(operand, Operand::Vector(_)))
}

fn convert(form: &Form) -> Option<Kind> {
    use ScalarType::{F32, S32, S64, U32, U64};
    let [to, from] = *form.types.as_slice() else { return None };
    match (form.modifiers.len(), to, from) {
        (2, U64, U32) | (2, S64, U32) => Some(Kind::Extend { signed: false }),
        (2, U64 | S64, S32) => Some(Kind::Extend { signed: true }),
        (2, U32 | S32, U64 | S64) => Some(Kind::Cut),
        (3, F32, S32) if form.rounding == Some(Rounding::Nearest) => Some(Kind::ToFloat),
        _ => None,
    }
}

/// A butterfly of the whole warp by a power of two, which has no predicate.
fn butterfly(form: &Form, operands: &[Operand], op: &Op) -> Option<Kind> {
    let number = |index: usize| match operands.get(index) {
        Some(Operand::Integer(bits)) => Some(*bits as u32),
        _ => None,
    };
    let by = number(2)?;
    let whole = form.has(Word::Bfly) && form.has(Word::Sync) && number(3)? == 31 && number(4)? == FULL;
    (whole && op.e == 0 && by.is_power_of_two() && by < 32).then_some(Kind::Butterfly(by))
}
