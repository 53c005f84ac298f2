//! The JSON protocol of scripts: one object on standard input, one on standard output.
//!
//! ```json
//! {"inputs": {"x": {"shape": [2, 3], "strides": [3, 1], "dtype": "float32", "data": "<base64>"}}, "kwargs": {"axis": "-1"}}
//! {"shape": [2, 3], "dtype": "float32", "data": "<base64>"}
//! {"outputs": {"out": {"shape": [2, 3], "dtype": "float32", "data": "<base64>"}}}
//! ```
//!
//! Data are little-endian elements, row-major and without gaps; strides count elements. `dtype` is a name of
//! [`DType::name`], which `numpy.dtype` reads; for `bfloat16` and the fp8 types it does so once `ml_dtypes` is imported.
//! Every value of `kwargs` is a string, written as Python's `str` writes it: `-1`, `1e-05`, `True`, and text without
//! quotes. The second form of the answer is for several outputs and allowed for one.

use super::wire::{self, Dense};
use crate::tensor::Tensor;
use base64::prelude::{BASE64_STANDARD, Engine};
use gpuemu_contract::{DType, ParamValue};
use serde_json::{Map, Value, json};

/// The request, as bytes for standard input.
pub fn request(inputs: &[Dense<'_>], params: &[(String, ParamValue)]) -> Vec<u8> {
    let mut text = Vec::with_capacity(inputs.iter().map(|input| input.bytes.len() / 3 * 4 + 200).sum::<usize>() + 100);
    // Written by hand around the data, so that the base64 text is not copied through a tree of values.
    text.extend_from_slice(b"{\"inputs\": {");
    for (number, input) in inputs.iter().enumerate() {
        let separator = if number == 0 { "" } else { ", " };
        let strides = crate::tensor::Layout::contiguous(input.shape).strides;
        text.extend_from_slice(
            format!(
                "{separator}{}: {{\"shape\": {}, \"strides\": {}, \"dtype\": {}, \"data\": \"",
                json!(input.name),
                json!(input.shape),
                json!(strides),
                json!(input.dtype.name())
            )
            .as_bytes(),
        );
        text.extend_from_slice(BASE64_STANDARD.encode(&input.bytes).as_bytes());
        text.extend_from_slice(b"\"}");
    }
    let kwargs: Map<String, Value> =
        params.iter().map(|(name, value)| (name.clone(), Value::String(keyword(value)))).collect();
    text.extend_from_slice(format!("}}, \"kwargs\": {}}}\n", Value::Object(kwargs)).as_bytes());
    text
}

/// A parameter as Python's `str` writes it.
pub fn keyword(value: &ParamValue) -> String {
    match value {
        ParamValue::Int(value) => value.to_string(),
        ParamValue::Float(value) => float_repr(*value),
        ParamValue::Bool(true) => "True".to_owned(),
        ParamValue::Bool(false) => "False".to_owned(),
        ParamValue::Text(text) => text.clone(),
    }
}

/// A float64 as Python's `repr`: the shortest digits that read back exactly, with an exponent of at least two digits
/// below 1e-4 and from 1e16 on.
fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() || value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        return match value {
            f64::INFINITY => "inf".to_owned(),
            f64::NEG_INFINITY => "-inf".to_owned(),
            // Display never takes an exponent, and leaves out the point.
            _ if value.fract() == 0.0 => format!("{value}.0"),
            _ => format!("{value}"),
        };
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("+", exponent), |exponent| ("-", exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// The tensors of an answer, in the order of `outputs`. The error is fit to follow the script's name.
pub fn answer(stdout: &[u8], outputs: &[&str]) -> Result<Vec<Tensor>, String> {
    let answer = object(stdout)?;
    if let Some(tensors) = answer.get("outputs") {
        let Value::Object(tensors) = tensors else {
            return Err(format!("answered \"outputs\" with {}, not an object of tensors", kind(tensors)));
        };
        if let Some(unknown) = tensors.keys().find(|name| !outputs.contains(&name.as_str())) {
            return Err(format!(
                "answered an output {unknown:?} that is not declared; declared: {}",
                outputs.join(", ")
            ));
        }
        return outputs
            .iter()
            .map(|&name| match tensors.get(name) {
                Some(value) => tensor(value).map_err(|error| format!("answered output {name} with {error}")),
                None => Err(format!("answered no output {name}; declared: {}", outputs.join(", "))),
            })
            .collect();
    }
    match outputs {
        [_] => tensor(&Value::Object(answer)).map(|tensor| vec![tensor]).map_err(|error| format!("answered {error}")),
        _ => Err(format!(
            "answered without \"outputs\", and the op has {} outputs: {}; answer {{\"outputs\": {{name: tensor}}}}",
            outputs.len(),
            outputs.join(", ")
        )),
    }
}

/// The one JSON object of a standard output.
fn object(stdout: &[u8]) -> Result<Map<String, Value>, String> {
    let text =
        std::str::from_utf8(stdout).map_err(|_| format!("printed what is not UTF-8 text: {}", excerpt(stdout)))?;
    let text = text.trim();
    if text.is_empty() {
        return Err("printed nothing; it must print one JSON object to standard output".to_owned());
    }
    let hint = "everything but the answer belongs on standard error: print(..., file=sys.stderr)";
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match values.next() {
        Some(Ok(Value::Object(answer))) => {
            let rest = text[values.byte_offset()..].trim();
            if rest.is_empty() {
                Ok(answer)
            } else {
                Err(format!("printed more after its JSON object: {}; {hint}", excerpt(rest.as_bytes())))
            }
        }
        Some(Err(error)) if error.is_eof() && text.starts_with('{') => Err(format!(
            "printed half a JSON object: its {} bytes end in the middle of it; they begin {}",
            stdout.len(),
            excerpt(text.as_bytes())
        )),
        Some(Err(error)) if text.starts_with('{') => {
            Err(format!("printed what is not JSON ({error}): {}", excerpt(text.as_bytes())))
        }
        _ => match answer_below(text) {
            Some(above) => Err(format!("printed more before its JSON object: {}; {hint}", excerpt(above.as_bytes()))),
            None => Err(format!("printed what is not a JSON object: {}", excerpt(text.as_bytes()))),
        },
    }
}

/// What stands above an answer that begins on a line of its own, if one does.
fn answer_below(text: &str) -> Option<&str> {
    let begins = text.match_indices("\n{").map(|(at, _)| at);
    begins
        .take(100)
        .find(|&at| {
            let value = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>().next();
            matches!(value, Some(Ok(Value::Object(_))))
        })
        .map(|at| &text[..at])
}

/// One tensor of an answer. The error names what was answered instead.
fn tensor(value: &Value) -> Result<Tensor, String> {
    let Value::Object(fields) = value else {
        return Err(format!("{}, not a tensor object", kind(value)));
    };
    let field = |name: &str| {
        fields.get(name).ok_or_else(|| {
            let found = fields.keys().take(8).map(|key| format!("{key:?}")).collect::<Vec<_>>().join(", ");
            format!(
                "no {name:?}; a tensor has \"shape\", \"dtype\" and \"data\", and this object has {}",
                if found.is_empty() { "nothing" } else { &found }
            )
        })
    };
    let (shape, dtype, data) = (field("shape")?, field("dtype")?, field("data")?);
    let Value::Array(sizes) = shape else {
        return Err(format!("a shape that is {}, not a list of integers", kind(shape)));
    };
    let sizes = sizes
        .iter()
        .map(|size| {
            size.as_u64()
                .and_then(|size| usize::try_from(size).ok())
                .ok_or_else(|| format!("a shape with {size:.40}, which is no size"))
        })
        .collect::<Result<Vec<usize>, String>>()?;
    let Some(name) = dtype.as_str() else {
        return Err(format!("a dtype that is {}, not a name", kind(dtype)));
    };
    let Some(dtype) = DType::from_name(name) else {
        let names = DType::ALL.map(DType::name).join(", ");
        return Err(format!("dtype {name:?}; known: {names} (str(array.dtype) gives these names)"));
    };
    let Some(data) = data.as_str() else {
        return Err(format!("data that are {}, not base64 text", kind(data)));
    };
    let bytes = BASE64_STANDARD.decode(data).map_err(|error| format!("data that are not base64 text: {error}"))?;
    wire::tensor(dtype, &sizes, &bytes)
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The first 200 characters, quoted.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < bytes.len() && text.chars().count() > SHOWN { " ..." } else { "" };
    format!("{shown:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_are_written_as_python_writes_them() {
        // repr(value) of CPython.
        let table = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-1.5e-7, "-1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in table {
            assert_eq!(keyword(&ParamValue::Float(value)), text);
        }
        assert_eq!(keyword(&ParamValue::Text("two words".into())), "two words");
        assert_eq!(keyword(&ParamValue::Bool(false)), "False");
        assert_eq!(keyword(&ParamValue::Int(i64::MIN)), "-9223372036854775808");
    }

    /// An answer in the form of the protocol.
    fn written(dtype: DType, shape: &[usize], bytes: &[u8]) -> String {
        json!({"shape": shape, "dtype": dtype.name(), "data": BASE64_STANDARD.encode(bytes)}).to_string()
    }

    proptest! {
        #[test]
        fn answers_read_back_as_the_bytes_they_hold(
            dtype in prop::sample::select(DType::ALL.to_vec()),
            shape in prop::collection::vec(0usize..4, 0..4),
            seed in any::<u8>(),
        ) {
            let length = shape.iter().product::<usize>() * dtype.size();
            let bytes: Vec<u8> = (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect();
            let text = written(dtype, &shape, &bytes);
            let tensors = answer(format!("\n {text} \n").as_bytes(), &["out"]).unwrap();
            prop_assert_eq!((tensors[0].dtype(), tensors[0].shape(), tensors[0].bytes()), (dtype, &shape[..], &bytes[..]));
            let named = answer(format!("{{\"outputs\": {{\"out\": {text}}}}}").as_bytes(), &["out"]).unwrap();
            prop_assert_eq!(named, tensors);
            // A byte more or less is an error.
            prop_assert!(answer(written(dtype, &shape, &[&bytes[..], &[0]].concat()).as_bytes(), &["out"]).is_err());
            // So is every answer that was cut.
            for end in 0..text.len() {
                prop_assert!(answer(&text.as_bytes()[..end], &["out"]).is_err());
            }
        }

        #[test]
        fn no_output_of_a_script_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..120) {
            let _ = answer(&bytes, &["out"]);
            // A right answer with something else in its middle.
            let text = written(DType::Float32, &[2, 1], &[0; 8]);
            let (front, back) = text.as_bytes().split_at(at.min(text.len()));
            let _ = answer(&[front, &bytes, back].concat(), &["out"]);
        }

        #[test]
        fn no_json_panics(text in "[{}\\[\\]\":,0-9a-e. -]{0,60}") {
            let _ = answer(text.as_bytes(), &["out", "other"]);
            let _ = answer(format!("{{\"shape\": {text}, \"dtype\": \"int8\", \"data\": {text}}}").as_bytes(), &["out"]);
        }
    }
}
