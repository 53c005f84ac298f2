//! Runs compiled Triton kernels on the emulator and compares their outputs with what NumPy says:
//! `manifest FOLDER TARGET [--plain] [--seed=N] [--threads=N] [--seconds=S] [NAME]`: `--plain` without sanitizers,
//! `--seed` with another order of warps, `--threads` on so many threads of the host, `--seconds` to launch again for so
//! long and tell the fastest launch. FOLDER is what `tests/triton/compile.py` writes.

mod launches;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gpuemu_ptx::emulate::{Options, Sanitizers};
use launches::{Launch, text};
use serde_json::Value;

/// What was wrong, or how long the fastest launch took and how many instructions there were.
fn run(
    folder: &Path,
    compiled: &Value,
    launch: &Value,
    options: Options,
    again: Duration,
) -> Result<(f64, u64), String> {
    let mut launch = Launch::new(folder, compiled, launch, options)?;
    let begun = Instant::now();
    let launched = launch.run()?;
    let mut fastest = begun.elapsed().as_secs_f64();
    launch.check(&launched)?;
    let begun = Instant::now();
    while begun.elapsed() < again {
        let start = Instant::now();
        let _ = launch.run()?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok((fastest, launched.instructions))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, target, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: manifest FOLDER TARGET [--plain] [--seed=N] [--threads=N] [--seconds=S] [NAME]");
        return ExitCode::FAILURE;
    };
    let folder = Path::new(folder);
    let (flags, names): (Vec<&String>, Vec<&String>) = rest.iter().partition(|argument| argument.starts_with("--"));
    let sanitizers = if flags.iter().any(|flag| *flag == "--plain") { Sanitizers::NONE } else { Sanitizers::ALL };
    let flag = |name: &str| flags.iter().find_map(|flag| flag.strip_prefix(name));
    let seed = flag("--seed=").and_then(|seed| seed.parse().ok());
    let threads = flag("--threads=").and_then(|threads| threads.parse().ok()).unwrap_or(1);
    let again =
        flag("--seconds=").and_then(|seconds| seconds.parse().ok()).map_or(Duration::ZERO, Duration::from_secs_f64);
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("the manifest's format");
    let compiled = manifest["compiled"].as_array().expect("a list");
    let (mut right, mut failed) = (0, 0);
    for compiled in compiled.iter().filter(|one| text(one, "target") == target && one["file"].is_string()) {
        let kernel = text(compiled, "kernel");
        if names.first().is_some_and(|name| !kernel.contains(name.as_str())) {
            continue;
        }
        let launch = &manifest["launches"][kernel];
        let options = Options { threads, seed, sanitizers, ..Options::default() };
        match run(folder, compiled, launch, options, again) {
            Ok((seconds, instructions)) => {
                right += 1;
                let speed = instructions as f64 * 32.0 / seconds / 1e9;
                println!("ok     {:40} {:9.4} ms {speed:7.3} G lane-instructions/s", kernel, seconds * 1e3);
            }
            Err(error) => {
                failed += 1;
                println!("FAILED {:40} {}", kernel, error.replace('\n', " / "));
            }
        }
    }
    println!("{right} right, {failed} not");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
