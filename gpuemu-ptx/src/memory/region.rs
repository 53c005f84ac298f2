//! One region of global memory: a tensor, a variable of a module, a heap.

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::access::View;
use super::backing::Backing;
use super::shadow::bits::Bits;
use super::shadow::cells::Cells;

/// What a region is to a kernel. Sanitizers ask; the hardware knows only [`Role::Constant`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Memory of which nothing more is known.
    #[default]
    Scratch,
    /// Read, never written: a write is a fault of the kernel.
    Input,
    /// Written; what nothing wrote is a fault, and so is what is read before.
    Output,
    /// Read and written.
    InOut,
    /// Constants and parameters: no instruction can write them.
    Constant,
}

/// A range of device addresses and the host memory behind it.
#[derive(Debug)]
pub struct Region {
    name: Box<str>,
    base: u64,
    extent: u64,
    element: u32,
    role: Role,
    host: NonNull<u8>,
    released: AtomicBool,
    /// Bytes that can be read without a further look: the extent, or 0 once released or where there are gaps.
    readable: AtomicU64,
    /// The same for writes: 0 for constants, too.
    writable: AtomicU64,
    /// Bytes that belong to no element.
    gaps: Option<Bits>,
    /// What it owns; nothing where the memory is the caller's.
    _backing: Option<Backing>,
    /// While sanitizers are on: the bytes that something wrote.
    written: Option<Bits>,
    /// While sanitizers are on: who accessed what last; from the first recorded access on.
    cells: OnceLock<Option<Cells>>,
}

// SAFETY: the host memory is owned, or lent for as long as the region lives by the contract of `Global::borrow`; kernels
// access it with atomics only, and the host only while no kernel runs.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    pub(super) fn new(name: &str, base: u64, extent: u64, host: NonNull<u8>, backing: Option<Backing>) -> Self {
        Self {
            name: name.into(),
            base,
            extent,
            element: 0,
            role: Role::Scratch,
            host,
            released: AtomicBool::new(false),
            readable: AtomicU64::new(extent),
            writable: AtomicU64::new(extent),
            gaps: None,
            _backing: backing,
            written: None,
            cells: OnceLock::new(),
        }
    }

    pub(super) fn declare(&mut self, role: Role, element: u32) {
        self.role = role;
        self.element = element;
        self.open();
    }

    /// What the fast roads may reach.
    fn open(&mut self) {
        let bytes = if *self.released.get_mut() || self.gaps.is_some() { 0 } else { self.extent };
        *self.readable.get_mut() = bytes;
        *self.writable.get_mut() = if self.role == Role::Constant { 0 } else { bytes };
    }

    /// Bytes that belong to no element, so that no access may touch them.
    pub(super) fn exclude(&mut self, from: u64, bytes: u64) -> Option<()> {
        let gaps = match &mut self.gaps {
            Some(gaps) => gaps,
            none => none.insert(Bits::new(self.extent)?),
        };
        gaps.insert(from, bytes);
        self.open();
        Some(())
    }

    /// Whether an access of so many bytes touches a gap.
    pub(super) fn touches_gap(&self, offset: u64, bytes: u64) -> bool {
        self.gaps.as_ref().is_some_and(|gaps| (offset..offset + bytes).any(|at| gaps.contains(at, 1)))
    }

    /// Whether it has gaps.
    pub(super) fn has_gaps(&self) -> bool {
        self.gaps.is_some()
    }

    /// The end of every access, without the end of the memory: other threads may be in the middle of one.
    pub(super) fn release(&self) {
        self.released.store(true, Relaxed);
        self.readable.store(0, Relaxed);
        self.writable.store(0, Relaxed);
    }

    /// Its name: the tensor's, where it holds one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its first address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Its bytes; those that it had, once it is freed.
    pub fn bytes(&self) -> u64 {
        self.extent
    }

    /// Bytes of an element; 0 where they are not known.
    pub fn element(&self) -> u32 {
        self.element
    }

    /// What it is to the kernel.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether a kernel freed it.
    pub fn is_released(&self) -> bool {
        self.released.load(Relaxed)
    }

    /// Whether an address lies in it, freed or not.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.extent
    }

    /// Remembers from now on which bytes something wrote: all, or none.
    pub(super) fn watch(&mut self, written: bool) -> Option<()> {
        let bits = Bits::new(self.extent)?;
        if written {
            bits.insert(0, self.extent);
        }
        self.written = Some(bits);
        Some(())
    }

    /// Nothing wrote any of it.
    pub(super) fn forget_writes(&mut self) {
        if let Some(written) = &mut self.written {
            written.clear();
        }
    }

    /// Nothing wrote these bytes.
    pub(super) fn forget_part(&mut self, from: u64, bytes: u64) {
        if let Some(written) = &mut self.written {
            written.remove(from, bytes);
        }
    }

    /// Nobody accessed any of it.
    pub(super) fn forget_accesses(&mut self) {
        self.cells = OnceLock::new();
    }

    /// The bytes that something wrote; `None` while sanitizers are off.
    pub fn written(&self) -> Option<&Bits> {
        self.written.as_ref()
    }

    /// Who accessed what last. `None` while sanitizers are off, and for what kernels only read.
    pub(super) fn cells(&self) -> Option<&Cells> {
        if self.written.is_none() || matches!(self.role, Role::Input | Role::Constant) {
            return None;
        }
        self.cells.get_or_init(|| Cells::new(self.extent)).as_ref()
    }

    /// Whether loads have nothing to find: all of it was written, and kernels only read it.
    #[inline(always)]
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.role, Role::Input | Role::Constant) && self.written.as_ref().is_none_or(Bits::is_whole)
    }

    /// What loads see of it.
    #[inline(always)]
    pub(super) fn readable(&self) -> View {
        View { base: self.base, bytes: self.readable.load(Relaxed), host: self.host.as_ptr() }
    }

    /// What stores and atomics see of it.
    #[inline(always)]
    pub(super) fn writable(&self) -> View {
        View { base: self.base, bytes: self.writable.load(Relaxed), host: self.host.as_ptr() }
    }

    /// All of it that can be read, gaps included.
    pub(super) fn all_readable(&self) -> View {
        View { bytes: if self.is_released() { 0 } else { self.extent }, ..self.readable() }
    }

    /// All of it that can be written, gaps included.
    pub(super) fn all_writable(&self) -> View {
        match self.role {
            Role::Constant => self.writable(),
            _ => self.all_readable(),
        }
    }
}
