//! Launches that are ended from outside.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two questions.
pub const PACE: Duration = Duration::from_millis(50);

/// Whether a launch shall end before its kernel does. The thread that launches asks, about twenty times a second, and
/// once the answer is yes the launch ends with [`FaultKind::Cancelled`](crate::fault::FaultKind::Cancelled).
#[derive(Clone)]
pub struct Cancel(Arc<dyn Fn() -> bool + Send + Sync>);

impl Cancel {
    /// Ends launches once this is true.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(asked))
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancel")
    }
}

/// What all workers of a launch know of its end.
#[derive(Debug)]
pub struct End<'a> {
    cancel: Option<&'a Cancel>,
    came: AtomicBool,
}

impl<'a> End<'a> {
    /// Of a launch that may be ended by this.
    pub fn new(cancel: Option<&'a Cancel>) -> Self {
        Self { cancel, came: AtomicBool::new(false) }
    }

    /// For the thread that launches, which asks.
    pub fn asking(&self) -> Watch<'_> {
        Watch { end: self, asked: self.cancel.map(|_| Instant::now()) }
    }

    /// For any other.
    pub fn told(&self) -> Watch<'_> {
        Watch { end: self, asked: None }
    }
}

/// What one worker knows of it.
#[derive(Debug)]
pub struct Watch<'a> {
    end: &'a End<'a>,
    /// When it asked last, where it is the one that asks.
    asked: Option<Instant>,
}

impl Watch<'_> {
    /// Whether the launch shall end.
    pub fn is_over(&mut self) -> bool {
        let Some(cancel) = self.end.cancel else { return false };
        if self.asked.is_some_and(|asked| asked.elapsed() >= PACE) {
            self.asked = Some(Instant::now());
            if (cancel.0)() {
                self.end.came.store(true, Relaxed);
            }
        }
        self.end.came.load(Relaxed)
    }
}
