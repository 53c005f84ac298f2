//! `examples/cuda-kernels/faulty`: kernels with a fault each, as nvcc compiled them.

use gpuemu_tests::sessions::{Place, finished};
use std::fs;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/cuda-kernels/faulty");

/// Kernel, what its failure is called, the line of its source, and what the report says beside.
const FAULTS: &[(&str, &str, Option<u32>, &str)] = &[
    ("argument_missing", "invalid-launch", None, "3 arguments: the kernel takes 4"),
    ("assertion", "assert", Some(6), "a GPU answers cudaErrorAssert (710)"),
    ("before_the_start", "out-of-bounds", Some(5), "4 bytes (1 element) before the start of a"),
    ("blocks_race", "global-race", Some(6), "of block (1, 0, 0) writes"),
    ("copy_not_awaited", "shared-race", Some(10), "is asynchronously writing the same, at copy_not_awaited.cu:8:"),
    ("counts_not_zeroed", "uninitialised-read", None, "into shared memory"),
    ("divergent_barrier", "deadlock", Some(10), "64 of 128 threads came to barrier 1"),
    ("endless_loop", "runaway", None, "kernel does not end"),
    ("freed_twice", "invalid-free", Some(9), "was freed before"),
    ("index_wraps", "out-of-bounds", Some(6), "2147483648 wraps around to -2147483648"),
    ("index_wraps_inside", "index-wraps", Some(7), "4294967296 wraps around to 0"),
    ("input_overwritten", "input-written", Some(5), "into a, of 4 bytes"),
    ("lost_update", "global-race", Some(4), "read the same, at lost_update.cu:4:"),
    ("message_without_fence", "global-race", Some(16), "wrote the same, at message_without_fence.cu:10:"),
    ("misaligned_vector", "misaligned", Some(6), "4 bytes (1 element) into a, of 20 bytes"),
    ("missing_barrier", "shared-race", Some(6), "read the same, at missing_barrier.cu:8:"),
    ("no_tail_mask", "out-of-bounds", Some(4), "at the end of a, of 4 bytes"),
    ("null_pointer", "null-pointer", Some(4), "a GPU answers cudaErrorIllegalAddress (700)"),
    ("one_past_the_end", "out-of-bounds", Some(5), "thread (1, 0, 0) of block (0, 0, 0) reads"),
    ("output_read", "uninitialised-read", Some(5), "into out, of 4 bytes"),
    ("recursion", "stack-overflow", Some(3), "a GPU answers cudaErrorHardwareStackError (714)"),
    ("reused_shared", "shared-race", Some(7), "read the same, at reused_shared.cu:11:"),
    ("shared_overrun", "out-of-bounds", Some(9), "at the end of shared memory, of 512 bytes"),
    ("shuffle_of_absent_lanes", "inactive-lane", None, "lane 0 reads lane 16, which takes no part"),
    ("store_not_masked", "out-of-bounds", Some(5), "at the end of out, of 4 bytes"),
    ("tail_not_covered", "unwritten", None, "1 of 129 elements of out were never written"),
    ("told_before_trap", "trap", Some(8), "printed by thread (0, 0, 0) of block (0, 0, 0): 1 is odd"),
    ("too_much_shared_memory", "invalid-launch", None, "204800 bytes of dynamic shared memory"),
    ("trap", "trap", Some(4), "a GPU answers cudaErrorLaunchFailure (719)"),
    ("uninitialised_shared", "uninitialised-read", Some(5), "into shared memory, of 512 bytes"),
    ("warp_not_synchronised", "shared-race", Some(11), "wrote the same, at warp_not_synchronised.cu:11:"),
];

#[test]
fn each_is_caught_by_its_kind_and_line() {
    let contract = fs::read_to_string(Path::new(FOLDER).join("gpuemu.toml")).unwrap();
    let place = Place::new(&contract);
    for path in fs::read_dir(Path::new(FOLDER).join("kernels")).unwrap().map(|file| file.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        place.write(&format!("kernels/{name}"), &fs::read_to_string(&path).unwrap());
    }
    place.write("references.py", &fs::read_to_string(Path::new(FOLDER).join("references.py")).unwrap());
    let session = place.session();
    let kernels: Vec<&str> = session.contract().kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(kernels.len(), FAULTS.len());
    let mut wrong = String::new();
    for (kernel, kind, line, says) in FAULTS {
        let op = session.op(&format!("kernel::{kernel}")).unwrap();
        let test = format!("kernel::{kernel}::{}::default", op.dtypes[0]);
        let Some(failure) = finished(&session, &test).failure else {
            wrong.push_str(&format!("{test} passes\n"));
            continue;
        };
        let text = failure.render();
        let place = line.map_or_else(String::new, |line| format!("at {kernel}.cu:{line}:"));
        let caught = failure.failure.check.name() == *kind && text.contains(&place) && text.contains(says);
        if !caught || failure.case.is_none() {
            wrong.push_str(&format!("{kind} {place} {says}\n{text}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
