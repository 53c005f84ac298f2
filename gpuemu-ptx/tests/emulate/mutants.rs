//! Valid PTX, changed at random: whatever becomes of it, the host neither dies nor hangs.
//!
//! `GPUEMU_TEST_MUTANTS=600` goes on for so many seconds, from another seed each time, over the modules below
//! `GPUEMU_TEST_PTX` too.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Sanitizers, Shape};
use gpuemu_ptx::program::Program;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

const SOURCES: [&str; 4] = [
    include_str!("../../../examples/cuda-kernels/kernels/saxpy.sm_80.ptx"),
    include_str!("../../../examples/cuda-kernels/kernels/row_softmax.sm_80.ptx"),
    include_str!("../../../examples/cuda-kernels/kernels/histogram.sm_80.ptx"),
    include_str!("../../../examples/cuda-kernels/kernels/matmul_tensor.sm_80.ptx"),
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }
}

/// One change: a line gone, doubled or moved; a word replaced by another of the text; a digit.
fn mutate(lines: &mut Vec<String>, dice: &mut Dice) {
    let at = dice.roll(lines.len());
    match dice.roll(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[dice.roll(lines.len())].clone()),
        2 => {
            let to = dice.roll(lines.len());
            lines.swap(at, to);
        }
        3 => {
            let words: Vec<String> = lines[dice.roll(lines.len())].split_whitespace().map(str::to_owned).collect();
            let mut mine: Vec<String> = lines[at].split_whitespace().map(str::to_owned).collect();
            if !words.is_empty() && !mine.is_empty() {
                let place = dice.roll(mine.len());
                mine[place] = words[dice.roll(words.len())].clone();
                lines[at] = mine.join(" ");
            }
        }
        4 => {
            let digit = char::from(b'0' + dice.roll(10) as u8);
            let digits: Vec<usize> = lines[at].match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
            if !digits.is_empty() {
                let place = digits[dice.roll(digits.len())];
                lines[at].replace_range(place..=place, &digit.to_string());
            }
        }
        _ => {
            let types = [".b8", ".u16", ".s32", ".f32", ".b64", ".f64", ".pred", ".v4", ".v2", ".global", ".shared"];
            let (from, to) = (types[dice.roll(types.len())], types[dice.roll(types.len())]);
            lines[at] = lines[at].replacen(from, to, 1);
        }
    }
}

/// Loads and launches a mutant. Whether it came to a launch; what it answers does not matter.
fn launch(text: &str, dice: &mut Dice) -> bool {
    let Ok(program) = Program::read(text) else { return false };
    let names: Vec<String> = program.entries().map(|(_, entry)| entry.name.to_string()).collect();
    let Some(name) = names.get(dice.roll(names.len())) else { return false };
    let options = Options {
        threads: 1 + dice.roll(2),
        budget: 20_000,
        seed: [None, Some(7)][dice.roll(2)],
        sanitizers: [Sanitizers::ALL, Sanitizers::ALL, Sanitizers::NONE][dice.roll(3)],
        counters: dice.roll(4) == 0,
        ..Options::default()
    };
    let target = program.targets.first().map_or("sm_80", |target| target);
    let Ok(arch) = Arch::named(target) else { return false };
    let Ok(mut device) = Device::new(arch, options) else { return false };
    let Ok(module) = device.load_entry(program, name) else { return false };
    let id = module.program().entry(name).expect("it was loaded");
    let arguments: Vec<Argument> = module
        .program()
        .function(id)
        .parameters
        .iter()
        .map(|parameter| match (parameter.size, dice.roll(8)) {
            (8, 0) => Argument::Pointer([0, 1, u64::MAX, 1 << 40][dice.roll(4)]),
            (8, _) => Argument::Pointer(device.memory().allocate(4096, 256, &parameter.name).unwrap()),
            (4, _) => Argument::Integer([64, 64, 64, 0, 1, -1, 1 << 31][dice.roll(7)]),
            (bytes, _) => Argument::Bytes(vec![1; bytes as usize]),
        })
        .collect();
    let shape = Shape {
        grid: [1 + dice.roll(3) as u32, 1, 1 + dice.roll(2) as u32],
        block: [[64, 128, 33, 1][dice.roll(4)], 1 + dice.roll(2) as u32, 1],
        shared: [1024, 0, 48 << 10][dice.roll(3)],
    };
    device.launch(&module, name, shape, &arguments).is_ok()
}

fn mutant(source: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    for _ in 0..=dice.roll(4) {
        mutate(&mut lines, dice);
    }
    lines.join("\n")
}

#[test]
fn mutants_neither_kill_the_host_nor_hang_it() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let launched = (0..400)
        .filter(|round| {
            let text = mutant(SOURCES[round % SOURCES.len()], &mut dice);
            launch(&text, &mut dice)
        })
        .count();
    assert!(launched > 50, "only {launched} mutants were launched: the test has no teeth");
}

/// Every module below a folder that is not too long to be changed thousands of times.
fn modules(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            modules(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "ptx") && entry.metadata().unwrap().len() < 1 << 17 {
            found.extend(fs::read_to_string(&path));
        }
    }
}

/// Longer than any mutant may take, most of it reading the module, and more memory than any may use.
const PATIENCE: Duration = Duration::from_secs(20);
const MEMORY: u64 = 2 << 30;

#[test]
fn many_mutants() {
    let Some(seconds) = std::env::var("GPUEMU_TEST_MUTANTS").ok() else { return };
    let until =
        Instant::now() + Duration::from_secs(seconds.parse().expect("GPUEMU_TEST_MUTANTS is a number of seconds"));
    let mut sources = Vec::new();
    modules(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/cuda-kernels")), &mut sources);
    if let Some(root) = std::env::var_os("GPUEMU_TEST_PTX").map(PathBuf::from) {
        ["triton-ptx", "cuda-ptx"].iter().for_each(|folder| modules(&root.join(folder), &mut sources));
    }
    // What runs now, for whoever finds this process dead.
    let culprit = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutant-{}.ptx", std::process::id()));
    let running = Mutex::new(Instant::now());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut dice = Dice(now.as_nanos() as u64 | 1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while Instant::now() < until {
                std::thread::sleep(Duration::from_millis(200));
                let since = running.lock().unwrap().elapsed();
                let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
                let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096;
                if since > PATIENCE || resident > MEMORY {
                    eprintln!("{} takes {since:?} and {} MiB", culprit.display(), resident >> 20);
                    std::process::abort();
                }
            }
        });
        let (mut rounds, mut launched, mut slowest) = (0u64, 0u64, Duration::ZERO);
        while Instant::now() < until {
            let seed = dice.0;
            let text = mutant(&sources[dice.roll(sources.len())], &mut dice);
            fs::write(&culprit, format!("// seed {seed}\n{text}")).unwrap();
            *running.lock().unwrap() = Instant::now();
            launched += u64::from(launch(&text, &mut dice));
            let took = running.lock().unwrap().elapsed();
            if took > slowest.max(Duration::from_secs(2)) {
                fs::copy(&culprit, culprit.with_extension(format!("slow-{}.ptx", took.as_millis()))).unwrap();
            }
            slowest = slowest.max(took);
            rounds += 1;
        }
        println!("{rounds} mutants of {} modules, {launched} launched, the slowest in {slowest:?}", sources.len());
        assert!(launched * 20 > rounds, "{launched} of {rounds} mutants were launched: the test has no teeth");
    });
    let _ = fs::remove_file(&culprit);
}
