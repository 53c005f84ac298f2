//! Comparisons and what is chosen by them: `setp`, `set`, `selp`, `slct`.

use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Compare, FromTruth, Op, Select, Ternary};
use crate::emulate::registers::Lane;
use crate::numerics::float::{self as fl, Comparison};
use crate::numerics::half::{bf16_to_f32, f16_to_f32, flush_f16};
use crate::program::{Compare as Comparing, Opcode, Operand, Operation, ScalarType, Word};

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Selp => selp(d),
        Opcode::Slct => slct(d),
        Opcode::Setp => setp(d),
        Opcode::Set => set(d),
        _ => refuse("it is not known"),
    }
}

/// Emits a comparison: predicates `p` and `q` (0 for none) from operands `a` and `b`, combined with a predicate.
pub fn emit<A: Lane, B: Lane, F: Fn(u64, A, B) -> bool + Copy>(
    d: &mut Decoder<'_>,
    (p, q): (i32, i32),
    (a, b): (i32, i32),
    (with, how): (i32, u64),
    imm: u64,
    _: F,
) {
    // A result that nobody wants still needs a place.
    let p = if p == 0 { d.temporary_predicate() } else { p };
    d.emit(Op { d: p, a, b, c: with, e: q, imm: imm | how << 62, ..d.op_of::<Compare<F, A, B>>() });
}

/// Where a comparison's results go, and what it is combined with.
struct Targets {
    to: (i32, i32),
    with: (i32, u64),
}

fn targets(d: &mut Decoder<'_>) -> Decoded<Targets> {
    let to = match d.operand(0)? {
        Operand::Pair(p, q) => (p.map_or(0, |p| d.slot(p)), q.map_or(0, |q| d.slot(q))),
        operand => (d.truth_destination(operand)?, 0),
    };
    Ok(Targets { to, with: with(d)? })
}

fn with(d: &Decoder<'_>) -> Decoded<(i32, u64)> {
    if !d.has_operand(3) {
        return Ok((0, 0));
    }
    let how = match d.form.operation {
        Some(Operation::Or) => 1,
        Some(Operation::Xor) => 2,
        _ => 0,
    };
    Ok((d.truth(d.operand(3)?)?, how))
}

fn setp(d: &mut Decoder<'_>) -> Decoded {
    let targets = targets(d)?;
    let ty = d.ty()?;
    if ty.lanes() == 2 {
        return packed(d, ty, targets);
    }
    compare(d, ty, targets)
}

fn comparison(compare: Comparing) -> Decoded<Comparison> {
    Ok(match compare {
        Comparing::Equal => Comparison::Eq,
        Comparing::NotEqual => Comparison::Ne,
        Comparing::Less => Comparison::Lt,
        Comparing::LessEqual => Comparison::Le,
        Comparing::Greater => Comparison::Gt,
        Comparing::GreaterEqual => Comparison::Ge,
        Comparing::EqualUnordered => Comparison::Equ,
        Comparing::NotEqualUnordered => Comparison::Neu,
        Comparing::LessUnordered => Comparison::Ltu,
        Comparing::LessEqualUnordered => Comparison::Leu,
        Comparing::GreaterUnordered => Comparison::Gtu,
        Comparing::GreaterEqualUnordered => Comparison::Geu,
        Comparing::Ordered => Comparison::Num,
        Comparing::Unordered => Comparison::Nan,
        _ => return refuse("floats are not compared so"),
    })
}

/// The comparison by number, for closures that take it at run time.
fn numbered(k: u64) -> Comparison {
    use Comparison::*;
    [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan][(k & 15).min(13) as usize]
}

fn compare(d: &mut Decoder<'_>, ty: ScalarType, targets: Targets) -> Decoded {
    use Comparing::*;
    let Some(compare) = d.form.compare else { return refuse("it compares nothing") };
    let ftz = d.form.has(Word::Ftz);
    let Targets { to, with } = targets;
    macro_rules! integers {
        ($t:ty) => {{
            let ab = (d.source::<$t>(1)?, d.source::<$t>(2)?);
            match compare {
                Equal => emit(d, to, ab, with, 0, |_, a: $t, b: $t| a == b),
                NotEqual => emit(d, to, ab, with, 0, |_, a: $t, b: $t| a != b),
                Less | Lower => emit(d, to, ab, with, 0, |_, a: $t, b: $t| a < b),
                LessEqual | LowerSame => emit(d, to, ab, with, 0, |_, a: $t, b: $t| a <= b),
                Greater | Higher => emit(d, to, ab, with, 0, |_, a: $t, b: $t| a > b),
                GreaterEqual | HigherSame => emit(d, to, ab, with, 0, |_, a: $t, b: $t| a >= b),
                _ => return refuse("integers are not compared so"),
            }
        }};
    }
    macro_rules! floats {
        ($t:ty, $compare:expr) => {{
            let ab = (d.source::<$t>(1)?, d.source::<$t>(2)?);
            match comparison(compare)? {
                Comparison::Eq => emit(d, to, ab, with, 0, |_, a: $t, b: $t| $compare(a, b, Comparison::Eq)),
                Comparison::Lt => emit(d, to, ab, with, 0, |_, a: $t, b: $t| $compare(a, b, Comparison::Lt)),
                Comparison::Gt => emit(d, to, ab, with, 0, |_, a: $t, b: $t| $compare(a, b, Comparison::Gt)),
                Comparison::Nan => emit(d, to, ab, with, 0, |_, a: $t, b: $t| $compare(a, b, Comparison::Nan)),
                other => emit(d, to, ab, with, other as u64, |k, a: $t, b: $t| $compare(a, b, numbered(k))),
            }
        }};
    }
    match ty {
        ScalarType::B16 | ScalarType::U16 => integers!(u16),
        ScalarType::S16 => integers!(i16),
        ScalarType::B32 | ScalarType::U32 => integers!(u32),
        ScalarType::S32 => integers!(i32),
        ScalarType::B64 | ScalarType::U64 => integers!(u64),
        ScalarType::S64 => integers!(i64),
        ScalarType::F32 if ftz => {
            let ab = (d.source::<u32>(1)?, d.source::<u32>(2)?);
            let other = comparison(compare)? as u64;
            emit(d, to, ab, with, other, |k, a: u32, b: u32| {
                fl::compare32(fl::flush32(a), fl::flush32(b), numbered(k))
            });
        }
        ScalarType::F32 => floats!(u32, fl::compare32),
        ScalarType::F64 => floats!(u64, fl::compare64),
        ScalarType::F16 => {
            let ab = (d.source::<u16>(1)?, d.source::<u16>(2)?);
            let imm = comparison(compare)? as u64 | u64::from(ftz) << 4;
            emit(d, to, ab, with, imm, |k, a: u16, b: u16| compare_f16(k, a, b));
        }
        ScalarType::Bf16 => {
            let ab = (d.source::<u16>(1)?, d.source::<u16>(2)?);
            let imm = comparison(compare)? as u64;
            emit(d, to, ab, with, imm, |k, a: u16, b: u16| compare_bf16(k, a, b));
        }
        _ => return refuse("values of its type are not compared"),
    }
    Ok(())
}

/// Bits 0 to 3 of `k`: the comparison; bit 4: flush subnormals.
#[inline(always)]
fn compare_f16(k: u64, a: u16, b: u16) -> bool {
    let value = |x: u16| f16_to_f32(if k & 16 != 0 { flush_f16(x) } else { x });
    fl::compare32(value(a), value(b), numbered(k))
}

#[inline(always)]
fn compare_bf16(k: u64, a: u16, b: u16) -> bool {
    fl::compare32(bf16_to_f32(a), bf16_to_f32(b), numbered(k))
}

/// `setp.lt.f16x2 p|q, a, b`: p of the low halves, q of the high ones.
fn packed(d: &mut Decoder<'_>, ty: ScalarType, targets: Targets) -> Decoded {
    let Some(compare) = d.form.compare else { return refuse("it compares nothing") };
    let imm = comparison(compare)? as u64 | u64::from(d.form.has(Word::Ftz)) << 4;
    let ab = (d.source::<u32>(1)?, d.source::<u32>(2)?);
    let (p, q) = targets.to;
    match ty {
        ScalarType::F16x2 => {
            emit(d, (p, 0), ab, targets.with, imm, |k, a: u32, b: u32| compare_f16(k, a as u16, b as u16));
            emit(d, (q, 0), ab, targets.with, imm, |k, a: u32, b: u32| {
                compare_f16(k, (a >> 16) as u16, (b >> 16) as u16)
            });
        }
        ScalarType::Bf16x2 => {
            emit(d, (p, 0), ab, targets.with, imm, |k, a: u32, b: u32| compare_bf16(k, a as u16, b as u16));
            emit(d, (q, 0), ab, targets.with, imm, |k, a: u32, b: u32| {
                compare_bf16(k, (a >> 16) as u16, (b >> 16) as u16)
            });
        }
        _ => return refuse("values of its type are not compared"),
    }
    Ok(())
}

/// `set.lt.u32.f32 d, a, b`: all ones or 1.0 where it holds.
fn set(d: &mut Decoder<'_>) -> Decoded {
    let (to, from) = (d.ty()?, *d.form.types.last().ok_or("it has no type")?);
    let how = with(d)?;
    if from.lanes() == 2 {
        let (low, high) = (d.temporary_predicate(), d.temporary_predicate());
        packed(d, from, Targets { to: (low, high), with: how })?;
        let one: u64 = match to {
            ScalarType::F16x2 => 0x3c00,
            ScalarType::Bf16x2 => 0x3f80,
            _ => 0xffff,
        };
        let (x, y) = (d.temporary::<u32>(), d.temporary::<u32>());
        truth_to(d, x, low, one, |k, on| if on { k as u32 } else { 0 });
        truth_to(d, y, high, one, |k, on| if on { (k as u32) << 16 } else { 0 });
        let to = d.destination::<u32>(0, false)?;
        d.apply2(to, (x, y), 0, |_, x: u32, y: u32| x | y);
        return Ok(());
    }
    let holds = d.temporary_predicate();
    compare(d, from, Targets { to: (holds, 0), with: how })?;
    let one = match to {
        ScalarType::F32 => u64::from(1f32.to_bits()),
        ScalarType::F16 => 0x3c00,
        ScalarType::Bf16 => 0x3f80,
        ScalarType::U16 | ScalarType::S16 => 0xffff,
        ScalarType::U32 | ScalarType::S32 => u64::from(u32::MAX),
        _ => return refuse("its result has no such type"),
    };
    let to = d.destination::<u32>(0, false)?;
    truth_to(d, to, holds, one, |k, on| if on { k as u32 } else { 0 });
    Ok(())
}

/// Emits `to = f(imm, predicate)`.
pub fn truth_to<F: Fn(u64, bool) -> u32 + Copy>(d: &mut Decoder<'_>, to: i32, predicate: i32, imm: u64, _: F) {
    d.emit(Op { d: to, a: predicate, imm, ..d.op_of::<FromTruth<F, u32>>() });
}

fn selp(d: &mut Decoder<'_>) -> Decoded {
    let c = d.truth(d.operand(3)?)?;
    macro_rules! select {
        ($t:ty) => {{
            let (a, b) = (d.source::<$t>(1)?, d.source::<$t>(2)?);
            let to = d.destination::<$t>(0, false)?;
            d.emit(Op { d: to, a, b, c, ..d.op_of::<Select<$t>>() });
        }};
    }
    match d.ty()?.bits() {
        // A number of 16 bits is cut to them where it stands.
        16 => select!(u16),
        32 => select!(u32),
        64 => select!(u64),
        _ => return refuse("it has no such type"),
    }
    Ok(())
}

/// `slct.t.s32 d, a, b, c`: a where c >= 0.
fn slct(d: &mut Decoder<'_>) -> Decoded {
    let by_float = d.form.types.get(1) == Some(&ScalarType::F32);
    let imm = u64::from(by_float);
    macro_rules! slct {
        ($t:ty) => {{
            let (a, b, c) = (d.source::<$t>(1)?, d.source::<$t>(2)?, d.source::<u32>(3)?);
            let to = d.destination::<$t>(0, false)?;
            let op = ternary(d, |k, a: $t, b: $t, c: u32| {
                // A subnormal number counts by its sign, -0 as zero; a NaN chooses the second.
                let first = if k != 0 { f32::from_bits(c) >= 0.0 } else { c as i32 >= 0 };
                if first { a } else { b }
            });
            d.emit(Op { d: to, a, b, c, imm, ..op });
        }};
    }
    if by_float && d.form.has(Word::Ftz) {
        let c = d.source::<u32>(3)?;
        let flushed = d.temporary::<u32>();
        d.apply1(flushed, c, 0, |_, x: u32| fl::flush32(x));
        let (a, b) = match d.ty()?.bits() {
            64 => (d.source::<u64>(1)?, d.source::<u64>(2)?),
            _ => (d.source::<u32>(1)?, d.source::<u32>(2)?),
        };
        return match d.ty()?.bits() {
            64 => {
                let to = d.destination::<u64>(0, false)?;
                let op = ternary(d, |_, a: u64, b: u64, c: f32| if c >= 0.0 { a } else { b });
                d.emit(Op { d: to, a, b, c: flushed, ..op });
                Ok(())
            }
            _ => {
                let to = d.destination::<u32>(0, false)?;
                let op = ternary(d, |_, a: u32, b: u32, c: f32| if c >= 0.0 { a } else { b });
                d.emit(Op { d: to, a, b, c: flushed, ..op });
                Ok(())
            }
        };
    }
    match d.ty()?.bits() {
        16 => slct!(u16),
        32 => slct!(u32),
        64 => slct!(u64),
        _ => return refuse("it has no such type"),
    }
    Ok(())
}

fn ternary<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(u64, A, B, C) -> D + Copy>(d: &Decoder<'_>, _: F) -> Op {
    d.op_of::<Ternary<F, D, A, B, C>>()
}
