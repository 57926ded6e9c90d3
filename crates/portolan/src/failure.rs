//! Failures as a user meets them: what went wrong, what would help, and an exit code that says whose turn it is.

use crate::clean;
use crate::cli::LogFormat;
use anstream::eprintln;
use portolan_runtime::{CallError, chain};
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
    /// The user lacks a right.
    Forbidden,
    /// The cluster does not have what was asked for, or not its kind.
    NotFound,
    /// Something else is.
    Other,
}

/// Why the user may not see something that a command shows beside the rest.
#[derive(Debug, Default)]
pub(crate) struct NotShown {
    pub(crate) reasons: Vec<String>,
}

impl NotShown {
    /// The answer, or nothing if the user may not read it. Any other failure stays one.
    pub(crate) fn unless_forbidden<T>(&mut self, answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(failure) if failure.is_forbidden() => {
                if !self.reasons.contains(&failure.message) {
                    self.reasons.push(failure.message);
                }
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Says what is missing, and what would help.
    pub(crate) fn report(&self) {
        for reason in &self.reasons {
            eprintln!("not shown: {}", clean::lines(reason));
        }
        if !self.reasons.is_empty() {
            eprintln!("\u{1b}[1mhint\u{1b}[0m: {RIGHTS}");
        }
    }
}

/// What helps somebody who lacks the rights to read.
pub(crate) const RIGHTS: &str = "ask an administrator of the hub for the ClusterRoles portolan-developer and \
                                 portolan-fleet-viewer, which `portolan crds --roles` prints";

impl Failure {
    /// The input is wrong.
    pub(crate) fn input(message: impl Display) -> Self {
        Self { kind: Kind::Input, message: message.to_string(), hints: Vec::new() }
    }

    /// The command failed.
    pub(crate) fn other(message: impl Display) -> Self {
        Self { kind: Kind::Other, message: message.to_string(), hints: Vec::new() }
    }

    /// A request failed.
    pub(crate) fn call(error: &CallError) -> Self {
        let kind = match error.code() {
            Some(403) => Kind::Forbidden,
            Some(404) => Kind::NotFound,
            _ => Kind::Other,
        };
        Self { kind, message: chain(error), hints: Vec::new() }
    }

    /// Adds what would help.
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Whether the user lacks a right.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.kind == Kind::Forbidden
    }

    /// Whether the cluster does not have what was asked for, or not its kind.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What would help.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The same failure, with the place that it is about.
    pub(crate) fn about(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// Prints it for the user or, as JSON, for the log, and gives the exit code.
    pub(crate) fn report(self, format: LogFormat) -> ExitCode {
        if format.is_json() {
            tracing::error!(hints = self.hints.join("; "), "{}", self.message);
        } else {
            self.print();
        }
        match self.kind {
            Kind::Input => ExitCode::from(2),
            Kind::Forbidden | Kind::NotFound | Kind::Other => ExitCode::FAILURE,
        }
    }

    fn print(&self) {
        let (red, bold, reset) = ("\u{1b}[1;31m", "\u{1b}[1m", "\u{1b}[0m");
        eprintln!("{red}error{reset}: {}", clean::lines(&self.message));
        for hint in &self.hints {
            eprintln!("{bold}hint{reset}: {}", clean::lines(hint));
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::other(error)
    }
}
