//! What is counted of the instructions of a launch: an operation before each of them.

use crate::emulate::context::Context;
use crate::emulate::counters::{Access, Counted, Direction, Kind};
use crate::emulate::decode::Decoder;
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::memory::{SHARED_WINDOW, Window};
use crate::metrics::Class;
use crate::program::{Base, Form, Opcode, Operand, Space, Word};

/// Counts the instruction behind it: number `e` of those that are counted, under predicate `a`.
pub struct Count;

impl Body for Count {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let lanes = mask & warp.registers.truth(op.a);
        let counted = context.code.counted[op.e as usize];
        let count = &mut context.counts[op.e as usize];
        count.executed += 1;
        count.lanes += u64::from(lanes.count_ones());
        match counted.kind {
            Kind::Plain | Kind::Barrier => {}
            Kind::Branch => count.divergent += u64::from(lanes != 0 && lanes != mask),
            Kind::Indirect(row) => {
                let targets = warp.registers.stored::<u32>(row);
                let first = targets[lanes.trailing_zeros() as usize % LANES];
                let others = (0..LANES).any(|lane| lanes >> lane & 1 != 0 && targets[lane] != first);
                count.divergent += u64::from(others);
            }
            Kind::Access(access) => {
                let lanes = lanes & access.lanes;
                let addresses: [u64; LANES] = match access.row {
                    None => [access.offset; LANES],
                    Some(row) if access.wide => {
                        warp.registers.stored::<u64>(row).map(|address| address.wrapping_add(access.offset))
                    }
                    Some(row) => warp
                        .registers
                        .stored::<u32>(row)
                        .map(|address| u64::from(address.wrapping_add(access.offset as u32))),
                };
                let (global, shared) = match access.shared {
                    Some(true) => (0, lanes),
                    Some(false) => (lanes, 0),
                    None => {
                        let [global, shared, _] = Window::split(&addresses, lanes);
                        (global, shared)
                    }
                };
                if global != 0 {
                    count.add_global(&addresses, global, access.bytes);
                }
                if shared != 0 {
                    // The window begins at a multiple of all banks: addresses in it and inside have the same banks.
                    const { assert!(SHARED_WINDOW.is_multiple_of(128)) };
                    count.add_shared(&addresses, shared, access.bytes);
                }
            }
        }
        Signal::Next
    }
}

/// Emits the count of the current instruction.
pub fn before(d: &mut Decoder<'_>, guard: i32) {
    let form = d.form;
    let class = Class::of(form);
    let kind = match form.opcode {
        Opcode::Bra if guard != 0 => Kind::Branch,
        Opcode::Brx => match d.operand(0) {
            Ok(Operand::Register(register)) => Kind::Indirect(d.slot(*register)),
            _ => Kind::Plain,
        },
        Opcode::Bar | Opcode::Barrier if !form.has(Word::Warp) => Kind::Barrier,
        _ => access(d, form).map_or(Kind::Plain, Kind::Access),
    };
    let e = d.counted.len() as i32;
    d.counted.push(Counted { class, kind });
    let op = Op { a: guard, e, guard: 0, ..d.op_of::<Count>() };
    d.emit(op);
}

fn access(d: &Decoder<'_>, form: &Form) -> Option<Access> {
    let bytes = || form.types.first().map(|ty| ty.bytes() * u32::from(form.vector));
    let (direction, operand, bytes, lanes) = match form.opcode {
        Opcode::Ld | Opcode::Ldu => (Direction::Load, 1, bytes()?, u32::MAX),
        Opcode::St => (Direction::Store, 0, bytes()?, u32::MAX),
        Opcode::Atom => (Direction::Atomic, 1, bytes()?, u32::MAX),
        Opcode::Red => (Direction::Atomic, 0, bytes()?, u32::MAX),
        Opcode::Ldmatrix => (Direction::Load, 1, 16, rows(form)),
        Opcode::Stmatrix => (Direction::Store, 0, 16, rows(form)),
        // What is copied, from global memory; its way into shared memory is another's.
        Opcode::Cp if form.has(Word::Global) && form.has(Word::Async) => match d.operand(2) {
            Ok(Operand::Integer(bytes)) => (Direction::Load, 1, *bytes as u32, u32::MAX),
            _ => return None,
        },
        _ => return None,
    };
    let shared = match form.space {
        _ if form.opcode == Opcode::Cp => Some(false),
        Some(Space::Shared) => Some(true),
        Some(Space::Global) => Some(false),
        None => None,
        Some(_) => return None,
    };
    let (row, wide, offset) = match d.operand(operand).ok()? {
        Operand::Register(register) | Operand::Address(Base::Register(register), _) => {
            let offset = match d.operand(operand).ok()? {
                Operand::Address(_, offset) => *offset as u64,
                _ => 0,
            };
            (Some(d.slot(*register)), d.function.register(*register).ty.bits() == 64, offset)
        }
        Operand::Integer(address) => (None, true, *address),
        Operand::Address(Base::Absolute, offset) => (None, true, *offset as u64),
        Operand::Address(Base::Symbol(symbol), offset) | Operand::Symbol(symbol, offset) => {
            (None, true, d.symbol_address(*symbol).ok()?.wrapping_add(*offset as u64))
        }
        _ => return None,
    };
    Some(Access { shared, direction, bytes, row, wide, offset, lanes })
}

/// The lanes that hold the address of a row: eight for each matrix.
fn rows(form: &Form) -> u32 {
    let x = |word| form.has(word);
    match () {
        () if x(Word::X4) => u32::MAX,
        () if x(Word::X2) => 0xffff,
        () => 0xff,
    }
}
