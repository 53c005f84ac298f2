//! Faults that a harness like this one is known to have had; none of them may come back.
//!
//! Where another suite has the test, it is named here: contracts that do not parse, misspelt keys, tolerances of NaN
//! and ops with one name in `bad_input.rs`; exit statuses and replays in `doors.rs`; everything a script or a worker can
//! do in the harness's `scripts.rs` and `workers.rs`. Needs Python 3 and nothing beside its standard library.

use gpuemu_contract::{DType, TestName};
use gpuemu_harness::case::build;
use gpuemu_harness::case::spec::Spec;
use gpuemu_harness::pipeline::oracle::Oracle;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::pipeline::trial;
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::subject::function::Function;
use gpuemu_harness::{Array, Call, Layout, SubjectError, Tensor, bf16, f16};
use gpuemu_tests::sessions::{Place, answer, answer_in, assert_has, finished, report, suite_report, values, with};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A contract of one op with the built-in reference `op` over inputs x of dims N.
fn contract(op: &str, validation: &str) -> String {
    format!(
        "[project]\nname = \"known faults\"\n[validation]\ndtypes = [\"float32\", \"float16\", \"bfloat16\"]\n\
         cases = 6\n{validation}\n[[ops]]\nname = \"{op}\"\nreference = \"{op}\"\n[ops.schema]\n\
         dims = {{ N = [1, 4, 33] }}\ninputs = {{ x = [\"N\"] }}\noutputs = {{ out = [\"N\"] }}\n"
    )
}

fn kernel(op: &'static str) -> impl Fn(f64) -> f64 + Send + Sync + 'static {
    move |x| match op {
        "silu" => x / (1.0 + (-x).exp()),
        "relu" if x < 0.0 => 0.0,
        "relu" => x,
        "exp" => x.exp(),
        other => panic!("no kernel {other}"),
    }
}

/// A session in which the op is computed element by element.
fn each(op: &'static str, run: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Session {
    with(Place::new(&contract(op, "")).session(), op, move |call| {
        let out = values(call, "x").into_iter().map(&run).collect();
        answer(call, out);
        Ok(())
    })
}

/// The report on one case, empty when it passed.
fn on(session: &Session, case: &str) -> String {
    let spec: Spec = case.parse().unwrap_or_else(|error| panic!("{case}: {error}"));
    let failure = trial::run(session, &spec.test.clone(), Some(&spec)).failure;
    failure.map(|report| report.render()).unwrap_or_default()
}

/// Fault: the default mode compared the reference with itself, and 50 of 50 passed with no kernel anywhere.
#[test]
fn without_a_kernel_nothing_passes() {
    let session = Place::new(&contract("silu", "")).session();
    for strategy in ["boundary", "adversarial", "layout"] {
        let test = format!("silu::float32::{strategy}");
        let run = finished(&session, &test);
        assert_eq!(run.cases, 0, "nothing is counted as tried");
        assert_has(&run.failure.expect("a failure").render(), &["nothing computes op `silu`"]);
    }
}

/// Fault: a NaN in the reference made any output pass; a right NaN or a right infinity failed.
#[test]
fn non_finite_values_must_stand_where_the_reference_has_them() {
    const INF: f64 = f64::INFINITY;
    // The op, the value of one input, what the kernel answers there, and whether that is right.
    let table: &[(&'static str, &str, f64, bool)] = &[
        ("silu", "NaN", f64::NAN, true),
        ("silu", "NaN", 0.0, false),
        ("silu", "NaN", INF, false),
        ("silu", "1.0", f64::NAN, false),
        ("relu", "inf", INF, true),
        ("relu", "inf", f64::from(f32::MAX), false),
        ("relu", "inf", -INF, false),
        ("relu", "inf", f64::NAN, false),
        ("relu", "1.0", INF, false),
        ("relu", "-inf", 0.0, true),
        // exp(100) = 2.7e43 is beyond float32, whose right answer is infinity. (NaN there is let pass: an operator that
        // adds such terms may rightly meet infinity less infinity.)
        ("exp", "100.0", INF, true),
        ("exp", "100.0", -INF, false),
        ("exp", "100.0", 1.0, false),
        ("exp", "-inf", 0.0, true),
        ("exp", "inf", INF, true),
    ];
    for &(op, value, answered, right) in table {
        let run = kernel(op);
        let spoiled: f64 = value.parse().unwrap();
        let session = each(op, move |x| if x == spoiled || x.is_nan() { answered } else { run(x) });
        let case = format!("{op}::float32::boundary{{N=4}} x:row uniform seed=0000000000000005 x[2]={value}");
        let message = on(&session, &case);
        assert_eq!(message.is_empty(), right, "{op}({value}) = {answered}: {message}");
    }
    // The other elements are judged as ever.
    let run = kernel("silu");
    let lazy = each("silu", move |x| if x.is_nan() { x } else { 2.0 * run(x) });
    let message = on(&lazy, "silu::float32::boundary{N=4} x:row uniform seed=0000000000000005 x[2]=NaN");
    assert_has(&message, &["differ"]);
    // And over whole tests.
    for (op, strategy) in [("silu", "nan_injected"), ("relu", "adversarial"), ("exp", "adversarial")] {
        let place = Place::new(&contract(op, &format!("strategies = [\"{strategy}\"]")));
        let run = kernel(op);
        let session = with(place.session(), op, move |call| {
            let out = values(call, "x").into_iter().map(&run).collect();
            answer(call, out);
            Ok(())
        });
        assert_eq!(report(&session, &format!("{op}::float32::{strategy}")), "");
    }
}

/// Fault: only an absolute tolerance: one ULP at 1e8 failed, an answer 90 times wrong at 1e-7 passed.
#[test]
fn errors_are_judged_by_the_size_of_the_values() {
    let at = |value: f64, answered: f64| {
        let run = kernel("silu");
        let value32 = f64::from(value as f32);
        let session = each("silu", move |x| if x == value32 { answered } else { run(x) });
        on(&session, &format!("silu::float32::boundary{{N=4}} x:row uniform seed=0000000000000005 x[1]={value:?}"))
    };
    // silu(1e8) = 1e8, where float32 steps by 8.
    assert_eq!(at(1e8, 1e8), "");
    assert_eq!(at(1e8, 1e8 + 8.0), "", "one step");
    assert_has(&at(1e8, 1e8 + 8000.0), &["out[1]: expected 100000000, got 100008000"]);
    // silu(1e-7) = 5e-8.
    assert_eq!(at(1e-7, 5e-8), "");
    assert_has(&at(1e-7, 90.0 * 5e-8), &["out[1]: expected 5.0", "got 4.5", "e-6"]);
    assert_has(&at(1e-7, 0.0), &["out[1]: expected 5.0", "got 0"]);
}

/// Fault: the double-precision reference was rounded to the output dtype before it was compared.
#[test]
fn the_reference_is_never_rounded() {
    let session = Place::new(&contract("exp", "")).session();
    let op = session.op("exp").unwrap();
    for dtype in [DType::Float32, DType::Float16, DType::BFloat16] {
        let oracle = Oracle::new(&session, op, dtype).unwrap();
        let spec: Spec =
            format!("exp::{dtype}::boundary{{N=1}} x:row zeros seed=0000000000000005 x[0]=1.0").parse().unwrap();
        let case = build::build(op, &spec, None).unwrap();
        let expected = oracle.answer(&case).unwrap().expected[0].at(0);
        assert!((expected - std::f64::consts::E).abs() < 1e-15, "{dtype}: {expected}");
    }
}

/// Fault: short output data (2 of 48 values) passed.
#[test]
fn short_outputs_do_not_pass() {
    let place = Place::new(&contract("silu", "").replace("[1, 4, 33]", "[48]"));
    let session = with(place.session(), "silu", |call| {
        let two = values(call, "x")[..2].iter().map(|x| x / (1.0 + (-x).exp())).collect();
        answer_in(call, &[2], two);
        Ok(())
    });
    assert_has(&report(&session, "silu::float32::boundary"), &["out has shape [2], the mirror ["]);
    // The same within the right shape: the rest was never written.
    let session = with(place.session(), "silu", |call| {
        let two: Vec<f32> = values(call, "x")[..2].iter().map(|x| (x / (1.0 + (-x).exp())) as f32).collect();
        let out = call.outputs[0].1.as_mut().unwrap();
        out.data_mut::<f32>()[..2].copy_from_slice(&two);
        Ok(())
    });
    assert_has(&report(&session, "silu::float32::boundary"), &["never written"]);
}

/// Fault: an unknown dtype was read as float32 and passed.
#[test]
fn an_unknown_dtype_is_an_error() {
    let error = Place::new(&contract("silu", "").replace("float16", "float23")).open().err().unwrap().to_string();
    assert_has(&error, &["gpuemu.toml:4", "float23"]);
}

/// Fault: a report over no data said passed.
#[test]
fn nothing_to_run_is_not_passed() {
    // A strategy that selects a dtype that the contract has not leaves no test.
    let place = Place::new(&contract("silu", "").replace("\"float16\", \"bfloat16\"", "\"bfloat16\""));
    let opened = place.open_with(|environment| {
        environment.strategies = Some(vec![gpuemu_contract::Strategy::SingleDtypeF16]);
    });
    let suite = ProjectSuite::new(opened.unwrap()).unwrap();
    use gpuemu_harness::suite::Suite;
    assert_eq!(suite.tests(), []);
    assert_has(&suite_report(&suite, "silu::float16::default"), &["silu::float16::default failed: no test"]);
    let code = gpuemu_harness::runner::main_with(suite, ["test".into()], &Default::default());
    assert_eq!(code, std::process::ExitCode::from(101));
}

/// Fault: float16 subnormals decoded a thousand times too large; bfloat16 had float16's bit patterns.
#[test]
fn half_precisions_have_their_own_bits() {
    // From the formats: float16's least subnormal is 2^-24, its least normal number 2^-14; bfloat16 is float32's upper half.
    for (bits, value) in
        [(0x0001, 2f64.powi(-24)), (0x03ff, 1023.0 * 2f64.powi(-24)), (0x0400, 2f64.powi(-14)), (0x3c00, 1.0)]
    {
        assert_eq!(Tensor::from_slice(&[1], &[f16::from_bits(bits)]).to_array().at(0), value, "{bits:#x}");
    }
    for (bits, value) in [(0x0001, 2f64.powi(-133)), (0x0080, 2f64.powi(-126)), (0x3f80, 1.0), (0x3c00, 2f64.powi(-7))]
    {
        assert_eq!(Tensor::from_slice(&[1], &[bf16::from_bits(bits)]).to_array().at(0), value, "{bits:#x}");
    }
    // What a kernel is given.
    let session = Place::new(&contract("relu", "")).session();
    let op = session.op("relu").unwrap();
    for (dtype, one, least) in [("float16", 0x3c00u16, 0x0001u16), ("bfloat16", 0x3f80, 0x3380)] {
        let spec = format!(
            "relu::{dtype}::boundary{{N=4}} x:row zeros seed=0000000000000005 x[0]=1.0 x[1]=5.960464477539063e-8"
        );
        let case = build::build(op, &spec.parse().unwrap(), None).unwrap();
        let bytes = case.inputs[0].1.to_contiguous().bytes().to_vec();
        assert_eq!(bytes[..4], [one.to_le_bytes(), least.to_le_bytes()].concat(), "{dtype}: 1 and 2^-24");
    }
}

/// Fault: int8 and bool were announced as float32.
#[test]
fn integers_are_announced_as_what_they_are() {
    let place = Place::new("");
    place.write(
        "check.py",
        "import json, sys\n\
         x = json.load(sys.stdin)['inputs']['x']\n\
         print('announced', x['dtype'], x['strides'], file=sys.stderr)\n\
         sys.exit(1)\n",
    );
    for dtype in ["int8", "bool", "uint16", "int64"] {
        place.write(
            "gpuemu.toml",
            &format!(
                "[validation]\ndtypes = [\"{dtype}\"]\n[[ops]]\nname = \"relu\"\nreference = \"check.py\"\nop_script = \
                 \"check.py\"\n[ops.schema]\ndims = {{ N = [4] }}\ninputs = {{ x = [\"N\", \"N\"] }}\noutputs = {{ out = \
                 [\"N\", \"N\"] }}\n"
            ),
        );
        let as_subject = place.session();
        let as_reference = with(place.session(), "relu", |call| {
            call.outputs[0].1 = Some(call.inputs[0].1.to_contiguous());
            Ok(())
        });
        for session in [as_subject, as_reference] {
            assert_has(&report(&session, &format!("relu::{dtype}::boundary")), &[&format!("announced {dtype} [4, 1]")]);
        }
    }
}

/// Fault: strided and transposed inputs described contiguous buffers; byte strides were sent for element strides.
#[test]
fn strided_inputs_are_strided_and_right_kernels_read_them() {
    let text = contract("silu", "strategies = [\"layout\"]\n").replace("[\"N\"]", "[\"N\", \"N\"]");
    let seen: Arc<Mutex<Vec<Layout>>> = Arc::default();
    let session = Place::new(&text).session();
    let layouts = Arc::clone(&seen);
    let session = with(session, "silu", move |call| {
        layouts.lock().unwrap().push(call.inputs[0].1.layout().clone());
        let out = values(call, "x").into_iter().map(kernel("silu")).collect();
        answer(call, out);
        Ok(())
    });
    assert_eq!(report(&session, "silu::float32::layout"), "");
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|layout| !layout.is_contiguous() && layout.len() > 1), "{seen:?}");
    // A kernel that ignores strides is caught.
    let session = with(Place::new(&text).session(), "silu", |call| {
        let tensor = &call.inputs[0].1;
        let (offset, count) = (tensor.layout().offset, tensor.layout().len());
        let memory = tensor.data::<f32>();
        let read = (0..count).map(|at| f64::from(memory[(offset + at).min(memory.len() - 1)]));
        let out = read.map(kernel("silu")).collect();
        answer(call, out);
        Ok(())
    });
    assert_has(&report(&session, "silu::float32::layout"), &["silu::float32::layout failed: ", "replay "]);
    // Element strides, whatever the size of an element.
    let session = Place::new(&text).session();
    for dtype in ["float32", "float16"] {
        let spec = format!("silu::{dtype}::layout{{N=4}} x:transposed normal seed=0000000000000005");
        let case = build::build(session.op("silu").unwrap(), &spec.parse().unwrap(), None).unwrap();
        assert_eq!(case.inputs[0].1.layout().strides, [1, 4], "{dtype}");
    }
}

/// Fault: rank-0 arrays gave raw deserialisation errors; an empty tensor aborted the process.
#[test]
fn scalars_and_empty_tensors_are_tensors() {
    let source = "import json, sys\n\
                  x = json.load(sys.stdin)['inputs']['x']\n\
                  print(json.dumps({key: x[key] for key in ('shape', 'dtype', 'data')}))\n";
    let table = [
        ("[]", "copy::float32::boundary{N=3} x:row normal seed=0000000000000005"),
        ("[\"N\"]", "copy::float32::boundary{N=0} x:row normal seed=0000000000000005"),
        ("[\"N\", 4]", "copy::float32::boundary{N=0} x:row normal seed=0000000000000005"),
        ("[3, \"N\"]", "copy::float32::layout{N=0} x:transposed normal seed=0000000000000005"),
        ("[\"N\", 4]", "copy::float32::layout{N=3} x:reversed normal seed=0000000000000005"),
    ];
    for (shape, case) in table {
        let place = Place::new("");
        place.write("copy.py", source);
        place.write(
            "gpuemu.toml",
            &format!(
                "[validation.tolerances]\nfloat32 = 1e-6\n[[ops]]\nname = \"copy\"\nreference = \"copy.py\"\nop_script = \
                 \"copy.py\"\n[ops.schema]\ndims = {{ N = {{ candidates = [0, 3], min = 0 }} }}\ninputs = {{ x = {shape} \
                 }}\noutputs = {{ out = {shape} }}\n"
            ),
        );
        assert_eq!(on(&place.session(), case), "", "{shape} {case}");
        let right = |call: &mut Call<'_>| -> Result<(), SubjectError> {
            call.outputs[0].1 = Some(call.inputs[0].1.to_contiguous());
            Ok(())
        };
        assert_eq!(on(&with(place.session(), "copy", right), case), "", "{shape} {case}");
    }
    let scalar = Array::float(DType::Float32, &[], vec![1.5]);
    assert_eq!(Tensor::from_array(&scalar, DType::Float32).to_array(), scalar);
}

/// Fault: failures carried no reproduction record.
#[test]
fn every_failure_of_a_case_can_be_replayed() {
    let place = Place::new(&contract("silu", ""));
    let broken = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&broken);
    let function = Function::from_closure(&DType::ALL, move |call| {
        let factor = if switch.load(Ordering::Relaxed) { 1.5 } else { 1.0 };
        let out = values(call, "x").into_iter().map(|x| factor * x / (1.0 + (-x).exp())).collect();
        answer(call, out);
        Ok(())
    });
    let session = place.session();
    session.bind("silu", Arc::new(function));
    for test in ["silu::float32::boundary", "silu::float16::adversarial", "silu::bfloat16::layout"] {
        broken.store(true, Ordering::Relaxed);
        let failed = finished(&session, test).failure.expect("a failure");
        let case = failed.case.expect("a case");
        assert_eq!(case.spec.test, TestName::parse(test).unwrap());
        assert!(case.replay.contains(&format!("GPUEMU_CASE='{}'", case.spec)), "{}", case.replay);
        assert_ne!(on(&session, &case.spec.to_string()), "", "the replayed case fails again");
        broken.store(false, Ordering::Relaxed);
        assert_eq!(on(&session, &case.spec.to_string()), "", "and passes once the kernel is mended");
    }
}
