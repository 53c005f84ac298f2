//! Where threads go: branches, calls, `ret`, `exit`, `trap`.

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::problem::Trouble;
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::program::{Callee, Opcode, Operand, Symbol};

macro_rules! signal {
    ($($(#[$doc:meta])* $name:ident => $signal:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Body for $name {
            #[inline(always)]
            fn run(_: &mut Warp, _: &mut Context<'_>, _: &Op, _: u32) -> Signal {
                Signal::$signal
            }
        }
    )*};
}

signal! {
    /// `bra`.
    Branch => Branch;
    /// `ret`, and the end of a function.
    Return => Return;
    /// `exit`.
    Exit => Exit;
    /// A call whose target is known.
    Call => Call;
}

/// `trap`.
pub struct Trap;

impl Body for Trap {
    fn run(_: &mut Warp, context: &mut Context<'_>, _: &Op, mask: u32) -> Signal {
        context.trouble = Some(Trouble::Trap { lane: mask.trailing_zeros() });
        Signal::Fault
    }
}

/// `brx.idx`: `c` is the start of a list of `imm` targets.
pub struct Indexed;

impl Body for Indexed {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let index = *warp.registers.stored::<u32>(op.a);
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            if u64::from(index[lane]) >= op.imm {
                context.trouble = Some(Trouble::BranchIndex { lane: lane as u32, index: index[lane], targets: op.imm });
                return Signal::Fault;
            }
            warp.places[lane] = context.code.lists[op.c as usize + index[lane] as usize] as u32;
        }
        Signal::Indirect
    }
}

/// A call by address.
pub struct IndirectCall;

impl Body for IndirectCall {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let address = *warp.registers.stored::<u64>(op.a);
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let routine = crate::emulate::spaces::function_at(address[lane])
                .and_then(|function| context.code.routines.get(&function).copied())
                .filter(|&routine| context.code.functions[routine as usize].parameters.len() as u64 == op.imm);
            match routine {
                Some(routine) => warp.places[lane] = routine,
                None => {
                    context.trouble = Some(Trouble::CallTarget { lane: lane as u32, address: address[lane] });
                    return Signal::Fault;
                }
            }
        }
        Signal::IndirectCall
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Bra => {
            let Operand::Label(target) = *d.operand(0)? else { return refuse("it leads nowhere") };
            let op = d.op_of::<Branch>();
            let meeting = d.meeting();
            d.emit_jump(op, target, meeting);
        }
        Opcode::Brx => {
            let Operand::BranchTargets(targets) = *d.operand(1)? else { return refuse("it leads nowhere") };
            let a = d.source::<u32>(0)?;
            let targets = d.function.branch_targets[targets.0 as usize].clone();
            let c = d.list_of_targets(&targets);
            let op = Op { a, c, imm: targets.len() as u64, ..d.op_of::<Indexed>() };
            let meeting = d.meeting();
            d.emit_indirect(op, meeting);
        }
        Opcode::Ret => d.emit_return(),
        Opcode::Exit => drop(d.emit(d.op_of::<Exit>())),
        Opcode::Trap | Opcode::Brkpt => drop(d.emit(d.op_of::<Trap>())),
        Opcode::Call => return call(d),
        _ => return refuse("it is not known"),
    }
    Ok(())
}

/// A call: arguments are copied to rows after the caller's frame by the warp, from the list that `c` begins:
/// the number of arguments, then for each its row and how many rows it has; then the same of results.
fn call(d: &mut Decoder<'_>) -> Decoded {
    let function = d.function;
    let instruction = &function.instructions[d.index() as usize];
    let Some(call) = function.call(instruction) else { return refuse("it calls nothing") };
    if let Callee::Direct(callee) = call.callee
        && !d.program.function(callee).defined
    {
        return super::system::call(d, &d.program.function(callee).name, call.arguments, call.returns);
    }
    let mut list = Vec::new();
    list.push(call.arguments.len() as i32);
    for argument in call.arguments {
        let (row, rows) = passed(d, argument)?;
        list.extend([row, rows]);
    }
    list.push(call.returns.len() as i32);
    for result in call.returns {
        let (row, rows) = passed(d, result)?;
        list.extend([row, rows]);
    }
    let c = d.list(list);
    match call.callee {
        Callee::Direct(callee) => {
            let at = d.emit(Op { c, ..d.op_of::<Call>() });
            d.calls.push((at, callee));
        }
        Callee::OneOf(register, _) | Callee::Any(register, _) => {
            let a = d.source_of::<u64>(&Operand::Register(register))?;
            let imm = call.arguments.len() as u64;
            d.emit(Op { a, c, imm, ..d.op_of::<IndirectCall>() });
        }
    }
    Ok(())
}

/// The row of an argument or result, and how many rows it has.
fn passed(d: &mut Decoder<'_>, operand: &Operand) -> Decoded<(i32, i32)> {
    match operand {
        Operand::Symbol(symbol @ Symbol::Local(id), 0) => {
            let bytes = d.function.variables[id.0 as usize].size;
            match d.parameter_row(*symbol) {
                Some(row) => Ok((row, bytes.div_ceil(4) as i32)),
                None => refuse("it passes a variable that is no parameter"),
            }
        }
        Operand::Register(register) => {
            let ty = d.function.register(*register).ty;
            match ty.bits() {
                1 => refuse("it passes a predicate"),
                bits => Ok((d.slot(*register), bits.div_ceil(32) as i32)),
            }
        }
        Operand::Integer(bits) => {
            // How wide the parameter is does not show here; a constant of 64 bits serves both.
            let wide = d.constant::<u64>(*bits);
            let row = d.temporary::<u64>();
            d.copy::<u64>(row, wide);
            let low = d.temporary::<u32>();
            d.apply1(low, row, 0, |_, x: u64| x as u32);
            Ok((low, 1))
        }
        _ => refuse("it passes something that is neither a register nor a parameter"),
    }
}
