//! What one answer of a Python reference costs: through the warm worker, and as a script that starts anew each time.
//!
//! Needs Python 3 with NumPy (`python3`, or what GPUEMU_PYTHON names).

use divan::Bencher;
use gpuemu_contract::{Compute, DType, EdgePolicy, ParamValue};
use gpuemu_harness::mirror::script::{Script, ScriptMirror};
use gpuemu_harness::mirror::worker::{FunctionMirror, Workers};
use gpuemu_harness::mirror::{Mirror, Question};
use gpuemu_harness::python::Python;
use gpuemu_harness::{Array, process};
use std::path::Path;
use std::sync::Arc;

const FUNCTION: &str = "
import numpy as np
def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
";

const SCRIPT: &str = "
import base64, json, sys
import numpy as np
from refs import softmax
request = json.load(sys.stdin)
x = request['inputs']['x']
x = np.frombuffer(base64.b64decode(x['data']), x['dtype']).reshape(x['shape'])
out = softmax(x, int(request['kwargs']['axis']))
print(json.dumps({'shape': out.shape, 'dtype': str(out.dtype), 'data': base64.b64encode(out.tobytes()).decode()}))
";

fn python() -> Python {
    Python::new(std::env::var_os("GPUEMU_PYTHON").as_deref().map(Path::new))
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("refs.py"), FUNCTION).expect("refs.py is written");
    std::fs::write(folder.path().join("ref.py"), SCRIPT).expect("ref.py is written");
    folder
}

fn measure(bencher: Bencher<'_, '_>, mirror: &dyn Mirror, rows: usize) {
    let inputs = [("x".to_owned(), Array::float(DType::Float32, &[rows, 8], vec![0.5; rows * 8]))];
    let params = [("axis".to_owned(), ParamValue::Int(-1))];
    let outputs = [("out".to_owned(), DType::Float32)];
    let (precision, edges) = (Compute::Float64, EdgePolicy::default());
    let question = Question { inputs: &inputs, params: &params, outputs: &outputs, precision, edges };
    mirror.answer(&question).expect("an answer");
    bencher.bench_local(|| mirror.answer(&question).expect("an answer"));
}

/// Rows of 8 float64 values: 64 B, 64 KiB and 8 MiB in each direction.
#[divan::bench(args = [1, 1 << 10, 1 << 17], sample_count = 200)]
fn warm_worker(bencher: Bencher<'_, '_>, rows: usize) {
    let folder = project();
    let workers = Arc::new(Workers::new(folder.path(), python(), process::TIMEOUT));
    measure(bencher, &FunctionMirror::new("refs", "softmax", workers), rows);
}

#[divan::bench(args = [1, 1 << 17], sample_count = 10)]
fn script(bencher: Bencher<'_, '_>, rows: usize) {
    let folder = project();
    measure(bencher, &ScriptMirror::new(Script::new(&folder.path().join("ref.py"), folder.path(), python())), rows);
}

fn main() {
    divan::main();
}
