//! The example `cuda-kernels`: as it is committed, and with changes that make it worse.

use gpuemu_harness::environment::{Environment, SnapshotUpdate};
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::report::results;
use gpuemu_harness::suite::Suite;
use gpuemu_tests::sessions::{Place, assert_has, suite_report};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/cuda-kernels");
const TARGETS: [&str; 2] = ["sm_80", "sm_90"];

/// A copy of the example, under a name of its own. Of the kernels in `changed`, what `changes/` holds.
fn example(name: &str, changed: &[&str]) -> Place {
    let contract = fs::read_to_string(Path::new(EXAMPLE).join("gpuemu.toml")).unwrap();
    let place = Place::new(&contract.replace("name = \"cuda-kernels\"", &format!("name = \"{name}\"")));
    for folder in ["kernels", "gpuemu-snapshots/artifact", "."] {
        for file in fs::read_dir(Path::new(EXAMPLE).join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_file() && (folder != "." || name == "references.py") {
                place.write(&format!("{folder}/{name}"), &fs::read_to_string(&path).unwrap());
            }
        }
    }
    for kernel in changed {
        for ending in ["cu".to_owned()].into_iter().chain(TARGETS.map(|target| format!("{target}.ptx"))) {
            let text = fs::read_to_string(Path::new(EXAMPLE).join(format!("changes/{kernel}.{ending}"))).unwrap();
            place.write(&format!("kernels/{kernel}.{ending}"), &text);
        }
    }
    place
}

/// A suite as in continuous integration, with none of NVIDIA's tools unless `change` names one.
fn suite(place: &Place, change: impl FnOnce(&mut Environment)) -> ProjectSuite {
    let session = place.open_with(|environment| {
        environment.python = Some(PathBuf::from("/no/such/python"));
        environment.snapshots.update = SnapshotUpdate::Nothing;
        change(environment);
    });
    ProjectSuite::new(session.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

#[test]
fn it_passes_as_it_is_committed() {
    let place = example("cuda-kernels-committed", &[]);
    let suite = suite(&place, |_| ());
    let tests: Vec<String> =
        suite.tests().into_iter().map(|test| test.name).filter(|name| name.starts_with("artifact::")).collect();
    assert_eq!(tests.len(), 20);
    let reports: String = tests.iter().map(|test| suite_report(&suite, test)).collect();
    assert_eq!(reports, "");
}

#[test]
fn loads_that_are_wide_no_more_are_caught_and_logged() {
    let place = example("cuda-kernels-narrow", &["saxpy"]);
    let suite = suite(&place, |environment| environment.github = true);
    for target in TARGETS {
        let test = format!("artifact::saxpy::{target}");
        let report = suite_report(&suite, &test);
        assert_has(
            &report,
            &[
                &format!("{test} failed: required-pattern"),
                "; worse than accepted: ",
                "load_bytes 15.76 -> 4",
                "no instruction has `ld.global.nc.v4` in its name",
                // The place of the narrow load.
                "worse at kernels/saxpy.cu:6:",
                &format!("\n  replay   cargo test --test cuda_kernels -- --exact {test}\n"),
                "\n::error file=",
            ],
        );
    }
    let folder = results::folder(place.path(), "cuda-kernels-narrow");
    let line = fs::read_to_string(folder.join("artifact.saxpy.sm_80.jsonl")).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["verdict"], &line["metrics"]["load_bytes"]), (&Value::from("fail"), &Value::from(4.0)));
    assert_eq!(line["findings"][0]["rule"], "required-pattern");
    let log: Value = serde_json::from_slice(&fs::read(results::lint_log(&folder)).unwrap()).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let ours: Vec<&Value> =
        results.iter().filter(|result| result["properties"]["project"] == "cuda-kernels-narrow").collect();
    // Two patterns for each of two targets.
    assert_eq!(ours.len(), 4, "{ours:?}");
    let location = &ours[0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "kernels/saxpy.cu");
}

/// What the real ptxas 13.5 prints of `changes/matmul_tiled.sm_80.ptx`.
#[cfg(unix)]
const SPILLS: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'matmul_tiled' for 'sm_80'
ptxas info    : Function properties for matmul_tiled
    1272 bytes stack frame, 3716 bytes spill stores, 3544 bytes spill loads
ptxas info    : Used 48 registers, used 1 barriers, 1272 bytes cumulative stack size, 16640 bytes smem, 388 bytes cmem[0]
";

#[test]
fn sums_that_fit_into_registers_no_more_are_caught() {
    let place = example("cuda-kernels-spills", &["matmul_tiled"]);
    let test = "artifact::matmul_tiled::sm_80";
    // Without ptxas nobody knows of spills, and the PTX tells that more must be kept.
    let report = suite_report(&suite(&place, |_| ()), test);
    assert_has(
        &report,
        &[&format!("{test} failed: worse than accepted: live_registers "), "at kernels/matmul_tiled.cu:"],
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        place.write(
            "bin/ptxas",
            &format!(
                "#!/bin/sh\nif [ \"$1\" = --version ]; then\n\
                 echo 'ptxas: NVIDIA (R) Ptx optimizing assembler'; echo 'Cuda compilation tools, release 13.5, V13.5.37'\n\
                 else\nprintf stand-in > module.cubin; cat >&2 <<'END'\n{SPILLS}END\nfi\n"
            ),
        );
        let ptxas = place.path().join("bin/ptxas");
        fs::set_permissions(&ptxas, fs::Permissions::from_mode(0o755)).unwrap();
        let report = suite_report(&suite(&place, |environment| environment.ptxas = Some(ptxas)), test);
        assert_has(
            &report,
            &[
                &format!("{test} failed: max-spills, max-local-memory; worse than accepted: live_registers "),
                "ptxas_spill_stores 0 -> 3716",
                "max-spills: 1815 spilled words, 0 allowed (3716 bytes stored, 3544 loaded)",
                "max-local-memory: 1272 bytes of stack frame, 0 allowed",
                "--> kernels/matmul_tiled.cu:11",
            ],
        );
    }
}

/// The table of the example's README is made of the accepted figures: those of `ptxas` beside those of the PTX.
#[test]
fn the_table_of_the_readme_holds_the_accepted_figures() {
    let mut snapshots: Vec<PathBuf> = fs::read_dir(Path::new(EXAMPLE).join("gpuemu-snapshots/artifact"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "snap"))
        .collect();
    snapshots.sort();
    assert_eq!(snapshots.len(), 20);
    let mut table = String::new();
    for path in snapshots {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (kernel, target) = name.split_once('.').unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let figure = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name} = ")));
        let of = |name: &str| figure(name).unwrap_or_else(|| panic!("{} has no {name}", path.display()));
        let spilled: u64 =
            ["ptxas_spill_stores", "ptxas_spill_loads"].map(|name| of(name).parse::<u64>().unwrap()).iter().sum();
        let occupancy = figure("ptxas_occupancy").map_or("by launch".to_owned(), |percent| format!("{percent}%"));
        let figures = ["live_registers", "ptxas_registers"].map(of).join(" | ");
        let rest = ["instructions", "sass_instructions", "load_bytes"].map(of).join(" | ");
        let shared = of("ptxas_shared");
        table += &format!("| `{kernel}` | {target} | {figures} | {spilled} | {shared} | {occupancy} | {rest} |\n");
    }
    let readme = fs::read_to_string(Path::new(EXAMPLE).join("README.md")).unwrap();
    assert!(readme.contains(&table), "the table in examples/cuda-kernels/README.md should be:\n{table}");
}
