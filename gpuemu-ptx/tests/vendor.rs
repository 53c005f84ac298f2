//! Tools that are missing, wrong, slow, broken or of another version: shell scripts stand in for NVIDIA's.
#![cfg(unix)]

use gpuemu_ptx::Error;
use gpuemu_ptx::vendor::{Assembly, Job, Settings, Tool, Toolbox};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PTX: &str = ".version 8.0\n.target sm_80\n.visible .entry k() { bogus; ret; }\n";

/// Prints figures as ptxas does, and leaves machine code.
const FIGURES: &str = r#"
echo "ptxas info    : Compiling entry function 'k' for 'sm_80'" >&2
echo "ptxas info    : Function properties for k" >&2
echo "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads" >&2
echo "ptxas info    : Used 32 registers, used 1 barriers, 1024 bytes smem, 392 bytes cmem[0]" >&2
printf 'machine code of %s' "$2" > module.cubin
"#;

/// The one executable file behind every stand-in. It is written before anything is started, because a file that is
/// still open for writing in a child that another thread just forked cannot be executed. What a stand-in does stands in
/// files beside the link to it: `version` is printed, `newest` is the newest PTX, `run` is a script.
fn script() -> &'static Path {
    static SCRIPT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = SCRIPT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stand-in");
        let text = r#"#!/bin/sh
here=$(dirname "$0"); name=$(basename "$0")
if [ "$1" = --version ]; then cat "$here/$name.version"; exit; fi
if [ "$2" = version.ptx ]; then
    echo "ptxas version.ptx, line 1; fatal   : Unsupported .version 99.0; current version is '$(cat "$here/$name.newest")'" >&2
    exit 255
fi
echo run >> "$here/$name.runs"
. "$here/$name.run"
"#;
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    });
    path
}

/// Puts a stand-in into a folder: a tool of this release that runs this script.
fn put(folder: &Path, name: &str, title: &str, release: &str, run: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    symlink(script(), &path).unwrap();
    fs::write(
        folder.join(format!("{name}.version")),
        format!("{name}: NVIDIA (R) {title}\ntools, release {release}, V{release}.1\n"),
    )
    .unwrap();
    fs::write(folder.join(format!("{name}.newest")), "9.5").unwrap();
    fs::write(folder.join(format!("{name}.run")), run).unwrap();
    path
}

fn ptxas(folder: &Path, run: &str) -> PathBuf {
    put(folder, "ptxas", "Ptx optimizing assembler", "13.5", run)
}

fn path_of(folders: &[&Path]) -> Option<OsString> {
    Some(std::env::join_paths(folders).unwrap())
}

fn on_path(folder: &Path) -> Settings {
    Settings { path: path_of(&[folder]), ..Settings::default() }
}

fn assemble(settings: Settings) -> Result<Assembly, Error> {
    Toolbox::new(settings).assemble(Job { ptx: PTX, target: "sm_80", flags: &[] })
}

fn runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("ptxas.runs")).unwrap_or_default().lines().count()
}

#[test]
fn figures_come_back_and_are_kept_by_content() {
    let (tools, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    ptxas(tools.path(), FIGURES);
    let cache = kept.path().join("deep/vendor");
    let settings = Settings { cache: Some(cache.clone()), ..on_path(tools.path()) };
    let first = assemble(settings.clone()).unwrap();
    let entry = first.output.entry("k").unwrap();
    assert_eq!((entry.registers, entry.stack_frame, entry.spill_stores, entry.spill_loads), (32, 8, 4, 12));
    assert_eq!((entry.shared, entry.barriers, entry.constants.get(&0)), (1024, 1, Some(&392)));
    assert_eq!(first.cubin, b"machine code of -arch=sm_80");
    assert_eq!((first.tool.as_str(), first.target.as_str(), first.cached), ("ptxas 13.5", "sm_80", false));

    let second = assemble(settings.clone()).unwrap();
    assert_eq!((second.cached, runs(tools.path())), (true, 1));
    assert_eq!((second.output, second.cubin), (first.output.clone(), first.cubin.clone()));

    // A damaged file is worth nothing, and is replaced.
    let file = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    for damage in [&b""[..], b"gpuemu vendor 1\n", b"something else entirely"] {
        fs::write(&file, damage).unwrap();
        assert!(!assemble(settings.clone()).unwrap().cached);
        assert!(assemble(settings.clone()).unwrap().cached);
    }
    assert_eq!(runs(tools.path()), 4);

    // Everything that the answer depends on is part of the question.
    let toolbox = Toolbox::new(settings.clone());
    for job in [
        Job { ptx: ".version 8.0\n", target: "sm_80", flags: &[] },
        Job { ptx: PTX, target: "sm_90", flags: &[] },
        Job { ptx: PTX, target: "sm_80", flags: &["-O1".to_owned()] },
    ] {
        assert!(!toolbox.assemble(job).unwrap().cached, "{job:?}");
        assert!(toolbox.assemble(job).unwrap().cached, "{job:?}");
    }
    fs::write(tools.path().join("ptxas.version"), "NVIDIA (R) Ptx optimizing assembler\nrelease 13.6, V13.6.1\n")
        .unwrap();
    assert!(!assemble(settings).unwrap().cached, "another version is another answer");
}

#[test]
fn a_tool_that_is_not_there_is_said() {
    let empty = tempfile::tempdir().unwrap();
    // A text file and a folder of that name are no tools.
    fs::write(empty.path().join("nvdisasm"), "text").unwrap();
    fs::create_dir(empty.path().join("ptxas")).unwrap();
    let toolbox = Toolbox::new(on_path(empty.path()));
    for (tool, parts) in [
        (
            Tool::Ptxas,
            ["ptxas is needed and not there", "on the search path", "no interpreter is named", "GPUEMU_PTXAS"],
        ),
        (
            Tool::Nvdisasm,
            ["nvdisasm is needed and not there", "on the search path", "in no Python wheel", "pip install triton"],
        ),
        (
            Tool::Nvcc,
            [
                "nvcc is needed and not there",
                "on the search path",
                "in no Python wheel",
                "pip install nvidia-cuda-nvcc",
            ],
        ),
    ] {
        let Err(Error::ToolMissing(message)) = toolbox.describe(tool) else { panic!("{tool} is there") };
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
    let error = Toolbox::new(Settings::default()).sass_mix(b"code").unwrap_err();
    assert!(matches!(&error, Error::ToolMissing(message) if message.contains("no search path")), "{error}");
}

#[test]
fn what_the_settings_name_is_used_and_nothing_else() {
    let (good, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    ptxas(good.path(), FIGURES);
    let named = other.path().join("ptxas-of-mine");
    let settings = Settings { ptxas: Some(named.clone()), ..on_path(good.path()) };
    let failed = |settings: &Settings| match assemble(settings.clone()) {
        Err(Error::ToolFailed(message)) => message,
        other => panic!("{other:?}"),
    };
    let message = failed(&settings);
    assert!(message.starts_with("GPUEMU_PTXAS names no ptxas: /"), "{message}");
    assert!(message.contains("ptxas-of-mine is not there; name another, or unset GPUEMU_PTXAS"), "{message}");
    fs::write(&named, "text").unwrap();
    assert!(failed(&settings).contains("ptxas-of-mine is not executable;"));
    fs::remove_file(&named).unwrap();
    let folder = Settings { ptxas: Some(other.path().to_owned()), ..on_path(good.path()) };
    assert!(failed(&folder).contains(" is a folder;"));
    put(other.path(), "sandwich", "Sandwich maker", "1.0", FIGURES);
    let sandwich = Settings { ptxas: Some(other.path().join("sandwich")), ..on_path(good.path()) };
    assert!(failed(&sandwich).contains("sandwich is not NVIDIA's ptxas"));
    // Of the disassemblers the one that is named, though the other is there.
    put(good.path(), "nvdisasm", "CUDA disassembler", "13.5", "echo '.text.k:'; echo '/*0000*/ EXIT ;'");
    put(good.path(), "cuobjdump", "fat binary listing tool", "13.5", "echo 'Function : k'; echo '/*0000*/ EXIT ;'");
    for (tool, variable) in [("nvdisasm", "GPUEMU_NVDISASM"), ("cuobjdump", "GPUEMU_CUOBJDUMP")] {
        let path = Some(other.path().join(tool));
        let settings = match tool {
            "nvdisasm" => Settings { nvdisasm: path, ..on_path(good.path()) },
            _ => Settings { cuobjdump: path, ..on_path(good.path()) },
        };
        let Err(Error::ToolFailed(message)) = Toolbox::new(settings).sass_mix(b"code") else { panic!("{tool}") };
        assert!(message.starts_with(&format!("{variable} names no {tool}: ")), "{message}");
    }
    // A name alone is looked for on the search path.
    let by_name = Settings { ptxas: Some("ptxas".into()), ..on_path(good.path()) };
    assert_eq!(assemble(by_name).unwrap().tool, "ptxas 13.5");
    fs::remove_file(good.path().join("ptxas.runs")).unwrap();

    put(other.path(), "ptxas-of-mine", "Ptx optimizing assembler", "12.0", FIGURES);
    assert_eq!(assemble(settings).unwrap().tool, "ptxas 12.0");
    assert_eq!(runs(good.path()), 0);
}

#[test]
fn another_program_of_that_name_is_passed_over_and_named() {
    let (wrong, good) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(wrong.path(), "ptxas", "Sandwich maker", "1.0", FIGURES);
    let Err(Error::ToolMissing(message)) = assemble(on_path(wrong.path())) else { panic!("a sandwich maker") };
    assert!(message.contains("is not NVIDIA's ptxas") && message.contains("Sandwich maker"), "{message}");

    fs::write(wrong.path().join("ptxas.version"), "").unwrap();
    let error = assemble(on_path(wrong.path())).unwrap_err().to_string();
    assert!(error.contains("it says \"nothing\""), "{error}");

    ptxas(good.path(), FIGURES);
    let settings = Settings { path: path_of(&[wrong.path(), good.path()]), ..Settings::default() };
    assert_eq!(assemble(settings).unwrap().tool, "ptxas 13.5");
}

#[test]
fn an_error_of_the_module_names_its_line() {
    let tools = tempfile::tempdir().unwrap();
    let run = r#"
echo "ptxas module.ptx, line 3; error   : Unknown opcode 'bogus'" >&2
echo "ptxas fatal   : Ptx assembly aborted due to errors" >&2
exit 255"#;
    ptxas(tools.path(), run);
    let Err(Error::Refused { line, message }) = assemble(on_path(tools.path())) else { panic!("it is refused") };
    assert_eq!(line, Some(3));
    for part in ["ptxas 13.5", "for sm_80", "line 3: Unknown opcode 'bogus'", ".visible .entry k() { bogus; ret; }"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("aborted"), "{message}");
}

#[test]
fn a_version_or_target_that_one_does_not_know_goes_to_the_next() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    ptxas(folders[0].path(), FIGURES);
    fs::write(folders[0].path().join("ptxas.newest"), "7.8").unwrap();
    let unknown = "echo \"ptxas fatal   : Value 'sm_80' is not defined for option 'gpu-name'\" >&2; exit 255";
    put(folders[1].path(), "ptxas", "Ptx optimizing assembler", "12.9", unknown);
    put(folders[2].path(), "ptxas", "Ptx optimizing assembler", "13.4", FIGURES);

    let all = Settings { path: path_of(&folders.each_ref().map(TempDir::path)), ..Settings::default() };
    assert_eq!(assemble(all).unwrap().tool, "ptxas 13.4");
    assert_eq!(folders.each_ref().map(|folder| runs(folder.path())), [0, 1, 1]);

    let two = Settings { path: path_of(&[folders[0].path(), folders[1].path()]), ..Settings::default() };
    let Err(Error::ToolUnsuitable(message)) = assemble(two) else { panic!("none takes it") };
    assert!(message.contains("takes PTX up to .version 7.8, and the module is of .version 8.0"), "{message}");
    assert!(message.contains("ptxas 12.9") && message.contains("'sm_80' is not defined"), "{message}");
}

#[test]
fn one_that_hangs_is_ended_with_what_it_started() {
    let tools = tempfile::tempdir().unwrap();
    ptxas(tools.path(), "sleep 100 & echo $! > \"$here/child\"; sleep 100");
    // On a busy machine, a shell takes a while to get as far as the line that hangs.
    let settings = Settings { timeout: Duration::from_secs(4), ..on_path(tools.path()) };
    let start = Instant::now();
    let Err(Error::ToolFailed(message)) = assemble(settings) else { panic!("it hangs") };
    let said = "did not finish within 4s and was ended; GPUEMU_TOOL_TIMEOUT sets another limit, in seconds";
    assert!(message.contains(said), "{message}");
    assert!(start.elapsed() < Duration::from_secs(50));
    let child: i32 = fs::read_to_string(tools.path().join("child")).unwrap().trim().parse().unwrap();
    let gone = |_: &usize| {
        std::thread::sleep(Duration::from_millis(10));
        // Ended, or ended and not yet collected by whoever inherited it.
        fs::read_to_string(format!("/proc/{child}/stat")).map_or(true, |stat| stat.contains(") Z "))
    };
    if Path::new("/proc/self/stat").exists() {
        assert!((0..500).find(gone).is_some(), "process {child} lives on");
    }
}

#[test]
fn one_that_never_answers_is_asked_once() {
    let tools = tempfile::tempdir().unwrap();
    let path = tools.path().join("ptxas");
    symlink(sleeper(), &path).unwrap();
    // It hangs whatever it is asked, or only where it is handed PTX.
    for (version, named, parts) in [
        (
            "sleep 100",
            true,
            &["GPUEMU_PTXAS names no ptxas: ", "was asked for its version and did not finish within 2s"][..],
        ),
        (
            "sleep 100",
            false,
            &["what was found is of no use", "was asked for its version and did not finish within 2s"],
        ),
        (
            "cat \"$here/version\"",
            true,
            &["ptxas 13.5 (", "did not finish within 2s and was ended; GPUEMU_TOOL_TIMEOUT"],
        ),
    ] {
        fs::write(tools.path().join("run"), format!("[ \"$1\" = --version ] && {{ {version}; exit; }}\nsleep 100\n"))
            .unwrap();
        let said = "ptxas: NVIDIA (R) Ptx optimizing assembler\ntools, release 13.5, V13.5.1\n";
        fs::write(tools.path().join("version"), said).unwrap();
        let settings = match named {
            true => Settings { ptxas: Some(path.clone()), ..Settings::default() },
            false => on_path(tools.path()),
        };
        let toolbox = Toolbox::new(Settings { timeout: Duration::from_secs(2), ..settings });
        let start = Instant::now();
        for _ in 0..3 {
            let error = toolbox.assemble(Job { ptx: PTX, target: "sm_80", flags: &[] }).unwrap_err();
            assert_eq!(matches!(error, Error::ToolFailed(_)), named, "{error:?}");
            for part in parts {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
        assert!(start.elapsed() < Duration::from_secs(50), "{:?}", start.elapsed());
    }
}

/// As [`script`]: what it does stands in the file `run` beside the link to it.
fn sleeper() -> &'static Path {
    static SCRIPT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = SCRIPT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sleeper");
        fs::write(&path, "#!/bin/sh\nhere=$(dirname \"$0\")\n. \"$here/run\"\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    });
    path
}

#[test]
fn one_that_breaks_says_how() {
    for (run, parts) in [
        ("kill -SEGV $$", &["was killed by SIGSEGV (signal 11)"][..]),
        ("kill -KILL $$", &["was killed by SIGKILL (signal 9)", "out of memory"]),
        ("echo out of licences >&2; exit 3", &["exited with status 3", "out of licences"]),
        ("exit 1", &["exited with status 1"]),
        ("head -c 70000000 /dev/zero", &["wrote more than 64 MiB and was ended"]),
        ("true", &["succeeded and left no machine code"]),
        (
            "echo \"ptxas info    : Compiling entry function 'k' for 'sm_80'\"; touch module.cubin",
            &["printed no registers for an entry"],
        ),
    ] {
        let tools = tempfile::tempdir().unwrap();
        ptxas(tools.path(), run);
        let error = assemble(on_path(tools.path())).unwrap_err();
        let Error::ToolFailed(message) = &error else { panic!("{run}: {error:?}") };
        for part in parts {
            assert!(message.contains(part) && message.contains("ptxas 13.5"), "{run}: {message}");
        }
    }
}

#[test]
fn wheels_of_a_python_are_looked_through_after_the_search_path() {
    let root = tempfile::tempdir().unwrap();
    let site = root.path().join("lib/python3.12/site-packages");
    let triton = site.join("triton/backends/nvidia/bin");
    ptxas(&triton, FIGURES);
    fs::write(triton.join("ptxas.newest"), "7.0").unwrap();
    put(&triton, "ptxas-blackwell", "Ptx optimizing assembler", "13.4", FIGURES);
    put(&site.join("nvidia/cuda_nvcc/bin"), "ptxas", "Ptx optimizing assembler", "12.8", FIGURES);
    put(&site.join("nvidia/cu13/bin"), "ptxas", "Ptx optimizing assembler", "13.1", FIGURES);
    let python = root.path().join("python");
    symlink(script(), &python).unwrap();
    fs::write(root.path().join("python.run"), format!("echo /nowhere/python312.zip; echo {}", site.display())).unwrap();
    let settings = Settings { python: Some(python.clone()), ..Settings::default() };

    // In this order, each until it does not take the module.
    assert_eq!(assemble(settings.clone()).unwrap().tool, "ptxas 13.4");
    for (gone, next) in [("triton/backends/nvidia/bin/ptxas-blackwell", "13.1"), ("nvidia/cu13/bin/ptxas", "12.8")] {
        fs::remove_file(site.join(gone)).unwrap();
        assert_eq!(assemble(settings.clone()).unwrap().tool, format!("ptxas {next}"));
    }
    let on_path = root.path().join("bin");
    put(&on_path, "ptxas", "Ptx optimizing assembler", "11.8", FIGURES);
    assert_eq!(assemble(Settings { path: path_of(&[&on_path]), ..settings.clone() }).unwrap().tool, "ptxas 11.8");

    let Err(Error::ToolMissing(message)) = Toolbox::new(settings.clone()).describe(Tool::Nvcc) else {
        panic!("no nvcc")
    };
    assert!(message.contains(&site.display().to_string()), "{message}");
    fs::write(root.path().join("python.run"), "exit 3").unwrap();
    let Err(Error::ToolMissing(message)) = assemble(settings) else { panic!("no Python") };
    assert!(message.contains("python was asked for its folders and exited with status 3"), "{message}");
}

#[test]
fn many_modules_are_assembled_side_by_side_and_answered_in_order() {
    let tools = tempfile::tempdir().unwrap();
    // No run ends before three have started.
    let meet = r#"
touch "$here/started.$$"
tries=0
while [ "$(ls "$here" | grep -c started)" -lt 3 ]; do
    tries=$((tries + 1)); [ $tries -gt 2000 ] && exit 9; sleep 0.01
done
case "$2" in *sm_90) echo "ptxas module.ptx, line 1; error   : no" >&2; exit 255;; esac
"#;
    ptxas(tools.path(), &format!("{meet}{FIGURES}"));
    let toolbox = Toolbox::new(on_path(tools.path()));
    let targets = ["sm_80", "sm_90", "sm_86", "sm_75", "sm_90"];
    let jobs = targets.map(|target| Job { ptx: PTX, target, flags: &[] });
    let answers = toolbox.assemble_all(&jobs, 3);
    let found: Vec<Option<&str>> =
        answers.iter().map(|answer| answer.as_ref().ok().map(|assembly| assembly.target.as_str())).collect();
    assert_eq!(found, [Some("sm_80"), None, Some("sm_86"), Some("sm_75"), None]);
    assert!(
        answers.iter().filter_map(|answer| answer.as_ref().err()).all(|error| matches!(error, Error::Refused { .. }))
    );
    assert!(toolbox.assemble_all(&[], 4).is_empty());
}

#[test]
fn machine_code_that_one_disassembler_does_not_know_goes_to_the_other() {
    let tools = tempfile::tempdir().unwrap();
    let toolbox = || Toolbox::new(on_path(tools.path()));
    put(tools.path(), "nvdisasm", "CUDA disassembler", "12.0", "echo nvdisasm fatal: unknown machine >&2; exit 1");
    let Err(Error::ToolUnsuitable(message)) = toolbox().sass_mix(b"code") else { panic!("unknown") };
    assert!(message.contains("no nvdisasm that is here takes it") && message.contains("unknown machine"), "{message}");

    let listing = "echo 'Function : k'; echo '/*0000*/ EXIT ; /* 0x00 */'";
    put(tools.path(), "cuobjdump", "fat binary listing tool", "13.1", listing);
    let mixes = toolbox().sass_mix(b"code").unwrap();
    assert_eq!((mixes[0].name.as_str(), mixes[0].by_opcode.get("EXIT")), ("k", Some(&1)));

    fs::write(tools.path().join("cuobjdump.run"), "true").unwrap();
    let error = toolbox().sass_mix(b"code").unwrap_err().to_string();
    assert!(error.contains("listed no instruction"), "{error}");
}

#[test]
fn a_source_is_compiled_or_refused() {
    let tools = tempfile::tempdir().unwrap();
    let write_last = "for last; do :; done; echo '// PTX of' \"$4\" > \"$last\"";
    put(tools.path(), "nvcc", "Cuda compiler driver", "13.5", write_last);
    let toolbox = Toolbox::new(on_path(tools.path()));
    let flags = ["-O2".to_owned()];
    let compiled = toolbox.compile(Path::new("a.cu"), "sm_80", &flags).unwrap();
    assert_eq!((compiled.compiler.as_str(), compiled.ptx.as_str()), ("nvcc 13.5", "// PTX of a.cu\n"));
    fs::write(tools.path().join("nvcc.run"), "echo 'a.cu(3): error: expected a \";\"' >&2; exit 2").unwrap();
    let error = toolbox.compile(Path::new("a.cu"), "sm_80", &flags).unwrap_err().to_string();
    assert!(error.contains("refuses a.cu for sm_80") && error.contains("a.cu(3): error: expected a"), "{error}");
}

#[test]
fn where_there_is_no_nvcc_the_library_of_the_wheels_compiles() {
    let root = tempfile::tempdir().unwrap();
    let site = root.path().join("lib/python3.12/site-packages");
    for file in ["lib/libnvrtc.so.13", "lib/libnvrtc.alt.so.13", "lib/libnvrtc-builtins.so.13.5", "include/cuda_fp16.h"]
    {
        let path = site.join("nvidia/cu13").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let python = root.path().join("python");
    symlink(script(), &python).unwrap();
    // Asked for its folders it has two arguments; the script that drives the library has the source as its fifth and the
    // place of the PTX as its seventh.
    let run = |compile: &str| {
        let folders = format!("if [ $# = 2 ]; then echo {}; exit; fi", site.display());
        fs::write(root.path().join("python.run"), format!("{folders}\n{compile}\n")).unwrap();
    };
    let settings = Settings { python: Some(python), ..Settings::default() };
    let compile = |settings: &Settings| {
        Toolbox::new(settings.clone()).compile(Path::new("k/a.cu"), "sm_90a", &["-lineinfo".to_owned()])
    };
    run("shift 3; echo 13.5; out=$4; echo \"$*\" > \"$out\"");
    let compiled = compile(&settings).unwrap();
    assert_eq!(compiled.compiler, "nvrtc 13.5");
    let (library, include) = (site.join("nvidia/cu13/lib/libnvrtc.so.13"), site.join("nvidia/cu13/include"));
    assert!(compiled.ptx.starts_with(&format!("{} k/a.cu k/a.cu /", library.display())), "{}", compiled.ptx);
    let options =
        format!(" --gpu-architecture=compute_90a -lineinfo --include-path=k --include-path={}\n", include.display());
    assert!(compiled.ptx.ends_with(&options), "{}", compiled.ptx);

    for (body, said) in [
        (
            "echo 'a.cu(3): error: expected a \";\"' >&2; exit 1",
            "refuses k/a.cu for sm_90a\nit said:\n  a.cu(3): error",
        ),
        ("echo 'invalid ELF header' >&2; exit 3", "is of no use\nit said:\n  invalid ELF header"),
        ("kill -SEGV $$", "was killed by SIGSEGV (signal 11), on k/a.cu for sm_90a"),
        ("echo 13.5", "succeeded and left no PTX"),
    ] {
        run(body);
        let error = compile(&settings).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("libnvrtc.so.13"), "{error}");
    }
    // An nvcc that is named is the one that is meant.
    let named = Settings { nvcc: Some("/nowhere/nvcc".into()), ..settings.clone() };
    let Err(Error::ToolFailed(message)) = compile(&named) else { panic!("it is not there") };
    assert!(message.starts_with("GPUEMU_NVCC names no nvcc: /nowhere/nvcc is not there; "), "{message}");
    fs::remove_file(library).unwrap();
    let Err(Error::ToolMissing(message)) = compile(&settings) else { panic!("neither is there") };
    assert!(message.contains("nvcc is needed and not there") && message.contains("nvidia-cuda-nvrtc"), "{message}");
}
