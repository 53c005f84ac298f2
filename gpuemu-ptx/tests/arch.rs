//! Architectures: names, limits and occupancy, against figures that others computed.

use gpuemu_ptx::Error;
use gpuemu_ptx::arch::{Arch, Evidence, Feature, MatrixFormat, MatrixInstruction};
use gpuemu_ptx::occupancy::{Footprint, Resource};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn every_file_of_the_folder_is_known_by_its_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/arch");
    let files: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".toml").to_owned())
        .collect();
    let known: BTreeSet<String> = Arch::all().iter().map(|arch| arch.name.clone()).collect();
    assert_eq!(files, known);
    assert!(Arch::all().windows(2).all(|pair| pair[0].number() <= pair[1].number()), "oldest first");
}

#[test]
fn one_architecture_has_many_spellings() {
    for (asked, name) in [
        ("sm_90a", "sm_90a"),
        ("90a", "sm_90a"),
        ("SM_90A", "sm_90a"),
        ("sm_90", "sm_90"),
        ("90", "sm_90"),
        ("compute_80", "sm_80"),
        ("8.6", "sm_86"),
        ("cc 12.0", "sm_120"),
        ("sm120a", "sm_120a"),
        (" sm_100f ", "sm_100f"),
    ] {
        assert_eq!(Arch::named(asked).unwrap().name, name, "{asked}");
    }
}

#[test]
fn an_unknown_name_gets_the_nearest_or_hears_that_it_is_too_new() {
    for (asked, part) in [
        ("sm_91", "the nearest is sm_90 "),
        ("sm_9O", "the nearest is sm_90 "),
        ("sm_89a", "the nearest is sm_89 "),
        ("sm_70", "the nearest is sm_75 "),
        ("sm_102", "the nearest is sm_103 "),
        ("", "the nearest is sm_"),
        ("gfx942", "the nearest is sm_"),
        ("sm_130", "newer than the architectures that are known here (up to sm_121)"),
        ("sm_200a", "newer than"),
        ("sm_99999999999999999999", "the nearest is sm_"),
    ] {
        let Err(Error::UnknownTarget(message)) = Arch::named(asked) else { panic!("{asked} is known") };
        assert!(message.contains(part), "{asked}: {message}");
        assert!(message.contains(&format!("{asked:?}")), "{message}");
    }
}

/// CCCL 13.3, `cuda/__device/arch_traits.h`: resident blocks, warps, shared memory of an SM and of a block in KiB.
#[test]
fn limits_are_those_that_nvidia_states() {
    for (name, blocks, warps, shared_sm, shared_block) in [
        ("sm_75", 16, 32, 64, 64),
        ("sm_80", 32, 64, 164, 163),
        ("sm_86", 16, 48, 100, 99),
        ("sm_87", 16, 48, 164, 163),
        ("sm_89", 24, 48, 100, 99),
        ("sm_90", 32, 64, 228, 227),
        ("sm_90a", 32, 64, 228, 227),
        ("sm_100", 32, 64, 228, 227),
        ("sm_103a", 32, 64, 228, 227),
        ("sm_110", 24, 48, 228, 227),
        ("sm_120", 24, 48, 100, 99),
        ("sm_121f", 24, 48, 100, 99),
    ] {
        let limits = &Arch::named(name).unwrap().limits;
        let found = (limits.blocks_per_sm, limits.warps_per_sm, limits.shared_per_sm, limits.shared_per_block_optin);
        assert_eq!(found, (blocks, warps, shared_sm << 10, shared_block << 10), "{name}");
        assert_eq!(
            (limits.threads_per_block, limits.registers_per_thread, limits.warp_size),
            (1024, 255, 32),
            "{name}"
        );
        assert_eq!(limits.grid_dimensions, [i32::MAX as u32, 65535, 65535], "{name}");
        assert_eq!(limits.max_dynamic_shared(1024), (shared_block - 1) << 10, "{name}");
        assert_eq!(limits.max_dynamic_shared(u32::MAX), 0);
    }
}

#[test]
fn instructions_come_with_the_architecture_that_brought_them() {
    for (feature, with, without) in [
        (Feature::CpAsync, "sm_80", "sm_75"),
        (Feature::MinMaxXorsign, "sm_86", "sm_80"),
        (Feature::Fp8, "sm_89", "sm_86"),
        (Feature::MmaFp8, "sm_89", "sm_88"),
        (Feature::TensorCopy, "sm_90", "sm_89"),
        (Feature::Cluster, "sm_90", "sm_89"),
        (Feature::Bf16Arithmetic, "sm_90", "sm_89"),
        (Feature::Stmatrix, "sm_90", "sm_89"),
        (Feature::Wgmma, "sm_90a", "sm_90"),
        (Feature::Wgmma, "sm_90a", "sm_100a"),
        (Feature::Tcgen05, "sm_100a", "sm_100"),
        (Feature::Tcgen05, "sm_100f", "sm_120a"),
        (Feature::ReduxF32, "sm_100a", "sm_90a"),
        (Feature::PackedF32, "sm_100", "sm_90a"),
        (Feature::MmaBlockScale, "sm_120a", "sm_100a"),
    ] {
        assert!(Arch::named(with).unwrap().supports(feature), "{feature:?} on {with}");
        assert!(!Arch::named(without).unwrap().supports(feature), "{feature:?} on {without}");
    }
}

/// PTX ISA, `.target`: plain targets run on everything newer, `a` on itself alone, `f` on its family.
#[test]
fn a_module_runs_on_what_its_target_promises() {
    for (gpu, target, runs) in [
        ("sm_90a", "sm_80", true),
        ("sm_90", "sm_90", true),
        ("sm_80", "sm_90", false),
        ("sm_90a", "sm_90a", true),
        ("sm_100a", "sm_90a", false),
        ("sm_90", "sm_90a", false),
        ("sm_103a", "sm_100f", true),
        ("sm_103", "sm_100f", true),
        ("sm_100a", "sm_103f", false),
        ("sm_120a", "sm_100f", false),
        ("sm_121", "sm_120", true),
    ] {
        assert_eq!(Arch::named(gpu).unwrap().runs(Arch::named(target).unwrap()), runs, "{target} on {gpu}");
    }
}

/// Fraction bits, terms of a group and fraction bits of the result, from the papers that the files name.
#[test]
fn tensor_cores_add_as_published() {
    use MatrixFormat::{Bf16, E4m3, E5m2, F16, Tf32};
    use MatrixInstruction::{Mma, Tcgen05, Wgmma, Wmma};
    for (name, instruction, format, figures) in [
        ("sm_75", Mma, F16, Some((24, 8, 23))),
        ("sm_75", Mma, Bf16, None),
        ("sm_80", Mma, F16, Some((24, 8, 23))),
        ("sm_80", Wmma, Bf16, Some((24, 8, 23))),
        ("sm_80", Mma, Tf32, Some((24, 4, 23))),
        ("sm_80", Mma, E4m3, None),
        ("sm_89", Mma, E5m2, Some((13, 16, 13))),
        ("sm_89", Mma, Tf32, Some((24, 4, 23))),
        ("sm_90", Mma, F16, Some((25, 16, 23))),
        ("sm_90a", Mma, Tf32, Some((25, 8, 23))),
        ("sm_90a", Wgmma, F16, Some((25, 16, 23))),
        ("sm_90a", Wgmma, E4m3, Some((13, 32, 13))),
        ("sm_90a", Mma, E4m3, None),
        ("sm_90", Wgmma, F16, None),
        ("sm_100a", Tcgen05, F16, Some((25, 16, 23))),
        ("sm_100a", Tcgen05, E4m3, Some((25, 32, 23))),
        ("sm_120", Mma, E4m3, Some((25, 32, 23))),
    ] {
        let found = Arch::named(name).unwrap().accumulation(instruction, format);
        let found = found.map(|one| (one.fraction_bits, one.terms, one.result_fraction_bits));
        assert_eq!(found, figures, "{instruction:?} of {format:?} on {name}");
    }
    assert_eq!(Arch::named("sm_80").unwrap().accumulation(Mma, F16).unwrap().evidence, Evidence::Published);
    assert_eq!(Arch::named("sm_87").unwrap().accumulation(Mma, F16).unwrap().evidence, Evidence::Inferred);
}

#[test]
fn a_file_of_ones_own_is_an_architecture() {
    let arch = Arch::parse("name = \"sm_131x\"\nbase = \"sm_120\"\nfeatures = [\"wgmma\"]\n").unwrap();
    assert!(arch.supports(Feature::Wgmma) && arch.supports(Feature::CpAsync));
    assert_eq!(arch.limits, Arch::named("sm_120").unwrap().limits);
    for (text, part) in [
        ("name = \"x\"\nfeatures = []", "neither limits nor a base"),
        ("name = \"x\"\nbase = \"sm_1\"\nfeatures = []", "\"sm_1\", which is not known"),
        ("name = \"x\"\nbase = \"sm_80\"\nfeatures = [\"warp-drive\"]", "warp-drive"),
        ("name = \"x\"\nbase = \"sm_80\"\nfeatures = []\nlimit = 3", "limit"),
        ("name", "line 1"),
    ] {
        let error = Arch::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// Blocks resident on an SM as cuda_occupancy.h of CUDA 13.5 computes them, compiled with the limits of each GPU, the
/// largest carve-out and opted-in shared memory; and which of its five limits equal that number. (Its own
/// `limitingFactors` keeps what was the limit before barriers were looked at.)
#[test]
fn occupancy_is_that_of_nvidias_calculator() {
    use Resource::{Barriers, Blocks, Registers, SharedMemory, Warps};
    let rows: &[(&str, (u32, u32, u32, u32), u32, &[Resource])] = &[
        // registers, shared bytes, threads, barriers
        ("sm_75", (32, 0, 256, 0), 4, &[Warps]),
        ("sm_75", (255, 0, 384, 0), 0, &[Registers]),
        ("sm_75", (64, 16384, 256, 1), 4, &[Warps, Registers, SharedMemory]),
        ("sm_75", (33, 49152, 192, 1), 1, &[SharedMemory]),
        ("sm_75", (128, 100000, 128, 1), 0, &[SharedMemory]),
        ("sm_75", (16, 1000, 32, 4), 16, &[Blocks]),
        ("sm_75", (0, 0, 512, 0), 2, &[Warps]),
        ("sm_90", (32, 0, 256, 0), 8, &[Warps, Registers]),
        ("sm_90", (18, 0, 128, 0), 16, &[Warps]),
        ("sm_90", (255, 0, 256, 0), 1, &[Registers]),
        ("sm_90", (64, 16384, 256, 1), 4, &[Registers]),
        ("sm_90", (40, 0, 1024, 1), 1, &[Registers]),
        ("sm_90", (33, 49152, 192, 1), 4, &[SharedMemory]),
        ("sm_90", (96, 0, 96, 0), 6, &[Registers]),
        ("sm_90", (16, 1000, 32, 4), 16, &[Barriers]),
        ("sm_90", (24, 2048, 64, 16), 4, &[Barriers]),
        ("sm_90", (168, 0, 416, 0), 0, &[Registers]),
        ("sm_90", (80, 0, 1, 0), 24, &[Registers]),
        ("sm_90", (32, 229376, 384, 2), 1, &[SharedMemory]),
        ("sm_90", (65, 0, 1024, 0), 0, &[Registers]),
        ("sm_90", (128, 20000, 32, 0), 11, &[SharedMemory]),
        ("sm_120", (32, 0, 256, 0), 6, &[Warps]),
        ("sm_120", (40, 0, 1024, 1), 1, &[Warps, Registers]),
        ("sm_120", (16, 1000, 32, 4), 6, &[Barriers]),
        ("sm_120", (80, 0, 1, 0), 24, &[Registers, Blocks]),
        ("sm_120", (128, 20000, 32, 0), 4, &[SharedMemory]),
        ("sm_80", (32, 0, 256, 0), 8, &[Warps, Registers]),
        ("sm_80", (33, 49152, 192, 1), 3, &[SharedMemory]),
        ("sm_80", (16, 1000, 32, 4), 32, &[Blocks]),
        ("sm_80", (24, 2048, 64, 16), 32, &[Warps, Blocks]),
        ("sm_80", (128, 20000, 32, 0), 7, &[SharedMemory]),
        ("sm_86", (32, 0, 256, 0), 6, &[Warps]),
        ("sm_86", (33, 49152, 192, 1), 2, &[SharedMemory]),
        ("sm_86", (16, 1000, 32, 4), 16, &[Blocks]),
        ("sm_86", (24, 2048, 64, 16), 16, &[Blocks]),
        ("sm_86", (128, 20000, 32, 0), 4, &[SharedMemory]),
        ("sm_87", (32, 0, 256, 0), 6, &[Warps]),
        ("sm_87", (33, 49152, 192, 1), 3, &[SharedMemory]),
        ("sm_87", (16, 1000, 32, 4), 16, &[Blocks]),
        ("sm_87", (24, 2048, 64, 16), 16, &[Blocks]),
        ("sm_87", (128, 20000, 32, 0), 7, &[SharedMemory]),
        ("sm_89", (32, 0, 256, 0), 6, &[Warps]),
        ("sm_89", (33, 49152, 192, 1), 2, &[SharedMemory]),
        ("sm_89", (16, 1000, 32, 4), 24, &[Blocks]),
        ("sm_89", (24, 2048, 64, 16), 24, &[Warps, Blocks]),
        ("sm_89", (128, 20000, 32, 0), 4, &[SharedMemory]),
        ("sm_100", (32, 0, 256, 0), 8, &[Warps, Registers]),
        ("sm_100", (33, 49152, 192, 1), 4, &[SharedMemory]),
        ("sm_100", (16, 1000, 32, 4), 16, &[Barriers]),
        ("sm_100", (24, 2048, 64, 16), 4, &[Barriers]),
        ("sm_100", (128, 20000, 32, 0), 11, &[SharedMemory]),
        ("sm_103", (32, 0, 256, 0), 8, &[Warps, Registers]),
        ("sm_103", (33, 49152, 192, 1), 4, &[SharedMemory]),
        ("sm_103", (16, 1000, 32, 4), 8, &[Barriers]),
        ("sm_103", (24, 2048, 64, 16), 2, &[Barriers]),
        ("sm_103", (128, 20000, 32, 0), 11, &[SharedMemory]),
        ("sm_110", (32, 0, 256, 0), 6, &[Warps]),
        ("sm_110", (33, 49152, 192, 1), 4, &[SharedMemory]),
        ("sm_110", (16, 1000, 32, 4), 6, &[Barriers]),
        ("sm_110", (24, 2048, 64, 16), 1, &[Barriers]),
        ("sm_110", (128, 20000, 32, 0), 11, &[SharedMemory]),
        ("sm_121", (32, 0, 256, 0), 6, &[Warps]),
        ("sm_121", (33, 49152, 192, 1), 2, &[SharedMemory]),
        ("sm_121", (16, 1000, 32, 4), 6, &[Barriers]),
        ("sm_121", (24, 2048, 64, 16), 1, &[Barriers]),
        ("sm_121", (128, 20000, 32, 0), 4, &[SharedMemory]),
    ];
    for (name, (registers, shared, threads, barriers), blocks, limited_by) in rows {
        let arch = Arch::named(name).unwrap();
        let kernel = Footprint { registers: *registers, shared: *shared, threads: *threads, barriers: *barriers };
        let found = arch.occupancy(kernel);
        assert_eq!(found.blocks, *blocks, "{name} {kernel:?}: {found:?}");
        let limits: BTreeSet<String> = found.limited_by.iter().map(ToString::to_string).collect();
        let expected: BTreeSet<String> = limited_by.iter().map(ToString::to_string).collect();
        assert_eq!(limits, expected, "{name} {kernel:?}");
        assert_eq!(found.warps, blocks * threads.max(&1).div_ceil(32), "{name} {kernel:?}");
        let fraction = f64::from(found.warps) / f64::from(arch.limits.warps_per_sm);
        assert!((found.fraction - fraction).abs() < 1e-12);
    }
}

/// Measured: `cuOccupancyMaxActiveBlocksPerMultiprocessor` on an H200 (driver 580), for kernels of these registers,
/// shared bytes (static and dynamic) and barriers, launched with 1, 32, 96, 192, 256, 384, 416 and 1024 threads.
#[test]
fn occupancy_is_that_of_an_h200() {
    for ((registers, shared, barriers), blocks) in [
        ((14, 0, 0), [32, 32, 21, 10, 8, 5, 4, 2]),
        ((14, 20_000, 0), [11, 11, 11, 10, 8, 5, 4, 2]),
        ((14, 100_000, 1), [2; 8]),
        ((14, 180_000, 0), [1; 8]),
        ((14, 1_000, 4), [16, 16, 16, 10, 8, 5, 4, 2]),
        ((14, 21_000, 4), [10, 10, 10, 10, 8, 5, 4, 2]),
        ((32, 2_048, 16), [4, 4, 4, 4, 4, 4, 4, 2]),
        ((32, 102_048, 16), [2; 8]),
        ((32, 0, 0), [32, 32, 21, 10, 8, 5, 4, 2]),
        ((72, 0, 0), [28, 28, 9, 4, 3, 2, 2, 0]),
        ((72, 20_000, 0), [11, 11, 9, 4, 3, 2, 2, 0]),
        ((96, 0, 0), [20, 20, 6, 3, 2, 1, 1, 0]),
        ((128, 0, 0), [16, 16, 5, 2, 2, 1, 1, 0]),
        ((168, 0, 0), [12, 12, 4, 2, 1, 1, 0, 0]),
        ((254, 0, 0), [8, 8, 2, 1, 1, 0, 0, 0]),
        ((254, 100_000, 0), [2, 2, 2, 1, 1, 0, 0, 0]),
        ((32, 16_384, 1), [13, 13, 13, 10, 8, 5, 4, 2]),
        ((32, 36_384, 1), [6, 6, 6, 6, 6, 5, 4, 2]),
        ((32, 49_152, 1), [4, 4, 4, 4, 4, 4, 4, 2]),
        ((32, 69_152, 1), [3, 3, 3, 3, 3, 3, 3, 2]),
        ((32, 116_384, 1), [1; 8]),
        ((32, 229_152, 1), [1; 8]),
    ] {
        let threads = [1, 32, 96, 192, 256, 384, 416, 1024];
        let arch = Arch::named("sm_90a").unwrap();
        let occupancy = |threads| arch.occupancy(Footprint { registers, shared, threads, barriers }).blocks;
        assert_eq!(threads.map(occupancy), blocks, "{registers} registers, {shared} bytes, {barriers} barriers");
    }
}

#[test]
fn blocks_that_no_sm_holds() {
    let arch = Arch::named("sm_80").unwrap();
    for kernel in [
        Footprint { registers: 16, threads: 1025, ..Footprint::default() },
        Footprint { registers: 256, threads: 32, ..Footprint::default() },
        Footprint { registers: 16, threads: 32, shared: 166_913, ..Footprint::default() },
        Footprint { registers: u32::MAX, threads: u32::MAX, shared: u32::MAX, barriers: u32::MAX },
    ] {
        assert_eq!(arch.occupancy(kernel).blocks, 0, "{kernel:?}");
    }
    assert_eq!(arch.occupancy(Footprint { registers: 16, threads: 32, shared: 166_912, barriers: 0 }).blocks, 1);
}
