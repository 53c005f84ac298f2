//! Every environment variable that gpuemu reads, read once into one struct.
//!
//! An empty value counts as unset, as continuous-integration matrices leave them. The `INSTA_*` variables mean what they
//! mean to insta, whose users review our snapshots.

use crate::error::{Error, Result};
use gpuemu_contract::Strategy;
use gpuemu_ptx::emulate::Sanitizers;
use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// What the environment asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// `GPUEMU_CONFIG`: the contract to read, instead of the nearest `gpuemu.toml`.
    pub config: Option<PathBuf>,
    /// `GPUEMU_SEED`: parent seed of every case, instead of the contract's.
    pub seed: Option<u64>,
    /// `GPUEMU_CASES`: cases a test, instead of the contract's.
    pub cases: Option<NonZeroU32>,
    /// `GPUEMU_CASE`: the spec of the one case to run in the test it names.
    pub case: Option<String>,
    /// `GPUEMU_STRATEGIES`: strategies of every op, instead of the contract's.
    pub strategies: Option<Vec<Strategy>>,
    /// `GPUEMU_PROFILE`: how much a run tries.
    pub profile: Option<Profile>,
    /// `GPUEMU_DEVICE`: what executes kernels.
    pub device: Device,
    /// `GPUEMU_SANITIZERS`: what is watched while kernels are executed, instead of what the contract says.
    pub sanitizers: Option<Sanitizers>,
    /// `GPUEMU_BUDGET`: instructions that a block of a kernel may run, instead of what the contract says.
    pub budget: Option<NonZeroU64>,
    /// `GPUEMU_COUNTERS`: results and failures of kernels say what their launches executed.
    pub counters: bool,
    /// `GPUEMU_REQUIRE`: a test that cannot run on this host fails instead of being ignored.
    pub require: bool,
    /// `GPUEMU_CALIBRATE`: what to do with the envelope file.
    pub calibrate: Option<Calibrate>,
    /// `GPUEMU_UPDATE`: what to write again.
    pub update: Option<Update>,
    /// `GPUEMU_PYTHON`: the interpreter that runs references, instead of `python3`.
    pub python: Option<PathBuf>,
    /// `GPUEMU_PTXAS`: the assembler that reports real registers and spills.
    pub ptxas: Option<PathBuf>,
    /// `GPUEMU_NVDISASM`: the disassembler that lists machine instructions.
    pub nvdisasm: Option<PathBuf>,
    /// `GPUEMU_CUOBJDUMP`: the other one, where the first is not there.
    pub cuobjdump: Option<PathBuf>,
    /// `GPUEMU_NVCC`: the compiler that writes committed PTX again.
    pub nvcc: Option<PathBuf>,
    /// `GPUEMU_TOOL_TIMEOUT`: seconds that one run of such a tool may take, instead of 60.
    pub tool_timeout: Option<NonZeroU32>,
    /// `PATH`: where tools are looked for.
    pub search_path: Option<OsString>,
    /// `GPUEMU_JUNIT`: where a test binary leaves its JUnit report: a file, or a folder for several binaries.
    pub junit: Option<PathBuf>,
    /// `RUST_TEST_THREADS`: tests run at once.
    pub test_threads: Option<NonZeroUsize>,
    /// `RUST_TEST_NOCAPTURE`: what tests print goes where it would outside of a test.
    pub no_capture: bool,
    /// `RUST_TEST_SHUFFLE`: run the tests in random order.
    pub shuffle: bool,
    /// `RUST_TEST_SHUFFLE_SEED`: run the tests in this random order.
    pub shuffle_seed: Option<u64>,
    /// `NEXTEST`: cargo-nextest is the caller: it runs one test a process and writes the JUnit report itself.
    pub nextest: bool,
    /// `CI`: nobody is watching the terminal.
    pub ci: bool,
    /// `GITHUB_ACTIONS`: findings are printed as annotations too.
    pub github: bool,
    /// `INSTA_*`: what becomes of a snapshot that differs.
    pub snapshots: Snapshots,
}

/// What becomes of a snapshot that differs from the accepted one, in insta's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// `INSTA_UPDATE`, with `CI` (or `TF_BUILD`) where it is unset or `auto`.
    pub update: SnapshotUpdate,
    /// `INSTA_FORCE_PASS`: a difference is written down and does not fail.
    pub force_pass: bool,
    /// `INSTA_PENDING_DIR`: where snapshots to be reviewed go, instead of beside the accepted ones.
    pub pending: Option<PathBuf>,
    /// `INSTA_WORKSPACE_ROOT`: the folder whose layout `pending` repeats.
    pub workspace: Option<PathBuf>,
    /// `INSTA_SNAPSHOT_REFERENCES_FILE`: where the path of every snapshot in use is appended.
    pub references: Option<PathBuf>,
}

/// What is written when a snapshot differs from the accepted one or has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotUpdate {
    /// A `.snap.new` to be reviewed (`new`; `auto` outside of continuous integration).
    #[default]
    Pending,
    /// The accepted file itself (`always` or `1`).
    InPlace,
    /// The accepted file itself where there is none yet, else a `.snap.new` (`unseen`).
    Unseen,
    /// The accepted file itself, when it matches too (`force`).
    Force,
    /// Nothing (`no`; `auto` in continuous integration).
    Nothing,
}

/// Name of the test target that is running: the binary's file name without the hash that cargo appends.
pub fn test_target() -> Option<String> {
    let binary = std::env::current_exe().ok()?;
    let name = binary.file_stem()?.to_str()?;
    let (target, hash) = name.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| target.to_owned())
}

/// How much a run tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A small part, for every save.
    Quick,
    /// Everything, within the contract's time budget.
    Thorough,
}

/// What executes kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// The emulator on the CPU.
    #[default]
    Emulate,
    /// A real GPU; without one, tests cannot run.
    Cuda,
    /// A real GPU where there is one, else the emulator.
    Auto,
}

impl Device {
    const ALL: [(&str, Device); 3] = [("emulate", Device::Emulate), ("cuda", Device::Cuda), ("auto", Device::Auto)];

    /// Its name, as `GPUEMU_DEVICE` has it.
    pub fn name(self) -> &'static str {
        Device::ALL.iter().find(|(_, device)| *device == self).map_or("", |(name, _)| name)
    }
}

/// What to do with the envelope file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibrate {
    /// Fail when a fresh calibration is larger than the file says.
    Check,
    /// Put fresh calibrations of the selected tests' ops into the file.
    Write,
}

/// What to write again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The committed PTX of every kernel, compiled from its source.
    Ptx,
}

impl Environment {
    /// Reads the process's environment. The error names every variable with an invalid value and its valid spellings.
    pub fn read() -> Result<Environment> {
        Environment::from_lookup(|name| std::env::var_os(name))
    }

    /// As [`Environment::read`], from any other source of variables.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Environment> {
        let mut reader = Reader { lookup, errors: Vec::new() };
        let environment = Environment {
            config: reader.path("GPUEMU_CONFIG"),
            seed: reader.parsed("GPUEMU_SEED", "a number such as 42 or 0x9f3c", seed),
            cases: reader.parsed("GPUEMU_CASES", "a number of cases, 1 or more", |text| text.parse().ok()),
            case: reader.text("GPUEMU_CASE"),
            strategies: reader.strategies("GPUEMU_STRATEGIES"),
            profile: reader.choice("GPUEMU_PROFILE", &[("quick", Profile::Quick), ("thorough", Profile::Thorough)]),
            device: reader.choice("GPUEMU_DEVICE", &Device::ALL).unwrap_or_default(),
            sanitizers: reader.parsed("GPUEMU_SANITIZERS", SANITIZERS, sanitizers),
            budget: reader.parsed("GPUEMU_BUDGET", "a number of instructions, 1 or more", |text| text.parse().ok()),
            counters: reader.choice("GPUEMU_COUNTERS", &[("0", false), ("1", true)]).unwrap_or(false),
            require: reader.choice("GPUEMU_REQUIRE", &[("0", false), ("1", true)]).unwrap_or(false),
            calibrate: reader.choice("GPUEMU_CALIBRATE", &[("check", Calibrate::Check), ("write", Calibrate::Write)]),
            update: reader.choice("GPUEMU_UPDATE", &[("ptx", Update::Ptx)]),
            python: reader.path("GPUEMU_PYTHON"),
            ptxas: reader.path("GPUEMU_PTXAS"),
            nvdisasm: reader.path("GPUEMU_NVDISASM"),
            cuobjdump: reader.path("GPUEMU_CUOBJDUMP"),
            nvcc: reader.path("GPUEMU_NVCC"),
            tool_timeout: reader
                .parsed("GPUEMU_TOOL_TIMEOUT", "a number of seconds, 1 or more", |text| text.parse().ok()),
            search_path: (reader.lookup)("PATH").filter(|value| !value.is_empty()),
            junit: reader.path("GPUEMU_JUNIT"),
            test_threads: reader
                .parsed("RUST_TEST_THREADS", "a number of threads, 1 or more", |text| text.parse().ok()),
            no_capture: reader.flag("RUST_TEST_NOCAPTURE", "0"),
            shuffle: reader.flag("RUST_TEST_SHUFFLE", "0"),
            shuffle_seed: reader.parsed("RUST_TEST_SHUFFLE_SEED", "a number", |text| text.parse().ok()),
            nextest: reader.flag("NEXTEST", "0"),
            ci: reader.flag("CI", "false"),
            github: reader.flag("GITHUB_ACTIONS", "false"),
            snapshots: Snapshots {
                update: reader.snapshot_update(),
                force_pass: reader.choice("INSTA_FORCE_PASS", &[("0", false), ("1", true)]).unwrap_or(false),
                pending: reader.path("INSTA_PENDING_DIR"),
                workspace: reader.path("INSTA_WORKSPACE_ROOT"),
                references: reader.path("INSTA_SNAPSHOT_REFERENCES_FILE"),
            },
        };
        match reader.errors.is_empty() {
            true => Ok(environment),
            false => Err(Error::InvalidRequest(reader.errors.join("; "))),
        }
    }
}

/// Looks variables up and gathers what is wrong with them.
struct Reader<L> {
    lookup: L,
    errors: Vec<String>,
}

impl<L: Fn(&str) -> Option<OsString>> Reader<L> {
    fn path(&self, name: &str) -> Option<PathBuf> {
        (self.lookup)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let value = (self.lookup)(name).filter(|value| !value.is_empty())?;
        match value.into_string() {
            Ok(text) => Some(text),
            Err(_) => {
                self.errors.push(format!("{name} is not valid UTF-8"));
                None
            }
        }
    }

    fn parsed<T>(&mut self, name: &str, valid: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(text.trim());
        if value.is_none() {
            self.errors.push(format!("{name} is `{text}` and must be {valid}"));
        }
        value
    }

    fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let valid = one_of(&names);
        self.parsed(name, &valid, |text| choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value))
    }

    /// Set, and to something other than `off`.
    fn flag(&self, name: &str, off: &str) -> bool {
        (self.lookup)(name).is_some_and(|value| !value.is_empty() && value != off)
    }

    fn snapshot_update(&mut self) -> SnapshotUpdate {
        let unwatched = match (self.lookup)("CI").filter(|value| !value.is_empty()) {
            Some(value) => value != "false" && value != "0",
            None => self.flag("TF_BUILD", ""),
        };
        let auto = if unwatched { SnapshotUpdate::Nothing } else { SnapshotUpdate::Pending };
        let choices = [
            ("auto", auto),
            ("always", SnapshotUpdate::InPlace),
            ("1", SnapshotUpdate::InPlace),
            ("new", SnapshotUpdate::Pending),
            ("unseen", SnapshotUpdate::Unseen),
            ("no", SnapshotUpdate::Nothing),
            ("force", SnapshotUpdate::Force),
        ];
        self.choice("INSTA_UPDATE", &choices).unwrap_or(auto)
    }

    fn strategies(&mut self, name: &str) -> Option<Vec<Strategy>> {
        let text = self.text(name)?;
        let mut strategies = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match Strategy::from_name(part) {
                Some(strategy) if strategies.contains(&strategy) => {}
                Some(strategy) => strategies.push(strategy),
                None => {
                    let valid = one_of(&Strategy::ALL.map(Strategy::name));
                    self.errors.push(format!("{name} names the strategy `{part}`, which must be {valid}"));
                }
            }
        }
        Some(strategies).filter(|strategies| !strategies.is_empty())
    }
}

/// `one of a, b or c`, for any number of names.
fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [first, last] => format!("`{first}` or `{last}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            format!("one of {} or `{last}`", first.join(", "))
        }
    }
}

/// The valid spellings of `GPUEMU_SANITIZERS`.
const SANITIZERS: &str =
    "`all`, `none`, or some of `races`, `initialisation`, `inputs` and `indices` with commas between them";

fn sanitizers(text: &str) -> Option<Sanitizers> {
    match text {
        "all" => return Some(Sanitizers::ALL),
        "none" => return Some(Sanitizers::NONE),
        _ => {}
    }
    let mut chosen = Sanitizers::NONE;
    for part in text.split(',').map(str::trim) {
        match part {
            "races" => chosen.races = true,
            "initialisation" => chosen.initialisation = true,
            "inputs" => chosen.inputs = true,
            "indices" => chosen.indices = true,
            _ => return None,
        }
    }
    Some(chosen)
}

fn seed(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment> {
        Environment::from_lookup(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn nothing_set_and_everything_empty_are_the_default() {
        assert_eq!(read(&[]).unwrap(), Environment::default());
        assert_eq!(Environment::from_lookup(|_| Some(OsString::new())).unwrap(), Environment::default());
    }

    #[test]
    fn every_variable_has_its_field() {
        let environment = read(&[
            ("GPUEMU_CONFIG", "other/gpuemu.toml"),
            ("GPUEMU_SEED", "0x9f3c"),
            ("GPUEMU_CASES", "7"),
            ("GPUEMU_CASE", "softmax::float32::edge{B=1}"),
            ("GPUEMU_STRATEGIES", "edge, layout,edge"),
            ("GPUEMU_PROFILE", "thorough"),
            ("GPUEMU_DEVICE", "auto"),
            ("GPUEMU_SANITIZERS", "races, inputs"),
            ("GPUEMU_BUDGET", "1000"),
            ("GPUEMU_COUNTERS", "1"),
            ("GPUEMU_REQUIRE", "1"),
            ("GPUEMU_CALIBRATE", "write"),
            ("GPUEMU_UPDATE", "ptx"),
            ("GPUEMU_PYTHON", "venv/bin/python"),
            ("GPUEMU_PTXAS", "/usr/bin/ptxas"),
            ("GPUEMU_NVDISASM", "/usr/bin/nvdisasm"),
            ("GPUEMU_CUOBJDUMP", "/usr/bin/cuobjdump"),
            ("GPUEMU_NVCC", "/usr/bin/nvcc"),
            ("GPUEMU_TOOL_TIMEOUT", "300"),
            ("PATH", "/usr/bin:/bin"),
            ("GPUEMU_JUNIT", "junit.xml"),
            ("RUST_TEST_THREADS", "3"),
            ("RUST_TEST_NOCAPTURE", "1"),
            ("RUST_TEST_SHUFFLE", "1"),
            ("RUST_TEST_SHUFFLE_SEED", "5"),
            ("NEXTEST", "1"),
            ("CI", "true"),
            ("GITHUB_ACTIONS", "true"),
            ("INSTA_UPDATE", "unseen"),
            ("INSTA_FORCE_PASS", "1"),
            ("INSTA_PENDING_DIR", "pending"),
            ("INSTA_WORKSPACE_ROOT", "root"),
            ("INSTA_SNAPSHOT_REFERENCES_FILE", "used.txt"),
        ]);
        let expected = Environment {
            config: Some("other/gpuemu.toml".into()),
            seed: Some(0x9f3c),
            cases: NonZeroU32::new(7),
            case: Some("softmax::float32::edge{B=1}".into()),
            strategies: Some(vec![Strategy::Edge, Strategy::Layout]),
            profile: Some(Profile::Thorough),
            device: Device::Auto,
            sanitizers: Some(Sanitizers { races: true, initialisation: false, inputs: true, indices: false }),
            budget: NonZeroU64::new(1000),
            counters: true,
            require: true,
            calibrate: Some(Calibrate::Write),
            update: Some(Update::Ptx),
            python: Some("venv/bin/python".into()),
            ptxas: Some("/usr/bin/ptxas".into()),
            nvdisasm: Some("/usr/bin/nvdisasm".into()),
            cuobjdump: Some("/usr/bin/cuobjdump".into()),
            nvcc: Some("/usr/bin/nvcc".into()),
            tool_timeout: NonZeroU32::new(300),
            search_path: Some("/usr/bin:/bin".into()),
            junit: Some("junit.xml".into()),
            test_threads: NonZeroUsize::new(3),
            no_capture: true,
            shuffle: true,
            shuffle_seed: Some(5),
            nextest: true,
            ci: true,
            github: true,
            snapshots: Snapshots {
                update: SnapshotUpdate::Unseen,
                force_pass: true,
                pending: Some("pending".into()),
                workspace: Some("root".into()),
                references: Some("used.txt".into()),
            },
        };
        assert_eq!(environment.unwrap(), expected);
    }

    #[test]
    fn snapshots_are_updated_as_insta_would() {
        // insta 1.49: `snapshot_update_behavior` and `is_ci`.
        let table: [(&[(&str, &str)], SnapshotUpdate); 10] = [
            (&[], SnapshotUpdate::Pending),
            (&[("CI", "true")], SnapshotUpdate::Nothing),
            (&[("CI", "0")], SnapshotUpdate::Pending),
            (&[("CI", "false"), ("TF_BUILD", "True")], SnapshotUpdate::Pending),
            (&[("TF_BUILD", "True")], SnapshotUpdate::Nothing),
            (&[("INSTA_UPDATE", "auto"), ("CI", "1")], SnapshotUpdate::Nothing),
            (&[("INSTA_UPDATE", "new"), ("CI", "1")], SnapshotUpdate::Pending),
            (&[("INSTA_UPDATE", "always"), ("CI", "1")], SnapshotUpdate::InPlace),
            (&[("INSTA_UPDATE", "no")], SnapshotUpdate::Nothing),
            (&[("INSTA_UPDATE", "force")], SnapshotUpdate::Force),
        ];
        for (variables, update) in table {
            assert_eq!(read(variables).unwrap().snapshots.update, update, "{variables:?}");
        }
    }

    #[test]
    fn flags_are_off_in_the_words_their_owners_use() {
        let environment =
            read(&[("RUST_TEST_NOCAPTURE", "0"), ("NEXTEST", "0"), ("CI", "false"), ("GPUEMU_REQUIRE", "0")]);
        assert_eq!(environment.unwrap(), Environment::default());
    }

    #[test]
    fn an_invalid_value_names_the_variable_and_the_valid_spellings() {
        for (name, value, message) in [
            ("GPUEMU_SEED", "-1", "GPUEMU_SEED is `-1` and must be a number such as 42 or 0x9f3c"),
            ("GPUEMU_SEED", "0x+1", "GPUEMU_SEED is `0x+1` and must be a number such as 42 or 0x9f3c"),
            (
                "GPUEMU_SEED",
                "18446744073709551616",
                "GPUEMU_SEED is `18446744073709551616` and must be a number such as 42 or 0x9f3c",
            ),
            ("GPUEMU_CASES", "0", "GPUEMU_CASES is `0` and must be a number of cases, 1 or more"),
            ("GPUEMU_CASES", "many", "GPUEMU_CASES is `many` and must be a number of cases, 1 or more"),
            ("GPUEMU_PROFILE", "fast", "GPUEMU_PROFILE is `fast` and must be `quick` or `thorough`"),
            ("GPUEMU_DEVICE", "gpu", "GPUEMU_DEVICE is `gpu` and must be one of `emulate`, `cuda` or `auto`"),
            ("GPUEMU_REQUIRE", "yes", "GPUEMU_REQUIRE is `yes` and must be `0` or `1`"),
            ("GPUEMU_CALIBRATE", "Write", "GPUEMU_CALIBRATE is `Write` and must be `check` or `write`"),
            (
                "GPUEMU_SANITIZERS",
                "race",
                "GPUEMU_SANITIZERS is `race` and must be `all`, `none`, or some of `races`, `initialisation`, `inputs` and `indices` \
                 with commas between them",
            ),
            ("GPUEMU_BUDGET", "0", "GPUEMU_BUDGET is `0` and must be a number of instructions, 1 or more"),
            ("GPUEMU_UPDATE", "all", "GPUEMU_UPDATE is `all` and must be `ptx`"),
            ("RUST_TEST_THREADS", "0", "RUST_TEST_THREADS is `0` and must be a number of threads, 1 or more"),
            ("RUST_TEST_SHUFFLE_SEED", "x", "RUST_TEST_SHUFFLE_SEED is `x` and must be a number"),
            (
                "GPUEMU_STRATEGIES",
                "edge,boundry",
                "GPUEMU_STRATEGIES names the strategy `boundry`, which must be one of `default`, `boundary`, \
                 `regular`, `single_dtype_f32`, `single_dtype_f16`, `nan_injected`, `adversarial`, `edge`, \
                 `structured` or `layout`",
            ),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn several_invalid_values_are_told_at_once() {
        let error = read(&[("GPUEMU_CASES", "x"), ("GPUEMU_DEVICE", "x")]).unwrap_err().to_string();
        assert!(error.contains("GPUEMU_CASES is `x`") && error.contains("GPUEMU_DEVICE is `x`"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn text_that_is_no_utf8_is_an_error_where_text_is_wanted_and_fine_in_a_path() {
        use std::os::unix::ffi::OsStringExt;
        let odd = || OsString::from_vec(vec![b'a', 0xff]);
        let error = Environment::from_lookup(|name| (name == "GPUEMU_CASE").then(odd)).unwrap_err();
        assert_eq!(error.to_string(), "GPUEMU_CASE is not valid UTF-8");
        let environment = Environment::from_lookup(|name| (name == "GPUEMU_PYTHON").then(odd)).unwrap();
        assert_eq!(environment.python, Some(odd().into()));
    }
}
