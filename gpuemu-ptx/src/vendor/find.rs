//! Where a tool is, and which version it is.

use super::child::{self, Ending, Limits};
use super::{Settings, Tool};
use std::collections::BTreeSet;
use std::env::consts::EXE_SUFFIX;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Asking a tool for its version, or Python for its folders, takes milliseconds. `timeout` is what a run may take.
fn asking(timeout: Duration) -> Limits {
    Limits { timeout: timeout.min(Duration::from_secs(20)), output: 1 << 20 }
}

/// An executable that may be the tool.
#[derive(Debug)]
pub struct Candidate {
    /// Where it is.
    pub path: PathBuf,
    about: OnceLock<Result<About, String>>,
    newest_ptx: OnceLock<Result<Option<(u32, u32)>, String>>,
}

/// What a tool says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// `13.5`, say.
    pub release: String,
    /// Everything it prints, which also tells builds of one release apart.
    pub text: String,
}

impl Candidate {
    fn new(path: PathBuf) -> Candidate {
        Candidate { path, about: OnceLock::new(), newest_ptx: OnceLock::new() }
    }

    /// Its version; asked once. The error says what it is instead of the tool.
    pub fn about(&self, tool: Tool, timeout: Duration) -> Result<&About, String> {
        let about = self.about.get_or_init(|| {
            let shown = self.path.display();
            if let Some(reason) = useless(&self.path) {
                return Err(format!("{shown} {reason}"));
            }
            let finished = child::run(Command::new(&self.path).arg("--version"), asking(timeout))
                .map_err(|error| format!("{shown} could not be started: {error}"))?;
            let text = format!("{}{}", lossy(&finished.stdout), lossy(&finished.stderr));
            if finished.ending != Ending::Exited(0) {
                return Err(format!("{shown} was asked for its version and {}", finished.ending));
            }
            let release = text.split("release ").nth(1).and_then(|rest| rest.split([',', '\n', ' ']).next());
            match release {
                Some(release) if text.contains(tool.title()) && !release.is_empty() => {
                    Ok(About { release: release.to_owned(), text })
                }
                _ => {
                    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
                    Err(format!("{shown} is not NVIDIA's {tool}: asked for its version, it says {:?}", clip(first)))
                }
            }
        });
        about.as_ref().map_err(Clone::clone)
    }

    /// The newest `.version` that this ptxas takes; asked once, by handing it one that is too new. The error: it never
    /// answered.
    pub fn newest_ptx(&self, timeout: Duration) -> Result<Option<(u32, u32)>, String> {
        let ask = || {
            let folder = tempfile::tempdir().ok()?;
            std::fs::write(folder.path().join("version.ptx"), ".version 99.0\n.target sm_80\n").ok()?;
            let mut command = Command::new(&self.path);
            command.current_dir(folder.path()).args(["-arch=sm_80", "version.ptx", "-o", "version.cubin"]);
            let finished = child::run(&mut command, asking(timeout)).ok()?;
            if let Ending::TimedOut(_) = finished.ending {
                return Some(Err(finished.ending.to_string()));
            }
            let said = format!("{}{}", lossy(&finished.stderr), lossy(&finished.stdout));
            let (_, rest) = said.split_once("current version is '")?;
            version(rest.split('\'').next()?).map(|newest| Ok(Some(newest)))
        };
        self.newest_ptx.get_or_init(|| ask().unwrap_or(Ok(None))).clone()
    }
}

/// Finds the executables of every tool, once.
#[derive(Debug, Default)]
pub struct Finder {
    near: [OnceLock<Vec<Candidate>>; 4],
    far: [OnceLock<Vec<Candidate>>; 4],
    folders: OnceLock<Result<Vec<PathBuf>, String>>,
}

impl Finder {
    /// Executables of this tool: the one that is named, or else those on the search path, then those of the wheels.
    pub fn candidates<'here>(
        &'here self,
        settings: &'here Settings,
        tool: Tool,
    ) -> impl Iterator<Item = &'here Candidate> {
        let near = self.near[tool as usize].get_or_init(|| match settings.named(tool) {
            Some(path) => vec![Candidate::new(named(settings, path))],
            None => on_path(settings, tool),
        });
        // Wheels cost a run of Python, so they are looked at when the search path was not enough.
        let far = std::iter::once_with(move || {
            self.far[tool as usize].get_or_init(|| match settings.named(tool) {
                Some(_) => Vec::new(),
                None => in_wheels(self.packages(settings), tool),
            })
        });
        near.iter().chain(far.flatten())
    }

    /// Says where a tool was looked for in vain.
    pub fn missing(&self, settings: &Settings, tool: Tool) -> String {
        let path = if settings.path.is_some() { "on the search path" } else { "on no search path (none is set)" };
        let wheels = match (&settings.python, self.folders(settings)) {
            (None, _) => "in no Python wheel (no interpreter is named)".to_owned(),
            (Some(_), Err(error)) => format!("in no Python wheel ({error})"),
            (Some(_), Ok(folders)) => {
                let folders = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
                format!("in the wheels triton (triton/backends/nvidia/bin) and nvidia (nvidia/*/bin) of {folders}")
            }
        };
        format!("{tool} is needed and not there: looked for it {path} and {wheels}; {}", tool.advice())
    }

    /// The folders that the interpreter imports packages from; none where there is no interpreter.
    pub fn packages(&self, settings: &Settings) -> &[PathBuf] {
        self.folders(settings).as_deref().unwrap_or_default()
    }

    fn folders(&self, settings: &Settings) -> &Result<Vec<PathBuf>, String> {
        self.folders.get_or_init(|| match &settings.python {
            Some(python) => python_folders(python, settings.timeout),
            None => Ok(Vec::new()),
        })
    }
}

/// The tool that a variable names: a path, or the name of one on the search path.
fn named(settings: &Settings, path: &Path) -> PathBuf {
    if path.components().count() == 1 && !path.exists() {
        let folders = settings.path.iter().flat_map(std::env::split_paths).filter(|folder| folder.is_absolute());
        if let Some(found) = folders.map(|folder| folder.join(path)).find(|path| is_executable(path)) {
            return found;
        }
    }
    // A relative path would mean something else in the folder where the tool is started.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Why a path cannot be started, where that is plain to see.
fn useless(path: &Path) -> Option<&'static str> {
    match std::fs::metadata(path) {
        Err(_) => Some("is not there"),
        Ok(about) if about.is_dir() => Some("is a folder"),
        Ok(_) if !is_executable(path) => Some("is not executable"),
        Ok(_) => None,
    }
}

fn on_path(settings: &Settings, tool: Tool) -> Vec<Candidate> {
    let Some(path) = &settings.path else { return Vec::new() };
    let name = format!("{}{EXE_SUFFIX}", tool.name());
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    unique(folders.map(|folder| folder.join(&name)))
}

fn in_wheels(folders: &[PathBuf], tool: Tool) -> Vec<Candidate> {
    let name = format!("{}{EXE_SUFFIX}", tool.name());
    let mut paths = Vec::new();
    for folder in folders {
        let triton = folder.join("triton/backends/nvidia/bin");
        paths.push(triton.join(&name));
        if tool == Tool::Ptxas {
            // The one that Triton starts for sm_100 and later.
            paths.push(triton.join(format!("ptxas-blackwell{EXE_SUFFIX}")));
        }
        // `cu13` holds everything of CUDA 13; before, every part had a folder: `cuda_nvcc`.
        let mut parts: Vec<PathBuf> = std::fs::read_dir(folder.join("nvidia"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        parts.sort_by_key(|path| (path.ends_with("cuda_nvcc"), std::cmp::Reverse(path.clone())));
        paths.extend(parts.into_iter().map(|part| part.join("bin").join(&name)));
    }
    unique(paths.into_iter())
}

/// Executable files, each once however many links lead to its folder. (Of a file itself, the name may say what it does.)
fn unique(paths: impl Iterator<Item = PathBuf>) -> Vec<Candidate> {
    let mut seen = BTreeSet::new();
    let place = |path: &PathBuf| {
        let folder = path.parent().and_then(|folder| std::fs::canonicalize(folder).ok());
        (folder, path.file_name().map(ToOwned::to_owned))
    };
    paths.filter(|path| is_executable(path) && seen.insert(place(path))).map(Candidate::new).collect()
}

fn is_executable(path: &Path) -> bool {
    let Ok(about) = std::fs::metadata(path) else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    about.is_file() && runs
}

/// The folders that this interpreter imports packages from.
fn python_folders(python: &Path, timeout: Duration) -> Result<Vec<PathBuf>, String> {
    let shown = python.display();
    let finished =
        child::run(Command::new(python).args(["-c", "import sys; print('\\n'.join(sys.path))"]), asking(timeout))
            .map_err(|error| format!("{shown} could not be started: {error}"))?;
    if finished.ending != Ending::Exited(0) {
        return Err(format!("{shown} was asked for its folders and {}", finished.ending));
    }
    let text = lossy(&finished.stdout);
    let folders = text.lines().filter(|line| line.ends_with("-packages")).map(PathBuf::from);
    Ok(folders.filter(|folder| folder.is_dir()).collect())
}

/// `8.8` as a pair.
pub fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The beginning of a line, fit for a message.
pub fn clip(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}
