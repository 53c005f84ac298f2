//! Child processes with limits: a time-out that ends the whole process group, bounded output, and nothing that hangs.
//!
//! The standard library starts the child in a process group of its own and `rustix` signals the group. `duct` was
//! looked at and left: it ends only the processes it started itself, waits for every holder of a pipe (a grandchild
//! that hangs keeps it waiting), and keeps captured output without a bound.
//! On Windows only the child itself is ended.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time a child gets unless something else is said.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// How long pipes may stay open after the child itself has ended, before what it left behind is ended too.
const GRACE: Duration = Duration::from_millis(200);

/// Bytes of standard error that are kept from its beginning, and from its end (where tracebacks name the error).
const STDERR_HEAD: usize = 4 << 10;
const STDERR_TAIL: usize = 12 << 10;

/// What a child may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From start to exit.
    pub timeout: Duration,
    /// Bytes of standard output.
    pub stdout: usize,
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal of this number that nobody here sent.
    Signal(i32),
    /// It was still running after this time, and was ended.
    TimedOut(Duration),
    /// It wrote more than this many bytes to standard output, and was ended.
    TooMuchOutput(usize),
}

impl Ending {
    fn of(status: ExitStatus) -> Ending {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Ending::Signal(signal);
        }
        Ending::Exited(status.code().unwrap_or(-1))
    }

    /// A short stable word for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Ending::Exited(_) => "exited",
            Ending::Signal(_) => "killed",
            Ending::TimedOut(_) => "timed out",
            Ending::TooMuchOutput(_) => "too much output",
        }
    }
}

impl fmt::Display for Ending {
    /// Fit to follow the name of the child.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exited with status {status}"),
            Ending::Signal(signal) => match signal_name(*signal) {
                Some("SIGKILL") => {
                    f.write_str("was killed by SIGKILL (signal 9); the system may have run out of memory")
                }
                Some(name) => write!(f, "was killed by {name} (signal {signal})"),
                None => write!(f, "was killed by signal {signal}"),
            },
            Ending::TimedOut(after) => write!(f, "did not finish within {after:?} and was ended"),
            Ending::TooMuchOutput(limit) => {
                write!(f, "wrote more than {} MiB to standard output and was ended", limit >> 20)
            }
        }
    }
}

#[cfg(unix)]
fn signal_name(number: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.into_iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| name)
}

#[cfg(not(unix))]
fn signal_name(_number: i32) -> Option<&'static str> {
    None
}

/// A child that has ended, and whatever it started with it.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output, as far as it was read.
    pub stdout: Vec<u8>,
    /// Its standard error; of a long one, beginning and end.
    pub stderr: String,
}

/// Runs a command to its end: hands it `stdin`, collects what it prints, and leaves no process of its group behind.
/// The error is that of starting it; everything that happens afterwards is an [`Ending`].
pub fn run(command: &mut Command, stdin: Arc<Vec<u8>>, limits: Limits) -> io::Result<Finished> {
    enum Event {
        StdoutEnded,
        StdoutFull,
        StderrEnded,
    }
    let deadline = Instant::now() + limits.timeout;
    let mut group = Group::start(command)?;
    let (events, inbox) = mpsc::channel();

    // A child that never reads, or that dies before it has read everything, breaks this pipe. What it has to say about
    // that stands on its standard error; the broken pipe itself says nothing.
    let mut pipe = group.stdin()?;
    thread::Builder::new().name("child stdin".into()).spawn(move || {
        let _ = pipe.write_all(&stdin);
    })?;

    let stdout = Arc::new(Mutex::new(Vec::new()));
    let (mut pipe, store, sender) = (group.stdout()?, Arc::clone(&stdout), events.clone());
    thread::Builder::new().name("child stdout".into()).spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = limits.stdout - store.len();
                    store.extend_from_slice(&chunk[..count.min(room)]);
                    if count > room {
                        let _ = sender.send(Event::StdoutFull);
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let _ = sender.send(Event::StdoutEnded);
    })?;

    let stderr = Arc::new(Mutex::new(Excerpt::default()));
    let sender = events.clone();
    collect(group.stderr()?, Arc::clone(&stderr), move || drop(sender.send(Event::StderrEnded)))?;

    // `events` stays alive, so an empty inbox always means waiting.
    let (mut open, mut exited, mut ended_by_us) = (2, None, None);
    let mut pause = Duration::from_millis(1);
    while ended_by_us.is_none() {
        if exited.is_none() && group.has_exited() {
            exited = Some(Instant::now());
        }
        let now = Instant::now();
        let wait = match exited {
            Some(at) if open == 0 || now >= at + GRACE => break,
            Some(at) => at + GRACE - now,
            None if now >= deadline => {
                ended_by_us = Some(Ending::TimedOut(limits.timeout));
                break;
            }
            None => pause.min(deadline - now),
        };
        match inbox.recv_timeout(wait) {
            // The child closes its pipes by ending, so look soon.
            Ok(Event::StdoutEnded | Event::StderrEnded) => (open, pause) = (open - 1, Duration::from_micros(200)),
            Ok(Event::StdoutFull) => (open, ended_by_us) = (open - 1, Some(Ending::TooMuchOutput(limits.stdout))),
            Err(_) => pause = (pause * 2).min(Duration::from_millis(20)),
        }
    }
    let status = group.end()?;
    let last_words = Instant::now() + GRACE;
    while open > 0 && inbox.recv_timeout(last_words.saturating_duration_since(Instant::now())).is_ok() {
        open -= 1;
    }
    drop(events);
    let stdout = std::mem::take(&mut *stdout.lock().unwrap_or_else(PoisonError::into_inner));
    let stderr = stderr.lock().unwrap_or_else(PoisonError::into_inner).text();
    Ok(Finished { ending: ended_by_us.unwrap_or_else(|| Ending::of(status)), stdout, stderr })
}

/// A child in a process group of its own, with three pipes. Dropping it ends the group.
#[derive(Debug)]
pub struct Group {
    child: Child,
    reaped: Option<ExitStatus>,
}

impl Group {
    /// Starts the command.
    pub fn start(command: &mut Command) -> io::Result<Group> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Group { child: command.spawn()?, reaped: None })
    }

    /// The pipe to its standard input, once.
    pub fn stdin(&mut self) -> io::Result<ChildStdin> {
        self.child.stdin.take().ok_or_else(|| io::Error::other("standard input was taken before"))
    }

    /// The pipe from its standard output, once.
    pub fn stdout(&mut self) -> io::Result<ChildStdout> {
        self.child.stdout.take().ok_or_else(|| io::Error::other("standard output was taken before"))
    }

    /// The pipe from its standard error, once.
    pub fn stderr(&mut self) -> io::Result<ChildStderr> {
        self.child.stderr.take().ok_or_else(|| io::Error::other("standard error was taken before"))
    }

    /// The child's process number, which is also the group's.
    pub fn number(&self) -> u32 {
        self.child.id()
    }

    /// Whether the child itself has ended. It is not reaped: until [`Group::end`] its number, which is also the
    /// group's, cannot come to mean another process.
    pub fn has_exited(&mut self) -> bool {
        if self.reaped.is_some() {
            return true;
        }
        #[cfg(unix)]
        {
            use rustix::process::{WaitId, WaitIdOptions, waitid};
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            !matches!(waitid(WaitId::Pid(self.id()), options), Ok(None))
        }
        #[cfg(not(unix))]
        {
            self.reaped = self.child.try_wait().ok().flatten();
            self.reaped.is_some()
        }
    }

    /// Ends every process of the group that is still there, and tells how the child ended: by itself, if it had.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        #[cfg(unix)]
        {
            // Fails when nobody of the group is left, which is as good.
            let _ = rustix::process::kill_process_group(self.id(), rustix::process::Signal::KILL);
        }
        #[cfg(not(unix))]
        {
            let _ = self.child.kill();
        }
        let status = self.child.wait()?;
        self.reaped = Some(status);
        Ok(status)
    }

    /// Waits a moment for the child to end by itself (its pipes have closed, or its protocol is over), then ends the
    /// group.
    pub fn ending(&mut self) -> Ending {
        let patience = Instant::now() + GRACE;
        while !self.has_exited() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        self.end().map_or(Ending::Exited(-1), Ending::of)
    }

    #[cfg(unix)]
    fn id(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Reads a pipe to its end into an excerpt, on a thread of its own, then calls `ended`.
pub fn collect(
    mut pipe: impl Read + Send + 'static,
    excerpt: Arc<Mutex<Excerpt>>,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name("child stderr".into()).spawn(move || {
        let mut chunk = vec![0; 16 << 10];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => excerpt.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        ended();
    })?;
    Ok(())
}

/// Beginning and end of a text of any length.
#[derive(Clone, Debug, Default)]
pub struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

impl Excerpt {
    /// Adds to the end.
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(STDERR_HEAD - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(STDERR_TAIL);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Excerpt::default();
    }

    /// The text, with a note where the middle was left out; trimmed.
    pub fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        let tail = [front, back].concat();
        let text = if self.dropped == 0 {
            String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned()
        } else {
            let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
            format!("{head}\n[{} bytes left out]\n{tail}", self.dropped)
        };
        text.trim().to_owned()
    }
}

/// A child's standard error as the last lines of a message; nothing when it was silent.
pub fn quote_stderr(stderr: &str) -> String {
    if stderr.is_empty() {
        return String::new();
    }
    let mut text = "\nits standard error:".to_owned();
    for line in stderr.lines() {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

/// Receives with a deadline; `None` when the other side is gone, an error when the time is up.
pub fn receive_until<T>(inbox: &mpsc::Receiver<T>, deadline: Instant) -> Result<Option<T>, TimeIsUp> {
    match inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(message) => Ok(Some(message)),
        Err(RecvTimeoutError::Disconnected) => Ok(None),
        Err(RecvTimeoutError::Timeout) => Err(TimeIsUp),
    }
}

/// A deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeIsUp;

/// Writes messages to a pipe from a thread of its own, so that a reader that does not read cannot hold the writer.
pub fn feed(mut pipe: impl Write + Send + 'static) -> io::Result<Sender<Arc<Vec<u8>>>> {
    let (sender, inbox) = mpsc::channel::<Arc<Vec<u8>>>();
    thread::Builder::new().name("child stdin".into()).spawn(move || {
        for message in inbox {
            if pipe.write_all(&message).and_then(|()| pipe.flush()).is_err() {
                break;
            }
        }
    })?;
    Ok(sender)
}
