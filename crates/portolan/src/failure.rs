//! Failures as a user meets them: what went wrong, what would help, and an exit code that says whose turn it is.

use crate::clean;
use anstream::eprintln;
use std::fmt::Display;
use std::process::ExitCode;

/// A command that did not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hints: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The user's input is wrong; the same command fails again.
    Input,
    /// Something else is.
    Other,
}

impl Failure {
    /// The input is wrong.
    pub(crate) fn input(message: impl Display) -> Self {
        Self { kind: Kind::Input, message: message.to_string(), hints: Vec::new() }
    }

    /// The command failed.
    pub(crate) fn other(message: impl Display) -> Self {
        Self { kind: Kind::Other, message: message.to_string(), hints: Vec::new() }
    }

    /// Adds what would help.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The same failure, with the place that it is about.
    pub(crate) fn about(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Prints it for the user, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (red, bold, reset) = ("\u{1b}[1;31m", "\u{1b}[1m", "\u{1b}[0m");
        eprintln!("{red}error{reset}: {}", clean::lines(&self.message));
        for hint in &self.hints {
            eprintln!("{bold}hint{reset}: {}", clean::lines(hint));
        }
        match self.kind {
            Kind::Input => ExitCode::from(2),
            Kind::Other => ExitCode::FAILURE,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::other(error)
    }
}
