//! FINDINGS.md is still true: where candle answers something else than arithmetic in float32 (float64 for float64) does.
//!
//! A test that fails here is good news: that release of candle has one finding fewer.

mod bindings;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops;
use gpuemu_harness::environment::Environment;
use gpuemu_harness::pipeline::{session::Session, trial};
use gpuemu_harness::report::regressions;
use std::path::Path;

/// gpuemu's side: every case saved beside `findings/gpuemu.toml` fails, by the check that it was saved for.
#[test]
fn every_saved_case_still_fails() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("findings");
    let mut wrong = Vec::new();
    let session = Session::open(&folder, Environment::default()).unwrap();
    for op in &session.contract().ops {
        let paths = regressions::list(&folder, &op.name).unwrap();
        assert!(!paths.is_empty(), "no saved case of {}", op.name);
        for path in paths {
            let text = std::fs::read_to_string(folder.join(&path)).unwrap();
            let saved = regressions::load(&folder, &path).unwrap();
            let finished = trial::rerun(&session, &op.name, &saved);
            let Some(report) = finished.failure else {
                wrong.push(format!("{} passes now: {}", path.display(), saved.spec));
                continue;
            };
            if !text.contains(&format!("check = \"{}\"", report.failure.check.name())) {
                wrong.push(format!("{}: {}", path.display(), report.failure.message));
            }
            let first = report.failure.first.map_or(String::new(), |first| format!("{first:?}"));
            println!("{}\n    {first}", saved.spec);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn row(values: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::from_slice(values, (1, values.len()), &Device::Cpu)?.to_dtype(dtype)
}

fn first(answer: Result<Tensor>) -> f64 {
    answer.and_then(|x| x.flatten_all()?.to_dtype(DType::F64)?.get(0)?.to_scalar()).unwrap()
}

/// candle's side, without gpuemu: the first element of an answer to inputs so simple that the right one is known.
#[test]
fn by_hand() -> Result<()> {
    use DType::{BF16, F16, F32, F64};
    let zeros = |n, dtype| Tensor::zeros((1, n), dtype, &Device::Cpu);
    let ones = |m, n, dtype| Tensor::ones((m, n), dtype, &Device::Cpu);
    let norm = |values: &[f64], dtype| {
        let (x, one) = (row(values, dtype)?, Tensor::ones(values.len(), dtype, &Device::Cpu)?);
        ops::layer_norm(&x, &one, &one.zeros_like()?, 1e-5)
    };
    let one = |dtype| Tensor::ones(1, dtype, &Device::Cpu);
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let gelu = |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    // what, candle's answer now, the right one
    let table = [
        ("softmax of 512 zeros", first(ops::softmax(&zeros(512, BF16)?, 1)), 1.0 / 256.0, 1.0 / 512.0),
        ("softmax of 4096 zeros", first(ops::softmax(&zeros(4096, F16)?, 1)), 1.0 / 2048.0, 1.0 / 4096.0),
        ("softmax_last_dim of 512 zeros", first(ops::softmax_last_dim(&zeros(512, BF16)?)), 1.0 / 256.0, 1.0 / 512.0),
        (
            "softmax_last_dim of 4096 zeros",
            first(ops::softmax_last_dim(&zeros(4096, F16)?)),
            1.0 / 2048.0,
            1.0 / 4096.0,
        ),
        ("log_softmax of 512 zeros", first(ops::log_softmax(&zeros(512, BF16)?, 1)), -5.53125, -(512f64.ln())),
        ("matmul of 4096 ones", first(ones(1, 4096, F16)?.matmul(&ones(4096, 4, F16)?)), 2048.0, 4096.0),
        ("silu(-12)", first(ops::silu(&row(&[-12.0], F16)?)), -0.0, silu(-12.0)),
        ("gelu_tanh(-4)", first(row(&[-4.0], F16)?.gelu()), -0.0, gelu(-4.0)),
        ("gelu_tanh(-3)", first(row(&[-3.0], BF16)?.gelu()), -0.005859375, gelu(-3.0)),
        // Mean 4096.5, variance 1/4.
        ("layer_norm of 4096, 4097", first(norm(&[4096.0, 4097.0], F32)), -158.1138916015625, -0.5 / 0.25001f64.sqrt()),
        (
            "layer_norm of 2046, 2047, 2048",
            first(norm(&[2046.0, 2047.0, 2048.0], F16)),
            -1.154296875,
            -(1.0 / (2.0 / 3.0 + 1e-5f64).sqrt()),
        ),
        (
            "layer_norm_slow of 7, 5, 0 and a bias",
            first(ops::layer_norm_slow(
                &row(&[7.0, 5.0, 0.0], F16)?,
                &Tensor::ones(3, F16, &Device::Cpu)?,
                &Tensor::full(-1.01953125, 3, &Device::Cpu)?.to_dtype(F16)?,
                1e-5,
            )),
            0.0,
            3.0 / (26.0 / 3.0 + 1e-5f64).sqrt() - 1.01953125,
        ),
        ("layer_norm of a constant", first(norm(&[f64::from(1000.1f32); 7], F32)), f64::NAN, 0.0),
        ("layer_norm of a constant, float16", first(norm(&[1833.0; 5], F16)), f64::NAN, 0.0),
        ("layer_norm of one large number", first(norm(&[2f64.powi(64)], F32)), f64::NAN, 0.0),
        (
            "rms_norm_slow(1), eps 1e-5",
            first(ops::rms_norm_slow(&row(&[1.0], F64)?, &one(F64)?, 1e-5)),
            1.0 / (1.0 + f64::from(1e-5f32)).sqrt(),
            1.0 / 1.00001f64.sqrt(),
        ),
        ("rms_norm(0), eps 1e-16", first(ops::rms_norm(&row(&[0.0], F16)?, &one(F16)?, 1e-16)), f64::NAN, 0.0),
    ];
    for (what, got, known, right) in table {
        assert!(got == known || got.is_nan() && known.is_nan(), "{what} is {got} now, {right} is right");
        assert!(known != right, "{what}");
    }
    Ok(())
}

/// Rows of no element: a panic, where `softmax` returns an error.
#[test]
fn empty_rows_panic() -> Result<()> {
    let (x, one) = (Tensor::zeros((2, 0), DType::F32, &Device::Cpu)?, Tensor::ones(0, DType::F32, &Device::Cpu)?);
    assert!(ops::softmax(&x, 1).is_err());
    let panics = |operator: &dyn Fn() -> Result<Tensor>| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(operator)).is_err()
    };
    // Their messages and backtraces say nothing about this test.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let panicked = [
        panics(&|| ops::softmax_last_dim(&x)),
        panics(&|| ops::layer_norm(&x, &one, &one, 1e-5)),
        panics(&|| ops::rms_norm(&x, &one, 1e-5)),
    ];
    std::panic::set_hook(hook);
    assert_eq!(panicked, [true; 3], "softmax_last_dim, layer_norm, rms_norm");
    Ok(())
}
