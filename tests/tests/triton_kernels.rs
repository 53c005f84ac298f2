//! The Triton kernels under `tests/triton`, as stock Triton compiles them for sm_80 and sm_89: each runs on the emulator
//! with all sanitizers, in several orders of blocks and warps, and leaves what NumPy says.
//!
//! `GPUEMU_TEST_PTX` names the folder that holds `triton-ptx`; without it, `target` does.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Shape};
use gpuemu_ptx::memory::Role;
use gpuemu_ptx::program::Program;
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

/// Bytes of an element.
fn size_of(dtype: &str) -> usize {
    match dtype {
        "float64" | "int64" | "uint64" => 8,
        "float32" | "int32" | "uint32" => 4,
        "float16" | "bfloat16" | "int16" | "uint16" => 2,
        _ => 1,
    }
}

/// The value of an element.
fn number(dtype: &str, bytes: &[u8]) -> f64 {
    let bits = bytes.iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
    match dtype {
        "float64" => f64::from_bits(bits),
        "float32" => f64::from(f32::from_bits(bits as u32)),
        "bfloat16" => f64::from(f32::from_bits((bits as u32) << 16)),
        "float16" => narrow(bits as u32, 5, 10, false),
        "float8_e4m3fn" => narrow(bits as u32, 4, 3, true),
        "float8_e5m2" => narrow(bits as u32, 5, 2, false),
        "int64" => bits as i64 as f64,
        "int32" => f64::from(bits as i32),
        "int16" => f64::from(bits as i16),
        "int8" => f64::from(bits as i8),
        _ => bits as f64,
    }
}

/// The value of a float of so many bits of exponent and mantissa. A `finite` format has one NaN, all ones, and no infinity.
fn narrow(code: u32, exponent: u32, mantissa: u32, finite: bool) -> f64 {
    let sign = if code >> (exponent + mantissa) & 1 != 0 { -1.0 } else { 1.0 };
    let (field, top) = (code >> mantissa & ((1 << exponent) - 1), (1 << exponent) - 1);
    let part = code & ((1 << mantissa) - 1);
    let fraction = f64::from(part) / f64::from(1 << mantissa);
    let bias = (1 << (exponent - 1)) - 1;
    match field {
        _ if field == top && finite && part == (1 << mantissa) - 1 => f64::NAN,
        _ if field == top && !finite && part == 0 => sign * f64::INFINITY,
        _ if field == top && !finite => f64::NAN,
        0 => sign * fraction * f64::powi(2.0, 1 - bias),
        _ => sign * (1.0 + fraction) * f64::powi(2.0, field as i32 - bias),
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The bytes that a place of the manifest names, where it names any.
fn placed<'d>(data: &'d [u8], place: &Value) -> Option<&'d [u8]> {
    let (offset, bytes) = (place["offset"].as_u64()? as usize, place["bytes"].as_u64()? as usize);
    data.get(offset..offset + bytes)
}

fn scalar(declared: &Value) -> Argument {
    let value = &declared["value"];
    match text(declared, "dtype") {
        "float32" => Argument::Float32(value.as_f64().expect("a number") as f32),
        "float64" => Argument::Float64(value.as_f64().expect("a number")),
        _ => Argument::Integer(i128::from(value.as_i64().expect("an integer"))),
    }
}

/// What is wrong with a kernel in one order.
fn wrong(folder: &Path, compiled: &Value, launch: &Value, seed: Option<u64>) -> Result<(), String> {
    let told = |error: gpuemu_ptx::Error| error.to_string();
    let read = |name: &str| std::fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let ptx = String::from_utf8(read(text(compiled, "file"))?).map_err(|error| error.to_string())?;
    let data = read(text(launch, "tensors"))?;
    let program = Program::read(&ptx).map_err(told)?;
    let arch = Arch::named(text(compiled, "target")).map_err(told)?;
    let mut device = Device::new(arch, Options { threads: 1, seed, ..Options::default() }).map_err(told)?;
    let entry = text(compiled, "entry");
    let parameters = program.function(program.entry(entry).map_err(told)?).parameters.len();
    let module = device.load_entry(program, entry).map_err(told)?;
    let (mut arguments, mut tensors) = (Vec::new(), Vec::new());
    for declared in launch["arguments"].as_array().expect("a list") {
        if text(declared, "kind") == "scalar" {
            arguments.push(scalar(declared));
            continue;
        }
        let size = size_of(text(declared, "dtype"));
        let elements: u64 = declared["shape"].as_array().expect("a shape").iter().map(count).product();
        let bytes = elements * size as u64;
        let address = device.memory().allocate(bytes, 256, text(declared, "name")).map_err(told)?;
        let (before, after) = (placed(&data, &declared["before"]), placed(&data, &declared["after"]));
        if let Some(before) = before {
            device.memory_mut().write(address, before).map_err(told)?;
        }
        let role = match (before, after) {
            (Some(_), Some(_)) => Role::InOut,
            (Some(_), None) => Role::Input,
            (None, _) => Role::Output,
        };
        device.memory_mut().declare(address, role, size as u32).map_err(told)?;
        tensors.push((declared, address, after.or(before)));
        arguments.push(Argument::Pointer(address));
    }
    let mut grid = [1, 1, 1];
    for (extent, declared) in grid.iter_mut().zip(launch["grid"].as_array().expect("a list")) {
        *extent = count(declared) as u32;
    }
    let blocks: u64 = grid.iter().map(|&extent| u64::from(extent)).product();
    let scratch = count(&compiled["scratch_bytes"]) * blocks;
    if arguments.len() < parameters {
        let address = match scratch {
            0 => 0,
            _ => device.memory().allocate(scratch, 256, "scratch").map_err(told)?,
        };
        arguments.push(Argument::Pointer(address));
    }
    arguments.resize(parameters.max(arguments.len()), Argument::Pointer(0));
    grid[0] *= (count(&compiled["cluster"]) as u32).max(1);
    let block = [count(&compiled["threads"]) as u32, 1, 1];
    let shape = Shape { grid, block, shared: count(&compiled["shared_bytes"]) as u32 };
    let launched = device.launch(&module, entry, shape, &arguments).map_err(told)?;
    if let Some(fault) = launched.fault.or_else(|| device.unwritten().into_iter().next()) {
        return Err(fault.to_string());
    }
    let printed: String = launched.printed.iter().map(|printed| printed.text.as_str()).collect();
    let mut lines: Vec<&str> = printed.lines().collect();
    let mut expected: Vec<&str> =
        launch["prints"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    lines.sort_unstable();
    expected.sort_unstable();
    if !expected.is_empty() && lines != expected {
        return Err(format!("it printed {lines:?} instead of {expected:?}"));
    }
    let tolerance = |key: &str| launch["tolerance"][key].as_f64().expect("a number");
    let (absolute, relative) = (tolerance("absolute"), tolerance("relative"));
    for (declared, address, expected) in tensors {
        let Some(expected) = expected else { continue };
        let mut got = vec![0; expected.len()];
        device.memory_mut().read(address, &mut got).map_err(told)?;
        let dtype = text(declared, "dtype");
        let size = size_of(dtype);
        let differs = |(got, expected): &(&[u8], &[u8])| {
            let (x, y) = (number(dtype, got), number(dtype, expected));
            let near = x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= absolute + relative * y.abs();
            got != expected && !near
        };
        let pairs = || got.chunks(size).zip(expected.chunks(size));
        if let Some(index) = pairs().position(|pair| differs(&pair)) {
            let (x, y) = pairs().nth(index).map(|(x, y)| (number(dtype, x), number(dtype, y))).expect("just found");
            let (all, of) = (pairs().filter(differs).count(), got.len() / size);
            return Err(format!("{all} of {of} of {} differ, [{index}] is {x} instead of {y}", text(declared, "name")));
        }
    }
    Ok(())
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
