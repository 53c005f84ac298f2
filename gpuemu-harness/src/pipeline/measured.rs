//! `[kernels.measured]`: one launch of a kernel, for the figures of its snapshot.

use super::check;
use super::session::Session;
use crate::case::build;
use crate::case::strategy::Planner;
use crate::error::{Error, Result};
use crate::subject::kernel::{KernelSubject, Watch};
use crate::subject::{Call, Subject, SubjectError};
use crate::validate::honesty::Poison;
use gpuemu_contract::{DType, Kernel, Measured, Op, Strategy, TestName};
use gpuemu_ptx::emulate::{Counters, Sanitizers};
use std::sync::Mutex;

/// A kernel that keeps what its launch did.
struct Counted {
    kernel: KernelSubject,
    counters: Mutex<Option<Counters>>,
}

impl Subject for Counted {
    fn run(&self, call: &mut Call<'_>) -> std::result::Result<(), SubjectError> {
        let counters = self.kernel.launch(call)?;
        *self.counters.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = counters;
        Ok(())
    }

    fn supports(&self, dtype: DType) -> bool {
        self.kernel.supports(dtype)
    }

    fn describe(&self) -> String {
        self.kernel.describe()
    }
}

/// What the measured launch of a kernel does on a target. The inner error says why it is not executed here.
///
/// # Errors
///
/// When the launch cannot be planned, and when it fails: a fault has no figures.
pub fn counters(
    session: &Session,
    kernel: &Kernel,
    measured: &Measured,
    target: &str,
    update: &str,
) -> Result<std::result::Result<Counters, String>> {
    let contract = session.declared();
    let Some(op) = contract.op_of(kernel).map(|op| only(op, measured)) else {
        return Ok(Err("it names no op".to_owned()));
    };
    // Watching changes no count.
    let watch = Watch {
        sanitizers: Some(Sanitizers::NONE),
        budget: session.environment().budget,
        counters: true,
        cancel: None,
    };
    let kernel_subject = match KernelSubject::of_target(kernel, &op, target, contract.root(), update, watch)? {
        Ok(subject) => subject,
        Err(why) => return Ok(Err(why)),
    };
    let Some(dtype) = measured.dtype.or(op.dtypes.first().copied()) else {
        return Ok(Err("it has no dtype".to_owned()));
    };
    let test = TestName { op: op.tested_as(), dtype, strategy: Strategy::Default };
    let spec = Planner::new(&op, &test, contract.validation.seed)?.plan(0, &mut |_| true)?;
    let case = build::build(&op, &spec, Some(session.generator()))?;
    let subject = Counted { kernel: kernel_subject, counters: Mutex::default() };
    let launched = check::execute(&op.schema, &subject, &case, Poison::First);
    if let Err(error) = launched {
        return Err(Error::Artifact(format!(
            "the launch that [kernels.measured] declares fails: {error}\n  case {spec}"
        )));
    }
    let counters = subject.counters.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(counters.ok_or_else(|| "nothing was counted".to_owned()))
}

/// The op with nothing to choose from but what is measured.
fn only(mut op: Op, measured: &Measured) -> Op {
    for (name, dimension) in &mut op.schema.dims {
        if let Some((_, size)) = measured.dims.iter().find(|(known, _)| known == name) {
            dimension.candidates = vec![*size];
            dimension.tile = None;
            dimension.min = dimension.min.min(*size);
        }
    }
    for param in &mut op.params {
        match measured.params.iter().find(|(known, _)| *known == param.name) {
            Some((_, value)) => param.candidates = vec![value.clone()],
            None => param.candidates.truncate(1),
        }
    }
    op
}
