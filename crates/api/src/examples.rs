//! Example manifests with the verdict that an API server must give on them: for tests here, on the lab and on the
//! sandbox.
//!
//! A file in `valid/` holds an object that is accepted. A file in `invalid/` holds one that is refused, and begins
//! with `# expect: ` and a part of the message. Further documents of a file are updates of the first; only the last
//! one is refused.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// A manifest and what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The name of the file without its ending.
    pub name: String,
    /// The object as it is created, then as it is updated, if it is.
    pub steps: Vec<Value>,
    /// What the API server says to the last step. All steps before it are accepted.
    pub verdict: Verdict,
}

/// What an API server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The object is stored.
    Accepted,
    /// The object is refused with a message that contains this text.
    Refused(String),
}

/// Why the examples could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// A file or directory could not be read.
    #[error("{} cannot be read: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// A file is not YAML.
    #[error("{} is not YAML: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What went wrong, and where.
        message: String,
    },
    /// A refused example does not say what is expected.
    #[error("{} must begin with `# expect: ` and a part of the API server's message", path.display())]
    NoExpectation {
        /// The file.
        path: PathBuf,
    },
}

const EXPECT: &str = "# expect: ";

/// The examples in `directory` (this crate's `fixtures`), the valid ones first, ordered by name.
pub fn load(directory: &Path) -> Result<Vec<Example>, ExampleError> {
    let mut examples = Vec::new();
    for path in files(&directory.join("valid"))? {
        let text = read(&path)?;
        examples.push(Example { name: name(&path), steps: steps(&path, &text)?, verdict: Verdict::Accepted });
    }
    for path in files(&directory.join("invalid"))? {
        let text = read(&path)?;
        let Some(message) = text.lines().next().and_then(|line| line.strip_prefix(EXPECT)) else {
            return Err(ExampleError::NoExpectation { path });
        };
        let verdict = Verdict::Refused(message.trim().to_owned());
        examples.push(Example { name: name(&path), steps: steps(&path, &text)?, verdict });
    }
    Ok(examples)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, ExampleError> {
    let error = |source| ExampleError::Read { path: directory.to_owned(), source };
    let entries = fs::read_dir(directory).map_err(error)?;
    let mut paths =
        entries.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>().map_err(error)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, ExampleError> {
    fs::read_to_string(path).map_err(|source| ExampleError::Read { path: path.to_owned(), source })
}

fn name(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn steps(path: &Path, text: &str) -> Result<Vec<Value>, ExampleError> {
    serde_saphyr::from_multiple(text)
        .map_err(|error| ExampleError::Parse { path: path.to_owned(), message: error.to_string() })
}
