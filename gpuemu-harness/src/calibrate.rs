//! Many right cases into an envelope: how far a correct kernel of an op may be from the mirror.
//!
//! An envelope is taken, in this order, from `gpuemu-envelopes.toml` beside the contract (what a reviewer accepted), from
//! the table that ships with the built-in references, and from a calibration of the op's own mirror at first use.

use crate::case::kind::Kind;
use crate::case::strategy::Planner;
use crate::case::{build, shape};
use crate::error::{Error, Result};
use crate::pipeline::oracle::Oracle;
use crate::report::results::write_atomically;
use crate::validate::tolerance::{self, Envelope};
use gpuemu_contract::{Compute, DType, Op, Reference, Strategy, TestName};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Name of the file beside `gpuemu.toml`.
pub const FILE: &str = "gpuemu-envelopes.toml";

/// Envelopes of the built-in references, by name and working precision; written by `calibrate`'s own suite.
const STANDARD: &str = include_str!("envelopes.toml");

/// Moderate value distributions; extreme ones would make the envelope useless.
const DISTRIBUTIONS: [Kind; 4] = [Kind::Uniform, Kind::Normal, Kind::Positive, Kind::Shifted];

/// Cases an envelope is fitted to.
const CASES: u32 = 32;

/// As [`CASES`], for reference scripts: each of a case's six evaluations starts a process.
const SCRIPT_CASES: u32 = 4;

/// Elements of the largest tensor of a calibration case: enough to see how errors grow, few enough to be quick.
const LARGEST: usize = 1 << 18;

const VERSION: i64 = 1;

/// Where envelopes come from.
#[derive(Debug, Default)]
pub struct Envelopes {
    path: PathBuf,
    accepted: Table,
    measured: Mutex<HashMap<(String, DType), Envelope>>,
}

type Table = BTreeMap<String, BTreeMap<String, Envelope>>;

impl Envelopes {
    /// Reads the file of `root`, where there is one.
    pub fn load(root: &Path) -> Result<Envelopes> {
        let path = root.join(FILE);
        let accepted = match std::fs::read_to_string(&path) {
            Ok(text) => read(&text).map_err(|message| Error::Config(format!("{}: {message}", path.display())))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Table::new(),
            Err(error) => return Err(Error::File(format!("cannot read {}: {error}", path.display()))),
        };
        Ok(Envelopes { path, accepted, measured: Mutex::default() })
    }

    /// The envelope of an op for tensors of `dtype`.
    pub fn of(&self, op: &Op, dtype: DType, oracle: &Oracle<'_>) -> Result<Envelope> {
        if let Some(envelope) = self.accepted.get(&op.name).and_then(|dtypes| dtypes.get(dtype.name())) {
            return Ok(*envelope);
        }
        if let Reference::Builtin(name) = &op.reference
            && let Some(envelope) = standard(name, op.compute_for(dtype))
        {
            return Ok(envelope);
        }
        let key = (op.name.clone(), dtype);
        let known = |measured: &HashMap<_, _>| measured.get(&key).copied();
        if let Some(envelope) = known(&self.measured.lock().unwrap_or_else(|poisoned| poisoned.into_inner())) {
            return Ok(envelope);
        }
        // Two threads may measure the same op at once; both get the same answer.
        let envelope = calibrate(op, dtype, oracle)?;
        self.measured.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(key, envelope);
        Ok(envelope)
    }

    /// The accepted envelope of an op and dtype.
    pub fn accepted(&self, op: &str, dtype: DType) -> Option<Envelope> {
        self.accepted.get(op)?.get(dtype.name()).copied()
    }

    /// Puts envelopes into the file beside the contract; those of other ops stay.
    pub fn write(&self, new: &[(String, DType, Envelope)]) -> Result<()> {
        let mut table = Envelopes::load(self.path.parent().unwrap_or(Path::new(".")))?.accepted;
        for (op, dtype, envelope) in new {
            table.entry(op.clone()).or_default().insert(dtype.name().to_owned(), *envelope);
        }
        write_atomically(&self.path, print(&table).as_bytes())
    }
}

/// The envelope that ships for a built-in reference in a working precision. float64 shares float32's: both figures are
/// in units of the roundoff.
fn standard(name: &str, compute: Compute) -> Option<Envelope> {
    static TABLE: std::sync::OnceLock<Table> = std::sync::OnceLock::new();
    let table = TABLE.get_or_init(|| read(STANDARD).expect("the shipped table is well formed"));
    let compute = if compute == Compute::Float64 { Compute::Float32 } else { compute };
    table.get(name)?.get(compute.name()).copied()
}

/// Measures the envelope of an op from its mirror over moderate inputs.
pub fn calibrate(op: &Op, dtype: DType, oracle: &Oracle<'_>) -> Result<Envelope> {
    let test = TestName { op: op.name.clone(), dtype, strategy: Strategy::Default };
    let mut samples = Vec::new();
    // A stream of its own: what is calibrated on is never what is judged.
    let planner = Planner::new(op, &test, CALIBRATION_SEED)?;
    let cases = if matches!(op.reference, Reference::Script(_)) { SCRIPT_CASES } else { CASES };
    for index in 0..cases {
        let mut spec = planner.plan(index, &mut |_| true)?;
        for input in &mut spec.inputs {
            let declared = op.schema.input(&input.name);
            let float = declared.is_some_and(|tensor| tensor.dtype.resolve(dtype).is_float());
            if float && declared.is_some_and(|tensor| tensor.domain.is_none() && tensor.generate.is_none()) {
                input.values = DISTRIBUTIONS[index as usize % DISTRIBUTIONS.len()].into();
            }
        }
        if shape::largest_input(op, &spec)? > LARGEST {
            continue;
        }
        let case = build::build(op, &spec, oracle.generator())?;
        oracle.sample(&case, &mut samples)?;
    }
    Ok(tolerance::fit(&samples))
}

/// Parent seed of calibration cases.
const CALIBRATION_SEED: u64 = 0x6361_6c69_6272_6174;

fn read(text: &str) -> std::result::Result<Table, String> {
    let document: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut table = Table::new();
    for (key, value) in &document {
        if key == "version" {
            match value.as_integer() {
                Some(VERSION) => continue,
                _ => return Err(format!("format {value}, this gpuemu reads {VERSION}: calibrate again")),
            }
        }
        let dtypes = value.as_table().ok_or_else(|| format!("`{key}` is not a table"))?;
        for (dtype, figures) in dtypes {
            let figure = |name: &str| {
                let value = figures.get(name).and_then(|value| match value {
                    toml::Value::Float(value) => Some(*value),
                    toml::Value::Integer(value) => Some(*value as f64),
                    _ => None,
                });
                value
                    .filter(|value| value.is_finite() && *value >= 0.0)
                    .ok_or_else(|| format!("[{key}.{dtype}] needs a number `{name}` that is not negative"))
            };
            let envelope = Envelope { rho: figure("rho")?, alpha: figure("alpha")? };
            table.entry(key.clone()).or_default().insert(dtype.clone(), envelope);
        }
    }
    Ok(table)
}

/// The table as a reviewer reads it: two significant digits more than anyone needs, one line an op and dtype.
pub fn print(table: &BTreeMap<String, BTreeMap<String, Envelope>>) -> String {
    let mut text = String::from(
        "# How far a correct kernel may be from the mirror, in units of the working precision's roundoff:\n\
         # allowed = rounding of the output + 4 x max(rho x natural error + alpha x u x largest input, mirror's own error).\n\
         # Written by GPUEMU_CALIBRATE=write; a smaller figure is a stricter test.\n",
    );
    text.push_str(&format!("version = {VERSION}\n"));
    for (op, dtypes) in table {
        text.push_str(&format!("\n[{op}]\n"));
        for (dtype, Envelope { rho, alpha }) in dtypes {
            text.push_str(&format!("{dtype} = {{ rho = {rho:.3}, alpha = {alpha:.3} }}\n"));
        }
    }
    text
}
