//! A device: memory, modules, launches.

use std::sync::Arc;

use super::counters::{self, Counters};
use super::grid;
use super::launch::Launch;
use super::module::Module;
use super::options::Options;
use super::output::Printed;
use super::report;
use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::fault::{Accessed, Action, CudaError, Fault, FaultKind};
use crate::memory::{Global, Place, Region, Role, shadow};
use crate::occupancy::Footprint;
use crate::program::{Function, Program};

/// A device of one architecture, with its own memory.
pub struct Device {
    arch: Arc<Arch>,
    options: Options,
    global: Global,
    /// Where the parameters of a launch lie.
    parameters: u64,
    launches: u64,
}

/// How many threads a launch has, and how much dynamic shared memory a block gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared: u32,
}

/// One argument of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An address on the device.
    Pointer(u64),
    /// An integer; its size is that of the parameter, which it must fit, signed or not.
    Integer(i128),
    /// A float32.
    Float32(f32),
    /// A float64.
    Float64(f64),
    /// The bytes of a parameter of any type: of a structure, or of a number in the device's order.
    Bytes(Vec<u8>),
}

/// What a launch left behind beside memory.
#[derive(Debug)]
#[must_use]
pub struct Launched {
    /// What kernels printed, block by block: the first 16 MiB of it.
    pub printed: Vec<Printed>,
    /// Instructions that were executed, those of each warp counted. Calls of `printf`, `malloc` and `free` count as several.
    pub instructions: u64,
    /// What it did, where the module was loaded with [`Options::counters`].
    pub counters: Option<Counters>,
    /// Why it did not end well.
    pub fault: Option<Fault>,
    /// What of the launch a driver refuses; nothing ran then.
    pub refused: Option<Refused>,
}

/// What of a launch a driver refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The blocks of the grid.
    Grid,
    /// The threads of a block.
    Block,
    /// The dynamic shared memory of a block.
    Shared,
    /// The kernel itself: no launch of it is taken.
    Kernel,
    /// The arguments: too many, or too few.
    Arguments,
    /// An argument that is of another kind than its parameter, by place.
    Kind(usize),
    /// An argument that its parameter has no room for, by place.
    Value(usize),
}

/// What is refused, the driver's error, and the reason.
type Refusal = (Refused, CudaError, String);

/// Bytes of the memory for parameters: the most that any architecture takes, rounded up.
const PARAMETERS: u64 = 1 << 15;
/// Calls that may be open at once.
const DEPTH: u32 = 4096;
/// Local memory of a thread that calls functions: CUDA's default is 1 KiB beside the frames that are known.
const STACK: u32 = 1 << 14;
/// Blocks that are on a device at once, at least.
const LEAST_RESIDENT: u64 = 1024;

impl Device {
    /// A device without modules.
    ///
    /// # Errors
    ///
    /// A host without memory.
    pub fn new(arch: &Arch, options: Options) -> Result<Self> {
        let mut global = Global::new(options.addressing, options.sanitizers.any());
        let parameters = global.allocate(PARAMETERS, 256, "the parameters")?;
        global.declare(parameters, Role::Constant, 0)?;
        Ok(Self { arch: Arc::new(arch.clone()), options, global, parameters, launches: 0 })
    }

    /// Its architecture.
    pub fn arch(&self) -> &Arch {
        &self.arch
    }

    /// Its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Its options, for launches to come.
    pub fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// Its memory.
    pub fn memory(&self) -> &Global {
        &self.global
    }

    /// Its memory, to read, write, fill and free.
    pub fn memory_mut(&mut self) -> &mut Global {
        &mut self.global
    }

    /// Loads a module from text.
    ///
    /// # Errors
    ///
    /// Text that is no PTX, or an instruction in it that cannot be executed, with its line.
    pub fn load(&mut self, text: &str) -> Result<Module> {
        Module::load(Program::read(text)?, None, &self.arch, &self.options, &mut self.global)
    }

    /// Loads one entry of a program, whatever the others are.
    ///
    /// # Errors
    ///
    /// No entry of that name, or an instruction in it that cannot be executed.
    pub fn load_entry(&mut self, program: Program, entry: &str) -> Result<Module> {
        Module::load(program, Some(entry), &self.arch, &self.options, &mut self.global)
    }

    /// Runs an entry to its end.
    ///
    /// # Errors
    ///
    /// No entry of that name, or one that was not loaded. Whatever a driver would refuse, and whatever goes wrong while
    /// it runs, is a fault in the answer.
    pub fn launch(&mut self, module: &Module, entry: &str, shape: Shape, arguments: &[Argument]) -> Result<Launched> {
        let id = module.program().entry(entry)?;
        let function = module.program().function(id);
        let Some(code) = module.code(id) else {
            return Err(Error::NoEntry { name: entry.to_owned(), nearest: None, entries: 0 });
        };
        let refused = |(what, error, reason): Refusal| Launched {
            printed: Vec::new(),
            instructions: 0,
            counters: None,
            fault: Some(Fault::new(FaultKind::InvalidLaunch(error), entry).because(reason)),
            refused: Some(what),
        };
        if let Err(refusal) = self.check(function, shape, code.shared) {
            return Ok(refused(refusal));
        }
        let parameters = match packed(function, arguments) {
            Ok(parameters) => parameters,
            Err((what, reason)) => return Ok(refused((what, CudaError::InvalidValue, reason))),
        };
        self.global.write(self.parameters, &parameters)?;
        self.launches += 1;
        let frames = code.functions.iter().fold(0u32, |all, routine| all.saturating_add(routine.local));
        let local = match code.functions.len() {
            1 if !code.grows => frames,
            // Functions may call each other again and again, or take what they need.
            _ => frames.saturating_add(STACK).min(self.arch.limits.local_bytes_per_thread),
        };
        if local > self.arch.limits.local_bytes_per_thread {
            let most = self.arch.limits.local_bytes_per_thread;
            let reason = format!("{local} bytes of local memory for a thread: {} has at most {most}", self.arch.name);
            return Ok(refused((Refused::Kernel, CudaError::LaunchOutOfResources, reason)));
        }
        let launch = Launch {
            grid: shape.grid,
            block: shape.block,
            dynamic_shared: shape.shared,
            shared: code.shared + shape.shared,
            local: local.next_multiple_of(16),
            depth: DEPTH,
            // Each instruction that is counted has an operation before it.
            budget: if code.counted.is_empty() { self.options.budget } else { self.options.budget.saturating_mul(2) },
            heap: self.options.heap,
            parameters,
            parameter_base: self.parameters,
            number: self.launches,
            multiprocessors: self.options.multiprocessors,
            resident: self.resident(shape, code.shared),
            seed: self.options.seed,
            sanitizers: self.options.sanitizers,
        };
        let watched = self.options.sanitizers.any() && self.global.is_checked();
        let shadow = watched.then(|| shadow::Grid::new(&mut self.global)).flatten();
        let report =
            grid::run(code, &launch, &self.global, shadow.as_ref(), self.options.threads, self.options.cancel.as_ref());
        let told = |stopped| report::fault(stopped, code, &launch, module.program(), entry, &self.global);
        let fault = report.stopped.map(told);
        let counters = (!code.counted.is_empty()).then(|| counters::summed(&code.counted, &report.counts));
        let instructions = counters.as_ref().map_or(report.instructions, |counters| counters.instructions);
        Ok(Launched { printed: report.printed, instructions, counters, fault, refused: None })
    }

    /// A fault for every tensor declared as an output ([`Role::Output`]) of which some byte was not written since it was
    /// made or last forgotten. Empty where initialisation is not watched.
    pub fn unwritten(&self) -> Vec<Fault> {
        let outputs = self.global.regions().into_iter().filter(|region| region.role() == Role::Output);
        let fault = |region: &Region| {
            let missing = region.written()?.missing();
            let &(offset, end) = missing.first()?;
            let bytes = end - offset;
            let place = Place::Inside {
                region: region.name().to_owned(),
                offset,
                bytes: region.bytes(),
                element: region.element(),
            };
            let address = region.base() + offset;
            let accessed = Accessed { action: Action::Write, bytes: bytes.min(u32::MAX.into()) as u32, address, place };
            let total: u64 = missing.iter().map(|(from, to)| to - from).sum();
            let detail = format!("{total} of {} bytes of `{}` were never written", region.bytes(), region.name());
            Some(Fault { accessed: Some(accessed), ..Fault::new(FaultKind::OutputNotWritten, "") }.because(detail))
        };
        outputs.filter_map(fault).collect()
    }

    /// Blocks that are on the device at once, as far as shared memory and threads decide it; at least as many as on a GPU
    /// of many multiprocessors.
    fn resident(&self, shape: Shape, fixed: u32) -> u64 {
        let threads = shape.block.iter().product();
        let footprint = Footprint { shared: fixed + shape.shared, threads, ..Footprint::default() };
        let blocks = u64::from(self.arch.occupancy(footprint).blocks);
        (blocks * u64::from(self.options.multiprocessors)).max(LEAST_RESIDENT)
    }

    /// Whether a driver would take the launch.
    fn check(&self, function: &Function, shape: Shape, fixed: u32) -> std::result::Result<(), Refusal> {
        let limits = &self.arch.limits;
        let axes = ["x", "y", "z"];
        for ((&extent, &most), axis) in shape.grid.iter().zip(&limits.grid_dimensions).zip(axes) {
            if extent == 0 || extent > most {
                let reason = format!("a grid of {extent} blocks along {axis}: there may be 1 to {most}");
                return Err((Refused::Grid, CudaError::InvalidValue, reason));
            }
        }
        for ((&extent, &most), axis) in shape.block.iter().zip(&limits.block_dimensions).zip(axes) {
            if extent == 0 || extent > most {
                let reason = format!("a block of {extent} threads along {axis}: there may be 1 to {most}");
                return Err((Refused::Block, CudaError::InvalidValue, reason));
            }
        }
        let threads: u64 = shape.block.iter().map(|&extent| u64::from(extent)).product();
        if threads > u64::from(limits.threads_per_block) {
            let reason =
                format!("a block of {threads} threads: {} has at most {}", self.arch.name, limits.threads_per_block);
            return Err((Refused::Block, CudaError::InvalidValue, reason));
        }
        if let Some(required) = function.required_threads
            && required != shape.block
        {
            let reason = format!("a block of {:?} threads: the kernel is made for {required:?}", shape.block);
            return Err((Refused::Block, CudaError::InvalidValue, reason));
        }
        if let Some(maximum) = function.maximum_threads {
            let most: u64 = maximum.iter().map(|&extent| u64::from(extent.max(1))).product();
            if threads > most {
                let reason = format!("a block of {threads} threads: the kernel is made for {most} at most");
                return Err((Refused::Block, CudaError::InvalidValue, reason));
            }
        }
        if fixed > limits.shared_per_block_optin {
            let reason = format!(
                "{fixed} bytes of static shared memory: {} has at most {}",
                self.arch.name, limits.shared_per_block_optin
            );
            return Err((Refused::Kernel, CudaError::InvalidValue, reason));
        }
        if shape.shared > limits.max_dynamic_shared(fixed) {
            let reason = format!(
                "{} bytes of dynamic shared memory beside {fixed} of static: {} has at most {}",
                shape.shared, self.arch.name, limits.shared_per_block_optin
            );
            return Err((Refused::Shared, CudaError::InvalidValue, reason));
        }
        if function.parameter_bytes > limits.parameter_bytes {
            let reason =
                format!("{} bytes of parameters: there may be {}", function.parameter_bytes, limits.parameter_bytes);
            return Err((Refused::Kernel, CudaError::InvalidValue, reason));
        }
        Ok(())
    }
}

/// The parameters as memory.
fn packed(function: &Function, arguments: &[Argument]) -> std::result::Result<Vec<u8>, (Refused, String)> {
    if arguments.len() != function.parameters.len() {
        let (given, taken) = (arguments.len(), function.parameters.len());
        let plural = if given == 1 { "" } else { "s" };
        return Err((Refused::Arguments, format!("{given} argument{plural}: the kernel takes {taken}")));
    }
    let mut bytes = vec![0; function.parameter_bytes as usize];
    for (place, (parameter, argument)) in function.parameters.iter().zip(arguments).enumerate() {
        let (start, size) = (parameter.offset as usize, parameter.size as usize);
        let told = |what: String| format!("{what} for parameter `{}` of {size} bytes", parameter.name);
        let wrong = |what: &str| Err((Refused::Kind(place), told(what.to_owned())));
        let value = match argument {
            Argument::Pointer(address) if size == 8 => address.to_le_bytes().to_vec(),
            Argument::Integer(value) if matches!(size, 1 | 2 | 4 | 8) => {
                let bits = 8 * size as u32;
                if *value < -(1 << (bits - 1)) || *value >= 1 << bits {
                    return Err((Refused::Value(place), told(format!("{value} is too large"))));
                }
                value.to_le_bytes()[..size].to_vec()
            }
            Argument::Float32(value) if size == 4 => value.to_le_bytes().to_vec(),
            Argument::Float64(value) if size == 8 => value.to_le_bytes().to_vec(),
            Argument::Bytes(value) if value.len() == size => value.clone(),
            Argument::Pointer(_) => return wrong("a pointer"),
            Argument::Integer(_) => return wrong("an integer"),
            Argument::Float32(_) => return wrong("a float32"),
            Argument::Float64(_) => return wrong("a float64"),
            Argument::Bytes(value) => return wrong(&format!("{} bytes", value.len())),
        };
        bytes[start..start + size].copy_from_slice(&value);
    }
    Ok(bytes)
}
