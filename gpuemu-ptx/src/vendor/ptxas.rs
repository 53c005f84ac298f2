//! One run of one ptxas, and what can go wrong with it.

use super::child::{self, Ending, Limits};
use super::find::{Candidate, clip, lossy};
use super::report::{Diagnostic, PtxasOutput};
use crate::error::{Error, Result};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// `ptxas -v` prints a few lines an entry; warnings can be one an instruction.
const OUTPUT: usize = 64 << 20;

/// What came of a run.
pub enum Outcome {
    /// It was assembled: what was printed, and the machine code.
    Assembled(String, Vec<u8>),
    /// This ptxas does not know the version of PTX or the target; another one may.
    WrongTool(String),
}

/// Assembles a module. `label` is how messages call the tool: "ptxas 13.5 (path)".
pub fn run(
    tool: &Candidate,
    label: &str,
    ptx: &str,
    target: &str,
    flags: &[String],
    timeout: Duration,
) -> Result<Outcome> {
    let broken = |error: std::io::Error| Error::File(format!("cannot prepare a run of ptxas: {error}"));
    let folder = tempfile::tempdir().map_err(broken)?;
    fs::write(folder.path().join("module.ptx"), ptx).map_err(broken)?;
    let mut command = Command::new(&tool.path);
    command.current_dir(folder.path()).arg("-v").arg(format!("-arch={target}")).args(flags);
    command.args(["module.ptx", "-o", "module.cubin"]);
    let finished = child::run(&mut command, Limits { timeout, output: OUTPUT })
        .map_err(|error| Error::ToolFailed(format!("{label} could not be started: {error}")))?;
    let said = format!("{}{}", lossy(&finished.stderr), lossy(&finished.stdout));
    let output = PtxasOutput::read(&said);
    match finished.ending {
        Ending::Exited(0) => {}
        Ending::Exited(_) if !output.errors.is_empty() => {
            return match wrong_tool(&output.errors) {
                Some(reason) => Ok(Outcome::WrongTool(reason)),
                None => Err(refused(label, target, &output.errors, ptx)),
            };
        }
        ending => return Err(Error::ToolFailed(format!("{label} {ending}, on a module for {target}{}", quote(&said)))),
    }
    let cubin = fs::read(folder.path().join("module.cubin")).map_err(|error| {
        Error::ToolFailed(format!("{label} succeeded and left no machine code: {error}{}", quote(&said)))
    })?;
    Ok(Outcome::Assembled(said, cubin))
}

/// Why another ptxas may do better, where that is the whole trouble.
fn wrong_tool(errors: &[Diagnostic]) -> Option<String> {
    let other = |error: &&Diagnostic| {
        error.message.starts_with("Unsupported .version")
            || error.message.contains("is not defined for option 'gpu-name'")
    };
    errors.iter().find(other).map(|error| error.message.clone())
}

fn refused(label: &str, target: &str, errors: &[Diagnostic], ptx: &str) -> Error {
    let useful = |error: &&Diagnostic| !error.message.starts_with("Ptx assembly aborted");
    let line = errors.iter().filter(useful).find_map(|error| error.line);
    let mut message = format!("{label} refuses the module for {target}");
    for error in errors.iter().filter(useful).take(5) {
        match error.line {
            Some(line) => {
                message.push_str(&format!("\n  line {line}: {}", clip(&error.message)));
                if let Some(text) = ptx.lines().nth(line as usize - usize::from(line > 0)) {
                    message.push_str(&format!("\n    {}", clip(text)));
                }
            }
            None => message.push_str(&format!("\n  {}", clip(&error.message))),
        }
    }
    let more = errors.iter().filter(useful).count().saturating_sub(5);
    if more > 0 {
        message.push_str(&format!("\n  and {more} more"));
    }
    Error::Refused { line, message }
}

/// The last lines of what a tool said, under a message.
pub fn quote(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines.iter().skip(lines.len().saturating_sub(8)).map(|line| format!("\n  {}", clip(line)));
    match lines.is_empty() {
        true => String::new(),
        false => format!("\nit said:{}", tail.collect::<String>()),
    }
}
