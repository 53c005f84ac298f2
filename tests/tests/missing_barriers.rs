//! Each barrier of the example kernels taken out in turn: the lint finds those that were needed, and says nothing of those
//! that order no two accesses.

use gpuemu_ptx::lint::{Finding, Severity, check};
use gpuemu_ptx::metrics::measure;
use gpuemu_ptx::program::Program;
use std::path::Path;

const RULE: &str = "missing-barrier-between-shared-write-and-read";

/// Whether a barrier orders anything, and what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Barrier {
    /// Without it two threads race: what stands before it and what after.
    Needed(&'static str),
    /// Without it every thread still sees the same: why.
    Redundant(&'static str),
}

use Barrier::{Needed, Redundant};

/// For every kernel with barriers its barriers, in the order of the PTX, judged by its source.
const KERNELS: [(&str, &[Barrier]); 7] = [
    (
        "histogram",
        &[
            Needed("zeros, then counts of other threads' elements"),
            Needed("counts, then reads of other threads' counts"),
        ],
    ),
    (
        "layer_norm",
        &[
            Needed("the sums of warps, then reads of all of them"),
            Needed("reads of all sums, then the sums of the second reduction in the same array"),
            Needed("the second sums, then reads of all of them"),
            Redundant("nothing follows in shared memory"),
        ],
    ),
    (
        "matmul_tiled",
        &[
            Needed("both tiles written, then read by rows and columns"),
            Needed("tiles read, then those of the next turn written"),
        ],
    ),
    (
        "row_softmax",
        // Twice the same, for one element and for four.
        &[
            Needed("maxima of warps, then reads of all of them"),
            Redundant("the next reduction has an array of its own"),
            Needed("sums of warps, then reads of all of them"),
            Redundant("nothing follows in shared memory"),
            Needed("maxima of warps, then reads of all of them"),
            Redundant("the next reduction has an array of its own"),
            Needed("sums of warps, then reads of all of them"),
            Redundant("nothing follows in shared memory"),
        ],
    ),
    (
        "row_sum",
        &[
            Needed("256 sums, then 128 reads of the upper half"),
            Needed("128 sums, then 64 reads"),
            Needed("64 sums, then 32 reads"),
            Needed("32 sums, then 16 reads, in one warp, whose threads need not go together"),
            Needed("16 sums, then 8 reads"),
            Needed("8 sums, then 4 reads"),
            Needed("4 sums, then 2 reads"),
            Needed("2 sums, then a read of the second"),
            Redundant("the thread that wrote the last sum reads it"),
        ],
    ),
    ("stencil", &[Needed("a tile written by rows of 34, then read around each point")]),
    ("transpose", &[Needed("a tile written by rows, then read by columns")]),
];

/// What the rule finds in PTX of one entry.
fn found(text: &str) -> Vec<Finding> {
    let program = Program::read(text).unwrap();
    let (entry, _) = program.entries().next().unwrap();
    let mut findings = check(&program, entry, &measure(&program, entry));
    findings.retain(|finding| finding.rule.name == RULE);
    findings
}

#[test]
fn every_barrier_that_is_needed_is_missed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/cuda-kernels/kernels");
    let mut count = 0;
    for (kernel, barriers) in KERNELS {
        for target in ["sm_80", "sm_90"] {
            let file = format!("{kernel}.{target}.ptx");
            let text = std::fs::read_to_string(folder.join(&file)).unwrap();
            assert!(found(&text).is_empty(), "{file}");
            let lines: Vec<&str> = text.lines().collect();
            let places: Vec<usize> =
                (0..lines.len()).filter(|&line| lines[line].trim_start().starts_with("bar.sync")).collect();
            assert_eq!(places.len(), barriers.len(), "{file}");
            for (&place, &barrier) in places.iter().zip(barriers) {
                count += 1;
                let mut without = lines.clone();
                without[place] = "";
                let findings = found(&without.join("\n"));
                let what = format!("{file} without the barrier of line {}: {barrier:?}\n{findings:#?}", place + 1);
                match barrier {
                    Needed(_) => assert!(findings.iter().any(|finding| finding.severity == Severity::Error), "{what}"),
                    Redundant(_) => assert!(findings.is_empty(), "{what}"),
                }
            }
        }
    }
    assert_eq!(count, 54);
}

/// Every kernel of the folder that has a barrier for its block is in the table.
#[test]
fn no_kernel_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/cuda-kernels/kernels");
    let mut kernels: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("bar.sync")))
        .map(|path| path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned())
        .collect();
    kernels.sort();
    kernels.dedup();
    assert_eq!(kernels, KERNELS.map(|(kernel, _)| kernel));
}
