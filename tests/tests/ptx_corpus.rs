//! Everything that stock compilers print for the kernels under `tests/triton` and `tests/cuda`, and the committed PTX of
//! the examples: each file reads, prints, reads again as the same module, and becomes a program.
//!
//! `GPUEMU_TEST_PTX` names the folder that holds `triton-ptx` and `cuda-ptx`; without it, `target` does.

use gpuemu_ptx::parse::parse;
use gpuemu_ptx::program::Program;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How to make what is not there.
const MADE_BY: &str = "`tests/run` makes it; alone: `target/venv/bin/python tests/triton/compile.py target/triton-ptx` \
                       and `target/venv/bin/python tests/cuda/compile_cuda.py target/cuda-ptx`, after \
                       `target/venv/bin/pip install -r tests/requirements-cuda.txt`";

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace").to_owned()
}

/// The folder of a compiled corpus.
fn corpus(name: &str) -> PathBuf {
    let parent = std::env::var_os("GPUEMU_TEST_PTX").map_or_else(|| root().join("target"), PathBuf::from);
    parent.join(name)
}

/// The PTX files of a folder, in order; at least so many.
fn files(folder: &Path, at_least: usize) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{} cannot be read ({error}). {MADE_BY}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    assert!(
        files.len() >= at_least,
        "{} holds {} PTX files, not the {at_least} or more that it should. {MADE_BY}",
        folder.display(),
        files.len()
    );
    files
}

/// What is wrong with a file.
fn fault(path: &Path) -> Option<String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return Some(error.to_string()),
    };
    let module = match parse(&text) {
        Ok(module) => module,
        Err(error) => return Some(error.to_string()),
    };
    let printed = module.to_string();
    match parse(&printed) {
        Ok(again) if again.same_but_for_offsets(&module) => {}
        Ok(_) => return Some("printed and read again, it is another module".to_owned()),
        Err(error) => return Some(format!("printed, it does not read: {error}")),
    }
    match Program::resolve(&module, &text) {
        Ok(program) if program.entries().next().is_none() => Some("it has no entry".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Fails with every file that is not as it should be.
fn all_right(files: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = fault(path);
                    faults.lock().unwrap().extend(found.map(|fault| format!("{}: {fault}", path.display())));
                }
            });
        }
    });
    let mut faults = faults.into_inner().unwrap();
    faults.sort();
    assert!(faults.is_empty(), "{} of {} files:\n{}", faults.len(), files.len(), faults.join("\n"));
}

#[test]
fn triton() {
    // More than forty kernels, nearly all of them for four architectures.
    let files = files(&corpus("triton-ptx"), 160);
    for target in ["sm_80", "sm_89", "sm_90", "sm_100"] {
        let end = format!(".{target}.ptx");
        let count = files.iter().filter(|path| path.to_string_lossy().ends_with(&end)).count();
        assert!(count >= 40, "{count} kernels for {target}. {MADE_BY}");
    }
    all_right(&files);
}

#[test]
fn cuda() {
    all_right(&files(&corpus("cuda-ptx"), 11));
}

#[test]
fn examples() {
    let example = root().join("examples/cuda-kernels");
    let mut all = files(&example.join("kernels"), 20);
    all.extend(files(&example.join("changes"), 4));
    all_right(&all);
}
