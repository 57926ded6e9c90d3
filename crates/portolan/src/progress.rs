//! What goes on, told on standard error.

use crate::clean;
use anstream::eprintln;
use std::sync::Mutex;
use tokio::time::Instant;

const DIM: &str = "\u{1b}[2m";
const GREEN: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[0m";

/// Tells steps as they begin, and what came of them. The same step is told once.
pub(crate) struct Progress {
    start: Instant,
    last: Mutex<String>,
}

impl Progress {
    /// Begins now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), last: Mutex::default() }
    }

    /// A step begins.
    pub(crate) fn step(&self, text: &str) {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *last != text {
            eprintln!("  {DIM}{:>5.1}s{RESET} {}", self.start.elapsed().as_secs_f64(), clean::line(text));
            text.clone_into(&mut last);
        }
    }

    /// All is done.
    pub(crate) fn done(&self, text: &str) {
        let (text, seconds) = (clean::line(text), self.start.elapsed().as_secs_f64());
        eprintln!("{GREEN}✓{RESET} {text} {DIM}({seconds:.1} s){RESET}");
    }
}
