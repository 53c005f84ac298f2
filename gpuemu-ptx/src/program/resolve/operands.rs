//! The operands of one instruction: what each is, and whether it fits.

use std::ops::Range;

use super::body::Resolver;
use super::module::{Fault, Resolved};
use super::names::Meaning;
use crate::parse;
use crate::program::form::FormId;
use crate::program::function::{Base, Operand, RegisterId, Selector, Symbol};
use crate::program::modifier::Word;
use crate::program::opcode::Opcode;
use crate::program::problem::Problem;
use crate::program::signature::{Role, Slot, Width};
use crate::program::special::{Special, environment_register};
use crate::program::types::ScalarType;

/// Where the operands of an instruction went.
pub(super) struct Placed {
    pub first: u32,
    pub count: u32,
    pub writes: u8,
    pub accumulates: bool,
}

/// The most operands that an instruction can have.
const MOST: usize = 64;

/// Resolves and checks the operands of an instruction.
pub(super) fn resolve(resolver: &mut Resolver<'_, '_>, source: &parse::Instruction, form: FormId) -> Resolved<Placed> {
    let body = resolver.body;
    let operands = &body.operands[source.operands.start as usize..source.operands.end as usize];
    let (slots, opcode) = {
        let form = resolver.context.decoded(form);
        (form.slots, form.opcode)
    };
    let fault = |problem| Fault { offset: source.offset, problem };
    check_count(opcode, slots, operands.len()).map_err(fault)?;
    // Operands inside others come first; the instruction's own follow them in one piece.
    let mut own = std::mem::take(&mut resolver.own);
    own.clear();
    for (index, operand) in operands.iter().enumerate() {
        let slot = slot(slots, index);
        let resolved = operand_of(resolver, operand, slot.role).map_err(fault)?;
        check(resolver, form, slot, index, &resolved).map_err(fault)?;
        own.push(resolved);
    }
    let first = resolver.function.operands.len() as u32;
    resolver.function.operands.append(&mut own);
    resolver.own = own;
    let written = |slot: &&Slot| matches!(slot.role, Role::Destination | Role::Accumulator);
    let writes = match opcode {
        Opcode::Call => {
            check_call(resolver, first, operands.len()).map_err(fault)?;
            1
        }
        _ => slots.iter().take(operands.len()).take_while(written).count() as u8,
    };
    let accumulates = slots.first().is_some_and(|slot| slot.role == Role::Accumulator);
    Ok(Placed { first, count: operands.len() as u32, writes, accumulates })
}

fn slot(slots: &[Slot], index: usize) -> Slot {
    slots[index.min(slots.len() - 1)]
}

fn check_count(opcode: Opcode, slots: &[Slot], found: usize) -> Result<(), Problem> {
    let least = slots.iter().filter(|slot| !slot.optional).count();
    let most = if slots.last().is_some_and(|slot| slot.repeated) { MOST } else { slots.len() };
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let expected = match (least, most) {
        (0, 0) => "no operands".to_owned(),
        (1, 1) => "1 operand".to_owned(),
        (least, most) if least == most => format!("{least} operands"),
        (least, MOST) => format!("at least {least} operands"),
        (least, most) => format!("{least} to {most} operands"),
    };
    Err(Problem::OperandCount { opcode: opcode.text().to_owned(), expected, found })
}

fn operand_of(resolver: &mut Resolver<'_, '_>, operand: &parse::Operand, role: Role) -> Result<Operand, Problem> {
    Ok(match operand {
        parse::Operand::Name(name) => return self::name(resolver, name, role),
        parse::Operand::Negated(name) => Operand::Negated(register(resolver, name)?),
        parse::Operand::Minus(name) => match self::name(resolver, name, Role::Source)? {
            Operand::Register(register) => Operand::Minus(register, None),
            Operand::Part(register, selector) => Operand::Minus(register, Some(selector)),
            _ => return Err(Problem::NotARegister { name: (*name).to_owned() }),
        },
        parse::Operand::Integer { bits, .. } => Operand::Integer(*bits),
        parse::Operand::Float32(bits) => Operand::Float32(*bits),
        parse::Operand::Float64(bits) => Operand::Float64(*bits),
        parse::Operand::Pair(first, second) => {
            Operand::Pair(register_or_none(resolver, first)?, register_or_none(resolver, second)?)
        }
        parse::Operand::Vector(range) => Operand::Vector(inside(resolver, range, role)?),
        parse::Operand::VectorPair(range, name) => {
            Operand::VectorPair(inside(resolver, range, role)?, register(resolver, name)?)
        }
        parse::Operand::List(range) => Operand::List(inside(resolver, range, role)?),
        parse::Operand::Indexed(range) => Operand::Indexed(inside(resolver, range, role)?),
        parse::Operand::Address { base: Some(base), offset } | parse::Operand::Unified { base, offset } => {
            return address(resolver, base, *offset);
        }
        parse::Operand::Address { base: None, offset } => Operand::Address(Base::Absolute, *offset),
        parse::Operand::Sum { symbol, addend } => match meaning(resolver, symbol) {
            Some(Meaning::Symbol(symbol)) => Operand::Symbol(symbol, *addend),
            Some(_) => return Err(Problem::AddressBase { name: (*symbol).to_owned() }),
            None => return Err(resolver.undeclared(symbol)),
        },
        parse::Operand::Element(range) => element(resolver, range)?,
    })
}

fn address(resolver: &Resolver<'_, '_>, base: &str, offset: i64) -> Result<Operand, Problem> {
    match meaning(resolver, base) {
        Some(Meaning::Register(register)) => Ok(Operand::Address(Base::Register(register), offset)),
        Some(Meaning::Symbol(symbol)) => Ok(Operand::Address(Base::Symbol(symbol), offset)),
        Some(_) => Err(Problem::AddressBase { name: base.to_owned() }),
        None if special(base).is_some() => Err(Problem::AddressBase { name: base.to_owned() }),
        None => Err(resolver.undeclared(base)),
    }
}

/// The operands inside another, in one piece. Those inside them come before.
fn inside(resolver: &mut Resolver<'_, '_>, range: &Range<u32>, role: Role) -> Result<Range<u32>, Problem> {
    let body = resolver.body;
    let source = &body.operands[range.start as usize..range.end as usize];
    let flat = |operand: &parse::Operand| {
        !matches!(
            operand,
            parse::Operand::Vector(_)
                | parse::Operand::List(_)
                | parse::Operand::Indexed(_)
                | parse::Operand::VectorPair(..)
        )
    };
    if source.iter().all(flat) {
        let start = resolver.function.operands.len();
        for operand in source {
            let before = resolver.function.operands.len();
            let resolved = operand_of(resolver, operand, role)?;
            // A vector register or `%tid` within: its elements take its place.
            if let Operand::Vector(elements) = resolved {
                debug_assert_eq!(elements.start as usize, before);
                continue;
            }
            resolver.function.operands.push(resolved);
        }
        return Ok(start as u32..resolver.function.operands.len() as u32);
    }
    // One level of vectors in an address or a list; the parser has no deeper ones.
    let mut resolved = Vec::with_capacity(source.len());
    for operand in source {
        resolved.push(operand_of(resolver, operand, role)?);
    }
    let start = resolver.function.operands.len() as u32;
    resolver.function.operands.extend(resolved);
    Ok(start..resolver.function.operands.len() as u32)
}

/// `name[4]` is an address that is known; at an index in a register it is an instruction that PTX does not have.
fn element(resolver: &mut Resolver<'_, '_>, range: &Range<u32>) -> Result<Operand, Problem> {
    let [parse::Operand::Name(name), index] = &resolver.body.operands[range.start as usize..range.end as usize] else {
        return Err(Problem::AddressBase { name: "an element".to_owned() });
    };
    let Some(Meaning::Symbol(symbol)) = meaning(resolver, name) else {
        return Err(match meaning(resolver, name) {
            Some(_) => Problem::AddressBase { name: (*name).to_owned() },
            None => resolver.undeclared(name),
        });
    };
    let parse::Operand::Integer { bits, .. } = index else {
        return Err(Problem::DynamicElement { name: (*name).to_owned() });
    };
    let ty = match symbol {
        Symbol::Variable(id) => resolver.context.variables[id.0 as usize].ty,
        Symbol::Local(id) => resolver.function.variables[id.0 as usize].ty,
        Symbol::Parameter(index) => resolver.function.parameters[index as usize].ty,
        Symbol::Return(index) => resolver.function.returns[index as usize].ty,
        Symbol::Function(_) => return Err(Problem::AddressBase { name: (*name).to_owned() }),
    };
    Ok(Operand::Symbol(symbol, (*bits as i64).wrapping_mul(i64::from(ScalarType::from(ty).bytes()))))
}

fn meaning(resolver: &Resolver<'_, '_>, name: &str) -> Option<Meaning> {
    match resolver.names.find(name) {
        None => resolver.context.symbols.get(name).map(|symbol| Meaning::Symbol(*symbol)),
        found => found,
    }
}

fn special(name: &str) -> Option<Operand> {
    Special::from_text(name).map(Operand::Special).or_else(|| environment_register(name).map(Operand::Environment))
}

fn name(resolver: &mut Resolver<'_, '_>, name: &str, role: Role) -> Result<Operand, Problem> {
    Ok(match meaning(resolver, name) {
        Some(Meaning::Register(register)) => Operand::Register(register),
        Some(Meaning::Vector(first, count)) => {
            elements(resolver, (0..u32::from(count)).map(|element| Operand::Register(RegisterId(first.0 + element))))
        }
        Some(Meaning::Symbol(symbol)) => Operand::Symbol(symbol, 0),
        Some(Meaning::Label(target)) if role == Role::Label => Operand::Label(target),
        Some(Meaning::Label(_)) => return Err(Problem::NotARegister { name: name.to_owned() }),
        Some(Meaning::Prototype(prototype)) => Operand::Prototype(prototype),
        Some(Meaning::BranchTargets(targets)) => Operand::BranchTargets(targets),
        Some(Meaning::CallTargets(targets)) => Operand::CallTargets(targets),
        None if name == "_" => Operand::Discard,
        None => {
            if let Some(special) = special(name) {
                return Ok(special);
            }
            if role == Role::Label {
                return Err(resolver.no_label(name));
            }
            if let Some(special) = special(&format!("{name}.x")) {
                // `%tid` is all four of its elements.
                let Operand::Special(first) = special else { return Err(resolver.undeclared(name)) };
                let at = Special::ALL.iter().position(|&special| special == first).unwrap_or(0);
                return Ok(elements(resolver, Special::ALL[at..at + 4].iter().copied().map(Operand::Special)));
            }
            return part(resolver, name);
        }
    })
}

fn elements(resolver: &mut Resolver<'_, '_>, operands: impl Iterator<Item = Operand>) -> Operand {
    let start = resolver.function.operands.len() as u32;
    resolver.function.operands.extend(operands);
    Operand::Vector(start..resolver.function.operands.len() as u32)
}

/// `v.x`, an element of a vector register, or `r.b0`, a part of a register.
fn part(resolver: &Resolver<'_, '_>, name: &str) -> Result<Operand, Problem> {
    let Some((base, suffix)) = name.rsplit_once('.') else { return Err(resolver.undeclared(name)) };
    match (meaning(resolver, base), suffix.as_bytes()) {
        (Some(Meaning::Vector(first, count)), [letter]) => {
            let element = match letter {
                b'x' | b'r' => 0,
                b'y' | b'g' => 1,
                b'z' | b'b' => 2,
                b'w' | b'a' => 3,
                _ => u32::from(count),
            };
            match element < u32::from(count) {
                true => Ok(Operand::Register(RegisterId(first.0 + element))),
                false => Err(resolver.undeclared(name)),
            }
        }
        (Some(Meaning::Register(register)), [kind @ (b'b' | b'h'), digits @ ..]) => {
            let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u16>().ok());
            match (kind, digits.len(), number) {
                (b'b', 1, Some(number)) if number < 4 => Ok(Operand::Part(register, Selector::Byte(number as u8))),
                (b'h', 1, Some(number)) if number < 2 => Ok(Operand::Part(register, Selector::Half(number as u8))),
                (_, 2..=4, Some(number)) => Ok(Operand::Part(register, Selector::Mixed(number))),
                _ => Err(resolver.undeclared(name)),
            }
        }
        _ => Err(resolver.undeclared(name)),
    }
}

fn register(resolver: &mut Resolver<'_, '_>, name: &str) -> Result<RegisterId, Problem> {
    match self::name(resolver, name, Role::Source)? {
        Operand::Register(register) => Ok(register),
        _ => Err(Problem::NotARegister { name: name.to_owned() }),
    }
}

fn register_or_none(resolver: &mut Resolver<'_, '_>, name: &str) -> Result<Option<RegisterId>, Problem> {
    if name == "_" { Ok(None) } else { register(resolver, name).map(Some) }
}

/// Whether an operand can stand in its slot.
fn check(
    resolver: &Resolver<'_, '_>,
    form: FormId,
    slot: Slot,
    index: usize,
    operand: &Operand,
) -> Result<(), Problem> {
    let form = resolver.context.decoded(form);
    let opcode = || form.opcode.text().to_owned();
    let kind = |expected| Err(Problem::OperandKind { opcode: opcode(), index, expected });
    match (slot.role, operand) {
        (Role::Address, Operand::Address(..) | Operand::Indexed(_) | Operand::Register(_) | Operand::Symbol(..)) => {
            return Ok(());
        }
        // `ld.global.u32 %r, 16` names an absolute address.
        (Role::Address, Operand::Integer(_)) => return Ok(()),
        (Role::Address, _) => return kind("an address in brackets"),
        (Role::Label, Operand::Label(_)) | (Role::Targets, Operand::BranchTargets(_)) => return Ok(()),
        (Role::Label, _) => return kind("a label"),
        (Role::Targets, _) => return kind("the label of a `.branchtargets`"),
        (Role::Destination | Role::Accumulator, Operand::Integer(_) | Operand::Float32(_) | Operand::Float64(_)) => {
            return kind("a register");
        }
        (Role::Destination | Role::Accumulator, Operand::Special(_) | Operand::Symbol(..) | Operand::Negated(_)) => {
            return kind("a register");
        }
        _ => {}
    }
    let first = || form.types.first().copied().unwrap_or(ScalarType::B32);
    let expected = match slot.width {
        Width::Any => None,
        Width::First => Some(first().bits()),
        Width::Last => Some(form.types.last().copied().unwrap_or(ScalarType::B32).bits()),
        Width::Product => Some(first().bits() * if form.has(Word::Wide) { 2 } else { 1 }),
        Width::Predicate => Some(1),
        Width::Bits(bits) => Some(bits),
    };
    match operand {
        Operand::Register(register) | Operand::Negated(register) => {
            if let Some(expected) = expected {
                let expected = expected * if slot.wider { u32::from(form.vector) } else { 1 };
                check_width(resolver, opcode, *register, expected, slot.wider)?;
            }
        }
        Operand::Pair(first, _) => {
            if let (Some(register), Some(expected)) = (first, expected) {
                check_width(resolver, opcode, *register, expected, slot.wider)?;
            }
        }
        Operand::Vector(range) => check_vector(resolver, form.opcode, form.vector, expected, slot, range)?,
        Operand::Address(..) | Operand::Indexed(_) if matches!(slot.width, Width::First | Width::Predicate) => {
            return kind("a register or a number");
        }
        _ => {}
    }
    Ok(())
}

fn check_width(
    resolver: &Resolver<'_, '_>,
    opcode: impl Fn() -> String,
    register: RegisterId,
    expected: u32,
    wider: bool,
) -> Result<(), Problem> {
    let ty = resolver.function.register(register).ty;
    let bits = ty.bits();
    if bits == expected || wider && bits > expected && bits > 1 {
        return Ok(());
    }
    let name = resolver.function.register_name(register);
    Err(match expected {
        1 => Problem::NotAPredicate { name, ty: ty.text() },
        _ => Problem::Width { opcode: opcode(), name, ty: ty.text(), bits, expected },
    })
}

fn check_vector(
    resolver: &Resolver<'_, '_>,
    opcode: Opcode,
    vector: u8,
    expected: Option<u32>,
    slot: Slot,
    range: &Range<u32>,
) -> Result<(), Problem> {
    let elements = resolver.function.inside(range);
    match opcode {
        Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Atom => {
            if elements.len() != usize::from(vector) {
                let (expected, found) = (usize::from(vector), elements.len());
                return Err(Problem::VectorLength { opcode: opcode.text().to_owned(), expected, found });
            }
            for element in elements {
                if let (Operand::Register(register), Some(expected)) = (element, expected) {
                    check_width(resolver, || opcode.text().to_owned(), *register, expected, slot.wider)?;
                }
            }
        }
        Opcode::Mov if vector == 1 => {
            // Packing and unpacking: the elements together are as wide as the type.
            let mut bits = 0;
            for element in elements {
                let Operand::Register(register) = element else { return Ok(()) };
                bits += resolver.function.register(*register).ty.bits();
            }
            if let Some(expected) = expected.filter(|&expected| expected != bits) {
                return Err(Problem::VectorWidth { opcode: opcode.text().to_owned(), bits, expected });
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether a call names something to call, and gives it what it takes.
fn check_call(resolver: &Resolver<'_, '_>, first: u32, count: usize) -> Result<(), Problem> {
    let operands = &resolver.function.operands[first as usize..first as usize + count];
    let (returns, callee, arguments, rest) = match operands {
        [Operand::List(returns), callee, Operand::List(arguments), rest @ ..] => (returns, callee, arguments, rest),
        _ => return Err(Problem::BadCall { reason: "names no function" }),
    };
    let (name, expected_returns, expected) = match (callee, rest) {
        (Operand::Symbol(Symbol::Function(id), _), []) => {
            let callee = &resolver.context.functions[id.0 as usize];
            if callee.entry {
                return Err(Problem::BadCall { reason: "names an entry, which only a host can start" });
            }
            (&*callee.name, callee.returns.len(), callee.parameters.len())
        }
        (Operand::Register(_), [Operand::Prototype(prototype)]) => {
            let prototype = &resolver.function.prototypes[prototype.0 as usize];
            ("the prototype", prototype.returns.len(), prototype.parameters.len())
        }
        (Operand::Register(_), [Operand::CallTargets(targets)]) => {
            match resolver.function.call_targets[targets.0 as usize].first() {
                Some(id) => {
                    let callee = &resolver.context.functions[id.0 as usize];
                    (&*callee.name, callee.returns.len(), callee.parameters.len())
                }
                None => return Ok(()),
            }
        }
        (Operand::Register(_), _) => {
            return Err(Problem::BadCall { reason: "is indirect, and has neither a prototype nor a list of targets" });
        }
        _ => return Err(Problem::BadCall { reason: "names no function" }),
    };
    if arguments.len() != expected {
        return Err(Problem::Arguments { function: name.to_owned(), expected, found: arguments.len() });
    }
    if returns.len() > expected_returns {
        return Err(Problem::BadCall { reason: "takes more results than there are" });
    }
    Ok(())
}
