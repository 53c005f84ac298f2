//! The Triton kernels under `tests/triton`, as stock Triton compiles them for sm_80 and sm_89: each runs on the emulator
//! with all sanitizers, in several orders of blocks and warps, and leaves what NumPy says.
//!
//! `GPUEMU_TEST_PTX` names the folder that holds `triton-ptx`; without it, `target` does.

#[path = "../../gpuemu-ptx/examples/manifest/launches.rs"]
mod launches;

use gpuemu_ptx::emulate::Options;
use launches::{Launch, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const TARGETS: [&str; 2] = ["sm_80", "sm_89"];
/// The usual order, and others.
const ORDERS: [Option<u64>; 3] = [None, Some(1), Some(0x9f3c)];

fn corpus() -> PathBuf {
    let target = || Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("target");
    std::env::var_os("GPUEMU_TEST_PTX").map_or_else(target, PathBuf::from).join("triton-ptx")
}

/// What is wrong with a kernel in one order.
fn wrong(folder: &Path, compiled: &Value, launch: &Value, seed: Option<u64>) -> Result<(), String> {
    let mut launch = Launch::new(folder, compiled, launch, Options { threads: 1, seed, ..Options::default() })?;
    let launched = launch.run()?;
    launch.check(&launched)
}

#[test]
fn every_kernel_is_right_in_every_order() {
    let folder = corpus();
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap_or_else(|error| {
        let made = "target/venv/bin/python tests/triton/compile.py target/triton-ptx";
        panic!("{} holds no manifest.json ({error}). `tests/run` makes it; alone: `{made}`", folder.display())
    });
    let manifest: Value = serde_json::from_str(&manifest).expect("the manifest's format");
    let compiled = manifest["compiled"].as_array().expect("a list");
    let wanted = |one: &&Value| TARGETS.contains(&text(one, "target")) && one["file"].is_string();
    let compiled: Vec<&Value> = compiled.iter().filter(wanted).collect();
    assert!(compiled.len() >= 300, "{} kernels in the manifest", compiled.len());
    let jobs: Vec<(&Value, Option<u64>)> = compiled.iter().flat_map(|one| ORDERS.map(|order| (*one, order))).collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((compiled, order)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let kernel = text(compiled, "kernel");
                    if let Err(failure) = wrong(&folder, compiled, &manifest["launches"][kernel], *order) {
                        let target = text(compiled, "target");
                        failures.lock().unwrap().push(format!("{kernel} for {target} in order {order:?}: {failure}"));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    assert!(failures.is_empty(), "{} of {} runs:\n{}", failures.len(), jobs.len(), failures.join("\n"));
}
