//! One run of a tool: a process group of its own, a time-out, bounded output, and nothing left behind.

use std::fmt;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How long pipes may stay open after the tool itself has ended, before what it left behind is ended too.
const GRACE: Duration = Duration::from_millis(200);

/// What a run may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From start to exit.
    pub timeout: Duration,
    /// Bytes of standard output and of standard error, each.
    pub output: usize,
}

/// How a tool ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal that nobody here sent.
    Signal(i32),
    /// It was still running after this time.
    TimedOut(Duration),
    /// It wrote more than this many bytes.
    TooMuchOutput(usize),
}

impl fmt::Display for Ending {
    /// Fit to follow the name of the tool.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exited with status {status}"),
            Ending::Signal(9) => f.write_str("was killed by SIGKILL (signal 9); the system may have run out of memory"),
            Ending::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "was killed by {name} (signal {number})"),
                None => write!(f, "was killed by signal {number}"),
            },
            Ending::TimedOut(after) => {
                write!(
                    f,
                    "did not finish within {after:?} and was ended; GPUEMU_TOOL_TIMEOUT sets another limit, in seconds"
                )
            }
            Ending::TooMuchOutput(limit) => write!(f, "wrote more than {} MiB and was ended", limit >> 20),
        }
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// A tool that has ended, and whatever it started with it.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Its standard output, as far as it was read.
    pub stdout: Vec<u8>,
    /// Its standard error, as far as it was read.
    pub stderr: Vec<u8>,
}

/// Runs a command to its end, with nothing on its standard input. The error is that of starting it.
pub fn run(command: &mut Command, limits: Limits) -> io::Result<Finished> {
    let deadline = Instant::now() + limits.timeout;
    let mut group = Group::start(command)?;
    let missing = || io::Error::other("a pipe is missing");
    let (events, inbox) = mpsc::channel();
    let stdout = collect(group.child.stdout.take().ok_or_else(missing)?, limits.output, events.clone())?;
    let stderr = collect(group.child.stderr.take().ok_or_else(missing)?, limits.output, events)?;

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
        if open == 0 {
            // Both pipes are closed and nobody will send again.
            thread::sleep(wait.min(Duration::from_millis(1)));
            continue;
        }
        match inbox.recv_timeout(wait) {
            Ok(Event::Ended) => (open, pause) = (open - 1, Duration::from_micros(200)),
            Ok(Event::Full) => ended_by_us = Some(Ending::TooMuchOutput(limits.output)),
            Err(_) => pause = (pause * 2).min(Duration::from_millis(20)),
        }
    }
    let status = group.end()?;
    // What held a pipe open is gone now, so that the readers come to their ends.
    let ending = ended_by_us.unwrap_or_else(|| ending_of(status));
    Ok(Finished { ending, stdout: take(&stdout), stderr: take(&stderr) })
}

fn take(collected: &Receiver<Vec<u8>>) -> Vec<u8> {
    // A process that left the group on purpose may still hold the pipe: it is not waited for.
    collected.recv_timeout(GRACE).unwrap_or_default()
}

fn ending_of(status: ExitStatus) -> Ending {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Ending::Signal(signal);
    }
    Ending::Exited(status.code().unwrap_or(-1))
}

enum Event {
    Ended,
    Full,
}

/// Reads a pipe to its end on a thread of its own, and hands over what it read, `limit` bytes at most.
fn collect(mut pipe: impl Read + Send + 'static, limit: usize, events: Sender<Event>) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("tool output".into()).spawn(move || {
        let (mut text, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
        let event = loop {
            match pipe.read(&mut chunk) {
                Ok(0) => break Event::Ended,
                Ok(count) => {
                    let room = limit - text.len();
                    text.extend_from_slice(&chunk[..count.min(room)]);
                    if count > room {
                        break Event::Full;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break Event::Ended,
            }
        };
        let _ = sender.send(text);
        let _ = events.send(event);
    })?;
    Ok(receiver)
}

/// A child in a process group of its own. Dropping it ends the group.
struct Group {
    child: Child,
    reaped: Option<ExitStatus>,
}

impl Group {
    fn start(command: &mut Command) -> io::Result<Group> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Group { child: command.spawn()?, reaped: None })
    }

    /// Whether the child itself has ended. It is not reaped: until [`Group::end`] its number, which is also the
    /// group's, cannot come to mean another process.
    fn has_exited(&mut self) -> bool {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
        }
        #[cfg(not(unix))]
        {
            self.reaped = self.child.try_wait().ok().flatten();
            self.reaped.is_some()
        }
    }

    /// Ends every process of the group that is still there, and tells how the child ended: by itself, if it had.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            // Fails when nobody of the group is left, which is as good.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        #[cfg(not(unix))]
        {
            let _ = self.child.kill();
        }
        let status = self.child.wait()?;
        self.reaped = Some(status);
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
