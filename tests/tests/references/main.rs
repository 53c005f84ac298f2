//! Holds each built-in together with its twin in `references/`: the two were written independently from the formula.
//!
//! Python runs once, over the tables of cases in the modules beside this one. It needs NumPy; the interpreter is
//! `GPUEMU_PYTHON`, else `python3`.

mod elementwise;
mod index;
mod normalize;
mod product;
mod reduction;

use gpuemu_contract::{Builtin, Compute, DType, EdgePolicy, ParamValue};
use gpuemu_harness::mirror::{Mirror, Question, builtin};
use gpuemu_harness::tensor::{Array, Values};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// One question to both implementations.
pub struct Case {
    op: &'static str,
    inputs: Vec<(String, Array)>,
    params: Vec<(String, ParamValue)>,
    /// Parameters of the reference that the built-in reads off the output's dtype.
    reference_only: Vec<(&'static str, f64)>,
    output: DType,
    absolute: f64,
}

/// A case of that built-in; its output is float64 until [`Case::output`] says otherwise.
pub fn case(op: &'static str) -> Case {
    Case { op, inputs: vec![], params: vec![], reference_only: vec![], output: DType::Float64, absolute: 0.0 }
}

impl Case {
    /// The next input: float64 values.
    pub fn floats(mut self, shape: &[usize], values: &[f64]) -> Case {
        self.inputs.push((format!("in{}", self.inputs.len()), Array::float(DType::Float64, shape, values.to_vec())));
        self
    }

    /// The next input: integers of that dtype.
    pub fn integers(mut self, dtype: DType, shape: &[usize], values: &[i64]) -> Case {
        self.inputs.push((format!("in{}", self.inputs.len()), Array::integer(dtype, shape, values.to_vec())));
        self
    }

    /// The next input: values in (-2, 2) that look random, others for every input.
    pub fn wave(self, shape: &[usize]) -> Case {
        let first = self.inputs.len() as u64 + 1;
        let count: usize = shape.iter().product();
        let values: Vec<f64> = (0..count as u64)
            .map(|at| {
                let word = (at + 1000 * first).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((word >> 11) as f64 / (1u64 << 51) as f64) - 2.0
            })
            .collect();
        self.floats(shape, &values)
    }

    /// A parameter.
    pub fn param(mut self, name: &str, value: impl Into<Param>) -> Case {
        self.params.push((name.to_owned(), value.into().0));
        self
    }

    /// Parameters that only the reference takes.
    pub fn reference_only(mut self, params: &[(&'static str, f64)]) -> Case {
        self.reference_only.extend_from_slice(params);
        self
    }

    /// The dtype of the output.
    pub fn output(mut self, dtype: DType) -> Case {
        self.output = dtype;
        self
    }

    /// Answers may also differ by this much, where a sum cancels.
    pub fn absolute(mut self, absolute: f64) -> Case {
        self.absolute = absolute;
        self
    }
}

/// A parameter's value.
pub struct Param(ParamValue);

impl From<i64> for Param {
    fn from(value: i64) -> Param {
        Param(ParamValue::Int(value))
    }
}

impl From<f64> for Param {
    fn from(value: f64) -> Param {
        Param(ParamValue::Float(value))
    }
}

impl From<bool> for Param {
    fn from(value: bool) -> Param {
        Param(ParamValue::Bool(value))
    }
}

impl From<&str> for Param {
    fn from(value: &str) -> Param {
        Param(ParamValue::Text(value.to_owned()))
    }
}

/// Every table. Add a module's here.
fn cases() -> Vec<Case> {
    [normalize::cases(), elementwise::cases(), reduction::cases(), product::cases(), index::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// Reads one JSON list of cases, answers one JSON list: per case the answer, or the error as text. Floats travel as
/// the integers their bits are.
const DRIVER: &str = r#"
import importlib, json, sys, warnings
import numpy as np

warnings.simplefilter("ignore")

def array(tensor):
    if tensor["dtype"] == "float64":
        return np.array(tensor["data"], np.uint64).view(np.float64).reshape(tensor["shape"])
    return np.array(tensor["data"], np.int64).astype(tensor["dtype"]).reshape(tensor["shape"])

def answer(case):
    reference = importlib.import_module("references." + case["op"]).reference
    before = [array(tensor) for tensor in case["inputs"]]
    inputs = [value.copy() for value in before]
    out = np.asarray(reference(*inputs, **case["params"]))
    for old, new in zip(before, inputs):
        assert np.array_equal(old, new, equal_nan=old.dtype.kind == "f"), "the reference wrote into its inputs"
    if out.dtype.kind == "f":
        assert out.dtype == np.float64, f"answered {out.dtype} to float64"
        return {"shape": out.shape, "float": True, "data": np.ascontiguousarray(out).view(np.uint64).ravel().tolist()}
    return {"shape": out.shape, "float": False, "data": out.astype(np.int64).ravel().tolist()}

def attempt(case):
    try:
        return answer(case)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

json.dump([attempt(case) for case in json.load(sys.stdin)], sys.stdout)
"#;

fn describe(array: &Array) -> Value {
    match &array.values {
        Values::Float(values) => {
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            json!({"shape": array.shape, "dtype": "float64", "data": bits})
        }
        Values::Integer(values) => json!({"shape": array.shape, "dtype": array.dtype.name(), "data": values}),
    }
}

fn ask_python(cases: &[Case]) -> Vec<Value> {
    let request: Vec<Value> = cases
        .iter()
        .map(|case| {
            let inputs: Vec<Value> = case.inputs.iter().map(|(_, array)| describe(array)).collect();
            let params: serde_json::Map<String, Value> = case
                .params
                .iter()
                .map(|(name, value)| {
                    let value = match value {
                        ParamValue::Int(value) => json!(value),
                        ParamValue::Float(value) => json!(value),
                        ParamValue::Bool(value) => json!(value),
                        ParamValue::Text(value) => json!(value),
                    };
                    (name.clone(), value)
                })
                .chain(case.reference_only.iter().map(|&(name, value)| (name.to_owned(), json!(value))))
                .collect();
            json!({"op": case.op, "inputs": inputs, "params": params})
        })
        .collect();
    let python = std::env::var("GPUEMU_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut child = Command::new(&python)
        .args(["-c", DRIVER])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{python} does not start: {error}; set GPUEMU_PYTHON"));
    let text = serde_json::to_vec(&request).expect("a request is plain JSON");
    // Python reads everything before it writes: no deadlock.
    child.stdin.take().expect("piped").write_all(&text).expect("python reads its input");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{python} failed; it needs NumPy (set GPUEMU_PYTHON to one that has it)");
    serde_json::from_slice(&output.stdout).expect("the driver answers JSON")
}

fn ask_mirror(case: &Case) -> Result<Array, String> {
    let outputs = [("out".to_owned(), case.output)];
    let question = Question {
        inputs: &case.inputs,
        params: &case.params,
        outputs: &outputs,
        precision: Compute::Float64,
        edges: EdgePolicy::default(),
    };
    let mirror = builtin::find(case.op).ok_or("no such built-in")?;
    mirror.answer(&question).map(|mut answers| answers.remove(0)).map_err(|error| error.to_string())
}

fn difference(case: &Case, python: &Value) -> Option<String> {
    let mirror = match ask_mirror(case) {
        Ok(mirror) => mirror,
        Err(error) => return Some(format!("the built-in fails: {error}")),
    };
    if let Value::String(error) = python {
        return Some(format!("the reference fails: {error}"));
    }
    if python["shape"] != json!(mirror.shape) {
        return Some(format!("shapes differ: built-in {:?}, reference {}", mirror.shape, python["shape"]));
    }
    let data = python["data"].as_array().expect("the driver answers a list");
    let is_float = python["float"] == json!(true);
    for (number, value) in data.iter().enumerate() {
        let (same, expected) = match &mirror.values {
            Values::Integer(values) if !is_float => (value.as_i64() == Some(values[number]), value.to_string()),
            Values::Float(values) if is_float => {
                let (got, expected) = (values[number], f64::from_bits(value.as_u64().expect("bits")));
                let near = (got - expected).abs() <= 1e-13 * expected.abs() + case.absolute;
                (got == expected || near || got.is_nan() && expected.is_nan(), format!("{expected:e}"))
            }
            _ => (false, format!("{} of another kind", if is_float { "a float" } else { "an integer" })),
        };
        if !same {
            return Some(format!("element {number}: built-in {:e}, reference {expected}", mirror.at(number)));
        }
    }
    None
}

#[test]
fn every_reference_agrees_with_its_builtin() {
    let cases = cases();
    let answers = ask_python(&cases);
    assert_eq!(answers.len(), cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .zip(&answers)
        .enumerate()
        .filter_map(|(number, (case, python))| {
            let shapes: Vec<_> = case.inputs.iter().map(|(_, array)| &array.shape).collect();
            let what = difference(case, python)?;
            Some(format!("case {number}, {} {:?} on {shapes:?}: {what}", case.op, case.params))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases differ\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_builtin_has_a_reference_and_a_case() {
    let cases = cases();
    for builtin in Builtin::ALL.iter().filter(|builtin| builtin::find(builtin.name).is_some()) {
        let file = format!("{}/../references/{}.py", env!("CARGO_MANIFEST_DIR"), builtin.name);
        assert!(std::path::Path::new(&file).exists(), "references/{}.py is missing", builtin.name);
        assert!(cases.iter().any(|case| case.op == builtin.name), "no case for {}", builtin.name);
    }
}
