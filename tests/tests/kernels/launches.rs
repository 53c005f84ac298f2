//! Launches that do not fit the kernel, and kernels that do not fit the tensors.

use crate::{ADD, CONTRACT, TEST, project};
use gpuemu_tests::sessions::{assert_has, finished};

/// What is changed in the contract, and in the kernel, and what the report says.
type Row<'t> = (&'t str, &'t str, &'t [(&'t str, &'t str)], &'t [&'t str]);

const ARGS: &str = "\"a\", \"b\", \"out\", \"N\"";

#[test]
fn a_launch_that_no_case_changes_fails_once_and_is_not_kept() {
    let entry = ".param .u32 n)\n";
    let table: &[Row<'_>] = &[
        (
            ARGS,
            "\"a\", \"b\", \"out\"",
            &[],
            &[
                "failed: launch refused in add\n  3 arguments: the kernel takes 4\n  a GPU answers cudaErrorInvalidValue (1)\n",
                "the kernel takes u64, u64, u64, u32; `args` of [kernels.launch] are \"a\", \"b\", \"out\"\n",
            ],
        ),
        (ARGS, "\"a\"", &[], &["1 argument: the kernel takes 4"]),
        (
            ARGS,
            "\"a\", \"b\", \"out\", \"N\", 7",
            &[],
            &["5 arguments: the kernel takes 4", "are \"a\", \"b\", \"out\", \"N\", \"7\""],
        ),
        (
            "\"N\"]\n",
            "\"u64:1\"]\n",
            &[],
            &["8 bytes for parameter `n` of 4 bytes", "`args` of [kernels.launch] hand it \"u64:1\""],
        ),
        (
            "\"N\"]\n",
            "\"a\"]\n",
            &[],
            &[
                "a pointer for parameter `n` of 4 bytes",
                "hand it \"a\"",
                "`out` (u64) is handed the tensor \"out\", `n` (u32) is handed the tensor \"a\"",
            ],
        ),
        (
            ARGS,
            "\"N\", \"a\", \"b\", \"out\"",
            &[],
            &[
                "a pointer for parameter `n` of 4 bytes",
                "in order, `a` (u64) is handed the integer \"N\", `b` (u64) is handed the tensor \"a\"",
            ],
        ),
        (
            "\"N\"]\n",
            "\"f32:1.5\"]\n",
            &[],
            &["the launch's argument `f32:1.5` is f32, and the kernel's parameter `n` is u32"],
        ),
        ("\"N\"]\n", "\"u32:-1\"]\n", &[], &["the launch's argument `u32:-1` is no value of type u32"]),
        ("\"N\"]\n", "4294967296]\n", &[], &["4294967296 is too large for parameter `n` of 4 bytes"]),
        (
            "block = [64]",
            "block = [64]\nshared = \"1000*1000\"",
            &[],
            &[
                "1000000 bytes of dynamic shared memory",
                "a GPU answers ",
                "`shared` of [kernels.launch] is \"1000 * 1000\": 1000000 bytes",
            ],
        ),
        (
            "",
            "",
            &[(entry, ".param .u32 n)\n.maxntid 32, 1, 1\n")],
            &[
                "a block of 64 threads: the kernel is made for 32 at most",
                "`block` of [kernels.launch] is [\"64\"]: (64, 1, 1)",
            ],
        ),
        ("", "", &[(entry, ".param .u32 n)\n.reqntid 128, 1, 1\n")], &["the kernel is made for [128, 1, 1]"]),
        (
            "",
            "",
            &[("\t.reg .pred", "\t.shared .b8 tile[200000];\n\t.reg .pred")],
            &["200000 bytes of static shared memory", "it is the kernel that asks for so much, whatever the launch"],
        ),
    ];
    for (old, new, changes, parts) in table {
        let place = project(&CONTRACT.replacen(old, new, 1), changes);
        let finished = finished(&place.session(), TEST);
        let failure = finished.failure.expect("a launch that is refused");
        let text = failure.render();
        assert_has(&text, parts);
        assert_has(&text, &["\n  no case changes that\n", "subject  kernel add (add.ptx"]);
        assert_eq!((failure.failure.check.name(), finished.cases), ("invalid-launch", 1), "{text}");
        assert!(failure.case.is_none() && !text.contains("replay") && !text.contains("saved"), "{text}");
        assert!(!place.path().join("gpuemu-regressions").exists());
    }
}

#[test]
fn a_launch_that_hangs_on_the_shape_is_shrunk_and_kept() {
    let table: &[(&str, &str, &str, &[&str])] = &[
        (
            "ceil_div(N, 64)",
            "N - 1",
            "invalid-launch",
            &[
                "launch refused in add\n  a grid of 0 blocks along x",
                "`grid` of [kernels.launch] is [\"N - 1\"]: (0, 1, 1)",
                "shape    N=1;",
            ],
        ),
        // 64 and 16 more: the smallest of which there are too many.
        (
            "block = [64]",
            "block = [\"N * 16\"]",
            "invalid-launch",
            &["a block of 1040 threads", "`block` of [kernels.launch] is [\"N * 16\"]: (1040, 1, 1)", "shape    N=65;"],
        ),
        // 163 KiB are there.
        (
            "block = [64]",
            "block = [64]\nshared = \"1024 * N\"",
            "invalid-launch",
            &["167936 bytes of dynamic shared memory", "is \"1024 * N\": 167936 bytes", "shape    N=164;"],
        ),
        (
            "\"N\"]\n",
            "\"N\", \"N * 1000000000\"]\n",
            "invalid-launch",
            &[
                "5000000000 is too large for parameter `m` of 4 bytes",
                "`args` of [kernels.launch] hand it \"N * 1000000000\"",
                "shape    N=5;",
            ],
        ),
        (
            "ceil_div(N, 64)",
            "2 - N",
            "subject",
            &["the launch's grid `2 - N` is -1, which is no size", "shape    N=3;"],
        ),
    ];
    for (old, new, check, parts) in table {
        assert!(CONTRACT.contains(old), "{old}");
        let more: &[(&str, &str)] = &[(".param .u32 n)", ".param .u32 n, .param .u32 m)")];
        let place = project(&CONTRACT.replacen(old, new, 1), if new.contains("1000000000") { more } else { &[] });
        let failure = finished(&place.session(), TEST).failure.expect("a launch that is refused");
        let text = failure.render();
        assert_has(&text, parts);
        assert_has(&text, &["replay ", "saved    gpuemu-regressions/kernel/add/"]);
        assert!(!text.contains("no case changes that"), "{text}");
        assert_eq!(failure.failure.check.name(), *check, "{text}");
    }
}

/// The kernel over halves, an element a thread.
const HALVES: &[(&str, &str)] = &[
    ("\t.reg .f32 %f<4>;", "\t.reg .b16 %f<4>;"),
    ("mul.wide.s32 %rd4, %r5, 4;", "mul.wide.s32 %rd4, %r5, 2;"),
    ("ld.global.f32 %f1", "ld.global.b16 %f1"),
    ("ld.global.f32 %f2", "ld.global.b16 %f2"),
    ("add.f32 %f3", "add.f16 %f3"),
    ("st.global.f32", "st.global.b16"),
];

#[test]
fn elements_of_another_size_are_told() {
    let floats = "dtypes = [\"float32\"]";
    let in_halves = CONTRACT.replace(floats, "dtypes = [\"float16\"]");
    let halves = TEST.replace("float32", "float16");
    // A thread takes two elements at once.
    let pairs = [
        ("ld.global.b16 %f2", "ld.global.b32 %r4"),
        ("add.f16 %f3, %f1, %f2;", "cvt.u16.u32 %f2, %r4; add.f16 %f3, %f1, %f2;"),
    ];
    let told = "the kernel reads f32, 4 bytes, at a (PTX line 26), whose elements are float16, 2 bytes: its `dtypes` say what it \
                is compiled for";
    let narrow =
        "the kernel reads b16, 2 bytes, at a (PTX line 26), whose elements are float32, 4 bytes: its `dtypes` say what";
    let table: &[(&str, &str, Vec<(&str, &str)>, &[&str])] = &[
        (&in_halves, &halves, vec![], &[told]),
        (CONTRACT, TEST, HALVES.to_vec(), &[narrow]),
        (&in_halves, &halves, HALVES.to_vec(), &[]),
        (
            &in_halves,
            &halves,
            [HALVES, &pairs].concat(),
            &["4 bytes, of which 2 are left before its end: 2 elements of float16 at once"],
        ),
    ];
    for (contract, test, changes, parts) in table {
        let place = project(contract, changes);
        let text = gpuemu_tests::sessions::report(&place.session(), test).replace("\n           ", " ");
        assert_eq!(text.is_empty(), parts.is_empty(), "{text}");
        assert_has(&text, parts);
        assert_eq!(text.contains("is compiled for"), parts.iter().any(|part| part.contains("dtypes")), "{text}");
    }
    assert!(ADD.contains("ld.global.f32 %f1"));
}
