//! Sizes of variables, and where parameters lie.

use super::module::{Fault, Resolved};
use crate::parse;
use crate::program::function::Parameter;
use crate::program::problem::Problem;
use crate::program::types::{ScalarType, Space};

/// The size of a variable in bytes (0 for an array without extent) and its natural alignment.
pub(super) fn size_of(variable: &parse::Variable) -> Resolved<(u64, u32)> {
    let element = ScalarType::from(variable.ty).bytes() * u32::from(variable.vector.max(1));
    let mut size = Some(u64::from(element));
    for extent in &variable.extents {
        size = size.and_then(|size| size.checked_mul(extent.unwrap_or(0)));
    }
    // An address has 64 bits, of which hardware uses fewer.
    match size.filter(|&size| size < 1 << 48) {
        Some(size) => Ok((size, element.next_power_of_two())),
        None => {
            let problem = Problem::TooLarge { name: variable.name.to_owned() };
            Err(Fault { offset: variable.offset, problem })
        }
    }
}

/// Parameters one after the other, each at a multiple of its alignment; and the bytes of all.
pub(super) fn layout(variables: &[parse::Variable]) -> Resolved<(Vec<Parameter>, u32)> {
    let mut end = 0_u64;
    let mut parameters = Vec::with_capacity(variables.len());
    for variable in variables {
        let (size, natural) = size_of(variable)?;
        let align = variable.align.unwrap_or(natural).max(1);
        let offset = end.next_multiple_of(u64::from(align));
        let in_memory = variable.space != Space::Register;
        end = if in_memory { offset + size } else { end };
        if end > u64::from(u32::MAX) {
            let problem = Problem::TooLarge { name: variable.name.to_owned() };
            return Err(Fault { offset: variable.offset, problem });
        }
        parameters.push(Parameter {
            name: variable.name.into(),
            ty: variable.ty,
            offset: if in_memory { offset as u32 } else { 0 },
            size: size as u32,
            align,
            pointer: variable.pointer,
            register: None,
        });
    }
    Ok((parameters, end as u32))
}
