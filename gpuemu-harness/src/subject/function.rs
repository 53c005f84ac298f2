//! Rust functions as subjects: those that `#[op]` bound in this binary, and closures.

use super::{Call, Subject, SubjectError};
use crate::error::{Error, Result};
use gpuemu_contract::DType;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A function that `#[op]` bound to an op. Collected over all crates of a binary.
#[derive(Debug)]
pub struct Binding {
    /// The op's name.
    pub op: &'static str,
    /// The function's name.
    pub function: &'static str,
    /// Where the function stands.
    pub file: &'static str,
    /// One-based line of it.
    pub line: u32,
    /// What it computes: one entry a dtype.
    pub implementations: &'static [Implementation],
}

inventory::collect!(Binding);

/// A bound function for one dtype.
#[derive(Debug)]
pub struct Implementation {
    /// The dtype of the test.
    pub dtype: DType,
    /// Hands the call's tensors and parameters to the function, and its answers back.
    pub run: fn(&mut Call<'_>) -> std::result::Result<(), SubjectError>,
}

impl Binding {
    /// Every binding that is linked into this binary, sorted by op and place.
    pub fn all() -> Vec<&'static Binding> {
        let mut bindings: Vec<&Binding> = inventory::iter::<Binding>().collect();
        bindings.sort_by_key(|binding| (binding.op, binding.file, binding.line));
        bindings
    }

    fn place(&self) -> String {
        format!("{} at {}:{}", self.function, self.file, self.line)
    }
}

type Run = dyn Fn(&mut Call<'_>) -> std::result::Result<(), SubjectError> + Send + Sync;

/// Rust functions that together serve one op, each for dtypes of its own. A panic is caught and becomes an error of
/// kind `panicked` with the message and its place; the default panic message is not printed meanwhile on this thread.
///
/// A function that never returns is not ended: nothing can end a thread safely from outside. Where kernels may loop
/// forever, run the tests under nextest with a `slow-timeout` that has `terminate-after`, which gives each test a process
/// of its own. Scripts have a time-out.
pub struct Function {
    description: String,
    implementations: Vec<(DType, Box<Run>)>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtypes: Vec<DType> = self.dtypes().collect();
        f.debug_struct("Function").field("description", &self.description).field("dtypes", &dtypes).finish()
    }
}

impl Function {
    /// The functions bound to an op in this binary; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when two of them serve the same dtype; the message names both places.
    pub fn bound(op: &str) -> Result<Option<Function>> {
        Function::of_bindings(Binding::all().into_iter().filter(|binding| binding.op == op))
    }

    /// A subject of these bindings, all of one op; `None` when there is none.
    fn of_bindings<'b>(bindings: impl IntoIterator<Item = &'b Binding>) -> Result<Option<Function>> {
        let mut taken: Vec<(DType, &Binding)> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        let mut implementations: Vec<(DType, Box<Run>)> = Vec::new();
        for binding in bindings {
            for implementation in binding.implementations {
                if let Some((dtype, other)) = taken.iter().find(|(dtype, _)| *dtype == implementation.dtype) {
                    return Err(Error::Config(format!(
                        "op `{}` has two functions for {dtype}: {} and {}; remove the #[op] of one of them",
                        binding.op,
                        other.place(),
                        binding.place(),
                    )));
                }
                taken.push((implementation.dtype, binding));
                implementations.push((implementation.dtype, Box::new(implementation.run)));
            }
            if !names.contains(&binding.function) {
                names.push(binding.function);
            }
        }
        if names.is_empty() {
            return Ok(None);
        }
        let plural = if names.len() == 1 { "" } else { "s" };
        Ok(Some(Function { description: format!("function{plural} {}", names.join(", ")), implementations }))
    }

    /// A closure as the subject for these dtypes.
    pub fn from_closure(
        dtypes: &[DType],
        run: impl Fn(&mut Call<'_>) -> std::result::Result<(), SubjectError> + Send + Sync + 'static,
    ) -> Function {
        let run = std::sync::Arc::new(run);
        let implementations = dtypes
            .iter()
            .map(|&dtype| {
                let run = run.clone();
                (dtype, Box::new(move |call: &mut Call<'_>| run(call)) as Box<Run>)
            })
            .collect();
        Function { description: "closure".to_owned(), implementations }
    }

    /// The same under another description, in the words of [`Subject::describe`].
    pub fn described(mut self, description: impl Into<String>) -> Function {
        self.description = description.into();
        self
    }

    /// The dtypes it has an implementation for.
    pub fn dtypes(&self) -> impl Iterator<Item = DType> + '_ {
        self.implementations.iter().map(|(dtype, _)| *dtype)
    }
}

impl Subject for Function {
    fn run(&self, call: &mut Call<'_>) -> std::result::Result<(), SubjectError> {
        let Some((_, run)) = self.implementations.iter().find(|(dtype, _)| *dtype == call.dtype) else {
            let dtypes: Vec<&str> = self.dtypes().map(DType::name).collect();
            return Err(SubjectError {
                kind: "unsupported",
                message: format!(
                    "{} has no version for {}, only for {}",
                    self.description,
                    call.dtype,
                    dtypes.join(", ")
                ),
                fault: false,
            });
        };
        catch_panic(|| run(call))
    }

    fn supports(&self, dtype: DType) -> bool {
        self.dtypes().any(|own| own == dtype)
    }

    fn describe(&self) -> String {
        self.description.clone()
    }
}

/// What the panic hook noted on this thread.
enum Watch {
    /// No subject runs: panics go to the hook that was there before.
    Off,
    /// A subject runs.
    On,
    /// A subject panicked: the message and the place.
    Noted(String),
}

thread_local! {
    static WATCH: RefCell<Watch> = const { RefCell::new(Watch::Off) };
}

/// Runs `body`; a panic becomes an error of kind `panicked` and prints nothing.
fn catch_panic(body: impl FnOnce() -> std::result::Result<(), SubjectError>) -> std::result::Result<(), SubjectError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let noted = WATCH.try_with(|watch| match watch.try_borrow_mut() {
                Ok(mut watch) if !matches!(*watch, Watch::Off) => {
                    let message = text_of(info.payload());
                    *watch = Watch::Noted(match info.location() {
                        Some(place) => format!("panicked at {place}: {message}"),
                        None => format!("panicked: {message}"),
                    });
                    true
                }
                _ => false,
            });
            if noted != Ok(true) {
                before(info);
            }
        }));
    });
    // A subject may itself run a subject.
    let outer = WATCH.replace(Watch::On);
    let result = catch_unwind(AssertUnwindSafe(body));
    let noted = WATCH.replace(outer);
    match result {
        Ok(result) => result,
        Err(payload) => {
            let message = match noted {
                Watch::Noted(message) => message,
                // The panic came from another thread, or the kernel's author installed a hook of their own.
                Watch::On | Watch::Off => format!("panicked: {}", text_of(&*payload)),
            };
            Err(SubjectError { kind: "panicked", message, fault: false })
        }
    }
}

/// The message a panic carries.
fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(_: &mut Call<'_>) -> std::result::Result<(), SubjectError> {
        Ok(())
    }

    fn binding(function: &'static str, line: u32, implementations: &'static [Implementation]) -> Binding {
        Binding { op: "softmax", function, file: "src/kernels.rs", line, implementations }
    }

    const FLOAT32: &[Implementation] = &[Implementation { dtype: DType::Float32, run: answers }];
    const HALVES: &[Implementation] = &[
        Implementation { dtype: DType::Float16, run: answers },
        Implementation { dtype: DType::BFloat16, run: answers },
    ];

    fn run(function: &Function, dtype: DType) -> std::result::Result<(), SubjectError> {
        function.run(&mut Call { dtype, inputs: &mut [], outputs: &mut [], dims: &[], params: &[], notes: Vec::new() })
    }

    #[test]
    fn several_functions_serve_one_op() {
        let bindings = [binding("softmax_f32", 3, FLOAT32), binding("softmax_half", 9, HALVES)];
        let function = Function::of_bindings(&bindings).unwrap().unwrap();
        assert_eq!(function.describe(), "functions softmax_f32, softmax_half");
        assert!(function.supports(DType::BFloat16) && !function.supports(DType::Float64));
        assert_eq!(run(&function, DType::Float16), Ok(()));
        let error = run(&function, DType::Float64).unwrap_err();
        let message =
            "functions softmax_f32, softmax_half has no version for float64, only for float32, float16, bfloat16";
        assert_eq!((error.kind, error.message.as_str()), ("unsupported", message));
        assert!(Function::of_bindings([]).unwrap().is_none());
    }

    #[test]
    fn two_functions_for_one_dtype_are_an_error_that_names_both() {
        let bindings = [binding("first", 3, FLOAT32), binding("second", 9, FLOAT32)];
        let error = Function::of_bindings(&bindings).unwrap_err();
        assert_eq!(
            error.to_string(),
            "op `softmax` has two functions for float32: first at src/kernels.rs:3 and second at src/kernels.rs:9; \
             remove the #[op] of one of them"
        );
    }

    #[test]
    fn a_panic_is_an_error_with_its_message_and_place() {
        let dtypes = &[DType::Float32];
        let table = [
            (line!(), Function::from_closure(dtypes, |_| panic!("row {} is empty", 3)), "row 3 is empty"),
            (line!(), Function::from_closure(dtypes, |_| std::panic::panic_any(7)), "a value that is no text"),
        ];
        for (line, function, message) in table {
            let error = run(&function, DType::Float32).unwrap_err();
            assert_eq!(error.kind, "panicked");
            let place = format!("panicked at {}:{}:", file!(), line);
            assert!(error.message.starts_with(&place), "{}", error.message);
            assert!(error.message.ends_with(&format!(": {message}")), "{}", error.message);
        }
    }

    #[test]
    fn a_panic_brought_over_from_another_thread_keeps_its_message() {
        let function = Function::from_closure(&[DType::Float32], |_| {
            // Raised without the hook, as rayon does with a panic of one of its threads.
            std::panic::resume_unwind(Box::new("block 2 failed".to_owned()))
        });
        let error = run(&function, DType::Float32).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), ("panicked", "panicked: block 2 failed"));
    }

    #[test]
    fn a_subject_inside_a_subject() {
        let function = Function::from_closure(&[DType::Float32], |_| {
            let inner = Function::from_closure(&[DType::Float32], |_| panic!("inner"));
            assert!(run(&inner, DType::Float32).unwrap_err().message.ends_with(": inner"));
            panic!("outer")
        });
        assert!(run(&function, DType::Float32).unwrap_err().message.ends_with(": outer"));
    }
}
