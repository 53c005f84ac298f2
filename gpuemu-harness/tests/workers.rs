//! Python functions in warm workers, and every way in which one can go wrong.
//!
//! Needs Python 3 with NumPy (`python3`, or what GPUEMU_PYTHON names).

use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};
use gpuemu_harness::mirror::worker::{FunctionMirror, Workers};
use gpuemu_harness::mirror::{Mirror, Question};
use gpuemu_harness::python::Python;
use gpuemu_harness::{Array, Error};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interpreter of this machine.
fn python() -> Python {
    Python::new(std::env::var_os("GPUEMU_PYTHON").as_deref().map(Path::new))
}

struct Place {
    folder: tempfile::TempDir,
    workers: Arc<Workers>,
}

impl Place {
    /// A project with a module `refs` of this source.
    fn new(source: &str) -> Place {
        Place::with_timeout(source, Duration::from_secs(20))
    }

    fn with_timeout(source: &str, timeout: Duration) -> Place {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("refs.py"), source).unwrap();
        let python = python();
        let workers = Arc::new(Workers::new(folder.path(), python, timeout));
        Place { folder, workers }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn mirror(&self, function: &str) -> FunctionMirror {
        let (module, function) = function.split_once(':').unwrap_or(("refs", function));
        FunctionMirror::new(module, function, Arc::clone(&self.workers))
    }

    /// Asks about the values 1 and -2 in float64.
    fn ask(&self, function: &str) -> Result<Vec<f64>, Error> {
        let answers = ask(&self.mirror(function), &x(&[1.0, -2.0]), &[], &[("out", DType::Float32)], Compute::Float64)?;
        Ok(answers[0].floats().unwrap().to_vec())
    }

    fn failure(&self, function: &str) -> String {
        let error = self.ask(function).unwrap_err();
        assert_eq!(error.code(), "ReferenceScriptFailed");
        error.to_string()
    }
}

fn ask(
    mirror: &dyn Mirror,
    inputs: &[(String, Array)],
    params: &[(String, ParamValue)],
    outputs: &[(&str, DType)],
    precision: Compute,
) -> Result<Vec<Array>, Error> {
    let outputs: Vec<(String, DType)> = outputs.iter().map(|&(name, dtype)| (name.to_owned(), dtype)).collect();
    mirror.answer(&Question { inputs, params, outputs: &outputs, precision, edges: EdgePolicy::default() })
}

fn x(values: &[f64]) -> Vec<(String, Array)> {
    vec![("x".to_owned(), Array::float(DType::Float32, &[values.len()], values.to_vec()))]
}

fn assert_contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in:\n{message}");
    }
}

#[test]
fn a_function_computes_in_the_precision_it_is_asked_in() {
    let place = Place::new("def third(x): return x / 3");
    let table = [
        (Compute::Float64, 1.0 / 3.0),
        (Compute::Float32, f64::from(1.0f32 / 3.0)),
        (Compute::Float16, 1365.0 / 4096.0),
        (Compute::BFloat16, f64::from(1.0f32 / 3.0)),
    ];
    for (precision, third) in table {
        let answer = ask(&place.mirror("third"), &x(&[1.0]), &[], &[("out", DType::Float16)], precision).unwrap();
        assert_eq!(answer, [Array::float(DType::Float16, &[1], vec![third])], "{precision}");
    }
    assert_eq!(place.workers.idle().len(), 1, "one worker served all");
}

#[test]
fn inputs_and_parameters_arrive_by_name_with_their_types() {
    let place = Place::new(
        "
def check(x, index, flag, scale, none, axis, eps, causal, mode):
    assert (x.dtype, x.shape) == ('float64', (2, 3)) and x[1, 2] == 5.0, x
    assert (index.dtype, index.tolist()) == ('int8', [1, -1, 3]), index
    assert (flag.dtype, flag.tolist()) == ('bool', [True]), flag
    assert (scale.dtype, scale.shape, scale[()]) == ('float64', (), 1.5), scale
    assert none.shape == (0, 4), none
    assert (axis, eps, causal, mode) == (-1, 1e-5, True, 'a \"b\"'), (axis, eps, causal, mode)
    assert [type(value) for value in (axis, eps, causal, mode)] == [int, float, bool, str]
    x += 1  # arrays are the function's own
    return x
",
    );
    let inputs = [
        ("x".to_owned(), Array::float(DType::Float32, &[2, 3], (0..6).map(f64::from).collect())),
        ("index".to_owned(), Array::integer(DType::Int8, &[3], vec![1, -1, 3])),
        ("flag".to_owned(), Array::integer(DType::Bool, &[1], vec![1])),
        ("scale".to_owned(), Array::float(DType::Float32, &[], vec![1.5])),
        ("none".to_owned(), Array::float(DType::Float32, &[0, 4], vec![])),
    ];
    let params = [
        ("axis".to_owned(), ParamValue::Int(-1)),
        ("eps".to_owned(), ParamValue::Float(1e-5)),
        ("causal".to_owned(), ParamValue::Bool(true)),
        ("mode".to_owned(), ParamValue::Text("a \"b\"".to_owned())),
    ];
    let answer = ask(&place.mirror("check"), &inputs, &params, &[("out", DType::Float32)], Compute::Float64).unwrap();
    assert_eq!(answer, [Array::float(DType::Float32, &[2, 3], (1..7).map(f64::from).collect())]);
}

#[test]
fn answers_may_have_many_forms() {
    let place = Place::new(
        "
import numpy as np
def scalar(x): return 2.5
def listed(x): return [1.5, 2.5]
def single(x): return (x,)
def flipped(x): return x[::-1]
def big_endian(x): return x.astype('>f8')
def long(x): return x.astype(np.longdouble)
def wide(x): return np.asfortranarray(np.ones((2, 3)) * [1, 2, 3])
def empty(x): return np.zeros((0, 3))
",
    );
    let table: &[(&str, &[usize], &[f64])] = &[
        ("scalar", &[], &[2.5]),
        ("listed", &[2], &[1.5, 2.5]),
        ("single", &[2], &[1.0, -2.0]),
        ("flipped", &[2], &[-2.0, 1.0]),
        ("big_endian", &[2], &[1.0, -2.0]),
        ("long", &[2], &[1.0, -2.0]),
        ("wide", &[2, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]),
        ("empty", &[0, 3], &[]),
        // A ufunc: its argument has no name.
        ("numpy:negative", &[2], &[-1.0, 2.0]),
    ];
    for (function, shape, values) in table {
        let answer = ask(&place.mirror(function), &x(&[1.0, -2.0]), &[], &[("out", DType::Float64)], Compute::Float64);
        assert_eq!(answer.unwrap(), [Array::float(DType::Float64, shape, values.to_vec())], "{function}");
    }
}

#[test]
fn several_outputs_come_as_a_tuple_a_dict_or_in_place() {
    let place = Place::new(
        "
def pair(x): return x.max(), x.argmax()
def named(x): return {'index': x.argmax(), 'value': x.max()}
def in_place(x): x *= 2
",
    );
    let outputs = [("value", DType::Float32), ("index", DType::Int32)];
    for function in ["pair", "named"] {
        let answer = ask(&place.mirror(function), &x(&[1.0, 3.0]), &[], &outputs, Compute::Float64).unwrap();
        let expected = [Array::float(DType::Float32, &[], vec![3.0]), Array::integer(DType::Int32, &[], vec![1])];
        assert_eq!(answer, expected, "{function}");
    }
    let answer =
        ask(&place.mirror("in_place"), &x(&[1.0, 3.0]), &[], &[("x", DType::Float32)], Compute::Float64).unwrap();
    assert_eq!(answer, [Array::float(DType::Float32, &[2], vec![2.0, 6.0])]);
}

#[test]
fn what_a_function_does_wrongly_is_named() {
    let place = Place::new(
        "
import sys
import numpy as np
value = 3
def raises(x):
    return helper(x)
def helper(x):
    raise ValueError('bad axis')
def exits(x): sys.exit(3)
def nothing(x): pass
def text(x): return 'four'
def thing(x): return object()
def complicated(x): return x * 1j
def three(x): return x, x, x
def other(x): return {'y': x}
def integers(x): return x.astype('int64')
def unnamed(logits): return logits
def imports(x): import no_such_package
def prints(x):
    print('to standard output')
    print('to standard error', file=sys.stderr)
    raise KeyError('k')
",
    );
    let out = "reference refs:";
    let table: &[(&str, &[&str])] = &[
        (
            "raises",
            &[
                "reference refs:raises: ValueError: bad axis\nin \"",
                "refs.py\", line 6, in raises",
                "line 8, in helper",
            ],
        ),
        ("exits", &["SystemExit: 3"]),
        ("nothing", &["it returned None; it must return one array"]),
        ("text", &["it returned out as an array of <U4, which is no dtype of gpuemu"]),
        ("thing", &["it returned out as an array of object"]),
        ("complicated", &["it returned out as an array of complex128"]),
        ("three", &["it returned 3 values; it must return one array"]),
        ("other", &["it returned a dict of y; it must return one array"]),
        ("integers", &["output out is declared float32 and the reference answered int64"]),
        ("unnamed", &["TypeError: ", "unexpected keyword argument 'x'", "; it is called with x="]),
        ("imports", &["ModuleNotFoundError: No module named 'no_such_package'", "refs.py\", line 18"]),
        ("prints", &["KeyError: 'k'", "its standard error:\n  to standard output\n  to standard error"]),
        ("missing", &["module refs has no function missing"]),
        ("value", &["refs:value is int, not a function"]),
    ];
    for (function, parts) in table {
        let message = place.failure(function);
        assert_contains(&message, &[out]);
        assert_contains(&message, parts);
        assert!(
            !message.contains("<string>") && !message.contains("frozen"),
            "frames that are not the user's:\n{message}"
        );
    }
    let message = place.failure("nowhere.mod:f");
    assert_contains(
        &message,
        &["there is no module nowhere; it is looked for in", &place.path().display().to_string()],
    );
    fs::write(place.path().join("broken.py"), "def f(x:\n").unwrap();
    assert_contains(&place.failure("broken:f"), &["SyntaxError", "broken.py"]);
    assert_eq!(place.workers.idle().len(), 1, "none of this costs the worker");
}

#[test]
fn integers_must_be_of_the_declared_dtype() {
    let place = Place::new("import numpy as np\ndef big(x): return np.array([300])\ndef flags(x): return x > 0");
    let error = ask(&place.mirror("big"), &x(&[1.0]), &[], &[("out", DType::UInt8)], Compute::Float64).unwrap_err();
    assert_contains(&error.to_string(), &["output out is declared uint8 and the reference answered 300"]);
    let answer = ask(&place.mirror("flags"), &x(&[1.0, -1.0]), &[], &[("out", DType::Bool)], Compute::Float64).unwrap();
    assert_eq!(answer, [Array::integer(DType::Bool, &[2], vec![1, 0])]);
}

#[test]
fn printing_and_reading_do_not_disturb_the_protocol() {
    let place = Place::new(
        "
import os, subprocess, sys
def noisy(x):
    print('print')
    sys.stdout.write('write')
    os.write(1, b'descriptor')
    subprocess.run(['echo', 'child'])
    assert sys.stdin.read() == ''
    return x
",
    );
    for _ in 0..3 {
        assert_eq!(place.ask("noisy").unwrap(), [1.0, -2.0]);
    }
}

#[cfg(unix)]
#[test]
fn a_worker_that_dies_between_cases_is_replaced_without_a_word() {
    let place = Place::new("def same(x): return x");
    assert_eq!(place.ask("same").unwrap(), [1.0, -2.0]);
    let [first] = place.workers.idle()[..] else { panic!("no worker waits") };
    let killed = std::process::Command::new("kill").args(["-9", &first.to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(place.ask("same").unwrap(), [1.0, -2.0]);
    let [second] = place.workers.idle()[..] else { panic!("no worker waits") };
    assert_ne!(first, second);
}

#[cfg(unix)]
#[test]
fn a_worker_that_dies_in_a_case_is_tried_once_more() {
    let place = Place::new(
        "
import os, signal, sys
def always(x):
    print('last words', file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
def once(x):
    if not os.path.exists('died'):
        open('died', 'w').close()
        os._exit(7)
    return x
def leaves(x): os._exit(7)
",
    );
    assert_contains(
        &place.failure("always"),
        &[
            "reference refs:always: its Python worker was killed by SIGSEGV (signal 11), and so did a second one",
            "last words",
            // What faulthandler adds.
            "in always",
        ],
    );
    assert_contains(&place.failure("leaves"), &["its Python worker exited with status 7"]);
    assert_eq!(place.ask("once").unwrap(), [1.0, -2.0]);
    assert_eq!(place.ask("once").unwrap(), [1.0, -2.0]);
}

#[test]
fn a_function_that_hangs_is_ended_and_the_next_call_works() {
    let place = Place::with_timeout(
        "import time\ndef hangs(x): print('working'); time.sleep(600)\ndef same(x): return x",
        Duration::from_millis(700),
    );
    let started = Instant::now();
    assert_contains(
        &place.failure("hangs"),
        &["reference refs:hangs: did not answer within 700ms and was ended", "working"],
    );
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
    assert_eq!(place.ask("same").unwrap(), [1.0, -2.0]);
}

#[test]
fn the_folder_of_the_contract_comes_first_on_the_module_path() {
    let place = Place::new("");
    fs::write(place.path().join("json.py"), "").unwrap();
    fs::create_dir(place.path().join("colorsys")).unwrap();
    fs::write(place.path().join("colorsys/__init__.py"), "").unwrap();
    fs::write(
        place.path().join("colorsys/own.py"),
        "from . import __name__ as name\ndef same(x): assert name == 'colorsys'; return x",
    )
    .unwrap();
    assert_eq!(place.ask("colorsys.own:same").unwrap(), [1.0, -2.0]);
}

#[test]
fn threads_have_workers_of_their_own() {
    let place = Place::new("import time, os\ndef slow(x): time.sleep(0.3); return x * 0 + os.getpid()");
    let ids: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| place.ask("slow").unwrap()[0])).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_ne!(ids[0], ids[1]);
    assert_eq!(place.workers.idle().len(), 2);
}

#[test]
fn large_arrays_pass_whole() {
    let place = Place::new("def same(x): return x");
    let values: Vec<f64> = (0..1 << 20).map(f64::from).collect();
    let answer = ask(&place.mirror("same"), &x(&values), &[], &[("out", DType::Float64)], Compute::Float64).unwrap();
    assert_eq!(answer[0].floats().unwrap(), values);
}

#[test]
fn what_is_missing_on_the_machine_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let start = |python: &Path| {
        let workers = Arc::new(Workers::new(folder.path(), Python::new(Some(python)), Duration::from_secs(20)));
        let mirror = FunctionMirror::new("refs", "f", workers);
        ask(&mirror, &x(&[1.0]), &[], &[("out", DType::Float32)], Compute::Float64).unwrap_err().to_string()
    };
    assert_contains(
        &start(Path::new("/no/such/python")),
        &["reference refs:f needs Python, and GPUEMU_PYTHON names /no/such/python, which is not there"],
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let python = std::env::var_os("GPUEMU_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
        // Without its site-packages it has no NumPy.
        let bare = format!("exec '{}' -S \"$@\"", python.display());
        let other = folder.path().join("other");
        let table: &[(&str, &[&str])] = &[
            ("echo 0123456789abcdef", &["does not behave like Python 3; name an interpreter in GPUEMU_PYTHON"]),
            (
                &bare,
                &[
                    "reference refs:f needs NumPy, which",
                    "cannot import: No module named 'numpy'",
                    "-m pip install numpy",
                    "GPUEMU_PYTHON",
                ],
            ),
            ("echo oh >&2; exit 9", &["exited with status 9 before it was ready", "its standard error:\n  oh"]),
        ];
        for (body, parts) in table {
            fs::write(&other, format!("#!/bin/sh\n{body}\n")).unwrap();
            fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
            assert_contains(&start(&other), parts);
        }
    }
}

#[test]
fn generators_are_given_what_their_signature_names() {
    let place = Place::new(
        "
import numpy as np
def offsets(rng, shape, B):
    cuts = np.sort(rng.integers(0, B + 1, shape[0] - 2))
    return np.concatenate([[0], cuts, [B]])
def seeded(seed, shape, dtype): return np.full(shape, seed % 1000 if dtype == 'bfloat16' else -1.0)
def everything(**offered): return np.full(offered['shape'], float(len(offered)))
def wrong_shape(shape): return np.zeros(3)
def wrong_dtype(shape): return np.zeros(shape)
def too_large(shape): return np.full(shape, 300)
",
    );
    let generate = |function: &str, dtype| {
        let (dims, params) = ([("B".to_owned(), 10)], [("mode".to_owned(), ParamValue::Text("m".to_owned()))]);
        place.workers.generate(&format!("refs:{function}"), 2u64.pow(63) + 5, &[4], dtype, &dims, &params)
    };
    let offsets = generate("offsets", DType::Int32).unwrap();
    let values = offsets.integers().unwrap();
    assert_eq!((offsets.dtype, values[0], values[3]), (DType::Int32, 0, 10));
    assert!(values.is_sorted());
    assert_eq!(generate("offsets", DType::Int32).unwrap(), offsets, "the same seed, the same values");
    // 2^63 + 5 = 9223372036854775813.
    assert_eq!(generate("seeded", DType::BFloat16).unwrap(), Array::float(DType::BFloat16, &[4], vec![813.0; 4]));
    assert_eq!(generate("everything", DType::Float32).unwrap().at(0), 6.0);
    let table = [
        ("wrong_shape", DType::Float32, "generator refs:wrong_shape returned shape [3] where [4] was asked for"),
        ("wrong_dtype", DType::Int32, "generator refs:wrong_dtype returned float64 where int32 was asked for"),
        ("too_large", DType::UInt8, "generator refs:too_large returned 300, which uint8 does not hold"),
        ("missing", DType::UInt8, "generator refs:missing: module refs has no function missing"),
    ];
    for (function, dtype, message) in table {
        assert_eq!(generate(function, dtype).unwrap_err().to_string(), message);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 1, ..Default::default() })]

    /// Every float parameter arrives as the same float64, bit for bit, and is written as Python writes it.
    #[test]
    fn float_parameters_arrive_exactly(bits in proptest::collection::vec(proptest::num::f64::ANY, 2000)) {
        let place = Place::new("
import struct
def check(x, **params):
    for name, value in params.items():
        assert value != value or struct.pack('<d', value).hex() == name[1:], (name, value)
    return x
");
        let name = |value: f64| format!("v{}", value.to_le_bytes().map(|byte| format!("{byte:02x}")).concat());
        let params: Vec<_> = bits.iter().map(|&value| (name(value), ParamValue::Float(value))).collect();
        let answer = ask(&place.mirror("check"), &x(&[1.0]), &params, &[("out", DType::Float32)], Compute::Float64);
        proptest::prop_assert!(answer.is_ok(), "{:?}", answer);
    }
}
