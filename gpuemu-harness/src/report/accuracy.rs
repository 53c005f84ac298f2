//! Accuracy baselines: one snapshot an op and dtype of the worst and the typical error over its fixed cases.

use crate::pipeline::session::Session;
use crate::pipeline::trial::{self, Finished};
use gpuemu_contract::TestName;

/// placeholder
pub fn measure(session: &Session, test: &TestName) -> (Finished, Option<String>) {
    (trial::run(session, test, None), None)
}
