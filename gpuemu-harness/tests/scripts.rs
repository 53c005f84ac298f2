//! Scripts as references and as subjects: the protocol, and every way in which one can go wrong.
//!
//! Needs Python 3 (`python3`, or what GPUEMU_PYTHON names) and nothing beside its standard library.

use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};
use gpuemu_harness::mirror::script::{Script, ScriptMirror};
use gpuemu_harness::mirror::{Mirror, Question};
use gpuemu_harness::python::Python;
use gpuemu_harness::subject::script::ScriptSubject;
use gpuemu_harness::subject::{Call, Subject};
use gpuemu_harness::{Array, Error, Layout, Tensor, bf16};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Reads the request into `request` and defines `tell`, which answers floats in the dtype of the input `x`.
const READ: &str = "\
import base64, json, os, struct, sys, time
request = json.loads(sys.stdin.read())
x = request['inputs']['x']
code = {'float64': 'd', 'float32': 'f', 'float16': 'e', 'int32': 'i'}.get(x['dtype'])
data = base64.b64decode(x['data'])
values = list(struct.unpack('<%d%s' % (len(data) // struct.calcsize(code), code), data)) if code else None
def tensor(values, shape=None, dtype=None):
    packed = struct.pack('<%d%s' % (len(values), code), *values)
    return {'shape': x['shape'] if shape is None else shape, 'dtype': dtype or x['dtype'], 'data': base64.b64encode(packed).decode()}
def tell(*args, **kwargs):
    print(json.dumps(tensor(*args, **kwargs)))
";

/// The interpreter of this machine.
fn python() -> Python {
    Python::new(std::env::var_os("GPUEMU_PYTHON").as_deref().map(Path::new))
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn script(&self, source: &str) -> Script {
        let path = self.path().join("ref.py");
        fs::write(&path, source).unwrap();
        let python = python();
        Script { timeout: Duration::from_secs(20), ..Script::new(&path, self.path(), python) }
    }

    fn mirror(&self, source: &str) -> ScriptMirror {
        ScriptMirror::new(self.script(source))
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

fn x(dtype: DType, values: &[f64]) -> Vec<(String, Array)> {
    vec![("x".to_owned(), Array::float(dtype, &[values.len()], values.to_vec()))]
}

/// The error of a script that is asked about two values.
fn failure(mirror: &dyn Mirror) -> String {
    ask(mirror, &x(DType::Float32, &[1.0, -2.0]), &[], &[("out", DType::Float32)], Compute::Float64)
        .unwrap_err()
        .to_string()
}

fn assert_contains(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in:\n{message}");
    }
}

#[test]
fn a_reference_computes_in_the_precision_it_is_asked_in() {
    let place = Place::new();
    // Answers the value beside 1/3, so that the dtype it computes in shows.
    let mirror = place.mirror(&format!("{READ}tell([values[0], 1 / 3])"));
    let third = 1.0 / 3.0;
    let table = [
        (Compute::Float64, 0.1, 0.1, third),
        (Compute::Float32, 0.1, f64::from(0.1f32), f64::from(1.0f32 / 3.0)),
        // 0.1 with 10 fraction bits is 0x1.998p-4 = 1638 * 2^-14; with 7 it is 0x1.9ap-4 = 205 * 2^-11.
        (Compute::Float16, 0.1, 1638.0 / 16384.0, 1365.0 / 4096.0),
        (Compute::Tf32, 0.1, 1638.0 / 16384.0, f64::from(1.0f32 / 3.0)),
        (Compute::BFloat16, 0.1, 205.0 / 2048.0, f64::from(1.0f32 / 3.0)),
    ];
    for (precision, value, first, second) in table {
        let answer =
            ask(&mirror, &x(DType::Float64, &[value, 0.0]), &[], &[("out", DType::Float64)], precision).unwrap();
        assert_eq!(answer, [Array::float(DType::Float64, &[2], vec![first, second])], "{precision}");
    }
    assert!(mirror.notes().is_empty());
}

#[test]
fn a_float64_question_answered_in_float32_is_accepted_and_noted() {
    let place = Place::new();
    let mirror = place.mirror(&format!("{READ}code = 'f'\ntell(values, dtype='float32')"));
    let answer = ask(&mirror, &x(DType::Float64, &[0.1]), &[], &[("out", DType::Float16)], Compute::Float64).unwrap();
    assert_eq!(answer, [Array::float(DType::Float16, &[1], vec![f64::from(0.1f32)])]);
    assert_contains(&mirror.notes().join("\n"), &["script ref.py", "given float64", "narrower dtype"]);
}

#[test]
fn requests_carry_shapes_element_strides_dtypes_and_parameters_as_text() {
    let place = Place::new();
    // The request comes back on standard error, data and all.
    let mirror = place.mirror("import sys; sys.stderr.write(sys.stdin.read()); sys.exit(1)");
    let inputs = [
        ("x".to_owned(), Array::float(DType::Float16, &[2, 3], vec![0.0; 6])),
        ("index".to_owned(), Array::integer(DType::Int8, &[2], vec![1, -1])),
        ("scale".to_owned(), Array::float(DType::Float32, &[], vec![1.5])),
        ("none".to_owned(), Array::float(DType::Float32, &[0, 4], vec![])),
        ("flag".to_owned(), Array::integer(DType::Bool, &[1], vec![1])),
    ];
    let params = [
        ("axis".to_owned(), ParamValue::Int(-1)),
        ("eps".to_owned(), ParamValue::Float(1e-5)),
        ("scale".to_owned(), ParamValue::Float(2.0)),
        ("mode".to_owned(), ParamValue::Text("a \"b\"".to_owned())),
        ("causal".to_owned(), ParamValue::Bool(true)),
    ];
    let message = ask(&mirror, &inputs, &params, &[("out", DType::Float32)], Compute::Float64).unwrap_err().to_string();
    assert_contains(
        &message,
        &[
            r#""x": {"shape": [2,3], "strides": [3,1], "dtype": "float64", "data": "AAAA"#,
            r#""index": {"shape": [2], "strides": [1], "dtype": "int8", "data": "Af8="}"#,
            r#""scale": {"shape": [], "strides": [], "dtype": "float64", "data": "AAAAAAAA+D8="}"#,
            r#""none": {"shape": [0,4], "strides": "#,
            r#""flag": {"shape": [1], "strides": [1], "dtype": "bool", "data": "AQ=="}"#,
            r#""axis":"-1""#,
            r#""eps":"1e-05""#,
            r#""scale":"2.0""#,
            r#""mode":"a \"b\"""#,
            r#""causal":"True""#,
        ],
    );
}

#[test]
fn several_outputs_come_in_the_declared_order() {
    let place = Place::new();
    let both = "print(json.dumps({'outputs': {'b': tensor([2.0], [1]), 'a': tensor([1.0], [])}}))";
    let mirror = place.mirror(&format!("{READ}{both}"));
    let outputs = [("a", DType::Float32), ("b", DType::Float32)];
    let answer = ask(&mirror, &x(DType::Float32, &[0.0]), &[], &outputs, Compute::Float64).unwrap();
    assert_eq!(answer, [Array::float(DType::Float32, &[], vec![1.0]), Array::float(DType::Float32, &[1], vec![2.0])]);
    let table: &[(&str, &[(&str, DType)], &[&str])] = &[
        (both, &[("a", DType::Float32)], &["answered an output \"b\" that is not declared; declared: a"]),
        (
            both,
            &[("a", DType::Float32), ("b", DType::Float32), ("c", DType::Float32)],
            &["answered no output c; declared: a, b, c"],
        ),
        ("tell([1.0], [1])", &outputs, &["without \"outputs\"", "2 outputs: a, b"]),
        ("print('{\"outputs\": [1]}')", &outputs, &["answered \"outputs\" with a list, not an object of tensors"]),
        ("print('{\"outputs\": {\"a\": 1, \"b\": 2}}')", &outputs, &["answered output a with a number, not a tensor"]),
    ];
    for (answer, outputs, parts) in table {
        let mirror = place.mirror(&format!("{READ}{answer}"));
        let error = ask(&mirror, &x(DType::Float32, &[0.0]), &[], outputs, Compute::Float64).unwrap_err();
        assert_eq!(error.code(), "ReferenceScriptFailed");
        assert_contains(&error.to_string(), parts);
    }
}

#[test]
fn what_a_script_answers_wrongly_is_named() {
    let place = Place::new();
    let table: &[(&str, &[&str])] = &[
        ("", &["script ref.py printed nothing"]),
        ("print('hello')", &["printed what is not a JSON object: \"hello\""]),
        ("print('<' * 5000)", &["\"<<<", "\" ..."]),
        ("print('[1, 2]')", &["printed what is not a JSON object: \"[1, 2]\""]),
        ("print('{\"shape\": [2], \"dtype\"')", &["printed half a JSON object", "{\\\"shape\\\": [2]"]),
        ("print('{shape: 2}')", &["printed what is not JSON (", "{shape: 2}"]),
        ("print('loading'); tell(values)", &["printed more before its JSON object: \"loading\"", "file=sys.stderr"]),
        ("tell(values); print('done')", &["printed more after its JSON object: \"done\"", "file=sys.stderr"]),
        ("sys.stdout.buffer.write(b'\\xff\\xfe\\x00')", &["not UTF-8 text"]),
        ("print('{}')", &["answered no \"shape\"", "this object has nothing"]),
        ("print('{\"error\": \"oh\"}')", &["answered no \"shape\"", "this object has \"error\""]),
        ("tell(values, shape=[3])", &["answered 16 bytes of data for shape [3] of float64, which takes 24"]),
        ("tell(values[:1])", &["answered 8 bytes of data for shape [2] of float64, which takes 16"]),
        ("tell(values, shape=[-2])", &["a shape with -2, which is no size"]),
        ("tell(values, shape=[2.0])", &["a shape with 2.0, which is no size"]),
        ("tell(values, shape=2)", &["a shape that is a number"]),
        ("tell(values, shape=[1 << 40, 1 << 40])", &["more elements than memory can hold"]),
        ("tell(values, shape=[0, 1 << 40, 1 << 40])", &["16 bytes of data"]),
        ("tell([], shape=[0, 1 << 40, 1 << 40])", &["larger than memory can be addressed"]),
        ("tell(values, dtype='float')", &["answered dtype \"float\"; known: float64, float32", "str(array.dtype)"]),
        ("tell(values, dtype='>f8')", &["answered dtype \">f8\""]),
        ("tell(values, dtype='complex128')", &["answered dtype \"complex128\""]),
        ("tell(values, dtype='float32')", &["16 bytes of data for shape [2] of float32, which takes 8"]),
        ("tell(values, dtype='int64')", &["output out is declared float32 and the reference answered int64"]),
        ("print('{\"shape\": [1], \"dtype\": 3, \"data\": \"\"}')", &["a dtype that is a number, not a name"]),
        ("print('{\"shape\": [1], \"dtype\": \"bool\", \"data\": [1]}')", &["data that are a list, not base64 text"]),
        ("print('{\"shape\": [1], \"dtype\": \"bool\", \"data\": \"??\"}')", &["not base64 text: "]),
        ("print('{\"shape\": [1], \"dtype\": \"float32\", \"data\": [NaN]}')", &["printed what is not JSON"]),
        ("print('x', file=sys.stderr)", &["printed nothing", "its standard error:\n  x"]),
    ];
    for (source, parts) in table {
        let message = failure(&place.mirror(&format!("{READ}{source}")));
        assert_contains(&message, &["script ref.py"]);
        assert_contains(&message, parts);
    }
}

#[test]
fn how_a_script_ended_is_told_with_what_it_printed() {
    let place = Place::new();
    let table: &[(&str, &[&str])] = &[
        ("import sys; sys.stderr.write('no model\\n'); sys.exit(3)", &["exited with status 3", "\n  no model"]),
        ("import sys; sys.exit(3)", &["exited with status 3; it printed nothing to standard error"]),
        ("raise ValueError('bad axis')", &["exited with status 1", "ValueError: bad axis"]),
        // An answer does not make up for the status.
        (&format!("{READ}tell(values); sys.exit(4)"), &["exited with status 4"]),
    ];
    for (source, parts) in table {
        assert_contains(&failure(&place.mirror(source)), parts);
    }
}

#[cfg(unix)]
#[test]
fn signals_are_named() {
    let place = Place::new();
    let table = [
        ("SIGSEGV", "was killed by SIGSEGV (signal 11)"),
        ("SIGABRT", "was killed by SIGABRT (signal 6)"),
        ("SIGKILL", "was killed by SIGKILL (signal 9); the system may have run out of memory"),
    ];
    for (signal, part) in table {
        let source = format!(
            "import os, signal, sys; print('last words', file=sys.stderr, flush=True); os.kill(os.getpid(), signal.{signal})"
        );
        assert_contains(&failure(&place.mirror(&source)), &[part, "last words"]);
    }
}

#[test]
fn a_missing_script_and_a_missing_interpreter_are_named() {
    let place = Place::new();
    let mut script = place.script("");
    fs::remove_file(&script.path).unwrap();
    let error = ask(&ScriptMirror::new(script.clone()), &[], &[], &[("out", DType::Float32)], Compute::Float64);
    assert_eq!(error, Err(Error::NotFound("there is no script ref.py".to_owned())));

    fs::write(&script.path, "").unwrap();
    script.python = Python::new(Some(Path::new("/no/such/python")));
    assert_contains(
        &failure(&ScriptMirror::new(script.clone())),
        &["script ref.py needs Python, and GPUEMU_PYTHON names /no/such/python, which is not there"],
    );

    script.path = place.path().join("ref.bin");
    fs::write(&script.path, "no program").unwrap();
    assert_contains(
        &failure(&ScriptMirror::new(script)),
        &["ref.bin could not be started", "must be executable, or end in .py"],
    );
}

#[test]
fn a_script_that_hangs_is_ended_whether_or_not_it_reads() {
    let place = Place::new();
    // Larger than any pipe holds, so that writing it blocks.
    let large = vec![("x".to_owned(), Array::float(DType::Float64, &[1 << 20], vec![0.0; 1 << 20]))];
    let sources = ["import time; time.sleep(600)", "import sys, time; sys.stdin.read(); time.sleep(600)"];
    for source in sources {
        let mut script = place.script(source);
        script.timeout = Duration::from_millis(1500);
        let started = Instant::now();
        let error = ask(&ScriptMirror::new(script), &large, &[], &[("out", DType::Float64)], Compute::Float64);
        assert_contains(&error.unwrap_err().to_string(), &["script ref.py did not finish within 1.5s and was ended"]);
        assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
    }
}

#[test]
fn a_script_that_dies_before_reading_a_large_input_keeps_its_own_message() {
    let place = Place::new();
    let large = vec![("x".to_owned(), Array::float(DType::Float64, &[1 << 20], vec![0.0; 1 << 20]))];
    let mirror = place.mirror("import sys; sys.exit('needs a module that is not there')");
    let error = ask(&mirror, &large, &[], &[("out", DType::Float64)], Compute::Float64).unwrap_err();
    assert_contains(&error.to_string(), &["exited with status 1", "needs a module that is not there"]);
}

/// Whether a process of that number is there and no zombie.
#[cfg(target_os = "linux")]
fn is_alive(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_script_starts_dies_with_it() {
    let place = Place::new();
    let start = "\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], **OPTIONS)
open('child', 'w').write(str(child.pid))
";
    // The child holds the pipes, or none of them; the script answers, fails, or hangs itself.
    let table: &[(&str, &str, Result<(), &str>)] = &[
        ("{}", "tell(values)", Ok(())),
        ("{'stdout': -3, 'stderr': -3, 'stdin': -3}", "tell(values)", Ok(())),
        ("{}", "sys.exit(3)", Err("exited with status 3")),
        ("{}", "time.sleep(600)", Err("did not finish within 3s")),
    ];
    for (options, end, expected) in table {
        let mut script = place.script(&format!("{READ}{}{end}", start.replace("OPTIONS", options)));
        script.timeout = Duration::from_secs(3);
        let started = Instant::now();
        let answer = ask(
            &ScriptMirror::new(script),
            &x(DType::Float32, &[1.0]),
            &[],
            &[("out", DType::Float32)],
            Compute::Float64,
        );
        match expected {
            Ok(()) => assert_eq!(answer.unwrap(), [Array::float(DType::Float32, &[1], vec![1.0])]),
            Err(part) => assert_contains(&answer.unwrap_err().to_string(), &[part]),
        }
        assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
        let child = fs::read_to_string(place.path().join("child")).unwrap();
        let patience = Instant::now() + Duration::from_secs(2);
        while is_alive(&child) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_alive(&child), "{options} {end}: process {child} lives on");
    }
}

/// The most memory this process has held, in MiB.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[cfg(target_os = "linux")]
#[test]
fn a_gigabyte_is_cut_short() {
    let place = Place::new();
    let before = peak_memory();
    let flood = "import os\nchunk = b'x' * (1 << 20)\nfor _ in range(1 << 10): os.write(FD, chunk)\n";
    let message = failure(&place.mirror(&flood.replace("FD", "1")));
    assert_contains(&message, &["script ref.py wrote more than 64 MiB to standard output and was ended"]);

    let source = format!(
        "import sys; sys.stderr.write('first words\\n'); sys.stderr.flush()\n{}sys.exit('last words')",
        flood.replace("FD", "2")
    );
    let message = failure(&place.mirror(&source));
    assert_contains(&message, &["exited with status 1", "first words", "bytes left out]", "last words"]);
    assert!(message.len() < 20_000, "the message has {} bytes", message.len());
    let grown = peak_memory() - before;
    assert!(grown < 400, "took {grown} MiB");
}

#[test]
fn a_script_subject_is_given_the_values_of_any_layout_in_the_dtype_of_the_test() {
    let place = Place::new();
    // Answers the bytes it got, once as a new output and once as the overwritten input.
    let source = "\
import json, sys
x = json.load(sys.stdin)['inputs']['x']
answer = {key: x[key] for key in ('shape', 'dtype', 'data')}
print(json.dumps({'outputs': {'x': answer, 'out': answer}}))
";
    let subject = ScriptSubject::new(place.script(source), vec!["x".to_owned()]);
    assert_eq!(subject.describe(), "script ref.py");
    let data = [1.0, 9.0, 2.0, 9.0, 3.0, 9.0, 4.0, 9.0, 5.0, 9.0, 6.0, 9.0].map(bf16::from_f32);
    let layout = Layout { shape: vec![3, 2], strides: vec![2, 6], offset: 0 };
    let mut inputs = [("x".to_owned(), Tensor::from_slice(&[12], &data).with_layout(layout))];
    let before = inputs[0].1.clone();
    let mut outputs = [("out".to_owned(), None)];
    let mut call = Call {
        dtype: DType::BFloat16,
        inputs: &mut inputs,
        outputs: &mut outputs,
        dims: &[],
        params: &[],
        notes: Vec::new(),
    };
    subject.run(&mut call).unwrap();
    let expected = Tensor::from_slice(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0].map(bf16::from_f32));
    assert_eq!(outputs[0].1, Some(expected));
    assert_eq!(inputs[0].1, before);
}

#[test]
fn a_script_subject_that_fails_has_a_kind() {
    let place = Place::new();
    let table = [
        ("import sys; sys.exit(3)", "exited", "script ref.py exited with status 3"),
        ("print('oh')", "garbage", "script ref.py printed what is not a JSON object: \"oh\""),
        ("import time; time.sleep(600)", "timed out", "did not finish within 1s"),
    ];
    for (source, kind, part) in table {
        let script = Script { timeout: Duration::from_secs(1), ..place.script(source) };
        let mut call = Call {
            dtype: DType::Float32,
            inputs: &mut [],
            outputs: &mut [("out".to_owned(), None)],
            dims: &[],
            params: &[],
            notes: Vec::new(),
        };
        let error = ScriptSubject::new(script, vec![]).run(&mut call).unwrap_err();
        assert_eq!(error.kind, kind);
        assert_contains(&error.message, &[part]);
    }
}
