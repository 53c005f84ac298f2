//! Random CUDA programs, as nvcc compiles them, on the emulator: each answers bit for bit as an NVIDIA H200 did, under
//! several schedules, and the sanitizers find nothing.
//!
//! `tests/cuda/programs.py` writes the programs and `compile_cuda.py` beside it compiles them; what the hardware answered
//! stands in `gpuemu-ptx/truth/programs.txt`. `GPUEMU_TEST_PTX` names the folder that holds `cuda-ptx`; without it,
//! `target` does.

use std::path::{Path, PathBuf};

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Shape};
use gpuemu_ptx::program::Program;

const BLOCKS: u32 = 3;
const THREADS: u32 = 96;
const BYTES: usize = (BLOCKS * THREADS) as usize * 64;

/// SplitMix64 of a counter.
fn mixed(counter: u64) -> u64 {
    let z = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// What the programs read: every third word is below 256.
fn input() -> Vec<u8> {
    (0..4096).flat_map(|i| ((mixed(i) >> if i % 3 == 0 { 56 } else { 32 }) as u32).to_le_bytes()).collect()
}

/// FNV-1a over words.
fn digest(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(4).fold(1_469_598_103_934_665_603, |hash, word| {
        let word = u64::from(u32::from_le_bytes(word.try_into().unwrap()));
        (hash ^ word).wrapping_mul(1_099_511_628_211)
    })
}

fn run(program: &Program, entry: &str, options: Options) -> Result<Vec<u8>, String> {
    let mut device = Device::new(Arch::named("sm_80").unwrap(), options).map_err(|error| error.to_string())?;
    let module = device.load_entry(program.clone(), entry).map_err(|error| error.to_string())?;
    let input = input();
    let from = device.memory().allocate(input.len() as u64, 256, "in").map_err(|error| error.to_string())?;
    let to = device.memory().allocate(BYTES as u64, 256, "out").map_err(|error| error.to_string())?;
    device.memory_mut().write(from, &input).map_err(|error| error.to_string())?;
    let shape = Shape { grid: [BLOCKS, 1, 1], block: [THREADS, 1, 1], shared: 0 };
    let arguments = [Argument::Pointer(from), Argument::Pointer(to)];
    let launched = device.launch(&module, entry, shape, &arguments).map_err(|error| error.to_string())?;
    if let Some(fault) = launched.fault {
        return Err(fault.to_string());
    }
    let mut output = vec![0; BYTES];
    device.memory_mut().read(to, &mut output).map_err(|error| error.to_string())?;
    Ok(output)
}

#[test]
fn programs_answer_as_the_hardware_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let truth = std::fs::read_to_string(root.join("gpuemu-ptx/truth/programs.txt")).unwrap();
    let folder = std::env::var_os("GPUEMU_TEST_PTX").map_or_else(|| root.join("target"), PathBuf::from);
    let path = folder.join("cuda-ptx/programs.sm_80.ptx");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; tests/cuda/compile_cuda.py makes it", path.display()));
    let program = Program::read(&text).unwrap();
    let schedules = [(None, 1), (Some(1), 1), (Some(2), 2)];
    let (mut ran, mut wrong) = (0, Vec::new());
    for line in truth.lines().filter(|line| !line.starts_with('#')) {
        let (number, expected) = line.split_once(' ').unwrap();
        let entry = format!("program{number}");
        if program.entry(&entry).is_err() {
            continue;
        }
        ran += 1;
        for (seed, threads) in schedules {
            match run(&program, &entry, Options { threads, seed, ..Options::default() }) {
                Ok(output) if format!("{:016x}", digest(&output)) == expected => {}
                Ok(_) => wrong.push(format!("{entry} answers otherwise (seed {seed:?}, {threads} threads)")),
                Err(error) => wrong.push(format!("{entry} (seed {seed:?}, {threads} threads): {error}")),
            }
        }
    }
    assert_eq!(ran, 40, "{} should hold 40 of the programs", path.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
