//! A script under test (`op_script`): the same protocol as reference scripts, in the dtype of the test.

use super::{Call, Subject, SubjectError, UNUSABLE};
use crate::mirror::script::Script;
use crate::mirror::wire::Dense;
use crate::mirror::worker::Workers;
use gpuemu_contract::{DType, Op};
use std::path::Path;

/// A script that computes the output under test. It is given dense copies of the inputs, in their own dtypes; `inout`
/// tensors are answered like outputs.
#[derive(Clone, Debug)]
pub struct ScriptSubject {
    script: Script,
    inout: Vec<String>,
}

impl ScriptSubject {
    /// The subject of an op whose `op_script` is `path`. Of `workers` it takes the project's folder and interpreter.
    pub fn of(op: &Op, path: &Path, workers: &Workers) -> ScriptSubject {
        let script = Script::new(path, workers.root(), workers.python().clone());
        let inout = op.schema.inputs.iter().filter(|input| input.inout).map(|input| input.name.clone()).collect();
        ScriptSubject::new(Script { timeout: workers.timeout(), ..script }, inout)
    }

    /// A subject that is this script. `inout` names the inputs that the op overwrites.
    pub fn new(script: Script, inout: Vec<String>) -> ScriptSubject {
        ScriptSubject { script, inout }
    }
}

impl Subject for ScriptSubject {
    fn run(&self, call: &mut Call<'_>) -> Result<(), SubjectError> {
        let inputs: Vec<Dense<'_>> = call.inputs.iter().map(|(name, tensor)| Dense::of_tensor(name, tensor)).collect();
        let written = call.inputs.iter().map(|(name, _)| name).filter(|name| self.inout.contains(name));
        let names: Vec<&str> = written.chain(call.outputs.iter().map(|(name, _)| name)).map(String::as_str).collect();
        let mut answers = self.script.ask(&inputs, call.params, &names).map_err(|failure| SubjectError {
            kind: if failure.started() { failure.kind } else { UNUSABLE },
            message: failure.message,
            fault: false,
        })?;
        let outputs = answers.split_off(answers.len() - call.outputs.len());
        let written = call.inputs.iter_mut().filter(|(name, _)| self.inout.contains(name));
        for ((name, tensor), answer) in written.zip(answers) {
            if (tensor.dtype(), tensor.shape()) != (answer.dtype(), answer.shape()) {
                let message = format!(
                    "{} answered {} of shape {:?} for the inout tensor {name}, which is {} of shape {:?}",
                    self.script,
                    answer.dtype(),
                    answer.shape(),
                    tensor.dtype(),
                    tensor.shape()
                );
                return Err(SubjectError { kind: "garbage", message, fault: false });
            }
            tensor.copy_elements_from(&answer);
        }
        // Shape and dtype are for validation to judge: an output stands as it was answered.
        for ((_, output), answer) in call.outputs.iter_mut().zip(outputs) {
            *output = Some(answer);
        }
        Ok(())
    }

    fn supports(&self, _dtype: DType) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.script.to_string()
    }
}
