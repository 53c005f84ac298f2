//! One kernel for one target: its committed PTX, resolved, and what `ptxas` makes of it.

use crate::error::{Error, Result};
use crate::inspect::committed::{self, Committed, is_written_by_hand, shown, source_of};
use crate::inspect::finding::Place;
use gpuemu_contract::Kernel;
use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::metrics::{self, Metrics};
use gpuemu_ptx::parse::LineIndex;
use gpuemu_ptx::program::{Form, Function, FunctionId, Instruction, LocationId, Program};
use gpuemu_ptx::vendor::{EntryReport, Job, SassMix, Toolbox};
use std::path::Path;

/// A compiled kernel, ready to be weighed.
#[derive(Debug)]
pub struct Artifact<'a> {
    /// The folder of `gpuemu.toml`.
    pub root: &'a Path,
    /// The PTX and what it records.
    pub committed: Committed,
    /// The PTX, resolved.
    pub program: Program,
    /// The kernel in it.
    pub entry: FunctionId,
    /// What it is for.
    pub arch: &'static Arch,
}

/// What NVIDIA's tools say of it.
#[derive(Debug)]
pub struct Assembled {
    /// The release of ptxas, `13.5`.
    pub ptxas: String,
    /// Registers, spills, shared memory.
    pub report: EntryReport,
    /// Its machine instructions, or why they could not be read here.
    pub sass: std::result::Result<SassMix, String>,
}

impl<'a> Artifact<'a> {
    /// Reads and resolves the PTX of a kernel. `update` is the command that compiles it again.
    ///
    /// # Errors
    ///
    /// When there is no PTX that may be tested, it cannot be read, it has no such entry, or it is for another target.
    pub fn open(kernel: &Kernel, target: &str, root: &'a Path, update: &str) -> Result<Artifact<'a>> {
        let arch = Arch::named(target).map_err(|error| Error::Config(format!("kernel `{}`: {error}", kernel.name)))?;
        let committed = committed::load(kernel, target, root, update)?;
        let name = shown(&committed.path, root);
        let program = Program::read(&committed.text).map_err(|error| Error::Ptx(format!("{name}: {error}")))?;
        let entry = entry_of(kernel, &program, &name)?;
        let written = program.targets.first().map(|target| &**target).unwrap_or_default();
        let runs = match is_written_by_hand(source_of(kernel)?) {
            // ptxas assembles PTX for its own target and for later ones.
            true => Arch::named(written).map_or(written == target, |written| arch.runs(written)),
            false => written == target,
        };
        if !runs {
            return Err(Error::Artifact(format!("{name} is for `.target {written}`, which is no PTX for {target}")));
        }
        Ok(Artifact { root, committed, program, entry, arch })
    }

    /// The kernel.
    pub fn function(&self) -> &Function {
        self.program.function(self.entry)
    }

    /// The instructions that the kernel reaches, with their forms: its own first, then those of functions it calls.
    pub fn instructions<'m>(
        &'m self,
        metrics: &'m Metrics,
    ) -> impl Iterator<Item = (metrics::Place, &'m Instruction, &'m Form)> {
        metrics.functions.iter().flat_map(|id| {
            (0u32..).zip(&self.program.function(*id).instructions).map(|(index, instruction)| {
                let place = metrics::Place::new(&self.program, *id, index);
                (place, instruction, self.program.form(instruction.form))
            })
        })
    }

    /// The first instruction of this form.
    pub fn first(&self, metrics: &Metrics, is: impl Fn(&Form) -> bool) -> Option<metrics::Place> {
        self.instructions(metrics).find(|(_, _, form)| is(form)).map(|(place, ..)| place)
    }

    /// Where a person should look: in the source where it is known and there, else in the PTX.
    pub fn place(&self, place: metrics::Place) -> Place {
        self.place_in_source(place.location).unwrap_or_else(|| {
            let instruction = &self.program.function(place.function).instructions[place.instruction as usize];
            self.place_in_ptx(instruction.offset)
        })
    }

    /// Where an instruction stands in the PTX.
    pub fn place_in_ptx(&self, offset: u32) -> Place {
        let at = LineIndex::new(&self.committed.text).position(offset);
        Place { file: self.committed.path.clone(), line: at.line, column: at.column }
    }

    /// Where a location is in the user's source: the innermost file of its chain that is there.
    pub fn place_in_source(&self, location: Option<LocationId>) -> Option<Place> {
        let folder = self.committed.path.parent().unwrap_or(self.root);
        self.program.chain(location?).find_map(|id| {
            let location = self.program.location(id);
            let file = folder.join(self.program.path(location.file)?);
            let known = location.line > 0 && file.is_file();
            known.then(|| Place { file: file.clone(), line: location.line, column: location.column })
        })
    }

    /// What `ptxas` and a disassembler say. `Err` inside: they are not here, with the reason.
    ///
    /// # Errors
    ///
    /// When `ptxas` refuses the PTX, dies or hangs, a disassembler hangs, or a variable names what is no such tool.
    pub fn assemble(&self, toolbox: &Toolbox) -> Result<std::result::Result<Assembled, String>> {
        let name = shown(&self.committed.path, self.root);
        let job = Job { ptx: &self.committed.text, target: &self.arch.name, flags: &[] };
        let assembly = match toolbox.assemble(job) {
            Ok(assembly) => assembly,
            Err(gpuemu_ptx::Error::ToolMissing(why) | gpuemu_ptx::Error::ToolUnsuitable(why)) => return Ok(Err(why)),
            Err(gpuemu_ptx::Error::Refused { line, message }) => {
                let at = line.map_or_else(String::new, |line| format!(":{line}"));
                return Err(Error::Ptx(format!("{name}{at}: {message}")));
            }
            Err(error) => return Err(Error::Tool(format!("{name} for {}: {error}", self.arch.name))),
        };
        let entry = &*self.function().name;
        let Some(report) = assembly.output.entry(entry).cloned() else {
            return Err(Error::Tool(format!("{} reports nothing of `{entry}` in {name}", assembly.tool)));
        };
        let sass = match toolbox.sass_mix(&assembly.cubin) {
            Ok(mixes) => {
                let mix = mixes.into_iter().find(|mix| mix.name == entry);
                mix.ok_or_else(|| format!("the disassembler lists no `{entry}`"))
            }
            Err(error @ gpuemu_ptx::Error::ToolFailed(_)) => {
                return Err(Error::Tool(format!("{name} for {}: {error}", self.arch.name)));
            }
            Err(error) => Err(error.to_string()),
        };
        let ptxas = assembly.tool.trim_start_matches("ptxas ").to_owned();
        Ok(Ok(Assembled { ptxas, report, sass }))
    }
}

/// The entry that the contract names, or the only one there is.
fn entry_of(kernel: &Kernel, program: &Program, name: &str) -> Result<FunctionId> {
    let names = || program.entries().map(|(_, function)| &*function.name);
    let Some(wanted) = &kernel.entry else {
        let mut entries = program.entries();
        return match (entries.next(), entries.next()) {
            (Some((id, _)), None) => Ok(id),
            (None, _) => Err(Error::KernelNotFound(format!("{name} has no entry"))),
            (Some(_), Some(_)) => Err(Error::KernelNotFound(format!(
                "{name} has several entries: write the `entry` of kernel `{}`, one of {}",
                kernel.name,
                names().collect::<Vec<_>>().join(", ")
            ))),
        };
    };
    if let Some((id, _)) = program.entries().find(|(_, function)| *function.name == **wanted) {
        return Ok(id);
    }
    // C++ mangles the names of functions that are not extern "C".
    let mangled = |entry: &str| entry.starts_with("_Z") && entry.contains(&format!("{}{wanted}", wanted.len()));
    let mut alike = program.entries().filter(|(_, function)| mangled(&function.name));
    if let (Some((id, _)), None) = (alike.next(), alike.next()) {
        return Ok(id);
    }
    let hint = match gpuemu_contract::nearest(wanted, names()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!(": it has {}", names().collect::<Vec<_>>().join(", ")),
    };
    Err(Error::KernelNotFound(format!("{name} has no entry `{wanted}`{hint}")))
}
