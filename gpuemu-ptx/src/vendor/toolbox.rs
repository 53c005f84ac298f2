//! The door to NVIDIA's tools: assemble, disassemble, compile.

use super::cache::{Cache, Key};
use super::child::{self, Ending, Limits};
use super::find::{About, Candidate, Finder, lossy, version};
use super::nvrtc::Library;
use super::ptxas::{self, Outcome, quote};
use super::{PtxasOutput, SassMix, Settings, Tool, read_sass};
use crate::error::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A megabyte of machine code is some twenty of text.
const LISTING: usize = 256 << 20;

/// NVIDIA's tools, found when they are first needed.
#[derive(Debug, Default)]
pub struct Toolbox {
    settings: Settings,
    finder: Finder,
}

/// A module as assembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// `ptxas 13.5`.
    pub tool: String,
    /// Where that ptxas is.
    pub path: PathBuf,
    /// The target it was assembled for.
    pub target: String,
    /// Registers, spills, shared memory of every entry; warnings.
    pub output: PtxasOutput,
    /// The machine code, an ELF file.
    pub cubin: Vec<u8>,
    /// Whether it was taken from the cache.
    pub cached: bool,
}

/// A CUDA C++ file as compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// `nvcc 13.5` or `nvrtc 13.5`.
    pub compiler: String,
    /// The PTX.
    pub ptx: String,
}

/// One module to assemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job<'text> {
    /// The module.
    pub ptx: &'text str,
    /// `sm_80`, say.
    pub target: &'text str,
    /// Further flags for ptxas, `-maxrregcount=64`, say.
    pub flags: &'text [String],
}

impl Toolbox {
    /// Looks for nothing yet.
    pub fn new(settings: Settings) -> Toolbox {
        Toolbox { settings, finder: Finder::default() }
    }

    /// The first tool of this sort that is there and is what it should be, as `ptxas 13.5 (path)`. The error says where
    /// it was looked for and how to get it.
    pub fn describe(&self, tool: Tool) -> Result<String> {
        self.first(tool, |candidate, about| Ok(label(tool, candidate, about)))
    }

    /// Assembles a module with the first ptxas that takes its `.version` and the target.
    ///
    /// An error of the module carries its line ([`Error::Refused`]); a tool that is missing, knows neither the version
    /// nor the target, or hangs or dies is [`Error::ToolMissing`], [`Error::ToolUnsuitable`] or [`Error::ToolFailed`].
    pub fn assemble(&self, job: Job<'_>) -> Result<Assembly> {
        let wanted = declared_version(job.ptx);
        self.first(Tool::Ptxas, |candidate, about| {
            let label = label(Tool::Ptxas, candidate, about);
            let (tool, path) = (format!("ptxas {}", about.release), candidate.path.clone());
            let flags = job.flags.join("\0");
            let parts = [b"ptxas", about.text.as_bytes(), job.target.as_bytes(), flags.as_bytes(), job.ptx.as_bytes()];
            let (key, cache) = (Key::of(&parts), self.cache());
            if let Some((said, cubin)) = cache.load(&key) {
                let output = PtxasOutput::read(&said);
                return Ok(Assembly { tool, path, target: job.target.to_owned(), output, cubin, cached: true });
            }
            let newest = candidate.newest_ptx(self.settings.timeout);
            let newest = newest.map_err(|ending| Error::ToolFailed(format!("{label} {ending}")))?;
            if let (Some(wanted), Some(newest)) = (wanted, newest)
                && wanted > newest
            {
                return Err(Trouble::Pass(format!(
                    "{label} takes PTX up to .version {}.{}, and the module is of .version {}.{}",
                    newest.0, newest.1, wanted.0, wanted.1
                )));
            }
            match ptxas::run(candidate, &label, job.ptx, job.target, job.flags, self.settings.timeout)? {
                Outcome::WrongTool(reason) => Err(Trouble::Pass(format!("{label}: {reason}"))),
                Outcome::Assembled(said, cubin) => {
                    let output = PtxasOutput::read(&said);
                    // Entries without a line of figures would read as free of cost.
                    if output.entries.iter().any(|entry| entry.registers == 0) {
                        let text = format!("{label} printed no registers for an entry{}", quote(&said));
                        return Err(Trouble::Stop(Error::ToolFailed(text)));
                    }
                    cache.store(&key, &said, &cubin);
                    Ok(Assembly { tool, path, target: job.target.to_owned(), output, cubin, cached: false })
                }
            }
        })
    }

    /// Assembles many modules, up to `threads` at once; answers in their order.
    pub fn assemble_all(&self, jobs: &[Job<'_>], threads: usize) -> Vec<Result<Assembly>> {
        let next = AtomicUsize::new(0);
        let answers: Vec<Mutex<Option<Result<Assembly>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, jobs.len().max(1)) {
                scope.spawn(|| {
                    while let Some((job, answer)) = jobs.iter().zip(&answers).nth(next.fetch_add(1, Ordering::Relaxed))
                    {
                        *answer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(self.assemble(*job));
                    }
                });
            }
        });
        let answer = |answer: Mutex<Option<_>>| answer.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        answers.into_iter().filter_map(answer).collect()
    }

    /// Counts the machine instructions of an assembled module, by function, with nvdisasm or else cuobjdump.
    pub fn sass_mix(&self, cubin: &[u8]) -> Result<Vec<SassMix>> {
        // Whoever names one of the two wants that one.
        if self.settings.cuobjdump.is_some() && self.settings.nvdisasm.is_none() {
            return self.first(Tool::Cuobjdump, |candidate, about| {
                self.disassemble(Tool::Cuobjdump, candidate, about, "-sass", cubin)
            });
        }
        let by_nvdisasm = self
            .first(Tool::Nvdisasm, |candidate, about| self.disassemble(Tool::Nvdisasm, candidate, about, "-c", cubin));
        by_nvdisasm.or_else(|first| {
            // One that hangs, or that is named and is none: another try would only hide it.
            if let Error::ToolFailed(_) = first {
                return Err(first);
            }
            self.first(Tool::Cuobjdump, |candidate, about| {
                self.disassemble(Tool::Cuobjdump, candidate, about, "-sass", cubin)
            })
            .map_err(|second| match (first, second) {
                (_, second @ Error::ToolFailed(_)) => second,
                // Neither is there: one message is enough.
                (Error::ToolMissing(first), Error::ToolMissing(_)) => Error::ToolMissing(first),
                (first, Error::ToolMissing(_)) => first,
                (_, second) => second,
            })
        })
    }

    fn disassemble(
        &self,
        tool: Tool,
        candidate: &Candidate,
        about: &About,
        flag: &str,
        cubin: &[u8],
    ) -> std::result::Result<Vec<SassMix>, Trouble> {
        let label = label(tool, candidate, about);
        let (key, cache) = (Key::of(&[tool.name().as_bytes(), about.text.as_bytes(), cubin]), self.cache());
        if let Some((listing, _)) = cache.load(&key) {
            return Ok(read_sass(&listing));
        }
        let broken = |error: std::io::Error| Error::File(format!("cannot prepare a run of {tool}: {error}"));
        let folder = tempfile::tempdir().map_err(broken)?;
        fs::write(folder.path().join("module.cubin"), cubin).map_err(broken)?;
        let mut command = Command::new(&candidate.path);
        command.current_dir(folder.path()).args([flag, "module.cubin"]);
        let finished = child::run(&mut command, Limits { timeout: self.settings.timeout, output: LISTING })
            .map_err(|error| Error::ToolFailed(format!("{label} could not be started: {error}")))?;
        if let Ending::TimedOut(_) = finished.ending {
            return Err(Trouble::Stop(Error::ToolFailed(format!("{label} {}", finished.ending))));
        }
        if finished.ending != Ending::Exited(0) {
            // Machine code of an architecture that this one does not know, as a rule.
            return Err(Trouble::Pass(format!("{label} {}{}", finished.ending, quote(&lossy(&finished.stderr)))));
        }
        let listing = lossy(&finished.stdout);
        let mixes = read_sass(&listing);
        if mixes.is_empty() && !cubin.is_empty() {
            return Err(Trouble::Pass(format!("{label} listed no instruction{}", quote(&lossy(&finished.stderr)))));
        }
        cache.store(&key, &listing, &[]);
        Ok(mixes)
    }

    /// Compiles a CUDA C++ file to PTX for one target (`sm_80`), as `nvcc -ptx` does; by NVRTC of the wheels where there
    /// is no nvcc and none is named.
    pub fn compile(&self, source: &Path, target: &str, flags: &[String]) -> Result<Compiled> {
        let by_nvcc = self.compile_by_nvcc(source, target, flags);
        let missing = matches!(by_nvcc, Err(Error::ToolMissing(_))) && self.settings.nvcc.is_none();
        if let (true, Some(python)) = (missing, &self.settings.python)
            && let Some(library) = Library::find(self.finder.packages(&self.settings))
        {
            let (compiler, ptx) = library.compile(python, source, target, flags, self.settings.timeout)?;
            return Ok(Compiled { compiler, ptx });
        }
        by_nvcc
    }

    fn compile_by_nvcc(&self, source: &Path, target: &str, flags: &[String]) -> Result<Compiled> {
        self.first(Tool::Nvcc, |candidate, about| {
            let label = label(Tool::Nvcc, candidate, about);
            let broken = |error: std::io::Error| Error::File(format!("cannot prepare a run of nvcc: {error}"));
            let folder = tempfile::tempdir().map_err(broken)?;
            let ptx = folder.path().join("module.ptx");
            let mut command = Command::new(&candidate.path);
            command.arg("-ptx").arg(format!("-arch={target}")).args(flags).arg(source).arg("-o").arg(&ptx);
            let finished = child::run(&mut command, Limits { timeout: self.settings.timeout, output: LISTING })
                .map_err(|error| Error::ToolFailed(format!("{label} could not be started: {error}")))?;
            let said = quote(&format!("{}{}", lossy(&finished.stdout), lossy(&finished.stderr)));
            match finished.ending {
                Ending::Exited(0) => {}
                Ending::Exited(_) => {
                    let message = format!("{label} refuses {} for {target}{said}", source.display());
                    return Err(Trouble::Stop(Error::Refused { line: None, message }));
                }
                ending => {
                    let message = format!("{label} {ending}, on {} for {target}{said}", source.display());
                    return Err(Trouble::Stop(Error::ToolFailed(message)));
                }
            }
            let text = fs::read_to_string(&ptx)
                .map_err(|error| Error::ToolFailed(format!("{label} succeeded and left no PTX: {error}{said}")))?;
            Ok(Compiled { compiler: format!("nvcc {}", about.release), ptx: text })
        })
    }

    fn cache(&self) -> Cache<'_> {
        Cache(self.settings.cache.as_deref())
    }

    /// The first answer of the candidates of a tool. One that is no such tool, or that another may stand in for, is
    /// passed over, and named in the error when none answers.
    fn first<T>(
        &self,
        tool: Tool,
        mut ask: impl FnMut(&Candidate, &About) -> std::result::Result<T, Trouble>,
    ) -> Result<T> {
        let (mut reasons, mut refused) = (Vec::new(), false);
        for candidate in self.finder.candidates(&self.settings, tool) {
            let answer = match candidate.about(tool, self.settings.timeout) {
                Ok(about) => ask(candidate, about),
                // Whoever names a tool wants that one.
                Err(reason) if self.settings.named(tool).is_some() => {
                    let variable = tool.variable();
                    return Err(Error::ToolFailed(format!(
                        "{variable} names no {tool}: {reason}; name another, or unset {variable} to have one looked for"
                    )));
                }
                Err(reason) => {
                    reasons.push(reason);
                    continue;
                }
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Stop(error)) => return Err(error),
                Err(Trouble::Pass(reason)) => {
                    refused = true;
                    reasons.push(reason);
                }
            }
        }
        let reasons = reasons.join("\n  ");
        Err(if refused {
            Error::ToolUnsuitable(format!("no {tool} that is here takes it:\n  {reasons}"))
        } else if reasons.is_empty() {
            Error::ToolMissing(self.finder.missing(&self.settings, tool))
        } else {
            let advice = tool.advice();
            Error::ToolMissing(format!("{tool} is needed, and what was found is of no use; {advice}\n  {reasons}"))
        })
    }
}

/// Why one tool gives no answer.
enum Trouble {
    /// Another one may.
    Pass(String),
    /// No other one would.
    Stop(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Stop(error)
    }
}

/// How messages call a tool.
fn label(tool: Tool, candidate: &Candidate, about: &About) -> String {
    format!("{tool} {} ({})", about.release, candidate.path.display())
}

/// The module's `.version`, which stands before everything but comments.
fn declared_version(ptx: &str) -> Option<(u32, u32)> {
    let line = ptx.lines().take(1000).find_map(|line| line.trim_start().strip_prefix(".version"))?;
    version(line.split("//").next()?)
}
