//! Initial values as bytes, and the addresses among them.

use super::module::{Context, Fault, Resolved};
use crate::parse::{self, Initial, Operand};
use crate::program::function::Symbol;
use crate::program::module::Relocation;
use crate::program::problem::Problem;
use crate::program::types::{ScalarType, Type};

/// The longest initial value in bytes; what follows it is zero without being written.
const LONGEST: u64 = 1 << 28;

/// Fills in the initial bytes of a variable of the module.
pub(super) fn initialise<'a>(context: &mut Context<'a>, variable: &parse::Variable<'a>) -> Resolved<()> {
    let Some(Symbol::Variable(id)) = context.symbols.get(variable.name).copied() else { return Ok(()) };
    let Some(initial) = &variable.initial else { return Ok(()) };
    let fault = |reason: &'static str| Fault {
        offset: variable.offset,
        problem: Problem::Initial { name: variable.name.to_owned(), reason },
    };
    if matches!(variable.ty, Type::TextureReference | Type::SamplerReference | Type::SurfaceReference) {
        return Ok(());
    }
    let mut extents: Vec<u64> = variable.extents.iter().map(|extent| extent.unwrap_or(0)).collect();
    if variable.vector > 1 {
        extents.push(u64::from(variable.vector));
    }
    let width = u64::from(ScalarType::from(variable.ty).bytes());
    // Bytes of an element at each depth of braces: the innermost is a value.
    let mut strides = vec![width; extents.len() + 1];
    for depth in (0..extents.len()).rev() {
        strides[depth] = strides[depth + 1].saturating_mul(extents[depth]);
    }
    let open = variable.extents.first() == Some(&None);
    let mut size = context.variables[id.0 as usize].size;
    let mut bytes = Vec::new();
    let mut relocations = Vec::new();
    // Braces nest as deep as a hostile text likes: a stack of our own.
    let mut pending = vec![(initial, 0_u64, 0_usize)];
    while let Some((initial, at, depth)) = pending.pop() {
        if let Initial::List(values) = initial {
            let inner = depth + 1;
            if inner >= strides.len() && values.len() > 1 {
                return Err(fault("has more braces than the variable has dimensions"));
            }
            let stride = strides.get(inner).copied().unwrap_or(width).max(1);
            let room = if open && depth == 0 { u64::MAX } else { strides.get(depth).copied().unwrap_or(width) };
            if (values.len() as u64).saturating_mul(stride) > room {
                return Err(fault("has more elements than the variable"));
            }
            if open && depth == 0 {
                size = size.max((values.len() as u64).saturating_mul(stride));
            }
            let place = |index: u64| at.saturating_add(index.saturating_mul(stride));
            pending.extend((0..).zip(values).map(|(index, value)| (value, place(index), inner)));
            continue;
        }
        let end = at.saturating_add(width);
        if end > size {
            return Err(fault("is larger than the variable"));
        }
        if end > LONGEST {
            return Err(fault("reaches further than 256 MiB"));
        }
        if bytes.len() < end as usize {
            bytes.resize(end as usize, 0);
        }
        let place = &mut bytes[at as usize..end as usize];
        match initial {
            Initial::Value(operand) => match value_bits(operand, variable.ty) {
                Some(bits) => place.copy_from_slice(&bits.to_le_bytes()[..width as usize]),
                None => {
                    let Operand::Name(name) = operand else { return Err(fault("is not a number")) };
                    let symbol = symbol(context, name, variable.offset)?;
                    relocations.push(relocation(at, width, symbol, 0, false, None));
                }
            },
            Initial::Address { symbol: name, addend, generic, mask } => {
                let symbol = symbol(context, name, variable.offset)?;
                relocations.push(relocation(at, width, symbol, *addend, *generic, *mask));
            }
            Initial::List(_) | Initial::Property { .. } => {}
        }
    }
    relocations.sort_by_key(|relocation| relocation.offset);
    let resolved = &mut context.variables[id.0 as usize];
    (resolved.size, resolved.initial, resolved.relocations) = (size, bytes, relocations);
    Ok(())
}

fn relocation(offset: u64, width: u64, symbol: Symbol, addend: i64, generic: bool, mask: Option<u64>) -> Relocation {
    Relocation { offset, width: width as u8, symbol, addend, generic, mask }
}

fn symbol(context: &Context, name: &str, offset: u32) -> Resolved<Symbol> {
    context.symbols.get(name).copied().ok_or_else(|| {
        let names = context.symbols.keys().copied();
        let problem = Problem::Undeclared { name: name.to_owned(), nearest: crate::error::nearest(name, names) };
        Fault { offset, problem }
    })
}

/// A number as the bits of a type.
fn value_bits(operand: &Operand, ty: Type) -> Option<u128> {
    let double = match *operand {
        Operand::Integer { bits, .. } if matches!(ty, Type::F32 | Type::F64) => bits as i64 as f64,
        // A negative number fills the upper half of 128 bits too.
        Operand::Integer { bits, unsigned: true } => return Some(u128::from(bits)),
        Operand::Integer { bits, unsigned: false } => return Some(bits as i64 as i128 as u128),
        Operand::Float32(bits) if ty == Type::F64 => f64::from(f32::from_bits(bits)),
        Operand::Float32(bits) => return Some(u128::from(bits)),
        Operand::Float64(bits) if ty == Type::F32 => f64::from_bits(bits),
        Operand::Float64(bits) => return Some(u128::from(bits)),
        _ => return None,
    };
    Some(match ty {
        Type::F32 => u128::from((double as f32).to_bits()),
        _ => u128::from(double.to_bits()),
    })
}
