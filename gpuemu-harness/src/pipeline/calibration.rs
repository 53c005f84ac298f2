//! `GPUEMU_CALIBRATE`: the envelope file written again, or held against a fresh calibration.

use super::oracle::Oracle;
use super::session::Session;
use crate::calibrate::{FILE, MARGIN, exceeded};
use crate::environment::Calibrate;
use crate::error::{Error, Result};
use gpuemu_contract::{DType, Op};

/// Does what `GPUEMU_CALIBRATE` asks for before a test of `op` and `dtype` runs.
///
/// `write` measures every dtype of the op, once a process, and puts the envelopes into the file; those of other ops, and
/// what other processes write meanwhile, stay. `check` measures this dtype and compares.
///
/// # Errors
///
/// [`Error::Calibration`] when `check` finds a larger figure than the file has, or no entry; any error of the reference.
pub fn prepare(session: &Session, op: &Op, dtype: DType) -> Result<()> {
    let envelopes = session.envelopes();
    match session.environment().calibrate {
        None => Ok(()),
        Some(Calibrate::Write) => envelopes.write_once(&op.name, || {
            let measured = op.dtypes.iter().map(|&dtype| {
                let oracle = Oracle::new(session, op, dtype)?;
                Ok((dtype, envelopes.measured(op, dtype, &oracle)?))
            });
            measured.collect()
        }),
        Some(Calibrate::Check) => {
            let Some(accepted) = envelopes.accepted(&op.name, dtype) else {
                return Err(Error::Calibration(format!(
                    "{FILE} has no entry [{}] {dtype}: GPUEMU_CALIBRATE=write adds it",
                    op.name
                )));
            };
            let oracle = Oracle::new(session, op, dtype)?;
            let fresh = envelopes.measured(op, dtype, &oracle)?;
            match exceeded(&accepted, &fresh) {
                None => Ok(()),
                Some(figures) => Err(Error::Calibration(format!(
                    "the envelope of {} for {dtype} is larger than {FILE} has by more than {:.0}%: {figures}; the reference \
                     or the schema changed since: GPUEMU_CALIBRATE=write accepts it",
                    op.name,
                    MARGIN * 100.0
                ))),
            }
        }
    }
}
