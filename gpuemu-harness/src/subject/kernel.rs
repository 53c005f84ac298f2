//! A compiled kernel under test: its committed PTX, executed on this machine.

use super::elements::{Elements, straddles};
use super::placement::Placement;
use super::{Call, Subject, SubjectError, launch, refusal};
use crate::error::{Error, Result};
use crate::inspect::artifact::Artifact;
use crate::inspect::committed::{self, is_written_by_hand, shown, source_of};
use crate::tensor::Tensor;
use gpuemu_contract::{Argument, DType, Kernel, Launch, Op, OutputShape};
use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Cancel, Counters, Device, Module, Options, Printed, Sanitizers};
use gpuemu_ptx::fault::{Fault, FaultKind};
use gpuemu_ptx::program::{Program, pointer_accesses};
use std::fmt::Write;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

/// A kernel that can be executed here. Every call has a device of its own: the answer is a function of the case.
#[derive(Clone, Debug)]
pub struct KernelSubject {
    /// What it is, for messages.
    description: String,
    program: Arc<Program>,
    entry: String,
    arch: &'static Arch,
    dtypes: Vec<DType>,
    launch: Launch,
    elements: Elements,
    watch: Watch,
    inout: Vec<String>,
    /// The order of blocks and warps, where it is not the usual one.
    order: Option<u64>,
}

/// What is told of launches beside answers and faults.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// What is watched instead of what the kernel asks for.
    pub sanitizers: Option<Sanitizers>,
    /// Instructions that a block may run instead of what the launch says.
    pub budget: Option<NonZeroU64>,
    /// Whether what is executed is counted.
    pub counters: bool,
    /// What ends a launch before its kernel does.
    pub cancel: Option<Cancel>,
}

/// Lines that a kernel printed which a failure shows.
const PRINTED: usize = 8;

impl KernelSubject {
    /// Loads the kernel that computes `op`, for the first of its targets that is executed here. The inner error says why
    /// none of them is. `update` is the command that compiles it again.
    ///
    /// # Errors
    ///
    /// When there is no PTX that may be tested, as for [`Artifact::open`].
    pub fn open(
        kernel: &Kernel,
        op: &Op,
        root: &Path,
        update: &str,
        watch: Watch,
    ) -> Result<std::result::Result<KernelSubject, String>> {
        if kernel.launch.is_none() {
            return Ok(Err("no [kernels.launch] says how it is started".to_owned()));
        }
        if let Some(output) = op.schema.outputs.iter().find(|output| output.shape == OutputShape::FromReference) {
            return Ok(Err(format!("output `{}` of op `{}` declares no shape to write into", output.name, op.name)));
        }
        if kernel.source.is_none() {
            return Ok(Err("no `source` names what is compiled".to_owned()));
        }
        let mut reasons = Vec::new();
        for target in &targets(kernel, root, update)? {
            match KernelSubject::of_target(kernel, op, target, root, update, watch.clone())? {
                Ok(subject) => return Ok(Ok(subject)),
                Err(reason) => reasons.push(reason),
            }
        }
        Ok(Err(match reasons.is_empty() {
            true => "no `targets` in its [kernels.artifact_checks] say which PTX is executed".to_owned(),
            false => reasons.join("; "),
        }))
    }

    /// As [`KernelSubject::open`], for one target.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn of_target(
        kernel: &Kernel,
        op: &Op,
        target: &str,
        root: &Path,
        update: &str,
        watch: Watch,
    ) -> Result<std::result::Result<KernelSubject, String>> {
        let Some(launch) = &kernel.launch else {
            return Ok(Err("no [kernels.launch] says how it is started".to_owned()));
        };
        let artifact = Artifact::open(kernel, target, root, update)?;
        let path = shown(&artifact.committed.path, root);
        let subject = KernelSubject {
            description: format!("kernel {} ({path} on an emulated {target})", kernel.name),
            entry: artifact.function().name.to_string(),
            arch: artifact.arch,
            elements: Elements::new(launch, pointer_accesses(&artifact.program, artifact.entry)),
            program: Arc::new(artifact.program),
            dtypes: kernel.dtypes.clone(),
            launch: launch.clone(),
            watch: Watch {
                sanitizers: watch.sanitizers.or(Some(Sanitizers {
                    races: kernel.sanitizers.races,
                    initialisation: kernel.sanitizers.uninitialised_reads,
                    inputs: kernel.sanitizers.input_writes,
                    indices: kernel.sanitizers.index_wraps,
                })),
                ..watch
            },
            order: None,
            inout: op.schema.inputs.iter().filter(|input| input.inout).map(|input| input.name.clone()).collect(),
        };
        Ok(match subject.load() {
            Ok(_) => Ok(subject),
            Err(error) => Err(format!("{path}: {error}")),
        })
    }

    fn load(&self) -> std::result::Result<(Device, Module), gpuemu_ptx::Error> {
        let options = Options {
            budget: self.watch.budget.map_or(self.launch.budget, NonZeroU64::get),
            sanitizers: self.watch.sanitizers.unwrap_or(Sanitizers::ALL),
            counters: self.watch.counters,
            cancel: self.watch.cancel.clone(),
            seed: self.order,
            ..Options::default()
        };
        let mut device = Device::new(self.arch, options)?;
        let module = device.load_entry((*self.program).clone(), &self.entry)?;
        Ok((device, module))
    }

    /// Runs one case and says what the launch did, where that is counted.
    ///
    /// # Errors
    ///
    /// As for [`Subject::run`].
    pub fn launch(&self, call: &mut Call<'_>) -> std::result::Result<Option<Counters>, SubjectError> {
        let internal =
            |error: gpuemu_ptx::Error| SubjectError { kind: "emulator", message: error.to_string(), fault: false };
        let (mut device, module) = self.load().map_err(internal)?;
        let is_inout = |name: &str| self.inout.iter().any(|inout| inout == name);
        let placement = Placement::new(call, device.memory_mut(), |name| self.is_named(name), is_inout)?;
        let shape = launch::shape(&self.launch, call)?;
        let id = module.program().entry(&self.entry).map_err(internal)?;
        let entry = module.program().function(id);
        let address = |name: &str| placement.address(call, name);
        let arguments = launch::arguments(&self.launch, call, entry, address, device.memory())?;
        let launched = device.launch(&module, &self.entry, shape, &arguments).map_err(internal)?;
        if let (Some(fault), Some(what)) = (&launched.fault, launched.refused) {
            return Err(refusal::refused(fault, what, &self.launch, shape, entry));
        }
        let dtype = |name: &str| {
            let inputs = call.inputs.iter().map(|(name, tensor)| (name, Some(tensor)));
            let outputs = call.outputs.iter().map(|(name, tensor)| (name, tensor.as_ref()));
            inputs.chain(outputs).find(|(own, _)| *own == name)?.1.map(Tensor::dtype)
        };
        let mismatch = self.elements.mismatch(dtype);
        if let Some(fault) = &launched.fault {
            let told = self.elements.astray(entry).or(mismatch).or_else(|| straddles(fault, dtype));
            return Err(faulted(fault, told.as_deref(), &launched.printed));
        }
        call.notes.extend(mismatch);
        placement.read_back(call, device.memory_mut())?;
        Ok(launched.counters)
    }

    fn is_named(&self, tensor: &str) -> bool {
        self.launch.args.iter().any(|argument| matches!(argument, Argument::Tensor(name) if name == tensor))
    }
}

/// The targets whose PTX may be executed: those that the contract names, or the one that a hand-written file is for.
fn targets(kernel: &Kernel, root: &Path, update: &str) -> Result<Vec<String>> {
    if !kernel.targets.is_empty() || !is_written_by_hand(source_of(kernel)?) {
        return Ok(kernel.targets.clone());
    }
    let committed = committed::load(kernel, "", root, update)?;
    let program = Program::read(&committed.text)
        .map_err(|error| Error::Ptx(format!("{}: {error}", shown(&committed.path, root))))?;
    Ok(program.targets.first().map(|target| target.to_string()).into_iter().collect())
}

impl Subject for KernelSubject {
    fn run(&self, call: &mut Call<'_>) -> std::result::Result<(), SubjectError> {
        let counters = self.launch(call)?;
        call.notes.extend(counters.as_ref().map(described));
        Ok(())
    }

    fn supports(&self, dtype: DType) -> bool {
        self.dtypes.contains(&dtype)
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn reordered(&self, seed: u64) -> Option<Arc<dyn Subject>> {
        Some(Arc::new(KernelSubject { order: Some(seed), ..self.clone() }))
    }
}

/// The fault of a launch, what else there is to tell of it, and what the kernel printed before it.
fn faulted(fault: &Fault, told: Option<&str>, printed: &[Printed]) -> SubjectError {
    let mut message = fault.to_string();
    if fault.kind == FaultKind::Runaway {
        message += "\n  `budget` of [kernels.launch], or GPUEMU_BUDGET, lets it run for longer";
    }
    if let Some(line) = told {
        let _ = write!(message, "\n  {line}");
    }
    for printed in printed.iter().take(PRINTED) {
        let ([x, y, z], [tx, ty, tz]) = (printed.block, printed.thread);
        let text = printed.text.trim_end_matches('\n');
        let _ = write!(message, "\n  printed by thread ({tx}, {ty}, {tz}) of block ({x}, {y}, {z}): {text}");
    }
    if let Some(more) = printed.len().checked_sub(PRINTED).filter(|more| *more > 0) {
        let _ = write!(message, "\n  and {more} more calls of printf");
    }
    SubjectError { kind: fault.kind.name(), message, fault: true }
}

/// What a launch did, in a line.
fn described(counters: &Counters) -> String {
    let (loads, stores) = (&counters.global_loads, &counters.global_stores);
    let accesses = counters.shared_loads.requests + counters.shared_stores.requests;
    format!(
        "executed {} instructions of warps, {:.0}% of their lanes; {} of {} branches diverged; {:.1} sectors a load and {:.1} a \
         store of global memory; {} bank conflicts in {accesses} accesses to shared memory; {} barriers; {} atomics",
        counters.instructions,
        100.0 * counters.occupancy(),
        counters.divergent_branches,
        counters.branches,
        loads.sectors_per_request(),
        stores.sectors_per_request(),
        counters.bank_conflicts(),
        counters.barriers,
        counters.global_atomics + counters.shared_atomics,
    )
}
