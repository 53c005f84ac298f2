//! The tensors of a call in a device's memory.

use super::{Call, SubjectError};
use crate::tensor::Tensor;
use gpuemu_ptx::memory::{Global, Role};

/// One tensor on the device.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Where its region begins.
    base: u64,
    /// The address of element 0.
    origin: u64,
    /// The first byte of the tensor's memory that is on the device, and how many are.
    start: usize,
    bytes: usize,
}

/// The tensors of a call on a device: those that its launch names.
#[derive(Debug)]
pub struct Placement {
    inputs: Vec<Option<Placed>>,
    outputs: Vec<Option<Placed>>,
}

/// The alignment of memory that CUDA gives out.
pub const ALIGN: u64 = 256;

impl Placement {
    /// Copies the tensors that `named` accepts to the device. The region of a tensor ends with its last element, so that
    /// an access behind it is a fault; before its first element and in its gaps lies what the case says.
    ///
    /// # Errors
    ///
    /// A device without room.
    pub fn new(
        call: &Call<'_>,
        memory: &mut Global,
        named: impl Fn(&str) -> bool,
        inout: impl Fn(&str) -> bool,
    ) -> Result<Placement, SubjectError> {
        let mut inputs = Vec::with_capacity(call.inputs.len());
        for (name, tensor) in call.inputs.iter() {
            let role = if inout(name) { Role::InOut } else { Role::Input };
            inputs.push(named(name).then(|| place(name, tensor, role, memory)).transpose()?);
        }
        let mut outputs = Vec::with_capacity(call.outputs.len());
        for (name, tensor) in call.outputs.iter() {
            let tensor = tensor.as_ref().filter(|_| named(name));
            outputs.push(tensor.map(|tensor| place(name, tensor, Role::Output, memory)).transpose()?);
        }
        Ok(Placement { inputs, outputs })
    }

    /// The address of a tensor's first element.
    pub fn address(&self, call: &Call<'_>, name: &str) -> Option<u64> {
        let inputs = call.inputs.iter().map(|(name, _)| name).zip(&self.inputs);
        let outputs = call.outputs.iter().map(|(name, _)| name).zip(&self.outputs);
        inputs.chain(outputs).find(|(own, _)| *own == name)?.1.map(|placed| placed.origin)
    }

    /// Copies everything back, inputs included: whether they are as they were is for validation to see.
    ///
    /// # Errors
    ///
    /// Memory that the kernel freed.
    pub fn read_back(&self, call: &mut Call<'_>, memory: &mut Global) -> Result<(), SubjectError> {
        let inputs = call.inputs.iter_mut().map(|(_, tensor)| Some(tensor)).zip(&self.inputs);
        let outputs = call.outputs.iter_mut().map(|(_, tensor)| tensor.as_mut()).zip(&self.outputs);
        for (tensor, placed) in inputs.chain(outputs) {
            let (Some(tensor), Some(Placed { base, start, bytes, .. })) = (tensor, placed) else { continue };
            let to = &mut tensor.bytes_mut()[*start..start + bytes];
            memory.read(*base, to).map_err(refused)?;
        }
        Ok(())
    }
}

fn place(name: &str, tensor: &Tensor, role: Role, memory: &mut Global) -> Result<Placed, SubjectError> {
    let (layout, size) = (tensor.layout(), tensor.dtype().size());
    let reach = |stride: &isize, extent: &usize| stride * (*extent as isize - 1).max(0);
    let steps = || layout.strides.iter().zip(&layout.shape).map(|(stride, extent)| reach(stride, extent));
    let lowest = layout.offset as isize + steps().filter(|step| *step < 0).sum::<isize>();
    let highest = layout.offset as isize + steps().filter(|step| *step > 0).sum::<isize>();
    let elements = if tensor.is_empty() { 0 } else { (highest - lowest + 1) as usize };
    let (start, bytes) = (lowest as usize * size, elements * size);
    // The first byte stands as far from a multiple of 256 as it does in the tensor's own memory.
    let align = match start as u64 {
        0 => ALIGN,
        start => (1 << start.trailing_zeros()).min(ALIGN),
    };
    let base = memory.allocate(bytes as u64, align, name).map_err(refused)?;
    memory.write(base, &tensor.bytes()[start..start + bytes]).map_err(refused)?;
    memory.declare(base, role, size as u32).map_err(refused)?;
    if role == Role::Output {
        // The poison is there for elements that the kernel leaves out; what it reads of it, nothing wrote.
        memory.forget(base).map_err(refused)?;
    }
    let origin = base + (layout.offset as isize - lowest) as u64 * size as u64;
    Ok(Placed { base, origin, start, bytes })
}

/// The error of memory that the device does not give or take.
pub fn refused(error: gpuemu_ptx::Error) -> SubjectError {
    SubjectError { kind: "memory", message: error.to_string(), fault: false }
}
