//! NVIDIA's real tools: what they print is read right, and architectures have the instructions that their files say.
//!
//! They come from the wheels of the interpreter that `GPUEMU_PYTHON` names, or from the search path; without them these
//! tests fail. `pip install triton` brings ptxas, nvdisasm and cuobjdump.

mod features;

use gpuemu_ptx::Error;
use gpuemu_ptx::vendor::{Job, PtxasOutput, SassClass, Settings, Tool, Toolbox};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Three small kernels, so that every figure can be read by eye.
const PTX: &str = include_str!("figures.ptx");

fn settings() -> Settings {
    let python = std::env::var_os("GPUEMU_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from);
    Settings { path: std::env::var_os("PATH"), python: Some(python.unwrap_or("python3".into())), ..Settings::default() }
}

fn path_of(tool: Tool) -> PathBuf {
    let described = Toolbox::new(settings()).describe(tool).unwrap_or_else(|error| panic!("{error}"));
    PathBuf::from(described.split_once('(').unwrap().1.trim_end_matches(')'))
}

/// Read by eye from what `ptxas -v` printed; 12.9, 13.4 and 13.5 print the same. Registers, spill stores, spill loads,
/// stack, shared memory, barriers, bytes of constant bank 0.
#[test]
fn figures_are_those_that_ptxas_prints() {
    let toolbox = Toolbox::new(settings());
    for (target, name, figures, constants) in [
        ("sm_80", "saxpy", (10, 0, 0, 0, 0, 0), Some(376)),
        ("sm_80", "reduce", (10, 0, 0, 0, 1024, 2), Some(360)),
        ("sm_80", "spill", (24, 92, 92, 96, 0, 0), Some(360)),
        ("sm_90", "saxpy", (10, 0, 0, 0, 0, 0), None),
        ("sm_90", "reduce", (10, 0, 0, 0, 1024, 2), None),
        ("sm_90", "spill", (24, 92, 92, 96, 0, 0), None),
    ] {
        let assembly = toolbox.assemble(Job { ptx: PTX, target, flags: &[] }).unwrap_or_else(|error| panic!("{error}"));
        let entry = assembly.output.entry(name).unwrap();
        let found =
            (entry.registers, entry.spill_stores, entry.spill_loads, entry.stack_frame, entry.shared, entry.barriers);
        assert_eq!((found, entry.constants.get(&0).copied()), (figures, constants), "{name} for {target}");
        assert_eq!(entry.target, target);
    }
}

/// cuobjdump reads the figures out of the machine code, where ptxas wrote them for the driver.
#[test]
fn figures_are_those_in_the_machine_code() {
    let toolbox = Toolbox::new(settings());
    let (folder, cuobjdump) = (tempfile::tempdir().unwrap(), path_of(Tool::Cuobjdump));
    for target in ["sm_80", "sm_86", "sm_89", "sm_90"] {
        let assembly = toolbox.assemble(Job { ptx: PTX, target, flags: &[] }).unwrap();
        let cubin = folder.path().join("module.cubin");
        std::fs::write(&cubin, &assembly.cubin).unwrap();
        let printed = Command::new(&cuobjdump).arg("-res-usage").arg(&cubin).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let mut found = BTreeMap::new();
        let mut name = "";
        for line in printed.lines().map(str::trim) {
            if let Some(function) = line.strip_prefix("Function ") {
                name = function.trim_end_matches(':');
            } else if line.starts_with("REG:") {
                let figure =
                    |key: &str| line.split(key).nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u32>().ok());
                found.insert(name, (figure("REG:").unwrap(), figure("STACK:").unwrap(), figure("SHARED:").unwrap()));
            }
        }
        assert_eq!(found.len(), 3, "{printed}");
        for entry in &assembly.output.entries {
            let (registers, stack, shared) = found[entry.name.as_str()];
            assert_eq!((entry.registers, entry.stack_frame), (registers, stack), "{} for {target}", entry.name);
            // From sm_90 on, that which the driver reserves counts here.
            assert!(shared == entry.shared || shared == entry.shared + 1024, "{} for {target}: {shared}", entry.name);
        }
    }
}

#[test]
fn both_disassemblers_list_the_same_instructions() {
    let toolbox = Toolbox::new(settings());
    let cuobjdump = toolbox.describe(Tool::Cuobjdump).unwrap_or_else(|error| panic!("{error}"));
    let cuobjdump = PathBuf::from(cuobjdump.split_once('(').unwrap().1.trim_end_matches(')'));
    for target in ["sm_75", "sm_80", "sm_89", "sm_90", "sm_120"] {
        let ptx = PTX.replace("sm_80", "sm_75");
        let assembly =
            toolbox.assemble(Job { ptx: &ptx, target, flags: &[] }).unwrap_or_else(|error| panic!("{error}"));
        let mixes = toolbox.sass_mix(&assembly.cubin).unwrap_or_else(|error| panic!("{error}"));
        let only_cuobjdump = Settings { cuobjdump: Some(cuobjdump.clone()), ..settings() };
        let mut by_cuobjdump = Toolbox::new(only_cuobjdump).sass_mix(&assembly.cubin).unwrap();
        let mut by_nvdisasm = mixes.clone();
        by_nvdisasm.sort_by(|one, other| one.name.cmp(&other.name));
        by_cuobjdump.sort_by(|one, other| one.name.cmp(&other.name));
        assert_eq!(by_nvdisasm, by_cuobjdump, "{target}");

        let mix = |name: &str| mixes.iter().find(|mix| mix.name == name).unwrap();
        let count = |name: &str, opcode: &str| mix(name).by_opcode.get(opcode).copied().unwrap_or(0);
        // Two loads, one store and one product in the text are as many in the machine code.
        assert_eq!((count("saxpy", "LDG"), count("saxpy", "STG"), count("saxpy", "FFMA")), (2, 1, 1), "{target}");
        assert_eq!(mix("saxpy").by_class.get(&SassClass::GlobalMemory), Some(&3), "{target}");
        assert!(count("reduce", "BAR") >= 2 && count("reduce", "LDS") >= 3, "{target}");
        // Every spill is of one register, 4 bytes, written and read back once.
        let spill = assembly.output.entry("spill").unwrap();
        let bytes = (4 * count("spill", "STL"), 4 * count("spill", "LDL"));
        assert_eq!(bytes, (spill.spill_stores, spill.spill_loads), "{target}");
        assert!(bytes.0 > 0, "{target}");
        assert_eq!(count("spill", "NOP"), 0, "padding counts on {target}");
    }
}

#[test]
fn an_error_of_the_module_has_its_line() {
    for (ptx, expected_line, part) in [
        (PTX.replace("fma.rn.f32", "fma.rn.f31"), Some(14), "f31"),
        (PTX.replace("@%p bra DONE;", "@%p bra NOWHERE;"), Some(11), "NOWHERE"),
        (PTX.replace(".target sm_80", ".target sm_90"), None, ".target is higher"),
        ("this is no PTX".to_owned(), None, ""),
    ] {
        let error = Toolbox::new(settings()).assemble(Job { ptx: &ptx, target: "sm_80", flags: &[] }).unwrap_err();
        let Error::Refused { line, message } = &error else { panic!("{error:?}") };
        assert!(message.contains(part) && message.contains("for sm_80"), "{message}");
        if expected_line.is_some() {
            assert_eq!(*line, expected_line, "{message}");
        }
    }
}

#[test]
fn a_version_that_none_takes_is_said_of_each() {
    let ptx = PTX.replace(".version 8.0", ".version 77.0");
    let error = Toolbox::new(settings()).assemble(Job { ptx: &ptx, target: "sm_80", flags: &[] }).unwrap_err();
    let Error::ToolUnsuitable(message) = &error else { panic!("{error:?}") };
    assert!(message.contains("takes PTX up to .version ") && message.contains("is of .version 77.0"), "{message}");
}

/// Runs ptxas itself, so that every error is seen and not the first few.
fn errors_of(ptxas: &std::path::Path, ptx: &str, target: &str) -> Vec<u32> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("probe.ptx"), ptx).unwrap();
    let arch = format!("-arch={target}");
    let run = Command::new(ptxas).current_dir(folder.path()).args([&arch, "probe.ptx", "-o", "probe.cubin"]).output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    let output = PtxasOutput::read(&said);
    assert_eq!(run.status.success(), output.errors.is_empty(), "{target}: {said}");
    output.errors.iter().map(|error| error.line.unwrap_or(0)).collect()
}

/// NVRTC of the wheels, where the wheel of nvcc is not: a Python that knows only what stands beside the library.
#[cfg(unix)]
#[test]
fn the_library_compiles_where_there_is_no_nvcc() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let real = settings().python.unwrap();
    let wheels = Settings { path: None, ..settings() };
    let nvcc = Toolbox::new(wheels).describe(Tool::Nvcc).unwrap_or_else(|error| panic!("{error}"));
    let nvcc = PathBuf::from(nvcc.split_once('(').unwrap().1.trim_end_matches(')'));
    let wheel = nvcc.parent().and_then(|folder| folder.parent()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site-packages");
    std::fs::create_dir_all(site.join("nvidia/cu13")).unwrap();
    for part in ["lib", "include"] {
        symlink(wheel.join(part), site.join("nvidia/cu13").join(part)).unwrap();
    }
    let python = folder.path().join("python");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -c ]; then echo {}; else exec {} \"$@\"; fi\n",
        site.display(),
        real.display()
    );
    std::fs::write(&python, script).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let toolbox = Toolbox::new(Settings { python: Some(python), ..Settings::default() });

    let kernel = folder.path().join("k.cu");
    std::fs::write(folder.path().join("own.cuh"), "#define SCALE 2.0f\n").unwrap();
    let source = "#include <cuda_fp16.h>\n#include \"own.cuh\"\nextern \"C\" __global__ void k(__half *x) {\n    \
                  x[threadIdx.x] = __float2half(__half2float(x[threadIdx.x]) * SCALE);\n}\n";
    std::fs::write(&kernel, source).unwrap();
    let compiled =
        toolbox.compile(&kernel, "sm_90a", &["-lineinfo".to_owned()]).unwrap_or_else(|error| panic!("{error}"));
    assert!(compiled.compiler.starts_with("nvrtc 1"), "{}", compiled.compiler);
    assert!(compiled.ptx.contains(".target sm_90a") && compiled.ptx.contains(".entry k("), "{}", compiled.ptx);
    assert!(compiled.ptx.contains(&format!("\"{}\"", kernel.display())), "{}", compiled.ptx);
    std::fs::write(&kernel, source.replace("SCALE)", "SCALE")).unwrap();
    let error = toolbox.compile(&kernel, "sm_90a", &[]).unwrap_err().to_string();
    assert!(error.contains("refuses") && error.contains("k.cu(4): error: expected a \")\""), "{error}");
}
