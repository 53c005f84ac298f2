//! One line on a terminal that says what a long run is doing, and leaves no trace.

use std::io::{self, Write};
use std::time::Duration;

/// Runs shorter than this need no such line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Columns that the line may fill without being wrapped.
const COLUMNS: usize = 79;

/// The line.
pub struct Progress {
    out: Box<dyn Write + Send>,
    drawn: bool,
}

/// What the line says.
pub struct Standing<'a> {
    /// Tests selected.
    pub count: usize,
    /// Tests over.
    pub finished: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that are running and for how long, the oldest first.
    pub running: &'a [(&'a str, Duration)],
    /// How long the run has taken.
    pub time: Duration,
}

impl Progress {
    /// A line on standard error.
    pub fn new() -> Progress {
        Progress::on(Box::new(io::stderr()))
    }

    fn on(out: Box<dyn Write + Send>) -> Progress {
        Progress { out, drawn: false }
    }

    /// Draws the line anew. Nothing depends on it, so nothing is done when it cannot be written.
    pub fn draw(&mut self, standing: &Standing<'_>) {
        if standing.time >= PATIENCE {
            let _ = write!(self.out, "\r\x1b[K{}", line(standing)).and_then(|()| self.out.flush());
            self.drawn = true;
        }
    }

    /// Takes the line away, before others write.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(self.out, "\r\x1b[K").and_then(|()| self.out.flush());
            self.drawn = false;
        }
    }
}

fn line(standing: &Standing<'_>) -> String {
    let mut line = format!("[{}/{}", standing.finished, standing.count);
    if standing.failed > 0 {
        line += &format!(", {} failed", standing.failed);
    }
    line.push(']');
    if let [(name, time), others @ ..] = standing.running {
        line += &format!(" {name} {}s", time.as_secs());
        if !others.is_empty() {
            line += &format!(", and {} more", others.len());
        }
    }
    line.chars().take(COLUMNS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn standing<'a>(running: &'a [(&'a str, Duration)], time: Duration) -> Standing<'a> {
        Standing { count: 240, finished: 12, failed: 0, running, time }
    }

    #[test]
    fn the_line_says_what_runs() {
        let running = [("softmax::float32::edge", Duration::from_secs(7)), ("gelu::float32::edge", Duration::ZERO)];
        let mut now = standing(&running, PATIENCE);
        assert_eq!(line(&now), "[12/240] softmax::float32::edge 7s, and 1 more");
        now.failed = 3;
        now.running = &running[..1];
        assert_eq!(line(&now), "[12/240, 3 failed] softmax::float32::edge 7s");
        now.running = &[];
        assert_eq!(line(&now), "[12/240, 3 failed]");
        let long = "x".repeat(200);
        assert_eq!(line(&standing(&[(&long, Duration::ZERO)], PATIENCE)).chars().count(), COLUMNS);
    }

    #[test]
    fn it_comes_late_and_leaves_no_trace() {
        let screen = Screen::default();
        let mut progress = Progress::on(Box::new(screen.clone()));
        progress.draw(&standing(&[], Duration::from_millis(900)));
        progress.clear();
        assert_eq!(screen.0.lock().unwrap().len(), 0, "a short run shows nothing");
        progress.draw(&standing(&[], PATIENCE));
        progress.clear();
        progress.clear();
        assert_eq!(String::from_utf8_lossy(&screen.0.lock().unwrap()), "\r\x1b[K[12/240]\r\x1b[K");
    }
}
