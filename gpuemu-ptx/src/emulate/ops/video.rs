//! Video instructions.

use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Op, Ternary};
use crate::numerics::video::{MultiplyAdd, Operation, Part, Scalar, Second, Simd, Types, WORD};
use crate::program::{Compare, Opcode, Operand, Selector, Word};

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    use Opcode::*;
    let operation = match d.opcode() {
        Vadd | Vadd2 | Vadd4 => Operation::Add,
        Vsub | Vsub2 | Vsub4 => Operation::Subtract,
        Vabsdiff | Vabsdiff2 | Vabsdiff4 => Operation::Difference,
        Vmin | Vmin2 | Vmin4 => Operation::Minimum,
        Vmax | Vmax2 | Vmax4 => Operation::Maximum,
        Vavrg2 | Vavrg4 => Operation::Average,
        Vshl => Operation::ShiftLeft,
        Vshr => Operation::ShiftRight,
        Vset | Vset2 | Vset4 => match d.form.compare {
            Some(Compare::Equal) => Operation::Equal,
            Some(Compare::NotEqual) => Operation::NotEqual,
            Some(Compare::Less) => Operation::Less,
            Some(Compare::LessEqual) => Operation::LessEqual,
            Some(Compare::Greater) => Operation::Greater,
            Some(Compare::GreaterEqual) => Operation::GreaterEqual,
            _ => return refuse("integers are not compared so"),
        },
        _ => return multiply_add(d),
    };
    let types = types(d)?;
    match d.opcode() {
        Vadd2 | Vsub2 | Vabsdiff2 | Vmin2 | Vmax2 | Vavrg2 | Vset2 => simd::<2>(d, operation, types),
        Vadd4 | Vsub4 | Vabsdiff4 | Vmin4 | Vmax4 | Vavrg4 | Vset4 => simd::<4>(d, operation, types),
        _ => scalar(d, operation, types),
    }
}

/// Of the types the signs: d, a, b; `vset` has none for d, whose results are 0 and 1.
fn types(d: &Decoder<'_>) -> Decoded<Types> {
    let signs: Vec<bool> = d.form.types.iter().map(|ty| ty.is_signed()).collect();
    let sat = d.form.has(Word::Sat);
    match *signs.as_slice() {
        [to, a, b] => Ok(Types { d: to, a, b, sat }),
        [a, b] => Ok(Types { d: a, a, b, sat }),
        _ => refuse("it needs the types of its operands"),
    }
}

/// An operand as a register, the part of it that counts, and whether it is negated.
fn part(d: &mut Decoder<'_>, index: usize) -> Decoded<(i32, Part, bool)> {
    let selected = |selector: Selector| match selector {
        Selector::Byte(number) => Ok(Part::byte(number.into())),
        Selector::Half(number) => Ok(Part::half(number.into())),
        Selector::Mixed(_) => refuse("it takes one part of its operand"),
    };
    Ok(match *d.operand(index)? {
        Operand::Part(register, selector) => (d.slot(register), selected(selector)?, false),
        Operand::Minus(register, selector) => (d.slot(register), selector.map_or(Ok(WORD), selected)?, true),
        _ => (d.source::<u32>(index)?, WORD, false),
    })
}

/// The last operand, or zero where there is none.
fn last(d: &mut Decoder<'_>) -> Decoded<i32> {
    if d.has_operand(3) { d.source::<u32>(3) } else { Ok(d.constant::<u32>(0)) }
}

fn emit<F: Fn(u64, u32, u32, u32) -> u32 + Copy>(
    d: &mut Decoder<'_>,
    (a, b, c): (i32, i32, i32),
    imm: u64,
    _: F,
) -> Decoded {
    let to = match *d.operand(0)? {
        Operand::Part(register, _) => d.slot(register),
        _ => d.destination::<u32>(0, false)?,
    };
    d.emit(Op { d: to, a, b, c, imm, ..d.op_of::<Ternary<F, u32, u32, u32, u32>>() });
    Ok(())
}

fn scalar(d: &mut Decoder<'_>, operation: Operation, types: Types) -> Decoded {
    let ((a, of_a, _), (b, of_b, _)) = (part(d, 1)?, part(d, 2)?);
    let merge = match *d.operand(0)? {
        Operand::Part(_, Selector::Byte(number)) => Some(Part::byte(number.into())),
        Operand::Part(_, Selector::Half(number)) => Some(Part::half(number.into())),
        _ => None,
    };
    let second = match () {
        () if d.form.has(Word::Add) => Second::Add,
        () if d.form.has(Word::Min) => Second::Minimum,
        () if d.form.has(Word::Max) => Second::Maximum,
        () => Second::None,
    };
    let c = last(d)?;
    let k = Scalar { operation, types, a: of_a, b: of_b, second, wrap: d.form.has(Word::Wrap), merge };
    emit(d, (a, b, c), k.encoded(), |k, a: u32, b: u32, c: u32| Scalar::decoded(k).apply(a, b, c))
}

fn multiply_add(d: &mut Decoder<'_>) -> Decoded {
    let types = types(d)?;
    let ((a, of_a, minus_a), (b, of_b, minus_b)) = (part(d, 1)?, part(d, 2)?);
    let (c, _, minus) = part(d, 3)?;
    let has = |word| d.form.has(word);
    let scale = if has(Word::Shr7) { 7 } else { 15 * u32::from(has(Word::Shr15)) };
    let plus_one = has(Word::Po);
    let k = MultiplyAdd { types, a: of_a, b: of_b, negated: minus_a != minus_b, minus, plus_one, scale };
    emit(d, (a, b, c), k.encoded(), |k, a: u32, b: u32, c: u32| MultiplyAdd::decoded(k).apply(a, b, c))
}

/// The register of an operand, and for each part which one it takes, four bits each; `natural` where nothing is written.
fn chosen<const LANES: u32>(d: &mut Decoder<'_>, index: usize, natural: u32) -> Decoded<(i32, u32)> {
    match *d.operand(index)? {
        Operand::Part(register, Selector::Mixed(digits)) => {
            let digits: Vec<u32> = digits_of(digits, LANES).collect();
            if digits.iter().any(|&digit| digit >= 2 * LANES) {
                return refuse("a selector names a part that is not there");
            }
            Ok((d.slot(register), digits.iter().enumerate().fold(0, |all, (lane, digit)| all | digit << (4 * lane))))
        }
        Operand::Part(..) => refuse("a selector names too few parts"),
        _ => Ok((d.source::<u32>(index)?, natural)),
    }
}

/// The digits of a selector, the last first.
fn digits_of(digits: u16, count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |place| u32::from(digits) / 10u32.pow(place) % 10)
}

fn simd<const LANES: u32>(d: &mut Decoder<'_>, operation: Operation, types: Types) -> Decoded {
    // `.h10` and `.h32`, `.b3210` and `.b7654`.
    let (low, high) = if LANES == 2 { (0x10, 0x32) } else { (0x3210, 0x7654) };
    let (a, of_a) = chosen::<LANES>(d, 1, low)?;
    let (b, of_b) = chosen::<LANES>(d, 2, high)?;
    let mask = match *d.operand(0)? {
        Operand::Part(_, Selector::Byte(number) | Selector::Half(number)) => 1 << number,
        // Digits fall: `b310` has three, and as many are not zero or the last.
        Operand::Part(_, Selector::Mixed(digits)) => {
            let count = digits.checked_ilog10().map_or(1, |log| log + 1);
            digits_of(digits, count).fold(0, |all, digit| all | 1 << digit)
        }
        _ => u32::MAX >> (32 - LANES),
    };
    if mask >> LANES != 0 {
        return refuse("a mask names a part that is not there");
    }
    let c = last(d)?;
    let k = Simd { operation, types, add: d.form.has(Word::Add), mask, a: of_a, b: of_b };
    emit(d, (a, b, c), k.encoded(), |k, a: u32, b: u32, c: u32| Simd::decoded(k).apply::<LANES>(a, b, c))
}
