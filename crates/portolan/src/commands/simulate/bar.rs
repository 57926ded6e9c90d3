//! A bar on standard error that shows how much of the simulated time has passed.

use std::io::{IsTerminal, Write};
use std::time::Duration;

const WIDTH: usize = 30;

/// The bar of one run. Nothing is shown where standard error is no terminal.
pub(super) struct Bar {
    label: String,
    terminal: bool,
    shown: usize,
}

impl Bar {
    pub(super) fn new(label: &str) -> Self {
        Self { label: label.to_owned(), terminal: std::io::stderr().is_terminal(), shown: usize::MAX }
    }

    /// So much of the simulated time has passed.
    pub(super) fn show(&mut self, done: Duration, total: Duration) {
        let per_mille = (done.as_secs_f64() / total.as_secs_f64() * 1000.0) as usize;
        if !self.terminal || per_mille == self.shown {
            return;
        }
        self.shown = per_mille;
        let full = (per_mille * WIDTH / 1000).min(WIDTH);
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH - full));
        // A terminal that is gone is no reason to stop.
        let _ = write!(std::io::stderr(), "\r{} {bar} {} of {}", self.label, minutes(done), minutes(total));
    }

    /// The run is over.
    pub(super) fn end(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr(), "\r\u{1b}[2K");
        }
    }
}

fn minutes(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}
