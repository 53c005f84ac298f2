//! The emulator: one compiled kernel on a device of its own, launched over memory that the caller lends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Launched, Module, Options, Sanitizers, Shape};
use gpuemu_ptx::fault::{Action, Fault, Site, Thread};
use gpuemu_ptx::lint;
use gpuemu_ptx::memory::{Place, Role};
use gpuemu_ptx::metrics::{self, Count};
use gpuemu_ptx::program::{FunctionId, Program};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{InternalError, panic_text};

/// Adds what lives here to the extension module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EmulatedKernel>()?;
    module.add_class::<EmulatedLaunch>()?;
    module.add_class::<EmulatedFault>()?;
    module.add_class::<EmulatedOther>()?;
    module.add_function(wrap_pyfunction!(architecture, module)?)
}

/// Does long work without the interpreter lock. A panic becomes an `InternalError`.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|payload| InternalError::new_err(format!("the emulator panicked: {}", panic_text(&*payload))))
}

fn ptx_error(error: gpuemu_ptx::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Instructions of one block, those of each warp counted, after which it counts as a loop without end.
const BUDGET: u64 = 1 << 26;

/// One entry of a PTX module, loaded on a device of its own.
#[pyclass(frozen, name = "EmulatedKernel", module = "pytest_gpuemu._core")]
pub struct EmulatedKernel {
    /// The entry's name.
    #[pyo3(get)]
    entry: String,
    /// The architecture that it runs on: `sm_80`.
    #[pyo3(get)]
    arch: String,
    /// Bytes of every parameter, in order.
    #[pyo3(get)]
    parameters: Vec<u32>,
    /// Threads of a block that it is made for, where it says so.
    #[pyo3(get)]
    block: Option<[u32; 3]>,
    state: Mutex<State>,
}

struct State {
    device: Device,
    module: Module,
    id: FunctionId,
    /// Where the memory of launches begins.
    mark: u64,
}

/// Bytes from `.0` to before `.1`.
type Range = (u64, u64);
/// One call of `printf`: block, thread, text.
type Printed = ([u32; 3], [u32; 3], String);

/// Memory for one launch, a mapping of these names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Lent {
    /// What faults call it.
    name: String,
    /// Where it begins on the host; 0 for memory of the device's own.
    address: usize,
    bytes: u64,
    /// Bytes of an element; 0 where it has none.
    element: u32,
    /// Whether it is seen at that very address, whatever the others are.
    fixed: bool,
    /// Whether kernels must not write to it.
    constant: bool,
    /// What nothing has written yet.
    unwritten: Vec<Range>,
}

/// One argument of a launch.
#[derive(FromPyObject)]
enum Passed {
    /// A place in lent memory: which, and how many bytes from its start.
    #[pyo3(transparent)]
    Pointer((usize, u64)),
    #[pyo3(transparent)]
    Integer(i128),
    #[pyo3(transparent)]
    Float(f64),
    #[pyo3(transparent)]
    Bytes(Vec<u8>),
}

/// What a launch left behind.
#[pyclass(frozen, get_all, name = "EmulatedLaunch", module = "pytest_gpuemu._core")]
pub struct EmulatedLaunch {
    /// Instructions that were executed, those of each warp counted.
    instructions: u64,
    /// What the kernel printed: block, thread, text.
    printed: Vec<Printed>,
    /// Why it did not end well.
    fault: Option<Py<EmulatedFault>>,
    /// Of every lent memory, what nothing has written; empty where sanitizers are off.
    unwritten: Vec<Vec<Range>>,
}

/// A place in the user's source: path, line, column (0: none).
type Source = (String, u32, u32);

/// One fault of a kernel.
#[pyclass(frozen, get_all, name = "EmulatedFault", module = "pytest_gpuemu._core")]
pub struct EmulatedFault {
    /// `out-of-bounds`, `global-race`, ...
    kind: &'static str,
    /// All of it, in words.
    text: String,
    /// The block, `%ctaid`.
    block: Option<[u32; 3]>,
    /// The thread in it, `%tid`.
    thread: Option<[u32; 3]>,
    /// The place in the user's source and those it was inlined at, innermost first.
    source: Vec<Source>,
    /// One-based line of the PTX; 0 where it is not known.
    line: u32,
    /// The instruction there.
    instruction: String,
    /// `read`, `write`, `atomic` or `asynchronous write`.
    action: Option<&'static str>,
    /// Bytes accessed.
    bytes: u32,
    /// The tensor or memory accessed, or the nearest one.
    region: Option<String>,
    /// Bytes from its start, negative before it.
    offset: i64,
    /// Its bytes.
    extent: u64,
    /// The other thread of a race.
    other: Option<Py<EmulatedOther>>,
    /// More about it.
    detail: String,
    /// The error that a driver returns, its name and number.
    cuda: Option<(String, u32)>,
}

/// The other side of a race.
#[pyclass(frozen, get_all, name = "EmulatedOther", module = "pytest_gpuemu._core")]
pub struct EmulatedOther {
    block: [u32; 3],
    thread: Option<[u32; 3]>,
    source: Vec<Source>,
    line: u32,
    action: &'static str,
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        Action::Atomic => "atomic",
        Action::AsyncWrite => "asynchronous write",
    }
}

/// Where an instruction of that line of the PTX stands in the source, and where that was inlined.
fn source(program: &Program, site: &Site) -> Vec<Source> {
    let instructions = program.functions.iter().flat_map(|function| &function.instructions);
    let found = instructions.into_iter().find(|instruction| instruction.line == site.line);
    let Some(location) = found.and_then(|instruction| instruction.location) else { return Vec::new() };
    program
        .chain(location)
        .map(|id| {
            let location = program.location(id);
            (program.path(location.file).unwrap_or_default().to_owned(), location.line, location.column)
        })
        .collect()
}

fn coordinates(thread: Option<&Thread>) -> (Option<[u32; 3]>, Option<[u32; 3]>) {
    thread.map_or((None, None), |thread| (Some(thread.block), thread.thread))
}

impl EmulatedFault {
    fn new(py: Python<'_>, fault: &Fault, program: &Program) -> PyResult<Py<Self>> {
        let (block, thread) = coordinates(fault.thread.as_ref());
        let (region, offset, extent) = match fault.accessed.as_ref().map(|accessed| &accessed.place) {
            Some(Place::Inside { region, offset, bytes, .. } | Place::Freed { region, offset, bytes, .. }) => {
                (Some(region.clone()), *offset as i64, *bytes)
            }
            Some(Place::Outside { region, offset, bytes, .. }) => (Some(region.clone()), *offset, *bytes),
            Some(Place::Null { offset }) => (None, *offset, 0),
            Some(Place::Nowhere) | None => (None, 0, 0),
        };
        let other = fault.other.as_ref().map(|other| {
            let other = EmulatedOther {
                block: other.thread.block,
                thread: other.thread.thread,
                source: source(program, &other.site),
                line: other.site.line,
                action: verb(other.action),
            };
            Py::new(py, other)
        });
        let site = fault.site.clone().unwrap_or_default();
        let fault = Self {
            kind: fault.kind.name(),
            text: fault.to_string(),
            block,
            thread,
            source: source(program, &site),
            line: site.line,
            instruction: site.instruction,
            action: fault.accessed.as_ref().map(|accessed| verb(accessed.action)),
            bytes: fault.accessed.as_ref().map_or(0, |accessed| accessed.bytes),
            region,
            offset,
            extent,
            other: other.transpose()?,
            detail: fault.detail.clone(),
            cuda: fault.cuda_error().map(|error| (format!("cudaError{error:?}"), error.number())),
        };
        Py::new(py, fault)
    }
}

#[pymethods]
impl EmulatedFault {
    fn __str__(&self) -> &str {
        &self.text
    }
}

#[pymethods]
impl EmulatedKernel {
    /// Loads `entry` of a module, the only one where none is named, for `arch` or the target that the module names.
    #[new]
    #[pyo3(signature = (ptx, *, entry=None, arch=None, races=true, initialisation=true, threads=None, budget=None, seed=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python constructor")]
    fn new(
        py: Python<'_>,
        ptx: &str,
        entry: Option<&str>,
        arch: Option<&str>,
        races: bool,
        initialisation: bool,
        threads: Option<usize>,
        budget: Option<u64>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let defaults = Options::default();
        let options = Options {
            threads: threads.unwrap_or(defaults.threads),
            budget: budget.unwrap_or(BUDGET),
            seed,
            sanitizers: Sanitizers { races, initialisation, ..Sanitizers::ALL },
            ..defaults
        };
        guarded(py, || Self::load(ptx, entry, arch, options))?.map_err(ptx_error)
    }

    /// Runs it to its end. `shape` is the grid and the block; memory is lent until the answer is there.
    ///
    /// `initialisation` says whether reads of what nothing wrote are faults in this launch.
    #[pyo3(signature = (grid, block, shared, memory, arguments, *, initialisation=None))]
    #[expect(clippy::too_many_arguments, reason = "a launch is that many things")]
    fn launch(
        &self,
        py: Python<'_>,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        memory: Vec<Lent>,
        arguments: Vec<Passed>,
        initialisation: Option<bool>,
    ) -> PyResult<EmulatedLaunch> {
        let shape = Shape { grid, block, shared };
        let (launched, unwritten) = guarded(py, || {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let before = state.device.options().sanitizers;
            if let Some(initialisation) = initialisation {
                state.device.options_mut().sanitizers.initialisation = initialisation;
            }
            let launched = state.launch(&self.entry, shape, &memory, &arguments);
            let unwritten = memory_left(&state.device, &launched);
            let mark = state.mark;
            for lent in memory.iter().filter(|lent| lent.fixed) {
                // One that was not borrowed, since something before it failed, is not there.
                let _ = state.device.memory_mut().free(lent.address as u64);
            }
            state.device.memory_mut().rewind(mark);
            state.device.options_mut().sanitizers = before;
            (launched, unwritten)
        })?;
        let (_, launched) = launched.map_err(|refused| match refused {
            Refused::Ptx(error) => ptx_error(error),
            Refused::Argument(message) => PyValueError::new_err(message),
        })?;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = launched.fault.as_ref().map(|fault| EmulatedFault::new(py, fault, state.module.program()));
        let printed = launched.printed.into_iter().map(|printed| (printed.block, printed.thread, printed.text));
        Ok(EmulatedLaunch {
            instructions: launched.instructions,
            printed: printed.collect(),
            fault: fault.transpose()?,
            unwritten,
        })
    }

    /// What the kernel costs, as its PTX tells: counts by name, those of instruction classes under `mix`.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = metrics::measure(state.module.program(), state.id);
        let mix = PyDict::new(py);
        for (class, Count { instructions, .. }) in &found.mix {
            mix.set_item(class.name(), instructions)?;
        }
        let accesses = PyDict::new(py);
        for (bytes, Count { instructions, .. }) in &found.access_bytes {
            accesses.set_item(bytes, instructions)?;
        }
        let answer = PyDict::new(py);
        let counts = [
            ("instructions", found.instructions.instructions),
            ("registers_live", u64::from(found.pressure.registers)),
            ("local_bytes", found.local_bytes),
            ("shared_bytes", found.shared_bytes),
            ("loops", found.loops),
            ("branches", found.branches.instructions),
            ("divergent_branches", found.divergent_branches.instructions),
            ("barriers", found.barriers.instructions),
            ("global_atomics", found.global_atomics.instructions),
            ("shared_atomics", found.shared_atomics.instructions),
            ("doubles", found.doubles.instructions),
            ("matrix", found.matrix.instructions),
            ("asynchronous_copies", found.asynchronous_copies.instructions),
        ];
        for (name, count) in counts {
            answer.set_item(name, count)?;
        }
        answer.set_item("global_access_bytes", accesses)?;
        answer.set_item("mix", mix)?;
        Ok(answer)
    }

    /// What the lint finds: severity (`note`, `warning`, `error`), rule, message, and the place as a fault has it.
    fn lint(&self) -> Vec<(&'static str, &'static str, String, Vec<Source>)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let program = state.module.program();
        let found = metrics::measure(program, state.id);
        let findings = lint::check(program, state.id, &found).into_iter();
        let place = |line| source(program, &Site { line, ..Site::default() });
        findings
            .map(|finding| (finding.severity.name(), finding.rule.name, finding.message, place(finding.place.line)))
            .collect()
    }
}

/// Why there was no launch at all.
enum Refused {
    Ptx(gpuemu_ptx::Error),
    Argument(String),
}

impl From<gpuemu_ptx::Error> for Refused {
    fn from(error: gpuemu_ptx::Error) -> Self {
        Self::Ptx(error)
    }
}

/// What of every lent memory nothing has written.
fn memory_left(device: &Device, launched: &Result<(Vec<u64>, Launched), Refused>) -> Vec<Vec<Range>> {
    let Ok((addresses, _)) = launched else { return Vec::new() };
    let missing = |&address: &u64| {
        let written = device.memory().find(address).and_then(|region| region.written());
        written.filter(|written| !written.is_whole()).map(|written| written.missing()).unwrap_or_default()
    };
    addresses.iter().map(missing).collect()
}

impl EmulatedKernel {
    fn load(ptx: &str, entry: Option<&str>, arch: Option<&str>, options: Options) -> Result<Self, gpuemu_ptx::Error> {
        let program = Program::read(ptx)?;
        let only = || program.entries().map(|(_, function)| function.name.to_string()).next().unwrap_or_default();
        let entry = entry.map_or_else(only, str::to_owned);
        let id = program.entry(&entry)?;
        let parameters = program.function(id).parameters.iter().map(|parameter| parameter.size).collect();
        let block = program.function(id).required_threads;
        let target = program.targets.first().map(|target| target.to_string()).unwrap_or_default();
        let arch = Arch::named(arch.unwrap_or(&target))?;
        let mut device = Device::new(arch, options)?;
        let module = device.load_entry(program, &entry)?;
        let mark = device.memory_mut().mark();
        let state = State { device, module, id, mark };
        Ok(Self { entry, arch: arch.name.clone(), parameters, block, state: Mutex::new(state) })
    }
}

impl State {
    /// The addresses of the lent memory, and the launch.
    fn launch(
        &mut self,
        entry: &str,
        shape: Shape,
        memory: &[Lent],
        arguments: &[Passed],
    ) -> Result<(Vec<u64>, Launched), Refused> {
        let mut addresses = Vec::with_capacity(memory.len());
        for lent in memory {
            addresses.push(self.lend(lent)?);
        }
        let parameters = &self.module.program().function(self.id).parameters;
        let sizes = parameters.iter().map(|parameter| parameter.size).chain(std::iter::repeat(0));
        let passed: Result<Vec<Argument>, Refused> = arguments
            .iter()
            .zip(sizes)
            .map(|(argument, size)| match argument {
                Passed::Pointer((index, offset)) => match addresses.get(*index) {
                    Some(address) => Ok(Argument::Pointer(address + offset)),
                    None => Err(Refused::Argument(format!("there is no memory {index} among {}", addresses.len()))),
                },
                Passed::Integer(value) => Ok(Argument::Integer(*value)),
                Passed::Float(value) if size == 4 => Ok(Argument::Float32(*value as f32)),
                Passed::Float(value) => Ok(Argument::Float64(*value)),
                Passed::Bytes(bytes) => Ok(Argument::Bytes(bytes.clone())),
            })
            .collect();
        let launched = self.device.launch(&self.module, entry, shape, &passed?)?;
        Ok((addresses, launched))
    }

    fn lend(&mut self, lent: &Lent) -> Result<u64, gpuemu_ptx::Error> {
        let memory = self.device.memory_mut();
        let host = std::ptr::with_exposed_provenance_mut(lent.address);
        // SAFETY of both: the driver, the only caller, keeps the array that this memory is of until the launch has ended,
        // and the region goes with it (`Global::rewind`, `Global::free`). Memory that must not be written is declared
        // below. The interpreter lock is released, so that another thread may write to the same array as it may while
        // any native code works on one: kernels access it with atomics only.
        let address = match (lent.address, lent.fixed) {
            (0, _) => memory.allocate(lent.bytes, 256, &lent.name)?,
            (address, true) => {
                // SAFETY: as said.
                unsafe { memory.borrow_in_place(host, lent.bytes, &lent.name)? };
                address as u64
            }
            // SAFETY: as said.
            (_, false) => unsafe { memory.borrow(host, lent.bytes, &lent.name)? },
        };
        let role = if lent.constant { Role::Constant } else { Role::Scratch };
        memory.declare(address, role, lent.element)?;
        for &(from, to) in &lent.unwritten {
            memory.forget_part(address, from, to.saturating_sub(from))?;
        }
        Ok(address)
    }
}

/// What an architecture allows: `multiprocessors`, `threads_per_block`, `shared_per_block`, all of them numbers.
#[pyfunction]
pub fn architecture<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
    let limits = &Arch::named(name).map_err(ptx_error)?.limits;
    let answer = PyDict::new(py);
    answer.set_item("multiprocessors", Options::default().multiprocessors)?;
    answer.set_item("threads_per_block", limits.threads_per_block)?;
    answer.set_item("shared_per_block", limits.shared_per_block_optin)?;
    answer.set_item("registers_per_block", limits.registers_per_block)?;
    Ok(answer)
}
