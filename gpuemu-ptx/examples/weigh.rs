//! Prints a table of what PTX files cost: what their text tells beside what NVIDIA's ptxas makes of it.
//!
//! ```text
//! cargo run --release -p gpuemu-ptx --example weigh -- [--python PYTHON] [--cache FOLDER] [--target sm_80]... FILE...
//! ```
//!
//! A folder stands for the `.ptx` files in it. Without `--target`, every file is assembled for the target that it names
//! itself. ptxas comes from the search path or from the wheels of the Python interpreter.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::metrics::{Metrics, measure};
use gpuemu_ptx::occupancy::Footprint;
use gpuemu_ptx::program::Program;
use gpuemu_ptx::vendor::{Assembly, Job, Settings, Toolbox};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

struct Arguments {
    settings: Settings,
    targets: Vec<String>,
    files: Vec<PathBuf>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let settings = Settings { path: std::env::var_os("PATH"), ..Settings::default() };
    let mut arguments = Arguments { settings, targets: Vec::new(), files: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--python" => arguments.settings.python = Some(value()?.into()),
            "--cache" => arguments.settings.cache = Some(value()?.into()),
            "--target" => arguments.targets.push(Arch::named(&value()?)?.name.clone()),
            _ if Path::new(&word).is_dir() => {
                let found = fs::read_dir(&word)?.map(|entry| entry.map(|entry| entry.path()));
                let found = found.collect::<Result<Vec<_>, _>>()?;
                arguments
                    .files
                    .extend(found.into_iter().filter(|path| path.extension().is_some_and(|end| end == "ptx")));
            }
            _ => arguments.files.push(word.into()),
        }
    }
    arguments.files.sort();
    Ok(arguments)
}

/// One file that is understood, and the targets it is weighed for.
struct Module {
    name: String,
    text: String,
    program: Program,
    targets: Vec<String>,
}

fn module(path: &Path, targets: &[String]) -> Result<Module, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let program = Program::read(&text)?;
    let own = program.targets.first().map(ToString::to_string);
    let targets = if targets.is_empty() { own.into_iter().collect() } else { targets.to_vec() };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Module { name, text, program, targets })
}

/// The cells of one entry: the text's figures first, then those of ptxas.
fn row(module: &Module, metrics: &Metrics, threads: Option<u32>, assembly: &Assembly) -> Option<String> {
    let real = assembly.output.entry(&metrics.entry)?;
    let footprint =
        |threads| Footprint { registers: real.registers, shared: real.shared, threads, barriers: real.barriers };
    // Dynamic shared memory is a matter of the launch, so that occupancy is not known here where there is some.
    let threads = threads.filter(|_| !metrics.dynamic_shared);
    let occupancy = threads.zip(Arch::named(&assembly.target).ok());
    let occupancy = occupancy.map(|(threads, arch)| arch.occupancy(footprint(threads)));
    let occupancy = occupancy.map_or("-".to_owned(), |found| format!("{:.0}%", found.fraction * 100.0));
    Some(format!(
        "| {} | {} | {} | {} | {} | {} | {}/{} | {} | {} | {} | {} |",
        module.name,
        metrics.entry,
        assembly.target,
        metrics.instructions.instructions,
        metrics.pressure.registers,
        real.registers,
        real.spill_stores,
        real.spill_loads,
        real.stack_frame,
        real.shared,
        occupancy,
        assembly.tool.trim_start_matches("ptxas "),
    ))
}

fn weigh() -> Result<bool, Box<dyn Error>> {
    let arguments = arguments()?;
    let toolbox = Toolbox::new(arguments.settings);
    let mut well = true;
    let mut modules = Vec::new();
    for path in &arguments.files {
        match module(path, &arguments.targets) {
            Ok(module) => modules.push(module),
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                well = false;
            }
        }
    }
    let pairs: Vec<(&Module, &String)> =
        modules.iter().flat_map(|module| module.targets.iter().map(move |target| (module, target))).collect();
    let jobs: Vec<Job<'_>> =
        pairs.iter().map(|(module, target)| Job { ptx: &module.text, target, flags: &[] }).collect();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let answers = toolbox.assemble_all(&jobs, threads);

    println!(
        "| file | entry | target | PTX instructions | registers live at the widest point (static estimate) \
         | ptxas registers | ptxas spill stores/loads, bytes | stack, bytes | static shared, bytes | occupancy | ptxas |"
    );
    println!("|---|---|---|---:|---:|---:|---:|---:|---:|---:|---|");
    for ((module, target), answer) in pairs.iter().zip(answers) {
        let assembly = match answer {
            Ok(assembly) => assembly,
            Err(error) => {
                eprintln!("{} for {target}: {error}", module.name);
                well = false;
                continue;
            }
        };
        for (id, function) in module.program.entries() {
            let threads = function.required_threads.or(function.maximum_threads);
            let threads = threads.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z));
            match row(module, &measure(&module.program, id), threads, &assembly) {
                Some(row) => println!("{row}"),
                None => {
                    eprintln!("{} for {target}: ptxas says nothing of {}", module.name, function.name);
                    well = false;
                }
            }
        }
    }
    Ok(well)
}

fn main() -> ExitCode {
    match weigh() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}
