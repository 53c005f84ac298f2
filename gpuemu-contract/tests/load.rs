//! Whole files, and what is read from them.

use gpuemu_contract::{
    Argument, ArtifactChecks, Bindings, Builtin, Compute, Contract, DType, Dimension, Domain, EdgePolicy, EmptyPolicy,
    ExecutionMode, Expression, Invariants, NanPolicy, OutputShape, ParamValue, Reference, Relations, Shape, Strategy,
    TensorDType, TensorDecl, TestName, Tolerance,
};
use std::path::{Path, PathBuf};

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(name)
}

fn load(name: &str) -> Contract {
    Contract::load(&project(name).join("gpuemu.toml")).unwrap_or_else(|errors| panic!("{errors}"))
}

fn parse(text: &str) -> Contract {
    Contract::parse(text, &project("seed").join("gpuemu.toml")).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The shape as written, such as `B, 2 * H`, or `...` first.
fn shape(tensor: &TensorDecl) -> String {
    let (dots, axes) = match &tensor.shape {
        OutputShape::FromReference => return "from the reference".to_owned(),
        OutputShape::Declared(Shape::Fixed(axes)) => ("", axes),
        OutputShape::Declared(Shape::AnyRank(axes)) => ("..., ", axes),
    };
    format!("{dots}{}", axes.iter().map(Expression::to_string).collect::<Vec<_>>().join(", "))
}

fn expression(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

#[test]
fn a_file_of_the_seed_loads_unchanged() {
    let contract = load("seed");
    assert_eq!(contract.project.name, "my-gpu-kernels");
    assert_eq!(contract.project.framework.as_deref(), Some("pytorch"));
    assert_eq!(contract.validation.seed, 42);
    assert_eq!(contract.policies.warn_threshold, 0.05);
    assert!(contract.policies.fail_on_regression);
    assert_eq!((contract.ci.parallel_jobs, contract.ci.thorough_timeout), (8, 3600));

    let op = contract.op("softmax").unwrap();
    assert_eq!(op.line, 12);
    assert_eq!(op.reference, Reference::Script(project("seed").join("scripts/softmax_ref.py")));
    assert_eq!(op.op_script, Some(project("seed").join("scripts/softmax_op.py")));
    assert_eq!(op.execution_mode, ExecutionMode::ScriptBased);
    assert_eq!(op.dtypes, [DType::Float32, DType::Float16]);
    assert!(op.invariants.non_negative && op.invariants.shape_preserved && !op.invariants.no_nan);
    assert_eq!(op.tolerances.get(&DType::Float32), Some(&Tolerance { absolute: 1e-5, relative: 0.0 }));
    assert_eq!(op.tolerances.get(&DType::Float16), None, "the envelope is the default");
    assert!(op.relations.inputs_untouched);
    let dims: Vec<(&str, &[u64])> =
        op.schema.dims.iter().map(|(name, dim)| (name.as_str(), dim.candidates.as_slice())).collect();
    assert_eq!(dims, [("batch", &[1, 2, 8][..]), ("sequence", &[1, 7, 128]), ("hidden", &[1, 3, 256])]);
    assert_eq!(op.schema.inputs.len(), 1);
    assert_eq!(
        (op.schema.inputs[0].name.as_str(), shape(&op.schema.inputs[0]).as_str()),
        ("logits", "batch, sequence, hidden")
    );
    assert_eq!(
        (op.schema.outputs[0].name.as_str(), shape(&op.schema.outputs[0]).as_str()),
        ("out", "from the reference")
    );

    let kernel = contract.kernel("fused_softmax").unwrap();
    assert_eq!(kernel.source, Some(project("seed").join("kernels/fused_softmax.cu")));
    assert_eq!(kernel.artifact_checks.max_registers, 48);
    assert_eq!(kernel.artifact_checks.forbidden_patterns, ["ld.local"]);
    assert_eq!(kernel.dtypes, [DType::Float32, DType::Float16]);
    assert!(kernel.op.is_none() && kernel.launch.is_none());
    assert!(contract.kernel("softmax").is_none());
}

#[test]
fn an_op_and_its_launch() {
    let contract = load("own");
    let op = contract.op("softmax").unwrap();
    assert_eq!(op.reference, Reference::Builtin("softmax".to_owned()));
    assert_eq!(op.compute_for(DType::Float64), Compute::Float32, "a written precision holds for every dtype");
    assert_eq!(op.schema.dims[2].1, Dimension { candidates: vec![1, 3, 256, 1025], tile: Some(128), min: 1 });
    assert_eq!(op.params[0].candidates, [ParamValue::Int(-1)]);
    assert_eq!((op.invariants.clone(), op.relations.clone()), (Invariants::default(), Relations::default()));
    let kernel = contract.kernel("softmax_rows").unwrap();
    assert_eq!(kernel.targets, ["sm_80", "sm_90"]);
    let launch = kernel.launch.as_ref().unwrap();
    assert_eq!(launch.grid, [expression("B*S")]);
    assert_eq!(launch.args[0], Argument::Tensor("x".to_owned()));
    assert_eq!(launch.args[2], Argument::Integer(expression("H")));
}

#[test]
fn every_key() {
    let contract = load("whole");
    assert_eq!(contract.project.version.as_deref(), Some("0.3.0"));
    assert_eq!(contract.validation.seed, u64::MAX);
    assert_eq!(contract.validation.tolerances[&DType::BFloat16], Tolerance { absolute: 1e-2, relative: 2e-2 });
    assert!(!contract.validation.check_nan && !contract.validation.check_inf);
    assert!(!contract.policies.fail_on_regression && contract.policies.accuracy);
    assert_eq!(contract.ci.quick_dtypes, [DType::Float16]);

    let op = contract.op("scale").unwrap();
    let module = "package.module".to_owned();
    assert_eq!(op.reference, Reference::Function { module, function: "scale".to_owned() });
    assert_eq!(op.module.as_deref(), Some("package.kernels:scale"));
    assert_eq!(op.execution_mode, ExecutionMode::DaemonOrchestrated);
    assert_eq!(op.compute, Some(Compute::BFloat16));
    assert_eq!((op.cases, op.check_nan, op.check_inf), (3, true, true));
    assert_eq!(op.dtypes, [DType::Float32], "single_dtype_f32 keeps float32 alone");
    assert_eq!(op.strategies, [Strategy::Structured], "and is no test itself");
    assert_eq!(op.edges, EdgePolicy { nan: NanPolicy::Ignore, empty: EmptyPolicy::Zero });
    assert_eq!(op.tolerances[&DType::Float32], Tolerance { absolute: 0.0, relative: 1e-3 }, "the op's own wins");
    assert_eq!(op.tolerances[&DType::BFloat16].relative, 2e-2, "the others stay");
    assert_eq!(op.invariants.rows_sum_to, Some(1.0));
    assert_eq!(op.invariants.bounded, Some((0.0, f64::INFINITY)));
    assert_eq!(op.relations.permutes.as_deref(), Some("H"));
    assert!(op.relations.deterministic && !op.relations.inputs_untouched);
    assert_eq!(op.params[0].candidates, [ParamValue::Float(1e-5), ParamValue::Float(1e-12)]);
    assert_eq!(op.params[1].candidates, [ParamValue::Bool(true), ParamValue::Bool(false)]);
    assert_eq!(op.params[3].candidates, [ParamValue::Text("fast".to_owned())]);

    let schema = &op.schema;
    assert_eq!(schema.dims[1].1, Dimension { candidates: vec![0, 2, 64], tile: Some(32), min: 0 });
    assert_eq!(schema.dims[2].1, Dimension { candidates: vec![16], tile: None, min: 1 });
    assert_eq!(schema.constraints[1].to_string(), "B <= 4 or causal == 0");
    let names: Vec<&str> = schema.inputs.iter().map(|input| input.name.as_str()).collect();
    let written = ["z", "a", "ids", "rows", "order", "hot", "p", "s", "r", "up", "one", "holes", "own", "state"];
    assert_eq!(names, written, "the order of the file, not of the alphabet");
    let input = |name| schema.input(name).unwrap();
    assert_eq!(shape(input("z")), "..., H");
    assert_eq!(shape(input("a")), "B, 2 * H, D");
    assert_eq!(shape(input("s")), "");
    assert_eq!(input("z").layouts.as_deref(), Some(&["row".to_owned(), "sliced".to_owned()][..]));
    assert_eq!(input("own").generate.as_deref(), Some("package.values:own"));
    assert_eq!(input("ids").dtype, TensorDType::Fixed(DType::Int32));
    assert_eq!(input("a").dtype, TensorDType::Same);
    let integers = |low, high| Domain::IntegerRange(expression(low), expression(high));
    for (name, domain) in [
        ("ids", integers("0", "max(H, 1) - 1")),
        ("rows", Domain::Offsets(expression("H"))),
        ("order", Domain::Permutation),
        ("hot", Domain::OneHot),
        ("p", Domain::Probability),
        ("s", Domain::Positive),
        ("r", Domain::FloatRange(-1.0, 1.5)),
        ("up", Domain::Sorted(expression("0"), expression("9"))),
        ("one", Domain::Unique(expression("0"), expression("D"))),
        ("holes", Domain::Sentinel(Box::new(integers("0", "D - 1")), -1)),
    ] {
        assert_eq!(input(name).domain, Some(domain), "{name}");
    }
    let results: Vec<&str> = schema.results().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(results, ["state", "y", "n"]);

    let kernel = contract.kernel("scale").unwrap();
    assert_eq!(kernel.tolerances[&DType::Float16].absolute, 0.5);
    assert_eq!(kernel.tolerances[&DType::Float32].relative, 1e-3, "those of the op stay");
    assert!(kernel.invariants.no_nan && !kernel.invariants.non_negative, "written invariants replace those of the op");
    let checks = ArtifactChecks {
        max_registers: 48,
        max_spills: 1,
        max_local_memory: 16,
        required_patterns: vec!["mma".to_owned()],
        forbidden_patterns: vec!["ld.local".to_owned(), "f64".to_owned()],
    };
    assert_eq!(kernel.artifact_checks, checks);
    assert_eq!(kernel.compile_options, ["-O2", "--use_fast_math"]);
    assert_eq!(
        kernel.budget.iter().map(|(metric, change)| (metric.as_str(), *change)).collect::<Vec<_>>(),
        [("instructions", 0.2)]
    );
    assert_eq!(kernel.allow["spill-in-loop"], "the loop runs once");
    let launch = kernel.launch.as_ref().unwrap();
    let typed = |kind: &str, value: &str| Argument::Typed(kind.to_owned(), value.to_owned());
    assert_eq!(launch.grid[0].evaluate(&bindings(&[("B", 3), ("H", 100)])), Ok(3));
    assert_eq!(
        launch.args[3..],
        [Argument::Integer(Expression::Literal(7)), typed("f32", "0.5"), typed("f32", "eps"), typed("s64", "-1"),]
    );

    let topk = contract.op("topk").unwrap();
    assert_eq!(topk.schema.inputs.iter().map(|input| &input.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(topk.schema.inputs[0].shape, topk.schema.inputs[1].shape, "all of one shape");
    let pick = contract.op("pick").unwrap();
    assert_eq!(shape(&pick.schema.inputs[1]), "batch, sequence");
    assert_eq!(pick.schema.inputs[1].domain, Some(integers("0", "vocabulary - 1")));
}

fn bindings(pairs: &[(&str, i64)]) -> Vec<(String, i64)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn defaults_of_an_empty_file() {
    let contract = parse("");
    assert_eq!(contract.project.name, "unnamed");
    assert_eq!(contract.validation.dtypes, [DType::Float32]);
    assert_eq!((contract.validation.seed, contract.validation.cases), (42, 30));
    assert_eq!(contract.validation.strategies, [Strategy::Boundary, Strategy::Adversarial, Strategy::Layout]);
    assert!(contract.validation.check_nan && contract.validation.check_inf);
    assert!(contract.validation.tolerances.is_empty());
    assert_eq!((contract.policies.fail_on_regression, contract.policies.warn_threshold), (true, 0.1));
    assert_eq!((contract.ci.thorough_timeout, contract.ci.parallel_jobs), (3600, 4));
    assert!(contract.ops.is_empty() && contract.kernels.is_empty() && contract.tests().is_empty());
}

#[test]
fn what_strategies_and_dtypes_are_tests() {
    for (strategies, dtypes, tests) in [
        (r#"["default"]"#, r#"["float32", "float16"]"#, &["o::float16::default", "o::float32::default"][..]),
        (r#"["single_dtype_f32"]"#, r#"["float32", "float16"]"#, &["o::float32::default"]),
        (r#"["single_dtype_f16", "edge"]"#, r#"["float32", "float16"]"#, &["o::float16::edge"]),
        (
            r#"["single_dtype_f16", "single_dtype_f32"]"#,
            r#"["float64", "float32", "float16"]"#,
            &["o::float16::default", "o::float32::default"],
        ),
        (r#"["edge", "edge"]"#, r#"["int8", "int8"]"#, &["o::int8::edge"]),
    ] {
        let contract = parse(&format!(
            "[validation]\nstrategies = {strategies}\ndtypes = {dtypes}\n[[ops]]\nname = \"o\"\nreference = \"relu\"\n"
        ));
        let names: Vec<String> = contract.tests().iter().map(TestName::to_string).collect();
        assert_eq!(names, tests, "{strategies} {dtypes}");
    }
}

#[test]
fn a_test_by_name_is_one_of_those_listed() {
    let contract = load("own");
    let listed = contract.tests();
    assert_eq!(listed.len(), 9);
    assert!(listed.is_sorted_by_key(TestName::to_string));
    for test in &listed {
        assert_eq!(contract.test(&test.to_string()).as_ref(), Some(test));
    }
    for name in [
        "",
        "softmax",
        "softmax::float32",
        "softmax::float32::edge",
        "softmax::float64::layout",
        "softmax::float32::layout::",
        "Softmax::float32::layout",
        "softmax::float32::layout ",
    ] {
        assert_eq!(contract.test(name), None, "{name:?}");
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
    let plain = std::fs::read_to_string(project("own").join("gpuemu.toml")).unwrap();
    let windows = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
    let path = project("own").join("gpuemu.toml");
    assert_eq!(Contract::parse(&windows, &path), Contract::parse(&plain, &path));
}

#[test]
fn the_file_is_found_upwards() {
    let file = project("seed").join("gpuemu.toml");
    assert_eq!(Contract::find(&project("seed")), Ok(file.clone()));
    assert_eq!(Contract::find(&project("seed").join("scripts")), Ok(file));
    // A folder that is a symbolic link's or a missing one's ancestor is no matter; the root of the disk has no file.
    let errors = Contract::find(Path::new("/")).unwrap_err().to_string();
    assert_eq!(
        errors,
        "/: no gpuemu.toml here or in any folder above\n  = write a gpuemu.toml beside Cargo.toml or pyproject.toml, or set GPUEMU_CONFIG to one"
    );
}

/// What the smallest and the largest sizes make of a shape.
fn extents(tensor: &TensorDecl, bindings: &Bindings) -> Vec<i64> {
    match &tensor.shape {
        OutputShape::Declared(Shape::Fixed(axes) | Shape::AnyRank(axes)) => {
            axes.iter().map(|axis| axis.evaluate(bindings).unwrap()).collect()
        }
        OutputShape::FromReference => Vec::new(),
    }
}

#[test]
fn every_built_in_has_sensible_shapes_of_its_own() {
    for builtin in Builtin::ALL {
        let groups = if builtin.param("groups").is_some_and(|param| param.default.value().is_none()) {
            "[ops.params]\ngroups = [1, 4]\n"
        } else {
            ""
        };
        let contract = parse(&format!("[[ops]]\nname = \"o\"\nreference = \"{}\"\n{groups}", builtin.name));
        let schema = &contract.ops[0].schema;
        assert_eq!(schema.inputs.len(), builtin.inputs.len(), "{}", builtin.name);
        for most in [false, true] {
            let size = |dim: &Dimension| {
                let sizes = dim.candidates.iter().copied();
                if most { sizes.max() } else { sizes.min() }
            };
            let mut sizes: Vec<(String, i64)> =
                schema.dims.iter().map(|(name, dim)| (name.clone(), size(dim).unwrap() as i64)).collect();
            sizes.push(("groups".to_owned(), if most { 4 } else { 1 }));
            for (input, role) in schema.inputs.iter().zip(builtin.inputs) {
                let extents = extents(input, &sizes);
                assert_eq!(extents.len(), role.shape.len(), "{} {}", builtin.name, role.name);
                assert!(extents.iter().all(|size| *size > 0), "{} {}: {extents:?}", builtin.name, role.name);
                assert!(extents.iter().product::<i64>() <= 2_000_000, "{} {}: {extents:?}", builtin.name, role.name);
            }
        }
    }
}

#[test]
fn built_ins_are_named_once_and_optional_inputs_stand_last() {
    for (position, builtin) in Builtin::ALL.iter().enumerate() {
        assert!(Builtin::ALL[..position].iter().all(|other| other.name != builtin.name), "{}", builtin.name);
        assert!(builtin.inputs[..builtin.min_inputs()].iter().all(|role| !role.optional), "{}", builtin.name);
        for param in builtin.params {
            assert!(param.default.value().is_none_or(|value| param.default.accepts(&value)), "{}", builtin.name);
        }
    }
    assert_eq!(Builtin::ALL.len(), 40);
}

#[test]
fn an_integer_is_taken_for_a_float_parameter() {
    let contract = parse("[[ops]]\nname = \"o\"\nreference = \"rms_norm\"\n[ops.params]\neps = [0, 1e-6]\n");
    assert_eq!(contract.ops[0].params[0].candidates, [ParamValue::Float(0.0), ParamValue::Float(1e-6)]);
}
