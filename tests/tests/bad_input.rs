//! What a person can get wrong, and what the world can do to them: nothing panics, nothing hangs, nothing that was
//! written is lost, and every message names the thing, the place and the way out.
//!
//! Needs Python 3 and nothing beside its standard library. What scripts and workers can do wrong in themselves is told
//! in the harness's own suites; here it arrives in the report of a test.

use gpuemu_contract::{DType, TestName};
use gpuemu_harness::case::spec::Spec;
use gpuemu_harness::mirror::script::Script;
use gpuemu_harness::pipeline::session::Session;
use gpuemu_harness::pipeline::trial;
use gpuemu_harness::project::ProjectSuite;
use gpuemu_harness::python::Python;
use gpuemu_harness::report::{regressions, results};
use gpuemu_harness::subject::function::Function;
use gpuemu_harness::subject::script::ScriptSubject;
use gpuemu_harness::suite::{Suite, Totals};
use gpuemu_harness::{Call, Layout, SubjectError, Tensor};
use gpuemu_tests::programs::{Ran, program, ran};
use gpuemu_tests::sessions::{Place, answer, answer_in, assert_has, finished, report, suite_report, values, with};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// One op with the built-in reference `silu`; `NAME` is the project's.
const SILU: &str = r#"
[project]
name = "NAME"

[validation]
dtypes = ["float32"]
strategies = ["boundary"]
cases = 5

[[ops]]
name = "silu"
reference = "silu"
[ops.schema]
dims = { B = [1, 3], N = [1, 33] }
inputs = { x = ["B", "N"] }
outputs = { out = ["B", "N"] }
"#;

const TEST: &str = "silu::float32::boundary";

/// A case of that op, at twelve elements.
const CASE: &str = "silu::float32::boundary{B=3,N=4} x:row normal seed=9f3c5a7700112233";

fn silu(call: &mut Call<'_>) -> Result<(), SubjectError> {
    let out = values(call, "x").into_iter().map(|x| x / (1.0 + (-x).exp())).collect();
    answer(call, out);
    Ok(())
}

/// Wrong in every element that is not zero.
fn half_silu(call: &mut Call<'_>) -> Result<(), SubjectError> {
    let out = values(call, "x").into_iter().map(|x| 0.5 * x / (1.0 + (-x).exp())).collect();
    answer(call, out);
    Ok(())
}

fn place() -> Place {
    Place::new(SILU)
}

fn suite(session: Session) -> ProjectSuite {
    ProjectSuite::new(session).unwrap_or_else(|error| panic!("{error}"))
}

/// The report on one case.
fn report_on(session: &Session, case: &str) -> String {
    let spec: Spec = case.parse().unwrap();
    let failure = trial::run(session, &spec.test.clone(), Some(&spec)).failure;
    failure.map(|report| report.render()).unwrap_or_default()
}

#[test]
fn a_right_kernel_passes_here() {
    assert_eq!(report(&with(place().session(), "silu", silu), TEST), "");
}

#[test]
fn a_contract_that_is_wrong_is_no_session() {
    let table: &[(&str, &str, &[&str])] = &[
        ("[validation]", "[validation", &["gpuemu.toml:5", "[validation"]),
        ("dtypes", "dtyps", &["gpuemu.toml:6", "dtyps", "`dtypes`"]),
        ("dims =", "dim =", &["gpuemu.toml:14", "dim", "`dims`"]),
        ("reference = \"silu\"\n", "", &["gpuemu.toml:10", "reference"]),
        ("reference = \"silu\"", "reference = \"sliu\"", &["gpuemu.toml:12", "sliu", "`silu`"]),
        (
            "reference = \"silu\"",
            "reference = \"scripts/silu.py\"",
            &["gpuemu.toml:12", "scripts/silu.py", "does not exist"],
        ),
        ("float32", "flaot32", &["gpuemu.toml:6", "flaot32", "`float32`"]),
        ("cases = 5", "cases = 5\ntolerances = { float32 = nan }", &["gpuemu.toml:9", "nan"]),
        ("cases = 5", "cases = 0", &["gpuemu.toml:8", "0"]),
        ("[[ops]]", "[[ops]]\nname = \"silu\"\nreference = \"silu\"\n[[ops]]", &["gpuemu.toml:14", "two", "`silu`"]),
        ("N = [1, 33]", "N = []", &["gpuemu.toml:14", "N"]),
    ];
    for (from, to, parts) in table {
        let place = Place::new(&SILU.replacen(from, to, 1));
        let Err(error) = place.open() else { panic!("{to} was read") };
        assert_eq!(error.code(), "ConfigError", "{to}");
        assert_has(&error.to_string(), parts);
    }
    // Several at once, and no contract at all.
    let place = Place::new(&SILU.replace("cases", "cses").replace("reference", "refrence"));
    assert_has(&place.open().err().unwrap().to_string(), &["`cases`", "`reference`"]);
    fs::remove_file(place.path().join("gpuemu.toml")).unwrap();
    assert_has(&place.open().err().unwrap().to_string(), &["no gpuemu.toml here or in any folder above"]);
}

#[test]
fn an_op_that_nothing_computes_fails() {
    let message = report(&place().session(), TEST);
    assert_has(&message, &[TEST, "nothing computes op `silu`", "gpuemu.toml:10", "#[gpuemu_harness::op(\"silu\")]"]);
    assert_has(&message, &["`op_script`", "[ConfigError]"]);

    let session = place().session();
    let half = Function::from_closure(&[DType::Float16], silu).described("function silu_half");
    session.bind("silu", Arc::new(half));
    assert_has(&report(&session, TEST), &["function silu_half has no version for float32", "gpuemu.toml:10"]);
}

/// What scripts of these tests begin with: the request, and answers from values.
const SCRIPT: &str = "\
import base64, json, struct, sys
x = json.load(sys.stdin)['inputs']['x']
code = {'float64': 'd', 'float32': 'f'}[x['dtype']]
data = base64.b64decode(x['data'])
values = struct.unpack('<%d%s' % (len(data) // struct.calcsize(code), code), data)
def tell(values, shape=x['shape'], dtype=x['dtype'], code=code):
    data = base64.b64encode(struct.pack('<%d%s' % (len(values), code), *values)).decode()
    print(json.dumps({'shape': shape, 'dtype': dtype, 'data': data}))
";

#[test]
fn what_a_reference_script_does_wrong_is_in_the_report() {
    let table: &[(&str, &[&str])] = &[
        ("sys.exit(3)", &["exited with status 3", "printed nothing to standard error"]),
        ("raise ValueError('no such axis')", &["exited with status 1", "ValueError: no such axis"]),
        ("print('oh dear')", &["not a JSON object", "oh dear"]),
        ("print('{\"shape\": [1')", &["half a JSON object"]),
        ("tell(values[:-1], [len(values) - 1])", &["answered out of shape", "op `silu` declares"]),
        ("tell(values, dtype='float16')", &["bytes of data for shape", "of float16"]),
        ("tell([int(0 * v) for v in values if v == v] , dtype='int64', code='q')", &["int64"]),
        ("tell(values[1:])", &["bytes of data for shape"]),
    ];
    let contract = SILU.replace("reference = \"silu\"", "reference = \"ref.py\"");
    for (source, parts) in table {
        let place = Place::new("");
        place.write("ref.py", &format!("{SCRIPT}{source}\n"));
        place.write("gpuemu.toml", &contract);
        let message = report_on(&with(place.session(), "silu", silu), CASE);
        assert_has(&message, &[TEST, "ref.py", "[ReferenceScriptFailed]"]);
        assert_has(&message, parts);
    }
    // Gone between the reading of the contract and its use.
    let place = Place::new("");
    place.write("ref.py", "");
    place.write("gpuemu.toml", &contract);
    let session = with(place.session(), "silu", silu);
    fs::remove_file(place.path().join("ref.py")).unwrap();
    assert_has(&report_on(&session, CASE), &["op silu: there is no reference script", "ref.py", "[NotFound]"]);
}

#[test]
fn what_a_script_under_test_does_wrong_is_in_the_report() {
    let table: &[(&str, &[&str])] = &[
        ("sys.exit('no device')", &["exited with status 1", "no device"]),
        ("print('<html>')", &["not a JSON object", "<html>"]),
        ("tell(values[:2], [2])", &["out has shape [2], the mirror [3, 4]"]),
        ("tell(values, dtype='float64', code='d')", &["out is float64, it should be float32"]),
        ("tell([v * 0.0 for v in values])", &["differ"]),
    ];
    for (source, parts) in table {
        let place = Place::new("");
        place.write("op.py", &format!("{SCRIPT}{source}\n"));
        place.write("gpuemu.toml", &SILU.replace("[ops.schema]", "op_script = \"op.py\"\n[ops.schema]"));
        let message = report_on(&place.session(), CASE);
        assert_has(&message, &[TEST, "script op.py"]);
        assert_has(&message, parts);
    }

    let place = place();
    place.write("op.py", "import time; time.sleep(600)");
    let session = place.session();
    let python = Python::new(session.environment().python.as_deref());
    let script = Script::new(&place.path().join("op.py"), place.path(), python);
    let script = Script { timeout: Duration::from_secs(1), ..script };
    session.bind("silu", Arc::new(ScriptSubject::new(script, Vec::new())));
    assert_has(&report_on(&session, CASE), &["script op.py did not finish within 1s and was ended"]);
}

#[test]
fn what_a_kernel_does_wrong_is_in_the_report() {
    type Kernel = fn(&mut Call<'_>) -> Result<(), SubjectError>;
    let table: [(&str, Kernel, &[&str]); 7] = [
        ("panics", |call| panic!("row {} is empty", values(call, "x").len()), &["panicked at", "row 12 is empty"]),
        (
            "refuses",
            |_| Err(SubjectError { kind: "refused", message: "no such device".into(), fault: false }),
            &["no such device"],
        ),
        (
            "NaN",
            |call| {
                let count = values(call, "x").len();
                answer(call, vec![f64::NAN; count]);
                Ok(())
            },
            &["NaN", "12 of 12"],
        ),
        (
            "short",
            |call| {
                answer_in(call, &[2], vec![0.0; 2]);
                Ok(())
            },
            &["out has shape [2], the mirror [3, 4]"],
        ),
        (
            "wide",
            |call| {
                call.outputs[0].1 = Some(Tensor::zeros(DType::Float64, Layout::contiguous(&[3, 4])));
                Ok(())
            },
            &["out is float64, it should be float32"],
        ),
        (
            "nothing",
            |call| {
                call.outputs[0].1 = None;
                Ok(())
            },
            &["returned nothing for out"],
        ),
        ("idle", |_| Ok(()), &["out", "never written"]),
    ];
    for (what, kernel, parts) in table {
        let message = report_on(&with(place().session(), "silu", kernel), CASE);
        assert_has(&message, &[TEST, "closure", "GPUEMU_CASE='silu::float32::boundary{B=3,N=4}"]);
        assert_has(&message, parts);
        for noise in ["backtrace", "RUST_BACKTRACE", "thread '"] {
            assert!(!message.contains(noise), "{what}: {message}");
        }
    }
    let panics = report_on(&with(place().session(), "silu", table[0].1), CASE);
    assert_has(&panics, &["bad_input.rs:"]);
}

/// The suite of `contract` when `GPUEMU_CASE` is `case`, or why there is none.
fn suite_of_case(contract: &str, case: &str) -> Result<ProjectSuite, gpuemu_harness::Error> {
    let place = Place::new(contract);
    let session = place.open_with(|environment| environment.case = Some(case.to_owned()))?;
    let suite = ProjectSuite::new(session)?;
    suite.test_of_case(case).map(|_| suite)
}

#[test]
fn a_typo_in_any_part_of_a_spec_is_shown_with_the_nearest_spelling() {
    let contract = SILU.replace("silu", "softmax").replace(
        "outputs = { out = [\"B\", \"N\"] }",
        "outputs = { out = [\"B\", \"N\"] }\n[ops.params]\naxis = [-1, 0]",
    );
    let line = "softmax::float32::boundary{B=1,N=33;axis=-1} x:row normal seed=9f3c5a7700112233 x[0,2]=inf";
    assert!(suite_of_case(&contract, line).is_ok());
    // (what is written, what is written instead, parts of the message)
    let read: &[(&str, &str, &[&str])] = &[
        ("softmax", "sotfmax", &["no op `sotfmax`", "did you mean `softmax`?"]),
        ("float32", "flaot32", &["column 10", "did you mean `float32`?"]),
        ("boundary", "boundry", &["column 19", "did you mean `boundary`?"]),
        ("B=1", "B=one", &["column 30", "a size", "`one,N=33"]),
        ("B=1", "B=99999999999999999999", &["column 30", "a size"]),
        ("axis=-1", "axis=minus", &["column 42", "a parameter's value"]),
        ("x:row", "x:rwo", &["did you mean `row`?"]),
        ("normal", "noraml", &["did you mean `normal`?"]),
        ("seed=", "sede=", &["or `seed=`", "`sede="]),
        ("seed=9f3c", "seed=xyz", &["a seed of up to 16 hexadecimal digits"]),
        ("x[0,2]", "y[0,2]", &["an edit of an input of this spec"]),
        ("[0,2]", "[0;2]", &["`]=`", "`;2]=inf`"]),
        ("=inf", "=infinte", &["a number, inf, -inf or NaN", "`infinte`"]),
        ("{B=1", "(B=1", &["`{`"]),
        (line, "@gpuemu-regressions/softmax/123456.toml", &["no regression file gpuemu-regressions/softmax/123456"]),
    ];
    for (from, to, parts) in read {
        let Err(error) = suite_of_case(&contract, &line.replacen(from, to, 1)) else { panic!("{to} was read") };
        assert_has(&error.to_string(), parts);
    }
    // Known only once the op is: the test that the spec names fails with it.
    let built: &[(&str, &str, &[&str])] = &[
        ("N=33", "M=33", &["op `softmax` has no dimension `M`"]),
        ("axis=", "axes=", &["op `softmax` has no parameter `axes`", "did you mean `axis`?"]),
        ("x:row normal", "xx:row normal", &["op `softmax` has no input `xx`", "did you mean `x`?"]),
        ("B=1", "B=0", &["dimension B=0 is below its `min`, 1"]),
        ("x[0,2]", "x[0,33]", &["`x[0,33]=inf` is outside of its tensor", "[1, 33]"]),
        ("N=33", "N=4611686018427387904", &["tensor `x`", "more than 2^30 elements"]),
        ("B=1,N=33", "B=8589934592,N=8589934592", &["tensor `x`", "more than 2^30 elements"]),
    ];
    for (from, to, parts) in built {
        let mut case = line.replacen(from, to, 1);
        if *to == "xx:row normal" {
            case = case.replace(" x[0,2]=inf", "");
        }
        let suite = suite_of_case(&contract, &case).unwrap_or_else(|error| panic!("{case}: {error}"));
        // No kernel is needed to see it, and none is bound: the case comes second.
        let session = with(Place::new(&contract).session(), "softmax", silu);
        let message = report_on(&session, &case);
        assert_has(&message, parts);
        assert_has(&suite_report(&suite, "softmax::float32::boundary"), &["nothing computes op `softmax`"]);
    }
}

#[test]
fn sizes_that_no_memory_holds_are_told_before_anything_is_allocated() {
    let of = |sizes: &str| Place::new(&SILU.replace("B = [1, 3], N = [1, 33]", sizes));
    // A product that overflows is in the file; a single size is met when cases are chosen.
    let error = of("B = [4294967296], N = [4294967296]").open().err().unwrap().to_string();
    assert_has(&error, &["gpuemu.toml:15", "`x` has more bytes than 64 bits count at B=4294967296, N=4294967296"]);
    let session = with(of("B = [1], N = [1099511627776]").session(), "silu", silu);
    assert_has(&report(&session, TEST), &[TEST, "op `silu` has no case", "N from [1099511627776]"]);
}

#[test]
fn an_output_without_elements_passes_among_others_and_fails_alone() {
    let sizes = |sizes: &str| SILU.replace("N = [1, 33]", &format!("N = {{ candidates = {sizes}, min = 0 }}"));
    let among = with(Place::new(&sizes("[0, 5]")).session(), "silu", silu);
    let run = finished(&among, TEST);
    assert!(run.failure.is_none(), "{:?}", run.failure);
    assert!(run.lines.iter().any(|line| line.spec.contains("N=0")), "an empty case is among those that ran");
    let alone = with(Place::new(&sizes("[0]")).session(), "silu", silu);
    assert_has(&report(&alone, TEST), &[TEST, "no element of out was compared in any case", "larger than 0"]);
}

/// Runs of another process: this binary with this test alone.
#[test]
#[ignore = "a process of other tests, which give it its folder"]
fn a_run_that_fails() {
    let folder = std::env::var("BAD_INPUT_FOLDER").unwrap();
    let contract = gpuemu_contract::Contract::load(&Path::new(&folder).join("gpuemu.toml")).unwrap();
    let session = Session::new(contract, Default::default()).unwrap();
    let message = suite_report(&suite(with(session, "silu", half_silu)), TEST);
    assert_has(&message, &[TEST, "saved    gpuemu-regressions/silu/"]);
    assert!(!message.contains("not saved") && !message.contains("not written"), "{message}");
}

#[test]
fn processes_that_save_the_same_regression_leave_one_whole_file() {
    let place = Place::new(&SILU.replace("NAME", "bad input, several processes"));
    let mut command = program(std::env::current_exe().unwrap());
    command.args(["--exact", "a_run_that_fails", "--include-ignored"]).env("BAD_INPUT_FOLDER", place.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running: Vec<_> = (0..4).map(|_| command.spawn().unwrap()).collect();
    for process in running {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let Ran { out, .. } = ran(&mut command);
    assert_has(&out, &["1 passed"]);
    let saved = place.regressions("silu");
    assert_eq!(saved.len(), 1, "{saved:?}");
    let regression = regressions::load(place.path(), &saved[0]).unwrap();
    assert_eq!(regression.spec.test, TestName::parse(TEST).unwrap());
    let folder = place.path().join("gpuemu-regressions/silu");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "no temporary file stays");
}

/// Lines of the results of the test.
fn results_of(folder: &Path) -> usize {
    let path = folder.join("silu.float32.boundary.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.len()
}

#[test]
fn a_failure_is_reported_where_regressions_cannot_be_written() {
    let name = "bad input, no folder";
    let place = Place::new(&SILU.replace("NAME", name));
    place.write("gpuemu-regressions", "a file in the place of the folder");
    let suite = suite(with(place.session(), "silu", half_silu));
    let message = suite_report(&suite, TEST);
    assert_has(
        &message,
        &[TEST, "replay   GPUEMU_CASE=", "first ", "note ", "not saved: cannot", "gpuemu-regressions"],
    );
    assert!(results_of(&results::folder(place.path(), name)) > 0);
    assert_eq!(
        fs::read_to_string(place.path().join("gpuemu-regressions")).unwrap(),
        "a file in the place of the folder"
    );
    // That saved failures cannot be read is a failure too.
    let listed: Vec<String> = suite.tests().into_iter().map(|test| test.name).collect();
    assert!(listed.contains(&"silu::regressions".to_owned()), "{listed:?}");
    assert!(suite.resolve("silu::regressions").is_some());
    assert_has(&suite_report(&suite, "silu::regressions"), &["silu::regressions failed: cannot read"]);
}

#[test]
fn results_that_cannot_be_written_are_told() {
    let name = "bad input, no results";
    let place = Place::new(&SILU.replace("NAME", name));
    let folder = results::folder(place.path(), name);
    let _ = fs::remove_file(&folder);
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let right = suite(with(place.session(), "silu", silu));
    assert_eq!(suite_report(&right, TEST), "");
    let told = right.finish(&Totals::default()).unwrap().join("\n");
    assert_has(&told, &["warning: results not written: cannot write", "silu.float32.boundary.jsonl"]);
    let wrong = suite(with(place.session(), "silu", half_silu));
    assert_has(&suite_report(&wrong, TEST), &["note ", "results not written: cannot write", "saved "]);
    fs::remove_file(&folder).unwrap();
}

/// A disk of 64 KiB; dropping it takes it away.
#[cfg(target_os = "linux")]
struct Disk {
    folder: tempfile::TempDir,
}

#[cfg(target_os = "linux")]
impl Disk {
    /// `None` where this process may not mount one.
    fn new() -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = program("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(folder.path());
        let mounted = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        mounted.then(|| Disk { folder })
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.folder.path().join("filling")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }
}

#[cfg(target_os = "linux")]
impl Drop for Disk {
    fn drop(&mut self) {
        let _ = program("umount").arg(self.folder.path()).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing_that_was_written() {
    let Some(disk) = Disk::new() else {
        eprintln!("not run: only root may mount a small disk");
        return;
    };
    let root = disk.folder.path();
    let name = "bad input, full disk";
    fs::write(root.join("gpuemu.toml"), SILU.replace("NAME", name)).unwrap();
    // The results lie on it as well.
    let folder = results::folder(root, name);
    let _ = fs::remove_file(&folder);
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::create_dir(root.join("results")).unwrap();
    std::os::unix::fs::symlink(root.join("results"), &folder).unwrap();
    let open = || {
        let contract = gpuemu_contract::Contract::load(&root.join("gpuemu.toml")).unwrap();
        Session::new(contract, Default::default()).unwrap()
    };

    let first = suite(with(open(), "silu", half_silu));
    assert_has(&suite_report(&first, TEST), &["saved    gpuemu-regressions/silu/"]);
    let saved = regressions::list(root, "silu").unwrap();
    let lines = results_of(&folder);
    assert_eq!(saved.len(), 1);
    disk.fill();

    // Another fault, so that there is another case to save.
    let second = suite(with(open(), "silu", |call| {
        let out = values(call, "x").into_iter().map(|x| x / (1.0 + (-x).exp()) + f64::from(u8::from(x < -0.5)));
        let out = out.collect();
        answer(call, out);
        Ok(())
    }));
    let message = suite_report(&second, TEST);
    assert_has(
        &message,
        &[TEST, "replay   GPUEMU_CASE=", "first ", "not saved: cannot write", "No space left on device"],
    );
    assert_has(&message, &["results not written: cannot write"]);
    assert_eq!(regressions::list(root, "silu").unwrap(), saved);
    assert!(regressions::load(root, &saved[0]).is_ok());
    assert_eq!(results_of(&folder), lines);
    let left = |folder: PathBuf| fs::read_dir(folder).unwrap().count();
    assert_eq!((left(root.join("results")), left(root.join("gpuemu-regressions/silu"))), (1, 1), "no temporary files");
    fs::remove_file(&folder).unwrap();
}

#[test]
fn a_regression_file_that_is_no_good_fails_as_a_test_of_its_own() {
    let good = format!("version = 1\nspec = {CASE:?}\ncheck = \"values\"\nmessage = \"out differs\"\n");
    let with_inputs = format!("{good}inputs = \"a.safetensors\"\n");
    // (folder, text, parts of the report)
    let table: &[(&str, &str, &[&str])] = &[
        ("silu", "version = ", &["gpuemu-regressions/silu/a.toml", "[ConfigError]"]),
        ("silu", "", &["gpuemu-regressions/silu/a.toml", "version"]),
        (
            "silu",
            "version = 7\nshapes = [1]\n",
            &[
                "gpuemu-regressions/silu/a.toml: regression format 7, this gpuemu reads 1",
                "update",
                "[VersionMismatch]",
            ],
        ),
        ("silu", &good.replace("spec", "sepc"), &["a.toml", "sepc"]),
        ("silu", &good.replace("normal", "noraml"), &["a.toml", "column", "did you mean `normal`?"]),
        (
            "silu",
            &good.replace("float32", "float16"),
            &["a.toml", "op `silu` is not declared for float16", "delete the file"],
        ),
        ("silu", &good.replace("N=4", "M=4"), &["a.toml", "op `silu` has no dimension `M`", "delete the file"]),
        (
            "sliu",
            &good.replace("silu", "sliu"),
            &["sliu::regressions::a", "no op `sliu`", "did you mean `silu`?", "delete the file", "[OpNotFound]"],
        ),
        ("silu", &with_inputs, &["a.toml", "a.safetensors", "No such file", "restore that file, or delete both"]),
    ];
    for (folder, text, parts) in table {
        let place = place();
        place.write(&format!("gpuemu-regressions/{folder}/a.toml"), text);
        let suite = suite(with(place.session(), "silu", silu));
        let name = format!("{folder}::regressions::a");
        let listed: Vec<String> = suite.tests().into_iter().map(|test| test.name).collect();
        assert!(listed.contains(&name), "{listed:?}");
        assert_has(&suite_report(&suite, &name), parts);
    }

    let place = place();
    place.write("gpuemu-regressions/silu/good.toml", &good);
    let right = suite(with(place.session(), "silu", silu));
    assert_eq!(suite_report(&right, "silu::regressions::good"), "");
    // A snapshot that is none, and one of another shape.
    place.write("gpuemu-regressions/silu/a.toml", &with_inputs);
    place.write("gpuemu-regressions/silu/a.safetensors", "\u{1}\u{0}\u{0}oh");
    assert_has(&suite_report(&right, "silu::regressions::a"), &["a.toml: a.safetensors: ", "[ConfigError]"]);
    let spec: Spec = CASE.parse().unwrap();
    let other = [("x".to_owned(), Tensor::zeros(DType::Float32, Layout::contiguous(&[2, 2])))];
    let saved = regressions::save(place.path(), &spec, "values", "out differs", &other).unwrap();
    let name = format!("silu::regressions::{}", saved.file_stem().unwrap().to_str().unwrap());
    let message = suite_report(&right, &name);
    assert_has(&message, &["x was saved as float32 [2, 2], the op declares float32 [3, 4] now: delete the file"]);
    // A snapshot that was lost comes back when the case fails again.
    let lost = place.path().join(&saved).with_extension("safetensors");
    fs::remove_file(&lost).unwrap();
    assert_eq!(regressions::save(place.path(), &spec, "values", "out differs", &other).unwrap(), saved);
    assert!(lost.is_file());
}
