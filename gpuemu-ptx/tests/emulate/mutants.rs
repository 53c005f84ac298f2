//! Valid PTX, changed at random: whatever becomes of it, the host neither dies nor hangs.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Shape};
use gpuemu_ptx::program::Program;

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

#[test]
fn mutants_neither_kill_the_host_nor_hang_it() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut launched = 0;
    for round in 0..400 {
        let mut lines: Vec<String> = SOURCES[round % SOURCES.len()].lines().map(str::to_owned).collect();
        for _ in 0..=dice.roll(4) {
            mutate(&mut lines, &mut dice);
        }
        let Ok(program) = Program::read(&lines.join("\n")) else { continue };
        let Some(name) = program.entries().map(|(_, entry)| entry.name.to_string()).next() else { continue };
        let options = Options { threads: 1, budget: 20_000, ..Options::default() };
        let mut device = Device::new(Arch::named("sm_80").unwrap(), options).unwrap();
        let Ok(module) = device.load_entry(program, &name) else { continue };
        let (_, entry) = module.program().entries().next().unwrap();
        let arguments: Vec<Argument> = entry
            .parameters
            .iter()
            .map(|parameter| match parameter.size {
                8 => Argument::Pointer(device.memory().allocate(4096, 256, &parameter.name).unwrap()),
                4 => Argument::Integer(64),
                bytes => Argument::Bytes(vec![1; bytes as usize]),
            })
            .collect();
        let shape = Shape { grid: [2, 1, 1], block: [64, 1, 1], shared: 1024 };
        // What it answers does not matter.
        launched += usize::from(device.launch(&module, &name, shape, &arguments).is_ok());
    }
    assert!(launched > 50, "only {launched} mutants were launched: the test has no teeth");
}
