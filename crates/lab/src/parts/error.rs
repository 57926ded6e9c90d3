//! What can go wrong while the parts are made.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use portolan_image::ImageError;

/// Something that the machine lacks, and how to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, for a person.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

impl Missing {
    pub(super) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), fix: fix.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.fix)
    }
}

/// Why the parts could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// The asked version is no `major.minor.patch`.
    #[error(
        "\"{version}\" is not a Kubernetes version: write it as MAJOR.MINOR.PATCH, for example {example}"
    )]
    NotAVersion {
        /// As it was given.
        version: String,
        /// A version that would do.
        example: &'static str,
    },
    /// No build module is checked in for the asked version.
    #[error(
        "Kubernetes {version} is not pinned (pinned: {}): run `cargo xtask lab pin {version}` and commit what it writes",
        pinned.join(", ")
    )]
    NotPinned {
        /// The asked version.
        version: String,
        /// Those that are checked in.
        pinned: Vec<String>,
    },
    /// The machine lacks something that is needed to build the parts.
    #[error("cannot make the lab's parts:{}", list(missing))]
    Missing {
        /// All of it.
        missing: Vec<Missing>,
    },
    /// A `go.mod` does not say what it must.
    #[error("{}: {problem}", path.display())]
    GoModule {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A program could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// Its name or path.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program that was run failed.
    #[error("{part}: `{command}` failed ({status}){}{}", indented(output), hint(help))]
    Command {
        /// The part that was being made.
        part: String,
        /// The whole command line.
        command: String,
        /// Exit code or signal.
        status: String,
        /// The end of what it printed.
        output: String,
        /// What would help, where that is known.
        help: String,
    },
    /// A package of the node root is missing or too old.
    #[error("node root from Debian {suite}: {problem}")]
    Package {
        /// The Debian suite.
        suite: String,
        /// The package, its version, what is needed and what would help.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// An image could not be made.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl PartsError {
    /// Wraps an I/O error with the file it happened on; for `map_err`.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

fn list(missing: &[Missing]) -> String {
    missing.iter().map(|one| format!("\n  - {one}")).collect()
}

fn indented(output: &str) -> String {
    output.lines().map(|line| format!("\n  | {line}")).collect()
}

fn hint(help: &str) -> String {
    if help.is_empty() { String::new() } else { format!("\n{help}") }
}
