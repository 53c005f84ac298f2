//! Everything that stock compilers print for the kernels under `tests/triton` and `tests/cuda`, and the committed PTX of
//! the examples: each file reads, prints, reads again as the same module, becomes a program, is
//! weighed, and no rule finds an error in it.
//!
//! `GPUEMU_TEST_PTX` names the folder that holds `triton-ptx` and `cuda-ptx`; without it, `target` does.

use gpuemu_ptx::lint::{Severity, check};
use gpuemu_ptx::metrics::{Metrics, measure};
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
    let program = match Program::resolve(&module, &text) {
        Ok(program) => program,
        Err(error) => return Some(error.to_string()),
    };
    if program.entries().next().is_none() {
        return Some("it has no entry".to_owned());
    }
    let name = path.file_name().unwrap().to_string_lossy();
    program.entries().find_map(|(id, _)| {
        let metrics = measure(&program, id);
        let wrong = weighed_wrong(&name, &metrics);
        wrong.or_else(|| {
            let findings = check(&program, id, &metrics);
            let error = findings.iter().find(|finding| finding.severity == Severity::Error)?;
            Some(format!("a false alarm of {}, line {}: {}", error.rule.name, error.place.line, error.message))
        })
    })
}

/// What the figures of an entry cannot be, by what every entry has and by what the file's name says of the kernel.
fn weighed_wrong(file: &str, metrics: &Metrics) -> Option<String> {
    let by_class: u64 = metrics.mix.values().map(|count| count.instructions).sum();
    let expected = [
        ("instructions", metrics.instructions.instructions > 0),
        ("as many instructions of all classes", by_class == metrics.instructions.instructions),
        ("a weight of at least one an instruction", metrics.instructions.weighted >= metrics.instructions.instructions),
    ];
    // Of the Triton kernels, by the first word of their names. `matmul_ieee` multiplies without tensor cores.
    let named: &[(&str, &str, bool)] = &[
        ("matmul_f16", "a matrix instruction", metrics.matrix.instructions > 0),
        ("matmul_tf32", "a matrix instruction", metrics.matrix.instructions > 0),
        ("attention_causal", "a matrix instruction", metrics.matrix.instructions > 0),
        ("matmul_ieee", "no matrix instruction", metrics.matrix.instructions == 0),
        ("atomic_", "an atomic on global memory", metrics.global_atomics.instructions > 0),
        ("row_sum_f64", "data in double precision", metrics.double_data && metrics.doubles.instructions > 0),
        ("row_sum.", "nothing in double precision", metrics.doubles.instructions == 0),
        ("collatz.", "a loop", metrics.loops > 0),
        ("matmul_aligned.sm_80", "copies that go on", metrics.asynchronous_copies.instructions > 0),
        ("add_float32", "accesses of 16 bytes", metrics.access_bytes.keys().any(|&bytes| bytes == 16)),
        ("row_softmax", "a barrier", metrics.barriers.instructions > 0),
        ("histogram", "an atomic on shared memory", metrics.shared_atomics.instructions > 0),
        ("stencil", "a tile in shared memory", metrics.shared_bytes == 4 * 10 * 34),
    ];
    let named = named.iter().filter(|(start, ..)| file.starts_with(start)).map(|&(_, what, holds)| (what, holds));
    let missing = expected.into_iter().chain(named).find(|(_, holds)| !holds);
    missing.map(|(what, _)| format!("the figures of {} have not {what}: {metrics:?}", metrics.entry))
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
    all_right(&files(&corpus("cuda-ptx"), 15));
}

#[test]
fn examples() {
    let example = root().join("examples/cuda-kernels");
    let mut all = files(&example.join("kernels"), 20);
    all.extend(files(&example.join("changes"), 4));
    all_right(&all);
}
