//! The kernels of `truth/record.cpp`, run by the emulator.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Argument, Device, Options, Sanitizers, Shape};

use crate::inputs::{matrix_word, operand};

const HEAD: &str = ".version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pi, .param .u64 po) {
.reg .b64 in, out, x; .reg .b32 i, t; .reg .pred p;
mov.u32 i, %ctaid.x; mov.u32 t, %ntid.x; mad.lo.u32 i, i, t, 0; mov.u32 t, %tid.x; add.u32 i, i, t;
ld.param.u64 in, [pi]; ld.param.u64 out, [po];
";

/// Runs a kernel with a thread for every so many words of input; or says why it cannot.
fn run(text: &str, inputs: &[u64], threads: usize, block: u32, outputs: usize) -> Result<Vec<u64>, String> {
    let options = Options { threads: 1, sanitizers: Sanitizers::NONE, ..Options::default() };
    let mut device = Device::new(Arch::named("sm_90a").unwrap(), options).unwrap();
    let module = device.load(text).map_err(|error| error.to_string())?;
    let bytes: Vec<u8> = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut answers = vec![0; threads * outputs * 8];
    let from = device.memory().allocate(bytes.len() as u64, 256, "in").unwrap();
    let to = device.memory().allocate(answers.len() as u64, 256, "out").unwrap();
    device.memory_mut().write(from, &bytes).unwrap();
    device.memory_mut().write(to, &answers).unwrap();
    let shape = Shape { grid: [threads as u32 / block, 1, 1], block: [block, 1, 1], shared: 0 };
    let arguments = [Argument::Pointer(from), Argument::Pointer(to)];
    let launched = device.launch(&module, "k", shape, &arguments).map_err(|error| error.to_string())?;
    if let Some(fault) = launched.fault {
        return Err(fault.to_string());
    }
    device.memory_mut().read(to, &mut answers).unwrap();
    Ok(answers.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect())
}

/// A row of `instructions.txt`.
pub struct Instruction<'a> {
    pub name: &'a str,
    pub kinds: Vec<&'a str>,
    result: &'a str,
    body: &'a str,
}

impl Instruction<'_> {
    pub fn rows() -> impl Iterator<Item = Instruction<'static>> {
        rows(include_str!("../../truth/instructions.txt")).map(|[name, kinds, result, body, _]| Instruction {
            name,
            kinds: kinds.split_whitespace().collect(),
            result,
            body,
        })
    }

    /// Operands of a trial, in the order a, b, c, e.
    pub fn operands(&self, trial: u64) -> Vec<u64> {
        self.kinds.iter().zip(0..).map(|(kind, k)| operand(kind, trial, k)).collect()
    }

    /// The answers of the first trials.
    pub fn answers(&self, trials: u64) -> Result<Vec<u64>, String> {
        let mut text = HEAD.to_owned();
        text += "mad.wide.u32 in, i, 32, in; mad.wide.u32 out, i, 8, out;\n";
        let mut operands = String::new();
        for (k, (kind, name)) in self.kinds.iter().zip(["a", "b", "c", "e"]).enumerate() {
            let (register, convert) = match *kind {
                "f16" | "bf16" | "e16" | "u16" | "t16" | "g16" => ("b16", "cvt.u16.u64"),
                "f64" | "u64" | "hi20" => ("b64", "mov.b64"),
                _ => ("b32", "cvt.u32.u64"),
            };
            text += &format!(".reg .{register} {name}; ld.global.u64 x, [in+{}]; {convert} {name}, x;\n", 8 * k);
            operands += &format!(", {name}");
        }
        let (register, convert) = match self.result {
            "h" => ("b16", "cvt.u64.u16"),
            "w" => ("b32", "cvt.u64.u32"),
            _ => ("b64", "mov.b64"),
        };
        text += &format!(".reg .{register} d;\n");
        text += &match self.body {
            "" => format!("{} d{operands};", self.name),
            body => body.to_owned(),
        };
        text += &format!("\n{convert} x, d; st.global.u64 [out], x; ret;\n}}\n");
        let inputs: Vec<u64> = (0..trials)
            .flat_map(|trial| {
                let mut words = self.operands(trial);
                words.resize(4, 0);
                words
            })
            .collect();
        run(&text, &inputs, trials as usize, 128, 1)
    }
}

/// A row of `matrix.txt`.
pub struct Product<'a> {
    pub name: &'a str,
    /// Element kind and registers of a, b and c.
    operands: [(&'a str, usize); 3],
    /// How the places of a sparse matrix are written, and the selector of the threads that have them.
    sparse: Option<(&'a str, &'a str)>,
    /// Element kind and registers of d.
    result: (&'a str, usize),
}

impl Product<'_> {
    pub fn rows() -> impl Iterator<Item = Product<'static>> {
        rows(include_str!("../../truth/matrix.txt")).map(|[name, a, b, c, more]| {
            let pair = |text: &'static str| {
                let (kind, count) = text.split_once(' ').unwrap();
                (kind, count.parse().unwrap())
            };
            let operands = [pair(a), pair(b), pair(c)];
            let result = more.strip_prefix("d ").map_or(operands[2], pair);
            let sparse = more.split_once(' ').filter(|_| !more.starts_with("d "));
            Product { name, operands, sparse, result }
        })
    }

    /// Registers of d.
    pub fn outputs(&self) -> usize {
        self.result.1
    }

    /// Bytes of a word of the recording.
    pub fn bytes(&self) -> usize {
        if self.result.0 == "f64" { 8 } else { 4 }
    }

    /// The words of d, by trial, lane and register.
    pub fn answers(&self, trials: u64) -> Result<Vec<u64>, String> {
        let register = if self.bytes() == 8 { "b64" } else { "b32" };
        let words: usize = self.operands.iter().map(|operand| operand.1).sum::<usize>() + self.sparse.iter().count();
        let mut text = HEAD.to_owned();
        text += &format!("mad.wide.u32 in, i, {}, in; mad.wide.u32 out, i, {}, out;\n", 8 * words, 8 * self.outputs());
        let list = |name: &str, count: usize| {
            let registers: Vec<String> = (0..count).map(|index| format!("{name}{index}")).collect();
            format!("{{{}}}", registers.join(", "))
        };
        let mut call = format!("{} {}", self.name, list("d", self.outputs()));
        let mut stores = String::new();
        for index in 0..self.outputs() {
            text += &format!(".reg .{register} d{index};\n");
            stores += &format!("st.global.{register} [out+{}], d{index};\n", 8 * index);
        }
        let mut at = 0;
        for (name, (_, count)) in ["a", "b", "c"].into_iter().zip(self.operands) {
            for index in 0..count {
                text += &format!(".reg .{register} {name}{index}; ld.global.{register} {name}{index}, [in+{at}];\n");
                at += 8;
            }
            call += &format!(", {}", list(name, count));
        }
        if let Some((_, selector)) = self.sparse {
            text += &format!(".reg .b32 e; ld.global.b32 e, [in+{at}];\n");
            call += &format!(", e, {selector}");
        }
        text += &format!("{call};\n{stores}ret;\n}}\n");
        let kinds: Vec<&str> = self
            .operands
            .iter()
            .flat_map(|&(kind, count)| std::iter::repeat_n(kind, count))
            .chain(self.sparse.map(|(kind, _)| kind))
            .collect();
        let mut inputs = Vec::new();
        for trial in 0..trials {
            for lane in 0..32 {
                let word = |(index, kind): (usize, &&str)| matrix_word(kind, trial, (lane * words + index) as u64);
                inputs.extend(kinds.iter().enumerate().map(word));
            }
        }
        run(&text, &inputs, 32 * trials as usize, 32, self.outputs())
    }
}

/// Rows of up to five columns.
fn rows(table: &'static str) -> impl Iterator<Item = [&'static str; 5]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('|').map(str::trim);
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    })
}
