//! Many right cases into an envelope: how far a correct kernel of an op may be from the mirror.
//!
//! An envelope is taken, in this order, from `gpuemu-envelopes.toml` beside the contract (what a reviewer accepted), from
//! the table that ships with the built-in references, and from a calibration of the op's own mirror at first use.

use crate::case::kind::Kind;
use crate::case::strategy::Planner;
use crate::case::{Case, Generate, build, shape};
use crate::environment::Calibrate;
use crate::error::{Error, Result};
use crate::files::{alone, write_atomically};
use crate::validate::tolerance::{self, Envelope, Sample};
use gpuemu_contract::{Compute, DType, Op, Reference, Strategy, TestName};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Name of the file beside `gpuemu.toml`.
pub const FILE: &str = "gpuemu-envelopes.toml";

/// Envelopes of the built-in references, by name and working precision; printed by `examples/envelopes`.
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

/// How much larger than the file's a fresh figure may be in `GPUEMU_CALIBRATE=check`. Calibration is deterministic but
/// for the last bits of the host's mathematical functions, and figures are rounded up to two digits.
pub const MARGIN: f64 = 0.1;

/// What a figure may move by in any case: a hundredth of a roundoff is no error of a kernel.
const NEGLIGIBLE: f64 = 0.01;

/// The least rho of an op whose reference is a script or a function. One that computes in float64 whatever it is given
/// shows no error at all, yet a kernel may round its inputs and every intermediate result: two roundings of the natural
/// error, four times with the safety factor of every bound.
const FLOOR: f64 = 2.0;

/// Where envelopes come from.
#[derive(Debug, Default)]
pub struct Envelopes {
    path: PathBuf,
    accepted: Table,
    calibrate: Option<Calibrate>,
    measured: Mutex<HashMap<(String, DType), Slot<Envelope>>>,
    written: Mutex<HashMap<String, Slot<()>>>,
}

/// Something that can say how far the working-precision mirror of an op is from the float64 one.
pub trait Sampler {
    /// What fills inputs that have a generator of their own.
    fn generator(&self) -> Option<&dyn Generate>;

    /// Adds what one case says about the envelope.
    fn sample(&self, case: &Case, samples: &mut Vec<Sample>) -> Result<()>;
}

type Table = BTreeMap<String, BTreeMap<String, Envelope>>;

/// Made once, by whichever thread asks first; the others wait for it.
type Slot<T> = Arc<OnceLock<Result<T>>>;

impl Envelopes {
    /// Reads the file of `root`, where there is one. With [`Calibrate::Write`] what it says is not used, only kept.
    pub fn load(root: &Path, calibrate: Option<Calibrate>) -> Result<Envelopes> {
        let path = root.join(FILE);
        let accepted = load(&path)?;
        Ok(Envelopes { path, accepted, calibrate, ..Envelopes::default() })
    }

    /// The envelope of an op for tensors of `dtype`.
    pub fn of(&self, op: &Op, dtype: DType, sampler: &dyn Sampler) -> Result<Envelope> {
        if self.calibrate == Some(Calibrate::Write) {
            return self.measured(op, dtype, sampler);
        }
        if let Some(envelope) = self.accepted(&op.name, dtype) {
            return Ok(envelope);
        }
        if let Reference::Builtin(name) = &op.reference
            && let Some(envelope) = standard(name, op.compute_for(dtype))
        {
            return Ok(envelope);
        }
        self.measured(op, dtype, sampler)
    }

    /// The accepted envelope of an op and dtype.
    pub fn accepted(&self, op: &str, dtype: DType) -> Option<Envelope> {
        self.accepted.get(op)?.get(dtype.name()).copied()
    }

    /// A fresh calibration, made once.
    pub fn measured(&self, op: &Op, dtype: DType, sampler: &dyn Sampler) -> Result<Envelope> {
        let slot = {
            let mut measured = self.measured.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            measured.entry((op.name.clone(), dtype)).or_default().clone()
        };
        slot.get_or_init(|| calibrate(op, dtype, sampler)).clone()
    }

    /// Puts the envelopes of one op into the file beside the contract, once; what other ops have there stays, and so does
    /// what other processes put there at the same time.
    pub fn write_once(&self, op: &str, measure: impl FnOnce() -> Result<Vec<(DType, Envelope)>>) -> Result<()> {
        let slot = {
            let mut written = self.written.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            written.entry(op.to_owned()).or_default().clone()
        };
        let write = || {
            let new = measure()?;
            alone(self.path.parent().unwrap_or(Path::new(".")), || {
                let mut table = load(&self.path)?;
                let entry = table.entry(op.to_owned()).or_default();
                entry.extend(new.iter().map(|(dtype, envelope)| (dtype.name().to_owned(), *envelope)));
                write_atomically(&self.path, print(&table).as_bytes())
            })
        };
        slot.get_or_init(write).clone()
    }
}

fn load(path: &Path) -> Result<Table> {
    match std::fs::read_to_string(path) {
        Ok(text) => read(&text).map_err(|message| Error::Config(format!("{}: {message}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Table::new()),
        Err(error) => Err(Error::File(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Which figures of a fresh envelope are larger than the accepted ones by more than [`MARGIN`]: `rho 2 -> 6.4`.
pub fn exceeded(accepted: &Envelope, fresh: &Envelope) -> Option<String> {
    let figures = [("rho", accepted.rho, fresh.rho), ("alpha", accepted.alpha, fresh.alpha)];
    let moved: Vec<String> = figures
        .into_iter()
        .filter(|(_, old, new)| *new > old * (1.0 + MARGIN) + NEGLIGIBLE)
        .map(|(name, old, new)| format!("{name} {old} -> {new}"))
        .collect();
    (!moved.is_empty()).then(|| moved.join(", "))
}

/// The envelope that ships for a built-in reference in a working precision. float64 shares float32's: both figures are
/// in units of the roundoff.
pub fn standard(name: &str, compute: Compute) -> Option<Envelope> {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let table = TABLE.get_or_init(|| read(STANDARD).expect("the shipped table is well formed"));
    let compute = if compute == Compute::Float64 { Compute::Float32 } else { compute };
    table.get(name)?.get(compute.name()).copied()
}

/// Measures the envelope of an op from its mirror over moderate inputs.
pub fn calibrate(op: &Op, dtype: DType, sampler: &dyn Sampler) -> Result<Envelope> {
    let test = TestName { op: op.tested_as(), dtype, strategy: Strategy::Default };
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
        // Where every case is large, the last one must do.
        let none_yet = samples.is_empty() && index + 1 == cases;
        if shape::largest_input(op, &spec)? > LARGEST && !none_yet {
            continue;
        }
        let case = build::build(op, &spec, sampler.generator())?;
        sampler.sample(&case, &mut samples)?;
    }
    let envelope = tolerance::fit(&samples);
    Ok(match op.reference {
        Reference::Builtin(_) => envelope,
        Reference::Script(_) | Reference::Function { .. } => Envelope { rho: envelope.rho.max(FLOOR), ..envelope },
    })
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

/// The smallest envelope that allows what either of two allows.
pub fn joined(a: &Envelope, b: &Envelope) -> Envelope {
    Envelope { rho: a.rho.max(b.rho), alpha: a.alpha.max(b.alpha) }
}

const MEANING: &str = "\
# How far a correct kernel may be from the mirror, in units of the working precision's roundoff:
# allowed = rounding of the output + 4 x max(rho x natural error + alpha x u x largest input, mirror's own error).
";

/// The table as a reviewer reads it, one line an op and dtype.
fn print(table: &Table) -> String {
    format!("{MEANING}# Written by GPUEMU_CALIBRATE=write; a smaller figure is a stricter test.\n{}", lines(table))
}

/// The table that ships, one line a reference and working precision.
pub fn print_standard(table: &BTreeMap<String, BTreeMap<String, Envelope>>) -> String {
    format!(
        "{MEANING}# Measured on rows of 1 to 1024 elements and inner dimensions of 1 to 512 (examples/envelopes/gpuemu.toml).\n\
         # Longer ones are covered by the mirror's own error on the case at hand, which grows with them as a kernel's does.\n\
         # References that sum have no entry for half precisions, layer_norm, attention, products and conv2d none at all: one\n\
         # figure for rows of every length would be blind on some. They are calibrated on an op's own sizes.\n\
         # Printed by `cargo run -p gpuemu-harness --example envelopes`.\n{}",
        lines(table)
    )
}

fn lines(table: &Table) -> String {
    let mut text = format!("version = {VERSION}\n");
    for (op, dtypes) in table {
        text.push_str(&format!("\n[{op}]\n"));
        for (dtype, Envelope { rho, alpha }) in dtypes {
            text.push_str(&format!("{dtype} = {{ rho = {rho:?}, alpha = {alpha:?} }}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(rho: f64, alpha: f64) -> Envelope {
        Envelope { rho, alpha }
    }

    #[test]
    fn a_printed_table_reads_back() {
        let dtypes = |rho, alpha| BTreeMap::from([("float32".to_owned(), envelope(rho, alpha))]);
        let table = Table::from([("silu".to_owned(), dtypes(2.1, 0.0)), ("gelu".to_owned(), dtypes(13.0, 1e-5))]);
        assert_eq!(read(&print(&table)).unwrap(), table);
        assert_eq!(read(&print_standard(&table)).unwrap(), table);
        assert!(print(&table).ends_with("\n[silu]\nfloat32 = { rho = 2.1, alpha = 0.0 }\n"), "{}", print(&table));
    }

    #[test]
    fn a_malformed_table_says_where() {
        for (text, said) in [
            ("version = 2", "format 2, this gpuemu reads 1"),
            ("silu = 3", "`silu` is not a table"),
            ("[silu]\nfloat32 = { rho = 1.0 }", "[silu.float32] needs a number `alpha`"),
            ("[silu]\nfloat32 = { rho = -1, alpha = 0 }", "[silu.float32] needs a number `rho`"),
            ("[silu]\nfloat32 = { rho = nan, alpha = 0 }", "[silu.float32] needs a number `rho`"),
        ] {
            let message = read(text).expect_err(text);
            assert!(message.contains(said), "{text}: {message}");
        }
    }

    #[test]
    fn a_larger_figure_is_told_and_a_smaller_one_is_not() {
        for (accepted, fresh, told) in [
            (envelope(2.0, 0.5), envelope(2.2, 0.55), None),
            (envelope(2.0, 0.5), envelope(2.3, 0.5), Some("rho 2 -> 2.3")),
            (envelope(2.0, 0.0), envelope(2.0, 0.1), Some("alpha 0 -> 0.1")),
            (envelope(0.0, 0.0), envelope(1.0, 1.0), Some("rho 0 -> 1, alpha 0 -> 1")),
            (envelope(20.0, 5.0), envelope(0.0, 0.0), None),
        ] {
            assert_eq!(exceeded(&accepted, &fresh).as_deref(), told);
        }
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "[kept]\nfloat32 = { rho = 3, alpha = 0 }\n").unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let root = folder.path();
                // As processes do, each has read the file on its own.
                scope.spawn(move || {
                    let envelopes = Envelopes::load(root, Some(Calibrate::Write)).unwrap();
                    let new = || Ok(vec![(DType::Float32, envelope(f64::from(number), 0.0))]);
                    envelopes.write_once(&format!("op{number}"), new).unwrap();
                });
            }
        });
        let table = load(&folder.path().join(FILE)).unwrap();
        assert_eq!(table.len(), 17);
        assert_eq!(table["kept"]["float32"], envelope(3.0, 0.0));
        assert!((0..16).all(|number| table[&format!("op{number}")]["float32"] == envelope(f64::from(number), 0.0)));
    }
}
