//! Says which entries of PTX files the emulator can execute, and why not the others: `loads FILE...`.

use std::collections::BTreeMap;

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Device, Options};
use gpuemu_ptx::program::Program;

fn main() {
    let (mut good, mut reasons) = (0, BTreeMap::<String, (usize, String)>::new());
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let program = match Program::read(&text) {
            Ok(program) => program,
            Err(error) => {
                println!("{path}: {}", error.to_string().lines().next().unwrap_or_default());
                continue;
            }
        };
        let target = program.targets.first().map_or("sm_80", |target| &**target);
        let Ok(arch) = Arch::named(target) else {
            println!("{path}: unknown target {target}");
            continue;
        };
        let names: Vec<String> = program.entries().map(|(_, entry)| entry.name.to_string()).collect();
        for name in names {
            let mut device = Device::new(arch, Options::default()).expect("a device");
            match device.load_entry(program.clone(), &name) {
                Ok(_) => good += 1,
                Err(error) => {
                    let text = error.to_string();
                    let reason = text.split_once(": ").map_or(text.as_str(), |(_, reason)| reason).to_owned();
                    let entry = reasons.entry(reason).or_insert((0, format!("{path} {name}")));
                    entry.0 += 1;
                }
            }
        }
    }
    println!("{good} entries load");
    for (reason, (count, first)) in reasons {
        println!("{count:5} {reason}    ({first})");
    }
}
