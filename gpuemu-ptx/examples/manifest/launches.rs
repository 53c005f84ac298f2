//! The launches of a manifest, as `tests/triton/compile.py` writes it: which kernel, with which tensors, and what NumPy
//! says that they hold then. The suite of the Triton kernels in `tests/tests` runs them too.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Launched, Module, Options, Shape};
use gpuemu_ptx::memory::Role;
use gpuemu_ptx::program::Program;
use serde_json::Value;
use std::path::Path;

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

/// A text of the manifest; empty where there is none.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Three extents.
fn extents(value: &Value) -> Option<[u32; 3]> {
    let mut extents = [1, 1, 1];
    for (extent, declared) in extents.iter_mut().zip(value.as_array()?) {
        *extent = count(declared) as u32;
    }
    Some(extents)
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

/// A tensor on the device, and what it should hold after the launch.
struct Tensor {
    name: String,
    dtype: String,
    address: u64,
    expected: Option<Vec<u8>>,
}

/// A kernel with its tensors on a device.
pub struct Launch {
    device: Device,
    module: Module,
    entry: String,
    shape: Shape,
    arguments: Vec<Argument>,
    tensors: Vec<Tensor>,
    prints: Vec<String>,
    /// Absolute and relative.
    tolerance: (f64, f64),
}

impl Launch {
    /// One of the manifest's `compiled`, with what its `launches` say of the kernel.
    pub fn new(folder: &Path, compiled: &Value, launch: &Value, options: Options) -> Result<Self, String> {
        let told = |error: gpuemu_ptx::Error| error.to_string();
        let read = |name: &str| std::fs::read(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        let ptx = String::from_utf8(read(text(compiled, "file"))?).map_err(|error| error.to_string())?;
        let data = read(text(launch, "tensors"))?;
        let program = Program::read(&ptx).map_err(told)?;
        let arch = Arch::named(&program.targets[0]).map_err(told)?;
        let mut device = Device::new(arch, options).map_err(told)?;
        let entry = text(compiled, "entry").to_owned();
        let parameters = program.function(program.entry(&entry).map_err(told)?).parameters.len();
        let module = device.load_entry(program, &entry).map_err(told)?;
        let (mut arguments, mut tensors) = (Vec::new(), Vec::new());
        for declared in launch["arguments"].as_array().expect("a list") {
            if text(declared, "kind") == "scalar" {
                arguments.push(scalar(declared));
                continue;
            }
            let (name, dtype) = (text(declared, "name").to_owned(), text(declared, "dtype").to_owned());
            let elements: u64 = declared["shape"].as_array().expect("a shape").iter().map(count).product();
            let bytes = elements * size_of(&dtype) as u64;
            let address = device.memory().allocate(bytes, 256, &name).map_err(told)?;
            let (before, after) = (placed(&data, &declared["before"]), placed(&data, &declared["after"]));
            if let Some(before) = before {
                device.memory_mut().write(address, before).map_err(told)?;
            }
            let role = match (before, after) {
                (Some(_), Some(_)) => Role::InOut,
                (Some(_), None) => Role::Input,
                (None, _) => Role::Output,
            };
            device.memory_mut().declare(address, role, size_of(&dtype) as u32).map_err(told)?;
            tensors.push(Tensor { name, dtype, address, expected: after.or(before).map(<[u8]>::to_vec) });
            arguments.push(Argument::Pointer(address));
        }
        let mut grid = extents(&launch["grid"]).expect("a list");
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
        let block = extents(&compiled["block"]).unwrap_or([count(&compiled["threads"]) as u32, 1, 1]);
        let shape = Shape { grid, block, shared: count(&compiled["shared_bytes"]) as u32 };
        let prints = launch["prints"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let tolerance = |key: &str| launch["tolerance"][key].as_f64().expect("a number");
        Ok(Self {
            device,
            module,
            entry,
            shape,
            arguments,
            tensors,
            prints: prints.map(str::to_owned).collect(),
            tolerance: (tolerance("absolute"), tolerance("relative")),
        })
    }

    /// Runs it.
    pub fn run(&mut self) -> Result<Launched, String> {
        let launched = self.device.launch(&self.module, &self.entry, self.shape, &self.arguments);
        launched.map_err(|error| error.to_string())
    }

    /// What is wrong with what the first run left and printed.
    pub fn check(&mut self, launched: &Launched) -> Result<(), String> {
        let unwritten = || self.device.unwritten().into_iter().next();
        if let Some(fault) = launched.fault.clone().or_else(unwritten) {
            return Err(fault.to_string());
        }
        let printed: String = launched.printed.iter().map(|printed| printed.text.as_str()).collect();
        let mut lines: Vec<&str> = printed.lines().collect();
        let mut expected: Vec<&str> = self.prints.iter().map(String::as_str).collect();
        lines.sort_unstable();
        expected.sort_unstable();
        if !expected.is_empty() && lines != expected {
            return Err(format!("it printed {lines:?} instead of {expected:?}"));
        }
        let (absolute, relative) = self.tolerance;
        for Tensor { name, dtype, address, expected } in &self.tensors {
            let Some(expected) = expected else { continue };
            let mut got = vec![0; expected.len()];
            self.device.memory_mut().read(*address, &mut got).map_err(|error| error.to_string())?;
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
                return Err(format!("{all} of {of} of {name} differ, [{index}] is {x} instead of {y}"));
            }
        }
        Ok(())
    }
}
