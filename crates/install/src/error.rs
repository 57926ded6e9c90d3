//! What is wrong with values.

/// A value that cannot be used, by its path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value {path}: {problem}")]
pub struct ValuesError {
    /// Where it stands, such as `controller.resources`.
    pub path: String,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

impl ValuesError {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}
