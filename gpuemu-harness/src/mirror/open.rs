//! From an op's `reference` to the mirror it names.

use super::script::{Script, ScriptMirror};
use super::worker::{FunctionMirror, Workers};
use super::{Mirror, builtin};
use crate::error::{Error, Result};
use gpuemu_contract::{Op, Reference};
use std::sync::Arc;

/// The mirror of an op. `workers` are those of the project: they know its folder and its interpreter.
pub fn open(op: &Op, workers: &Arc<Workers>) -> Result<Box<dyn Mirror>> {
    match &op.reference {
        Reference::Builtin(name) => match builtin::find(name) {
            Some(operator) => Ok(Box::new(operator)),
            None => Err(Error::Config(format!("op {}: there is no built-in reference {name:?}", op.name))),
        },
        Reference::Script(path) if !path.is_file() => {
            Err(Error::NotFound(format!("op {}: there is no reference script {}", op.name, path.display())))
        }
        Reference::Script(path) => {
            let script = Script::new(path, workers.root(), workers.python().clone());
            Ok(Box::new(ScriptMirror::new(Script { timeout: workers.timeout(), ..script })))
        }
        Reference::Function { module, function } => {
            Ok(Box::new(FunctionMirror::new(module, function, Arc::clone(workers))))
        }
    }
}
