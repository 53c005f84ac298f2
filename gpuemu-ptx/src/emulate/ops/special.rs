//! Special registers, addresses between spaces.

use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::registers::LANES;
use crate::emulate::warp::Warp;
use crate::memory::{LOCAL_WINDOW, SHARED_WINDOW, Window};
use crate::program::{Opcode, Space, Special, Word};

/// `d = special register imm`.
pub struct Read;

impl Body for Read {
    #[inline(always)]
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        use Special::*;
        let special = Special::ALL[op.imm as usize];
        let launch = context.launch;
        let same = |value: u32| [value; LANES];
        let lanes = |f: fn(u32) -> u32| std::array::from_fn(|lane| f(lane as u32));
        let values: [u32; LANES] = match special {
            TidX => warp.tid[0],
            TidY => warp.tid[1],
            TidZ => warp.tid[2],
            NtidX => same(launch.block[0]),
            NtidY => same(launch.block[1]),
            NtidZ => same(launch.block[2]),
            CtaidX => same(context.block.position[0]),
            CtaidY => same(context.block.position[1]),
            CtaidZ => same(context.block.position[2]),
            NctaidX => same(launch.grid[0]),
            NctaidY => same(launch.grid[1]),
            NctaidZ => same(launch.grid[2]),
            Laneid => lanes(|lane| lane),
            Warpid => same(warp.index),
            Nwarpid => same(launch.warps()),
            Smid => same((context.block.number % u64::from(launch.multiprocessors.max(1))) as u32),
            Nsmid => same(launch.multiprocessors),
            LanemaskEq => lanes(|lane| 1 << lane),
            LanemaskLe => lanes(|lane| u32::MAX >> (31 - lane)),
            LanemaskLt => lanes(|lane| (1 << lane) - 1),
            LanemaskGe => lanes(|lane| u32::MAX << lane),
            LanemaskGt => lanes(|lane| u32::MAX << lane << 1),
            DynamicSmemSize => same(launch.dynamic_shared),
            TotalSmemSize | AggrSmemSize => same(launch.shared),
            Clock => same(context.steps as u32),
            ClockHi => same((context.steps >> 32) as u32),
            GlobaltimerLo => same(context.steps as u32),
            GlobaltimerHi => same((context.steps >> 32) as u32),
            // A cluster of one block.
            ClusteridX => same(context.block.position[0]),
            ClusteridY => same(context.block.position[1]),
            ClusteridZ => same(context.block.position[2]),
            NclusteridX => same(launch.grid[0]),
            NclusteridY => same(launch.grid[1]),
            NclusteridZ => same(launch.grid[2]),
            ClusterNctaidX | ClusterNctaidY | ClusterNctaidZ | ClusterNctarank => same(1),
            Clock64 | Globaltimer | Gridid => {
                let value = if special == Gridid { launch.number } else { context.steps };
                warp.registers.write::<u64>(op.d, &[value; LANES], mask);
                return Signal::Next;
            }
            _ => same(0),
        };
        warp.registers.write::<u32>(op.d, &values, mask);
        Signal::Next
    }
}

/// Whether a special register can be read.
pub fn check(special: Special) -> Decoded {
    use Special::*;
    match special {
        ReservedSmemOffsetBegin
        | ReservedSmemOffsetEnd
        | ReservedSmemOffsetCap
        | ReservedSmemOffset0
        | ReservedSmemOffset1
        | CurrentGraphExec
        | IsExplicitCluster => Err(format!("{special} has no value here")),
        Pm0 | Pm1 | Pm2 | Pm3 | Pm4 | Pm5 | Pm6 | Pm7 | Pm0L | Pm1L | Pm2L | Pm3L | Pm4L | Pm5L | Pm6L | Pm7L => {
            Err(format!("{special} is a performance counter, and there are none"))
        }
        _ => Ok(()),
    }
}

/// `d = imm` bytes from the frame's local memory.
pub struct LocalAddress;

impl Body for LocalAddress {
    fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let address = u64::from(warp.registers.frame().local).wrapping_add(op.imm);
        warp.registers.write::<u64>(op.d, &[address; LANES], mask);
        Signal::Next
    }
}

/// `d = a + the address of the first parameter`, or the opposite where `imm` is 1.
pub struct ParameterAddress;

impl Body for ParameterAddress {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        let base = context.launch.parameter_base;
        let offset = if op.imm == 0 { base } else { base.wrapping_neg() };
        let values = warp.registers.stored::<u64>(op.a).map(|address| address.wrapping_add(offset));
        warp.registers.write::<u64>(op.d, &values, mask);
        Signal::Next
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Cvta => cvta(d),
        Opcode::Isspacep => isspacep(d),
        _ => refuse("it is not known"),
    }
}

fn cvta(d: &mut Decoder<'_>) -> Decoded {
    let to = d.form.has(Word::To);
    if d.ty()?.bits() != 64 {
        return refuse("addresses of 32 bits are not executed");
    }
    let Some(space) = d.form.space else { return refuse("it names no space") };
    // A variable's address as operand is one in its own space.
    let a = d.source::<u64>(1)?;
    let target = d.destination::<u64>(0, false)?;
    let window = match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Parameter => {
            d.emit(Op { d: target, a, imm: u64::from(to), ..d.op_of::<ParameterAddress>() });
            return Ok(());
        }
        _ => 0,
    };
    let offset = if to { window.wrapping_neg() } else { window };
    d.apply1(target, a, offset, |k, a: u64| a.wrapping_add(k));
    Ok(())
}

fn isspacep(d: &mut Decoder<'_>) -> Decoded {
    let to = d.truth_destination(d.operand(0)?)?;
    let a = d.source::<u64>(1)?;
    let zero = d.constant::<u64>(0);
    let wanted = match d.form.space {
        Some(Space::Shared) => Window::Shared,
        Some(Space::Local) => Window::Local,
        Some(Space::Global) => Window::Global,
        // Constants and parameters lie in global memory here.
        Some(Space::Constant | Space::Parameter) => return refuse("which constants are asked for is not known"),
        _ => return refuse("it names no space"),
    };
    super::compare::emit(d, (to, 0), (a, zero), (0, 0), wanted as u64, |k, a: u64, _: u64| Window::of(a) as u64 == k);
    Ok(())
}
