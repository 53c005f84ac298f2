//! What can go wrong while a kernel runs, the error that a driver would return for it, and the words for it.

use std::fmt;

pub use crate::memory::Action;
use crate::memory::{Place, Problem, ProblemKind};

/// An error of the CUDA runtime, as `driver_types.h` numbers it. The driver's `CUresult` has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are CUDA's own")]
#[repr(u32)]
pub enum CudaError {
    InvalidValue = 1,
    MemoryAllocation = 2,
    InvalidConfiguration = 9,
    InvalidDeviceFunction = 98,
    InvalidPtx = 218,
    SymbolNotFound = 500,
    IllegalAddress = 700,
    LaunchOutOfResources = 701,
    LaunchTimeout = 702,
    Assert = 710,
    HardwareStackError = 714,
    IllegalInstruction = 715,
    MisalignedAddress = 716,
    InvalidAddressSpace = 717,
    InvalidPc = 718,
    LaunchFailure = 719,
    CooperativeLaunchTooLarge = 720,
}

impl CudaError {
    /// Its number.
    pub fn number(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for CudaError {
    /// `cudaErrorIllegalAddress (700)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cudaError{self:?} ({})", self.number())
    }
}

/// What kind of fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// An address that is no memory, nor near any.
    IllegalAddress,
    /// An address before or after a tensor, a variable, or a block's shared memory.
    OutOfBounds,
    /// An address in memory that was freed.
    UseAfterFree,
    /// Null, or null plus a little.
    NullPointer,
    /// An address that is no multiple of the bytes accessed.
    Misaligned,
    /// A write to constants or parameters, or an instruction that does not take this kind of memory.
    AddressSpace,
    /// A read of memory that nothing wrote.
    UninitialisedRead,
    /// A write to a tensor that is an input only.
    InputWritten,
    /// An element of an output that no thread wrote.
    OutputNotWritten,
    /// Two accesses to shared memory, one of them a write, that nothing orders.
    SharedRace,
    /// Two accesses to global memory, one of them a write, that nothing orders.
    GlobalRace,
    /// A read through the cache for constants (`ld.global.nc`) of what the same launch has written.
    StaleRead,
    /// A barrier that some threads of a warp, or of the block, do not reach.
    DivergentBarrier,
    /// A barrier of the whole block that some warps pass by.
    BarrierPassed,
    /// Threads that wait for each other, or for a thread that is gone.
    Deadlock,
    /// A shuffle or vote that reads a lane that takes no part in it, or a mask without the lane itself.
    InactiveLane,
    /// 32-bit arithmetic that wrapped around before it became an address.
    IndexWraps,
    /// A loop that threads go round with nothing changed: it cannot end.
    Endless,
    /// More instructions than the launch allows.
    Runaway,
    /// A launch that was ended from outside: [`Options::cancel`](crate::emulate::Options::cancel).
    Cancelled,
    /// Local memory used up: recursion without end, or a frame too large.
    StackOverflow,
    /// `trap`.
    Trap,
    /// A failed `assert`.
    Assert,
    /// `malloc` in a kernel with no room left on the heap.
    OutOfHeap,
    /// `free` in a kernel of what `malloc` did not give, or twice.
    InvalidFree,
    /// An instruction used in a way that hardware refuses.
    IllegalInstruction,
    /// An indirect branch or call to what is no target.
    InvalidTarget,
    /// A launch that the driver refuses.
    InvalidLaunch(CudaError),
}

impl FaultKind {
    /// Its name, for reports and filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::IllegalAddress => "illegal-address",
            Self::OutOfBounds => "out-of-bounds",
            Self::UseAfterFree => "use-after-free",
            Self::NullPointer => "null-pointer",
            Self::Misaligned => "misaligned",
            Self::AddressSpace => "address-space",
            Self::UninitialisedRead => "uninitialised-read",
            Self::InputWritten => "input-written",
            Self::OutputNotWritten => "output-not-written",
            Self::SharedRace => "shared-race",
            Self::GlobalRace => "global-race",
            Self::StaleRead => "stale-read",
            Self::DivergentBarrier => "divergent-barrier",
            Self::BarrierPassed => "barrier-passed",
            Self::Deadlock => "deadlock",
            Self::InactiveLane => "inactive-lane",
            Self::IndexWraps => "index-wraps",
            Self::Endless | Self::Runaway => "runaway",
            Self::Cancelled => "cancelled",
            Self::StackOverflow => "stack-overflow",
            Self::Trap => "trap",
            Self::Assert => "assert",
            Self::OutOfHeap => "out-of-heap",
            Self::InvalidFree => "invalid-free",
            Self::IllegalInstruction => "illegal-instruction",
            Self::InvalidTarget => "invalid-target",
            Self::InvalidLaunch(_) => "invalid-launch",
        }
    }

    /// What a real driver returns; `None` where hardware says nothing and the results are what they are. An access
    /// outside a tensor is answered only where it leaves mapped memory.
    pub fn cuda_error(self) -> Option<CudaError> {
        match self {
            Self::IllegalAddress | Self::OutOfBounds | Self::UseAfterFree | Self::NullPointer => {
                Some(CudaError::IllegalAddress)
            }
            Self::Misaligned => Some(CudaError::MisalignedAddress),
            Self::AddressSpace => Some(CudaError::InvalidAddressSpace),
            Self::UninitialisedRead
            | Self::InputWritten
            | Self::OutputNotWritten
            | Self::SharedRace
            | Self::GlobalRace
            | Self::StaleRead
            | Self::BarrierPassed
            | Self::InactiveLane
            | Self::IndexWraps
            | Self::Cancelled
            | Self::OutOfHeap => None,
            Self::DivergentBarrier | Self::Deadlock | Self::Endless | Self::Runaway => Some(CudaError::LaunchTimeout),
            Self::StackOverflow => Some(CudaError::HardwareStackError),
            Self::Trap | Self::InvalidFree => Some(CudaError::LaunchFailure),
            Self::Assert => Some(CudaError::Assert),
            Self::IllegalInstruction => Some(CudaError::IllegalInstruction),
            Self::InvalidTarget => Some(CudaError::InvalidPc),
            Self::InvalidLaunch(error) => Some(error),
        }
    }

    /// The kind of a failed access whose address lies there.
    pub fn of_access(problem: ProblemKind, place: &Place) -> Self {
        match (problem, place) {
            (ProblemKind::Misaligned, _) => Self::Misaligned,
            (ProblemKind::ReadOnly, _) => Self::AddressSpace,
            (ProblemKind::Unmapped, Place::Null { .. }) => Self::NullPointer,
            (ProblemKind::Unmapped, Place::Freed { .. }) => Self::UseAfterFree,
            (ProblemKind::Unmapped, Place::Outside { .. } | Place::Inside { .. }) => Self::OutOfBounds,
            (ProblemKind::Unmapped, Place::Nowhere) => Self::IllegalAddress,
        }
    }
}

/// `reads`, fit to follow a thread.
fn present(action: Action) -> &'static str {
    match action {
        Action::Read => "reads",
        Action::Write => "writes",
        Action::Atomic => "atomically updates",
        Action::AsyncWrite => "asynchronously writes",
    }
}

fn past(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "wrote",
        Action::Atomic => "atomically updated",
        Action::AsyncWrite => "is asynchronously writing",
    }
}

fn noun(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Atomic => "atomic",
        Action::AsyncWrite => "asynchronous copy",
    }
}

/// One thread of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`; unknown where only the block is.
    pub thread: Option<[u32; 3]>,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        match self.thread {
            Some([tx, ty, tz]) => write!(f, "thread ({tx}, {ty}, {tz}) of block ({x}, {y}, {z})"),
            None => write!(f, "a thread of block ({x}, {y}, {z})"),
        }
    }
}

/// A place in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site {
    /// One-based line of the PTX; 0 where it is not known.
    pub line: u32,
    /// The instruction as written; empty where it is not known.
    pub instruction: String,
    /// The place in the user's source, `softmax.py:12:5`.
    pub source: Option<String>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source, self.line) {
            (Some(source), 0) => f.write_str(source),
            (Some(source), line) => write!(f, "{source} (PTX line {line})"),
            (None, 0) => f.write_str("an unknown place"),
            (None, line) => write!(f, "PTX line {line}"),
        }
    }
}

/// What was accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// What the thread did.
    pub action: Action,
    /// Bytes that it accesses.
    pub bytes: u32,
    /// The address, in the space of the instruction.
    pub address: u64,
    /// What is there. For shared and local memory, the region is the variable or the memory as a whole.
    pub place: Place,
}

/// The other side of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Who.
    pub thread: Thread,
    /// Where in the program.
    pub site: Site,
    /// What it did.
    pub action: Action,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// The entry that ran; empty where none did.
    pub kernel: String,
    /// Whose it is.
    pub thread: Option<Thread>,
    /// Where in the program.
    pub site: Option<Site>,
    /// What was accessed, for a fault of memory.
    pub accessed: Option<Accessed>,
    /// Who was on the other side, for a race.
    pub other: Option<Box<Other>>,
    /// More about it, a sentence without a stop: which threads wait, what an assertion says.
    pub detail: String,
}

impl Fault {
    /// A fault of which no more than its kind is known yet.
    pub fn new(kind: FaultKind, kernel: impl Into<String>) -> Self {
        let kernel = kernel.into();
        Self { kind, kernel, thread: None, site: None, accessed: None, other: None, detail: String::new() }
    }

    /// An access that cannot be done.
    pub fn access(kernel: impl Into<String>, problem: Problem, action: Action, place: Place) -> Self {
        let kind = FaultKind::of_access(problem.kind, &place);
        let accessed = Accessed { action, bytes: problem.bytes, address: problem.address, place };
        Self { accessed: Some(accessed), ..Self::new(kind, kernel) }
    }

    /// Adds the thread.
    pub fn by(mut self, thread: Thread) -> Self {
        self.thread = Some(thread);
        self
    }

    /// Adds the place in the program.
    pub fn at(mut self, site: Site) -> Self {
        self.site = Some(site);
        self
    }

    /// Adds the other side of a race.
    pub fn against(mut self, other: Other) -> Self {
        self.other = Some(Box::new(other));
        self
    }

    /// Adds words.
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// What a real driver returns, where it returns anything.
    pub fn cuda_error(&self) -> Option<CudaError> {
        self.kind.cuda_error()
    }

    fn headline(&self) -> String {
        let action = self.accessed.as_ref().map_or("access", |accessed| noun(accessed.action));
        match self.kind {
            FaultKind::IllegalAddress => format!("{action} at an illegal address"),
            FaultKind::OutOfBounds => format!("{action} out of bounds"),
            FaultKind::UseAfterFree => format!("{action} after free"),
            FaultKind::NullPointer => format!("{action} through a null pointer"),
            FaultKind::Misaligned => format!("misaligned {action}"),
            FaultKind::AddressSpace => format!("{action} in a memory that the instruction does not take"),
            FaultKind::UninitialisedRead => format!("{action} of memory that nothing wrote"),
            FaultKind::InputWritten => format!("{action} to an input"),
            FaultKind::OutputNotWritten => "output not written".to_owned(),
            FaultKind::SharedRace => "race in shared memory".to_owned(),
            FaultKind::GlobalRace => "race in global memory".to_owned(),
            FaultKind::StaleRead => "read that may be stale".to_owned(),
            FaultKind::DivergentBarrier => "barrier that not all threads reach".to_owned(),
            FaultKind::BarrierPassed => "barrier that some warps pass by".to_owned(),
            FaultKind::Deadlock => "deadlock".to_owned(),
            FaultKind::InactiveLane => "exchange with a lane that takes no part".to_owned(),
            FaultKind::IndexWraps => "32-bit index wrapped around".to_owned(),
            FaultKind::Endless | FaultKind::Runaway => "kernel does not end".to_owned(),
            FaultKind::Cancelled => "launch cancelled".to_owned(),
            FaultKind::StackOverflow => "stack overflow".to_owned(),
            FaultKind::Trap => "trap".to_owned(),
            FaultKind::Assert => "assertion failed".to_owned(),
            FaultKind::OutOfHeap => "out of device heap".to_owned(),
            FaultKind::InvalidFree => "invalid free".to_owned(),
            FaultKind::IllegalInstruction => "illegal instruction".to_owned(),
            FaultKind::InvalidTarget => "jump to what is no target".to_owned(),
            FaultKind::InvalidLaunch(_) => "launch refused".to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    /// At most eight lines, twelve where threads wait for each other: what, where in the source, who, which address of which tensor, the other side, what a GPU
    /// would have said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        if !self.kernel.is_empty() {
            write!(f, " in {}", self.kernel)?;
        }
        if let Some(site) = &self.site {
            write!(f, "\n  at {site}")?;
            if !site.instruction.is_empty() {
                write!(f, ": {}", site.instruction)?;
            }
        }
        match (&self.thread, &self.accessed) {
            (thread, Some(Accessed { action, bytes, address, place })) => {
                let plural = if *bytes == 1 { "" } else { "s" };
                let thread = thread.as_ref().map_or_else(|| "a thread".to_owned(), Thread::to_string);
                write!(f, "\n  {thread} {} {bytes} byte{plural} at {address:#x}:", present(*action))?;
                write!(f, "\n  {place}")?;
            }
            (Some(thread), None) => write!(f, "\n  {thread}")?,
            (None, None) => {}
        }
        if let Some(other) = &self.other {
            write!(f, "\n  {} {} the same, at {}", other.thread, past(other.action), other.site)?;
            if self.kind != FaultKind::StaleRead {
                f.write_str("\n  and nothing orders the two: no barrier, no atomic or flag that one releases and the other acquires")?;
            }
        }
        if !self.detail.is_empty() {
            write!(f, "\n  {}", self.detail)?;
        }
        match self.cuda_error() {
            // Threads that leave count as arrived, so that the barrier may open all the same.
            Some(error) if self.kind == FaultKind::DivergentBarrier => {
                write!(f, "\n  a GPU goes on with wrong order, or hangs until {error}")
            }
            Some(error) => write!(f, "\n  a GPU answers {error}"),
            None => f.write_str("\n  a GPU says nothing"),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(block: u32, thread: u32) -> Thread {
        Thread { block: [block, 0, 0], thread: Some([thread, 0, 0]) }
    }

    fn site(line: u32, instruction: &str, source: Option<&str>) -> Site {
        Site { line, instruction: instruction.into(), source: source.map(str::to_owned) }
    }

    #[test]
    fn texts() {
        let past = Place::Outside { region: "x".into(), offset: 4004, bytes: 4000, element: 4 };
        let problem = Problem { lane: 31, kind: ProblemKind::Unmapped, address: 0x7f00_0000_0fa4, bytes: 4 };
        let table = [
            (
                Fault::access("softmax", problem, Action::Read, past).by(thread(7, 31)).at(site(
                    88,
                    "ld.global.f32 %f1, [%rd4];",
                    Some("softmax.py:12:5"),
                )),
                "read out of bounds in softmax
  at softmax.py:12:5 (PTX line 88): ld.global.f32 %f1, [%rd4];
  thread (31, 0, 0) of block (7, 0, 0) reads 4 bytes at 0x7f0000000fa4:
  4 bytes (1 element) past the end of x, of 4000 bytes (1000 elements)
  a GPU answers cudaErrorIllegalAddress (700)",
            ),
            (
                Fault {
                    accessed: Some(Accessed {
                        action: Action::Write,
                        bytes: 4,
                        address: 0x7f00_0000_0014,
                        place: Place::Inside { region: "counts".into(), offset: 20, bytes: 64, element: 4 },
                    }),
                    ..Fault::new(FaultKind::GlobalRace, "histogram")
                }
                .by(thread(1, 3))
                .at(site(40, "st.global.u32 [%rd2], %r5;", Some("h.cu:10:3")))
                .against(Other {
                    thread: thread(0, 0),
                    site: site(38, "", Some("h.cu:9:7")),
                    action: Action::Read,
                }),
                "race in global memory in histogram
  at h.cu:10:3 (PTX line 40): st.global.u32 [%rd2], %r5;
  thread (3, 0, 0) of block (1, 0, 0) writes 4 bytes at 0x7f0000000014:
  20 bytes (5 elements) into counts, of 64 bytes (16 elements)
  thread (0, 0, 0) of block (0, 0, 0) read the same, at h.cu:9:7 (PTX line 38)
  and nothing orders the two: no barrier, no atomic or flag that one releases and the other acquires
  a GPU says nothing",
            ),
            (
                Fault::new(FaultKind::DivergentBarrier, "reduce")
                    .by(thread(0, 16))
                    .at(site(12, "bar.sync 0;", None))
                    .because("threads 0 to 15 wait here; threads 16 to 31 of their warp have gone another way"),
                "barrier that not all threads reach in reduce
  at PTX line 12: bar.sync 0;
  thread (16, 0, 0) of block (0, 0, 0)
  threads 0 to 15 wait here; threads 16 to 31 of their warp have gone another way
  a GPU goes on with wrong order, or hangs until cudaErrorLaunchTimeout (702)",
            ),
            (
                Fault::new(FaultKind::InvalidLaunch(CudaError::InvalidConfiguration), "")
                    .because("2048 threads a block are more than the 1024 of sm_80"),
                "launch refused
  2048 threads a block are more than the 1024 of sm_80
  a GPU answers cudaErrorInvalidConfiguration (9)",
            ),
        ];
        for (fault, text) in table {
            assert_eq!(fault.to_string(), text);
            assert!(text.lines().count() <= 8);
        }
    }

    #[test]
    fn numbers_are_those_of_driver_types_h() {
        let table = [
            (FaultKind::IllegalAddress, Some(("cudaErrorIllegalAddress", 700))),
            (FaultKind::OutOfBounds, Some(("cudaErrorIllegalAddress", 700))),
            (FaultKind::UseAfterFree, Some(("cudaErrorIllegalAddress", 700))),
            (FaultKind::NullPointer, Some(("cudaErrorIllegalAddress", 700))),
            (FaultKind::Misaligned, Some(("cudaErrorMisalignedAddress", 716))),
            (FaultKind::AddressSpace, Some(("cudaErrorInvalidAddressSpace", 717))),
            (FaultKind::UninitialisedRead, None),
            (FaultKind::InputWritten, None),
            (FaultKind::SharedRace, None),
            (FaultKind::GlobalRace, None),
            (FaultKind::StaleRead, None),
            (FaultKind::BarrierPassed, None),
            (FaultKind::Endless, Some(("cudaErrorLaunchTimeout", 702))),
            (FaultKind::Runaway, Some(("cudaErrorLaunchTimeout", 702))),
            (FaultKind::StackOverflow, Some(("cudaErrorHardwareStackError", 714))),
            (FaultKind::Trap, Some(("cudaErrorLaunchFailure", 719))),
            (FaultKind::Assert, Some(("cudaErrorAssert", 710))),
            (FaultKind::IllegalInstruction, Some(("cudaErrorIllegalInstruction", 715))),
            (FaultKind::InvalidTarget, Some(("cudaErrorInvalidPc", 718))),
            (FaultKind::InvalidLaunch(CudaError::LaunchOutOfResources), Some(("cudaErrorLaunchOutOfResources", 701))),
        ];
        for (kind, expected) in table {
            let found = kind.cuda_error().map(|error| error.to_string());
            assert_eq!(found, expected.map(|(name, number)| format!("{name} ({number})")), "{}", kind.name());
        }
    }
}
