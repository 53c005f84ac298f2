//! Runs compiled Triton kernels on the emulator and compares their outputs with what NumPy says:
//! `manifest FOLDER TARGET [--plain] [--seed=N] [--threads=N] [--seconds=S] [NAME]`: `--plain` without sanitizers,
//! `--seed` with another order of warps, `--threads` on so many threads of the host, `--seconds` to launch again for so
//! long and tell the fastest launch. FOLDER is what `tests/triton/compile.py` writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Sanitizers, Shape};
use gpuemu_ptx::program::Program;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Manifest {
    launches: BTreeMap<String, Launch>,
    compiled: Vec<Compiled>,
}

#[derive(Deserialize)]
struct Launch {
    grid: [u32; 3],
    arguments: Vec<Declared>,
    tolerance: Tolerance,
    prints: Vec<String>,
    tensors: String,
}

#[derive(Deserialize)]
struct Tolerance {
    absolute: f64,
    relative: f64,
}

#[derive(Deserialize)]
struct Declared {
    name: String,
    kind: String,
    dtype: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    shape: Vec<u64>,
    #[serde(default)]
    before: Option<Place>,
    #[serde(default)]
    after: Option<Place>,
}

#[derive(Deserialize, Clone, Copy)]
struct Place {
    offset: usize,
    bytes: usize,
}

#[derive(Deserialize)]
struct Compiled {
    kernel: String,
    target: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    entry: Option<String>,
    #[serde(default)]
    threads: u32,
    /// Instead of `threads`, where a block is not flat.
    #[serde(default)]
    block: Option<[u32; 3]>,
    #[serde(default)]
    cluster: u32,
    #[serde(default)]
    shared_bytes: u32,
    #[serde(default)]
    scratch_bytes: u64,
}

fn size_of(dtype: &str) -> usize {
    match dtype {
        "float64" | "int64" | "uint64" => 8,
        "float32" | "int32" | "uint32" => 4,
        "float16" | "bfloat16" | "int16" | "uint16" => 2,
        _ => 1,
    }
}

fn number(dtype: &str, bytes: &[u8]) -> f64 {
    let bits = bytes.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    match dtype {
        "float64" => f64::from_bits(bits),
        "float32" => f64::from(f32::from_bits(bits as u32)),
        "float16" => half::f16::from_bits(bits as u16).to_f64(),
        "bfloat16" => half::bf16::from_bits(bits as u16).to_f64(),
        "int64" => bits as i64 as f64,
        "int32" => f64::from(bits as i32),
        "int16" => f64::from(bits as i16),
        "int8" => f64::from(bits as i8),
        "float8_e4m3fn" => small(bits as u8, 4, 3),
        "float8_e5m2" => small(bits as u8, 5, 2),
        _ => bits as f64,
    }
}

fn small(code: u8, exponent: i32, mantissa: i32) -> f64 {
    let sign = if code & 0x80 != 0 { -1.0 } else { 1.0 };
    let field = i32::from(code & 0x7f) >> mantissa;
    let fraction = f64::from(i32::from(code) & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
    let bias = (1 << (exponent - 1)) - 1;
    let top = (1 << exponent) - 1;
    if field == top && (exponent == 5 || fraction == 0.875) {
        return if exponent == 5 && fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
    }
    match field {
        0 => sign * fraction * f64::powi(2.0, 1 - bias),
        _ => sign * (1.0 + fraction) * f64::powi(2.0, field - bias),
    }
}

fn argument(declared: &Declared) -> Argument {
    match declared.dtype.as_str() {
        "float32" => Argument::Float32(declared.value.as_f64().unwrap() as f32),
        "float64" => Argument::Float64(declared.value.as_f64().unwrap()),
        _ => Argument::Integer(i128::from(declared.value.as_i64().unwrap())),
    }
}

/// What was wrong, or how long the fastest launch took and how many instructions there were.
fn run(
    folder: &Path,
    compiled: &Compiled,
    launch: &Launch,
    options: Options,
    again: Duration,
) -> Result<(f64, u64), String> {
    let text = std::fs::read_to_string(folder.join(compiled.file.as_ref().unwrap())).map_err(|e| e.to_string())?;
    let data = std::fs::read(folder.join(&launch.tensors)).map_err(|e| e.to_string())?;
    let program = Program::read(&text).map_err(|e| format!("read: {e}"))?;
    let arch = Arch::named(&program.targets[0]).map_err(|e| e.to_string())?;
    let mut device = Device::new(arch, options).map_err(|e| e.to_string())?;
    let entry = compiled.entry.as_deref().unwrap();
    let wanted = program.function(program.entry(entry).map_err(|e| e.to_string())?).parameters.len();
    let module = device.load_entry(program, entry).map_err(|e| format!("load: {e}"))?;
    let mut arguments = Vec::new();
    let mut tensors = Vec::new();
    for declared in &launch.arguments {
        if declared.kind == "scalar" {
            arguments.push(argument(declared));
            continue;
        }
        let bytes = declared.shape.iter().product::<u64>() * size_of(&declared.dtype) as u64;
        let address = device.memory().allocate(bytes, 256, &declared.name).map_err(|e| e.to_string())?;
        if let Some(Place { offset, bytes }) = declared.before {
            device.memory_mut().write(address, &data[offset..offset + bytes]).map_err(|e| e.to_string())?;
        }
        tensors.push((declared, address));
        arguments.push(Argument::Pointer(address));
    }
    let blocks: u64 = launch.grid.iter().map(|&extent| u64::from(extent)).product();
    if arguments.len() < wanted {
        let scratch =
            device.memory().allocate(compiled.scratch_bytes * blocks, 256, "scratch").map_err(|e| e.to_string())?;
        arguments.push(Argument::Pointer(if compiled.scratch_bytes == 0 { 0 } else { scratch }));
    }
    while arguments.len() < wanted {
        arguments.push(Argument::Pointer(0));
    }
    let mut grid = launch.grid;
    grid[0] *= compiled.cluster.max(1);
    let shape =
        Shape { grid, block: compiled.block.unwrap_or([compiled.threads, 1, 1]), shared: compiled.shared_bytes };
    let begun = Instant::now();
    let launched = device.launch(&module, entry, shape, &arguments).map_err(|e| e.to_string())?;
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(fault) = launched.fault {
        return Err(format!("fault: {fault}"));
    }
    if !launch.prints.is_empty() {
        let text: String = launched.printed.iter().map(|printed| printed.text.as_str()).collect();
        let mut lines: Vec<&str> = text.lines().collect();
        let mut expected: Vec<&str> = launch.prints.iter().map(String::as_str).collect();
        lines.sort_unstable();
        expected.sort_unstable();
        if lines != expected {
            return Err(format!("printed {lines:?} instead of {expected:?}"));
        }
    }
    for (declared, address) in tensors {
        let Some(Place { offset, bytes }) = declared.after.or(declared.before) else { continue };
        let expected = &data[offset..offset + bytes];
        let mut got = vec![0; bytes];
        device.memory_mut().read(address, &mut got).map_err(|e| e.to_string())?;
        let size = size_of(&declared.dtype);
        let (mut wrong, mut first) = (0, None);
        for (index, (got, expected)) in got.chunks(size).zip(expected.chunks(size)).enumerate() {
            let (x, y) = (number(&declared.dtype, got), number(&declared.dtype, expected));
            let near = x == y
                || x.is_nan() && y.is_nan()
                || (x - y).abs() <= launch.tolerance.absolute + launch.tolerance.relative * y.abs();
            if got != expected && !near {
                wrong += 1;
                first = first.or(Some((index, x, y)));
            }
        }
        if let Some((index, x, y)) = first {
            let count = got.len() / size;
            return Err(format!("{}: {wrong} of {count} wrong, [{index}] is {x} instead of {y}", declared.name));
        }
    }
    let (begun, mut fastest) = (Instant::now(), seconds);
    while begun.elapsed() < again {
        let start = Instant::now();
        let _ = device.launch(&module, entry, shape, &arguments).map_err(|e| e.to_string())?;
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
    let text = std::fs::read_to_string(folder.join("manifest.json")).expect("a manifest");
    let manifest: Manifest = serde_json::from_str(&text).expect("the manifest's format");
    let (mut right, mut failed) = (0, 0);
    for compiled in manifest.compiled.iter().filter(|one| one.target == *target && one.file.is_some()) {
        if names.first().is_some_and(|name| !compiled.kernel.contains(name.as_str())) {
            continue;
        }
        let launch = &manifest.launches[&compiled.kernel];
        let options = Options { threads, seed, sanitizers, ..Options::default() };
        match run(folder, compiled, launch, options, again) {
            Ok((seconds, instructions)) => {
                right += 1;
                let speed = instructions as f64 * 32.0 / seconds / 1e9;
                println!("ok     {:40} {:9.4} ms {speed:7.3} G lane-instructions/s", compiled.kernel, seconds * 1e3);
            }
            Err(error) => {
                failed += 1;
                println!("FAILED {:40} {}", compiled.kernel, error.replace('\n', " / "));
            }
        }
    }
    println!("{right} right, {failed} not");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
