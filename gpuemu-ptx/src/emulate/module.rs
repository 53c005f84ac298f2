//! A module loaded on a device: its code, and its variables in the device's memory.

use rustc_hash::FxHashMap;

use super::code::Code;
use super::decode::{self, Settings};
use super::options::Options;
use super::spaces;
use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::memory::{Global, Role, SHARED_WINDOW};
use crate::program::{FunctionId, Linkage, Program, Space, Symbol, VariableId};

/// A module loaded on a device.
pub struct Module {
    program: Program,
    codes: FxHashMap<FunctionId, Code>,
    addresses: FxHashMap<VariableId, u64>,
}

impl Module {
    /// Loads the entries asked for, or all of them.
    pub(super) fn load(
        mut program: Program,
        entry: Option<&str>,
        arch: &Arch,
        options: &Options,
        global: &mut Global,
    ) -> Result<Self> {
        if let Some(target) = program.targets.first() {
            let made_for = Arch::named(target)?;
            if !arch.runs(made_for) {
                return Err(Error::UnknownTarget(format!("{} does not run code for {target}", arch.name)));
            }
        }
        if program.address_size != 64 {
            return Err(Error::NotExecutable {
                line: 1,
                instruction: format!(".address_size {}", program.address_size),
                reason: "addresses have 64 bits".to_owned(),
            });
        }
        program.functions.iter_mut().for_each(super::hoist::hoist);
        let addresses = allocate(&program, global)?;
        initialise(&program, &addresses, global)?;
        let entries = match entry {
            Some(name) => vec![program.entry(name)?],
            None => program.entries().map(|(id, _)| id).collect(),
        };
        let settings = Settings {
            arch,
            wide: super::op::host_is_wide(),
            addresses: &addresses,
            counters: options.counters,
            native: options.native && !options.counters,
            indices: options.sanitizers.indices,
            watched: options.sanitizers.any(),
        };
        let mut codes = FxHashMap::default();
        for id in entries {
            codes.insert(id, decode::decode(&program, id, settings)?);
        }
        Ok(Self { program, codes, addresses })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The code of an entry; `None` where it was not loaded.
    pub(super) fn code(&self, entry: FunctionId) -> Option<&Code> {
        self.codes.get(&entry)
    }

    /// The address and size in bytes of a variable in global or constant memory.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let variables = (0..).map(VariableId).zip(&self.program.variables);
        let (id, variable) = variables.into_iter().find(|(_, variable)| &*variable.name == name)?;
        self.addresses.get(&id).map(|&address| (address, variable.size))
    }
}

fn allocate(program: &Program, global: &Global) -> Result<FxHashMap<VariableId, u64>> {
    let mut addresses = FxHashMap::default();
    for (id, variable) in (0..).map(VariableId).zip(&program.variables) {
        if !matches!(variable.space, Space::Global | Space::Constant) {
            continue;
        }
        if variable.linkage == Linkage::Extern {
            return Err(Error::Memory(format!("`{}` is declared and nowhere defined", variable.name)));
        }
        let align = u64::from(variable.align.max(1)).next_power_of_two();
        addresses.insert(id, global.allocate(variable.size.max(1), align, &variable.name)?);
    }
    Ok(addresses)
}

fn initialise(program: &Program, addresses: &FxHashMap<VariableId, u64>, global: &mut Global) -> Result<()> {
    for (id, variable) in (0..).map(VariableId).zip(&program.variables) {
        let Some(&address) = addresses.get(&id) else { continue };
        // What has no initial value is zero, and so is the end of what has one: written, before anything runs.
        global.fill(address, variable.size, &[0])?;
        let mut bytes = variable.initial.clone();
        for relocation in &variable.relocations {
            let (target, window) = match relocation.symbol {
                Symbol::Variable(id) => match program.variable(id).space {
                    // Where a shared variable lies is known with its entry only.
                    Space::Shared => {
                        let name = &program.variable(id).name;
                        return Err(Error::Memory(format!(
                            "the address of the shared variable `{name}` is no constant"
                        )));
                    }
                    _ => (addresses.get(&id).copied().unwrap_or(0), 0),
                },
                Symbol::Function(id) => (spaces::function_address(id), 0),
                _ => (0, SHARED_WINDOW),
            };
            let value = target.wrapping_add(window).wrapping_add(relocation.addend as u64);
            let value = match relocation.mask {
                Some(mask) if mask != 0 => (value & mask) >> mask.trailing_zeros(),
                _ => value,
            };
            let (start, width) = (relocation.offset as usize, usize::from(relocation.width));
            if bytes.len() < start + width {
                bytes.resize(start + width, 0);
            }
            bytes[start..start + width].copy_from_slice(&value.to_le_bytes()[..width]);
        }
        // What is not written in the module is zero.
        global.fill(address, variable.size, &[0])?;
        global.write(address, &bytes)?;
        if variable.space == Space::Constant {
            global.declare(address, Role::Constant, 0)?;
        }
    }
    Ok(())
}
