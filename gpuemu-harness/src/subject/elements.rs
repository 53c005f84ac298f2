//! Kernels that are compiled for elements of another size than a tensor has.

use super::refusal::text;
use gpuemu_contract::{Argument, DType, Launch};
use gpuemu_ptx::fault::{Accessed, Fault, FaultKind};
use gpuemu_ptx::memory::Place;
use gpuemu_ptx::program::{Function, PointerAccess};

/// What a kernel accesses through each tensor of its launch.
#[derive(Clone, Debug, Default)]
pub struct Elements {
    accesses: Vec<(String, PointerAccess)>,
    /// What is no address and is used as one: the argument, the parameter's place, and the line of the PTX.
    astray: Option<(String, usize, u32)>,
}

impl Elements {
    /// Of a launch, and the accesses of the kernel through its parameters.
    pub fn new(launch: &Launch, accesses: Vec<PointerAccess>) -> Elements {
        let tensor = |place: &u32| match launch.args.get(*place as usize) {
            Some(Argument::Tensor(name)) => Some(name.clone()),
            _ => None,
        };
        let of_tensor = |access: PointerAccess| {
            let mut tensors = access.parameters.iter().filter_map(tensor);
            let name = tensors.next()?;
            // A sum of two pointers is none.
            tensors.next().is_none().then_some((name, access))
        };
        let address = |place: &u32| {
            let argument = launch.args.get(*place as usize);
            argument.is_none_or(|argument| matches!(argument, Argument::Tensor(_) | Argument::Workspace(_)))
        };
        let astray = accesses.iter().find_map(|access| {
            let &first = access.parameters.first().filter(|_| !access.parameters.iter().any(address))?;
            Some((text(launch.args.get(first as usize)?), first as usize, access.line))
        });
        Elements { accesses: accesses.into_iter().filter_map(of_tensor).collect(), astray }
    }

    /// That an argument which is no tensor goes to a parameter that the kernel reads or writes through: two have changed
    /// places, most likely. `entry` is the kernel's.
    pub fn astray(&self, entry: &Function) -> Option<String> {
        let (argument, place, line) = self.astray.as_ref()?;
        let name = &entry.parameters.get(*place)?.name;
        Some(format!(
            "`args` of [kernels.launch] hand \"{argument}\" to `{name}`, which the kernel uses as an address (PTX line {line}): \
             is the order that of its parameters?"
        ))
    }

    /// Of the first tensor whose elements are not what the kernel takes them for, where its code leaves no doubt: a type that
    /// says so, or less than an element at once. `dtype` is that of a tensor.
    pub fn mismatch(&self, dtype: impl Fn(&str) -> Option<DType>) -> Option<String> {
        self.accesses.iter().find_map(|(name, access)| {
            let dtype = dtype(name).filter(|&dtype| !fits(access, dtype))?;
            let (verb, ty) = (if access.writes { "writes" } else { "reads" }, access.ty);
            Some(format!(
                "the kernel {verb} {ty}, {}, at {name} (PTX line {}), whose elements are {dtype}, {}: its `dtypes` say what \
                 it is compiled for",
                bytes(ty.bytes()),
                access.line,
                bytes(dtype.size() as u32)
            ))
        })
    }
}

/// Whether elements of this dtype may be what an access is for.
fn fits(access: &PointerAccess, dtype: DType) -> bool {
    let element = dtype.size() as u32;
    if access.ty.is_float() {
        // A pair in one register counts as two.
        return access.ty.bytes() / access.ty.lanes() == element && dtype.is_float();
    }
    access.ty.bytes() * u32::from(access.vector) >= element
}

/// What an access that begins inside a tensor and ends behind it does: it moves more than what is left.
pub fn straddles(fault: &Fault, dtype: impl Fn(&str) -> Option<DType>) -> Option<String> {
    let Some(Accessed { bytes: moved, place: Place::Inside { region, offset, bytes: size, .. }, .. }) = &fault.accessed
    else {
        return None;
    };
    let (moved, left) = (u64::from(*moved), size.checked_sub(*offset)?);
    if fault.kind != FaultKind::OutOfBounds || moved <= left {
        return None;
    }
    let dtype = dtype(region)?;
    let elements = match moved / dtype.size() as u64 {
        0 | 1 => String::new(),
        more => format!(": {more} elements of {dtype} at once"),
    };
    Some(format!("{moved} bytes, of which {left} are left before its end{elements}"))
}

fn bytes(count: u32) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}
