//! What the harness tells and asks of a run that Python has started.

use gpuemu_harness::case::spec::Spec;
use gpuemu_harness::front::Front;
use gpuemu_harness::{Error, Result, TestName};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An exception that ends the run rather than a test: Ctrl-C, `pytest.exit`, `pytest.skip`.
#[derive(Debug, Default)]
pub struct Interrupt(Mutex<Option<PyErr>>);

impl Interrupt {
    /// Keeps the first.
    pub fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The exception to raise again, once.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Who has started the run.
#[derive(Clone, Debug)]
pub enum Caller {
    /// pytest; `place` is the contract as its command line names it.
    Pytest {
        /// `gpuemu.toml`, or a path to it.
        place: String,
    },
    /// A call of `gpuemu.check`.
    Check,
}

/// A run that Python has started.
#[derive(Debug)]
pub struct PythonFront {
    caller: Caller,
    interrupt: Arc<Interrupt>,
    /// Called with the test, the case and their number, where a test takes long.
    progress: Option<Py<PyAny>>,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
struct Shown {
    test: String,
    since: Instant,
    last: Instant,
}

/// A test that takes longer shows how far it is.
const LONG: Duration = Duration::from_secs(5);
/// Time between two lines of progress.
const PACE: Duration = Duration::from_secs(1);

impl PythonFront {
    /// A run of `caller`.
    pub fn new(caller: Caller, interrupt: Arc<Interrupt>, progress: Option<Py<PyAny>>) -> PythonFront {
        let now = Instant::now();
        PythonFront {
            caller,
            interrupt,
            progress,
            shown: Mutex::new(Shown { test: String::new(), since: now, last: now }),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Front for PythonFront {
    fn replay(&self, spec: &Spec, declared: bool) -> String {
        let spec_text = quoted(&spec.to_string());
        match &self.caller {
            Caller::Check => format!("gpuemu.check(..., case={spec_text})"),
            Caller::Pytest { place } => {
                // A test that only --gpuemu-strategies has listed is there again only with it.
                let strategies = match declared {
                    true => String::new(),
                    false => format!("--gpuemu-strategies={} ", spec.test.strategy),
                };
                let place = match place.as_str() {
                    "gpuemu.toml" => String::new(),
                    place if place.contains([' ', '\'', '"', '$', '&', '(', '[']) => format!(" {}", quoted(place)),
                    place => format!(" {place}"),
                };
                // pytest reads arguments from a file whose name follows an @ at the beginning of a word.
                let separator = if spec_text.starts_with("'@") { '=' } else { ' ' };
                format!("pytest {strategies}--gpuemu-case{separator}{spec_text}{place}")
            }
        }
    }

    fn rerun(&self, test: &str) -> String {
        match &self.caller {
            Caller::Check => format!("gpuemu.check(..., test={})", quoted(test)),
            Caller::Pytest { place } => format!("pytest --gpuemu {place}::{test}"),
        }
    }

    fn case_source(&self) -> &'static str {
        match self.caller {
            Caller::Check => "case",
            Caller::Pytest { .. } => "--gpuemu-case",
        }
    }

    fn way_to_bind(&self, op: &str) -> String {
        format!(
            "decorate a function with @gpuemu.op(\"{op}\") in a conftest.py, or give the op \
             `module = \"package.module:function\"` or an `op_script`"
        )
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join(".gpuemu")
    }

    fn progress(&self, test: &TestName, case: u32, cases: u32) {
        let Some(progress) = &self.progress else { return };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if case <= 1 {
            *shown = Shown { test: test.to_string(), since: now, last: now };
        }
        if now - shown.since < LONG || now - shown.last < PACE {
            return;
        }
        shown.last = now;
        let name = shown.test.clone();
        drop(shown);
        Python::attach(|py| {
            if let Err(error) = progress.call1(py, (name, case, cases)) {
                self.interrupt.set(error);
            }
        });
    }

    fn go_on(&self) -> Result<()> {
        if !self.interrupt.is_set()
            && let Err(error) = Python::attach(|py| py.check_signals())
        {
            self.interrupt.set(error);
        }
        if self.interrupt.is_set() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
