//! Python functions as references and generators, in workers that are started once and stay warm.
//!
//! A worker is this crate's `worker.py` under the project's interpreter; its first lines describe the frames that go
//! back and forth. Each thread that asks has a worker to itself for as long as it waits.

use super::script::{narrow_note, note_narrow};
use super::wire::{self, Dense};
use super::{Mirror, Question, protocol};
use crate::error::{Error, Result};
use crate::process::{self, Excerpt, Group};
use crate::python::Python;
use crate::tensor::{Array, Tensor, Values};
use gpuemu_contract::{DType, ParamValue};
use serde_json::{Value, json};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What both sides of the pipe must speak.
const PROTOCOL: u64 = 1;
const MAGIC: &[u8; 4] = b"gpuW";
const SOURCE: &str = include_str!("worker.py");

/// Time a worker has to start Python and import NumPy.
const START: Duration = Duration::from_secs(60);
/// The largest header and body that are read; anything above is no frame.
const MAX_HEADER: u32 = 16 << 20;
const MAX_BODY: u64 = 16 << 30;

/// The workers of one project: as many as threads have asked at once.
#[derive(Debug)]
pub struct Workers {
    root: PathBuf,
    python: Python,
    timeout: Duration,
    source: String,
    idle: Mutex<Vec<Worker>>,
}

/// How to call one function.
struct Ask<'a> {
    /// For messages: `reference pkg.mod:function`.
    what: String,
    header: Value,
    arrays: &'a [Dense<'a>],
}

impl Workers {
    /// Workers of the project whose `gpuemu.toml` lies in `root`, an absolute path: modules are looked for there first.
    /// `timeout` is for one call. Nothing is started before the first call.
    pub fn new(root: &Path, python: Python, timeout: Duration) -> Workers {
        Workers { root: root.to_owned(), python, timeout, source: SOURCE.to_owned(), idle: Mutex::default() }
    }

    /// The folder of `gpuemu.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The interpreter.
    pub fn python(&self) -> &Python {
        &self.python
    }

    /// Time one call may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Process numbers of the workers that wait for work.
    pub fn idle(&self) -> Vec<u32> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|worker| worker.group.number()).collect()
    }

    /// Values from a user's generator `package.module:function`. The function is called with those of `seed`, `rng` (a
    /// NumPy generator seeded with it), `shape`, `dtype` (the name), `dims` and `params` (each by its own name) that its
    /// signature names. The array has the shape and dtype asked for; its values are not yet rounded.
    pub fn generate(
        &self,
        generator: &str,
        seed: u64,
        shape: &[usize],
        dtype: DType,
        dims: &[(String, u64)],
        params: &[(String, ParamValue)],
    ) -> Result<Array> {
        let header = json!({
            "generate": generator,
            "seed": seed,
            "shape": shape,
            "dtype": dtype.name(),
            "dims": dims,
            "params": parameters(params),
        });
        let what = format!("generator {generator}");
        let tensors = self.ask(&Ask { what: what.clone(), header, arrays: &[] })?;
        let [tensor] = tensors.as_slice() else {
            return Err(Error::Internal(format!("{what}: {} arrays in the reply of one", tensors.len())));
        };
        if tensor.shape() != shape {
            return Err(Error::ReferenceFailed(format!(
                "{what} returned shape {:?} where {shape:?} was asked for",
                tensor.shape()
            )));
        }
        let array = tensor.to_array();
        match (dtype.integer_range(), &array.values) {
            (None, Values::Float(_)) => Ok(Array { dtype, ..array }),
            (None, Values::Integer(_)) => {
                Ok(Array::float(dtype, shape, (0..array.len()).map(|number| array.at(number)).collect()))
            }
            (Some((low, high)), Values::Integer(values)) => match wire::outside(values, tensor.dtype(), low..=high) {
                Some(value) => {
                    Err(Error::ReferenceFailed(format!("{what} returned {value}, which {dtype} does not hold")))
                }
                None => Ok(Array { dtype, ..array }),
            },
            (Some(_), Values::Float(_)) => {
                Err(Error::ReferenceFailed(format!("{what} returned {} where {dtype} was asked for", tensor.dtype())))
            }
        }
    }

    /// One call, with a second try on a fresh worker when the first one dies.
    fn ask(&self, ask: &Ask<'_>) -> Result<Vec<Tensor>> {
        let frame = Arc::new(frame(&ask.header, ask.arrays));
        let mut died = None;
        for attempt in 0..2 {
            let waiting = if attempt == 0 { self.waiting() } else { None };
            let mut worker = match waiting {
                Some(worker) => worker,
                None => self.start(&ask.what)?,
            };
            match worker.exchange(&frame, self.timeout) {
                Ok(reply) => {
                    let answer = reply.tensors(ask).map_err(|message| worker.complaint(&ask.what, &message));
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
                    return answer;
                }
                Err(Lost::Died) => {
                    let ending = worker.group.ending();
                    died = Some(
                        worker.complaint(&ask.what, &format!("its Python worker {ending}, and so did a second one")),
                    );
                }
                Err(Lost::TimedOut) => {
                    let _ = worker.group.end();
                    let message = format!("did not answer within {:?} and was ended", self.timeout);
                    return Err(worker.complaint(&ask.what, &message));
                }
                Err(Lost::Garbage(what)) => {
                    let _ = worker.group.end();
                    return Err(worker.complaint(&ask.what, &what));
                }
            }
        }
        Err(died.unwrap_or_else(|| Error::Internal(format!("{}: no worker was asked", ask.what))))
    }

    /// A worker that waits and is still alive.
    fn waiting(&self) -> Option<Worker> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut worker = idle.pop()?;
            if !worker.group.has_exited() {
                worker.stderr.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Some(worker);
            }
        }
    }

    /// A fresh worker that has said which protocol it speaks.
    fn start(&self, what: &str) -> Result<Worker> {
        let (mut worker, interpreter) = self.python.start(what, |interpreter| {
            let mut command = Command::new(interpreter);
            command.arg("-c").arg(&self.source).arg(&self.root).current_dir(&self.root);
            Ok((Worker::new(&mut command)?, interpreter.display().to_string()))
        })?;
        let hello = worker.receive(Instant::now() + START).map_err(|lost| {
            let message = match lost {
                Lost::Died => {
                    format!("its Python worker ({interpreter}) {} before it was ready", worker.group.ending())
                }
                Lost::TimedOut => format!("its Python worker ({interpreter}) was not ready within {START:?}"),
                Lost::Garbage(_) => {
                    format!("{interpreter} does not behave like Python 3; name an interpreter in GPUEMU_PYTHON")
                }
            };
            let _ = worker.group.end();
            worker.complaint(what, &message)
        })?;
        let version = hello.header["protocol"].as_u64();
        if version != Some(PROTOCOL) {
            let version = version.map_or("none that is known".to_owned(), |version| version.to_string());
            return Err(Error::VersionMismatch(format!(
                "the Python worker of {what} speaks protocol {version} and this gpuemu speaks {PROTOCOL}; install the \
                 same release of gpuemu on both sides"
            )));
        }
        if hello.header["numpy"].is_null() {
            return Err(Error::ReferenceFailed(format!(
                "{what} needs NumPy, which {interpreter} (Python {}) cannot import: {}; install it there \
                 ({interpreter} -m pip install numpy), or name another interpreter in GPUEMU_PYTHON",
                hello.header["python"].as_str().unwrap_or("?"),
                hello.header["reason"].as_str().unwrap_or("no reason given"),
            )));
        }
        Ok(worker)
    }
}

/// One process.
#[derive(Debug)]
struct Worker {
    group: Group,
    requests: Sender<Arc<Vec<u8>>>,
    replies: Receiver<io::Result<Reply>>,
    stderr: Arc<Mutex<Excerpt>>,
}

/// Why there is no reply.
enum Lost {
    Died,
    TimedOut,
    Garbage(String),
}

impl Worker {
    fn new(command: &mut Command) -> io::Result<Worker> {
        let mut group = Group::start(command)?;
        let requests = process::feed(group.stdin()?)?;
        let stderr = Arc::new(Mutex::new(Excerpt::default()));
        process::collect(group.stderr()?, Arc::clone(&stderr), || ())?;
        let (sender, replies) = mpsc::channel();
        let mut pipe = group.stdout()?;
        thread::Builder::new().name("worker replies".into()).spawn(move || {
            loop {
                match Reply::read(&mut pipe) {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return,
                    reply => {
                        let last = reply.is_err();
                        if sender.send(reply).is_err() || last {
                            return;
                        }
                    }
                }
            }
        })?;
        Ok(Worker { group, requests, replies, stderr })
    }

    fn exchange(&mut self, frame: &Arc<Vec<u8>>, timeout: Duration) -> std::result::Result<Reply, Lost> {
        let deadline = Instant::now() + timeout;
        self.requests.send(Arc::clone(frame)).map_err(|_| Lost::Died)?;
        self.receive(deadline)
    }

    /// The next reply. A worker that has died while something it started holds its pipe is noticed, too.
    fn receive(&mut self, deadline: Instant) -> std::result::Result<Reply, Lost> {
        loop {
            let look = deadline.min(Instant::now() + Duration::from_millis(100));
            match process::receive_until(&self.replies, look) {
                Ok(Some(Ok(reply))) => return Ok(reply),
                Ok(Some(Err(error))) => return Err(Lost::Garbage(format!("its Python worker sent no frame: {error}"))),
                Ok(None) => return Err(Lost::Died),
                Err(process::TimeIsUp) if self.group.has_exited() => return Err(Lost::Died),
                Err(process::TimeIsUp) if Instant::now() >= deadline => return Err(Lost::TimedOut),
                Err(process::TimeIsUp) => {}
            }
        }
    }

    /// An error with what the worker printed.
    fn complaint(&self, what: &str, message: &str) -> Error {
        // What it printed before its last word may still be on its way through the other pipe.
        thread::sleep(Duration::from_millis(20));
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
        Error::ReferenceFailed(format!("{what}: {message}{}", process::quote_stderr(&stderr)))
    }
}

/// A frame from a worker.
#[derive(Debug)]
struct Reply {
    header: Value,
    body: Vec<u8>,
}

impl Reply {
    fn read(pipe: &mut impl Read) -> io::Result<Reply> {
        let garbage = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
        let mut start = [0; 16];
        pipe.read_exact(&mut start)?;
        let [a, b, c, d, e, f, g, h, body @ ..] = start;
        if [a, b, c, d] != *MAGIC {
            return Err(garbage(format!("it begins {:?}", String::from_utf8_lossy(&start))));
        }
        let (length, body) = (u32::from_le_bytes([e, f, g, h]), u64::from_le_bytes(body));
        if length > MAX_HEADER || body > MAX_BODY {
            return Err(garbage(format!("a header of {length} and a body of {body} bytes")));
        }
        let mut header = vec![0; length as usize];
        pipe.read_exact(&mut header)?;
        let header =
            serde_json::from_slice(&header).map_err(|error| garbage(format!("its header is not JSON: {error}")))?;
        // Grows as bytes arrive, so that a false length takes no memory.
        let mut bytes = Vec::new();
        pipe.take(body).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != body {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Reply { header, body: bytes })
    }

    /// The arrays of a reply, or what it says instead.
    fn tensors(&self, ask: &Ask<'_>) -> std::result::Result<Vec<Tensor>, String> {
        if let Some(error) = self.header["error"].as_str() {
            return Err(error.to_owned());
        }
        let entries = self.header["arrays"].as_array().ok_or_else(|| format!("no arrays in {}", self.header))?;
        let expected = ask.header["outputs"].as_array().map_or(1, Vec::len);
        if entries.len() != expected {
            return Err(format!("{} arrays in a reply that has {expected}", entries.len()));
        }
        let tensor = |entry: &Value| -> Option<std::result::Result<Tensor, String>> {
            let dtype = DType::from_name(entry[0].as_str()?)?;
            let shape = entry[1].as_array()?.iter().map(|size| size.as_u64().map(|size| size as usize));
            let shape = shape.collect::<Option<Vec<usize>>>()?;
            let (start, length) = (entry[2].as_u64()? as usize, entry[3].as_u64()? as usize);
            let bytes = self.body.get(start..start.checked_add(length)?)?;
            Some(wire::tensor(dtype, &shape, bytes))
        };
        entries.iter().map(|entry| tensor(entry).unwrap_or_else(|| Err(format!("a reply with {entry}")))).collect()
    }
}

/// A request, as bytes. The header is completed with where each array stands in the body.
fn frame(header: &Value, arrays: &[Dense<'_>]) -> Vec<u8> {
    let mut at = 0;
    let entries: Vec<Value> = arrays
        .iter()
        .map(|array| {
            let entry = json!([array.name, array.dtype.name(), array.shape, at, array.shape.iter().product::<usize>()]);
            at += array.bytes.len().next_multiple_of(8);
            entry
        })
        .collect();
    let mut header = header.clone();
    header["arrays"] = Value::Array(entries);
    let header = header.to_string();
    let mut bytes = Vec::with_capacity(16 + header.len() + at);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(at as u64).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    for array in arrays {
        bytes.extend_from_slice(&array.bytes);
        bytes.resize(bytes.len() + array.bytes.len().next_multiple_of(8) - array.bytes.len(), 0);
    }
    bytes
}

fn parameters(params: &[(String, ParamValue)]) -> Value {
    let entry = |(name, value): &(String, ParamValue)| {
        let kind = match value {
            ParamValue::Int(_) => "int",
            ParamValue::Float(_) => "float",
            ParamValue::Bool(_) => "bool",
            ParamValue::Text(_) => "text",
        };
        json!([name, kind, protocol::keyword(value)])
    };
    params.iter().map(entry).collect()
}

/// A reference that is a Python function. It is called with the inputs as NumPy arrays and the parameters, all by name
/// (inputs by position where the function's arguments have no names), and returns an array, or for several outputs a tuple or a dict of them. For precisions see
/// [`Dense::of_array`].
#[derive(Debug)]
pub struct FunctionMirror {
    function: String,
    workers: Arc<Workers>,
    narrow: AtomicBool,
}

impl FunctionMirror {
    /// The function `function` of the module `module`.
    pub fn new(module: &str, function: &str, workers: Arc<Workers>) -> FunctionMirror {
        FunctionMirror { function: format!("{module}:{function}"), workers, narrow: AtomicBool::new(false) }
    }
}

impl Mirror for FunctionMirror {
    fn answer(&self, question: &Question<'_>) -> Result<Vec<Array>> {
        let arrays: Vec<Dense<'_>> =
            question.inputs.iter().map(|(name, array)| Dense::of_array(name, array, question.precision)).collect();
        let outputs: Vec<&str> = question.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let header = json!({
            "function": self.function, "outputs": outputs, "params": parameters(question.params),
        });
        let what = format!("reference {}", self.function);
        let answers = self.workers.ask(&Ask { what: what.clone(), header, arrays: &arrays })?;
        note_narrow(question, &answers, &self.narrow);
        let arrays = question.outputs.iter().zip(&answers).map(|((name, dtype), tensor)| {
            wire::answer(name, *dtype, tensor).map_err(|error| Error::ReferenceFailed(format!("{what}: {error}")))
        });
        arrays.collect()
    }

    fn notes(&self) -> Vec<String> {
        narrow_note(&format!("reference {}", self.function), &self.narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_contract::{Compute, EdgePolicy};

    /// The interpreter of this machine.
    fn python() -> Python {
        Python::new(std::env::var_os("GPUEMU_PYTHON").as_deref().map(Path::new))
    }

    /// The error of a project whose workers run this source.
    fn failure(source: String) -> Error {
        let python = python();
        let mut workers = Workers::new(&std::env::temp_dir(), python, Duration::from_secs(20));
        workers.source = source;
        let outputs = [("out".to_owned(), DType::Float32)];
        let question = Question {
            inputs: &[("x".to_owned(), Array::float(DType::Float32, &[1], vec![1.0]))],
            params: &[],
            outputs: &outputs,
            precision: Compute::Float64,
            edges: EdgePolicy::default(),
        };
        FunctionMirror::new("numpy", "negative", Arc::new(workers)).answer(&question).unwrap_err()
    }

    #[test]
    fn a_worker_of_another_version_is_refused_with_the_way_out() {
        let error = failure(SOURCE.replace("PROTOCOL = 1", "PROTOCOL = 2"));
        assert_eq!(
            error,
            Error::VersionMismatch(
                "the Python worker of reference numpy:negative speaks protocol 2 and this gpuemu speaks 1; install the \
                 same release of gpuemu on both sides"
                    .to_owned()
            )
        );
    }

    #[test]
    fn replies_that_are_no_frames_or_hold_no_arrays_are_errors() {
        let table = [
            ("pipe.send(*answer)", "os.write(pipe.replies, b'no frame at all, of any kind')", "no frame: it begins"),
            ("pipe.send(*answer)", "pipe.send({})", "no arrays in {}"),
            ("pipe.send(*answer)", "pipe.send({'arrays': []})", "0 arrays in a reply that has 1"),
            (
                "pipe.send(*answer)",
                "pipe.send({'arrays': [['float64', [1], 0, 8]]})",
                "a reply with [\"float64\",[1],0,8]",
            ),
            ("pipe.send(*answer)", "pipe.send({'arrays': [['float64', [2], 0, 8]]}, [b'8 bytes..'])", "takes 16"),
            ("pipe.send(*answer)", "os.write(pipe.replies, FRAME.pack(MAGIC, 1 << 30, 0))", "a header of 1073741824"),
            (
                "pipe.send(*answer)",
                "os.write(pipe.replies, FRAME.pack(MAGIC, 4, 0) + b'nope')",
                "its header is not JSON",
            ),
            (
                "pipe.send(*answer)",
                "os.write(pipe.replies, FRAME.pack(MAGIC, 2, 9) + b'{}'); return",
                "exited with status 0",
            ),
        ];
        for (answer, instead, part) in table {
            let message = failure(SOURCE.replace(answer, instead)).to_string();
            assert!(message.contains(part), "{instead}: {part:?} is not in:\n{message}");
        }
    }
}
